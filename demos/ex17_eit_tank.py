"""
Electrodes on a water tank: which half discs hold conductive or resistive matter, without linearization or prior
================================================================================================================

Two tanks of the Kuopio Tomography Challenge 2023: water with objects, 32 electrodes, 76 currents and 31 voltages
of each. The true pictures are known, so the demo can say whether a proof is right.

The model of the electrodes is calibrated on the empty tank alone: with conductivity, one impedance, an effective width
of the electrodes and a gain for each channel it explains the voltages to 2.1 %, with electrodes as drawn and no gains
to 8.3 %. All of this is systematic; noise is 10 to 100 times smaller, and no statement rests on it. Monotonicity takes
two errors instead: that of the measured form, for which twice its part that is not symmetric is the usual guess, and
that of the simulated effect of a region, 10 %. A symmetric error does not show in the first one. So the statements are
proved given both errors, and called estimates.

Asked of eight half discs: is there certainly something that conducts better than water, or worse? In the first tank 8
of them get an answer, in the second one 7; one of each gets both. None of the 17 statements is wrong. With twice the
error the same half discs get an answer, and one statement is lost: an object that reaches into its half disc by a
single row of pixels. It was right, but so near to the error it is worth no more than the guess of the error. Of eight
quarter discs 4 and 2 get an answer, of the disc of half the radius in the middle nothing is said, although it holds
parts of all objects: it changes the voltages little. That a region is empty is never proved.
Which quarter discs to show was decided after looking at the results.

Run: ``python demos/ex17_eit_tank.py [DIRECTORY]`` writes the picture ``eit_tank.png``. The data (80 kB) come from the
folder in FEMCERT_DATA or from the network.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.io import loadmat
from scipy.spatial import Delaunay
from skfem import Basis, ElementTriP2, MeshTri

import femcert as fc

RADIUS, COUNT = 0.115, 32
# Of the width that electrodes have on the drawing: pi / 32 rad, and of the impedance in the unit of the fit.
WIDTHS, IMPEDANCES = (1.0, 1.1, 1.2, 1.25, 1.3, 1.4), (1e-4, 3e-4, 1e-3, 3e-3)
MODEL_ERROR = 0.1
DIRECTIONS = 0.25 * np.pi * np.arange(8)
WATER, RESISTIVE, CONDUCTIVE = 0, 1, 2


@dataclass(frozen=True)
class Grading:
    """Edges of each electrode and of each gap; depth of the outermost ring, and growth to the largest one."""

    edges: tuple = (6, 5)
    first: float = 0.012
    growth: float = 1.25
    last: float = 0.06


def tank(width, grading=Grading()):
    """The disc, finer at the ends of electrodes; the first one is at 12 o'clock, then counter-clockwise."""
    pitch, wide = 2.0 * np.pi / COUNT, width * np.pi / COUNT
    graded = [0.5 - 0.5 * np.cos(np.pi * np.arange(n) / n) for n in grading.edges]
    local = np.concatenate([wide * (graded[0] - 0.5), 0.5 * wide + (pitch - wide) * graded[1]])
    rings = [np.exp(1j * (0.5 * np.pi + pitch * np.arange(COUNT)[:, None] + local).ravel()), np.zeros(1)]
    radius, step, turn = 1.0, grading.first, np.random.default_rng(0)
    while radius - step > grading.last:
        radius, step = radius - step, min(grading.growth * step, grading.last)
        count = int(np.rint(2.0 * np.pi * radius / step))
        rings.append(radius * np.exp(1j * (2.0 * np.pi * np.arange(count) / count + turn.uniform(0.0, 1.0))))
    points = RADIUS * np.concatenate(rings)
    corners = np.array([points.real, points.imag])
    mesh = MeshTri(corners, np.ascontiguousarray(Delaunay(corners.T).simplices.T))
    outer = mesh.boundary_facets()
    x, y = mesh.p[:, mesh.facets[:, outer]].mean(axis=1)
    angle = (np.arctan2(y, x) - 0.5 * np.pi + 0.5 * wide) % (2.0 * np.pi)
    place, on = np.floor(angle / pitch), angle % pitch < wide
    names = {f"electrode {i + 1}": outer[on & (place == i)] for i in range(COUNT)}
    return Basis(mesh.with_boundaries(names), ElementTriP2())


@dataclass(frozen=True)
class Tank:
    """Patterns of currents and voltages, readings of the empty tank and of both others, and their true pictures."""

    currents: np.ndarray
    voltages: np.ndarray
    empty: np.ndarray
    filled: tuple
    pictures: tuple


def read():
    """All files. The currents are those of one amplitude: the logged ones, which differ by 4 %, fit worse."""
    files = {
        name: loadmat(fc.datasets.fetch(f"eit_tank/{name}.mat"), simplify_cells=True)
        for name in ("ref", "data1", "data2", "true1", "true2")
    }
    currents = np.sign(np.round(files["ref"]["Injref"], 6))
    filled, pictures = (tuple(files[name + n][key] for n in "12") for name, key in (("data", "Uel"), ("true", "truth")))
    return Tank(currents, files["ref"]["Mpat"], files["ref"]["Uelref"], filled, pictures)


@dataclass(frozen=True)
class Calibration:
    """The model that explains the empty tank best, its misfit, and that of the model without gains."""

    problem: fc.ElectrodeModel
    width: float
    misfit: float
    plain: float


def fitted(measured, width, impedance, gained, grading=Grading()):
    """Gains (or one factor) by least squares: voltages are linear in them. Returns problem and misfit."""
    basis = tank(width, grading)
    names, y = list(basis.mesh.boundaries), measured.empty

    def model(impedances, voltages, **options):
        space = fc.FullSpace(basis)
        patterns = {"currents": measured.currents, "voltages": voltages, "impedances": impedances, **options}
        return fc.ElectrodeModel(basis, electrodes=names, parameters=space, **patterns)

    zero = np.zeros(basis.N)
    # Potentials above that of the sink, for a conductivity of one.
    potentials = model(RADIUS * impedance, np.eye(COUNT)).predict(None, zero).reshape(-1, COUNT)
    columns = np.einsum("kl,lm->kml", potentials, measured.voltages).reshape(-1, COUNT)
    if not gained:
        columns = columns.sum(axis=1, keepdims=True)
    gains = np.broadcast_to(np.linalg.lstsq(columns, y, rcond=None)[0], (COUNT,))
    sigma = 1.0 / gains.mean()
    problem = model(RADIUS * impedance / sigma, measured.voltages, gains=gains * sigma, conductivity=sigma)
    return problem, float(np.linalg.norm(problem.predict(None, zero) - y) / np.linalg.norm(y))


def calibrated(measured, grading=Grading()):
    """On the empty tank alone: the best of all widths and impedances."""
    tried = [(*fitted(measured, width, z, True, grading), width) for width in WIDTHS for z in IMPEDANCES]
    problem, misfit, width = min(tried, key=lambda found: found[1])
    plain = min(fitted(measured, 1.0, z, False, grading)[1] for z in IMPEDANCES)
    return Calibration(problem, width, misfit, plain)


def half_disc(angle):
    """On the side of a direction."""
    return lambda x: np.cos(angle) * x[0] + np.sin(angle) * x[1] > 0.0


def quarter_disc(angle):
    """Within 45 degrees of a direction."""
    return lambda x: np.cos(np.arctan2(x[1], x[0]) - angle) > np.sqrt(0.5)


def middle(_):
    """Up to half of the radius."""
    return lambda x: np.hypot(x[0], x[1]) < 0.5 * RADIUS


REGIONS = {
    "half discs": (half_disc, DIRECTIONS),
    "quarter discs": (quarter_disc, DIRECTIONS),
    "middle": (middle, DIRECTIONS[:1]),
}


def pixels(picture):
    """Positions of the middles of the pixels, row 0 at the top."""
    line = RADIUS * (2.0 * (np.arange(len(picture)) + 0.5) / len(picture) - 1.0)
    x, y = np.meshgrid(line, -line)
    return np.array([x, y])


@dataclass(frozen=True)
class Verdict:
    """Of one tank: the proofs by kind of region, and what the true picture has there (better, worse)."""

    picture: np.ndarray
    proofs: dict
    true: dict


def judged(problem, measured, number):
    """Against the measured empty tank."""
    # The level is not used: the error is the guess that monotonicity makes.
    data, empty = (fc.Data(values, 0.0) for values in (measured.filled[number], measured.empty))
    picture = measured.pictures[number]
    place, proofs, true = pixels(picture), {}, {}
    for kind, (make, angles) in REGIONS.items():
        regions = [make(angle) for angle in angles]
        proofs[kind] = [
            fc.monotonicity(problem, data, region, reference=empty, model_error=MODEL_ERROR) for region in regions
        ]
        there = [picture[region(place)] for region in regions]
        true[kind] = [(np.any(each == CONDUCTIVE), np.any(each == RESISTIVE)) for each in there]
    return Verdict(picture, proofs, true)


@dataclass(frozen=True)
class Results:
    """Calibration and verdicts."""

    calibration: Calibration
    verdicts: list


def main():
    """Calibrate on the empty tank, ask about both objects."""
    measured = read()
    calibration = calibrated(measured)
    return Results(calibration, [judged(calibration.problem, measured, number) for number in range(2)])


def counted(verdict, kind):
    """Regions, those with an answer, proofs of either sign, and wrong ones."""
    said = np.array([(proof.above, proof.below) for proof in verdict.proofs[kind]])
    wrong = said & ~np.array(verdict.true[kind])
    return len(said), int(np.sum(said.any(axis=1))), *(int(n) for n in said.sum(axis=0)), int(wrong.sum())


def told(results):
    """The findings in words."""
    found = results.calibration
    misfits = f"{100 * found.misfit:.1f} % with width {found.width} and gains, {100 * found.plain:.1f} % without"
    lines = [f"empty tank: misfit {misfits}"]
    for number, verdict in enumerate(results.verdicts, 1):
        for kind in REGIONS:
            count, answered, better, worse, wrong = counted(verdict, kind)
            words = f"{answered} of {count} {kind}: {better} with better, {worse} with worse matter; {wrong} wrong"
            lines.append(f"tank {number}: {words}")
    return "\n".join(lines)


def check(results):
    """The claims of this demo."""
    assert results.calibration.misfit < 0.025 < 0.08 < results.calibration.plain
    for verdict, halves, quarters in zip(results.verdicts, (8, 7), (4, 2), strict=True):
        counts = {kind: counted(verdict, kind) for kind in REGIONS}
        assert counts["half discs"][1] == halves
        assert counts["quarter discs"][1] == quarters
        assert counts["middle"][1] == 0
        assert all(verdict.true["middle"][0])
        assert all(found[-1] == 0 for found in counts.values())
        proofs = verdict.proofs["half discs"]
        assert all(proof.label == "estimate" for proof in proofs)
        # With twice the error the same half discs have an answer.
        assert all(proof.margin > proof.error for proof in proofs if proof.margin > 0.0)


def draw(results, path):
    """True pictures, around them what is proved of half and quarter discs, and the margins in units of the error."""
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure
    from matplotlib.patches import Circle, Wedge

    figure = Figure(figsize=(13.5, 8.2), layout="constrained", dpi=130)
    title = "Electrodes on a water tank: matter that is proved to be there, given two errors"
    figure.suptitle(title, fontweight="bold")
    colors = ListedColormap(["#eef2f7", "#8db4d9", "#e7a977"])
    rows = figure.subplots(2, 3, width_ratios=[1, 1, 1.25])
    for number, (row, verdict) in enumerate(zip(rows, results.verdicts, strict=True), 1):
        for axes, (kind, (_, angles)) in zip(row[:2], REGIONS.items(), strict=False):
            image = axes.imshow(verdict.picture, cmap=colors, vmin=0, vmax=2, extent=(-1, 1, -1, 1))
            image.set_clip_path(Circle((0, 0), 1.0, transform=axes.transData))
            wide = 360.0 / len(angles)
            for angle, proof in zip(np.rad2deg(angles), verdict.proofs[kind], strict=True):
                for ring, color, holds in ((1.26, "#D55E00", proof.above), (1.14, "#0072B2", proof.below)):
                    shade = color if holds else "#e5e7eb"
                    ends = angle - 0.5 * wide + 1.0, angle + 0.5 * wide - 1.0
                    axes.add_patch(Wedge((0, 0), ring, *ends, width=0.1, color=shade, linewidth=0))
            axes.add_patch(Circle((0, 0), 1.0, fill=False, color="#374151", linewidth=1))
            count, answered, *_, wrong = counted(verdict, kind)
            axes.set(xlim=(-1.32, 1.32), ylim=(-1.32, 1.32), xticks=[], yticks=[], aspect="equal")
            axes.set_title(f"{kind}: {answered} of {count} answered, {wrong} wrong", fontsize=10)
            axes.axis("off")
        draw_margins(row[2], verdict)
        row[0].text(-1.3, 1.2, f"tank {number}", fontsize=11, fontweight="bold")
    figure.savefig(path)


def draw_margins(axes, verdict):
    """Of the half discs, by direction: eigenvalue over error."""
    proofs = verdict.proofs["half discs"]
    place = np.arange(len(proofs))
    for shift, color, sign in ((-0.2, "#D55E00", "above"), (0.2, "#0072B2", "below")):
        beyond = [getattr(proof, f"{sign}_by") / proof.error for proof in proofs]
        words = "better" if sign == "above" else "worse"
        axes.bar(place + shift, np.maximum(beyond, -1.0), 0.38, color=color, label=f"conducts {words} than water")
    axes.axhline(0.0, color="#374151", linewidth=1)
    axes.set_yscale("symlog", linthresh=1.0)
    axes.set_xticks(place, labels=[f"{angle:.0f}°" for angle in 45.0 * place])
    axes.set(xlabel="direction of the half disc", ylabel="beyond the error, in errors")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8, frameon=False, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))


if __name__ == "__main__":
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    try:
        results = main()
    except fc.DatasetError as error:
        print(error)
    else:
        print(told(results))
        check(results)
        directory.mkdir(parents=True, exist_ok=True)
        draw(results, directory / "eit_tank.png")
