"""Predictions of all readings of ``demos/ex14_crosshole_radar.py``, each left out once, for three radii of the ball.

Run: ``python tests/benchmarks/radar_coverage.py [FILE.csv]`` prints the table and, if asked, writes it.
"""

import sys

import numpy as np
from measured import load_demo, write_rows

RADII = (2.0, 3.0, 5.0)


def main(path):
    """All folds of both kinds; without static shifts for each radius, with them for the first."""
    demo = load_demo("ex14_crosshole_radar")
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
    write_rows(rows, path)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
