"""Whose claim is "no harm": what each rule accepts on the L-shape, and how often that was worse than the baseline.

Run: ``python tests/benchmarks/default_rule.py [TRIALS]`` (40). Truths are Gaussian blobs, in no span of modes; 33
averages with 1 % and 5 % Gaussian noise of known deviation. Three classes: 12 eigenmodes, which do not have the truth;
these with a remainder; and the full space within a ball of the H1 norm, which has it (sizes: 97.5 % quantile of 500
other blobs). Learned: a ridge map that was trained on blobs, least squares without regularization, and hallucinations,
the ridge map's answer with a blob of half its height where none is. Baselines: Tikhonov by discrepancy, by GCV, and
with a fixed weight. Each row is also counted with six regions whose claims the data may refute. It writes
``results/default_rule.md`` and ends with exit code 1 if `Dominance` harmed more often than its level where the truth is
in the class.
"""

import os
import sys
from collections import Counter
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[1] / "evidence"))

import numpy as np
from l_shape_truths import blobs, l_shape_basis, l_shape_problem
from measured import write_page
from scipy.stats import binom

import femcert as fc

MODES, LENGTH = 12, 0.3
RULES = {
    "ResidualRadius()": fc.ResidualRadius(),
    "OperationalRadius(optimality=0.1)": fc.OperationalRadius(optimality=0.1),
    "ExactRadius()": fc.ExactRadius(),
    "Dominance()": fc.Dominance(),
}
BASELINES = {
    "discrepancy": fc.Tikhonov(choose="discrepancy"),
    "gcv": fc.Tikhonov(choose="gcv"),
    "fixed": fc.Tikhonov(weight=1e-2),
}
LEARNED = ("ridge", "least squares", "hallucination")
REGIONS = {
    "lower left": lambda x: (x[0] < -0.5) & (x[1] < -0.5),
    "lower middle": lambda x: (x[0] > -0.5) & (x[0] < 0.0) & (x[1] < -0.5),
    "upper left": lambda x: (x[0] < -0.5) & (x[1] > -0.5) & (x[1] < 0.0),
    "corner": lambda x: (x[0] > -0.5) & (x[0] < 0.0) & (x[1] > -0.5) & (x[1] < 0.0),
    "upper arm": lambda x: (x[0] < 0.0) & (x[1] > 0.0),
    "right arm": lambda x: (x[0] > 0.0) & (x[1] < 0.0),
}


def problems():
    """By the name of the class, on the same mesh with the same sensors."""
    basis = l_shape_basis(3)
    unit = fc.FullSpace(basis).within_ball(1.0, norm="h1", length=LENGTH)
    modes, others = fc.EigenmodeSpace(basis, MODES), blobs(basis, 500, np.random.default_rng(1))
    radius = float(np.quantile([unit.ball_norm(row) for row in others], 0.975))
    size = float(np.quantile([modes.norm(modes.project(row)[1]) for row in others], 0.975))
    spaces = {
        "12 modes": modes,
        "12 modes with a remainder": modes.with_remainder(size),
        "ball": fc.FullSpace(basis).within_ball(radius, norm="h1", length=LENGTH),
    }
    return {name: l_shape_problem(lambda _, s=space: s, refined=3) for name, space in spaces.items()}


class Maps:
    """The learned maps of one problem and noise: matrices from readings to dofs."""

    def __init__(self, problem, share, rng):
        basis, F = problem.parameters.basis, problem.forward_matrix()
        sources = blobs(basis, 2000, rng)
        readings = np.array([problem.observe(problem.solve(row)) for row in sources])
        noise = share * np.linalg.norm(readings, axis=1, keepdims=True) / np.sqrt(readings.shape[1])
        noisy = readings + noise * rng.standard_normal(readings.shape)
        self.ridge = np.linalg.lstsq(noisy, sources, rcond=None)[0].T
        self.least = problem.parameters.matrix @ np.linalg.pinv(F, rcond=1e-12)
        self.problem = problem

    def candidates(self, values, rng):
        """All learned candidates for these readings, members of the class where that is a span."""
        space = self.problem.parameters
        ridge = self.ridge @ values
        spurious = 0.5 * np.abs(ridge).max() * blobs(space.basis, 1, rng)[0]
        found = {"ridge": ridge, "least squares": self.least @ values, "hallucination": ridge + spurious}
        if space.ball is None:
            found = {name: space.field(space.project(field)[0]) for name, field in found.items()}
        return {name: self._candidate(field, name) for name, field in found.items()}

    def _candidate(self, field, name):
        return fc.Candidate(self.problem.solve(field), field, 0.0, name)


def measure(problem, share, trials, seed):
    """Counts of (rule, learned, what) over trials and baselines."""
    rng, counts, space = np.random.default_rng(seed), Counter(), problem.parameters
    maps = Maps(problem, share, np.random.default_rng(seed + 1000))
    regions = [fc.Mean(space.basis, pick, name=name) for name, pick in REGIONS.items()]
    for _ in range(trials):
        truth = blobs(space.basis, 1, rng)[0]
        exact = problem.observe(problem.solve(truth))
        std = share * float(np.linalg.norm(exact)) / np.sqrt(exact.size)
        data = fc.Data.gaussian(exact + std * rng.standard_normal(exact.size), std=std)
        learned = maps.candidates(data.values, rng)
        refuted = refuted_ones(problem, data, learned, regions)
        for choose in BASELINES.values():
            try:
                safe = choose(problem, data)
            except fc.FemcertError:
                counts["left out"] += 1
                continue
            for label, rule in RULES.items():
                count_decisions(counts, problem, data, truth, safe, learned, label, rule, refuted)
    return counts


def refuted_ones(problem, data, learned, regions):
    """Names of the candidates that the data refute in some region."""
    found = fc.evidence(problem, data)
    if found.p_value <= found.law.zeta:
        return set()
    return {name for name, candidate in learned.items() if found.refute(candidate, regions)}


def count_decisions(counts, problem, data, truth, safe, learned, label, rule, refuted):
    """All candidates against a baseline; `no_harm` judges each of them alone."""
    norm = problem.parameters.norm
    found = fc.no_harm(problem, data, baseline=safe, learned=learned, rule=rule)
    for name, verdict in found.candidates.items():
        better = norm(learned[name].parameter - truth) < norm(safe.parameter - truth)
        for place, kept in (("", True), (" with regions", name not in refuted)):
            key, accepted = (label + place, name), verdict.status == "accepted" and kept
            for what, holds in (("all", True), ("better", better), (verdict.status, True), ("refuted", not kept)):
                counts[(*key, what)] += bool(holds)
            counts[(*key, "harm")] += accepted and not better
            counts[(*key, "taken")] += accepted and better


def table(counts):
    """A row for each rule: accepted and worse of all, accepted of the better ones, for each learned candidate."""
    head = "| rule | " + " | ".join(f"{name}: harm, taken of better" for name in LEARNED) + " | refuted | undecided |"
    rows = [head, "|---" * (len(LEARNED) + 3) + "|"]
    for label in RULES:
        for place in ("", " with regions"):
            cells = []
            for name in LEARNED:
                n, better = (counts[label + place, name, what] for what in ("all", "better"))
                harm, taken = (counts[label + place, name, what] for what in ("harm", "taken"))
                cells.append(f"{100.0 * harm / n:.1f} %, {taken} of {better}")
            total = sum(counts[label + place, name, "all"] for name in LEARNED)
            shares = [sum(counts[label + place, name, what] for name in LEARNED) for what in ("refuted", "undecided")]
            cells += [f"{100.0 * each / total:.1f} %" for each in shares]
            rows.append(f"| `{label}`{place} | {' | '.join(cells)} |")
    return "\n".join(rows)


def main(trials):
    """Measure, write the tables, and check the level on the classes that have the truth."""
    parts, broken = [f"# Which rule claims no harm\n\n{__doc__.splitlines()[0]}\n"], False
    for name, problem in problems().items():
        for share in (0.01, 0.05):
            counts = measure(problem, share, trials, seed=int(1000 * share))
            left = counts["left out"]
            words = f"{trials} truths, 3 baselines" + (f", {left} baselines left out: no weight fits" if left else "")
            parts.append(f"## {name}, {100 * share:g} % noise ({words})\n\n{table(counts)}\n")
            print(parts[-1], flush=True)
            if name != "12 modes":
                # Baselines and candidates of one trial are not independent: the event of the noise is one.
                most = 9 * binom.ppf(0.999, trials, 0.05)
                broken |= sum(counts["Dominance()", each, "harm"] for each in LEARNED) > most
    write_page("default_rule.md", "\n".join(parts))
    return int(broken)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 40))
