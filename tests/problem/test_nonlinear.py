"""Own nonlinear forms: exact states, Taylor tests of Jacobian and gradient, Newton's method."""

from functools import partial

import numpy as np
import pytest
import zoo
from orders import about, convergence, taylor_order
from skfem import BilinearForm, LinearForm
from skfem.helpers import dot, grad
from zoo import inside_points, minus_mass, quasilinear, quasilinear_u, unit_basis

import femcert as fc
from femcert.linalg import factorization_count

# -Laplace u + q² u³ = 1 + x: nonlinear in both.


@LinearForm
def cubic(v, w):
    return dot(grad(w["u"]), grad(v)) + w["q"] ** 2 * w["u"] ** 3 * v - (1.0 + w.x[0]) * v


@BilinearForm
def cubic_u(u, v, w):
    return dot(grad(u), grad(v)) + 3.0 * w["q"] ** 2 * w["u"] ** 2 * u * v


@BilinearForm
def cubic_q(q, v, w):
    return 2.0 * w["q"] * q * w["u"] ** 3 * v


NAMES = ("equation", "state_derivative", "parameter_derivative")
# -div((1 + u²) grad u) = q. With w = u + u³/3 it is -Laplace w = q.
FORMS = {"quasilinear": (quasilinear, quasilinear_u, minus_mass), "cubic": (cubic, cubic_u, cubic_q)}


def nonlinear(forms, basis, space=(fc.CosineSpace, 4), sensors=5, **options):
    named = dict(zip(NAMES, FORMS[forms], strict=True))
    return zoo.own_nonlinear(basis, parameters=space, sensors=partial(inside_points, count=sensors), **named, **options)


@pytest.mark.parametrize(("name", "order"), [("line P1", 2), ("line P2", 3)])
def test_quasilinear_state_in_closed_form(name, order):
    """In 1D the nodal values of w = u + u³/3 satisfy -w'' = q; u itself converges at the element's order."""

    def exact(x):
        # w = 4 x (1 - x), u the real root of u + u³/3 = w.
        w = 4.0 * x[0] * (1 - x[0])
        root = np.sqrt(1.0 + 2.25 * w**2)
        return np.cbrt(1.5 * w + root) + np.cbrt(1.5 * w - root)

    def gradient(x):
        return [4.0 * (1 - 2 * x[0]) / (1.0 + exact(x) ** 2)]

    def solved(n):
        basis = unit_basis(name, n)
        return basis, nonlinear("quasilinear", basis, fc.FullSpace).solve(np.full(basis.N, 8.0))

    assert convergence(solved, (8, 16, 32, 64), exact, gradient) == about((order, order - 1), (0.25, 0.25))


def test_quasilinear_converges_in_the_plane():
    """u = sin(pi x) sin(pi y): q = (1 + u²) 2 pi² u - 2 u |grad u|²."""

    def exact(x):
        return np.sin(np.pi * x[0]) * np.sin(np.pi * x[1])

    def gradient(x):
        s, c = np.sin(np.pi * x), np.cos(np.pi * x)
        return [np.pi * c[0] * s[1], np.pi * s[0] * c[1]]

    def solved(n):
        basis = unit_basis("tri P1", n)
        u, g = exact(basis.doflocs), np.array(gradient(basis.doflocs))
        q = (1.0 + u**2) * 2 * np.pi**2 * u - 2.0 * u * np.sum(g**2, axis=0)
        return basis, nonlinear("quasilinear", basis, fc.FullSpace).solve(q)

    assert convergence(solved, (6, 12, 24), exact, gradient) == about((2.0, 1.0), (0.15, 0.15))


CASES = [
    ("quasilinear", "line P2", {"dirichlet": {"left": 1.0}, "robin": {"right": (2.0, 1.0)}}),
    ("quasilinear", "tri P1", {"dirichlet": lambda x: x[0]}),
    ("cubic", "line P1", {}),
    ("cubic", "bent quad Q1", {"neumann": {"top": 1.0}}),
    ("cubic", "tri P2", {"robin": {"left": (0.5, lambda x: x[1])}}),
]


@pytest.mark.parametrize(("forms", "name", "options"), CASES)
def test_jacobian_by_taylor(forms, name, options):
    problem = nonlinear(forms, unit_basis(name, 5), **options)
    rng = np.random.default_rng(0)
    c, d = 1.0 + rng.random(4), rng.standard_normal(4)
    d /= np.linalg.norm(d)
    field = problem.parameters.field
    J = problem.jacobian(field(c))

    def predicted(t):
        return problem.observe(problem.solve(field(c + t * d)))

    assert taylor_order(predicted, J @ d) == pytest.approx(2.0, abs=0.1)
    y = predicted(0.0) + 0.1 * rng.standard_normal(5)
    C = np.cov(rng.standard_normal((5, 30)))
    for data, W in ((fc.Data(y, 0.1), np.eye(5)), (fc.Data(y, 0.1, C), np.linalg.inv(C))):
        gradient = problem.misfit_gradient(field(c), data)
        assert np.allclose(gradient, J.T @ W @ (predicted(0.0) - y), rtol=1e-9)
        assert taylor_order(
            lambda t, W=W: 0.5 * (predicted(t) - y) @ W @ (predicted(t) - y), gradient @ d
        ) == pytest.approx(2.0, abs=0.1)


@pytest.mark.parametrize(("forms", "name", "options"), CASES)
def test_jacobian_by_columns_and_by_rows(forms, name, options):
    basis = unit_basis(name, 5)
    q = fc.CosineSpace(basis, 4).field([1.0, 0.2, 0.3, -0.1])
    columns = nonlinear(forms, basis, **options).jacobian(q)
    # 36 or more coordinates against 5 sensors: adjoint solves with the transposed derivative.
    rows = nonlinear(forms, basis, fc.FullSpace, **options).jacobian(q) @ fc.CosineSpace(basis, 4).matrix
    assert np.allclose(rows, columns, rtol=0, atol=1e-10 * np.abs(columns).max())


def test_residual_is_that_of_the_equation():
    basis = unit_basis("tri P1", 6)
    problem = nonlinear("quasilinear", basis, fc.FullSpace, dirichlet=lambda x: x[1])
    rng = np.random.default_rng(2)
    q = rng.standard_normal(basis.N)
    u = problem.solve(q)
    assert np.abs(problem.residual(u, q)).max() < 1e-12
    assert np.all(problem.residual(rng.standard_normal(basis.N), q)[problem.boundary.prescribed] == 0.0)
    assert problem.boundary_defect(u, q) < 1e-14
    assert np.array_equal(
        problem.residual_mass.toarray(), problem.parameters.weight[problem.free][:, problem.free].toarray()
    )
    # The residual is minus R: its slope in u is minus the state derivative.
    e = rng.standard_normal(basis.N)
    e[problem.boundary.prescribed] = 0.0
    A = quasilinear_u.assemble(basis, u=basis.interpolate(u), q=basis.interpolate(q))
    slope = -(A @ e)
    slope[problem.boundary.prescribed] = 0.0
    assert taylor_order(lambda t: problem.residual(u + t * e, q), slope) == pytest.approx(2.0, abs=0.1)


def test_newton_on_fine_meshes():
    """Where rounding keeps the residual far above 1e-12 of its start, a tiny step must end the iteration."""
    basis = unit_basis("line P1", 20000)
    problem = nonlinear("quasilinear", basis, fc.FullSpace)
    before = factorization_count()
    u = problem.solve(np.full(basis.N, 1e3))
    assert factorization_count() - before < 30
    w = 500.0 * basis.doflocs[0] * (1.0 - basis.doflocs[0])
    assert np.abs(u + u**3 / 3 - w).max() < 1e-5 * w.max()


def test_latest_linearization_is_reused_and_never_stale():
    basis = unit_basis("line P1", 10)
    problem = nonlinear("cubic", basis)
    first, second = problem.parameters.field([1.0, 0, 0, 0]), problem.parameters.field([2.0, 0, 0, 0])
    u = problem.solve(first)
    before = factorization_count()
    problem.jacobian(first)
    u[:] = 7.0  # what the caller does with a state does not reach the problem
    assert np.allclose(problem.solve(first), nonlinear("cubic", basis).solve(first), rtol=1e-13)
    assert factorization_count() - before < 10
    J = problem.jacobian(second)
    assert np.allclose(J, nonlinear("cubic", basis).jacobian(second), rtol=1e-10)
    moved = second.copy()
    problem.solve(moved)
    moved *= 2.0  # nor does changing the parameter in place give the old state
    assert np.allclose(problem.solve(moved), nonlinear("cubic", basis).solve(moved), rtol=1e-12)


def test_failures_are_solve_errors(monkeypatch):
    basis = unit_basis("line P1", 16)
    # -u'' - 50 exp(u) = q has no solution (Bratu beyond its fold).
    bratu = zoo.own_nonlinear(
        basis,
        equation=LinearForm(lambda v, w: dot(grad(w["u"]), grad(v)) - 50.0 * np.exp(w["u"]) * v - w["q"] * v),
        state_derivative=BilinearForm(lambda u, v, w: dot(grad(u), grad(v)) - 50.0 * np.exp(w["u"]) * u * v),
        parameters=fc.FullSpace,
    )
    with np.errstate(all="ignore"), pytest.raises(fc.SolveError):
        bratu.solve(np.zeros(basis.N))
    with monkeypatch.context() as limits:
        limits.setattr("femcert.problem.nonlinear.MOST_NEWTON_STEPS", 1)
        with pytest.raises(fc.SolveError, match="Newton's method did not converge in 1 steps"):
            nonlinear("quasilinear", basis).solve(np.full(basis.N, 50.0))
    singular = nonlinear("quasilinear", basis, dirichlet={})
    with pytest.raises(fc.SolveError, match=r"derivative of the state equation.*singular"):
        singular.solve(np.ones(basis.N))
    with pytest.raises(fc.SolveError, match="derivative of the state equation is not symmetric"):
        nonlinear("quasilinear", basis, definite=True, dirichlet=lambda x: x[0]).solve(np.ones(basis.N))


@pytest.mark.parametrize("position", range(3))
def test_bad_forms(position):
    basis = unit_basis("line P1", 4)
    forms = dict(zip(NAMES, FORMS["cubic"], strict=True)) | {NAMES[position]: lambda *_: 0.0}
    kind = "LinearForm" if position == 0 else "BilinearForm"
    with pytest.raises(fc.InputError, match=f"{NAMES[position]} is a function.* {kind}"):
        zoo.own_nonlinear(basis, **forms)


def test_a_false_claim_of_linearity_is_noticed():
    basis = unit_basis("tri P1", 6)
    problem = nonlinear("quasilinear", basis, fc.FullSpace, linear_in_state=True)
    with pytest.raises(fc.SolveError, match="not linear in the state"):
        problem.solve(np.full(basis.N, 8.0))
