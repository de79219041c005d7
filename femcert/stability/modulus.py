"""Conditional stability: the modulus of continuity of the inverse on a ball, by a family of eigenproblems."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ..bound import Bound
from ..errors import InputError, SolveError, UncertifiedError
from ..linalg import Factorization, dense_least_eigenpair, inverse_eigenpair
from ..problem.base import Problem
from ..problem.checks import Array, frozen, number, real_array
from ..problem.data import Data
from ..problem.linear import BATCH, LinearProblem, dense

# Up to this many coordinates dense eigenproblems are cheap, and exact for any multiplier.
MOST_DENSE = 300
# What Woodbury's formula may cancel before a correction is due.
MOST_CANCELLED = 1e8
# Rows of a tall matrix that are multiplied at a time.
ROWS = 4096
# More observations than this make the dense part of Woodbury's formula too large.
MOST_OBSERVATIONS = 4000
# Noise levels whose squares do not overflow; how far below the balance of both forms a multiplier may be.
MOST_LEVEL, MOST_RATIO = 1e100, 1e13
# How close to each other both bounds come; how far a step out of the multipliers known so far goes; how many steps.
CLOSE, STRIDE, MOST_STEPS = 1e-3, 30.0, 80
# What Lanczos may leave between two eigenvalues that it cannot tell apart, far below `CLOSE`.
UNRESOLVED = 1e-6


class Family:
    """``T(kappa) = F' F + kappa L`` on the coordinates of a class, with Woodbury's formula for its inverse.

    ``F`` is the map from coordinates to whitened data, L the form of the ball. With ``Z = L^-1 F'`` and the
    eigenvectors of ``F Z`` the inverse costs one solve with L, for every kappa.
    """

    def __init__(self, problem: LinearProblem, data: Data | None) -> None:
        space = problem.parameters
        assert space.ball is not None
        B = space.matrix
        L = B.T @ (space.form(space.ball.norm) @ B)
        self.form = L if issparse(L) else np.asarray(L)
        self.gram = space.gram
        self.adjoint = _adjoint(problem, data)
        self.small = space.dimension <= MOST_DENSE
        if self.small:
            self._dense = [dense(self.form), dense(self.gram), self.adjoint @ self.adjoint.T]
            self._limit(float(np.trace(self._dense[2]) / np.trace(self._dense[0])))
            return
        self.factor = Factorization(self.form, definite=True, name="form of the ball")
        # By batches and in place: these two are the largest arrays here.
        m = self.adjoint.shape[1]
        self.lifted = np.empty_like(self.adjoint)
        for i in range(0, m, BATCH):
            self.lifted[:, i : i + BATCH] = self.factor.solve(self.adjoint[:, i : i + BATCH])
        middle = self.adjoint.T @ self.lifted
        self.values, vectors = np.linalg.eigh((middle + middle.T) / 2.0)
        self.values = np.maximum(self.values, 0.0)
        for i in range(0, len(self.lifted), ROWS):
            self.lifted[i : i + ROWS] = self.lifted[i : i + ROWS] @ vectors
        self._limit(float(self.values[-1]))

    def _limit(self, balance: float) -> None:
        """Multipliers so small that Woodbury loses all digits, or that under- or overflow, are not computed."""
        self.least, self.most = balance / (MOST_LEVEL if self.small else MOST_RATIO), balance * MOST_LEVEL

    def eigenpair(self, kappa: float, start: Array | None, *, quick: bool) -> tuple[float, Array]:
        """The least eigenvalue of ``T(kappa)`` in Q from below, and its eigenvector; if quick, perhaps a close one."""
        if self.small:
            form, gram, observed = self._dense
            return dense_least_eigenpair(observed + kappa * form, gram)
        value, vector = inverse_eigenpair(
            lambda x: self.solve(kappa, x), lambda x: self.apply(kappa, x), self.gram, start=start, quick=quick
        )
        return value * (1.0 - UNRESOLVED), vector

    def solve(self, kappa: float, right: Array) -> Array:
        """``T(kappa)^-1 right``; for small kappa the formula cancels digits, which a correction brings back."""
        x = self._woodbury(kappa, right)
        if self.values[-1] < MOST_CANCELLED * kappa:
            return x
        return x + self._woodbury(kappa, right - self.apply(kappa, x))

    def _woodbury(self, kappa: float, right: Array) -> Array:
        inner = (self.lifted.T @ right) / (kappa + self.values)
        return np.asarray((self.factor.solve(right) - self.lifted @ inner) / kappa)

    def apply(self, kappa: float, c: Array) -> Array:
        """``T(kappa) c``."""
        return np.asarray(self.adjoint @ (self.adjoint.T @ c) + kappa * (self.form @ c))


def _adjoint(problem: LinearProblem, data: Data | None) -> Array:
    """``F'``, ``(dimension, observations)``, by one adjoint solve for each observation."""
    m, B = problem.observation_count, problem.parameters.matrix
    if m > MOST_OBSERVATIONS:
        raise InputError(f"the modulus takes at most {MOST_OBSERVATIONS} observations; there are {m}")
    weights = np.eye(m) if data is None else data.whiten(np.eye(m)).T
    result = np.empty((problem.parameters.dimension, m))
    for i in range(0, m, BATCH):
        result[:, i : i + BATCH] = dense(B.T @ problem.adjoint_response(weights[:, i : i + BATCH]))
    result.flags.writeable = False
    return result


@dataclass(frozen=True)
class Point:
    """One multiplier: the least eigenvalue mu of ``T(kappa)`` in Q, from below, and what its eigenvector shows.

    Only a `sure` eigenvalue enters a bound. Of others, found quickly, the eigenvector still shows a direction.
    """

    kappa: float
    eigenvalue: float
    sure: bool
    seen: float
    size: float
    norm: float
    vector: Array = field(repr=False, compare=False)


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

    def __init__(self, problem: Problem, *, data: Data | None = None, radius: float | None = None) -> None:
        if not isinstance(problem, LinearProblem):
            raise InputError(f"problem is a {type(problem).__name__}; the modulus is for linear problems")
        ball = problem.parameters.ball
        if ball is None:
            raise InputError("the class has no ball; expected parameters=space.within_ball(radius, norm='h1')")
        self.radius = 2.0 * ball.radius if radius is None else number(radius, "radius", above=0.0)
        self._family = Family(problem, data)
        self._basis_matrix = problem.parameters.matrix
        self.points: list[Point] = []

    @property
    def adjoint(self) -> Array:
        """``F'`` in whitened data, ``(dimension, observations)``."""
        return self._family.adjoint

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
        return float(np.sqrt(min((self._quotient(p, eps) for p in self.points if p.sure), default=np.inf)))

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
            return float(max(scales))
        kappa, line = meeting
        return float(np.sqrt((eps**2 + kappa * self.radius**2) / line))

    def multiplier(self, eps: float) -> float:
        """The minimizing multiplier ``lam`` in (0, 1) of ``lam F' F / eps² + (1 - lam) L / rho²``."""
        self._close_in(number(eps, "eps", above=0.0))
        best = self._best(eps)
        return float(1.0 / (1.0 + best.kappa * self.radius**2 / eps**2))

    def worst(self, eps: float) -> Array:
        """The parameter (dof vector) of norm at most omega(eps) that the data can hide best."""
        self._close_in(number(eps, "eps", above=0.0))
        p = self._best(eps)
        scale = min(eps / p.seen if p.seen > 0.0 else np.inf, self.radius / p.size)
        return np.asarray(self._basis_matrix @ (scale * p.vector))

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
        p = float(np.polyfit(np.log(levels), np.log(values), 1)[0])
        tests = np.concatenate([levels, [eps for eps in self._meetings() if low < eps < high]])
        C = max(self.bound(float(eps)) / float(eps) ** p for eps in tests)
        return float(C) * (1.0 + 1e-12), p

    def _meetings(self) -> list[float]:
        """Where the bounds of two multipliers are equal."""
        rho2 = self.radius**2
        result = []
        sure = [p for p in self.points if p.sure]
        for i, a in enumerate(sure):
            for b in sure[i + 1 :]:
                slope = 1.0 / a.eigenvalue - 1.0 / b.eigenvalue
                square = rho2 * (b.kappa / b.eigenvalue - a.kappa / a.eigenvalue) / slope if slope != 0.0 else -1.0
                if square > 0.0:
                    result.append(float(np.sqrt(square)))
        return result

    def _best(self, eps: float) -> Point:
        return min(self.points, key=lambda p: self._quotient(p, eps))

    def _close_in(self, eps: float) -> None:
        """Add multipliers until bound and lower bound at eps agree, and the one that decides is sure."""
        for _ in range(MOST_STEPS):
            self._explore(eps)
            best = self._best(eps)
            if best.sure:
                return
            self.points.remove(best)
            if not self._add(best.kappa, start=best.vector, quick=False):
                raise SolveError(f"the modulus at eps = {eps:.3g} is hidden by rounding at its best multiplier")

    def _explore(self, eps: float) -> None:
        """Add multipliers until both bounds at eps agree: each one where the lines of two others meet."""
        if not 1.0 / MOST_LEVEL < eps < MOST_LEVEL:
            raise InputError(f"eps is {eps:g}; expected a noise level in ({1.0 / MOST_LEVEL:g}, {MOST_LEVEL:g})")
        if not self.points:
            self._begin((eps / self.radius) ** 2)
        for _ in range(MOST_STEPS):
            meeting = self._meeting(eps)
            if meeting is None:
                # All eigenvectors on one side: the balance of the constraints lies at smaller or at larger multipliers.
                more = self.points[-1].seen * self.radius < eps * self.points[-1].size
                kappa = self.points[-1].kappa if more else self.points[0].kappa
                balance = kappa * self.radius**2 / eps**2
                if (balance if more else 1.0 / balance) > 1.0 / CLOSE:
                    # One constraint alone decides; the other one adds less than what is left open.
                    return
                if not self._add(kappa * STRIDE if more else kappa / STRIDE):
                    # Rounding hides what lies beyond: the multipliers known so far bound omega, if not as closely.
                    return
                continue
            if np.sqrt(self._quotient(self._best(eps), eps)) <= (1.0 + CLOSE) * self.below(eps):
                return
            if min(abs(np.log(p.kappa / meeting[0])) for p in self.points) < 1e-9:
                return
            if not self._add(meeting[0]):
                return
        raise SolveError(f"the modulus at eps = {eps:.3g} was bracketed only to [{self.below(eps)}, {self.bound(eps)}]")

    def _meeting(self, eps: float) -> tuple[float, float] | None:
        """Multiplier and value where the lines of the eigenvectors on both sides of the balance meet.

        An eigenvector is in balance for the eps with ``eps / rho = ‖F e‖ / ‖e‖_L``, a ratio that grows with kappa.
        """
        low = [p for p in self.points if p.seen * self.radius < eps * p.size]
        high = [p for p in self.points if p.seen * self.radius >= eps * p.size]
        if not low or not high:
            return None
        (A, L), (A2, L2) = ((p.seen**2 / p.norm**2, p.size**2 / p.norm**2) for p in (low[-1], high[0]))
        if not L > L2:
            return low[-1].kappa, A + low[-1].kappa * L
        kappa = min(max((A2 - A) / (L - L2), low[-1].kappa), high[0].kappa)
        return kappa, A + kappa * L

    def _begin(self, kappa: float) -> None:
        """The first multiplier: the given one, or the nearest larger one that rounding does not hide."""
        kappa = min(max(kappa, self._family.least), self._family.most)
        while not self._add(kappa):
            kappa *= STRIDE
            if kappa > self._family.most:
                raise UncertifiedError(f"the modulus is infinite to rounding, up to the multiplier {kappa:.2g}")

    def _add(self, kappa: float, *, start: Array | None = None, quick: bool = True) -> bool:
        """Compute the eigenpair of a multiplier; False if rounding hides it."""
        family = self._family
        if not family.least <= kappa <= family.most:
            return False
        near = min(self.points, key=lambda p: abs(np.log(p.kappa / kappa)), default=None)
        if start is None and near is not None:
            start = near.vector
        value, vector = family.eigenpair(kappa, start, quick=quick)
        if not value > 0.0:
            return False
        point = Point(
            kappa=kappa,
            eigenvalue=value,
            sure=family.small or not quick,
            seen=float(np.linalg.norm(family.adjoint.T @ vector)),
            size=float(np.sqrt(max(float(vector @ (family.form @ vector)), float(np.finfo(float).tiny)))),
            norm=float(np.sqrt(vector @ (family.gram @ vector))),
            vector=frozen(vector),
        )
        self.points = sorted([*self.points, point], key=lambda p: p.kappa)
        return True
