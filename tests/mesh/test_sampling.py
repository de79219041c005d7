"""The sampler against scikit-fem's own bases, and polynomial fits against dense samples."""

from math import factorial

import numpy as np
import pytest
from skfem import Basis, ElementLineP0, ElementQuad0, ElementTriP0, LinearForm, MeshLine, MeshQuad, MeshTri
from skfem.helpers import dot as product
from skfem.helpers import grad
from zoo import ELEMENTS, unit_mesh

from femcert.mesh.sample import Sampler, dot, norming_constant, polynomial_fit
from femcert.residual.hierarchy import hierarchical_space


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def shuffled(mesh, seed=1):
    """The vertices of every triangle or line in any order, those of every quadrilateral turned and flipped."""
    rng = np.random.default_rng(seed)
    t = mesh.t.copy()
    for i in range(t.shape[1]):
        if len(t) < 4:
            t[:, i] = rng.permutation(t[:, i])
        else:
            t[:, i] = np.roll(t[:, i][:: rng.choice([-1, 1])], rng.integers(4))
    return type(mesh)(mesh.p, t, sort_t=False)


def stretched():
    mesh = MeshTri().refined(2)
    return MeshTri(np.array([[1.0, 0.4], [-0.2, 0.3]]) @ mesh.p**1.2, mesh.t)


MESHES = {
    "line": lambda: MeshLine(np.array([0.0, 0.3, 0.35, 0.9, 2.0])),
    "refined line": lambda: MeshLine().refined(3),
    "line backwards": lambda: shuffled(MeshLine().refined(3)),
    "tri": stretched,
    "tri any order": lambda: shuffled(stretched()),
    "quad": lambda: MeshQuad().refined(2),
    "bent quad": lambda: unit_mesh("bent quad"),
    "bent quad any order": lambda: shuffled(unit_mesh("bent quad")),
}
CONSTANT = {2: ElementLineP0, 3: ElementTriP0, 4: ElementQuad0}


def element_of(mesh, degree):
    name = {2: "line P", 3: "tri P", 4: "quad Q"}[len(mesh.t)]
    return ELEMENTS[f"{name}{degree}"][1]() if degree else CONSTANT[len(mesh.t)]()


@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("order", [2, 5, 9])
@pytest.mark.parametrize("name", MESHES)
def test_values_and_gradients(rng, name, order, degree):
    mesh = MESHES[name]()
    sampler = Sampler(mesh, order)
    theirs = Basis(mesh, element_of(mesh, degree), quadrature=(sampler.X, sampler.W))
    u = rng.standard_normal(theirs.N)
    field = theirs.interpolate(u)
    shape = (mesh.nelements, len(sampler.W))
    np.testing.assert_allclose(np.broadcast_to(sampler.values(theirs, u), shape), np.asarray(field), atol=1e-12)
    slopes = np.broadcast_to(sampler.gradients(theirs, u), (mesh.dim(), *shape))
    expected = np.zeros_like(slopes) if degree == 0 else np.asarray(field.grad)
    np.testing.assert_allclose(slopes, expected, atol=1e-11 * max(np.abs(expected).max(), 1.0))
    np.testing.assert_allclose(sampler.x, np.asarray(theirs.global_coordinates()), atol=1e-13)
    np.testing.assert_allclose(np.broadcast_to(sampler.dx, shape), np.asarray(theirs.dx), rtol=1e-12)
    np.testing.assert_allclose(
        np.broadcast_to(sampler.determinant, shape), np.abs(theirs.mapping.detDF(sampler.X)), rtol=1e-12
    )
    assert sampler.dx.sum() == pytest.approx(np.asarray(theirs.dx).sum(), rel=1e-13)


@LinearForm
def functional(v, w):
    return w["f"] * v + product(w["g"], grad(v))


@pytest.mark.parametrize("name", MESHES)
@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("constant", [False, True], ids=["varying", "constant"])
def test_moments_and_integrals(rng, name, degree, constant):
    mesh = MESHES[name]()
    sampler = Sampler(mesh, 6)
    basis = Basis(mesh, element_of(mesh, degree), quadrature=(sampler.X, sampler.W))
    points = 1 if constant else len(sampler.W)
    f, g = rng.standard_normal((mesh.nelements, points)), rng.standard_normal((mesh.dim(), mesh.nelements, points))
    full = (mesh.nelements, len(sampler.W))
    expected = functional.assemble(
        basis, f=np.array(np.broadcast_to(f, full)), g=np.array(np.broadcast_to(g, (mesh.dim(), *full)))
    )
    np.testing.assert_allclose(sampler.moments(basis, f, g), expected, atol=1e-12)
    integral = np.sum(np.broadcast_to(f, full) * np.asarray(basis.dx), axis=1)
    np.testing.assert_allclose(sampler.integral(f), integral, atol=1e-13)
    area = np.asarray(basis.dx).sum(axis=1)
    np.testing.assert_allclose(sampler.means(f), integral / area, atol=1e-12)
    np.testing.assert_allclose(np.broadcast_to(dot(g, g), full), np.broadcast_to(np.sum(g**2, axis=0), full))


@pytest.mark.parametrize("vertices", [2, 3, 4])
@pytest.mark.parametrize("order", range(19))
def test_rules_have_positive_weights_and_their_order(vertices, order):
    mesh = {2: MeshLine, 3: MeshTri, 4: MeshQuad}[vertices]()
    sampler = Sampler(mesh, order)
    assert sampler.order >= order
    assert np.all(sampler.W > 0.0)
    x = sampler.X
    for i in range(order + 1):
        if vertices == 2:
            assert (x[0] ** i) @ sampler.W == pytest.approx(1 / (i + 1), rel=1e-12)
        elif vertices == 4:
            assert (x[0] ** i * x[1] ** order) @ sampler.W == pytest.approx(1 / (i + 1) / (order + 1), rel=1e-12)
        else:
            # int x^i y^j = i! j! / (i + j + 2)! on the reference triangle.
            j = order - i
            exact = factorial(i) * factorial(j) / factorial(i + j + 2)
            assert (x[0] ** i * x[1] ** j) @ sampler.W == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("kind", ["tri any order", "bent quad any order"])
def test_functions_with_signs(rng, kind):
    # The transpose: moments of a space are the derivative of int f u + g . grad u with respect to the dofs of u.
    mesh = MESHES[kind]()
    space = hierarchical_space(mesh, 3)
    sampler = Sampler(mesh, 6)
    full = (mesh.nelements, len(sampler.W))
    f, g = rng.standard_normal(full), rng.standard_normal((2, *full))
    u = rng.standard_normal(space.N)
    assert (space.element_signs < 0).any()
    direct = np.sum((f * sampler.values(space, u) + dot(g, sampler.gradients(space, u))) * sampler.dx)
    assert sampler.moments(space, f, g) @ u == pytest.approx(direct, rel=1e-11)


POLYNOMIALS = [
    (0, lambda x: 2.5 + 0.0 * x[0]),
    (1, lambda x: 1.0 + 2.0 * x[0] - 0.5 * x[-1]),
    (2, lambda x: x[0] ** 2 - x[-1] + 0.3),
    (3, lambda x: x[0] ** 3 - 2.0 * x[-1] ** 2),
    (4, lambda x: (x[0] - 0.3) ** 4 + x[-1]),
]


@pytest.mark.parametrize("name", MESHES)
@pytest.mark.parametrize(("degree", "function"), POLYNOMIALS)
def test_fits_bound_what_they_fit(name, degree, function):
    mesh = MESHES[name]()
    sampler = Sampler(mesh, 12)
    fit = polynomial_fit(sampler, function(sampler.x), degree)
    assert fit.degree == degree
    assert fit.away.max() <= 1e-12
    side = np.linspace(0.0, 1.0, 21)
    X = side[None] if mesh.dim() == 1 else np.array(np.meshgrid(side, side)).reshape(2, -1)
    if mesh.t.shape[0] == 3:
        X = X[:, X.sum(axis=0) <= 1.0 + 1e-12]
    dense = function(Sampler(mesh, 0, points=X).x)
    away = np.abs(dense - fit.mean[:, None]).max(axis=1)
    assert np.all(away <= fit.spread + 1e-12)
    # Within a factor: monomials are bounded one by one.
    assert np.all(fit.spread <= 12.0 * away + 1e-12)
    assert norming_constant(sampler, degree) >= 1.0
    np.testing.assert_allclose(fit.at(Sampler(mesh, 0, points=X)), dense, atol=1e-12)


@pytest.mark.parametrize("name", MESHES)
def test_what_no_polynomial_fits(rng, name):
    mesh = MESHES[name]()
    sampler = Sampler(mesh, 12)
    assert polynomial_fit(sampler, np.exp(4.0 * sampler.x[0]), 1).away.max() > 1e-2
    assert polynomial_fit(sampler, POLYNOMIALS[4][1](sampler.x), 3).away.max() > 1e-6
    # Any polynomial of the degree is at most `norming` times its largest sample.
    values = rng.standard_normal((mesh.nelements, len(sampler.W)))
    fit = polynomial_fit(sampler, values, 3)
    corners = sampler.at_points(np.asarray(mesh.elem.refdom.p))
    largest, norming = np.abs(fit.at(sampler)).max(axis=1), norming_constant(sampler, 3)
    assert np.all(np.abs(fit.at(corners)).max(axis=1) <= norming * largest)
    assert norming <= 20.0


@pytest.mark.parametrize("contrast", [1.0, 1e12])
def test_what_is_constant_is_decided_on_each_element(contrast):
    # Eight thousandths in the weak part are no rounding, however large the values elsewhere.
    mesh = MeshTri().refined(2)
    sampler = Sampler(mesh, 4)
    strong = mesh.p[0, mesh.t].mean(axis=0)[:, None] < 0.5
    fit = polynomial_fit(sampler, np.where(strong, contrast, 1.0 + 0.008 * sampler.x[1]), 1)
    assert fit.degree == 1
    assert fit.spread[~strong[:, 0]].min() > 1e-4
