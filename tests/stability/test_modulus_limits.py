"""Where a modulus could promise too much: close eigenvalues, no noise, tiny and huge noise, other guarantees."""

from __future__ import annotations

import numpy as np
import pytest
import zoo
from scipy.linalg import eigh
from skfem import Basis, ElementTriP1, MeshTri

import femcert as fc
from femcert.stability import Modulus
from femcert.stability.pencil import MOST_DENSE

CORNERS = np.array([[0.25, 0.25], [0.75, 0.75], [0.5, 0.5], [0.25, 0.75], [0.75, 0.25]])


def on_ball(refinements, norm="h1", points=CORNERS):
    basis = Basis(MeshTri.init_sqsymmetric().refined(refinements), ElementTriP1())
    return zoo.source(basis, parameters=fc.FullSpace(basis).within_ball(1.0, norm=norm), sensors=zoo.discs(points, 0.1))


@pytest.mark.parametrize("shift", [0.0, 0.01])
def test_no_close_eigenvalue_passes_for_the_least_one(shift):
    # The sensors are symmetric, or nearly: eigenvalues of several symmetries cross as the multiplier changes.
    modulus = Modulus(on_ball(4, points=CORNERS + shift * np.array([[0, 0], [0, 0], [0, 0], [0, 1], [0, -1]])))
    modulus(np.geomspace(1e-5, 1.0, 5))
    family = modulus._pencils
    assert family.gram.shape[0] > MOST_DENSE
    form, gram, observed = family.ball.unshifted.toarray(), family.gram.toarray(), family.adjoint() @ family.adjoint().T
    for point in modulus.points:
        least = eigh(observed + point.kappa * form, gram, eigvals_only=True, subset_by_index=[0, 0])[0]
        assert point.eigenvalue <= least * (1.0 + 1e-7)
        assert point.eigenvalue >= least * (1.0 - 6e-4)


@pytest.mark.parametrize("refinements", [2, 4])
def test_noise_levels_at_the_ends(refinements):
    modulus = Modulus(on_ball(refinements))
    values = [modulus(eps).value for eps in (1e-30, 1e-12, 1e-8, 1e-3, 1.0, 1e6)]
    assert np.all(np.diff(values[2:]) >= -1e-3 * values[2])
    # Below what rounding lets through the bound is not as close, but one.
    assert values[2] * (1.0 - 1e-3) <= values[0] <= 10.0 * values[2]
    assert values[-1] == pytest.approx(2.0, rel=2e-3)
    for eps in (1e-200, 1e200):
        with pytest.raises(fc.InputError, match="noise level"):
            modulus(eps)


def test_the_seminorm_of_a_constant():
    modulus = Modulus(on_ball(2, "h1-seminorm"))
    assert modulus(1.0).value > 0.0
    assert np.all(np.isfinite(modulus.worst(10.0)))


def test_no_noise_leaves_what_is_not_seen():
    stability = fc.stability(on_ball(2), levels=(1e-4, 1e-2))
    assert stability.radius(0.0) >= stability.modulus(1e-8).value
    loaded = fc.Stability.from_dict(stability.to_dict())
    assert loaded.radius(0.0) == stability.radius(0.0)


def test_the_sparse_route_says_what_is_not_seen():
    basis = zoo.square(2)
    problem = zoo.source(basis, parameters=fc.FullSpace, sensors=fc.MatrixSensors(np.eye(basis.N)))
    for method in ("dense", "sparse"):
        with pytest.raises(fc.UncertifiedError, match="do not see some parameter"):
            fc.stability(problem, method=method)
