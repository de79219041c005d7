"""What is installed, and whether it works: each solver factorizes a small problem."""

from __future__ import annotations

import platform
import re
from importlib import metadata
from time import perf_counter

import numpy as np

from ..errors import FemcertError
from ..linalg.backends import installed_backends, use_backend

# Unknowns of the small problem: 4 to the power of this.
REFINEMENTS = 6
# Backends agree to the energy tolerance of multigrid times what conditioning makes of it.
AGREEMENT = 1e-8
EXTRA = re.compile(r"^([\w.-]+).*extra == ['\"]([\w-]+)['\"]")
# Extras for developers, which no function of femcert asks for.
DEVELOPERS = ("test", "docs", "meshes")


def installed() -> list[str]:
    """Lines with the versions of femcert, Python, what it needs and what its extras bring."""
    said = [f"femcert {metadata.version('femcert')}, Python {platform.python_version()}, {platform.platform()}"]
    needed: list[str] = []
    extras: dict[str, list[str]] = {}
    for requirement in metadata.requires("femcert") or []:
        found = EXTRA.match(requirement)
        if found is None:
            needed.append(re.split(r"[^\w.-]", requirement)[0])
        elif found[2] not in DEVELOPERS:
            extras.setdefault(found[2], []).append(found[1])
    said.append("needed: " + ", ".join(f"{name} {_version(name)}" for name in needed if _version(name)))
    for extra, names in sorted(extras.items()):
        missing = [name for name in names if not _version(name)]
        there = ", ".join(f"{name} {_version(name)}" for name in names if name not in missing)
        rest = f" (missing: {', '.join(missing)})" if there and missing else ""
        said.append(f"femcert[{extra}]: {there or 'not installed'}{rest}")
    return said


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def solved() -> tuple[list[str], list[str]]:
    """One line for each backend that solves a small case as the others do, and what failed."""
    from skfem import Basis, ElementTriP1, MeshTri

    from ..problem import AverageSensors, EigenmodeSpace, EllipticSource

    basis = Basis(MeshTri().refined(REFINEMENTS), ElementTriP1())
    sensors = AverageSensors(basis, [[0.25, 0.5], [0.5, 0.5], [0.75, 0.25]], radius=0.1)
    said: list[str] = []
    failed: list[str] = []
    first = None
    for name in installed_backends():
        began = perf_counter()
        try:
            with use_backend(name):
                problem = EllipticSource(basis, parameters=EigenmodeSpace(basis, 2), sensors=sensors)
                values = problem.forward_matrix()
        except (FemcertError, OSError, MemoryError) as error:
            failed.append(f"{name}: {type(error).__name__}: {error}")
            continue
        first = values if first is None else first
        off = float(np.linalg.norm(values - first) / np.linalg.norm(first))
        line = f"{name}: {basis.N:,} unknowns in {perf_counter() - began:.2f} s"
        if off <= AGREEMENT:
            said.append(line)
        else:
            failed.append(f"{line}, but {off:.1g} from superlu")
    return said, failed


def diagnosis() -> tuple[list[str], list[str]]:
    """Everything that is to be said, and what failed."""
    said, failed = solved()
    return [*installed(), *said], failed
