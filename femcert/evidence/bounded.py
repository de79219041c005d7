"""Ends of intervals for truths within bounds: strict bounds, from dual points.

With ``‖T q + E w - b‖ <= chi``, ``‖q - q0‖_L <= rho``, ``‖w‖ <= r`` and ``lower <= q <= upper``, every y and every
``s, t >= 0`` that are zero where there is no bound give

    ``psi . q <= y . b + chi ‖y‖ + r ‖E' y‖ + (psi - T' y - s + t) . q0 + rho ‖psi - T' y - s + t‖_{L^-1}
               + s . upper - t . lower``,

whatever a solver did to find them. The inequality of the data is one event for all functionals at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csc_matrix, hstack, vstack

from ..checks import Array
from ..errors import InconsistentError
from ..linalg.accuracy import EPS
from ..linalg.cones import Block, ConeProgram
from ..problem.data import Data
from .sights import Observed

# A pair of truths is sought inside of all constraints by this part, and counts where it fulfils them but for rounding.
MARGIN, KEPT = 1e-5, 1.0 - 1e-12
# How far ends may be from the best ones, relatively; the solver may miss it, the ends hold.
GAP = 1e-8


class StrictBounds:
    """The truths of a class with bounds, and the data: ``q - q0 = B c``, q0 being the centre of the ball.

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
        (inverse,) = (part.inverse for part in known.parts if part.inverse is not None)
        self._inverse, self._rounding = inverse, known.rounding
        self._rows, self._matrix, self._rho = rows, csc_matrix(space.matrix), space.ball.radius
        # E over the ball of its w.
        models = [part.sight.radius * _root(part.sight.gram) for part in known.parts if part.systematic]
        self._model = np.hstack([np.zeros((rows.shape[1], 0)), *models])
        centre = np.zeros(space.size) if space.ball.centre is None else space.ball.centre
        self._lower, self._upper = space.bounds.lower - centre, space.bounds.upper - centre
        self._below, self._above = np.isfinite(self._lower), np.isfinite(self._upper)

    def ends(self, psi: Any, values: Array, level: float, start: Array) -> Array:
        """The least and the largest values of ``psi . (q - q0)``, from outside, ``(2, n)``.

        Parameters
        ----------
        psi
            Functionals on the dofs, sparse ``(N, n)``.
        values, level
            b and chi.
        start
            y to compare with, ``(m, n)``: the affine weights.

        Raises
        ------
        InconsistentError
            No truth within the bounds explains the data.
        """
        k, errors = len(self._rows), self._model.shape[1]
        chi = level + self._rounding
        size = chi or 1.0
        seen = np.hstack([self._rho * self._rows.T, self._model]) / size
        blocks = [_ball(seen, chi / size, values / size)]
        blocks += [_placed(block, 0, errors) for block in self._class()]
        blocks.append(_ball(_placed_identity(k, errors, 0), 1.0))
        program, found = ConeProgram(blocks, tolerance=GAP), np.empty((2, psi.shape[1]))
        for j, sign in np.ndindex(psi.shape[1], 2):
            functional = (2.0 * sign - 1.0) * psi[:, [j]].toarray()[:, 0]
            goal = np.asarray(self._matrix.T @ functional)
            scale = self._rho * self._length(goal) or 1.0
            answer = program.maximize(np.concatenate([self._rho * goal / scale, np.zeros(errors)]))
            first, _, above, below, _ = answer.duals
            y, s, t = scale / size * first[1:], *(scale / self._rho * np.maximum(z, 0.0) for z in (above, below))
            if answer.infeasible and self._dual(0.0 * goal, y, s, t, values, chi) < 0.0:
                raise _contradiction()
            plain = self._dual(goal, (2.0 * sign - 1.0) * start[:, j], 0.0 * s, 0.0 * t, values, chi)
            bounds = [self._dual(goal, y, s, t, values, chi), plain, self._of_bounds(functional)]
            found[sign, j] = (2.0 * sign - 1.0) * min(bounds)
        return found

    def intersected(self, ends: Array, psi: Any, values: Array, level: float, start: Array) -> Array:
        """Other ends, ``(2, n)``, cut by `ends`; parameters and errors as there."""
        found = self.ends(psi, values, level, start)
        both = np.stack([np.maximum(ends[0], found[0]), np.minimum(ends[1], found[1])])
        if np.any(both[0] > both[1]):
            raise _contradiction()
        return both

    def limits(self, psi: Any, apart: float) -> Array:
        """From below: ``sup psi . (q1 - q2) / 2`` over pairs with ``‖T (q1 - q2) + 2 E w‖ <= 2 apart``; 0 if unknown.

        Two such truths cannot be told apart. The value is that of a pair that fulfils all constraints.
        """
        k, errors = len(self._rows), self._model.shape[1]
        reach = 2.0 * max(apart - self._rounding, 0.0)
        size = reach or 1.0
        seen = np.hstack([self._rho * self._rows.T, -self._rho * self._rows.T, 2.0 * self._model]) / size
        blocks = [_ball(seen, reach * (1.0 - MARGIN) / size)]
        for place in (0, 1):
            blocks += [_placed(block, place * k, (1 - place) * k + errors) for block in self._class(MARGIN)]
        blocks.append(_ball(_placed_identity(2 * k, errors, 0), 1.0 - MARGIN))
        program, found = ConeProgram(blocks, tolerance=MARGIN / 10.0), np.zeros(psi.shape[1])
        for j in range(psi.shape[1]):
            goal = np.asarray((self._matrix.T @ psi[:, [j]]).toarray())[:, 0]
            scale = self._rho * self._length(goal) or 1.0
            x = program.maximize(np.concatenate([goal, -goal, np.zeros(errors)]) * (self._rho / scale)).point
            pair = self._rho * x[: 2 * k].reshape(2, k)
            seen_apart = np.linalg.norm(self._rows.T @ (pair[0] - pair[1]) + 2.0 * self._model @ x[2 * k :])
            kept = seen_apart <= KEPT * reach and np.linalg.norm(x[2 * k :]) <= KEPT
            if kept and all(self._contains(c) for c in pair):
                found[j] = max(float(goal @ (pair[0] - pair[1])) / 2.0, 0.0) * KEPT
        return found

    def _class(self, margin: float = 0.0) -> list[Block]:
        """The ball and the bounds, for c over the radius of the ball."""
        free = np.isinf(self._upper - self._lower)
        slack = margin * np.where(free, self._rho / self._spread, np.where(free, 0.0, self._upper - self._lower))
        above, below = (self._upper - slack)[self._above], (self._lower + slack)[self._below]
        return [
            _ball(self._inverse.root, 1.0 - margin),
            Block(self._matrix[self._above], above / self._rho, round=False),
            Block(-self._matrix[self._below], -below / self._rho, round=False),
        ]

    @property
    def _spread(self) -> float:
        """A size of the form of the ball for one dof."""
        return float(np.sqrt(np.median(self._inverse.form.diagonal()))) or 1.0

    def _contains(self, c: Array) -> bool:
        q = self._matrix @ c
        inside = np.sqrt(max(float(c @ (self._inverse.form @ c)), 0.0)) <= KEPT * self._rho
        return bool(inside and np.all(q >= self._lower) and np.all(q <= self._upper))

    def _length(self, functional: Array) -> float:
        """``‖f‖_{L^-1}``, but for rounding."""
        return float(np.sqrt(max(float(functional @ self._inverse.apply(functional[:, None])[:, 0]), 0.0)))

    def _of_bounds(self, functional: Array) -> float:
        """What the bounds alone say of a functional on the dofs, from above."""
        asked = functional != 0.0
        terms = functional[asked] * np.where(functional > 0.0, self._upper, self._lower)[asked]
        return float(np.sum(terms)) + 4.0 * EPS * terms.size * float(np.sum(np.abs(terms)))

    def _dual(self, goal: Array, y: Array, above: Array, below: Array, values: Array, chi: float) -> float:
        """The bound at a dual point, from above; `above` and `below` are s and t where there are bounds."""
        parts = [goal, -(self._rows @ y), -(self._matrix[self._above].T @ above), self._matrix[self._below].T @ below]
        rest, sizes = np.sum(parts, axis=0), np.sum(np.abs(parts), axis=0)
        lifted = self._inverse.apply(np.stack([rest, sizes], axis=1))
        length, whole = (float(np.sqrt(max(float(f @ z), 0.0))) for f, z in zip((rest, sizes), lifted.T, strict=True))
        # Sums lose their last digits; twice, since the inverse of a form may have negative entries.
        length += self._inverse.rounding * length + 2.0 * (len(y) + 16) * EPS * whole
        terms = [
            float(y @ values),
            chi * float(np.linalg.norm(y)),
            float(np.linalg.norm(self._model.T @ y)),
            self._rho * length,
            float(above @ self._upper[self._above]),
            -float(below @ self._lower[self._below]),
        ]
        sums = [np.abs(y) @ np.abs(values), above @ np.abs(self._upper[self._above])]
        sums += [below @ np.abs(self._lower[self._below]), *np.abs(terms)]
        return float(np.sum(terms)) + 64.0 * EPS * float(np.sum(sums))


def strict_bounds(known: Observed, data: Data) -> StrictBounds | None:
    """Of a class with bounds in a ball that binds all directions; None without bounds, or where they are not used."""
    space = known.forward.parameters
    if space.bounds is None or space.ball is None or space.remainder is not None or known.free.shape[1]:
        return None
    return StrictBounds(known, known.turned(data.whiten(known.forward.matrix)).T)


def _contradiction() -> InconsistentError:
    return InconsistentError("no truth within the bounds of the class explains the data: wrong bounds or noise")


def _root(gram: Array) -> Array:
    """E with ``E E'`` equal to a Gram matrix."""
    values, V = np.linalg.eigh(gram)
    kept = values > 0.0
    return np.asarray(V[:, kept] * np.sqrt(values[kept]))


def _ball(matrix: Any, size: float, middle: Array | None = None) -> Block:
    """``‖middle - matrix x‖ <= size``."""
    rows, columns = matrix.shape
    right = np.concatenate([[size], np.zeros(rows) if middle is None else middle])
    return Block(vstack([csc_matrix((1, columns)), csc_matrix(matrix)]), right, round=True)


def _placed(block: Block, before: int, after: int) -> Block:
    """With more unknowns, before and after, that the constraint does not bind."""
    n = len(block.right)
    return Block(hstack([csc_matrix((n, before)), block.matrix, csc_matrix((n, after))]), block.right, block.round)


def _placed_identity(before: int, count: int, after: int) -> Any:
    return csc_matrix((np.ones(count), (np.arange(count), before + np.arange(count))), (count, before + count + after))
