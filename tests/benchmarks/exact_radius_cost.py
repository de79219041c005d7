"""What exact radii cost, in units of one numpy SVD of matrices of the same shapes in the same run.

    python tests/benchmarks/exact_radius_cost.py

1e5 consistent sets with k = 10 coordinates and m = 20 data, each with its own matrix, data and candidate: the SVD,
allowance for rounding and farthest point together. Bar: 100 units. Exit code 1 if it is missed. On a busy machine set
OPENBLAS_NUM_THREADS=1: waiting threads cost more than they bring.
"""

from __future__ import annotations

import sys

import numpy as np
from measured import seconds, timed

from femcert.evidence.consistent import fit

COUNT, ROWS, COLUMNS, ROUNDS, BAR = 100_000, 20, 10, 3, 100.0


def decompositions(matrices):
    return np.linalg.svd(matrices, full_matrices=False)


def radii(matrices, values, points):
    return fit(matrices, values, 0.1).farthest(points)


def main():
    rng = np.random.default_rng(0)
    A, truth = rng.normal(size=(COUNT, ROWS, COLUMNS)), rng.normal(size=(COUNT, COLUMNS))
    e = rng.normal(size=(COUNT, ROWS))
    y = (A @ truth[..., None])[..., 0] + 0.1 * e / np.linalg.norm(e, axis=1, keepdims=True)
    points = truth + rng.normal(0.0, 0.1, truth.shape)
    ratios, gap = [], 0.0
    for _ in range(ROUNDS):
        unit = seconds(decompositions, A)
        (upper, witness), total = timed(radii, A, y, points)
        ratios.append(total / unit)
        gap = max(gap, float(np.max(upper / np.linalg.norm(witness - points, axis=1) - 1.0)))
    ratio = float(np.median(ratios))
    print(f"{COUNT} exact radii, k = {COLUMNS}, m = {ROWS}: {ratio:.2f} units, at most {BAR:g}")
    print(f"largest gap between upper bound and witness: {gap:.1e}")
    return int(ratio > BAR)


if __name__ == "__main__":
    sys.exit(main())
