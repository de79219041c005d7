"""
How much was released when: intervals by sensors downstream, wide for what has not arrived there
================================================================================================

A plant lets something into a channel, at a known place, for three hours. Water takes it past three sensors, which read
every six minutes; one of them fails for a while. Unknown is the strength of the release in time: a function in a ball
that says how fast strengths change.

The data give an interval for the mean strength in each quarter of an hour, all of them together with 95 %. A candidate
that invents a release in the first hour is refuted. Another one invents the same release just before the end: what was
let in then has not reached the sensors, the last interval is six times as long as any other, and nothing is refuted.
Not refuted is not confirmed.

It holds for this model with these time steps, for noise that is Gaussian of the given size, and for truths in the ball.

Run: ``python demos/ex18_release_history.py [DIRECTORY]`` writes the picture ``release_history.png``.
"""

import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from skfem import Basis, BilinearForm, ElementLineP1, ElementTriP1, LinearForm, MeshLine, MeshTri
from skfem.helpers import dot, grad

import femcert as fc

STD, END = 0.02, 3.0
PLACE = np.array([0.3, 0.5])
SENSORS = [(0.8, 0.3), (0.8, 0.7), (1.7, 0.5)]
QUARTERS = np.linspace(0.0, END, 13)


@BilinearForm
def drift(u, v, w):
    """Water moves to the right, what is in it spreads."""
    return 0.03 * dot(grad(u), grad(v)) + 1.2 * u.grad[0] * v


@LinearForm
def let_in(v, w):
    """Into a small disc, about one unit per hour."""
    return 40.0 * (np.hypot(w.x[0] - PLACE[0], w.x[1] - PLACE[1]) < 0.09) * v


def bump(t, centre, height=1.0):
    """A release of half an hour."""
    return height * np.exp(-(((t - centre) / 0.15) ** 2))


@dataclass(frozen=True)
class Found:
    """The problem, its truth, what is asked for, and what the data say of both candidates."""

    problem: fc.ParabolicProblem
    clock: Basis
    truth: np.ndarray
    quarters: list
    candidates: dict
    refuted: dict


def channel():
    """The problem: own forms, and a class of functions of time."""
    mesh = MeshTri.init_tensor(np.linspace(0, 2, 41), np.linspace(0, 1, 21))
    mesh = mesh.with_boundaries({"inlet": lambda x: x[0] == 0.0})
    basis = Basis(mesh, ElementTriP1())
    clock = Basis(MeshLine(np.linspace(0.0, END, 49)), ElementLineP1())
    return clock, fc.ParabolicProblem(
        basis,
        operator=drift,
        unknown="release",
        load=let_in,
        parameters=fc.FullSpace(clock).within_ball(2.0, norm="h1", length=0.3),
        sensors=fc.AverageSensors(basis, SENSORS, radius=0.06),
        times=np.linspace(0.1, END, 30),
        steps=120,
        dirichlet={"inlet": 0.0},
    )


def measured(problem, truth, seed):
    """Readings with noise; the second sensor fails between 1.2 and 1.6 hours."""
    exact = problem.predict(None, truth)
    values = (exact + STD * np.random.default_rng(seed).standard_normal(exact.size)).reshape(-1, 3)
    values[(problem.times > 1.2) & (problem.times < 1.6), 1] = np.nan
    return fc.Data.gaussian(values.ravel(), std=STD)


def main(seed=0):
    """Intervals of all quarters, and what they say of two candidates."""
    clock, problem = channel()
    t = clock.doflocs[0]
    truth = bump(t, 1.2) + bump(t, 1.9, 0.5)
    data = measured(problem, truth, seed)
    quarters = [
        fc.Mean(clock, lambda x, a=a, b=b: (x[0] > a) & (x[0] < b), name=f"{a:g} to {b:g}")
        for a, b in pairwise(QUARTERS)
    ]
    evidence = fc.evidence(problem, data)
    candidates = {"early": truth + bump(t, 0.65, 0.5), "late": truth + bump(t, 2.85, 0.5)}
    refuted = {
        name: evidence.refute(fc.Candidate(None, q, name=name), quarters, simultaneous=True)
        for name, q in candidates.items()
    }
    return Found(problem, clock, truth, quarters, candidates, refuted)


def check(found):
    """The claims of this demo."""
    assert [interval.name for interval in found.refuted["early"].refuted] == ["0.5 to 0.75"]
    assert not found.refuted["late"]
    table, space = found.refuted["early"].table, found.problem.parameters
    assert space.ball_norm(found.truth) < space.ball.radius
    for asked, interval in zip(found.quarters, table, strict=True):
        assert interval.contains(asked.value(space, found.truth))
    *before, last = (interval.half_length for interval in table)
    assert last > 6.0 * max(before)


def draw(found, path):
    """The water at one time; the history with its intervals and both candidates."""
    from matplotlib.figure import Figure

    blue, orange, grey = "#0072B2", "#D55E00", "#6b7280"
    figure = Figure(figsize=(13, 4.6), layout="constrained", dpi=130)
    figure.suptitle("A release upstream: intervals for each quarter of an hour", fontweight="bold")
    left, right = figure.subplots(1, 2, width_ratios=(1.0, 1.25))
    basis, level = found.problem.state_basis, int(np.argmin(np.abs(found.problem.times - 1.7)))
    state = found.problem.trajectory(found.truth)[:, level]
    left.tripcolor(*basis.mesh.p, basis.mesh.t.T, state, shading="gouraud", cmap="Blues", rasterized=True)
    left.plot(*PLACE, "*", color=orange, markersize=15, label="release")
    left.plot(*np.transpose(SENSORS), "ko", markersize=6, label="sensors")
    left.set(title=f"the water after {found.problem.times[level]:.1f} hours", aspect="equal", xticks=[], yticks=[])
    left.legend(loc="upper right")
    t = found.clock.doflocs[0]
    order = np.argsort(t)
    table = found.refuted["early"].table
    for k, interval in enumerate(table):
        ends = [interval.lower.value, interval.upper.value]
        label = "95 %, all together" if k == 0 else None
        right.fill_between(QUARTERS[k : k + 2], *ends, color=blue, alpha=0.3, linewidth=0, label=label)
    right.plot(t[order], found.truth[order], "k", label="truth")
    for name, style in (("early", "-"), ("late", ":")):
        label = f"{name} invention: {'refuted' if found.refuted[name] else 'not refuted'}"
        right.plot(t[order], found.candidates[name][order], style, color=orange, label=label, zorder=1)
    right.axhline(0.0, color=grey, linewidth=0.8)
    right.set(xlabel="hours", ylabel="strength of the release", xlim=(0.0, END))
    right.legend(frameon=False, loc="upper left", fontsize=9)
    right.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)


if __name__ == "__main__":
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    found = main()
    for interval in found.refuted["early"].table:
        print(f"{interval.name} hours: {interval.lower.value:.2f} to {interval.upper.value:.2f}")
    check(found)
    directory.mkdir(parents=True, exist_ok=True)
    draw(found, directory / "release_history.png")
