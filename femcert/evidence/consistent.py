"""All parameters that agree with the data: how far they are from a candidate, and how far they reach.

Dense and without problem objects: coordinates that are orthonormal in Q, whitened data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import chdtri

from ..checks import Array, frozen, number, real_array, real_vector
from ..errors import InconsistentError, InputError, UncertifiedError
from ..linalg.accuracy import dense_rounding
from ..problem.forward import Normal, normal_of
from .ellipsoid import farthest, support
from .intersection import Intersection

Extreme = Callable[[Array], tuple[Array, Array]]


@dataclass(frozen=True)
class Fit:
    """``‖A x - y‖² = ‖S V'(x - centre)‖² + ‖y_perp‖²``, with leading axes for many of them.

    Attributes
    ----------
    singular, right
        S, ``(..., k)``, and V, ``(..., k, k)``.
    centre
        The least squares solution, ``(..., k)``.
    slack
        ``(delta² - ‖y_perp‖²)^(1/2)`` with the allowance for rounding in delta, ``(...)``.
    least
        ``‖y_perp‖`` without that allowance, ``(...)``: below this noise level no x is consistent.
    allowance
        What rounding may have left in ``A centre - y``, ``(...)``.
    relative
        What rounding may have done to ``‖A x‖``, relatively, ``(...)``: 1 or more where the data do not determine x.
    """

    singular: Array
    right: Array
    centre: Array
    slack: Array
    least: Array
    allowance: Array
    relative: Array

    def about_least_squares(self, level: Array | float) -> Fit:
        """The ellipsoids ``‖A (x - centre)‖ <= level`` instead, enlarged by what rounding may have moved them.

        With ``y = A x + e`` and the orthogonal projection P on the range of A, ``A (centre - x) = P e``. For e standard
        normal ``‖P e‖²`` has the chi-square distribution with k degrees of freedom, whatever else depends on e: so
        with ``level² = chi2_k(1 - zeta)`` the ellipsoid contains the true x with probability ``1 - zeta``.
        """
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            slack = (level + self.allowance) / (1.0 - self.relative)
        return replace(self, slack=np.where(self.relative < 1.0, slack, np.inf), least=np.zeros_like(self.least))

    def farthest(self, points: Array) -> tuple[Array, Array]:
        """See `ConsistentSet.farthest`; points and sets broadcast."""
        offset = points - self.centre
        value, z = farthest(self.singular, _times(offset, self.right), self.slack)
        away = np.linalg.norm(self.centre, axis=-1) + np.linalg.norm(points, axis=-1)
        return value + dense_rounding(*self.right.shape[-2:]) * away, self.centre + _back(z, self.right)

    def support(self, directions: Array) -> tuple[Array, Array]:
        """See `ConsistentSet.support`; directions and sets broadcast."""
        value, z = support(self.singular, _times(directions, self.right), self.slack)
        middle = np.sum(directions * self.centre, axis=-1)
        error = np.linalg.norm(directions, axis=-1) * np.linalg.norm(self.centre, axis=-1)
        return middle + value + dense_rounding(*self.right.shape[-2:]) * error, self.centre + _back(z, self.right)


def fit(
    matrix: Array,
    values: Array,
    level: Array | float,
    *,
    rounding: float = 0.0,
    lost: Array | float = 0.0,
    error: Array | float = 0.0,
    normal: Normal | None = None,
) -> Fit:
    """The ellipsoids ``‖A x - y‖ <= delta`` of many matrices (one SVD each), many data or many levels; all broadcast.

    The true matrix is within ``e = eps ‖A‖ + error`` of the given one, eps being `rounding` and that of the SVD added
    up, and `error` an absolute one. So its consistent parameters fulfil ``‖A x - y‖ <= delta'`` with
    ``delta' = delta + eps ‖y‖ + e ‖x‖ + lost``, where ``‖x‖ <= ‖centre‖ + delta' / s_min`` and `lost` is what y itself
    has lost, an absolute error. For a matrix that is rank deficient to rounding, or has more columns than rows, slack
    is infinite. `normal` is the decomposition of the matrix, where it is known already.
    """
    m, k = matrix.shape[-2:]
    _, U, s, Vt = normal or normal_of(matrix)
    right = np.swapaxes(Vt, -1, -2)
    largest, smallest = (s[..., 0], s[..., -1]) if s.shape[-1] else (np.zeros(s.shape[:-1]), np.zeros(s.shape[:-1]))
    eps = rounding + dense_rounding(m, k)
    off = eps * largest + error
    clear = (smallest > off) & (m >= k)
    eta = _times(values, U)
    known = s > np.asarray(off)[..., None]
    centre = _back(np.where(known, eta, 0.0) / np.where(known, s, 1.0), right)
    perp = np.linalg.norm(values - _back(eta, U), axis=-1)
    size = np.linalg.norm(values, axis=-1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        allowance = eps * size + off * np.linalg.norm(centre, axis=-1) + lost
        relative = np.where(clear, off / smallest, np.inf)
        outer = (level + allowance) / (1.0 - relative)
        # Once more, with the parameters that lie in the set of this level instead of all within delta' / s_min.
        # Where some x explains the data, perp (1 - relative) <= delta + allowance, if anything bounds x.
        least = np.where(clear, np.maximum(perp * (1.0 - np.where(clear, relative, 0.0)) - allowance, 0.0), 0.0)
        outer = np.minimum(outer, level + allowance + relative * _leg(outer, least))
        slack = _leg(outer, least)
    return Fit(s, right, centre, np.where(clear, slack, np.inf), least, allowance, relative)


class ConsistentSet:
    """``E = { x : ‖A x - y‖ <= delta }``, with a ball also ``x' L x <= rho²``.

    Parameters
    ----------
    matrix
        A, ``(m, k)``: the whitened forward matrix in coordinates that are orthonormal in Q; or its decomposition.
    values
        y, ``(m,)``: whitened data, without the offset of the problem.
    level
        The noise level delta.
    form, radius
        L, ``(k, k)``, symmetric and not negative, and rho; both or none of them.
    rounding
        Relative error of A and of the solves behind it. The set is enlarged by it, so that it contains all consistent
        parameters of the exact matrix, also with ``delta = 0``.
    lost
        Absolute error of `values`: what rounding left of the offset that was subtracted from the data.
    error
        Absolute error of A, a norm, beside `rounding`.

    Attributes
    ----------
    centre
        A point of the set: the least squares solution; with a ball the point that is least close to leaving the set.
    consistent_level
        The smallest noise level at which the set is not empty, from below.

    Raises
    ------
    InconsistentError
        The set is empty.
    UncertifiedError
        The set is not bounded: A is rank deficient to rounding, also together with L.
    """

    def __init__(
        self,
        matrix: Any,
        values: Any,
        level: float,
        *,
        form: Any = None,
        radius: float | None = None,
        rounding: float = 0.0,
        lost: float = 0.0,
        error: float = 0.0,
    ) -> None:
        normal = matrix if isinstance(matrix, Normal) else None
        A = real_array(matrix if normal is None else normal.matrix, "matrix")
        if A.ndim != 2 or 0 in A.shape:
            raise InputError(f"matrix has shape {A.shape}; expected (m, k) with m and k at least 1")
        y = real_vector(values, len(A), "values")
        self.level = number(level, "level", least=0.0)
        self.dimension = A.shape[1]
        rounding, lost = number(rounding, "rounding", least=0.0), number(lost, "lost", least=0.0)
        error = number(error, "error", least=0.0)
        if (form is None) != (radius is None):
            raise InputError("a ball needs both form and radius; only one of them came")
        self._fit = fit(A, y, self.level, rounding=rounding, lost=lost, error=error, normal=normal)
        self._within: Intersection | None = None
        if form is not None:
            L = real_array(form, "form")
            if L.shape != (self.dimension, self.dimension):
                raise InputError(f"form has shape {L.shape}; expected ({self.dimension}, {self.dimension})")
            rho = number(radius, "radius", above=0.0)
            self._within = Intersection(A, y, self.level, L, rho, rounding=rounding, lost=lost, error=error)
        self.consistent_level = max(float(self._fit.least), 0.0 if self._within is None else self._within.least)
        if self.level < self.consistent_level:
            raise inconsistent(self.level, self.consistent_level)
        s = self._fit.singular
        if self._within is None and not np.isfinite(self._fit.slack):
            raise UncertifiedError(
                f"the data do not determine the {self.dimension} coordinates of the class ({len(A)} observations, "
                f"singular values from {s[-1]:.2g} to {s[0]:.2g}), so the consistent set is not bounded; take a "
                "smaller class or a ball"
            )
        self.centre = frozen(self._fit.centre if self._within is None else self._within.centre)

    def farthest(self, points: Any) -> tuple[Array, Array]:
        """Upper bounds of ``max { ‖x - p‖ : x in E }`` for the rows p of an ``(n, k)`` array.

        Returns
        -------
        upper, witnesses
            ``(n,)``, and ``(n, k)``: points of E, to rounding. Without a ball they are the maximizers; with one their
            distance is a lower bound.
        """
        rows = self._rows(points, "points")
        if self._within is None:
            return self._fit.farthest(rows)
        return self._smaller(rows, self._fit.farthest, self._within.farthest)

    def support(self, directions: Any) -> tuple[Array, Array]:
        """Upper bounds of ``max { d . x : x in E }`` for the rows d of an ``(n, k)`` array, and points of E."""
        rows = self._rows(directions, "directions")
        if self._within is None:
            return self._fit.support(rows)
        return self._smaller(rows, self._fit.support, self._within.support)

    def confidence_support(self, directions: Any, zeta: float) -> tuple[Array, Array]:
        """Upper bounds of ``d . x`` at the true x, for standard normal noise with probability ``1 - zeta``.

        They hold for all directions at once, so also for those that depend on the noise (Scheffé): the maximum of
        ``d . x`` over the ellipsoid ``‖A (x - x_LS)‖² <= chi2_k(1 - zeta)``. The level and a ball do not count.

        Raises
        ------
        UncertifiedError
            The data alone do not determine x.
        """
        if not np.isfinite(self._fit.slack):
            raise UncertifiedError("a test for Gaussian noise needs data that determine the class; a ball is no noise")
        level = float(np.sqrt(chdtri(self.dimension, zeta)))
        return self._fit.about_least_squares(level).support(self._rows(directions, "directions"))

    def _smaller(self, rows: Array, alone: Extreme, together: Extreme) -> tuple[Array, Array]:
        """The bound from the data alone where its witness lies in the ball, else the smaller one of both."""
        assert self._within is not None
        if not np.isfinite(self._fit.slack):
            return together(rows)
        value, witness = alone(rows)
        rest = np.flatnonzero(~self._within.in_ball(witness))
        if rest.size:
            other, witness[rest] = together(rows[rest])
            value[rest] = np.minimum(value[rest], other)
        return value, witness

    def _rows(self, values: Any, name: str) -> Array:
        rows = real_array(values, name)
        if rows.ndim != 2 or rows.shape[1] != self.dimension:
            raise InputError(f"{name} has shape {rows.shape}; expected (n, {self.dimension})")
        return rows


def inconsistent(level: float, least: float) -> InconsistentError:
    """What is said where nothing in the class explains the data; `least` is the smallest consistent noise level."""
    return InconsistentError(
        f"no parameter of the class explains the data within the noise level {level:.4g}; the smallest consistent one "
        f"is {least:.4g}: model error, wrong noise level or wrong class",
        least,
    )


def _leg(long: Array, short: Array) -> Array:
    """``(long² - short²)^(1/2)``, zero if that is negative."""
    return np.asarray(np.sqrt(np.maximum(long - short, 0.0)) * np.sqrt(long + short))


def _times(rows: Array, matrix: Array) -> Array:
    """``row @ matrix`` for the last axis of `rows` and the last two of `matrix`, leading axes broadcast."""
    return rows @ matrix if matrix.ndim == 2 else np.asarray((rows[..., None, :] @ matrix)[..., 0, :])


def _back(rows: Array, matrix: Array) -> Array:
    """``matrix @ row``, likewise."""
    return _times(rows, np.swapaxes(matrix, -1, -2))
