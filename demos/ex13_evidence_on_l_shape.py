"""
What the data say about a source on the L-shape, region by region, and a hallucination that they refute
=======================================================================================================

A heat source is measured by 48 local averages of the temperature, each with a standard deviation that the maker of the
sensors states. Nothing is assumed of the source but that it is not too rough: its H1 norm (features of length 0.3) is
at most 2. It is in no span of modes. Then each mean over a region has an interval that holds for *every* such source,
in 95 % of measurements for all regions together, and no procedure whose length is fixed before the data has a much
shorter one. Redrawn 200 times, the noise keeps the truth in all intervals at once at least as often as that.

A learned map claims a second hot spot in the north west, and its own temperature fits the sensors as well as the noise
allows. The intervals do not look at that temperature: they say what sources may have produced the data, and there the
claim is far outside. The baseline is possible everywhere. And the radius need not be right: the source in the
south is positive unless its norm exceeds the breakdown, ten times what the truth has, while no source of a norm below
the least norm explains the data.

All this is about the discretized problem (the scope of the evidence is "discrete").

Run: ``python demos/ex13_evidence_on_l_shape.py [DIRECTORY]`` writes ``evidence_on_l_shape.png``.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from skfem import Basis, ElementTriP1

import femcert as fc

HERE = Path(__file__).parent
RADIUS, LENGTH, NOISE = 2.0, 0.3, 0.01
# Middles of the regions, all discs of one size.
PLACES = {
    "south": (-0.5, -0.5), "west": (-0.5, 0.05), "north west": (-0.5, 0.55), "north": (0.05, 0.55),
    "north east": (0.6, 0.55),
}  # fmt: skip
DISC = 0.3


@dataclass
class Case:
    """A problem with a known truth, what was measured, and what is made of it."""

    problem: fc.EllipticSource
    regions: list
    truth: np.ndarray
    exact: np.ndarray
    evidence: fc.Evidence
    baseline: fc.Candidate
    learned: fc.Candidate

    def values(self, field):
        """Of the regions, for a source."""
        return [region.value(self.problem.parameters, field) for region in self.regions]


def blob(basis, place, height):
    """A Gaussian hot spot: in no span of modes."""
    x, y = basis.doflocs
    return height * np.exp(-((x - place[0]) ** 2 + (y - place[1]) ** 2) / 0.08)


def build_problem():
    """-Laplace u = q, u = 0 on the boundary; q any function of the mesh in the ball; averages on a grid."""
    basis = Basis(fc.load_mesh(HERE.parent / "meshes" / "l_shape.msh"), ElementTriP1())
    x, y = (z.ravel() for z in np.meshgrid(*2 * [np.linspace(-0.9, 0.9, 8)]))
    inside = (x < 0.0) | (y > 0.0)
    sensors = fc.AverageSensors(basis, np.column_stack([x, y])[inside], radius=0.06)
    space = fc.FullSpace(basis).within_ball(RADIUS, norm="h1", length=LENGTH)
    return fc.EllipticSource(basis, parameters=space, sensors=sensors)


def disc_region(basis, name):
    """The elements around a place, by their midpoints."""
    near = lambda x: np.hypot(x[0] - PLACES[name][0], x[1] - PLACES[name][1]) < DISC  # noqa: E731
    return fc.Mean(basis, near, name=name)


def main(seed=0):
    """Measure once, ask, and make a baseline and a hallucination."""
    problem = build_problem()
    basis = problem.basis
    truth = blob(basis, PLACES["south"], 1.5) + blob(basis, PLACES["north east"], 0.8)
    exact = problem.observe(problem.solve(truth))
    std = NOISE * np.sqrt(np.mean(exact**2))
    data = fc.Data.gaussian(exact + std * np.random.default_rng(seed).standard_normal(exact.size), std=std)
    baseline = fc.Tikhonov(choose="discrepancy", penalty="h1", bounds=(0.0, None))(problem, data)
    # A network with two heads: its temperature fits the sensors, its source has a spot too much.
    wrong = truth + blob(basis, PLACES["north west"], 1.2)
    learned = fc.Candidate(problem.solve(truth), wrong, name="learned map")
    regions = [disc_region(basis, name) for name in PLACES]
    return Case(problem, regions, truth, exact, fc.evidence(problem, data), baseline, learned)


def coverage(case, trials=200, seed=1):
    """How often all regions contain the truth at once, over new noise; nothing is factorized anew."""
    rng, values, std = np.random.default_rng(seed), case.values(case.truth), np.sqrt(case.evidence.data.covariance)
    hits = 0
    for _ in range(trials):
        noisy = case.exact + std * rng.standard_normal(case.exact.size)
        table = case.evidence.with_data(case.evidence.data.with_values(noisy)).table(case.regions)
        hits += all(row.contains(value) for row, value in zip(table, values, strict=True))
    return hits / trials


def check(case):
    """What this demo claims."""
    evidence, space = case.evidence, case.problem.parameters
    table = evidence.table(case.regions)
    assert all(row.contains(value) for row, value in zip(table, case.values(case.truth), strict=True))
    alone = [evidence.interval(region) for region in case.regions]
    assert max(row.half_length / row.limit.value for row in alone) < 1.2
    assert coverage(case) > 0.95
    # Its own temperature fits the sensors; the claim about the source is refuted where the spot is, and only there.
    data = evidence.data
    assert data.norm(case.problem.observe(case.learned.state) - data.values) < data.noise_level
    assert [row.name for row in evidence.refute(case.learned, case.regions).refuted] == ["north west"]
    assert not evidence.refute(case.baseline, case.regions)
    # The radius: what the truth has is possible, and far below the breakdown.
    size, south = space.ball_norm(case.truth), case.regions[0]
    assert evidence.p_value > 0.05
    assert evidence.least_norm.value < size < RADIUS
    assert evidence.breakdown(south, 0.0).value > 10.0 * size
    # The length was known before the data.
    foreseen = fc.design(case.problem, case.regions, std=np.sqrt(data.covariance)[0], counts=[data.count])
    assert np.allclose(foreseen.half_lengths[0, 0], [row.half_length for row in table])


def words(case):
    """The table, the refutation and the breakdown as text."""
    evidence = case.evidence
    south = evidence.sensitivity(case.regions[0])
    return "\n".join([
        str(evidence.table(case.regions)),
        evidence.refute(case.learned, case.regions).reason,
        f"{south.message}; the least that explains the data is {south.least_norm.value:.3g}",
    ])  # fmt: skip


def draw(case, path):
    """Truth, claim and certain sign; the intervals of the regions; the interval over the radius."""
    from femcert.report import style

    figure = style.new_figure(14.5, 8.0)
    table = case.evidence.table(case.regions)
    row = table["north west"]
    claim = case.values(case.learned.parameter)[2]
    message = f"The learned map claims {claim:.2f} in the north west; the data allow {row.lower.value:.2f} to "
    figure.suptitle(f"{message}{row.upper.value:.2f}, for every source of the class", fontsize=14, fontweight="bold")
    top, bottom = figure.subfigures(2, 1, height_ratios=[1.15, 1.0])
    draw_fields(top, case)
    left, right = bottom.subplots(1, 2, width_ratios=[1.35, 1.0])
    draw_intervals(left, case, table)
    draw_radius(right, case)
    style.save(figure, path)


def draw_fields(figure, case):
    """Sources in one scale with the sensors, and where their sign is certain."""
    from matplotlib.colors import ListedColormap

    from femcert.report import style
    from femcert.report.evidence_figure import NEGATIVE, OPEN, POSITIVE, draw_elements, nearest, smoothed_intervals
    from femcert.report.fields import draw_image

    panels = figure.subplots(1, 4)
    basis, most = case.problem.basis, float(case.truth.max())
    fields = {
        "truth (unknown)": case.truth, "baseline": case.baseline.parameter, "learned map": case.learned.parameter
    }  # fmt: skip
    for axes, (name, field) in zip(panels, fields.items(), strict=False):
        image = draw_image(axes, basis, field, vmin=0.0, vmax=most)
        axes.set_title(name, fontsize=11)
    for name, (x, y) in PLACES.items():
        panels[0].annotate(name, (x, y), color="white", fontsize=8.5, ha="center", va="center")
        turn = np.linspace(0.0, 2.0 * np.pi, 60)
        panels[0].plot(x + DISC * np.cos(turn), y + DISC * np.sin(turn), color="white", linewidth=0.8)
    figure.colorbar(image, ax=panels[:3].tolist(), label="source q", shrink=0.8, extend="both")
    points, map_, _ = smoothed_intervals(case.evidence, 0.25)
    sign = np.array([row.sign for row in map_], dtype=float)[nearest(basis.mesh, points)]
    colours = ListedColormap([NEGATIVE, OPEN, POSITIVE])
    draw_elements(panels[3], basis.mesh, sign, cmap=colours, clim=(-1.0, 1.0))
    areas = basis.dx.sum(axis=1)
    panels[3].set_title(f"certainly positive: {areas[sign > 0.0].sum() / areas.sum():.0%}", fontsize=11)
    panels[3].set_xlabel(f"{len(map_)} means over discs of radius 0.25,\ntogether at 95 %", color=style.GREY)
    for axes in panels:
        axes.set(xticks=[], yticks=[], frame_on=False)


def draw_intervals(axes, case, table):
    """Bars for the regions, and what everyone claims."""
    from femcert.report import style

    style.tidy(axes, grid="y")
    place = np.arange(len(table))
    low, high = (np.array([end.value for end in ends]) for ends in zip(*table, strict=True))
    axes.bar(place, high - low, 0.5, bottom=low, color=style.SKY, alpha=0.6, label="the data allow")
    for shift, (name, field, colour, marker) in zip((-0.13, 0.0, 0.13), (
        ("truth (unknown)", case.truth, style.BLACK, "*"), ("baseline", case.baseline.parameter, style.BLUE, "s"),
        ("learned map", case.learned.parameter, style.RED, "o"),
    ), strict=True):  # fmt: skip
        look = {"color": colour, "marker": marker, "linestyle": "none", "markersize": 8.0}
        axes.plot(place + shift, case.values(field), label=name, **look)
    axes.axhline(0.0, color=style.BLACK, linewidth=0.8)
    axes.set_ylim(low.min() - 0.1)
    axes.set_xticks(place, [row.name for row in table])
    axes.set_ylabel("mean of the source")
    axes.legend(frameon=False, fontsize=9, ncols=2)
    axes.set_title("Intervals of regions, together at 95 %", fontsize=11, loc="left")


def draw_radius(axes, case):
    """The interval of the south over the radius of the ball."""
    from femcert.report import style
    from femcert.report.sensitivity_figure import draw_sensitivity

    truth = case.problem.parameters.ball_norm(case.truth), case.values(case.truth)[0]
    draw_sensitivity(axes, case.evidence.sensitivity(case.regions[0]), truth)
    axes.set_title("'south' is positive whatever radius one believes in, up to the breakdown", fontsize=11, loc="left")
    axes.set_ylabel("mean of the source in the south")
    axes.legend(frameon=False, fontsize=8.5, loc="upper left")
    style.plain_numbers(axes)


if __name__ == "__main__":
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    directory.mkdir(parents=True, exist_ok=True)
    case = main()
    print(words(case))
    check(case)
    draw(case, directory / "evidence_on_l_shape.png")
