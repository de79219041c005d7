"""What was lost when fields were interpolated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..errors import InputError
from .checks import count, number


@dataclass(frozen=True)
class Interpolation:
    """How far the dofs of a candidate are from the values that it was made of.

    Attributes
    ----------
    source
        What the values were given on, in words.
    distance
        The largest distance from a dof to the nearest place with a given value.
    outside
        Number of dofs outside of the given mesh, or of the convex hull of the given points. They got the value at the
        nearest point inside.
    beyond
        How far outside the farthest of them is.
    unread
        Number of given values at places outside of the problem's mesh; these do not count below.
    differences
        By field: the largest ``|interpolant - given value|`` over the places with a given value.
    relative
        The same, over the largest ``|given value|``.
    """

    source: str
    distance: float
    outside: int
    beyond: float
    unread: int
    differences: dict[str, float]
    relative: dict[str, float]

    def __str__(self) -> str:
        text = f"interpolated from {self.source}, at most {self.distance:.3g} away"
        if self.outside:
            text += f"; {self.outside} dofs outside, by at most {self.beyond:.3g}"
        if self.unread:
            text += f"; {self.unread} given values outside of the problem's mesh"
        parts = ", ".join(f"{name} to {100 * share:.2g} %" for name, share in self.relative.items())
        return text + (f"; read back: {parts}" if parts else "")

    def to_dict(self) -> dict[str, Any]:
        """Plain mapping, as JSON takes it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, record: Any) -> Interpolation:
        """What `to_dict` gave."""
        names = list(cls.__dataclass_fields__)
        if not isinstance(record, Mapping) or sorted(record) != sorted(names):
            raise InputError(f"interpolation is {record!r}; expected a mapping with {', '.join(names)}")
        return cls(
            source=str(record["source"]),
            distance=number(record["distance"], "distance", least=0.0),
            outside=count(record["outside"], "outside", least=0),
            beyond=number(record["beyond"], "beyond", least=0.0),
            unread=count(record["unread"], "unread", least=0),
            differences=_table(record["differences"], "differences"),
            relative=_table(record["relative"], "relative"),
        )


def _table(record: Any, name: str) -> dict[str, float]:
    if not isinstance(record, Mapping):
        raise InputError(f"{name} is {record!r}; expected a number for each field")
    return {str(field): number(value, f"{name} of {field}", least=0.0) for field, value in record.items()}


def merged(parts: list[Interpolation | None]) -> Interpolation | None:
    """One record for fields that came from the same place; None if nothing was interpolated."""
    found = [part for part in parts if part is not None]
    if not found:
        return None
    return Interpolation(
        source=" and ".join(dict.fromkeys(part.source for part in found)),
        distance=max(part.distance for part in found),
        outside=max(part.outside for part in found),
        beyond=max(part.beyond for part in found),
        unread=max(part.unread for part in found),
        differences={name: value for part in found for name, value in part.differences.items()},
        relative={name: value for part in found for name, value in part.relative.items()},
    )
