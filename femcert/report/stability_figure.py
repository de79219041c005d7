"""A picture of stability: what the sensors see of a parameter, and where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..checks import Array, number
from ..errors import InputError, UncertifiedError
from ..stability import Stability
from ..stability.directions import Directions
from . import style
from .fields import draw_image, draw_line

SIGMA = r"$\sigma$"
SEEN, HIDDEN, NOISE = style.BLUE, style.RED, style.BLACK
DIRECTION_LOOKS: tuple[dict[str, Any], ...] = (
    {"color": style.RED, "linewidth": 2.0},
    {"color": style.ORANGE, "linewidth": 1.6, "linestyle": (0, (5, 2))},
)


def plot_stability(stability: Stability, path: str | Path, *, noise_level: float | None = None) -> Path:
    """Draw what the sensors see: singular values, the two weakest directions, and the map of resolution.

    Parameters
    ----------
    stability
        The result of `stability`, with its directions.
    path
        Where to write the picture: a name that ends in .png, .pdf or .svg.
    noise_level
        Norm of the noise in the data. Directions with a singular value at or below it are the near-null space. The map
        of resolution is for data known to this level; without it, to the geometric mean of sigma_max and sigma_min.

    Raises
    ------
    UncertifiedError
        There are no directions: the stability was loaded from a file, comes from the sparse route, or is conditional on
        a ball (then see `plot_modulus`).
    """
    return style.write_figure(path, lambda: stability_figure(stability, noise_level))


def stability_figure(stability: Any, noise_level: float | None = None) -> Any:
    """Singular values, weakest directions and resolution: side by side on a line, two by two in the plane."""
    directions = _directions(stability)
    if noise_level is None:
        level = float(np.sqrt(stability.sigma_max * stability.sigma_min))
    else:
        level = number(noise_level, "noise_level", above=0.0)
    if directions.space.basis is None:
        raise InputError("the class has no mesh to draw on; expected one of fields")
    dimension = directions.space.basis.mesh.dim()
    if dimension not in (1, 2):
        raise InputError(f"plot_stability draws 1D and 2D fields; this mesh has dimension {dimension}")
    heading = stability_message(stability, noise_level)
    draw = _with_lines if dimension == 1 else _with_images
    return draw(directions, level, noise_level is not None, heading)


def stability_message(stability: Stability, noise_level: float | None) -> tuple[str, str]:
    """What the picture says: how many directions the noise hides, or how unequally they are seen, and C; and why."""
    k = len(stability.singular_values)
    everything = {1: "the only direction", 2: "both directions"}.get(k, f"all {k} directions")
    bound, scope = stability.constant, stability.scope
    side = bound.side if scope == bound.side else f"{bound.side}, {scope}"
    if stability.validity is not None:
        side = f"{bound.side}, on a ball"
    constant = f"C = {style.short(bound.value)} ({side})"
    if noise_level is None:
        times = style.short(stability.condition)
        message = f"The sensors hardly see one direction, {times} times less than another"
        if stability.condition < 2.0:
            message = f"The sensors see {everything}" + (" about equally well" if k > 1 else "")
        detail = f"{SIGMA}: what a unit of a direction does to the data. The map is for data known to"
        return f"{message}, {constant}", f"{detail} the geometric mean of the largest and the smallest {SIGMA}."
    assert stability.directions is not None
    hidden = stability.directions.near_null(noise_level).shape[1]
    level = f"the noise level {style.short(noise_level)}"
    if hidden == 0:
        detail = f"The near-null space is empty: a unit of any direction changes the data by more than {level}."
        return f"The sensors see {everything} above the noise, {constant}", detail
    size = "one direction" if hidden == 1 else f"{hidden} directions"
    detail = f"Near-null space: {size} of which a unit changes the data by no more than {level}."
    return f"The sensors hardly see {hidden} of {k} direction{'s'[: k > 1]}, {constant}", detail


def _directions(stability: Any) -> Directions:
    if not isinstance(stability, Stability):
        raise InputError(f"stability is a {type(stability).__name__}; expected the result of stability()")
    if stability.directions is None and stability.moduli is not None:
        raise UncertifiedError(
            "stability on a ball with more coordinates than observations has no directions to draw; "
            "plot_modulus draws its modulus"
        )
    if stability.directions is None:
        raise UncertifiedError(
            "a stability from a file or by the sparse route has no directions to draw; compute it with "
            "stability(problem, method='dense')"
        )
    return stability.directions


def _weakest(directions: Directions) -> list[tuple[str, Array]]:
    """The weakest directions with their names, two at most, with the largest value positive."""
    number_of = min(2, len(directions.singular_values))
    fields = directions.weakest(number_of).T
    values = directions.singular_values[::-1]
    return [
        (f"{name}, {SIGMA} = {style.short(sigma)}", field * np.sign(field[np.argmax(np.abs(field))]))
        for name, field, sigma in zip(("weakest direction", "second weakest"), fields, values, strict=False)
    ]


def _with_lines(directions: Directions, level: float, known: bool, heading: tuple[str, str]) -> Any:
    figure = style.new_figure(12.0, 4.3)
    _headed(figure, heading)
    left, middle, right = figure.subplots(1, 3)
    basis = directions.space.basis
    _draw_singular_values(left, directions, level, known)
    for (name, field), look in zip(_weakest(directions), DIRECTION_LOOKS, strict=False):
        draw_line(middle, basis, field, label=name, **look)
    style.tidy(middle)
    middle.axhline(0.0, color=style.GREY, linewidth=0.8)
    middle.set_xlabel("x")
    middle.set_ylabel("parameter q of norm 1")
    middle.legend(frameon=False, fontsize=8.5, handlelength=2.6, loc="lower left", bbox_to_anchor=(-0.02, 1.0))
    style.tidy(right)
    draw_line(right, basis, shown_resolution(directions, level), color=style.BLUE, linewidth=2.0)
    right.set_ylim(-0.03, 1.03)
    right.set_xlabel("x")
    right.set_ylabel("share that the data determine")
    right.set_title(_resolution_title(level, known), fontsize=10, loc="left")
    return figure


def _with_images(directions: Directions, level: float, known: bool, heading: tuple[str, str]) -> Any:
    basis = directions.space.basis
    width, height = np.ptp(basis.mesh.p, axis=1)
    tall = 3.7 * min(max(height / width, 0.45), 1.5) + 0.35
    figure = style.new_figure(9.6, 2.0 * tall + 0.7)
    _headed(figure, heading)
    (values, map_axes), below = figure.subplots(2, 2)
    _draw_singular_values(values, directions, level, known)
    image = draw_resolution(map_axes, directions, level)
    figure.colorbar(image, ax=map_axes, label="share that the data determine", shrink=0.85)
    map_axes.set_title(_resolution_title(level, known), fontsize=10, loc="left")
    weakest = _weakest(directions)
    most = max(float(np.abs(field).max()) for _, field in weakest)
    for axes, (name, field) in zip(below, weakest, strict=False):
        image = draw_image(axes, basis, field, vmin=-most, vmax=most, cmap=style.SIGNED_MAP)
        axes.set_title(name, fontsize=10, loc="left")
        figure.colorbar(image, ax=axes, label="parameter q of norm 1", shrink=0.85)
    for axes in (map_axes, *below):
        axes.set_frame_on(False)
        axes.set_xticks([])
        axes.set_yticks([])
    for axes in below[len(weakest) :]:
        axes.set_visible(False)
    return figure


def draw_resolution(axes: Any, directions: Directions, level: float) -> Any:
    """The map of resolution on a 2D mesh, dark where the data say nothing; returns what a colour bar needs."""
    return draw_image(axes, directions.space.basis, shown_resolution(directions, level), vmin=0.0, vmax=1.0)


def shown_resolution(directions: Directions, level: float) -> Array:
    """The resolution; where the class vanishes, and there is nothing to resolve, continued from the dofs around."""
    values = directions.resolution(level)
    total = (directions.fields() ** 2).sum(axis=1)
    known = total > 1e-14 * float(total.max())
    dofs = directions.space.basis.element_dofs
    while not known.all():
        inside = known[dofs]
        means = np.where(inside, values[dofs], 0.0).sum(axis=0) / np.maximum(inside.sum(axis=0), 1)
        elements = np.tile(inside.any(axis=0).astype(float), (len(dofs), 1))
        around = np.bincount(dofs.ravel(), elements.ravel(), len(values))
        sums = np.bincount(dofs.ravel(), (elements * means).ravel(), len(values))
        new = ~known & (around > 0.0)
        if not new.any():
            break
        values = np.where(new, sums / np.maximum(around, 1.0), values)
        known = known | new
    return values


def _headed(figure: Any, heading: tuple[str, str]) -> None:
    message, detail = heading
    figure.suptitle(message, x=0.01, ha="left", fontsize=11, fontweight="bold")
    figure.get_layout_engine().set(h_pad=0.08)
    figure.supxlabel(detail, x=0.01, ha="left", fontsize=9, color=style.GREY)


def _resolution_title(level: float, known: bool) -> str:
    return f"resolution at {'the noise level' if known else f'{SIGMA} ='} {style.short(level)}"


def _draw_singular_values(axes: Any, directions: Directions, level: float, known: bool) -> None:
    """One mark for each direction; with a noise level, in two colours with a line between them."""
    style.tidy(axes)
    sigma = directions.singular_values
    place = np.arange(1, len(sigma) + 1)
    size = float(np.clip(300.0 / len(sigma), 6.0, 30.0))
    hidden = known & (sigma <= level)
    for chosen, colour, name in ((~hidden, SEEN, "seen"), (hidden, HIDDEN, "near-null space")):
        if chosen.any():
            axes.scatter(place[chosen], sigma[chosen], s=size, color=colour, zorder=3, label=f"{name} ({chosen.sum()})")
    if known:
        axes.axhline(level, color=NOISE, linewidth=1.2, linestyle=(0, (5, 2)), label="noise level")
        axes.legend(frameon=False, fontsize=8.5)
    axes.set_yscale("log")
    axes.set_xlim(0.3, len(sigma) + 0.7)
    axes.xaxis.get_major_locator().set_params(integer=True)
    style.plain_numbers(axes)
    axes.set_xlabel("direction")
    axes.set_ylabel(f"singular value {SIGMA}")
