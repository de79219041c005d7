"""Dual norms where the conductivity is the unknown, ``a = q`` or ``a = exp(q)``; and when a bound is called none."""

import numpy as np
import pytest
import zoo
from exact_cases import build
from plain import any_coefficient, any_source
from skfem import Basis
from skfem.element import ElementLineP1, ElementLineP2, ElementQuad1, ElementTriP1, ElementTriP2
from skfem.mesh import MeshLine, MeshQuad, MeshTri

import femcert as fc
from femcert.mesh.sample import Sampler, dot

SIDES = {name: zoo.SIDES[name] for name in ("left", "right")}


def conditions_of(problem):
    parts = problem.boundary
    natural = {p.name: p.value for p in parts.natural if not callable(p.coefficient) and p.coefficient == 0.0}
    robin = {p.name: (p.coefficient, p.value) for p in parts.natural if p.name not in natural}
    essential = {p.name: p.value for p in parts.dirichlet}
    return {"dirichlet": essential.get("boundary", essential), "neumann": natural, "robin": robin}


@pytest.mark.parametrize("element", ["P1", "P2", "Q1"])
@pytest.mark.parametrize("boundary", ["two sides", "left", "robin"])
def test_a_linear_conductivity_as_the_unknown(element, boundary):
    rng = np.random.default_rng(len(boundary))
    case = build(rng, element, "linear", boundary, reaction=0.0)
    basis = case.problem.basis
    Q = Basis(basis.mesh, (ElementQuad1 if element[0] == "Q" else ElementTriP1)())
    problem = fc.EllipticCoefficient(
        basis, parameters=fc.FullSpace(Q), sensors=case.problem.sensors, source=case.source.declared(),
        transform="identity",
        **conditions_of(case.problem),
    )  # fmt: skip
    for kind in ("galerkin", "waves", "noise", "other"):
        state = case.state(kind, rng)
        truth = case.error(state)
        result = fc.dual_norm(problem, fc.Candidate(state, case.a(Q.doflocs)))
        same = fc.dual_norm(case.problem, case.candidate(state))
        assert (result.upper.side, result.lower.side) == ("upper", "lower"), result.upper
        assert result.lower.value <= truth * (1.0 + 1e-9)
        assert truth <= result.upper.value * (1.0 + 1e-12)
        # Both include a quadrature remainder of up to 1e-6.
        assert result.lower.value == pytest.approx(same.lower.value, rel=2e-6)
        # Likewise; but on stretched meshes rounding decides what many steps of conjugate gradients find.
        few = fc.dual_norm(problem, fc.Candidate(state, case.a(Q.doflocs)), steps=3)
        same = fc.dual_norm(case.problem, case.candidate(state), steps=3)
        assert few.upper.value == pytest.approx(same.upper.value, rel=2e-6)


class Exponential:
    """``-(exp(b x) u')' = f`` with a number f: ``exp(b x) u' = C - f x``, the same on a strip in the plane."""

    def __init__(self, basis, b, f, C=0.7, **options):
        self.b, self.f, self.C = b, f, C
        mesh = basis.mesh
        linear = {2: ElementLineP1, 3: ElementTriP1, 4: ElementQuad1}[mesh.t.shape[0]]
        Q = Basis(mesh, linear())
        self.problem = any_coefficient(
            basis, Q, source=np.full(mesh.nelements, f),
            dirichlet={"left": self.value(0.0), "right": self.value(1.0)}, **options,
        )  # fmt: skip
        self.parameter = b * Q.doflocs[0]

    def value(self, x):
        b = self.b
        return float(-np.exp(-b * x) * (self.C / b - self.f * (x / b + 1.0 / b**2)))

    def error(self, state):
        basis = self.problem.basis
        sampler = Sampler(basis.mesh, 60 if basis.mesh.dim() == 1 else 18)
        exact = 0.0 * sampler.x
        exact[0] = np.exp(-self.b * sampler.x[0]) * (self.C - self.f * sampler.x[0])
        slope = exact - sampler.gradients(basis, state)
        return float(np.sqrt(sampler.integral(np.exp(self.b * sampler.x[0]) * dot(slope, slope)).sum()))


def bounds_of(case, rng):
    """The truth and its bounds, for the solution and for a state near it."""
    for noise in (0.0, 0.05):
        state = case.problem.solve(case.parameter).copy()
        state[case.problem.free] += noise * rng.standard_normal(len(case.problem.free))
        result = fc.dual_norm(case.problem, fc.Candidate(state, case.parameter))
        assert (result.upper.side, result.lower.side) == ("upper", "lower"), result.upper
        yield case.error(state), result.lower.value, result.upper.value


@pytest.mark.parametrize("element", [ElementLineP1, ElementLineP2])
@pytest.mark.parametrize("b", [-3.0, 0.5, 6.0])
def test_an_exponential_on_a_line_is_certified_to_nine_digits(element, b):
    rng = np.random.default_rng(3)
    mesh = MeshLine(np.unique(np.r_[0.0, rng.random(12), 1.0])).with_boundaries(SIDES)
    for truth, lower, upper in bounds_of(Exponential(Basis(mesh, element()), b, 2.0), rng):
        assert truth * (1.0 - 1e-9) <= lower <= truth * (1.0 + 1e-9)
        assert truth * (1.0 - 1e-12) <= upper <= truth * (1.0 + 1e-9)


@pytest.mark.parametrize("element", [ElementTriP1, ElementTriP2])
@pytest.mark.parametrize("b", [-2.0, 1.0])
def test_an_exponential_on_triangles_is_certified(element, b):
    mesh = MeshTri.init_sqsymmetric().refined(2).with_boundaries(SIDES)
    case = Exponential(Basis(mesh, element()), b, 2.0)
    for truth, lower, upper in bounds_of(case, np.random.default_rng(5)):
        assert 0.95 * truth <= lower <= truth * (1.0 + 1e-9)
        assert truth <= upper <= 1.1 * truth


def sides(basis, norm="energy", **options):
    problem = any_source(basis, **options)
    q = np.ones(basis.N)
    result = fc.dual_norm(problem, fc.Candidate(problem.solve(q), q), norm=norm)
    return result.upper.side, result.lower.side


TRI, QUAD = MeshTri().refined(2), MeshQuad().refined(2)


@pytest.mark.parametrize("norm", ["energy", "h1"])
@pytest.mark.parametrize("mesh", [TRI, QUAD, MeshLine().refined(3)], ids=["tri", "quad", "line"])
def test_what_is_no_polynomial_makes_a_bound_an_estimate(mesh, norm):
    elem = {2: ElementLineP1, 3: ElementTriP1, 4: ElementQuad1}[mesh.t.shape[0]]
    basis = Basis(mesh.with_boundaries(SIDES), elem())
    assert sides(basis, norm) == ("upper", "lower")
    assert sides(basis, norm, conductivity=lambda x: 2.0 + np.sin(9.0 * x[0])) == ("estimate", "estimate")
    assert sides(basis, norm, reaction=lambda x: np.exp(-9.0 * x[0])) == ("estimate", "estimate")
    # A jump that the mesh does not resolve.
    assert sides(basis, norm, conductivity=lambda x: np.where(x[0] < 0.3, 1.0, 9.0)) == ("estimate", "estimate")
    if mesh.dim() == 2:
        assert sides(basis, norm, neumann={"right": lambda x: np.sin(20.0 * x[1])}) == ("estimate", "estimate")
        assert sides(basis, norm, neumann={"right": lambda x: 2.0 * x[1] ** 3}) == ("estimate", "estimate")
        declared = fc.Polynomial(lambda x: 2.0 * x[1] ** 3, 3)
        assert sides(basis, norm, neumann={"right": declared}) == ("upper", "lower")
        assert sides(basis, norm, robin={"right": (lambda x: np.exp(9 * x[1]), 0.0)}) == ("estimate", "estimate")


def test_a_source_that_is_no_polynomial_makes_an_estimate_near_the_truth():
    basis = zoo.square(4)

    def exact(x):
        return np.sin(np.pi * x[0]) * np.sin(np.pi * x[1])

    # -div(exp(x) grad u) for the solution above.
    def source(x):
        along = np.pi * np.cos(np.pi * x[0]) * np.sin(np.pi * x[1])
        return np.exp(x[0]) * (2.0 * np.pi**2 * exact(x) - along)

    problem = any_coefficient(basis, source=source)
    q = basis.doflocs[0]
    state = problem.solve(q)
    sampler = Sampler(basis.mesh, 12)
    x = sampler.x
    cos, sin = np.cos(np.pi * x), np.sin(np.pi * x)
    slope = np.pi * np.array([cos[0] * sin[1], sin[0] * cos[1]]) - sampler.gradients(basis, state)
    truth = np.sqrt(sampler.integral(np.exp(x[0]) * dot(slope, slope)).sum())
    result = fc.dual_norm(problem, fc.Candidate(state, q))
    assert (result.upper.side, result.lower.side) == ("estimate", "estimate")
    assert 0.97 * truth <= result.lower.value <= truth <= result.upper.value <= 1.03 * truth
