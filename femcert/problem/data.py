"""Measured values with their noise level and, optionally, their covariance."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.special import chdtri

from ..checks import Array, frozen, number, real_array, real_vector
from ..errors import InputError
from ..shown import Shown


def gaussian_radius(size: int, confidence: float) -> float:
    """``chi2_m(confidence)^1/2``: m independent standard normal numbers have at most this norm, with `confidence`."""
    level = number(confidence, "confidence", above=0.0)
    if not level < 1.0:
        raise InputError(f"confidence is {level:g}; expected a probability below 1, such as 0.95")
    return float(np.sqrt(chdtri(size, 1.0 - level)))


class Data(Shown):
    """Values ``y = H u + e`` with ``‖e‖_Y <= noise_level``. Read-only.

    Parameters
    ----------
    values
        The measurements, one per sensor (for several observation times: time after time).
    noise_level
        The paper's delta, in the norm of Y.
    covariance
        None: Y has the Euclidean norm. Variances ``(m,)`` or an SPD matrix C ``(m, m)``:
        ``‖y‖_Y² = y' C^-1 y``, and `noise_level` is in that norm (about ``sqrt(m)`` for noise of covariance C).

    Examples
    --------
    Two sensors of different quality:

    >>> data = Data([1.0, 2.0], 1.5, covariance=[0.01, 0.04])
    >>> data.norm(data.values)
    14.142135623730951
    """

    def __init__(self, values: Any, noise_level: float, covariance: Any = None) -> None:
        self._values = frozen(real_vector(values, None, "data values"))
        if not self._values.size:
            raise InputError("data values are empty; expected one per sensor")
        self._noise_level = number(noise_level, "noise_level", least=0.0)
        self._covariance = None if covariance is None else self._checked(covariance)
        if self._covariance is not None:
            self._root  # noqa: B018  (an indefinite covariance is refused here, not at first use)

    @property
    def values(self) -> Array:
        """The measurements (read-only)."""
        return self._values

    @property
    def noise_level(self) -> float:
        """Bound of the noise in the norm of Y (the paper's delta)."""
        return self._noise_level

    @property
    def covariance(self) -> Array | None:
        """Noise covariance: variances, a matrix, or None."""
        return self._covariance

    def _checked(self, covariance: Any) -> Array:
        C = real_array(covariance, "covariance")
        m = self._values.size
        if C.shape not in ((m,), (m, m)):
            raise InputError(f"covariance has shape {C.shape}; expected ({m},) or ({m}, {m})")
        if C.ndim == 2 and not np.allclose(C, C.T, rtol=0.0, atol=1e-12 * np.abs(C).max()):
            raise InputError("covariance is not symmetric")
        return frozen(C)

    @cached_property
    def _root(self) -> Array:
        C = self._covariance
        assert C is not None
        if C.ndim == 1:
            if not np.all(C > 0.0):
                raise InputError(f"covariance has the variance {C.min():.4g}; expected positive variances")
            return np.sqrt(C)
        try:
            return cholesky(C, lower=True)
        except np.linalg.LinAlgError:
            raise InputError("covariance is not positive definite") from None

    def whiten(self, values: Array) -> Array:
        """``L^-1 values`` with ``C = L L'`` (vector or columns), so that ``‖values‖_Y`` is its Euclidean norm."""
        if self._covariance is None:
            return values
        if self._root.ndim == 1:
            return values / (self._root if values.ndim == 1 else self._root[:, None])
        return solve_triangular(self._root, values, lower=True)

    def whiten_transposed(self, values: Array) -> Array:
        """``L^-T values``, the transpose of `whiten`."""
        if self._covariance is None or self._root.ndim == 1:
            return self.whiten(values)
        return solve_triangular(self._root, values, lower=True, trans="T")

    @cached_property
    def spread(self) -> float:
        """At least ``‖L^-1‖ ‖L‖``: by how much an error relative to ``‖y‖`` may be larger relative to ``‖y‖_Y``."""
        if self._covariance is None:
            return 1.0
        if self._root.ndim == 1:
            return float(self._root.max() / self._root.min())
        return float(np.linalg.cond(self._root)) * (1.0 + 1e-9)

    def norm_of_errors(self, sizes: Array) -> float:
        """The largest ``‖e‖_Y`` of errors with ``|e_i| <= sizes_i``."""
        if self._covariance is None or self._root.ndim == 1:
            return self.norm(sizes)
        return float(np.linalg.norm(np.abs(self.whiten(np.eye(len(sizes)))) @ sizes))

    @cached_property
    def largest_weight(self) -> float:
        """At least ``‖L^-1‖``: how large an error of Euclidean norm one may be in the norm of Y."""
        if self._covariance is None:
            return 1.0
        if self._root.ndim == 1:
            return float(1.0 / self._root.min())
        return float(1.0 / np.linalg.svd(self._root, compute_uv=False)[-1]) * (1.0 + 1e-9)

    def norm(self, values: Array) -> float:
        """``‖values‖_Y``."""
        return float(np.linalg.norm(self.whiten(values)))

    def summary(self) -> dict[str, str]:
        """Count and size of the values, noise."""
        size = self.norm(self._values)
        share = f", {100.0 * self._noise_level / size:.3g} % of the data" if size > 0.0 else ""
        given = "none: the norm is Euclidean" if self._covariance is None else f"of shape {self._covariance.shape}"
        values = f"{self._values.size} from {self._values.min():.4g} to {self._values.max():.4g}"
        return {"values": values, "noise level": f"{self._noise_level:.4g}{share}", "covariance": given}

    def __repr__(self) -> str:
        return f"Data({self._values.size} values, noise_level={self._noise_level:.4g})"
