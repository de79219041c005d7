"""A problem in which any field is admissible, and fields to transfer to it."""

import numpy as np

import femcert as fc


def full_problem(basis, space=None):
    """All of the finite-element space is admissible; one sensor."""
    sensors = fc.PointSensors(basis, [basis.mesh.p[:, basis.mesh.t[:, 0]].mean(axis=1)])
    return fc.EllipticSource(basis, parameters=fc.FullSpace(basis) if space is None else space, sensors=sensors)


def linear(x):
    return 1.0 + 2.0 * x[0] - (x[1] if len(x) > 1 else 0.0)


def quadratic(x):
    return x[0] ** 2 + (3.0 * x[0] * x[1] - x[1] ** 2 if len(x) > 1 else 0.0) - 0.5 * x[0]


def smooth(x):
    return np.sin(2.0 * x[0] + 1.0) * np.cos(3.0 * x[1])
