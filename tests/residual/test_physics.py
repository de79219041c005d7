"""The physics and boundary components in every norm that a rule may ask for."""

import numpy as np
import pytest
import zoo
from skfem import BilinearForm
from skfem.helpers import dot, grad

import femcert as fc
from femcert.mesh.elements import mass_matrix
from femcert.residual import evaluate, strong_rms

SIDE_OF = {"equilibrated": "upper", "enriched": "lower", "riesz": "lower", "indicator": "estimate"}
WORDS = {
    "equilibrated": "flux",
    "enriched": "one degree more|high degree",
    "riesz": "Riesz representative in the trial space",
    "indicator": "residual indicators",
}


def source(kind):
    if kind == "coefficient":
        return zoo.coefficient("tri P1", parameters=fc.FullSpace, sensors=3)
    options = {"dirichlet": {"left": 1.0}, "robin": {"right": (2.0, 1.0)}}
    return zoo.source(*kind, parameters=fc.FullSpace, sensors=3, reaction=0.5, **options)


def heat(scheme="crank-nicolson"):
    return zoo.heat("line P2", 8, parameters=fc.FullSpace, sensors=3, times=(0.05, 0.1), scheme=scheme)


@BilinearForm
def own_form(u, v, w):
    return dot(grad(u), grad(v)) + 3.0 * u * v


def own(definite=True):
    return zoo.own_linear(operator=own_form, parameters=fc.FullSpace, sensors=3, definite=definite)


KINDS = [("line P2", 8), ("tri P2", 4), ("quad Q1", 4)]


def disturbed(problem, seed=1, size=0.1):
    """A candidate with wrong boundary values whose state does not solve its equation."""
    rng = np.random.default_rng(seed)
    q = 0.3 * rng.standard_normal(problem.parameters.basis.N)
    u = problem.solve(q)
    return fc.Candidate(u + size * rng.standard_normal(u.shape), q)


def components(problem, candidate, pde_norm, norm="energy"):
    data = fc.Data(np.zeros(problem.observation_count), 0.1)
    found = evaluate(problem, data, candidate, pde_norm=pde_norm, norm=norm)
    return found.pde, found.bc


@pytest.mark.parametrize("norm", ["energy", "h1"])
@pytest.mark.parametrize("method", SIDE_OF)
@pytest.mark.parametrize("kind", [*KINDS, "coefficient"])
def test_components_are_those_of_dual_and_boundary_norm(kind, method, norm):
    problem = source(kind)
    candidate = disturbed(problem)
    pde, bc = components(problem, candidate, method, norm)
    alone = fc.dual_norm(problem, candidate, method, norm=norm)
    assert (pde.value, pde.side) == (alone.best.value, SIDE_OF[method])
    assert pde.source == alone.best.source
    assert any(word in pde.source for word in WORDS[method].split("|"))
    assert bc == fc.boundary_norm(problem, candidate.state, norm="h1")
    assert bc.side == "upper"
    assert bc.value > 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_rms_is_the_default_and_the_paper_s(kind):
    problem = source(kind)
    candidate = disturbed(problem)
    data = fc.Data(np.zeros(3), 0.1)
    default = evaluate(problem, data, candidate)
    assert default == evaluate(problem, data, candidate, pde_norm="rms", norm="h1")
    assert default.pde == fc.Bound(
        strong_rms(problem, candidate.state, candidate.parameter), "estimate", "RMS of the strong residual"
    )
    assert default.bc.value == problem.boundary_defect(candidate.state, candidate.parameter)
    for method in SIDE_OF:
        other = evaluate(problem, data, candidate, pde_norm=method)
        assert (other.data, other.optimality, other.admissibility) == (
            default.data, default.optimality, default.admissibility,
        )  # fmt: skip


@pytest.mark.parametrize("scheme", ["crank-nicolson", "backward-euler"])
def test_a_heat_trajectory_has_a_space_time_norm(scheme):
    problem = heat(scheme)
    rng = np.random.default_rng(2)
    q = rng.standard_normal(problem.basis.N)
    u = problem.trajectory(q) + 0.1 * rng.standard_normal((problem.basis.N, 5))
    candidate = fc.Candidate(u, q)
    pde, bc = components(problem, candidate, "equilibrated")
    whole = fc.space_time_norm(problem, candidate)
    assert pde == whole.residual
    assert bc.value == pytest.approx(whole.initial.value + fc.boundary_norm(problem, u, norm="h1").value, rel=1e-12)
    assert (pde.side, bc.side) == ("upper", "upper")
    assert "initial error" in bc.source


def test_heat_states_without_a_trajectory_use_that_of_the_problem():
    problem = heat()
    rng = np.random.default_rng(3)
    q = rng.standard_normal(problem.basis.N)
    own = fc.space_time_norm(problem, fc.Candidate(problem.trajectory(q), q))
    exact = fc.Candidate(problem.solve(q), q)
    pde, bc = components(problem, exact, "equilibrated")
    assert pde.value == pytest.approx(own.residual.value, rel=1e-10)
    assert bc.value == pytest.approx(own.initial.value, rel=1e-10)
    shift = np.zeros((problem.basis.N, 2))
    shift[problem.free, 1] = rng.standard_normal(len(problem.free))
    moved = components(problem, fc.Candidate(problem.solve(q) + shift, q), "equilibrated")[0]
    M = mass_matrix(problem.basis)
    assert moved.value == pytest.approx(own.residual.value + np.sqrt(shift[:, 1] @ M @ shift[:, 1]), rel=1e-10)


def test_what_heat_cannot_have():
    exact, problem = heat("exact"), heat()
    q = np.ones(exact.basis.N)
    candidate = fc.Candidate(problem.trajectory(q), q)
    with pytest.raises(fc.UncertifiedError, match="no trajectory"):
        components(exact, fc.Candidate(exact.solve(q), q), "equilibrated")
    for method, norm in (("enriched", "energy"), ("riesz", "energy"), ("indicator", "energy"), ("equilibrated", "h1")):
        with pytest.raises(fc.InputError, match=f"'{method}'|'h1'; the space-time norm"):
            components(problem, candidate, method, norm)


def test_tomography_has_no_physics():
    problem = zoo.tomography("quad Q1")
    candidate = fc.Candidate(None, np.ones(problem.basis.N), 0.0)
    for method in SIDE_OF:
        pde, bc = components(problem, candidate, method)
        assert pde == bc == fc.Bound(0.0, "upper", "there is no state equation")


def test_own_forms_have_the_riesz_representative_only():
    problem = own()
    candidate = disturbed(problem)
    pde, bc = components(problem, candidate, "riesz")
    r = problem.residual(candidate.state, candidate.parameter)[problem.free]
    K = own_form.assemble(problem.basis)[problem.free][:, problem.free].toarray()
    assert pde.value == pytest.approx(np.sqrt(r @ np.linalg.solve(K, r)), rel=1e-10)
    assert pde.side == "estimate"
    assert bc == fc.boundary_norm(problem, candidate.state, norm="h1")
    for method in ("equilibrated", "enriched", "indicator"):
        with pytest.raises(fc.UncertifiedError, match=f"'{method}' needs the strong form.*LinearProblem.*use 'riesz'"):
            components(problem, candidate, method)
    with pytest.raises(fc.UncertifiedError, match=r"not said to be definite.*norm='h1'"):
        components(own(definite=False), candidate, "riesz")
    assert components(own(definite=False), candidate, "riesz", "h1")[0].value > 0.0
