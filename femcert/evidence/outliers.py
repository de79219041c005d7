"""Sensors that contradict the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..checks import Array
from ..errors import UncertifiedError
from ..linalg.accuracy import dense_rounding
from ..problem.data import Data
from ..problem.noise import Noise
from ..shown import Shown
from .affine import ratios
from .sights import Observed

# Multipliers that are tried, times the square of the first radius, and the part of a sensor that the rest must leave.
MULTIPLIERS, TESTABLE = np.geomspace(1e-8, 1e8, 33), 1e-6


@dataclass(frozen=True, repr=False)
class Outliers(Shown):
    """What each sensor says against the others.

    Attributes
    ----------
    indices
        The sensors that contradict the others, the strongest first.
    strength
        Of each sensor: how far it is from what the others allow, over how far it may be; 1 and less is allowed, NaN for
        sensors that the others say nothing of.
    confidence
        With which no sensor is named, if the noise is as said in all of them.
    """

    indices: NDArray[np.intp]
    strength: Array
    confidence: float

    def summary(self) -> dict[str, str]:
        """Which sensors, and how strongly."""
        named = ", ".join(f"{i} ({self.strength[i]:.2f})" for i in self.indices) or "none"
        blind = int(np.sum(np.isnan(self.strength)))
        return {
            "outliers": f"{len(self.indices)} of {len(self.strength)} sensors contradict the others",
            "sensors": named,
            "not testable": str(blind),
            "confidence": f"{100.0 * self.confidence:.4g} % that none is named where the noise is as said",
        }


def outliers(known: Observed, data: Data, law: Noise, lost: float) -> Outliers:
    """Every sensor against its best affine prediction from the others.

    A combination d of whitened data with ``A' d = 0`` is ``d . b = sum_j d . T_j x_j + d . e``, so that
    ``|d . b| <= cv(bias / ‖d‖) ‖d‖`` with its share of the level, ``bias = sum_j r_j ‖T_j' d‖``. Those of ridge
    regression, ``d = G c`` with ``G = Z (Z' (I + mu K) Z)^-1 Z'``, are the prediction of sensor i from the others, c
    being what that sensor is in whitened data; the mu for which it is tested most sharply is chosen before the data.

    Parameters
    ----------
    known, data, law
        What was measured, and what is known of it.
    lost
        What rounding may move ``d . b`` by, for ``‖d‖ = 1``.
    """
    if known.turn is not None:
        raise UncertifiedError("outliers are found where the standard deviation is known; expected std=")
    m, b = data.values.size, known.values(data)
    C = data.whiten(np.eye(m))
    A = known.free
    U, s, _ = np.linalg.svd(A, full_matrices=True)
    Z = U[:, int(np.sum(s > dense_rounding(*A.shape) * s[0])) if s.size else 0 :]
    radii = np.array([sight.radius for sight in known.sights]) if known.parts else np.zeros(0)
    best, strength = np.full(m, np.inf), np.full(m, np.nan)
    for theta in ratios(radii) if len(radii) else [np.zeros(0)]:
        mixed = sum((t * sight.gram for t, sight in zip(theta, known.sights, strict=True)), np.zeros((len(b), len(b))))
        lam, V = np.linalg.eigh(Z.T @ mixed @ Z)
        basis = Z @ V
        turned = basis.T @ C
        for mu in MULTIPLIERS * radii[0] ** 2 if len(radii) else [0.0]:
            D = basis @ (turned / (1.0 + mu * np.maximum(lam, 0.0))[:, None])
            own, size = np.sum(D * C, axis=0), np.linalg.norm(D, axis=0)
            kept = own > TESTABLE * np.sum(C**2, axis=0)
            bias = sum((_bias(sight, D) for sight in known.sights), lost * size)
            allowed = law.half_length(bias, law.deviation(D), law.zeta / data.count)
            sharp = np.where(kept, allowed / np.where(kept, own, 1.0), np.inf)
            better = sharp < best
            best[better] = sharp[better]
            strength[better] = np.abs(D[:, better].T @ b) / allowed[better]
    found = np.flatnonzero(strength > 1.0)
    return Outliers(found[np.argsort(-strength[found])], strength, 1.0 - law.zeta)


def _bias(sight: object, D: Array) -> Array:
    """``r ‖T' d‖`` for columns d, from above."""
    gram, rounding, radius = sight.gram, sight.rounding, sight.radius  # type: ignore[attr-defined]
    seen = np.sum(D * (gram @ D), axis=0)
    loss = 4.0 * (rounding + dense_rounding(*gram.shape)) * float(np.linalg.norm(gram, 2)) * np.sum(D**2, axis=0)
    return np.asarray(radius * np.sqrt(np.maximum(seen, 0.0) + loss))
