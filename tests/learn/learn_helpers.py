"""Small problems with known solutions, for the tests of this folder."""

import numpy as np
from skfem import Basis, ElementLineP2, ElementTriP1, ElementTriP2, MeshLine, MeshTri

import femcert as fc


def square_basis(cells=8, element=None):
    ticks = np.linspace(0.0, 1.0, cells + 1)
    return Basis(MeshTri.init_tensor(ticks, ticks), element or ElementTriP2())


def inner_points(count):
    places = (np.arange(count) + 0.5) / count
    return np.stack(np.meshgrid(places, places), axis=-1).reshape(-1, 2)


def square_source(**options):
    """-Laplace u = q on the unit square with u = 0 around, 2 x 2 sines for q, 16 averages."""
    basis = square_basis()
    return fc.EllipticSource(
        basis,
        parameters=fc.SineSpace(basis, (2, 2)),
        sensors=fc.AverageSensors(basis, inner_points(4), radius=0.08),
        **options,
    )


def line_source(**options):
    ends = {"left": lambda x: x[0] == 0.0, "right": lambda x: x[0] == 1.0}
    basis = Basis(MeshLine(np.linspace(0.0, 1.0, 41)).with_boundaries(ends), ElementLineP2())
    return fc.EllipticSource(
        basis,
        parameters=fc.SineSpace(basis, 3),
        sensors=fc.PointSensors(basis, np.linspace(0.1, 0.9, 9)[:, None]),
        **options,
    )


def line_heat():
    basis = Basis(MeshLine(np.linspace(0.0, 1.0, 41)), ElementLineP2())
    return fc.HeatInitial(
        basis,
        parameters=fc.SineSpace(basis, 2),
        sensors=fc.PointSensors(basis, np.linspace(0.1, 0.9, 9)[:, None]),
        times=[0.02, 0.05],
        steps=50,
    )


def line_coefficient(transform="exp"):
    basis = Basis(MeshLine(np.linspace(0.0, 1.0, 41)), ElementLineP2())
    return fc.EllipticCoefficient(
        basis,
        parameters=fc.CosineSpace(basis, 2),
        sensors=fc.PointSensors(basis, np.linspace(0.05, 0.95, 19)[:, None]),
        source=1.0,
        transform=transform,
    )


def differences(function, x, step=1e-4):
    """Gradient and Laplacian by central differences."""
    moves = step * np.eye(len(x))
    ahead = [function(x + e[:, None]) for e in moves]
    behind = [function(x - e[:, None]) for e in moves]
    gradient = np.array([(a - b) / (2.0 * step) for a, b in zip(ahead, behind, strict=True)])
    laplacian = sum((a + b - 2.0 * function(x)) / step**2 for a, b in zip(ahead, behind, strict=True))
    return gradient, laplacian


def p1_square(cells=6):
    return square_basis(cells, ElementTriP1())
