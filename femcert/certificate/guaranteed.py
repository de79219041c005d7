"""The guaranteed radius: a bound for the continuous problem, or none at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..bound import Bound
from ..checks import Array
from ..errors import CandidateError, InputError, UncertifiedError
from ..evidence import check_explained_continuously
from ..problem.base import Problem, check_problem
from ..problem.candidate import Candidate, check_candidate
from ..problem.closed_maps import Prediction
from ..problem.data import Data
from ..problem.space import Split
from ..residual import Residuals
from ..residual.energy import state_norm
from ..residual.residuals import optimality_residual
from ..stability import Stability
from ..stability import stability as stability_of
from ..stability.continuous import MapError, whitening
from .certificate import Certificate
from .rule import Judge, Rule

STATES = ("given", "recomputed")


@dataclass(frozen=True)
class GuaranteedParts:
    """What a candidate pair is known to miss, in whitened data, and the radius that follows.

    ``‖q - q†‖_Q <= C (data + pde + bc + delta) + admissibility`` for every truth q† of the class whose exact solution
    u† explains the data, ``‖H u† - y‖_Y <= delta``. Where the class is one of functions (sines, cosines), the distance
    is that of the finite-element function q from the function q†; the radius also covers the distance of the dof
    vectors, q from the interpolant of q†.

    Attributes
    ----------
    data
        ``‖H u - y‖_Y``.
    pde
        Bound of ``‖H (u0 - S p)‖_Y``: S the exact solution operator, p the part of the parameter in the class, u0 the
        state without its boundary error.
    bc
        ``‖H E‖_Y`` for the boundary error, extended into the domain: ``u = u0 + E``.
    admissibility
        ``‖q - p‖_Q``.
    stability
        The guaranteed constant C.
    radius
        The sum, rounding included.
    """

    data: Bound
    pde: Bound
    bc: Bound
    admissibility: Bound
    stability: Stability
    radius: float


def guaranteed_parts(
    problem: Problem,
    data: Data,
    candidate: Candidate,
    *,
    state: str = "given",
    stability: Stability | None = None,
    split: Split | None = None,
) -> GuaranteedParts:
    """Evaluate a candidate against the continuous problem, sensor by sensor (dual-weighted residuals).

    With the exact solution ``S p`` for the part p of the parameter in the class,
    ``H S p - H u† = (H u - y) - H E - H (u0 - S p) + (y - H u†)``. For the discrete state w of p, with residual r, and
    the adjoint states z_i, ``H_i (S p - w) = r(z_ih) + r(z_i - z_ih)``. The first term is computed; of the second one
    half of what the fluxes of both have in common, or all of it, is computed too, and what is left is at most half of a
    product of two guaranteed energy errors, for all sensors at once (`femcert.stability.continuous`).

    Parameters
    ----------
    state
        ``"given"``: the candidate's own. ``"recomputed"``: the discrete state of p, with what its residual says at the
        adjoint states; then only products of energy errors are left in `pde`, which are of second order.
    stability
        The result of ``stability(problem, data=data, guarantee="continuous")``, for several candidates.
    split
        That of the candidate's parameter, where it is known already.

    Raises
    ------
    UncertifiedError
        Some ingredient is not a guaranteed bound; the message says which.
    InputError
        The candidate or the stability constant belongs to another problem or covariance.
    """
    if state not in STATES:
        raise InputError(f"state is {state!r}; expected one of {', '.join(map(repr, STATES))}")
    check_problem(problem)
    check_candidate(problem, candidate)
    problem.check_data(data)
    constant, gap = continuous_constant(problem, data, stability)
    q = problem.check_parameter(candidate.parameter)
    split = split or problem.parameters.split(q)
    exact = gap.exact.predict(split.coordinates)
    misfit, pde, bc = _parts(problem, data, candidate, exact, state, closed=gap.closed)
    # From the functions of the class, and from their interpolants, which stand for them as dof vectors.
    distance = max(gap.exact.distance(q, split.coordinates), split.outside)
    distance += problem.rounding * split.size
    total = misfit.value + pde.value + bc.value + data.noise_level
    radius = max(1.0, gap.exact.interpolation_norm) * constant.radius(total) + distance
    if not np.isfinite(radius):
        raise CandidateError(f"the guaranteed radius of {candidate.name!r} is {radius}")
    return GuaranteedParts(
        data=misfit,
        pde=pde,
        bc=bc,
        admissibility=Bound(distance, "upper", "distance from the part in the class"),
        stability=constant,
        radius=float(radius),
    )


def belongs(constant: Stability | None, problem: Problem, data: Data) -> bool:
    """Whether a constant is continuous, with its map, and was made for this problem and covariance."""
    gap = None if constant is None else constant.gap
    return gap is not None and gap.problem is problem and np.array_equal(gap.whitening, whitening(problem, data))


def continuous_constant(problem: Problem, data: Data, given: Stability | None) -> tuple[Stability, MapError]:
    """A continuous constant with its map: the given one if it belongs here."""
    k, m = problem.parameters.dimension, problem.observation_count
    if k > m:
        raise UncertifiedError(
            f"the class has k = {k} coordinates but there are only m = {m} observations, so C is infinite; expected "
            "k <= m: add sensors or take a smaller class"
        )
    if given is None or (given.scope == "continuous" and given.gap is None):
        # One that was loaded from a file has no adjoint states.
        given = stability_of(problem, data=data, guarantee="continuous")
    if given.scope != "continuous" or given.gap is None or given.constant.side != "upper":
        raise UncertifiedError(
            f"the stability constant is {given.scope}; a guaranteed radius needs "
            "stability(problem, data=data, guarantee='continuous')"
        )
    if not belongs(given, problem, data):
        raise InputError("the stability constant belongs to another problem or covariance; expected that of these data")
    return given, given.gap


def _parts(
    problem: Problem, data: Data, candidate: Candidate, exact: Prediction, state: str, *, closed: bool
) -> tuple[Bound, Bound, Bound]:
    y, rounding = data.whiten(data.values), problem.linearize().corrected_rounding(data)
    none = Bound(0.0, "upper", "the boundary values are those prescribed" if problem.states else "there is no state")
    if state == "recomputed" or not problem.states:
        misfit = _norm(exact.values - y) + rounding * (_norm(exact.values) + _norm(y))
        source = "rounding of the exact map" if closed else "energy errors of state and adjoint states"
        words = "norm of F c - y" if closed else "norm of H u - y, state recomputed"
        return Bound(misfit, "upper", words), Bound(exact.size, "upper", source), none
    u = problem.check_state(candidate.state)
    read = data.whiten(problem.predict(u, candidate.parameter))
    # A state that oscillates may cancel in an average, its rounding errors do not.
    size = _norm(read) + data.norm(problem.predict(np.abs(u), candidate.parameter))
    off = read - exact.values
    # Where the map is known in closed form, the error of the state is in one part.
    share = 0.0 if closed else _boundary_share(problem, data, u, off)
    misfit = _norm(read - y) + rounding * (size + _norm(y))
    missed = _norm((1.0 - share) * np.abs(off) + exact.errors) + exact.joint + rounding * size
    return (
        Bound(misfit, "upper", "norm of H u - y"),
        Bound(missed, "upper", "dual-weighted residual at every sensor"),
        Bound(share * _norm(off), "upper", "sensor values of the extended boundary error") if share > 0.0 else none,
    )


def _boundary_share(problem: Problem, data: Data, u: Array, off: Array) -> float:
    """How much of what a state misses at the sensors is due to its boundary values, between 0 and 1.

    Any extension E of the boundary error into the domain may be split off. That of the equation has sensor values e;
    the one with the part of e along ``H (u - S p)`` keeps the sum of both parts as small as their whole.
    """
    if not off.any():
        return 0.0
    (equation,) = problem.states
    lift = state_norm(problem, "energy").lift(u - equation.boundary.values, equation.free)
    edge = data.whiten(equation.sensors(lift))
    # Scaled, so that squares neither vanish nor overflow.
    unit = off / np.abs(off).max()
    return float(np.clip((edge / np.abs(off).max()) @ unit / (unit @ unit), 0.0, 1.0))


def _norm(values: Array) -> float:
    return float(np.linalg.norm(values))


@dataclass(frozen=True, kw_only=True)
class GuaranteedRadius(Rule):
    """``(data + pde + bc + delta) / sigma + ‖q - Pi q‖_Q``, with sigma and every part guaranteed.

    It contains every truth of the class whose *exact* solution explains the data within the noise level: sigma is a
    lower bound of the smallest singular value of the continuous problem, physics is measured sensor by sensor with
    adjoint states (`guaranteed_parts`), and discretization errors are part of it.

    Parameters
    ----------
    state
        ``"given"``: the candidate's state is judged, as in the paper. ``"recomputed"``: its parameter alone is, with
        the state that the equation gives it; the bound on the parameter holds as well, and is smaller for a state that
        does not fit.

    Notes
    -----
    Where an ingredient is not a proven bound, `certify` raises an `UncertifiedError` and `no_harm` keeps the baseline.

    What it compares: sigma and delta are the same for both candidates. For solved states of the class it compares
    ``misfit + mesh error at the sensors``; on a fine mesh, misfits alone.
    """

    state: str = "given"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.state not in STATES:
            raise InputError(f"state is {self.state!r}; expected one of {', '.join(map(repr, STATES))}")

    @property
    def uses_state(self) -> bool:
        """Only a given one."""
        return self.state == "given"

    @property
    def decides(self) -> tuple[str, ...]:
        """All but optimality; a recomputed state has the boundary values prescribed."""
        return ("data", "pde", *(("bc",) if self.uses_state else ()), "admissibility")

    def prepare(self, problem: Problem, data: Data, solvers: Mapping[str, Any] | None = None) -> GuaranteedJudge:
        """The judge, with the continuous stability constant."""
        if problem.forward is None:
            raise UncertifiedError(
                f"a guaranteed radius is not known for a {type(problem).__name__}; take a rule for nonlinear problems, "
                "such as ResidualRadius()"
            )
        return GuaranteedJudge(self, problem, data)

    def to_dict(self) -> dict[str, Any]:
        """Name and options, for the record."""
        weights = {"pde": 1.0, "bc": 1.0, "optimality": 0.0}
        return {**self._named(), "guarantee": "continuous", "state": self.state, "weights": weights}


class GuaranteedJudge(Judge):
    """Every part guaranteed, with one constant for all candidates."""

    rule: GuaranteedRadius

    def __init__(self, rule: GuaranteedRadius, problem: Problem, data: Data) -> None:
        super().__init__(rule, problem, data)
        self.constant = continuous_constant(problem, data, rule.stability)[0]
        check_explained_continuously(problem, data, self.constant)

    def certify(self, candidate: Candidate) -> Certificate:
        """See `Judge.certify`."""
        problem, data, split = self.problem, self.data, self.split(candidate)
        parts = guaranteed_parts(problem, data, candidate, state=self.rule.state, stability=self.constant, split=split)
        residuals = Residuals(
            data=parts.data,
            pde=parts.pde,
            bc=parts.bc,
            optimality=optimality_residual(problem, data, candidate, split),
            admissibility=parts.admissibility,
            reported=candidate.optimality is not None,
        )
        return self.certificate(
            candidate,
            Bound(parts.radius, "upper", type(self.rule).__name__),
            residuals=residuals,
            total=parts.data.value + parts.pde.value + parts.bc.value,
            scope="continuous",
            stability=parts.stability,
        )
