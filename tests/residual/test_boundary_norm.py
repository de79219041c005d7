"""The H^1/2 norm of a boundary defect: against exact minima, against finer meshes, and its honesty about its side."""

import numpy as np
import pytest
import zoo
from hypothesis import given, settings
from hypothesis import strategies as st
from plain import any_source
from scipy.sparse.linalg import spsolve
from skfem import Basis, BilinearForm, FacetBasis, condense
from skfem.element import ElementQuad1, ElementQuad2, ElementTriP1, ElementTriP2
from skfem.helpers import dot, grad
from skfem.mesh import MeshQuad, MeshTri
from zoo import ELEMENTS, LINES, PLANE

import femcert as fc
from femcert.residual.boundary import _lift_square
from femcert.residual.edges import Edges


def refined_square(name, level):
    kind, _, degree = ELEMENTS[name]
    return zoo.square(level, degree, kind)


def one(x):
    return 1.0 + 0.0 * x[0]


def zero(x):
    return 0.0 * x[0]


def least_norm(basis, values, *, a=one, c=zero, alpha=zero, dirichlet=None, robin=None):
    """Root of the minimum of the norm over a finite-element space with given boundary values; nothing of femcert's."""
    form = BilinearForm(lambda u, v, w: a(w.x) * dot(grad(u), grad(v)) + c(w.x) * u * v)
    K = form.assemble(Basis(basis.mesh, basis.elem, intorder=9))
    if robin is not None:
        edge = FacetBasis(basis.mesh, basis.elem, facets=robin, intorder=9)
        K = K + BilinearForm(lambda u, v, w: alpha(w.x) * u * v).assemble(edge)
    D = basis.get_dofs(facets=dirichlet) if dirichlet is not None else basis.get_dofs()
    v = np.zeros(basis.N)
    v[D.flatten()] = values[D.flatten()]
    A, b, x, free = condense(K, x=v, D=D)
    x[free] = spsolve(A.tocsc(), b)
    return float(np.sqrt(x @ (K @ x)))


def refined(basis, values, levels):
    """The same function on a finer nested mesh."""
    fine = Basis(basis.mesh.refined(levels), basis.elem)
    return fine, basis.interpolator(values)(fine.doflocs)


def sine_on_the_bottom(k):
    return lambda x: np.where(x[1] < 1e-9, np.sin(k * np.pi * x[0]), 0.0)


@pytest.mark.parametrize("name", PLANE)
def test_the_known_minimum_for_a_sine_on_one_side(name):
    # The harmonic extension is sin(k pi x) sinh(k pi (1 - y)) / sinh(k pi).
    for k in (1, 3):
        truth = np.sqrt(0.5 * k * np.pi / np.tanh(k * np.pi))
        excess = []
        for level in (4, 5):
            basis = refined_square(name, level)
            found = fc.boundary_norm(any_source(basis, dirichlet=sine_on_the_bottom(k)), np.zeros(basis.N))
            assert truth <= found.value <= 1.2 * truth
            excess.append(found.value - truth)
        # Halving the mesh: the unresolved part falls like h^(p + 1/2).
        assert excess[1] < 0.5 * excess[0]


@pytest.mark.parametrize("name", PLANE)
@pytest.mark.parametrize("norm", ["energy", "h1"])
def test_noise_on_the_boundary_against_a_finer_mesh(name, norm):
    basis = refined_square(name, 3)
    a = fc.Polynomial(lambda x: 1.0 + x[0] + x[0] * x[1], 2)
    c, alpha = fc.Polynomial(lambda x: 3.0 * x[1] ** 2, 2), fc.Polynomial(lambda x: 2.0 - x[1], 1)
    problem = any_source(
        basis, conductivity=a, reaction=c, dirichlet={"left": 0.0, "bottom": 0.0}, robin={"right": (alpha, 1.0)}
    )
    u = np.random.default_rng(0).standard_normal(basis.N)
    found = fc.boundary_norm(problem, u, norm=norm)
    assert found.side == "upper"
    u[problem.free] = 0.0

    def least(on, values):
        sides = on.mesh.boundaries
        weights = {"a": a, "c": c, "alpha": alpha, "robin": sides["right"]} if norm == "energy" else {"c": one}
        return least_norm(on, values, dirichlet=np.concatenate([sides["left"], sides["bottom"]]), **weights)

    reference, coarse = least(*refined(basis, u, 2)), least(basis, u)
    assert reference <= found.value <= 1.5 * reference
    assert found.value == pytest.approx(coarse, rel=1e-8)


@pytest.mark.parametrize("name", PLANE)
def test_pythagoras_of_the_error(name):
    """|||u* - u|||^2 = dual norm of the residual squared + boundary norm squared, for a discrete solution u*."""
    basis = refined_square(name, 3)
    problem = any_source(
        basis, conductivity=2.0, reaction=0.7, robin={"bottom": (3.0, 1.0)},
        dirichlet={"left": fc.Polynomial(lambda x: 1.0 + x[1], 1), "top": fc.Polynomial(lambda x: 2.0 - x[0], 1)},
    )  # fmt: skip
    rng = np.random.default_rng(1)
    q = rng.standard_normal(basis.N)
    exact = problem.solve(q)
    u = exact + rng.standard_normal(basis.N)
    r = problem.residual(u, q)[problem.free]
    dual = r @ problem.factor.solve(r)
    edge = fc.boundary_norm(problem, u)
    assert edge.side == "upper"
    error = (exact - u) @ (problem.operator @ (exact - u))
    assert dual + edge.value**2 == pytest.approx(error, rel=1e-9)
    assert edge.value**2 > 0.01 * error
    assert dual > 0.01 * error


@pytest.mark.parametrize("name", LINES)
def test_the_exact_minimum_on_a_line(name):
    basis = zoo.unit_basis(name, 40)
    u = np.where(basis.doflocs[0] < 1e-9, 3.0, 1.0)
    found = fc.boundary_norm(any_source(basis, dirichlet=lambda x: 0.5 + 0.0 * x[0]), u)
    assert found.side == "upper"
    assert found.value == pytest.approx(2.0, rel=1e-9)
    assert found.value >= 2.0
    found = fc.boundary_norm(any_source(basis, dirichlet=0.5), u, norm="h1")
    # v'' = v with v(0) = 2.5 and v(1) = 0.5.
    truth = np.sqrt((2.5**2 + 0.5**2) / np.tanh(1.0) - 2.0 * 2.5 * 0.5 / np.sinh(1.0))
    assert truth <= found.value <= 1.001 * truth
    robin = any_source(basis, dirichlet={"left": 0.0}, robin={"right": (2.0, 1.0)})
    # A straight line from 3 with slope s that minimizes s^2 + 2 (3 + s)^2.
    found = fc.boundary_norm(robin, u)
    assert found.value == pytest.approx(np.sqrt(6.0), rel=1e-9)
    assert found.value >= np.sqrt(6.0)


@pytest.mark.parametrize("apex", [(0.3, 0.5), (-0.4, 0.2), (1.7, 1.1)])
def test_the_lift_over_one_edge_by_brute_force(apex):
    corners = np.array([[0.0, 1.5, apex[0]], [0.0, 0.0, apex[1]]])
    basis = Basis(MeshTri(corners, np.array([[0], [1], [2]])), ElementTriP2())
    facet = [f for f in range(3) if set(basis.mesh.facets[:, f]) == {0, 1}]
    edges = Edges(basis, np.array(facet))
    elements, apexes = edges.apexes()
    assert elements == [0]
    np.testing.assert_array_equal(apexes[:, 0, 0], apex)
    s = edges.arc
    b, db = s * (1.5 - s) * (1.0 + s), 1.5 + s - 3.0 * s**2
    found = _lift_square(edges, b, db, apexes[:, 0], np.array([2.0]), np.array([5.0]))
    # v at x: the ray from the apex through x meets the edge at s.
    fine = Basis(basis.mesh.refined(6), ElementTriP1(), intorder=4)
    x = np.asarray(fine.global_coordinates())

    def v(x):
        t = x[1] / apex[1]
        s = (x[0] - t * apex[0]) / (1.0 - t)
        return (1.0 - t) * s * (1.5 - s) * (1.0 + s)

    h = 1e-6
    slopes = [(v(x + h * e) - v(x - h * e)) / (2.0 * h) for e in np.eye(2)[:, :, None, None]]
    expected = np.sum(fine.dx * (2.0 * (slopes[0] ** 2 + slopes[1] ** 2) + 5.0 * v(x) ** 2))
    assert found[0] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("mesh", [MeshTri, MeshQuad])
@pytest.mark.parametrize("norm", ["energy", "h1"])
def test_what_the_mesh_does_not_resolve(mesh, level, norm):
    """u is the nodal interpolant, so that only g - g_h is left; in corners two edges share an element."""
    element = {MeshTri: (ElementTriP1, ElementTriP2), MeshQuad: (ElementQuad1, ElementQuad2)}[mesh]
    base = mesh().refined(1 + level)
    distorted = base.translated((0.0, 0.0))
    distorted.p[:, distorted.interior_nodes()] += 0.1 / 2**level * np.array([[0.7], [-0.4]])
    basis = Basis(distorted, element[0]())

    def g(x):
        return x[0] ** 2 - 2.0 * x[0] * x[1] - 3.0 * x[1] ** 2

    problem = any_source(basis, conductivity=2.0, dirichlet=fc.Polynomial(g, 2))
    found = fc.boundary_norm(problem, problem.boundary.values, norm=norm)
    assert found.side == "upper"
    quadratic = Basis(distorted, element[1]())
    bubble = g(quadratic.doflocs) - basis.interpolator(g(basis.doflocs))(quadratic.doflocs)
    bubble[np.setdiff1d(np.arange(quadratic.N), quadratic.get_dofs().flatten())] = 0.0
    fine, values = refined(quadratic, bubble, 3 - level)
    reference = least_norm(fine, values, **({"a": lambda x: 2.0 * one(x)} if norm == "energy" else {"c": one}))
    assert reference <= found.value <= 3.0 * reference


@pytest.mark.parametrize("name", PLANE)
def test_values_in_the_space_leave_nothing_unresolved(name):
    basis = refined_square(name, 2)
    problem = any_source(basis, dirichlet=fc.Polynomial(lambda x: 1.0 + 2.0 * x[0] - x[1], 1))
    found = fc.boundary_norm(problem, problem.solve(np.zeros(basis.N)))
    assert found.side == "upper"
    # g up to 3 and its trace differ by 4 roundings b, and differentiation makes db of them, with db >= b / h. Edges
    # are as long as their triangles are high: a lift is sqrt(h/2 int db² + (b/h + db)²), and two may share a triangle.
    edges = Edges(basis, basis.mesh.boundary_facets())
    slopes = [np.abs(edges.slope(np.tile(row, (len(edges.arc), 1)))) for row in np.eye(edges.arc.shape[1])]
    db = 4 * 3 * np.finfo(float).eps * np.sum(slopes, axis=0)
    assert found.value <= np.sqrt(5.0 * np.sum(edges.length * edges.integral(db**2)))
    assert fc.boundary_norm(any_source(basis, dirichlet=2.5), np.full(basis.N, 2.5)).value == 0.0


@pytest.mark.parametrize("sign", ["any", "nonnegative", "positive"])
@pytest.mark.parametrize("slot", ["conductivity", "reaction"])
def test_coefficients_that_are_fields_of_elements_count_with_their_values(slot, sign):
    basis = Basis(MeshTri().refined(3), ElementTriP1())
    given = {"conductivity": 1.0, "reaction": 0.0, slot: 1e4}
    g = fc.Polynomial(lambda x: 4.0 * x[0] * (1.0 - x[0]), 2)

    class Own(fc.LinearProblem):
        def strong(self, parameter):
            parts = {name: fc.Given(value, name) for name, value in given.items()}
            parts[slot] = fc.Interpolant(self.basis, np.full(self.basis.N, 1e4), sign)
            source = fc.Interpolant(self.parameters.basis, self.check_parameter(parameter))
            return fc.StrongForm(parts["conductivity"], parts["reaction"], source, self.boundary)

    form = BilinearForm(lambda u, v, w: given["conductivity"] * dot(grad(u), grad(v)) + given["reaction"] * u * v)
    shipped = any_source(basis, dirichlet=g, **given)
    own = Own(
        basis, operator=form, parameters=shipped.parameters, sensors=shipped.sensors, dirichlet=g, definite=True
    )
    u = shipped.solve(np.ones(basis.N))
    found, expected = (fc.boundary_norm(problem, u) for problem in (own, shipped))
    assert found.side == expected.side == "upper"
    assert found.value == pytest.approx(expected.value, rel=1e-9)
    assert expected.value > 0.1


def test_a_constant_defect_has_no_energy():
    basis = Basis(MeshTri().refined(4), ElementTriP1())
    problem = any_source(basis, dirichlet=1.0)
    assert 0.0 < fc.boundary_norm(problem, np.full(basis.N, 3.0)).value < 1e-10
    of_h1 = fc.boundary_norm(problem, np.full(basis.N, 3.0), norm="h1")
    assert of_h1.value == pytest.approx(np.sqrt(0.9 * 4.0), rel=0.1)


def test_no_dirichlet_condition_no_defect():
    basis = zoo.square(2)
    problem = any_source(basis, reaction=1.0, dirichlet={})
    found = fc.boundary_norm(problem, np.ones(basis.N))
    assert (found.value, found.side) == (0.0, "upper")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"dirichlet": lambda x: np.abs(x[0] - 0.37)}, "the Dirichlet value on 'boundary' is a function of which"),
        ({"conductivity": lambda x: 1.5 + np.sin(5.0 * x[0])}, "the conductivity is a function of which"),
        ({"reaction": lambda x: np.exp(3.0 * x[0])}, "the reaction is a function of which only samples are known"),
        ({"dirichlet": {"left": 0.0}, "robin": {"right": (lambda x: np.sqrt(x[1] + 1e-3), 0.0)}}, "Robin coefficient"),
    ],
)
def test_what_is_not_exact_is_an_estimate(options, reason):
    basis = zoo.square(2)
    found = fc.boundary_norm(any_source(basis, **options), 1.0 + basis.doflocs[0] * basis.doflocs[1])
    assert found.side == "estimate"
    assert reason in found.source
    assert found.value > 0.01


@pytest.mark.parametrize("norm", ["energy", "h1"])
def test_skewed_quadrilaterals(norm):
    mesh = MeshQuad().refined(2)
    inside = mesh.interior_nodes()
    mesh.p[:, inside] += np.random.default_rng(2).uniform(-0.06, 0.06, (2, len(inside)))
    basis = Basis(mesh, ElementQuad1())
    problem = any_source(basis, reaction=1.0, dirichlet=0.0)
    u = np.random.default_rng(3).standard_normal(basis.N)
    found = fc.boundary_norm(problem, u, norm=norm)
    assert found.side == "upper"
    v = np.zeros(basis.N)
    D = problem.boundary.prescribed
    v[D] = u[D]
    form = BilinearForm(lambda u, v, w: dot(grad(u), grad(v)) + u * v)
    # The same lift, integrated with many more points.
    lift = v.copy()
    K = form.assemble(basis)
    lift[problem.free] = spsolve(K[problem.free][:, problem.free].tocsc(), -(K @ v)[problem.free])
    exact = form.assemble(Basis(mesh, ElementQuad1(), intorder=40))
    truth = np.sqrt(lift @ (exact @ lift))
    assert truth <= found.value <= truth * (1.0 + 1e-6)


@pytest.mark.parametrize("space", ["regions", "modes"])
def test_the_energy_of_a_coefficient_problem(space):
    basis = zoo.square(3)
    halves = [np.flatnonzero(basis.mesh.p[0, basis.mesh.t].mean(axis=0) < 0.5)]
    halves.append(np.setdiff1d(np.arange(basis.mesh.nelements), halves[0]))
    parameters = fc.RegionSpace(basis, halves) if space == "regions" else fc.SineSpace(basis, 2)
    problem = zoo.coefficient(basis, parameters=parameters, sensors=[[0.4, 0.3]], source=1.0)
    q = parameters.field([1.0, -1.0])
    u = np.random.default_rng(4).standard_normal(basis.N)
    found = fc.boundary_norm(problem, u, parameter=q)
    assert found.side == "upper"
    on = basis.with_element(parameters.basis.elem)
    fine = Basis(basis.mesh, basis.elem, intorder=14)
    form = BilinearForm(lambda u, v, w: np.exp(w["q"]) * dot(grad(u), grad(v)))
    K = form.assemble(fine, q=fine.with_element(on.elem).interpolate(q))
    A, b, x, free = condense(K, x=np.where(np.isin(np.arange(basis.N), problem.free), 0.0, u), D=basis.get_dofs())
    x[free] = spsolve(A.tocsc(), b)
    truth = np.sqrt(x @ (K @ x))
    assert truth <= found.value * (1.0 + 1e-13)
    assert found.value <= truth * (1.0 + 1e-4)
    with pytest.raises(fc.InputError, match="depends on the parameter"):
        fc.boundary_norm(problem, u)
    assert fc.boundary_norm(problem, u, norm="h1").side == "upper"


def test_heat_takes_the_largest_over_the_times():
    basis = zoo.square(2)
    problem = zoo.heat(basis, parameters=2, sensors=[[0.4, 0.3]], times=[0.1, 0.2], diffusivity=2.0, steps=4)
    rng = np.random.default_rng(5)
    u = rng.standard_normal((basis.N, 5))
    each = [least_norm(basis, v, a=lambda x: 2.0 * one(x)) for v in u.T]
    assert fc.boundary_norm(problem, u).value == pytest.approx(max(each), rel=1e-9)
    assert fc.boundary_norm(problem, problem.solve(np.ones(basis.N))).value == 0.0


def test_forms_of_the_user_s_own():
    basis = zoo.square(2)
    common = {"parameters": fc.SineSpace(basis, 2), "sensors": fc.PointSensors(basis, [[0.4, 0.3]])}
    drift = BilinearForm(lambda u, v, w: dot(grad(u), grad(v)) + u.grad[0] * v)
    stiff = BilinearForm(lambda u, v, w: dot(grad(u), grad(v)))
    u = np.random.default_rng(6).standard_normal(basis.N)
    problem = fc.LinearProblem(basis, operator=drift, **common)
    with pytest.raises(fc.UncertifiedError, match="norm='h1'"):
        fc.boundary_norm(problem, u)
    model = fc.EllipticSource(basis, **common)
    assert fc.boundary_norm(problem, u, norm="h1").value == pytest.approx(fc.boundary_norm(model, u, norm="h1").value)
    definite = fc.LinearProblem(basis, operator=stiff, definite=True, **common)
    found = fc.boundary_norm(definite, u)
    assert (found.side, "norm of the operator" in found.source) == ("estimate", True)
    assert found.value == pytest.approx(fc.boundary_norm(model, u).value, rel=1e-10)
    square = fc.Polynomial(lambda x: x[0] ** 2, 2)
    curved = fc.LinearProblem(basis, operator=stiff, definite=True, dirichlet=square, **common)
    with pytest.raises(fc.UncertifiedError, match="does not resolve the Dirichlet value"):
        fc.boundary_norm(curved, u)
    pulled = stiff.assemble(basis).tolil()
    pulled[0, 0] = -100.0
    indefinite = fc.LinearProblem(basis, operator=pulled.tocsr(), definite=True, **common)
    with pytest.raises(fc.UncertifiedError, match="definite only on the free dofs"):
        fc.boundary_norm(indefinite, np.eye(basis.N)[0])
    linear = fc.Polynomial(lambda x: x[0], 1)
    straight = fc.LinearProblem(basis, operator=stiff, definite=True, dirichlet=linear, **common)
    assert fc.boundary_norm(straight, u).side == "estimate"


SMALL = any_source(zoo.square(2, 2, "quad"), conductivity=3.0, dirichlet=0.0)
vectors = st.integers(0, 2**32 - 1).map(lambda seed: np.random.default_rng(seed).standard_normal(SMALL.basis.N))


@settings(max_examples=30, deadline=None)
@given(u=vectors, v=vectors, factor=st.floats(-1e3, 1e3))
def test_it_is_a_norm_of_the_boundary_values(u, v, factor):
    size = fc.boundary_norm(SMALL, u).value
    assert fc.boundary_norm(SMALL, factor * u).value == pytest.approx(abs(factor) * size, rel=1e-9)
    assert fc.boundary_norm(SMALL, u + v).value <= (size + fc.boundary_norm(SMALL, v).value) * (1.0 + 1e-10)
    inside = u.copy()
    inside[SMALL.free] = v[SMALL.free]
    assert fc.boundary_norm(SMALL, inside).value == size
