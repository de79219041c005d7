"""Closed forms of element matrices against scikit-fem's quadrature, on any triangles; forms elsewhere."""

import numpy as np
import pytest
from skfem import Basis, ElementQuad1, ElementTriP1, ElementTriP2, MeshQuad, MeshTri, asm

from femcert.mesh.assembly import (
    DiffusionPattern,
    consistent_mass,
    diffusion,
    diffusion_matrix,
    mass_form,
    stiffness_matrix,
)


def crooked():
    """Triangles of all shapes, some of them clockwise."""
    mesh = MeshTri.init_lshaped().refined(3)
    rng = np.random.default_rng(0)
    p, t = mesh.p.copy(), mesh.t.copy()
    p[:, mesh.interior_nodes()] += 0.03 * rng.uniform(-1.0, 1.0, (2, len(mesh.interior_nodes())))
    t[:, ::3] = t[[1, 0, 2], ::3]
    return MeshTri(1e-3 * p, t, sort_t=False)


@pytest.mark.parametrize(
    "basis",
    [
        Basis(crooked(), ElementTriP1()),
        Basis(crooked(), ElementTriP1(), intorder=5),
        Basis(crooked(), ElementTriP2()),
        Basis(MeshQuad.init_tensor(np.linspace(0.0, 1.0, 5), np.linspace(0.0, 2.0, 4)), ElementQuad1()),
    ],
    ids=["P1", "P1 with more points", "P2", "Q1"],
)
def test_matrices_are_those_of_the_forms(basis):
    a = 0.1 + np.random.default_rng(1).random(basis.dx.shape)
    pairs = [
        (diffusion_matrix(basis, a), asm(diffusion, basis, a=a)),
        (stiffness_matrix(basis), asm(diffusion, basis, a=np.ones_like(a))),
        (consistent_mass(basis), asm(mass_form, basis)),
    ]
    # An entry is a sum over points and at most eight elements of products of six factors. By Cauchy and Schwarz its
    # terms add up, in size, to at most the largest entry; gradients lose the condition number of the Jacobian.
    terms = basis.dx.shape[1] + 8 + 6
    condition = np.linalg.cond(np.moveaxis(basis.mapping.DF(basis.X), (0, 1), (-2, -1))).max()
    rounding = terms * condition * np.finfo(float).eps
    for found, expected in pairs:
        assert found.format == "csr"
        assert abs(found - expected).max() <= rounding * abs(expected).max()
        if isinstance(basis.elem, ElementTriP1):
            assert abs(found - found.T).max() == 0.0
            assert found.nnz == expected.nnz


def test_right_angles_leave_no_entries():
    """The five-point stencil, not one of seven points with zeros in it."""
    line = np.linspace(0.0, 1.0, 9)
    basis = Basis(MeshTri.init_tensor(line, line), ElementTriP1())
    assert np.diff(stiffness_matrix(basis).indptr).max() == 5
    assert np.diff(consistent_mass(basis).indptr).max() == 7


@pytest.mark.parametrize("mesh", [crooked(), MeshTri.init_tensor(np.linspace(0.0, 1.0, 6), np.linspace(0.0, 2.0, 5))])
def test_one_pattern_for_many_conductivities(mesh):
    basis = Basis(mesh, ElementTriP1(), intorder=3)
    pattern = DiffusionPattern(basis)
    for seed in range(3):
        a = 0.1 + np.random.default_rng(seed).random(basis.dx.shape)
        found, expected = pattern.matrix(a), diffusion_matrix(basis, a)
        assert abs(found - expected).max() <= 1e-14 * abs(expected).max()
        assert abs(found - found.T).max() == 0.0
        assert found.nnz == expected.nnz
        assert found.has_canonical_format
    constant = pattern.matrix(np.full((mesh.nelements, 1), 2.0))
    assert abs(constant - 2.0 * stiffness_matrix(basis)).max() <= 1e-14 * abs(constant).max()
