"""The result of a selection: a decision with its evidence, as a table and as JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from html import escape
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from ..bound import Bound
from ..certificate import Certificate, Comparison
from ..checks import Array, frozen, kind_of, number, real_array, real_vector
from ..errors import InputError
from ..evidence import RegionClaims
from ..evidence.tables import finite
from ..files import write_text
from ..problem.base import Problem
from ..problem.candidate import Candidate
from ..problem.data import Data
from .evidence_rows import HEAD, evidence_rows
from .reason import Confidence
from .verdict import STATUSES, Verdict, nearest_to_acceptance

SCHEMA = "femcert.selection/2"
# What `load` reads: the first one has a single learned candidate, and no regions.
READ = ("femcert.selection/1", SCHEMA)
DECISIONS = {
    "accepted": "learned candidate accepted",
    "rejected": "learned candidate rejected, baseline kept",
    "undecided": "undecided, baseline kept",
}


@dataclass(frozen=True)
class Case:
    """The problem and the candidates behind a selection: in memory only, for whoever draws or exports it.

    Attributes
    ----------
    problem, data
        As `no_harm` got them.
    baseline
        The baseline as it was certified.
    learned
        The learned candidate as it came and was certified, of several the one beside the baseline; None where it was
        not usable.
    candidates
        All that were usable, by name.
    """

    problem: Problem
    data: Data
    baseline: Candidate
    learned: Candidate | None = None
    candidates: Mapping[str, Candidate] = field(default_factory=dict)


@dataclass(frozen=True, repr=False)
class Selection:
    """The selected reconstruction, and why.

    Attributes
    ----------
    status
        ``"accepted"``: the learned candidate was taken. ``"rejected"``: it has weaker evidence than the baseline, or
        failed itself. ``"undecided"``: rule, baseline or set-up failed, or the data refute the baseline; `reason` says
        what to change, and the baseline is kept.
    reason
        One sentence.
    state, parameter
        The selected reconstruction (state None where the problem has none).
    baseline, learned
        Certificates; None where one could not be made. Of several learned candidates it is that of the accepted one,
        else of the one with the smallest radius.
    candidates
        Every learned candidate by name, one alone as ``"learned"``: a `Verdict` with status, reason and certificate.
    regions
        What the data say about regions, and what the candidates claim there; None where `no_harm` got no regions.
    rule, tolerance
        The rule with its weights and options, and eps_safe, as fixed before either candidate was evaluated.
    versions
        Of the packages that computed it.
    comparison
        What decided where radii did not: the rule `Dominance`. None otherwise.
    confidence
        With a rule that samples, the probabilities that the certificates fail. None otherwise.
    solver
        What solved the state equation: ``backend``, the ``package`` behind it with its ``version``, and the relative
        energy error ``tolerance`` at which an iteration ends, None for factors. None where nothing was solved, and in
        older files.
    case
        What it was made from, in memory only: not saved, not compared; None after loading from a file.
    """

    status: str
    reason: str
    state: Array | None
    parameter: Array
    baseline: Certificate | None
    learned: Certificate | None
    rule: dict[str, Any]
    tolerance: float
    versions: dict[str, str]
    comparison: Comparison | None = None
    confidence: Confidence | None = None
    solver: dict[str, Any] | None = None
    candidates: dict[str, Verdict] = field(default_factory=dict)
    regions: RegionClaims | None = None
    case: Case | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, chosen: Candidate, **rest: Any) -> Selection:
        """A selection of `chosen`, its fields in double precision."""
        state = None if chosen.state is None else frozen(np.asarray(chosen.state, dtype=float))
        return cls(state=state, parameter=frozen(np.asarray(chosen.parameter, dtype=float)), **rest)

    @property
    def accepted(self) -> bool:
        """Whether the learned candidate was taken."""
        return self.status == "accepted"

    @property
    def ratio(self) -> float | None:
        """The paper's Gamma, ``R_learned / R_baseline``; None where a radius is missing."""
        if self.baseline is None or self.learned is None:
            return None
        base = self.baseline.radius.value
        return self.learned.radius.value / base if base > 0.0 else None

    @property
    def decision(self) -> str:
        """What was decided, in words."""
        if len(self.candidates) < 2 or self.status == "undecided":
            return DECISIONS[self.status]
        one = f"learned candidate {self.selected!r} accepted"
        return one if self.accepted else "learned candidates rejected, baseline kept"

    @property
    def selected(self) -> str:
        """The name of what was selected: of a learned candidate, or ``"baseline"``."""
        chosen = nearest_to_acceptance(self.candidates) if self.accepted else "baseline"
        return chosen or "learned"

    def rows(self) -> list[tuple[str, str, str, str]]:
        """The evidence that decides, as rows (quantity, baseline, learned, how it was measured)."""
        return evidence_rows(self)

    def __repr__(self) -> str:
        return f"<Selection: {self.decision}: {self.reason}>"

    def __str__(self) -> str:
        lines = [f"{self.decision}: {self.reason}"]
        for head, rows, words in self._tables():
            widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
            for row in (head, *rows):
                lines.append("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
            lines += [words] if words else []
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        parts = [f"<p><b>{escape(self.decision)}:</b> {escape(self.reason)}</p>"]
        for head, rows, words in self._tables():
            names = "".join(f"<th>{escape(name)}</th>" for name in head)
            cells = [[escape(cell) for cell in row] for row in rows]
            body = "".join(f"<tr><th>{name}</th><td>{'</td><td>'.join(rest)}</td></tr>" for name, *rest in cells)
            parts.append(f"<table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>")
            parts += [f"<p>{escape(words)}</p>"] if words else []
        return "".join(parts)

    def candidate_rows(self) -> list[tuple[str, str, str, str]]:
        """Several learned candidates as rows (name, status, radius, reason); empty where there is one."""
        if len(self.candidates) < 2:
            return []
        return [
            (name, each.status, "-" if each.certificate is None else _said(each.certificate.radius), each.reason)
            for name, each in self.candidates.items()
        ]

    def _tables(self) -> list[tuple[tuple[str, ...], list[tuple[str, ...]], str]]:
        """Heads, rows, and a line below: several candidates, what decides, regions."""
        several = [row[:3] for row in self.candidate_rows()]
        claims = self.regions
        found: list[tuple[tuple[str, ...], list[Any], str]] = [
            (("candidate", "status", "radius"), several, ""),
            (HEAD, self.rows(), ""),
        ]
        found += [] if claims is None else [(claims.head, claims.rows(), claims.words)]
        return [table for table in found if table[1]]

    def to_dict(self) -> dict[str, Any]:
        """Plain mapping: schema, versions, rule and weights, every residual with its side, radii, decision, fields."""
        optional = {"comparison": self.comparison, "confidence": self.confidence, "regions": self.regions}
        # One candidate alone, and nothing else that decides: it is known from the rest.
        told = len(self.candidates) == 1 and self.regions is None
        candidates = {} if told else {name: verdict.to_dict() for name, verdict in self.candidates.items()}
        return {
            "schema": SCHEMA,
            "versions": dict(self.versions),
            "rule": self.rule,
            "tolerance": self.tolerance,
            "seeds": {"rule": self.rule.get("seed")},
            "accepted": self.accepted,
            "status": self.status,
            "reason": self.reason,
            "ratio": finite(self.ratio),
            "baseline": self.baseline and self.baseline.to_dict(),
            "learned": self.learned and self.learned.to_dict(),
            "state": None if self.state is None else self.state.tolist(),
            "parameter": self.parameter.tolist(),
            **{name: part.to_dict() for name, part in optional.items() if part is not None},
            **({} if self.solver is None else {"solver": dict(self.solver)}),
            **({"candidates": candidates} if candidates else {}),
        }

    def save(self, path: str | Path) -> None:
        """Write JSON with a digest of its content; the file appears whole or not at all.

        Parameters
        ----------
        path
            Of the file; its directory is made.
        """
        path = _file_name(path)
        record = self.to_dict()
        text = json.dumps({**record, "digest": _digest(record)}, allow_nan=False, indent=1)
        write_text(path, text)

    @classmethod
    def load(cls, path: str | Path) -> Selection:
        """Read what `save` wrote, in this version or an earlier one; what it was made from (`case`) is not in the file.

        A file records a decision and is no proof of it. To verify the decision, run `no_harm` again.

        Parameters
        ----------
        path
            Of the file.

        Raises
        ------
        InputError
            The file is not a femcert selection of a known schema, is damaged (its digest is that of another content),
            or holds something from which no selection can be built.
        """
        path = _file_name(path)
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(f"{path} cannot be read as JSON: {error}") from None
        if not isinstance(record, dict) or record.get("schema") not in READ:
            raise InputError(f"{path} is not a selection of the schema {SCHEMA}, or of an earlier one")
        if "digest" in record and record.pop("digest") != _digest(record):
            raise InputError(f"{path} is damaged: its digest is that of another content")
        try:
            return cls._from_record(record)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            kind = "" if isinstance(error, InputError) else f"{type(error).__name__} "
            raise InputError(f"{path} is damaged: {kind}{error}") from None

    @classmethod
    def _from_record(cls, record: dict[str, Any]) -> Selection:
        state, base, other = record["state"], record["baseline"], record["learned"]
        compared, chance, solver = (record.get(name) for name in ("comparison", "confidence", "solver"))
        # Files that were written before there was a status have no certificate of the baseline where none was decided.
        former = "accepted" if record["accepted"] else "undecided" if base is None else "rejected"
        status = record.get("status", former)
        if status not in STATUSES:
            raise InputError(f"status is {status!r}; expected one of {', '.join(STATUSES)}")
        learned = None if other is None else Certificate.from_dict(other)
        comparison = None if compared is None else Comparison.from_dict(compared)
        alone = {"learned": Verdict(status, str(record["reason"]), learned, comparison)}
        several = {str(name): Verdict.from_dict(each) for name, each in record.get("candidates", {}).items()}
        claims = record.get("regions")
        return cls(
            status=status,
            reason=str(record["reason"]),
            state=None if state is None else frozen(real_array(state, "state")),
            parameter=frozen(real_vector(record["parameter"], None, "parameter")),
            rule=dict(record["rule"]),
            tolerance=number(record["tolerance"], "tolerance", least=0.0),
            versions=dict(record["versions"]),
            baseline=None if base is None else Certificate.from_dict(base),
            learned=learned,
            comparison=comparison,
            confidence=None if chance is None else Confidence.from_dict(chance),
            solver=None if solver is None else _solver(solver),
            candidates=several or alone,
            regions=None if claims is None else RegionClaims.from_dict(claims),
        )


def _solver(record: dict[str, Any]) -> dict[str, Any]:
    """What solved, from a file."""
    ends = record["tolerance"]
    texts = {name: str(record[name]) for name in ("backend", "package", "version")}
    return {**texts, "tolerance": None if ends is None else number(ends, "tolerance", above=0.0)}


def _said(radius: Bound) -> str:
    return f"{radius.value:.4g} ({radius.side})"


def _digest(record: dict[str, Any]) -> str:
    """SHA-256 of a record as JSON with sorted keys: of its values, not of the spaces between them."""
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def _file_name(path: Any) -> Path:
    if not isinstance(path, (str, Path)):
        raise InputError(f"path is {kind_of(path)}; expected a file name")
    return Path(path)


def package_versions() -> dict[str, str]:
    """Versions of femcert and of the packages whose numerics it relies on."""
    return dict(_installed_versions())


@cache
def _installed_versions() -> dict[str, str]:
    # Reading package metadata takes longer than a small selection; one read serves all of them.
    found = {}
    for name in ("femcert", "scikit-fem", "numpy", "scipy"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found
