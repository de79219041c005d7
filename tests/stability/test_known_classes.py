"""Continuous claims about functions that were given: refused where only samples are known, true where degrees are."""

import numpy as np
import pytest
import zoo
from skfem import Basis, ElementTriP1, ElementTriP2, MeshTri

import femcert as fc

POINTS = np.array([0.11, 0.27, 0.44, 0.63, 0.85])
DISCS = [[0.25, 0.25], [0.25, 0.75], [0.75, 0.25], [0.75, 0.75], [0.5, 0.5]]


def ramp(x):
    return 1.0 + 0.3 * x[0]


def line(name="line P2", n=24, space=3, **options):
    return zoo.source(name, n, parameters=space, sensors=POINTS[:, None], **options)


def plane(space=2, **options):
    return zoo.source(zoo.square(3, 2), parameters=space, sensors=zoo.discs(DISCS, 0.15), **options)


def constant(problem):
    return fc.stability(problem, guarantee="continuous").constant


def radius(problem):
    q = problem.parameters.matrix[:, 0]
    data = problem.simulate(q, noise=0.01)
    return fc.certify(problem, data, fc.Candidate(problem.solve(q), q), fc.GuaranteedRadius()).radius


def columns(*functions):
    return lambda basis: fc.FunctionSpace(basis, functions)


def rays(f):
    one = fc.Polynomial(lambda x: 1.0 + 0.0 * x[0], 0)
    return zoo.tomography(zoo.square(2), parameters=columns(one, f), angles=range(0, 180, 30), bins=6)


PLACES = {
    "conductivity on a line": lambda f: constant(line(conductivity=f)),
    "reaction on a line": lambda f: constant(line(reaction=f)),
    "conductivity": lambda f: constant(plane(conductivity=f)),
    "reaction": lambda f: constant(plane(reaction=f)),
    "robin coefficient": lambda f: constant(plane(robin={"right": (f, 0.0)})),
    "neumann": lambda f: radius(plane(neumann={"right": f})),
    "robin value": lambda f: radius(plane(robin={"right": (1.0, f)})),
    "dirichlet": lambda f: radius(plane(dirichlet=f)),
    "column on a line": lambda f: constant(line(space=columns(fc.Polynomial(lambda x: x[0] ** 2, 2), f))),
    "column": lambda f: constant(plane(space=columns(fc.Polynomial(lambda x: x[1], 1), f))),
    "column of a tomography": lambda f: constant(rays(f)),
}


@pytest.mark.parametrize("place", PLACES)
def test_wherever_a_function_is_given(place):
    for unknown in (ramp, lambda x: 1.0 + 0.3 * x[0] ** 2):
        with pytest.raises(fc.UncertifiedError, match=r"is a function of which only samples are known.*fc\.Polynomial"):
            PLACES[place](unknown)
    assert PLACES[place](fc.Polynomial(ramp, 1)).side == "upper"


@pytest.mark.parametrize("place", ["conductivity", "reaction", "robin coefficient", "neumann", "dirichlet"])
def test_errors_that_are_not_included_are_refused(place):
    with pytest.raises(fc.UncertifiedError, match="declared error"):
        PLACES[place](fc.Polynomial(ramp, 1, 1e-3))


@pytest.mark.parametrize("diffusivity", [lambda x: 0.0 * x[0] + 1.0, fc.Polynomial(ramp, 1)])
def test_functions_of_a_heat_equation(diffusivity):
    problem = zoo.heat("line P1", 16, sensors=POINTS[:, None], times=0.01, diffusivity=diffusivity)
    with pytest.raises(fc.UncertifiedError, match="the diffusivity varies"):
        constant(problem)


def sigma(F, gram):
    return np.linalg.svd(np.linalg.solve(np.linalg.cholesky(gram), F.T).T, compute_uv=False)[-1]


@pytest.mark.parametrize("element", ["line P1", "line P2"])
@pytest.mark.parametrize("powers", [(0, 1), (0, 1, 2), (1, 3), (0, 2, 4)])
def test_polynomials_are_the_class_not_their_interpolants(element, powers):
    # -u'' = x^j has u = (x - x^(j + 2)) / ((j + 1) (j + 2)).
    functions = [fc.Polynomial(lambda x, j=j: x[0] ** j, j) for j in powers]
    found = fc.stability(line(element, 64, space=columns(*functions)), guarantee="continuous")
    F = np.column_stack([(POINTS - POINTS ** (j + 2)) / ((j + 1) * (j + 2)) for j in powers])
    gram = np.array([[1.0 / (i + j + 1) for i in powers] for j in powers])
    exact = sigma(F, gram)
    assert found.sigma_min <= exact * (1.0 + 1e-12)
    assert found.sigma_min >= (0.8 if element == "line P1" else 0.999) * exact


def test_the_error_of_a_column_is_included():
    def wave(x):
        return x[0] + 1e-4 * np.sin(50.0 * x[0])

    one = fc.Polynomial(lambda x: 1.0 + 0.0 * x[0], 0)
    plain, wide = (
        fc.stability(line(space=columns(one, fc.Polynomial(f, 1, e))), guarantee="continuous").sigma_min
        for f, e in ((lambda x: x[0], 0.0), (wave, 1e-4))
    )
    assert 0.9 * plain < wide < plain
    # The class of the wave itself: its states and its norms by a rule that resolves it.
    x, w = np.polynomial.legendre.leggauss(400)
    x, w = (x + 1.0) / 2.0, w / 2.0
    G = np.minimum(POINTS[:, None], x) * (1.0 - np.maximum(POINTS[:, None], x))
    B = np.column_stack([np.ones_like(x), wave(x[None])])
    assert wide <= sigma(G @ (w[:, None] * B), B.T @ (w[:, None] * B))


@pytest.mark.parametrize("element", [ElementTriP1, ElementTriP2])
def test_distances_from_polynomials(element):
    basis = Basis(MeshTri().refined(2), element())
    functions = [fc.Polynomial(lambda x: x[0] ** 3 - x[1], 3), fc.Polynomial(lambda x: x[0] * x[1], 2)]
    space = fc.FunctionSpace(basis, functions)
    made = space.functions_on(basis.mesh)
    fine = Basis(basis.mesh, element(), intorder=10)
    x = np.asarray(fine.global_coordinates())
    for c in ([1.0, 0.0], [0.3, -2.0]):
        q = space.field(c) + 0.1
        gap = np.asarray(fine.interpolate(q)) - sum(a * f(x) for a, f in zip(c, functions, strict=True))
        assert made.distance(basis, q, np.array(c)) == pytest.approx(np.sqrt(np.sum(gap**2 * fine.dx)), rel=1e-10)
