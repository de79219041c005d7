"""The result of a refinement study: a row per level, fitted rates, a table and a CSV file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from skfem import Mesh

from ..checks import Array
from ..errors import InputError
from ..files import write_csv
from ..selection import Selection
from ..shown import MOST_LINES, Shown

COLUMNS = (
    "level", "elements", "dofs", "h", "lower", "upper", "truth", "effectivity", "C_stab", "radius_baseline",
    "relative_baseline", "radius_learned", "relative_learned", "decision", "seconds", "estimates",
)  # fmt: skip
# By the status of a selection.
DECISIONS = {"accepted": "accept", "rejected": "reject", "undecided": "undecided"}
RATED = ("lower", "upper", "truth")
_FORMATS = {
    "level": "{}", "elements": "{:,}", "dofs": "{:,}", "h": "{:#.3g}", "effectivity": "{:.3f}", "seconds": "{:.2f}",
    "relative_baseline": "{:.3g}", "relative_learned": "{:.3g}",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Level:
    """One level of a study; None where a number was not asked for or is not known.

    Attributes
    ----------
    level
        Its number, from 1.
    elements, dofs, h
        Number of elements, of dofs of the state, and the largest diameter of an element.
    lower, upper
        Bounds of the dual norm of the residual.
    truth
        The exact dual norm, where it is known.
    C_stab
        Stability constant.
    radius_baseline, radius_learned
        Radii of the two candidates.
    relative_baseline, relative_learned
        The radii divided by the norms of the answers; above 1 the data do not determine them.
    decision
        Whether the learned one is taken: ``"accept"``, ``"reject"``, or ``"undecided"`` where the rule or the baseline
        failed on this mesh.
    seconds
        What the level took.
    estimates
        Names of the numbers above that are estimates only, not proven bounds.
    """

    level: int
    elements: int
    dofs: int
    h: float
    lower: float
    upper: float
    truth: float | None = None
    C_stab: float | None = None
    radius_baseline: float | None = None
    relative_baseline: float | None = None
    radius_learned: float | None = None
    relative_learned: float | None = None
    decision: str | None = None
    seconds: float
    estimates: tuple[str, ...] = ()

    @property
    def effectivity(self) -> float | None:
        """``upper / truth``: 1 is sharp; None without a truth, or where it is zero."""
        return self.upper / self.truth if self.truth else None

    def to_dict(self) -> dict[str, Any]:
        """Plain mapping with the columns of a table, in their order."""
        return {name: getattr(self, name) for name in COLUMNS}


@dataclass(frozen=True, repr=False)
class Study(Shown):
    """What a refinement study found.

    Attributes
    ----------
    rows
        A `Level` each, from coarse to fine.
    stopped
        Why it ended: ``"tolerance"``, ``"dofs"`` or ``"levels"``.
    adaptive, theta
        Whether only marked elements were refined, and the fraction of Dörfler's marking.
    method, norm
        How the bounds were computed, and in which norm the residual acts.
    meshes, indicators, selections
        Per level: the mesh, the share of the upper bound of each element, the selection (None without one).
    """

    rows: tuple[Level, ...]
    stopped: str
    adaptive: bool
    theta: float
    method: str
    norm: str
    meshes: tuple[Mesh, ...] = field(repr=False, compare=False)
    indicators: tuple[Array, ...] = field(repr=False, compare=False)
    selections: tuple[Selection | None, ...] = field(repr=False, compare=False)

    def summary(self) -> dict[str, str]:
        """Levels, dofs, rates, and why it ended; `table` has a line for each level."""
        rates = ", ".join(f"{name} {rate:.3f}" for name, rate in self.rates.items())
        dofs = [row.dofs for row in self.rows]
        return {
            "levels": f"{len(dofs)} levels, {dofs[0]} to {dofs[-1]} dofs",
            "norm": f"{self.norm}, {self.method}",
            **({"rates against dofs": rates} if rates else {}),
            "stopped by": self.stopped,
        }

    def __str__(self) -> str:
        """The table, without the levels in the middle where it has more than eight lines."""
        lines = self.table().splitlines()
        return "\n".join(lines if len(lines) <= MOST_LINES else [*lines[:2], "...", *lines[2 - MOST_LINES + 1 :]])

    def column(self, name: str) -> list[Any]:
        """One quantity on all levels."""
        if name not in COLUMNS:
            raise InputError(f"column is {name!r}; expected one of {', '.join(COLUMNS)}")
        return [getattr(row, name) for row in self.rows]

    @property
    def rates(self) -> dict[str, float]:
        """Slopes s of ``value ~ dofs^s`` for ``lower``, ``upper`` and ``truth``, where at least two levels have them.

        Least squares of the logarithms over the finer half of the levels, but at least three of them (or all).
        """
        slopes = {name: fitted_slope(*self.fitted_points(name)) for name in RATED}
        return {name: slope for name, slope in slopes.items() if slope is not None}

    def fitted_points(self, name: str) -> tuple[list[int], list[float]]:
        """Dofs and values of the levels that a rate is fitted to; zeros have no logarithm and are left out."""
        finer = self.rows[-max(3, (len(self.rows) + 1) // 2) :]
        points = [(row.dofs, getattr(row, name)) for row in finer if getattr(row, name)]
        return [dofs for dofs, _ in points], [value for _, value in points]

    def shown_columns(self) -> list[str]:
        """Columns with something in them."""
        return [name for name in COLUMNS[:-1] if any(value is not None for value in self.column(name))]

    def cells(self) -> list[list[str]]:
        """The shown columns of each row as texts; what is an estimate only begins with ``~``."""
        return [[_cell(row, name) for name in self.shown_columns()] for row in self.rows]

    def table(self) -> str:
        """The study as text: a line per level, the rates, and why it ended."""
        lines = [self.shown_columns(), *self.cells()]
        widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
        text = ["  ".join(c.rjust(width) for c, width in zip(line, widths, strict=True)) for line in lines]
        if self.rates:
            text.append("rates against dofs: " + ", ".join(f"{name} {rate:.3f}" for name, rate in self.rates.items()))
        return "\n".join([*text, *self.undecided(), f"stopped by: {self.stopped}"])

    def undecided(self) -> list[str]:
        """For each level where nothing was decided: why."""
        pairs = zip(self.rows, self.selections, strict=True)
        return [f"level {row.level} is undecided: {s.reason}" for row, s in pairs if s and s.status == "undecided"]

    def save(self, path: str | Path) -> None:
        """Write a CSV file with all digits, an empty cell for None; it appears whole or not at all."""
        rows = [{**row.to_dict(), "estimates": " ".join(row.estimates)} for row in self.rows]
        write_csv(path, COLUMNS, rows)


def fitted_slope(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Slope of the least-squares line through the logarithms of positive points; None for fewer than two places."""
    if len(set(x)) < 2:
        return None
    u, v = np.log(np.asarray(x, dtype=float)), np.log(np.asarray(y, dtype=float))
    u = u - u.mean()
    return float(u @ (v - v.mean()) / (u @ u))


def _cell(row: Level, name: str) -> str:
    value = getattr(row, name)
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    text = _FORMATS.get(name, "{:#.4g}").format(value).rstrip(".")
    return f"~{text}" if name.replace("relative_", "radius_") in row.estimates else text
