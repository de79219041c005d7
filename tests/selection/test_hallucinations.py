"""Blobs where none are, missing ones and moved ones: what share the data refute, and truths no more than the level."""

from functools import cache

import numpy as np
import pytest
from scipy.sparse import csc_matrix
from scipy.stats import binom
from skfem import Basis, ElementTriP1, MeshTri

import femcert as fc

COARSE = MeshTri.init_lshaped().refined(2)
BASIS = Basis(COARSE.refined(1), ElementTriP1())
SENSORS = fc.AverageSensors(BASIS, COARSE.p[:, COARSE.interior_nodes()].T, radius=0.1)
# Of the H1 norm with length 0.3; two blobs have at most 1.12.
RADIUS = 1.3
MIDDLES = [(x, y) for x in (-0.75, -0.25, 0.25, 0.75) for y in (-0.75, -0.25, 0.25, 0.75) if not (x > 0.0 and y > 0.0)]
SQUARES = [
    fc.Mean(BASIS, lambda x, a=a, b=b: np.maximum(np.abs(x[0] - a), np.abs(x[1] - b)) < 0.25, name=f"{a:g}, {b:g}")
    for a, b in MIDDLES
]
STD = {0.01: 2e-4, 0.05: 1e-3}


def blob(centre, width=0.1):
    x = BASIS.doflocs
    return np.exp(-((x[0] - centre[0]) ** 2 + (x[1] - centre[1]) ** 2) / width)


def centre(rng, *others, apart=0.6):
    """In the L, apart from others."""
    while True:
        found = rng.uniform(-0.85, 0.85, 2)
        far = all(np.hypot(*(found - other)) > apart for other in others)
        if far and not (found > 0.0).all():
            return found


@cache
def setup(share):
    """Problem, evidence, and the weights of the regions."""
    space = fc.FullSpace(BASIS).within_ball(RADIUS, norm="h1", length=0.3)
    problem = fc.EllipticSource(BASIS, parameters=space, sensors=SENSORS)
    data = fc.Data.gaussian(np.zeros(SENSORS.count), std=STD[share])
    return problem, fc.evidence(problem, data), np.array([each.weights(space) for each in SQUARES])


def refutes(found, claimed):
    """Whether some interval does not have the value that is claimed there."""
    return any(not interval.contains(value) for interval, value in zip(found, claimed, strict=True))


@pytest.mark.parametrize(("share", "least"), [(0.01, 45), (0.05, 35)])
def test_fifty_hallucinations_of_each_kind(share, least):
    problem, evidence, W = setup(share)
    F, refuted = problem.forward_matrix(), {"none there": 0, "missing": 0, "moved": 0}
    for seed in range(50):
        rng = np.random.default_rng(seed)
        first = centre(rng)
        second = centre(rng, first)
        other = centre(rng, first, second)
        truth = blob(first) + blob(second)
        assert problem.parameters.ball_norm(truth) <= RADIUS
        y = F @ truth + STD[share] * rng.standard_normal(len(F))
        table = evidence.with_data(fc.Data.gaussian(y, std=STD[share])).table(SQUARES)
        wrong = {"none there": truth + blob(other), "missing": blob(first), "moved": blob(first) + blob(other)}
        for name, field in wrong.items():
            refuted[name] += refutes(table, W @ field)
    assert min(refuted.values()) >= least, refuted


def worst_truth(problem, evidence, row):
    """The truth of the ball with the largest bias of the very weights that are used for a functional."""
    psi = csc_matrix(row[:, None])
    found, _, _ = evidence._weights(psi, np.zeros(1), 0.05 / len(SQUARES))
    T = evidence.data.whiten(problem.forward_matrix())
    direction = T.T @ evidence._known.turned(found.weights)[:, 0] - row
    lifted = np.linalg.solve(problem.parameters.ball_form.toarray(), direction)
    return lifted * RADIUS / np.sqrt(direction @ lifted)


def test_truths_are_refuted_no_more_often_than_the_level():
    """2,000 trials: blobs, and truths of the ball at which the interval of a region fails most often."""
    share, trials, refuted = 0.05, 2000, 0
    problem, evidence, W = setup(share)
    F, rng = problem.forward_matrix(), np.random.default_rng(0)
    worst = [worst_truth(problem, evidence, row) for row in W]
    for trial in range(trials):
        truth = worst[trial % len(worst)] if trial % 2 else blob(centre(rng)) + blob(centre(rng))
        y = F @ truth + STD[share] * rng.standard_normal(len(F))
        found = evidence.with_data(fc.Data.gaussian(y, std=STD[share])).table(SQUARES)
        refuted += refutes(found, W @ truth)
    assert refuted <= binom.ppf(0.99, trials, 0.05), refuted
