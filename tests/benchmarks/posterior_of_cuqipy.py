"""The credible interval of a Bayesian code beside the two kinds of intervals, for the same Gaussian prior.

Run: ``python tests/benchmarks/posterior_of_cuqipy.py [TRUTHS]`` (40), with CUQIpy (`pip install cuqipy`). The rows of
``two_claims.py``, with the same problems, samples and data, for the first TRUTHS of its truths. The prior is
``N(0, mu L^-1)`` with the form L of the ball and, for each measurement, the mu with which it is most likely; CUQIpy
draws 1,000 samples of the posterior. It writes ``results/posterior_of_cuqipy.md`` and ends with exit code 1 if its
deviations differ from those of femcert's posterior by more than 1,000 samples explain.
"""

import contextlib
import io
import sys
from pathlib import Path

import cuqi
import numpy as np
from scipy.optimize import minimize_scalar
from two_claims import rows, setting

import femcert as fc

DRAWS = 1000
HEAD = ("ball", "truths", "noise", "every truth: half length", "coverage", "like the samples: half length", "coverage",
        "CUQIpy, credible: half length", "coverage", "deviation, over femcert's")  # fmt: skip


class Peer:
    """CUQIpy's posterior of the functionals (rows of `asked`) for a problem and a deviation."""

    def __init__(self, problem, asked, std):
        inverse = np.linalg.inv(problem.parameters.ball_form.toarray())
        self.asked, self.std, self.covariance = asked, std, (inverse + inverse.T) / 2.0
        self.forward = problem.forward.apply(np.eye(problem.parameters.size))
        lam, self.vectors = np.linalg.eigh(self.forward @ self.covariance @ self.forward.T / std**2)
        self.lam = np.maximum(lam, 0.0)

    def scale(self, y):
        """The mu for which y is most likely."""
        squares = (self.vectors.T @ y / self.std) ** 2

        def cost(t):
            spread = 1.0 + 10.0**t * self.lam
            return np.sum(np.log(spread) + squares / spread)

        return 10.0 ** minimize_scalar(cost, bounds=(-8.0, 6.0), method="bounded").x

    def draws(self, y):
        """Of the functionals, a row each."""
        n = len(self.covariance)
        prior = cuqi.distribution.Gaussian(np.zeros(n), cov=self.scale(y) * self.covariance)
        likelihood = cuqi.distribution.Gaussian(cuqi.model.LinearModel(self.forward) @ prior, cov=self.std**2)
        with contextlib.redirect_stdout(io.StringIO()):
            problem = cuqi.problem.BayesianProblem(prior, likelihood).set_data(likelihood=y)
            return self.asked @ problem.sample_posterior(DRAWS).samples


def row(kind, name, noise, count):
    """The row of the table, and whether both posteriors agree."""
    problem, functionals, samples, truths, std, measured = setting(kind, name, noise)
    asked = np.array([psi.weights(problem.parameters) for psi in functionals])
    peer, held, lengths, ratios = Peer(problem, asked, std), [], [], []
    known = fc.evidence(problem, fc.Data.gaussian(measured[0], std=std))
    for true, y in zip(truths[:count] @ asked.T, measured[:count], strict=True):
        found, draws = known.with_data(known.data.with_values(y)), peer.draws(y)
        lower, upper = np.quantile(draws, (0.025, 0.975), axis=1)
        each = [found.interval(psi) for psi in asked]
        alone = [found.interval(psi, samples=samples) for psi in asked]
        inside = [[i.contains(v) for i, v in zip(kind_, true, strict=True)] for kind_ in (each, alone)]
        held.append([*inside, (lower <= true) & (true <= upper)])
        lengths.append([*([i.half_length for i in kind] for kind in (each, alone)), (upper - lower) / 2.0])
        ratios.append(np.std(draws, axis=1) / [i.deviation for i in alone])
    half, covered = np.mean(lengths, axis=(0, 2)), 100.0 * np.mean(held, axis=0)
    cells = [name.upper(), kind.__name__, f"{100 * noise:g} %"]
    for value, shares in zip(half, covered, strict=True):
        cells += [f"{value:.4f}", f"{shares.min():.4g} to {shares.max():.4g} %"]
    ratios = np.array(ratios)
    cells.append(f"{ratios.min():.2f} to {ratios.max():.2f}")
    # A deviation of n draws scatters by 1 / sqrt(2 n); five times that for all of them.
    return cells, bool(np.all(np.abs(ratios - 1.0) <= 5.0 / np.sqrt(2.0 * DRAWS)))


def main(count):
    """All rows; writes the table."""
    done, kept = [], True
    for kind, name, noise in rows():
        cells, good = row(kind, name, noise, count)
        done.append(cells)
        kept &= good
        print(" | ".join(cells), "" if good else "  <- posteriors differ", flush=True)
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in (HEAD, ["---"] * len(HEAD), *done))
    words = f"# The posterior of CUQIpy\n\n`python tests/benchmarks/posterior_of_cuqipy.py`: {count} truths.\n"
    words += "Half lengths are means over five squares; of coverages the least and the largest.\n\n"
    path = Path(__file__).parent / "results" / "posterior_of_cuqipy.md"
    path.write_text(words + table + "\n", encoding="utf-8")
    return int(not kept)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 40))
