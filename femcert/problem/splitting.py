"""Data made of data: with another confidence, or split into two independent parts."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np

from ..checks import frozen
from ..errors import UncertifiedError
from .data import Data
from .noise import Gaussian, Noise


def at_level(data: Data, zeta: float) -> Data:
    """The same data, whose noise may break what is said of it with another probability."""
    law: Noise = data.law
    if law.zeta == zeta:
        return data
    found = copy.copy(data)
    if data._options is not None:
        found._options = {**data._options, "confidence": 1.0 - zeta}
        return found.with_values(data.values + data._mean)
    if isinstance(law, Gaussian) and law.spent:
        # The same share for what is left out; what deviations spend is a number, and stays one.
        if law.deviations is not None and zeta < law.zeta:
            raise UncertifiedError("sensors were left out at a lower confidence; expected the other confidence first")
        found._law = replace(law, zeta=zeta, spent=law.spent * zeta / law.zeta)
        return found
    found._law = replace(law, zeta=zeta)  # type: ignore[type-var]
    return found


def thinned(data: Data, gamma: float, seed: int) -> tuple[Data, Data]:
    """``y + g w`` and ``y - w / g`` with ``w ~ N(0, C)`` drawn here, C the covariance of the noise.

    Their noises ``e + g w`` and ``e - w / g`` have the covariances ``(1 + g²) C`` and ``(1 + 1 / g²) C`` and are
    independent: whatever is made of the first part, the second one judges it as if it had been fixed before.

    Parameters
    ----------
    gamma
        g: small, and the first part is nearly the data; large, and the second one is.
    seed
        Of the one draw; it must not have been used for anything else.

    Raises
    ------
    UncertifiedError
        The covariance of the noise is not known, or depends on the data.
    """
    law, C = data.law, data.covariance
    if not isinstance(law, Gaussian) or not law.fixed or law.spent or C is None:
        raise UncertifiedError("data are split in two for Gaussian noise of known deviations only; expected std=")
    z = np.random.default_rng(seed).standard_normal(data.count)
    kept = ~np.isnan(data.values)
    w = np.zeros(data.values.shape)
    w[kept] = data._root * z if data._root.ndim == 1 else data._root @ z
    return _with_noise(data, gamma * w, 1.0 + gamma**2), _with_noise(data, -w / gamma, 1.0 + gamma**-2)


def _with_noise(data: Data, added: np.ndarray, factor: float) -> Data:
    """With more noise, whose covariance grows by a factor."""
    found = copy.copy(data)
    found._set(frozen(data.values + added), np.asarray(data.covariance) * factor)
    # Other values have this noise, too.
    found._options = None
    if data.model is not None:
        found.model = replace(data.model, matrix=frozen(data.model.matrix / np.sqrt(factor)))
    return found
