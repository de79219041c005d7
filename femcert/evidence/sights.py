"""What the sensors of a problem see of its class: the ball, the directions that nothing bounds, and functionals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, diags, identity, issparse
from scipy.sparse.csgraph import connected_components

from ..checks import Array
from ..errors import SolveError, UncertifiedError
from ..linalg import Factorization, largest_eigenvalue
from ..linalg.accuracy import solve_rounding
from ..linalg.cones import root_of
from ..problem.data import Data
from ..problem.forward import LinearMap, dense
from ..problem.space import ParameterSpace
from .affine import Sight, Target

# A direction is free if the form of the ball is at most this part of its largest value there.
FREE = 1e-11
# What is taken for a largest eigenvalue, over what Lanczos finds of it to two digits.
CAUTION, REACH_TOLERANCE = 1.1, 1e-2
# Functionals per batch of solves.
BATCH = 64
# More coordinates than this are not decomposed densely.
MOST_DENSE = 1500
# From so many coordinates on a sparse form is factorized, unless rounding in its solves is more than this.
LEAST_SPARSE, DOUBTFUL = 200, 1e-8


class BallInverse:
    """``L^-1`` for the form L of a ball on the coordinates of its class, and the directions in which L vanishes.

    For functionals that vanish on these, ``f' L^+ g`` does not depend on which inverse is taken: with one coordinate
    of each of them held at zero there is a sparse one.

    Attributes
    ----------
    free
        ``(k, f)``: the coordinates of the directions that the ball does not bound.
    half
        Whether `lift` gives ``L^-1/2 F``; else it gives ``L^-1 F``.
    rounding
        Relative error of products ``F' L^-1 G``.
    apply
        ``L^-1 F`` for columns F.
    form
        L, on the coordinates.
    """

    apply: Callable[[Array], Array]

    def __init__(self, space: ParameterSpace) -> None:
        ball, B, k = space.ball, space.matrix, space.dimension
        assert ball is not None
        parts = space.parts_of_form(ball.norm, ball.length) if k == space.size and issparse(B) else None
        parts = None if space.part is not None and space.part.free else parts
        self.form = L = space.ball_of_coordinates
        self._known_root: Any = None
        if parts is not None:
            self._known_root = csr_matrix(diags(parts[0] ** -0.5) @ parts[1] @ B)
            self._product_form(*parts, csr_matrix(B))
            return
        if not (issparse(L) and k > LEAST_SPARSE and self._sparse_form(csr_matrix((L + L.T) / 2.0), k <= MOST_DENSE)):
            self._dense_form(dense(L))

    def _product_form(self, d: Array, A: Any, B: Any) -> None:
        """``L = A D^-1 A``: solves with A lose the root of what those with L would."""
        factor = Factorization(A, definite=True, name="form of the ball", to_rounding=True).exact("an interval")
        self.free, self.half, self.rounding = np.zeros((len(d), 0)), True, factor.rounding
        root = np.sqrt(d)[:, None]
        self._solve = lambda F: root * factor.solve(dense(B @ F))
        self.apply = lambda F: np.asarray(B.T @ factor.solve(d[:, None] * factor.solve(dense(B @ F))))

    def _sparse_form(self, L: Any, doubtful: bool) -> bool:
        """Whether it is definite but for constants; where that is `doubtful`, another form is tried after it."""
        k = L.shape[0]
        _, labels = connected_components(L, directed=False)
        parts = csr_matrix((np.ones(k), (np.arange(k), labels)))
        # A seminorm vanishes on what is constant on a connected part.
        energy, size = (np.asarray(each.sum(axis=0)).ravel() for each in (abs(L @ parts), abs(L) @ parts))
        self.free, self.half = parts[:, energy <= FREE * size].toarray(), False
        index = np.setdiff1d(np.arange(k), np.argmax(self.free, axis=0))
        try:
            factor = Factorization(L[index][:, index], definite=True, name="form of the ball", to_rounding=True)
            self.rounding = factor.exact("an interval").rounding
        except SolveError:
            if not doubtful:
                raise
            return False
        if doubtful and self.rounding > DOUBTFUL:
            return False
        if len(index) == k:
            self._solve = self.apply = factor.solve
            return True

        def solve(F: Array) -> Array:
            x = np.zeros((k, F.shape[1]))
            x[index] = factor.solve(F[index])
            return x

        self._solve = self.apply = solve
        return True

    def _dense_form(self, L: Array) -> None:
        scale = np.sqrt(np.where(np.diag(L) > 0.0, np.diag(L), 1.0))[:, None]
        values, V = np.linalg.eigh((L + L.T) / 2.0 / scale / scale.T)
        bound = values > FREE * max(float(values[-1]), 0.0)
        self.free, self.half = V[:, ~bound] / scale, True
        root = V[:, bound] / scale / np.sqrt(values[bound])
        self.rounding = solve_rounding(float(values[-1] / values[bound][0])) if bound.any() else 0.0
        self._solve = lambda F: np.asarray(root.T @ F)
        self.apply = lambda F: np.asarray(root @ (root.T @ F))

    @cached_property
    def root(self) -> Any:
        """R with ``R' R`` near L, for coordinates that are bounded in all directions."""
        return root_of(self.form, "form of the ball") if self._known_root is None else self._known_root

    def reach(self, space: ParameterSpace) -> float:
        """At least the largest ``‖q‖_Q`` of the fields q of the class with norm one in that of the ball.

        Beside the directions that it does not bound. Where the norm of the ball is not simply larger, an estimate:
        with a diagonal above the Gram matrix, and what Lanczos finds from below.
        """
        ball = space.ball
        assert ball is not None
        if space.basis is not None and space.inner == "l2" and space.part is None and ball.norm in ("l2", "h1"):
            return 1.0
        root = np.sqrt(np.asarray(abs(space.gram).sum(axis=1)).ravel())

        def scaled(x: Array) -> Array:
            return np.asarray(root * np.ravel(self.apply((root * x)[:, None])))

        size = identity(len(root))
        return CAUTION * float(np.sqrt(max(largest_eigenvalue(scaled, size, np.copy, tolerance=REACH_TOLERANCE), 0.0)))

    def lift(self, functionals: Array) -> Array:
        """``L^-1 F`` or ``L^-1/2 F`` for columns of functionals on the coordinates, in batches."""
        return np.hstack([self._solve(functionals[:, j : j + BATCH]) for j in range(0, functionals.shape[1], BATCH)])

    def gram(self, functionals: Array, lifted: Array) -> Array:
        """``F' L^-1 F``, with what `lift` made of F."""
        found = lifted.T @ (lifted if self.half else functionals)
        return np.asarray((found + found.T) / 2.0)

    def target(self, functionals: Array, lifted: Array) -> Target:
        """``T L^-1 F`` for rows T of which `lifted` came, and ``f' L^-1 f``: one solve for each functional."""
        crosses, squares = [], []
        for j in range(0, functionals.shape[1], BATCH):
            F = functionals[:, j : j + BATCH]
            X = self._solve(F)
            crosses.append(lifted.T @ (X if self.half else F))
            squares.append(np.einsum("ij,ij->j", X, X if self.half else F))
        return Target(np.hstack(crosses), np.concatenate(squares))


@dataclass(frozen=True)
class Part:
    """A bounded set of the class or of the model, with what the sensors see of it.

    Attributes
    ----------
    words
        What is assumed.
    sight
        Its radius and Gram matrix.
    target
        Of functionals on the dofs, ``(N, n)``.
    systematic
        Whether it is an error of the model, and not a part of the truth.
    inverse
        Of the form of a ball.
    """

    words: str
    sight: Sight
    target: Callable[[Array], Target]
    systematic: bool = False
    inverse: BallInverse | None = None

    def turned(self, turn: Array) -> Part:
        """As combinations of the data see it."""

        def target(functionals: Array) -> Target:
            found = self.target(functionals)
            return Target(turn @ found.cross, found.square)

        gram = turn @ self.sight.gram @ turn.T
        return replace(self, sight=replace(self.sight, gram=(gram + gram.T) / 2.0), target=target)


@dataclass(frozen=True)
class Observed:
    """A linear problem with its sensors, reduced to what `Affine` needs; the values of the data do not enter.

    Attributes
    ----------
    free
        A, ``(m, f)``: what the sensors see of directions that nothing bounds, in coordinates of norm one in Q.
    directions
        The fields of these, ``(N, f)``.
    parts
        The bounded sets.
    rounding
        What rounding may move ``a . b`` by for the truths of the sets, for ``‖a‖ = 1``.
    loose
        The same for free directions of norm one.
    turn
        Rows that combine whitened data to those that are used; None: all of them.
    lift, smooth
        For a ball: ``L^-1 T' a`` for columns a, and ``L^-1 psi`` for functionals on the dofs, as fields ``(N, n)``.
    """

    forward: LinearMap
    free: Array
    directions: Array
    parts: tuple[Part, ...]
    rounding: float
    loose: float
    turn: Array | None = None
    lift: Callable[[Array], Array] | None = None
    smooth: Callable[[Array], Array] | None = None

    @property
    def sights(self) -> list[Sight]:
        """Of the parts."""
        return [part.sight for part in self.parts]

    @property
    def origin(self) -> Array:
        """The readings of the centre of the class."""
        ball = self.forward.parameters.ball
        if ball is None or ball.centre is None:
            return self.forward.offset
        return np.asarray(self.forward.offset + self.forward.apply(ball.centre[:, None])[:, 0])

    def values(self, data: Data) -> Array:
        """b: whitened data, without those of the centre of the class."""
        return self.turned(data.whiten(data.values - self.origin))

    def turned(self, values: Array) -> Array:
        """The combinations of whitened data that are used."""
        return values if self.turn is None else np.asarray(self.turn @ values)

    def restricted(self, turn: Array) -> Observed:
        """With combinations of the data instead of all of them."""
        size = float(np.linalg.norm(turn, 2))
        parts = tuple(part.turned(turn) for part in self.parts)
        rounding, loose, lift = size * self.rounding, size * self.loose, self.lift
        lifted = None if lift is None else lambda weights: lift(turn.T @ weights)
        found = replace(self, free=turn @ self.free, parts=parts, turn=turn, lift=lifted)
        return replace(found, rounding=rounding, loose=loose)

    def targets(self, functionals: Any) -> tuple[list[Target], Array]:
        """Functionals on the dofs, sparse ``(N, n)``, as the sets and the free directions see them; in batches."""
        found = []
        for j in range(0, functionals.shape[1], BATCH):
            F = dense(functionals[:, j : j + BATCH])
            found.append([part.target(F) for part in self.parts])
        joined = [
            Target(np.hstack([each.cross for each in sets]), np.concatenate([each.square for each in sets]))
            for sets in zip(*found, strict=True)
        ]
        return joined, np.asarray((functionals.T @ self.directions).T)


def observed(forward: LinearMap, data: Data) -> Observed:
    """What the sensors see of the class, in units of the noise.

    Raises
    ------
    UncertifiedError
        Nothing bounds the class, and the data do not determine it.
    """
    space = forward.parameters
    found = _of_span(forward, data) if space.ball is None else _of_ball(forward, data)
    parts, rounding = list(found.parts), found.rounding
    if space.remainder is not None and space.remainder.size > 0.0:
        part, off = _remainder(forward, data)
        parts.append(part)
        rounding += space.remainder.size * off
    if data.model is not None and data.model.norm > 0.0:
        parts.append(_systematic(data))
    return replace(found, parts=tuple(parts), rounding=rounding)


def _of_ball(forward: LinearMap, data: Data) -> Observed:
    """By the forward matrix, m adjoint solves for a large class, and m solves with the form of the ball."""
    space = forward.parameters
    ball, inverse, B = space.ball, BallInverse(space), space.matrix
    assert ball is not None
    rows = np.asfortranarray(data.whiten(forward.matrix).T)
    lifted = inverse.lift(rows)
    sight = Sight(ball.radius, inverse.gram(rows, lifted), inverse.rounding)
    directions = _unit(space, np.asarray(B @ inverse.free))
    A = data.whiten(forward.apply(directions)) if directions.shape[1] else np.zeros((len(sight.gram), 0))
    relative = forward.rounding_of(data)
    seen = ball.radius * float(np.sqrt(max(np.linalg.eigvalsh(sight.gram)[-1], 0.0)))
    error = forward.error(data)
    rounding = relative * seen + error * inverse.reach(space) * ball.radius + forward.offset_rounding(data)
    if ball.centre is not None:
        rounding += relative * data.norm(forward.apply(ball.centre[:, None])[:, 0])
        rounding += error * space.norm(ball.centre)

    def target(functionals: Array) -> Target:
        return inverse.target(np.asarray(B.T @ functionals), lifted)

    part = Part(ball.words, sight, target, inverse=inverse)
    loose = relative * float(np.linalg.norm(A)) + error

    def lift(weights: Array) -> Array:
        return np.asarray(B @ (inverse.apply(rows @ weights) if inverse.half else lifted @ weights))

    def smooth(functionals: Array) -> Array:
        return np.asarray(B @ inverse.apply(np.asarray(B.T @ functionals)))

    return Observed(forward, A, directions, (part,), rounding, loose, lift=lift, smooth=smooth)


def _of_span(forward: LinearMap, data: Data) -> Observed:
    space = forward.parameters
    if space.dimension > min(MOST_DENSE, data.count):
        raise UncertifiedError(
            f"the class has {space.dimension} coordinates, which {data.count} data do not determine; expected a ball, "
            "space.within_ball(radius), [class.ball] in a case file; or a smaller class"
        )
    A = forward.normal(data).matrix
    loose = forward.rounding_of(data) * float(np.linalg.norm(A)) + forward.error(data)
    directions = np.asarray(space.matrix @ np.linalg.inv(space.root))
    return Observed(forward, A, directions, (), forward.offset_rounding(data), loose)


def _remainder(forward: LinearMap, data: Data) -> tuple[Part, float]:
    """What the sensors see outside of the span, ``(I - P) W^-1 (I - P)'`` in place of ``L^-1``; and its error.

    By m adjoint solves, and m solves with the mass matrix.
    """
    space, m = forward.parameters, forward.observation_count
    assert space.remainder is not None
    mass = Factorization(space.weight, definite=True, name="mass matrix", to_rounding=True)
    WB = space.weight @ space.matrix

    def outside(functionals: Array) -> Array:
        """The functionals on what is orthogonal to the columns."""
        return functionals - dense(WB @ space.solve_gram(np.asarray(space.matrix.T @ functionals)))

    weights = data.whiten_transposed(np.eye(data.count))
    pulled = [forward.pulled(weights[:, j : j + BATCH]) for j in range(0, data.count, BATCH)]
    rows, lost = (np.concatenate(each, axis=-1) for each in zip(*pulled, strict=True))
    assert len(weights) == m
    whole = float(np.sqrt(max(np.linalg.eigvalsh(rows.T @ mass.solve(rows))[-1], 0.0)))
    off = forward.rounding_of(data) * whole + float(np.linalg.norm(lost))
    rows = outside(rows)
    lifted = mass.solve(rows)
    gram = rows.T @ lifted
    part = space.remainder

    def target(functionals: Array) -> Target:
        F = outside(functionals)
        return Target(lifted.T @ F, np.sum(F * mass.solve(F), axis=0))

    return Part(part.words, Sight(part.size, (gram + gram.T) / 2.0, mass.rounding), target), off


def _systematic(data: Data) -> Part:
    """The errors of the model: functionals of the truth have nothing to do with them."""
    model = data.model
    assert model is not None
    E = model.matrix

    def target(functionals: Array) -> Target:
        n = functionals.shape[1]
        return Target(np.zeros((len(E), n)), np.zeros(n))

    return Part(model.words, Sight(model.size, E @ E.T), target, systematic=True)


def _unit(space: ParameterSpace, fields: Array) -> Array:
    """The same fields with norm one in Q."""
    if not fields.shape[1]:
        return fields
    return fields / np.sqrt(np.sum(fields * (space.weight @ fields), axis=0))
