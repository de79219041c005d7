"""Simulated tanks with wrong electrodes: coverage of intervals with a model error, and candidates judged as a whole."""

from dataclasses import replace

import numpy as np
import pytest
from bodies import disc, model
from evidence_helpers import fewest_conformal
from scipy.stats import betabinom, binom
from skfem import Basis, ElementTriP1, ElementTriP2

import femcert as fc

SAMPLES, TANKS, STD = 100, 100, 2e-4
COMBINATIONS = 24
NOISE, BALL, MODEL = 0.99, 0.98, 0.98
SIDES = {"right": (1, 0), "top": (0, 1), "left": (-1, 0), "bottom": (0, -1)}


def widened(basis, share, turn):
    """The same body with electrodes of other widths and places: the circle is mapped to itself."""
    z = basis.mesh.p[0] + 1j * basis.mesh.p[1]
    # Eight electrodes of width pi / 8, in the first half of each eighth.
    along = share * np.sin(8.0 * np.angle(z) - 0.5 * np.pi) * np.pi / 16.0 + turn
    z = z * np.exp(1j * along * np.abs(z) ** 8)
    return Basis(replace(basis.mesh, doflocs=np.array([z.real, z.imag])), basis.elem)


def phantom(rng):
    """A smooth lump of the contrast."""
    r, angle, width = rng.uniform(0.3, 0.7), rng.uniform(0.0, 2.0 * np.pi), rng.uniform(0.4, 0.6)
    size, middle = rng.uniform(0.4, 1.0) * rng.choice([-1.0, 1.0]), r * np.array([[np.cos(angle)], [np.sin(angle)]])
    return lambda x: size * np.exp(-np.sum((x - middle) ** 2, axis=0) / width**2)


@pytest.fixture(scope="module")
def tanks():
    """The model, its linearization, and for each phantom its field, what wrong tanks read, and what the model says."""
    basis = disc(element=ElementTriP2, rings=4)
    points = Basis(basis.mesh, ElementTriP1())
    space, rng = fc.FullSpace(points), np.random.default_rng(0)
    right = model(basis, space, transform="contrast")
    zero = np.zeros(points.N)
    empty = right.predict(None, zero)
    fields, measured, predicted = [], [], []
    for _ in range(SAMPLES + TANKS):
        contrast = phantom(rng)
        wrong_basis = widened(basis, 0.02 * rng.standard_normal(), 0.003 * rng.standard_normal())
        wrong = model(
            wrong_basis,
            fc.FullSpace(wrong_basis.with_element(ElementTriP1())),
            transform="contrast",
            impedances=0.1 * np.exp(0.05 * rng.standard_normal(8)),
            gains=1.0 + 0.003 * rng.standard_normal(8),
        )
        fields.append(contrast(points.doflocs))
        measured.append(wrong.predict(None, contrast(wrong_basis.mesh.p)) - wrong.predict(None, zero))
        predicted.append(right.predict(None, fields[-1]) - empty)
    return right, empty, *(np.array(rows) for rows in (fields, measured, predicted))


def noisy(measured, seed):
    return measured + STD * np.random.default_rng(seed).standard_normal(measured.shape)


def sides(basis):
    """Halves of the body."""
    return [fc.Mean(basis, lambda x, a=a, b=b: a * x[0] + b * x[1] > 0.0, name=name) for name, (a, b) in SIDES.items()]


def linearized(tanks):
    """In few combinations of the readings: the fewer, the smaller the set of their errors."""
    right, _, fields, measured, _ = tanks
    J = right.linearize(np.zeros(len(fields[0]))).apply(np.eye(len(fields[0])))
    combinations = np.linalg.svd(J)[0][:, :COMBINATIONS]
    return right, fields, combinations.T @ J, measured @ combinations


def test_intervals_for_truths_like_phantoms_that_wrong_instruments_measured(tanks):
    """All regions together at the stated level, with many signs; simulated by the model they miss it by far."""
    right, fields, J, measured = linearized(tanks)
    linear = fc.ForwardMap(J, parameters=right.parameters.within_ball(1.0, length=0.5))
    readings, regions = noisy(measured, 3), sides(right.parameters.basis)
    data = fc.Data.gaussian(readings[0], std=STD)
    evidence = fc.evidence(linear, data)
    true = np.array([[region.value(linear.parameters, q) for region in regions] for q in fields[SAMPLES:]])
    hits, certain = {}, {}
    for name, values in (("model", None), ("instruments", readings[:SAMPLES])):
        samples = fc.Samples(fields[:SAMPLES], values=values)
        tables = [evidence.with_data(data.with_values(y)).table(regions, samples=samples) for y in readings[SAMPLES:]]
        ends = np.array([[[row.lower.value, row.upper.value] for row in table] for table in tables])
        inside = (ends[..., 0] <= true) & (true <= ends[..., 1])
        signs = np.sign(ends[..., 0]) * (np.sign(ends[..., 0]) == np.sign(ends[..., 1]))
        hits[name], certain[name] = int(np.sum(np.all(inside, axis=1))), float(np.mean(signs != 0.0))
        wrong = int(np.sum(np.any(signs * true < 0.0, axis=1)))
    least = fewest_conformal(TANKS, SAMPLES, 0.95)
    assert hits["instruments"] >= least
    assert hits["model"] < least
    assert wrong <= TANKS - least
    assert certain["instruments"] > 0.25


def test_intervals_count_the_error_of_the_model(tanks):
    """All regions together at the stated level, which noise alone does not keep by far; no sign is wrong."""
    right, fields, J, measured = linearized(tanks)
    space = right.parameters.within_ball(samples=fields[:SAMPLES], confidence=BALL, length=0.5)
    linear = fc.ForwardMap(J, parameters=space)
    readings = noisy(measured, 1)
    noise = fc.Data.gaussian(readings[0], std=STD, confidence=NOISE)
    both = noise.with_model_error(samples=measured[:SAMPLES] - fields[:SAMPLES] @ J.T, confidence=MODEL)
    regions = sides(right.parameters.basis)
    hits, certain, wrong = {}, {}, {}
    for name, data in (("noise", noise), ("both", both)):
        evidence = fc.evidence(linear, data)
        tables = [evidence.with_data(data.with_values(y)).table(regions) for y in readings[SAMPLES:]]
        true = np.array([[region.value(space, q) for region in regions] for q in fields[SAMPLES:]])
        signs = np.array([[row.sign for row in table] for table in tables])
        pairs = (zip(table, values, strict=True) for table, values in zip(tables, true, strict=True))
        hits[name] = sum(all(row.contains(x) for row, x in each) for each in pairs)
        certain[name] = np.mean(signs != 0)
        wrong[name] = int(np.sum(np.any(signs * true < 0.0, axis=1)))
    level = NOISE + BALL + MODEL - 2.0
    least = binom.ppf(0.01, TANKS, level)
    assert tables[0][0].confidence == pytest.approx(level)
    assert hits["both"] >= least
    assert hits["noise"] < least
    assert wrong["both"] <= TANKS - least
    assert certain["both"] > 0.0


def test_truths_are_seldom_refuted_as_a_whole(tanks):
    """At most at the level, through the nonlinear model; a lump that is left out nearly always."""
    right, empty, fields, measured, predicted = tanks
    readings = noisy(measured, 2)
    level = 0.05
    samples = measured[:SAMPLES] - predicted[:SAMPLES]
    refuted = {"truth": 0, "empty": 0, "without a model error": 0}
    for q, y in zip(fields[SAMPLES:], readings[SAMPLES:], strict=True):
        noise = fc.Data.gaussian(empty + y, std=STD, confidence=1.0 - 0.2 * level)
        data = noise.with_model_error(samples=samples, confidence=1.0 - 0.8 * level)
        truth, nothing = (fc.Candidate(None, each) for each in (q, 0.0 * q))
        found = fc.explained(right, data, truth)
        assert found.confidence == pytest.approx(1.0 - level)
        refuted["truth"] += found.refuted
        refuted["empty"] += fc.explained(right, data, nothing).refuted
        refuted["without a model error"] += fc.explained(right, noise, truth).refuted
    # The size of the model error is a conformal quantile: its level scatters over sets of samples.
    half = SAMPLES // 2
    above = max(int((half + 1) * 0.8 * level), 1)
    most = betabinom.ppf(0.995, TANKS, above, half + 1 - above) + binom.ppf(0.995, TANKS, 0.2 * level)
    assert refuted["truth"] <= most
    assert refuted["empty"] > 0.9 * TANKS
    assert refuted["without a model error"] > 0.9 * TANKS
