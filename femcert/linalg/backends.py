"""Which solver takes a symmetric positive definite matrix: by its size and what is installed, unless one is named."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, MissingPackageError

# The package behind each backend, and what is imported of it.
PACKAGES = {
    "superlu": ("scipy", "scipy.sparse.linalg"),
    "pardiso": ("pypardiso", "pypardiso"),
    "cholmod": ("scikit-sparse", "sksparse.cholmod"),
    "multigrid": ("pyamg", "pyamg"),
}
# The environment variable that names a backend for the whole process.
VARIABLE = "FEMCERT_BACKEND"
# Number of unknowns from which on the optional backends factorize faster than SuperLU.
LEAST_UNKNOWNS = 50_000
# Bytes of the factors per entry of the matrix and per bit of its size, measured in 2D with some room.
FACTOR_BYTES = {"superlu": 16.0, "pardiso": 8.0, "cholmod": 10.0}
# The share of the free memory that factors may take.
SHARE_OF_MEMORY = 0.7
# The files with the memory limits of a container.
CONTAINER = Path("/sys/fs/cgroup")
# Relative energy error to which multigrid solves.
ENERGY_TOLERANCE = 1e-13


@dataclass(frozen=True)
class Choice:
    """A backend by name, and the relative energy error to which an iterative one solves."""

    name: str
    tolerance: float = ENERGY_TOLERANCE


# The blocks that are open, the innermost last. Each thread and task has its own.
_open: ContextVar[tuple[Choice, ...]] = ContextVar("femcert_backends", default=())


@cache
def is_installed(name: str) -> bool:
    """Whether a backend can be imported here."""
    try:
        import_module(PACKAGES[name][1])
    except (ImportError, OSError):
        # A package may be there without its shared library.
        return False
    return True


def installed_backends() -> dict[str, str]:
    """The backends that can be used here, with the version of the package behind each."""
    return {name: version(package) for name, (package, _) in PACKAGES.items() if is_installed(name)}


def package_of(name: str) -> dict[str, str]:
    """The package behind a backend and its version, ``{"pypardiso": "0.4.7"}``."""
    package = PACKAGES[name][0]
    return {package: version(package)}


@contextmanager
def use_backend(name: str, *, tolerance: float = ENERGY_TOLERANCE) -> Iterator[None]:
    """Within a ``with`` block, take this backend for all symmetric positive definite matrices, of any size.

    It applies to what is factorized within the block: a problem keeps the factors it has. It holds for the thread (or
    asyncio task) that opened it and for what femcert starts for that one: a learned solver with a time limit, the
    workers of a sweep. Threads of your own open blocks of their own. The environment variable ``FEMCERT_BACKEND`` names
    a backend for a whole process. SuperLU factorizes all other matrices.

    Parameters
    ----------
    name
        ``"superlu"`` (always there), ``"pardiso"`` (package pypardiso), ``"cholmod"`` (scikit-sparse) or
        ``"multigrid"`` (pyamg; no factors, so that it needs the least memory).
    tolerance
        For ``"multigrid"``: the relative error of each solve in the norm of the matrix. It enters what bounds allow for
        rounding.
    """
    if not 0.0 < tolerance < 0.1:
        raise InputError(f"tolerance is {tolerance}; expected a number between 0 and 0.1")
    choice = Choice(_checked(name, "name"), tolerance)
    _open.set((*_open.get(), choice))
    try:
        yield
    finally:
        # This one alone, whatever the order in which blocks are left.
        _open.set(tuple(other for other in _open.get() if other is not choice))


def named_backend() -> Choice | None:
    """What the innermost block of `use_backend` names here; None outside of all."""
    blocks = _open.get()
    return blocks[-1] if blocks else None


def _checked(name: Any, origin: str) -> str:
    if name not in PACKAGES:
        raise InputError(f"{origin} is {name!r}; expected one of {', '.join(map(repr, PACKAGES))}")
    if not is_installed(name):
        package = PACKAGES[name][0]
        raise MissingPackageError(f"{origin} is {name!r}, but {package} is not installed; try pip install {package}")
    return str(name)


def choose(matrix: Any) -> Choice:
    """The backend for a sparse symmetric positive definite matrix."""
    named = named_backend()
    if named is not None:
        return named
    if os.environ.get(VARIABLE):
        return Choice(_checked(os.environ[VARIABLE], f"the environment variable {VARIABLE}"))
    if matrix.shape[0] < LEAST_UNKNOWNS:
        return Choice("superlu")
    direct = next(name for name in ("pardiso", "cholmod", "superlu") if is_installed(name))
    fits = factor_bytes(matrix, direct) <= SHARE_OF_MEMORY * free_bytes()
    return Choice(direct if fits or not is_installed("multigrid") else "multigrid")


def factor_bytes(matrix: Any, name: str) -> float:
    """About how much memory the factors of a matrix from a mesh in the plane take."""
    return float(FACTOR_BYTES[name] * matrix.nnz * np.log2(matrix.shape[0] + 1.0))


def free_bytes() -> float:
    """Memory that can still be had, of the machine and of the container; infinite where the system does not say."""
    try:
        with open("/proc/meminfo") as lines:
            available = next(line for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return np.inf
    return min(1024.0 * float(available.split()[1]), _free_in_container(CONTAINER))


def _free_in_container(folder: Path) -> float:
    """What a control group leaves, version 2; infinite where none has a limit."""
    try:
        most, now = (float((folder / name).read_text()) for name in ("memory.max", "memory.current"))
    except (OSError, ValueError):
        # No file, or the word max.
        return np.inf
    return max(most - max(now - _cached(folder), 0.0), 0.0)


def _cached(folder: Path) -> float:
    """Of what a control group uses, the cache of files that the system gives up when memory is asked for."""
    try:
        numbers = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        return float(numbers["inactive_file"])
    except (OSError, ValueError, KeyError):
        return 0.0
