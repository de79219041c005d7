"""Measured values, with what is known of their noise."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import cached_property
from math import comb
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.special import ndtri

from ..checks import Array, frozen, number, real_array, real_vector
from ..errors import InputError, UncertifiedError
from ..shown import Shown
from .constraints import one_of
from .model_error import ModelError, sampled_model_error
from .noise import Bounded, Gaussian, Noise, Repeats, Student, Unknown, check_confidence


class Data(Shown):
    """Values ``y = H u + e`` with ``‖e‖_Y <= noise_level``. Read-only.

    For noise of which standard deviations are known, the usual case, see `gaussian`.

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

    # Systematic errors beside the noise, and what was subtracted from the measurements because of them.
    model: ModelError | None = None
    _mean: Array | float = 0.0
    # How the law was made, where it depends on the values.
    _options: dict[str, Any] | None = None

    def __init__(self, values: Any, noise_level: float, covariance: Any = None) -> None:
        self._set(frozen(real_vector(values, None, "data values")), covariance)
        self._law: Noise = Bounded(number(noise_level, "noise_level", least=0.0))

    @classmethod
    def gaussian(
        cls,
        values: Any,
        *,
        std: Any = None,
        relative: Any = None,
        reference: Any = None,
        covariance: Any = None,
        confidence: float = 0.95,
    ) -> Data:
        """Values with independent normal errors of known standard deviation, or of known covariance.

        Parameters
        ----------
        values
            The measurements; NaN where a reading is missing.
        std
            Standard deviation, one number or one per sensor. ``"unknown"``: one that is the same for all sensors, or
            scales `covariance`; the evidence of a problem estimates it from what the class cannot explain.
        relative
            A relative error beside it, such as 0.03, one number or one per sensor: the deviation of sensor i is
            ``hypot(relative |f_i|, std)`` with its true reading f_i.
        reference
            What the readings are about, fixed before the data: a prediction, or the range of the instrument. The data
            are weighted by their deviations at the reference, and what follows counts that the true readings are
            others. Without it the measured values take its place; weights that depend on the noise prove nothing, so
            all that follows is then an estimate.
        covariance
            Instead of `std` and `relative`, or up to a factor beside ``std="unknown"``: variances ``(m,)`` or an SPD
            matrix ``(m, m)``.
        confidence
            With which statements about these data hold; random is the noise.

        Examples
        --------
        Readings with an error of 3 % and a floor of 1 mV, about 0.5 V by design:

        >>> data = Data.gaussian([0.48, 0.52, 0.001], relative=0.03, std=0.001, reference=0.5)
        >>> print(data.law.zeta.__round__(2), len(data.values))
        0.05 3
        """
        found = cls.__new__(cls)
        given = np.array(values, dtype=float) if not np.ma.isMaskedArray(values) else np.ma.filled(values, np.nan)
        kept = ~np.isnan(given)
        y = real_vector(np.where(kept, given, 0.0), None, "data values")
        if not kept.any():
            raise InputError("data values are all missing; expected one per sensor, NaN where there is none")
        zeta = 1.0 - check_confidence(confidence)
        if isinstance(std, str):
            if std != "unknown" or relative is not None:
                raise InputError(f"std is {std!r}, relative {relative!r}; expected numbers, or std='unknown' alone")
            found._set(frozen(given), np.ones(y.size) if covariance is None else covariance)
            found._law = Unknown(zeta)
            return found
        if covariance is not None:
            if not (std is None and relative is None):
                raise InputError("covariance came together with std or relative; expected one of them")
            found._set(frozen(given), covariance)
            found._law = Gaussian(zeta)
            return found
        if std is None and relative is None:
            raise InputError("nothing is said of the noise; expected std=, relative= or covariance=")
        floor, share = _per_sensor(std, y, "std"), _per_sensor(relative, y, "relative")
        if relative is None:
            if not np.all(floor[kept] > 0.0):
                raise InputError("std is 0 for some reading; expected positive standard deviations")
            found._set(frozen(given), np.where(kept, floor, 1.0) ** 2)
            found._law = Gaussian(zeta)
            return found
        about = np.abs(y if reference is None else _per_sensor(reference, y, "reference", least=-np.inf))
        # One tenth of zeta is for all true readings to lie where the measured ones say.
        spent, m = zeta / 10.0, int(kept.sum())
        z = float(-ndtri(spent / (2.0 * m)))
        if not np.all(z * share < 1.0):
            raise InputError(f"relative is {share.max():g}: readings may be off by all of their size; expected less")
        used = np.hypot(share * about, floor)
        if not np.all(used[kept] > 0.0):
            raise InputError("a standard deviation is zero; give std= beside relative=")
        most = np.hypot(share * (np.abs(y) + z * floor) / (1.0 - z * share), floor)
        found._set(frozen(given), np.where(kept, used, 1.0) ** 2)
        found._options = {"std": std, "relative": relative, "reference": about, "confidence": confidence}
        found._law = Gaussian(zeta, frozen(most[kept] / used[kept]), spent, proven=reference is not None)
        return found

    @classmethod
    def repeated(cls, values: Any, *, std: Any = None, equal: bool = False, confidence: float = 0.95) -> Data:
        """The mean of repeated measurements, whose scatter shows the noise: of any covariance, but the same each time.

        Parameters
        ----------
        values
            ``(n, m)``: n repeats of m readings, at least 2.
        std
            About the standard deviation of one repeat, one number or one per sensor, fixed before the data: weights are
            made for it, and need not be right. Without it they are made for the measured scatter, and what follows is
            an estimate, unless `equal`.
        equal
            Whether the readings are independent with one and the same deviation. It is then estimated from all of them,
            with ``m (n - 1)`` degrees of freedom instead of ``n - 1``.
        confidence
            With which statements about these data hold; random is the noise.

        Examples
        --------
        >>> data = Data.repeated([[1.0, 2.1], [1.2, 1.9], [1.1, 2.0]], equal=True)
        >>> data.law.degrees, data.values.round(3).tolist()
        (4, [1.1, 2.0])
        """
        Y = real_array(values, "values")
        if Y.ndim != 2 or len(Y) < 2 or not Y.shape[1]:
            raise InputError(f"values has shape {Y.shape}; expected (n, m), n repeats of m readings, n at least 2")
        zeta, (n, m) = 1.0 - check_confidence(confidence), Y.shape
        found, mean = cls.__new__(cls), Y.mean(axis=0)
        squares = np.sum((Y - mean) ** 2, axis=0) / (n - 1)
        if not np.all(squares > 0.0):
            raise InputError("some reading is the same in all repeats; expected noise in each of them")
        if equal:
            if std is not None:
                raise InputError("std came together with equal=True, which estimates it; expected one of them")
            found._set(frozen(mean), np.full(m, squares.mean() / n))
            found._law = Student(zeta, m * (n - 1))
            return found
        variances = squares if std is None else _per_sensor(std, mean, "std") ** 2
        found._set(frozen(mean), variances / n)
        # The mean has the deviation 1 in these units, a single repeat n^1/2.
        found._law = Repeats(zeta, frozen(found.whiten((Y - mean).T).T), proven=std is not None)
        return found

    def leaving_out(self, sensors: Any, most: int) -> Data:
        """The same data without some sensors that were chosen after looking, with the level accounted for.

        Each set of s of m sensors is looked at with the level ``zeta / ((most + 1) C(m, s))``: so statements hold,
        whichever sensors were chosen.

        Parameters
        ----------
        sensors
            Their indices, at most `most` of them.
        most
            How many would have been left out at most, fixed before the data.
        """
        picked = np.unique(np.asarray(sensors, dtype=int))
        if not isinstance(self._law, Gaussian):
            raise UncertifiedError("sensors are left out of Gaussian data of known deviations only")
        if picked.size > most or picked.min(initial=0) < 0 or picked.max(initial=0) >= self._values.size:
            count = f"indices of 0 to {self._values.size - 1}, at most {most} of them"
            raise InputError(f"sensors is {picked.tolist()}; expected {count}")
        found, law = copy.copy(self), self._law
        values = self._values.copy()
        values[picked] = np.nan
        if np.isnan(values).all():
            raise InputError("all sensors are left out; expected some to remain")
        found._set(frozen(values), self._covariance)
        still = np.ones(self.count, dtype=bool) if found._kept is None else ~np.isnan(values[~np.isnan(self._values)])
        deviations = None if law.deviations is None else frozen(law.deviations[still])
        share = (law.zeta - law.spent) / ((most + 1) * comb(self.count, int(np.sum(~still))))
        found._law = replace(law, deviations=deviations, spent=law.zeta - share)
        if self.model is not None:
            if self._covariance is None or self._covariance.ndim == 2:
                raise UncertifiedError("sensors with correlated noise and a model error are not left out")
            found.model = replace(self.model, matrix=frozen(self.model.matrix[still]))
        found._options = None
        return found

    def _set(self, values: Array, covariance: Any) -> None:
        if not values.size:
            raise InputError("data values are empty; expected one per sensor")
        self._values = values
        kept = ~np.isnan(values)
        self._kept = None if kept.all() else np.flatnonzero(kept)
        self._covariance = None if covariance is None else self._checked(covariance)
        self.__dict__.pop("_root", None)
        if self._covariance is not None:
            self._root  # noqa: B018  (an indefinite covariance is refused here, not at first use)

    @property
    def values(self) -> Array:
        """The measurements (read-only), NaN where one is missing."""
        return self._values

    @property
    def law(self) -> Noise:
        """What is known of the noise, in whitened data."""
        return self._law

    @property
    def count(self) -> int:
        """How many values there are, without those that are missing."""
        return self._values.size if self._kept is None else int(self._kept.size)

    @property
    def noise_level(self) -> float:
        """Bound of noise and model error in the norm of Y (the paper's delta), with `confidence`."""
        systematic = 0.0 if self.model is None else self.model.norm
        return self._law.size(self.count, self._law.zeta) + systematic

    @property
    def alpha(self) -> float:
        """With which probability the model error of a truth like the samples is larger; 0 without samples."""
        return 0.0 if self.model is None else self.model.alpha

    @property
    def confidence(self) -> float:
        """With which noise and model error are as said; 1: for sure."""
        return 1.0 - self._law.zeta - self.alpha

    def with_model_error(
        self, samples: Any = None, *, confidence: float = 0.95, matrix: Any = None, size: float | None = None
    ) -> Data:
        """The same data of a model with systematic errors: a bounded set beside the noise, as a new object.

        Parameters
        ----------
        samples
            Differences between what an accurate model and the one that is used predict, for truths drawn at random; a
            row for each. Their mean is subtracted from the values. They must have entered nothing else.
        confidence
            With which a further difference lies in the set; it is accounted for beside that of the noise.
        matrix, size
            Instead of samples: errors ``matrix @ w`` with ``‖w‖ <= size``, for sure.

        Examples
        --------
        Readings that may all be off by the same 0.1 at most:

        >>> import numpy as np
        >>> data = Data.gaussian(np.zeros(3), std=0.01).with_model_error(matrix=np.ones((3, 1)), size=0.1)
        >>> data.confidence
        0.95
        """
        one_of(matrix, samples, "with_model_error")
        if self.model is not None:
            raise InputError("data have a model error already; expected samples of all errors together")
        found, m = copy.copy(self), self._values.size
        if samples is None:
            E = real_array(matrix, "matrix")
            if E.ndim != 2 or len(E) != m:
                raise InputError(f"matrix has shape {E.shape}; expected ({m}, r), a row for each sensor")
            found.model = ModelError(frozen(self.whiten(E)), number(size, "size", least=0.0))
            return found
        rows = real_array(samples, "samples")
        if rows.ndim != 2 or rows.shape[1] != m:
            raise InputError(f"samples has shape {rows.shape}; expected (n, {m}), a row for each difference")
        _, found.model = sampled_model_error(self.whiten(rows.T).T, check_confidence(confidence))
        # The mean of the same half of the samples.
        found._mean = frozen(rows[: len(rows) // 2].mean(axis=0))
        found._values = frozen(self._values - found._mean)
        return found

    @property
    def covariance(self) -> Array | None:
        """Noise covariance: variances, a matrix, or None."""
        return self._covariance

    def with_values(self, values: Any) -> Data:
        """Other measurements with the same noise and model error, as a new object."""
        other = np.array(values, dtype=float)
        missing = np.isnan(self._values)
        if other.shape != self._values.shape or not np.array_equal(np.isnan(other), missing):
            expected = f"{self._values.shape}, with the same ones missing"
            raise InputError(f"values has shape {other.shape}; expected {expected}")
        real_vector(other[~missing], None, "values")
        found = copy.copy(self)
        if self._options is not None:
            found = Data.gaussian(other, **self._options)
            if isinstance(found._law, Gaussian):
                # The same weights: they are as good or bad as they were.
                found._law = replace(found._law, proven=self._law.proven)
            found.model, found._mean = self.model, self._mean
        found._values = frozen(other - self._mean)
        return found

    def weighs_like(self, other: Data) -> bool:
        """Whether both whiten in the same way: the same covariance, the same readings missing."""
        same = np.array_equal(np.isnan(self._values), np.isnan(other._values))
        return same and np.array_equal(np.asarray(self._covariance), np.asarray(other._covariance))

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
        C = C if self._kept is None else C[self._kept] if C.ndim == 1 else C[np.ix_(self._kept, self._kept)]
        if C.ndim == 1:
            if not np.all(C > 0.0):
                raise InputError(f"covariance has the variance {C.min():.4g}; expected positive variances")
            return np.sqrt(C)
        try:
            return cholesky(C, lower=True)
        except np.linalg.LinAlgError:
            raise InputError("covariance is not positive definite") from None

    def whiten(self, values: Array) -> Array:
        """``L^-1 values`` with ``C = L L'`` (vector or columns), so that ``‖values‖_Y`` is its Euclidean norm.

        Missing readings are left out.
        """
        if self._kept is not None:
            values = values[self._kept]
        if self._covariance is None:
            return values
        if self._root.ndim == 1:
            return values / (self._root if values.ndim == 1 else self._root[:, None])
        return solve_triangular(self._root, values, lower=True)

    def whiten_transposed(self, values: Array) -> Array:
        """``L^-T values``, the transpose of `whiten`: zero where a reading is missing."""
        if self._covariance is None:
            found = values
        elif self._root.ndim == 1:
            found = values / (self._root if values.ndim == 1 else self._root[:, None])
        else:
            found = solve_triangular(self._root, values, lower=True, trans="T")
        if self._kept is None:
            return found
        full = np.zeros((self._values.size, *found.shape[1:]))
        full[self._kept] = found
        return full

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
        return float(np.linalg.norm(np.abs(self.whiten(np.eye(len(sizes)))) @ np.nan_to_num(sizes)))

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

    @property
    def level_words(self) -> str:
        """`noise_level` for a table, or that it is unknown."""
        return "unknown" if isinstance(self._law, Unknown) else f"{self.noise_level:.4g}"

    def summary(self) -> dict[str, str]:
        """Count and size of the values, noise."""
        y = self._values if self._kept is None else self._values[self._kept]
        chance = "" if self.confidence == 1.0 else f" with {100.0 * self.confidence:g} %"
        level = "unknown" if isinstance(self._law, Unknown) else f"{self.level_words}{chance}{self._share()}"
        given = "none: the norm is Euclidean" if self._covariance is None else f"of shape {self._covariance.shape}"
        model = {} if self.model is None else {"model": f"{self.model.words}, up to {self.model.norm:.4g}"}
        missing = "" if self._kept is None else f", {self._values.size - self.count} missing"
        return {
            "values": f"{self._values.size} from {y.min():.4g} to {y.max():.4g}{missing}",
            "noise level": level,
            "covariance": given,
            **model,
        }

    def _share(self) -> str:
        size = self.norm(self._values)
        return f", {100.0 * self.noise_level / size:.3g} % of the data" if size > 0.0 else ""

    def __repr__(self) -> str:
        return f"Data({self._values.size} values, noise_level={self.level_words})"


def _per_sensor(values: Any, data: Array, name: str, *, least: float = 0.0) -> Array:
    """One number for each sensor, at least `least`; zeros where none came."""
    found = real_array(0.0 if values is None else values, name)
    if found.shape not in ((), data.shape):
        raise InputError(f"{name} has shape {found.shape}; expected one number or {data.shape}")
    if found.size and float(found.min()) < least:
        raise InputError(f"{name} is {float(found.min()):g}; expected at least {least:g}")
    return np.broadcast_to(found, data.shape)
