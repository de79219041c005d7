"""The evidence of one experiment: what data, noise and class say about the truth, in answer to a few questions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csc_matrix, hstack

from ..bound import Bound
from ..checks import Array
from ..errors import InputError, UncertifiedError
from ..problem.base import Problem
from ..problem.candidate import Candidate, check_candidate
from ..problem.data import Data
from ..problem.noise import Unknown
from ..shown import Shown, in_brief
from .affine import Affine, Estimates, Sight, Target
from .bounded import StrictBounds, strict_bounds
from .conformal import conformal_table
from .distances import Distances
from .functionals import Densities, Functional, as_functional, densities
from .interval import Interval, IntervalTable
from .maps import EvidenceMap, placed, smoothed_values
from .misfit import least_misfit, least_size
from .outliers import Outliers, outliers
from .refutation import Refutation, refutation
from .sensitivity import Sensitivity, sensitivity
from .sights import Observed, observed
from .unknown import with_estimated_deviation

# Bisections for the deviation at which an interval reaches a value.
BISECTIONS = 200
# Sets of weights that are kept for further data.
MOST_KEPT = 16


class Evidence(Distances, Shown):
    """What data, noise and class say about the truth; made by `evidence`.

    With whitened data ``b = T q + E w + e`` every answer is computed from m x m matrices, ``T L^-1 T'`` for the class,
    ``E E'`` for the model, and one vector for each functional. Lengths of intervals do not depend on the values of the
    data.

    Attributes
    ----------
    problem, data
        What was asked, and measured.
    scope
        ``"discrete"``: claims are about the parameters of the discretized problem.
    law
        What is known of the noise: that of the data, or with an estimated deviation.
    """

    def __init__(self, problem: Problem, data: Data, known: Observed) -> None:
        self.problem, self.data, self.scope = problem, data, "discrete"
        # With all data, and with those that are used: where the deviation is unknown it takes a part of them.
        self._base, self.law = known, data.law
        if isinstance(data.law, Unknown):
            known, self.law = with_estimated_deviation(known, data)
        self._known = known
        self._affine = Affine(known.sights, len(known.free), known.free, rounding=known.rounding)
        # Weights that were made already: they depend on the law of the noise, not on the values.
        self._made: dict[Any, Any] = {}
        self._shared: dict[Any, Any] = {}

    @property
    def confidence(self) -> float:
        """Of every claim that is asked for alone, or of a table: noise and what was learned from samples together."""
        return 1.0 - self.data.law.zeta - self.data.alpha - self.problem.parameters.alpha

    @property
    def assumption(self) -> str:
        """What is assumed of the truth, in words."""
        space = self.problem.parameters
        members = [part.words for part in self._base.parts]
        members += [each.words for each in (space.bounds, space.part) if each is not None]
        if space.ball is None:
            where = "a part in" if space.remainder is not None else "nothing outside of"
            members.insert(0, f"{where} the span of the {space.dimension} functions of the class")
        given = self.data.alpha + space.alpha == 0.0
        return ("every truth with " if given else "truths like the samples, with ") + " and ".join(members)

    def summary(self) -> dict[str, str]:
        """What it is for, and how well the class explains the data."""
        p = self.p_value
        misfit = "not tested" if p is None else f"p-value {p:.3g}" if self.law.zeta else f"consistent: {p > 0.0}"
        return {
            "evidence": f"{self.data.count} data, {self.scope}, {100.0 * self.confidence:.4g} %",
            "assumed": self.assumption,
            "problem": in_brief(self.problem),
            "fit": misfit,
        }

    def with_data(self, data: Data) -> Evidence:
        """The same sensors with other values; nothing is factorized anew.

        Parameters
        ----------
        data
            With the same noise and model error, as `Data.with_values` makes them.
        """
        self.problem.check_data(data)
        if not (self.data.weighs_like(data) and data.model is self.data.model):
            raise InputError("data have another noise; expected data.with_values(...), or a new evidence")
        other = self._with(data)
        other._shared = self._shared
        if data.law.fixed and self.data.law.fixed and data.law == self.data.law:
            other._made = self._made
        return other

    def _with(self, data: Data) -> Evidence:
        return Evidence(self.problem, data, self._base)

    @cached_property
    def _values(self) -> Array:
        return self._known.values(self.data)

    def interval(self, functional: Any, *, simultaneous: bool = False, samples: Any = None) -> Interval:
        """What the data say of one functional, fixed before the data.

        The estimate is ``a . b`` with the best affine weights: ``‖T' a - psi‖_{L^-1}`` times the radius of the class is
        its bias, ``‖a‖`` its deviation, and the interval ``a . b ± cv(bias / ‖a‖) ‖a‖`` with the quantile cv of
        ``|N(t, 1)|`` contains ``psi(q)`` for every q of the class with the confidence of the data. A remainder adds
        ``tau ‖(I - P)(T' a - psi)‖`` to the bias, a model error ``r ‖E' a‖``.

        Parameters
        ----------
        functional
            A `Mean`, `Value`, `Moment` or `Prediction`; the name of a region, or a function that picks one; or a vector
            of weights on the coordinates of the class.
        simultaneous
            True for a functional that was chosen after the data were seen, or that depends on them: such intervals
            hold for all functionals at once, and are longer.
        samples
            Truths, a dof vector in each row, or `Samples`: for truths like them instead of for every one, see
            `femcert.evidence.conformal`.
        """
        return self.table([functional], simultaneous=simultaneous, samples=samples)[0]

    def table(
        self, functionals: Sequence[Any], *, simultaneous: bool = False, samples: Any = None
    ) -> IntervalTable:
        """Intervals that hold together: each at its share of the level, or all of them simultaneous.

        Parameters
        ----------
        functionals
            As for `interval`; regions are asked for their means.
        simultaneous, samples
            See `interval`.
        """
        asked = self._asked(functionals)
        space = self.problem.parameters
        psi = csc_matrix(hstack([csc_matrix(each.weights(space)[:, None]) for each in asked]))
        if samples is not None:
            if simultaneous:
                raise InputError("for truths like samples, functionals are fixed before; expected simultaneous=False")
            return conformal_table(self.problem, self._base, self.data, asked, psi, samples, self._made)
        std = np.array([each.std for each in asked])
        return self._table([each.name for each in asked], psi, std, simultaneous, lambda: densities(asked, space))

    def map(self, radius: float, *, points: Any = None, simultaneous: bool = False) -> EvidenceMap:
        """Intervals of the parameter smoothed over discs, all over the domain; they hold together.

        Parameters
        ----------
        radius
            Of the discs. Smaller ones say more about places, and their intervals are longer.
        points
            Centres, ``(n, dimension)``; default: vertices about a radius apart.
        simultaneous
            See `interval`; else each disc has its share of the level.
        """
        discs, names, psi = smoothed_values(self.problem.parameters, radius, points)
        table = self._table(names, psi, np.zeros(len(names)), simultaneous, discs.representers)
        return placed(table, discs.points, radius)

    def _asked(self, functionals: Sequence[Any]) -> list[Functional]:
        asked = [as_functional(each, self.problem.parameters) for each in functionals]
        if not asked:
            raise InputError("functionals is empty; expected at least one, such as a Mean")
        return asked

    def _table(
        self, names: Sequence[str], psi: Any, std: Array, simultaneous: bool, functions: Densities
    ) -> IntervalTable:
        """Intervals for functionals on the dofs, sparse columns, whose densities are called for where they count."""
        zeta, law, ball = self.law.zeta, self.law, self.problem.parameters.ball
        strict = self._strict
        # Half of the level for each of two kinds of ends, which are then intersected; simultaneous ones are one event.
        zeta = zeta / 2.0 if strict is not None and not simultaneous else zeta
        about = 0.0 if ball is None or ball.centre is None else psi.T @ ball.centre
        estimates, limits, free = self._weights(psi, std, zeta / len(names), simultaneous, functions)
        middle = about + estimates.weights.T @ self._values
        half, model = estimates.half_length, self._systematic(estimates)
        deviation = np.hypot(law.deviation(estimates.weights), std)
        slack = self._slack(free, estimates.weights)
        ends = np.stack([middle - half - slack, middle + half + slack])
        if strict is not None:
            level = law.size(self._affine.count, zeta)
            found = strict.intersected(ends - about, psi, self._values, level, estimates.weights)
            ends = np.where(std > 0.0, ends, about + found)
            middle, half = ends.mean(axis=0), np.ptp(ends, axis=0) / 2.0
        claim = f"for {self.assumption} ({self.scope})" + "; also if chosen after the data" * simultaneous
        claim += self._contradiction
        return IntervalTable(
            tuple(
                Interval(
                    name=name,
                    lower=self._end(ends[0, i], "lower"),
                    upper=self._end(ends[1, i], "upper"),
                    estimate=float(middle[i]),
                    half_length=float(half[i]),
                    limit=None if limits is None or std[i] else Bound(float(limits[i]), "lower", "fixed lengths"),
                    bias=float(estimates.biases[:, i].sum()),
                    model=float(model[i]),
                    deviation=float(deviation[i]),
                    confidence=self.confidence,
                    claim=claim,
                )
                for i, name in enumerate(names)
            )
        )

    @cached_property
    def _strict(self) -> StrictBounds | None:
        return strict_bounds(self._known, self.data)

    @property
    def _contradiction(self) -> str:
        """What is to be said beside every claim where nothing in the class explains the data."""
        p = self.p_value
        if p is None or p > self.law.zeta:
            return ""
        return f"; but the data contradict class, model or noise (p-value {p:.2g})"

    @property
    def _bounded(self) -> bool:
        """Whether half of the level goes to ends that hold for truths within bounds."""
        return self._strict is not None

    def _end(self, value: float, side: str) -> Bound:
        return self._bound(value, side, "affine interval", signed=True)

    def _bound(self, value: float, side: str, source: str, *, signed: bool = False) -> Bound:
        """With the confidence, or an estimate where the noise is not known well enough to prove anything."""
        if not self.law.proven:
            return Bound(float(value), "estimate", source, signed=signed)
        return Bound(float(value), side, source, self.confidence, signed=signed)

    def _weights(
        self, psi: Any, std: Array, zeta: float, simultaneous: bool = False, functions: Densities | None = None
    ) -> tuple[Estimates, Array | None, Array]:
        """The best weights for functionals on the dofs, the limits, and what the functionals say of free directions."""
        law, factor = self.law, None
        key = (psi.data.tobytes(), psi.indices.tobytes(), psi.indptr.tobytes(), std.tobytes(), zeta, simultaneous)
        if key in self._made:
            return self._made[key]
        targets, free = self._known.targets(psi)
        if simultaneous:
            if np.any(std > 0.0):
                raise InputError("the noise of a reading that was not made has no simultaneous interval")
            # Without sets the weights lie in the range of A, and see only this part of the noise.
            factor = law.factor(self._affine.count if self._known.parts else self._affine.rank, law.zeta)
        found = self._affine.estimates(targets, free, law, zeta, simultaneous=factor, added=std)
        found = self._certified(found, functions, std, zeta, factor)
        limits = None if simultaneous else self._limits(psi, targets, free)
        if len(self._made) >= MOST_KEPT:
            self._made.pop(next(iter(self._made)))
        self._made[key] = found, limits, free
        return self._made[key]

    def _certified(
        self, found: Estimates, functions: Densities | None, std: Array, zeta: float, factor: float | None
    ) -> Estimates:
        """With biases that hold in the scope."""
        return found

    def _limits(self, psi: Any, targets: Sequence[Target], free: Array) -> Array | None:
        apart = self.law.apart(self.law.zeta)
        if apart is None:
            return None
        return self._affine.limits(targets, free, apart) if self._strict is None else self._strict.limits(psi, apart)

    def _systematic(self, estimates: Estimates) -> Array:
        """The part of the bias that is due to the model."""
        rows = [estimates.biases[i] for i, part in enumerate(self._known.parts) if part.systematic]
        return np.sum(rows, axis=0) if rows else np.zeros(estimates.biases.shape[1])

    def _slack(self, free: Array, weights: Array) -> Array:
        """What rounding leaves of the condition that free directions have no bias, for truths that the data allow."""
        A, known = self._known.free, self._known
        if not A.shape[1]:
            return np.zeros(weights.shape[1])
        left = np.abs(A.T @ weights - free)
        singular = np.linalg.svd(A, compute_uv=False)
        if not singular[-1] > 0.0:
            return np.zeros(weights.shape[1])
        size = float(np.linalg.norm(self._values)) + self.law.size(len(self._values), self.law.zeta)
        size += sum(sight.reach for sight in known.sights)
        reach = size / float(singular[-1])
        return np.asarray((np.linalg.norm(left, axis=0) + known.loose * np.linalg.norm(weights, axis=0)) * reach)

    @property
    def _unreached(self) -> list[Sight]:
        """The sets as seen in the part of the data that free directions do not reach."""
        project = self._affine.projected
        return [Sight(sight.radius, project(sight.gram), sight.rounding) for sight in self._known.sights]

    @cached_property
    def _misfit(self) -> float:
        """The least misfit of the class, from below, but for rounding."""
        found = least_misfit(self._unreached, self._affine.project(self._values))
        return max(found - self._known.rounding - self._known.loose * float(np.linalg.norm(self._values)), 0.0)

    @property
    def p_value(self) -> float | None:
        """How well anything in the class explains the data: the chance of a misfit as large, at most.

        ``P(chi2 >= min ‖T q + E w - b‖²)`` over the class; tiny: the model, the class or the noise is not as said. For
        a noise level 1 or 0: whether the class explains the data within it. None where the noise is not known apart
        from the data.
        """
        return self.law.tail(self._misfit, self._affine.dimension)

    def explains(self, parameter: Any) -> bool:
        """Whether a parameter may be the truth: what it predicts is within noise and model error, at the confidence.

        Parameters
        ----------
        parameter
            A dof vector; it need not lie in the class.
        """
        q = self.problem.check_parameter(parameter)
        problem, data, known = self.problem, self.data, self._known
        state = problem.solve(q)
        misfit = known.turned(data.whiten(problem.predict(state, q) - data.values))
        lost = problem.lost_to_rounding(data, state, q) + problem.solved_error(data, state, q)
        size = 1.0 if known.turn is None else float(np.linalg.norm(known.turn, 2))
        level = self.law.size(len(misfit), self.law.zeta) + known.rounding + size * lost
        level += sum(part.sight.reach for part in known.parts if part.systematic)
        return bool(np.linalg.norm(misfit) <= level)

    @cached_property
    def least_norm(self) -> Bound:
        """The norm of the ball that the truth has at least, if the data are to be explained; see `Evidence.breakdown`.

        ``min ‖q - q0‖_L`` over ``‖T q + E w - b‖ <= chi_m(1 - zeta)``, ``‖w‖ <= r``: no smaller radius can be assumed.
        From a dual point: ``(d . b - chi ‖d‖ - r ‖E' d‖) / ‖T' d‖_{L^-1}`` for d with ``A' d = 0``.
        """
        ball = self.problem.parameters.ball
        if ball is None:
            raise UncertifiedError("least_norm needs a ball, space.within_ball(radius)")
        law = self.law
        level = law.size(self._affine.dimension, law.zeta) + self._known.rounding
        found = self._least_size(level)
        # The radius of the ball does not enter, so that it need not be right.
        if not law.proven:
            return Bound(found, "estimate", "least norm")
        return Bound(found, "lower", "least norm", self.confidence + ball.alpha)

    def _least_size(self, level: float) -> float:
        return least_size(self._unreached, self._affine.project(self._values), level)

    def breakdown(self, functional: Any, value: float) -> Bound:
        """The norm that the truth would need for the functional to lie on the other side of a value.

        The weights are those of the radius of the class; intervals about them are nested in the radius. So "the truth
        is on this side of the value, or its norm exceeds the breakdown" is false with probability zeta at most.

        Parameters
        ----------
        functional
            As for `interval`.
        value
            The number in question, often 0.

        Returns
        -------
        Bound
            From below: 0 where noise alone reaches the value, infinite where no bias does.
        """
        law, space = self.law, self.problem.parameters
        if space.ball is None:
            raise UncertifiedError("a breakdown needs a ball, space.within_ball(radius)")
        each = as_functional(functional, space)
        psi = csc_matrix(each.weights(space)[:, None])
        estimates, _, free = self._weights(psi, np.zeros(1), law.zeta, functions=lambda: densities([each], space))
        middle = float(estimates.weights[:, 0] @ self._values)
        if space.ball.centre is not None:
            middle += each.value(space, space.ball.centre)
        distance = abs(middle - float(value)) - float(self._slack(free, estimates.weights)[0])
        # What does not grow with the radius: other sets, rounding.
        rest, deviation = float(estimates.biases[1:, 0].sum()), float(law.deviation(estimates.weights)[0])
        unit = float(estimates.biases[0, 0]) / space.ball.radius
        low, high = 0.0, max(distance, 0.0)
        for _ in range(BISECTIONS):
            bias = (low + high) / 2.0
            inside = law.half_length(np.array([bias + rest]), np.array([deviation]), law.zeta)[0] <= distance
            low, high = (bias, high) if inside else (low, bias)
        found = low / unit if unit > 0.0 else (np.inf if low > 0.0 else 0.0)
        return self._bound(found, "lower", "breakdown")

    def sensitivity(self, functional: Any, radii: Any = None, **options: Any) -> Sensitivity:
        """Intervals as a function of the radius of the ball; see `Sensitivity` for arguments and claims."""
        return sensitivity(self, functional, radii, **options)

    def outliers(self) -> Outliers:
        """Sensors that contradict the others, each tested against its best affine prediction from them.

        With probability zeta at most any of them is named, if the noise is as said in all of them.
        """
        return outliers(self._known, self.data, self.law, self._known.rounding)

    def without_outliers(self, most: int = 1) -> Evidence:
        """The evidence of the other sensors, where up to `most` of them contradict the others.

        Parameters
        ----------
        most
            Fixed before the data. Every set of s of m sensors that might be left out has the level
            ``zeta / ((most + 1) C(m, s))``, so that all claims hold with the confidence of the data, as if the sensors
            had been chosen beforehand: intervals are longer for it also where no sensor is left out.
        """
        picked = self.outliers().indices[:most]
        data = self.data.leaving_out(picked, most)
        return Evidence(self.problem, data, observed(self._base.forward, data))

    def refute(self, candidate: Candidate, regions: Sequence[Any], *, simultaneous: bool = False) -> Refutation:
        """Which of its claims about regions the data refute.

        Parameters
        ----------
        candidate
            Any candidate of the problem.
        regions
            Functionals, as for `table`.
        simultaneous
            True where the regions were chosen after looking at candidates or data.
        """
        check_candidate(self.problem, candidate)
        asked = self._asked(regions)
        values = [each.value(self.problem.parameters, candidate.parameter) for each in asked]
        return refutation(candidate.name, self.table(asked, simultaneous=simultaneous), values)
