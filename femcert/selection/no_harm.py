"""The no-harm selector, Algorithm 1 of the paper."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from ..certificate import Certificate, Rule, certify
from ..errors import FemcertError, InputError, SolveError, UncertifiedError
from ..problem.base import Problem
from ..problem.candidate import Candidate, check_candidate, plain_copy
from ..problem.checks import number
from ..problem.data import Data
from .confidence import Confidence
from .guard import CandidateFailure, attempt, guarded
from .selection import Selection, package_versions

Solver = Candidate | Callable[[Problem, Data], Candidate]


def no_harm(
    problem: Problem,
    data: Data,
    *,
    baseline: Solver,
    learned: Solver,
    rule: Rule,
    tolerance: float = 0.0,
    time_limit: float | None = None,
) -> Selection:
    """Take the learned reconstruction only if ``R_learned <= R_baseline + tolerance``; else the baseline.

    With the rule `Dominance` it is taken only if no consistent truth makes it worse than the baseline. Where a rule
    does not judge states (`ExactRadius`, `Dominance`, `GuaranteedRadius(state="recomputed")`), the state of an accepted
    parameter is computed here; the candidate's own is not handed out. A baseline is handed out as it came.

    Parameters
    ----------
    baseline, learned
        Candidates, or callables ``(problem, data) -> Candidate``.
    rule
        The same rule and weights for both, fixed here before either is evaluated.
    tolerance
        The paper's eps_safe >= 0.
    time_limit
        Seconds that a learned callable may take.

    Returns
    -------
    Selection
        The decision with its evidence. Whatever goes wrong with the learned candidate (an exception, a missed time
        limit, NaN, complex values, a wrong shape, changed data) or with a certificate leads to the baseline, and
        `Selection.reason` says what happened.

    Raises
    ------
    InputError
        The problem, data, rule or tolerance cannot be used.
    SolveError
        The baseline failed: without it there is nothing safe to fall back to.
    """
    if not isinstance(problem, Problem):
        raise InputError(f"problem is a {type(problem).__name__}; expected one such as EllipticSource")
    problem.check_data(data)
    if not isinstance(rule, Rule):
        raise InputError(f"rule is a {type(rule).__name__}; expected a rule such as OperationalRadius(...)")
    margin = number(tolerance, "tolerance", least=0.0)
    if time_limit is not None:
        time_limit = number(time_limit, "time_limit", above=0.0)
    # A copy, so that not even code that forces a frozen object can change the rule between the two candidates.
    rule, refusal = copy.copy(rule), None
    try:
        rule = rule.resolved(problem, data)
    except UncertifiedError as error:
        refusal = error
    record: dict[str, Any] = {"rule": rule.to_dict(), "tolerance": margin, "versions": package_versions()}
    chance = rule.failure_probability

    safe = _baseline(problem, data, baseline)
    try:
        if refusal is not None:
            raise refusal
        base = certify(problem, data, safe, rule)
    except UncertifiedError as error:
        reason = f"the baseline cannot be certified, so nothing can replace it: {error}"
        return Selection.of(safe, accepted=False, reason=reason, baseline=None, learned=None, **record)
    record["confidence"] = None if chance is None else Confidence(chance, None)
    try:
        candidate = guarded(learned, problem, data, time_limit=time_limit)
        if type(learned) is not Candidate:
            _check_untouched(problem, data, safe, rule, base)
        other = attempt(lambda: certify(problem, data, candidate, rule), None)
        comparison = attempt(lambda: rule.compare(problem, data, safe, candidate), None)
    except CandidateFailure as failure:
        reason = f"the learned candidate was not usable: {failure}{_chance(record['confidence'], accepted=False)}"
        return Selection.of(safe, accepted=False, reason=reason, baseline=base, learned=None, **record)
    if comparison is None:
        accepted, reason = _decision(base, other, margin)
        record["confidence"] = None if chance is None else Confidence(chance, chance)
        if base.radius.side == "upper" and (not accepted or other.radius.side == "upper"):
            # An estimate claims nothing, with whatever probability.
            reason += _chance(record["confidence"], accepted=accepted)
    else:
        accepted, reason = comparison.accepts(margin), comparison.reason(margin)
    chosen = candidate if accepted else safe
    if accepted and problem.has_state and not rule.judges_state:
        # Nobody looked at its state; that of its parameter belongs to what was certified.
        chosen = Candidate(problem.solve(chosen.parameter), chosen.parameter, chosen.optimality, chosen.name)
    evidence = {"baseline": base, "learned": other, "comparison": comparison}
    return Selection.of(chosen, accepted=accepted, reason=reason, **evidence, **record)


def _decision(base: Certificate, other: Certificate, margin: float) -> tuple[bool, str]:
    """The paper's rule ``R_learned <= R_baseline + eps_safe``, and why, in words."""
    allowed = f"the baseline's {base.radius.value:.4g}" + (f" + tolerance {margin:g}" if margin else "")
    # Written so that a NaN, wherever it came from, rejects; infinite radii compare nothing.
    if not (other.radius.value <= base.radius.value + margin and np.isfinite(base.radius.value)):
        return False, f"the learned radius {other.radius.value:.4g} exceeds {allowed}"
    reason = f"the learned radius {other.radius.value:.4g} is within {allowed}"
    if base.radius.side == "upper" != other.radius.side:
        reason += "; it is an estimate, the baseline's is a bound"
    return True, reason


def _chance(confidence: Confidence | None, *, accepted: bool) -> str:
    return "" if confidence is None else f"; {confidence.words(accepted=accepted)}"


def _check_untouched(problem: Problem, data: Data, safe: Candidate, rule: Rule, base: Certificate) -> None:
    """Certify the baseline again: code that ran in between may have written to what its copy of the problem shares."""
    try:
        again = attempt(lambda: certify(problem, data, safe, rule), None).radius
    except CandidateFailure as failure:
        raise CandidateFailure(f"it changed the problem: certifying the baseline again, {failure}") from None
    same = abs(again.value - base.radius.value) <= 1e-6 * base.radius.value and again.side == base.radius.side
    if not same:
        came = f"the baseline's radius was {base.radius.value:.6g} before and is {again.value:.6g} now"
        raise CandidateFailure(f"it changed the problem: {came}")


def _baseline(problem: Problem, data: Data, baseline: Any) -> Candidate:
    if not (isinstance(baseline, Candidate) or callable(baseline)):
        raise InputError(f"baseline is a {type(baseline).__name__}; expected a Candidate or a callable")
    try:
        result = baseline if isinstance(baseline, Candidate) else attempt(lambda: baseline(problem, data), None)
    except CandidateFailure as failure:
        if isinstance(failure.__cause__, FemcertError):
            raise failure.__cause__ from None
        raise SolveError(f"the baseline failed: {failure}") from failure.__cause__
    try:
        return plain_copy(check_candidate(problem, result))
    except InputError as error:
        raise SolveError(f"the baseline is not usable: {error}") from None
