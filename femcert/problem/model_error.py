"""Systematic errors of a model beside the noise: a bounded set of data, given or learned from samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..checks import Array
from ..errors import InputError
from .constraints import conformal_quantile

# Half of them make mean and matrix, the others the size.
FEWEST_SAMPLES = 4


@dataclass(frozen=True)
class ModelError:
    """Errors ``E w`` with ``‖w‖ <= size`` of what a model predicts, in whitened data.

    Attributes
    ----------
    matrix
        E, ``(m, r)``.
    size
        r.
    alpha
        With which probability the error of a truth like the samples is none of these; 0 for numbers of the caller.
    samples
        How many there were.
    """

    matrix: Array
    size: float
    alpha: float = 0.0
    samples: int = 0

    @property
    def norm(self) -> float:
        """``size ‖E‖``: by how much such an error may move whitened data, from above."""
        if not self.matrix.size:
            return 0.0
        return self.size * float(np.linalg.norm(self.matrix, 2)) * (1.0 + 1e-12)

    @property
    def words(self) -> str:
        """What is assumed of the model."""
        origin = f" like those of {self.samples} samples" if self.samples else f" of size {self.size:.4g}"
        return f"a model error{origin}"


def sampled_model_error(samples: Array, confidence: float) -> tuple[Array, ModelError]:
    """Mean and set of systematic errors like the rows of `samples`, which are in whitened data.

    The first half gives the mean and ``E E' = (1 - s) C + s (trace C / m) I``, the covariance C shrunk towards a
    multiple of the identity (Ledoit and Wolf), so that E is invertible also for few samples; the size is the conformal
    quantile of ``‖E^-1 (e - mean)‖`` over the other half. So a further sample lies in the set with `confidence`,
    whatever the law of the samples is.
    """
    if len(samples) < FEWEST_SAMPLES:
        raise InputError(f"{len(samples)} samples of model errors came; expected many more, at least {FEWEST_SAMPLES}")
    half, m = len(samples) // 2, samples.shape[1]
    first, second = samples[:half], samples[half:]
    mean = first.mean(axis=0)
    centred = first - mean
    covariance = centred.T @ centred / half
    level = float(np.trace(covariance)) / m
    if not level > 0.0:
        raise InputError("the samples of model errors do not differ; expected differences over random truths")
    target = level * np.eye(m)
    spread = float(np.sum((covariance - target) ** 2))
    noise = (float(np.sum(np.sum(centred**2, axis=1) ** 2)) / half - float(np.sum(covariance**2))) / half
    share = float(np.clip(noise / spread, 1e-6, 1.0)) if spread > 0.0 else 1.0
    values, V = np.linalg.eigh((1.0 - share) * covariance + share * target)
    root = np.sqrt(np.maximum(values, 1e-9 * values[-1]))
    scores = np.linalg.norm(((second - mean) @ V) / root, axis=1)
    size = conformal_quantile(scores, confidence)
    return mean, ModelError(V * root, size, 1.0 - confidence, len(samples))
