"""How many of the really better candidates `Calibrated` accepts, and how often it does harm, beside `Dominance`.

Run: ``python tests/benchmarks/calibrated_power.py [SAMPLES] [TESTS]`` (1000, 600). A source on the L-shape from 33
averages with 1 and 5 % Gaussian noise of known deviation. Truths, which lie in no span of modes, are blobs, or a
mixture: 70 % blobs, 15 % sharp discs and 15 % blobs in another part of the domain. Baselines: Tikhonov in 12
eigenmodes (blobs) or 20 (mixture), by discrepancy and by GCV. Learned: a linear map and a network, trained on blobs of
the first kind only. Each rule is calibrated once on SAMPLES truths and tried on TESTS others. It writes
``results/calibrated_power.md`` and ends with exit code 1 if the harm rate is above 5 % beyond chance, or the power at
5 % noise is below 70 %.
"""

import os
import sys
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[1] / "evidence"))

import numpy as np
from l_shape_truths import blobs, deviation, discs, l_shape_problem, readings, shifted
from measured import write_page
from scipy.stats import beta

import femcert as fc
from femcert.learn import NeuralOperator

TRAINING, HARM = 2000, 0.05
HEAD = (
    "modes, truths", "noise", "learned", "baseline", "better", "score", "accepted", "power", "harm rate",
    "worse of accepted", "power of Dominance", "its harm rate",
)  # fmt: skip
WORDS = """# Power of calibrated rules

{samples} samples for calibration, {tests} tests (`python tests/benchmarks/calibrated_power.py`). The mixture: 70 %
blobs, 15 % discs, 15 % blobs where no training sample was. Power is the share of the really better candidates that is
accepted, the harm rate the share of all measurements in which a worse one is accepted: at most 5 % is allowed.
`Dominance(zeta=0.05)` speaks of every truth in the span of the modes; these lie in no span, so that its level is not
one here.

{table}
"""


def mixture(basis, count, seed):
    """Truths of three kinds, in any order."""
    picked = np.random.default_rng([seed, 9]).choice(3, count, p=(0.7, 0.15, 0.15))
    kinds = [kind(basis, count, [seed, 10 + i]) for i, kind in enumerate((blobs, discs, shifted))]
    return np.choose(picked[:, None], kinds)


def linear_map(problem, truths, values):
    """Least squares from readings to coordinates."""
    A, c = np.hstack([values, np.ones((len(values), 1))]), coordinates(problem, truths)
    W = np.linalg.lstsq(A, c, rcond=None)[0]
    return lambda p, data: fc.Candidate.from_coefficients(p, np.append(data.values, 1.0) @ W, name="map")


def network(problem, truths, noise):
    """A neural operator, trained on the same blobs, projected on the class."""
    c = coordinates(problem, truths)
    operator = NeuralOperator(width=64)
    operator.fit(problem, sampler=lambda count, rng: c[:count], count=len(c), noise=noise, steps=1500, quiet=True)
    return operator


def coordinates(problem, fields):
    """Of the projections."""
    return np.array([problem.parameters.project(q)[0] for q in fields])


def tally(problem, data, baseline, learned, rule, truths, values):
    """(better, accepted by the rule, by dominance) for each test."""
    found = []
    safe = fc.Dominance(zeta=0.05)
    for truth, row in zip(truths, values, strict=True):
        new = data.with_values(row)
        try:
            pair = baseline(problem, new), learned(problem, new)
        except fc.FemcertError:
            # Without a baseline there is nothing to accept, as in the trials.
            found.append((False, False, False))
            continue
        errors = [problem.parameters.norm(c.parameter - truth) for c in pair]
        taken = []
        for judged in (rule, safe):
            try:
                judge = judged.prepare(problem, new, {"baseline": baseline, "learned": learned})
                taken.append(judge.compare(*pair).accepts(0.0))
            except fc.UncertifiedError:
                taken.append(False)
        found.append((errors[1] < errors[0], *taken))
    return np.array(found)


def row(noise, names, problem, data, solvers, samples, truths, values):
    """The row of the table, and whether it is as promised."""
    baseline, learned = solvers
    rule = fc.Calibrated(samples=samples, harm=HARM).calibrated(problem, data, baseline=baseline, learned=learned)
    better, taken, safe = tally(problem, data, baseline, learned, rule, truths, values).T
    n, harmed = len(better), int(np.sum(taken & ~better))
    power = [float(np.sum(x & better) / max(np.sum(better), 1)) for x in (taken, safe)]
    numbers = [
        np.mean(better), rule.calibration.score, np.mean(taken), power[0], harmed / n,
        harmed / max(np.sum(taken), 1), power[1], np.mean(safe & ~better),
    ]  # fmt: skip
    written = [x if isinstance(x, str) else f"{100 * x:.1f} %" for x in numbers]
    cells = [names[0], f"{100 * noise:g} %", *names[1:], *written]
    # The 1 % lower confidence bound of the harm rate.
    harmless = beta.ppf(0.01, harmed, n - harmed + 1) <= HARM if harmed else True
    return cells, bool(harmless and (noise < 0.05 or power[0] >= 0.7))


def main(count, tests):
    """All rows; writes the table."""
    found = [each for modes, kind in ((12, blobs), (20, mixture)) for each in rows_of(modes, kind, count, tests)]
    lines = HEAD, ["---"] * len(HEAD), *(cells for cells, _ in found)
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    write_page("calibrated_power.md", WORDS.format(samples=count, tests=tests, table=table))
    return 0 if all(good for _, good in found) else 1


def rows_of(modes, kind, count, tests):
    """Rows of one class and one kind of truths, and whether they are as promised."""
    problem = l_shape_problem(lambda basis: fc.EigenmodeSpace(basis, modes))
    basis, rng = problem.basis, np.random.default_rng(0)
    train, samples, truths = blobs(basis, TRAINING, 1), kind(basis, count, 2), kind(basis, tests, 3)
    for noise in (0.01, 0.05):
        std = deviation(problem, train, noise)
        noisy = [(y := readings(problem, fields)) + std * rng.standard_normal(y.shape) for fields in (train, truths)]
        data = fc.Data.gaussian(noisy[1][0], std=std)
        solvers = {"linear map": linear_map(problem, train, noisy[0]), "network": network(problem, train, noise)}
        for learned, solver in solvers.items():
            for choice in ("discrepancy", "gcv"):
                pair = fc.Tikhonov(choose=choice), solver
                names = f"{modes}, {kind.__name__}", learned, choice
                cells, good = row(noise, names, problem, data, pair, samples, truths, noisy[1])
                print(" | ".join(cells), "" if good else "  <- not as promised", flush=True)
                yield cells, good


if __name__ == "__main__":
    sys.exit(main(*(int(x) for x in [*sys.argv[1:], *("1000", "600")[len(sys.argv) - 1 :]])))
