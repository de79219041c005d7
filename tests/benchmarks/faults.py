"""Kill -9 at random times, full disks and unwritable places, for ``femcert certify`` and ``validate``.

Run: ``python tests/benchmarks/faults.py [--kills 50]``, as root for the disks in memory. It writes
``results/faults.csv`` and ``results/faults.md`` and ends with exit code 1 if a result file was half-written, mixed or
wrong. What is checked is in ``tests/fault_injection.py``; a few kills run with the tests.
"""

import argparse
import csv
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from fault_injection import Fault, can_mount, check_next, commands, killed, mounted, refused  # noqa: E402

# Every so many kills the command is run again in the same directory.
NEXT = 4
# Largest files, and sizes of full disks; the last ones just hold some of the results.
LIMITS, DISKS = (0, 1000, 20_000), ("size=16k", "size=64k", "size=256k")
WORDS = """# Faults

`python tests/benchmarks/faults.py`. A kill -9 comes at a random time, or in the moment in which results are moved to
their place; half of the runs begin in a directory with the results of a former one. Afterwards every result file must
be whole and of one run, and the page must not stand without the others; every fourth time the command is run again
and must end with all results, equal to those of an undisturbed run. A run that cannot write must end with exit code 2,
one line, and no page.

{table}

{verdict}
"""


class Table:
    """Counts of injected faults and of what they broke."""

    def __init__(self):
        self.rows, self.faults = [], []

    def add(self, command, fault, runs, left=""):
        self.rows.append([command, fault, runs, 0, left])
        print(command, fault, runs, left, flush=True)

    def note(self, command, fault, error):
        self.rows.append([command, fault, 1, 1, ""])
        self.faults.append(f"{command}, {fault}: {error}")
        print("FAULT", self.faults[-1], flush=True)


def kill(table, name, command, folder, kills):
    """Kill and go on."""
    left, again, rng = {}, 0, np.random.default_rng([7, *name.encode()])
    for i in range(kills):
        out = folder / f"{name}-kill-{i}"
        try:
            state = killed(command, out, rng, over=i % 2 == 1, watch=i % 5 > 2)
            left[state] = left.get(state, 0) + 1
            if i % NEXT == 0:
                check_next(command, out)
                again += 1
        except Fault as error:
            table.note(name, "kill -9", error)
        shutil.rmtree(out, ignore_errors=True)
    table.add(name, "kill -9", kills, f"left results of: {', '.join(f'{k} {v}' for k, v in sorted(left.items()))}")
    table.add(name, "run again after a kill", again)


def unwritable(folder):
    """Places that nobody can write to, root included."""
    (folder / "file").write_text("here first")
    yield "a file", folder / "file"
    yield "below a file", folder / "file" / "below"
    (folder / "taken" / "report.html").mkdir(parents=True)
    yield "a directory for the page", folder / "taken"


def spoil(table, name, command, folder):
    """Disks that are full or read-only, and places that are none."""
    cases = [(f"largest file {limit} bytes", folder / f"{name}-limit-{limit}", limit) for limit in LIMITS]
    (folder / name / "places").mkdir(parents=True, exist_ok=True)
    cases += [(words, path, None) for words, path in unwritable(folder / name / "places")]
    for fault, out, limit in cases:
        try:
            refused(command, out, limit)
            table.add(name, fault, 1)
        except Fault as error:
            table.note(name, fault, error)
    if not can_mount(folder):
        return
    for options in (*DISKS, "size=1m,ro"):
        with mounted(folder / f"{name}-disk", options):
            try:
                refused(command, folder / f"{name}-disk" / "out")
                table.add(name, f"disk: {options}", 1)
            except Fault as error:
                table.note(name, f"disk: {options}", error)


def write(table):
    """The table as CSV and as a page."""
    head, results = ["command", "fault", "runs", "broken", "left"], HERE / "results"
    results.mkdir(exist_ok=True)
    with (results / "faults.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([head, *table.rows])
    lines = [f"| {' | '.join(map(str, row))} |" for row in [head, ["---"] * len(head), *table.rows]]
    runs = sum(row[2] for row in table.rows)
    verdict = "\n".join(table.faults) or f"None of {runs} faults left a result that was half-written, mixed or wrong."
    (results / "faults.md").write_text(WORDS.format(table="\n".join(lines), verdict=verdict), encoding="utf-8")


def main():
    """Inject all faults, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    options = parser.parse_args()
    table = Table()
    with tempfile.TemporaryDirectory() as folder:
        made = commands(Path(folder))
        for name, command in made.items():
            command.learn(Path(folder) / "references" / name)
            spoil(table, name, command, Path(folder))
            kill(table, name, command, Path(folder), -(-options.kills // len(made)))
            write(table)
    return 1 if table.faults else 0


if __name__ == "__main__":
    sys.exit(main())
