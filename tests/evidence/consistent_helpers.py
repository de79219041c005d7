"""Random consistent sets, and the largest distance as a general-purpose solver finds it."""

import numpy as np
from scipy.optimize import minimize


def noisy(seed, m, k, level, spread=1.0, share=0.9):
    """Matrix, truth, and data with noise of `share` times the level."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(m, k)) * np.exp(-spread * np.arange(k))
    truth, e = rng.normal(size=k), rng.normal(size=m)
    return A, truth, A @ truth + share * level * e / np.linalg.norm(e)


def misfit(A, y, x):
    return np.linalg.norm(x @ A.T - y, axis=-1)


def distances(x, points):
    return np.linalg.norm(x - points, axis=-1)


def by_solver(A, y, level, p, starts, form=None, radius=1.0):
    """The largest distance that SLSQP finds from many starts, both constraints fulfilled to 1e-9."""
    cons = [{"type": "ineq", "fun": lambda x: 1.0 - misfit(A, y, x) ** 2 / level**2,
             "jac": lambda x: -2.0 * A.T @ (A @ x - y) / level**2}]  # fmt: skip
    if form is not None:
        cons.append({"type": "ineq", "fun": lambda x: 1.0 - x @ form @ x / radius**2,
                     "jac": lambda x: -2.0 * form @ x / radius**2})  # fmt: skip
    best = 0.0
    for start in starts:
        found = minimize(lambda x: -np.sum((x - p) ** 2), start, jac=lambda x: -2.0 * (x - p), method="SLSQP",
                         constraints=cons, options={"ftol": 1e-14, "maxiter": 200})  # fmt: skip
        if min(c["fun"](found.x) for c in cons) > -1e-9:
            best = max(best, float(np.linalg.norm(found.x - p)))
    return best
