"""Bounds made with solves that are not exact, where their errors weigh most: found by a reviewer, each once broken."""

from functools import partial

import numpy as np
import pytest
import zoo
from extended import refined_solves
from skfem import Basis, ElementTriP1, MeshTri, asm
from skfem.models.poisson import laplace, mass
from zoo import bump, discs, unit_basis

import femcert as fc
from femcert.linalg import Factorization, installed_backends

pytest.importorskip("pyamg")

GRID = [(x, y) for x in (0.2, 0.5, 0.8) for y in (0.2, 0.5, 0.8)]


def source(functions, sensors, **more):
    return zoo.source("tri P1", 24, parameters=(fc.FunctionSpace, functions), sensors=discs(sensors), **more)


@pytest.mark.parametrize(
    ("reaction", "precise", "tolerance"),
    [
        (0.0, 0.1, 1e-13), (10.0, 1e-3, 1e-13), (10.0, 0.1, 1e-8),
        (1e3, 1e-8, 1e-2), (1e3, 1e-8, 1e-4), (1e4, 1e-10, 1e-3),
    ],
)
def test_precise_sensors_far_away_do_not_make_a_bound_too_small(reaction, precise, tolerance):
    """The error of a state is relative to what all sensors see, and weighs as much as the most precise one sees it."""
    near, far = [(0.2, 0.3), (0.2, 0.7)], [(0.8, 0.3), (0.8, 0.7)]
    with fc.use_backend("superlu"):
        exact = source([bump(0.2, 0.3), bump(0.2, 0.7)], near + far, reaction=reaction)
        truth = exact.parameters.field([1.0, -0.4])
        values = exact.observe(exact.solve(truth))
        data = fc.Data(values, 1e-9, covariance=np.array([1.0, 1.0, precise**2, precise**2]))
        true = fc.stability(exact, data=data) if precise > 1e-6 else None
    with fc.use_backend("multigrid", tolerance=tolerance):
        problem = source([bump(0.2, 0.3), bump(0.2, 0.7)], near + far, reaction=reaction)
        F = data.whiten(problem.forward_matrix())
        q = problem.parameters.field(np.linalg.lstsq(F, data.whiten(values), rcond=None)[0])
        candidate = fc.Candidate(problem.solve(q), q)
        for rule in (fc.ResidualRadius(), fc.ExactRadius()):
            try:
                radius = fc.certify(problem, data, candidate, rule).radius
            except fc.UncertifiedError:
                # Not where little is asked of the solves.
                assert true is None
                continue
            assert radius.side != "upper" or radius.value >= problem.parameters.norm(q - truth)
        if true is not None:
            found = fc.stability(problem, data=data).constant.value
            assert (1.0 - 1e-9) * true.constant.value <= found <= 1.01 * true.constant.value


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-6])
def test_projections_on_local_classes_do_not_depend_on_the_tolerance(tolerance):
    """No bound counts an error of theirs, so they have none but rounding."""
    basis = unit_basis("tri P1", 24)
    spaces = []
    for backend, more in (("superlu", {}), ("multigrid", {"tolerance": tolerance})):
        space = fc.CoarseSpace(basis, MeshTri.init_tensor(*2 * [np.linspace(0.0, 1.0, 13)]))
        with fc.use_backend(backend, **more):
            space.project(np.ones(basis.N))
        spaces.append(space)
    q = np.random.default_rng(0).standard_normal(basis.N)
    exact, found = (space.project(q)[0] for space in spaces)
    assert np.abs(found - exact).max() <= 1e-11 * np.abs(exact).max()


@pytest.mark.parametrize("dependence", [1e-2, 1e-4, 1e-6])
def test_nearly_dependent_columns(dependence):
    """The columns are solved one by one; what is left of their errors, orthonormal coordinates make larger."""

    def sine(x):
        return np.sin(2.0 * np.pi * x[0]) * np.sin(np.pi * x[1])

    def wide(x):
        return np.sin(np.pi * x[0]) * np.sin(np.pi * x[1])

    with fc.use_backend("superlu"):
        independent = source([wide, bump(0.3, 0.4), sine], GRID)
        true = fc.stability(independent).constant.value
    shown = 0
    for tolerance in (1e-3, 1e-4, 1e-8, 1e-10, 1e-13):
        with fc.use_backend("multigrid", tolerance=tolerance):
            columns = [wide, bump(0.3, 0.4), lambda x: wide(x) + bump(0.3, 0.4)(x) + dependence * sine(x)]
            problem = source(columns, GRID)
            try:
                found = fc.stability(problem).constant
            except fc.UncertifiedError:
                continue
        assert found.value >= (1.0 - 1e-9 - 1e-14 / dependence) * true
        shown += found.value <= 1.1 * true
    assert shown >= 2


@pytest.mark.parametrize("backend", sorted(installed_backends()))
@pytest.mark.parametrize("robin", [1e-2, 1e-4, 1e-6])
def test_what_ill_conditioned_operators_lose(backend, robin):
    """A weak Robin condition and nothing else: weights are not too small, and solves end where they say."""
    more = {"dirichlet": {}, "robin": {"right": (robin, 0.0)}}
    with fc.use_backend("superlu"):
        exact = source([bump(0.3, 0.4)], GRID, **more)
    H = exact.sensors.matrix.toarray()
    x = refined_solves(exact.operator, exact.factor, H.T)
    gram = (H.astype(np.longdouble) @ x).astype(float)
    true = np.sqrt(np.linalg.eigvalsh((gram + gram.T) / 2.0)[-1])
    with fc.use_backend(backend):
        problem = source([bump(0.3, 0.4)], GRID, **more)
        found = fc.certified_weights(problem).pde
    assert true <= found.value <= 1.01 * true
    if backend == "multigrid":
        error = (problem.factor.solve(H.T) - x).astype(float)
        relative = np.sqrt(np.sum(error * (exact.operator @ error), axis=0) / np.diag(gram))
        assert relative.max() <= problem.factor.tolerance + problem.factor.rounding


@pytest.mark.parametrize("backend", sorted(installed_backends()))
@pytest.mark.parametrize("robin", [1e-2, 1e-6, 1e-8])
def test_a_nonlinear_problem_loses_as_much_as_its_linearization(backend, robin):
    """A weak Robin condition and far sensors: sigma_min from below, or a refusal."""
    basis, bumps = unit_basis("tri P1", 24), [bump(0.2, 0.3), bump(0.2, 0.7), bump(0.3, 0.5)]
    given = {"source": lambda x: np.exp(-60.0 * ((x[0] - 0.2) ** 2 + (x[1] - 0.5) ** 2)), "dirichlet": {}}
    sensors, weak = discs([(0.9, y) for y in (0.1, 0.3, 0.5, 0.7, 0.9)], 0.04), {"right": (robin, 0.0)}
    make = partial(
        zoo.coefficient, basis, parameters=(fc.FunctionSpace, bumps), sensors=sensors, robin=weak, **given
    )

    with fc.use_backend("superlu"):
        exact = make()
        q = exact.parameters.field([0.1, -0.2, 0.15])
        at = exact.linearize(q)
        A = exact._operator(at.state, q)
        # Only gradients of the state count, so its large constant is taken off first.
        load = -exact._equation(np.zeros(basis.N), q)
        state = refined_solves(A, at.factor, load[:, None])[:, 0]
        state = (state - state.mean()).astype(float)
        right = np.asarray(exact._coupling(state, q) @ exact.parameters.matrix)
        J = (exact.sensors.matrix.toarray().astype(np.longdouble) @ refined_solves(A, at.factor, right)).astype(float)
        true = np.linalg.svd(np.linalg.solve(exact.parameters.root.T, J.T), compute_uv=False)[-1]
    with fc.use_backend(backend):
        problem = make()
        try:
            found = fc.validated(problem, q).sigma
        except (fc.SolveError, fc.UncertifiedError):
            assert robin <= 1e-6
            return
    assert found.value <= true
    if robin == 1e-2:
        assert found.value >= 0.999 * true


@pytest.mark.parametrize("aspect", [1.0, 0.1, 0.01, 0.001])
@pytest.mark.parametrize("n", [12, 20])
def test_stretched_meshes_are_solved_to_what_rounding_leaves(aspect, n):
    """The best iterate counts, not the last one."""
    line = np.linspace(0.0, 1.0, n + 1)
    basis = Basis(MeshTri.init_tensor(line, aspect * line), ElementTriP1())
    A = (asm(laplace, basis) + asm(mass, basis)).tocsc()
    right = np.random.default_rng(3).standard_normal((basis.N, 3))
    right[:, 0] = 1.0
    with fc.use_backend("superlu"):
        x = refined_solves(A, Factorization(A, definite=True), right)
    with fc.use_backend("multigrid"):
        factor = Factorization(A, definite=True)
        error = (factor.solve(right) - x).astype(float)
    relative = np.sqrt(np.sum(error * (A @ error), axis=0) / np.sum(right * x, axis=0).astype(float))
    assert relative.max() <= factor.tolerance + factor.rounding <= 1e-3


@pytest.mark.parametrize("tolerance", [1e-10, 3e-11, 1e-12])
@pytest.mark.parametrize("distance", [0.03, 1e-4])
def test_a_truth_that_is_hardly_seen(distance, tolerance):
    """Two sensors close together, the truth along what they see least: a solve loses a part of what they see most."""
    close = discs([(0.3, 0.4), (0.3 + distance, 0.4)], 0.1)
    make = partial(zoo.source, "tri P1", 60, parameters=2, sensors=close)
    with fc.use_backend("superlu"):
        exact = make()
        truth = np.array(fc.stability(exact).weakest)
        values = exact.observe(exact.solve(truth))
    data = fc.Data(values, 2e-16 * np.linalg.norm(values))
    with fc.use_backend("multigrid", tolerance=tolerance):
        problem = make()
        c = np.linalg.lstsq(problem.forward_matrix(), values, rcond=None)[0]
        q = problem.parameters.field(c)
        for rule in (fc.ExactRadius(), fc.ResidualRadius()):
            radius = fc.certify(problem, data, fc.Candidate(problem.solve(q), q), rule).radius
            assert radius.value >= problem.parameters.norm(q - truth)
