"""Small problems with known solutions, for the tests of this folder."""

import numpy as np
import zoo

import femcert as fc


def inner_points(count):
    places = (np.arange(count) + 0.5) / count
    return np.stack(np.meshgrid(places, places), axis=-1).reshape(-1, 2)


def square_source(**options):
    """-Laplace u = q on the unit square with u = 0 around, 2 x 2 sines for q, 16 averages."""
    sensors = zoo.discs(inner_points(4))
    return zoo.source("tri P2", 8, parameters=(fc.SineSpace, (2, 2)), sensors=sensors, **options)


def line_source(**options):
    return zoo.source("line P2", 40, sensors=9, **options)


def line_heat():
    return zoo.heat("line P2", 40, sensors=9, times=[0.02, 0.05], steps=50)


def line_coefficient(transform="exp"):
    return zoo.coefficient("line P2", 40, sensors=np.linspace(0.05, 0.95, 19)[:, None], transform=transform)


def differences(function, x, step=1e-4):
    """Gradient and Laplacian by central differences."""
    moves = step * np.eye(len(x))
    ahead = [function(x + e[:, None]) for e in moves]
    behind = [function(x - e[:, None]) for e in moves]
    gradient = np.array([(a - b) / (2.0 * step) for a, b in zip(ahead, behind, strict=True)])
    laplacian = sum((a + b - 2.0 * function(x)) / step**2 for a, b in zip(ahead, behind, strict=True))
    return gradient, laplacian


def p1_square(cells=6):
    return zoo.unit_basis("tri P1", cells)
