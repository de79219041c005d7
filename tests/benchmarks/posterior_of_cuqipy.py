"""The credible interval of a Bayesian code beside the two kinds of intervals, for the same Gaussian prior.

Run: ``python tests/benchmarks/posterior_of_cuqipy.py [TRUTHS]`` (40), with CUQIpy (`pip install cuqipy`). Truths and
readings as in ``evidence_in_numbers.py``: 33 sensors, 1 % noise. The prior is ``N(0, mu L^-1)`` with the form L of the
H1 ball and, for each measurement, the mu with which it is most likely; CUQIpy draws 1,000 samples of the posterior. It
writes ``results/posterior_of_cuqipy.md`` and ends with exit code 1 if its deviations differ from those of femcert's
posterior by more than 1,000 samples explain.
"""

import contextlib
import io
import sys
from pathlib import Path

import cuqi
import numpy as np
from evidence_in_numbers import Case, Experiment, inside
from scipy.optimize import minimize_scalar

DRAWS = 1000
HEAD = ("truths", "every truth: half length", "coverage", "like the samples: half length", "coverage",
        "CUQIpy, credible: half length", "coverage", "deviation, over femcert's")  # fmt: skip


class Peer:
    """CUQIpy's posterior for an experiment."""

    def __init__(self, it):
        inverse = np.linalg.inv(it.problem.parameters.ball_form.toarray())
        self.it, self.covariance = it, (inverse + inverse.T) / 2.0
        lam, self.vectors = np.linalg.eigh(it.forward @ self.covariance @ it.forward.T / it.std**2)
        self.lam = np.maximum(lam, 0.0)

    def scale(self, y):
        """The mu for which y is most likely."""
        squares = (self.vectors.T @ y / self.it.std) ** 2

        def cost(t):
            spread = 1.0 + 10.0**t * self.lam
            return np.sum(np.log(spread) + squares / spread)

        return 10.0 ** minimize_scalar(cost, bounds=(-8.0, 6.0), method="bounded").x

    def draws(self, y):
        """Of the functionals, a row each."""
        n = len(self.covariance)
        prior = cuqi.distribution.Gaussian(np.zeros(n), cov=self.scale(y) * self.covariance)
        likelihood = cuqi.distribution.Gaussian(cuqi.model.LinearModel(self.it.forward) @ prior, cov=self.it.std**2)
        with contextlib.redirect_stdout(io.StringIO()):
            problem = cuqi.problem.BayesianProblem(prior, likelihood).set_data(likelihood=y)
            return np.array(self.it.asked) @ problem.sample_posterior(DRAWS).samples


def row(truths, count):
    """The row of the table, and whether both posteriors agree."""
    it = Experiment(Case(truths, model=False))
    peer, held, lengths, ratios = Peer(it), [], [], []
    for true, y in zip(*it.measured(count)[1:], strict=True):
        found, draws = it.of(y), peer.draws(y)
        lower, upper = np.quantile(draws, (0.025, 0.975), axis=1)
        each = [found.interval(psi) for psi in it.asked]
        alone = [found.interval(psi, samples=it.samples) for psi in it.asked]
        held.append([inside(each, true), inside(alone, true), (lower <= true) & (true <= upper)])
        lengths.append([*([i.half_length for i in kind] for kind in (each, alone)), (upper - lower) / 2.0])
        ratios.append(np.std(draws, axis=1) / [i.deviation for i in alone])
    half, covered = np.mean(lengths, axis=(0, 2)), 100.0 * np.mean(held, axis=0)
    cells = [truths]
    for value, shares in zip(half, covered, strict=True):
        cells += [f"{value:.4f}", f"{shares.min():.4g} to {shares.max():.4g} %"]
    ratios = np.array(ratios)
    cells.append(f"{ratios.min():.2f} to {ratios.max():.2f}")
    # A deviation of n draws scatters by 1 / sqrt(2 n); five times that for all of them.
    return cells, bool(np.all(np.abs(ratios - 1.0) <= 5.0 / np.sqrt(2.0 * DRAWS)))


def main(count):
    """Both rows; writes the table."""
    rows, kept = [], True
    for truths in ("blobs", "discs"):
        cells, good = row(truths, count)
        rows.append(cells)
        kept &= good
        print(" | ".join(cells), "" if good else "  <- posteriors differ", flush=True)
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in (HEAD, ["---"] * len(HEAD), *rows))
    words = f"# The posterior of CUQIpy\n\n`python tests/benchmarks/posterior_of_cuqipy.py`: {count} truths.\n\n"
    path = Path(__file__).parent / "results" / "posterior_of_cuqipy.md"
    path.write_text(words + table + "\n", encoding="utf-8")
    return int(not kept)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 40))
