"""All ratios against peers in one run: a table, a picture, and the exit code 1 if a bar is missed.

Run: ``python tests/benchmarks/run.py`` (a quarter of the dofs, some minutes) or with ``--full`` (1e6 dofs, as the bars
are meant; a quarter of an hour and 13 GB). ``--only point_location`` measures the cases of one function of `peers` anew
and keeps the other rows of the table. Both sides of a pair take turns, three times each; the median of the ratios
counts. By the clock, on all cores, as a user would see it: the machine should have nothing else to do (its load is
written down). Processor times stand beside. Peers that are not installed (pypardiso, ngsolve, pymor) are left out.
Writes ``benchmarks.csv``, ``.md`` and ``.png`` to ``results/``.
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
COLUMNS = ("what", "mesh", "size", "seconds", "peer", "peer seconds", "ratio", "by processor time", "bar", "met")


def cases(full):
    """Makers of the cases with the mesh of each; at full size those that the bars are meant for."""
    large = 1_000_000 if full else 250_000
    both = [
        partial(peers.default_factorization),
        partial(peers.direct_pardiso),
        partial(peers.scikit_fem_solve, backend="superlu"),
        partial(peers.scikit_fem_solve, backend="pardiso"),
        partial(peers.ngsolve_solve, inverse="sparsecholesky", threads=False, bar=1.6),
        partial(peers.ngsolve_solve, inverse="sparsecholesky", threads=True, bar=None),
        partial(peers.ngsolve_solve, inverse="pardiso", threads=False, bar=1.3),
        partial(peers.ngsolve_solve, inverse="pardiso", threads=True, bar=None),
    ]
    for name, make in (("irregular", peers.irregular), ("grid", peers.square)):
        mesh = make(large)
        yield from ((name, partial(case, mesh)) for case in both)
    yield from (
        ("grid", case)
        for case in (
            partial(peers.pymor_solve, large),
            partial(peers.pymor_estimator, 100_000),
            partial(peers.forward_map, 40_000),
            partial(peers.eigenpairs, 100_000),
            partial(peers.reassembly, large),
        )
    )
    yield "irregular", partial(peers.point_location, 100_000, 2000 if full else 500)


def seconds(call):
    """Time by the clock and processor time of a call."""
    clock, processor = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - clock, time.process_time() - processor


def measured(case, mesh):
    """A row of the table."""
    rounds = [(*seconds(case.ours), *seconds(case.theirs)) for _ in range(ROUNDS)]
    ours, _, theirs, _ = (statistics.median(column) for column in zip(*rounds, strict=True))
    ratio = statistics.median(row[2] / max(row[0], 1e-6) for row in rounds)
    processor = statistics.median(row[3] / max(row[1], 1e-6) for row in rounds)
    met = "" if case.bar is None else "yes" if ratio >= case.bar else "no"
    bar = "" if case.bar is None else f"{case.bar:.3g}"
    values = (case.name, mesh, case.size, f"{ours:.3g}", case.peer, f"{theirs:.3g}", f"{ratio:.3g}", f"{processor:.3g}")
    return dict(zip(COLUMNS, (*values, bar, met), strict=True))


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
    axes.set_yticks(range(len(rows)), [_label(row) for row in reversed(rows)], fontsize=8)
    aimed = [row for row in rows if row["bar"]]
    met = sum(row["met"] == "yes" for row in aimed)
    axes.set_title(f"{met} of {len(aimed)} aims are met (black marks: what was aimed at; red: missed)", fontsize=10)
    axes.set_xscale("log")
    axes.margins(x=0.1, y=0.01)
    axes.axvline(1.0, color="0.3", lw=0.8)
    axes.set_xlabel("times faster than the peer, by the clock on all cores")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _label(row):
    return f"{row['what']} ({row['mesh']})\nagainst {row['peer']}"


def kept():
    """The rows of the table that is there."""
    with open(RESULTS / "benchmarks.csv", newline="") as file:
        return list(csv.DictReader(file))


def replaced(rows, fresh):
    """The rows with a fresh one in its place, or at the end."""
    same = [all(row[key] == fresh[key] for key in ("what", "mesh", "peer")) for row in rows]
    return [fresh if found else row for row, found in zip(rows, same, strict=True)] + [fresh] * (not any(same))


def main(full, only=None):
    """Measure all cases whose peers are installed, or those of one function."""
    rows = [] if only is None else kept()
    for mesh, make in cases(full):
        if only not in (None, make.func.__name__):
            continue
        try:
            case = make()
        except ImportError as error:
            print(f"{make.func.__name__}: left out, {error}", flush=True)
            continue
        fresh = measured(case, mesh)
        rows = replaced(rows, fresh)
        print(" | ".join(fresh.values()), flush=True)
        size = "Full size." if full else "A quarter of the dofs that the bars are meant for."
        words = f"{size} By the clock on {os.cpu_count()} cores, median of {ROUNDS} rounds; above 1 femcert is faster."
        write(rows, f"{words} Load of the machine at the end: {os.getloadavg()[0]:.1f}.")
    return int(any(row["met"] == "no" for row in rows))


if __name__ == "__main__":
    words = sys.argv[1:]
    sys.exit(main("--full" in words, words[words.index("--only") + 1] if "--only" in words else None))
