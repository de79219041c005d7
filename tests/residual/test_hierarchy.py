"""Hats and bubbles: their matrices, the trial space among them, and bubble fields with the stated divergences."""

import numpy as np
import pytest
from skfem import Basis, BilinearForm
from skfem.element import ElementDG, ElementQuad1, ElementQuad2, ElementQuadP, ElementTriP1, ElementTriP2, ElementTriP3
from skfem.helpers import dot, grad
from skfem.mesh import MeshQuad, MeshTri

from femcert.mesh.sample import Sampler
from femcert.residual.hierarchy import (
    ElementMatrices,
    bubble_fields,
    fit_matrix,
    hierarchical_space,
)
from femcert.residual.lower import enriched_space


def inside(vertices, n=9, seed=0):
    X = np.random.default_rng(seed).uniform(0.05, 0.95, (2, n))
    return np.where(X.sum(axis=0) > 1.0, 1.0 - X, X) if vertices == 3 else X


def a_mesh(vertices, seed=1):
    """Moved nodes; the vertices of each element in another order."""
    rng = np.random.default_rng(seed)
    mesh = (MeshTri if vertices == 3 else MeshQuad)().refined(2)
    p, t = mesh.p.copy(), mesh.t.copy()
    p[:, mesh.interior_nodes()] += rng.uniform(-0.05, 0.05, (2, len(mesh.interior_nodes())))
    for i in range(t.shape[1]):
        turned = np.roll(t[:, i][:: rng.choice([-1, 1])], rng.integers(4))
        t[:, i] = rng.permutation(t[:, i]) if vertices == 3 else turned
    return type(mesh)(p, t, sort_t=False)


@BilinearForm
def energy(u, v, w):
    return w["a"] * dot(grad(u), grad(v)) + w["c"] * u * v


@pytest.mark.parametrize("vertices", [3, 4])
@pytest.mark.parametrize("degree", [2, 3])
@pytest.mark.parametrize("mass", [False, True])
def test_matrices_against_assembly(vertices, degree, mass):
    mesh = a_mesh(vertices)
    rng = np.random.default_rng(2)
    space = hierarchical_space(mesh, degree)
    a, c = rng.uniform(0.5, 2.0, (2, mesh.nelements))
    found = ElementMatrices(space, mesh, a, c if mass else None)
    order = 2 * degree if vertices == 4 or mass else 2 * (degree - 1)
    rule = Sampler(mesh, order)
    element = {(3, 2): ElementTriP2(), (3, 3): ElementTriP3(), (4, 2): ElementQuad2(), (4, 3): ElementQuadP(3)}
    # Discontinuous, since scikit-fem's cubics are continuous for sorted vertices only.
    theirs = Basis(mesh, ElementDG(element[vertices, degree]), quadrature=(rule.X, rule.W))
    A = energy.assemble(theirs, a=a[:, None] * np.ones(len(rule.W)), c=(c * mass)[:, None] * np.ones(len(rule.W)))
    T = change_of_basis(mesh, space, theirs)
    expected = T.T @ A @ T
    np.testing.assert_allclose(found.assembled().toarray(), expected, atol=1e-10 * np.abs(expected).max())
    np.testing.assert_allclose(found.diagonal, np.diag(expected), rtol=1e-9)
    u = rng.standard_normal(space.N)
    np.testing.assert_allclose(found.apply(u), expected @ u, atol=1e-10 * np.abs(expected).max())


def change_of_basis(mesh, space, theirs):
    """From hierarchical dofs to scikit-fem's, by matching values at many points of each element."""
    X = inside(mesh.t.shape[0], 40)
    sampler = Sampler(mesh, 0, points=X)
    at = Basis(mesh, theirs.elem, quadrature=(X, np.ones(40)))
    shape = mesh.nelements, 40
    theirs_local = np.array([np.broadcast_to(np.asarray(at.basis[i][0]), shape) for i in range(at.Nbfun)])
    T = np.zeros((at.N, space.N))
    for j in range(space.N):
        values = sampler.values(space, np.eye(space.N)[j])
        for k in np.flatnonzero((space.element_dofs == j).any(axis=0)):
            T[at.element_dofs[:, k], j] = np.linalg.lstsq(theirs_local[:, k].T, values[k], rcond=None)[0]
    return T


@pytest.mark.parametrize(
    ("vertices", "element"), [(3, ElementTriP1), (3, ElementTriP2), (4, ElementQuad1), (4, ElementQuad2)]
)
def test_nodal_functions_in_the_enriched_space(vertices, element):
    mesh = a_mesh(vertices)
    basis = Basis(mesh, element())
    space = hierarchical_space(mesh, basis.elem.maxdeg // (1 if vertices == 3 else 2) + 1)
    enriched = enriched_space(space, basis, mesh.boundary_facets()[:3])
    u = np.random.default_rng(3).standard_normal(basis.N)
    sampler = Sampler(mesh, 4)
    carried = enriched.to_hierarchical @ u
    np.testing.assert_allclose(sampler.values(space, carried), sampler.values(basis, u), atol=1e-12)
    # Together the trial space and the bubbles are all of it, and the trial space needs none of the bubbles.
    assert not carried[enriched.bubbles].any()
    everything = enriched_space(space, basis, mesh.boundary_facets()[:0])
    assert np.count_nonzero(everything.bubbles) + basis.N == space.N
    assert np.count_nonzero(everything.free) == space.N
    assert not enriched.free[mesh.facets[:, mesh.boundary_facets()[:3]]].any()


FIELDS = [(3, 1), (3, 2), (4, 1), (4, 2)]


@pytest.mark.parametrize(("vertices", "degree"), FIELDS)
def test_divergences_are_all_polynomials_with_mean_zero(vertices, degree):
    sampler = Sampler((MeshTri if vertices == 3 else MeshQuad)(), 8)
    _, divergence = bubble_fields(vertices, degree, sampler.X)
    np.testing.assert_allclose(divergence @ sampler.W, 0.0, atol=1e-13)
    size = (degree + 1) * (degree + 2) // 2 if vertices == 3 else (degree + 1) ** 2
    assert np.linalg.matrix_rank(divergence, tol=1e-10) == size - 1
    # The fit finds the field for any of them, and takes out the mean of anything else.
    rng = np.random.default_rng(4)
    x, y = sampler.X
    powers = [(i, j) for i in range(degree + 1) for j in range(degree + 1) if vertices == 4 or i + j <= degree]
    values = sum(rng.standard_normal() * x**i * y**j for i, j in powers)
    mean = values @ sampler.W / sampler.W.sum()
    np.testing.assert_allclose(values @ fit_matrix(sampler, degree) @ divergence, values - mean, atol=1e-11)
