"""What intervals cost, in units of a factorization with one solve, and of batched solves, of the same run.

    python tests/benchmarks/evidence_cost.py

A source on 50,000 dofs in an H1 ball, 33 sensors. An evidence takes two factorizations, that of the equation and that
of the ball, 33 solves with each, and an eigenproblem of size 33; a unit is one factorization with one solve of the
equation. Then 1,000 functionals, against 1,000 solves with the form of the ball in batches of the same size. Bars: 5
units, and 1.3 times the solves, in processor time, so that other work on the machine does not count. Exit code 1 if
one is missed.
"""

from __future__ import annotations

import sys
from functools import partial
from time import process_time

import measured
import numpy as np
from measured import plane
from scipy.sparse import csc_matrix

import femcert as fc
from femcert.evidence.sights import BATCH
from femcert.linalg import Factorization

CELLS, SENSORS, FUNCTIONALS, ROUNDS = 223, 33, 1000, 3
UNITS, SOLVES = 5.0, 1.3
timed = partial(measured.timed, clock=process_time)


def problem_on(basis):
    grid = np.linspace(0.1, 0.9, 6)
    points = np.array([(x, y) for x in grid for y in grid])[:SENSORS]
    space = fc.FullSpace(basis).within_ball(2.0, norm="h1", length=0.3)
    return fc.EllipticSource(basis, parameters=space, sensors=fc.AverageSensors(basis, points, radius=0.05))


def first_interval(problem, data, mean):
    found = fc.evidence(problem, data)
    return found, found.interval(mean)


def unit(operator, right):
    return Factorization(operator, definite=True).solve(right)


def batched(factor, functionals):
    count = functionals.shape[1]
    return [factor.solve(functionals[:, j : j + BATCH].toarray()) for j in range(0, count, BATCH)]


def main():
    basis = plane(CELLS + 1)
    rng = np.random.default_rng(0)
    centres = rng.uniform(0.05, 0.95, (FUNCTIONALS, 2))
    discs = fc.AverageSensors(basis, centres, radius=0.03).matrix
    questions = [fc.Prediction(row) for row in discs.toarray()]
    data, mean = fc.Data.gaussian(np.zeros(SENSORS), std=1e-4), fc.Mean(basis)
    units, solves = [], []
    for _ in range(ROUNDS):
        problem = problem_on(basis)
        operator = csc_matrix(problem.operator[problem.free][:, problem.free])
        _, one = timed(unit, operator, rng.standard_normal(operator.shape[0]))
        (found, _), first = timed(first_interval, problem, data, mean)
        units.append(first / one)
        ball = Factorization(csc_matrix(problem.parameters.ball_form), definite=True)
        _, plain = timed(batched, ball, csc_matrix(discs.T))
        _, table = timed(found.table, questions)
        solves.append(table / plain)
    first, many = float(np.median(units)), float(np.median(solves))
    print(f"{basis.N} dofs, {SENSORS} sensors: evidence and an interval in {first:.2f} units, at most {UNITS:g}")
    print(f"{FUNCTIONALS} functionals in {many:.2f} times their batched solves, at most {SOLVES:g}")
    return int(first > UNITS or many > SOLVES)


if __name__ == "__main__":
    sys.exit(main())
