"""The no-harm selector, Algorithm 1 of the paper."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..certificate import Certificate, Comparison, Dominance, Judge, Rule
from ..certificate.rule import judge_of
from ..checks import kind_of, number
from ..errors import CandidateError, FemcertError, InconsistentError, InputError, MissingPackageError, SolveError
from ..linalg import package_of
from ..problem.base import Problem, check_problem
from ..problem.candidate import Candidate, check_candidate, plain_copy, with_state
from ..problem.data import Data
from ..timing import stage
from .guard import CandidateFailure, attempt, usable
from .isolated import in_child
from .reason import Confidence, misfit_words, radii_reason
from .regions import Regions
from .selection import Case, Selection, package_versions
from .verdict import Verdict, held_against, nearest_to_acceptance, overall

Solver = Candidate | Callable[[Problem, Data], Candidate]


class SetupFailure(Exception):
    """Why a learned candidate could not be judged, for a cause that is not its own; the message is the reason."""


def no_harm(
    problem: Problem,
    data: Data,
    *,
    baseline: Solver,
    learned: Solver | Mapping[str, Solver],
    rule: Rule | None = None,
    tolerance: float = 0.0,
    regions: Any = None,
    time_limit: float | None = None,
    isolated: bool = False,
) -> Selection:
    """Take a learned reconstruction only if it has the stronger evidence; else the baseline.

    With `Dominance`, the default, it is taken only if no consistent truth makes it worse than the baseline; with the
    other rules if ``R_learned <= R_baseline + tolerance``. Where a rule does not judge states (`ExactRadius`,
    `Dominance`, `GuaranteedRadius(state="recomputed")`), the state of an accepted parameter is computed here; the
    candidate's own is not handed out. A baseline is handed out as it came.

    Parameters
    ----------
    problem, data
        What is to be reconstructed, and from which measurements.
    baseline
        A candidate, or a callable ``(problem, data) -> Candidate``.
    learned
        Another one; or several of them by name. Of several that are accepted the one with the smallest radius is taken,
        ties go by order. The claim of the rule then holds for all of them together. `Dominance` and the radii claim
        what holds whenever the noise is within its set, for any number of candidates; nothing is divided. Rules that
        can fail for each of n candidates anew divide their level by n: `StochasticRadius`, of which each certificate
        has points of its own, `Calibrated`, and `Dominance` with thinning.
    rule
        The same rule and weights for all, fixed here before any is evaluated. Default: ``Dominance()``.
    tolerance
        The paper's eps_safe >= 0.
    regions
        Names of subdomains or functionals (`Mean`, `Value`, ...), fixed before data and candidates were seen. The data
        say in which intervals the truth lies there, all together with the confidence of the data; no rule accepts a
        candidate outside of one. Where the baseline lies outside too, and nothing is accepted, nothing is decided.
        Linear problems, in a class within a ball or a span that the data determine.
    time_limit
        Seconds that each learned callable may take.
    isolated
        Whether a learned callable runs in a child process (a fork): what it writes to memory stays there, and a crash,
        an exit or a missed time limit ends only the child. Its result must be one that can be pickled.

    Returns
    -------
    Selection
        The decision with its evidence, in `Selection.candidates` for each learned candidate. Whatever goes wrong with a
        learned candidate itself (an exception, a missed time limit, NaN, complex values, a wrong shape, a refuted
        claim) is a rejection. Where the rule cannot be applied, the regions cannot be judged, the baseline cannot be
        certified or is refuted, or a package is missing, nothing is decided: `Selection.status` is ``"undecided"``.
        Both lead to the baseline, and `Selection.reason` says what happened.

    Raises
    ------
    InputError
        The problem, data, rule, regions or tolerance is not one; or `isolated` on a system that cannot fork.
    FemcertError
        The baseline failed (a `SolveError`, or what its solver raised): without it there is nothing safe to return.

    Notes
    -----
    Of all rules that need no samples, `Dominance` is the one that claims what "no harm" says: that the accepted
    candidate is no farther from the truth than the baseline, whatever the truth of the class is, with the confidence of
    the data. Rules that compare radii do not claim it. In the trials of the guide's page on refutation they accept
    least squares, though worse than the baseline, in up to 58 % of measurements; `Dominance` accepts nothing worse
    there. Its power is low: it accepts where the data alone decide, which is seldom. With samples of truths that
    trained nothing, `Calibrated` accepts far more, and claims that harm is rare for truths like them.

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
    rule = Dominance() if rule is None else rule
    margin, limit = _checked(problem, data, rule, tolerance, time_limit)
    named = _named(learned)
    asked = None if regions is None else Regions(problem, data, regions)
    solvers = {"baseline": baseline, "learned": learned}
    judges, refusal = _prepared(problem, data, rule.shared_by(len(named)), solvers, named)
    rule = next(iter(judges.values())).rule if judges else rule
    record: dict[str, Any] = {"rule": _recorded(problem, rule), "tolerance": margin}
    try:
        safe = _baseline(problem, next(iter(judges.values())).made_from if judges else data, baseline, rule)
    except FemcertError:
        if isinstance(refusal, InconsistentError):
            # The error of the data says more than the error that the baseline raises because of it.
            raise refusal from None
        raise
    case = Case(problem, data, safe)
    open_: dict[str, Any] = {"names": named, "regions": None if asked is None else asked.claims({"baseline": safe})}
    if not judges:
        reason = f"the rule {type(rule).__name__} cannot be applied: {refusal}"
        return _undecided(case, reason, baseline=None, **open_, **record, **_solved(problem))
    try:
        base = attempt(lambda: _certified(next(iter(judges.values())), safe, "baseline"), None)
    except CandidateFailure as failure:
        reason = f"the baseline cannot be certified: {_cause(failure)}"
        return _undecided(case, reason, baseline=None, **open_, **record, **_solved(problem))
    record |= _solved(problem)
    if not np.isfinite(base.radius.value):
        reason = f"the baseline's radius is {base.radius.value}: there is nothing to compare with"
        return _undecided(case, reason, baseline=base, **open_, **record)
    if asked is not None and asked.failure:
        return _undecided(case, asked.failure, baseline=base, **open_, **record)
    contest = _Contest(case, base, rule, record["rule"], margin, len(named))
    found = {name: contest.verdict(name, each, judges[name], limit, isolated=isolated) for name, each in named.items()}
    made = {name: candidate for name, (_, candidate) in found.items() if candidate is not None}
    claims = None if asked is None else asked.claims({"baseline": safe, **made})
    verdicts = {name: held_against(claims, name, verdict) for name, (verdict, _) in found.items()}
    return _selection(replace(case, candidates=made), rule, verdicts, baseline=base, regions=claims, **record)


def _checked(problem: Any, data: Any, rule: Any, tolerance: Any, time_limit: Any) -> tuple[float, float | None]:
    """Tolerance and time limit as numbers; refuses what `no_harm` cannot use."""
    check_problem(problem)
    problem.check_data(data)
    if not isinstance(rule, Rule):
        raise InputError(f"rule is {kind_of(rule)}; expected a rule such as Dominance()")
    margin = number(tolerance, "tolerance", least=0.0)
    return margin, None if time_limit is None else number(time_limit, "time_limit", above=0.0)


def _named(learned: Any) -> dict[str, Any]:
    """The learned candidates by name; one alone is called "learned"."""
    if not isinstance(learned, Mapping):
        return {"learned": learned}
    named = dict(learned)
    if not named or not all(isinstance(name, str) and name.strip() and name != "baseline" for name in named):
        came = ", ".join(map(repr, named)) or "nothing"
        raise InputError(f"learned has the names {came}; expected one or more, none of them 'baseline'")
    return named


@stage("rule")
def _prepared(
    problem: Problem, data: Data, rule: Rule, solvers: dict[str, Any], named: dict[str, Any]
) -> tuple[dict[str, Judge], Exception | None]:
    """The judge of each candidate, with everything computed that is the same, or why there is none."""
    try:
        if not rule.uses_solvers:
            return dict.fromkeys(named, attempt(lambda: judge_of(rule, problem, data, solvers), None)), None
        each = {name: {**solvers, "learned": learned} for name, learned in named.items()}
        return {name: attempt(partial(judge_of, rule, problem, data, own), None) for name, own in each.items()}, None
    except CandidateFailure as failure:
        return {}, _cause(failure)


def _cause(failure: CandidateFailure) -> Exception:
    """What a rule raised: it may be one of a user, and raise anything."""
    cause = failure.__cause__
    if isinstance(cause, MemoryError):
        raise cause
    return cause if isinstance(cause, FemcertError) else failure


@stage("certificates")
def _certified(judge: Judge, candidate: Candidate, role: str) -> Certificate:
    return judge.certified(candidate, role)


def _recorded(problem: Problem, rule: Rule) -> dict[str, Any]:
    """The rule's record; where there is no state, nothing of one decides."""
    found = rule.to_dict()
    if not problem.states:
        found["decides"] = [name for name in rule.decides if name not in ("pde", "bc")]
    return found


def _solved(problem: Problem) -> dict[str, Any]:
    """What solved and the versions of the packages, for the record."""
    if problem.backend is None:
        return {"solver": None, "versions": package_versions()}
    own = package_of(problem.backend)
    ((package, version),) = own.items()
    ends = problem.solve_tolerance or None
    solver = {"backend": problem.backend, "package": package, "version": version, "tolerance": ends}
    return {"solver": solver, "versions": package_versions() | own}


def _undecided(case: Case, reason: str, *, names: Collection[str], **rest: Any) -> Selection:
    """The baseline, where no learned candidate could even be looked at."""
    verdicts = {name: Verdict("undecided", reason) for name in names}
    return Selection.of(
        case.baseline, status="undecided", reason=reason, learned=None, candidates=verdicts, case=case, **rest
    )


@dataclass(frozen=True)
class _Contest:
    """What a learned candidate is held against, by rule."""

    case: Case
    base: Certificate
    rule: Rule
    record: dict[str, Any]
    margin: float
    count: int

    @property
    def _confidence(self) -> Confidence | None:
        """That no certificate fails."""
        chance = self.rule.failure_probability
        return None if chance is None else Confidence(chance, chance * self.count)

    def verdict(
        self, name: str, learned: Any, judge: Judge, limit: float | None, *, isolated: bool
    ) -> tuple[Verdict, Candidate | None]:
        """The candidate, where there is one that can be certified, and what the rule says of it."""
        called = name if self.count > 1 else None
        try:
            candidate, other, comparison = _judged(self.case, learned, judge, limit, isolated=isolated, name=called)
        except CandidateFailure as failure:
            chance = _chance(self._confidence, accepted=False)
            return Verdict("rejected", f"the learned candidate was not usable: {failure}{chance}"), None
        except SetupFailure as failure:
            return Verdict("undecided", str(failure)), None
        if comparison is None:
            status, reason = _decision(self.base, other, self.record, self.margin, self._confidence)
        else:
            status = "accepted" if comparison.accepts(self.margin) else "rejected"
            reason = f"{comparison.reason(self.margin)}; {misfit_words(self.base, other)}"
        return Verdict(status, reason, other, comparison), candidate


def _selection(case: Case, applied: Rule, verdicts: dict[str, Verdict], **record: Any) -> Selection:
    """The decision from those about each candidate."""
    safe, claims, chance = case.baseline, record["regions"], applied.failure_probability
    shown = nearest_to_acceptance(verdicts)
    beside = Verdict("undecided", "") if shown is None else verdicts[shown]
    status, reason = overall(verdicts, shown)
    if status != "accepted" and claims is not None and (wrong := claims.of("baseline", "the baseline")):
        status, reason = "undecided", f"the baseline is refuted, and there is nothing else: {wrong.reason}; {reason}"
    candidate = None if shown is None else case.candidates.get(shown)
    certified = sum(verdict.certificate is not None for verdict in verdicts.values())
    return Selection.of(
        _handed_out(case.problem, candidate, applied) if status == "accepted" and candidate is not None else safe,
        status=status,
        reason=reason,
        learned=beside.certificate,
        comparison=beside.comparison,
        candidates=verdicts,
        confidence=None if chance is None else Confidence(chance, chance * certified if certified else None),
        case=replace(case, learned=candidate),
        **record,
    )


def _judged(
    case: Case, learned: Any, judge: Judge, time_limit: float | None, *, isolated: bool, name: str | None = None
) -> tuple[Candidate, Certificate, Comparison | None]:
    """The learned candidate with its certificate and, where the rule makes one, the comparison."""
    problem, safe = case.problem, case.baseline
    try:
        with stage("learned candidate"):
            run = in_child if isolated and not isinstance(learned, Candidate) else attempt
            # A copy once more: arrays that were pickled can be written to.
            candidate = plain_copy(run(lambda: usable(learned, problem, judge.made_from), time_limit), name)
    except CandidateFailure as failure:
        if isinstance(failure.__cause__, (ImportError, MissingPackageError)):
            raise SetupFailure(f"the learned candidate cannot be made here: {failure.__cause__}") from None
        raise
    if not judge.rule.uses_state:
        candidate = attempt(lambda: with_state(problem, candidate), None)
    attempt(lambda: check_candidate(problem, candidate), None)
    try:
        other = attempt(lambda: _certified(judge, candidate, "learned"), None)
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
def _baseline(problem: Problem, data: Data, baseline: Any, rule: Rule) -> Candidate:
    if not (isinstance(baseline, Candidate) or callable(baseline)):
        raise InputError(f"baseline is {kind_of(baseline)}; expected a Candidate or a callable")
    try:
        result = baseline if isinstance(baseline, Candidate) else attempt(lambda: baseline(problem, data), None)
    except CandidateFailure as failure:
        if isinstance(failure.__cause__, FemcertError):
            raise failure.__cause__ from None
        raise SolveError(f"the baseline failed: {failure}") from failure.__cause__
    try:
        return plain_copy(check_candidate(problem, result if rule.uses_state else with_state(problem, result)))
    except InputError as error:
        raise SolveError(f"the baseline is not usable: {error}") from None
