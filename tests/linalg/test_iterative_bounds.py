"""Certificates made with iterative solves: as good as with factors, and true where the iteration ends early."""

import numpy as np
import pytest
import zoo
from skfem import Basis, ElementTriP1, MeshTri
from zoo import bump, discs

import femcert as fc
from femcert.linalg import Factorization, installed_backends

pytest.importorskip("pyamg")

LOOSE = 1e-4


def problem_on(n, parameters=4):
    centres = [(x, y) for x in (0.2, 0.5, 0.8) for y in (0.2, 0.5, 0.8)]
    given = {"sensors": discs(centres, 0.15), "conductivity": fc.Polynomial(lambda x: 1.0 + x[0], 1)}
    return zoo.source("tri P1", n, parameters=parameters, **given)


@pytest.fixture(scope="module")
def exact():
    """The problem with factors, a truth, its data and a candidate."""
    with fc.use_backend("superlu"):
        problem = problem_on(32)
        truth = problem.parameters.field([1.0, -0.5, 0.3, 0.2])
        data = problem.simulate(truth, noise=0.05)
        problem.forward_matrix()
        candidate = fc.Tikhonov(choose="discrepancy")(problem, data)
    return problem, truth, data, candidate


def loosely(n=32):
    """The same problem, solved to four digits only."""
    problem = problem_on(n)
    with fc.use_backend("multigrid", tolerance=LOOSE):
        problem.factor  # noqa: B018
    assert problem.factor.backend == "multigrid"
    return problem


def test_solves_keep_their_tolerance():
    """In the energy norm, and nearly use it up: the steps do end early."""
    problem = problem_on(48)
    A = problem.operator[problem.free][:, problem.free]
    rng = np.random.default_rng(0)
    right = np.column_stack([rng.standard_normal(A.shape[0]), np.ones(A.shape[0])])
    with fc.use_backend("superlu"):
        x = Factorization(A, definite=True).solve(right)
    for tolerance in (1e-2, 1e-4, 1e-8, 1e-11):
        with fc.use_backend("multigrid", tolerance=tolerance):
            error = Factorization(A, definite=True).solve(right) - x
        relative = np.sqrt(np.sum(error * (A @ error), axis=0) / np.sum(x * (A @ x), axis=0))
        assert np.all(relative <= tolerance)
        assert relative.max() > 1e-3 * tolerance


@pytest.mark.parametrize("name", sorted({"multigrid", *installed_backends()} - {"superlu"}))
@pytest.mark.parametrize(
    ("rule", "close"),
    # What is left of an equilibrated flux by rounding is bounded with large constants; two factorizations differ too.
    [(fc.ResidualRadius(), 1e-9), (fc.ExactRadius(), 1e-9), (fc.GuaranteedRadius(), 1e-7)],
)
def test_certificates_agree_with_those_of_superlu(exact, name, rule, close):
    problem, _, data, candidate = exact
    with fc.use_backend(name):
        other = problem_on(32)
        found = fc.certify(other, data, candidate, rule).radius.value
    assert other.factor.backend == name
    assert found == pytest.approx(fc.certify(problem, data, candidate, rule).radius.value, rel=close)
    assert np.allclose(other.forward_matrix(), problem.forward_matrix(), rtol=1e-9, atol=1e-12)


def test_the_constant_is_not_too_small(exact):
    """The true sigma_min, from factors, is above the bound from loose solves; that is within their error of it."""
    problem, _, data, _ = exact
    true = fc.stability(problem, data=data)
    other = loosely()
    error = np.abs(other.forward_matrix() - problem.forward_matrix()).max()
    assert error > 1e-8 * np.abs(problem.forward_matrix()).max()
    found = fc.stability(other, data=data)
    assert found.constant.value >= true.constant.value
    assert found.constant.value <= 1.5 * true.constant.value
    continuous = fc.stability(loosely(), data=data, guarantee="continuous")
    exactly = fc.stability(problem, data=data, guarantee="continuous")
    assert (1.0 - 1e-6) * exactly.constant.value <= continuous.constant.value <= 1.1 * exactly.constant.value


@pytest.mark.parametrize("rule", [fc.ResidualRadius(), fc.GuaranteedRadius(), fc.ExactRadius()])
def test_loose_radii_contain_the_truth(exact, rule):
    problem, truth, data, candidate = exact
    other = loosely()
    found = fc.certify(other, data, fc.Candidate(other.solve(candidate.parameter), candidate.parameter), rule)
    tight = fc.certify(problem, data, candidate, rule)
    assert found.radius.side == "upper"
    assert found.radius.value >= problem.parameters.norm(truth - candidate.parameter)
    # Never below what exact solves prove, but for the product of two small errors; nor far above.
    assert (1.0 - 1e-6) * tight.radius.value <= found.radius.value <= 1.5 * tight.radius.value


def far_source(reaction):
    """Sources on the left, sensors on the right, where a reaction leaves little of the states."""
    bumps, far = [bump(0.2, 0.3), bump(0.2, 0.7), bump(0.3, 0.5)], [(0.8, y) for y in (0.2, 0.35, 0.5, 0.65, 0.8)]
    return zoo.source("tri P1", 32, parameters=(fc.FunctionSpace, bumps), sensors=discs(far), reaction=reaction)


def cooling(diffusivity):
    """Heat that spreads from the left; at the sensors little of it arrives."""
    basis = Basis(MeshTri.init_tensor(np.linspace(0.0, 1.0, 33), np.linspace(0.0, 0.25, 9)), ElementTriP1())
    bumps = [lambda x, a=a: np.maximum(0.0, 1.0 - ((x[0] - a) / 0.1) ** 2) for a in (0.15, 0.3)]
    far, march = discs([(0.7, 0.1), (0.8, 0.15), (0.9, 0.1)], 0.05), {"times": [0.2, 0.4], "steps": 20}
    return zoo.heat(basis, parameters=(fc.FunctionSpace, bumps), sensors=far, diffusivity=diffusivity, **march)


def test_what_is_below_the_rounding_of_the_states_is_not_seen():
    """Readings of 1e-16 of states of order one, whatever solves."""
    for backend in ("superlu", "multigrid"):
        with fc.use_backend(backend), pytest.raises(fc.UncertifiedError, match="zero to rounding"):
            fc.stability(far_source(1e4))


@pytest.mark.parametrize("tolerance", [1e-4, 1e-8, 1e-13])
@pytest.mark.parametrize(("make", "value"), [(far_source, 0.0), (far_source, 1e3), (cooling, 0.1), (cooling, 0.01)])
def test_what_sensors_hardly_see_is_covered_too(make, value, tolerance):
    """The error of a solve is relative to all of the state, the data are not: bounds hold, or are refused."""
    with fc.use_backend("superlu"):
        problem = make(value)
        truth = problem.parameters.field(np.linspace(1.0, 0.3, problem.parameters.dimension))
        data = problem.simulate(truth, noise=0.01)
        candidate = fc.Tikhonov(weight=1e-6)(problem, data)
        true = fc.stability(problem, data=data).constant.value
        radius = fc.certify(problem, data, candidate, fc.ResidualRadius()).radius.value
    with fc.use_backend("multigrid", tolerance=tolerance):
        other = make(value)
        other.factor  # noqa: B018
    off = np.linalg.solve(problem.parameters.root.T, (other.forward_matrix() - problem.forward_matrix()).T)
    assert np.linalg.norm(off, 2) <= other.error(None) + problem.error(None)
    try:
        found = fc.stability(other, data=data).constant.value
        state = other.solve(candidate.parameter)
        bound = fc.certify(other, data, fc.Candidate(state, candidate.parameter), fc.ResidualRadius()).radius
    except fc.UncertifiedError:
        # Not where factors are no better.
        assert other.error(data) > 1e-6 * np.linalg.norm(problem.scaled(data), 2)
        return
    assert found >= (1.0 - 1e-12) * true
    assert bound.side == "upper"
    assert bound.value >= (1.0 - 1e-9) * radius


@pytest.mark.parametrize("scale", [0.0, 1.0, 1.5])
def test_dual_norms_of_loose_states_hold(exact, scale):
    """``‖u - v‖² = ‖u - u_h‖² + ‖u_h - v‖²`` for the Galerkin state u_h; v is what an iteration left."""
    problem, truth, _, _ = exact
    other = loosely()
    galerkin = problem.solve(truth)
    state = scale * other.solve(truth)
    off = galerkin - state
    bounds = fc.dual_norm(problem, fc.Candidate(galerkin, truth))
    algebraic = np.sqrt(off @ problem.operator @ off)
    least, most = (np.hypot(bound.value, algebraic) for bound in (bounds.lower, bounds.upper))
    found = fc.dual_norm(other, fc.Candidate(state, truth))
    assert found.upper.side == "upper"
    assert least <= found.upper.value <= 1.001 * most
    assert 0.99 * least <= found.lower.value <= most


def test_weights_are_not_too_small(exact):
    problem, _, data, _ = exact
    true = fc.certified_weights(problem, data=data).pde.value
    with fc.use_backend("multigrid"):
        assert fc.certified_weights(problem_on(32), data=data).pde.value == pytest.approx(true, rel=1e-9)
    with pytest.raises(fc.UncertifiedError, match="needs them to rounding"):
        fc.certified_weights(loosely(), data=data)


def test_what_knows_rounding_only_is_refused(exact):
    _, _, data, _ = exact
    with fc.use_backend("multigrid", tolerance=LOOSE), pytest.raises(fc.UncertifiedError, match="a modulus needs them"):
        fc.stability(problem_on(16, lambda basis: fc.FullSpace(basis).within_ball(5.0)), data=data).modulus(0.1)
