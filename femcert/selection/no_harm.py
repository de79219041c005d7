"""The no-harm selector, Algorithm 1 of the paper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..certificate import Certificate, Comparison, Judge, Rule
from ..checks import number
from ..errors import CandidateError, FemcertError, InconsistentError, InputError, MissingPackageError, SolveError
from ..problem.base import Problem, check_problem
from ..problem.candidate import Candidate, check_candidate, plain_copy
from ..problem.data import Data
from ..timing import stage
from .case import Case
from .confidence import Confidence
from .guard import CandidateFailure, attempt, usable
from .isolated import in_child
from .reason import misfit_words, radii_reason
from .selection import Selection, package_versions
from .state_solver import StateSolver

Solver = Candidate | Callable[[Problem, Data], Candidate]


class SetupFailure(Exception):
    """Why a learned candidate could not be judged, though it did nothing wrong; the message is the reason."""


def no_harm(
    problem: Problem,
    data: Data,
    *,
    baseline: Solver,
    learned: Solver,
    rule: Rule,
    tolerance: float = 0.0,
    time_limit: float | None = None,
    isolated: bool = False,
) -> Selection:
    """Take the learned reconstruction only if ``R_learned <= R_baseline + tolerance``; else the baseline.

    With the rule `Dominance` it is taken only if no consistent truth makes it worse than the baseline. Where a rule
    does not judge states (`ExactRadius`, `Dominance`, `GuaranteedRadius(state="recomputed")`), the state of an accepted
    parameter is computed here; the candidate's own is not handed out. A baseline is handed out as it came.

    Parameters
    ----------
    problem, data
        What is to be reconstructed, and from which measurements.
    baseline, learned
        Candidates, or callables ``(problem, data) -> Candidate``.
    rule
        The same rule and weights for both, fixed here before either is evaluated.
    tolerance
        The paper's eps_safe >= 0.
    time_limit
        Seconds that a learned callable may take.
    isolated
        Whether a learned callable runs in a child process (a fork): what it writes to memory stays there, and a crash,
        an exit or a missed time limit ends only the child. Its result must be one that can be pickled.

    Returns
    -------
    Selection
        The decision with its evidence. Whatever goes wrong with the learned candidate itself (an exception, a missed
        time limit, NaN, complex values, a wrong shape) is a rejection. Where the rule cannot be applied, the baseline
        cannot be certified or a package is missing, nothing is decided: `Selection.status` is ``"undecided"``. Both
        lead to the baseline, and `Selection.reason` says what happened.

    Raises
    ------
    InputError
        The problem, data, rule or tolerance is not one; or `isolated` on a system that cannot fork.
    FemcertError
        The baseline failed (a `SolveError`, or what its solver raised): without it there is nothing safe to return.

    Examples
    --------
    >>> import numpy as np
    >>> import femcert as fc
    >>> from skfem import Basis, ElementLineP1, MeshLine
    >>> basis = Basis(MeshLine(np.linspace(0.0, 1.0, 33)), ElementLineP1())
    >>> sensors = fc.AverageSensors(basis, np.linspace(0.1, 0.9, 9), radius=0.05)
    >>> problem = fc.EllipticSource(basis, parameters=fc.SineSpace(basis, 2), sensors=sensors)
    >>> data = problem.simulate(problem.parameters.field([1.0, 0.5]), noise=0.02)
    >>> guess = fc.Candidate.from_coefficients(problem, [1.0, -0.5])
    >>> classical = fc.Tikhonov(choose="gcv")
    >>> selection = fc.no_harm(problem, data, baseline=classical, learned=guess, rule=fc.ExactRadius())
    >>> selection.status
    'rejected'
    >>> print(selection.reason)
    the learned radius 1.086 exceeds the baseline's 0.105: it misses ...
    """
    margin, limit = _checked(problem, data, rule, tolerance, time_limit)
    judge, refusal = _prepared(problem, data, rule, {"baseline": baseline, "learned": learned})
    rule = rule if judge is None else judge.rule
    record: dict[str, Any] = {"rule": _recorded(problem, rule), "tolerance": margin}
    try:
        safe = _baseline(problem, data if judge is None else judge.made_from, baseline)
    except FemcertError:
        if isinstance(refusal, InconsistentError):
            # What is wrong with the data says more than how a baseline notices it.
            raise refusal from None
        raise
    case = Case(problem, data, safe)
    if judge is None:
        reason = f"the rule {type(rule).__name__} cannot be applied: {refusal}"
        return _kept(case, "undecided", reason, baseline=None, **record, **_solved(problem))
    try:
        base = attempt(lambda: _certified(judge, safe), None)
    except CandidateFailure as failure:
        reason = f"the baseline cannot be certified: {_cause(failure)}"
        return _kept(case, "undecided", reason, baseline=None, **record, **_solved(problem))
    record |= _solved(problem)
    if not np.isfinite(base.radius.value):
        reason = f"the baseline's radius is {base.radius.value}: there is nothing to compare with"
        return _kept(case, "undecided", reason, baseline=base, **record)
    chance = rule.failure_probability
    try:
        candidate, other, comparison = _judged(case, learned, judge, limit, isolated=isolated)
    except CandidateFailure as failure:
        confidence = None if chance is None else Confidence(chance, None)
        reason = f"the learned candidate was not usable: {failure}{_chance(confidence, accepted=False)}"
        return _kept(case, "rejected", reason, baseline=base, confidence=confidence, **record)
    except SetupFailure as failure:
        confidence = None if chance is None else Confidence(chance, None)
        return _kept(case, "undecided", str(failure), baseline=base, confidence=confidence, **record)
    confidence = None
    if comparison is None:
        confidence = None if chance is None else Confidence(chance, chance)
        status, reason = _decision(base, other, record["rule"], margin, confidence)
    else:
        status = "accepted" if comparison.accepts(margin) else "rejected"
        reason = f"{comparison.reason(margin)}; {misfit_words(base, other)}"
    return Selection.of(
        _handed_out(problem, candidate, rule) if status == "accepted" else safe,
        status=status,
        reason=reason,
        baseline=base,
        learned=other,
        comparison=comparison,
        confidence=confidence,
        case=replace(case, learned=candidate),
        **record,
    )


def _checked(problem: Any, data: Any, rule: Any, tolerance: Any, time_limit: Any) -> tuple[float, float | None]:
    """Tolerance and time limit as numbers; refuses what `no_harm` cannot use."""
    check_problem(problem)
    problem.check_data(data)
    if not isinstance(rule, Rule):
        raise InputError(f"rule is a {type(rule).__name__}; expected a rule such as OperationalRadius(...)")
    margin = number(tolerance, "tolerance", least=0.0)
    return margin, None if time_limit is None else number(time_limit, "time_limit", above=0.0)


@stage("rule")
def _prepared(
    problem: Problem, data: Data, rule: Rule, solvers: dict[str, Any]
) -> tuple[Judge | None, Exception | None]:
    """The judge, with everything computed that is the same for both candidates, or why there is none."""
    try:
        return attempt(lambda: rule.prepare(problem, data, solvers), None), None
    except CandidateFailure as failure:
        return None, _cause(failure)


def _cause(failure: CandidateFailure) -> Exception:
    """What a rule raised: it may be one of a user, and raise anything."""
    cause = failure.__cause__
    if isinstance(cause, MemoryError):
        raise cause
    return cause if isinstance(cause, FemcertError) else failure


@stage("certificates")
def _certified(judge: Judge, candidate: Candidate) -> Certificate:
    return judge.certified(candidate)


def _recorded(problem: Problem, rule: Rule) -> dict[str, Any]:
    """The rule's record; where there is no state, nothing of one decides."""
    found = rule.to_dict()
    if not problem.states:
        found["decides"] = [name for name in rule.decides if name not in ("pde", "bc")]
    return found


def _solved(problem: Problem) -> dict[str, Any]:
    """What solved and the versions of the packages, for the record."""
    solver = StateSolver.of(problem)
    own = {} if solver is None else {solver.package: solver.version}
    return {"solver": solver, "versions": package_versions() | own}


def _kept(case: Case, status: str, reason: str, **rest: Any) -> Selection:
    """The baseline, where the learned candidate could not even be compared."""
    return Selection.of(case.baseline, status=status, reason=reason, learned=None, case=case, **rest)


def _judged(
    case: Case, learned: Any, judge: Judge, time_limit: float | None, *, isolated: bool
) -> tuple[Candidate, Certificate, Comparison | None]:
    """The learned candidate with its certificate and, where the rule makes one, the comparison."""
    problem, safe = case.problem, case.baseline
    try:
        with stage("learned candidate"):
            run = in_child if isolated and not isinstance(learned, Candidate) else attempt
            # A copy once more: arrays that were pickled can be written to.
            candidate = plain_copy(run(lambda: usable(learned, problem, judge.made_from), time_limit))
    except CandidateFailure as failure:
        if isinstance(failure.__cause__, (ImportError, MissingPackageError)):
            raise SetupFailure(f"the learned candidate cannot be made here: {failure.__cause__}") from None
        raise
    attempt(lambda: check_candidate(problem, candidate), None)
    try:
        other = attempt(lambda: _certified(judge, candidate), None)
        if not np.isfinite(other.radius.value):
            raise CandidateFailure(f"its radius is {other.radius.value}")
        return candidate, other, attempt(lambda: judge.compare(safe, candidate), None)
    except CandidateFailure as failure:
        cause = failure.__cause__
        if cause is None or _own_fault(cause, candidate):
            raise
        what = cause if isinstance(cause, FemcertError) else f"{type(cause).__name__}: {cause}"
        raise SetupFailure(f"the learned candidate cannot be certified: {what}") from None


def _own_fault(error: BaseException, candidate: Candidate) -> bool:
    """Whether a certificate failed by what the candidate is, and not by rule, mesh, data or installation.

    The baseline has a certificate by the same rule; so what is left of wrong input is the candidate's. Code that is not
    femcert's runs only where a candidate is made of functions, or in a rule of a user.
    """
    if isinstance(error, FemcertError):
        wrong_input = isinstance(error, InputError) and not isinstance(error, MissingPackageError)
        return wrong_input or isinstance(error, CandidateError)
    return candidate.functions is not None and not isinstance(error, (ImportError, MemoryError))


def _handed_out(problem: Problem, candidate: Candidate, rule: Rule) -> Candidate:
    if rule.uses_state or not problem.states:
        return candidate
    # Nobody looked at its state; that of its parameter belongs to what was certified.
    return Candidate(problem.solve(candidate.parameter), candidate.parameter, candidate.optimality, candidate.name)


def _decision(
    base: Certificate, other: Certificate, rule: dict[str, Any], margin: float, confidence: Confidence | None
) -> tuple[str, str]:
    """The paper's rule ``R_learned <= R_baseline + eps_safe``, and why, in words."""
    # Written so that a NaN, wherever it came from, rejects.
    accepted = bool(other.radius.value <= base.radius.value + margin)
    reason = radii_reason(base, other, rule, margin, accepted=accepted)
    if base.radius.side == "upper" and (not accepted or other.radius.side == "upper"):
        # An estimate claims nothing, with whatever probability.
        reason += _chance(confidence, accepted=accepted)
    return "accepted" if accepted else "rejected", reason


def _chance(confidence: Confidence | None, *, accepted: bool) -> str:
    return "" if confidence is None else f"; {confidence.words(accepted=accepted)}"


@stage("baseline")
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
