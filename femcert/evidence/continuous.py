"""Evidence on the continuous problem: truths are functions of H1, and data come from the equation, not from a mesh."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from ..checks import Array
from ..errors import UncertifiedError
from ..problem.base import Problem
from ..problem.data import Data
from .affine import Affine, Estimates, Target
from .dual_bias import DualBias, missing
from .evidence import Evidence
from .functionals import Densities
from .interval import IntervalTable
from .misfit import misfit_direction, size_direction
from .sights import Observed, Part

# What is known of the continuous problem; whatever else an `Evidence` answers is refused.
ANSWERED = frozenset(
    ("assumption", "breakdown", "confidence", "explains", "interval", "least_norm", "map", "p_value", "refute")
) | {"summary", "table", "with_data"}


class ContinuousEvidence(Evidence):
    """The evidence of `femcert.evidence` with ``guarantee="continuous"``.

    The weights are those of the mesh, chosen with the errors of the adjoint states as a further set; their biases are
    those of the equation, see `femcert.evidence.dual_bias`. Functionals must have densities that are known on the
    elements, as a `Mean` or a `Value` has.
    """

    def __init__(self, problem: Problem, data: Data, known: Observed, bias: DualBias | None = None) -> None:
        super().__init__(problem, data, known)
        self.scope = "continuous"
        self._bias = DualBias(problem, data) if bias is None else bias
        # Bounds of values are not used: they would be those of the mesh.
        self._strict = None
        seen = self._bias.sight
        turn = np.eye(len(seen.gram)) if self._known.turn is None else self._known.turn
        errors = Part("", replace(seen, gram=turn @ seen.gram @ turn.T), _nothing(len(turn)))
        self._known = replace(self._known, parts=(*self._known.parts, errors))
        self._affine = Affine(self._known.sights, len(turn), rounding=self._known.rounding)

    def _with(self, data: Data) -> ContinuousEvidence:
        return ContinuousEvidence(self.problem, data, self._base, self._bias)

    def table(
        self, functionals: Sequence[Any], *, simultaneous: bool = False, samples: Any = None
    ) -> IntervalTable:
        """See `Evidence.table`; without samples."""
        if samples is not None:
            raise missing("claims for every truth of a ball, without samples")
        return super().table(functionals, simultaneous=simultaneous)

    def _white(self, weights: Array) -> Array:
        """Weights on all whitened data, for columns."""
        turn = self._known.turn
        return weights if turn is None else np.asarray(turn.T @ weights)

    def _certified(
        self, found: Estimates, functions: Densities | None, std: Array, zeta: float, factor: float | None
    ) -> Estimates:
        functionals, ball, law = functions and functions(), self.problem.parameters.ball, self.law
        assert ball is not None
        if functionals is None or functionals.loads is not None:
            raise missing("functionals with densities that are known on the elements, such as Mean and Value")
        biases, white = found.biases.copy(), self._white(found.weights)
        # Of the adjoint states too, which the weights were chosen by.
        biases[0], biases[-2] = ball.radius * self._bias.of(white, functionals), 0.0
        biases[-1] += self._bias.beside(white)
        bias, deviation = biases.sum(axis=0), law.deviation(found.weights)
        if factor is not None:
            return replace(found, biases=biases, half_length=bias + factor * deviation)
        return replace(found, biases=biases, half_length=law.half_length(bias, np.hypot(deviation, std), zeta))

    def _limits(self, psi: Any, targets: Any, free: Array) -> None:
        """None: they are those of the mesh."""
        return None

    @cached_property
    def _misfit(self) -> float:
        """The misfit in one direction of the data, less what the class reaches there."""
        ball, b = self.problem.parameters.ball, self._values
        assert ball is not None
        d = misfit_direction(self._known.sights, b)
        size = float(np.linalg.norm(d))
        if not size > 0.0:
            return 0.0
        reach = ball.radius * float(self._bias.of(self._white(d[:, None]))[0])
        return max((float(d @ b) - reach - self._rest(d)) / size, 0.0)

    def _rest(self, d: Array) -> float:
        """What errors of the model, of boundary values and of rounding move ``d . b`` by."""
        sights = [part.sight for part in self._known.parts if part.systematic]
        reach = sum(sight.radius * float(np.sqrt(max(float(d @ sight.gram @ d), 0.0))) for sight in sights)
        beside = float(self._bias.beside(self._white(d[:, None]))[0])
        return reach + beside + self._known.rounding * float(np.linalg.norm(d))

    def _least_size(self, level: float) -> float:
        b = self._values
        d = size_direction(self._known.sights, b, level)
        left = float(d @ b) - level * float(np.linalg.norm(d)) - self._rest(d)
        return left / float(self._bias.of(self._white(d[:, None]))[0]) if left > 0.0 else 0.0

    def explains(self, parameter: Any) -> bool:
        """See `Evidence.explains`; the parameter is the finite-element function with these dofs."""
        known = self._known
        values, eta = self._bias.predicted(self.problem.check_parameter(parameter))
        misfit = known.turned(self.data.whiten(self.data.values) - values)
        turn = 1.0 if known.turn is None else float(np.linalg.norm(known.turn, 2))
        level = self.law.size(len(misfit), self.law.zeta) + known.rounding + turn * eta * self._bias.misread
        level += sum(part.sight.reach for part in known.parts if part.systematic)
        return bool(np.linalg.norm(misfit) <= level)


def _nothing(count: int) -> Callable[[Array], Target]:
    """What functionals have to do with a set that is none of the truth."""
    return lambda functionals: Target(np.zeros((count, functionals.shape[1])), np.zeros(functionals.shape[1]))


def _refused(name: str) -> property:
    def refuse(_: Any) -> Any:
        raise UncertifiedError(f"{name} is known for the discretized problem only, guarantee='discrete'")

    return property(refuse)


for _name in dir(Evidence):
    if not _name.startswith("_") and _name not in ANSWERED and _name not in vars(ContinuousEvidence):
        setattr(ContinuousEvidence, _name, _refused(_name))
