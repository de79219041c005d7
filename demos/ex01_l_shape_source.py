"""A learned map on the L-shape: accepted at home, rejected abroad.

A heat source on an L-shaped plate is recovered from 48 local temperature averages. The learned candidate is a linear
reconstruction map, trained on 2,000 simulated sources with energy in the low modes. For a source of that kind it fits
the noisy data better than the classical baseline, its radius is smaller, and it is accepted. For a source of another
kind (one small spot) its training no longer helps: it misses the data, and the baseline is returned.

Run: ``python demos/ex01_l_shape_source.py [DIRECTORY]`` writes the picture ``l_shape_source.png``.
"""

import sys
from pathlib import Path

import numpy as np
from skfem import Basis, ElementTriP1

import femcert as fc

HERE = Path(__file__).parent
MODES, NOISE = 20, 0.05


def build_problem():
    """-Laplace u = q on the L-shape, u = 0 on its boundary; 48 averages of u; 20 Laplace eigenmodes for q."""
    mesh = fc.load_mesh(HERE.parent / "meshes" / "l_shape.msh")
    basis = Basis(mesh, ElementTriP1())
    x, y = np.meshgrid(*2 * [np.linspace(-0.875, 0.875, 8)])
    inside = (x < 0) | (y > 0)
    return fc.EllipticSource(
        basis,
        parameters=fc.EigenmodeSpace(basis, MODES),
        sensors=fc.AverageSensors(basis, np.column_stack([x[inside], y[inside]]), radius=0.08),
    )


def spots(problem, arm, rng, samples):
    """Coefficients of random sources: two hot spots each, somewhere in the lower or in the right arm of the L."""
    low, high = {"lower": ((-0.85, -0.85), (-0.15, 0.0)), "right": ((0.0, 0.15), (0.85, 0.85))}[arm]
    x = problem.basis.doflocs[:, :, None, None]
    centres = rng.uniform(low, high, (samples, 2, 2)).transpose(2, 0, 1)[:, None]
    fields = (rng.uniform(2.0, 5.0, (samples, 2)) * np.exp(-((x - centres) ** 2).sum(axis=0) / 0.08)).sum(axis=2)
    B, W = problem.parameters.matrix, problem.parameters.weight
    return (B.T @ (W @ fields)).T


class LearnedMap:
    """Least-squares map from sensor values to coefficients, trained on sources in the lower arm."""

    def __init__(self, problem, samples=2000, seed=1):
        rng = np.random.default_rng(seed)
        coefficients = spots(problem, "lower", rng, samples)
        clean = coefficients @ problem.forward_matrix().T
        noisy = clean + NOISE * np.std(clean) * rng.standard_normal(clean.shape)
        self.weights = np.linalg.lstsq(noisy, coefficients, rcond=None)[0]

    def __call__(self, problem, data):
        return fc.Candidate.from_coefficients(problem, data.values @ self.weights)


def main():
    """Selections for both sources."""
    problem = build_problem()
    learned = LearnedMap(problem)
    results = {}
    for name, truth in truths(problem).items():
        data = problem.simulate(truth, noise=NOISE, seed=3)
        selection = fc.no_harm(
            problem,
            data,
            baseline=fc.Tikhonov(choose="discrepancy"),
            learned=learned,
            rule=fc.ResidualRadius(),
        )
        results[name] = (truth, data, selection)
    return problem, learned, results


if __name__ == "__main__":
    problem, learned, results = main()
    for name, (truth, _, s) in results.items():
        print(f"--- {name} source: true errors {s.baseline.error(truth):.3g} (baseline), {s.learned.error(truth):.3g}")
        print(s)
