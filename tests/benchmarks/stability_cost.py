"""What stability costs, in units of one factor-and-solve of the same run.

    python tests/benchmarks/stability_cost.py

Bars: sigma_min for k = 50 and m = 200 on 1e5 dofs at most 2 units plus the 50 solves; the modulus of continuity at ten
noise levels on 16,000 dofs with 100 sensors at most 60 units. Exit code 1 if one is missed. On a busy machine set
OPENBLAS_NUM_THREADS=1: waiting threads cost more than they bring.

Peak memory, each in a process of its own, is shown in parts of one factorization's; it has no bar here. The modulus
needs two factors (of the state equation and of the ball) and arrays with a column for every sensor and every eigenvector
of the ball: more than three factors of this size, whatever the order of the work.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from time import perf_counter

import numpy as np
from skfem import Basis, ElementTriP1, MeshTri

import femcert as fc
from femcert.linalg import Factorization
from femcert.stability import Modulus

ROUNDS = 3


def timed(action, *arguments):
    start = perf_counter()
    action(*arguments)
    return perf_counter() - start


def plane(side):
    grid = np.linspace(0.0, 1.0, side)
    return Basis(MeshTri.init_tensor(grid, grid), ElementTriP1())


def source_problem(basis, space, sensors):
    points = np.random.default_rng(0).uniform(0.05, 0.95, (sensors, 2))
    return fc.EllipticSource(basis, parameters=space, sensors=fc.PointSensors(basis, points))


def unit(problem):
    """One factorization and one solve of the state equation."""
    A = problem.operator[problem.free][:, problem.free]
    return timed(lambda: Factorization(A, definite=True).solve(np.ones(A.shape[0])))


def smallest_singular_value():
    """(time - 50 solves) / unit."""
    ratios = []
    for _ in range(ROUNDS):
        problem = sine_problem()
        one = unit(problem)
        total = timed(fc.stability, problem)
        solves = 5.0 * timed(problem.factor.solve, np.ones((len(problem.free), 10)))
        ratios.append((total - solves) / one)
    return float(np.median(ratios))


def moduli(problem, levels):
    return Modulus(problem)(levels)


def modulus_at_ten_levels():
    ratios = []
    for _ in range(ROUNDS):
        problem = full_space_problem()
        one = unit(problem)
        total = timed(moduli, problem, np.geomspace(1e-4, 1e-1, 10))
        ratios.append(total / one)
    return float(np.median(ratios))


def factorized(problem):
    unit(problem)


def full_space_problem():
    basis = plane(127)
    return source_problem(basis, fc.FullSpace(basis).within_ball(1.0, norm="h1"), 100)


def sine_problem():
    basis = plane(317)
    return source_problem(basis, fc.SineSpace(basis, 50), 200)


# What is measured in a process of its own: how to make the problem, and what is done with it.
TASKS = {
    "modulus": (full_space_problem, lambda problem: moduli(problem, np.geomspace(1e-4, 1e-1, 10))),
    "factor-modulus": (full_space_problem, factorized),
    "sigma": (sine_problem, fc.stability),
    "factor-sigma": (sine_problem, factorized),
}


def growth(task):
    """MB by which the peak of a new process grows; the problem and its matrices are there before."""
    done = subprocess.run([sys.executable, __file__, task], capture_output=True, text=True, check=True)
    return float(done.stdout)


def measure(task):
    """Print the growth of the peak of this process (Linux)."""
    make, work = TASKS[task]
    problem = make()
    problem.operator  # noqa: B018 - assembled before it counts
    # The peak starts anew from what is there now.
    Path("/proc/self/clear_refs").write_text("5")
    before = peak_memory()
    work(problem)
    print(peak_memory() - before)


def peak_memory():
    """MB."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024.0


def main():
    if len(sys.argv) > 1:
        measure(sys.argv[1])
        return 0
    measured = {
        "sigma_min, k = 50, m = 200, 1e5 dofs, beyond 50 solves": (smallest_singular_value(), 2.0),
        "modulus at ten levels, 16,000 dofs, 100 sensors": (modulus_at_ten_levels(), 60.0),
    }
    for name, (ratio, bar) in measured.items():
        print(f"{name}: {ratio:.2f} units, at most {bar:g}")
    for name in ("sigma", "modulus"):
        peak, factor = growth(name), growth(f"factor-{name}")
        print(f"{name}: peak {peak:.0f} MB, {peak / factor:.1f} times that of one factorization ({factor:.0f} MB)")
    return int(any(ratio > bar for ratio, bar in measured.values()))


if __name__ == "__main__":
    sys.exit(main())
