"""The values of a candidate as it keeps them: frozen, and not judged yet."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks import frozen
from ..errors import InputError


def stored_number(optimality: Any) -> float:
    """A stationarity measure as a float."""
    value = stored(optimality, "optimality")
    if value.ndim or np.iscomplexobj(value):
        raise InputError(f"optimality is {optimality!r}; expected a number")
    return float(value)


def stored(values: Any, name: str) -> NDArray[Any]:
    """`values` frozen; what is no array of numbers at all is refused.

    NaN, complex or misshapen values are refused by the problem that judges the candidate, so that `no_harm` can record
    them as its reason.
    """
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(f"{name} is not an array of numbers: {error}") from None
    if array.dtype.kind not in "iufc" or np.ma.is_masked(values):
        came = "masked entries" if np.ma.is_masked(values) else f"type {array.dtype}"
        raise InputError(f"{name} has {came}; expected numbers")
    return frozen(array)
