"""Linear problems: forward and adjoint solves against each other and against dense algebra."""

from functools import cache, partial

import numpy as np
import pytest
import zoo
from hypothesis import given, settings
from hypothesis import strategies as st
from orders import fitted_order, taylor_order
from scipy.sparse import csr_matrix, diags, identity
from scipy.stats import binom, chi2
from skfem import Basis, BilinearForm, LinearForm, asm, condense
from skfem import solve as skfem_solve
from skfem.helpers import dot, grad
from zoo import inside_points, thirds, unit_basis

import femcert as fc
from femcert.linalg import factorization_count


@BilinearForm
def convection_diffusion(u, v, w):
    return 0.3 * dot(grad(u), grad(v)) + (1.0 + w.x[0]) * grad(u)[0] * v + 0.5 * u * v


@BilinearForm
def weighted_load(q, v, w):
    return (1.0 + w.x[0]) * q * v + 0.1 * q * grad(v)[0]


@LinearForm
def known_source(v, w):
    return np.cos(w.x[0]) * v


def own_forms(name="tri P2", parameters=fc.FullSpace, **options):
    forms = {"operator": convection_diffusion, "load": weighted_load, "source": known_source}
    averages = fc.AverageSensors(unit_basis(name, 5), inside_points(unit_basis(name, 5)), radius=0.08)
    return zoo.own_linear(name, 5, parameters=parameters, sensors=averages, **forms, **options)


def elliptic(name, mass="consistent", parameters=fc.FullSpace):
    given = {"conductivity": lambda x: 1.0 + x[0], "reaction": 2.0, "robin": {"right": (2.0, 1.0)}, "mass": mass}
    on_left = {"left": lambda x: 1.0 + x[-1]}
    return zoo.source(name, 5, parameters=parameters, sensors=inside_points, dirichlet=on_left, **given)


def heat(name, scheme, times, mass="consistent", parameters=fc.FullSpace):
    given = {"diffusivity": lambda x: 0.2 + 0.1 * x[0], "dirichlet": {"left": 0.0}, "robin": {"right": (1.5, 0.0)}}
    march = {"times": times, "steps": 12, "scheme": scheme, "mass": mass}
    return zoo.heat(name, 6, parameters=parameters, sensors=inside_points, **march, **given)


def tomography(name, rule):
    return zoo.tomography(name, 4, parameters=fc.FullSpace, angles=[0.0, 33.0, 71.0], bins=5, rule=rule)


PROBLEMS = {
    "elliptic line P2": lambda: elliptic("line P2"),
    "elliptic triangle P1 lumped": lambda: elliptic("tri P1", "lumped"),
    "elliptic bent quad Q2": lambda: elliptic("bent quad Q2"),
    "elliptic regions": lambda: elliptic("tri P2", parameters=thirds),
    "heat backward Euler": lambda: heat("tri P1", "backward-euler", 0.6),
    "heat backward Euler, three times": lambda: heat("line P2", "backward-euler", [0.1, 0.3, 0.6]),
    "heat Crank-Nicolson, three times": lambda: heat("quad Q1", "crank-nicolson", [0.05, 0.3, 0.6]),
    "heat Crank-Nicolson lumped, two times": lambda: heat("tri P1", "crank-nicolson", [0.3, 0.6], "lumped"),
    "heat exact, three times": lambda: heat("tri P1", "exact", [0.1, 0.25, 0.6]),
    "heat regions": lambda: heat("tri P2", "crank-nicolson", [0.3, 0.6], parameters=thirds),
    "tomography P1": lambda: tomography("tri P1", "exact"),
    "tomography distorted Q2": lambda: tomography("bent quad Q2", "exact"),
    "tomography sampled": lambda: tomography("quad Q1", "sampled"),
    "own forms, Dirichlet": lambda: own_forms(),
    "own forms, mixed, regions": lambda: own_forms(
        parameters=thirds, dirichlet={"left": 2.0}, robin={"top": (1.0, 3.0)}, neumann={"right": lambda x: x[1]}
    ),
}


@pytest.fixture(scope="module", params=PROBLEMS)
def problem(request):
    return PROBLEMS[request.param]()


def test_columns_equal_rows(problem):
    """F by forward solves and F by adjoint solves, two implementations."""
    columns = problem.apply(np.eye(problem.parameters.basis.N))
    rows = problem.adjoint(np.eye(problem.observation_count)).T
    assert columns.shape == rows.shape == (problem.observation_count, problem.parameters.basis.N)
    assert np.abs(columns).max() > 1e-6
    assert np.abs(columns - rows).max() < 1e-10 * np.abs(columns).max()


def test_forward_matrix_is_the_affine_part_of_the_data(problem):
    rng = np.random.default_rng(0)
    F = problem.forward_matrix()
    assert F.shape == (problem.observation_count, problem.parameters.dimension)
    assert not F.flags.writeable
    for c in rng.standard_normal((3, problem.parameters.dimension)):
        q = problem.parameters.field(c)
        data = problem.observe(problem.solve(q))
        assert np.allclose(F @ c + problem.offset, data, rtol=0, atol=1e-10 * np.abs(data).max())


def test_one_factorization_for_everything(problem):
    problem.forward_matrix()
    q = np.ones(problem.parameters.basis.N)
    before = factorization_count()
    problem.solve(q)
    problem.apply(np.eye(len(q))[:, :20])
    problem.adjoint(np.eye(problem.observation_count))
    fresh = 0 if problem.states else 1
    assert factorization_count() - before <= fresh


def test_residual_of_the_own_state(problem):
    q = np.random.default_rng(1).standard_normal(problem.parameters.basis.N)
    u = problem.solve(q)
    assert np.abs(problem.residual(u, q)).max() < 1e-11
    off = u.copy()
    off[problem.free[0] if problem.states else 0] += 1.0
    assert np.abs(problem.residual(off, q)).max() > 1e-5


@pytest.mark.parametrize("covariance", [False, True])
def test_misfit_gradient(problem, covariance):
    rng = np.random.default_rng(2)
    m = problem.observation_count
    c, d = rng.standard_normal((2, problem.parameters.dimension))
    C = np.cov(rng.standard_normal((m, 3 * m))) if covariance else None
    data = fc.Data(problem.offset + rng.standard_normal(m), 0.1, C)
    field = problem.parameters.field
    W = np.linalg.inv(C) if covariance else np.eye(m)
    r = problem.observe(problem.solve(field(c))) - data.values
    gradient = problem.misfit_gradient(field(c), data)
    expected = problem.forward_matrix().T @ W @ r
    assert np.allclose(gradient, expected, rtol=0, atol=1e-9 * np.abs(expected).max())

    def misfit(t):
        e = problem.observe(problem.solve(field(c + t * d))) - data.values
        return 0.5 * e @ W @ e

    assert taylor_order(misfit, gradient @ d) == pytest.approx(2.0, abs=0.02)


@cache
def shared(name):
    return PROBLEMS[name]()


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["own forms, Dirichlet", "heat Crank-Nicolson, three times"]))
def test_adjoint_identity(seed, name):
    problem = shared(name)
    rng = np.random.default_rng(seed)
    f = rng.standard_normal((problem.parameters.basis.N, 2))
    w = rng.standard_normal((problem.observation_count, 3))
    left, right = problem.apply(f).T @ w, f.T @ problem.adjoint(w)
    assert np.allclose(left, right, rtol=0, atol=1e-10 * np.linalg.norm(f) * np.linalg.norm(w))


def test_many_columns_and_many_rows():
    """More than one batch of right-hand sides on both ways."""
    basis = unit_basis("tri P1", 8)
    points = inside_points(basis, 40)
    by_rows = zoo.source(basis, parameters=fc.FullSpace, sensors=points)
    by_columns = zoo.source(basis, parameters=35, sensors=points)
    assert by_columns.parameters.dimension < 40 < by_rows.parameters.dimension
    G = by_rows.forward_matrix() @ by_columns.parameters.matrix
    assert np.allclose(by_columns.forward_matrix(), G, rtol=0, atol=1e-12)


def test_own_forms_against_scikit_fem():
    problem = own_forms(dirichlet=1.5)
    basis = problem.basis
    q = np.random.default_rng(5).standard_normal(basis.N)
    A, L, f = asm(convection_diffusion, basis), asm(weighted_load, basis), asm(known_source, basis)
    expected = skfem_solve(*condense(A, L @ q + f, x=np.full(basis.N, 1.5), D=basis.get_dofs()))
    assert np.allclose(problem.solve(q), expected, rtol=1e-11)
    assert np.abs(A - A.T).max() > 1e-3  # the transposed solves above had something to transpose


def test_own_convection_converges():
    """-u'' + 4 u' = q with u = sin(pi x) exp(2 x): q = exp(2x)((pi² + 4) sin(pi x)), by P1 and P2."""
    form = BilinearForm(lambda u, v, w: dot(grad(u), grad(v)) + 4.0 * grad(u)[0] * v)
    for name, order in (("line P1", 2.0), ("line P2", 3.0)):
        sizes, found = np.array([8, 16, 32, 64]), []
        for n in sizes:
            basis = unit_basis(name, n)
            x = basis.doflocs[0]
            problem = zoo.own_linear(basis, operator=form, parameters=fc.FullSpace, sensors=[0.5])
            u = np.sin(np.pi * x) * np.exp(2 * x)
            e = problem.solve((np.pi**2 + 4.0) * u) - u
            found.append(problem.parameters.norm(e))
        slope = fitted_order(1.0 / sizes, found)
        # At the nodes P2 is superconvergent, so the discrete norm may show one order more.
        assert order - 0.15 < slope < order + (0.15 if order == 2.0 else 1.15)


def test_assembled_matrices_are_forms():
    by_form = own_forms(dirichlet={"left": 1.0})
    basis = by_form.basis
    forms = {"operator": convection_diffusion, "load": weighted_load, "source": known_source}
    assembled = {name: asm(form, basis) for name, form in forms.items()}
    by_matrix = fc.LinearProblem(
        basis, parameters=by_form.parameters, sensors=by_form.sensors, dirichlet={"left": 1.0}, **assembled
    )
    q = np.cos(basis.doflocs[0])
    assert np.allclose(by_form.solve(q), by_matrix.solve(q), rtol=1e-12)
    for matrix in (by_matrix.operator, by_matrix.load):
        with pytest.raises(ValueError, match="read-only"):
            matrix.data[0] = 1.0


def test_wrong_definite_is_refused():
    problem = own_forms(definite=True)
    with pytest.raises(fc.SolveError, match="operator of the state equation is not symmetric"):
        problem.solve(np.zeros(problem.basis.N))
    basis = unit_basis("tri P1", 10)
    helmholtz = BilinearForm(lambda u, v, w: dot(grad(u), grad(v)) - 30.0 * u * v)
    own = partial(zoo.own_linear, basis, operator=helmholtz, parameters=fc.FullSpace)
    with pytest.raises(fc.SolveError, match="not positive definite"):
        own(definite=True).solve(np.ones(basis.N))
    # Told the truth, it solves: -Laplace u - 30 u = (2 pi² - 30) u for the first mode.
    u = np.prod(np.sin(np.pi * basis.doflocs), axis=0)
    found = own().solve((2 * np.pi**2 - 30.0) * u)
    assert np.abs(found - u).max() < 0.1


@pytest.mark.parametrize("mass", ["consistent", "lumped"])
def test_residual_mass(mass):
    """The mass matrix on the free dofs: its quadratic form of a field that vanishes elsewhere."""
    problem = elliptic("tri P1", mass)
    M = asm(BilinearForm(lambda u, v, w: u * v), problem.basis)
    if mass == "lumped":
        M = diags(np.asarray(M.sum(axis=1)).ravel()).tocsr()
    e = np.zeros(problem.basis.N)
    e[problem.free] = np.random.default_rng(0).standard_normal(len(problem.free))
    assert e[problem.free] @ problem.residual_mass @ e[problem.free] == pytest.approx(e @ M @ e, rel=1e-12)


SENSORS = fc.PointSensors(unit_basis("tri P1", 4), [[0.5, 0.4]])
SIMULATED = {
    "elliptic": lambda: elliptic("tri P1"),
    "coefficient": lambda: zoo.coefficient("tri P1", parameters=3, sensors=partial(zoo.averages, count=2, radius=0.2)),
    "heat": lambda: zoo.heat("line P1", 8, parameters=3, sensors=[0.3, 0.6], steps=10),
    "tomography": lambda: zoo.tomography(angles=[0.0, 45.0, 90.0]),
}


@pytest.mark.parametrize("kind", SIMULATED)
def test_the_noise_level_is_what_a_user_can_know(kind):
    """The same for every draw, and above the noise in 95 % of them; the norm of the draw only for who asks."""
    problem = SIMULATED[kind]()
    q = 0.1 + problem.parameters.basis.doflocs[0]
    exact = problem.simulate(q).values
    draws = [problem.simulate(q, noise=0.1, seed=seed) for seed in range(400)]
    sizes = np.array([np.linalg.norm(data.values - exact) for data in draws])
    (level,) = {data.noise_level for data in draws}
    deviation = 0.1 * np.linalg.norm(exact) / np.sqrt(exact.size)
    assert level == pytest.approx(deviation * np.sqrt(chi2.ppf(0.95, exact.size)), rel=1e-12)
    # The 0.1 % quantiles of Binomial(400, 0.05) on both sides.
    assert binom.ppf(0.001, 400, 0.05) <= np.count_nonzero(sizes > level) <= binom.ppf(0.999, 400, 0.05)
    half = problem.simulate(q, noise=0.1, confidence=0.5)
    assert half.noise_level == pytest.approx(deviation * np.sqrt(chi2.ppf(0.5, exact.size)), rel=1e-12)
    drawn = problem.simulate(q, noise=0.1, seed=7, oracle=True)
    assert np.array_equal(drawn.values, draws[7].values)
    assert drawn.noise_level == pytest.approx(sizes[7], rel=1e-12)
    for confidence in (0.0, 1.0, 1.5, -0.1, np.nan):
        with pytest.raises(fc.InputError, match="confidence"):
            problem.simulate(q, noise=0.1, confidence=confidence)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"operator": np.eye(25)}, "operator is an ndarray"),
        ({"operator": known_source}, "operator is a LinearForm"),
        ({"operator": identity(7).tocsr()}, r"operator has shape \(7, 7\)"),
        ({"operator": csr_matrix(np.full((25, 25), np.nan))}, "operator has complex, NaN or infinite entries"),
        ({"source": np.ones(7)}, r"source has shape \(7,\)"),
    ],
)
def test_bad_input(options, message):
    basis = unit_basis("tri P1", 4)
    options = {"operator": convection_diffusion, "parameters": fc.FullSpace(basis), "sensors": SENSORS, **options}
    with pytest.raises(fc.InputError, match=message):
        fc.LinearProblem(basis, **options)


def test_parameters_on_an_equal_mesh_are_accepted():
    """A mesh read twice is the same mesh; one with the nodes in another order is not."""
    basis, again = unit_basis("tri P1", 4), unit_basis("tri P1", 4)
    problem, same = zoo.source(basis, parameters=fc.SineSpace(again, 3)), zoo.source(basis)
    assert problem.forward_matrix() == pytest.approx(same.forward_matrix(), rel=1e-13)
    mesh = basis.mesh
    turned = Basis(type(mesh)(mesh.p[:, ::-1], mesh.nvertices - 1 - mesh.t), basis.elem)
    with pytest.raises(fc.InputError, match="another mesh"):
        zoo.source(basis, parameters=fc.SineSpace(turned, 3))


def test_parameters_on_another_element():
    """A P1 parameter of a P2 state: the same as its P2 representation."""
    linear, quadratic = unit_basis("tri P1", 4), unit_basis("tri P2", 4)
    mixed, full = (zoo.source(quadratic, parameters=fc.FullSpace(basis)) for basis in (linear, quadratic))
    q = np.random.default_rng(0).standard_normal(linear.N)
    assert np.allclose(mixed.solve(q), full.solve(linear.interpolator(q)(quadratic.doflocs)), rtol=1e-11)


@pytest.mark.parametrize(
    ("state", "parameter"), [("tri P1", "tri P2"), ("tri P2", "tri P1"), ("quad Q1", "quad Q2"), ("line P1", "line P2")]
)
def test_the_load_of_another_degree_is_integrated_exactly(state, parameter):
    """The product of a P2 parameter and a P1 state has degree 3, more than the quadrature of P1 is for."""
    basis, fine = unit_basis(state, 4), unit_basis(parameter, 4)
    exact = BilinearForm(lambda q, v, w: q * v).assemble(
        Basis(basis.mesh, fine.elem, intorder=6), Basis(basis.mesh, basis.elem, intorder=6)
    )
    for mass in ("consistent", "lumped") if "1" in state else ("consistent",):
        for make in (zoo.source, zoo.heat):
            problem = make(basis, parameters=fc.FullSpace(fine), mass=mass)
            assert abs(problem.load - exact).max() < 1e-12
            assert problem.load.sum() == pytest.approx(1.0, rel=1e-12)
