"""Decisions about the neural operator of ``demos/ex12_operator_under_shift.py``, in 200 trials of each shift.

Run: ``python tests/benchmarks/operator_trials.py [TRIALS] [FILE.csv]`` prints the table and, if asked, writes it.
"""

import sys

import numpy as np
from measured import load_demo, write_rows


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
    demo = load_demo("ex12_operator_under_shift")
    tallies = demo.main(trials)
    print(demo.table(tallies))
    rows = [row(name, tally) for name, tally in tallies.items()]
    write_rows(rows, path)
    demo.check(tallies)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200, sys.argv[2] if len(sys.argv) > 2 else None)
