"""The random numbers of the trials: a trial has its own, whatever chunk it is computed in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ...checks import Array

# Words that one step of Philox' counter gives.
WORDS = 4


@dataclass(frozen=True)
class Draws:
    """Uniform numbers in (0, 1) for some trials, a row for each.

    Attributes
    ----------
    places
        ``(trials, places)``: sensors stand where these are smallest.
    noise
        ``(trials, places)``; a trial with m sensors uses the first m.
    perturbation
        ``(trials, k)``.
    """

    places: Array
    noise: Array
    perturbation: Array

    def chosen(self, rows: NDArray[np.int64], sensors: int) -> NDArray[np.int64]:
        """Numbers of the places of m sensors, ``(rows, m)``, ascending: all sets of m are equally likely."""
        keys = self.places[rows]
        if sensors == keys.shape[1]:
            return np.broadcast_to(np.arange(sensors), keys.shape)
        return np.sort(np.argpartition(keys, sensors - 1, axis=-1)[:, :sensors], axis=-1)

    def noise_normals(self, rows: NDArray[np.int64], sensors: int) -> Array:
        """Standard normal numbers, ``(rows, m)``."""
        return np.asarray(ndtri(self.noise[rows, :sensors]))

    def perturbation_normals(self, rows: NDArray[np.int64]) -> Array:
        """Standard normal numbers, ``(rows, k)``."""
        return np.asarray(ndtri(self.perturbation[rows]))


def draw(seed: int, start: int, stop: int, *, places: int, dimension: int) -> Draws:
    """The numbers of the trials `start` to `stop - 1`.

    All trials read from one Philox stream of the seed, trial i the words ``i w`` to ``(i + 1) w - 1``; a generator with
    a counter can begin anywhere. Normal numbers are made by the inverse of their distribution function, so that each
    takes one word and the width w is fixed.
    """
    width = -(-(2 * places + dimension) // WORDS) * WORDS
    stream = np.random.Philox(np.random.SeedSequence(seed))
    stream.advance(start * (width // WORDS))
    words = stream.random_raw((stop - start) * width).reshape(stop - start, width)
    # 52 bits and a half: never 0 and never 1.
    uniform = ((words >> np.uint64(12)).astype(float) + 0.5) * 2.0**-52
    return Draws(uniform[:, :places], uniform[:, places : 2 * places], uniform[:, 2 * places : 2 * places + dimension])
