"""Every residual component against a dense computation that shares no code with the package."""

import numpy as np
import pytest
import zoo
from skfem import FacetBasis
from zoo import ELEMENTS, STRAIGHT, inside_points, mass, square, unit_basis
from zoo import laplace as stiffness

import femcert as fc
from femcert.residual import evaluate, strong_rms
from femcert.residual.optimality import reduced_gradient
from femcert.residual.residuals import strong_field


def difference_matrix(n):
    """The paper's second difference on n interior points of the unit interval."""
    h = 1.0 / (n + 1)
    return (2.0 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)) / h**2


def line_problem(n=19, k=4, m=7, **options):
    return zoo.source("line P1", n + 1, parameters=k, sensors=m, **options)


def test_the_paper_s_residuals_by_finite_differences():
    problem = line_problem(mass="lumped")
    rng = np.random.default_rng(0)
    x = problem.basis.doflocs[0]
    order = np.argsort(x)
    u, q = rng.standard_normal((2, x.size))
    y = rng.standard_normal(7)
    found = evaluate(problem, fc.Data(y, 0.1), fc.Candidate(u, q, 0.25))

    values = np.interp(np.linspace(0.1, 0.9, 7), x[order], u[order])
    inside = order[1:-1]
    # Boundary values enter the second difference of the neighbours.
    strong = q[inside] - difference_matrix(19) @ u[inside]
    strong[0] += u[order[0]] * 20**2
    strong[-1] += u[order[-1]] * 20**2
    assert found.data.value == pytest.approx(np.linalg.norm(values - y), rel=1e-10)
    assert found.pde.value == pytest.approx(np.sqrt(np.mean(strong**2)), rel=1e-10)
    assert found.bc.value == pytest.approx(np.hypot(u[order[0]], u[order[-1]]), rel=1e-12)
    assert found.optimality.value == 0.25
    assert found.reported
    assert [bound.side for _, bound in found.items()] == ["upper", "estimate", "estimate", "estimate", "upper"]


@pytest.mark.parametrize("name", STRAIGHT)
@pytest.mark.parametrize("matrix", [False, True], ids=["euclidean", "covariance"])
def test_components_on_every_element(name, matrix):
    basis, k, m = unit_basis(name), 3, 6
    space = fc.SineSpace(basis, k)
    problem = zoo.source(basis, parameters=space, sensors=inside_points(basis, m), dirichlet=0.5)
    rng = np.random.default_rng(1)
    u, q = rng.standard_normal((2, basis.N))
    y = rng.standard_normal(m)
    root = rng.standard_normal((m, m))
    C = root @ root.T + np.eye(m) if matrix else np.eye(m)
    found = evaluate(problem, fc.Data(y, 0.1, C if matrix else None), fc.Candidate(u, q))

    M, K = mass.assemble(basis).toarray(), stiffness.assemble(basis).toarray()
    edge = basis.get_dofs().flatten()
    free = np.setdiff1d(np.arange(basis.N), edge)
    misfit = problem.sensors.matrix.toarray() @ u - y
    assert found.data.value == pytest.approx(np.sqrt(misfit @ np.linalg.solve(C, misfit)), rel=1e-9)

    r = (M @ q - K @ u)[free]
    Mff = M[np.ix_(free, free)]
    assert found.pde.value == pytest.approx(np.sqrt(r @ np.linalg.solve(Mff, r) / Mff.sum()), rel=1e-9)

    trace = mass.assemble(FacetBasis(basis.mesh, basis.elem)).toarray()
    defect = np.zeros(basis.N)
    defect[edge] = u[edge] - 0.5
    assert found.bc.value == pytest.approx(np.sqrt(defect @ trace @ defect), rel=1e-9)

    # The distance by least squares in the norm of L2.
    half = np.linalg.cholesky(M).T
    fit = np.linalg.lstsq(half @ space.matrix, half @ q, rcond=None)[0]
    assert found.admissibility.value == pytest.approx(np.linalg.norm(half @ (q - space.matrix @ fit)), rel=1e-9)

    # None was reported: the gradient of the misfit of the projected parameter, in the dual norm.
    lift = np.zeros(basis.N)
    lift[edge] = 0.5
    solve = np.linalg.inv(K[np.ix_(free, free)])
    state = np.zeros((basis.N, k))
    state[free] = solve @ (M @ space.matrix)[free]
    lift[free] = -solve @ (K @ lift)[free]
    H = problem.sensors.matrix.toarray()
    F = H @ state
    g = F.T @ np.linalg.solve(C, F @ fit + H @ lift - y)
    G = space.matrix.T @ M @ space.matrix
    assert not found.reported
    assert found.optimality.value == pytest.approx(np.sqrt(g @ np.linalg.solve(G, g)), rel=1e-8)


@pytest.mark.parametrize("name", STRAIGHT)
def test_a_solved_state_has_no_residual(name):
    kind, _, degree = ELEMENTS[name]
    basis = unit_basis(name, 4) if kind == "line" else square(2, degree, kind)
    problem = zoo.source(basis, sensors=inside_points, dirichlet=1.0)
    candidate = fc.Candidate.from_coefficients(problem, [1.0, -2.0, 0.5])
    data = fc.Data(problem.observe(candidate.state), 0.0)
    found = evaluate(problem, data, candidate)
    size = np.linalg.norm(data.values)
    # Nothing but the allowance for rounding is left of the misfit.
    assert problem.rounding * size < found.data.value <= 3.0 * problem.rounding * size
    assert found.pde.value < 1e-9
    assert found.bc.value == 0.0
    assert found.admissibility.value < 1e-12


def test_the_rms_approximates_the_strong_residual_on_any_mesh():
    # u = 0 leaves the source itself as residual, whose mean square over the square is known.
    basis = zoo.square(5, 2)
    problem = zoo.source(basis, parameters=fc.FullSpace, sensors=3)
    q = np.sin(np.pi * basis.doflocs[0]) * np.sin(2 * np.pi * basis.doflocs[1])
    assert strong_rms(problem, np.zeros(basis.N), q) == pytest.approx(0.5, rel=0.03)


def test_strong_field_is_the_l2_representative():
    problem = line_problem()
    rng = np.random.default_rng(2)
    u, q = rng.standard_normal((2, problem.basis.N))
    field = strong_field(problem, u, q)
    M = mass.assemble(problem.basis).toarray()[np.ix_(problem.free, problem.free)]
    np.testing.assert_allclose(M @ field, problem.residual(u, q)[problem.free], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("scheme", ["crank-nicolson", "backward-euler"])
def test_heat_trajectories_step_by_step(scheme):
    basis = zoo.unit_basis("line P1", 11)
    steps, end = 4, 0.2
    problem = zoo.heat(basis, parameters=2, sensors=[0.3, 0.6], times=[0.1, 0.2], scheme=scheme, steps=steps)
    rng = np.random.default_rng(3)
    u, q = rng.standard_normal((basis.N, steps + 1)), rng.standard_normal(basis.N)
    found = evaluate(problem, fc.Data(np.zeros(4), 0.0), fc.Candidate(u, q, 0.0))
    M, K = mass.assemble(basis).toarray(), stiffness.assemble(basis).toarray()
    free, dt = problem.free, end / steps
    Mff = M[np.ix_(free, free)]
    theta = {"crank-nicolson": 0.5, "backward-euler": 1.0}[scheme]
    total = 0.0
    for n in range(steps):
        r = -(M @ (u[:, n + 1] - u[:, n]) / dt + K @ (theta * u[:, n + 1] + (1 - theta) * u[:, n]))[free]
        total += r @ np.linalg.solve(Mff, r) / Mff.sum() / steps
    assert found.pde.value == pytest.approx(np.sqrt(total), rel=1e-9)
    H = problem.sensors.matrix.toarray()
    assert found.data.value == pytest.approx(np.linalg.norm(np.concatenate([H @ u[:, 2], H @ u[:, 4]])), rel=1e-9)
    ends = np.flatnonzero((basis.doflocs[0] < 1e-12) | (basis.doflocs[0] > 1 - 1e-12))
    start = u[:, 0].copy()
    start[free] -= np.linalg.solve(Mff, (M @ q)[free])
    expected = np.sqrt((u[ends] ** 2).sum(axis=0).max()) + np.sqrt(start @ M @ start)
    assert found.bc.value == pytest.approx(expected, rel=1e-9)


def test_heat_states_are_measured_against_the_propagated_parameter():
    basis = zoo.unit_basis("line P1", 11)
    problem = zoo.heat(basis, parameters=2, sensors=[0.3, 0.6], times=0.1, steps=5)
    q = problem.parameters.field([1.0, 0.5])
    u = problem.solve(q)
    shift = np.zeros(basis.N)
    shift[problem.free] = 0.3
    M = mass.assemble(basis).toarray()[np.ix_(problem.free, problem.free)]
    r = mass.assemble(basis).toarray()[problem.free] @ shift
    expected = np.sqrt(r @ np.linalg.solve(M, r) / M.sum())
    assert strong_rms(problem, u + shift, q) == pytest.approx(expected, rel=1e-9)
    assert strong_rms(problem, u, q) < 1e-11


def test_tomography_reads_the_image_and_ignores_a_state():
    problem = zoo.tomography("quad Q1", 8, parameters=4, angles=[0, 40, 80], bins=6)
    basis = problem.basis
    q = np.random.default_rng(4).standard_normal(basis.N)
    y = np.ones(18)
    misfit = np.linalg.norm(problem.sensors.matrix.toarray() @ q - y)
    for state in (None, np.zeros(basis.N)):
        assert evaluate(problem, fc.Data(y, 0.0), fc.Candidate(state, q, 0.0)).data.value == pytest.approx(misfit)


def test_nonlinear_residuals():
    basis = zoo.unit_basis("line P1", 10)
    problem = zoo.coefficient(basis, parameters=(fc.SineSpace, 2), sensors=[0.2, 0.5, 0.8], source=2.0)
    rng = np.random.default_rng(5)
    q, u = 0.1 * rng.standard_normal((2, basis.N))
    found = evaluate(problem, fc.Data(np.zeros(3), 0.0), fc.Candidate(u, q))
    x = basis.doflocs[0]
    order = np.argsort(x)
    qs, us, h = q[order], u[order], 0.1
    # Exact cell averages of exp of a linear function.
    mean = np.diff(np.exp(qs)) / np.diff(qs)
    flux = mean * np.diff(us) / h
    r = 2.0 * h + np.diff(flux)
    M = mass.assemble(basis).toarray()[np.ix_(order[1:-1], order[1:-1])]
    assert found.pde.value == pytest.approx(np.sqrt(r @ np.linalg.solve(M, r) / M.sum()), rel=1e-6)

    # The gradient of the misfit at the projection, by central differences of the objective.
    c, _ = problem.parameters.project(q)

    def objective(c):
        return 0.5 * np.sum(problem.observe(problem.solve(problem.parameters.field(c))) ** 2)

    g = [(objective(c + s) - objective(c - s)) / 2e-5 for s in 1e-5 * np.eye(2)]
    assert found.optimality.value == pytest.approx(np.sqrt(g @ problem.parameters.solve_gram(np.array(g))), rel=1e-6)


@pytest.mark.parametrize("weight", [0.0, 0.3])
@pytest.mark.parametrize("space", ["few", "full"])
def test_the_reduced_gradient_is_the_derivative_of_the_objective(weight, space):
    basis = square(2)
    parameters = fc.EigenmodeSpace(basis, 3) if space == "few" else fc.FullSpace(basis)
    problem = zoo.source(basis, parameters=parameters, sensors=5, dirichlet=1.0)
    rng = np.random.default_rng(6)
    data = fc.Data(rng.standard_normal(5), 0.1, np.linspace(0.5, 2.0, 5))
    c, direction = rng.standard_normal((2, parameters.dimension))

    def objective(c):
        q = parameters.field(c)
        misfit = data.norm(problem.observe(problem.solve(q)) - data.values)
        return 0.5 * misfit**2 + 0.5 * weight * parameters.norm(q) ** 2

    g = reduced_gradient(problem, data, c, weight=weight)
    slope = (objective(c + direction) - objective(c - direction)) / 2.0  # exact for a quadratic
    assert g @ direction == pytest.approx(slope, rel=1e-8)
    norm = fc.reduced_gradient_norm(problem, data, parameters.field(c), weight=weight)
    assert norm == pytest.approx(np.sqrt(g @ parameters.solve_gram(g)), rel=1e-8)
