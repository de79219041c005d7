"""Evidence on the continuous problem: truths are functions of H1, and data come from the equation, not from its mesh.

An estimate ``a . b`` of ``psi(q)`` has the bias ``(q, sum_i a_i z_i - psi)`` with the adjoint states of the sensors,
``a(v, z_i) = H_i v``. With their discrete ones, and for ``int q² + length² |grad q|² <= rho²`` about the centre,

    ``|bias| <= rho ( ‖sum_i a_i z_ih - psi‖_* + C ‖sum_i a_i (z_i - z_ih)‖_V )``,

``‖.‖_*`` being the dual norm. It is the norm of the solution R of a reaction-diffusion equation with natural
conditions: ``(‖R_h‖² + eta²)^1/2`` with a guaranteed error eta of its discrete solution. The energy error of the
combined adjoint state is a guaranteed one too, and ``‖v‖ <= C ‖v‖_V``. Both come from equilibrated fluxes, for the very
weights of a functional, which may be any that are fixed before the data: those of the mesh.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from skfem import Basis

from ..checks import Array
from ..errors import UncertifiedError
from ..mesh.elements import lagrange
from ..mesh.geometry import diameters
from ..mesh.sample import Sampler
from ..problem.base import Problem
from ..problem.data import Data
from ..problem.elliptic import EllipticSource
from ..problem.space import FullSpace
from ..problem.strong import Interpolant
from ..residual.elliptic import bounded
from ..residual.workspace import workspace_of
from ..stability.continuous import SourceMap
from .affine import Affine, Estimates, Sight, Target
from .evidence import Evidence
from .functionals import Densities
from .interval import IntervalTable
from .misfit import misfit_direction, size_direction
from .sights import Observed, Part

# What is known of the continuous problem; whatever else an `Evidence` answers is refused.
ANSWERED = frozenset(
    ("assumption", "breakdown", "confidence", "explains", "interval", "least_norm", "map", "p_value", "refute")
) | {"summary", "table", "with_data"}


@dataclass(frozen=True)
class _WithJumps(Interpolant):
    """A finite-element function plus constants on the elements."""

    jumps: Any = 0.0

    def at(self, sampler: Any) -> Array:
        """Values at the points."""
        return super().at(sampler) + np.asarray(self.jumps)[:, None]


class DualBias:
    """``‖sum_i a_i z_i - psi‖`` in the dual norm of an H1 ball, from above, for one problem and its whitened data.

    Parameters
    ----------
    problem
        One elliptic equation with an unknown source; its class is a ball in the norm ``"h1"`` on the full space.
    data
        Whose noise whitens.

    Raises
    ------
    UncertifiedError
        Something of that is not so.
    """

    def __init__(self, problem: Problem, data: Data) -> None:
        space = problem.parameters
        ball = space.ball
        if ball is None or ball.norm != "h1" or space.dimension != space.size:
            came = "no ball" if ball is None else f"{space.dimension} coordinates and the {ball.norm} norm"
            raise _missing(f"FullSpace(basis).within_ball(radius, norm='h1'); this class has {came}")
        if space.remainder is not None or space.part is not None:
            raise _missing("a class without a remainder and without nuisance coordinates")
        self._exact = SourceMap(problem, data.whiten(np.eye(data.count)))
        if self._exact.problem is not problem:
            raise _missing("sensors that are averages; point values on a line are taken on another mesh")
        # One of the bounds that are needed, to see whether there are some.
        self._exact.bounds.of_sensor(self._exact.whitening[0], self._exact.adjoint[:, 0])
        equation = self._exact.equation
        basis = equation.basis
        self._riesz = EllipticSource(
            basis,
            parameters=FullSpace(basis),
            sensors=equation.sensors,
            conductivity=ball.length**2,
            reaction=1.0,
            dirichlet={},
        )
        self.radius, self._length, self._diameters = ball.radius, ball.length, diameters(basis.mesh)
        self.shift, self.errors = self._conditions(problem, data)

    def _conditions(self, problem: Problem, data: Data) -> tuple[Array, Array]:
        """By how much whitened data of the centre differ from those of the mesh, and what is not known of that."""
        centre, forward = problem.parameters.ball.centre, problem.forward  # type: ignore[union-attr]
        assert forward is not None
        if centre is None and not forward.offset.any():
            return np.zeros(data.count), np.zeros(data.count)
        q = np.zeros(problem.parameters.size) if centre is None else centre
        found = self._exact.predict(problem.parameters.project(q)[0])
        return found.values - data.whiten(forward.offset + forward.apply(q[:, None])[:, 0]), found.errors

    def predicted(self, parameter: Array) -> tuple[Array, float]:
        """Whitened data of a finite-element function, and how far all of them together may be off."""
        found = self._exact.predict(self._exact.space.project(parameter)[0])
        return found.values, float(np.linalg.norm(found.errors))

    @cached_property
    def sight(self) -> Sight:
        """About what the errors of adjoint states see: errors of recovered gradients, to choose weights by.

        Weights may be any; what they cost is `of`, whatever they were chosen by.
        """
        exact, basis = self._exact, self._riesz.basis
        sampler, hats = Sampler(basis.mesh, 2), Basis(basis.mesh, lagrange(basis.mesh, 1))
        none, one = np.zeros((basis.mesh.dim(), 1, 1)), np.ones((basis.mesh.nelements, 1))
        mass, a = sampler.moments(hats, one, none), exact.bounds.equation.conductivity.at(sampler)
        rows = []
        for state in exact.adjoint.T:
            slopes = sampler.gradients(basis, state)
            smooth = [sampler.values(hats, sampler.moments(hats, slope, none) / mass) for slope in slopes]
            rows.append((np.sqrt(a * sampler.dx) * (slopes - np.array(smooth))).ravel())
        E = np.array(rows)
        return Sight(self.radius * exact.bounds.friedrichs(), E @ E.T)

    def of(self, weights: Array, density: Array | None = None, rest: Array | None = None) -> float:
        """The dual norm for one vector of weights on whitened data.

        Parameters
        ----------
        weights
            a.
        density, rest
            Means of the density of psi on the elements, and ``‖density - mean‖²`` there; None: psi is zero.
        """
        exact, basis = self._exact, self._riesz.basis
        combined = exact.adjoint @ weights
        jumps = np.zeros(basis.mesh.nelements) if density is None else density
        form = replace(self._riesz.strong(np.zeros(basis.N)), source=_WithJumps(basis, combined, jumps=-jumps))
        zero, factor = np.zeros(basis.N), self._riesz.factor
        found = bounded(workspace_of(self._riesz), form, zero, "energy", lambda: factor)
        if not found.exact:
            raise UncertifiedError(f"the dual norm of a bias is only estimated: {found.words}")
        # (d - mean, q) = (d - mean, q - mean) on each element.
        oscillation = 0.0 if rest is None else np.sqrt(np.sum((self._diameters / np.pi) ** 2 * rest)) / self._length
        error = exact.bounds.of_sensor(weights @ exact.whitening, combined)
        return float(found.upper + oscillation + exact.bounds.friedrichs() * error)


class ContinuousEvidence(Evidence):
    """The evidence of `femcert.evidence` with ``guarantee="continuous"``.

    The weights are those of the mesh, their biases those of the equation. Functionals must have densities that are
    known on the elements, as a `Mean` or a `Value` has.
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
            raise _missing("claims for every truth of a ball, without samples")
        return super().table(functionals, simultaneous=simultaneous)

    def _white(self, weights: Array) -> Array:
        """Weights on all whitened data."""
        turn = self._known.turn
        return weights if turn is None else np.asarray(turn.T @ weights)

    def _beside(self, weights: Array) -> float:
        """What boundary values and centre, which are not exact on a mesh, may move an estimate by."""
        a = self._white(weights)
        return float(abs(a @ self._bias.shift) + np.abs(a) @ self._bias.errors)

    def _certified(
        self, found: Estimates, functions: Densities | None, std: Array, zeta: float, factor: float | None
    ) -> Estimates:
        functionals, ball, law = functions and functions(), self.problem.parameters.ball, self.law
        assert ball is not None
        if functionals is None or functionals.loads is not None:
            raise _missing("functionals with densities that are known on the elements, such as Mean and Value")
        means, rests = functionals.means.tocsc(), functionals.rest.tocsc()
        biases = found.biases.copy()
        for j, a in enumerate(found.weights.T):
            density, rest = (part[:, [j]].toarray()[:, 0] for part in (means, rests))
            # Of the adjoint states too, instead of what the weights were chosen by.
            biases[0, j], biases[-2, j] = ball.radius * self._bias.of(self._white(a), density, rest), 0.0
            biases[-1, j] += self._beside(a)
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
        d = misfit_direction(self._known.sights, b)
        assert ball is not None
        size = float(np.linalg.norm(d))
        if not size > 0.0:
            return 0.0
        return max((float(d @ b) - ball.radius * self._bias.of(self._white(d)) - self._rest(d)) / size, 0.0)

    def _rest(self, d: Array) -> float:
        """What errors of the model, of boundary values and of rounding move ``d . b`` by."""
        sights = [part.sight for part in self._known.parts if part.systematic]
        reach = sum(sight.radius * float(np.sqrt(max(float(d @ sight.gram @ d), 0.0))) for sight in sights)
        return reach + self._beside(d) + self._known.rounding * float(np.linalg.norm(d))

    def _least_size(self, level: float) -> float:
        b = self._values
        d = size_direction(self._known.sights, b, level)
        left = float(d @ b) - level * float(np.linalg.norm(d)) - self._rest(d)
        return left / self._bias.of(self._white(d)) if left > 0.0 else 0.0

    def explains(self, parameter: Any) -> bool:
        """See `Evidence.explains`; the parameter is the finite-element function with these dofs."""
        q = self.problem.check_parameter(parameter)
        values, errors = self._bias.predicted(q)
        misfit = self._known.turned(self.data.whiten(self.data.values) - values)
        reach = sum(part.sight.reach for part in self._known.parts if part.systematic)
        level = self.law.size(len(misfit), self.law.zeta) + self._known.rounding + reach
        turn = 1.0 if self._known.turn is None else float(np.linalg.norm(self._known.turn, 2))
        return bool(np.linalg.norm(misfit) <= level + turn * errors)


def _nothing(count: int) -> Callable[[Array], Target]:
    """What functionals have to do with a set that is none of the truth."""
    return lambda functionals: Target(np.zeros((count, functionals.shape[1])), np.zeros(functionals.shape[1]))


def _missing(what: str) -> UncertifiedError:
    return UncertifiedError(f"guarantee='continuous' needs {what}; the discrete one does not")


def _refused(name: str) -> property:
    def refuse(_: Any) -> Any:
        raise UncertifiedError(f"{name} is known for the discretized problem only, guarantee='discrete'")

    return property(refuse)


for _name in dir(Evidence):
    if not _name.startswith("_") and _name not in ANSWERED and _name not in vars(ContinuousEvidence):
        setattr(ContinuousEvidence, _name, _refused(_name))
