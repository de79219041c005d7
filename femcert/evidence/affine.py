"""Best affine estimates of linear functionals: weights that balance bias and noise, and the limit of every procedure.

Dense and without problem objects. Whitened data are ``b = sum_j T_j x_j + A z + e`` with ``‖x_j‖ <= r_j`` in a Hilbert
space of its own, z free, and noise e. A functional is ``psi = sum_j psi_j . x_j + t . z``. The estimate ``a . b`` has
no bias from z if ``A' a = t``, and one of at most ``r_j ‖T_j' a - psi_j‖`` from each set, where

    ``‖T_j' a - psi_j‖² = a' K_j a - 2 a . p_j + s_j``,    ``K_j = T_j T_j'``, ``p_j = T_j psi_j``, ``s_j = ‖psi_j‖²``.

All that counts of a set is this Gram matrix, all that counts of a functional are p and s. Every a gives a valid
interval. The shortest is sought among the minimizers of ``‖a‖² + sum_j mu_j ‖T_j' a - psi_j‖²``, where it lies: for a
single set with one eigendecomposition for all functionals and all mu, for several sets with one for every ratio of
their multipliers that is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from ..checks import Array
from ..linalg.accuracy import dense_rounding
from ..problem.noise import Noise

# Decimal logarithms of the multiplier over r², where bias and noise can balance; golden sections after that.
RANGE, SECTIONS = np.linspace(-10.0, 6.0, 49), 34
GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0
# Decimal logarithms of the ratios of the multipliers of two sets, and of more.
RATIOS, FEWER_RATIOS = np.linspace(-3.0, 3.0, 13), np.linspace(-3.0, 3.0, 7)


@dataclass(frozen=True)
class Sight:
    """What the sensors see of a set ``‖x‖ <= radius``, and what functionals have to do with it.

    Attributes
    ----------
    radius
        r.
    gram
        K, ``(m, m)``.
    rounding
        Relative error of `gram`, and of the p and s that belong to it.
    """

    radius: float
    gram: Array
    rounding: float = 0.0

    @cached_property
    def reach(self) -> float:
        """``r ‖T‖``: by how much the set may move the data."""
        return self.radius * float(np.sqrt(np.linalg.norm(self.gram, 2)))


@dataclass(frozen=True)
class Target:
    """Functionals as a set sees them: ``p``, ``(m, n)``, and ``s``, ``(n,)``."""

    cross: Array
    square: Array


@dataclass(frozen=True)
class Estimates:
    """Weights of n functionals and what they cost.

    Attributes
    ----------
    weights
        a, ``(m, n)``.
    biases
        From above, one row for each set, ``(sets, n)``, and one for rounding.
    half_length
        ``(n,)``; infinite where free directions are not determined.
    """

    weights: Array
    biases: Array
    half_length: Array


class Affine:
    """The estimates for one experiment: sets, free directions, and what rounding adds.

    Parameters
    ----------
    sights
        The bounded sets.
    free
        A, ``(m, k)``; None: there are no free directions.
    rounding
        What rounding may move ``a . b`` by, for a of norm one.
    """

    def __init__(
        self, sights: Sequence[Sight], count: int, free: Array | None = None, *, rounding: float = 0.0
    ) -> None:
        self.sights, self.count, self.rounding = tuple(sights), count, rounding
        A = np.zeros((count, 0)) if free is None else free
        U, s, Vt = np.linalg.svd(A, full_matrices=True)
        rank = int(np.sum(s > dense_rounding(*A.shape) * s[0])) if s.size else 0
        self._particular = U[:, :rank] / s[:rank]
        self._seen, self.rest = Vt[:rank], U[:, rank:]
        self.rank = rank

    @property
    def dimension(self) -> int:
        """Of the part of the data that the free directions do not reach."""
        return self.count - self.rank

    def project(self, values: Array) -> Array:
        """That part of the data."""
        return np.asarray(self.rest.T @ values)

    def projected(self, gram: Array) -> Array:
        """That part of a Gram matrix."""
        return np.asarray(self.rest.T @ gram @ self.rest)

    def estimates(
        self,
        targets: Sequence[Target],
        free: Array,
        noise: Noise,
        zeta: float,
        *,
        simultaneous: float | None = None,
        added: Array | float = 0.0,
    ) -> Estimates:
        """The weights whose intervals are shortest.

        Parameters
        ----------
        targets
            The functionals as each set sees them.
        free
            t, ``(k, n)``.
        noise, zeta
            What is known of the noise, and the level of each interval.
        simultaneous
            What ``|a . e|`` over the deviation of a is at most for all a, instead: for intervals that hold for all
            functionals at once.
        added
            Standard deviation of further, independent noise: of a reading that was not made yet.
        """
        n = free.shape[1]
        start, lost = self.start(free, n)
        best = np.full(n, np.inf)
        chosen = start.copy()

        def length(biases: Array, deviation: Array) -> Array:
            bias = biases.sum(axis=0)
            if simultaneous is not None:
                return np.asarray(bias + simultaneous * deviation)
            return noise.half_length(bias, np.hypot(deviation, added), zeta)

        for path, value, mu in _least(self._paths(start, targets), lambda path, mu: length(*path.costs(mu))):
            better = value < best
            best[better], chosen[:, better] = value[better], path.weights(mu)[:, better]
        # Rounding, and noise that is larger than the weights were made for, are counted for the chosen ones.
        biases = self._biases(chosen, targets)
        half = length(biases, noise.deviation(chosen))
        return Estimates(chosen, biases, np.where(lost, np.inf, half))

    def limits(self, targets: Sequence[Target], free: Array, apart: float) -> Array:
        """From below: ``sup psi(x, z)`` over ``‖x_j‖ <= r_j`` and ``‖sum T_j x_j + A z‖ <= apart``.

        At the multipliers mu, with the weights a, the point ``x_j = mu_j (psi_j - T_j' a)`` with the z for which
        ``sum T_j x_j + A z = a`` has ``psi = ‖a‖² + sum mu_j ‖T_j' a - psi_j‖²``. Scaled into all constraints it is
        feasible, and for the best mu it is the maximum.
        """
        n = free.shape[1]
        start, lost = self.start(free, n)
        best = apart * np.linalg.norm(start, axis=0) if not self.sights else np.zeros(n)
        for _, value, _ in _least(self._paths(start, targets), lambda path, mu: path.fallen_short(apart, mu)):
            best = np.maximum(best, -value)
        return np.where(lost, np.inf, best * (1.0 - 1e-9))

    def start(self, free: Array, n: int) -> tuple[Array, Array]:
        """The weights of least norm without bias from the free directions, and where there are none."""
        if not len(free):
            return np.zeros((self.count, n)), np.zeros(n, dtype=bool)
        inside = self._seen @ free
        outside = np.linalg.norm(free - self._seen.T @ inside, axis=0)
        return self._particular @ inside, outside > dense_rounding(*free.shape) * np.linalg.norm(free, axis=0)

    def _paths(self, start: Array, targets: Sequence[Target]) -> Iterator[_Path]:
        """A path for each ratio of multipliers."""
        if not self.sights:
            return
        Z, grams = self.rest, self._grams
        crosses, squares, sizes = [], [], []
        for sight, target in zip(self.sights, targets, strict=True):
            moved = sight.gram @ start
            crosses.append(Z.T @ (target.cross - moved))
            sizes.append(target.square + 2.0 * np.sum(start * moved, axis=0))
            squares.append(target.square - 2.0 * np.sum(start * target.cross, axis=0) + np.sum(start * moved, axis=0))
        radii = np.array([sight.radius for sight in self.sights])
        relative = max(sight.rounding for sight in self.sights) + dense_rounding(self.count, self.count)
        for theta in ratios(radii):
            spectrum = self._spectrum if len(grams) == 1 else _spectrum(theta, grams, Z)
            yield _Path(theta, radii, grams, crosses, squares, start, spectrum, relative, sizes)

    @cached_property
    def _grams(self) -> list[Array]:
        """Of the sets, in the part of the data that the free directions do not reach."""
        return [self.projected(sight.gram) for sight in self.sights]

    @cached_property
    def _spectrum(self) -> Spectrum:
        """Of a single set, decomposed once for all functionals."""
        return _spectrum(np.ones(1), self._grams, self.rest)

    def _biases(self, weights: Array, targets: Sequence[Target]) -> Array:
        """``r_j ‖T_j' a - psi_j‖`` from above, and what rounding adds."""
        rows = []
        for sight, target in zip(self.sights, targets, strict=True):
            seen = np.sum(weights * (sight.gram @ weights), axis=0)
            square = seen - 2.0 * np.sum(weights * target.cross, axis=0) + target.square
            # Entries of the sums may be much larger than these.
            size = np.sum(np.abs(weights) * (np.abs(sight.gram) @ np.abs(weights)), axis=0)
            loss = 4.0 * (sight.rounding + dense_rounding(*sight.gram.shape)) * (size + target.square)
            rows.append(sight.radius * np.sqrt(np.maximum(square, 0.0) + loss))
        rows.append(self.rounding * np.linalg.norm(weights, axis=0))
        return np.asarray(rows)


def ratios(radii: Array) -> Iterator[Array]:
    """Multipliers of the sets over that of the first: ``(r_j / r_1)²`` where they weigh the same, and others."""
    others = len(radii) - 1
    for logs in product(RATIOS if others == 1 else FEWER_RATIOS, repeat=others):
        yield np.concatenate([[1.0], (radii[1:] / radii[0]) ** 2 * 10.0 ** np.array(logs)])


# Eigenvalues and eigenvectors of ``sum theta_j K_j`` in the part of the data that is not free, and these in all data.
Spectrum = tuple[Array, Array, Array]


def _spectrum(theta: Array, grams: Sequence[Array], rest: Array) -> Spectrum:
    values, V = np.linalg.eigh(np.asarray(sum(t * gram for t, gram in zip(theta, grams, strict=True))))
    return values, V, rest @ V


class _Path:
    """The minimizers a of ``‖a‖² + mu sum_j theta_j ‖T_j' a - psi_j‖²`` with ``A' a = t``, for every mu > 0.

    In the part of the data that the free directions do not reach, and there in the eigenvectors of
    ``sum theta_j K_j``: ``y = mu p / (1 + mu lam)``.
    """

    def __init__(
        self,
        theta: Array,
        radii: Array,
        grams: Sequence[Array],
        crosses: Sequence[Array],
        squares: Sequence[Array],
        start: Array,
        spectrum: Spectrum,
        relative: float,
        sizes: Sequence[Array],
    ) -> None:
        # Rounding of Gram matrices, and of what the squares are sums of.
        self._relative, self._sizes = relative, np.asarray(sizes)
        values, V, basis = spectrum
        self._lam = np.maximum(values, 0.0)[:, None]
        self._theta, self._radii = theta[:, None], radii[:, None]
        self._crosses = [V.T @ cross for cross in crosses]
        self._p = sum(t * cross for t, cross in zip(theta, self._crosses, strict=True))
        # A single set is diagonal in its own eigenvectors.
        self._grams = [self._lam / theta[0]] if len(grams) == 1 else [V.T @ gram @ V for gram in grams]
        self._squares = squares
        self._start, self._basis = start, basis
        self._least = np.sum(start**2, axis=0)
        self._scale = float(radii[0]) ** 2
        self.count = start.shape[1]

    def _at(self, mu: Array) -> tuple[Array, Array, Array]:
        """y, the squares of ``‖T_j' a - psi_j‖``, and of ``‖a‖``."""
        y = mu * self._p / (1.0 + mu * self._lam)
        squares = []
        for gram, cross, square in zip(self._grams, self._crosses, self._squares, strict=True):
            seen = gram * y if gram.shape[1] == 1 else gram @ y
            squares.append(np.maximum(np.sum(y * (seen - 2.0 * cross), axis=0) + square, 0.0))
        return y, np.asarray(squares), self._least + np.sum(y**2, axis=0)

    def costs(self, mu: Array) -> tuple[Array, Array]:
        """Biases of the sets and deviation."""
        _, squares, norm = self._at(mu)
        return self._radii * np.sqrt(squares), np.sqrt(norm)

    def fallen_short(self, apart: float, mu: Array) -> Array:
        """The value of a feasible point, see `Affine.limits`, with a minus."""
        y, squares, norm = self._at(mu)
        multipliers = mu * self._theta
        # What rounding may do to the squares, and to the data of the point, which are a without it.
        top, whole = self._lam.max(initial=0.0), np.sum(self._theta * self._sizes, axis=0)
        lost = 4.0 * self._relative * (self._sizes + 2.0 * top * np.sum(y**2, axis=0) / self._theta)
        moved = 4.0 * self._relative * mu * (top * np.sqrt(norm) + np.sqrt(top * whole))
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = np.min(self._radii / (multipliers * np.sqrt(squares + lost)), axis=0)
            scale = np.minimum(scale, apart / (np.sqrt(norm) + moved))
        value = scale * (norm + np.sum(multipliers * np.maximum(squares - lost, 0.0), axis=0))
        value -= scale * moved * np.sqrt(norm)
        return -np.where(np.isfinite(value), value, 0.0)

    def weights(self, mu: Array) -> Array:
        """a, ``(m, n)``."""
        return np.asarray(self._start + self._basis @ self._at(mu)[0])

    def at_logarithms(self, t: Array) -> Array:
        """The multipliers mu with these decimal logarithms, over the square of the first radius."""
        return self._scale * 10.0**t


Cost = Callable[[_Path, Array], Array]


def _least(paths: Iterator[_Path], cost: Cost) -> Iterator[tuple[_Path, Array, Array]]:
    """Paths, the least costs along them for each functional, and the multipliers: the best path of each is among them.

    On a grid first; golden sections follow on those paths where some functional has its least cost so far.
    """
    found = []
    for path in paths:
        grid = np.array([cost(path, path.at_logarithms(t * np.ones(path.count))) for t in RANGE])
        nearest = np.argmin(grid, axis=0)
        found.append((path, RANGE[nearest], np.min(grid, axis=0)))
    if not found:
        return
    chosen = np.unique(np.argmin([value for _, _, value in found], axis=0))
    for path, start, _ in (found[i] for i in chosen):
        yield path, *_by_golden_sections(path, cost, start)


def _by_golden_sections(path: _Path, cost: Cost, start: Array) -> tuple[Array, Array]:
    """Along a path bias falls and deviation grows, so that what grows with both and is convex has one minimum."""

    def at(t: Array) -> Array:
        return np.asarray(cost(path, path.at_logarithms(t)))

    step = RANGE[1] - RANGE[0]
    best, value = golden_sections(at, start - step, start + step)
    return value, path.at_logarithms(best)


def golden_sections(at: Callable[[Array], Array], low: Array, high: Array) -> tuple[Array, Array]:
    """Minimizers and minima of functions with one minimum between their ends, all at once."""
    inner = [high - GOLDEN * (high - low), low + GOLDEN * (high - low)]
    values = [at(t) for t in inner]
    for _ in range(SECTIONS):
        left = values[0] < values[1]
        low, high = np.where(left, low, inner[0]), np.where(left, inner[1], high)
        kept, value = np.where(left, inner[0], inner[1]), np.where(left, values[0], values[1])
        new = np.where(left, high - GOLDEN * (high - low), low + GOLDEN * (high - low))
        found = at(new)
        inner = [np.where(left, new, kept), np.where(left, kept, new)]
        values = [np.where(left, found, value), np.where(left, value, found)]
    return np.where(values[0] < values[1], *inner), np.minimum(*values)
