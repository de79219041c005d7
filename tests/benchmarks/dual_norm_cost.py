"""What the bounds of a dual norm cost, in units of one factorization and solve.

Run: ``OPENBLAS_NUM_THREADS=1 python tests/benchmarks/dual_norm_cost.py``. 1e5 dofs, P1 on jittered triangles, Poisson's
equation. The bars: a bound costs at most 0.6, and what the first one sets up for all later ones at most 1.5. Each round
has a fresh mesh and times everything in turn; medians are reported, and the exit code is 1 above a bar.
"""

import statistics
import sys

import numpy as np
from measured import plane, seconds

import femcert as fc
from femcert.linalg import Factorization

ROUNDS = 7
MOST_BOUND, MOST_SETUP = 0.6, 1.5


def one_round():
    """Seconds of a factorization and solve, of the first and of a later bound, and of a lower bound; and the result."""
    basis = plane(317, jitter=0.25)
    x = basis.doflocs
    parameter = np.sin(3.0 * x[0]) * np.exp(x[1])
    problem = fc.EllipticSource(
        basis, parameters=fc.FullSpace(basis), sensors=fc.MatrixSensors(np.eye(1, basis.N))
    )
    free = problem.free
    A, b = problem.operator[free][:, free], np.ones(len(free))
    solve = seconds(lambda: Factorization(A, definite=True).solve(b))
    candidate = fc.Candidate(problem.solve(parameter), parameter)
    first = seconds(lambda: fc.dual_norm(problem, candidate))
    later = statistics.median(seconds(lambda: fc.dual_norm(problem, candidate)) for _ in range(3))
    result = fc.dual_norm(problem, candidate)
    lower = seconds(lambda: result.lower)
    return {"solve": solve, "setup": first - later, "bound": later, "lower": lower}, result


def main():
    """Print all rounds and the medians of the ratios."""
    print(f"{317**2} dofs, P1 on jittered triangles")
    ratios = {"setup": [], "bound": [], "lower": []}
    for _ in range(ROUNDS):
        taken, result = one_round()
        for name in ratios:
            ratios[name].append(taken[name] / taken["solve"])
        print(", ".join(f"{name} {value:.2f} s" for name, value in taken.items()))
    medians = {name: statistics.median(values) for name, values in ratios.items()}
    print(f"{result!r}: upper / lower = {result.upper.value / result.lower.value:.4f}")
    print(f"in units of one factorization and solve: bound {medians['bound']:.2f} (bar: {MOST_BOUND}), "
          f"setup {medians['setup']:.2f} (bar: {MOST_SETUP}), lower {medians['lower']:.2f}")
    return int(not (medians["bound"] <= MOST_BOUND and medians["setup"] <= MOST_SETUP))


if __name__ == "__main__":
    sys.exit(main())
