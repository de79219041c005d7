"""Singular values in closed form on interval and square: the right order, and the side that theory says.

With the state observed in all of L2 the forward map on a finite-element space V_h is ``S_h``, with singular values
``1 / lambda_j^h``, or ``exp(-lambda_j^h kappa T)`` for heat. By conformity ``lambda_j^h >= lambda_j``, and on a
subspace of V_h singular values only fall: all of them converge from below.
"""

from __future__ import annotations

import numpy as np
import pytest
import zoo
from scipy.sparse import csr_matrix
from zoo import LINES, STRAIGHT, unit_basis

import femcert as fc

LINEAR, QUADRATIC = ("line P1", "tri P1", "quad Q1"), ("line P2", "tri P2", "quad Q2")
ORDERS = [(element, 2.0) for element in LINEAR] + [(element, 4.0) for element in QUADRATIC]
# Of the fitted order, and the largest error on the finest mesh.
TOLERANCE, CAP = {2.0: 0.15, 4.0: 0.3}, {2.0: 0.02, 4.0: 5e-4}
SPACES = [fc.SineSpace, fc.EigenmodeSpace]


def in_l2(basis):
    """Sensors with ``‖H u‖ = ‖u‖`` in L2, element by element: roots of the local mass matrices."""
    phi = np.array([np.broadcast_to(np.asarray(basis.basis[i][0]), basis.dx.shape) for i in range(basis.Nbfun)])
    local = np.einsum("ieq,jeq,eq->eij", phi, phi, basis.dx)
    values, vectors = np.linalg.eigh(local)
    roots = np.einsum("eik,ek,ejk->eij", vectors, np.sqrt(values), vectors)
    n = basis.Nbfun
    rows = np.repeat(np.arange(basis.nelems * n), n)
    columns = np.repeat(basis.element_dofs.T, n, axis=0).ravel()
    return fc.MatrixSensors(csr_matrix((roots.ravel(), (rows, columns)), shape=(basis.nelems * n, basis.N)))


def eigenvalues(basis, k):
    """Of the Laplacian with zero boundary values, the first k."""
    j = np.arange(1, k + 1)
    squares = j**2 if basis.mesh.dim() == 1 else (j[:, None] ** 2 + j[None, :] ** 2).ravel()
    return np.pi**2 * np.sort(squares)[:k]


def meshes(element):
    # On the interval the fourth mode has four half waves, on the square two.
    return (16, 32, 64) if element in LINES else (8, 16, 32) if element in LINEAR else (4, 8, 16)


def rates(sizes, errors):
    """Fitted rate of each column."""
    return -np.polyfit(np.log(sizes), np.log(np.array(errors)), 1)[0]


def test_the_sensors_are_the_norm_of_l2():
    for element in STRAIGHT:
        basis = unit_basis(element, 4)
        H, M = in_l2(basis).matrix, fc.FullSpace(basis).weight
        # LAPACK's eigenvalues of n x n matrices, to n eps of their size; a root is multiplied out again.
        assert abs(H.T @ H - M).max() <= 8 * basis.Nbfun * np.finfo(float).eps * abs(M).max()


@pytest.mark.parametrize("kind", ["source", "heat"])
@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize(("element", "order"), ORDERS)
def test_a_state_seen_everywhere(element, order, space, kind):
    """``sigma = 1 / (i² + j²) pi²``, or ``exp(-(i² + j²) pi² kappa T)`` for heat, from below."""
    kappa, T, errors = 0.4, 0.05, []
    for n in meshes(element):
        basis = unit_basis(element, n)
        given, exact = {"parameters": (space, 4), "sensors": in_l2(basis)}, eigenvalues(basis, 4)
        if kind == "source":
            errors.append(1.0 - fc.stability(zoo.source(basis, **given)).singular_values * exact)
        else:
            problem = zoo.heat(basis, **given, times=T, diffusivity=kappa, scheme="exact")
            errors.append(1.0 - fc.stability(problem).singular_values / np.exp(-exact * kappa * T))
    assert np.min(errors) > 0.0
    assert np.max(errors[-1]) <= CAP[order]
    assert np.abs(rates(meshes(element), errors) - order).max() <= TOLERANCE[order]


@pytest.mark.parametrize("element", ["line P1", "quad Q1"])
def test_the_first_term_of_the_error(element):
    """On uniform grids ``lambda_h = lambda + h² pi⁴ (i⁴ + j⁴) / 12 + ...``."""
    n = 64
    basis = unit_basis(element, n)
    problem = zoo.source(basis, parameters=4, sensors=in_l2(basis))
    fourth = np.arange(1, 5) ** 4 if element == "line P1" else np.array([2, 17, 17, 32])
    exact = eigenvalues(basis, 4)
    error = 1.0 / fc.stability(problem).singular_values - exact
    np.testing.assert_allclose(error, np.pi**4 * fourth / (12.0 * n**2), rtol=0.02)


def test_points_on_the_interval():
    # -u'' = q, m equispaced sensors, k = m sines: F' F is diagonal with entries (m+1)/((j pi)^4), basis sqrt(2) sin.
    n, m = 400, 7
    basis = unit_basis("line P2", n)
    sensors = fc.PointSensors(basis, np.arange(1, m + 1) / (m + 1))
    problem = zoo.source(basis, parameters=(fc.SineSpace, m), sensors=sensors)
    expected = np.sqrt(m + 1) / (np.pi * np.arange(1, m + 1)) ** 2
    np.testing.assert_allclose(fc.stability(problem).singular_values, expected, rtol=1e-5)


@pytest.mark.parametrize(("element", "order"), [(e, o) for e, o in ORDERS if e not in LINES])
def test_points_on_the_square(element, order):
    # A grid of m x m points keeps the first m x m sines orthogonal: sigma = (m + 1) / (i² + j²) pi².
    m, errors = 3, []
    sizes = (8, 16, 32)
    x = np.arange(1, m + 1) / (m + 1)
    points = np.stack(np.meshgrid(x, x), axis=-1).reshape(-1, 2)
    for n in sizes:
        basis = unit_basis(element, n)
        problem = zoo.source(basis, parameters=(fc.SineSpace, (2, 2)), sensors=points)
        sigma = fc.stability(problem).singular_values
        errors.append(np.abs(1.0 - sigma * eigenvalues(basis, 4) / (m + 1)).max())
    assert errors[-1] <= CAP[order]
    assert abs(rates(sizes, errors) - order) <= TOLERANCE[order]
