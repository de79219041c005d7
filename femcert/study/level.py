"""What is studied on one mesh, and what is found there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..bound import Bound
from ..certificate import Certificate, Rule, certify
from ..checks import Array, frozen, number, real_vector
from ..errors import CoarseMeshError, InconsistentError, InputError, UncertifiedError
from ..mesh.geometry import diameters
from ..problem.base import Problem
from ..problem.candidate import Candidate, check_candidate
from ..problem.data import Data
from ..residual.dual import dual_norm
from ..selection import Selection, no_harm
from ..selection.no_harm import Solver
from ..stability import stability
from .study import DECISIONS, Level


@dataclass(frozen=True)
class Case:
    """What is studied on one mesh.

    Attributes
    ----------
    problem
        The inverse problem.
    candidate
        Whose residual is bounded. Default: the state that the problem's solver gives to `parameter`, else the baseline.
    parameter
        A dof vector, a number or a function of x.
    data, baseline, learned, rule
        As for `no_harm`: with all four the selection is repeated on each level; without `learned` the baseline alone is
        certified. With `data` alone there is a stability constant.
    truth
        The exact dual norm of the candidate's residual: a number, or a function ``(problem, candidate) -> number``. For
        a state that takes the prescribed values and the energy norm, it is the energy norm of its error.
    """

    problem: Problem
    candidate: Candidate | None = None
    parameter: Any = None
    data: Data | None = None
    baseline: Solver | None = None
    learned: Solver | None = None
    rule: Rule | None = None
    truth: float | Callable[[Problem, Candidate], float] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.problem, Problem):
            raise InputError(f"problem is a {type(self.problem).__name__}; expected one such as EllipticSource")
        if self.learned is not None and (self.baseline is None or self.rule is None):
            raise InputError("learned is given without a baseline and a rule; expected both, as for no_harm")
        if self.rule is not None and self.baseline is None:
            raise InputError("rule is given without a baseline to certify; expected baseline=")
        if not (self.baseline is None or isinstance(self.baseline, Candidate) or callable(self.baseline)):
            raise InputError(f"baseline is a {type(self.baseline).__name__}; expected a Candidate or a callable")
        if self.baseline is not None and self.data is None:
            raise InputError("baseline is given without data; expected data=Data(values, noise_level)")
        if self.candidate is None and self.parameter is None and self.baseline is None:
            raise InputError("there is nothing to bound; expected a candidate, a parameter or a baseline")


@dataclass(frozen=True)
class Findings:
    """A level, with what a picture of it needs."""

    level: Level
    indicators: Array
    selection: Selection | None


def evaluated(case: Case, *, level: int, method: str, norm: str) -> Findings:
    """Bounds, stability constant, radii and decision of one case; its time is not known here and left at zero."""
    problem, mesh = case.problem, case.problem.basis.mesh
    # Once, for the bounds and for the selection.
    baseline = _baseline(case)
    candidate = check_candidate(problem, _candidate(case, baseline))
    bounds = dual_norm(problem, candidate, method=method, norm=norm)
    if bounds.upper is None or bounds.lower is None:
        raise InputError(f"method {method!r} does not bound the residual from both sides; use 'equilibrated'")
    constant, certificates, selection = _certified(case, candidate if baseline is None else baseline)
    found = {"lower": bounds.lower, "upper": bounds.upper, **({} if constant is None else {"C_stab": constant})}
    found |= {f"radius_{name}": certificate.radius for name, certificate in certificates.items()}
    relative = {name: certificate.relative for name, certificate in certificates.items()}
    return Findings(
        level=Level(
            level=level,
            elements=mesh.nelements,
            dofs=problem.basis.N,
            h=float(diameters(mesh).max()),
            **{name: bound.value for name, bound in found.items()},
            truth=_truth(case, candidate),
            relative_baseline=relative.get("baseline"),
            relative_learned=relative.get("learned"),
            decision=None if selection is None else DECISIONS[selection.status],
            seconds=0.0,
            estimates=tuple(name for name, bound in found.items() if bound.side == "estimate"),
        ),
        indicators=frozen(real_vector(bounds.indicators, mesh.nelements, "indicators")),
        selection=selection,
    )


def _baseline(case: Case) -> Candidate | None:
    if case.baseline is None or case.data is None:
        return None
    solver = case.baseline
    return check_candidate(case.problem, solver if isinstance(solver, Candidate) else solver(case.problem, case.data))


def _candidate(case: Case, baseline: Candidate | None) -> Any:
    if case.candidate is not None:
        return case.candidate
    problem, q = case.problem, case.parameter
    if q is None:
        return baseline
    if callable(q) or np.ndim(q) == 0:
        return Candidate.from_functions(problem, parameter=q, name="Galerkin")
    return Candidate(problem.solve(q), q, name="Galerkin")


def _certified(case: Case, reference: Candidate) -> tuple[Bound | None, dict[str, Certificate], Selection | None]:
    """Stability constant, certificates and selection, as far as they were asked for and can be had on this mesh."""
    problem, data, rule = case.problem, case.data, case.rule
    constant = None if data is None else _constant(case, reference)
    if data is None or rule is None:
        return constant, {}, None
    if case.learned is not None:
        selection = no_harm(problem, data, baseline=reference, learned=case.learned, rule=rule)
        named = {"baseline": selection.baseline, "learned": selection.learned}
        return constant, {name: part for name, part in named.items() if part is not None}, selection
    if constant is None:
        return None, {}, None
    try:
        return constant, {"baseline": certify(problem, data, reference, rule)}, None
    except (CoarseMeshError, InconsistentError):
        # A finer level will have radii: this mesh is too coarse for the rule, or for the data.
        return constant, {}, None


def _constant(case: Case, reference: Candidate) -> Bound | None:
    """The stability constant that the rule uses, or None where it is infinite."""
    problem = case.problem
    if case.rule is not None and case.rule.stability is not None:
        return case.rule.stability.constant
    if problem.parameters.dimension > problem.observation_count:
        return None
    try:
        return stability(problem, at=reference.parameter, data=case.data, validate=False).constant
    except UncertifiedError:
        return None


def _truth(case: Case, candidate: Candidate) -> float | None:
    if case.truth is None:
        return None
    value = case.truth(case.problem, candidate) if callable(case.truth) else case.truth
    return number(value, "truth", least=0.0)
