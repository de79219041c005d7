"""Convex objectives with parts that have no derivative: total variation, bounds. By splitting, with a certificate.

    ``J(c) = ½ ‖F c - y‖² + ½ c' P c + sum_i h_i(D_i c)``

is minimized by the alternating direction method of multipliers (Boyd, Parikh, Chu, Peleato and Eckstein 2011), which
converges for all convex h_i. A step solves with ``F' F + P + sum_i s_i D_i' D_i``: for many coordinates and few data by
a sparse factorization and a dense one of the size of the data. Its multipliers v_i lie in the domain of the conjugates
h_i*, so that ``sum_i D_i' v_i`` is an eps-subgradient of the nonsmooth part at any c,

    ``eps = sum_i h_i(D_i c) + h_i*(v_i) - v_i . D_i c >= 0``,

and how far c is from stationary is evaluated whatever the iteration did, see `optimality_of`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_matrix, diags, issparse

from ..checks import Array
from ..errors import InputError, SolveError
from ..linalg import Factorization
from ..problem.forward import dense
from ..problem.space import ParameterSpace
from .penalty import variation
from .ridge import MOST_COLUMNS

# Over-relaxation; steps in all, between two certificates, and as long as the multipliers' scales are balanced.
RELAXATION, MOST_STEPS, EVERY, BALANCED = 1.7, 5_000, 25, 500
# The gap at which the iteration ends, and at which it counts as converged.
WANTED, ENOUGH = 1e-4, 1e-2
# The error of c is taken for so much of c; an objective that is a smaller part of that at zero counts as zero.
UNKNOWN, EXPLAINED = 0.1, 1e-6
# A step stays near the last one where neither penalty nor bounds hold all directions: part of the curvature.
NEAR = 1e-4
# Parts of D c that are smaller than this, relative to the start, balance nothing.
LEAST = 1e-3


@dataclass(frozen=True)
class Term:
    """A convex function ``h(D c)``.

    Attributes
    ----------
    matrix
        D, sparse or dense, with rows scaled so that D' D does not depend on the mesh.
    prox
        ``(x, s) -> argmin_z h(z) + ½ s ‖z - x‖²``.
    value
        h, for z in its domain.
    gap
        ``(z, v) -> h(z) + h*(v) - v . z``, for v in the domain of h* and z in that of h; not negative.
    scale
        Of s, to begin with.
    """

    matrix: Any
    prox: Callable[[Array, float], Array]
    value: Callable[[Array], float]
    gap: Callable[[Array, Array], float]
    scale: float


def total_variation(space: ParameterSpace, weight: float, typical: float) -> Term:
    """``weight TV(B c)``; `typical` is a usual size of ``|(D c)_p| / s_p``."""
    D, sizes, d = variation(space)
    thresholds = weight * sizes

    def prox(x: Array, s: float) -> Array:
        parts = x.reshape(-1, d)
        length = np.linalg.norm(parts, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            kept = np.where(length > 0.0, np.maximum(1.0 - thresholds / (s * length), 0.0), 0.0)
        return np.asarray((kept[:, None] * parts).ravel())

    def value(z: Array) -> float:
        return float(thresholds @ np.linalg.norm(z.reshape(-1, d), axis=1))

    # v is no longer than the thresholds but for rounding, and h* is zero there.
    return Term(D, prox, value, lambda z, v: value(z) - float(v @ z), weight / typical)


def box(space: ParameterSpace, lower: Array, upper: Array, curvature: float) -> Term:
    """``lower <= B c <= upper`` at the dofs."""
    bounded = np.flatnonzero(np.isfinite(lower) | np.isfinite(upper))
    root = np.sqrt(space.weight.diagonal()[bounded])
    low, high = lower[bounded] * root, upper[bounded] * root
    D = diags(root) @ (csr_matrix(space.matrix) if issparse(space.matrix) else space.matrix)[bounded]

    def gap(z: Array, v: Array) -> float:
        ends = np.where(v > 0.0, high, low)
        some = v != 0.0
        return float(np.abs(v[some]) @ np.abs(ends[some] - z[some]))

    return Term(D, lambda x, s: np.clip(x, low, high), lambda z: 0.0, gap, curvature)


@dataclass(frozen=True)
class Found:
    """A minimizer, how far it is from stationary, and what the next one may begin with.

    Attributes
    ----------
    coefficients
        c.
    optimality
        See `Splitting.certificate`.
    gap
        When it is small enough, the iteration ends: an estimate of what the objective exceeds its minimum by, as a part
        of it (what is left of the gradient is taken times a part of c instead of times the unknown error), or what is
        left of the gradient as a part of that at zero, if this is more.
    multipliers
        v_i.
    """

    coefficients: Array
    optimality: float
    gap: float
    multipliers: tuple[Array, ...]


class Splitting:
    """The objective for one set of data.

    Parameters
    ----------
    F, y
        Whitened.
    space
        Norms of gradients are those of its Q.
    feasible
        From coordinates to those of a parameter in the domain of all terms.
    """

    def __init__(self, F: Array, y: Array, space: ParameterSpace, feasible: Callable[[Array], Array]) -> None:
        self._F, self._y, self._space, self._feasible = F, y, space, feasible
        self._lifted = space.solve_gram(np.asfortranarray(F.T))
        self.curvature = float(np.linalg.eigvalsh(F @ self._lifted)[-1])
        if not self.curvature > 0.0:
            raise InputError("the sensors see no parameter of the class; expected others, or another class")
        self._steepness = self._norm(F.T @ y) or self.curvature

    def _norm(self, gradient: Array) -> float:
        """``(g' G^-1 g)^(1/2)``."""
        return float(np.sqrt(max(float(gradient @ self._space.solve_gram(gradient)), 0.0)))

    def ridge(self, share: float = 1e-3) -> Array:
        """A smooth parameter that explains much of the data, to begin with."""
        m = len(self._y)
        K = self._F @ self._lifted + share * self.curvature * np.eye(m)
        return np.asarray(self._lifted @ np.linalg.solve(K, self._y))

    def misfit(self, c: Array) -> float:
        """``‖F c - y‖``."""
        return float(np.linalg.norm(self._F @ c - self._y))

    def certificate(
        self, c: Array, penalty: Any, terms: Sequence[Term], multipliers: Sequence[Array], slack: float = 0.0
    ) -> tuple[float, float]:
        """How far c is from stationary, and the `gap` of `Found`.

        The first bounds ``L ‖c - p‖_Q``, p the minimizer of ``g' p + ½ L ‖p - c‖_Q² + sum_i h_i(D_i p)`` with the
        gradient g of the rest. It is zero exactly at the minimizer, and the dual norm of the gradient where there are
        no terms. Since ``L (c - p) - g`` is a subgradient at p, and s one at c up to eps,
        ``L ‖c - p‖² <= ‖g + s‖ ‖c - p‖ + eps``.

        Parameters
        ----------
        slack
            Added to eps, for further constraints.
        """
        misfit, pull = self._F @ c - self._y, penalty @ c
        g, eps, value = self._F.T @ misfit + pull, slack, 0.5 * float(misfit @ misfit + c @ pull)
        for term, v in zip(terms, multipliers, strict=True):
            z = term.matrix @ c
            g, eps, value = g + term.matrix.T @ v, eps + max(term.gap(z, v), 0.0), value + term.value(z)
        rest = self._norm(g)
        optimality = float(rest / 2.0 + np.sqrt(rest**2 / 4.0 + self.curvature * eps))
        rise = eps + UNKNOWN * abs(float(g @ c))
        whole = max(value, EXPLAINED * float(self._y @ self._y), 1e-300)
        return optimality, max(rise / whole, rest / self._steepness)

    def minimize(
        self,
        penalty: Any,
        terms: Sequence[Term],
        start: Array,
        *,
        multipliers: Sequence[Array] | None = None,
        wanted: float = WANTED,
    ) -> Found:
        """The minimizer, from a start and perhaps the multipliers of a similar objective.

        Raises
        ------
        SolveError
            The steps did not bring it near a stationary point.
        """
        scales = [term.scale for term in terms]
        c, z = start, [np.asarray(term.matrix @ start) for term in terms]
        v = [np.zeros(len(each)) for each in z] if multipliers is None else list(multipliers)
        right, best = self._F.T @ self._y, Found(start, np.inf, np.inf, tuple(v))
        solve = self._solver(penalty, terms, scales)
        # Below it a part is as good as zero.
        least = [LEAST * float(np.linalg.norm(zi)) + 1e-300 for zi in z]
        for step in range(1, MOST_STEPS + 1):
            pull = sum(t.matrix.T @ (s * zi - vi) for t, s, zi, vi in zip(terms, scales, z, v, strict=True))
            c = solve(right + pull, c)
            apart, moved = [], []
            for i, term in enumerate(terms):
                x = np.asarray(term.matrix @ c)
                relaxed = RELAXATION * x + (1.0 - RELAXATION) * z[i]
                shifted = relaxed + v[i] / scales[i]
                new = term.prox(shifted, scales[i])
                # Zero, and not rounding, where a bound does not hold.
                v[i] = scales[i] * (shifted - new)
                apart.append(float(np.linalg.norm(x - new)) / max(float(np.linalg.norm(new)), least[i]))
                moved.append(scales[i] * float(np.linalg.norm(new - z[i])) / max(float(np.linalg.norm(v[i])), 1e-300))
                z[i] = new
            if step % EVERY:
                continue
            inside = self._feasible(c)
            optimality, gap = self.certificate(inside, penalty, terms, v)
            if gap < best.gap:
                best = Found(inside, optimality, gap, tuple(v))
            if gap <= wanted:
                break
            if step <= BALANCED:
                scales, changed = _balanced(scales, apart, moved)
                solve = self._solver(penalty, terms, scales) if changed else solve
        if not best.gap <= ENOUGH:
            raise SolveError(f"{MOST_STEPS} steps left a gap of {best.gap:.2g} of the objective; try another weight")
        return best

    def _solver(self, penalty: Any, terms: Sequence[Term], scales: Sequence[float]) -> Callable[[Array, Array], Array]:
        """``(right, last) -> c`` of a step."""
        near = NEAR * self.curvature
        S = penalty + near * self._space.gram
        for term, s in zip(terms, scales, strict=True):
            S = S + s * (term.matrix.T @ term.matrix)
        F, G = self._F, self._space.gram
        if not issparse(S) or S.shape[0] <= MOST_COLUMNS:
            factor = cho_factor(dense(S) + F.T @ F)
            return lambda r, last: np.asarray(cho_solve(factor, r + near * (G @ last)))
        sparse = Factorization(csr_matrix(S), definite=True, name="splitting", to_rounding=True)
        X = sparse.solve(np.asfortranarray(F.T))
        small = cho_factor(np.eye(len(F)) + F @ X)

        def solve(r: Array, last: Array) -> Array:
            found = sparse.solve(r + near * (G @ last))
            return np.asarray(found - X @ cho_solve(small, F @ found))

        return solve


def _balanced(scales: list[float], apart: list[float], moved: list[float]) -> tuple[list[float], bool]:
    """Scales with which the two parts of a step are of one size (Wohlberg 2017), and whether they changed."""
    # Where nothing holds or moves there is nothing to balance.
    ratio = [np.sqrt(a / m) if 0.0 < m < 1e3 and a > 0.0 else 1.0 for a, m in zip(apart, moved, strict=True)]
    if max(max(r, 1.0 / r) for r in ratio) < 2.0:
        return scales, False
    return [s * float(np.clip(r, 0.2, 5.0)) for s, r in zip(scales, ratio, strict=True)], True
