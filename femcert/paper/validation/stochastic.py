"""A residual field sampled at random points, and the high-probability bound of its mean square."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from skfem import Basis

from ...certificate import hoeffding
from ...checks import Array
from .grid import line_basis
from .setup import STOCHASTIC, candidate_seed


@dataclass(frozen=True)
class SweepRow:
    """Means over the repetitions for one number of points.

    Attributes
    ----------
    empirical_msr, upper_bound, coverage
        Mean of the empirical mean square, mean of the bound, and the share of bounds above the true mean square.
    standard_error
        Of the first two means, over the repetitions.
    """

    points: int
    repetitions: int
    zeta: float
    empirical_msr: float
    upper_bound: float
    coverage: float
    standard_error: float


@dataclass(frozen=True)
class Sweep:
    """The residual field on its nodes, the two constants of the paper, and a row for each number of points."""

    basis: Basis
    field: Array
    true_msr: float
    envelope: float
    rows: tuple[SweepRow, ...]
    seed: int


def residual_field(x: Array) -> Array:
    """``0.3 sin(6 pi x)`` with two narrow peaks (the paper's r)."""
    peaks = 1.5 * np.exp(-((x - 0.72) ** 2) / 0.002) + 0.8 * np.exp(-((x - 0.22) ** 2) / 0.0008)
    return 0.3 * np.sin(6.0 * np.pi * x) + peaks


def sweep(base_seed: int) -> Sweep:
    """The whole sweep for one base seed."""
    basis = line_basis(STOCHASTIC.grid - 2)
    field = residual_field(basis.doflocs[0])
    squares = field**2
    true_msr, envelope = float(squares.mean()), float(squares.max())
    seed = candidate_seed(base_seed, STOCHASTIC.first)
    rng = np.random.default_rng(seed)
    rows = tuple(_row(squares, true_msr, envelope, M, rng) for M in STOCHASTIC.points)
    return Sweep(basis, field, true_msr, envelope, rows, seed)


def _row(squares: Array, true_msr: float, envelope: float, points: int, rng: np.random.Generator) -> SweepRow:
    repetitions, zeta = STOCHASTIC.repetitions, STOCHASTIC.zeta
    samples = squares[rng.integers(squares.size, size=(repetitions, points))]
    bounds = np.array([hoeffding(sample, envelope, zeta) for sample in samples])
    return SweepRow(
        points=points,
        repetitions=repetitions,
        zeta=zeta,
        empirical_msr=float(samples.mean()),
        upper_bound=float(bounds.mean()),
        coverage=float(np.mean(bounds >= true_msr)),
        standard_error=float(np.std(squares) / np.sqrt(points * repetitions)),
    )
