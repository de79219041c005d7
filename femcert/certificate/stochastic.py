"""The paper's stochastic radius: the physics residual from random points, with high probability."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..bound import Bound
from ..checks import Array, count
from ..errors import CandidateError, InputError, UncertifiedError
from ..problem.base import Problem
from ..problem.candidate import Candidate
from ..problem.candidate_functions import check_frozen
from ..problem.data import Data
from ..residual import Residuals
from ..residual.residuals import strong_field
from .certificate import Certificate
from .confidence import BOUNDS, ROUNDING, check_zeta
from .derivatives import check_derivatives
from .pointwise import PointwiseResidual, pointwise_residual
from .sampling import Plan, element_envelopes
from .weighted import WeightedJudge, WeightedRule

SAMPLING = ("uniform", "importance")
# Of a fresh seed: a whole number in JSON wherever it is read.
SEED_BITS = 53


@dataclass(frozen=True, kw_only=True)
class StochasticRadius(WeightedRule):
    """The paper's R_stoch: R_delta with the physics residual replaced by its high-probability upper value.

    The strong residual of the frozen candidate is sampled at independent points, drawn here after the candidate is
    fixed. It is the L2 representative of the discrete residual, a finite-element function whose envelope is computed;
    or, for a candidate made of functions that offer their derivatives (or their residual) and a sure envelope, that of
    the state's own function with the parameter that is handed out, the interpolant (`Candidate.from_functions`).
    The points are random, so that nothing need be known of the functions between them, but for the envelope: it is what
    the caller asserts, and the claim about functions rests on it. A sample above it is noticed, a peak between samples
    is not.

    With probability ``1 - zeta`` the sampled number is above the root mean square of that residual over all of Omega;
    R_delta takes the mean over the free dofs only, so that on a coarse mesh R_stoch may lie below it. Whether the
    radius is a bound of the discrete problem is decided without it, as for every weighted rule: the certificate's side
    says.

    Parameters
    ----------
    points
        Number of points M.
    zeta
        Probability that the bound fails, for each candidate. Two of them hold with probability ``1 - 2 zeta``.
    seed
        Of the draw, together with the values of the candidate: each candidate has points of its own. The claim is for
        points that are independent of the candidate, so the seed must not have been used to make it. None takes a fresh
        one from the operating system when the rule is applied, which the record of a selection shows.
    bound
        ``"hoeffding"``, the paper's; ``"bernstein"``, which profits from samples that vary little; ``"betting"``, the
        tightest of the three at any number of points that makes sense.
    sampling
        ``"uniform"`` on the domain, or ``"importance"``: elements are drawn by the largest square that the residual can
        have on them (for functions with one envelope, half of them by the mean squares of the interpolant), and samples
        are weighted, so that the bounds count the mean of the squared envelope instead of its maximum.

    Notes
    -----
    What it compares: as `ResidualRadius`, but with what the sample leaves open of the physics. For solved states of the
    class that is misfit plus a term that falls with the number of points and grows with the envelope of the residual.
    """

    points: int = 1000
    zeta: float = 0.05
    seed: int | None = 0
    bound: str = "hoeffding"
    sampling: str = "uniform"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pde_norm != "rms":
            raise InputError(f"pde_norm is {self.pde_norm!r}; the stochastic radius samples the strong residual itself")
        object.__setattr__(self, "points", count(self.points, "points"))
        if self.seed is not None:
            object.__setattr__(self, "seed", count(self.seed, "seed", least=0))
        object.__setattr__(self, "zeta", check_zeta(self.zeta))
        for name, known in (("bound", tuple(BOUNDS)), ("sampling", SAMPLING)):
            if getattr(self, name) not in known:
                raise InputError(f"{name} is {getattr(self, name)!r}; expected {' or '.join(map(repr, known))}")

    @property
    def failure_probability(self) -> float:
        """The rule's zeta, for each candidate."""
        return self.zeta

    def shared_by(self, count: int) -> StochasticRadius:
        """``zeta / count`` for each certificate, since each has points of its own."""
        return self if count == 1 else replace(self, zeta=self.zeta / count)

    def with_weights(self, problem: Problem, data: Data) -> StochasticRadius:
        """With a seed, the same for all candidates."""
        return self if self.seed is not None else replace(self, seed=secrets.randbits(SEED_BITS))

    def judge(self, problem: Problem, data: Data) -> StochasticJudge:
        """See `WeightedRule.judge`."""
        return StochasticJudge(self.with_weights(problem, data), problem, data)

    def to_dict(self) -> dict[str, Any]:
        """Name, weights and options, for the record."""
        options: dict[str, Any] = {"points": self.points, "zeta": self.zeta, "seed": self.seed, "bound": self.bound}
        if self.sampling != "uniform":
            options["sampling"] = self.sampling
        return {**super().to_dict(), **options}


class StochasticJudge(WeightedJudge):
    """Draws the points after a candidate is fixed."""

    rule: StochasticRadius

    def certify(self, candidate: Candidate) -> Certificate:
        """The certificate of a candidate, from points that are drawn here.

        Raises
        ------
        CandidateError
            Its functions are no longer those it was made of (a network that was trained on), offer derivatives that are
            not theirs, or answer by the batch that a point is in; a sample is above its envelope.
        """
        check_frozen(self.problem, candidate)
        certificate = super().certify(candidate)
        check_derivatives(self.problem, candidate, np.random.default_rng([*self._entropy(candidate), 1]))
        return certificate

    def physics(self, candidate: Candidate, residuals: Residuals) -> Bound:
        """The root of an upper confidence bound of the mean square (hp-pde-residual)."""
        problem, rule = self.problem, self.rule
        if not problem.states:
            return residuals.pde
        mesh, exact = problem.basis.mesh, pointwise_residual(problem, candidate)
        values = np.zeros((problem.basis.N, 1)) if exact is not None else _field(problem, candidate)
        bounds = element_envelopes(problem.basis, values) if exact is None else exact.envelopes
        plan = self._plan(candidate, bounds, exact)
        rng = np.random.default_rng(self._entropy(candidate))
        points, columns = plan.draw(mesh, rule.points, rng)
        if exact is None:
            sampled = points.values(problem.basis, values)[np.arange(rule.points), columns]
        else:
            sampled = exact(points)
            exact.check_repeated(points, sampled, np.random.default_rng(rule.seed), candidate.name)
        with np.errstate(over="ignore"):
            squares = plan.weight[points.cells, columns] * sampled**2
        if not squares.max() <= plan.envelope * (1.0 + ROUNDING):
            came = f"|residual| reaches {np.abs(sampled).max():.4g}"
            came += "" if exact is None else " with the interpolated parameter"
            raise CandidateError(f"the envelope of {candidate.name!r} is not one: at the sampled points {came}")
        top = float(BOUNDS[rule.bound](squares, plan.envelope, rule.zeta))
        what = "" if exact is None else " of the functions u and q_h within the declared envelope"
        how = "" if rule.sampling == "uniform" else " by importance"
        where = f"at {rule.points} random points{how}"
        source = f"RMS{what} {where}, {rule.bound}"
        return Bound(float(np.sqrt(top)), "upper", source, 1.0 - rule.zeta)

    def _entropy(self, candidate: Candidate) -> list[int]:
        """What the draw starts from: the seed, and the candidate's values with the residual of its functions."""
        problem, seed = self.problem, self.rule.seed
        assert seed is not None
        found, exact = _values_hash(candidate), pointwise_residual(problem, candidate)
        if exact is not None:
            found = hashlib.sha256(found.encode() + exact(exact.middles).astype("<f8").tobytes()).hexdigest()
        return [seed, int(found, 16)]

    def _plan(self, candidate: Candidate, bounds: Array, exact: PointwiseResidual | None) -> Plan:
        problem, mesh = self.problem, self.problem.basis.mesh
        if self.rule.sampling == "uniform":
            return Plan.uniform(mesh, bounds)
        indicators = None
        if exact is not None and exact.even_envelope:
            field = _field(problem, candidate)[:, 0]
            squares = np.asarray(problem.basis.interpolate(field)) ** 2 * problem.basis.dx
            indicators = (squares.sum(axis=1) / problem.basis.dx.sum(axis=1))[:, None]
        return Plan.importance(mesh, bounds, indicators)


def _field(problem: Problem, candidate: Candidate) -> Array:
    """Dof values of the discrete strong residual, a column for each time."""
    q, state = candidate.parameter, candidate.state
    if state is None:
        state = problem.solve(q)
    states = problem.states
    if state is None or len(states) != 1:
        raise UncertifiedError(f"the stochastic radius samples the residual of one state; there are {len(states)}")
    free = states[0].free
    field = strong_field(problem, state, q).reshape(len(free), -1)
    values = np.zeros((problem.basis.N, field.shape[1]))
    values[free] = field
    return values


def _values_hash(candidate: Candidate) -> str:
    """SHA-256 of the dof values of state and parameter, in double precision where they are real."""
    total = hashlib.sha256()
    for values in (candidate.state, candidate.parameter):
        array = np.zeros(0) if values is None else np.asarray(values)
        array = array if np.iscomplexobj(array) else array.astype("<f8")
        total.update(f"{array.dtype.str}{array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    return total.hexdigest()
