"""Before measuring: how long the intervals will be, for a number of sensors and a noise level.

The length of an affine interval does not depend on the values of the data. What the sensors see of the class is found
once, with noise of deviation one; another noise level scales it, fewer sensors are a part of it. So each row of the
table is one eigenproblem of the size of its sensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix, hstack

from ..checks import Array, count, frozen, real_array
from ..errors import InputError
from ..problem.base import Problem, check_problem
from ..problem.data import Data
from ..problem.noise import Noise
from ..shown import Shown
from .affine import Affine, Estimates, Target
from .make import evidence
from .sights import Observed
from .tables import finite, html_table, save_table, text_table

HEAD = ("functional", "sensors", "std", "half length", "limit", "bias", "deviation")
# The order of sensors takes directions that nothing bounds for hardly bounded ones: variance over that of the data.
HARDLY = 1e6


@dataclass(frozen=True)
class Foreseen:
    """What the sensors see, with noise of deviation one, and what was asked.

    Attributes
    ----------
    known, targets, free
        Of the class and of the functionals, all sensors.
    added
        Deviation of the noise in readings that were not made.
    law, zeta
        Of the noise in whitened data, and the level of a row.
    simultaneous
        Whether the functionals may be chosen after the data.
    limited
        Whether the limits of fixed lengths are known.
    """

    known: Observed
    targets: Sequence[Target]
    free: Array
    added: Array
    law: Noise
    zeta: float
    simultaneous: bool
    limited: bool

    def lengths(self, sensors: NDArray[np.intp], std: Array) -> tuple[Estimates, Array]:
        """Best weights of some sensors with these deviations (of all sensors), and the limits, NaN where unknown."""
        turn = np.zeros((len(sensors), len(std)))
        turn[np.arange(len(sensors)), sensors] = 1.0 / std[sensors]
        part = self.known.restricted(turn)
        affine = Affine(part.sights, len(sensors), part.free, rounding=part.rounding)
        targets = [Target(turn @ target.cross, target.square) for target in self.targets]
        limits = np.full(len(self.added), np.nan)
        if self.simultaneous:
            rank = affine.count if part.parts else affine.rank
            factor = self.law.factor(rank, self.law.zeta)
            return affine.estimates(targets, self.free, self.law, self.zeta, simultaneous=factor), limits
        apart = self.law.apart(self.law.zeta)
        if self.limited and apart is not None:
            limits = np.where(self.added > 0.0, np.nan, affine.limits(targets, self.free, apart))
        return affine.estimates(targets, self.free, self.law, self.zeta, added=self.added), limits

    def best_order(self, std: Array) -> NDArray[np.intp]:
        """Sensors one after another, each the one that lowers the sum of relative mean square errors most.

        ``min_a r² ‖T' a - psi‖² + ‖a‖²``, the least mean square error that an affine estimate has at worst, is that of
        the conditional mean of a Gaussian with covariance ``r² L^-1``, which a further reading lowers by a known part.
        """
        whole = self.known.restricted(np.diag(1.0 / std))
        K, cross = np.zeros((len(std), len(std))), np.zeros((len(std), len(self.added)))
        square = np.zeros(len(self.added))
        for sight, target in zip(whole.sights, self.targets, strict=True):
            K += sight.radius**2 * sight.gram
            cross += sight.radius**2 * target.cross / std[:, None]
            square += sight.radius**2 * target.square
        if whole.free.shape[1]:
            scale = HARDLY * max(1.0, float(np.trace(K))) / float(np.sum(whole.free**2))
            K += scale * whole.free @ whole.free.T
            cross += scale * whole.free @ self.free
            square += scale * np.sum(self.free**2, axis=0)
        cross = cross / np.sqrt(np.where(square > 0.0, square, 1.0))
        left, order = np.ones(len(std), dtype=bool), []
        for _ in range(len(std)):
            size = np.maximum(np.diag(K), 0.0) + 1.0
            best = int(np.argmax(np.where(left, np.sum(cross**2, axis=1) / size, -1.0)))
            v = K[:, best] / np.sqrt(size[best])
            cross = cross - np.outer(v, cross[best] / np.sqrt(size[best]))
            K = K - np.outer(v, v)
            left[best] = False
            order.append(best)
        return np.array(order, dtype=np.intp)


class Design(Shown):
    """Half lengths that sensors will deliver, and their limits; made by `design`.

    Attributes
    ----------
    names
        Of the functionals.
    std
        The noise levels; where the sensors of a level differ, the root mean square of their deviations.
    order
        The sensors, in the order in which they are taken.
    counts
        How many of them.
    half_lengths, limits, biases, deviations
        ``(levels, counts, functionals)``; a limit is NaN where none is known.
    confidence
        Of the intervals of all functionals together, for the count and level that will be measured.
    claim
        For whom they will hold, in words.
    """

    def __init__(
        self, seen: Foreseen, names: tuple[str, ...], levels: Array, order: NDArray[np.intp], counts: tuple[int, ...],
        confidence: float, claim: str,
    ) -> None:  # fmt: skip
        self._seen, self._levels = seen, levels
        self.names, self.order, self.counts = names, frozen(order), counts
        self.std = tuple(float(s[0]) if np.ptp(s) == 0.0 else float(np.sqrt(np.mean(s**2))) for s in levels)
        self.confidence, self.claim = confidence, claim
        shape = (len(levels), len(counts), len(names))
        found = [seen.lengths(order[:n], level) for level in levels for n in counts]
        self.half_lengths = frozen(np.array([each.half_length for each, _ in found]).reshape(shape))
        self.limits = frozen(np.array([limit for _, limit in found]).reshape(shape))
        self.biases = frozen(np.array([each.biases.sum(axis=0) for each, _ in found]).reshape(shape))
        norms = [np.hypot(seen.law.deviation(each.weights), seen.added) for each, _ in found]
        self.deviations = frozen(np.array(norms).reshape(shape))

    def needed(self, half_length: Any, *, std: float | None = None) -> int | None:
        """The least number of sensors, in their order, with which all half lengths are at most this; None: too few.

        More sensors never make an interval longer, so that numbers between the `counts` are found by bisection.

        Parameters
        ----------
        half_length
            A number, or one for each functional.
        std
            Which of the noise levels; default: the first.
        """
        wanted = real_array(half_length, "half_length")
        if wanted.shape not in ((), (len(self.names),)):
            raise InputError(f"half_length has shape {wanted.shape}; expected a number or ({len(self.names)},)")
        if std is not None and std not in self.std:
            raise InputError(f"std is {std!r}; expected one of {', '.join(f'{s:g}' for s in self.std)}")
        level = self._levels[0 if std is None else self.std.index(std)]

        def enough(n: int) -> bool:
            return bool(np.all(self._seen.lengths(self.order[:n], level)[0].half_length <= wanted))

        low, high = 0, len(self.order)
        if not enough(high):
            return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if enough(middle) else (middle, high)
        return high

    def summary(self) -> dict[str, str]:
        """What was varied, and for whom the intervals will hold."""
        levels = ", ".join(f"{s:.3g}" for s in self.std)
        return {
            "design": f"{len(self.names)} functionals, {self.counts[0]} to {self.counts[-1]} sensors, std {levels}",
            "confidence": f"{100.0 * self.confidence:.4g} %",
            "claim": self.claim,
        }

    def records(self) -> list[dict[str, Any]]:
        """A plain mapping for each functional, number of sensors and noise level; numbers that are not finite: None."""
        return [
            {
                "functional": name,
                "sensors": n,
                "std": std,
                "half_length": finite(self.half_lengths[level, j, i]),
                "limit": finite(self.limits[level, j, i]),
                "bias": finite(self.biases[level, j, i]),
                "deviation": finite(self.deviations[level, j, i]),
                "confidence": self.confidence,
            }
            for i, name in enumerate(self.names)
            for level, std in enumerate(self.std)
            for j, n in enumerate(self.counts)
        ]

    def rows(self) -> list[tuple[str, ...]]:
        """The table in words."""
        return [
            (
                row["functional"],
                str(row["sensors"]),
                f"{row['std']:.3g}",
                "inf" if row["half_length"] is None else f"{row['half_length']:.4g}",
                "" if row["limit"] is None else f"{row['limit']:.4g}",
                f"{row['bias']:.3g}",
                f"{row['deviation']:.3g}",
            )
            for row in self.records()
        ]

    @property
    def _words(self) -> str:
        return f"{100.0 * self.confidence:.4g} % for all functionals of one design together, {self.claim}"

    def __str__(self) -> str:
        return text_table(HEAD, self.rows(), self._words)

    def to_html(self) -> str:
        """An HTML table."""
        return html_table(HEAD, self.rows(), self._words)

    _repr_html_ = to_html

    def save(self, path: Any) -> None:
        """Write the table as CSV, JSON or HTML, by the ending of the file's name."""
        save_table(path, self.records(), self.to_html)


def design(
    problem: Problem,
    functionals: Sequence[Any],
    *,
    std: Any,
    counts: Sequence[int] | None = None,
    order: Any = "given",
    simultaneous: bool = False,
    confidence: float = 0.95,
) -> Design:
    """Half lengths of intervals, and their limits, that a set of sensors will deliver: before there are any data.

    They are those of ``evidence(problem, data).table(functionals)`` for data of the same standard deviations, whatever
    their values. (With bounds in the class the interval of the data may be shorter.)

    Parameters
    ----------
    problem
        With all sensors that might be used.
    functionals
        As for `Evidence.table`: their intervals will hold together.
    std
        Standard deviation of the noise: one number; several of them, for a table over noise levels; or an array
        ``(levels, m)`` where the m sensors differ.
    counts
        Numbers of sensors, each at least 1; default: all of them, a half, a quarter and an eighth. A smaller set is
        always a part of a larger one.
    order
        In which sensors are taken: ``"given"``; ``"greedy"``, each the one that lowers the mean square errors of the
        functionals most, for the first noise level; or their indices. An order that was found without the data is no
        choice after the data: the intervals hold as said.
    simultaneous
        See `Evidence.interval`.
    confidence
        That of the data to come.

    Examples
    --------
    How many sensors for a mean within 0.2, at two noise levels?

    >>> import numpy as np
    >>> import femcert as fc
    >>> from skfem import Basis, ElementTriP1, MeshTri
    >>> basis = Basis(MeshTri().refined(4), ElementTriP1())
    >>> x = np.linspace(0.1, 0.9, 6)
    >>> sensors = fc.AverageSensors(basis, np.array([(a, b) for a in x for b in x]), radius=0.05)
    >>> space = fc.FullSpace(basis).within_ball(2.0, norm="h1", length=0.3)
    >>> problem = fc.EllipticSource(basis, parameters=space, sensors=sensors)
    >>> found = fc.design(problem, [fc.Mean(basis)], std=[2e-4, 2e-3], order="greedy")
    >>> found.needed(0.2), found.needed(0.2, std=2e-3)
    (9, 19)
    """
    check_problem(problem)
    m = problem.observation_count
    levels = _levels(std, m)
    base = evidence(problem, Data.gaussian(np.zeros(m), std=1.0, confidence=confidence))
    asked, space, known, law = base._asked(functionals), problem.parameters, base._known, base.law
    targets, free = known.targets(csc_matrix(hstack([csc_matrix(each.weights(space)[:, None]) for each in asked])))
    added = np.array([each.std for each in asked])
    if simultaneous and np.any(added > 0.0):
        raise InputError("the noise of a reading that was not made has no simultaneous interval")
    # With bounds, half of the level goes to these intervals; simultaneous ones are one event.
    zeta = law.zeta / (2.0 if base._bounded and not simultaneous else 1.0)
    seen = Foreseen(known, targets, free, added, law, zeta / len(asked), simultaneous, not base._bounded)
    chosen = _order(order, m, lambda: seen.best_order(levels[0]))
    halved = [max(m // part, 1) for part in (1, 2, 4, 8)]
    numbers = sorted({count(n, "counts") for n in (halved if counts is None else counts)})
    if not numbers or numbers[-1] > m:
        raise InputError(f"counts is {counts!r}; expected numbers of sensors, from 1 to {m}")
    claim = f"for {base.assumption} ({base.scope})" + "; also if chosen after the data" * simultaneous
    names = tuple(each.name for each in asked)
    return Design(seen, names, levels, chosen, tuple(numbers), base.confidence, claim)


def best_dimension(
    build: Callable[[int], Problem],
    dimensions: Sequence[int],
    functionals: Sequence[Any],
    *,
    std: Any,
    confidence: float = 0.95,
) -> int:
    """The dimension of a span with a remainder for which the longest interval is shortest: before there are any data.

    More columns leave less outside of the span, and more directions to the noise.

    Parameters
    ----------
    build
        From a dimension to the problem, whose class should have a remainder that depends on it, such as
        ``fc.EigenmodeSpace(basis, k).with_remainder(radius, norm="h1")``.
    dimensions
        Which to try.
    functionals, std, confidence
        As for `design`; one noise level.

    Examples
    --------
    >>> import femcert as fc
    >>> from skfem import Basis, ElementTriP1, MeshTri
    >>> basis = Basis(MeshTri().refined(4), ElementTriP1())
    >>> points = [(0.3, 0.4), (0.7, 0.3), (0.5, 0.7), (0.3, 0.7), (0.6, 0.5), (0.4, 0.2), (0.8, 0.8), (0.2, 0.2)]
    >>> sensors = fc.AverageSensors(basis, points, radius=0.1)
    >>> west = fc.Mean(basis, lambda x: x[0] < 0.5)
    >>> def build(k):
    ...     space = fc.CosineSpace(basis, k).with_remainder(2.0, norm="h1")
    ...     return fc.EllipticSource(basis, parameters=space, sensors=sensors)
    >>> fc.best_dimension(build, range(1, 9), [west], std=1e-3)
    4
    """
    tried = [count(k, "dimensions") for k in dimensions]
    if not tried:
        raise InputError("dimensions is empty; expected some to try")
    longest = []
    for k in tried:
        problem = build(k)
        found = design(problem, functionals, std=std, counts=[problem.observation_count], confidence=confidence)
        if len(found.std) > 1:
            raise InputError(f"std has {len(found.std)} noise levels; expected one to choose a dimension for")
        longest.append(float(found.half_lengths.max()))
    if not np.isfinite(min(longest)):
        raise InputError("the data bound the functionals in none of the dimensions; expected smaller ones")
    return tried[int(np.argmin(longest))]


def _levels(std: Any, m: int) -> Array:
    """Deviations of the sensors, a row for each noise level."""
    given = real_array(std, "std")
    if given.ndim < 2:
        given = np.repeat(np.atleast_1d(given)[:, None], m, axis=1)
    if given.ndim != 2 or given.shape[1] != m or not len(given):
        raise InputError(f"std has shape {np.shape(std)}; expected one number, several, or (levels, {m})")
    if not np.all(given > 0.0):
        raise InputError(f"std has {given.min():g}; expected positive standard deviations")
    return given


def _order(order: Any, m: int, greedy: Callable[[], NDArray[np.intp]]) -> NDArray[np.intp]:
    if isinstance(order, str):
        if order not in ("given", "greedy"):
            raise InputError(f"order is {order!r}; expected 'given', 'greedy' or indices of sensors")
        return np.arange(m) if order == "given" else greedy()
    found = np.asarray(order)
    if found.dtype.kind not in "iu" or not np.array_equal(np.sort(found.ravel()), np.arange(m)):
        raise InputError(f"order is {order!r}; expected each of the indices 0 to {m - 1} once")
    return found.astype(np.intp)
