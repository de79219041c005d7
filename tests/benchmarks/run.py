"""All ratios against peers in one run: a table, a picture, and the exit code 1 if a bar is missed.

Run: ``python tests/benchmarks/run.py`` (a quarter of the dofs, some minutes) or with ``--full`` (1e6 dofs, as the bars
are meant; half an hour and 16 GB). Both sides of a pair take turns, three times each; the median of the ratios counts.
Everything runs on one thread and processor time is measured, so that other work on the machine changes little. Peers
that are not installed (pypardiso, ngsolve, pymor) are left out. Writes ``benchmarks.csv``, ``.md`` and ``.png`` to
``results/``.
"""

import csv
import os
import statistics
import sys
import time
from functools import partial
from pathlib import Path

import peers

RESULTS = Path(__file__).parent / "results"
ROUNDS = 3
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
COLUMNS = ("what", "size", "seconds", "peer", "peer seconds", "ratio", "bar", "met")


def cases(full):
    """Makers of the cases; at full size those that the bars are meant for."""
    large = 1_000_000 if full else 250_000
    return [
        partial(peers.default_factorization, large),
        partial(peers.direct_pardiso, large),
        partial(peers.scikit_fem_solve, large, "superlu"),
        partial(peers.scikit_fem_solve, large, "pardiso"),
        partial(peers.ngsolve_solve, large, "sparsecholesky", "NGSolve", 1.6),
        partial(peers.ngsolve_solve, large, "pardiso", "NGSolve with MKL", 1.3),
        partial(peers.pymor_solve, large),
        partial(peers.pymor_estimator, 100_000),
        partial(peers.forward_map, 40_000),
        partial(peers.eigenpairs, 100_000),
        partial(peers.reassembly, large),
        partial(peers.point_location, 100_000, 2000 if full else 500),
    ]


def seconds(call):
    """Processor time of a call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def measured(case):
    """A row of the table."""
    pairs = [(seconds(case.ours), seconds(case.theirs)) for _ in range(ROUNDS)]
    ours, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
    ratio = statistics.median(b / max(a, 1e-6) for a, b in pairs)
    met = "" if case.bar is None else "yes" if ratio >= case.bar else "no"
    bar = "" if case.bar is None else f"{case.bar:.3g}"
    values = (case.name, case.size, f"{ours:.3g}", case.peer, f"{theirs:.3g}", f"{ratio:.3g}", bar, met)
    return dict(zip(COLUMNS, values, strict=True))


def write(rows, words):
    """The table twice and the picture."""
    RESULTS.mkdir(exist_ok=True)
    with open(RESULTS / "benchmarks.csv", "w", newline="") as file:
        table = csv.DictWriter(file, COLUMNS)
        table.writeheader()
        table.writerows(rows)
    lines = [" | ".join(COLUMNS), " | ".join("---" for _ in COLUMNS), *(" | ".join(row.values()) for row in rows)]
    text = "\n".join(f"| {line} |" for line in lines)
    (RESULTS / "benchmarks.md").write_text(f"# Ratios against peers\n\n{words}\n\n{text}\n")
    draw(rows, RESULTS / "benchmarks.png")


def draw(rows, path):
    """Ratios as bars on a logarithmic axis, with a mark where a bar is set."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 0.5 * len(rows) + 1.2), layout="constrained")
    for place, row in enumerate(reversed(rows)):
        axes.barh(place, float(row["ratio"]) - 1.0, left=1.0, color="0.6" if row["met"] != "no" else "C3")
        end = max(float(row["ratio"]), float(row["bar"] or 0.0), 1.0)
        axes.text(end, place, f"  {row['ratio']}", va="center")
        if row["bar"]:
            axes.plot([float(row["bar"])] * 2, [place - 0.4, place + 0.4], "k", lw=2)
    axes.set_yticks(range(len(rows)), [f"{row['what']}\nagainst {row['peer']}" for row in reversed(rows)], fontsize=8)
    aimed = [row for row in rows if row["bar"]]
    met = sum(row["met"] == "yes" for row in aimed)
    axes.set_title(f"{met} of {len(aimed)} aims are met (black marks: what was aimed at; red: missed)", fontsize=10)
    axes.set_xscale("log")
    axes.margins(x=0.1)
    axes.axvline(1.0, color="0.3", lw=0.8)
    axes.set_xlabel("times faster than the peer, processor time on one thread")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(full):
    """Measure all cases whose peers are installed."""
    rows = []
    for make in cases(full):
        try:
            case = make()
        except ImportError as error:
            print(f"{make.func.__name__}: left out, {error}", flush=True)
            continue
        rows.append(measured(case))
        print(" | ".join(rows[-1].values()), flush=True)
        load = f"{os.getloadavg()[0]:.0f}"
        size = "Full size." if full else "A quarter of the dofs that the bars are meant for."
        write(rows, f"{size} Processor time, one thread, {ROUNDS} rounds, load of the machine about {load}.")
    return int(any(row["met"] == "no" for row in rows))


if __name__ == "__main__":
    if any(os.environ.get(name) != "1" for name in THREADS):
        # Libraries read these when they are loaded, so the program begins anew.
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **dict.fromkeys(THREADS, "1")})
    sys.exit(main("--full" in sys.argv[1:]))
