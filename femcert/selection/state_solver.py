"""What solved the state equation, for the record of a selection."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ..checks import number
from ..linalg import package_of
from ..problem.base import Problem


@dataclass(frozen=True)
class StateSolver:
    """A backend (`femcert.linalg.use_backend`) as it was used.

    Attributes
    ----------
    backend
        Its name.
    package, version
        What computes behind it.
    tolerance
        The relative energy error at which an iteration ends; None where there are factors.
    """

    backend: str
    package: str
    version: str
    tolerance: float | None

    @classmethod
    def of(cls, problem: Problem) -> StateSolver | None:
        """That of a problem; None where nothing was solved."""
        if problem.backend is None:
            return None
        ((package, version),) = package_of(problem.backend).items()
        return cls(problem.backend, package, version, problem.solve_tolerance or None)

    def __str__(self) -> str:
        ends = "" if self.tolerance is None else f", to the relative energy error {self.tolerance:g}"
        return f"{self.backend} ({self.package} {self.version}){ends}"

    def to_dict(self) -> dict[str, Any]:
        """Plain mapping for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> StateSolver:
        """The inverse of `to_dict`."""
        ends = record["tolerance"]
        ends = None if ends is None else number(ends, "tolerance", above=0.0)
        return cls(str(record["backend"]), str(record["package"]), str(record["version"]), ends)
