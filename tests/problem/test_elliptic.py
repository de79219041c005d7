"""EllipticSource against manufactured solutions, patch tests and finite differences; EllipticCoefficient by Taylor."""

from functools import partial

import numpy as np
import pytest
import zoo
from orders import about, convergence, errors, taylor_order
from skfem import Basis, MeshLine, MeshTet, MeshTri, MeshTri2
from skfem import element as shapes
from zoo import ELEMENTS, STRAIGHT, inside_points, jittered, middles, thirds, unit_basis, unit_mesh

import femcert as fc
from femcert.linalg import factorization_count

CELLS = {"line": (8, 16, 32, 64), "tri": (6, 12, 24), "quad": (6, 12, 24), "bent quad": (8, 16, 32)}


source_problem = partial(zoo.source, parameters=fc.FullSpace, sensors=inside_points)


# A smooth solution with variable coefficients; in one dimension y = 0.


def plane(x):
    return x[0], x[1] if len(x) > 1 else 0.0 * x[0]


def exact(x):
    x, y = plane(x)
    return np.sin(1.3 * x + 0.4) * np.cos(0.9 * y)


def gradient(x):
    s, t = plane(x)
    parts = 1.3 * np.cos(1.3 * s + 0.4) * np.cos(0.9 * t), -0.9 * np.sin(1.3 * s + 0.4) * np.sin(0.9 * t)
    return parts[: len(x)]


def conductivity(x):
    x, y = plane(x)
    return 1.0 + 0.5 * x + 0.3 * y


def reaction(x):
    return 2.0 + x[0]


def source(x):
    laplacian = -(1.3**2 + (0.9**2 if len(x) > 1 else 0.0)) * exact(x)
    slope = sum(a * b for a, b in zip((0.5, 0.3), gradient(x), strict=False))
    return -slope - conductivity(x) * laplacian + reaction(x) * exact(x)


def flux(side):
    axis, sign = {"left": (0, -1.0), "right": (0, 1.0), "bottom": (1, -1.0), "top": (1, 1.0)}[side]
    return lambda x: sign * conductivity(x) * gradient(x)[axis]


def robin_data(side, alpha):
    return alpha, lambda x: flux(side)(x) + alpha * exact(x)


CONDITIONS = {
    "dirichlet": lambda sides: {"dirichlet": exact},
    "named dirichlet and neumann": lambda sides: {
        "dirichlet": {"left": exact}, "neumann": {side: flux(side) for side in sides if side != "left"}
    },
    "robin": lambda sides: {"robin": {side: robin_data(side, 0.7) for side in sides}},
    "mixed": lambda sides: {"dirichlet": exact, "neumann": {"right": flux("right")}, "robin": {
        side: robin_data(side, 3.0) for side in sides if side == "top"
    }},
}  # fmt: skip


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("name", ELEMENTS)
def test_orders_of_convergence(name, condition):
    kind, _, p = ELEMENTS[name]
    options = CONDITIONS[condition](("left", "right") if kind == "line" else ("left", "right", "bottom", "top"))

    def solved(n):
        problem = source_problem(name, n, conductivity=conductivity, reaction=reaction, **options)
        return problem.basis, problem.solve(source(problem.basis.doflocs))

    assert convergence(solved, CELLS[kind], exact, gradient) == about((p + 1, p), (0.15, 0.15))
    assert errors(*solved(CELLS[kind][-1]), exact, gradient)[0] < 1e-3


@pytest.mark.parametrize("name", STRAIGHT)
def test_jumping_conductivity(name):
    """With w = sin(2 pi x) ..., zero at the jump, u = w / a has a continuous flux: -div(a grad u) = -div grad w."""
    kind, element, p = ELEMENTS[name]

    def w(x):
        return np.sin(2 * np.pi * x[0]) * (np.sin(np.pi * x[1]) if len(x) > 1 else 1.0)

    def a(x):
        return np.where(x[0] < 0.5, 1.0, 20.0)

    def grad_u(x):
        y = np.pi * x[1] if len(x) > 1 else np.full_like(x[0], np.pi / 2)
        parts = 2 * np.cos(2 * np.pi * x[0]) * np.sin(y), np.sin(2 * np.pi * x[0]) * np.cos(y)
        return [np.pi * part / a(x) for part in parts[: len(x)]]

    def solved(n):
        mesh = unit_mesh(kind, n).with_subdomains({"soft": lambda x: x[0] < 0.5, "stiff": lambda x: x[0] > 0.5})
        basis = Basis(mesh, element())
        q = (4 + (mesh.dim() - 1)) * np.pi**2 * w(basis.doflocs)
        given = a(middles(basis)), {"soft": 1.0, "stiff": 20.0}, a
        first, *others = (source_problem(basis, conductivity=value).solve(q) for value in given)
        assert np.allclose(others, first, rtol=0, atol=1e-13)
        return basis, first

    assert convergence(solved, CELLS[kind], lambda x: w(x) / a(x), grad_u) == about((p + 1, p), (0.2, 0.2))


@pytest.mark.parametrize("condition", ["dirichlet", "mixed"])
@pytest.mark.parametrize("name", STRAIGHT)
def test_patch(name, condition):
    """Polynomials of the element's degree are reproduced on irregular meshes, whatever the boundary condition."""
    kind, element, p = ELEMENTS[name]
    n = 5
    mesh = jittered(unit_mesh(kind, n), 0.25 / n).with_boundaries(unit_mesh(kind, n).boundaries)
    basis = Basis(mesh, element())
    dim = mesh.dim()
    b = np.array([0.7, -1.1])[:dim]
    C = (p - 1) * np.array([[0.8, 0.5], [0.5, -0.3]])[:dim, :dim]
    a = 2.0

    def u(x):
        return 0.3 + np.tensordot(b, x, 1) + np.einsum("i...,ij,j...->...", x, C, x)

    def outward(x, side):
        axis, sign = (0, 1.0) if side == "right" else (1, 1.0)
        return a * sign * (b[axis] + 2 * np.tensordot(C[axis], x, 1))

    options = {"dirichlet": u}
    if condition == "mixed":
        options["neumann"] = {"right": lambda x: outward(x, "right")}
        if dim == 2:
            options["robin"] = {"top": (4.0, lambda x: outward(x, "top") + 4.0 * u(x))}
    problem = source_problem(basis, conductivity=a, **options)
    q = np.full(basis.N, -2.0 * a * np.trace(C))
    assert np.abs(problem.solve(q) - u(basis.doflocs)).max() < 1e-10


def test_lumped_is_finite_differences():
    n, a, c = 20, 1.7, 3.0
    basis = unit_basis("line P1", n)
    problem = source_problem(basis, conductivity=a, reaction=c, mass="lumped")
    h = 1.0 / n
    second = (2 * np.eye(n - 1) - np.eye(n - 1, k=1) - np.eye(n - 1, k=-1)) / h**2
    inner = problem.free
    order = inner[np.argsort(basis.doflocs[0, inner])]
    assert np.allclose(problem.operator[order][:, order].toarray() / h, a * second + c * np.eye(n - 1), rtol=1e-12)
    q = np.random.default_rng(0).standard_normal(basis.N)
    assert np.allclose(problem.solve(q)[order], np.linalg.solve(a * second + c * np.eye(n - 1), q[order]), rtol=1e-11)
    consistent = source_problem(basis, conductivity=a, reaction=c).solve(q)
    assert np.abs(consistent[order] - problem.solve(q)[order]).max() > 1e-4


@pytest.mark.parametrize("name", ["line P1", "line P2", "tri P1", "quad Q1", "quad Q2"])
def test_lumped_converges(name):
    kind, _, p = ELEMENTS[name]

    def solved(n):
        options = {"conductivity": conductivity, "reaction": reaction, "dirichlet": exact, "mass": "lumped"}
        problem = source_problem(name, n, **options)
        return problem.basis, problem.solve(source(problem.basis.doflocs))

    # Row sums of P1 and Q1 are the trapezoidal rule, of degree-2 elements Simpson's: exact enough for both orders.
    assert convergence(solved, CELLS[kind], exact, gradient) == about((p + 1, p), (0.25, 0.15))


@pytest.mark.parametrize("space", [fc.FullSpace, lambda basis: fc.RegionSpace(basis, [np.arange(4)])])
def test_lumped_quadratic_triangles_are_refused(space):
    basis = unit_basis("tri P2", 3)
    with pytest.raises(fc.InputError, match=r"ElementTriP2.*not positive.*'consistent'"):
        source_problem(basis, parameters=space(basis), mass="lumped")


def test_pure_neumann_is_singular():
    for name in ("line P1", "tri P1", "tri P2", "quad Q2"):
        basis = unit_basis(name, 12)
        problem = source_problem(basis, dirichlet={})
        with pytest.raises(fc.SolveError, match=r"operator of the state equation.*singular"):
            problem.solve(np.ones(basis.N))
        # A reaction, or a Robin condition on one side, makes it solvable: u = q / c for constants.
        u = source_problem(basis, dirichlet={}, reaction=4.0).solve(np.ones(basis.N))
        assert np.allclose(u, 0.25, rtol=1e-10)
        u = source_problem(basis, dirichlet={}, robin={"left": (2.0, 3.0)}).solve(np.zeros(basis.N))
        assert np.allclose(u, 1.5, rtol=1e-10)


def test_region_source():
    """A constant source on half of the interval: the exact solution is piecewise quadratic, so P2 has it."""
    mesh = MeshLine(np.linspace(0.0, 1.0, 9)).with_subdomains({"left half": lambda x: x[0] < 0.5})
    basis = Basis(mesh, shapes.ElementLineP2())
    space = fc.RegionSpace(basis, ["left half"])
    u = source_problem(basis, parameters=space).solve(space.field([2.0]))
    x = basis.doflocs[0]
    # u'' = -2 on the left half: u = s x - x² there, u = (1 - x)/4 on the right, s = 3/4 by continuity of u and u'.
    assert np.allclose(u, np.where(x < 0.5, 0.75 * x - x**2, 0.25 * (1 - x)), atol=1e-12)


def test_residual_and_boundary_defect():
    basis = unit_basis("tri P2", 6)
    problem = source_problem(basis, dirichlet=exact, robin={"top": (1.0, 2.0)}, reaction=1.0)
    rng = np.random.default_rng(3)
    q, e = rng.standard_normal((2, basis.N))
    u = problem.solve(q)
    assert np.abs(problem.residual(u, q)).max() < 1e-12
    assert problem.boundary_defect(u, q) < 1e-14
    e[problem.boundary.prescribed] = 0.0
    expected = -problem.operator @ e
    expected[problem.boundary.prescribed] = 0.0
    assert np.allclose(problem.residual(u + e, q), expected, atol=1e-11)
    # Off by one on the left and bottom and right sides: the L2 norm of 1 there is sqrt(3).
    off = u + np.isin(np.arange(basis.N), problem.boundary.prescribed)
    assert problem.boundary_defect(off, q) == pytest.approx(np.sqrt(3.0), rel=1e-10)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"conductivity": 0.0}, "conductivity takes the value 0"),
        ({"reaction": -1.0}, "reaction takes the value -1"),
        ({"mass": "diagonal"}, "mass is 'diagonal'"),
        ({"parameters": None}, "parameters is a NoneType"),
        ({"sensors": np.eye(3)}, "sensors is an ndarray"),
        ({"sensors": fc.MatrixSensors(np.ones((1, 3)))}, "sensors expect 3 dofs, but basis has 25"),
    ],
)
def test_bad_input(options, message):
    usual = source_problem("tri P1", 4)
    with pytest.raises(fc.InputError, match=message):
        fc.EllipticSource(usual.basis, **{"parameters": usual.parameters, "sensors": usual.sensors, **options})


def test_bad_meshes_and_bases():
    with pytest.raises(fc.InputError, match="no interior dofs"):
        source_problem(Basis(MeshTri(), shapes.ElementTriP1()))
    mapped = source_problem("tri P1", 4)
    for deed, word in (
        (lambda: mapped.solve(np.ones(24)), "parameter has shape"),
        (lambda: mapped.observe(np.ones((25, 1))), "state has shape"),
        (lambda: mapped.solve(np.full(25, np.inf)), "25 NaN or infinite"),
        (lambda: fc.EllipticSource(mapped.basis.mesh, parameters=mapped.parameters, sensors=mapped.sensors), "basis"),
    ):
        with pytest.raises(fc.InputError, match=word):
            deed()


# The unknown conductivity.


def coefficient_problem(name, n, transform="exp", space=(fc.CosineSpace, 4), sensors=inside_points, **options):
    options = {"parameters": space, "sensors": sensors, "source": lambda x: 1.0 + x[0], **options}
    return zoo.coefficient(name, n, transform=transform, **options)


COSINES = (fc.CosineSpace, 4)
COEFFICIENT_CASES = [
    ("line P1", "exp", COSINES, {}),
    ("line P2", "identity", thirds, {"dirichlet": {"left": 0.5}, "robin": {"right": (2.0, 1.0)}}),
    ("tri P1", "exp", COSINES, {"dirichlet": {"left": lambda x: x[1]}, "robin": {"right": (2.0, 1.0)}}),
    ("tri P2", "exp", thirds, {"dirichlet": lambda x: x[0]}),
    ("quad Q1", "identity", COSINES, {"robin": {"left": (1.0, 0.0)}, "neumann": {"top": 0.3}}),
    ("bent quad Q2", "exp", thirds, {}),
]


def start_of(problem, seed=0):
    c = 0.3 * np.random.default_rng(seed).standard_normal(problem.parameters.dimension)
    if problem.transform == "identity":
        c = problem.parameters.project(np.full(problem.parameters.basis.N, 1.5))[0] + 0.3 * c
    return c


@pytest.mark.parametrize(("name", "transform", "space", "options"), COEFFICIENT_CASES)
def test_jacobian_by_taylor(name, transform, space, options):
    problem = coefficient_problem(name, 6, transform, space, **options)
    c = start_of(problem)
    d = np.random.default_rng(1).standard_normal(len(c))
    d /= problem.parameters.norm(problem.parameters.field(d))
    J = problem.jacobian(problem.parameters.field(c))

    def predicted(t):
        return problem.observe(problem.solve(problem.parameters.field(c + t * d)))

    assert taylor_order(predicted, J @ d) == pytest.approx(2.0, abs=0.1)
    assert taylor_order(predicted, 1.05 * J @ d) == pytest.approx(1.0, abs=0.3)


@pytest.mark.parametrize(("name", "transform", "space", "options"), COEFFICIENT_CASES)
def test_jacobian_by_columns_and_by_rows(name, transform, space, options):
    """Fewer sensors than coordinates: adjoint solves; more: forward solves. The shared rows agree."""
    many = coefficient_problem(name, 6, transform, space, partial(inside_points, count=9), **options)
    few = coefficient_problem(name, 6, transform, space, fc.MatrixSensors(many.sensors.matrix[:2]), **options)
    c = start_of(few)
    rows, columns = few.jacobian(few.parameters.field(c)), many.jacobian(many.parameters.field(c))
    assert rows.shape == (2, few.parameters.dimension)
    assert np.allclose(rows, columns[:2], rtol=1e-10, atol=1e-10 * np.abs(columns).max())


@pytest.mark.parametrize("covariance", [None, "variances", "matrix"])
def test_misfit_gradient(covariance):
    problem = coefficient_problem("tri P1", 5, robin={"top": (1.0, 0.5)})
    c = start_of(problem)
    m = problem.observation_count
    rng = np.random.default_rng(4)
    y = problem.observe(problem.solve(problem.parameters.field(c))) + 0.1 * rng.standard_normal(m)
    C = {None: None, "variances": 0.5 + rng.random(m), "matrix": np.cov(rng.standard_normal((m, 40)))}[covariance]
    data = fc.Data(y, 0.1, C)
    field = problem.parameters.field
    J, r = problem.jacobian(field(c)), problem.observe(problem.solve(field(c))) - y
    weight = np.eye(m) if C is None else np.linalg.inv(np.diag(C) if C.ndim == 1 else C)
    gradient = problem.misfit_gradient(field(c), data)
    assert np.allclose(gradient, J.T @ weight @ r, rtol=1e-10, atol=1e-12)
    d = rng.standard_normal(len(c))

    def misfit(t):
        e = problem.observe(problem.solve(field(c + t * d))) - y
        return 0.5 * e @ weight @ e

    assert taylor_order(misfit, gradient @ d) == pytest.approx(2.0, abs=0.15)


def test_one_factorization_serves_state_jacobian_and_gradient():
    problem = coefficient_problem("tri P1", 5)
    q = problem.parameters.field(start_of(problem))
    before = factorization_count()
    data = fc.Data(problem.observe(problem.solve(q)), 0.0)
    problem.jacobian(q)
    problem.misfit_gradient(q, data)
    assert factorization_count() == before + 1


def test_coefficient_state_is_the_source_state():
    """The same conductivity, once as the unknown and once as given: two implementations of one equation."""
    basis = unit_basis("quad Q2", 4)
    q = np.sin(3 * basis.doflocs[0]) * basis.doflocs[1]
    options = {"dirichlet": {"left": 1.0}, "robin": {"right": (2.0, 1.0)}, "neumann": {"top": lambda x: x[0]}}
    full = {"parameters": fc.FullSpace, "sensors": inside_points}
    unknown = zoo.coefficient(basis, **full, source=lambda x: x[0], **options)
    given = source_problem(basis, conductivity=np.exp(np.asarray(basis.interpolate(q)).mean(axis=1)), **options)
    assert not np.allclose(unknown.solve(q), given.solve(basis.doflocs[0]), atol=1e-6)
    given = source_problem(basis, conductivity=lambda x: np.exp(np.asarray(basis.interpolate(q))), **options)
    assert np.allclose(unknown.solve(q), given.solve(basis.doflocs[0]), atol=1e-12)
    u = unknown.solve(q)
    assert np.abs(unknown.residual(u, q)).max() < 1e-12
    assert np.allclose(unknown.residual(2 * u, q), given.residual(2 * u, basis.doflocs[0]), atol=1e-12)
    assert unknown.boundary_defect(u + 1.0, q) == pytest.approx(1.0, rel=1e-10)


def test_coefficient_layers_in_closed_form():
    """-(a u')' = 0 with u(0) = 0, u(1) = 1: the flux is the harmonic mean, and dF/da_i = flux² / (3 a_i²)."""
    basis = Basis(
        MeshLine(np.linspace(0.0, 1.0, 10)).with_boundaries({"ends": lambda x: (x[0] == 0) | (x[0] == 1)}),
        shapes.ElementLineP1(),
    )
    ends = {"ends": lambda x: x[0]}
    problem = zoo.coefficient(
        basis, parameters=thirds, sensors=[1 / 3, 2 / 3], source=0.0, transform="identity", dirichlet=ends
    )
    space = problem.parameters
    a = np.array([1.0, 2.0, 5.0])
    flux = 3.0 / np.sum(1.0 / a)
    values = problem.observe(problem.solve(space.field(a)))
    assert values == pytest.approx([flux / 3 / a[0], flux / 3 * (1 / a[0] + 1 / a[1])], rel=1e-12)
    slopes = flux**2 / (3.0 * a**2)
    first = slopes / 3 / a[0] - [flux / 3 / a[0] ** 2, 0.0, 0.0]
    second = -slopes / 3 / a[2] + [0.0, 0.0, flux / 3 / a[2] ** 2]
    expected = np.array([first, second])
    assert np.allclose(problem.jacobian(space.field(a)), expected, rtol=1e-11)


def test_coefficient_bad_input():
    for options, q, word in (
        ({"transform": "log"}, 0.0, "transform is 'log'"),
        ({"source": np.nan}, 0.0, "source has 1 NaN"),
        ({"transform": "identity"}, -1.0, "takes the value -1"),
        ({}, 1e4, "takes the value inf"),
        ({}, np.nan, "parameter has 9 NaN"),
    ):
        with pytest.raises(fc.InputError, match=word):
            zoo.coefficient("line P1", 8, parameters=fc.FullSpace, **options).solve(np.full(9, q))


def bad_bases():
    mesh = unit_mesh("tri", 3)
    yield Basis(unit_mesh("quad", 3), shapes.ElementQuad1(), elements=np.arange(4)), "covers 4 of 9 elements"
    yield Basis(mesh, shapes.ElementTriP3()), "expected P1 or P2"
    yield Basis(mesh, shapes.ElementTriCR()), "ElementTriCR on MeshTri1 is not supported"
    yield Basis(mesh, shapes.ElementTriP0()), "ElementTriP0 is discontinuous"
    yield Basis(MeshTri2.init_circle(1), shapes.ElementTriP2()), "ElementTriP2 on MeshTri2 is not supported"
    yield Basis(MeshTet(), shapes.ElementTetP1()), "ElementTetP1 on MeshTet1 is not supported"


def test_unsupported_elements():
    usual = source_problem("tri P1", 3)
    for basis, word in bad_bases():
        with pytest.raises(fc.InputError, match=word):
            fc.EllipticSource(basis, parameters=usual.parameters, sensors=usual.sensors)


def test_operators_that_problems_share_are_read_only():
    """Two problems on one basis have one matrix of a conductivity: no caller may change it for the other."""
    basis = zoo.unit_basis("tri P1", 4)
    space, sensors = fc.FullSpace(basis), fc.PointSensors(basis, [[0.3, 0.6], [0.4, 0.7]])
    one, other = (fc.EllipticCoefficient(basis, parameters=space, sensors=sensors, source=f) for f in (1.0, 2.0))
    q = np.zeros(basis.N)
    A = one.derivatives(np.zeros(basis.N), q)[0]
    assert other.derivatives(np.zeros(basis.N), q)[0] is A
    with pytest.raises(ValueError, match="read-only"):
        A.data *= 2.0
