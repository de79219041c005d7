"""How much the Jacobian of an unknown conductivity changes on a ball: a Lipschitz constant without differences.

The discrete problem ``-div(a(q) grad u) = f`` with ``a = exp(q)`` or ``a = q``, on the ball of the parameters
``q = q0 + B c`` with ``‖q - q0‖_Q <= rho``. All integrals are the sums over the quadrature points that the problem
itself uses; with positive weights they obey Cauchy-Schwarz, so the bound holds for the discrete problem itself.

**Notation.** A(q) is the form ``(a(q) grad u, grad v)`` plus the Robin term, ``‖v‖_q² = A(q)(v, v)`` on the states
that vanish at Dirichlet dofs, ``u = u(q)``, and ``z_w`` the adjoint state of a unit vector w of the (whitened) data:
``A(q)(v, z_w) = w' H v``. With ``psi = B R^-1``, orthonormal in Q, and ``|psi|² = sum_j psi_j²``, every h of the class
has ``|h(x)| <= |psi(x)| ‖h‖_Q``. ``K = max |psi| a'(q0) / a(q0)`` over the quadrature points, and ``t = K rho``.

**Second derivative.** With the derivative ``p = u'(q) h``, which solves ``A(q)(p, v) = -(a' h grad u, grad v)``,

    w' F''(q)[h, h] = -2 (a' h grad p, grad z_w) - (a'' h² grad u, grad z_w),

so Cauchy-Schwarz with the weight a gives ``‖F''(q)[h, h]‖_Y <= (2 mu + s beta) gamma ‖h‖_Q²``, where s is 1 for exp
(``a'' = a'²/a``) and 0 for ``a = q``, and

    beta(q)  = sup_h (a'²/a h² grad u, grad u)^1/2,       a k x k eigenvalue of a weighted mass matrix,
    mu(q)    = sup_h ‖u'(q) h‖_q <= beta(q),              k solves,
    gamma(q) = sup_w (a'²/a |psi|² grad z_w, grad z_w)^1/2,    m solves and a weighted stiffness matrix

over unit h and w. They are computed at q0. A symmetric bilinear map on a Hilbert space has its norm on the diagonal,
and the ball is convex, so the supremum over the ball is a Lipschitz constant of J: ``‖J(q) - J(q')‖ <= L ‖q - q'‖_Q``.

**From q0 to the ball, exp.** There ``a(q)/a(q0)`` lies in ``[e^-t, e^t]`` and ``(a - a0)²/a <= S² a0``,
``S = 2 sinh(t/2)``, and even ``(a - a0)²/a <= (S/t)² (q - q0)² a0``. The differences
``d = u(q) - u(q0)`` and ``e = z_w(q) - z_w(q0)`` vanish at Dirichlet dofs, whatever the Dirichlet values are, and solve
``A(q)(d, v) = -((a - a0) grad u0, grad v)``, the same for e; so ``K ‖d‖_q <= S beta0``, ``K ‖e‖_q <= S gamma0``.
With ``E = e^(t/2)`` the triangle inequality gives

    beta <= (E + S) beta0,    gamma <= (E + S) gamma0,    mu <= min((E + S) mu0 + 2 S beta0, beta),

mu since ``A(q)(p - p0, v) = -((a - a0) grad p0 + (a - a0) h grad u0 + a h grad d, grad v)`` and ``‖p0‖_q <= E mu0``.

**From q0 to the ball, a = q.** It needs t < 1. Now ``a/a0`` lies in ``[1 - t, 1 + t]`` and
``(a - a0)²/a <= (q - q0)²/a0 / (1 - t)``; with ``g = (1 - t)^-1/2`` in the same way ``K ‖d‖_q <= t g beta0`` and

    beta <= g³ beta0,    gamma <= g³ gamma0,    mu <= min(((1 + t)^1/2 + t g) mu0 + t g³ beta0, beta).

**Small balls.** Cauchy-Schwarz loses a factor of 3 to 10, so ``F''(q0)`` itself, ``m k²`` numbers, is computed
where it fits, and the rest of the ball added by the third derivative:
``L = min((2 mu + s beta) gamma, ‖F''(q0)‖ + rho M)``. With the second derivative ``r = u''(q)[h, h]``, of the norm
``‖r‖_q <= K_q (2 mu + s beta)`` where ``K_q = max |psi| a'/a`` (K for exp, at most ``g² K`` for ``a = q``),

    w' F'''(q)[h, h, h] = -3 (a' h grad r, grad z_w) - 3 (a'' h² grad p, grad z_w) - (a''' h³ grad u, grad z_w),

so ``M = gamma K (9 mu + 4 beta)`` for exp and ``M = 6 gamma K_q mu`` for ``a = q``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import solve_triangular
from skfem import Basis, BilinearForm, asm
from skfem.helpers import dot, grad

from ..checks import Array
from ..errors import UncertifiedError
from ..mesh.assembly import diffusion_matrix
from .data import Data
from .forward import BATCH, dense

if TYPE_CHECKING:
    from .nonlinear import Tangent

# Rounding of the Gram matrices and of the formulas, relative to their size.
ROUNDING = 1e-10
# Beyond this the growth e^(t/2) over the ball is no bound of any use, and it would overflow.
MOST_GROWTH = 200.0
# The second derivative itself takes two assemblies per coordinate and holds m k² numbers.
MOST_COORDINATES, MOST_NUMBERS = 100, 5_000_000


@BilinearForm
def _weighted(u: Any, v: Any, w: Any) -> Any:
    """(c u, v)"""
    return w["c"] * u * v


@BilinearForm
def _transport(h: Any, v: Any, w: Any) -> Any:
    """(a h grad u, grad v)"""
    return w["a"] * h * dot(grad(w["u"]), grad(v))


class Curvature(ABC):
    """How much the Jacobian of a problem changes on balls around a parameter: what its linearization leaves out."""

    # What a ball larger than `reach` may hold.
    beyond = "parameters for which the problem is not defined"

    @property
    def reach(self) -> float:
        """The radius of the ball on which the problem is known to be defined: no bound is finite beyond it."""
        return np.inf

    @abstractmethod
    def lipschitz(self, radius: float) -> float:
        """L with ``‖J(q) - J(q')‖ <= L ‖q - q'‖_Q`` for q, q' in the ball; infinite where no bound is known."""


@dataclass(frozen=True)
class ConductivityCurvature(Curvature):
    """Bounds at q0 that give a Lipschitz constant of the Jacobian on every ball around it.

    Attributes
    ----------
    exponential
        Whether ``a = exp(q)``; otherwise ``a = q``.
    sup
        K: the largest relative change of the conductivity by a unit parameter.
    load, state, adjoint
        beta0, mu0 and gamma0 of the module's text.
    second
        ``‖F''(q0)‖`` from above; infinite where it was not computed.
    """

    exponential: bool
    sup: float
    load: float
    state: float
    adjoint: float
    second: float = np.inf

    beyond = "conductivities that are not positive"

    @property
    def reach(self) -> float:
        """Where conductivities stop being positive."""
        return np.inf if self.exponential else 1.0 / self.sup

    def lipschitz(self, radius: float) -> float:
        """L with ``‖J(q) - J(q')‖ <= L ‖q - q'‖_Q`` for q, q' in the ball; infinite where no bound is known."""
        t = self.sup * radius
        if not t < (MOST_GROWTH if self.exponential else 1.0):
            return np.inf
        beta0, mu0 = self.load, self.state
        if self.exponential:
            E, S = np.exp(t / 2.0), 2.0 * np.sinh(t / 2.0)
            growth = E + S
            mu = growth * mu0 + 2.0 * S * beta0
        else:
            g = (1.0 - t) ** -0.5
            growth = g**3
            mu = (np.sqrt(1.0 + t) + t * g) * mu0 + t * g**3 * beta0
        beta, gamma = growth * beta0, growth * self.adjoint
        mu = min(mu, beta)
        if self.exponential:
            crude, third = gamma * (2.0 * mu + beta), gamma * t * (9.0 * mu + 4.0 * beta)
        else:
            crude, third = 2.0 * gamma * mu, 6.0 * gamma * mu * t / (1.0 - t)
        return float(min(crude, self.second + third) * (1.0 + ROUNDING))


def conductivity_curvature(
    point: Tangent, fields: Basis, data: Data | None, *, exponential: bool
) -> ConductivityCurvature:
    """The bounds K, beta0, mu0, gamma0 and ``‖F''‖`` at a parameter, by k + m solves.

    Parameters
    ----------
    point
        The problem at q0.
    fields
        The basis of the parameter, with the quadrature of the problem.
    exponential
        Whether ``a = exp(q)``; otherwise ``a = q``.

    Raises
    ------
    UncertifiedError
        A quadrature weight is not positive, so that Cauchy-Schwarz fails for the discrete integrals.
    """
    if not np.all(point.problem.basis.dx > 0.0):
        raise UncertifiedError("the quadrature of basis has weights that are not positive; take another intorder")
    local = _Local(point, fields, data, exponential)
    slack = local.slack
    plain = ConductivityCurvature(
        exponential=exponential,
        sup=slack * float(np.sqrt(local.squares.max())),
        load=slack * local.load(),
        state=slack * _root_of_largest(-local.right.T @ local.derivative),
        adjoint=slack * local.adjoint(),
    )
    k, m = point.parameters.dimension, point.observation_count
    if not np.isfinite(slack) or k > MOST_COORDINATES or m * k**2 > MOST_NUMBERS:
        return plain
    # Its terms may cancel; each of them is at most as large as the bound by Cauchy-Schwarz.
    return replace(plain, second=slack**2 * local.second() + ROUNDING * plain.lipschitz(0.0))


class _Local:
    """The problem at q0 in the orthonormal basis psi of the class, with its derivative and its adjoint states."""

    def __init__(self, point: Tangent, fields: Basis, data: Data | None, exponential: bool) -> None:
        problem, space, R = point.problem, point.parameters, point.parameters.root
        self.problem, self.data, self.point = problem, data, point
        self.exponential, self.fields = exponential, fields
        q0 = np.asarray(self.fields.interpolate(point.at))
        self.a0 = np.exp(q0) if self.exponential else q0
        # a' / a
        self.relative = np.ones_like(q0) if self.exponential else 1.0 / q0
        self.psi = dense(space.matrix) @ solve_triangular(R, np.eye(space.dimension))
        self.squares = np.zeros_like(q0)
        for i in range(space.dimension):
            self.squares += self.change(i) ** 2
        self.right = dense(point.coupling @ self.psi)
        self.derivative = -self._solved(self.right)
        self.adjoints = self._solved(dense(problem.sensors.matrix[:, problem.free].T))
        # Rounding in G, seen through R^-1, changes the norm of Q by a relative part; `stability` has the same term.
        self.slack = (1.0 + ROUNDING) / space.kept if space.kept > 0.5 else np.inf

    def change(self, i: int) -> Array:
        """``psi_i a' / a`` at the quadrature points."""
        return np.asarray(self.fields.interpolate(self.psi[:, i])) * self.relative

    def load(self) -> float:
        """beta0."""
        slope = np.asarray(self.problem.basis.interpolate(self.point.state).grad)
        weight = self.a0 * self.relative**2 * np.sum(slope**2, axis=0)
        return _root_of_largest(self.psi.T @ (asm(_weighted, self.fields, c=weight) @ self.psi))

    def adjoint(self) -> float:
        """gamma0."""
        gram = self.adjoints.T @ (self._stiffness(self.a0 * self.squares) @ self.adjoints)
        return _root_of_largest(gram if self.data is None else self.data.whiten(self.data.whiten(gram).T))

    def second(self) -> float:
        """``sup_h ‖F''(q0)[h, h]‖_Y`` from above, by two unfoldings of the tensor into matrices."""
        k, m = self.psi.shape[1], self.adjoints.shape[1]
        T = np.zeros((m, k, k))
        state = self.problem.basis.interpolate(self.point.state)
        for i in range(k):
            weight = self.a0 * self.change(i)
            T[:, i, :] -= 2.0 * self.adjoints.T @ (self._stiffness(weight) @ self.derivative)
            if self.exponential:
                C = asm(_transport, self.fields, self.problem.basis, a=weight, u=state).tocsr()[self.problem.free]
                T[:, i, :] -= self.adjoints.T @ (C @ self.psi)
        T = (T + T.transpose(0, 2, 1)) / 2.0
        if self.data is not None:
            T = self.data.whiten(T.reshape(m, k * k)).reshape(m, k, k)
        by_data, by_class = T.reshape(m, k * k), T.reshape(m * k, k)
        return min(_root_of_largest(by_data @ by_data.T), _root_of_largest(by_class.T @ by_class))

    def _stiffness(self, weight: Array) -> Any:
        free = self.problem.free
        return diffusion_matrix(self.problem.basis, weight)[free][:, free]

    def _solved(self, right: Array) -> Array:
        parts = [self.point.factor.solve(right[:, i : i + BATCH]) for i in range(0, right.shape[1], BATCH)]
        return np.hstack(parts)


def _root_of_largest(gram: Array) -> float:
    return float(np.sqrt(max(float(np.linalg.eigvalsh((gram + gram.T) / 2.0)[-1]), 0.0)))
