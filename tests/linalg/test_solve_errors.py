"""What solves leave, against solutions in more than double precision: measured errors are never too small."""

import numpy as np
import pytest
import zoo
from extended import refined_solves
from scipy.linalg import eigh
from scipy.sparse import block_diag, csr_matrix
from skfem import Basis, ElementTriP1, MeshLine, MeshTri

import femcert as fc
from femcert.errors import SolveError
from femcert.linalg import Factorization, installed_backends, least_share
from femcert.mesh.elements import mass_matrix, mass_share
from femcert.mesh.geometry import dirichlet_eigenvalue

GRADED = np.linspace(0.0, 1.0, 13) ** 3


def contrast(basis):
    """A conductivity per element between 1e-6 and 1e6."""
    return 10.0 ** np.random.default_rng(0).integers(-6, 7, basis.mesh.nelements)


CASES = {
    **{name: lambda name=name: zoo.source(name) for name in zoo.ELEMENTS},
    "fine line": lambda: zoo.source("line P1", 800),
    "a class of all fields": lambda: zoo.source("tri P1", 10, parameters=fc.FullSpace, sensors=3),
    "all fields, P2": lambda: zoo.source("tri P2", 5, parameters=fc.FullSpace, sensors=4),
    "contrast": lambda: zoo.source("tri P1", 10, conductivity=contrast(zoo.unit_basis("tri P1", 10))),
    "graded": lambda: zoo.source(Basis(MeshTri.init_tensor(GRADED, GRADED), ElementTriP1())),
    "weak Robin": lambda: zoo.source("tri P1", 10, dirichlet={}, robin={"right": (1e-4, 0.0)}),
    "insulated": lambda: zoo.source("tri P1", 10, dirichlet={}, reaction=1e-3),
    "one side": lambda: zoo.source("tri P1", 10, dirichlet={"left": 0.0}, reaction=3.0),
    "far away": lambda: zoo.source("line P1", 60, parameters=(fc.FunctionSpace, [lambda x: (x[0] < 0.2) * 1.0]),
                                   sensors=[[0.8], [0.9]], reaction=1e3),
    "own form": lambda: zoo.own_linear(cells=10, operator=zoo.laplace, definite=True),
}  # fmt: skip
SOLVERS = [(name, 1e-13) for name in sorted(installed_backends())]
SOLVERS += [("multigrid", 1e-4)] if "multigrid" in installed_backends() else []


def exact_matrix(problem):
    """The forward matrix of the operator, load and sensors as they are, in more than double precision."""
    free = problem.free
    A = problem.operator[free][:, free]
    load = (problem.load[free].toarray().astype(np.longdouble)) @ problem.parameters.matrix
    with fc.use_backend("superlu"):
        factor = Factorization(A, definite=True)
    H = problem.sensors.matrix[:, free].toarray().astype(np.longdouble)
    if load.shape[1] <= len(H):
        low = load.astype(float)
        states = refined_solves(A, factor, low) + refined_solves(A, factor, (load - low).astype(float))
        return H @ states
    return refined_solves(A, factor, H.astype(float).T).T @ load


@pytest.mark.parametrize(("backend", "tolerance"), SOLVERS)
@pytest.mark.parametrize("case", CASES)
def test_the_error_of_a_forward_matrix_is_below_its_bound(case, backend, tolerance):
    """As a norm from Q to Y, and reading by reading."""
    with fc.use_backend(backend, tolerance=tolerance):
        problem = CASES[case]()
        off = (problem.matrix - exact_matrix(problem)).astype(float)
    root = problem.parameters.root
    off = np.linalg.solve(root.T, off.T).T
    assert np.linalg.norm(off, 2) <= problem.error(None)
    assert np.all(np.linalg.norm(off, axis=1) <= problem.reading_errors)


@pytest.mark.parametrize("case", CASES)
def test_least_shares_are_below_the_least_eigenvalue(case):
    """And not far below it, so that the bounds are of use."""
    problem = CASES[case]()
    errors = problem.solve_errors
    A = problem.operator[problem.free][:, problem.free].toarray()
    root = np.sqrt(np.diag(A))
    true = np.linalg.eigvalsh(A / np.outer(root, root))[0]
    assert errors.factor.proven
    assert errors.factor.least <= true
    assert errors.factor.least >= 0.01 * true


def test_an_error_is_measured_where_nothing_hides_it():
    """Along the first eigenvector of ``A x = lam D x`` the energy of an error is ``(r' D^-1 r / lam)^1/2``."""
    problem = zoo.source("tri P1", 8)
    A = problem.operator[problem.free][:, problem.free]
    factor = Factorization(A, definite=True)
    values, vectors = eigh(A.toarray(), np.diag(A.diagonal()))
    factor.bound_least(values[0] * (1.0 - 1e-10))
    x, e = np.ones((len(values), 1)), 1e-3 * vectors[:, :1]
    true = np.sqrt(float(e[:, 0] @ (A @ e[:, 0])))
    assert true <= factor.energy_errors(x + e, A @ x)[0] <= (1.0 + 1e-8) * true
    # Half of a proved number is no news, and zero is not proved.
    factor.bound_least(0.5 * values[0])
    factor.bound_least(0.0)
    assert factor.least == values[0] * (1.0 - 1e-10)


def test_what_rounding_hides_of_a_residual_is_counted():
    """A right-hand side made as ``A x`` in double precision leaves a computed residual of zero."""
    problem = zoo.source("tri P2", 8)
    A = problem.operator[problem.free][:, problem.free].tocsc()
    factor = Factorization(A, definite=True)
    x = np.random.default_rng(0).standard_normal((A.shape[0], 4))
    right = A @ x
    e = (refined_solves(A, factor, right) - x).astype(float)
    true = np.sqrt(np.sum(e * (A @ e), axis=0))
    assert not (right - A @ x).any()
    assert np.all(true > 0.0)
    assert np.all(true <= factor.energy_errors(x, right))
    # What worst cases of sums, and the norm without a solve, cost here.
    assert np.all(factor.energy_errors(x, right) <= 2000.0 * true)


def test_norms_of_sensors_and_loads():
    """Without solves from above; with a solve for each sensor as they are."""
    problem = zoo.source("tri P1", 12, parameters=fc.FullSpace)
    errors, free = problem.solve_errors, problem.free
    A = problem.operator[free][:, free].toarray()
    H = problem.sensors.matrix[:, free].toarray()
    true = np.sqrt(np.diag(H @ np.linalg.solve(A, H.T)))
    assert np.all(true <= errors.sharp_sights)
    assert np.all(errors.sharp_sights <= (1.0 + 1e-10) * true)
    assert np.all(true <= errors.sights)
    load = problem.load[free].toarray()
    largest = eigh(load.T @ np.linalg.solve(A, load), problem.parameters.weight.toarray(), eigvals_only=True)[-1]
    assert np.sqrt(largest) <= errors.load <= 5.0 * np.sqrt(largest)


def test_each_sensor_is_worth_a_solve_where_little_is_seen():
    """Solves that end early, and weak readings: else no sensor of a large problem is solved for."""
    assert "sharp_sights" not in vars(sharpened(zoo.source("tri P1", 75)))
    assert "sharp_sights" in vars(sharpened(zoo.source("tri P1", 12)))
    if "multigrid" in installed_backends():
        with fc.use_backend("multigrid", tolerance=1e-4):
            assert "sharp_sights" in vars(sharpened(zoo.source("tri P1", 75)))


def sharpened(problem):
    problem.error(None)
    return problem.solve_errors


@pytest.mark.parametrize("name", zoo.ELEMENTS)
def test_mass_shares(name):
    """Of each element, so of all: the least eigenvalue of the mass matrix over its diagonal is not below."""
    basis = zoo.unit_basis(name)
    M = mass_matrix(basis).toarray()
    least = eigh(M, np.diag(np.diag(M)), eigvals_only=True)[0]
    assert 0.3 * least <= mass_share(basis) <= least


def test_least_eigenvalues_of_the_laplacian():
    """Sines on boxes; zero where a box is not one, or has no zeros on whole sides."""
    square = zoo.unit_mesh("tri", 6)
    sides = {name: square.boundaries[name] for name in zoo.SIDES}
    given = [np.concatenate([sides[name] for name in names]) for names in (
        ("left", "right", "bottom", "top"), ("left",), ("left", "right"), ("left", "bottom"))]  # fmt: skip
    found = [dirichlet_eigenvalue(square, facets) for facets in given]
    assert found == pytest.approx(np.pi**2 * np.array([2.0, 0.25, 1.0, 0.5]), rel=1e-12)
    assert dirichlet_eigenvalue(square, sides["left"][:-1]) == 0.0
    line = MeshLine(np.linspace(0.0, 2.0, 5))
    assert dirichlet_eigenvalue(line, line.boundary_facets()) == pytest.approx(np.pi**2 / 4.0, rel=1e-12)
    bent = zoo.l_shape().mesh
    assert dirichlet_eigenvalue(bent, bent.boundary_facets()) == pytest.approx(np.pi**2 / 2.0, rel=1e-12)
    assert dirichlet_eigenvalue(bent, bent.boundary_facets()[1:]) == 0.0


def test_a_slit_in_a_box_counts_as_boundary():
    """A box that is cut open along a line has functions that a box has not."""
    whole = MeshTri.init_tensor(np.linspace(0.0, 1.0, 5), np.linspace(0.0, 1.0, 5))
    slit = np.flatnonzero((whole.p[1] == 0.5) & (whole.p[0] > 0.0))
    copies = {int(node): whole.p.shape[1] + i for i, node in enumerate(slit)}
    t = whole.t.copy()
    for cell in np.flatnonzero(whole.p[1, whole.t].mean(axis=0) > 0.5):
        t[:, cell] = [copies.get(int(node), int(node)) for node in t[:, cell]]
    cut = MeshTri(np.hstack([whole.p, whole.p[:, slit]]), t)
    left = np.flatnonzero(np.all(cut.p[0, cut.facets] == 0.0, axis=0))
    assert dirichlet_eigenvalue(whole, whole.facets_satisfying(lambda x: x[0] == 0.0)) > 0.0
    assert dirichlet_eigenvalue(cut, left) == 0.0


def test_counted_shares_are_proved_or_zero():
    """A guess above the least eigenvalue proves nothing at first; a tenth of it may."""
    A = csr_matrix(np.array([[2.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 2.0]]))
    least = 1.0 - np.sqrt(0.5)
    for guess in (1e-3, 0.2, 0.29, 1.0, 2.0):
        assert 0.0 < least_share(A, guess) <= least
    assert least_share(A, 100.0) == 0.0


def test_what_an_operator_lacks_of_symmetry_is_part_of_the_error():
    """Adjoint states are solved with A in place of A'; with a condition number of 1e6 the last digits of A matter."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((60, 60)))[0]
    K, S = (Q * np.geomspace(1.0, 1e-6, 60)) @ Q.T, rng.standard_normal((60, 60))
    A = (K + K.T) / 2.0 + 1e-11 * (S - S.T) / np.linalg.norm(S - S.T, 2)
    load, observe = rng.standard_normal((60, 20)), rng.standard_normal((5, 60))
    problem = fc.MatrixProblem(operator=A, load=load, observe=observe, definite=True)
    # Its solves lose eps times the condition number, 1e-10; the skew part moves the map by 1e-6 of itself.
    exact = observe @ np.linalg.solve(A, load)
    off = np.linalg.norm(problem.matrix - exact, 2)
    assert off > 1e-8 * np.linalg.norm(exact, 2)
    assert off <= problem.error(None)


def test_units_do_not_hide_that_an_operator_is_not_symmetric():
    """The skew part is 1e-12 of the largest entry, and half of the block that it is in."""
    A = block_diag([1e12 * np.eye(3), [[2.0, -1.5], [-0.5, 2.0]]], format="csc")
    with pytest.raises(SolveError, match="not symmetric"):
        Factorization(A, definite=True)


def test_negative_weights_of_a_quadrature_prove_nothing_by_least_values():
    """P1 on triangles with the rule of order 3: large values where its weight is negative make the operator small."""
    basis = zoo.unit_basis("tri P1", 8)
    basis = Basis(basis.mesh, ElementTriP1(), intorder=3)
    assert basis.W.min() < 0.0
    weights = np.broadcast_to(basis.W, (basis.mesh.nelements, basis.W.size))
    problem = zoo.source(basis, conductivity=lambda x: np.where(weights < 0.0, 2.7, 1.0))
    A = problem.operator[problem.free][:, problem.free].toarray()
    least = eigh(A, np.diag(np.diag(A)), eigvals_only=True)[0]
    assert problem.least_share == 0.0
    assert problem.solve_errors.factor.least <= least
