"""Sines, cosines and eigenmodes: unit norms, order, and eigenvalues from above at known rates."""


import numpy as np
import pytest
from orders import fitted_order
from scipy.sparse import triu
from skfem import Basis, ElementLineP1, ElementTriP1, ElementTriP2, MeshLine, MeshTri
from zoo import ELEMENTS, MESHES, unit_basis

import femcert as fc
from femcert.linalg import eigen, installed_backends
from femcert.problem import modes


@pytest.mark.parametrize("inner", ["l2", "euclidean"])
@pytest.mark.parametrize("space", [fc.SineSpace, fc.CosineSpace, fc.EigenmodeSpace])
@pytest.mark.parametrize("name", ["line P1", "tri P2", "bent quad Q1"])
def test_unit_norms(name, space, inner):
    found = space(unit_basis(name, 6), 4, inner=inner)
    assert found.dimension == 4
    assert [found.norm(column) for column in found.matrix.T] == pytest.approx([1.0] * 4, rel=1e-12)


def test_sines_and_cosines_are_what_they_say():
    basis = unit_basis("line P1", 50)
    x = basis.doflocs[0]
    sines, cosines = fc.SineSpace(basis, 3), fc.CosineSpace(basis, 3)
    for j in range(3):
        sine, cosine = np.sin((j + 1) * np.pi * x), np.cos(j * np.pi * x)
        assert np.allclose(sines.matrix[:, j], sine / sines.norm(sine), atol=1e-12)
        assert np.allclose(cosines.matrix[:, j], cosine / cosines.norm(cosine), atol=1e-12)
    # In L2 of the interval the norm of sin(j pi x) tends to 1/sqrt(2); Euclidean it is sqrt(n/2) exactly.
    assert sines.matrix[:, 0].max() == pytest.approx(np.sqrt(2.0), rel=1e-3)
    euclidean = fc.SineSpace(basis, 3, inner="euclidean")
    assert euclidean.matrix[:, 0].max() == pytest.approx(np.sqrt(2.0 / 50), rel=1e-12)


def test_frequencies_in_order():
    basis = unit_basis("tri P1", 12)
    sines = fc.SineSpace(basis, 6).frequencies.T.tolist()
    assert sines == [[1, 1], [1, 2], [2, 1], [2, 2], [1, 3], [3, 1]]
    assert fc.CosineSpace(basis, 4).frequencies.T.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert fc.SineSpace(basis, (2, 3)).frequencies.T.tolist() == [[1, 1], [1, 2], [1, 3], [2, 1], [2, 2], [2, 3]]
    for k in (1, 7, 40):
        squares = np.sum(fc.SineSpace(basis, k).frequencies ** 2, axis=0)
        grid = np.add.outer(np.arange(1, 50) ** 2, np.arange(1, 50) ** 2).ravel()
        assert np.array_equal(squares, np.sort(grid)[:k])


def test_box():
    basis = unit_basis("line P1", 20)
    x = basis.doflocs[0]
    found = fc.SineSpace(basis, 1, box=[[-1.0, 1.0]]).matrix[:, 0]
    expected = np.sin(0.5 * np.pi * (x + 1.0))
    assert np.allclose(found / found.max(), expected / expected.max(), atol=1e-12)
    with pytest.raises(fc.InputError, match=r"box is \[\[1\.0, 0\.0\]\]"):
        fc.SineSpace(basis, 1, box=[[1.0, 0.0]])
    with pytest.raises(fc.InputError, match="expected 1 pairs"):
        fc.SineSpace(basis, 1, box=[[0.0, 1.0], [0.0, 1.0]])


def test_modes_that_the_mesh_does_not_carry():
    basis = unit_basis("line P1", 8)
    fc.SineSpace(basis, 7).project(np.ones(9))
    with pytest.raises(fc.InputError, match="mode 8 vanishes at all nodes"):
        fc.SineSpace(basis, 8)
    with pytest.raises(fc.InputError, match="dimension 12 on 9 dofs"):
        fc.CosineSpace(basis, 12)
    with pytest.raises(fc.InputError, match="k is 8, but the mesh has 7 free dofs"):
        fc.EigenmodeSpace(basis, 8)
    fc.CosineSpace(basis, 9).project(np.ones(9))


@pytest.mark.parametrize("boundary", ["dirichlet", "neumann"])
@pytest.mark.parametrize("name", ELEMENTS)
def test_eigenvalues_of_the_unit_square(name, boundary):
    """pi² (i² + j²) from above, at twice the order of the element."""
    kind, _, p = ELEMENTS[name]
    low = 1 if boundary == "dirichlet" else 0
    squares = np.arange(low, 9) ** 2
    exact = np.pi**2 * np.sort(squares if kind == "line" else np.add.outer(squares, squares).ravel())[:4]
    sizes, found = np.array([8, 12, 18]), []
    for n in sizes:
        space = fc.EigenmodeSpace(unit_basis(name, n), 4, boundary=boundary)
        assert np.all(np.diff(space.eigenvalues) >= 0.0)
        assert np.all(space.eigenvalues >= exact - 1e-9)
        found.append(space.eigenvalues - exact)
    for gap in np.array(found).T[1:]:
        assert fitted_order(1.0 / sizes, gap) == pytest.approx(2 * p, abs=0.35)
    if boundary == "neumann":
        assert abs(found[-1][0]) < 1e-9


def test_eigenmodes_are_orthonormal_and_solve_the_eigenproblem():
    basis = unit_basis("tri P2", 6)
    space = fc.EigenmodeSpace(basis, 6)
    V, K, M = space.matrix, space.form("h1-seminorm"), space.form("l2")
    assert np.allclose(V.T @ M @ V, np.eye(6), atol=1e-10)
    assert np.allclose(V.T @ K @ V, np.diag(space.eigenvalues), atol=1e-8)
    edge = basis.get_dofs(facets=basis.mesh.boundary_facets()).flatten()
    assert np.all(V[edge] == 0.0)
    # The first mode has one sign, and it is positive.
    assert V[:, 0].min() >= -1e-12


@pytest.mark.parametrize("k", [1, 2, 5])
def test_constant_mode_of_a_neumann_problem(k):
    for basis in (unit_basis("tri P1", 4), unit_basis("tri P1", 20)):  # dense, and shift-invert
        space = fc.EigenmodeSpace(basis, k, boundary="neumann")
        assert np.allclose(space.matrix[:, 0], 1.0, atol=1e-8)
        assert abs(space.eigenvalues[0]) < 1e-8


def test_l_shape():
    """The first eigenvalue of the L-shape of side 2, 9.6397238..., from above."""
    mesh = fc.load_mesh(MESHES / "l_shape.msh")
    exact = 9.6397238440219 * (2.0 / np.ptp(mesh.p[0])) ** 2
    found = [fc.EigenmodeSpace(Basis(mesh, element), 3).eigenvalues[0] for element in (ElementTriP1(), ElementTriP2())]
    assert exact < found[1] < found[0] < 1.03 * exact
    assert found[1] < 1.005 * exact


def test_disc():
    """Bessel zeros: j01² = 5.7832, j11² = 14.682 twice; the polygon inside the disc has larger ones."""
    basis = Basis(MeshTri.init_circle(5), ElementTriP2())
    values = fc.EigenmodeSpace(basis, 3).eigenvalues
    exact = np.array([2.404825557695773, 3.831705970207512, 3.831705970207512]) ** 2
    assert np.all(values > exact)
    assert values == pytest.approx(exact, rel=5e-3)


@pytest.mark.parametrize("nodes", [20, 59, 60, 61, 62, 90])
@pytest.mark.parametrize("smallest", [1e-2, 1e-5, 1e-8])
def test_graded_lines(smallest, nodes):
    """Dense for few dofs, sparse for many: both cope with the stiffness of tiny cells."""
    basis = Basis(MeshLine(np.r_[0.0, np.geomspace(smallest, 1.0, nodes - 1)]), ElementLineP1())
    # Of the terms of v'Kv for the constant v with v'Mv = 1: a few roundings in each entry, and in the sum of a row.
    rounding = 8.0 * np.finfo(float).eps * abs(fc.FullSpace(basis).form("h1-seminorm")).sum()
    for boundary, first in (("neumann", 0), ("dirichlet", 1)):
        space = fc.EigenmodeSpace(basis, 3, boundary=boundary)
        exact = (np.pi * np.arange(first, first + 3)) ** 2
        assert np.all(space.eigenvalues > exact - rounding)
        if nodes >= 59:
            assert np.all(space.eigenvalues < 1.3 * exact + rounding)
    constant = fc.EigenmodeSpace(basis, 1, boundary="neumann").matrix[:, 0]
    assert np.allclose(constant, 1.0, rtol=0, atol=1e-6)


# Multiple eigenvalues


DOUBLE = {
    "Q1": lambda: unit_basis("quad Q1", 16),
    "Q2": lambda: unit_basis("quad Q2", 8),
    "P1": lambda: unit_basis("tri P1", 16),
    "disc": lambda: Basis(MeshTri.init_circle(3), ElementTriP1()),
}


@pytest.mark.parametrize("boundary", ["dirichlet", "neumann"])
@pytest.mark.parametrize("domain", DOUBLE)
def test_the_same_columns_with_every_backend(domain, boundary):
    """For k that cut a double eigenvalue, such as 2 and 5 on the square, and for others."""
    basis = DOUBLE[domain]()
    more = fc.EigenmodeSpace(basis, 12, boundary=boundary).matrix
    for k in (2, 5, 9):
        found = {}
        for name in installed_backends():
            with fc.use_backend(name):
                found[name] = fc.EigenmodeSpace(basis, k, boundary=boundary)
        first = found["superlu"]
        for other in found.values():
            np.testing.assert_allclose(other.matrix, first.matrix, rtol=0, atol=1e-8)
            np.testing.assert_allclose(other.eigenvalues, first.eigenvalues, rtol=1e-9, atol=1e-8)
        V, K, M = first.matrix, first.form("h1-seminorm"), first.form("l2")
        np.testing.assert_allclose(V.T @ M @ V, np.eye(k), rtol=0, atol=1e-10)
        np.testing.assert_allclose(V.T @ K @ V, np.diag(first.eigenvalues), rtol=0, atol=1e-6 * first.eigenvalues[-1])
        assert np.all(np.diff(first.eigenvalues) >= 0.0)
        # More modes begin with the same ones.
        np.testing.assert_allclose(more[:, :k], V, rtol=0, atol=1e-8)


def _rounded_elsewhere(assemble, rng):
    """The matrix with other last digits, as another processor or another order of summation gives it."""

    def assembled(*arguments, **options):
        matrix = triu(assemble(*arguments, **options), format="csr")
        matrix.data *= 1.0 + 2.0**-52 * rng.integers(-1, 2, matrix.nnz)
        return (matrix + triu(matrix, 1).T).tocsr()

    return assembled


SYMMETRIC = {
    "square": lambda: MeshTri.init_sqsymmetric().refined(3),
    "tensor": lambda: MeshTri().refined(4),
    "disc": lambda: MeshTri.init_circle(3),
    "hexagon": lambda: _hexagon().refined(3),
}


def _hexagon():
    angles = np.pi / 3.0 * np.arange(6)
    corners = np.column_stack([[0.0, 0.0], [np.cos(angles), np.sin(angles)]])
    return MeshTri(corners, np.array([[0, 1 + i, 1 + (i + 1) % 6] for i in range(6)]).T)


@pytest.mark.parametrize("boundary", ["dirichlet", "neumann"])
@pytest.mark.parametrize("domain", SYMMETRIC)
def test_the_same_columns_with_other_rounding_errors(domain, boundary, monkeypatch):
    """One unit in the last place of every entry, and the nodes in another order: coordinates mean the same fields."""
    mesh = SYMMETRIC[domain]()
    first = fc.EigenmodeSpace(Basis(mesh, ElementTriP1()), 16, boundary=boundary)
    # Of (r / lam)^1/2, below which eigenvalues are told apart no more, for the smallest one that is not zero.
    K, M = first.form("h1-seminorm"), first.form("l2")
    rounding = eigen.ROUNDING * K.trace() / M.trace()
    least = np.sqrt(rounding / first.eigenvalues[1])
    for seed in range(8):
        rng = np.random.default_rng(seed)
        order, cells = rng.permutation(mesh.nvertices), rng.permutation(mesh.nelements)
        turned = MeshTri(mesh.p[:, order], np.argsort(order)[mesh.t[:, cells]])
        with monkeypatch.context() as patch:
            for name in ("stiffness_matrix", "mass_matrix"):
                patch.setattr(modes, name, _rounded_elsewhere(getattr(modes, name), rng))
            k = int(rng.integers(2, 17))
            found = fc.EigenmodeSpace(Basis(turned, ElementTriP1()), k, boundary=boundary)
        scale = np.abs(first.matrix).max()
        np.testing.assert_allclose(found.matrix, first.matrix[order, :k], rtol=0, atol=least * scale)
        np.testing.assert_allclose(found.eigenvalues, first.eigenvalues[:k], rtol=0, atol=10.0 * rounding)


def test_modes_of_a_double_eigenvalue_do_not_depend_on_the_mesh():
    """To what the mesh resolves: coordinates mean the same on a finer one."""
    coarse, fine = (unit_basis("quad Q2", n) for n in (12, 24))
    at = [fc.PointSensors(basis, [(0.3, 0.2), (0.6, 0.7), (0.45, 0.8)]).matrix for basis in (coarse, fine)]
    found = [A @ fc.EigenmodeSpace(basis, 6).matrix for A, basis in zip(at, (coarse, fine), strict=True)]
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-2)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_zero_is_an_eigenvalue_of_each_piece(k):
    """Three rectangles apart: three constants, and k may cut among them."""
    mesh = MeshTri().refined(3).scaled((1.0, 0.8))
    pieces = mesh + mesh.translated((2.0, 0.0)) + mesh.translated((4.0, 1.0))
    basis = Basis(pieces, ElementTriP1())
    found = []
    # Multigrid refuses so many nearly singular directions.
    for name in installed_backends().keys() - {"multigrid"}:
        with fc.use_backend(name):
            found.append(fc.EigenmodeSpace(basis, k, boundary="neumann").matrix)
    for other in found:
        np.testing.assert_allclose(other, found[0], rtol=0, atol=1e-6)


def test_one_eigen_computation_unless_an_eigenvalue_is_more_than_double(monkeypatch):
    asked = []
    compute = eigen.smallest_eigenpairs
    monkeypatch.setattr(
        eigen, "smallest_eigenpairs", lambda *a, beyond: asked.append(beyond) or compute(*a, beyond=beyond)
    )
    for k in (1, 2, 3, 5, 8):
        fc.EigenmodeSpace(DOUBLE["Q1"](), k)
    assert asked == [2] * 5
    # Four squares apart.
    mesh = MeshTri().refined(3)
    basis = Basis(mesh + mesh.translated((2, 0)) + mesh.translated((4, 0)) + mesh.translated((6, 0)), ElementTriP1())
    asked.clear()
    fc.EigenmodeSpace(basis, 1)
    assert asked == [2, 8]
