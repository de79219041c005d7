"""Error norms, and orders fitted to them."""

import numpy as np
import pytest
from skfem import Basis, Functional


def errors(basis, u, exact, gradient):
    """Errors of the finite-element function `u` in L2 and in the H1 seminorm, by a rule of degree 10."""
    fine = Basis(basis.mesh, basis.elem, intorder=10)

    @Functional
    def in_l2(w):
        return (w["u"] - exact(w.x)) ** 2

    @Functional
    def in_h1(w):
        return sum((a - b) ** 2 for a, b in zip(w["u"].grad, gradient(w.x), strict=True))

    at = fine.interpolate(u)
    return np.sqrt(in_l2.assemble(fine, u=at)), np.sqrt(in_h1.assemble(fine, u=at))


def fitted_order(sizes, values):
    """Slope of log(values) over log(sizes)."""
    return np.polyfit(np.log(sizes), np.log(values), 1)[0]


def convergence(solved, sizes, exact, gradient):
    """Fitted orders in L2 and in the H1 seminorm; ``solved(n)`` is a basis of mesh size 1 / n and a state on it."""
    found = np.array([errors(*solved(n), exact, gradient) for n in sizes]).T
    return [fitted_order(1.0 / np.array(sizes), each) for each in found]


def about(values, within):
    """Numbers to compare orders with."""
    return [pytest.approx(value, abs=w) for value, w in zip(values, within, strict=True)]


def taylor_order(function, derivative, steps=(1e-1, 5e-2, 2.5e-2, 1.25e-2)):
    """Fitted order of ``‖f(t) - f(0) - t f'(0)‖``: 2 for a right derivative, 1 for a wrong one."""
    start = np.atleast_1d(function(0.0))
    return fitted_order(steps, [np.linalg.norm(np.atleast_1d(function(t)) - start - t * derivative) for t in steps])


# Fields to interpolate: of degree 1, 2, and of none.


def linear(x):
    return 1.0 + 2.0 * x[0] - (x[1] if len(x) > 1 else 0.0)


def quadratic(x):
    return x[0] ** 2 + (3.0 * x[0] * x[1] - x[1] ** 2 if len(x) > 1 else 0.0) - 0.5 * x[0]


def smooth(x):
    return np.sin(2.0 * x[0] + 1.0) * np.cos(3.0 * x[1])
