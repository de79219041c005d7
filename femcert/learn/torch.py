"""PyTorch, imported when it is first needed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from ..checks import Array
from ..errors import MissingPackageError


def load_torch() -> Any:
    """The module ``torch``, or a `MissingPackageError` that says how to install it."""
    try:
        return import_module("torch")
    except ImportError as error:
        raise MissingPackageError(f"PyTorch cannot be imported ({error}); pip install 'femcert[learn]'") from None


def tensor(array: Any) -> Any:
    """A copy of an array as a double-precision tensor."""
    torch = load_torch()
    return torch.tensor(array, dtype=torch.float64)


def array_of(values: Any) -> Array:
    """A real tensor of any precision as a double-precision array of its own."""
    result: Array = values.detach().cpu().to(load_torch().float64).numpy().copy()
    return result


@contextmanager
def recording() -> Iterator[None]:
    """Gradients are recorded inside, whatever mode the caller is in."""
    torch = load_torch()
    with torch.inference_mode(False), torch.enable_grad():
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """PyTorch works on one thread inside; for small networks several of them mostly wait for each other."""
    torch = load_torch()
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
