"""What stability costs, in units of one factor-and-solve of the same run.

    python tests/benchmarks/stability_cost.py

Bars: sigma_min for k = 50 and m = 200 on 1e5 dofs at most 2 units plus the 50 solves; the modulus of continuity at ten
noise levels on 16,000 dofs with 100 sensors at most 60 units. Exit code 1 if one is missed. On a busy machine set
OPENBLAS_NUM_THREADS=1: waiting threads cost more than they bring.

Peak memory, each in a process of its own, counts from when the problem and its operator are there. Bars: sigma_min at
most 3 times the growth of the peak that one factorization of the state equation causes; the modulus at most 3 times
that of the two factorizations it uses, of the state equation and of the ball. Its ratio to the first of these alone is
shown too, and is above 3: next to both factors there is a basis with a column for each of the 100 sensors and each of
60 eigenvectors of the ball.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
from measured import plane, seconds

import femcert as fc
from femcert.linalg import Factorization
from femcert.stability import Modulus

ROUNDS = 3


def source_problem(basis, space, sensors):
    points = np.random.default_rng(0).uniform(0.05, 0.95, (sensors, 2))
    return fc.EllipticSource(basis, parameters=space, sensors=fc.PointSensors(basis, points))


def unit(problem):
    """One factorization and one solve of the state equation."""
    A = problem.operator[problem.free][:, problem.free]
    return seconds(lambda: Factorization(A, definite=True).solve(np.ones(A.shape[0])))


def smallest_singular_value():
    """(time - 50 solves) / unit."""
    ratios = []
    for _ in range(ROUNDS):
        problem = sine_problem()
        one = unit(problem)
        total = seconds(fc.stability, problem)
        solves = 5.0 * seconds(problem.factor.solve, np.ones((len(problem.free), 10)))
        ratios.append((total - solves) / one)
    return float(np.median(ratios))


def moduli(problem, levels):
    return Modulus(problem)(levels)


def modulus_at_ten_levels():
    ratios = []
    for _ in range(ROUNDS):
        problem = full_space_problem()
        one = unit(problem)
        total = seconds(moduli, problem, np.geomspace(1e-4, 1e-1, 10))
        ratios.append(total / one)
    return float(np.median(ratios))


def state_factor(problem):
    A = problem.operator[problem.free][:, problem.free]
    return Factorization(A, definite=True)


def both_factors(problem):
    return state_factor(problem), Factorization(problem.parameters.form("h1"), definite=True)


def full_space_problem():
    basis = plane(127)
    return source_problem(basis, fc.FullSpace(basis).within_ball(1.0, norm="h1"), 100)


def sine_problem():
    basis = plane(317)
    return source_problem(basis, fc.SineSpace(basis, 50), 200)


# What is measured in a process of its own: how to make the problem, and what is done with it.
TASKS = {
    "modulus": (full_space_problem, lambda problem: moduli(problem, np.geomspace(1e-4, 1e-1, 10))),
    "factor-modulus": (full_space_problem, state_factor),
    "factors-modulus": (full_space_problem, both_factors),
    "sigma": (sine_problem, fc.stability),
    "factor-sigma": (sine_problem, state_factor),
}
# Peak memory of the first task in parts of that of the second one, and the bar, if there is one.
PEAKS = [
    ("sigma", "factor-sigma", "one factorization", 3.0),
    ("modulus", "factors-modulus", "its two factorizations", 3.0),
    ("modulus", "factor-modulus", "that of the state equation alone", np.inf),
]


def growth(task):
    """MB by which the peak of a new process grows; the problem and its matrices are there before."""
    done = subprocess.run([sys.executable, __file__, task], capture_output=True, text=True, check=True)
    return float(done.stdout)


def measure(task):
    """Print the growth of the peak of this process (Linux)."""
    make, work = TASKS[task]
    problem = make()
    problem.operator  # noqa: B018 - assembled before it counts
    if task == "factors-modulus":
        problem.parameters.form("h1")
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
    missed = any(ratio > bar for ratio, bar in measured.values())
    peaks = {task: growth(task) for task in TASKS}
    for task, factors, name, bar in PEAKS:
        ratio = peaks[task] / peaks[factors]
        limit = f", at most {bar:g}" if np.isfinite(bar) else ""
        print(f"{task}: peak {peaks[task]:.0f} MB, {ratio:.1f} times {name} ({peaks[factors]:.0f} MB){limit}")
        missed |= ratio > bar
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
