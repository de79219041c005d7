"""Conditional stability: the modulus of continuity of the inverse on a ball, and what it adds to the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..bound import Bound
from ..checks import Array, frozen, number, real_array
from ..errors import InputError, UncertifiedError
from ..problem.base import Problem
from ..problem.data import Data
from ..problem.forward import BATCH, Linearization
from .pencil import Pencils

# Noise levels whose squares do not overflow, and how far from the balance of both forms a multiplier may be.
MOST_LEVEL = 1e100
# How close to each other both bounds come; how far a step out of the multipliers known so far goes; how many steps.
CLOSE, STRIDE, MOST_STEPS = 1e-3, 30.0, 80
# So many larger multipliers are tried in vain.
MOST_FAILURES = 4
# Combinations of two eigenvectors that are tried.
ANGLES = 20_001
TINY = float(np.finfo(float).tiny)
# Noise levels that an envelope covers if none are given: from that of the data to this many times it.
REACH = 100.0


@dataclass(frozen=True)
class Point:
    """One multiplier: the least eigenvalue mu of ``T(kappa)`` in Q, from below, and what its eigenvector shows."""

    kappa: float
    eigenvalue: float
    seen: float
    size: float
    norm: float


class Modulus:
    """``omega(eps) = sup { ‖e‖_Q : ‖F e‖_Y <= eps, ‖e‖_L <= rho }``, bounded from above for every eps.

    With ``mu(kappa)`` the least eigenvalue of ``F' F + kappa L`` in the inner product of Q, every kappa > 0 gives
    ``omega(eps)² <= (eps² + kappa rho²) / mu(kappa)``, and the best kappa gives equality: with two quadratic
    constraints there is no duality gap. The multipliers that were computed serve all eps at once.

    Attributes
    ----------
    radius
        rho. The difference of two parameters of a ball has twice its radius.
    points
        The multipliers with their eigenvalues, ascending.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        data: Data | None = None,
        radius: float | None = None,
        pencils: Pencils | None = None,
    ) -> None:
        forward = _everywhere(problem)
        ball = problem.parameters.ball
        if ball is None:
            raise InputError("the class has no ball; expected parameters=space.within_ball(radius, norm='h1')")
        self.radius = 2.0 * ball.radius if radius is None else number(radius, "radius", above=0.0)
        self._pencils = Pencils(forward, data) if pencils is None else pencils
        # The norm of H1 is not below that of L2, whatever rounding does to their matrices.
        inner = problem.parameters.inner
        self._most = self.radius if inner == "l2" and ball.norm in ("l2", "h1") else np.inf
        self._basis_matrix = problem.parameters.matrix
        self.points: list[Point] = []

    def adjoint(self) -> Array:
        """``F'`` in whitened data, ``(dimension, observations)``; it is computed anew."""
        return self._pencils.adjoint()

    def least_misfit(self, values: Array, radius: float, level: float) -> float:
        """Lower bound of ``‖F x - y‖_Y`` over the ball ``‖x‖_L <= radius`` if it is above `level`, else `level`.

        Where the misfit is at most l, ``‖F x‖ <= ‖y‖ + l``, so that the modulus bounds ``‖x‖_Q`` there.

        Parameters
        ----------
        values
            y, not whitened, without the offset of the problem.
        """
        data = self._pencils.data
        size = float(np.linalg.norm(values)) if data is None else data.norm(values)
        found = level
        for _ in range(2):
            self._close_in(size + found)
            least = self._pencils.least_misfit(values, radius, self.bound(size + found))
            if not least > level:
                return level
            found = least if found == level else min(found, least)
        return found

    def __call__(self, eps: Any) -> Bound | list[Bound]:
        """Upper bound of omega at one eps, or a list of them."""
        levels = real_array(eps, "eps")
        if np.any(levels <= 0.0):
            raise InputError(f"eps is {float(levels.min()):g}; expected positive noise levels")
        for level in np.sort(np.unique(levels)):
            self._close_in(float(level))
        values = [Bound(self.bound(float(level)), "upper", "modulus on a ball") for level in np.atleast_1d(levels)]
        return values if levels.ndim else values[0]

    def bound(self, eps: float) -> float:
        """The least bound at eps that the multipliers computed so far give."""
        return min(float(np.sqrt(min((self._quotient(p, eps) for p in self.points), default=np.inf))), self._most)

    def _quotient(self, p: Point, eps: float) -> float:
        return (eps**2 + p.kappa * self.radius**2) / p.eigenvalue

    def below(self, eps: float) -> float:
        """Lower bound of omega, from the eigenvectors: each bounds mu from above by a line, for all kappa.

        The quotient of ``eps² + kappa rho²`` and the least of these lines is smallest where two of them meet.
        """
        meeting = self._meeting(eps)
        if meeting is None:
            # Then an eigenvector in the more active constraint, scaled into both.
            scales = [min(eps / max(p.seen, 1e-300), self.radius / p.size) * p.norm for p in self.points]
            return float(max(scales, default=0.0))
        kappa, line = meeting
        return float(np.sqrt((eps**2 + kappa * self.radius**2) / line))

    def worst(self, eps: float) -> Array:
        """The parameter (dof vector) of norm (nearly) omega(eps) that the data can hide: in both constraints.

        Of all combinations of the two eigenvectors on both sides of the balance, the longest one.
        """
        self._close_in(number(eps, "eps", above=0.0))
        low, high = self._sides(eps)
        pencils = self._pencils
        # Where rounding hides all multipliers, the direction of one of them.
        multipliers = [p.kappa for p in (*low[-1:], *high[:1])] or [pencils.balance]
        X = np.column_stack([pencils.least(kappa)[1] for kappa in multipliers])
        X = X / np.sqrt(np.sum(X * (pencils.gram @ X), axis=0))
        Y = pencils.observe(X)
        forms = [pencils.ball.squares(X), X.T @ (pencils.gram @ X), Y.T @ Y]
        angles = np.linspace(0.0, np.pi, ANGLES)
        weights = np.stack([np.cos(angles), np.sin(angles)])[: len(multipliers)]
        size, norm, seen = (np.sqrt(np.maximum(np.sum(weights * (form @ weights), axis=0), TINY)) for form in forms)
        scale = np.minimum(eps / seen, self.radius / size)
        best = int(np.argmax(scale * norm))
        return np.asarray(self._basis_matrix @ (X @ (scale[best] * weights[:, best])))

    def envelope(self, low: float, high: float, *, count: int = 13) -> tuple[float, float]:
        """``(C, p)`` with ``omega(eps) <= C eps^p`` on [low, high]: p the fitted slope, C the least constant.

        The bound is a minimum of functions that are convex in log eps, so its quotient with ``eps^p`` is largest at an
        end or where two of them meet; C is the maximum over these.
        """
        if not 0.0 < number(low, "low") < number(high, "high"):
            raise InputError(f"the range is [{low}, {high}]; expected 0 < low < high")
        levels = np.geomspace(low, high, count)
        self(levels)
        values = np.array([self.bound(eps) for eps in levels])
        # Where omega is constant, the slope may be fitted as minus rounding.
        p = max(float(np.polyfit(np.log(levels), np.log(values), 1)[0]), 0.0)
        tests = np.concatenate([levels, [eps for eps in self._meetings() if low < eps < high]])
        C = max(self.bound(float(eps)) / float(eps) ** p for eps in tests)
        return float(C) * (1.0 + 1e-12), p

    def _meetings(self) -> list[float]:
        """Where the bounds of two multipliers are equal."""
        rho2 = self.radius**2
        result = []
        for i, a in enumerate(self.points):
            for b in self.points[i + 1 :]:
                slope = 1.0 / a.eigenvalue - 1.0 / b.eigenvalue
                square = rho2 * (b.kappa / b.eigenvalue - a.kappa / a.eigenvalue) / slope if slope != 0.0 else -1.0
                if square > 0.0:
                    result.append(float(np.sqrt(square)))
        return result

    def _best(self, eps: float) -> Point:
        return min(self.points, key=lambda p: self._quotient(p, eps))

    def _close_in(self, eps: float) -> None:
        """Add multipliers until both bounds at eps agree: each one where the lines of two others meet."""
        if not 1.0 / MOST_LEVEL < eps < MOST_LEVEL:
            raise InputError(f"eps is {eps:g}; expected a noise level in ({1.0 / MOST_LEVEL:g}, {MOST_LEVEL:g})")
        if not self.points and not self._begin((eps / self.radius) ** 2):
            return None
        for _ in range(MOST_STEPS):
            meeting = self._meeting(eps)
            if meeting is None:
                # All eigenvectors on one side: the balance of the constraints lies at smaller or at larger multipliers.
                more = self.points[-1].seen * self.radius < eps * self.points[-1].size
                kappa = self.points[-1].kappa if more else self.points[0].kappa
                balance = kappa * self.radius**2 / eps**2
                if (balance if more else 1.0 / balance) > 1.0 / CLOSE:
                    # One constraint alone decides; the other one adds less than what is left open.
                    return None
                if not self._add(kappa * STRIDE if more else kappa / STRIDE):
                    # Rounding hides what lies beyond; larger multipliers bound omega too, if not as closely.
                    return self._climb(eps)
                continue
            if self.bound(eps) <= (1.0 + CLOSE) * self.below(eps):
                return None
            known = min(abs(np.log(p.kappa / meeting[0])) for p in self.points) < 1e-9
            if not (self._refine(meeting[0]) if known else self._add(meeting[0])):
                return self._climb(eps)
        return None

    def _climb(self, eps: float) -> None:
        """Add larger and larger multipliers as long as they make the bound at eps smaller."""
        kappa, failed = self._best(eps).kappa, 0
        while failed < MOST_FAILURES:
            before = self.bound(eps)
            kappa *= np.sqrt(STRIDE)
            if not kappa < MOST_LEVEL * self._pencils.balance:
                return
            failed = 0 if self._add(kappa) and self.bound(eps) < before else failed + 1

    def _meeting(self, eps: float) -> tuple[float, float] | None:
        """Multiplier and value where the lines of the eigenvectors on both sides of the balance meet.

        An eigenvector is in balance for the eps with ``eps / rho = ‖F e‖ / ‖e‖_L``, a ratio that grows with kappa.
        """
        low, high = self._sides(eps)
        if not low or not high:
            return None
        (A, L), (A2, L2) = ((p.seen**2 / p.norm**2, p.size**2 / p.norm**2) for p in (low[-1], high[0]))
        if not L > L2:
            return low[-1].kappa, A + low[-1].kappa * L
        kappa = min(max((A2 - A) / (L - L2), low[-1].kappa), high[0].kappa)
        return kappa, A + kappa * L

    def _sides(self, eps: float) -> tuple[list[Point], list[Point]]:
        low = [p for p in self.points if p.seen * self.radius < eps * p.size]
        return low, [p for p in self.points if p.seen * self.radius >= eps * p.size]

    def _begin(self, kappa: float) -> bool:
        """The first multiplier: the given one, or the nearest larger one that rounding does not hide."""
        balance = self._pencils.balance
        kappa = min(max(kappa, balance / MOST_LEVEL), balance * MOST_LEVEL)
        while not self._add(kappa):
            kappa *= STRIDE
            if kappa > balance * MOST_LEVEL:
                if np.isfinite(self._most):
                    return False
                raise UncertifiedError(f"the modulus is infinite to rounding, up to the multiplier {kappa:.2g}")
        return True

    def _refine(self, kappa: float) -> bool:
        """Closer eigenvalues for the multipliers near `kappa`; False if there are none. Others stay bounds."""
        if not self._pencils.grow():
            return False
        near = [p for p in self.points if abs(np.log(p.kappa / kappa)) < 1.0]
        for p in near:
            self.points.remove(p)
            if not self._add(p.kappa):
                self.points = sorted([*self.points, p], key=lambda point: point.kappa)
        return True

    def _add(self, kappa: float) -> bool:
        """Compute the eigenpair of a multiplier; False if rounding hides it."""
        pencils = self._pencils
        if not 1.0 / MOST_LEVEL <= kappa / pencils.balance <= MOST_LEVEL:
            return False
        value, vector = pencils.least(kappa)
        if not value > 0.0:
            return False
        square = float(vector @ (pencils.gram @ vector))
        point = Point(
            kappa=kappa,
            eigenvalue=value,
            seen=float(np.linalg.norm(pencils.observe(vector[:, None]))),
            size=pencils.ball.norm_from_above(vector),
            norm=float(np.sqrt(square)),
        )
        self.points = sorted([*self.points, point], key=lambda p: p.kappa)
        return True


def conditional_parts(problem: Problem, data: Data | None, levels: Any) -> dict[str, Any]:
    """Constant, exponent, range, modulus, singular values and weakest parameter of a class with a ball."""
    low, high = _range(data, levels)
    modulus = Modulus(problem, data=data)
    constant, exponent = modulus.envelope(low, high)
    weakest = modulus.worst(low)
    weakest = weakest / problem.parameters.norm(weakest)
    return {
        "constant": Bound(constant, "upper", f"envelope of the modulus on [{low:.3g}, {high:.3g}]"),
        "exponent": exponent,
        "singular_values": frozen(_singular_values(problem, modulus)),
        "weakest": frozen(weakest * np.sign(weakest[np.argmax(np.abs(weakest))])),
        "scope": "discrete",
        "levels": (low, high),
        "moduli": modulus,
    }


def _everywhere(problem: Problem) -> Linearization:
    """The forward map of a linear problem."""
    try:
        return problem.linearize()
    except InputError:
        raise InputError(
            f"a {type(problem).__name__} is linearized about a parameter only; the modulus is for linear problems"
        ) from None


def _range(data: Data | None, levels: Any) -> tuple[float, float]:
    if levels is not None:
        if not isinstance(levels, (tuple, list)) or len(levels) != 2:
            raise InputError(f"levels is {levels!r}; expected a pair (low, high) of noise levels")
        low, high = number(levels[0], "levels[0]", above=0.0), number(levels[1], "levels[1]")
        if not low < high:
            raise InputError(f"levels is ({low:g}, {high:g}); expected low < high")
        return low, high
    if data is None or not data.noise_level > 0.0:
        raise InputError("conditional stability depends on the noise; expected data with a noise level, or levels=")
    return data.noise_level, REACH * data.noise_level


def _singular_values(problem: Problem, modulus: Modulus) -> Array:
    """Of the map from Q to Y, descending; with more coordinates than observations there is a zero."""
    adjoint = modulus.adjoint()
    parts = [adjoint[:, i : i + BATCH] for i in range(0, adjoint.shape[1], BATCH)]
    gram = np.hstack([adjoint.T @ problem.parameters.solve_gram(part) for part in parts])
    squares = np.linalg.eigvalsh((gram + gram.T) / 2.0)[::-1]
    k = problem.parameters.dimension
    values = np.sqrt(np.maximum(squares[:k], 0.0))
    return np.append(values, 0.0) if len(values) < k else values
