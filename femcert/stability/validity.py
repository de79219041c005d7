"""Where the linearization of a nonlinear problem can be trusted: a validated ball, and a constant on it.

With ``sigma = sigma_min(J(q0))`` and a Lipschitz constant L of J on the ball ``‖q - q0‖_Q <= rho`` of ``q0 + class``
(of an unknown conductivity: `femcert.problem.curvature`), Taylor's formula gives

    ‖F(q) - F(q0)‖_Y >= (sigma - L ‖q - q0‖_Q / 2) ‖q - q0‖_Q        for q in the ball,
    ‖F(q) - F(q')‖_Y >= (sigma - L rho) ‖q - q'‖_Q                    for q and q' in the ball,

for the discrete problem. Nothing is said of parameters outside the ball, nor of those that are not in ``q0 + class``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..bound import Bound
from ..checks import number, required
from ..errors import InputError, UncertifiedError
from ..problem.base import Problem
from ..problem.curvature import ROUNDING, Curvature
from ..problem.data import Data
from ..problem.forward import Linearization
from .spectrum import spectrum

# Largest L rho / sigma that is chosen: it keeps clear of 1, where the ball is not valid, for a hundredth of the reach.
MOST_CHANGE = 0.9


@dataclass(frozen=True)
class Validity:
    """A ball around a parameter q0, in ``q0 + class``, on which the linearization at q0 decides.

    Attributes
    ----------
    radius
        rho; zero if none was given and there is no such ball.
    lipschitz
        L: ``‖J(q) - J(q')‖ <= L ‖q - q'‖_Q`` for q, q' in the ball, from above.
    sigma
        The smallest singular value of ``J(q0)``, from below; zero if the data cannot determine the class.
    constant
        ``C = 1 / (sigma - L rho / 2)``: ``‖q - q0‖_Q <= C ‖F(q) - F(q0)‖_Y`` for q in the ball, from above. Infinite
        where the ball is not valid.
    valid
        Whether ``L rho < sigma``; F is then injective on the ball.
    reason
        Why the ball is valid or not.
    """

    radius: float
    lipschitz: Bound
    sigma: Bound
    constant: Bound
    valid: bool
    reason: str

    @property
    def reach(self) -> float:
        """The largest ``‖F(q) - F(q0)‖_Y`` that `check_kantorovich` accepts, ``rho / C``."""
        return self.radius / self.constant.value

    @property
    def between(self) -> Bound:
        """``1 / (sigma - L rho)``: ``‖q - q'‖_Q`` is at most this times ``‖F(q) - F(q')‖_Y``, for q, q' in the ball."""
        margin = self.sigma.value - self.lipschitz.value * self.radius if self.valid else 0.0
        return Bound(1.0 / margin if margin > 0.0 else np.inf, "upper", "1 / (sigma_min - L rho)")

    def distance(self, eps: float) -> Bound:
        """Upper bound of ``‖q - q0‖_Q`` for q in the ball with ``‖F(q) - F(q0)‖_Y <= eps``, below ``C eps``.

        The smaller root of ``sigma r - L r²/2 = eps``, the radius of Newton and Kantorovich.

        Raises
        ------
        UncertifiedError
            `check_kantorovich` does not accept eps.
        """
        ok, reason = check_kantorovich(self, eps)
        if not ok:
            raise UncertifiedError(reason)
        level, sigma, L = number(eps, "eps"), self.sigma.value, self.lipschitz.value
        root = 2.0 * level / (sigma + np.sqrt(max(sigma**2 - 2.0 * L * level, 0.0)))
        value = min(root * (1.0 + ROUNDING), self.constant.value * level)
        return Bound(value, "upper", "Newton-Kantorovich radius on a validated ball")

    def to_dict(self) -> dict[str, Any]:
        """Plain mapping for JSON."""
        bounds = {"lipschitz": self.lipschitz, "sigma": self.sigma, "constant": self.constant}
        records = {name: bound.to_dict() for name, bound in bounds.items()}
        return {"radius": self.radius, **records, "valid": self.valid, "reason": self.reason}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Validity:
        """The inverse of `to_dict`."""
        return cls(
            radius=number(record["radius"], "radius", least=0.0),
            lipschitz=Bound.from_dict(record["lipschitz"]),
            sigma=Bound.from_dict(record["sigma"]),
            constant=Bound.from_dict(record["constant"]),
            valid=bool(record["valid"]),
            reason=str(record["reason"]),
        )


def validated(problem: Problem, at: Any, *, data: Data | None = None, radius: float | None = None) -> Validity:
    """A ball around a parameter on which a Lipschitz bound of the Jacobian keeps the problem stable.

    Parameters
    ----------
    at
        q0 (dof vector), the centre. For a statement about the class it must lie in it; project it first.
    data
        Its covariance gives the norm of Y; without it the Euclidean norm.
    radius
        rho. Default: the one with the largest reach ``rho (sigma - L(rho) rho / 2)``, which admits the largest misfit
        and noise. Smaller balls have smaller constants.

    Raises
    ------
    UncertifiedError
        No Lipschitz bound is known for the problem, or its quadrature has weights that are not positive.
    """
    if data is not None:
        problem.check_data(data)
    point = problem.linearize(at)
    bounds = required(point.curvature(data), "a validated ball", "bounds of the curvature (linearize(at))", problem)
    sigma, reason = _smallest(point, data)
    if radius is not None:
        rho = number(radius, "radius", above=0.0)
    else:
        rho = _best_radius(bounds, sigma) if sigma > 0.0 else 0.0
    L = bounds.lipschitz(rho)
    valid = bool(rho > 0.0 and L * rho < sigma)
    if not reason:
        reason = _reason(bounds, rho, L, sigma, valid)
    constant = (1.0 + ROUNDING) / (sigma - 0.5 * L * rho) if valid else np.inf
    return Validity(
        radius=rho,
        lipschitz=Bound(L, "upper", "second derivative on the ball"),
        sigma=Bound(sigma, "lower", "sigma_min at the centre"),
        constant=Bound(constant, "upper", "1 / (sigma_min - L rho / 2) on the validated ball"),
        valid=valid,
        reason=reason,
    )


def check_kantorovich(validity: Validity, eps: float) -> tuple[bool, str]:
    """Whether ``r = C eps`` stays in the validated ball, and what that means.

    With the data y, the misfit ``eta = ‖F(q0) - y‖_Y`` and the noise level delta, a parameter that is consistent with
    the data, ``‖F(q) - y‖_Y <= delta``, has ``‖F(q) - F(q0)‖_Y <= eps = eta + delta``. If ``C eps <= rho``, all of
    these that lie in the ball lie within ``C eps`` of q0 (within `Validity.distance`, which is smaller), any two of
    them within ``2 delta`` times `Validity.between` of each other: one at most for ``delta = 0``. Otherwise a radius
    from the linearization is an estimate. That one exists is not claimed: with more observations than coordinates data
    need not be attained.
    """
    if not isinstance(validity, Validity):
        raise InputError(f"validity is a {type(validity).__name__}; expected the result of validated()")
    level = number(eps, "eps", least=0.0)
    if not validity.valid:
        return False, validity.reason
    r, rho = validity.constant.value * level, validity.radius
    if not r <= rho:
        return False, (
            f"misfit and noise {level:.3g} give the radius {r:.3g}, which leaves the validated ball of radius "
            f"{rho:.3g} (up to {validity.reach:.3g} would do): the linearized radius is an estimate"
        )
    return True, f"every consistent parameter of the ball of radius {rho:.3g} lies within {r:.3g}"


def validation(problem: Problem, at: Any, data: Data | None) -> tuple[Validity | None, str]:
    """The validated ball around `at` if it holds the radius ``C eps``, else None; and why, in a sentence.

    ``eps = ‖F(q0) - y‖_Y + delta``, with what rounding may add to it.
    """
    if data is None:
        return None, "no data are given, and without misfit and noise level no ball can be checked"
    try:
        found = validated(problem, at, data=data)
    except UncertifiedError as error:
        return None, str(error)
    state = problem.solve(at)
    with np.errstate(over="ignore"):
        misfit = data.norm(problem.predict(state, at) - data.values)
        eps = misfit + data.noise_level + problem.lost_to_rounding(data, state, at)
    if not np.isfinite(eps):
        return None, "misfit and noise level are too large for a finite number"
    ok, reason = check_kantorovich(found, eps)
    return (found if ok else None), reason


def _smallest(point: Linearization, data: Data | None) -> tuple[float, str]:
    """sigma_min from below, or zero with the reason why nothing better is known."""
    k, m = point.parameters.dimension, point.observation_count
    if k > m:
        return 0.0, f"the class has k = {k} coordinates but there are only m = {m} observations: C_stab is infinite"
    try:
        return spectrum(point, point.normal(data), point.rounding_of(data)).smallest, ""
    except UncertifiedError as error:
        return 0.0, str(error)


def _best_radius(bounds: Curvature, sigma: float) -> float:
    """The rho of a fine grid that maximizes the reach ``rho (sigma - L(rho) rho / 2)``; any other is as safe."""
    most = min(sigma / bounds.lipschitz(0.0), bounds.reach)
    radii = most * np.geomspace(1e-4, 1.0, 600)
    change = np.array([bounds.lipschitz(rho) for rho in radii]) * radii / sigma
    reach = np.where(change <= MOST_CHANGE, radii * (1.0 - 0.5 * np.minimum(change, 1.0)), 0.0)
    return float(radii[np.argmax(reach)])


def _reason(bounds: Curvature, rho: float, L: float, sigma: float, valid: bool) -> str:
    if valid:
        return f"L rho = {L * rho:.3g} is below sigma_min = {sigma:.3g} on the ball of radius {rho:.3g}"
    if not rho < bounds.reach:
        return f"the ball of radius {rho:.3g} may hold {bounds.beyond}"
    return (
        f"the Jacobian may change by L rho = {L * rho:.3g} on the ball of radius {rho:.3g}, and sigma_min is only "
        f"{sigma:.3g}: the ball is too big"
    )
