"""A certificate: a candidate's residuals, the stability constant, and the radius they give."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..bound import Bound
from ..checks import number
from ..errors import UncertifiedError
from ..residual import Residuals
from ..shown import Shown
from ..stability import Stability

# What is said of an answer whose radius is larger than its norm.
UNDETERMINED = "the data do not determine this"


@dataclass(frozen=True, repr=False)
class Certificate(Shown):
    """What is known about one candidate.

    Attributes
    ----------
    radius
        Its side is ``"upper"`` only where the discrete bound was verified for this very candidate.
    residuals
        Components ``data``, ``pde``, ``bc``, ``optimality``, ``admissibility``.
    total
        The paper's eta: the weighted sum of the residuals.
    stability
        The stability constant used; None where a rule needs none.
    scope
        What the radius is about: ``"continuous"`` (a truth of the equation itself), ``"discrete"`` (of the discretized
        problem) or ``"estimate"`` (no claim).
    noise_level
        The paper's delta.
    name
        Of the candidate.
    size, norm
        ``‖q‖_Q`` of the candidate's parameter, and the name of this norm, in which the radius is measured as well; None
        in files that were written before there were any.
    """

    radius: Bound
    residuals: Residuals
    total: float
    stability: Stability | None
    scope: str
    noise_level: float
    name: str
    size: float | None = None
    norm: str | None = None
    _distance: Callable[[Any], float] | None = field(default=None, repr=False, compare=False)

    def summary(self) -> dict[str, str]:
        """The radius with its scope and scale, what it rests on."""
        constant = {} if self.stability is None else {"stability": str(self.stability.constant)}
        return {
            "candidate": f"{self.name}, radius {self.radius}",
            "scope": self.scope,
            "relative": self.scale_of_answer or "the size of the answer is not known",
            "misfit": str(self.residuals.data),
            "noise level": f"{self.noise_level:.4g}",
            **constant,
        }

    @property
    def relative(self) -> float | None:
        """``radius / ‖q‖_Q``: the radius as a share of the answer; None where its size is not known."""
        if self.size is None:
            return None
        if self.size == 0.0:
            return 0.0 if self.radius.value == 0.0 else float("inf")
        return self.radius.value / self.size

    @property
    def scale(self) -> str:
        """The relative radius in percent, and above 100 % that the data do not determine the answer.

        Nothing where the size of the answer is not known.
        """
        return self._scaled("")

    @property
    def scale_of_answer(self) -> str:
        """The same with the norm by name."""
        return self._scaled(f" of the {self.norm} of the answer")

    def _scaled(self, whole: str) -> str:
        share = self.relative
        if share is None:
            return ""
        return f"{_percent(share)}{whole}" + (f": {UNDETERMINED}" if share > 1.0 else "")

    def __str__(self) -> str:
        radius = self.radius
        sided = radius.side if self.scope == radius.side else f"{radius.side}, {self.scope}"
        words = f"{self.name}: radius {radius.value:.4g} ({sided}; {radius.source})"
        return words if self.size is None else f"{words}, {self.scale_of_answer}"

    def certified_at(self, level: float) -> bool:
        """Whether ``eta <= level``, the paper's residual-certified test; also its stopping rule tau_cert."""
        return bool(self.total <= number(level, "level", least=0.0))

    def error(self, truth: Any) -> float:
        """``‖q - truth‖_Q``: hindsight, never used by a selection."""
        if self._distance is None:
            raise UncertifiedError("a certificate loaded from a file does not know its candidate; certify again")
        return self._distance(truth)

    def contains(self, parameter: Any) -> bool:
        """Whether a parameter (dof vector) lies within the radius: coverage, if it is the truth."""
        return bool(self.error(parameter) <= self.radius.value)

    def sharpness(self, truth: Any) -> float:
        """``radius / ‖q - truth‖_Q``: 1 is tight, large is conservative, below 1 is not covered."""
        error = self.error(truth)
        return self.radius.value / error if error > 0.0 else float("inf")

    def to_dict(self) -> dict[str, Any]:
        """Plain mapping for JSON."""
        return {
            "name": self.name,
            "radius": self.radius.to_dict(),
            "scope": self.scope,
            "total": self.total if math.isfinite(self.total) else None,
            "noise_level": self.noise_level,
            "residuals": {name: bound.to_dict() for name, bound in self.residuals.items()},
            "optimality_reported": self.residuals.reported,
            "stability": self.stability and self.stability.to_dict(),
            **({} if self.size is None else {"size": self.size, "norm": self.norm}),
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Certificate:
        """The inverse of `to_dict`."""
        constant, size, total = record["stability"], record.get("size"), record["total"]
        parts: dict[str, Any] = {name: Bound.from_dict(bound) for name, bound in record["residuals"].items()}
        return cls(
            radius=Bound.from_dict(record["radius"]),
            residuals=Residuals(**parts, reported=bool(record["optimality_reported"])),
            total=math.inf if total is None else number(total, "total", least=0.0),
            stability=None if constant is None else Stability.from_dict(constant),
            scope=str(record["scope"]),
            noise_level=number(record["noise_level"], "noise_level", least=0.0),
            name=str(record["name"]),
            size=None if size is None else number(size, "size", least=0.0),
            norm=None if size is None else str(record["norm"]),
        )


def _percent(share: float) -> str:
    """A share as people read it: three digits, none behind the point above 100."""
    if math.isinf(share):
        return "more than any share"
    value = 100.0 * share
    return f"{value:,.0f} %" if 100.0 <= value < 1e6 else f"{value:.3g} %"
