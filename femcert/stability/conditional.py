"""Conditional stability: what a ball adds to the data, all there is where coordinates outnumber observations."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..bound import Bound
from ..checks import Array, frozen, number
from ..errors import InputError
from ..problem.base import Problem
from ..problem.data import Data
from ..problem.forward import BATCH
from ..problem.linear import LinearProblem
from .modulus import Modulus

# Noise levels that an envelope covers if none are given: from that of the data to this many times it.
REACH = 100.0


def conditional_parts(problem: Problem, data: Data | None, levels: Any) -> dict[str, Any]:
    """Constant, exponent, range, modulus, singular values and weakest parameter of a class with a ball."""
    if not problem.linear:
        raise InputError(f"conditional stability is for linear problems, not for a {type(problem).__name__}")
    low, high = _range(data, levels)
    modulus = Modulus(problem, data=data)
    constant, exponent = modulus.envelope(low, high)
    weakest = modulus.worst(low)
    weakest = weakest / problem.parameters.norm(weakest)
    return {
        "constant": Bound(constant, "upper", f"envelope of the modulus on [{low:.3g}, {high:.3g}]"),
        "exponent": exponent,
        "singular_values": frozen(_singular_values(problem, modulus)),
        "weakest": frozen(weakest * np.sign(weakest[np.argmax(np.abs(weakest))])),
        "scope": "discrete",
        "levels": (low, high),
        "moduli": modulus,
    }


def _range(data: Data | None, levels: Any) -> tuple[float, float]:
    if levels is not None:
        if not isinstance(levels, (tuple, list)) or len(levels) != 2:
            raise InputError(f"levels is {levels!r}; expected a pair (low, high) of noise levels")
        low, high = number(levels[0], "levels[0]", above=0.0), number(levels[1], "levels[1]")
        if not low < high:
            raise InputError(f"levels is ({low:g}, {high:g}); expected low < high")
        return low, high
    if data is None or not data.noise_level > 0.0:
        raise InputError("conditional stability depends on the noise; expected data with a noise level, or levels=")
    return data.noise_level, REACH * data.noise_level


def _singular_values(problem: LinearProblem, modulus: Modulus) -> Array:
    """Of the map from Q to Y, descending; with more coordinates than observations there is a zero."""
    adjoint = modulus.adjoint()
    parts = [adjoint[:, i : i + BATCH] for i in range(0, adjoint.shape[1], BATCH)]
    gram = np.hstack([adjoint.T @ problem.parameters.solve_gram(part) for part in parts])
    squares = np.linalg.eigvalsh((gram + gram.T) / 2.0)[::-1]
    k = problem.parameters.dimension
    values = np.sqrt(np.maximum(squares[:k], 0.0))
    return np.append(values, 0.0) if len(values) < k else values
