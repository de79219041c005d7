"""What is known of a function of x: its degree where the caller declares it, nothing where it can only be sampled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..checks import Array, count, number
from ..errors import InputError


@dataclass(frozen=True)
class Polynomial:
    """A function of x that the caller declares to be a polynomial on every element, up to an error.

    Samples prove nothing about a Python function: between them its values are not known. So a function as coefficient,
    source or boundary value makes what follows from it an ``"estimate"``. Numbers, values per element, tables of
    numbers and finite-element fields are known as they are, and a declared polynomial is known as well, if the
    declaration is true.

    Parameters
    ----------
    function
        Of the scikit-fem coordinates x, ``(dimension, ...)``.
    degree
        On every element, and along every boundary facet, there is a polynomial in x of this total degree that is
        nowhere farther from `function` than `error`.
    error
        A sup norm, in the unit of the function: 0 for a polynomial. It enters the bounds of conductivity, reaction,
        source and columns of a `FunctionSpace`. On the boundary, and in the continuous constants of an elliptic
        problem, a positive error gives no bound.

    Raises
    ------
    InputError
        `function` is no function, `degree` no whole number, or `error` negative.

    Notes
    -----
    A declaration that samples contradict is refused where it is used: one that is off by more than 1e-8 of the largest
    value anywhere, beyond `error`. One that they do not contradict is accepted.

    Examples
    --------
    >>> from skfem import Basis, ElementTriP1, MeshTri
    >>> import femcert as fc
    >>> basis = Basis(MeshTri().refined(3), ElementTriP1())
    >>> def side(conductivity):
    ...     problem = fc.EllipticSource(
    ...         basis, parameters=fc.FullSpace(basis), sensors=fc.PointSensors(basis, [[0.5, 0.5]]),
    ...         conductivity=conductivity,
    ...     )
    ...     one = np.ones(basis.N)
    ...     return fc.dual_norm(problem, fc.Candidate(problem.solve(one), one)).upper.side
    >>> side(lambda x: 1 + x[0]), side(fc.Polynomial(lambda x: 1 + x[0], 1))
    ('estimate', 'upper')
    """

    function: Callable[[Array], Any]
    degree: int
    error: float = 0.0

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputError(f"function is a {type(self.function).__name__}; expected a function of x")
        object.__setattr__(self, "degree", count(self.degree, "degree", least=0))
        object.__setattr__(self, "error", number(self.error, "error", least=0.0))

    def __call__(self, x: Array) -> Any:
        """``function(x)``."""
        return self.function(x)

    @property
    def gradient(self) -> Any:
        """That of `function`, or None."""
        return getattr(self.function, "gradient", None)


def known_degree(value: Any) -> int | None:
    """0 of a number, the declared one of a `Polynomial`, None of any other function."""
    if isinstance(value, Polynomial):
        return value.degree
    return None if callable(value) else 0


def declared_error(value: Any) -> float:
    """Of a `Polynomial`; 0 of anything else."""
    return value.error if isinstance(value, Polynomial) else 0.0


def unknown(name: str, other: str = "numbers or values per element") -> str:
    """Why a function gives no bound, and what to do."""
    declare = "declare it as fc.Polynomial(function, degree, error=0.0)"
    return f"the {name} is a function of which only samples are known; {declare}, or give {other}"
