"""Decisions about the neural operator of ``demos/ex12_operator_under_shift.py``, in 200 trials of each shift.

Run: ``python tests/benchmarks/operator_trials.py [TRIALS] [FILE.csv]`` prints the table and, if asked, writes it.
"""

import csv
import importlib.util
import sys
from pathlib import Path

import numpy as np

DEMO = Path(__file__).parents[2] / "demos" / "ex12_operator_under_shift.py"


def load_demo():
    """The demo as a module."""
    spec = importlib.util.spec_from_file_location(DEMO.stem, DEMO)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def row(name, tally):
    """Counts and mean relative errors of one shift."""
    base, learned = np.mean(tally.errors, axis=0)
    found = {"shift": name, "trials": len(tally.errors)}
    found |= {"error_baseline": f"{base:.4f}", "error_operator": f"{learned:.4f}"}
    found["worse"] = int(tally.worse.sum())
    for rule, accepted in tally.accepted.items():
        found[f"rejected_by_{rule}"] = int(np.sum(~np.array(accepted)))
        found[f"accepted_although_worse_by_{rule}"] = int(np.sum(np.array(accepted) & tally.worse))
    return found


def main(trials, path):
    """All shifts; dominance must reject at least as often as the operator is worse."""
    demo = load_demo()
    if path is not None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    tallies = demo.main(trials)
    print(demo.table(tallies))
    rows = [row(name, tally) for name, tally in tallies.items()]
    if path is not None:
        with Path(path).open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    demo.check(tallies)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200, sys.argv[2] if len(sys.argv) > 2 else None)
