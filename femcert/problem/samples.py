"""Truths that stand for those to come, and one measurement of each: simulated by the law of the data, or given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np

from ..checks import Array, count, frozen, real_array
from ..errors import InputError, UncertifiedError
from ..shown import Shown
from .base import Problem
from .data import Data
from .noise import Gaussian

# Columns per batch of right-hand sides.
BATCH = 64


@dataclass(frozen=True, repr=False, eq=False)
class Samples(Shown):
    """Truths like those to come: what is said of "truths like the samples" rests on them.

    They must have entered nothing else that the claim depends on: no learned map, class, centre or length was made with
    them.

    Attributes
    ----------
    fields
        A dof vector in each row, ``(n, N)``. They need not lie in the class.
    errors
        ``(n, m)``: what an accurate model predicts for each of them, minus what the problem's does. Needed for data
        with a model error, and counted for other data as well.
    seed
        Of the noise of the simulated measurements: one draw for each sample.
    values
        ``(n, m)``: what was measured of each sample, with its noise, where the caller simulates (another model, wrong
        instruments) or measures himself; instead of errors. Nothing is drawn then. Data to come must be like these:
        noise and errors of the model are whatever is in them.

    Examples
    --------
    >>> samples = Samples.drawn(lambda rng: rng.uniform(0.0, 1.0, 3), 100)
    >>> samples.fields.shape
    (100, 3)
    """

    fields: Array
    errors: Array | None = None
    seed: int = 0
    values: Array | None = None

    def __post_init__(self) -> None:
        if self.values is not None and self.errors is not None:
            raise InputError("samples have both values and errors; expected one of them: values are measured with all")
        for name in ("fields", "errors", "values"):
            given = getattr(self, name)
            if given is None:
                continue
            rows = real_array(given, name)
            if rows.ndim != 2 or len(rows) != len(np.atleast_1d(self.fields)):
                raise InputError(f"{name} has shape {rows.shape}; expected a row for each sample")
            object.__setattr__(self, name, frozen(rows))
        count(self.seed, "seed", least=0)

    @classmethod
    def drawn(cls, sampler: Callable[[Any], Any], number: int, *, seed: int = 0) -> Samples:
        """Of a function that draws a truth (dof vector) with the random generator that it gets."""
        rng = np.random.default_rng([count(seed, "seed", least=0), 1])
        return cls(np.array([sampler(rng) for _ in range(count(number, "number"))]), seed=seed)

    def __len__(self) -> int:
        return len(self.fields)

    def summary(self) -> dict[str, str]:
        """How many, and the seed."""
        errors = "none" if self.errors is None else "one for each"
        errors = errors if self.values is None else "in the measurements, which are given"
        return {"truths": f"{len(self)} of {self.fields.shape[1]} dofs", "model errors": errors, "seed": f"{self.seed}"}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all that is in it."""
        errors = b"" if self.errors is None else self.errors.tobytes()
        given = b"" if self.values is None else b"values" + self.values.tobytes()
        return sha256(self.fields.tobytes() + errors + given + f"{self.fields.shape}{self.seed}".encode()).hexdigest()

    def readings(self, problem: Problem, data: Data) -> Array:
        """What sensors without noise would read of them, ``(n, m)``: by the problem, plus their model errors."""
        if self.values is not None:
            raise InputError("samples have measured values; expected truths alone, or errors=, where trials are drawn")
        n, m = self._checked(problem)
        if self.errors is None and data.model is not None:
            raise UncertifiedError(
                "the data have a model error, the samples none; expected Samples(fields, errors=...), one for each"
            )
        if self.errors is not None and self.errors.shape != (n, m):
            raise InputError(f"errors has shape {self.errors.shape}; expected ({n}, {m})")
        return predictions(problem, self.fields) + (0.0 if self.errors is None else self.errors)

    def measurements(self, problem: Problem, data: Data) -> Array:
        """One of each: the given ones, or simulated; NaN where the data have none."""
        if self.values is None:
            return self.measured(data, self.readings(problem, data))
        n, m = self._checked(problem)
        if self.values.shape != (n, m):
            raise InputError(f"values has shape {self.values.shape}; expected ({n}, {m})")
        check_law(data)
        return np.where(np.isnan(data.values), np.nan, self.values)

    def _checked(self, problem: Problem) -> tuple[int, int]:
        """The shape of readings of all samples."""
        n, N = self.fields.shape
        if problem.parameters.size != N:
            raise InputError(f"samples have {N} dofs; expected {problem.parameters.size}, a dof vector in each row")
        return n, problem.observation_count

    def measured(self, data: Data, readings: Array) -> Array:
        """One simulated measurement of each; NaN where the data have none."""
        return readings + drawn_noise(data, readings, np.random.default_rng([self.seed, 0]))


def as_samples(given: Any) -> Samples:
    """`Samples`, or an array of dof vectors."""
    return given if isinstance(given, Samples) else Samples(given)


def predictions(problem: Problem, fields: Array) -> Array:
    """What the problem predicts for rows of dof vectors, a row of readings for each."""
    forward = problem.forward
    if forward is None:
        # Every parameter of a nonlinear problem has an equation of its own.
        return np.array([problem.predict(problem.solve(q), q) for q in fields])
    parts = [forward.apply(fields[i : i + BATCH].T) for i in range(0, len(fields), BATCH)]
    return np.asarray(np.hstack(parts).T + forward.offset)


def whitened(data: Data, readings: Array) -> Array:
    """Rows of readings as the data are: without the mean of the model error, in units of the noise."""
    return np.asarray(data.whiten((readings - data._mean).T).T)


def raw(data: Data) -> Array:
    """The measurements as they came."""
    return np.asarray(data.values + data._mean)


def check_law(data: Data) -> None:
    """Refuse data whose weights depend on them, or on what is unknown.

    Raises
    ------
    UncertifiedError
        The data do not say from which law: a noise level, an unknown deviation, repeats; relative noise without a
        reference, or sensors left out, where the law depends on the data.
    """
    law = data.law
    if not (isinstance(law, Gaussian) and law.proven and (data._options is not None or law.spent == 0.0)):
        raise UncertifiedError(
            "measurements are simulated from a law of the noise that was fixed before the data; expected Data.gaussian "
            "with std=, covariance=, or relative= with reference="
        )


def drawn_noise(data: Data, readings: Array, rng: Any) -> Array:
    """Independent noise for rows of true readings, by the law of the data; NaN where a reading is missing."""
    check_law(data)
    options = data._options
    kept = np.flatnonzero(~np.isnan(data.values))
    normal, noise = rng.standard_normal((len(readings), kept.size)), np.full(readings.shape, np.nan)
    if options is not None:
        # The law of a relative error is that of the true reading.
        share, floor = (np.zeros(()) if options[x] is None else np.asarray(options[x]) for x in ("relative", "std"))
        noise[:, kept] = normal * np.hypot(share * np.abs(readings), floor)[:, kept]
    else:
        root = data._root
        noise[:, kept] = normal * root if root.ndim == 1 else normal @ root.T
    return noise
