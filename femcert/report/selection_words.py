"""What a page says about a selection: the decision, what it claims, both radii part by part, and where it is from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..certificate import Certificate
from ..certificate.parts import PARTS, radius_parts
from ..problem import Problem
from ..selection import Selection
from .html import digits
from .scene import Scene

# How a rule measures, in its own record, and in words.
_OPTIONS = {
    "covered": "distance from the class counts",
    "pde_norm": "physics measured by",
    "norm": "test functions in the norm",
    "guarantee": "speaks of the problem",
    "stability": "stability constant",
    "points": "random points",
    "harm": "harm rate, at most, for truths like the samples",
    "confidence": "confidence",
    "zeta": "failure probability ζ of each certificate",
    "thinning": "data split in two, with g",
    "bound": "confidence bound",
    "sampling": "sampling",
    "certified": "computed weights",
    "state": "state",
    "decides": "residuals that decide",
}
_UNDECIDED = "This says nothing about the learned candidate: change what stands above, and run it again. "
_REFUTED = "The data refute the baseline, which is here only because there is nothing else: do not use it. "
_EVIDENCE = " A smaller radius is not a smaller error: it is stronger evidence."
_AGAINST_A_BOUND = " It was compared with the proven radius of the baseline: this is no evidence that it is as good."
_CLAIMS = {
    "discrete": "every parameter of the admissible class that explains the data within the noise, on this mesh, "
    "lies within it",
    "continuous": "every parameter of the admissible class that explains the data within the noise, for the equation "
    "itself, lies within it",
}
# Part -> (what to call it, what it is).
PART_WORDS = {
    "data": ("Data", "what the candidate does not explain of the data"),
    "pde": ("Physics", "how far it is from solving the equation"),
    "bc": ("Boundary", "how far it is from the boundary values"),
    "noise": ("Noise", "what the data themselves are off by, at most"),
    "optimality": ("Optimization", "how far its solver stopped from a minimum"),
    "trials": ("Trials", "how far the solver was from the truths of the samples, a quantile"),
    "consistent": ("Consistent set", "how far a parameter that explains the data can be"),
    "admissibility": ("Outside the class", "the part of the candidate that the admissible class does not have"),
    "other": ("Remainder", "what the proof adds"),
    "whole": ("Radius", "as the rule gives it"),
}
# Narrower than this share of the longest bar, a part is not seen.
LEAST_WIDTH = 2e-3
# Smaller than this share, it is rounding.
ROUNDING = 1e-9


def decision_words(selection: Selection) -> tuple[str, str]:
    """The decision, and why."""
    if selection.status == "undecided":
        return "Undecided, and the baseline is kept", selection.reason
    name = "" if selection.learned is None else selection.learned.name
    who = "The learned candidate" + (f" “{name}”" if name not in ("", "learned", "baseline") else "")
    if len(selection.candidates) > 1 and not selection.accepted:
        return "No learned candidate is accepted, the baseline is kept", selection.reason
    verdict = "is accepted" if selection.accepted else "is rejected and the baseline kept"
    return f"{who} {verdict}", selection.reason


def claim_words(selection: Selection) -> str:
    """What the radius of the selected reconstruction claims."""
    chosen = selection.learned if selection.accepted else selection.baseline
    about = "" if selection.status != "undecided" else _REFUTED if _is_refuted(selection) else _UNDECIDED
    if chosen is None:
        return f"{about}Nothing is claimed about the baseline: it has no certificate."
    return about + _radius_words(selection, chosen) + ("" if about else _comparison_words(selection, chosen))


def _is_refuted(selection: Selection) -> bool:
    """Whether the data refute the baseline."""
    return selection.regions is not None and bool(selection.regions.of("baseline"))


def _radius_words(selection: Selection, chosen: Certificate) -> str:
    inside = "" if chosen.norm is None else f" in the {chosen.norm}"
    whose = f"The {'learned' if selection.accepted else 'baseline'} radius {digits(chosen.radius.value, 4)}{inside}"
    scale = "" if chosen.size is None else f" The radius is {chosen.scale_of_answer}."
    if not _is_bound(chosen):
        return f"{whose} is an estimate: nothing is proven about the distance to the truth.{scale}"
    sure = ""
    if selection.confidence is not None:
        kept = selection.confidence.zeta_base if not selection.accepted else selection.confidence.zeta
        sure = f", with probability {percent(1.0 - kept)} at least"
    elif chosen.radius.probability < 1.0:
        sure = f", with probability {percent(chosen.radius.probability)} at least"
    return f"{whose} is proven{sure}: {_CLAIMS[chosen.scope]}.{scale}"


def _comparison_words(selection: Selection, chosen: Certificate) -> str:
    """What comparing the two radii does not say."""
    base = selection.baseline
    against = selection.accepted and base is not None and _is_bound(base) and not _is_bound(chosen)
    return _AGAINST_A_BOUND if against else _EVIDENCE


def _is_bound(certificate: Certificate) -> bool:
    return certificate.radius.side == "upper" and certificate.scope in _CLAIMS


def percent(share: float) -> str:
    """A probability as people say it, never rounded up."""
    return f"{np.floor(1e4 * max(share, 0.0) + 1e-6) / 100.0:g} %"


def tiles(selection: Selection) -> list[tuple[str, str]]:
    """The few numbers to see first: (value, what it is)."""
    named = (("baseline", selection.baseline), ("learned candidate", selection.learned))
    found = [
        (digits(c.radius.value, 4) if c is not None else "none", f"radius of the {who}{_sided(c)}")
        for who, c in named
        # Where nothing is decided, there is nothing to say of what is missing.
        if c is not None or selection.status != "undecided"
    ]
    if selection.comparison is not None:
        found.append((digits(selection.comparison.margin, 4), selection.comparison.meaning))
        if (chance := selection.comparison.chance) is not None:
            found.append((percent(chance[0]), chance[1]))
    elif selection.ratio is not None:
        found.append((digits(selection.ratio, 3), "learned / baseline"))
    if selection.tolerance > 0.0:
        found.append((f"{selection.tolerance:g}", "tolerance"))
    if selection.confidence is not None:
        found.append((percent(1.0 - selection.confidence.zeta), "probability, at least, that all radii hold"))
    if selection.regions is not None:
        claims, name = selection.regions, selection.selected
        # The claims of one alone stand under "learned", whatever its own name is.
        refuted = len(claims.of(name).refuted) if name in claims.values else 0
        found.append((f"{refuted} of {len(claims.table)}", "regions in which the data refute what is returned"))
    return found


def _sided(certificate: Certificate | None) -> str:
    if certificate is None:
        return ""
    side = f" ({certificate.radius.side})"
    return side if certificate.size is None else f"{side}, {certificate.scale_of_answer}"


@dataclass(frozen=True)
class Bar:
    """One radius: whose, its value and what that is, and (part, value, width in percent) of what is wide enough."""

    name: str
    radius: float
    words: str
    proven: bool
    parts: list[tuple[str, float, float]]


@dataclass(frozen=True)
class Bars:
    """Both radii on one scale.

    Attributes
    ----------
    bars
        The baseline's first.
    limit
        Where the learned bar must end to be accepted, in percent; None where radii do not decide.
    rows
        Each part with a value beyond rounding anywhere: (key, name, meaning, baseline, learned), None without a
        certificate.
    """

    bars: list[Bar]
    limit: float | None
    rows: list[tuple[str, str, str, float | None, float | None]]

    @property
    def seen(self) -> set[str]:
        """The parts that are wide enough to see in a bar."""
        return {part for bar in self.bars for part, _, _ in bar.parts}


def radius_bars(selection: Selection) -> Bars | None:
    """The bars of a selection; None without a finite radius."""
    named = (("baseline", selection.baseline), ("learned", selection.learned))
    certificates = {name: c for name, c in named if c is not None and np.isfinite(c.radius.value)}
    if not certificates:
        return None
    parts = {name: radius_parts(c, selection.rule) for name, c in certificates.items()}
    decides = "baseline" in certificates and selection.comparison is None
    end = certificates["baseline"].radius.value + selection.tolerance if decides else 0.0
    longest = max([end, *(c.radius.value for c in certificates.values())]) or 1.0
    bars = []
    for name, certificate in certificates.items():
        wide = [(part, value, 100.0 * value / longest) for part, value in _ordered(parts[name])]
        words = f"{certificate.radius.side}, {certificate.scope}"
        words = "estimate" if certificate.scope == "estimate" else words
        words += "" if certificate.size is None else f"; {certificate.scale_of_answer}"
        seen = [entry for entry in wide if entry[2] >= 100.0 * LEAST_WIDTH]
        bars.append(Bar(name, certificate.radius.value, words, certificate.radius.side == "upper", seen))
    used = [part for part in PARTS if any(found.get(part, 0.0) > ROUNDING * longest for found in parts.values())]
    values = [[parts[n].get(part, 0.0) if n in parts else None for n, _ in named] for part in used]
    rows = [(part, *PART_WORDS[part], left, right) for part, (left, right) in zip(used, values, strict=True)]
    return Bars(bars, 100.0 * end / longest if decides else None, rows)


def _ordered(parts: dict[str, float]) -> list[tuple[str, float]]:
    return [(part, parts[part]) for part in PARTS if parts.get(part, 0.0) > 0.0]


def rule_words(record: dict[str, Any]) -> str:
    """The rule that was fixed beforehand, in a sentence; nothing where the record is empty."""
    if not record:
        return ""
    if "weights" not in record:
        about = f", for the {record['guarantee']} problem" if "guarantee" in record else ""
        return f"Rule: {record.get('name')}{about}."
    weights = ", ".join(f"{name} {value:g}" for name, value in record["weights"].items() if value)
    if record.get("guarantee") == "continuous":
        return f"Rule: {record.get('name')}, for the continuous problem. Physics is measured at the sensors."
    pde_norm, norm = record.get("pde_norm", "rms"), record.get("norm", "energy")
    physics = f"in the dual of the {norm} norm, by the method “{pde_norm}”"
    if pde_norm == "rms":
        sampled = f", bounded from {record['points']:,} random points" if "points" in record else ""
        physics = f"as root mean square of the strong residual{sampled}"
    return f"Rule: {record.get('name')} with the weights {weights}. Physics is measured {physics}."


def experiment_rows(scene: Scene) -> list[tuple[str, int, str, str]]:
    """For each of several experiments: which, how many data, and what baseline and learned candidate miss of them."""
    if scene.data is None or not scene.problem.experiments:
        return []
    found, begin = [], 0
    for i, problem in enumerate(scene.problem.experiments):
        count = problem.observation_count
        values, begin = scene.data.values[begin : begin + count], begin + count
        size = float(np.sqrt(np.nansum(values**2))) or 1.0
        missed = dict.fromkeys(("baseline", "learned"), "-")
        for role, candidate in scene.candidates.items():
            q = candidate.parameter
            apart = problem.predict(problem.solve(q), q) - values
            missed[role] = f"{100.0 * float(np.sqrt(np.nansum(apart**2))) / size:.3g} %"
        found.append((f"{i + 1}: {type(problem).__name__}", count, missed["baseline"], missed["learned"]))
    return found


def provenance(selection: Selection, scene: Scene | None) -> list[tuple[str, str]]:
    """Everything that one needs to do it again, as (what, value)."""
    rule = dict(selection.rule)
    rows = [("rule", str(rule.pop("name", "-"))), ("tolerance", f"{selection.tolerance:g}")]
    rows += [(f"weight of {name}", f"{value:g}") for name, value in rule.pop("weights", {}).items()]
    seed, trials = rule.pop("seed", None), rule.pop("calibration", {})
    rows += [(f"option {name}", _said(value)) for name, value in rule.pop("options", {}).items()]
    rows += [(_OPTIONS.get(name, name), _said(value)) for name, value in rule.items()]
    rows += [] if seed is None else [("seed of the rule", str(seed))]
    rows += [(f"calibration: {name.replace('_', ' ')}", _said(value)) for name, value in trials.items()]
    rows += [] if scene is None else _problem_rows(scene)
    rows += _candidate_rows(selection, scene)
    rows += [] if selection.solver is None else [("solver of the state equation", _solver_words(selection.solver))]
    return rows + [(f"version of {name}", text) for name, text in selection.versions.items()]


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _solver_words(solver: dict[str, Any]) -> str:
    ends = "" if solver["tolerance"] is None else f", to the relative energy error {solver['tolerance']:g}"
    return f"{solver['backend']} ({solver['package']} {solver['version']}){ends}"


def _problem_rows(scene: Scene) -> list[tuple[str, str]]:
    problem, space = scene.problem, scene.problem.parameters
    rows = [("problem", type(problem).__name__), *_mesh_rows(problem)]
    by = "" if problem.sensors is None else f" by {type(problem.sensors).__name__}"
    rows += [
        ("degrees of freedom", f"{_of_state(problem)}{space.size:,} of the parameter"),
        ("admissible class", f"{type(space).__name__}, {space.dimension:,} coordinates"),
        ("observations", f"{problem.observation_count:,}{by}"),
    ]
    if scene.data is not None:
        weighted = "" if scene.data.covariance is None else ", weighted by their covariance"
        rows.append(("noise level", f"{scene.data.level_words}{weighted}"))
    return rows


def _mesh_rows(problem: Problem) -> list[tuple[str, str]]:
    """Nothing where there is no mesh."""
    mesh = problem.mesh
    if mesh is None:
        return []
    sizes = mesh.params() if mesh.dim() > 1 else np.ptp(mesh.p[0, mesh.t], axis=0)
    elements = [_element(basis) for basis in (problem.basis, problem.parameters.basis) if basis is not None]
    return [
        ("mesh", f"{type(mesh).__name__}, {mesh.nelements:,} elements, {mesh.nvertices:,} vertices"),
        ("element sizes", f"{np.min(sizes):.3g} to {np.max(sizes):.3g}"),
        ("elements of state and parameter", " and ".join(elements)),
    ]


def _of_state(problem: Problem) -> str:
    return "" if problem.basis is None else f"{problem.basis.N:,} of the state, "


def _element(basis: Any) -> str:
    return type(basis.elem).__name__.removeprefix("Element")


def _candidate_rows(selection: Selection, scene: Scene | None) -> list[tuple[str, str]]:
    rows = []
    candidates = {} if scene is None else scene.candidates
    for role, certificate in (("baseline", selection.baseline), ("learned", selection.learned)):
        candidate = candidates.get(role)
        if certificate is not None:
            rows.append((f"name of the {role} candidate", certificate.name))
        if candidate is not None and candidate.interpolation is not None:
            rows.append((f"origin of the {role} candidate", str(candidate.interpolation)))
    return rows
