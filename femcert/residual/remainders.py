"""What a declared error of coefficients and source does to the bounds of a residual."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..checks import Array
from ..mesh.sample import dot
from .quadrature import Rule
from .weak import WeakResidual
from .workspace import Workspace


@dataclass(frozen=True)
class Deviation:
    """From the equation with polynomials to the one with functions near them.

    With polynomials â, ĉ, f̂ and ``|a - â| <= e_a`` and so on, ``(1 - s) ‖v‖_^² <= ‖v‖² <= (1 + s) ‖v‖_^²`` for the two
    energy norms, ``s = max(e_a / â, e_c / ĉ)`` over the elements, and the residuals differ by at most

        |<r - r^, v>| <= ( ‖e_a a^-1/2 grad u‖ + C_F (‖e_f‖ + ‖e_c u‖) ) ‖v‖.

    Attributes
    ----------
    ratio
        s; 0 in the H1 norm, which has no coefficients.
    size
        The factor of ``‖v‖``.
    """

    ratio: float = 0.0
    size: float = 0.0

    def above(self, value: float) -> float:
        """An upper bound of the dual norm, from one with the polynomials."""
        return value / float(np.sqrt(1.0 - self.ratio)) + self.size

    def below(self, value: float) -> float:
        """The same for lower bounds."""
        return max(value / float(np.sqrt(1.0 + self.ratio)) - self.size, 0.0)


def deviation(workspace: Workspace, state: Array, r: WeakResidual, rule: Rule, norm: str) -> Deviation:
    """For a state (dof values) and the rule that its residual was sampled by."""
    if rule.missed is None or not rule.exact:
        return Deviation()
    e_a, e_c, e_f = rule.missed
    least_a, least_c = (np.broadcast_to(w, e_a.shape) for w in (rule.least_conductivity, rule.least_reaction))
    ratio = 0.0
    if norm == "energy":
        # The minima are those of the functions, those of the polynomials are larger by the errors.
        ratio = max(_largest(e_a, least_a + e_a), _largest(e_c, least_c + e_c))
    sampler, basis = r.sampler, workspace.basis
    slope, value = sampler.gradients(basis, state), sampler.values(basis, state)
    one = np.ones((len(e_a), 1))
    along = _norm(r, rule, e_a**2 / least_a, dot(slope, slope))
    across = _norm(r, rule, e_f**2, one) + _norm(r, rule, e_c**2, value**2)
    if across > 0.0:
        C = workspace.friedrichs(r, rule, norm, False) or workspace.friedrichs(r, rule, norm, True)
        assert C is not None
        across *= C.value
    return Deviation(ratio, along + across)


def _largest(error: Array, size: Array) -> float:
    here = error > 0.0
    return float(np.max(error[here] / size[here], initial=0.0))


def _norm(r: WeakResidual, rule: Rule, weights: Array, square: Array) -> float:
    if not weights.any():
        return 0.0
    return float(np.sqrt(np.sum(weights * r.sampler.integral(square) * (1.0 + rule.remainder))))
