"""Data: norms of Y, whitening, and read-only arrays."""


import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import femcert as fc


def random_covariance(m, seed):
    A = np.random.default_rng(seed).standard_normal((m, m + 2))
    return A @ A.T


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 12), st.integers(0, 2**32 - 1), st.sampled_from(["none", "variances", "matrix"]))
def test_norm_and_whitening(m, seed, kind):
    rng = np.random.default_rng(seed)
    y, e = rng.standard_normal((2, m))
    C = {"none": None, "variances": 0.1 + rng.random(m), "matrix": random_covariance(m, seed)}[kind]
    data = fc.Data(y, 0.5, C)
    dense = np.eye(m) if C is None else np.diag(C) if C.ndim == 1 else C
    assert data.norm(e) ** 2 == pytest.approx(e @ np.linalg.solve(dense, e), rel=1e-6)
    # L L' = C: whitening turns C into the identity.
    L = np.linalg.inv(data.whiten(np.eye(m)))
    assert np.allclose(L @ L.T, dense, rtol=0, atol=1e-6 * np.abs(dense).max())
    f = rng.standard_normal(m)
    assert data.whiten(e) @ f == pytest.approx(e @ data.whiten_transposed(f), rel=1e-7, abs=1e-9)
    columns = rng.standard_normal((m, 3))
    for i in range(3):
        assert np.allclose(data.whiten(columns)[:, i], data.whiten(columns[:, i]))
        assert np.allclose(data.whiten_transposed(columns)[:, i], data.whiten_transposed(columns[:, i]))


@settings(deadline=None, max_examples=30)
@given(arrays(np.float64, st.integers(1, 20), elements=st.floats(-1e6, 1e6)), st.floats(0, 1e6))
def test_values_are_copied_and_read_only(values, noise_level):
    data = fc.Data(values, noise_level, np.ones(len(values)))
    kept = values.copy()
    values += 1.0
    assert np.array_equal(data.values, kept)
    assert data.noise_level == noise_level
    for array in (data.values, data.covariance):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0
    with pytest.raises(AttributeError):
        data.values = kept
    with pytest.raises(AttributeError):
        data.noise_level = 0.0


def test_rounding_asymmetry_is_no_asymmetry():
    """A computed covariance is symmetric to rounding of its largest entry, not of each entry."""
    C = np.diag([1.0, 2.0, 3.0])
    C[0, 1], C[1, 0] = 1e-17, -3e-17
    assert fc.Data(np.zeros(3), 0.0, C).covariance.shape == (3, 3)
    C[0, 1] = 1e-3
    with pytest.raises(fc.InputError, match="covariance is not symmetric"):
        fc.Data(np.zeros(3), 0.0, C)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], 0.1), "data values are empty"),
        (([1.0, np.nan], 0.1), r"data values has 1 NaN or infinite entries, the first at index \(1,\)"),
        (([1j], 0.1), "data values is complex"),
        (([1.0], -0.1), r"noise_level is -0\.1"),
        (([1.0], np.inf), "noise_level has 1 NaN or infinite"),
        (([1.0], None), "noise_level has"),
        (([1.0, 2.0], 0.1, [1.0]), r"covariance has shape \(1,\)"),
        (([1.0, 2.0], 0.1, [1.0, 0.0]), "covariance has the variance 0"),
        (([1.0, 2.0], 0.1, [[1.0, 0.5], [0.0, 1.0]]), "covariance is not symmetric"),
        (([1.0, 2.0], 0.1, [[1.0, 2.0], [2.0, 1.0]]), "covariance is not positive definite"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(fc.InputError, match=message):
        fc.Data(*arguments)
