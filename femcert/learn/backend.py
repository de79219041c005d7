"""PyTorch, imported when it is first needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..errors import InputError
from ..problem.checks import Array


def load_torch() -> Any:
    """The module ``torch``, or an `InputError` that says how to install it."""
    try:
        return import_module("torch")
    except ImportError as error:
        raise InputError(f"PyTorch cannot be imported ({error}); pip install 'femcert[learn]'") from None


def tensor(array: Any) -> Any:
    """A copy of an array as a double-precision tensor."""
    torch = load_torch()
    return torch.tensor(array, dtype=torch.float64)


def array_of(values: Any) -> Array:
    """A tensor as an array of its own."""
    result: Array = values.detach().cpu().numpy().copy()
    return result
