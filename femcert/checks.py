"""Input checks shared by the rooms: what came, what was expected."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .errors import InputError, UncertifiedError

Array = NDArray[np.float64]
T = TypeVar("T")
# Of coordinates: differences of larger ones leave the range of floats when squared.
MOST_COORDINATE = 1e150


def real_array(values: Any, name: str) -> Array:
    """`values` as float64, or an `InputError` for complex, non-numeric, NaN or infinite entries."""
    if np.ma.is_masked(values):
        raise InputError(f"{name} is a masked array with masked entries; expected numbers everywhere")
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(f"{name} is not an array of numbers: {error}") from None
    if np.iscomplexobj(array):
        raise InputError(f"{name} is complex; expected real numbers")
    # Strings, booleans and dates would convert without an error.
    if array.dtype.kind not in "iuf" and array.size:
        raise InputError(f"{name} has type {array.dtype}; expected real numbers")
    array = array.astype(np.float64)
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        where = tuple(int(i) for i in bad[0])
        came = f"{len(bad)} NaN or infinite entries, the first at index {where}"
        raise InputError(f"{name} has {came}; expected finite numbers")
    return array


def real_vector(values: Any, size: int | None, name: str) -> Array:
    """A finite real vector, of length `size` unless that is None."""
    array = real_array(values, name)
    if array.ndim != 1 or (size is not None and array.size != size):
        expected = "a vector" if size is None else f"({size},)"
        raise InputError(f"{name} has shape {array.shape}; expected {expected}")
    return array


def coordinates(values: Any, name: str) -> Array:
    """Finite real coordinates between which there are distances."""
    array = real_array(values, name)
    largest = float(np.abs(array).max(initial=0.0))
    if largest > MOST_COORDINATE:
        raise InputError(f"{name} has a coordinate of size {largest:.3g}; expected at most {MOST_COORDINATE:g}")
    return array


def number(value: Any, name: str, *, least: float = -np.inf, above: float = -np.inf) -> float:
    """A finite real number with ``value >= least`` and ``value > above``."""
    array = real_array(value, name)
    if array.ndim != 0:
        raise InputError(f"{name} has shape {array.shape}; expected one number")
    result = float(array)
    if result < least:
        raise InputError(f"{name} is {result}; expected at least {least:g}")
    if result <= above:
        raise InputError(f"{name} is {result}; expected more than {above:g}")
    return result


def count(value: Any, name: str, *, least: int = 1) -> int:
    """A whole number with ``value >= least``."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(f"{name} is {value!r}; expected a whole number of at least {least}")
    return int(value)


def kind_of(value: Any) -> str:
    """What came, for a message: ``"an ndarray"``, ``"the class Dominance"``."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    name = type(value).__name__
    # An en-darray.
    return f"{'an' if name[0] in 'AEIOUaeiou' or name == 'ndarray' else 'a'} {name}"


def required(found: T | None, who: str, what: str, thing: Any) -> T:
    """`found`, a capability that `thing` may offer; where it is None, who needs what and does not get it.

    Raises
    ------
    UncertifiedError
        It is None.
    """
    if found is None:
        raise UncertifiedError(f"{who} needs {what}; {kind_of(thing)} does not offer it")
    return found


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A copy of `array` that is read-only."""
    result = np.array(array, order="C")
    result.flags.writeable = False
    return result


def freeze_sparse(matrix: Any) -> Any:
    """`matrix` as CSR, in canonical form, with read-only arrays."""
    result = matrix.tocsr()
    if result.has_canonical_format:
        # Its arrays are copied below.
        result = copy.copy(result)
    else:
        result = result.copy()
        result.sum_duplicates()
    for part in ("data", "indices", "indptr"):
        setattr(result, part, frozen(getattr(result, part)))
    return result


def nearest(name: Any, names: Collection[Any]) -> str:
    """The end of a message: the name that was perhaps meant, or nothing."""
    near = difflib.get_close_matches(str(name), [str(known) for known in names], n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def known_keys(table: Mapping[str, Any], names: Collection[str], where: str) -> None:
    """Refuse a key that is not among the names; the message has the nearest one."""
    for name in table:
        if name not in names:
            key = f"{where}.{name}" if where else name
            raise InputError(f"unknown key {key!r}; expected one of {', '.join(names)}{nearest(name, names)}")


@contextmanager
def naming(key: str, names: Mapping[str, str] | None = None) -> Iterator[None]:
    """Put the key in front of the message of an `InputError`.

    Parameters
    ----------
    key
        Of a table or of a value in it. A message that begins with it already stays as it is.
    names
        Of the arguments, the keys of the table: a message that begins with an argument is about its key.
    """
    try:
        yield
    except OSError as error:
        raise InputError(f"{key}: {error.strerror or error}") from None
    except InputError as error:
        text = str(error)
        if text.startswith(f"{key}."):
            raise
        word = text.split(" ", 1)[0]
        if names and word in names:
            raise InputError(f"{key}.{names[word]}{text.removeprefix(word)}") from None
        raise InputError(f"{key}: {text}") from None
