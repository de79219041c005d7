"""Orders of the space-time dual norm, its parts, and what it refuses."""

import numpy as np
import pytest
import zoo
from heat_truth import residual_square
from skfem import Basis, ElementLineP1, ElementLineP2, Functional, MeshLine
from zoo import one_dof

import femcert as fc


def heat(basis, scheme="crank-nicolson", steps=4, time=0.1, parameters=fc.FullSpace, **options):
    return zoo.heat(
        basis, parameters=parameters, sensors=one_dof, times=time, scheme=scheme, steps=steps, **options
    )


def line(n, element=ElementLineP2):
    return Basis(MeshLine(np.linspace(0.0, 1.0, n + 1)), element())


def order(sizes, values):
    return np.polyfit(np.log(sizes), np.log(values), 1)[0]


def solved(basis, scheme, steps, **options):
    problem = heat(basis, scheme, steps, **options)
    q = np.sin(np.pi * basis.doflocs[0])
    return problem, fc.Candidate(problem.trajectory(q), q)


@pytest.mark.parametrize(("scheme", "expected"), [("backward-euler", 1.0), ("crank-nicolson", 2.0)])
def test_order_in_the_time_step(scheme, expected):
    basis, steps = line(64), [4, 8, 16]
    found = [fc.space_time_norm(*solved(basis, scheme, n)) for n in steps]
    for side in ("upper", "lower"):
        rate = -order(steps, [getattr(each, side).value for each in found])
        assert expected - 0.12 <= rate <= expected + 0.12


def test_a_linear_continuation_would_lose_the_second_order():
    basis, steps, norms = line(64), [4, 8, 16], []
    for n in steps:
        problem, candidate = solved(basis, "crank-nicolson", n)
        norms.append(
            np.sqrt(residual_square(basis, candidate.state, problem.time_step, lambda x: 1.0 + 0.0 * x, linear=True))
        )
    assert -order(steps, norms) == pytest.approx(1.0, abs=0.1)
    assert norms[-1] > 20.0 * fc.space_time_norm(problem, candidate).upper.value


@pytest.mark.parametrize(("element", "expected"), [(ElementLineP1, 1.0), (ElementLineP2, 2.0)])
def test_order_in_the_mesh_size(element, expected):
    sizes = [4, 8, 16]
    found = [fc.space_time_norm(*solved(line(n, element), "crank-nicolson", 20, time=0.05)) for n in sizes]
    for side in ("upper", "lower"):
        assert -order(sizes, [getattr(each, side).value for each in found]) == pytest.approx(expected, abs=0.1)


def test_order_in_the_mesh_size_on_triangles():
    sizes, found = [1, 2, 3], []
    for level in sizes:
        basis = zoo.square(level + 1)
        problem = heat(basis, steps=5, time=0.02)
        q = np.sin(np.pi * basis.doflocs[0]) * np.sin(np.pi * basis.doflocs[1])
        found.append(fc.space_time_norm(problem, fc.Candidate(problem.trajectory(q), q)))
        assert found[-1].upper.value <= 1.15 * found[-1].lower.value
    for side in ("upper", "lower"):
        rate = -order([2**level for level in sizes], [getattr(each, side).value for each in found])
        assert rate == pytest.approx(1.0, abs=0.15)


@Functional
def square(w):
    return w["u"] ** 2


@pytest.mark.parametrize("element", [ElementLineP1, ElementLineP2])
def test_the_initial_part_is_the_distance_in_l2(element):
    basis = line(7, element)
    problem, right = solved(basis, "crank-nicolson", 3)
    shift = np.random.default_rng(0).standard_normal(basis.N)
    wrong = fc.Candidate(right.state, right.parameter + shift)
    found = fc.space_time_norm(problem, wrong)
    gap = right.state[:, 0] - wrong.parameter
    fine = Basis(basis.mesh, basis.elem, intorder=10)
    distance = np.sqrt(square.assemble(fine, u=fine.interpolate(gap)))
    assert found.initial.side == "upper"
    assert distance * (1 - 1e-14) <= found.initial.value <= distance * (1 + 1e-11)
    # The residual does not know the parameter.
    assert found.residual.value == fc.space_time_norm(problem, right).residual.value


def test_a_parameter_of_another_degree():
    basis = zoo.square(2, 1, "quad")
    pieces = fc.RegionSpace(basis, np.array_split(np.arange(basis.mesh.nelements), 4))
    problem = heat(basis, "backward-euler", parameters=pieces)
    q = pieces.field([1.0, 2.0, -1.0, 0.5])
    zero = fc.space_time_norm(problem, fc.Candidate(np.zeros((basis.N, 5)), q))
    assert zero.initial.value == pytest.approx(pieces.norm(q), rel=1e-11)
    assert zero.residual.value == 0.0
    assert zero.lower.value == pytest.approx(zero.upper.value, rel=1e-11)


def test_one_step_is_continued_linearly():
    basis = line(6)
    norms = []
    for scheme in ("crank-nicolson", "backward-euler"):
        problem = heat(basis, scheme, steps=1)
        q = np.sin(np.pi * basis.doflocs[0])
        norms.append(fc.space_time_norm(problem, fc.Candidate(np.column_stack([q, 0.3 * q]), q)).upper.value)
    assert norms[0] == pytest.approx(norms[1], rel=1e-10)


def test_a_diffusivity_that_is_no_polynomial_gives_estimates():
    basis = zoo.square(2)
    problem, candidate = solved(basis, "backward-euler", 2, diffusivity=lambda x: np.exp(2.0 * x[0]))
    found = fc.space_time_norm(problem, candidate)
    assert {found.upper.side, found.lower.side, found.residual.side} == {"estimate"}
    assert found.lower.value <= found.upper.value <= 1.2 * found.lower.value


def test_an_insulated_boundary_has_no_energy_norm():
    problem, candidate = solved(line(6), "backward-euler", 3, dirichlet={})
    with pytest.raises(fc.UncertifiedError, match=r"whole boundary is insulated.*Dirichlet or Robin"):
        fc.space_time_norm(problem, candidate)


def test_bad_input():
    basis = line(6)
    problem, candidate = solved(basis, "crank-nicolson", 3)
    u, q = candidate.state, candidate.parameter
    spoiled = u.copy()
    spoiled[3, 2] = np.nan
    for state, parameter, words in [
        (spoiled, q, "state"),
        (u[:-1], q, r"state has shape \(12, 4\); expected"),
        (u[:, :3], q, r"state has shape \(13, 3\); expected"),
        (u, q[:-1], "parameter has shape"),
        (None, q, "has no state"),
    ]:
        with pytest.raises(fc.InputError, match=words):
            fc.space_time_norm(problem, fc.Candidate(state, parameter))
    source = zoo.source(basis, parameters=fc.FullSpace, sensors=problem.sensors)
    with pytest.raises(fc.UncertifiedError, match="depends on time"):
        fc.space_time_norm(source, candidate)
    with pytest.raises(fc.InputError, match=r"expected a femcert.Candidate"):
        fc.space_time_norm(problem, u)
