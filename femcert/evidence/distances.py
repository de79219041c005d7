"""Distances in the norm of Q: a centre, radii of candidates, and what can be promised at all."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np
from scipy.sparse import csc_matrix
from scipy.special import ndtri

from ..bound import Bound
from ..checks import Array
from ..errors import UncertifiedError
from ..problem.base import Problem
from ..problem.candidate import Candidate
from ..problem.data import Data
from ..problem.noise import Gaussian, Noise
from ..stability.pencil import Pencils
from .affine import Affine
from .consistent import Fit, fit, inconsistent
from .feasible import Feasible, discrete_set
from .functionals import Densities
from .hidden import hidden_on_ball, hidden_on_span, pair_on_ball, pair_within_bounds
from .interval import IntervalTable
from .ridge import Ridge
from .sights import Observed

# Up to so many coordinates the intersection of data and ball is made, where that is valid.
MOST_JOINT = 500


class Centre(Candidate):
    """A candidate that numpy takes for its parameter, a dof vector."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.parameter, dtype=dtype)


class Distances:
    """The part of `Evidence` that measures distances.

    On a ball the truth is within a length of the centre that does not depend on the values of the data: the worst-case
    bias of the centre over the ball, what errors of the model may add, and a quantile of ``‖W e‖_Q`` for the noise e,
    W the map from data to the centre (see `Ridge`). On a span it lies in the ellipsoid
    ``‖A (x - x_LS)‖ <= level`` about the least-squares solution, whose size does not depend on the misfit; that is
    what `Evidence.p_value` tests.
    """

    problem: Problem
    data: Data
    law: Noise
    scope: str
    _base: Observed
    _known: Observed
    _affine: Affine
    # What further data with the same noise have in common.
    _shared: dict[Any, Any]

    @cached_property
    @abstractmethod
    def _values(self) -> Array: ...

    @cached_property
    @abstractmethod
    def _misfit(self) -> float: ...

    @abstractmethod
    def _table(
        self, names: Sequence[str], psi: Any, std: Array, simultaneous: bool, functions: Densities
    ) -> IntervalTable: ...

    @abstractmethod
    def _slack(self, free: Array, weights: Array) -> Array: ...

    @abstractmethod
    def _bound(self, value: float, side: str, source: str, *, signed: bool = False) -> Bound: ...

    @property
    def noise_level(self) -> float:
        """What noise and model error amount to at most, in the norm of Y; estimated where that of the data is."""
        turn = self._known.turn
        if turn is None:
            return self.data.noise_level
        systematic = 0.0 if self.data.model is None else self.data.model.norm
        return self.law.size(len(turn), self.law.zeta) / float(np.linalg.norm(turn, 2)) + systematic

    @cached_property
    def centre(self) -> Centre:
        """A reconstruction about which the truth is known best, and a baseline in its own right.

        On a ball ridge regression in its norm, with a multiplier that is fixed before the data: the one with which
        `best_radius` is least. On a span the least-squares solution.

        Returns
        -------
        Candidate
            With the state of its parameter; numpy takes it for the parameter.
        """
        space = self.problem.parameters
        if space.ball is None:
            q = np.asarray(self._known.directions @ self._ellipsoid.centre)
        else:
            q = self._ridge.centre(self._values)
            q = q if space.ball.centre is None else q + space.ball.centre
        return Centre(self.problem.solve(q) if self.problem.states else None, q, name="centre", mesh=self.problem.mesh)

    def radius(self, parameter: Any) -> Bound:
        """The distance in Q of a parameter from the truth, from above, for all parameters at once.

        On a ball the distance from the centre plus a length fixed before the data; on a span the distance to the
        farthest point of the confidence ellipsoid; with what lies outside of the span on either side. For noise within
        its level on a ball of few coordinates also the distance to the farthest consistent truth, if that is less.

        Parameters
        ----------
        parameter
            A dof vector, or a candidate that numpy takes for one; it may depend on the data in any way.
        """
        q = self.problem.check_parameter(parameter)
        self._check_explained()
        if self.problem.parameters.ball is None:
            return self._bound(self._of_span.farthest(q)[0], "upper", "farthest truth of the confidence ellipsoid")
        value, source = self._from_centre(q), "distance from the centre, and the centre's from the truth"
        if self._consistent is not None:
            # Nothing is random: whichever is smaller.
            farthest = self._consistent.farthest(q)[0]
            value, source = min((value, source), (farthest, "farthest consistent truth"))
        return self._bound(value, "upper", source)

    @cached_property
    def best_radius(self) -> tuple[Bound, Bound]:
        """What can be promised at all.

        Returns
        -------
        lower
            No procedure whose radius is fixed before the data can promise less: the norm of a truth that the data hide,
            ``‖T q‖ <= z_{1-zeta}`` in the class. For a noise level, no procedure can promise less for these data: half
            the distance of two consistent truths. An estimate where the deviations are not known.
        upper
            The radius of the centre.
        """
        apart = self.law.apart(self.law.zeta)
        level = float(max(-ndtri(self.law.zeta), 0.0)) if apart is None else max(apart, 0.0)
        source = "norm of a truth that the data hide" if self.law.zeta else "half the distance of two consistent truths"
        upper, value = self.radius(self.centre), self._hidden(level)
        if apart is not None and self.law.proven:
            # A statement about all procedures at this level of the noise: nothing in it is random.
            return Bound(value, "lower", source), upper
        return Bound(value, "estimate", source), upper

    def least_along(self, d: Array, *, zeta: float | None = None) -> tuple[float, Array]:
        """What ``<d, q>_Q`` is at least for the truth q, with the confidence, and a field with this value.

        Parameters
        ----------
        d
            A field (dof vector). It may depend on the data in any way: on a ball that is the simultaneous interval
            about ``<d, .>``, on a span the extent of the ellipsoid less ``tau`` times what lies outside of the span.
        zeta
            For a d that does not depend on the data, and Gaussian noise: the level of the one-sided bound with the
            best weights, ``a . b - bias - z_{1-zeta} ‖a‖``.
        """
        self._check_explained()
        space, known = self.problem.parameters, self._known
        psi = np.asarray(space.weight @ d)
        centre = np.asarray(self.centre)
        if zeta is not None:
            value = self._one_sided(psi, zeta)
        elif space.ball is not None:
            column = csc_matrix(psi[:, None])
            value = self._table(["difference"], column, np.zeros(1), True, lambda: None)[0].lower.value
        else:
            t = known.directions.T @ psi
            outside = space.norm(space.project(d)[1]) * (0.0 if space.remainder is None else space.remainder.size)
            value = -float(self._ellipsoid.support(-t[None])[0][0]) - outside * (1.0 + 1e-9)
        v = np.asarray(known.directions @ (known.directions.T @ psi))
        v = v if known.smooth is None else known.smooth(psi[:, None])[:, 0]
        along = float(psi @ v)
        return value, centre + v * ((value - float(psi @ centre)) / along if along > 0.0 else 0.0)

    def _check_explained(self) -> None:
        """Noise within its level leaves nothing where the class does not explain the data."""
        if self.scope != "discrete":
            raise UncertifiedError(f"distances are known for the discretized problem; the scope is {self.scope!r}")
        level = self.law.size(len(self._values), self.law.zeta)
        if not self.law.zeta and self._misfit > level:
            raise inconsistent(level, self._misfit)

    def _one_sided(self, psi: Array, zeta: float) -> float:
        """For a functional on the dofs that was fixed before the data."""
        if not isinstance(self.law, Gaussian) or not self.law.fixed or self._known.turn is not None:
            raise UncertifiedError("a one-sided bound needs Gaussian noise of known deviations; expected std=")
        # A part of the level may be spent, on the choice of sensors.
        zeta *= 1.0 - self.law.spent / self.law.zeta
        ball = self.problem.parameters.ball
        targets, free = self._known.targets(csc_matrix(psi[:, None]))
        factor = float(-ndtri(zeta)) * (1.0 + 1e-9)
        found = self._affine.estimates(targets, free, self.law, zeta, simultaneous=max(factor, 0.0))
        middle = float(found.weights[:, 0] @ self._values)
        middle += 0.0 if ball is None or ball.centre is None else float(psi @ ball.centre)
        return middle - float(found.half_length[0] + self._slack(free, found.weights)[0])

    def _hidden(self, level: float) -> float:
        space, known = self.problem.parameters, self._known
        if space.ball is None:
            # Without noise at random the least misfit is no part of what is left open.
            missed = 0.0 if self.law.zeta else float(self._ellipsoid.least + self._ellipsoid.allowance)
            return hidden_on_span(known, level, missed)
        key = ("hidden", level, None if known.turn is None else known.turn.tobytes())
        if key not in self._shared:
            self._shared[key] = hidden_on_ball(self.problem, self.data, known, self._pencils, level)
        q = self._shared[key]
        if self.law.zeta:
            return space.norm(q) if space.bounds is None else pair_within_bounds(space, q)
        if space.bounds is not None:
            return 0.0

        def observe(fields: Array) -> Array:
            return self.data.whiten(known.forward.apply(fields))

        return pair_on_ball(known, self._values, q, observe(q[:, None])[:, 0], level, observe)

    @property
    def _pencils(self) -> Pencils:
        """The same for all data, whatever their values are."""
        if "pencils" not in self._shared:
            self._shared["pencils"] = Pencils(self._base.forward, self.data)
        return self._shared["pencils"]

    @cached_property
    def _ridge(self) -> Ridge:
        # Where the law depends on the data, multipliers are chosen as if all deviations were one.
        law = self.law if self.law.fixed else Gaussian(self.law.zeta)
        if self._known.turn is not None:
            return Ridge(self._known, self._pencils, law)
        key = ("ridge", law)
        if key not in self._shared:
            self._shared[key] = Ridge(self._known, self._pencils, law)
        return cast(Ridge, self._shared[key])

    def _from_centre(self, q: Array) -> float:
        space, ridge = self.problem.parameters, self._ridge
        split = space.split(q)
        tau = 0.0 if space.remainder is None else space.remainder.size
        level = self.law.size(len(self._values), self.law.zeta)
        about = np.asarray(space.matrix @ split.coordinates) - np.asarray(self.centre)
        inside = space.norm(about) + ridge.length(self.law) + ridge.rounding(self._values, level)
        rounding = self.problem.rounding * (split.size + space.norm(np.asarray(self.centre)))
        return float(np.hypot(inside, split.outside + tau)) + rounding

    @cached_property
    def _ellipsoid(self) -> Fit:
        """Of the coordinates that are orthonormal in Q, on a span."""
        known, law, forward = self._known, self.law, self._known.forward
        A = known.free
        rounding = forward.rounding_of(self.data)
        lost = known.rounding + rounding * float(np.linalg.norm(self._values))
        U = np.linalg.svd(A, full_matrices=False)[0]
        # What remainder and model errors add to the noise: in the range of A, and in all data.
        grams = [(sight.radius, sight.gram) for sight in known.sights]
        shift = sum(r * float(np.sqrt(np.linalg.norm(U.T @ K @ U, 2))) for r, K in grams)
        whole = law.size(len(A), law.zeta) + sum(r * float(np.sqrt(np.linalg.norm(K, 2))) for r, K in grams)
        found = fit(A, self._values, whole, lost=lost, error=known.loose)
        if not law.zeta:
            return found
        return found.about_least_squares(law.shifted_size(A.shape[1], shift, law.zeta))

    @cached_property
    def _consistent(self) -> Feasible | None:
        """For noise within its level, a ball and few coordinates: all truths that explain the data."""
        space = self.problem.parameters
        few = space.dimension <= MOST_JOINT and space.remainder is None
        return discrete_set(self.problem, self.data) if few and not self.law.zeta else None

    @cached_property
    def _of_span(self) -> Feasible:
        space = self.problem.parameters
        tau = 0.0 if space.remainder is None else space.remainder.size

        def outside(q: Array, c: Array) -> float:
            return space.norm(q - np.asarray(space.matrix @ c)) + tau

        return Feasible(self.problem, self.data, cast(Any, self._ellipsoid), "discrete", space.root, outside)
