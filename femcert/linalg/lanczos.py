"""The few largest eigenpairs of ``A^-1 M`` by Lanczos without restarts, in as few solves as it takes.

All vectors are kept and made orthogonal in the inner product of M, which for a few eigenpairs costs less than the
solves that a restart repeats.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from .accuracy import EPS

Array = NDArray[np.float64]

# Of an eigenvalue: what the residual of its pair may be, for those that are wanted, and for those of which the value
# is, whose error is of the order of its square.
TIGHT, LOOSE = 1e-13, 1e-5
# Relatively so close to the last eigenvalue that is wanted, another one may belong to the same space.
SAME_SPACE = 1e-4
# Eigenvalues so many times larger than the next one are split off.
APART = 1e3
# Steps of the search for what was missed before its result counts, and the residual. A Ritz vector between two
# eigenvectors has a residual of about the distance from the larger eigenvalue, so it must be a small part of that.
LEAST_STEPS, SEEN, CLEARLY = 8, 1e-2, 0.01
# Below this part of the largest eigenvalue, a residual is rounding.
ROUNDING = 32.0 * EPS


@dataclass
class Krylov:
    """An orthonormal basis of a Krylov space, and ``A^-1 M`` on it.

    Attributes
    ----------
    solve, mass
        ``A^-1`` on vectors, and M.
    known
        Columns to whose complement in the inner product of M it is restricted.
    most
        Most vectors.
    """

    solve: Callable[[Array], Array]
    mass: Any
    rng: np.random.Generator
    known: Array
    most: int
    vectors: Array = field(init=False)
    projected: Array = field(init=False)
    count: int = 0

    def __post_init__(self) -> None:
        n = self.mass.shape[0]
        self.most = min(self.most, n - self.known.shape[1] - 1)
        self.vectors = np.empty((n, self.most + 1), order="F")
        self.projected = np.zeros((self.most + 1, self.most + 1))
        self._images = np.asarray(self.mass @ self.known)
        self._place(self._smooth(), 0)

    def step(self) -> None:
        """One vector more."""
        j = self.count
        w = self.solve(self.mass @ self.vectors[:, j])
        self.count += 1
        h, size = self._place(w, j + 1)
        self.projected[: j + 1, j] = h
        self.projected[j + 1, j] = size

    def _place(self, w: Array, j: int) -> tuple[Array, float]:
        """Put what a vector adds at place j; its part in the space, and the size of the rest."""
        Q, total = self.vectors[:, :j], np.zeros(j)
        for _ in range(2):
            w = w - self.known @ (self._images.T @ w)
            h = Q.T @ (self.mass @ w)
            w, total = w - Q @ h, total + h
        size = float(np.sqrt(max(w @ (self.mass @ w), 0.0)))
        if j and not size > ROUNDING * float(np.abs(self.projected).max(initial=0.0) + np.linalg.norm(total)):
            # The space is invariant: any other vector goes on.
            return total, self._again(j)
        self.vectors[:, j] = w / size
        return total, size

    def _again(self, j: int) -> float:
        self._place(self._smooth(), j)
        return 0.0

    def _smooth(self) -> Array:
        """A vector at random in the range of ``A^-1``: A makes large errors of what rounding leaves of a rough one."""
        return self.solve(self.mass @ self.rng.standard_normal(len(self.vectors)))

    def pairs(self) -> tuple[Array, Array, Array]:
        """Ritz values, descending, their vectors in the basis, and residuals."""
        j = self.count
        T = self.projected[:j, :j]
        values, S = np.linalg.eigh((T + T.T) / 2.0)
        return values[::-1], S[:, ::-1], np.abs(self.projected[j, j - 1] * S[-1, ::-1])

    def ritz_vectors(self, count: int) -> Array:
        """The first vectors after one more product, which the basis already holds."""
        values, S, _ = self.pairs()
        j = self.count
        last = self.projected[j, j - 1] * S[-1, :count] / values[:count]
        return np.asarray(self.vectors[:, :j] @ S[:, :count] + np.outer(self.vectors[:, j], last))


def few_eigenpairs(
    stiffness: Any,
    mass: Any,
    solve: Callable[[Array], Array],
    known: Array,
    k: int,
    beyond: int,
    rng: np.random.Generator,
) -> tuple[Array, Array] | None:
    """Some `k` smallest eigenpairs of ``A x = lam M x`` beside `known` ones and the values of some more.

    None where that takes too long.

    From one vector Lanczos finds one copy of a multiple eigenvalue, and others by rounding errors only.
    """
    krylov = Krylov(solve, mass, rng, known, 20 + 6 * (k + beyond))
    while krylov.count < krylov.most:
        krylov.step()
        values, _, residuals = krylov.pairs()
        null = _split(values, residuals, min(k, krylov.count - 1))
        if null:
            # Those of a seminorm and a small shift: without them the others keep their digits.
            first = krylov.ritz_vectors(null)
            rest = few_eigenpairs(stiffness, mass, solve, np.hstack([known, first]), k - null, beyond, rng)
            return None if rest is None else rayleigh_ritz(stiffness, mass, np.hstack([first, rest[1]]))
        if krylov.count < k + beyond:
            continue
        values, residuals = values[: k + beyond], residuals[: k + beyond]
        wanted = values >= values[k - 1] * (1.0 - SAME_SPACE)
        allowed = np.maximum(np.where(wanted, TIGHT, LOOSE) * values, ROUNDING * values[0])
        if values[-1] > 0.0 and np.all(residuals <= allowed):
            return rayleigh_ritz(stiffness, mass, krylov.ritz_vectors(k + beyond))
    return None


def _split(values: Array, residuals: Array, most: int) -> int:
    """How many of the first values, less than `most`, are far above the next one and known to rounding; else 0."""
    gaps = np.flatnonzero(values[: max(most - 1, 0)] > APART * values[1 : max(most, 1)])
    count = int(gaps[0]) + 1 if len(gaps) else 0
    return count if np.all(residuals[:count] <= ROUNDING * values[0]) else 0


def misses(
    mass: Any, solve: Callable[[Array], Array], known: Array, value: float, rng: np.random.Generator
) -> bool | None:
    """Whether `known` vectors leave out one of an eigenvalue of ``A^-1 M`` that is at least `value`; None: not seen."""
    krylov = Krylov(solve, mass, rng, known, 60)
    while krylov.count < krylov.most:
        krylov.step()
        values, _, residuals = krylov.pairs()
        below = value * (1.0 - SAME_SPACE) - values[0]
        if below < 0.0:
            return True
        if krylov.count >= LEAST_STEPS and residuals[0] <= min(SEEN * values[0], CLEARLY * below):
            return False
    return None


def rayleigh_ritz(stiffness: Any, mass: Any, vectors: Array) -> tuple[Array, Array]:
    """Eigenpairs of a pencil on the span of some columns, ascending."""
    A, M = vectors.T @ (stiffness @ vectors), vectors.T @ (mass @ vectors)
    values, turn = eigh((A + A.T) / 2.0, (M + M.T) / 2.0)
    return values, vectors @ turn
