"""The stability constant ``C = 1 / sigma_min`` of the map from the admissible class to the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..bound import Bound
from ..checks import Array, frozen, number, real_vector
from ..errors import CoarseMeshError, InputError, UncertifiedError
from ..problem.base import Problem, check_problem
from ..problem.data import Data
from ..problem.forward import normal_of
from ..shown import Shown
from ..timing import stage
from .continuous import MapError, continuous_error, needed_size
from .directions import Directions
from .lowered import lowered_values
from .modulus import Modulus, conditional_parts
from .sparse import sparse_extremes
from .spectrum import Spectrum, spectrum
from .validity import Validity, validation
from .weights import Weights, certified_weights

GUARANTEES = ("discrete", "continuous")
# Beyond this many coordinates a dense forward matrix and its SVD are the wrong tools.
MOST_DENSE = 1500
NOT_VALIDATED = "the linearization was not validated; stability(problem, at=..., data=...) does that"


@dataclass(frozen=True, repr=False)
class Stability(Shown):
    """How strongly the data determine the parameter.

    Attributes
    ----------
    constant
        C_stab: ``‖q - q'‖_Q <= C ‖F q - F q'‖_Y`` on the admissible class. Of a nonlinear problem ``q' = q0`` is the
        parameter of the linearization and q any other one of `validity`, its ball in ``q0 + class``; an estimate
        without one.
    exponent
        The Hölder exponent p of the paper's Assumption 1; 1 on a finite-dimensional class.
    singular_values
        Of the map from Q to Y, descending; of a nonlinear problem, of its linearization.
    weakest
        The parameter of unit norm that the sensors see least (dof vector); None after loading from a file.
    scope
        ``"discrete"``: of the discretized problem; a nonlinear one, on its validated ball. ``"continuous"``: of the
        equation itself. ``"estimate"``: of a linearization that is not validated, see `reason`.
    levels
        On a ball: the range of noise levels on which ``C eps^p`` is above the modulus of continuity.
    method
        ``"dense"`` or ``"sparse"`` (then only the largest and the smallest singular value are known).
    directions
        Singular vectors as parameter fields: which ones the sensors see, and how well; None after loading from a file.
    validity
        Of a nonlinear problem: the ball on which `constant` is proven; None where it is an estimate.
    reason
        Of a nonlinear problem: why the constant is proven on that ball, or why it is an estimate.
    gap
        Of a continuous guarantee: the exact forward map as far as it is known; None after loading from a file.
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
    validity: Validity | None = None
    reason: str = ""
    gap: MapError | None = field(default=None, repr=False, compare=False)

    def summary(self) -> dict[str, str]:
        """Constant, exponent, singular values and scope."""
        seen = f"{self.sigma_max:.4g} to {self.sigma_min:.4g}, condition {self.condition:.4g}"
        valid = {} if not self.reason else {"reason": self.reason}
        return {
            "constant": str(self.constant),
            "exponent": f"{self.exponent:.4g}",
            "singular values": seen,
            "scope": self.scope,
            "method": self.method,
            **valid,
        }

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
            "validity": None if self.validity is None else self.validity.to_dict(),
            "reason": self.reason,
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Stability:
        """The inverse of `to_dict`."""
        validity = record.get("validity")
        return cls(
            constant=Bound.from_dict(record["constant"]),
            exponent=number(record["exponent"], "exponent", least=0.0),
            singular_values=frozen(real_vector(record["singular_values"], None, "singular_values")),
            weakest=None,
            scope=str(record["scope"]),
            levels=_loaded_levels(record.get("levels")),
            method=str(record.get("method", "dense")),
            validity=None if validity is None else Validity.from_dict(validity),
            reason=str(record.get("reason", "")),
        )


def _loaded_levels(levels: Any) -> tuple[float, float] | None:
    if levels is None:
        return None
    low, high = levels
    return number(low, "levels[0]", above=0.0), number(high, "levels[1]", above=0.0)


@stage("stability")
def stability(
    problem: Problem,
    *,
    at: Any = None,
    data: Data | None = None,
    guarantee: str = "discrete",
    levels: Any = None,
    method: str | None = None,
    validate: bool = True,
) -> Stability:
    """Stability constant of a problem on its admissible class, from a dense SVD of the ``m x k`` forward matrix.

    In the norms of Q (``G = R' R``) and Y (``C = L L'``) the singular values are those of ``L^-1 F R^-1``.

    Of a nonlinear problem they are those of the linearization at q0, and C is 1 / sigma_min, an estimate, unless
    `data` are given, a Lipschitz bound of the Jacobian is known (`EllipticCoefficient` has one) and the check of Newton
    and Kantorovich passes (`check_kantorovich`, with ``eps = ‖F(q0) - y‖_Y + delta``). Then C is that of the validated
    ball ``‖q - q0‖_Q <= rho`` of ``q0 + class``, larger than 1 / sigma_min, and an upper bound:
    ``‖q - q0‖_Q <= C ‖F(q) - F(q0)‖_Y`` for every q of that ball, for the discretized problem. So a truth in that ball
    lies within ``C eps`` of q0. A truth outside of the ball, or not in ``q0 + class``, may be anywhere.

    Parameters
    ----------
    at
        q0, where to linearize a nonlinear problem (a parameter, dof vector).
    data
        Its covariance gives the norm of Y; without it the Euclidean norm. Values and noise level serve nonlinear
        problems and balls.
    guarantee
        ``"discrete"``: a statement about the discretized problem. ``"continuous"``: about the equation itself, on the
        class of finite-element functions that the columns of the space are, or of sines and cosines themselves; the
        singular values are then lower bounds. For `EllipticSource` and other linear problems that offer the strong
        form of an elliptic equation with an unknown source, heat on a box with sines, and tomography.
    levels
        For a class with a ball: the range ``(low, high)`` of noise levels on which ``C eps^p``, the envelope of the
        modulus, shall hold. Default: with more coordinates than observations, where stability is conditional, from the
        noise level of `data` to 100 times it; with fewer the modulus is not used, and p = 1.
    method
        ``"dense"``: the forward matrix and its SVD, all singular values. ``"sparse"``: the extreme ones by Lanczos on
        the optimality system, for large local classes; then C is an estimate, since Lanczos may miss the smallest.
        Default: dense up to 1,500 coordinates; the result says which.
    validate
        False: a nonlinear problem is linearized only, in a tenth of the time or less.

    Raises
    ------
    InputError
        More coordinates than observations: the data cannot determine the class, C is infinite.
    UncertifiedError
        The smallest singular value is zero to rounding, or the columns of the class are nearly dependent.

    Examples
    --------
    With a problem as in the example of `no_harm`:

    >>> result = stability(problem)
    >>> print(result.constant)
    <= 12.73 (1 / sigma_min)
    >>> stability(problem, guarantee="continuous").constant.value > result.constant.value
    True
    """
    check_problem(problem)
    if data is not None:
        problem.check_data(data)
    if guarantee not in GUARANTEES:
        raise InputError(f"guarantee is {guarantee!r}; expected one of {', '.join(map(repr, GUARANTEES))}")
    if method not in (None, "dense", "sparse"):
        raise InputError(f"method is {method!r}; expected 'dense' or 'sparse'")
    k, m = problem.parameters.dimension, problem.observation_count
    ball = problem.parameters.ball is not None
    if levels is not None and not ball:
        raise InputError("levels= is for a class with a ball; expected parameters=space.within_ball(radius)")
    on_ball = ball and (k > m or levels is not None)
    if guarantee == "continuous" and (on_ball or method == "sparse"):
        route = "conditional stability on a ball" if on_ball else "method='sparse'"
        raise UncertifiedError(f"guarantee='continuous' is not available for {route}, which is about the mesh")
    if on_ball and method == "sparse":
        raise InputError("method='sparse' is not for the modulus of a class with a ball, which chooses its own route")
    if on_ball:
        weighing = partial(certified_weights, problem, data=data)
        return Stability(**conditional_parts(problem, data, levels), weighing=weighing)
    if k > m:
        raise InputError(
            f"the admissible class has k = {k} coordinates but there are only m = {m} observations, so C_stab is "
            "infinite; expected k <= m: add sensors, take a smaller class, or a ball: space.within_ball(radius), "
            "[class.ball] in a case file"
        )
    large = method is None and k > MOST_DENSE and guarantee == "discrete"
    if method == "sparse" or (large and problem.linearize(at).everywhere):
        return _sparse(problem, data)
    return _dense(problem, at, data, guarantee, validate)


def _dense(problem: Problem, at: Any, data: Data | None, guarantee: str, validate: bool) -> Stability:
    """From the SVD of the forward matrix, in orthonormal coordinates and whitened data."""
    gap = continuous_error(problem, data) if guarantee == "continuous" else None
    forward = problem.linearize(at)
    # A map in closed form has no states.
    closed = gap is not None and gap.closed
    normal = forward.normal(data) if gap is None else normal_of(gap.centre)
    solves = forward.rounding_of(data) if gap is None else forward.corrected_rounding(data)
    found = spectrum(forward, normal, solves, 0.0 if closed else forward.error(data))
    sigma = np.maximum(found.values if gap is None else _lowered(problem, found, normal.right, gap), 0.0)
    constant, scope, validity, reason = Bound(1.0 / found.smallest, "upper", "1 / sigma_min"), "discrete", None, ""
    if gap is not None:
        of_mesh = "1 / (sigma_min of the mesh less energy errors of states and adjoint states)"
        source = "1 / sigma_min of the exact map" if closed else of_mesh
        constant, scope = Bound(1.0 / float(found.kept * sigma[-1]), "upper", source), "continuous"
    if not forward.everywhere:
        validity, reason = validation(problem, at, data) if validate else (None, NOT_VALIDATED)
        scope = "estimate" if validity is None else "discrete"
        estimate = Bound(constant.value, "estimate", "1 / sigma_min of the linearization")
        constant = estimate if validity is None else validity.constant
    weakest = problem.parameters.field(found.coordinates[:, -1])
    return Stability(
        constant=constant,
        exponent=1.0,
        singular_values=frozen(sigma),
        weakest=frozen(weakest * np.sign(weakest[np.argmax(np.abs(weakest))])),
        scope=scope,
        directions=Directions(problem.parameters, frozen(found.coordinates), frozen(sigma)),
        weighing=partial(certified_weights, problem, data=data),
        validity=validity,
        reason=reason,
        gap=gap,
    )


def _lowered(problem: Problem, found: Spectrum, right: Array, gap: MapError) -> Array:
    """Lower bounds of the singular values of the continuous problem."""
    lowered = lowered_values(found.values, right, gap.spread) - found.rounding
    if not lowered[-1] > 0.0:
        smallest, size = float(found.values[-1]), gap.size
        h = needed_size(problem, smallest, size)
        raise CoarseMeshError(
            f"not certified on this mesh, refine: sigma_min = {smallest:.3g} of the mesh is within "
            f"{size:.3g} of that of the continuous problem; elements of size {h:.2g} would do"
        )
    # The singular values are lower bounds too, so rounding belongs to them.
    return np.asarray(found.kept * lowered)


def _sparse(problem: Problem, data: Data | None) -> Stability:
    largest, smallest, rounding, direction = sparse_extremes(problem, data)
    weakest = problem.parameters.field(direction)
    # A residual shows that an eigenvalue is near, not that none is smaller.
    source = "1 / sigma_min by Lanczos, which may have missed a smaller one"
    return Stability(
        constant=Bound(1.0 / (smallest - rounding), "estimate", source),
        exponent=1.0,
        singular_values=frozen(np.array([largest, smallest])),
        weakest=frozen(weakest * np.sign(weakest[np.argmax(np.abs(weakest))])),
        scope="estimate",
        method="sparse",
        weighing=partial(certified_weights, problem, data=data),
    )
