"""From a quadrature to a bound: what rounding, remainders and declared errors of the data may have left out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..checks import Array
from ..mesh.sample import dot
from .quadrature import Quadrature
from .weak import WeakResidual
from .workspace import Workspace

# Sums of many terms, relative to the result; and differences of fluxes, relative to the fluxes.
ROUNDING, SIZE_ROUNDING = 1e-12, 1e-14


def finished_upper(value: float, size: float = 0.0) -> float:
    """An upper bound of a norm from its computed value, the rounding of the computation added.

    Parameters
    ----------
    size
        How large the terms are that the residual is a small difference of (`WeakResidual.size`); 0 where nothing
        cancels.
    """
    return value * (1.0 + ROUNDING) + SIZE_ROUNDING * size


def finished_lower(value: float, size: float = 0.0, missed: float = 0.0) -> float:
    """A lower bound of a norm from a computed quotient ``<r, v> / ‖v‖``: less remainders of quadrature, and rounding.

    Parameters
    ----------
    size
        As in `finished_upper`.
    missed
        Relative remainder of integrals of products (`Quadrature.signed`).
    """
    # The norm of a test function divides by nothing: where products are polynomials, so is its square.
    value -= size * (2.0 * missed + SIZE_ROUNDING)
    return max(value, 0.0) / (1.0 + missed) * (1.0 - ROUNDING)


def upper_of_parts(r: WeakResidual, rule: Quadrature, square: float, cross: float, rest: float) -> float:
    """``‖r‖ <= (‖w‖² + 2 rest(w) + ‖rest‖²)^1/2`` for a residual ``r = (w, .)_V + rest``, finished.

    Parameters
    ----------
    square, cross, rest
        ``‖w‖²``, ``rest(w)`` of either sign, and an upper bound of ``‖rest‖``.
    """
    total = square * (1.0 + ROUNDING + rule.signed) + 2.0 * abs(cross) + rest**2
    # What quadrature may miss of r(w) and of rest(w).
    total += 4.0 * rule.signed * r.size * float(np.sqrt(max(square, 0.0)))
    return finished_upper(float(np.sqrt(total)), r.size)


def is_exact(r: WeakResidual, rule: Quadrature) -> bool:
    """Whether all integrals of a residual were exact, or known to be within remainders that are included."""
    return rule.exact and r.traces.exact


def quadrature_words(r: WeakResidual, rule: Quadrature) -> str:
    """About its integrals, for the record."""
    if rule.exact and not r.traces.exact:
        return f"quadrature not exact: {r.traces.doubt}"
    if rule.exact and rule.missed is not None:
        return f"{rule.words}, declared errors included"
    return rule.words


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


def deviation(workspace: Workspace, state: Array, r: WeakResidual, rule: Quadrature, norm: str) -> Deviation:
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


def _norm(r: WeakResidual, rule: Quadrature, weights: Array, square: Array) -> float:
    if not weights.any():
        return 0.0
    return float(np.sqrt(np.sum(weights * r.sampler.integral(square) * (1.0 + rule.remainder))))
