"""
The load on a beam from its deflection: the moment is certain, the place is not
===============================================================================

A cantilever of linear elasticity is clamped on the left and carries an unknown load on its top edge. Sixteen points of
the bottom edge are measured, the vertical displacement only, each with a standard deviation of 0.2 % of the largest
one. The load is a function of x in a ball of H1 (16 cosines).

Intervals hold for every load of the class, at 95 % for all rows together. The moment about the clamp is known to 11 %
of itself. That the mean load of the beam and that of its outer half press downwards is certain, but the one may be off
by its own size, the other by 72 %. Of the inner half and of all eighths not even the sign is certain: bending
integrates the load four times, and a load near the clamp hardly bends the beam. The data do not say whether there are
two lumps, as in the truth.

Run: ``python demos/ex19_beam_load.py [DIRECTORY]`` writes the picture ``beam_load.png``.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from skfem import Basis, BilinearForm, ElementTriP1, ElementTriP2, ElementVector, MeshTri
from skfem.helpers import ddot, eye, sym_grad, trace

import femcert as fc

LENGTH, HEIGHT = 4.0, 0.4
YOUNG, POISSON = 200.0, 0.3
COSINES, SENSORS, NOISE = 16, 16, 0.002
PARTS = (2, 8)


def stress(u):
    """Of plane stress."""
    shear = 0.5 * YOUNG / (1.0 + POISSON)
    return YOUNG * POISSON / (1.0 - POISSON**2) * eye(trace(sym_grad(u)), 2) + 2.0 * shear * sym_grad(u)


@BilinearForm
def elasticity(u, v, _):
    """sigma(u) : eps(v)"""
    return ddot(stress(u), sym_grad(v))


@BilinearForm
def downwards(q, v, _):
    """The load q presses on the top edge."""
    return -q * v[1]


def true_load(x):
    """Two lumps, the larger one nearer to the clamp."""
    return np.exp(-(((x[0] - 1.2) / 0.35) ** 2)) + 0.6 * np.exp(-(((x[0] - 3.0) / 0.35) ** 2))


def beam(columns=80):
    """The problem, and the true load in its class."""
    x, y = np.linspace(0.0, LENGTH, columns + 1), np.linspace(0.0, HEIGHT, columns // 10 + 1)
    ends = {"clamp": lambda x: x[0] == 0.0, "top": lambda x: x[1] == HEIGHT}
    mesh = MeshTri.init_tensor(x, y).with_boundaries(ends)
    basis = Basis(mesh, ElementVector(ElementTriP2()))
    scalar = basis.with_element(ElementTriP1())
    points = np.column_stack([np.linspace(LENGTH / SENSORS, LENGTH, SENSORS), np.zeros(SENSORS)])
    cosines = [lambda x, k=k: np.cos(k * np.pi * x[0] / LENGTH) for k in range(COSINES)]
    space = fc.TraceSpace(scalar, "top", functions=cosines)
    load = space.nearest(true_load(space.points))
    # What is known beforehand: a ball in which the true load takes four fifths of the radius.
    ball = space.within_ball(1.25 * space.within_ball(1.0, norm="h1").ball_norm(load), norm="h1")
    problem = fc.LinearProblem(
        basis,
        operator=elasticity,
        load=downwards,
        parameters=ball,
        sensors=fc.PointSensors(basis, points, component=1),
        dirichlet={"clamp": 0.0},
        definite=True,
    )
    return problem, load


def asked(problem):
    """The moment about the clamp, the mean load, and that of each half and eighth."""
    space, basis = problem.parameters, problem.parameters.carrier
    means = [fc.Flux(basis, "top", name="mean load")]
    middles = basis.mesh.p[0, basis.mesh.facets[:, space.facets]].mean(axis=0)
    for n in PARTS:
        for i in range(n):
            ends = i * LENGTH / n, (i + 1) * LENGTH / n
            part = space.facets[(middles > ends[0]) & (middles < ends[1])]
            means.append(fc.Flux(basis, part, name=f"x from {ends[0]:g} to {ends[1]:g}"))
    # int x q dx, with the mass matrix of the top edge.
    return [fc.Prediction(space.weight @ space.points[0], name="moment about the clamp"), *means]


@dataclass
class Answer:
    """Intervals of what is asked, and the true values; the displacement of the true load."""

    problem: Any
    load: Any
    intervals: Any
    truth: Any
    state: Any

    def half_length(self, i):
        """Of an interval, in parts of the true value."""
        found = self.intervals[i]
        return 0.5 * (found.upper.value - found.lower.value) / abs(self.truth[i])


def main(seed=1):
    """One set of noisy readings of the true load."""
    problem, load = beam()
    state = problem.solve(load)
    exact = problem.predict(state, load)
    std = NOISE * np.abs(exact).max()
    data = fc.Data.gaussian(exact + std * np.random.default_rng(seed).standard_normal(exact.size), std=std)
    functionals = asked(problem)
    table = fc.evidence(problem, data).table(functionals)
    truth = [each.value(problem.parameters, load) for each in functionals]
    return Answer(problem, load, table.intervals, truth, state)


def draw(answer, path):
    """The bent beam, and intervals of the mean load on the whole beam, halves and eighths."""
    from femcert.report import style
    from femcert.report.fields import draw_image

    figure = style.new_figure(11.0, 7.0)
    message = "The moment of the load is certain, its place is not"
    figure.suptitle(message, fontsize=14, fontweight="bold")
    top, bottom = figure.subplots(2, 1, height_ratios=[1.0, 2.2])
    basis = answer.problem.basis
    image = draw_image(top, basis, answer.state)
    top.plot(*answer.problem.sensors.points.T, "o", color="white", markeredgecolor="black", clip_on=False)
    top.set_title("displacement: length (colours) and direction; dots: sensors", fontsize=10)
    figure.colorbar(image, ax=top, shrink=0.8)
    style.tidy(bottom)
    x = np.linspace(0.0, LENGTH, 400)
    bottom.plot(x, true_load(x[None]), color="black", linewidth=2.0, label="true load")
    colours = (style.GREEN, style.BLUE, style.GREY)
    row = 1
    for n, colour in zip((1, *PARTS), colours, strict=True):
        for i in range(n):
            found = answer.intervals[row]
            ends, low, high = (i * LENGTH / n, (i + 1) * LENGTH / n), found.lower.value, found.upper.value
            name = {1: "whole beam", 2: "halves", 8: "eighths"}[n] if i == 0 else None
            bottom.fill_between(ends, low, high, color=colour, alpha=0.3, label=name)
            row += 1
    moment = answer.intervals[0]
    words = f"{moment.lower.value:.2f} to {moment.upper.value:.2f} (true: {answer.truth[0]:.2f})"
    title = f"intervals of mean loads, at 95 % together; moment about the clamp: {words}"
    bottom.set_title(title, fontsize=10)
    bottom.set(xlim=(0.0, LENGTH), xlabel="x")
    bottom.set_ylabel("load per length")
    bottom.legend(frameon=False, ncols=4, loc="upper right")
    style.save(figure, path)


if __name__ == "__main__":
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    directory.mkdir(parents=True, exist_ok=True)
    answer = main()
    for found, value in zip(answer.intervals, answer.truth, strict=True):
        print(f"{found.name:24} {found.lower.value:7.3f} to {found.upper.value:7.3f}, true {value:6.3f}")
    draw(answer, directory / "beam_load.png")
