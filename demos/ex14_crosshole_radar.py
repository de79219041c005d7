"""
Radar between two boreholes: what 702 travel times say of the ground, and readings that were left out to check it
=================================================================================================================

Radar waves were sent from 45 depths of one borehole and received at 45 depths of another one, 5 m away; each travel
time is the integral of the slowness along the straight ray (Looms et al., Geophysics 75(6), 2010). The truth is not
known, so the claims are checked on readings: a fifth of the rays is left out (repeats of a ray together), or all
readings of a block of sources, and each of them is predicted with an interval that should hold in 95 % of cases. The
class is the whole finite-element space with ``(∫ |grad slowness|²)^1/2 <= 2 ns/m``, a number that was fixed before.

All 131 and 171 intervals hold; half their lengths are 2.0 and 2.9 ns, of which the noise of the reading itself, 0.8 ns,
takes 1.6. They hold more often than they claim: repeats of a ray differ by 0.2 ns only, and the bias is a worst case.
`demos/crosshole_radar.csv` has all 702 readings for three radii (`tests/benchmarks/radar_coverage.py`).

In practice: layers are certain, spots are not. Of 22 layers of half a metre 9 are certainly slower
and 9 certainly faster than the mean, all at once with 95 %; of 55 squares of a metre 2 and 7. A reconstruction with an
invented layer, half a metre thick and 6 % slower, explains the data as a whole, and is refuted all the same: the data
say the mean of that layer to 0.2 ns/m. The same layer upright, faster beside it, is not refuted; it hardly changes
the rays from left to right. If there are static shifts of 2 ns at every source and receiver, for which the authors of
the data allow, all squares are open, and 14 layers certain.

The learned candidate is a small network: trained for a few seconds on travel times of random layered grounds, simulated
along the rays of the survey with its noise, and then given the measured ones. It knows nothing but layers, and the
ground is no stack of layers; yet its answer explains the data, and none of its means over layers and columns is
refuted. That is no reason to take it: it misses the data by more than the reconstruction does, its exact radius is
larger, and it is rejected.

What is not checked: that rays are straight, and the radius. A truth with the invented layer would need one of 13.9.

Run: ``python demos/ex14_crosshole_radar.py [DIRECTORY]`` writes the picture ``crosshole_radar.png``. The data (90 kB)
come from the folder in FEMCERT_DATA or from the network. Needs ``pip install 'femcert[learn]'``.
"""

import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from scipy.io import loadmat
from scipy.sparse import block_array, block_diag, csr_matrix, identity
from scipy.stats import binom
from skfem import Basis, ElementQuad1, MeshQuad

import femcert as fc
from femcert.errors import MissingPackageError
from femcert.learn.torch import load_torch, one_thread
from femcert.report.fields import draw_image

NAME = "crosshole_radar/AM13_data.mat"
# Slowness of 0.143 m/ns, about which the unknown is counted; its level is not bounded. In ns/m, ns, ns/m, ns.
ABOUT, DEVIATION, RADIUS, SHIFT = 7.0, 0.8, 2.0, 2.0
LAYER, STRENGTH = (6.0, 6.5), 0.4


@dataclass(frozen=True)
class Survey:
    """Rays (starts and ends, a row each), travel times, and an image basis on the section between the boreholes."""

    starts: np.ndarray
    ends: np.ndarray
    times: np.ndarray

    @cached_property
    def basis(self):
        """Squares of 25 cm."""
        return Basis(MeshQuad.init_tensor(np.linspace(0.0, 5.0, 21), np.linspace(0.5, 12.5, 49)), ElementQuad1())

    @cached_property
    def rows(self):
        """Each reading as a functional of the slowness."""
        return fc.RaySensors(self.basis, rays=(self.starts, self.ends)).matrix

    @cached_property
    def values(self):
        """Travel times beyond those of the constant slowness."""
        return self.times - ABOUT * np.linalg.norm(self.ends - self.starts, axis=1)

    @cached_property
    def shifts(self):
        """Which source and which receiver, 45 + 45 columns, each reading has a static shift from."""
        depths = np.unique([self.starts[:, 1], self.ends[:, 1]])
        places = [np.searchsorted(depths, x[:, 1]) + i * len(depths) for i, x in enumerate((self.starts, self.ends))]
        count = len(self.times)
        ones, rays = np.ones(2 * count), np.tile(np.arange(count), 2)
        return csr_matrix((ones, (rays, np.concatenate(places))), shape=(count, 2 * len(depths)))

    def fifths(self):
        """A number from 0 to 4 for each reading, the same for repeats of a ray."""
        _, ray = np.unique(np.hstack([self.starts, self.ends]), axis=0, return_inverse=True)
        return (np.random.default_rng(0).permutation(ray.max() + 1) % 5)[ray]

    def blocks(self):
        """The same for blocks of nine sources that are neighbours."""
        depths, source = np.unique(self.starts[:, 1], return_inverse=True)
        return source * 5 // len(depths)


def read():
    """The survey, from the file of its authors."""
    raw = loadmat(fc.datasets.fetch(NAME))
    assert np.all(raw["d_std"] == DEVIATION)
    return Survey(raw["S"], raw["R"], raw["d_obs"].ravel())


def plain(survey, used, radius=RADIUS):
    """Evidence of some readings, with independent noise only."""
    space = fc.FullSpace(survey.basis).within_ball(radius, norm="h1-seminorm")
    problem = fc.Tomography(survey.basis, parameters=space, rays=(survey.starts[used], survey.ends[used]))
    return fc.evidence(problem, fc.Data.gaussian(survey.values[used], std=DEVIATION))


def with_shifts(survey, used, radius=RADIUS):
    """The same with static shifts as further unknowns, by matrices alone.

    The shifts are random with deviation `SHIFT`: each is an unknown (all but unbounded, which the precision matrix
    says), and one more reading of it has the value 0 with this deviation.
    """
    space, A = fc.FullSpace(survey.basis), survey.shifts
    n = A.shape[1]
    P = block_diag([space.form("h1-seminorm") + 0.01 * space.form("l2"), 1e-4 * identity(n)], format="csr")
    both = fc.CoordinateSpace(P.shape[0], gram=block_diag([space.weight, identity(n)])).within_ball(radius, norm=P)
    F = block_array([[survey.rows[used], A[used]], [None, identity(n)]], format="csr")
    values = np.concatenate([survey.values[used], np.zeros(n)])
    std = np.where(np.arange(len(values)) < len(values) - n, DEVIATION, SHIFT)
    return fc.evidence(fc.ForwardMap(F, parameters=both), fc.Data.gaussian(values, std=std))


def held_out(survey, labels, fold, evidence_of=plain, radius=RADIUS):
    """For each reading of a fold: whether its interval holds, half the length, and the error of the prediction."""
    evidence = evidence_of(survey, np.flatnonzero(labels != fold), radius)
    left = np.flatnonzero(labels == fold)
    rows = survey.rows[left].toarray()
    if evidence_of is with_shifts:
        rows = np.hstack([rows, survey.shifts[left].toarray()])
    intervals = [evidence.interval(fc.Prediction(row, std=DEVIATION)) for row in rows]
    values = survey.values[left]
    found = [(i.contains(y), i.half_length, abs(i.estimate - y)) for i, y in zip(intervals, values, strict=True)]
    return np.array(found)


def boxes(width, height, low=1.0, high=12.0):
    """Rectangles ``(left, right, top, bottom)`` that tile the section where there are sources."""
    left, top = np.arange(0.0, 5.0 - 1e-9, width), np.arange(low, high - 1e-9, height)
    return [(x, x + width, z, z + height) for z in top for x in left]


def means(survey, rectangles, *, against_all=False):
    """The mean slowness of each, or how far it is from that of the whole section."""
    space, found = fc.FullSpace(survey.basis), []
    for a, b, c, d in [(0.0, 5.0, 1.0, 12.0), *rectangles]:
        inside = fc.Mean(survey.basis, lambda x: (a < x[0]) & (x[0] < b) & (c < x[1]) & (x[1] < d))  # noqa: B023
        found.append(inside.weights(space))
    whole = found[0] if against_all else 0.0
    names = [f"{a:g} to {b:g} m, depth {c:g} to {d:g} m" for a, b, c, d in rectangles]
    return [fc.Prediction(row - whole, name=name) for row, name in zip(found[1:], names, strict=True)]


def certain(survey, evidence, rectangles):
    """Signs of the slowness against the mean that hold all at once: 1 slower, -1 faster, 0 open."""
    asked = means(survey, rectangles, against_all=True)
    pad = evidence.problem.parameters.size - survey.basis.N
    table = evidence.table([fc.Prediction(np.pad(each.row, (0, pad)), name=each.name) for each in asked])
    return np.array([interval.sign for interval in table])


def layered(survey, count, rng):
    """Random grounds of 5 to 16 layers, a row each: slowness at the depths of the nodes; and these depths."""
    depths = np.unique(survey.basis.doflocs[1])
    cuts = np.sort(np.where(np.arange(15) < rng.integers(4, 16, (count, 1)), rng.uniform(0.5, 12.5, (count, 15)), 99.0))
    layer = np.sum(cuts[:, :, None] < depths, axis=1)
    values = 0.4 * rng.standard_normal((count, 16)) + 0.3 * rng.standard_normal((count, 1))
    return depths, np.take_along_axis(values, layer, axis=1)


def by_network(survey, count=3000, steps=1000):
    """What a small network, trained on layered grounds and their travel times, makes of the measured ones."""
    torch, rng = load_torch(), np.random.default_rng(0)
    depths, grounds = layered(survey, count, rng)
    spread = (survey.basis.doflocs[1][:, None] == depths).astype(float)
    times = grounds @ (survey.rows @ spread).T
    times += DEVIATION * rng.standard_normal(times.shape)
    unit = times.std()
    with one_thread(), torch.random.fork_rng():
        torch.manual_seed(0)
        shapes, relu = [(times.shape[1], 64), (64, 64), (64, len(depths))], torch.nn.ReLU()
        first, second, last = (torch.nn.Linear(*shape, dtype=torch.float64) for shape in shapes)
        model = torch.nn.Sequential(first, relu, second, relu, last)
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        inputs, targets = torch.tensor(times / unit), torch.tensor(grounds)
        for _ in range(steps):
            batch = torch.randint(0, count, (128,))
            optimizer.zero_grad()
            torch.mean((model(inputs[batch]) - targets[batch]) ** 2).backward()
            optimizer.step()
        with torch.no_grad():
            return spread @ model(torch.tensor(survey.values / unit)).numpy()


def candidates(survey, evidence):
    """A classical reconstruction, a network's, and the former with a layer that nobody measured, lying or upright.

    Of the upright one the mean is taken off.
    """
    plain = fc.Tikhonov(choose="gcv")(evidence.problem, evidence.data).parameter
    x, z = survey.basis.doflocs
    lying = STRENGTH * ((z >= LAYER[0]) & (z <= LAYER[1]))
    upright = STRENGTH * ((np.abs(x - 2.5) <= 0.25) - 0.15)
    fields = {
        "baseline": plain,
        "network": by_network(survey),
        "with a layer": plain + lying,
        "with an upright layer": plain + upright,
    }
    return {name: fc.Candidate(None, field, name=name) for name, field in fields.items()}


@dataclass(frozen=True)
class Results:
    """What `main` finds; `needed` is the norm that a truth would need for the invented layer to be there.

    `selection` decides between the classical reconstruction and the network's.
    """

    survey: Survey
    evidence: fc.Evidence
    checks: dict
    signs: dict
    candidates: dict
    refutations: dict
    needed: float
    selection: fc.Selection


def main():
    """Held-out readings, signs, and what is refuted."""
    survey = read()
    load_torch()  # says so now where it is missing
    everything = np.arange(len(survey.times))
    evidence, shifted = plain(survey, everything), with_shifts(survey, everything)
    layers = boxes(5.0, 0.5)
    signs = {
        (name, kind): certain(survey, found, rectangles)
        for name, found in (("noise", evidence), ("noise and shifts", shifted))
        for kind, rectangles in (("squares", boxes(1.0, 1.0)), ("layers", layers))
    }
    asked = means(survey, layers) + means(survey, boxes(0.5, 11.0))
    found = candidates(survey, evidence)
    layer = asked[[box[2] for box in layers].index(LAYER[0])]
    claimed = layer.value(evidence.problem.parameters, found["with a layer"].parameter)
    return Results(
        survey,
        evidence,
        {"a fifth of the rays": held_out(survey, survey.fifths(), 0),
         "a block of sources": held_out(survey, survey.blocks(), 2)},
        signs,
        found,
        {name: evidence.refute(candidate, asked) for name, candidate in found.items()},
        evidence.breakdown(layer, claimed).value,
        fc.no_harm(
            evidence.problem, evidence.data, baseline=found["baseline"], learned=found["network"], rule=fc.ExactRadius()
        ),
    )  # fmt: skip


def told(results):
    """The findings in words."""
    lines = []
    for name, found in results.checks.items():
        inside, half, error = int(found[:, 0].sum()), *np.median(found[:, 1:], axis=0)
        hold = f"{inside} of {len(found)} intervals hold"
        lines.append(f"{name} left out: {hold}, half length {half:.1f} ns, error {error:.2f} ns")
    for (name, kind), signs in results.signs.items():
        lines.append(f"{kind}, {name}: {np.sum(signs > 0)} slower and {np.sum(signs < 0)} faster of {len(signs)}")
    for name, refutation in results.refutations.items():
        fits = results.evidence.explains(results.candidates[name].parameter)
        lines.append(f"{name}: explains the data as a whole: {fits}; {len(refutation.refuted)} claims refuted")
        lines += [f"    {interval.name}" for interval in refutation.refuted]
    lines.append(f"network: {results.selection.status}, {results.selection.reason}")
    lines.append(f"for the layer to be there, the norm of the slowness would have to be {results.needed:.1f} at least")
    return "\n".join(lines)


def check(results):
    """The claims of this demo."""
    for (name, found), most in zip(results.checks.items(), (2.1, 3.1), strict=True):
        # At a level of 95 % fewer would be seen in one of a hundred surveys.
        assert found[:, 0].sum() >= binom.ppf(0.01, len(found), 0.95), name
        assert np.median(found[:, 1]) <= most, name
    refuted = {name: [interval.name for interval in found.refuted] for name, found in results.refutations.items()}
    assert refuted == {
        "baseline": [],
        "network": [],
        "with a layer": ["0 to 5 m, depth 6 to 6.5 m"],
        "with an upright layer": [],
    }
    assert all(results.evidence.explains(candidate.parameter) for candidate in results.candidates.values())
    assert results.needed > RADIUS
    assert results.selection.status == "rejected"
    assert results.selection.learned.radius.value > 1.05 * results.selection.baseline.radius.value


def draw(results, path):
    """What is certain, the candidates, the layers with their intervals, and readings that were left out."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    figure = Figure(figsize=(17, 6.6), layout="constrained", dpi=130)
    figure.suptitle("Between two boreholes layers are certain, spots are not, and an invented layer is refuted",
                    fontweight="bold")  # fmt: skip
    panels = figure.subplots(1, 6, width_ratios=[1.25, 1.25, 1.25, 1.25, 1.3, 1.5])
    titles = {"baseline": "reconstruction, and the\ncertain squares of a metre",
              "network": "a network trained on layers:\nnothing refuted, not accepted",
              "with a layer": "with an invented layer:\nrefuted",
              "with an upright layer": "the same upright:\nnot refuted"}  # fmt: skip
    for axes, (name, candidate) in zip(panels, results.candidates.items(), strict=False):
        image = draw_image(axes, results.survey.basis, candidate.parameter, vmin=-1.2, vmax=1.2, cmap="RdBu_r")
        axes.set_title(titles[name], fontsize=10)
        axes.set_xlabel("m")
        axes.set_ylim(12.5, 0.5)
    panels[0].set_ylabel("depth in m")
    label = "slowness beyond 7 ns/m, in ns/m"
    figure.colorbar(image, ax=panels[:4].tolist(), label=label, shrink=0.7, location="bottom")
    for (a, b, c, d), sign in zip(boxes(1.0, 1.0), results.signs["noise", "squares"], strict=True):
        if sign:
            panels[0].add_patch(Rectangle((a, c), b - a, d - c, fill=False, edgecolor="k", linewidth=1.5))
            word = "slow" if sign > 0 else "fast"
            panels[0].text((a + b) / 2, (c + d) / 2, word, ha="center", va="center", fontsize=8)
    draw_layers(panels[4], results)
    draw_readings(panels[5], results)
    figure.savefig(path)


def draw_layers(axes, results):
    """Means over layers: intervals, and what the candidate with a layer claims."""
    rectangles = boxes(5.0, 0.5)
    refutation = results.refutations["with a layer"]
    for (_, _, top, bottom), interval, value in zip(rectangles, refutation.table, refutation.values, strict=False):
        depth = (top + bottom) / 2
        axes.plot([interval.lower.value, interval.upper.value], [depth, depth], color="#6b7280", linewidth=4, alpha=0.6)
        look = ("o", "#0072B2", 5) if interval.contains(value) else ("X", "#D55E00", 10)
        axes.plot(value, depth, look[0], color=look[1], markersize=look[2])
    axes.set_ylim(12.5, 0.5)
    axes.set_xlabel("mean slowness beyond 7 ns/m")
    axes.set_title("layers: 95 % for all at once (bars),\nand the candidate with a layer", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)


def draw_readings(axes, results):
    """Errors of the predictions of readings that were left out, over half the length of their intervals."""
    for (name, found), color in zip(results.checks.items(), ("#0072B2", "#E69F00"), strict=True):
        axes.plot(found[:, 1], found[:, 2], ".", color=color, label=f"{name}: {len(found)}")
    most = max(found[:, 1].max() for found in results.checks.values())
    axes.plot([0.0, most], [0.0, most], color="k", linewidth=1)
    axes.text(0.72 * most, 0.77 * most, "the interval ends here", rotation=45, fontsize=8, ha="center", va="center",
              rotation_mode="anchor", transform_rotates_text=True)  # fmt: skip
    axes.set_xlim(0.0, most * 1.03)
    axes.set_ylim(0.0, most * 1.03)
    axes.set_xlabel("half length of the interval in ns")
    axes.set_ylabel("error of the prediction in ns")
    axes.set_title("readings that were left out", fontsize=10)
    axes.legend(fontsize=8, frameon=False, loc="upper left")
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    try:
        results = main()
    except (fc.DatasetError, MissingPackageError) as error:
        print(error)
    else:
        print(told(results))
        check(results)
        directory.mkdir(parents=True, exist_ok=True)
        draw(results, directory / "crosshole_radar.png")
