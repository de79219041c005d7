"""Intervals as a function of the radius of the ball, which is not known."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csc_matrix

from ..bound import Bound
from ..checks import Array, frozen, number, real_vector
from ..errors import InputError, UncertifiedError
from ..shown import Shown
from .affine import Affine
from .functionals import as_functional

if TYPE_CHECKING:
    from .evidence import Evidence

# Radii where none are given: how many, and how far they go beyond those that matter.
POINTS, BEYOND = 97, 3.0
# A breakdown beyond so many radii of the class is not looked at by default.
FAR = 100.0


@dataclass(frozen=True, repr=False)
class Sensitivity(Shown):
    """What the data say of one functional, for every radius of the ball.

    Attributes
    ----------
    name
        Of the functional.
    radii
        Of the ball, ascending.
    lower, upper
        The ends of the intervals, one for each radius.
    weights
        ``"fixed"``: those of the radius of the class, at every radius. The intervals are then nested, and hold for all
        radii together: with `confidence` the value of the truth lies in the interval of its own norm, and a radius may
        be chosen after they were seen. ``"best"``: the best ones of each radius. Each interval is shorter, and holds
        for a radius that was fixed before the data.
    radius
        Of the ball of the class.
    value
        The number in question, for `breakdown`.
    least_norm
        No truth of a smaller norm explains the data: `Evidence.least_norm`.
    breakdown
        The radius at which the interval with fixed weights reaches `value`, see `Evidence.breakdown`; None for noisy
        readings.
    confidence
        Of the intervals, and by itself of the least norm.
    claim
        For whom they hold, in words.
    """

    name: str
    radii: Array
    lower: Array
    upper: Array
    weights: str
    radius: float
    value: float
    least_norm: Bound
    breakdown: Bound | None
    confidence: float
    claim: str

    @property
    def message(self) -> str:
        """What the breakdown says, in a sentence."""
        if self.breakdown is None:
            return f"{self.name!r} over the radius of the ball"
        if not self.breakdown.value > 0.0:
            return f"{self.name!r} may lie on either side of {self.value:.4g}, whatever the norm of the truth"
        side = "below" if self.lower[0] + self.upper[0] < 2.0 * self.value else "above"
        if np.isinf(self.breakdown.value):
            return f"{self.name!r} is {side} {self.value:.4g}, whatever the norm of the truth"
        return f"{self.name!r} is {side} {self.value:.4g} unless the norm exceeds {self.breakdown.value:.3g}"

    def summary(self) -> dict[str, str]:
        """The breakdown, the least norm, and for whom it holds."""
        return {
            "sensitivity": self.message,
            "radii": f"{self.radii[0]:.3g} to {self.radii[-1]:.3g}, that of the class is {self.radius:.4g}",
            "least norm": f"{self.least_norm.value:.4g}",
            "weights": self.weights,
            "confidence": f"{100.0 * self.confidence:.4g} %",
            "claim": self.claim,
        }


def sensitivity(
    evidence: Evidence, functional: Any, radii: Any = None, *, value: float = 0.0, weights: str = "fixed"
) -> Sensitivity:
    """See `Sensitivity`; bounds of the class are not used.

    Parameters
    ----------
    evidence
        Of a class with a ball.
    functional
        As for `Evidence.interval`.
    radii
        Default: around least norm, radius of the class and breakdown.
    value, weights
        See `Sensitivity`.
    """
    space = evidence.problem.parameters
    if space.ball is None:
        raise UncertifiedError("intervals over the radius need a ball, space.within_ball(radius)")
    if weights not in ("fixed", "best"):
        raise InputError(f"weights is {weights!r}; expected 'fixed' or 'best'")
    each, level = as_functional(functional, space), number(value, "value")
    least = evidence.least_norm
    broken = None if each.std > 0.0 else evidence.breakdown(each, level)
    if radii is None:
        marks = np.array([space.ball.radius, least.value, np.inf if broken is None else broken.value])
        marks = marks[(marks > 0.0) & (marks <= FAR * space.ball.radius)]
        found = np.geomspace(marks.min() / BEYOND, marks.max() * BEYOND, POINTS)
    else:
        found = np.sort(real_vector(radii, None, "radii"))
        if not found.size or not found[0] > 0.0:
            raise InputError("radii has none, or one that is not positive; expected positive numbers")
    ends = np.array([_ends(evidence, each, float(radius), weights == "best") for radius in found]).T
    # Where the radius is a number, it does not matter that the one of the class came from samples.
    return Sensitivity(
        each.name, frozen(found), frozen(ends[0]), frozen(ends[1]), weights, space.ball.radius, level, least, broken,
        evidence.confidence + space.ball.alpha, f"for {_assumption(evidence)} ({evidence.scope})",
    )  # fmt: skip


def _assumption(evidence: Evidence) -> str:
    """What is assumed of the truth, at any radius of the ball."""
    space = evidence.problem.parameters
    ball = space.ball
    assert ball is not None
    plain = replace(ball, samples=0).words.replace(f"at most {ball.radius:.4g}", "at most the radius")
    words = evidence.assumption.replace(ball.words, plain)
    if evidence.data.alpha + space.alpha == ball.alpha:
        return words.replace("truths like the samples, with", "every truth with")
    return words


def _ends(evidence: Evidence, each: Any, radius: float, best: bool) -> tuple[float, float]:
    """Of the interval at one radius."""
    space, law = evidence.problem.parameters, evidence.law
    assert space.ball is not None
    psi, std = csc_matrix(each.weights(space)[:, None]), np.array([each.std])
    other = with_radius(evidence, radius)
    estimates, _, free = (other if best else evidence)._weights(psi, std, law.zeta)
    half = estimates.half_length
    if not best:
        # The bias of the ball grows with its radius, that of other sets does not.
        factor = radius / space.ball.radius
        bias = factor * estimates.biases[0] + estimates.biases[1:-1].sum(axis=0)
        bias += max(factor, 1.0) * estimates.biases[-1]
        deviation = np.hypot(law.deviation(estimates.weights), std)
        half = np.where(np.isinf(half), np.inf, law.half_length(bias, deviation, law.zeta))
    reach = float((half + other._slack(free, estimates.weights))[0])
    middle = float(estimates.weights[:, 0] @ evidence._values)
    middle += 0.0 if space.ball.centre is None else each.value(space, space.ball.centre)
    return middle - reach, middle + reach


def with_radius(evidence: Evidence, radius: float) -> Evidence:
    """The same evidence with another radius of the ball; nothing is factorized anew."""
    ball = evidence.problem.parameters.ball
    assert ball is not None
    known, factor = evidence._known, radius / ball.radius
    first = replace(known.parts[0], sight=replace(known.parts[0].sight, radius=radius))
    found = copy.copy(evidence)
    found._known = replace(known, parts=(first, *known.parts[1:]), rounding=known.rounding * max(factor, 1.0))
    found._affine = Affine(found._known.sights, len(known.free), known.free, rounding=found._known.rounding)
    found._made = {}
    found.__dict__.pop("_misfit", None)
    return found
