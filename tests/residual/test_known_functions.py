"""Samples prove nothing about a function: what is not declared gives estimates, what is declared gives bounds."""

import numpy as np
import pytest
import zoo
from plain import any_coefficient, any_heat, any_source
from skfem import Basis, BilinearForm, LinearForm, condense, solve
from skfem.element import ElementLineP1, ElementLineP2, ElementTriP1, ElementTriP2, ElementTriRT1
from skfem.helpers import dot, grad
from skfem.mesh import MeshLine, MeshTri
from zoo import source

import femcert as fc
from femcert.residual.boundary import refuse_unresolved
from femcert.residual.quadrature import shape_of

SIDES = {name: zoo.SIDES[name] for name in ("left", "right")}


def solved(problem):
    q = np.ones(problem.parameters.basis.N)
    return fc.Candidate(problem.solve(q), q)


def layer(x, centre=0.0094, width=0.0012):
    """1, and a hundredth of it in a layer that few points see."""
    return np.where(np.abs(x[0] - centre) < width / 2.0, 0.01, 1.0)


def flux_error(problem, state, a, order=200):
    """Energy error of a state of ``-(a u')' = 1``, ``u(0) = u(1) = 0``: the flux is ``C - x``."""
    x, w = np.polynomial.legendre.leggauss(order)
    vertices = np.sort(problem.basis.mesh.p[0])
    nodes = np.unique(np.r_[vertices, 0.0094 - 0.0006, 0.0094 + 0.0006])
    left, right = nodes[:-1, None], nodes[1:, None]
    points, dx = left + (right - left) * (x + 1.0) / 2.0, (right - left) * w / 2.0
    k = a(points[None])
    C = np.sum(points / k * dx) / np.sum(dx / k)
    step = 1e-7 * (right - left)
    u = problem.basis.interpolator(state)
    middle = (left + right) / 2.0
    if problem.basis.elem.maxdeg == 1:
        slope = (u((middle + step).T) - u((middle - step).T)).reshape(-1, 1) / (2.0 * step)
    else:
        at = [u(e.reshape(1, -1)).reshape(-1, 1) for e in (left + step, middle, right - step)]
        h = (right - left) / 2.0 - step
        slope = (at[2] - at[0]) / (2.0 * h) + (at[2] - 2.0 * at[1] + at[0]) / h**2 * (points - middle)
    return float(np.sqrt(np.sum((C - points - k * slope) ** 2 / k * dx)))


def test_a_layer_between_the_sample_points_is_no_bound():
    basis = zoo.unit_basis("line P1", 32)
    problem = source(basis, conductivity=layer, sensors=[[0.2], [0.5], [0.7]])
    candidate = solved(problem)
    found = fc.dual_norm(problem, candidate)
    # The number is wrong, and now it is called what it is.
    assert found.upper.value < 0.7 * flux_error(problem, candidate.state, layer)
    assert (found.upper.side, found.lower.side) == ("estimate", "estimate")
    assert "the conductivity is a function of which only samples are known" in found.upper.source
    assert "fc.Polynomial(function, degree, error=0.0)" in found.upper.source
    with pytest.raises(fc.UncertifiedError, match=r"the conductivity is a function.*fc\.Polynomial"):
        fc.stability(problem, guarantee="continuous")
    # What is said of the discretized problem stays true: its quadrature is part of it.
    assert fc.stability(problem).constant.side == "upper"


@pytest.mark.parametrize("degree", [2, 4, 6])
@pytest.mark.parametrize("element", [ElementLineP1, ElementLineP2])
def test_contrast_hides_no_variation(element, degree):
    wave = np.polynomial.Chebyshev.basis(degree)

    def weak(x):
        return 1.0 + 0.004 * wave(4.0 * x[0] - 3.0)

    mesh = MeshLine(np.linspace(0.0, 1.0, 3)).with_subdomains({"strong": np.array([0]), "weak": np.array([1])})
    basis = Basis(mesh, element())
    table = {"strong": 9e11, "weak": fc.Polynomial(weak, degree)}
    shape = shape_of(fc.Given(table, "conductivity", "positive"), mesh)
    assert shape.degree == degree
    assert shape.spread[1] >= 0.004
    problem = any_source(basis, conductivity=table)
    candidate = solved(problem)
    truth = flux_error(problem, candidate.state, lambda x: np.where(x[0] < 0.5, 9e11, weak(x)))
    found = fc.dual_norm(problem, candidate)
    assert (found.upper.side, found.lower.side) == ("upper", "lower")
    # The slopes of the truth are differences.
    slack = 1e-6
    assert found.lower.value <= truth * (1.0 + slack)
    assert truth * (1.0 - slack) <= found.upper.value <= truth * (1.0 + slack)


@pytest.mark.parametrize("exponential", [False, True])
def test_a_field_of_high_contrast_is_what_it_is(exponential):
    # Eight thousandths in the weak part, 9e11 in the strong one.
    mesh = MeshTri().refined(3)
    basis = Basis(mesh, ElementTriP1())
    strong = basis.doflocs[0] < 0.5
    q = np.where(strong, 9e11, 1.0 + 0.008 * basis.doflocs[1])
    problem = any_coefficient(basis, transform="exp" if exponential else "identity")
    shape = shape_of(problem.strong(np.log(q) if exponential else q).conductivity, mesh)
    weak = np.all(~strong[basis.element_dofs], axis=0)
    assert shape.degree == 1
    assert shape.spread[weak].min() > 1e-5


def ramp(x):
    return 1.0 + x[0]


def bent(x):
    return 1.0 + x[0] ** 2


RAMP = fc.Polynomial(ramp, 1)
LINE, TRI = MeshLine().refined(3), MeshTri().refined(2)
HALVES = TRI.with_subdomains({"one": lambda x: x[0] < 0.5, "two": lambda x: x[0] > 0.5})


def basis_on(mesh):
    return Basis(mesh.with_boundaries(SIDES), (ElementLineP1 if mesh.dim() == 1 else ElementTriP1)())


def both(problem):
    found = fc.dual_norm(problem, solved(problem))
    return found.upper, found.lower


def dual(mesh=TRI, **options):
    return both(any_source(basis_on(mesh), **options))


def by_method(method, f):
    problem = any_source(basis_on(TRI), conductivity=f)
    return [fc.dual_norm(problem, solved(problem), method).best]


def flux_checker(f):
    problem = any_source(basis_on(TRI), conductivity=f)
    flux = Basis(problem.basis.mesh, ElementTriRT1())
    return [fc.flux_majorant(problem, solved(problem), (flux, np.zeros(flux.N))).bound]


def heat(mesh, f):
    problem = any_heat(basis_on(mesh), times=0.1, steps=2, diffusivity=f)
    q = np.ones(problem.basis.N)
    found = fc.space_time_norm(problem, fc.Candidate(problem.trajectory(q), q))
    return found.upper, found.lower, found.residual


def edge(**given):
    problem = any_source(basis_on(TRI), **given)
    return [fc.boundary_norm(problem, np.ones(problem.basis.N))]


PLACES = {
    "conductivity": lambda f: dual(conductivity=f),
    "table of conductivities": lambda f: dual(HALVES, conductivity={"one": 2.0, "two": f})[:1],
    "conductivity on a line": lambda f: dual(LINE, conductivity=f),
    "conductivity, method riesz": lambda f: by_method("riesz", f),
    "conductivity, method enriched": lambda f: by_method("enriched", f),
    "conductivity, given flux": flux_checker,
    "reaction": lambda f: dual(reaction=f),
    "source": lambda f: both(any_coefficient(basis_on(TRI), source=f))[:1],
    "neumann": lambda f: dual(neumann={"right": f}),
    "robin coefficient": lambda f: dual(robin={"right": (f, 0.0)}),
    "robin value": lambda f: dual(robin={"right": (1.0, f)}),
    "diffusivity on a line": lambda f: heat(LINE, f),
    "diffusivity": lambda f: heat(TRI, f),
    "boundary norm: dirichlet": lambda f: edge(dirichlet=f),
    "boundary norm: conductivity": lambda f: edge(conductivity=f),
    "boundary norm: reaction": lambda f: edge(reaction=f),
    "boundary norm: robin": lambda f: edge(robin={"right": (f, 0.0)}),
}


@pytest.mark.parametrize("place", PLACES)
def test_wherever_a_function_is_given(place):
    for unknown in (ramp, bent, lambda x: 0.0 * x[0] + 2.0):
        for bound in PLACES[place](unknown):
            assert bound.side == "estimate"
            assert "is a function of which only samples are known" in bound.source
            assert "fc.Polynomial(function, degree, error=0.0)" in bound.source
    for known in (2.0, RAMP, fc.Polynomial(bent, 2), fc.Polynomial(bent, 3)):
        assert {bound.side for bound in PLACES[place](known)} <= {"upper", "lower"}


@pytest.mark.parametrize("place", ["conductivity", "reaction", "source", "conductivity on a line", "diffusivity"])
def test_an_error_widens_the_bounds(place):
    plain, wide, wider = (PLACES[place](fc.Polynomial(ramp, 1, error)) for error in (0.0, 1e-4, 1e-3))
    for a, b, c in zip(plain, wide, wider, strict=True):
        assert a.side == b.side == c.side
        assert a.value < b.value < c.value if a.side == "upper" else a.value > b.value > c.value


@pytest.mark.parametrize("place", ["neumann", "robin coefficient", "robin value", "conductivity, given flux",
                                   "boundary norm: dirichlet", "boundary norm: robin"])  # fmt: skip
def test_where_an_error_cannot_be_included_there_is_no_bound(place):
    for bound in PLACES[place](fc.Polynomial(ramp, 1, 1e-4)):
        assert bound.side == "estimate"
        assert "declared error" in bound.source


def dual_square(fine, coarse, state, a, c, f):
    """The squared dual norm of the residual of a state, on a space so fine that it is nearly that of all functions."""
    u = fine.interpolate(coarse.interpolator(state)(fine.doflocs))
    K = BilinearForm(lambda v, w, p: a(p.x) * dot(grad(v), grad(w)) + c(p.x) * v * w).assemble(fine)
    r = LinearForm(lambda v, p: f(p.x) * v - a(p.x) * dot(grad(p["u"]), grad(v)) - c(p.x) * p["u"] * v).assemble(
        fine, u=u
    )
    z = solve(*condense(K, r, D=fine.get_dofs()))
    return float(z @ r)


def one(x):
    return 1.0 + 0.0 * x[0]


def nothing(x):
    return 0.0 * x[0]


@pytest.mark.parametrize("which", ["conductivity", "reaction"])
@pytest.mark.parametrize("kind", ["line", "tri"])
def test_bounds_hold_for_every_function_within_the_error(kind, which):
    mesh = MeshLine().refined(3) if kind == "line" else MeshTri().refined(2)
    basis = Basis(mesh, (ElementLineP1 if kind == "line" else ElementTriP1)())
    error = 0.02

    def wave(x):
        return ramp(x) + error * np.sin(37.0 * x[0])

    problem = any_source(basis, **{which: fc.Polynomial(wave, 1, error)})
    candidate = solved(problem)
    fine = Basis(mesh.refined(4 if kind == "line" else 3), (ElementLineP2 if kind == "line" else ElementTriP2)(),
                 intorder=8)  # fmt: skip
    for true in (wave, ramp, lambda x: ramp(x) - error, lambda x: ramp(x) + error * np.sign(np.sin(23.0 * x[0]))):
        a, c = (true, nothing) if which == "conductivity" else (one, true)
        truth = np.sqrt(dual_square(fine, basis, candidate.state, a, c, one))
        found = fc.dual_norm(problem, candidate)
        assert (found.upper.side, found.lower.side) == ("upper", "lower")
        assert found.lower.value <= truth * 1.002
        assert truth <= found.upper.value <= 3.0 * truth


def test_an_error_as_large_as_the_coefficient_proves_nothing():
    upper, _ = dual(conductivity=fc.Polynomial(ramp, 1, 1.5))
    assert (upper.side, "may vanish" in upper.source) == ("estimate", True)
    upper, _ = dual(reaction=fc.Polynomial(lambda x: x[0], 1, 1e-3))
    assert (upper.side, "the reaction may vanish" in upper.source) == ("estimate", True)


def test_a_declaration_that_samples_contradict_is_refused():
    with pytest.raises(fc.InputError, match="conductivity is declared as a polynomial of degree 1 with error 0, but"):
        dual(conductivity=fc.Polynomial(lambda x: 1.0 + x[0] ** 2, 1))
    assert dual(conductivity=fc.Polynomial(lambda x: 1.0 + x[0] ** 2, 1, 0.02))[0].side == "upper"
    # Polynomials on the elements are enough: a kink may lie between them.
    assert dual(conductivity=fc.Polynomial(lambda x: 1.0 + np.abs(x[0] - 0.5), 1))[0].side == "upper"


def test_degrees_beyond_the_rules_are_estimates():
    upper, _ = dual(conductivity=fc.Polynomial(lambda x: 2.0 + x[0] ** 12, 12))
    assert upper.side == "estimate"
    assert "declared to have the degree 12; the rules are for degrees up to 8" in upper.source


def test_values_at_the_ends_of_a_line_are_known():
    # There the boundary is two points, and a function at a point is a number.
    mesh = MeshLine().refined(3).with_boundaries(SIDES)
    problem = any_source(
        Basis(mesh, ElementLineP1()), dirichlet={"left": lambda x: 1.0 + x[0]}, robin={"right": (ramp, ramp)}
    )
    candidate = solved(problem)
    assert fc.dual_norm(problem, candidate).upper.side == "upper"
    assert fc.boundary_norm(problem, candidate.state).side == "upper"


@pytest.mark.parametrize("strong", [1.0, 1e12])
def test_strong_edges_hide_nothing_on_weak_ones(strong):
    # Linear on the strong sides, quadratic on a weak one, which linear elements do not attain.
    def value(x):
        return np.where(x[0] < 1e-9, strong, np.where(x[0] > 1.0 - 1e-9, 1.0 + x[1] ** 2, 0.0))

    mesh = MeshTri().refined(2).with_boundaries(SIDES)
    basis = Basis(mesh, ElementTriP1())
    edges = fc.Polynomial(value, 2)
    problem = any_source(basis, dirichlet={"left": edges, "right": edges})
    with pytest.raises(fc.UncertifiedError, match="no finite-element state attains the Dirichlet value on 'right'"):
        refuse_unresolved(problem)
    both = mesh.with_boundaries({"both": lambda x: (x[0] < 1e-9) | (x[0] > 1.0 - 1e-9)})
    problem = any_source(Basis(both, ElementTriP1()), dirichlet={"both": edges})
    with pytest.raises(fc.UncertifiedError, match="no finite-element state attains the Dirichlet value on 'both'"):
        refuse_unresolved(problem)


def test_heat_with_a_dirichlet_value_that_is_a_function():
    basis = zoo.square(2)
    q = np.ones(basis.N)
    for zero, side in ((0.0, "upper"), (nothing, "estimate"), (fc.Polynomial(nothing, 3), "estimate")):
        problem = any_heat(basis, times=0.1, steps=2, dirichlet=zero)
        found = fc.space_time_norm(problem, fc.Candidate(problem.trajectory(q), q)).upper
        assert found.side == side
        assert ("known to vanish at the dofs only" in found.source) == (side == "estimate")
