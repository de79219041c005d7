"""Many trials with the same number of sensors at once: data, baseline, learned candidate, residuals, stability."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...checks import Array
from ...errors import InputError
from ...evidence.consistent import Fit, fit
from .draw import Draws, draw
from .grid import Grid, Values
from .setting import Setting

EPS = float(np.finfo(float).eps)
# Squares and products of anything smaller are numbers.
LARGEST = 1e70


@dataclass(frozen=True)
class Candidates:
    """One candidate for each trial.

    Attributes
    ----------
    x
        Coordinates, ``(trials, k)``, orthonormal in Q.
    response
        Norm of ``A x``, the data of the parameter's own state.
    misfit
        ``‖A x - y‖``.
    data
        ``‖H u - y‖`` with the candidate's state u, and what rounding may have done to it (r_data).
    pde, bc
        Physics and boundary residual (r_pde, r_bc).
    optimality
        ``‖A'(A x - y) + lambda x‖`` (r_opt).
    error
        Distance from the truth, which no rule sees.
    """

    x: Array
    response: Array
    misfit: Array
    data: Array
    pde: Array
    bc: Array
    optimality: Array
    error: Array


@dataclass(frozen=True)
class Batch:
    """Trials with m sensors each; a row of every array is a trial.

    Attributes
    ----------
    values
        Data y, ``(trials, m)``.
    level
        delta: the norm of the noise that was drawn, as in the paper.
    deviation
        Standard deviation of the noise, the same for all sensors of a trial: its covariance is ``deviation² I``.
    fit
        SVD of the forward matrices, least squares solutions, and the sets of consistent coordinates.
    constant
        C_stab = 1 / sigma_min from above; infinite where sigma_min is zero to rounding.
    rounding, kept
        As in `Setting`.
    error
        What rounding may have moved the forward matrix by, a norm.
    """

    values: Array
    level: Array
    deviation: Array
    fit: Fit
    constant: Array
    baseline: Candidates
    learned: Candidates
    rounding: float
    kept: float
    error: Array


def batches(
    setting: Setting, grid: Grid, seed: int, start: int, stop: int
) -> Iterator[tuple[NDArray[np.int64], Batch]]:
    """The trials `start` to `stop - 1` by their number of sensors, with their positions after `start`.

    Raises
    ------
    InputError
        The settings lead to numbers whose squares overflow.
    """
    draws = draw(seed, start, stop, places=setting.places, dimension=setting.dimension)
    sensors = grid.values(np.arange(start, stop)).sensors
    for m in np.unique(sensors):
        rows = np.flatnonzero(sensors == m)
        with np.errstate(over="ignore", invalid="ignore"):
            trials = batch(setting, draws, rows, grid.values(start + rows))
        _check_sizes(trials)
        _freeze(trials)
        yield rows, trials


def batch(setting: Setting, draws: Draws, rows: NDArray[np.int64], values: Values) -> Batch:
    """The trials in these rows of the draws, all with the same number of sensors.

    ``y = A x_true + e`` with independent Gaussian noise of the standard deviation ``eta ‖A x_true‖ / sqrt(m)``. The
    baseline minimizes ``‖A x - y‖² + lambda ‖x‖²``. The learned candidate is ``x_true + sigma_learn xi`` with standard
    normal xi, and its state is that of its parameter plus mu times the mismatch.
    """
    m = int(values.sensors[0])
    places = draws.chosen(rows, m)
    A = setting.forward[places]
    truth = np.broadcast_to(setting.truth, (len(rows), setting.dimension))
    clean = _apply(A, truth)
    deviation = values.noise * _norm(clean) / np.sqrt(m)
    noise = deviation[:, None] * draws.noise_normals(rows, m)
    y, level = clean + noise, _norm(noise)
    error = _norm(setting.error[places])
    found = fit(A, y, level, rounding=setting.rounding, error=error)
    learned = truth + values.perturbation[:, None] * draws.perturbation_normals(rows)
    added = values.mismatch[:, None] * setting.mismatch[places]
    none = np.zeros(len(rows))
    return Batch(
        values=y,
        level=level,
        deviation=deviation,
        fit=found,
        constant=_constant(found.singular, m, setting, error),
        baseline=_candidates(setting, A, y, tikhonov(found, setting.weight), 0.0, none),
        learned=_candidates(setting, A, y, learned, added, values.mismatch),
        rounding=setting.rounding,
        kept=setting.kept,
        error=error,
    )


def tikhonov(found: Fit, weight: float) -> Array:
    """Minimizers of ``‖A x - y‖² + weight ‖x‖²``: the least squares solution, filtered by ``s² / (s² + weight)``."""
    s = found.singular
    along = _apply(np.swapaxes(found.right, -1, -2), found.centre)
    return _apply(found.right, along * (s**2 / (s**2 + weight)))


def _candidates(setting: Setting, A: Array, y: Array, x: Array, added: Array | float, amplitude: Array) -> Candidates:
    response = _apply(A, x)
    state = response + added
    gradient = _apply(np.swapaxes(A, -1, -2), response - y) + setting.weight * x
    return Candidates(
        x=x,
        response=_norm(response),
        misfit=_norm(response - y),
        data=_norm(state - y) + setting.rounding * (_norm(state) + _norm(y)),
        pde=amplitude * setting.pde,
        bc=amplitude * setting.bc,
        optimality=_norm(gradient),
        error=_norm(x - setting.truth),
    )


def _constant(s: Array, sensors: int, setting: Setting, error: Array) -> Array:
    """``1 / sigma_min`` with sigma_min from below, by Weyl's inequality, as `femcert.stability` has it."""
    if sensors < setting.dimension:
        return np.full(len(s), np.inf)
    rounding = (setting.rounding + 16.0 * np.sqrt(sensors * setting.dimension) * EPS) * s[:, 0] + error
    least = setting.kept * (s[:, -1] - rounding)
    return np.asarray(np.divide(1.0, least, out=np.full(len(s), np.inf), where=least > 0.0))


def _check_sizes(trials: Batch) -> None:
    both = (trials.baseline, trials.learned)
    sizes = [trials.level, *(part for c in both for part in (c.data, c.optimality, c.error))]
    largest = float(np.max(sizes))
    if not largest <= LARGEST:
        came = f"the settings lead to data, residuals or errors of {largest:.3g}"
        raise InputError(f"{came}; expected at most {LARGEST:g}, with less noise, say, or mismatch")


def _freeze(part: Any) -> None:
    """No rule can change what the next one reads."""
    for field in fields(part):
        value = getattr(part, field.name)
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
        elif is_dataclass(value):
            _freeze(value)


def _apply(matrices: Array, vectors: Array) -> Array:
    # One product for each trial, so that no number depends on how many trials there are.
    return np.asarray((matrices @ vectors[..., None])[..., 0])


def _norm(vectors: Array) -> Array:
    return np.asarray(np.linalg.norm(vectors, axis=-1))
