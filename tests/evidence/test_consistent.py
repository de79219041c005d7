"""The consistent set of data: closed forms, rounding, inconsistent data, brute force, a general-purpose solver."""

import numpy as np
import pytest
from consistent_helpers import by_solver, distances, misfit, noisy
from hypothesis import given, settings
from hypothesis import strategies as st

import femcert as fc
from femcert.evidence.consistent import ConsistentSet, fit


def boundary(rng, A, y, level, count):
    """Random points with ``‖A x - y‖ = level``."""
    centre = np.linalg.lstsq(A, y, rcond=None)[0]
    slack = np.sqrt(level**2 - misfit(A, y, centre) ** 2)
    w = rng.normal(size=(count, A.shape[1]))
    w *= slack / np.linalg.norm(w, axis=1, keepdims=True)
    return centre + w @ np.linalg.inv(np.linalg.cholesky(A.T @ A)), centre, slack


def test_one_coordinate():
    """y = (3, 1), A = (1, 0): x is within (2² - 1²)^(1/2) of 3."""
    E = ConsistentSet([[1.0], [0.0]], [3.0, 1.0], 2.0)
    upper, witness = E.farthest([[0.0], [3.0], [10.0]])
    np.testing.assert_allclose(upper, np.array([3.0, 0.0, 7.0]) + np.sqrt(3.0), rtol=1e-12)
    assert misfit(np.array([[1.0], [0.0]]), np.array([3.0, 1.0]), witness) == pytest.approx(2.0, rel=1e-12)
    assert E.support([[1.0], [-2.0]])[0] == pytest.approx([3.0 + np.sqrt(3.0), -6.0 + 2.0 * np.sqrt(3.0)], rel=1e-12)
    assert E.consistent_level == pytest.approx(1.0, rel=1e-12)
    assert E.centre == pytest.approx([3.0])
    assert not E.centre.flags.writeable


@pytest.mark.parametrize("seed", range(4))
def test_brute_force(seed):
    rng = np.random.default_rng(seed)
    k = seed + 1
    A, truth, y = noisy(seed, k + 2, k, 0.5, spread=0.3)
    E = ConsistentSet(A, y, 0.5)
    x, centre, slack = boundary(rng, A, y, 0.5, 2000)
    points = np.stack([truth, centre, np.zeros(k)])
    upper, witness = E.farthest(points)
    assert np.all(distances(x[:, None], points) <= upper)
    assert np.all(x @ np.eye(k) <= E.support(np.eye(k))[0])
    np.testing.assert_allclose(distances(witness, points), upper, rtol=1e-11)
    assert np.all(misfit(A, y, witness) <= 0.5 * (1.0 + 1e-11))
    R = np.linalg.inv(np.linalg.cholesky(A.T @ A))
    for p, value in zip(points, upper, strict=True):
        z = x
        for _ in range(300):
            w = (z - p) @ R.T
            z = centre + slack * (w / np.linalg.norm(w, axis=1, keepdims=True)) @ R
        assert distances(z, p).max() == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_general_purpose_solver(seed):
    A, truth, y = noisy(seed, 8, 4, 0.3, spread=0.5)
    rng = np.random.default_rng(seed)
    p = truth + rng.normal(size=4)
    value = float(ConsistentSet(A, y, 0.3).farthest(p[None])[0][0])
    starts = boundary(rng, A, y, 0.3, 12)[0]
    assert by_solver(A, y, 0.3, p, starts) == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("spread", [0.1, 2.0])
def test_without_noise_the_truth_is_covered(seed, spread):
    """Also for a matrix that is wrong by its rounding."""
    A, truth, y = noisy(seed, 12, 6, 0.0, spread=spread)
    E = ConsistentSet(A, y, 0.0)
    smallest = np.linalg.svd(A, compute_uv=False)[-1]
    assert distances(E.centre, truth) <= E.farthest(E.centre[None])[0] <= 1e-12 * np.linalg.norm(A) / smallest * 10.0
    assert E.farthest(truth[None])[0][0] >= distances(E.centre, truth)
    wrong = A * (1.0 + 1e-9 * np.random.default_rng(seed).uniform(-1.0, 1.0, A.shape) / np.sqrt(A.size))
    E = ConsistentSet(wrong, y, 0.0, rounding=1e-9)
    assert E.farthest(E.centre[None])[0][0] >= distances(E.centre, truth)
    assert E.consistent_level == 0.0


def test_inconsistent_data_name_the_level():
    A, y = np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]]), np.array([1.0, 1.0, 0.7])
    with pytest.raises(fc.InconsistentError, match=r"smallest consistent one is 0\.7: model error") as caught:
        ConsistentSet(A, y, 0.5)
    assert caught.value.level == pytest.approx(0.7, rel=1e-12)
    assert isinstance(caught.value, fc.UncertifiedError)
    E = ConsistentSet(A, y, caught.value.level)
    assert 0.0 < E.farthest(E.centre[None])[0][0] < 1e-5
    above = ConsistentSet(A, y, 0.7 * (1.0 + 1e-6))
    assert above.farthest(above.centre[None])[0][0] == pytest.approx(np.sqrt(2e-6) * 0.7, rel=1e-5)


@pytest.mark.parametrize("A", [np.ones((2, 3)), np.ones((4, 2)), np.zeros((3, 1)), np.diag([1.0, 1e-17])])
def test_an_unbounded_set_is_refused(A):
    with pytest.raises(fc.UncertifiedError, match="not bounded"):
        ConsistentSet(A, np.zeros(len(A)), 1.0)
    with pytest.raises(fc.UncertifiedError, match="not bounded"):
        ConsistentSet(np.diag([1.0, 1e-7]), np.zeros(2), 1.0, rounding=1e-6)


@pytest.mark.parametrize(
    ("arguments", "options", "text"),
    [
        ((np.ones(3), np.ones(3), 1.0), {}, "matrix has shape"),
        ((np.ones((3, 0)), np.ones(3), 1.0), {}, "matrix has shape"),
        (([[np.nan]], [1.0], 1.0), {}, "matrix has 1 NaN"),
        ((np.ones((3, 1)), np.ones(2), 1.0), {}, "values has shape"),
        ((np.ones((3, 1)), [1.0, np.inf, 1.0], 1.0), {}, "values has 1 NaN"),
        ((np.ones((3, 1)), np.ones(3), -1.0), {}, "level is -1"),
        ((np.ones((3, 1)), np.ones(3), np.nan), {}, "level has 1 NaN"),
        ((np.ones((3, 1)), np.ones(3), 1.0), {"rounding": -1.0}, "rounding is -1"),
        ((np.ones((3, 1)), np.ones(3), 1.0), {"radius": 1.0}, "both form and radius"),
        ((np.ones((3, 1)), np.ones(3), 1.0), {"form": np.eye(2), "radius": 1.0}, "form has shape"),
        ((np.ones((3, 1)), np.ones(3), 1.0), {"form": [[1.0]], "radius": 0.0}, "radius is 0"),
        ((np.ones((3, 1)), np.ones(3), 1.0), {"form": [[-1.0]], "radius": 1.0}, "negative eigenvalue"),
        ((np.ones((3, 2)), np.ones(3), 1.0), {"form": [[1.0, 1.0], [0.0, 1.0]], "radius": 1.0}, "not symmetric"),
    ],
)
def test_wrong_input(arguments, options, text):
    with pytest.raises(fc.InputError, match=text):
        ConsistentSet(*arguments, **options)


def test_wrong_points():
    E = ConsistentSet(np.eye(2), np.zeros(2), 1.0)
    with pytest.raises(fc.InputError, match=r"points has shape \(2,\); expected \(n, 2\)"):
        E.farthest(np.zeros(2))
    with pytest.raises(fc.InputError, match="directions has 1 NaN"):
        E.support([[np.nan, 0.0]])
    assert E.farthest(np.zeros((0, 2)))[0].shape == (0,)


def test_many_sets_at_once():
    rng = np.random.default_rng(0)
    A, truth = rng.normal(size=(7, 5, 3)), rng.normal(size=(7, 3))
    e = rng.normal(size=(7, 5))
    y = (A @ truth[..., None])[..., 0] + 0.1 * e / np.linalg.norm(e, axis=1, keepdims=True)
    upper, witness = fit(A, y, 0.1).farthest(truth)
    alone = [ConsistentSet(A[i], y[i], 0.1).farthest(truth[i : i + 1]) for i in range(7)]
    np.testing.assert_allclose(upper, [value[0] for value, _ in alone], rtol=1e-12)
    np.testing.assert_allclose(distances(witness, truth), upper, rtol=1e-10)
    shared = fit(A[0], y[0] + np.arange(3.0)[:, None], np.array([5.0, 6.0, 7.0]))
    assert shared.farthest(np.zeros((3, 3)))[0].shape == (3,)
    assert fit(A[0].T, np.ones(3), 5.0).farthest(np.zeros((2, 5)))[0].tolist() == [np.inf, np.inf]


cases = st.tuples(st.integers(0, 10_000), st.integers(1, 5), st.sampled_from([0.0, 1e-3, 0.3]), st.floats(0.0, 2.0))


@settings(max_examples=60, deadline=None)
@given(cases)
def test_covers_and_never_above_the_residual_radius(case):
    seed, k, level, spread = case
    A, truth, y = noisy(seed, k + 3, k, level, spread)
    E = ConsistentSet(A, y, level)
    rng = np.random.default_rng(seed)
    points = np.concatenate([truth[None], E.centre[None], truth + rng.normal(size=(3, k))])
    upper = E.farthest(points)[0]
    assert np.all(distances(truth, points) <= upper)
    assert np.all(distances(E.centre, points) <= upper)
    s = np.linalg.svd(A, compute_uv=False)
    room = 1e-11 * s[0] / s[-1] * (1.0 + upper)
    assert np.all(upper <= (misfit(A, y, points) + level) / s[-1] + room)
    slack = np.sqrt(max(level**2 - misfit(A, y, E.centre) ** 2, 0.0))
    assert np.all(upper <= distances(E.centre, points) + slack / s[-1] + room)


@settings(max_examples=60, deadline=None)
@given(cases, st.floats(-30.0, 30.0), st.floats(-30.0, 30.0))
def test_invariances(case, log_x, log_y):
    """Units of parameter and data, rotations of both; and larger levels give larger sets."""
    seed, k, level, spread = case
    level = max(level, 1e-3)
    A, truth, y = noisy(seed, k + 2, k, level, spread)
    rng = np.random.default_rng(seed)
    points, d = truth + rng.normal(size=(3, k)), rng.normal(size=(3, k))
    E = ConsistentSet(A, y, level)
    (upper, extent) = E.farthest(points)[0], E.support(d)[0]
    ux, uy = np.exp(log_x), np.exp(log_y)
    scaled = ConsistentSet(A * uy / ux, y * uy, level * uy)
    np.testing.assert_allclose(scaled.farthest(points * ux)[0], upper * ux, rtol=1e-8)
    U, V = (np.linalg.qr(rng.normal(size=(n, n)))[0] for n in (k + 2, k))
    turned = ConsistentSet(U @ A @ V.T, U @ y, level)
    np.testing.assert_allclose(turned.farthest(points @ V.T)[0], upper, rtol=1e-8)
    np.testing.assert_allclose(turned.support(d @ V.T)[0], extent, rtol=1e-8, atol=1e-8 * np.abs(upper).max())
    larger = ConsistentSet(A, y, 1.1 * level)
    assert np.all(larger.farthest(points)[0] >= upper)
    assert np.all(larger.support(d)[0] >= extent)
    # Subadditive, and both ends of the set.
    assert E.support(d.sum(axis=0)[None])[0][0] <= extent.sum() + 1e-9 * np.abs(extent).sum()
    assert np.all(extent + E.support(-d)[0] >= 0.0)
