"""Whether a selection read from a file agrees with itself.

Checked is what can be computed again from the record alone:

- ``status`` and ``accepted`` against the radii and the tolerance, or against the margin of the comparison;
- for the paper's rules, the sum of the weighted residuals, and the radius against the stability constant times it;
- the digest of the selected candidate against the stored state and parameter;
- the probabilities against the rule, against each other, and against what the sampled bounds say of themselves;
- names: that of a rule of femcert against its options, and what a radius speaks of.

The reason, the sources and the versions are words. That a file was changed by accident is seen by its seal. A record
that was changed in all places at once and sealed again cannot be told from an honest one: this does not prove who wrote
a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..certificate import Certificate
from ..certificate.stochastic import check_zeta
from ..errors import InputError
from ..problem.candidate import Candidate
from ..residual import COMPONENTS

if TYPE_CHECKING:
    from .selection import Selection

# Rules whose radius is C (eta + delta)^p or more.
WEIGHTED = ("ResidualRadius", "OperationalRadius", "StochasticRadius")
# Those with other radii, which have none of their options. Other names are rules of users.
UNWEIGHTED = ("GuaranteedRadius", "ExactRadius", "Dominance")
STATUSES = ("accepted", "rejected", "undecided")
SCOPES = ("continuous", "discrete", "estimate")
# Sums may be added in another order.
ROUNDING = 1e-9


def check_record(selection: Selection) -> None:
    """Raise `InputError` where the parts of a selection contradict each other."""
    parts = [part for part in (selection.baseline, selection.learned) if part is not None]
    _check_comparison(selection)
    _check_confidence(selection)
    _check_digest(selection)
    _check_rule(selection.rule)
    for part in parts:
        _check_scope(part)
        _check_sum(part, selection.rule)
        _check_sampling(part, selection.rule)
    if selection.status != _status(selection):
        raise InputError("the decision contradicts the evidence")


def check_status(status: Any) -> str:
    """`status` if it is one of the three."""
    if status not in STATUSES:
        raise InputError(f"status is {status!r}; expected one of {', '.join(map(repr, STATUSES))}")
    return str(status)


def _status(selection: Selection) -> str:
    """What the evidence says; where the learned candidate has no certificate, the record knows whose fault it is."""
    if selection.baseline is None or not np.isfinite(selection.baseline.radius.value):
        return "undecided"
    if selection.learned is None:
        return "rejected" if selection.accepted else selection.status
    if selection.comparison is not None:
        within = selection.comparison.accepts(selection.tolerance)
    else:
        within = selection.learned.radius.value <= selection.baseline.radius.value + selection.tolerance
    return "accepted" if within else "rejected"


def _check_comparison(selection: Selection) -> None:
    """A comparison belongs to the rule `Dominance`, with its probability, and speaks of a parameter like this."""
    comparison, rule = selection.comparison, selection.rule
    decides = rule.get("name") == "Dominance" and selection.baseline is not None and selection.learned is not None
    if decides != (comparison is not None):
        raise InputError("a comparison and the rule 'Dominance' go together")
    if comparison is None:
        return
    zeta = rule.get("zeta")
    if comparison.probability != (None if zeta is None else 1.0 - check_zeta(zeta)):
        raise InputError("the probability of the comparison is not that of the rule")
    if comparison.truth.shape != selection.parameter.shape:
        raise InputError("the truth of the comparison is no parameter of this problem")


def _check_confidence(selection: Selection) -> None:
    """One that is there is that of the rule and of these certificates; files of femcert 0.1 before it have none."""
    confidence = selection.confidence
    if confidence is None:
        if any(part is not None and part.digest is not None for part in (selection.baseline, selection.learned)):
            raise InputError("certificates from random points come with their confidence")
        return
    zeta = check_zeta(selection.rule.get("zeta", confidence.zeta_base))
    known = (None if selection.baseline is None else zeta, None if selection.learned is None else zeta)
    if selection.comparison is not None or (confidence.zeta_base, confidence.zeta_learn) != known:
        raise InputError("the confidence is not that of the rule and of the certificates")


def _check_digest(selection: Selection) -> None:
    """The digest of the selected candidate, where its rule took one, is that of the stored fields."""
    chosen = selection.learned if selection.accepted else selection.baseline
    # That of a candidate made of functions also covers their residual, which no file holds.
    if chosen is None or chosen.digest is None or "of the functions" in chosen.residuals.pde.source:
        return
    if Candidate(selection.state, selection.parameter).digest != chosen.digest:
        raise InputError("the digest is not that of the stored state and parameter")


def _check_rule(rule: dict[str, Any]) -> None:
    """The name of a rule of femcert fits its options: by another name, its sums would not be checked."""
    decides = rule.get("decides", [])
    if not isinstance(decides, list) or not all(component in COMPONENTS for component in decides):
        raise InputError(f"the rule decides by {decides!r}; expected names of residuals")
    name, weighted = rule.get("name", ""), "pde_norm" in rule
    if not isinstance(name, str) or (name in WEIGHTED and not weighted) or (name in UNWEIGHTED and weighted):
        raise InputError(f"the rule {name!r} does not have these options")


def _check_scope(part: Certificate) -> None:
    """What the radius and the constant speak of is one of three words."""
    named = [part.scope] if part.stability is None else [part.scope, part.stability.scope]
    for scope in named:
        if scope not in SCOPES:
            raise InputError(f"scope of {part.name!r} is {scope!r}; expected one of {', '.join(SCOPES)}")


def _check_sum(part: Certificate, rule: dict[str, Any]) -> None:
    """``eta = data + a_pde pde + a_bc bc + a_opt optimality``, and the radius is not below ``C (eta + delta)^p``."""
    if rule.get("name") not in WEIGHTED or part.stability is None:
        return
    weights, found = {"data": 1.0, **rule["weights"]}, dict(part.residuals.items())
    total = sum(weight * found[name].value for name, weight in weights.items())
    if not abs(part.total - total) <= ROUNDING * total:
        raise InputError(f"the total of {part.name!r} is {part.total:.6g}; its residuals sum to {total:.6g}")
    level, levels = part.total + part.noise_level, part.stability.levels
    if levels is not None and not levels[0] <= level <= levels[1]:
        return
    least = part.stability.radius(level)
    if not part.radius.value >= (1.0 - ROUNDING) * least:
        raise InputError(f"the radius of {part.name!r} is {part.radius.value:.6g}; its residuals give {least:.6g}")


def _check_sampling(part: Certificate, rule: dict[str, Any]) -> None:
    """A bound from random points says with which probability it holds: that of the rule."""
    if part.digest is None:
        return
    pde, stated = part.residuals.pde, 1.0 - check_zeta(rule["zeta"])
    # Files of femcert 0.1 say it in words.
    if pde.probability != stated and not pde.source.endswith(f", probability {stated:g}"):
        came = f"holds with probability {pde.probability:g}"
        raise InputError(f"the physics residual of {part.name!r} {came}; the rule says {stated:g}")
