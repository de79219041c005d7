"""The space-time dual norm against errors known mode by mode, and against closed forms on the interval."""

import numpy as np
import pytest
import zoo
from heat_truth import error_square, residual_square
from plain import any_heat
from scipy.sparse.linalg import splu
from skfem import Basis, BilinearForm, LinearForm
from skfem.element import ElementLineP1, ElementLineP2, ElementQuad2, ElementTriP1, ElementTriP2
from skfem.helpers import dot, grad
from skfem.mesh import MeshLine, MeshQuad, MeshTri

import femcert as fc

SCHEMES = ["backward-euler", "crank-nicolson"]
SIDES = {
    "left": lambda x: x[0] < 1e-9,
    "right": lambda x: x[0] > 1 - 1e-9,
    "flat": lambda x: (x[-1] < 1e-9) | (x[-1] > 1 - 1e-9),
}
COLD = {"dirichlet": {"left": 0.0, "right": 0.0}}
MIXED = {"dirichlet": {"left": 0.0}}
ROBIN = {"dirichlet": {"left": 0.0}, "robin": {"right": (3.0, 0.0)}}
KAPPAS = {
    "constant": fc.Polynomial(lambda x: 0.7 + 0.0 * x[0], 0),
    "linear": fc.Polynomial(lambda x: 0.5 + 2.0 * x[0], 1),
    "jump": lambda x: np.where(x[0] < 0.5, 0.2, 3.0),
}


def heat(basis, scheme, steps=4, time=0.1, **options):
    return any_heat(basis, times=time, scheme=scheme, steps=steps, **options)


def uneven_line(element, n=8, seed=0):
    nodes = np.linspace(0.0, 1.0, n + 1)
    nodes[1:-1] += np.random.default_rng(seed).uniform(-0.3, 0.3, n - 1) / n
    nodes[n // 2] = 0.5
    return Basis(MeshLine(nodes).with_boundaries({name: SIDES[name] for name in ("left", "right")}), element())


def trajectory_of(problem, kind, seed=1):
    """A parameter, and a trajectory that solves its scheme, nearly does, or does not at all."""
    rng = np.random.default_rng(seed)
    x = problem.basis.doflocs[0]
    q = {"smooth": np.sin(np.pi * x), "warm": 1.0 + x}.get(kind, rng.standard_normal(x.size))
    u = np.zeros((x.size, problem.steps + 1)) if kind == "foreign" else problem.trajectory(q).copy()
    if kind in ("noisy", "foreign"):
        u[problem.free] += 0.2 * rng.standard_normal((len(problem.free), problem.steps + 1))
    return q, u


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("element", [ElementLineP1, ElementLineP2])
@pytest.mark.parametrize("kind", ["smooth", "warm", "noisy", "foreign"])
def test_the_error_mode_by_mode(element, scheme, kind):
    basis = uneven_line(element)
    problem = heat(basis, scheme, diffusivity=0.7, **COLD)
    q, u = trajectory_of(problem, kind)
    found = fc.space_time_norm(problem, fc.Candidate(u, q))
    linear = scheme == "backward-euler"
    known, left = error_square(basis, u, q, problem.time_step, 0.7, linear=linear)
    assert (found.upper.side, found.lower.side) == ("upper", "lower")
    # The truth is between `known` and `known + left`; 4,000 modes are nearly all of it.
    assert known <= found.upper.value**2
    assert found.lower.value**2 <= known + left
    assert found.upper.value**2 <= 1.02 * known
    assert found.upper.value / found.lower.value - 1.0 <= 1e-8


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("kappa", KAPPAS)
@pytest.mark.parametrize("boundary", ["cold", "insulated", "robin"])
@pytest.mark.parametrize("element", [ElementLineP1, ElementLineP2])
def test_the_residual_on_lines_by_closed_forms(element, boundary, kappa, scheme):
    basis = uneven_line(element)
    given = KAPPAS[kappa]
    per_element = given(basis.mesh.p[:, basis.mesh.t].mean(axis=1))
    options = {"cold": COLD, "insulated": MIXED, "robin": ROBIN}[boundary]
    problem = heat(basis, scheme, diffusivity=per_element if kappa == "jump" else given, **options)
    right = {"cold": None, "insulated": 0.0, "robin": 3.0}[boundary]
    for kind in ("smooth", "foreign"):
        q, u = trajectory_of(problem, kind)
        found = fc.space_time_norm(problem, fc.Candidate(u, q))
        truth = np.sqrt(
            residual_square(
                basis, u, problem.time_step, lambda x: given(x[None]), linear=scheme == "backward-euler", right=right
            )
        )
        assert found.residual.side == "upper"
        assert truth <= found.residual.value * (1 + 1e-13)
        assert found.residual.value <= truth * (1 + 1e-8)
        assert found.lower.value <= np.hypot(truth, found.initial.value) * (1 + 1e-13)
        assert found.upper.value == pytest.approx(np.hypot(found.residual.value, found.initial.value), rel=1e-12)
        assert np.linalg.norm(found.steps) == pytest.approx(found.residual.value, rel=1e-12)


def strip(kind, n=4):
    """Functions of x alone on the square: P1 and P2 on triangles, Q2 on squares, and the same nodes on a line."""
    nodes = np.linspace(0.0, 1.0, n + 1)
    mesh, element, line = {
        "P1": (MeshTri, ElementTriP1, ElementLineP1),
        "P2": (MeshTri, ElementTriP2, ElementLineP2),
        "Q2": (MeshQuad, ElementQuad2, ElementLineP2),
    }[kind]
    return Basis(mesh.init_tensor(nodes, nodes).with_boundaries(SIDES), element()), Basis(MeshLine(nodes), line())


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("kind", ["P1", "P2", "Q2"])
def test_functions_of_one_variable_on_the_square(kind, scheme):
    basis, line = strip(kind)
    factors = []
    for kappa, boundary in [("constant", COLD), ("constant", ROBIN), ("linear", MIXED), ("jump", ROBIN)]:
        given = KAPPAS[kappa]
        value = given(basis.mesh.p[:, basis.mesh.t].mean(axis=1)) if kappa == "jump" else given
        problem = heat(basis, scheme, steps=3, diffusivity=value, **boundary)
        times = np.linspace(0.0, 1.0, 4)
        levels = [[np.sin(np.pi * x) * np.exp(-3 * t) + t * x * (1.2 - x) for t in times] for x in
                  (basis.doflocs[0], line.doflocs[0])]  # fmt: skip
        u, on_line = (np.array(part).T for part in levels)
        u[problem.boundary.prescribed] = 0.0
        on_line[line.doflocs[0] < 1e-9] = 0.0
        if boundary is COLD:
            on_line[line.doflocs[0] > 1 - 1e-9] = 0.0
        right = None if boundary is COLD else 3.0 if boundary is ROBIN else 0.0
        square = residual_square(
            line, on_line, problem.time_step, lambda x, k=given: k(x[None]), linear=scheme != "crank-nicolson",
            right=right,
        )  # fmt: skip
        found = fc.space_time_norm(problem, fc.Candidate(u, u[:, 0]))
        assert found.initial.value <= 1e-15
        assert (found.upper.side, found.lower.side) == ("upper", "lower")
        assert found.lower.value <= np.sqrt(square) * (1 + 1e-12)
        assert np.sqrt(square) <= found.upper.value * (1 + 1e-12)
        factors.append(found.upper.value / np.sqrt(square))
        assert found.lower.value >= 0.8 * np.sqrt(square)
    assert np.median(factors) <= 1.15
    assert max(factors) <= 1.3


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_bubble_on_squares_whose_modes_are_known(scheme):
    # U = phi(t) 16 x (1-x) y (1-y) is a function of Q2; the coefficients of x (1-x) are 4 sqrt(2) / (j pi)³, j odd.
    basis = zoo.square(2, 2, "quad")
    problem = heat(basis, scheme, steps=3, time=0.06)
    x, y = basis.doflocs
    bubble = 16 * x * (1 - x) * y * (1 - y)
    phi = np.array([1.0, 0.4, 0.2, 0.05])
    found = fc.space_time_norm(problem, fc.Candidate(np.outer(bubble, phi), bubble))
    j = np.pi * np.arange(1, 400, 2)
    b = 16 * np.multiply.outer(4 * np.sqrt(2) / j**3, 4 * np.sqrt(2) / j**3)
    lam = j[:, None] ** 2 + j**2
    k, total = problem.time_step, 0.0
    g, w = np.polynomial.legendre.leggauss(5)
    for step in range(3):
        t = step * k + k * (g + 1) / 2
        if scheme == "backward-euler":
            line = np.polynomial.Polynomial.fit(k * np.array([step, step + 1]), phi[step : step + 2], 1)
        else:
            middle = max(step, 1)
            line = np.polynomial.Polynomial.fit(k * np.arange(middle - 1, middle + 2), phi[middle - 1 : middle + 2], 2)
        for value, rate, weight in zip(line(t), line.deriv()(t), w * k / 2, strict=True):
            total += weight * np.sum((rate + lam * value) ** 2 * b**2 / lam)
    truth = np.sqrt(total)
    # The tail of the series is of relative size (3 / 400 pi)^3.
    assert found.lower.value <= truth * (1 + 1e-6)
    assert truth <= found.upper.value
    assert found.upper.value <= 1.1 * truth


@BilinearForm
def stiffness(u, v, w):
    return dot(grad(u), grad(v))


@LinearForm
def weak(v, w):
    return -w["rate"] * v - dot(grad(w["value"]), grad(v))


@pytest.mark.parametrize("element", [ElementTriP1, ElementTriP2])
def test_trajectories_on_triangles_against_a_finer_space(element):
    mesh = MeshTri().refined(2)
    basis = Basis(mesh, element())
    problem = heat(basis, "backward-euler", steps=3, time=0.06)
    rng = np.random.default_rng(3)
    fine = Basis(mesh.refined(3), ElementTriP2())
    carry = basis.probes(fine.doflocs)
    free = fine.complement_dofs(fine.get_dofs())
    factor = splu(stiffness.assemble(fine)[free][:, free].tocsc())
    for noise in (0.0, 0.1):
        q = np.sin(np.pi * basis.doflocs[0]) * np.sin(2 * np.pi * basis.doflocs[1])
        u = problem.trajectory(q).copy()
        u[problem.free] += noise * rng.standard_normal((len(problem.free), 4))
        found = fc.space_time_norm(problem, fc.Candidate(u, q))
        levels, k, total = carry @ u, problem.time_step, 0.0
        for step in range(3):
            rate = (levels[:, step + 1] - levels[:, step]) / k
            for s in (0.5 - 0.5 / np.sqrt(3), 0.5 + 0.5 / np.sqrt(3)):
                value = (1 - s) * levels[:, step] + s * levels[:, step + 1]
                r = weak.assemble(fine, rate=fine.interpolate(rate), value=fine.interpolate(value))[free]
                total += k / 2 * r @ factor.solve(r)
        # On the finer space the norm is smaller, by little.
        assert total <= found.residual.value**2
        assert found.lower.value**2 - found.initial.value**2 <= 1.02 * total
        assert found.upper.value <= 1.15 * found.lower.value
