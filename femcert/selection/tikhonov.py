"""The classical baseline for linear problems: Tikhonov regularization."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.sparse import bmat, csr_matrix

from ..checks import Array, number
from ..errors import InputError
from ..linalg import Factorization
from ..problem.base import Problem
from ..problem.candidate import Candidate
from ..problem.data import Data
from ..problem.forward import LinearMap, normal_of
from ..problem.space import ParameterSpace
from ..problem.states import SparseSystem
from ..residual.optimality import gradient_norm
from .ball import Inverse, ball_form, on_sphere, ridge_in_ball, whitened
from .penalty import SquaredNorm, check_penalty
from .regularized import bounds_of, regularized
from .ridge import MOST_COLUMNS, Metric, Ridge, ridge_of_columns, ridge_of_rows
from .weights import CHOICES, choose_weight

# Up to this many data or coordinates, whichever are fewer, a dense decomposition is quick.
MOST_DENSE_ROWS = 1500
# Entries of a dense forward matrix that still fit (1.6 GB), where sensors couple too many dofs for a sparse system.
MOST_DENSE_ENTRIES = 200_000_000


@dataclass(frozen=True, kw_only=True)
class Tikhonov:
    """``min ‖H u(q) - y‖_Y² + weight ‖q‖²`` over the admissible class. A callable ``(problem, data) -> Candidate``.

    Where the class has a ball ``‖q‖_L <= rho``, the minimum is taken on that ball. If the minimizer without it lies
    outside, ``mu ‖q‖_L²`` is added with the multiplier mu that brings it to the sphere. Where it has bounds, the
    minimum is taken within them.

    Few coordinates: a dense SVD of the forward matrix. A full finite-element space: its ``m x m`` dual with the sparse
    Gram matrix factorized, or, for very many sensors, the sparse optimality system. A dense N x N matrix is never made
    for more than 1,500 dofs.

    Parameters
    ----------
    weight
        The regularization weight (the paper's lambda) > 0, or None to choose it.
    choose
        ``"discrepancy"``, ``"gcv"`` or ``"lcurve"``, where no weight is given. It is chosen without regard to ball and
        bounds; for the total variation by the discrepancy only.
    penalty
        ``"l2"``: the squared norm of Q. ``"h1"``: ``∫ q² + length² |grad q|²``, with the length of the ball of the
        class, or 1. ``"h2"``: see `ParameterSpace.form`. A sparse symmetric positive definite matrix P of the size of
        the dof vector: ``q' P q``. ``"tv"``: the total variation ``∫ |grad q|``, for piecewise constants the jumps
        times the size of the facets; it keeps edges. There and with bounds the minimum is found by `Splitting`, and
        the optimality bounds its proximal gradient step, whatever that iteration did.
    bounds
        ``(lower, upper)``, numbers or dof vectors, None for none: within those of the class, if it has some. They hold
        exactly for `FullSpace`, for others up to what the iteration leaves.

    Examples
    --------
    With a problem and data as in the example of `no_harm`:

    >>> candidate = Tikhonov(choose="discrepancy")(problem, data)
    >>> problem.parameters.project(candidate.parameter)[0].round(1).tolist()
    [1.0, 0.4]
    >>> bool(np.isclose(data.norm(problem.observe(candidate.state) - data.values), data.noise_level))
    True
    """

    weight: float | None = None
    choose: str | None = None
    penalty: Any = "l2"
    bounds: Any = None

    def __post_init__(self) -> None:
        if (self.weight is None) == (self.choose is None):
            raise InputError("give either weight=... or choose='discrepancy', 'gcv' or 'lcurve'")
        if self.weight is not None:
            object.__setattr__(self, "weight", number(self.weight, "weight", above=0.0))
        elif self.choose not in CHOICES:
            raise InputError(f"choose is {self.choose!r}; expected one of {', '.join(CHOICES)}")
        check_penalty(self.penalty)
        if self._varies and self.choose not in (None, "discrepancy"):
            raise InputError(f"choose is {self.choose!r}; expected 'discrepancy' or a weight for the total variation")
        if self.bounds is not None and not (isinstance(self.bounds, (tuple, list)) and len(self.bounds) == 2):
            raise InputError(f"bounds is {self.bounds!r}; expected a pair (lower, upper)")

    @property
    def _varies(self) -> bool:
        return isinstance(self.penalty, str) and self.penalty == "tv"

    def __call__(self, problem: Problem, data: Data) -> Candidate:
        """The regularized reconstruction, with the gradient norm it reached as its optimality."""
        forward = problem.forward
        if forward is None:
            raise InputError(f"Tikhonov solves linear problems; for a {type(problem).__name__} use GaussNewton")
        problem.check_data(data)
        space = problem.parameters
        k, m = space.dimension, problem.observation_count
        bounds = bounds_of(space, self.bounds)
        if self._varies or bounds is not None:
            if k * m > MOST_DENSE_ENTRIES:
                raise InputError(f"{k} coordinates and {m} data are too many for bounds or a total variation")
            metric = None if self._varies else self._metric(space)
            weight = self.weight if self._varies else self._weight(problem, data, metric)
            level = self._level(data)
            c, optimality = regularized(*whitened(forward, data), space, metric, weight, bounds, level)
            return Candidate.from_coefficients(problem, c, optimality=optimality, name="baseline")
        metric = self._metric(space)
        if min(k, m) > MOST_DENSE_ROWS:
            # The equation of a problem with one, where its matrices are known.
            systems = [equation.system() for equation in problem.states]
            system = systems[0] if len(systems) == 1 else None
            if k * m > MOST_DENSE_ENTRIES or (system is not None and _is_local(system)):
                return _from_optimality_system(problem, data, system, self._given(), metric.gram)
        ridge = _ridge(forward, data, metric)
        weight = self._chosen(ridge, data, m)
        c = ridge_in_ball(ridge, forward, data, weight, metric)
        return candidate_from(problem, data, c, weight, metric.gram)

    def _metric(self, space: ParameterSpace) -> Metric:
        if isinstance(self.penalty, str) and self.penalty == "l2":
            return space
        return SquaredNorm(space, self.penalty)

    def _weight(self, problem: Problem, data: Data, metric: Metric | None) -> float:
        """The given one, or the one that is chosen without regard to bounds."""
        if self.weight is not None:
            return self.weight
        assert problem.forward is not None
        assert metric is not None
        return self._chosen(_ridge(problem.forward, data, metric), data, problem.observation_count)

    def _chosen(self, ridge: Ridge, data: Data, m: int) -> float:
        if self.weight is not None:
            return self.weight
        assert self.choose is not None
        return choose_weight(ridge, self.choose, noise_level=self._level(data), observations=m)

    def _level(self, data: Data) -> float:
        """The noise level where it counts: otherwise it need not be known."""
        return data.noise_level if self.choose == "discrepancy" else 0.0

    def _given(self) -> float:
        if self.weight is None:
            raise InputError(f"choose={self.choose!r} is not available for this many sensors and dofs; give weight=...")
        return self.weight


def candidate_from(problem: Problem, data: Data, coefficients: Array, weight: float, gram: Any) -> Candidate:
    """A baseline candidate with the gradient norm of its objective."""
    optimality = gradient_norm(problem, data, coefficients, weight=weight, gram=gram)
    return Candidate.from_coefficients(problem, coefficients, optimality=optimality, name="baseline")


def _ridge(forward: LinearMap, data: Data, metric: Metric | None = None) -> Ridge:
    F, y = whitened(forward, data)
    metric = forward.parameters if metric is None else metric
    if forward.parameters.dimension > max(forward.observation_count, MOST_COLUMNS):
        return ridge_of_rows(F, y, metric)
    if metric is forward.parameters:
        return ridge_of_columns(forward.normal(data), y, metric)
    return ridge_of_columns(normal_of(solve_triangular(metric.root, F.T, trans="T").T), y, metric)


def _is_local(system: SparseSystem) -> bool:
    """Whether ``H' H`` is about as sparse as a finite-element matrix (points and averages, not rays)."""
    rows = np.diff(csr_matrix(system.sensors).indptr).astype(float)
    return bool(np.sum(rows**2) <= 100.0 * system.operator.shape[0])


def _from_optimality_system(
    problem: Problem, data: Data, system: SparseSystem | None, weight: float, gram: Any = None
) -> Candidate:
    """Minimizer from the sparse optimality system in state u, coordinates c and adjoint z.

    ``H' C^-1 H u + A' z = H' C^-1 y``,  ``weight G c - (l B)' z = 0``,  ``A u - l B c = f`` on the free dofs, with
    ``weight G + mu L`` for ``weight G`` where the ball requires it.
    """
    if system is None:
        name = type(problem).__name__
        raise InputError(f"a {name} with this many sensors and dofs is not supported; take fewer sensors")
    if data.covariance is not None and data.covariance.ndim == 2:
        raise InputError("with this many sensors the covariance must be a vector of variances")
    variance = np.ones(data.values.size) if data.covariance is None else np.asarray(data.covariance)
    H, A = system.sensors, system.operator
    HC = csr_matrix(H.multiply(1.0 / variance[:, None])).T
    lB = csr_matrix(system.load @ problem.parameters.matrix)
    G = csr_matrix(problem.parameters.gram if gram is None else gram)
    n, k = A.shape[0], G.shape[0]
    right = np.concatenate([HC @ (data.values - system.prescribed), np.zeros(k), system.known])
    ball = problem.parameters.ball_about_zero
    form = csr_matrix((k, k)) if ball is None else csr_matrix(ball_form(problem.parameters))

    def solves(mu: float) -> tuple[Array, Inverse]:
        penalty = weight * G + mu * form
        matrix = bmat([[HC @ H, None, A.T], [None, penalty, -lB.T], [A, -lB, None]], format="csc")
        factor = Factorization(matrix, definite=False, name="optimality system")
        pad = lambda r: np.concatenate([np.zeros(n), r, np.zeros(n)])  # noqa: E731
        return factor.solve(right)[n : n + k], lambda r: factor.solve(pad(r))[n : n + k]

    c, _ = on_sphere(solves, form, np.inf if ball is None else ball.radius)
    return candidate_from(problem, data, c, weight, gram)
