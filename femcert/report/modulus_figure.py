"""A picture of the modulus of continuity: what noise does to a parameter of a ball."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..checks import Array, number
from ..errors import InputError, SolveError, UncertifiedError
from ..stability import Stability
from ..stability.modulus import Modulus
from . import style

# Noise levels on which the curves of a modulus are drawn, and how far they go beyond the range of its envelope.
_POINTS, _BEYOND = 61, 10.0


def plot_modulus(stability: Stability | Modulus, path: str | Path, *, levels: Any = None) -> Path:
    """Draw the modulus of continuity from above and from below, and its envelope ``C eps^p``.

    Parameters
    ----------
    stability
        The result of `stability` for a class with a ball and more coordinates than observations, or its `moduli`.
    path
        Where to write the picture: a name that ends in .png, .pdf or .svg.
    levels
        The range ``(low, high)`` of noise levels to draw. Default: the range of the envelope and a decade on both sides
        of it. For a `Modulus`, which has no range of its own, it must be given; the envelope is then on all of it.

    Raises
    ------
    UncertifiedError
        There is no modulus: the stability was loaded from a file, or needs no ball.
    """
    return style.write_figure(path, lambda: modulus_figure(stability, levels))


def modulus_figure(stability: Any, levels: Any = None) -> Any:
    """Both bounds of the modulus over the noise level, the envelope, and its range."""
    modulus, (low, high), (C, p), drawn = _modulus_parts(stability, levels)
    figure, axes = style.axes_of(7.6, 4.8)
    above, below = np.array([[modulus.bound(eps), modulus.below(eps)] for eps in drawn]).T
    inside = np.geomspace(low, high, 2)
    span = f"range of the envelope, {style.short(low)} to {style.short(high)}"
    axes.axvspan(low, high, color=style.SKY, alpha=0.16, linewidth=0.0, label=span)
    axes.plot(drawn, above, color=style.BLUE, linewidth=3.6, label="ω(ε) from above")
    axes.plot(drawn, below, color=style.ORANGE, linewidth=1.4, label="ω(ε) from below")
    label = f"envelope C ε$^p$, p = {p:.3g}, C = {style.short(C)}"
    axes.plot(inside, C * inside**p, color=style.BLACK, linewidth=1.5, linestyle=(0, (5, 2)), label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(drawn[0], drawn[-1])
    style.plain_numbers(axes)
    axes.legend(frameon=False, fontsize=9, loc="best")
    axes.set_xlabel("noise level ε")
    axes.set_ylabel("radius ω(ε)")
    message = f"A tenth of the noise leaves {10.0**-p:.0%} of the radius: the exponent is p = {p:.2g}"
    detail = "how far apart two parameters of the ball can be whose data differ by at most ε"
    style.title(axes, message, detail)
    return figure


def _modulus_parts(stability: Any, levels: Any) -> tuple[Modulus, tuple[float, float], tuple[float, float], Array]:
    """The modulus, range and numbers of its envelope, and the noise levels to draw, with the modulus computed there."""
    wanted = None if levels is None else _pair(levels)
    if isinstance(stability, Modulus):
        if wanted is None:
            raise InputError("a Modulus has no range of its own; expected levels=(low, high)")
        envelope = stability.envelope(*wanted)
        return stability, wanted, envelope, _computed(stability, wanted)
    if not isinstance(stability, Stability):
        raise InputError(f"stability is a {type(stability).__name__}; expected the result of stability(), or a Modulus")
    modulus, reach = stability.moduli, stability.levels
    if modulus is None or reach is None:
        origin = "there is no modulus to draw: a stability from a file has none, nor one that needs no ball"
        raise UncertifiedError(f"{origin}; expected stability() of a class with space.within_ball(radius)")
    envelope = stability.constant.value, stability.exponent
    if wanted is not None:
        return modulus, reach, envelope, _computed(modulus, wanted)
    try:
        drawn = _computed(modulus, (reach[0] / _BEYOND, reach[1] * _BEYOND))
    except (SolveError, UncertifiedError):
        # No more than the range of the envelope is needed.
        drawn = _computed(modulus, reach)
    return modulus, reach, envelope, drawn


def _pair(levels: Any) -> tuple[float, float]:
    if not isinstance(levels, (tuple, list)) or len(levels) != 2:
        raise InputError(f"levels is {levels!r}; expected a pair (low, high) of noise levels")
    low, high = number(levels[0], "levels[0]", above=0.0), number(levels[1], "levels[1]", above=0.0)
    if not low < high:
        raise InputError(f"levels is ({low:g}, {high:g}); expected low < high")
    return low, high


def _computed(modulus: Modulus, reach: tuple[float, float]) -> Array:
    levels = np.geomspace(*reach, _POINTS)
    modulus(levels)
    return levels
