"""Several unknowns at once: a source and a flux and a background, with coordinates one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import block_diag, csr_matrix

from ..checks import Array, count, freeze_sparse, frozen, nearest, real_vector
from ..errors import InputError, UncertifiedError
from .constraints import Ball, Bounds
from .space import ParameterSpace, check_space

# Names that scikit-fem gives to fields of its own, and the state.
TAKEN = ("u", "v", "w", "x", "h", "n", "idx")
# The norm of the balls of the factors together.
JOINT = "joint"


@dataclass(frozen=True)
class JointBall(Ball):
    """``sum_i s_i ‖q_i - q0_i‖_i² / rho_i² <= 1`` over the factors that have a ball: it contains their product."""

    described: str = ""

    @property
    def words(self) -> str:
        """What is assumed of the truth."""
        return self.described


class ProductSpace(ParameterSpace):
    """Several parameters at once, with a block diagonal Gram matrix.

    The norm of ``q = (q_1, ..., q_p)`` is ``‖q‖_Q² = ‖q_1‖² + ... + ‖q_p‖²``. Dof vectors and coordinates are those of
    the factors, one after the other. Where factors have balls, the class is taken as one ball that contains the product
    of these, ``sum s_i ‖q_i - q0_i‖_i² / rho_i² <= 1`` with shares s_i that sum up to one: claims hold for every truth
    of the product. Its radius is 1, so that a least norm of 0.3 says that 0.3 times all radii would do. Factors without
    a ball are free, and the data must determine them.

    Parameters
    ----------
    spaces
        The factors, in order, or a mapping of names to them. Names: what forms call the fields; default ``"q0"``,
        ``"q1"``, ....
    shares
        Of the factors, positive numbers in their order, those without a ball left out of account; default: equal.
        Fixed before the data they may be any: choose those with which intervals are short, such as larger ones for a
        factor that adds most to the bias. The best ones make an interval as short as the product of the balls allows.

    Examples
    --------
    >>> import femcert as fc
    >>> from skfem import Basis, ElementTriP1, MeshTri
    >>> basis = Basis(MeshTri().refined(3), ElementTriP1())
    >>> both = fc.ProductSpace({"source": fc.SineSpace(basis, 2), "flux": fc.TraceSpace(basis, lambda x: x[0] == 0.0)})
    >>> both.dimension, both.coordinates_of("flux")
    (11, slice(2, 11, None))
    >>> print(both.interest("flux").part.words)
    9 of 11 coordinates asked for, the others nuisance
    """

    def __init__(
        self,
        spaces: Sequence[ParameterSpace] | Mapping[str, ParameterSpace],
        *,
        shares: Sequence[float] | None = None,
    ) -> None:
        named = _named(spaces)
        for name, space in named.items():
            if check_space(space).remainder is not None or space.part is not None or space.factors:
                raise InputError(f"{name!r} has a remainder, a part or factors; expected a class without them")
        ends = np.cumsum([0, *(space.size for space in named.values())])
        self.factors = {
            name: (space, slice(int(a), int(b)))
            for (name, space), a, b in zip(named.items(), ends[:-1], ends[1:], strict=True)
        }
        self.basis, self.inner = None, "product"
        self.matrix = freeze_sparse(block_diag([space.matrix for space in named.values()], format="csr"))
        self._shares = self._checked(shares)
        self.ball = self._joint_ball()
        bounds = [space.bounds for space in named.values()]
        if any(each is not None for each in bounds):
            sides = [
                [np.full(s.size, end) if s.bounds is None else getattr(s.bounds, side) for s in named.values()]
                for side, end in (("lower", -np.inf), ("upper", np.inf))
            ]
            self.bounds = Bounds(*(frozen(np.concatenate(side)) for side in sides))

    @property
    def spaces(self) -> tuple[ParameterSpace, ...]:
        """The factors."""
        return tuple(space for space, _ in self.factors.values())

    def summary(self) -> dict[str, str]:
        """Its factors."""
        return {**super().summary(), "factors": "; ".join(f"{name}: {s!r}" for name, (s, _) in self.factors.items())}

    def _checked(self, shares: Any) -> Array:
        """Zero for factors without a ball, with the sum one."""
        given = real_vector(np.ones(len(self.spaces)) if shares is None else shares, len(self.spaces), "shares")
        if not np.all(given > 0.0):
            raise InputError(f"shares are {given.tolist()}; expected positive numbers")
        counted = given * [space.ball is not None for space in self.spaces]
        return frozen(counted / max(float(counted.sum()), float(given.min())))

    def _joint_ball(self) -> JointBall | None:
        balls = {name: space.ball for name, (space, _) in self.factors.items() if space.ball is not None}
        if not balls:
            return None
        centre = None
        if any(ball.centre is not None for ball in balls.values()):
            parts = [
                np.zeros(s.size) if s.ball is None or s.ball.centre is None else s.ball.centre for s in self.spaces
            ]
            centre = frozen(np.concatenate(parts))
        words = ", ".join(f"{name}: {ball.words}" for name, ball in balls.items())
        if len(balls) > 1:
            words += f" (as one ball, shares {', '.join(f'{s:.3g}' for s in self._shares if s > 0.0)})"
        alpha, samples = sum(ball.alpha for ball in balls.values()), sum(ball.samples for ball in balls.values())
        return JointBall(1.0, JOINT, centre=centre, alpha=alpha, samples=samples, described=words)

    @cached_property
    def weight(self) -> Any:
        """Block diagonal."""
        return freeze_sparse(block_diag([space.weight for space in self.spaces], format="csr"))

    @property
    def norm_name(self) -> str:
        """The norms of all factors together."""
        return "joint norm of the factors"

    def _place(self, factor: Any) -> tuple[str, int]:
        names = list(self.factors)
        if isinstance(factor, str):
            if factor not in self.factors:
                raise InputError(f"no factor is {factor!r}; expected one of {', '.join(names)}{nearest(factor, names)}")
            return factor, names.index(factor)
        if count(factor, "factor", least=0) >= len(names):
            raise InputError(f"factor is {factor}; expected 0 to {len(names) - 1}, or a name")
        return names[factor], int(factor)

    def coordinates_of(self, factor: int | str) -> slice:
        """Where the coordinates of a factor are."""
        i = self._place(factor)[1]
        ends = np.cumsum([0, *(space.dimension for space in self.spaces)])
        return slice(int(ends[i]), int(ends[i + 1]))

    def split_field(self, field: Any) -> dict[str, Array]:
        """The dof vectors of the factors, by name."""
        q = real_vector(field, self.size, "field")
        return {name: q[columns] for name, (_, columns) in self.factors.items()}

    def join(self, fields: Mapping[str, Any] | Sequence[Any]) -> Array:
        """The dof vector of those of the factors, by name or in order."""
        given = dict(fields) if isinstance(fields, Mapping) else dict(zip(self.factors, fields, strict=False))
        if set(given) != set(self.factors) or len(fields) != len(self.factors):
            raise InputError(f"fields are {', '.join(map(str, given))}; expected one for each of {list(self.factors)}")
        return np.concatenate([real_vector(given[name], s.size, name) for name, (s, _) in self.factors.items()])

    def interest(self, part: Any, *, free: bool = False) -> ParameterSpace:
        """As for other classes; here a number or a name, or a list of them, stands for all coordinates of a factor.

        Parameters
        ----------
        part
            A factor, several, or as elsewhere a slice, an array of indices, or of True and False, of coordinates.
        free
            Whether the ball leaves the others free.
        """
        several = isinstance(part, (list, tuple)) and all(isinstance(each, (str, int)) for each in part)
        if several and not any(isinstance(each, bool) for each in part):
            chosen = np.zeros(self.dimension, dtype=bool)
            for each in part:
                chosen[self.coordinates_of(each)] = True
            return super().interest(chosen, free=free)
        if isinstance(part, (str, int, np.integer)):
            return super().interest(self.coordinates_of(part), free=free)  # type: ignore[arg-type]
        return super().interest(part, free=free)

    @property
    def _asked(self) -> str:
        names = [] if self.part is None else [n for n in self.factors if self.part.chosen[self.coordinates_of(n)].any()]
        if len(names) != 1:
            raise InputError(
                f"a mean or a flux is of one factor, of {', '.join(self.factors)}; expected a class with "
                "space.interest(factor), or a vector of weights on the coordinates"
            )
        return names[0]

    @property
    def asked(self) -> Any:
        """The factor that is asked for."""
        return self.factors[self._asked][0]

    def seen(self, functional: Any) -> Array:
        """Zero on the other factors."""
        space, columns = self.factors[self._asked]
        result = np.zeros(self.size)
        result[columns] = functional(space)
        return result

    def form(self, norm: str, length: float = 1.0) -> Any:
        """The joint form of the balls of the factors, zero on those without; or the matrix of a ball of the product."""
        if norm != JOINT:
            return super().form(norm, length)
        blocks = [
            csr_matrix((s.size, s.size))
            if s.ball is None
            else share / s.ball.radius**2 * s.form(s.ball.norm, s.ball.length)
            for s, share in zip(self.spaces, self._shares, strict=True)
        ]
        return freeze_sparse(block_diag(blocks, format="csr"))

    def parts_of_form(self, norm: str, length: float = 1.0) -> tuple[Array, Any] | None:
        """None: it is no such product."""
        return None

    @property
    def ball_form(self) -> Any:
        """As for other classes, where every factor has a ball in a norm."""
        if self.ball is not None and self.ball.norm == JOINT:
            loose = [n for n, (s, _) in self.factors.items() if s.ball is None or s.ball.norm == "h1-seminorm"]
            if loose:
                raise UncertifiedError(f"no norm binds {', '.join(loose)}, which only intervals know of")
        return super().ball_form


def _named(spaces: Any) -> dict[str, Any]:
    """The factors by name."""
    if isinstance(spaces, Mapping):
        named = dict(spaces)
    elif isinstance(spaces, Sequence):
        named = {f"q{i}": space for i, space in enumerate(spaces)}
    else:
        raise InputError(f"spaces is a {type(spaces).__name__}; expected a list of spaces, or a mapping from names")
    if not named:
        raise InputError("spaces is empty; expected at least one space")
    for name in named:
        if not isinstance(name, str) or not name.isidentifier() or name in TAKEN:
            raise InputError(f"a factor is called {name!r}; expected a name other than {', '.join(TAKEN)}")
    return named
