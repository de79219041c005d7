"""
What a ten times better sensor is worth: stability exponents on a disc, from the equation alone
===============================================================================================

Everything on a disc is measured: the whole state, up to an error of norm eps. How far can the parameter be off? Without
further knowledge, arbitrarily far, for fine structure leaves no trace. If the parameter is known to lie in a ball of a
smoother norm, the answer is the modulus of continuity omega(eps), and femcert bounds it on the finite-element space,
all 545 coordinates of it. Where it behaves like C eps^p, the exponent p says what better sensors are worth.

* A source that heats an insulated disc, of bounded H1 norm: p = 1/3. A tenth of the noise leaves 47 % of the radius.
* The same source in a ball of H2 type: p is near 1/2, and a tenth of the noise leaves a third.
* The initial temperature of the disc, seen at a later time: p is about 0.1, the less the later one looks. A tenth of
  the noise leaves four fifths. And p falls with the noise, too: the curve bends, as logarithms do.

On an insulated domain of any shape theory knows the answer: a mode with eigenvalue m of the Laplacian has the H1 norm
(1 + m)^1/2, the H2 norm 1 + m, and is seen through 1 / (1 + m) as a source, through exp(-m T) as an initial value. The
curves through all m (dotted) are found again to a few percent, without using them. On the right is what the noise may
hide: the farthest a parameter of the ball can be from another one with the same data, up to eps.

Run: ``python demos/ex08_stability_exponent.py [DIRECTORY]`` writes the picture ``stability_exponent.png``.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from skfem import Basis, ElementTriP1, MeshTri

import femcert as fc
from femcert.stability import Modulus

# The envelope C eps^p is for these noise levels; the curves are drawn up to the larger one.
LEVELS, DRAWN = (1e-4, 1e-2), 1e-1
TIMES = (0.003, 0.01, 0.03)
SHOWN = (1e-2, 1e-3)


@dataclass
class Law:
    """A problem with its modulus on a ball of radius 1; what theory says of the mode with eigenvalue m.

    `seen` is the norm of its data and `size` its norm in the ball, both for a mode of norm 1. `envelope` is C and p.
    """

    name: str
    problem: fc.LinearProblem
    seen: Callable
    size: Callable

    def __post_init__(self):
        self.modulus = Modulus(self.problem)
        self.envelope = self.modulus.envelope(*LEVELS)

    def curve(self):
        """Noise level and modulus of modes with all eigenvalues; two parameters of the ball are up to 2 apart."""
        m = np.geomspace(1e-3, 1e4, 2001)
        with np.errstate(under="ignore"):
            omega = 2.0 / self.size(m)
            return self.seen(m) * omega, omega

    def theory(self, eps):
        """The modulus at eps, read off the curve."""
        level, omega = self.curve()
        known = level > 1e-12
        return np.exp(np.interp(np.log(eps), np.log(level[known][::-1]), np.log(omega[known][::-1])))


def disc(refinements):
    """Linear elements on the unit disc, and sensors with ``‖H u‖`` = the L2 norm of u."""
    basis = Basis(MeshTri.init_circle(refinements), ElementTriP1())
    mass = fc.FullSpace(basis).weight.toarray()
    return basis, fc.MatrixSensors(np.linalg.cholesky(mass).T)


def source(basis, sensors, norm):
    """-Laplace u + u = q on the insulated disc, ``‖q‖_norm <= 1``."""
    space = fc.FullSpace(basis).within_ball(1.0, norm=norm)
    problem = fc.EllipticSource(basis, parameters=space, sensors=sensors, reaction=1.0, dirichlet={})
    power = {"h1": 0.5, "h2": 1.0}[norm]
    return Law(f"source, {norm.upper()} ball", problem, lambda m: 1 / (1 + m), lambda m: (1 + m) ** power)


def heat(basis, sensors, time):
    """u_t = Laplace u on the insulated disc, seen at `time`; ``‖u(0)‖_H1 <= 1``."""
    space = fc.FullSpace(basis).within_ball(1.0, norm="h1")
    problem = fc.HeatInitial(basis, parameters=space, sensors=sensors, times=time, scheme="exact", dirichlet={})
    return Law(f"heat at t = {time:g}, H1 ball", problem, lambda m: np.exp(-m * time), lambda m: np.sqrt(1 + m))


def main(refinements=4):
    """The two sources and the three times, all on one mesh."""
    basis, sensors = disc(refinements)
    sources = {norm: source(basis, sensors, norm) for norm in ("h1", "h2")}
    return {**sources, **{time: heat(basis, sensors, time) for time in TIMES}}


def hidden(law, eps):
    """The parameter that the noise may hide: its size, its size in the ball, and the norm of its data."""
    space, q = law.problem.parameters, law.modulus.worst(eps)
    ball = np.sqrt(q @ (space.form(space.ball.norm) @ q))
    return q, space.norm(q), ball, np.linalg.norm(law.problem.forward_matrix() @ q)


def exponents(law):
    """The slope of the modulus over two decades of smaller and of larger noise."""
    decades = (LEVELS, (10.0 * LEVELS[0], DRAWN))
    return [law.modulus.envelope(*levels)[1] for levels in decades]


def check(laws):
    """What this demo claims."""
    p = {name: law.envelope[1] for name, law in laws.items()}
    assert abs(p["h1"] - 1 / 3) < 0.02
    assert abs(p["h2"] - 1 / 2) < 0.03
    assert 0.125 > p[0.003] > p[0.01] + 0.005 > p[0.03] + 0.01 > 0.09
    # A power stays one at another noise level, a logarithm does not.
    for norm in ("h1", "h2"):
        here, noisier = exponents(laws[norm])
        assert abs(here - noisier) < 0.02
    for time in TIMES:
        here, noisier = exponents(laws[time])
        assert here < 0.65 * noisier
    for law in laws.values():
        C, exponent = law.envelope
        for eps in np.geomspace(*LEVELS, 5):
            bound = law.modulus(eps).value
            assert bound <= C * eps**exponent * (1 + 1e-12)
            assert 0.9 * law.theory(eps) < bound < 1.05 * law.theory(eps)
            # From the other side, a parameter that the bound must allow for.
            _, size, ball, seen = hidden(law, eps)
            assert seen <= eps * (1 + 1e-6)
            assert ball <= 2.0 * (1 + 1e-6)
            assert 0.97 * bound < size <= bound * (1 + 1e-9)


def draw(laws, path):
    """Moduli with envelopes and theory, and what is hidden at two noise levels."""
    from femcert.report import style

    figure = style.new_figure(15.0, 6.2)
    message = "A tenth of the noise: worth a lot for smooth sources, little for heat that has spread"
    figure.suptitle(message, fontsize=14, fontweight="bold")
    left, right = figure.subfigures(1, 2, width_ratios=[1.15, 1.0])
    draw_moduli(left.subplots(), laws)
    draw_hidden(right, [laws["h1"], laws["h2"], laws[TIMES[-1]]])
    style.save(figure, path)


def draw_moduli(axes, laws):
    """The modulus of each law over the noise level."""
    from femcert.report import style

    style.tidy(axes)
    eps = np.geomspace(LEVELS[0], DRAWN, 46)
    inside = np.array(LEVELS)
    axes.axvspan(*LEVELS, color=style.GREY, alpha=0.08, linewidth=0.0)
    colours = (style.BLUE, style.GREEN, style.ORANGE, style.RED, style.PINK)
    for law, colour in zip(laws.values(), colours, strict=True):
        C, p = law.envelope
        # Of the multipliers that the envelopes needed, the best one at each level.
        values = [law.modulus.bound(level) for level in eps]
        label = f"{law.name}: p = {p:.2f}, leaves {10.0**-p:.0%}"
        axes.plot(eps, values, color=colour, linewidth=3.0, alpha=0.75, label=label)
        axes.plot(inside, C * inside**p, color=colour, linewidth=1.2, linestyle=(0, (5, 2)))
        axes.plot(eps, law.theory(eps), color="black", linewidth=1.1, linestyle=(0, (1, 2)))
    words = "envelope C ε$^p$, on the grey range"
    axes.plot([], [], color=style.GREY, linewidth=1.2, linestyle=(0, (5, 2)), label=words)
    axes.plot([], [], color="black", linewidth=1.1, linestyle=(0, (1, 2)), label="theory")
    axes.set(xscale="log", yscale="log", xlim=(eps[0], eps[-1]), ylim=(0.015, 4.0))
    style.plain_numbers(axes)
    axes.set_xlabel("error of the data, ε")
    axes.set_ylabel("largest error of the parameter, ω(ε)")
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    axes.set_title("modulus of continuity, bounded from above", fontsize=11)


def draw_hidden(panel, laws):
    """Parameters that noise of two levels may hide."""
    from femcert.report.fields import draw_image

    grid = panel.subplots(len(SHOWN), len(laws))
    for axes, law in zip(grid[0], laws, strict=True):
        axes.set_title(law.name, fontsize=10.5)
    for row, eps in zip(grid, SHOWN, strict=True):
        for axes, law in zip(row, laws, strict=True):
            q, size, _, _ = hidden(law, eps)
            q = q * np.sign(q[np.abs(q).argmax()])
            image = draw_image(axes, law.problem.basis, q / np.abs(q).max(), cmap="RdBu_r", vmin=-1.0, vmax=1.0)
            axes.set(xticks=[], yticks=[], frame_on=False)
            axes.set_xlabel(f"L2 norm {size:.2g}", fontsize=10)
        row[0].set_ylabel(f"hidden at ε = {eps:g}", fontsize=11, fontweight="bold")
    look = {"shrink": 0.5, "aspect": 40, "ticks": [-1, 0, 1], "location": "bottom"}
    panel.colorbar(image, ax=grid.ravel().tolist(), label="in parts of its largest value", **look)


if __name__ == "__main__":
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    directory.mkdir(parents=True, exist_ok=True)
    laws = main()
    for law in laws.values():
        C, p = law.envelope
        print(f"{law.name:25} C = {C:.3f}, p = {p:.3f}; with ten times the noise {exponents(law)[1]:.3f}")
    check(laws)
    draw(laws, directory / "stability_exponent.png")
