"""What each rule compares, in numbers: which candidates it takes, and whether they were nearer to the truth.

Run: ``python tests/benchmarks/what_rules_compare.py [TRIALS]`` (100). A source on the L-shape, in a class of 12
eigenmodes, from 33 averages with 5 % Gaussian noise of known variance; the noise level is its 95 % quantile. Baseline:
Tikhonov by GCV. Two learned candidates, both solved and inside of the class: a map that was trained on such sources,
and least squares without any regularization, which fits the noise. It writes ``results/what_rules_compare.md`` and ends
with exit code 1 if `ResidualRadius` did not decide by the misfit alone, or `Dominance` took worse ones too often.
"""

import os
import sys
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
from measured import write_page
from scipy.stats import chi2
from skfem import Basis, ElementTriP2, MeshTri

import femcert as fc

RULES = {
    "ResidualRadius()": fc.ResidualRadius(),
    "OperationalRadius(optimality=0.1)": fc.OperationalRadius(optimality=0.1),
    "StochasticRadius(points=4000)": fc.StochasticRadius(points=4000, bound="betting"),
    "GuaranteedRadius()": fc.GuaranteedRadius(),
    "ExactRadius()": fc.ExactRadius(),
    "Dominance()": fc.Dominance(),
    "Dominance(zeta=0.05)": fc.Dominance(zeta=0.05),
}
NOISE = 0.05
WORDS = """# What each rule compares

{trials} sources on the L-shape (`python tests/benchmarks/what_rules_compare.py`). Baseline: Tikhonov by GCV. Both
learned candidates are solved and inside of the class. The trained map is better than the baseline in
{better[trained map]} of {trials} cases, least squares in {better[least squares]}.

{table}

- `ResidualRadius` is a contest of misfits: least squares has the least one of all, and GCV a smaller one than the map.
- `ExactRadius` is least at the centre of all parameters that explain the data, and least squares *is* that centre.
- `Dominance` asks every truth that explains the data. It takes little, and a worse one with at most its probability.
"""


def build():
    """The problem, as on the first screen of the README, with quadratic elements."""
    coarse = MeshTri.init_lshaped().refined(2)
    basis = Basis(coarse.refined(2), ElementTriP2())
    sensors = fc.AverageSensors(basis, coarse.p[:, coarse.interior_nodes()].T, radius=0.1)
    return fc.EllipticSource(basis, parameters=fc.EigenmodeSpace(basis, 12), sensors=sensors, conductivity=1.0)


def random_sources(problem, count, rng):
    """Coefficients of a hot spot each, in one arm of the L."""
    spots = rng.uniform((-0.9, -0.9), (-0.1, 0.0), (count, 2))
    x = problem.parameters.basis.doflocs.T
    fields = [np.exp(-((x - spot) ** 2).sum(axis=1) / 0.1) for spot in spots]
    return np.array([problem.parameters.project(field)[0] for field in fields])


def trained_map(problem, rng):
    """Least-squares map from sensor values to coefficients, trained on noise of the same size."""
    sources = random_sources(problem, 2000, rng)
    values = sources @ problem.forward_matrix().T
    deviations = NOISE * np.linalg.norm(values, axis=1, keepdims=True) / np.sqrt(values.shape[1])
    return np.linalg.lstsq(values + deviations * rng.standard_normal(values.shape), sources, rcond=None)[0]


def trial(problem, weights, rng):
    """Data, truth, and the two learned candidates."""
    F, c = problem.forward_matrix(), random_sources(problem, 1, rng)[0]
    clean = F @ c
    deviation = NOISE * float(np.linalg.norm(clean)) / np.sqrt(len(clean))
    y = clean + deviation * rng.standard_normal(len(clean))
    data = fc.Data(y, float(np.sqrt(chi2.ppf(0.95, len(y)))), np.full(len(y), deviation**2))
    answers = {"trained map": y @ weights, "least squares": np.linalg.lstsq(F, y, rcond=None)[0]}
    candidates = {}
    for name, answer in answers.items():
        gradient = fc.reduced_gradient_norm(problem, data, problem.parameters.field(answer))
        candidates[name] = fc.Candidate.from_coefficients(problem, answer, optimality=gradient, name=name)
    return data, problem.parameters.field(c), candidates


def measure(trials, seed=0):
    """For each rule and candidate how often it was accepted, accepted and worse, rejected and better; contests lost."""
    problem, rng = build(), np.random.default_rng(seed)
    weights = trained_map(problem, rng)
    counts = {(rule, name): np.zeros(3, int) for rule in RULES for name in ("trained map", "least squares")}
    better, odd, left_out = {"trained map": 0, "least squares": 0}, 0, 0
    done = 0
    while done < trials:
        data, truth, candidates = trial(problem, weights, rng)
        baseline = fc.Tikhonov(choose="gcv")(problem, data)
        try:
            fc.certify(problem, data, baseline, fc.ExactRadius())
        except fc.InconsistentError:
            # Noise above its level, by so much that nothing explains the data: no rule decides.
            left_out += 1
            continue
        done += 1
        for name, candidate in candidates.items():
            nearer = problem.parameters.norm(candidate.parameter - truth) < problem.parameters.norm(
                baseline.parameter - truth
            )
            better[name] += nearer
            misfits = [data.norm(problem.observe(c.state) - data.values) for c in (candidate, baseline)]
            for label, rule in RULES.items():
                accepted = fc.no_harm(problem, data, baseline=baseline, learned=candidate, rule=rule).accepted
                counts[label, name] += (accepted, accepted and not nearer, not accepted and nearer)
                if label == "ResidualRadius()":
                    odd += accepted != (misfits[0] <= misfits[1])
        print(f"\r{done} of {trials}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return counts, better, odd, left_out


def main(trials):
    """Measure, write the table, and check what is promised."""
    counts, better, odd, left_out = measure(trials)
    head = "| rule | candidate | accepted | accepted, though worse | rejected, though better |\n" + "|---" * 5 + "|"
    rows = [f"| `{rule}` | {name} | {' | '.join(map(str, found))} |" for (rule, name), found in counts.items()]
    text = WORDS.format(trials=trials, better=better, table="\n".join([head, *rows]))
    if left_out:
        text += f"- {left_out} more draws contradicted their noise level; no rule decides there.\n"
    write_page("what_rules_compare.md", text)
    print(text)
    harm = {rule: sum(counts[rule, name][1] for name in better) for rule in RULES}
    # 0.1 % quantile of what zeta allows in as many trials of either candidate.
    allowed = 0.05 * trials + 3.1 * np.sqrt(0.05 * 0.95 * trials)
    broken = odd or any(counts["Dominance(zeta=0.05)", name][1] > allowed for name in better)
    return int(bool(broken or harm["Dominance()"] > 2 * allowed))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100))
