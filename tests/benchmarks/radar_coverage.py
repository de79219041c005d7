"""Predictions of all readings of ``demos/ex14_crosshole_radar.py``, each left out once, for three radii of the ball.

Run: ``python tests/benchmarks/radar_coverage.py [FILE.csv]`` prints the table and, if asked, writes it.
"""

import csv
import importlib.util
import sys
from pathlib import Path

import numpy as np

DEMO = Path(__file__).parents[2] / "demos" / "ex14_crosshole_radar.py"
RADII = (2.0, 3.0, 5.0)


def load_demo():
    """The demo as a module."""
    spec = importlib.util.spec_from_file_location(DEMO.stem, DEMO)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def main(path):
    """All folds of both kinds; without static shifts for each radius, with them for the first."""
    demo = load_demo()
    survey, rows = demo.read(), []
    for name, labels in (("a fifth of the rays", survey.fifths()), ("a block of sources", survey.blocks())):
        cases = [(radius, "no", demo.plain) for radius in RADII] + [(RADII[0], "yes", demo.with_shifts)]
        for radius, shifts, evidence_of in cases:
            found = np.vstack([demo.held_out(survey, labels, fold, evidence_of, radius) for fold in range(5)])
            half, error = np.median(found[:, 1:], axis=0)
            row = {"left_out": name, "radius": radius, "static_shifts": shifts, "readings": len(found)}
            row |= {"inside": int(found[:, 0].sum()), "half_length": f"{half:.2f}", "error": f"{error:.2f}"}
            print(row, flush=True)
            rows.append(row)
    if path is not None:
        with Path(path).open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
