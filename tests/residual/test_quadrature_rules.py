"""Claims about quadrature are true: against rules of order 79 from scikit-fem bases, for every kind of coefficient."""

import numpy as np
import pytest
import zoo
from skfem import Basis, MeshLine, MeshQuad, MeshTri
from skfem import element as shapes

import femcert as fc
from femcert.mesh.sample import Sampler
from femcert.problem.strong import Exponential
from femcert.residual.quadrature import MOST_ORDER, choose_rule, maximum_of, shape_of

ELEMENTS = {
    "line": (shapes.ElementLineP1, shapes.ElementLineP2, shapes.ElementLinePp(2), shapes.ElementLinePp(3)),
    "tri": (shapes.ElementTriP1, shapes.ElementTriP2, shapes.ElementTriP2(), shapes.ElementTriP3()),
    "quad": (shapes.ElementQuad1, shapes.ElementQuad2, shapes.ElementQuad2(), shapes.ElementQuadP(3)),
}
ELEMENTS["bent"] = ELEMENTS["quad"]
COEFFICIENTS = {
    "constant": 1.7,
    "per element": "per element",
    "P1": ("P1", False),
    "P2": ("P2", False),
    "exp P1": ("P1", True),
    "exp P2": ("P2", True),
    "linear": fc.Polynomial(lambda x: 1.5 + x[0] - 0.6 * x[-1], 1),
    "quartic": fc.Polynomial(lambda x: 1.0 + 0.4 * x[0] ** 3 * x[-1], 4),
}
WILD = {
    "exponential": lambda x: np.exp(3.0 * x[0]),
    "sine": lambda x: 2.0 + np.sin(9.0 * (x[0] + x[-1])),
    "crease": lambda x: 1.0 + np.abs(x[0] - 0.51),
    "cut": lambda x: np.where(x[0] < 0.51, 1.0, 3.0),
}


def a_mesh(kind, level=1, seed=0):
    rng = np.random.default_rng(seed)
    first = {"line": MeshLine, "tri": MeshTri, "quad": MeshQuad, "bent": MeshQuad}[kind]
    mesh = first().refined(level + (kind == "line"))
    if kind == "quad":
        return MeshQuad(np.array([[1.0, 0.3], [0.1, 0.8]]) @ mesh.p, mesh.t)
    points = mesh.p.copy()
    inner = mesh.interior_nodes()
    points[:, inner] += 0.15 * 0.5**level * rng.uniform(-1, 1, (len(points), len(inner)))
    return type(mesh)(points, mesh.t)


def a_field(mesh, kind, name, size=0.2, seed=1):
    """A conductivity by its name in COEFFICIENTS or WILD."""
    given = {**COEFFICIENTS, **WILD}[name]
    rng = np.random.default_rng(seed)
    if name == "per element":
        return fc.Given(rng.uniform(0.5, 2.0, mesh.nelements), "a", "positive")
    if not isinstance(given, tuple):
        return fc.Given(given, "a", "positive")
    basis = Basis(mesh, ELEMENTS[kind][int(given[0][1]) - 1]())
    values = size * rng.uniform(-0.5, 0.5, basis.N)
    kind = Exponential if given[1] else fc.Interpolant
    return kind(basis, values if given[1] else 1.0 + values, "positive")


def reference_rule(dimension, triangle, n=40):
    g, w = np.polynomial.legendre.leggauss(n)
    g, w = (g + 1) / 2, w / 2
    if dimension == 1:
        return g[None], w
    x, y = (part.ravel() for part in np.meshgrid(g, g, indexing="ij"))
    weights = np.outer(w, w).ravel()
    return (np.array([x, y * (1 - x)]), weights * (1 - x)) if triangle else (np.array([x, y]), weights)


def evaluate(field, quadrature, mesh):
    """A coefficient at the points of a rule, without femcert's sampler."""
    if isinstance(field, fc.Interpolant):
        values = np.asarray(Basis(mesh, field.basis.elem, quadrature=quadrature).interpolate(field.dofs))
        return np.exp(values) if field.exponential else values
    if callable(field.value):
        elem = mesh.elem()
        return field.value(np.asarray(Basis(mesh, elem, quadrature=quadrature).global_coordinates()))
    return np.broadcast_to(np.reshape(field.value, (-1, 1)), (mesh.nelements, len(quadrature[1])))


def polynomials(X, degree, triangle, rng):
    """A random polynomial on the reference element for each dimension."""
    powers = np.stack(np.meshgrid(*[np.arange(degree + 1)] * len(X), indexing="ij"), -1).reshape(-1, len(X))
    if triangle:
        powers = powers[powers.sum(axis=1) <= degree]
    P = np.array([np.prod((2 * X - 1) ** p[:, None], axis=0) for p in powers])
    return np.array([rng.standard_normal(len(P)) @ P for _ in range(len(X))])


def misfit(basis, field, quadrature, u, degree, *, energy, seed=2):
    """``A^-1 |p - a grad u|²`` integrated over each element, and the same for p and a grad u apart."""
    mesh = basis.mesh
    B = Basis(mesh, basis.elem, quadrature=quadrature)
    X, dx = quadrature[0], np.asarray(B.dx)
    a = evaluate(field, quadrature, mesh)
    slope = np.asarray(B.interpolate(u).grad)
    p = polynomials(X, degree, mesh.t.shape[0] == 3, np.random.default_rng(seed))[:, None]
    if mesh.t.shape[0] == 4:
        J, det = B.mapping.DF(X), B.mapping.detDF(X)
        p = np.einsum("ijkq,jlq->ikq", J, p) / det
    p = p * np.abs(u).mean() * 2.0
    A = a if energy else np.ones_like(a)
    whole = np.sum(np.sum((p - a * slope) ** 2, axis=0) / A * dx, axis=1)
    return whole, np.sum((np.sum(p**2, axis=0) + np.sum((a * slope) ** 2, axis=0)) / A * dx, axis=1)


def rules_of(basis, a, *, energy, c=0.0, light=False):
    source = fc.Interpolant(basis, np.ones(basis.N))
    problem = zoo.source(basis, parameters=fc.FullSpace, sensors=np.full((1, basis.mesh.dim()), 0.41))
    return choose_rule(fc.StrongForm(a, fc.Given(c, "c"), source, problem.boundary), basis, energy=energy, light=light)


def test_no_rule_is_exact_for_a_reaction_or_source_that_is_an_exponential():
    basis = zoo.square(2)
    boundary = zoo.source(basis, parameters=fc.FullSpace, sensors=[[0.4, 0.4]]).boundary
    grows, plain = Exponential(basis, basis.doflocs[0]), fc.Interpolant(basis, np.ones(basis.N))
    a, none = fc.Given(1.0, "a"), fc.Given(0.0, "c")
    for c, f in ((grows, plain), (none, grows)):
        assert choose_rule(fc.StrongForm(a, c, f, boundary), basis, energy=True).doubt
    assert not choose_rule(fc.StrongForm(a, none, plain, boundary), basis, energy=True).doubt


@pytest.mark.parametrize("sign", ["any", "nonnegative", "positive"])
@pytest.mark.parametrize("kind", ELEMENTS)
def test_no_value_of_a_field_of_elements_is_above_its_maximum(kind, sign):
    mesh = a_mesh(kind)
    for element in ELEMENTS[kind][:2]:
        basis = Basis(mesh, element())
        field = fc.Interpolant(basis, np.random.default_rng(0).uniform(1.0, 3.0, basis.N), sign)
        values = Sampler(mesh, 12).values(basis, field.dofs)
        above, doubt = maximum_of(field, mesh)
        assert not doubt
        assert np.all(values.max(axis=1) <= above * (1.0 + 1e-12))


def quadrature_of(mesh, rule):
    sampler = Sampler(mesh, rule.order)
    return sampler.X, sampler.W


@pytest.mark.parametrize("name", COEFFICIENTS)
@pytest.mark.parametrize("energy", [True, False], ids=["energy", "h1"])
@pytest.mark.parametrize("kind", ELEMENTS)
@pytest.mark.parametrize("degree", [1, 2])
def test_the_misfit_of_fluxes(kind, degree, energy, name):
    mesh = a_mesh(kind)
    basis = Basis(mesh, ELEMENTS[kind][degree - 1]())
    a = a_field(mesh, kind, name)
    rule = rules_of(basis, a, energy=energy)
    u = np.random.default_rng(3).standard_normal(basis.N)
    reference = reference_rule(mesh.dim(), kind == "tri")
    found, size = misfit(basis, a, quadrature_of(mesh, rule), u, degree + 1, energy=energy)
    truth, _ = misfit(basis, a, reference, u, degree + 1, energy=energy)
    allowed = 2.0 * rule.remainder * size if rule.separate else rule.remainder * found
    assert rule.exact or (mesh.t.shape[0] == 4 and "exp" in name)
    assert rule.order <= MOST_ORDER[mesh.t.shape[0]]
    if rule.exact:
        assert np.all(np.abs(found - truth) <= allowed + 1e-11 * size)
    if name in ("constant", "per element", "P1", "exp P1", "linear") and rule.exact:
        assert np.all(rule.remainder < 0.1)


@pytest.mark.parametrize("name", ["constant", "P1", "P2", "exp P1", "quartic"])
@pytest.mark.parametrize("kind", ELEMENTS)
@pytest.mark.parametrize("degree", [1, 2])
def test_norms_of_test_functions(kind, degree, name):
    # One degree more than the state, as lower bounds use them: A |grad v|² + c v², and the source on v.
    mesh = a_mesh(kind)
    basis = Basis(mesh, ELEMENTS[kind][degree - 1]())
    a = a_field(mesh, kind, name)
    for c in (0.0, fc.Polynomial(lambda x: 1.0 + x[0], 1), fc.Polynomial(lambda x: 0.5 + x[-1] ** 2, 2)):
        rule = rules_of(basis, a, energy=True, c=c)
        results = []
        for quadrature in (quadrature_of(mesh, rule), reference_rule(mesh.dim(), kind == "tri")):
            B = Basis(mesh, ELEMENTS[kind][1 + degree], quadrature=quadrature)
            v = B.interpolate(np.random.default_rng(4).standard_normal(B.N))
            on_c = evaluate(fc.Given(c, "c"), quadrature, mesh)
            energy = evaluate(a, quadrature, mesh) * np.sum(np.asarray(v.grad) ** 2, axis=0) + on_c * np.asarray(v) ** 2
            u = Basis(mesh, basis.elem, quadrature=quadrature).interpolate(np.ones(basis.N))
            results.append([np.sum(f * np.asarray(B.dx), axis=1) for f in (energy, (1.0 - on_c) * u * v)])
        (square, product), (true_square, true_product) = results
        if rule.exact:
            assert np.all(np.abs(square - true_square) <= (rule.remainder + 1e-12) * square)
            np.testing.assert_allclose(product, true_product, rtol=0, atol=1e-12 * np.abs(true_product).max())


@pytest.mark.parametrize("name", WILD)
@pytest.mark.parametrize("kind", ELEMENTS)
def test_what_is_no_polynomial_is_not_called_exact(kind, name):
    mesh = a_mesh(kind)
    basis = Basis(mesh, ELEMENTS[kind][0]())
    rule = rules_of(basis, a_field(mesh, kind, name), energy=True)
    assert not rule.exact
    assert "not exact" in rule.words


@pytest.mark.parametrize(
    ("mesh", "function"),
    [
        # Odd about the middle of the element in which they vary: five points of a line saw cubic polynomials.
        (MeshLine(np.linspace(0.0, 1.0, 4)), lambda x: 2.0 + 0.4 * np.sign(np.round(x[0] - 0.5, 12))),
        (MeshLine(np.array([0.0, 1.0])), lambda x: 3.0 + np.sin(5.0 * (x[0] - 0.5))),
        (MeshTri(), lambda x: 3.0 + np.sin(5.0 * (x[0] - x[1]))),
        (MeshQuad(), lambda x: 3.0 + np.sin(4.0 * (x[0] - 0.5)) * (x[1] - 0.5)),
        (MeshQuad(), lambda x: 3.0 + np.cos(8.0 * (x[0] - 0.5))),
        # Far smaller where it is no polynomial than elsewhere.
        (MeshTri().refined(2), lambda x: np.where(x[0] < 0.5, 1e9, 1.0 + 0.5 * np.sin(40.0 * x[0]))),
    ],
)
def test_functions_that_hide_from_a_few_points(mesh, function):
    assert shape_of(fc.Given(function, "a", "positive"), mesh).degree is None


@pytest.mark.parametrize("kind", ELEMENTS)
def test_nearly_vanishing_coefficients_are_refused(kind):
    mesh = a_mesh(kind)
    basis = Basis(mesh, ELEMENTS[kind][0]())
    rule = rules_of(basis, fc.Given(fc.Polynomial(lambda x: 1e-4 + (x[0] - 0.3) ** 2, 2), "a", "positive"), energy=True)
    assert not rule.exact
    assert np.all(np.isfinite(rule.remainder))
    # Almost zero at an end only: a bound is known, but not a useful one.
    a = fc.Given(fc.Polynomial(lambda x: 0.01 + x[0], 1), "a", "positive")
    rule = rules_of(basis, a, energy=True)
    u = np.random.default_rng(3).standard_normal(basis.N)
    found, size = misfit(basis, a, quadrature_of(mesh, rule), u, 2, energy=True)
    truth, _ = misfit(basis, a, reference_rule(mesh.dim(), kind == "tri"), u, 2, energy=True)
    claim = np.abs(found - truth) <= rule.remainder * found + 1e-4 * size
    assert not rule.exact or np.all(claim)
    assert not rule.exact or rule.remainder.max() > 1e-9


@pytest.mark.parametrize("name", COEFFICIENTS)
@pytest.mark.parametrize("kind", ELEMENTS)
def test_the_least_conductivity_is_no_larger_than_any_sample(kind, name):
    mesh = a_mesh(kind)
    basis = Basis(mesh, ELEMENTS[kind][0]())
    for size in (0.2, 0.9):
        a = a_field(mesh, kind, name, size)
        rule = rules_of(basis, a, energy=True, c=fc.Polynomial(lambda x: 0.3 + x[0] ** 2, 2))
        samples = evaluate(a, dense_rule(mesh), mesh)
        assert np.all(rule.least_conductivity <= samples.min(axis=1) * (1 + 1e-12))
        if size == 0.2 and "P2" not in name:
            assert np.all(rule.least_conductivity >= 0.3 * samples.min(axis=1))
        on_c = evaluate(fc.Given(lambda x: 0.3 + x[0] ** 2, "c"), dense_rule(mesh), mesh)
        assert np.all(rule.least_reaction <= on_c.min(axis=1) * (1 + 1e-12))


def dense_rule(mesh, n=25):
    """Points that include the corners and edges of the reference element."""
    s = np.linspace(0.0, 1.0, n)
    if mesh.dim() == 1:
        return s[None], np.full(n, 1.0 / n)
    X = np.array(np.meshgrid(s, s)).reshape(2, -1)
    if mesh.t.shape[0] == 3:
        X = X[:, X.sum(axis=0) <= 1.0 + 1e-12]
    return X, np.full(X.shape[1], 0.5 / X.shape[1])


def test_an_exponential_that_varies_wildly_says_how_little_is_known():
    mesh = a_mesh("tri")
    rule = rules_of(Basis(mesh, shapes.ElementTriP1()), a_field(mesh, "tri", "exp P1", size=8.0), energy=True)
    assert not rule.exact or rule.remainder.max() > 1e-3
    assert rule.separate
