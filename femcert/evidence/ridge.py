"""The centre of a ball, and how far the truth is from it at most: a length that is fixed before the data.

With whitened data ``b = T x + sum_j T_j x_j + A z + e`` about the centre of the ball, ``‖x‖_L <= rho``,
``‖x_j‖ <= r_j``, the centre is ridge regression, the minimizer of ``‖C^-1/2 (T x + A z - b)‖² + mu ‖x‖_L²``:

    ``a = G b``,  ``x = L^-1 T' a``,  ``z = A^+ (b - (K + mu C) a)``,  ``G = Z (Z' (K + mu C) Z)^-1 Z'``,

with ``K = T L^-1 T'`` and Z an orthonormal basis of what A does not reach. For this map W from data to the centre
``W A z = z``, so that its error is ``(W T - I) x + sum_j W T_j x_j + W e``. The first part is a worst case over the
ball: y = (I - W T) x fulfils ``x' L x = y' (L + T' S T) y`` and ``A' C^-1 T y = 0`` with
``S = 2 C^-1 / mu + C^-1 K C^-1 / mu²``, so that its norm in Q is at most ``rho lam^-1/2`` for the least eigenvalue lam
of ``L + T' (S + c C^-1 A A' C^-1) T`` in Q, any c >= 0.

The worst cases of the sets and the noise seldom move the centre in the same direction, so that their sum is too much.
For any ``nu > 1 / lam`` and ``nu_j`` for which the inverse below is positive definite, by Lagrange's multipliers,

    ``‖(W T - I) x + sum_j W T_j x_j + W e‖_Q² <= nu rho² + sum_j nu_j r_j²``
    ``+ e' V' (I - D / nu - sum_j V K_j V' / nu_j)^-1 V e``

with V and D of `Pencils.beside`. The last term is a sum of weighted squares of the noise, like ``‖W e‖²`` itself. The
multipliers are chosen before the data.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from ..checks import Array
from ..errors import UncertifiedError
from ..linalg.accuracy import EPS, dense_rounding
from ..problem.noise import Noise
from ..stability.pencil import Pencils
from .sights import Observed

# Decimal logarithms of mu rho² that are tried, and how often the grid is made finer.
LOW, HIGH, POINTS, ROUNDS = -8.0, 8.0, 17, 2
# How much of the other sets enters C, in parts of the square of their radii; what stands for a noise of zero.
SHARES, QUIET = (0.0, 0.1, 1.0), 1e-12
# c in terms of S.
PENALTY = 1e3
# What rounding may add to the form of several sets, relatively.
DUST = 1e-9
# How much of G rounding may take.
DOUBTFUL = 1e-2
# Multipliers nu over the least one, and nu_j over the squares of what the other sets add alone.
NU, NU_OTHERS = (1.02, 1.05, 1.1, 1.2, 1.35, 1.6), tuple(np.geomspace(1.05, 40.0, 9))


class Ridge:
    """The centre as a linear map of the data, with multipliers for which its distance from the truth is least.

    They are chosen before the data.

    Parameters
    ----------
    known, pencils
        The experiment, with all that its eigenproblems have in common.
    law
        The noise for which the multipliers are chosen.

    Attributes
    ----------
    bias
        The worst case over the ball, from above.
    others
        What each of the other sets, such as errors of the model, adds at most.
    spread
        ``‖W‖``, from data to Q.

    Raises
    ------
    UncertifiedError
        The data do not determine the directions that the ball does not bound.
    """

    def __init__(self, known: Observed, pencils: Pencils, law: Noise) -> None:
        assert known.lift is not None
        self._known, self._pencils = known, pencils
        self._radii = np.array([sight.radius for sight in known.sights])
        self._grams = [sight.gram for sight in known.sights]
        m, self._count = len(known.free), min(len(known.free), known.forward.parameters.dimension)
        self._check_free()
        fields = np.hstack([known.lift(np.eye(m)), known.directions])
        self._fields, self._gram = fields, fields.T @ (known.forward.parameters.weight @ fields)
        self.chosen = self._choose(law)
        self.matrix = self._map(*self.chosen)
        doubt = self._doubt(self.matrix[:m], *self.chosen)
        self._noise = self._seen(self.matrix, doubt)
        # What noise of laws that depend on no data moves the centre by.
        self._moved: dict[Noise, float] = {}
        self.bias, self.others = self._bias(*self.chosen), self._others(self._noise)
        self.spread = float(np.sqrt(max(np.linalg.eigvalsh(self._noise)[-1], 0.0)))
        self._joint = None if known.free.shape[1] else self._together(law, doubt)

    def length(self, law: Noise) -> float:
        """How far the truth is from the centre at most, at the level of the noise."""
        if law.fixed and law in self._moved:
            return self._moved[law]
        if self._joint is None:
            found = self.bias + sum(self.others) + law.length(self._noise, self._count, law.zeta)
        else:
            square, gram, bent = self._joint
            found = self._joined(square, bent, law.length(gram, self._count, law.zeta))
        if law.fixed:
            self._moved[law] = found
        return found

    def _check_free(self) -> None:
        A = self._known.free
        U, s, Vt = np.linalg.svd(A, full_matrices=True)
        f = A.shape[1]
        if f and not (f <= len(A) and s[-1] > 1e3 * (dense_rounding(*A.shape) * s[0] + self._known.loose)):
            raise UncertifiedError(
                f"the data do not determine {f} directions that the ball of the class does not bound, so that no "
                "radius is finite; expected a norm for the ball, or sensors that see these directions"
            )
        self._rest, self._inverse = U[:, f:], (Vt.T / s) @ U[:, :f].T

    def _choose(self, law: Noise) -> tuple[float, Array]:
        """The multipliers with the least total length, on a grid that is made finer about the best of them."""
        m, rho = len(self._grams[0]), self._radii[0]
        quiet = QUIET * float(np.linalg.norm(self._grams[0], 2)) * rho**2
        unit = max(law.size(m, law.zeta) ** 2 / m, quiet)
        added = sum((r**2 * K for r, K in zip(self._radii[1:], self._grams[1:], strict=True)), np.zeros((m, m)))
        found = []
        for share in SHARES if len(self._grams) > 1 else SHARES[:1]:
            C = unit * np.eye(m) + share * added
            grid = np.linspace(LOW, HIGH, POINTS)
            for _ in range(1 + ROUNDS):
                totals = [self._total(10.0**t / rho**2, C, law) for t in grid]
                i, step = int(np.argmin(totals)), np.ptp(grid) / (len(grid) - 1)
                best = (totals[i], 10.0 ** grid[i] / rho**2, C)
                grid = np.linspace(grid[i] - 0.75 * step, grid[i] + 0.75 * step, 6)
            found.append(best)
        total, mu, C = min(found, key=lambda one: one[0])
        if not np.isfinite(total):
            raise UncertifiedError("no worst-case bias of a centre could be bounded on this ball: rounding hides it")
        return mu, C

    def _total(self, mu: float, C: Array, law: Noise) -> float:
        try:
            matrix = self._map(mu, C)
        except np.linalg.LinAlgError:
            return np.inf
        doubt = self._doubt(matrix[: len(C)], mu, C)
        if doubt > DOUBTFUL:
            return np.inf
        seen = self._seen(matrix, doubt)
        noise = law.length(seen, self._count, law.zeta, rough=True)
        return self._bias(mu, C) + sum(self._others(seen)) + noise

    def _map(self, mu: float, C: Array) -> Array:
        """W in terms of the fields: rows for a, then for z."""
        Z, system = self._rest, self._grams[0] + mu * C
        G = Z @ np.linalg.solve(Z.T @ system @ Z, Z.T)
        G = (G + G.T) / 2.0
        return np.vstack([G, self._inverse @ (np.eye(len(G)) - system @ G)])

    def _doubt(self, G: Array, mu: float, C: Array) -> float:
        """What rounding does to G, relatively."""
        system = self._grams[0] + mu * C
        return float(dense_rounding(*G.shape) * np.linalg.norm(system, 2) * np.linalg.norm(G, 2))

    def _solved(self, values: Array) -> Array:
        """``W b`` in terms of the fields: solved anew for b, with an error relative to a instead of G."""
        Z, (mu, C) = self._rest, self.chosen
        system = self._grams[0] + mu * C
        a = Z @ np.linalg.solve(Z.T @ system @ Z, Z.T @ values)
        return np.concatenate([a, self._inverse @ (values - system @ a)])

    def _seen(self, matrix: Array, doubt: float) -> Array:
        """``W' M W`` from above, M the inner product of Q."""
        gram = (1.0 + 4.0 * doubt) * (matrix.T @ self._gram @ matrix)
        lost = 16.0 * len(gram) * EPS * float(np.linalg.norm(self._gram, 2)) * float(np.linalg.norm(matrix, 2)) ** 2
        return np.asarray((gram + gram.T) / 2.0 + lost * np.eye(len(gram)))

    def _others(self, seen: Array) -> tuple[float, ...]:
        """``r_j ‖W T_j‖``."""
        values, V = np.linalg.eigh(seen)
        root = np.sqrt(np.maximum(values, 0.0))[:, None] * V.T
        pairs = zip(self._radii[1:], self._grams[1:], strict=True)
        return tuple(float(r * np.sqrt(max(np.linalg.eigvalsh(root @ K @ root.T)[-1], 0.0))) for r, K in pairs)

    def _joined(self, square: float, bent: float, length: float) -> float:
        """The bound for all sets, with the `length` of the noise in the form; `bent` is what fields are off by."""
        return float(np.hypot(np.sqrt(square), length)) + bent * (length + sum(self.others))

    def _together(self, law: Noise, doubt: float) -> tuple[float, Array, float] | None:
        """``nu rho² + sum_j nu_j r_j²``, the form of the noise, and by which part W is another map there.

        None where the sum of worst cases is less.
        """
        pencils, turn = self._pencils.weighed(self._seen_twice(*self.chosen), self._known.turn), self._known.turn
        rho, radii, G = self._radii[0], self._radii[1:], self.matrix
        best, least = None, self._apart(law)
        for nu in (self.bias / rho) ** 2 * np.array(NU):
            if (beside := pencils.beside(nu, turn)) is None:
                continue
            lifted, D, lost, bent = beside
            V = lifted @ G
            images = [V @ K @ V.T for K in self._grams[1:]]
            for share in NU_OTHERS if images else NU_OTHERS[:1]:
                alone = share * (np.array(self.others) / radii) ** 2
                inner = np.eye(len(D)) - D / nu - sum(K / x for K, x in zip(images, alone, strict=True))
                try:
                    root = cholesky((inner + inner.T) / 2.0 - len(D) * EPS * np.eye(len(D)), lower=True)
                except np.linalg.LinAlgError:
                    continue
                half = solve_triangular(root, V, lower=True)
                gram = (1.0 + 4.0 * doubt + DUST) * (half.T @ half)
                square = (1.0 + DUST) * float(nu * (rho**2 + lost * self.bias**2) + alone @ radii**2)
                total = self._joined(square, bent, law.length(gram, self._count, law.zeta, rough=True))
                if total < least:
                    best, least = (square, gram, bent), total
        return best

    def _apart(self, law: Noise) -> float:
        """The sum of the worst cases and of what the noise adds alone, roughly."""
        return self.bias + sum(self.others) + law.length(self._noise, self._count, law.zeta, rough=True)

    def _seen_twice(self, mu: float, C: Array) -> Array:
        """S."""
        inverse = np.linalg.inv(C)
        S = 2.0 / mu * inverse + inverse @ self._grams[0] @ inverse / mu**2
        return np.asarray((S + S.T) / 2.0)

    def _bias(self, mu: float, C: Array) -> float:
        """``rho lam^-1/2``, infinite where rounding hides it."""
        A, S = self._known.free, self._seen_twice(mu, C)
        if A.shape[1]:
            inverse = np.linalg.inv(C)
            c = PENALTY * float(np.linalg.norm(S, 2)) / float(np.linalg.norm(inverse @ A, 2)) ** 2
            S = S + c * (inverse @ A) @ (inverse @ A).T
        least = self._pencils.weighed(S, self._known.turn).least(1.0)[0]
        return float(self._radii[0] / np.sqrt(least)) if least > 0.0 else np.inf

    def centre(self, values: Array) -> Array:
        """The field about the centre of the ball, for whitened data b."""
        return np.asarray(self._fields @ self._solved(values))

    def rounding(self, values: Array, level: float) -> float:
        """What rounding may have moved the distance of the truth from the centre by.

        Parameters
        ----------
        values, level
            b, and what the noise moves it by at most.
        """
        known, K, A = self._known, self._grams[0], self._known.free
        weights = self._solved(values)
        a = weights[: len(K)]
        relative = known.sights[0].rounding + dense_rounding(*K.shape)
        lost = self.spread * (relative * float(np.linalg.norm(K, 2) * np.linalg.norm(a)) + known.rounding)
        lost += relative * float(np.abs(weights) @ np.sqrt(np.diag(self._gram)))
        if A.shape[1]:
            left = self.matrix @ A
            left[len(K) :] -= np.eye(A.shape[1])
            missed = float(np.linalg.norm(self._gram, 2)) ** 0.5 * float(np.linalg.norm(left, 2))
            moved = sum(s.radius * float(np.linalg.norm(s.gram, 2)) ** 0.5 for s in known.sights)
            reach = (float(np.linalg.norm(values)) + level + moved) * float(np.linalg.norm(self._inverse, 2))
            lost += (missed + self.spread * known.loose) * reach
        return lost
