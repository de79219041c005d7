"""Derivatives that are not those of the values are refused; those of real functions are not."""

import numpy as np
import pytest
from skfem import Basis, ElementLineP1, ElementTriP1, MeshLine, MeshTri
from zoo import coefficient, square

import femcert as fc
from femcert.certificate.derivatives import check_derivatives, inner_balls, inner_points

PI = np.pi


def problem_on(mesh, **options):
    basis = Basis(mesh, ElementLineP1() if mesh.dim() == 1 else ElementTriP1())
    points = np.random.default_rng(0).uniform(0.2, 0.4, (6, mesh.dim()))
    return fc.EllipticSource(
        basis, parameters=fc.EigenmodeSpace(basis, 2), sensors=fc.PointSensors(basis, points.squeeze()), **options
    )


def l_shape():
    mesh = MeshTri().refined(4)
    return mesh.remove_elements(np.flatnonzero(mesh.p[:, mesh.t].mean(axis=1).min(axis=0) > 0.5))


MESHES = {"line": MeshLine(np.linspace(0.0, 1.0, 33)), "square": MeshTri().refined(4), "L": l_shape()}


class Waves:
    """``sin(k pi (x + y))`` and what may be wrong with its derivatives."""

    def __init__(self, k=1.0, *, laplacian=1.0, gradient=1.0, shift=0.0):
        self.k, self.factors, self.shift = k, (gradient, laplacian), shift

    def __call__(self, x):
        return np.sin(self.k * PI * x.sum(axis=0))

    def gradient(self, x):
        return np.array(len(x) * [self.factors[0] * self.k * PI * np.cos(self.k * PI * x.sum(axis=0))])

    def laplacian(self, x):
        return -len(x) * self.factors[1] * (self.k * PI) ** 2 * np.sin(self.k * PI * (x.sum(axis=0) + self.shift))


class Corner(Waves):
    """``r^(2/3)`` around the corner of the L, harmonic, not smooth there."""

    def __call__(self, x):
        return self._parts(x)[0]

    def laplacian(self, x):
        return np.zeros(x.shape[1:])

    def _parts(self, x):
        z = -(x[0] - 0.5) - 1j * (x[1] - 0.5)
        return (np.abs(z) ** (2 / 3) * np.cos(2 / 3 * np.angle(z)),)


class Kinks:
    """A network of rectifiers: linear almost everywhere."""

    def __call__(self, x):
        return np.abs(x[0] - 0.37) + np.abs(x[0] - 0.71)

    def laplacian(self, x):
        return np.zeros(x.shape[1:])


class Single(Waves):
    """As a network in single precision gives them."""

    def __call__(self, x):
        return super().__call__(x.astype(np.float32)).astype(np.float32)

    def laplacian(self, x):
        return super().laplacian(x.astype(np.float32)).astype(np.float32)


def judged(problem, state, **more):
    candidate = fc.Candidate.from_functions(problem, state=state, parameter=lambda x: x[0], envelope=1e5, **more)
    data = fc.Data(np.zeros(problem.observation_count), 0.1)
    return fc.certify(problem, data, candidate, fc.StochasticRadius(points=50))


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("k", [0.0, 1e-3, 3.0, 40.0])
def test_true_derivatives_are_believed(mesh, k):
    for state in (Waves(k), Single(k)):
        assert "functions" in judged(problem_on(MESHES[mesh]), state).residuals.pde.source


def test_a_singular_corner_is_believed():
    assert "functions" in judged(problem_on(MESHES["L"]), Corner()).residuals.pde.source


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"laplacian": 0.0}, id="none at all"),
        pytest.param({"laplacian": -1.0}, id="of the wrong sign"),
        pytest.param({"laplacian": 0.25}, id="in scaled coordinates"),
        pytest.param({"laplacian": 0.9}, id="a tenth too small"),
        pytest.param({"shift": 0.1}, id="elsewhere"),
    ],
)
def test_a_laplacian_of_something_else_is_refused(mesh, wrong):
    for k in (0.5, 2.0):
        with pytest.raises(fc.UncertifiedError, match="the laplacian of the state "):
            judged(problem_on(MESHES[mesh]), Waves(k, **wrong))


@pytest.mark.parametrize("mesh", MESHES)
def test_kinks_have_no_strong_residual(mesh):
    with pytest.raises(fc.UncertifiedError, match="the laplacian of the state "):
        judged(problem_on(MESHES[mesh]), Kinks())


class Rising:
    """A conductivity ``1 + x/2`` with a gradient."""

    def __init__(self, slope=0.5):
        self.slope = slope

    def __call__(self, x):
        return 1.0 + 0.5 * x[0]

    def gradient(self, x):
        return np.array([np.full(x.shape[1:], self.slope)] + (len(x) - 1) * [np.zeros(x.shape[1:])])


@pytest.mark.parametrize("mesh", MESHES)
def test_gradients_are_looked_at_where_they_count(mesh):
    constant, varying = problem_on(MESHES[mesh]), problem_on(MESHES[mesh], conductivity=Rising())
    wrong = Waves(gradient=0.5)
    assert judged(constant, wrong).residuals.pde.value > 0.0
    assert judged(varying, Waves()).residuals.pde.value > 0.0
    with pytest.raises(fc.UncertifiedError, match="the gradient of the state "):
        judged(varying, wrong)
    with pytest.raises(fc.UncertifiedError, match="the gradient of the conductivity "):
        judged(problem_on(MESHES[mesh], conductivity=Rising(0.25)), Waves())


def test_the_gradient_of_a_state_over_a_conductivity():
    problem = coefficient(square(4), sensors=6)
    assert judged(problem, Waves()).residuals.pde.value > 0.0
    with pytest.raises(fc.UncertifiedError, match="the gradient of the state "):
        judged(problem, Waves(gradient=1.2))


@pytest.mark.parametrize("conductivity", [1.5, Rising()])
@pytest.mark.parametrize("reaction", [2.0, lambda x: x[0]])
@pytest.mark.parametrize("mesh", MESHES)
def test_a_given_residual_belongs_to_the_values(mesh, conductivity, reaction):
    """``-div(a grad u) + c u - q`` with ``q = x``."""
    problem, u = problem_on(MESHES[mesh], conductivity=conductivity, reaction=reaction), Waves()

    def residual(x):
        a = conductivity(x) if callable(conductivity) else conductivity
        slope = (conductivity.gradient(x) * u.gradient(x)).sum(axis=0) if callable(conductivity) else 0.0
        c = reaction(x) if callable(reaction) else reaction
        return -a * u.laplacian(x) - slope + c * u(x) - x[0]

    assert judged(problem, lambda x: u(x), residual=residual).residuals.pde.value > 0.0
    for wrong in (lambda x: np.zeros(x.shape[1:]), lambda x: 0.8 * residual(x), lambda x: residual(x) + 1.0):
        with pytest.raises(fc.UncertifiedError, match="the residual of 'learned' does not belong to its values"):
            judged(problem, lambda x: u(x), residual=wrong)


def test_balls_lie_inside():
    """Of each mesh, also around holes and notches; all their points are found in it."""
    square = MeshTri().refined(4)
    inner = np.abs(square.p[:, square.t].mean(axis=1) - 0.5).max(axis=0) < 0.2
    for mesh in (*MESHES.values(), square.remove_elements(np.flatnonzero(inner))):
        centres, distances = inner_points(mesh, np.random.default_rng(0))
        assert np.all(distances > 0.0)
        balls = inner_balls(centres, distances / 0.9, 12)
        assert len(mesh.element_finder()(*balls.x)) == balls.x.shape[1]
        # The psi of a ball and its derivatives, by Gauss: means of known integrals.
        psi = balls.psi.reshape(balls.number, -1).sum(axis=1)
        assert np.allclose(psi, 16 / 35 if mesh.dim() == 1 else 1 / 4)


class Bent:
    """``sum a_i max(x - c_i, 0)²``: its second derivative jumps, and is its Laplacian all the same."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.a, self.c = rng.normal(size=(2, 1 + seed % 5, 1))
        self.c = rng.uniform(size=self.c.shape)

    def __call__(self, x):
        return (self.a * np.maximum(x[0] - self.c, 0.0) ** 2).sum(axis=0)

    def laplacian(self, x):
        return (2.0 * self.a * (x[0] > self.c)).sum(axis=0)


class Network:
    """Twenty units in double precision, plus a constant."""

    def __init__(self, seed, dimension, constant=0.0, factor=1.0):
        rng = np.random.default_rng(seed)
        self.W, self.b, self.v = rng.normal(size=(20, dimension)), rng.normal(size=(20, 1)), rng.normal(size=20) / 20.0
        self.constant, self.factor = constant, factor

    def __call__(self, x):
        return self.v @ np.tanh(self.W @ x + self.b) + self.constant

    def laplacian(self, x):
        t = np.tanh(self.W @ x + self.b)
        return self.factor * (self.v * (self.W**2).sum(axis=1)) @ (-2.0 * t * (1.0 - t * t))


def believed(problem, state, seed):
    candidate = fc.Candidate.from_functions(problem, state=state, parameter=lambda x: x[0], envelope=1e5)
    try:
        check_derivatives(problem, candidate, np.random.default_rng(seed))
    except fc.UncertifiedError:
        return False
    return True


def test_jumps_of_the_second_derivative_on_a_line_are_believed():
    problem = problem_on(MESHES["line"])
    assert all(believed(problem, Bent(seed), seed) for seed in range(150))


@pytest.mark.parametrize("mesh", ["line", "square"])
def test_a_large_constant_hides_nothing_in_double_precision(mesh):
    problem = problem_on(MESHES[mesh])
    d = problem.basis.mesh.dim()
    for seed in range(30):
        constant = (0.0, 1.0, 1e3)[seed % 3]
        assert believed(problem, Network(seed, d, constant), seed)
        assert not believed(problem, Network(seed, d, constant, factor=1.3), seed)
