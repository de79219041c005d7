"""Space-time norms of residuals of the heat equation on the interval, from closed forms.

Nothing is taken from femcert. A function of x alone on the unit square, insulated at bottom and top, has the same ones.
"""

import numpy as np


def parabolas(levels, step, k, *, linear=False):
    """Coefficients of the continued trajectory in one step: 1, t, t², with t from the beginning of the step."""
    if linear:
        return np.array([levels[:, step], (levels[:, step + 1] - levels[:, step]) / k])
    middle = max(step, 1)
    t = k * (np.arange(middle - 1, middle + 2) - step)
    return np.linalg.solve(np.vander(t, 3, increasing=True), levels[:, middle - 1 : middle + 2].T)


def pieces(basis, u):
    """Nodes of an interval, and value, slope and curvature of P1 or P2 functions at the left end of each element."""
    order = np.argsort(basis.doflocs[0])
    x, u = basis.doflocs[0][order], u[order]
    if basis.elem.maxdeg == 1:
        h = np.diff(x)
        return x, np.array([u[:-1], np.diff(u) / h, np.zeros(len(h))])
    x, a, m, b = x[::2], u[:-1:2], u[1::2], u[2::2]
    h = np.diff(x)
    return x, np.array([a, (-3 * a + 4 * m - b) / h, 4 * (a - 2 * m + b) / h**2])


def dual_square(x, state, source, kappa, *, right=None, points=12):
    """``‖r‖²`` of ``r(v) = (s, v) - (kappa U', v') - right U(1) v(1)`` over v with v(0) = 0.

    `right`: None for v(1) = 0, else the Robin coefficient there. With ``H = kappa U' + int_0^x s`` the representative
    has ``kappa w' = C - H``, and the constant follows from the right end. U and s are quadratic on the elements.
    """
    g, weights = np.polynomial.legendre.leggauss(points)
    h = np.diff(x)[:, None]
    z = h * (g + 1) / 2
    dx = weights / 2 * h
    k = kappa(x[:-1, None] + z)
    s, ds, dds = source[:, :, None]
    whole = (s * h + ds * h**2 / 2 + dds * h**3 / 6)[:, 0]
    before = np.concatenate([[0.0], np.cumsum(whole)[:-1]])[:, None]
    H = k * (state[1][:, None] + state[2][:, None] * z) + before + s * z + ds * z**2 / 2 + dds * z**3 / 6
    resistance, drop = np.sum(dx / k), np.sum(dx * H / k)
    if right is None:
        return np.sum(dx * (drop / resistance - H) ** 2 / k)
    end = state[0][-1] + state[1][-1] * h[-1, 0] + state[2][-1] * h[-1, 0] ** 2 / 2
    C = (whole.sum() - right * end + right * drop) / (1 + right * resistance)
    return np.sum(dx * (C - H) ** 2 / k) + right * (C * resistance - drop) ** 2


def residual_square(basis, levels, k, kappa, *, linear, right=None):
    """``int ‖r‖² dt`` of a continued trajectory."""
    total = 0.0
    t, weights = np.polynomial.legendre.leggauss(4)
    for step in range(levels.shape[1] - 1):
        c = parabolas(levels, step, k, linear=linear)
        for time, weight in zip(k * (t + 1) / 2, k * weights / 2, strict=True):
            value = sum(part * time**i for i, part in enumerate(c))
            rate = sum(i * part * time ** (i - 1) for i, part in enumerate(c) if i)
            x, u = pieces(basis, value)
            total += weight * dual_square(x, u, -pieces(basis, rate)[1], kappa, right=right)
    return total


def sine_coefficients(basis, u, count):
    """``int u sqrt(2) sin(j pi x)`` for j = 1 .. count, by parts on each element."""
    x, (a, b, c) = pieces(basis, u)
    w = np.pi * np.arange(1, count + 1)[:, None]
    h = np.diff(x)
    ends = (a, b, x[:-1], -1.0), (a + b * h + c * h**2 / 2, b + c * h, x[1:], 1.0)
    parts = [s * (-p * np.cos(w * z) / w + d * np.sin(w * z) / w**2 + c * np.cos(w * z) / w**3) for p, d, z, s in ends]
    return np.sqrt(2) * sum(parts).sum(axis=1)


def error_square(basis, levels, parameter, k, kappa, *, linear, low=60, count=4000):
    """``int ‖e‖_V² + ‖e_t‖²_V' dt + ‖e(T)‖²`` mode by mode for both ends cold: its value, and a bound of what is left.

    For the first modes from the exact solution ``q_j exp(-mu_j t)``; for the others, whose layers in time are thin,
    from the equivalent ``int r_j² / mu_j dt + e_j(0)²``. A kink of U contributes at most its jump to r_j, so what is
    left of r beyond `count` modes is at most ``2 (total variation of kappa U' and of its rate)² / (kappa pi² count)``.
    """
    U = np.array([sine_coefficients(basis, column, count) for column in levels.T]).T
    q = sine_coefficients(basis, parameter, count)
    mu = kappa * (np.pi * np.arange(1, count + 1)) ** 2
    total = np.sum((U[:low, -1] - q[:low] * np.exp(-mu[:low] * k * (U.shape[1] - 1))) ** 2)
    total += np.sum((U[low:, 0] - q[low:]) ** 2)
    rest = tail_of_initial_error(basis, levels[:, 0], parameter, count)
    fine, coarse = (np.polynomial.legendre.leggauss(n) for n in (160, 4))
    for step in range(U.shape[1] - 1):
        c, on_mesh = parabolas(U, step, k, linear=linear), parabolas(levels, step, k, linear=linear)
        for t, weight in zip(k * (fine[0] + 1) / 2, k * fine[1] / 2, strict=True):
            exact = q[:low] * np.exp(-mu[:low] * (step * k + t))
            e = exact - sum(part[:low] * t**i for i, part in enumerate(c))
            de = -mu[:low] * exact - sum(i * part[:low] * t ** (i - 1) for i, part in enumerate(c) if i)
            total += weight * np.sum(mu[:low] * e**2 + de**2 / mu[:low])
        for t, weight in zip(k * (coarse[0] + 1) / 2, k * coarse[1] / 2, strict=True):
            value, rate = (sum(i**d * part * t ** (i - d) for i, part in enumerate(c) if i >= d) for d in (0, 1))
            total += weight * np.sum((rate + mu * value)[low:] ** 2 / mu[low:])
            fields = (sum(i**d * f * t ** (i - d) for i, f in enumerate(on_mesh) if i >= d) for d in (0, 1))
            turn = [variation(basis, field) for field in fields]
            rest += weight * 2 * (kappa * turn[0] + turn[1] / mu[-1]) ** 2 / (kappa * np.pi**2 * count)
    return total, rest


def variation(basis, u):
    """Total variation of the slope."""
    x, (_, slope, bend) = pieces(basis, u)
    h = np.diff(x)
    return np.abs(slope[1:] - (slope + bend * h)[:-1]).sum() + np.abs(bend * h).sum()


def tail_of_initial_error(basis, start, parameter, count):
    """Bound of ``sum e_j(0)²`` beyond `count` modes: end values decay like 1/j, kinks like 1/j²."""
    gap = start - parameter
    x = basis.doflocs[0]
    ends = abs(gap[np.argmin(x)]) + abs(gap[np.argmax(x)])
    w = np.pi * count
    return 2 * (ends + 2 * variation(basis, gap) / w) ** 2 / (np.pi * w)
