"""The Riesz representative of a residual in the trial space, and the residual without it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks import Array
from ..linalg import Factorization
from ..mesh.sample import dot
from .weak import Samples, WeakResidual

MOST_CORRECTIONS = 5
# Relative to the energy of the state's flux, what is left on the trial space is then rounding.
ROUNDING = 1e-13


@dataclass(frozen=True)
class Split:
    """``r = (w, .)_V + rest``, w in the trial space.

    ``‖r‖² = ‖w‖² + 2 rest(w) + ‖rest‖²`` for any w, and ``rest(w)`` is rounding where w is the Riesz representative.

    Attributes
    ----------
    representative
        Dof values of w.
    square, cross
        ``‖w‖²`` and ``rest(w)``.
    rest
        The remaining functional; it vanishes on the trial space up to rounding.
    samples
        Values, gradients and boundary values of w, where it is more than its part in the trial space.
    """

    representative: Array
    square: float
    cross: float
    rest: WeakResidual
    samples: Samples | None = None


def split(r: WeakResidual, factor: Factorization, free: NDArray[np.int64]) -> Split:
    """Take the trial space out of a residual, with iterative correction.

    `factor` is that of the norm's matrix on the free dofs, perhaps assembled with another quadrature: the residual is
    evaluated anew after each solve, so that what remains is small whatever the factor was.
    """
    whole = r.on_basis()[free]
    size = float(r.sampler.integral(dot(r.flux, r.flux) / r.norm.A).sum())
    w = np.zeros(r.basis.N)
    rest, left = r, whole
    for _ in range(MOST_CORRECTIONS):
        step = factor.solve(left)
        gain = float(left @ step)
        if not gain > ROUNDING**2 * (size + float(whole @ w[free])):
            break
        w[free] += step
        rest = r.without(w)
        left = rest.on_basis()[free]
    return Split(w, float((whole - left) @ w[free]), float(left @ w[free]), rest)


def split_further(r: WeakResidual, first: Split, function: Samples, factor: Factorization, free: Any) -> Split:
    """Take a function beyond the trial space out of a residual as well, then once more the trial space."""
    again = split(first.rest.without_samples(function), factor, free)
    on_trial = first.representative + again.representative
    parts = zip(r.samples(on_trial), function, strict=True)
    value, slope, trace = (a + b for a, b in parts)
    w = (value, slope, trace)
    return Split(on_trial, r.inner(w, w), again.rest.apply(*w), again.rest, w)
