"""Rounding of the forward map where the sensors read little of large states: modes that have decayed, differences."""

from __future__ import annotations

import numpy as np
import pytest
from zoo import unit_basis

import femcert as fc

LINE = unit_basis("line P1", 64)


def decayed(j, sensors, *, time=0.1, steps=100, scheme="crank-nicolson"):
    space = fc.FunctionSpace(LINE, [lambda x: np.sin(j * np.pi * x[0])])
    sensors = fc.PointSensors(LINE, [[x] for x in sensors])
    return fc.HeatInitial(LINE, parameters=space, sensors=sensors, times=time, steps=steps, scheme=scheme)


def exact_value(j, x, *, time=0.1, steps=100):
    """Of Crank and Nicolson's scheme on a uniform mesh: the sine is an eigenvector of its matrices."""
    h, k = 1.0 / 64, time / steps
    lam = 6.0 / h**2 * (1.0 - np.cos(j * np.pi * h)) / (2.0 + np.cos(j * np.pi * h))
    return ((1.0 - lam * k / 2.0) / (1.0 + lam * k / 2.0)) ** steps * np.sin(j * np.pi * x)


@pytest.mark.parametrize("scheme", ["crank-nicolson", "backward-euler", "exact"])
def test_a_mode_that_has_decayed_below_rounding_is_not_seen(scheme):
    problem = decayed(7, [0.3125], scheme=scheme)
    # What is computed is rounding, excited in the first modes.
    assert abs(problem.forward_matrix()[0, 0]) > 1e3 * abs(exact_value(7, 0.3125))
    with pytest.raises(fc.UncertifiedError, match="zero to rounding"):
        fc.stability(problem)
    data = fc.Data([1.7 * exact_value(7, 0.3125)], 0.01 * abs(1.7 * exact_value(7, 0.3125)))
    candidate = fc.Candidate.from_coefficients(problem, [0.5])
    for rule in (fc.ExactRadius(), fc.ResidualRadius()):
        with pytest.raises(fc.UncertifiedError):
            fc.certify(problem, data, candidate, rule)


@pytest.mark.parametrize("j", [1, 2, 3, 4, 5])
def test_constants_and_radii_of_decaying_modes(j):
    problem = decayed(j, [0.31, 0.47])
    space = problem.parameters
    unit = space.field([1.0])
    sigma = np.linalg.norm([exact_value(j, 0.31), exact_value(j, 0.47)]) / space.norm(unit)
    # Points are between nodes: the interpolant of the sine is read there.
    between = [np.interp(x, LINE.mesh.p[0], np.sin(j * np.pi * LINE.mesh.p[0])) for x in (0.31, 0.47)]
    sigma *= np.linalg.norm(between) / np.linalg.norm(np.sin(j * np.pi * np.array([0.31, 0.47])))
    assert fc.stability(problem).constant.value >= 1.0 / sigma
    data = problem.simulate(unit)
    certificate = fc.certify(problem, data, fc.Candidate.from_coefficients(problem, [1.0]), fc.ExactRadius())
    assert certificate.radius.side == "upper"


@pytest.mark.parametrize("share", [1e-3, 1e-6, 1e-8])
def test_sensors_that_cancel(share):
    """The difference of two readings sees only a small part of the source; data from a solve in extended precision."""
    space = fc.FunctionSpace(LINE, [lambda x: np.sin(np.pi * x[0]) + share * np.sin(2.0 * np.pi * x[0])])
    H = fc.PointSensors(LINE, [[0.2], [0.8]]).matrix
    problem = fc.EllipticSource(LINE, parameters=space, sensors=fc.MatrixSensors((H[0] - H[1]).tocsr()))
    right = (problem.load @ space.field([1.0]))[problem.free]
    A = problem.operator[problem.free][:, problem.free]
    u, rest = np.zeros(len(right), dtype=np.longdouble), right.astype(np.longdouble)
    dense = A.toarray().astype(np.longdouble)
    for _ in range(6):
        u = u + problem.factor.solve(rest.astype(float))
        rest = right - dense @ u
    row = problem.sensors.matrix[:, problem.free].toarray().astype(np.longdouble)
    data = fc.Data((row @ u).astype(float), 0.0)
    found = data.values / problem.forward_matrix()[:, 0]
    learned = fc.Candidate.from_coefficients(problem, found)
    truth = fc.Candidate.from_coefficients(problem, [1.0])
    radius = fc.certify(problem, data, learned, fc.ExactRadius()).radius.value
    assert space.norm(learned.parameter - truth.parameter) <= radius
    selection = fc.no_harm(problem, data, baseline=truth, learned=learned, rule=fc.Dominance())
    assert not selection.accepted or np.array_equal(learned.parameter, truth.parameter)
