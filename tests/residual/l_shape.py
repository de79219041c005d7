"""``∫ u`` for ``-Δu = 1`` with u = 0 on the boundary of the L-shape, to eleven digits and without finite elements.

``u = -|z|²/4 + Re f(z)`` with f a polynomial plus poles that accumulate exponentially at the corners (Gopal, Trefethen
2019), fitted on the boundary by least squares. By the maximum principle the error of u is at most its largest value on
the boundary. The L-shape is (-1, 1)² without its lower right quadrant.
"""

import numpy as np

# Counterclockwise, and the directions out of the domain.
CORNERS = np.array([0j, 1 + 0j, 1 + 1j, -1 + 1j, -1 - 1j, 0 - 1j])
OUTWARD = np.array([1 - 1j, 1 - 1j, 1 + 1j, -1 + 1j, -1 - 1j, 1 - 1j]) / np.sqrt(2.0)


def poles(count):
    j = np.arange(1, count + 1)
    distance = np.exp(-4.0 * (np.sqrt(count) - np.sqrt(j)))
    return np.concatenate([c + n * distance for c, n in zip(CORNERS, OUTWARD, strict=True)]), np.tile(distance, 6)


def terms(z, count, degree=40):
    """``(functions, points)`` and derivatives of the functions that f is made of."""
    p, size = poles(count)
    powers = np.arange(degree + 1)[:, None]
    scaled = z / np.sqrt(2.0)
    apart = z - p[:, None]
    values = np.vstack([scaled**powers, size[:, None] / apart])
    slopes = np.vstack([powers * scaled ** np.maximum(powers - 1, 0) / np.sqrt(2.0), -size[:, None] / apart**2])
    return values, slopes


def boundary_points(per_side=500):
    """Points, weights and outward normals; the points accumulate at the corners as fast as the poles."""
    t, w = np.polynomial.legendre.leggauss(per_side)
    # s = 1 / (1 + exp(-x)) with x from -34 to 34.
    s = 1.0 / (1.0 + np.exp(-34.0 * t))
    ds = 34.0 * w * s * (1.0 - s)
    z, weights, normals = [], [], []
    for a, b in zip(CORNERS, np.roll(CORNERS, -1), strict=True):
        z.append(np.where(s < 0.5, a + (b - a) * s, b - (b - a) / (1.0 + np.exp(34.0 * t))))
        weights.append(abs(b - a) * ds)
        normals.append(np.full(per_side, -1j * (b - a) / abs(b - a)))
    return np.concatenate(z), np.concatenate(weights), np.concatenate(normals)


def integral(count=100):
    """``∫ u``, and the largest ``|u|`` on the boundary, which bounds the error of u everywhere."""
    z, w, n = boundary_points()
    values, slopes = terms(z, count)
    A = np.hstack([values.real.T, -values.imag.T])
    size = np.linalg.norm(A, axis=0)
    size[size == 0.0] = 1.0
    c = np.linalg.lstsq(A / size, np.abs(z) ** 2 / 4.0, rcond=1e-15)[0] / size
    c = c[: len(values)] + 1j * c[len(values) :]
    radial, square = (z * n.conj()).real / 2.0, np.abs(z) ** 2 / 4.0
    u, outflow = (c @ values).real - square, (c @ (slopes * n)).real - radial
    # Green's formula with -|z|²/4, whose integral over three quarters of the square is -1/2.
    return float(-0.5 + np.sum((u * radial - square * outflow) * w)), float(np.abs(u).max())
