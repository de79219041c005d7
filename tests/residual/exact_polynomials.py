"""Polynomials of two variables in the coordinates of an affine frame, with just what exact solutions need."""

import numpy as np
from scipy.signal import convolve2d

import femcert as fc


class Frame:
    """The map ``x = A X + shift``."""

    def __init__(self, A, shift):
        self.inverse = np.linalg.inv(A)
        self.shift = shift

    def back(self, x):
        """X from x, ``(2, ...)``."""
        return np.tensordot(self.inverse, x - self.shift.reshape(2, *[1] * (x.ndim - 1)), axes=1)

    def coordinates(self):
        """X and Y as polynomials."""
        return Polynomial([[0.0], [1.0]], self), Polynomial([[0.0, 1.0]], self)


class Polynomial:
    """``sum c_ij X^i Y^j``, a function of x; evaluated in the frame, where nothing cancels."""

    def __init__(self, coefficients, frame):
        self.c = np.atleast_2d(np.asarray(coefficients, dtype=float))
        self.frame = frame

    def __call__(self, x):
        return np.polynomial.polynomial.polyval2d(*self.frame.back(np.asarray(x)), self.c)

    def __mul__(self, other):
        if isinstance(other, Polynomial):
            return Polynomial(convolve2d(self.c, other.c), self.frame)
        return Polynomial(other * self.c, self.frame)

    def __add__(self, other):
        a, b = self.c, other.c if isinstance(other, Polynomial) else np.array([[other]])
        total = np.zeros(np.maximum(a.shape, b.shape))
        total[: a.shape[0], : a.shape[1]] += a
        total[: b.shape[0], : b.shape[1]] += b
        return Polynomial(total, self.frame)

    __rmul__, __radd__ = __mul__, __add__

    @property
    def degree(self):
        return int(max(np.add(*np.nonzero(self.c)), default=0))

    def declared(self):
        """With its degree, so that bounds may rely on it."""
        return fc.Polynomial(self, self.degree)

    def gradient(self):
        """With respect to x."""
        along = [np.polynomial.polynomial.polyder(self.c, axis=axis) for axis in (0, 1)]
        X, Y = (Polynomial(c, self.frame) for c in along)
        return tuple(b * X + c * Y for b, c in self.frame.inverse.T)


def divergence(field):
    return field[0].gradient()[0] + field[1].gradient()[1]


def power_sum(coefficients, X):
    """``sum c_i X^i``."""
    total = 0.0 * X
    for c in coefficients[::-1]:
        total = total * X + float(c)
    return total


def random_polynomial(rng, degree, X, Y):
    """With normal coefficients."""
    c = np.triu(rng.standard_normal((degree + 1, degree + 1)))[:, ::-1]
    return Polynomial(c, X.frame)
