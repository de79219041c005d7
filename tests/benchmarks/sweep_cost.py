"""What a trial of the sweep costs, batched and one by one, in the same run.

Run: ``python tests/benchmarks/sweep_cost.py``. The paper's 21,000 trials under all five rules, against a loop that
builds a problem for each trial and calls ``no_harm`` for each rule (a sample of the trials, spread over the grid; the
two are interleaved, the median ratio counts). The bar is a factor of 15; below it the exit code is 1. For information:
the sweep's own code with chunks of one trial, a hand-written loop for one rule, and the time of the stacked SVDs alone.

With ``--jobs`` instead: one process against two (the bar is 1.6; interleaved, the best of the rounds counts, for other
work on the machine only ever slows down). With ``--memory``: the largest resident memory of ``femcert sweep`` with a
million trials (the bar is 500 MB).
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1] / "paper"))

import numpy as np
from measured import seconds
from sweep_helpers import RULES, single

from femcert.paper import RULES as SWEEP_RULES
from femcert.paper import Grid, paper_setting
from femcert.paper.experiments import poisson_problem
from femcert.paper.setup import BASE_SEED
from femcert.paper.sweep import decide, sweep

ROUNDS = 3
SAMPLE = 105
BAR = 15.0
JOBS_BAR = 1.6
# 840 regimes: half a million trials, so that the start of the processes (2 s) counts little, and a million.
LONG, MILLION = 600, 1191
MEMORY_BAR = 500.0


def one_by_one(setting, grid, trials, rules):
    """The loop through the library."""
    for trial in trials:
        case = single(setting, grid, BASE_SEED, int(trial))
        for rule in rules:
            case.selection(rule)


def lean_loop(setting, sensors, trials):
    """What one would write by hand for the paper's rule alone, without any problem object; the least a loop can do."""
    rng, x, taken = np.random.default_rng(0), setting.truth, 0
    for _ in range(trials):
        rows = rng.choice(setting.sites, sensors, replace=False)
        F = setting.forward[rows]
        clean = F @ x
        noise = 0.02 * np.linalg.norm(clean) / np.sqrt(sensors) * rng.standard_normal(sensors)
        y, delta = clean + noise, np.linalg.norm(noise)
        base = np.linalg.solve(F.T @ F + setting.weight * np.eye(len(x)), F.T @ y)
        learned = x + 0.05 * rng.standard_normal(len(x))
        C = 1.0 / np.linalg.svd(F, compute_uv=False)[-1]
        radii = []
        for c, mu in ((base, 0.0), (learned, 0.02)):
            data = np.linalg.norm(F @ c + mu * setting.mismatch[rows] - y)
            gradient = np.linalg.norm(F.T @ (F @ c - y) + setting.weight * c)
            radii.append(C * (data + 0.05 * mu * setting.pde + delta + 0.01 * gradient))
        taken += radii[1] <= radii[0]
    return taken


def main():
    """Print times per trial, the ratios, and whether the bar is met."""
    grid, setting = Grid(), paper_setting()
    sample = np.arange(SAMPLE) * (grid.trials // SAMPLE) + np.arange(SAMPLE) % grid.cells
    one_by_one(setting, grid, sample[:3], RULES)
    ratios, paper_only = [], []
    for _ in range(ROUNDS):
        batched = seconds(lambda: sweep(grid=grid, setting=setting)) / grid.trials
        loop = seconds(lambda: one_by_one(setting, grid, sample, RULES)) / SAMPLE
        alone = seconds(lambda: one_by_one(setting, grid, sample, ["operational"])) / SAMPLE
        ratios.append(loop / batched)
        paper_only.append(alone / batched)
        print(f"batched {1e6 * batched:.1f} us, loop {1e6 * loop:.0f} us per trial, ratio {ratios[-1]:.0f}; "
              f"loop with the paper's rule alone {1e6 * alone:.0f} us, ratio {paper_only[-1]:.0f}")
    building = seconds(lambda: [poisson_problem(sites=np.arange(20)) for _ in range(SAMPLE)]) / SAMPLE
    singly = seconds(lambda: [decide(setting, grid, BASE_SEED, int(t), int(t) + 1) for t in sample]) / SAMPLE
    lean = seconds(lambda: lean_loop(setting, 35, 2000)) / 2000
    one_rule = seconds(lambda: sweep(grid=grid, setting=setting, rules={"operational": SWEEP_RULES["operational"]}))
    print(f"for information, the paper's rule alone: hand-written loop without problem objects {1e6 * lean:.0f} us, "
          f"batched {1e6 * one_rule / grid.trials:.1f} us, ratio {lean / one_rule * grid.trials:.1f}")
    stack = setting.forward[np.arange(35)][None] + np.zeros((600, 1, 1))
    svd = seconds(lambda: np.linalg.svd(stack, full_matrices=False)) / len(stack)
    print(f"of the loop, building the problem {1e6 * building:.0f} us; the sweep's own code trial by trial "
          f"{1e6 * singly:.0f} us; one SVD of a stack, 35 sensors, {1e6 * svd:.1f} us")
    ratio = statistics.median(ratios)
    print(f"median ratio {ratio:.0f} (bar: {BAR:.0f}), with one rule in the loop {statistics.median(paper_only):.0f}")
    return 0 if ratio >= BAR else 1


def processor_seconds():
    """Of this process and of those it has started and that have ended."""
    return [resource.getrusage(who).ru_utime for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]


def two_jobs():
    """Print the times of one and two processes, with their start; and the processor time, which others cannot take."""
    grid, setting = Grid(replications=LONG), paper_setting()
    times, used = {1: [], 2: []}, {1: [], 2: []}
    for _ in range(ROUNDS):
        for jobs in times:
            before = processor_seconds()
            times[jobs].append(seconds(lambda n=jobs: sweep(grid=grid, setting=setting, jobs=n)))
            used[jobs].append(sum(processor_seconds()) - sum(before))
        one, two = times[1][-1], times[2][-1]
        print(f"{grid.trials:,} trials: one process {one:.1f} s, two {two:.1f} s, ratio {one / two:.2f}; of processors "
              f"{used[1][-1]:.1f} and {used[2][-1]:.1f} s; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} of them")
    ratio, free = min(times[1]) / min(times[2]), 2.0 * min(used[1]) / min(used[2])
    print(f"ratio of the best {ratio:.2f} (bar: {JOBS_BAR}); by processor time, as on a free machine, {free:.2f}")
    return 0 if ratio >= JOBS_BAR else 1


def memory():
    """Print the largest resident memory of a million trials, and the size of the results."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["-m", "femcert.cli", "sweep", "--replications", str(MILLION), "--quiet", "--out", folder]
        taken = seconds(lambda: subprocess.run([sys.executable, *command], check=True))
        most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024.0
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    print(f"{840 * MILLION:,} trials, {taken:.0f} s, at most {most:.0f} MB resident (bar: {MEMORY_BAR:.0f} MB); "
          f"results on disk {size / 2**20:.0f} MB")
    return 0 if most <= MEMORY_BAR else 1


if __name__ == "__main__":
    sys.exit({"--jobs": two_jobs, "--memory": memory}.get("".join(sys.argv[1:]), main)())
