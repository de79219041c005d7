"""Ends of intervals for truths within bounds: strict bounds, from dual points.

With ``‖T q + E w - b‖ <= chi``, ``‖q - q0‖_L <= rho``, ``‖w‖ <= r`` and ``lower <= q <= upper``, every y and every
``s, t >= 0`` that are zero where there is no bound give

    ``psi . q <= y . b + chi ‖y‖ + r ‖E' y‖ + (psi - T' y - s + t) . q0 + rho ‖psi - T' y - s + t‖_{L^-1}
               + s . upper - t . lower``,

whatever an optimizer did to find them. The inequality of the data is one event for all functionals at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import minimize

from ..checks import Array
from ..linalg.accuracy import EPS
from ..problem.forward import dense
from .sights import BallInverse, Observed, Part

# Of L-BFGS-B: a dual point need not be the best one.
OPTIONS = {"maxiter": 400, "maxfun": 600, "maxcor": 20, "ftol": 1e-11, "gtol": 1e-9}


class StrictBounds:
    """The dual of one experiment with bounds.

    Parameters
    ----------
    known
        With a ball that bounds all directions.
    rows
        ``T'``, ``(k, m)``: whitened sensors as functionals on the coordinates.
    """

    def __init__(self, known: Observed, rows: Array) -> None:
        space = known.forward.parameters
        assert space.ball is not None
        assert space.bounds is not None
        self._inverse = BallInverse(space)
        self._rows, self._matrix, self._rho = rows, space.matrix, space.ball.radius
        self._models: Sequence[Part] = [part for part in known.parts if part.systematic]
        self._rounding = known.rounding
        centre = np.zeros(space.size) if space.ball.centre is None else space.ball.centre
        # About the centre, so that it does not enter.
        self._lower, self._upper = space.bounds.lower - centre, space.bounds.upper - centre
        self._below, self._above = np.isfinite(self._lower), np.isfinite(self._upper)

    def upper(self, psi: Array, values: Array, level: float, start: Array) -> float:
        """The largest value of ``psi . (q - q0)``, from above.

        Parameters
        ----------
        psi
            A functional on the dofs.
        values, level
            b and chi.
        start
            y to begin with: the affine weights.
        """
        m, below, above = len(values), int(self._below.sum()), int(self._above.sum())
        units = np.concatenate([
            np.full(m, max(float(np.linalg.norm(start)), 1e-300)),
            np.full(below + above, float(np.abs(psi).max()) or 1.0),
        ])  # fmt: skip
        size = np.abs(values).max() + level + 1.0

        def evaluated(x: Array) -> tuple[float, Array]:
            value, gradient = self._dual(units * x, psi, values, level)
            return value / size, gradient * units / size

        x0 = np.concatenate([start, np.zeros(below + above)]) / units
        limits = [(None, None)] * m + [(0.0, None)] * (below + above)
        found = minimize(evaluated, x0, jac=True, bounds=limits, method="L-BFGS-B", options=OPTIONS).x
        # Whatever came out: a dual point, evaluated anew.
        found[m:] = np.maximum(found[m:], 0.0)
        return min(evaluated(found)[0], evaluated(x0)[0]) * size

    def _dual(self, x: Array, psi: Array, values: Array, level: float) -> tuple[float, Array]:
        """The bound at a dual point, from above but for its last digits, and its gradient."""
        m, below = len(values), int(self._below.sum())
        y, t, s = x[:m], x[m : m + below], x[m + below :]
        rest = psi.copy()
        rest[self._below] += t
        rest[self._above] -= s
        v = np.asarray(self._matrix.T @ rest) - self._rows @ y
        z = self._inverse.apply(v[:, None])[:, 0]
        length = float(np.sqrt(max(float(v @ z), 0.0)))
        loss = self._inverse.rounding + 64.0 * EPS
        direction = self._rho * z / (length or 1.0)
        field = np.asarray(self._matrix @ direction)
        norm = float(np.linalg.norm(y))
        slope: Array = values + (level + self._rounding) * y / (norm or 1.0) - self._rows.T @ direction
        value = float(y @ values) + (level + self._rounding) * norm + self._rho * length * (1.0 + loss)
        for part in self._models:
            seen = part.sight.gram @ y
            reach = float(np.sqrt(max(float(y @ seen), 0.0)))
            value += part.sight.radius * reach
            slope = slope + part.sight.radius * seen / (reach or 1.0)
        value += float(s @ self._upper[self._above] - t @ self._lower[self._below])
        gradient = np.concatenate(
            [slope, field[self._below] - self._lower[self._below], self._upper[self._above] - field[self._above]]
        )
        return value, gradient


def strict_ends(known: Observed, rows: Array, psi: Any, values: Array, level: float, weights: Array) -> Array:
    """Lower and upper ends for functionals on the dofs (sparse columns) of ``q - q0``, ``(2, n)``."""
    dual = StrictBounds(known, rows)
    ends = []
    for j in range(psi.shape[1]):
        column = dense(psi[:, [j]])[:, 0]
        low = -dual.upper(-column, values, level, -weights[:, j])
        ends.append((low, dual.upper(column, values, level, weights[:, j])))
    return np.array(ends).T
