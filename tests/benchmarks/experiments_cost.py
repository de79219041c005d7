"""Fifteen patterns as `Experiments`, in units of one factorization and the solves that they need, of the same run.

    python tests/benchmarks/experiments_cost.py [SIDE]

Linear: a source that is lit by 15 patterns, given by matrices; the forward matrix of all. Nonlinear: a conductivity
under 15 currents through the boundary; data and Jacobian at a parameter. Both need one factorization, and a solve for
each pattern and column; where fewer adjoint solves do, these are made instead. The nonlinear one assembles the
derivative of every pattern besides, which counts. Bar of both: 1.3 units; exit code 1 if it is missed.
"""

from __future__ import annotations

import sys

import numpy as np
from measured import plane, timed
from scipy.sparse import diags
from skfem import asm
from skfem.models.poisson import laplace, mass

import femcert as fc
from femcert.linalg import Factorization, factorization_count

PATTERNS, MODES, SENSORS, SIDE, BAR = 15, 8, 16, 250, 1.3


def rim(basis):
    """Readings at vertices of the rim."""
    nodes = basis.mesh.boundary_nodes()[:: len(basis.mesh.boundary_nodes()) // SENSORS][:SENSORS]
    return fc.PointSensors(basis, basis.mesh.p[:, nodes].T)


def linear(basis, space):
    """Patterns ``M diag(w)`` of a source."""
    K, M, x = asm(laplace, basis) + asm(mass, basis), asm(mass, basis), basis.doflocs[0]
    loads = [M @ diags(1.0 + 0.5 * np.cos((i + 1) * np.pi * x)) for i in range(PATTERNS)]
    options = {"operator": K, "observe": rim(basis).matrix, "parameters": space, "definite": True}
    problems = [fc.MatrixProblem(load=load, **options) for load in loads]
    columns = [np.asarray(load @ space.matrix) for load in loads]

    def unit():
        factor = Factorization(K, definite=True)
        return [factor.solve(right) for right in columns]

    return unit, lambda: fc.Experiments(problems, parameters=space).forward.matrix


def nonlinear(basis, space):
    """Currents through the rim, a conductivity ``exp(q)``."""
    q = space.field(0.1 * np.arange(1.0, MODES + 1.0))
    options = {"parameters": space, "sensors": rim(basis)}
    currents = [lambda x, i=i: np.cos((i + 1) * np.arctan2(x[1] - 0.5, x[0] - 0.5)) for i in range(PATTERNS)]
    problems = [fc.EllipticCoefficient(basis, robin={"rim": (1.0, current)}, **options) for current in currents]
    point = problems[0].linearize(q)
    A = problems[0].derivatives(point.state, q)[0]
    right, columns = np.ones(basis.N), np.asarray(point.coupling @ space.matrix)

    def unit():
        factor = Factorization(A, definite=True, to_rounding=True)
        return [(factor.solve(right), factor.solve(columns)) for _ in range(PATTERNS)]

    def all_of_them():
        found = fc.Experiments(problems).linearize(1.01 * q)
        return found.matrix, found.predicted

    return unit, all_of_them


def main():
    side = int(sys.argv[1]) if len(sys.argv) > 1 else SIDE
    basis = plane(side)
    mesh = basis.mesh.with_boundaries({"rim": lambda x: np.ones(x.shape[1], dtype=bool)})
    basis = type(basis)(mesh, basis.elem)
    space, missed = fc.CosineSpace(basis, MODES), False
    for name, case in (("linear", linear), ("nonlinear", nonlinear)):
        unit, experiments = case(basis, space)
        _, alone = timed(unit)
        before = factorization_count()
        _, together = timed(experiments)
        made, ratio = factorization_count() - before, together / alone
        missed |= made != 1 or not ratio <= BAR
        print(f"{name}, {basis.N} dofs: {made} factorization, {together:.2f} s, {ratio:.2f} units")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
