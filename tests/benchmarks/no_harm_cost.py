"""What a whole selection costs, in units of the baseline's own solve of the same run.

Run: ``python tests/benchmarks/no_harm_cost.py``. 1e5 dofs, 12 modes, 50 sensors; the bar is a ratio of at most 3 and
one factorization in all. Each side gets a fresh problem; the two are interleaved; the median ratio is reported.
"""

import statistics

import numpy as np
from measured import plane, seconds

import femcert as fc
from femcert.linalg import factorization_count

ROUNDS = 5


def main():
    """Print the ratio of every round and the median."""
    basis = plane(317)
    rng = np.random.default_rng(0)
    space = fc.EigenmodeSpace(basis, 12)
    sensors = fc.AverageSensors(basis, rng.uniform(0.05, 0.95, (50, 2)), radius=0.02)
    coefficients = rng.standard_normal(12)

    def fresh():
        return fc.EllipticSource(basis, parameters=space, sensors=sensors)

    problem = fresh()
    data = problem.simulate(space.field(coefficients), noise=0.02)
    learned = fc.Candidate.from_coefficients(problem, coefficients, optimality=0.0)
    baseline = fc.Tikhonov(weight=1e-6)
    rule = fc.OperationalRadius(pde=0.05, bc=0.05, optimality=0.01)
    ratios = []
    print(f"{basis.N} dofs, {space.dimension} modes, {sensors.count} sensors")
    for _ in range(ROUNDS):
        alone = seconds(baseline, fresh(), data)
        problem, before = fresh(), factorization_count()
        whole = seconds(lambda p=problem: fc.no_harm(p, data, baseline=baseline, learned=learned, rule=rule))
        ratios.append(whole / alone)
        print(f"baseline {alone:.2f} s, selection {whole:.2f} s, ratio {ratios[-1]:.2f}, "
              f"factorizations {factorization_count() - before}")
    print(f"median ratio {statistics.median(ratios):.2f} (bar: 3)")


if __name__ == "__main__":
    main()
