"""What was decided about one learned candidate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..certificate import Certificate, Comparison
from ..errors import InputError
from ..evidence import RegionClaims
from ..shown import Shown

STATUSES = ("accepted", "rejected", "undecided")


@dataclass(frozen=True, repr=False)
class Verdict(Shown):
    """One learned candidate, held against the baseline.

    Attributes
    ----------
    status
        As that of a selection. Of several accepted candidates only the one with the smallest radius is taken.
    reason
        One sentence.
    certificate
        None where it could not be made.
    comparison
        What decided where radii did not: the rule `Dominance`. None otherwise.
    """

    status: str
    reason: str
    certificate: Certificate | None = None
    comparison: Comparison | None = None

    @property
    def radius(self) -> float:
        """Of the certificate; infinite without one."""
        return np.inf if self.certificate is None else self.certificate.radius.value

    def summary(self) -> dict[str, str]:
        """Status, radius and reason."""
        return {"status": f"{self.status}, radius {self.radius:.4g}", "reason": self.reason}

    def to_dict(self) -> dict[str, Any]:
        """Plain mapping for JSON."""
        return {
            "status": self.status,
            "reason": self.reason,
            "certificate": self.certificate and self.certificate.to_dict(),
            "comparison": self.comparison and self.comparison.to_dict(),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Verdict:
        """The inverse of `to_dict`."""
        status, certificate, comparison = record["status"], record["certificate"], record["comparison"]
        if status not in STATUSES:
            raise InputError(f"status is {status!r}; expected one of {', '.join(STATUSES)}")
        return cls(
            status=status,
            reason=str(record["reason"]),
            certificate=None if certificate is None else Certificate.from_dict(certificate),
            comparison=None if comparison is None else Comparison.from_dict(comparison),
        )


def nearest_to_acceptance(verdicts: Mapping[str, Verdict]) -> str | None:
    """The candidate that is taken, or shown beside the baseline: accepted before others, then the smallest radius.

    Ties go by order; None where no candidate has a certificate.
    """
    known = {name: verdict for name, verdict in verdicts.items() if verdict.certificate is not None}
    return min(known, key=lambda name: (known[name].status != "accepted", known[name].radius), default=None)


def held_against(claims: RegionClaims | None, name: str, verdict: Verdict) -> Verdict:
    """The verdict, or a rejection where the data refute what the candidate claims of a region."""
    if claims is None or name not in claims.values:
        return verdict
    refuted = claims.of(name, "the learned candidate")
    if not refuted:
        return verdict
    also = "" if verdict.status == "accepted" else f"; {verdict.reason}"
    return replace(verdict, status="rejected", reason=f"{refuted.reason}{also}")


def overall(verdicts: Mapping[str, Verdict], shown: str | None) -> tuple[str, str]:
    """Status and reason of a selection, from those of its candidates; `shown` is `nearest_to_acceptance`."""
    if len(verdicts) == 1:
        (only,) = verdicts.values()
        return only.status, only.reason
    accepted = [name for name, verdict in verdicts.items() if verdict.status == "accepted"]
    if shown in accepted:
        others = [f"{name!r} with the radius {verdicts[name].radius:.4g}" for name in accepted if name != shown]
        also = f"; accepted too, with no smaller radius: {', '.join(others)}" if others else ""
        return "accepted", f"{shown!r}: {verdicts[shown].reason}{also}"
    # What could not be judged might have been accepted, so the selection says undecided.
    undecided = any(verdict.status == "undecided" for verdict in verdicts.values())
    reason = "; ".join(f"{name!r}: {verdict.reason}" for name, verdict in verdicts.items())
    return "undecided" if undecided else "rejected", reason
