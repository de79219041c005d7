"""The stability constant ``C = 1 / sigma_min`` of the map from the admissible class to the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular, svd

from ..bound import Bound
from ..errors import InputError, UncertifiedError
from ..problem.base import Problem
from ..problem.checks import Array, frozen, number, real_vector
from ..problem.data import Data
from ..problem.linear import LinearProblem
from ..problem.nonlinear import NonlinearProblem
from .conditional import conditional_parts
from .continuous import continuous_gap, needed_size
from .directions import Directions
from .modulus import Modulus
from .sparse import sparse_extremes
from .weights import Weights, certified_weights

GUARANTEES = ("discrete", "continuous")
# Beyond this many coordinates a dense forward matrix and its SVD are the wrong tools.
MOST_DENSE = 1500


@dataclass(frozen=True)
class Stability:
    """How strongly the data determine the parameter.

    Attributes
    ----------
    constant
        C_stab: ``‖q - q'‖_Q <= C ‖F q - F q'‖_Y`` on the admissible class.
    exponent
        The Hölder exponent p of the paper's Assumption 1; 1 on a finite-dimensional class.
    singular_values
        Of the map from Q to Y, descending.
    weakest
        The parameter of unit norm that the sensors see least (dof vector); None after loading from a file.
    scope
        ``"discrete"``: of the discretized problem. ``"estimate"``: of its linearization at one parameter.
    levels
        On a ball: the range of noise levels on which ``C eps^p`` is above the modulus of continuity.
    method
        ``"dense"`` or ``"sparse"`` (then only the largest and the smallest singular value are known).
    directions
        Singular vectors as parameter fields: which ones the sensors see, and how well; None after loading from a file.
    """

    constant: Bound
    exponent: float
    singular_values: Array
    weakest: Array | None
    scope: str
    levels: tuple[float, float] | None = None
    moduli: Modulus | None = field(default=None, repr=False, compare=False)
    directions: Directions | None = field(default=None, repr=False, compare=False)
    method: str = "dense"
    weighing: Callable[[], Weights] | None = field(default=None, repr=False, compare=False)

    @cached_property
    def weights(self) -> Weights:
        """Rigorous weights of physics and boundary residuals, see `femcert.stability.weights`."""
        if self.weighing is None:
            raise UncertifiedError("weights belong to the problem; a Stability loaded from a file does not know it")
        return self.weighing()

    @property
    def sigma_min(self) -> float:
        """Smallest singular value."""
        return float(self.singular_values[-1])

    @property
    def sigma_max(self) -> float:
        """Largest singular value."""
        return float(self.singular_values[0])

    @property
    def condition(self) -> float:
        """``sigma_max / sigma_min``; infinite if the data do not determine the class."""
        return self.sigma_max / self.sigma_min if self.sigma_min > 0.0 else float("inf")

    def modulus(self, eps: float) -> Bound:
        """``sup { ‖q - q'‖_Q : ‖F q - F q'‖_Y <= eps }`` over two parameters of the ball, from above."""
        if self.moduli is None:
            raise UncertifiedError("there is no modulus; it belongs to a class with a ball, space.within_ball(radius)")
        bound = self.moduli(number(eps, "eps", above=0.0))
        assert isinstance(bound, Bound)
        return bound

    def radius(self, eps: float) -> float:
        """``C eps^p``; on a ball outside the range of the envelope, the modulus itself."""
        if self.levels is not None and eps == 0.0:
            # Data without noise leave what the sensors do not see: omega(0) > 0, and at most that of the range.
            eps = self.levels[0]
        if self.levels is None or self.levels[0] <= eps <= self.levels[1]:
            return float(self.constant.value * eps**self.exponent)
        if self.moduli is None:
            low, high = self.levels
            raise UncertifiedError(f"the envelope covers noise levels in [{low:.3g}, {high:.3g}], not {eps:.3g}")
        return self.modulus(eps).value

    def to_dict(self) -> dict[str, Any]:
        """Plain mapping for JSON, without the field `weakest`."""
        return {
            "constant": self.constant.to_dict(),
            "exponent": self.exponent,
            "singular_values": self.singular_values.tolist(),
            "scope": self.scope,
            "method": self.method,
            "levels": None if self.levels is None else list(self.levels),
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Stability:
        """The inverse of `to_dict`."""
        return cls(
            constant=Bound(**record["constant"]),
            exponent=number(record["exponent"], "exponent", above=0.0),
            singular_values=frozen(real_vector(record["singular_values"], None, "singular_values")),
            weakest=None,
            scope=str(record["scope"]),
            levels=_loaded_levels(record.get("levels")),
            method=str(record.get("method", "dense")),
        )


def _loaded_levels(levels: Any) -> tuple[float, float] | None:
    if levels is None:
        return None
    low, high = levels
    return number(low, "levels[0]", above=0.0), number(high, "levels[1]", above=0.0)


def stability(
    problem: Problem,
    *,
    at: Any = None,
    data: Data | None = None,
    guarantee: str = "discrete",
    levels: Any = None,
    method: str | None = None,
) -> Stability:
    """Stability constant of a problem on its admissible class, from a dense SVD of the ``m x k`` forward matrix.

    In the norms of Q (``G = R' R``) and Y (``C = L L'``) the singular values are those of ``L^-1 F R^-1``.

    Parameters
    ----------
    at
        Where to linearize a nonlinear problem (a parameter, dof vector).
    data
        Its covariance gives the norm of Y; without it the Euclidean norm.
    guarantee
        ``"discrete"``: a statement about the discretized problem. ``"continuous"``: about the equation itself, on the
        class of finite-element functions that the columns of the space are; the singular values are then lower bounds.
    levels
        For a class with a ball and more coordinates than observations, where stability is conditional: the range
        ``(low, high)`` of noise levels on which ``C eps^p`` shall hold. Default: from that of `data` to 100 times it.

    method
        ``"dense"``: the forward matrix and its SVD, all singular values. ``"sparse"``: the extreme ones by Lanczos on
        the optimality system, for large local classes. Default: dense up to 1,500 coordinates; the result says which.

    Raises
    ------
    InputError
        More coordinates than observations: the data cannot determine the class, C is infinite.
    UncertifiedError
        The smallest singular value is zero to rounding, or the columns of the class are nearly dependent.
    """
    if not isinstance(problem, Problem):
        raise InputError(f"problem is a {type(problem).__name__}; expected one such as EllipticSource")
    if data is not None:
        problem.check_data(data)
    if guarantee not in GUARANTEES:
        raise InputError(f"guarantee is {guarantee!r}; expected one of {', '.join(map(repr, GUARANTEES))}")
    if method not in (None, "dense", "sparse"):
        raise InputError(f"method is {method!r}; expected 'dense' or 'sparse'")
    k, m = problem.parameters.dimension, problem.observation_count
    on_ball = k > m and problem.parameters.ball is not None
    if guarantee == "continuous" and (on_ball or method == "sparse"):
        route = "conditional stability on a ball" if on_ball else "method='sparse'"
        raise UncertifiedError(f"guarantee='continuous' is not known for {route}; it speaks of the mesh")
    if on_ball and method == "sparse":
        raise InputError("method='sparse' is for k <= m; the modulus of a class with a ball chooses its own route")
    if on_ball:
        weighing = partial(certified_weights, problem, data=data)
        return Stability(**conditional_parts(problem, data, levels), weighing=weighing)
    if k > m:
        raise InputError(
            f"the admissible class has k = {k} coordinates but there are only m = {m} observations, so C_stab is "
            "infinite; expected k <= m: add sensors, take a smaller class, or a ball: space.within_ball(radius)"
        )
    if method == "sparse" or (method is None and k > MOST_DENSE and guarantee == "discrete" and problem.linear):
        return _sparse(problem, data)
    return _dense(problem, at, data, guarantee)


def _dense(problem: Problem, at: Any, data: Data | None, guarantee: str) -> Stability:
    """From the SVD of the forward matrix, in orthonormal coordinates and whitened data."""
    R = problem.parameters.root
    gap = continuous_gap(problem, data) if guarantee == "continuous" else None
    scaled = _scaled_forward(problem, at, data) if gap is None else gap.forward
    _, sigma, Vt = svd(scaled, full_matrices=False)
    rounding, kept = _rounding(problem, sigma, R)
    linear = problem.linear
    weakest = problem.parameters.field(solve_triangular(R, Vt[-1]))
    weakest = weakest * np.sign(weakest[np.argmax(np.abs(weakest))])
    scope, source = "discrete" if linear else "estimate", "1 / sigma_min"
    if not linear:
        source += " of the linearization; validated(problem, at) says where it holds"
    if gap is not None:
        # Weyl again: the exact singular values are within the gap of those of the mesh.
        left = float(sigma[-1] - rounding - gap.size)
        if not left > 0.0:
            h = needed_size(problem, float(sigma[-1]), gap.size)
            raise UncertifiedError(
                f"not certified on this mesh, refine: sigma_min = {sigma[-1]:.3g} of the mesh is within "
                f"{gap.size:.3g} of that of the continuous problem; elements of size {h:.2g} would do"
            )
        # The singular values are lower bounds too, so rounding belongs to them.
        sigma, rounding = kept * (sigma - rounding - gap.size), 0.0
        scope, source = "continuous", "1 / (sigma_min of the mesh - product of energy errors)"
    constant = 1.0 / (kept * (sigma[-1] - rounding))
    return Stability(
        constant=Bound(constant, "upper" if linear else "estimate", source),
        exponent=1.0,
        singular_values=frozen(np.maximum(sigma, 0.0)),
        weakest=frozen(weakest),
        scope=scope,
        directions=Directions(problem.parameters, frozen(solve_triangular(R, Vt.T)), frozen(np.maximum(sigma, 0.0))),
        weighing=partial(certified_weights, problem, data=data),
    )


def _scaled_forward(problem: Problem, at: Any, data: Data | None) -> Array:
    F = _derivative(problem, at)
    return np.asarray(solve_triangular(problem.parameters.root, (F if data is None else data.whiten(F)).T, trans="T").T)


def _rounding(problem: Problem, sigma: Array, R: Array) -> tuple[float, float]:
    """What rounding may move singular values by, and the part of them that rounding in the Gram matrix leaves."""
    k, m = problem.parameters.dimension, problem.observation_count
    # Weyl: errors of the solves behind F and of the SVD move every singular value by at most this.
    eps = np.finfo(float).eps
    rounding = (problem.rounding + 16.0 * np.sqrt(m * k) * eps) * sigma[0]
    if not sigma[-1] > rounding:
        raise UncertifiedError(
            f"sigma_min = {sigma[-1]:.2g} is zero to rounding (sigma_max = {sigma[0]:.2g}): the sensors do not see "
            "some parameter of the class, C_stab is infinite"
        )
    # Rounding in G, seen through R^-1, changes the norm of Q by a relative part.
    dependence = np.linalg.cond(R / np.linalg.norm(R, axis=0))
    kept = 1.0 - 4.0 * k * eps * dependence**2
    if not kept > 0.5:
        raise UncertifiedError(
            f"the columns of the parameter space are nearly dependent (condition {dependence:.2g}), so C_stab cannot "
            "be computed to any digit; take an orthogonal basis of the class"
        )
    return float(rounding), float(kept)


def _sparse(problem: Problem, data: Data | None) -> Stability:
    largest, smallest, direction = sparse_extremes(problem, data)
    weakest = problem.parameters.field(direction)
    return Stability(
        constant=Bound(1.0 / smallest, "upper", "1 / sigma_min, by Lanczos"),
        exponent=1.0,
        singular_values=frozen(np.array([largest, smallest])),
        weakest=frozen(weakest * np.sign(weakest[np.argmax(np.abs(weakest))])),
        scope="discrete",
        method="sparse",
        weighing=partial(certified_weights, problem, data=data),
    )


def _derivative(problem: Problem, at: Any) -> Array:
    if isinstance(problem, LinearProblem):
        return problem.forward_matrix()
    if not isinstance(problem, NonlinearProblem):
        raise InputError(f"no forward matrix is known for a {type(problem).__name__}")
    if at is None:
        raise InputError("a nonlinear problem has a stability constant at a parameter only; give at=")
    return problem.jacobian(at)
