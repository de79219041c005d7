"""What a certificate costs from 1e4 to 1e6 dofs: processor time, peak memory, and both on a picture.

Run: ``python tests/benchmarks/scale.py``. A source on the unit square, 4 eigenmodes, 8 averages, P1: mesh, modes,
sensors, factorization, Tikhonov by discrepancy principle, a second candidate, guaranteed radii of both and the report
page. Every size is a process of its own, on one thread, so that other work on the machine changes little. A unit is a
factorization and a solve of the same run. The bars: 8 units at 1e6 dofs, 16 with 12 modes and 33 averages (``rich``),
at most 6 GB, and a cost in units that grows by at most 1.5 from 1e4 to 1e6. Sizes or backends may be given:
``python tests/benchmarks/scale.py 10000 superlu [rich]``; then the table is not written.
"""

import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
SIZES = (10_000, 100_000, 1_000_000)
BACKENDS = ("superlu", "pardiso")
MOST_GROWTH, MOST_GB = 1.5, 6.0
# Modes and averages, and the units that a certificate may take at the largest size.
SMALL, RICH = (4, 8, 8.0), (12, 33, 16.0)
STAGES = ("problem", "factorization", "selection", "report")
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def measure(size, modes, averages):
    """Processor seconds of each stage and the peak memory of this process, as JSON on standard output."""
    import numpy as np
    from skfem import Basis, ElementTriP1, MeshTri

    import femcert as fc
    from femcert.linalg import Factorization

    seconds, started = {}, time.perf_counter()

    def stage(name, call):
        start = time.process_time()
        result = call()
        seconds[name] = time.process_time() - start
        return result

    def build():
        line = np.linspace(0.0, 1.0, round(size**0.5))
        basis = Basis(MeshTri.init_tensor(line, line), ElementTriP1())
        centres = np.array([(x, y) for x in (0.2, 0.4, 0.6, 0.8) for y in (0.3, 0.7)])
        if averages > len(centres):
            centres = np.random.default_rng(0).uniform(0.15, 0.85, (averages, 2))
        sensors = fc.AverageSensors(basis, centres, radius=0.1)
        return fc.EllipticSource(basis, parameters=fc.EigenmodeSpace(basis, modes), sensors=sensors)

    problem = stage("problem", build)
    stage("factorization", lambda: problem.factor)
    truth = np.append([1.0, -0.5, 0.3, 0.2], np.zeros(modes - 4))
    data = problem.simulate(problem.parameters.field(truth), noise=0.02)
    learned = fc.Candidate.from_coefficients(problem, truth + 0.01, name="learned")
    selection = stage("selection", lambda: fc.no_harm(
        problem, data, baseline=fc.Tikhonov(choose="discrepancy"), learned=learned, rule=fc.GuaranteedRadius()
    ))
    with tempfile.TemporaryDirectory() as folder:
        stage("report", lambda: fc.write_report(selection, Path(folder) / "report.html"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    radii = [part.radius for part in (selection.baseline, selection.learned)]
    A, backend, dofs = problem.operator[problem.free][:, problem.free], problem.factor.backend, int(problem.basis.N)
    start = time.process_time()
    Factorization(A, definite=True).solve(np.ones(A.shape[0]))
    unit, total = time.process_time() - start, sum(seconds.values())
    assert all(radius.side == "upper" for radius in radii)
    print(json.dumps({
        "dofs": dofs,
        "modes": modes,
        "backend": backend,
        **{name: round(value, 2) for name, value in seconds.items()},
        "total": round(total, 2),
        "unit": round(unit, 3),
        "units": round(total / unit, 1),
        "wall": round(time.perf_counter() - started, 2),
        "peak_gb": round(peak, 2),
        "baseline_radius": radii[0].value,
        "learned_radius": radii[1].value,
    }))


def run(size, backend, kind):
    """The measurements of one size, from a fresh process."""
    environment = {**os.environ, "FEMCERT_BACKEND": backend, **dict.fromkeys(THREADS, "1")}
    command = [sys.executable, __file__, "--measure", *map(str, (size, *kind[:2]))]
    child = subprocess.run(command, env=environment, capture_output=True, text=True)
    if child.returncode:
        print(f"{size} dofs with {backend}: {child.stderr.strip().splitlines()[-1]}")
        return None
    return json.loads(child.stdout.splitlines()[-1])


def draw(rows, path):
    """Processor time by stage, and memory, over the dofs."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    for backend, style in zip(BACKENDS, ("-", "--"), strict=True):
        mine = sorted((row for row in rows if row["backend"] == backend), key=lambda row: row["dofs"])
        if not mine:
            continue
        dofs = [row["dofs"] for row in mine]
        for stage, colour in zip((*STAGES, "total"), ("C0", "C1", "C2", "C3", "k"), strict=True):
            heights, label = [row[stage] for row in mine], stage if backend == BACKENDS[0] else None
            left.loglog(dofs, heights, colour + style, marker="o", ms=4, label=label)
        right.loglog(dofs, [row["peak_gb"] for row in mine], "k" + style, marker="o", ms=4, label=backend)
    ends = [10_000, 1_000_000]
    least = min(row["total"] for row in rows)
    left.loglog(ends, [0.5 * least, 50.0 * least], ":", color="0.5", label="linear")
    right.axhline(MOST_GB, ls=":", color="0.5")
    left.set(xlabel="dofs", ylabel="processor time in seconds, one thread")
    right.set(xlabel="dofs", ylabel="peak memory in GB")
    left.set_title("a certificate costs about the same per dof (dashed: pardiso)", fontsize=10)
    right.set_title(f"and stays below {MOST_GB:g} GB (dotted)", fontsize=10)
    left.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    right.legend(fontsize=8)
    figure.savefig(path, dpi=110)


def main(arguments):
    """Measure, write ``results/scale.csv`` and ``results/scale.png``, and compare with the bars."""
    sizes = [int(word) for word in arguments if word.isdigit()] or SIZES
    backends = [word for word in arguments if word in BACKENDS] or BACKENDS
    rows, kind = [], RICH if "rich" in arguments else SMALL
    for size in sizes:
        for backend in backends:
            row = run(size, backend, kind)
            if row is not None:
                rows.append(row)
                print(", ".join(f"{key} {value}" for key, value in row.items()), flush=True)
    if not rows:
        return 1
    failed = any(row["dofs"] >= SIZES[-1] and row["units"] > kind[2] for row in rows)
    if arguments:
        return int(failed)
    RESULTS.mkdir(exist_ok=True)
    with open(RESULTS / "scale.csv", "w", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(rows)
    draw(rows, RESULTS / "scale.png")
    failed |= max(row["peak_gb"] for row in rows) > MOST_GB
    for backend in backends:
        mine = sorted((row for row in rows if row["backend"] == backend), key=lambda row: row["dofs"])
        if len(mine) > 1:
            first, last = (row["units"] for row in (mine[0], mine[-1]))
            failed |= last / first > MOST_GROWTH
            ends = f"{mine[0]['dofs']} to {mine[-1]['dofs']} dofs"
            print(f"{backend}: cost in units grows by {last / first:.2f} from {ends} (bar: {MOST_GROWTH})")
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    return int(failed)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(*map(int, sys.argv[2:5]))
    else:
        sys.exit(main(sys.argv[1:]))
