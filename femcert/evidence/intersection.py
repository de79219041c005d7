"""Data and a ball together: the intersection of two ellipsoids, bounded by the ellipsoids that contain it.

Every ``kappa > 0`` gives one, ``{ x : q_1(x) + kappa q_2(x) <= 1 + kappa }``; the best of them is the Lagrange dual.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, solve_triangular, svd

from ..checks import Array
from ..errors import InputError, UncertifiedError
from ..linalg.accuracy import EPS, dense_rounding
from .ellipsoid import farthest_axes, support_axes

# Bounds of log kappa, the first step away from 0, and when to stop: the relative gap to a witness, the width in log
# kappa, the distance of log(q_2 / q_1) from 0. Near its minimum the bound is flat, or has a kink.
RANGE, STRIDE, CLOSE, NARROW, BALANCED, MOST_STEPS = 40.0, 2.0, 1e-9, 1e-7, 1e-6, 80
# Numbers in the eigenvectors that are kept at once.
MOST_NUMBERS = 4_000_000

Index = NDArray[np.intp]
Evaluation = Callable[[Array, Index], tuple[Array, Array]]
Merit = Callable[[Array, Index], Array]


class Intersection:
    """``{ x : q_1(x) <= 1, q_2(x) <= 1 }`` with ``q_1 = ‖A x - y‖² / delta²`` and ``q_2 = x' L x / rho²``.

    Both forms are diagonal in the coordinates ``v = W x`` of a generalized singular value decomposition,
    ``q_1 = ‖f_1 v - eta‖² + perp²`` and ``q_2 = ‖f_2 v‖²``. Levels and radii are enlarged by what rounding may do.

    Attributes
    ----------
    centre
        The point where the larger of both is least.
    least
        The smallest delta for which the set is not empty, from below.

    Raises
    ------
    InputError
        L is not symmetric, or has a negative eigenvalue.
    UncertifiedError
        A and L vanish together in some direction, to rounding.
    """

    def __init__(
        self,
        A: Array,
        y: Array,
        level: float,
        L: Array,
        radius: float,
        *,
        rounding: float,
        lost: float = 0.0,
        error: float = 0.0,
    ) -> None:
        m, k = A.shape
        H, relative = _root(L)
        eps = rounding + dense_rounding(m + k, k)
        a, h = (float(np.linalg.norm(part, 2)) or 1.0 for part in (A, H))
        Q, R = qr(np.vstack([A / a, H / h]), mode="economic")
        extremes = svd(R, compute_uv=False)
        if not extremes[-1] > 8.0 * eps * extremes[0]:
            raise UncertifiedError(
                f"data and ball together do not bound the class (condition {extremes[0]:.2g} / {extremes[-1]:.2g}): "
                "some parameter is seen by neither of them to rounding; take a norm for the ball, not a seminorm"
            )
        f1, f2, eta, perp, self._inverse = _diagonal(A, y, a, h, Q, R)
        size = float(np.linalg.norm(y))
        self.reach = _reach(f1, f2, self._inverse, size + level + lost, radius)
        allowance = eps * (size + a * self.reach) + error * self.reach + lost
        delta = level + allowance
        # The error of H, relative to L or in the norm of its rows, whichever is less.
        rho = float(min(radius * np.sqrt(1.0 + relative), np.hypot(radius, k * np.sqrt(16.0 * EPS) * h * self.reach)))
        rho += eps * h * self.reach
        self._A, self._y, self._H = A / delta, y / delta, H / rho
        self._f1, self._f2, self._eta = f1 / delta, f2 / rho, eta / delta
        self._perp = max(perp - eps * size - lost, 0.0) / delta
        # Relative error of W^-1.
        self._error = 16.0 * k * EPS * float(extremes[0] / extremes[-1])
        self.centre = self._inverse @ self._path(_root_of(self._imbalance))
        self.least = max(delta * self._least() - allowance, 0.0)

    def farthest(self, points: Array) -> tuple[Array, Array]:
        """Upper bounds of ``max ‖x - p‖``, and points of the set whose distance bounds it from below."""

        def bound(t: Array, index: Index) -> tuple[Array, Array]:
            return self._farthest_at(t, points[index])

        def distance(x: Array, index: Index) -> Array:
            return np.asarray(np.linalg.norm(x - points[index], axis=-1))

        upper, witness = self._least_bound(bound, distance, len(points))
        error = self._error * (np.linalg.norm(points, axis=-1) + self.reach)
        return upper * (1.0 + self._error) + error, witness

    def support(self, directions: Array) -> tuple[Array, Array]:
        """Upper bounds of ``max d . x``, and points of the set; both agree, since the problem is convex."""
        turned = directions @ self._inverse

        def bound(t: Array, index: Index) -> tuple[Array, Array]:
            centre, scale, slack = self._ellipsoid(t)
            value, z = support_axes(slack[:, None] * scale, turned[index])
            return np.sum(turned[index] * centre, axis=-1) + value, (centre + z) @ self._inverse.T

        def product(x: Array, index: Index) -> Array:
            return np.asarray(np.sum(directions[index] * x, axis=-1))

        upper, witness = self._least_bound(bound, product, len(directions))
        return upper + 2.0 * self._error * self.reach * np.linalg.norm(directions, axis=-1), witness

    def in_ball(self, x: Array) -> NDArray[np.bool_]:
        """Which rows lie in the ball."""
        return np.asarray(self._forms(x)[1] <= 1.0)

    def _forms(self, x: Array) -> tuple[Array, Array]:
        """q_1 and q_2 of the rows."""
        return np.sum((x @ self._A.T - self._y) ** 2, axis=-1), np.sum((x @ self._H.T) ** 2, axis=-1)

    def _ellipsoid(self, t: Array) -> tuple[Array, Array, Array]:
        """Of ``kappa = e^t``: its centre, ``(f_1² + kappa f_2²)^(-1/2)`` and its slack, all in v."""
        kappa = np.exp(t)[..., None]
        ball = kappa * self._f2**2
        D = self._f1**2 + ball
        square = 1.0 - self._perp**2 + kappa[..., 0] - np.sum(ball * self._eta**2 / D, axis=-1)
        square = np.maximum(square, 0.0) + 4.0 * (len(self._f1) + 8.0) * EPS * (1.0 + kappa[..., 0])
        return self._f1 * self._eta / D, 1.0 / np.sqrt(D), np.sqrt(square)

    def _farthest_at(self, t: Array, points: Array) -> tuple[Array, Array]:
        """Upper bounds from the ellipsoids of ``e^t``, one for each point, and their farthest points."""
        k = len(self._f1)
        upper, x = np.empty(len(points)), np.empty(points.shape)
        distinct, place = np.unique(t, return_inverse=True)
        batch = max(MOST_NUMBERS // k**2, 1)
        for first in range(0, len(distinct), batch):
            centre, scale, slack = self._ellipsoid(distinct[first : first + batch])
            Z = self._inverse * scale[:, None, :]
            squares, V = np.linalg.eigh(Z @ np.swapaxes(Z, -1, -2))
            # Squares of half axes are all that the bound needs, and their error is relative to the largest one.
            axes = slack[:, None] * np.sqrt(np.maximum(squares, 0.0) + 16.0 * k * EPS * squares[:, -1:])
            rows = np.flatnonzero((first <= place) & (place < first + batch))
            group = place[rows] - first
            middle = centre @ self._inverse.T
            offset = points[rows] - middle[group]
            for i in range(len(V)):
                offset[group == i] = offset[group == i] @ V[i]
            upper[rows], z = farthest_axes(axes[group], offset)
            for i in range(len(V)):
                z[group == i] = z[group == i] @ V[i].T
            x[rows] = middle[group] + z
        return upper, x

    def _least_bound(self, bound: Evaluation, merit: Merit, count: int) -> tuple[Array, Array]:
        """Minimize ``bound(t)`` over ``t = log kappa``, a quasi-convex function, for each of `count` problems.

        The maximizer x over the ellipsoid of kappa lies on its boundary, ``q_1 - 1 = -kappa (q_2 - 1)``, and both are
        the slopes of the dual: the minimum lies at larger kappa if ``q_2 > 1``, else at smaller ones.
        """
        low, high = np.full(count, -RANGE), np.full(count, RANGE)
        f_low, f_high, t = np.full(count, np.nan), np.full(count, np.nan), np.zeros(count)
        best, known = np.full(count, np.inf), np.full(count, -np.inf)
        witness = np.tile(self.centre, (count, 1))
        active, before = np.arange(count), np.zeros(count, dtype=bool)
        for step in range(MOST_STEPS):
            value, x = bound(t[active], active)
            best[active] = np.minimum(best[active], value)
            inside = self._pulled(x)
            reached = merit(inside, active)
            better = reached > known[active]
            known[active[better]], witness[active[better]] = reached[better], inside[better]
            f = np.subtract(*(np.log(np.maximum(q, 1e-300)) for q in self._forms(x)[::-1]))
            up = f > 0.0
            low[active[up]], f_low[active[up]] = t[active[up]], f[up]
            high[active[~up]], f_high[active[~up]] = t[active[~up]], f[~up]
            # Illinois: an end that stays twice counts half.
            f_low[active[~up & ~before[active]]] *= 0.5
            f_high[active[up & before[active]]] *= 0.5
            before[active] = up
            size = np.abs(best[active] - merit(np.tile(self.centre, (len(active), 1)), active)) + np.abs(best[active])
            open_ = (best[active] - known[active] > CLOSE * size) & (np.abs(f) > BALANCED)
            open_ &= high[active] - low[active] > NARROW
            active = active[open_]
            if not active.size:
                break
            t[active] = _next(t[active], low[active], high[active], f_low[active], f_high[active], step)
        return best, witness

    def _pulled(self, x: Array) -> Array:
        """The last point of the set on the way from the centre to each row."""
        way = x - self.centre
        steps = np.ones(len(x))
        pairs = ((way @ self._A.T, self._A @ self.centre - self._y), (way @ self._H.T, self._H @ self.centre))
        for slope, start in pairs:
            a, b, c = np.sum(slope**2, axis=-1), slope @ start, min(float(start @ start) - 1.0, 0.0)
            root = np.sqrt(b**2 - a * c)
            # Of the two forms of the positive root the one without cancellation.
            other = np.where(b > 0.0, -c, root - b)
            last = np.divide(other, np.where(b > 0.0, b + root, a), out=np.full(len(x), np.inf), where=a > 0.0)
            steps = np.minimum(steps, last)
        return np.asarray(self.centre + steps[:, None] * way)

    def _path(self, t: float) -> Array:
        """The minimizer of ``q_1 + e^t q_2`` in v."""
        return self._f1 * self._eta / (self._f1**2 + np.exp(t) * self._f2**2)

    def _imbalance(self, t: float) -> float:
        """``q_2 - q_1`` on the path, falling in t."""
        v = self._path(t)
        misfit = np.sum((self._f1 * v - self._eta) ** 2) + self._perp**2
        return float(np.sum((self._f2 * v) ** 2) - misfit)

    def _least(self) -> float:
        """``min { q_1(x)^(1/2) : q_2(x) <= 1 }``, from below by weak duality."""
        t = _root_of(lambda t: float(np.sum((self._f2 * self._path(t)) ** 2)) - 1.0)
        ball = np.exp(t) * self._f2**2
        square = self._perp**2 + np.sum(ball * self._eta**2 / (self._f1**2 + ball)) - np.exp(t)
        return float(np.sqrt(max(square, self._perp**2)))


def _diagonal(A: Array, y: Array, a: float, h: float, Q: Array, R: Array) -> tuple[Array, Array, Array, float, Array]:
    """``‖A x - y‖² = ‖f_1 v - eta‖² + perp²`` and ``x' L x = ‖f_2 v‖²`` with ``x = W^-1 v``: f_1, f_2, eta, perp, W^-1.

    From ``[A / a; H / h] = Q R``: the singular vectors X of the upper part of Q diagonalize its lower part as well.
    """
    m, k = A.shape
    U, cosine, Xt = svd(Q[:m], full_matrices=m < k)
    f1, eta = np.zeros(k), np.zeros(k)
    f1[: len(cosine)], eta[: len(cosine)] = a * cosine, (U.T @ y)[: len(cosine)]
    f2 = h * np.linalg.norm(Q[m:] @ Xt.T, axis=0)
    return f1, f2, eta, float(np.linalg.norm(y - U @ (U.T @ y))), np.asarray(solve_triangular(R, Xt.T))


def _reach(f1: Array, f2: Array, inverse: Array, seen: float, radius: float) -> float:
    """A bound of ‖x‖ where ``‖A x‖ <= seen`` and ``x' L x <= rho²``, twice it for errors of A and L themselves."""
    lengths = np.sum(inverse**2, axis=0)
    kappa = np.exp(np.arange(-RANGE, RANGE + 1.0))[:, None]
    # Without data and noise every level is large enough.
    D = (f1 / (seen or 1.0)) ** 2 + kappa * (f2 / radius) ** 2
    return 2.0 * float(np.sqrt(np.min((1.0 + kappa[:, 0]) * np.sum(lengths / D, axis=-1))))


def _root(L: Array) -> tuple[Array, float]:
    """H with ``H' H = L``, and a bound of its error relative to L: infinite for a seminorm.

    With unit diagonal first, ``L = D S D``: a form that weighs coordinates very differently keeps its digits.
    """
    size = float(np.abs(L).max())
    if not np.abs(L - L.T).max() <= 1e-10 * size:
        raise InputError("form is not symmetric; expected the matrix of a squared norm or seminorm")
    diagonal = np.diag(L)
    scale = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    squares, vectors = np.linalg.eigh((L + L.T) / 2.0 / scale / scale[:, None])
    if squares[0] < -1e-10 * max(squares[-1], 1.0) or np.any(diagonal < 0.0):
        least = min(float(squares[0]), float(diagonal.min()))
        raise InputError(f"form has the negative eigenvalue {least:.2g}; expected that of a norm or seminorm")
    error = 16.0 * len(L) * EPS * squares[-1]
    return np.sqrt(np.maximum(squares, 0.0))[:, None] * vectors.T * scale, _share(error, squares[0])


def _share(error: float, least: float) -> float:
    return float(error / (least - error)) if least > error else float("inf")


def _root_of(falling: Callable[[float], float]) -> float:
    """Where a falling function of the logarithm of a multiplier is zero, or an end of the range."""
    low, high = -5.0 * RANGE, 5.0 * RANGE
    if not falling(low) > 0.0:
        return low
    for _ in range(200):
        middle = (low + high) / 2.0
        if falling(middle) > 0.0:
            low = middle
        else:
            high = middle
    return high


def _next(t: Array, low: Array, high: Array, f_low: Array, f_high: Array, step: int) -> Array:
    """Away from 0 until both signs are known; then regula falsi, and every fourth time the middle."""
    width = high - low
    both = ~np.isnan(f_low + f_high)
    share = np.divide(f_low, f_low - f_high, out=np.full(len(t), 0.5), where=both)
    inner = low + (np.clip(share, 1e-3, 1.0 - 1e-3) if step % 4 else 0.5) * width
    outer = np.clip(t + np.where(np.isnan(f_low), -1.0, 1.0) * STRIDE * 2.0**step, -RANGE, RANGE)
    return np.where(both, inner, outer)
