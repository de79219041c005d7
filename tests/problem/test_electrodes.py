"""Electrodes against closed forms and by Taylor tests; patterns and gains; forms of shorted and insulated bodies."""

import numpy as np
import pytest
from bodies import disc, model, strip
from orders import fitted_order, taylor_order
from skfem import Basis, ElementQuad2, ElementTriP0, ElementTriP1, ElementTriP2, MeshQuad, MeshTri

import femcert as fc
from femcert.linalg import Factorization


def thirds(basis):
    """Elements of each square."""
    place = np.floor(basis.mesh.p[0, basis.mesh.t].mean(axis=0))
    return [np.flatnonzero(place == i) for i in range(3)]


@pytest.mark.parametrize("element", [ElementTriP1, ElementTriP2])
def test_a_strip_in_closed_form(element):
    """Layers in series: the potential is linear in each, so that the voltage is exact to rounding."""
    basis = strip(element=element)
    layers = fc.RegionSpace(basis.with_element(ElementTriP0()), thirds(basis))
    problem = fc.ElectrodeModel(
        basis, electrodes=["left", "right"], impedances=[0.2, 0.7], currents=[[2.0], [-2.0]], parameters=layers,
        conductivity=1.5,
    )  # fmt: skip
    c = np.array([0.3, -1.0, 0.5])
    expected = 2.0 * (np.sum(np.exp(-c)) / 1.5 + 0.2 + 0.7)
    assert problem.simulate(layers.field(c)).values == pytest.approx([expected], rel=1e-12)
    assert np.allclose(problem.jacobian(layers.field(c)), [-2.0 * np.exp(-c) / 1.5], rtol=1e-11)
    contrast = fc.ElectrodeModel(
        basis, electrodes=["left", "right"], impedances=0.2, parameters=layers, transform="contrast"
    )
    assert contrast.predict(None, layers.field(c)) == pytest.approx([np.sum((2 - c) / (2 + c)) + 0.4], rel=1e-12)


@pytest.mark.parametrize(("element", "kind"), [(ElementTriP1, "tri"), (ElementTriP2, "tri"), (ElementQuad2, "quad")])
def test_an_annulus_converges(element, kind):
    """``ln 2 / (2 pi sigma) + z_1 / (2 pi) + z_2 / (4 pi)``; the error of the polygon is of second order."""
    sizes, found = np.array([16, 32, 64]), []
    for n in sizes:
        grid = (MeshQuad if kind == "quad" else MeshTri).init_tensor(
            np.linspace(1.0, 2.0, n // 2 + 1), np.arange(n + 1)
        )
        r, angle = grid.p[0], 2.0 * np.pi * (grid.p[1] % n) / n
        points, place = np.unique(np.round([r * np.cos(angle), r * np.sin(angle)], 12), axis=1, return_inverse=True)
        mesh = type(grid)(points, place.ravel()[grid.t])
        ends = {"inner": lambda x: np.hypot(*x) < 1.4, "outer": lambda x: np.hypot(*x) > 1.6}
        basis = Basis(mesh.with_boundaries(ends), element())
        problem = fc.ElectrodeModel(
            basis,
            electrodes=["inner", "outer"],
            impedances=[0.3, 0.5],
            parameters=fc.FullSpace(basis),
            conductivity=0.7,
        )
        found.append(problem.predict(None, np.zeros(basis.N))[0])
    exact = (np.log(2.0) / 0.7 + 0.3 + 0.25) / (2.0 * np.pi)
    assert fitted_order(1.0 / sizes, np.abs(np.array(found) - exact)) == pytest.approx(2.0, abs=0.15)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_cosine_currents_on_a_disc(k):
    """Currents ``cos(k angle)`` have potentials ``cos(k angle) / k``, with a disc of radius r and conductivity s inside

    ``(1 + rho r^2k) / (1 - rho r^2k) cos(k angle) / k``, ``rho = (1 - s) / (1 + s)``. In the difference what happens
    near the electrodes cancels. Where the impedance is large, the current through each of them is uniform.
    """
    L, r, s = 16, 2.0 / 3.0, 3.0
    pattern = np.cos(2.0 * np.pi * k * np.arange(L) / L)[:, None] * 2.0 * np.pi / L
    basis = disc(L, element=ElementTriP2, rings=6)
    inside = np.flatnonzero(np.hypot(*basis.mesh.p[:, basis.mesh.t].mean(axis=1)) < r)
    space = fc.RegionSpace(basis.with_element(ElementTriP0()), [inside])
    problem = model(basis, space, electrodes=L, currents=pattern, voltages=pattern, impedances=100.0)
    empty, full = (problem.predict(None, space.field([q]))[0] / np.pi for q in (0.0, np.log(s)))
    damped = (1.0 - s) / (1.0 + s) * r ** (2 * k)
    spread = np.sinc(k / (2.0 * L)) ** 2
    assert full - empty == pytest.approx(spread * 2.0 * damped / (1.0 - damped) / k, rel=0.01)


CASES = [("exp", ElementTriP1, None), ("contrast", ElementTriP2, 1.0 + 0.05 * np.cos(np.arange(8.0)))]


@pytest.mark.parametrize(("transform", "element", "gains"), CASES)
def test_jacobian_and_gradient_by_taylor(transform, element, gains):
    basis = disc(refined=0, element=element)
    space = fc.EigenmodeSpace(disc(refined=0), 5)
    problem = model(basis, space, transform=transform, gains=gains, conductivity=lambda x: 1.0 + 0.3 * x[0])
    rng = np.random.default_rng(0)
    c, d = 0.2 * rng.standard_normal((2, 5))
    J = problem.jacobian(space.field(c))

    def predicted(t):
        return problem.predict(None, space.field(c + t * d))

    assert taylor_order(predicted, J @ d) == pytest.approx(2.0, abs=0.1)
    data = fc.Data(predicted(0.0) + 0.01 * rng.standard_normal(49), 0.1)
    gradient = problem.misfit_gradient(space.field(c), data)
    assert np.allclose(gradient, J.T @ (predicted(0.0) - data.values), rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("seed", range(3))
def test_adjoint(seed):
    rng = np.random.default_rng(seed)
    basis = disc(refined=0)
    problem = model(basis, gains=rng.uniform(0.9, 1.1, 8), currents=np.roll(np.eye(8), 3, axis=0) - np.eye(8))
    at = problem.linearize(0.1 * rng.standard_normal(basis.N))
    x, w = rng.standard_normal((basis.N, 4)), rng.standard_normal((problem.observation_count, 4))
    forward, back = at.apply(x), at.adjoint(w)
    assert np.allclose(w.T @ forward, back.T @ x, atol=1e-12 * np.linalg.norm(w) * np.linalg.norm(forward))
    assert np.allclose(at.matrix @ problem.parameters.project(x[:, 0])[0], forward[:, 0], atol=1e-12)


def test_data_are_those_of_the_patterns():
    """Reciprocity, gains, and the order of the data."""
    basis = disc()
    q = 0.3 * np.cos(2.0 * basis.doflocs[0]) + 0.2 * basis.doflocs[1]
    Y = model(basis).predict(None, q).reshape(7, 7)
    assert np.allclose(Y, Y.T, atol=1e-12)
    gains = np.linspace(0.9, 1.1, 8)
    currents = np.zeros((8, 2))
    currents[[0, 3], 0], currents[[5, 2], 1] = [1.0, -1.0], [2.0, -2.0]
    raw, gained = (
        model(basis, currents=currents, voltages=np.eye(8), gains=g).predict(None, q).reshape(2, 8)
        for g in (None, gains)
    )
    assert np.allclose(gained, gains * raw, rtol=1e-12)
    assert np.allclose([raw[0, 3], raw[1, 2]], 0.0, atol=1e-13)
    assert np.all(raw[[0, 1], [0, 5]] == raw.max(axis=1))


def test_gauss_newton_finds_the_conductivity():
    basis = disc()
    space = fc.EigenmodeSpace(basis, 6)
    problem = model(basis, space)
    c = np.array([0.4, -0.2, 0.3, 0.1, 0.0, -0.1])
    data = problem.simulate(space.field(c), noise=1e-4, seed=1)
    found = fc.GaussNewton(weight=1e-8)(problem, data)
    assert space.norm(found.parameter - space.field(c)) < 0.02 * space.norm(space.field(c))
    assert fc.certify(problem, data, found, fc.ResidualRadius()).radius.value > 0.0


def test_forms_of_shorted_and_insulated_strips():
    """The middle third alone: the others shorted have no resistance; insulated, no current passes."""
    basis = strip()
    problem = fc.ElectrodeModel(
        basis, electrodes=["left", "right"], impedances=[0.2, 0.7], parameters=fc.FullSpace(basis), conductivity=2.0
    )
    contacts = problem.electrodes
    middles = basis.mesh.p[:, basis.mesh.t].mean(axis=1)[0]
    middle = (middles > 1.0) & (middles < 2.0)
    # C = (1, -1) / 2^1/2 up to its sign.
    shorted = contacts.shorted_form(middle, problem.factorize)
    assert shorted.matrix == pytest.approx(np.array([[(0.5 + 0.9) / 2.0]]), rel=1e-12)
    assert contacts.insulated_form(middle, problem.factorize)[1].shape == (1, 0)
    whole, Z = contacts.insulated_form(middles > -1.0, problem.factorize)
    assert Z.shape == (1, 1)
    assert whole.matrix == pytest.approx(np.array([[(1.5 + 0.9) / 2.0]]), rel=1e-12)
    measured, _ = contacts.measured_form(problem.predict(None, np.zeros(basis.N)))
    assert measured == pytest.approx(np.array([[(1.5 + 0.9) / 2.0]]), rel=1e-12)


def test_forms_are_ordered():
    """Shorted <= background <= insulated, where each is finite; the measured form of exact data is symmetric."""
    basis = disc()
    problem = model(basis, conductivity=lambda x: 1.0 + 0.5 * x[0] ** 2, gains=np.linspace(0.9, 1.1, 8))
    contacts, zero = problem.electrodes, np.zeros(basis.N)
    background = contacts.background_form(problem.factorize).matrix
    measured, _ = contacts.measured_form(problem.predict(None, zero))
    assert np.allclose(measured, background, atol=1e-12)
    middles = basis.mesh.p[:, basis.mesh.t].mean(axis=1)
    half, two = middles[0] > 0.0, np.abs(middles[0]) > 0.4
    for elements, dimension in ((half, 3), (two, 4)):
        shorted = contacts.shorted_form(elements, problem.factorize).matrix
        assert np.linalg.eigvalsh(shorted - background).max() < 1e-12
        insulated, Z = contacts.insulated_form(elements, problem.factorize)
        assert Z.shape[1] >= dimension
        assert np.linalg.eigvalsh(insulated.matrix - Z.T @ background @ Z).min() > -1e-12
        # Currents that leave a part through another one are not among them.
        away = contacts.driven @ Z
        touched = [np.any(elements[basis.mesh.f2t[0, basis.mesh.boundaries[f"e{i}"]]]) for i in range(8)]
        assert np.abs(away[~np.array(touched)]).max(initial=0.0) < 1e-12


REFUSED = [
    ({"electrodes": "e0"}, "electrodes is 'e0'; expected at least two names"),
    ({"electrodes": [np.arange(3), np.arange(3, 6)]}, r"electrodes\[0\] is .*; expected the name of a boundary"),
    ({"electrodes": ["e0", "nowhere"]}, "boundary 'nowhere' is not in the mesh"),
    ({"electrodes": ["e0", "same"]}, "two electrodes share facets"),
    ({"electrodes": ["e0", "inside"]}, "facets inside the domain"),
    ({"impedances": 0.0}, "impedances has the value 0"),
    ({"currents": np.eye(8)}, "pattern 0 does not sum up to zero"),
    ({"voltages": np.ones(8)}, "voltages has shape"),
    ({"voltages": np.zeros((8, 1))}, "a pattern that is zero"),
    ({"gains": -1.0}, "gains has the value -1"),
    ({"conductivity": -1.0}, "positive values everywhere"),
    ({"transform": "log"}, "expected one of exp, contrast"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_refused(options, message):
    basis = disc(refined=0)
    mesh = basis.mesh.with_boundaries({"same": basis.mesh.boundaries["e0"], "inside": np.array([0])})
    basis = Basis(mesh, ElementTriP1())
    names = {"electrodes": [f"e{i}" for i in range(8)], "impedances": 0.1, "parameters": fc.FullSpace(basis)}
    with pytest.raises(fc.InputError, match=message):
        fc.ElectrodeModel(basis, **{**names, **options})


def test_impossible_parameters():
    basis = disc(refined=0)
    with pytest.raises(fc.InputError, match="a contrast has the size 2"):
        model(basis, transform="contrast").linearize(np.full(basis.N, 2.0))
    with pytest.raises(fc.InputError, match="leaves the range of floats"):
        model(basis).linearize(np.full(basis.N, 800.0))
    with pytest.raises(fc.InputError, match="give at="):
        model(basis).linearize()


@pytest.mark.parametrize("seed", range(12))
def test_forms_of_any_elements_are_ordered(seed):
    """Parts that meet in vertices, electrodes that are cut or join parts, parts without electrodes."""
    rng = np.random.default_rng(seed)
    basis = disc(element=ElementTriP2 if seed % 2 else ElementTriP1)
    contacts = model(basis, conductivity=lambda x: 1.0 + 0.5 * x[0] ** 2).electrodes
    background = contacts.background_form(Factorization).matrix
    turn = rng.uniform(0.0, np.pi)
    middles = basis.mesh.p[:, basis.mesh.t].mean(axis=1)
    cut = np.cos(turn) * middles[0] + np.sin(turn) * middles[1]
    elements = (cut > 0.0) if seed < 4 else rng.random(basis.mesh.nelements) < (0.6 if seed < 8 else 0.9)
    shorted = contacts.shorted_form(elements, Factorization).matrix
    assert np.linalg.eigvalsh(shorted - background).max() < 1e-12
    insulated, Z = contacts.insulated_form(elements, Factorization)
    assert np.allclose(Z.T @ Z, np.eye(Z.shape[1]), atol=1e-12)
    if Z.shape[1]:
        assert np.linalg.eigvalsh(insulated.matrix - Z.T @ background @ Z).min() > -1e-12
    if seed >= 8:
        assert Z.shape[1] > 0


def test_parts_that_meet_in_a_vertex_are_not_connected():
    """Two squares of a chessboard: no current passes from one to the other."""
    mesh = MeshQuad.init_tensor(np.linspace(0.0, 2.0, 5), np.linspace(0.0, 2.0, 5))
    ends = {"left": lambda x: (x[0] == 0.0) & (x[1] < 1.0), "right": lambda x: (x[0] == 2.0) & (x[1] > 1.0)}
    basis = Basis(mesh.with_boundaries(ends), ElementQuad2())
    problem = fc.ElectrodeModel(basis, electrodes=["left", "right"], impedances=0.1, parameters=fc.FullSpace(basis))
    x, y = mesh.p[:, mesh.t].mean(axis=1)
    assert problem.electrodes.insulated_form((x < 1.0) == (y < 1.0), Factorization)[1].shape == (1, 0)
    # Joined by a third square there is a way.
    form, Z = problem.electrodes.insulated_form(~((x < 1.0) & (y > 1.0)), Factorization)
    assert Z.shape == (1, 1)
    assert form.matrix[0, 0] > problem.electrodes.background_form(Factorization).matrix[0, 0]
