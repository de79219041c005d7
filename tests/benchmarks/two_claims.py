"""Intervals for every truth of a ball beside those for truths like samples, and what a credible interval covers.

Run: ``python tests/benchmarks/two_claims.py [TRUTHS]`` (300). A source on the L-shape from 33 averages, means over five
squares, 400 samples. The radius of the ball is the 97.5 % quantile over 500 other samples. It writes
``results/two_claims.md`` and ends with exit code 1 if a coverage that is claimed is below what chance allows, or if the
intervals for truths like the samples are not the shorter ones.
"""

import os
import sys
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[1] / "evidence"))

import numpy as np
from evidence_helpers import fewest, fewest_conformal
from l_shape_truths import blobs, deviation, discs, l_shape_basis, l_shape_problem, larger_discs, means, readings
from scipy.stats import norm

import femcert as fc

SAMPLES, CELLS, KINDS = 400, 60, (blobs, discs, larger_discs)
HEAD = (
    "ball", "truths", "noise", "every truth: half length", "coverage", "like the samples: half length", "coverage",
    "all five together", "coverage", "credible interval", "coverage",
)  # fmt: skip
WORDS = """# Two claims, side by side

`python tests/benchmarks/two_claims.py`: {truths} truths, means over five squares, 95 %. Half lengths are means over the
squares; of coverages the least and the largest of the five. The credible interval is that of the same Gaussian
posterior without calibration: nobody knows in advance which of its coverages are too low. For one set of {samples}
samples the coverage of a calibrated interval scatters by one to two per cent. Discs have radii from 0.1 to 0.3, larger
ones from 0.15 to 0.25.

{table}
"""


def setting(kind, name, noise, count=300):
    """Problem, functionals, samples, truths, deviation and data of a row."""
    basis = l_shape_basis()
    train, unit = kind(basis, 500, 1), fc.FullSpace(basis).within_ball(1.0, norm=name)
    radius = float(np.quantile([unit.ball_norm(q) for q in train], 0.975))
    problem = l_shape_problem(lambda b: fc.FullSpace(b).within_ball(radius, norm=name))
    samples, truths = fc.Samples(kind(basis, SAMPLES, 2)), kind(basis, count, 3)
    std = deviation(problem, train, noise)
    y = readings(problem, truths)
    y = y + std * np.random.default_rng(4).standard_normal(y.shape)
    return problem, means(basis), samples, truths, std, y


def row(kind, name, noise, count):
    """The row of the table, and whether it is as claimed."""
    problem, asked, samples, truths, std, y = setting(kind, name, noise, count)
    values = truths @ np.array([each.weights(problem.parameters) for each in asked]).T
    found = fc.evidence(problem, fc.Data.gaussian(y[0], std=std))
    lengths, inside = [], []
    for measured, true in zip(y, values, strict=True):
        new = found.with_data(found.data.with_values(measured))
        each = [new.interval(psi) for psi in asked]
        alone = [new.interval(psi, samples=samples) for psi in asked]
        table = list(new.table(asked, samples=samples))
        credible = [norm.ppf(0.975) * i.deviation for i in alone]
        lengths.append([*([i.half_length for i in kind_] for kind_ in (each, alone, table)), credible])
        held = [[i.contains(v) for i, v in zip(kind_, true, strict=True)] for kind_ in (each, alone, table)]
        near = [abs(i.estimate - v) <= h for i, v, h in zip(alone, true, credible, strict=True)]
        inside.append([*held, near])
    half, covered = np.mean(lengths, axis=(0, 2)), np.sum(inside, axis=0)
    together = int(np.sum(np.all(np.array(inside)[:, 2], axis=1)))
    shares = [f"{100.0 * low / count:.0f} to {100.0 * high / count:.0f} %" for low, high in _ends(covered)]
    shares[2] = f"{100.0 * together / count:.0f} %"
    kept = np.all(covered[0] >= fewest(count, 0.95, CELLS))
    least = fewest_conformal(count, SAMPLES, 0.95, CELLS)
    kept &= np.all(covered[1] >= least) and together >= least and half[1] < half[0]
    cells = [name.upper(), kind.__name__, f"{100 * noise:g} %"]
    for value, share in zip(half, shares, strict=True):
        cells += [f"{value:.3f}", share]
    return cells, bool(kept)


def _ends(covered):
    return [(int(min(each)), int(max(each))) for each in covered]


def rows():
    """What each row is about."""
    return [(kind, name, noise) for name in ("h1", "h2") for kind in KINDS for noise in (0.01, 0.05)]


def main(count):
    """All rows; writes the table."""
    done, kept = [], True
    for kind, name, noise in rows():
        cells, good = row(kind, name, noise, count)
        done.append(cells)
        kept &= good
        print(" | ".join(cells), "" if good else "  <- not as claimed", flush=True)
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in (HEAD, ["---"] * len(HEAD), *done))
    results = Path(__file__).parent / "results"
    results.mkdir(exist_ok=True)
    (results / "two_claims.md").write_text(WORDS.format(truths=count, samples=SAMPLES, table=table), encoding="utf-8")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 300))
