"""The guaranteed radius: a bound for the continuous problem, or none at all."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from ..bound import Bound
from ..errors import InputError, UncertifiedError
from ..problem.base import Problem
from ..problem.candidate import Candidate
from ..problem.data import Data
from ..residual import Residuals
from ..residual.residuals import optimality_residual
from ..stability import Stability
from .certificate import Certificate
from .evidence import check_explained_continuously
from .guaranteed import STATES, belongs, continuous_constant, guaranteed_parts
from .rule import Rule


@dataclass(frozen=True, kw_only=True)
class GuaranteedRadius(Rule):
    """``(data + pde + bc + delta) / sigma + ‖q - Pi q‖_Q``, with sigma and every part guaranteed.

    It contains every truth of the class whose *exact* solution explains the data within the noise level: sigma is a
    lower bound of the smallest singular value of the continuous problem, physics is measured sensor by sensor with
    adjoint states (`femcert.certificate.guaranteed`), and discretization errors are part of it.

    Parameters
    ----------
    state
        ``"given"``: the candidate's state is judged, as in the paper. ``"recomputed"``: its parameter alone is, with
        the state that the equation gives it; the bound on the parameter holds as well, and is smaller for a state that
        does not fit.

    Notes
    -----
    Where an ingredient is not a proven bound, `certify` raises an `UncertifiedError` and `no_harm` keeps the baseline.

    What it compares: sigma and delta are the same for both candidates. For solved states of the class it is a contest
    of ``misfit + mesh error at the sensors``; on a fine mesh, of misfits alone.
    """

    state: str = "given"
    computed: Stability | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.state not in STATES:
            raise InputError(f"state is {self.state!r}; expected one of {', '.join(map(repr, STATES))}")

    @property
    def judges_state(self) -> bool:
        """Only a given one."""
        return self.state == "given"

    @property
    def decides(self) -> tuple[str, ...]:
        """All but optimality; a recomputed state has the boundary values prescribed."""
        return ("data", "pde", *(("bc",) if self.judges_state else ()), "admissibility")

    def resolved(self, problem: Problem, data: Data) -> GuaranteedRadius:
        """The rule with the continuous stability constant, which is the same for all candidates."""
        if self.is_resolved(problem, data):
            return self
        if not problem.linear:
            raise UncertifiedError(
                f"a guaranteed radius is not known for a {type(problem).__name__}; take a rule for nonlinear problems, "
                "such as ResidualRadius()"
            )
        known = self.computed if belongs(self.computed, problem, data) else self.stability
        constant = continuous_constant(problem, data, known)[0]
        check_explained_continuously(problem, data, constant)
        return replace(self, computed=constant, checked=(problem, data))

    def certify(self, problem: Problem, data: Data, candidate: Candidate) -> Certificate:
        """See `Rule.certify`."""
        constant = self.stability or self.computed
        parts = guaranteed_parts(problem, data, candidate, state=self.state, stability=constant)
        q, norm = candidate.parameter, problem.parameters.norm
        return Certificate(
            radius=Bound(parts.radius, "upper", type(self).__name__),
            residuals=Residuals(
                data=parts.data,
                pde=parts.pde,
                bc=parts.bc,
                optimality=optimality_residual(problem, data, candidate),
                admissibility=parts.admissibility,
                reported=candidate.optimality is not None,
            ),
            total=parts.data.value + parts.pde.value + parts.bc.value,
            stability=parts.stability,
            scope="continuous",
            noise_level=data.noise_level,
            name=candidate.name,
            _distance=lambda truth: norm(problem.check_parameter(truth) - q),
        )

    def to_dict(self) -> dict[str, Any]:
        """Name and options, for the record."""
        weights = {"pde": 1.0, "bc": 1.0, "optimality": 0.0}
        return {**super().to_dict(), "guarantee": "continuous", "state": self.state, "weights": weights}
