"""What is said of truths beside the columns of a class: a ball, a remainder outside of the span, bounds, a part.

Each of them is given by numbers, or learned from samples: the size is then a conformal quantile, which holds for truths
like the samples with the stated confidence, whatever their law is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import diags, issparse

from ..checks import Array, freeze_sparse, real_array
from ..errors import InputError, SolveError
from ..linalg import Factorization
from ..mesh.elements import field_degree, mass_matrix
from .noise import check_confidence

# The rank of a quantile is an integer up to rounding of the confidence.
RANK_TOLERANCE = 1e-9
NORMS = {"l2": "L2", "h1": "H1", "h1-seminorm": "H1-seminorm", "h2": "H2"}


@dataclass(frozen=True)
class Ball:
    """The constraint ``‖q - q0‖_norm <= radius``; with the norm ``"matrix"``, ``q' matrix q <= radius²``.

    Attributes
    ----------
    radius, norm, length
        See `ParameterSpace.within_ball`.
    matrix
        Of the norm ``"matrix"``.
    centre
        q0, a member of the class (dof vector); None: zero.
    alpha
        With which probability a truth like the samples lies outside; 0 where the radius is a number of the caller.
    samples
        How many there were.
    """

    radius: float
    norm: str
    matrix: Any = None
    length: float = 1.0
    centre: Array | None = None
    alpha: float = 0.0
    samples: int = 0

    @property
    def words(self) -> str:
        """What is assumed of the truth."""
        about = "" if self.centre is None else " about a centre"
        name = NORMS.get(self.norm, "given")
        length = "" if self.length == 1.0 or self.norm in ("l2", "matrix") else f" (length {self.length:g})"
        return f"{name} norm{length} at most {self.radius:.4g}{about}{_origin(self.samples)}"


@dataclass(frozen=True)
class Remainder:
    """Truths ``q = B c + w`` with w orthogonal to the columns in Q and ``‖w‖_Q <= size``.

    Attributes
    ----------
    size
        tau.
    alpha, samples
        As for a `Ball`.
    source
        Where the size comes from, in words.
    """

    size: float
    alpha: float = 0.0
    samples: int = 0
    source: str = ""

    @property
    def words(self) -> str:
        """What is assumed of the truth."""
        return f"a remainder outside of the span at most {self.size:.4g}{self.source}{_origin(self.samples)}"


@dataclass(frozen=True)
class Bounds:
    """``lower <= q <= upper`` at the dofs; infinite where there is none."""

    lower: Array
    upper: Array

    @property
    def words(self) -> str:
        """What is assumed of the truth."""
        low, high = (float(extreme(x)) for extreme, x in ((np.min, self.lower), (np.max, self.upper)))
        return f"values from {low:.4g} to {high:.4g}"


@dataclass(frozen=True)
class Split:
    """A parameter as a member of the class and a rest, ``q = B c + q_perp``.

    Attributes
    ----------
    coordinates
        c, of the orthogonal projection on the span of the class.
    outside
        ``‖q_perp‖_Q``.
    inside
        A member of the class near q (dof vector): ``B c``, or the point of the ball on the way to its centre.
    shrinkage
        What brings ``B c`` into the ball where there is one, at most 1.
    distance
        ``‖q - inside‖_Q``, at least the distance of q from the class.
    size
        ``‖q‖_Q``.
    """

    coordinates: Array
    outside: float
    inside: Array
    shrinkage: float
    distance: float
    size: float


@dataclass(frozen=True)
class Part:
    """The coordinates that are asked for; the others are nuisance.

    Attributes
    ----------
    chosen
        True for these.
    free
        Whether a ball binds them alone.
    """

    chosen: NDArray[np.bool_]
    free: bool

    @classmethod
    def of(cls, part: Any, count: int, free: bool) -> Part:
        """From a slice, indices, or True and False."""
        chosen = np.zeros(count, dtype=bool)
        try:
            chosen[part] = True
        except (IndexError, TypeError, ValueError):
            raise InputError(f"part picks none of the {count} coordinates; expected a slice or indices") from None
        if not chosen.any() or part is None:
            raise InputError(f"part picks none of the {count} coordinates; expected at least one")
        chosen.flags.writeable = False
        return cls(chosen, bool(free))

    def bound(self, form: Any) -> Any:
        """A form on the coordinates without those that a ball leaves free."""
        if not self.free:
            return form
        keep = self.chosen.astype(float)
        return diags(keep) @ form @ diags(keep) if issparse(form) else keep[:, None] * form * keep

    @property
    def words(self) -> str:
        """What is asked for."""
        others = "free" if self.free else "nuisance"
        return f"{int(self.chosen.sum())} of {self.chosen.size} coordinates asked for, the others {others}"


def _origin(samples: int) -> str:
    return f" (like {samples} samples)" if samples else ""


def conformal_quantile(scores: Any, confidence: float) -> float:
    """The smallest size that a further score, exchangeable with these, does not exceed with `confidence`.

    The score of rank ``ceil((n + 1) confidence)`` of n.

    Raises
    ------
    InputError
        There are too few: the rank exceeds n.
    """
    found, level = np.sort(real_array(scores, "scores")), check_confidence(confidence)
    rank = ceil((found.size + 1) * level - RANK_TOLERANCE)
    if rank > found.size:
        least = fewest_samples(level)
        raise InputError(f"{found.size} samples give no quantile at {100.0 * level:g} %; expected at least {least}")
    return float(found[rank - 1])


def fewest_samples(confidence: float) -> int:
    """With fewer there is no conformal quantile: ``(n + 1) confidence > n``."""
    return ceil(confidence / (1.0 - confidence) - RANK_TOLERANCE)


def sampled_size(
    samples: Any, size: int, confidence: float, score: Callable[[Array], float]
) -> tuple[float, int]:
    """The conformal quantile of the scores of samples of truths, one dof vector in each row; and how many there are."""
    rows = real_array(samples, "samples")
    if rows.ndim != 2 or rows.shape[1] != size:
        raise InputError(f"samples has shape {rows.shape}; expected (n, {size}), a dof vector in each row")
    return conformal_quantile([score(row) for row in rows], confidence), len(rows)


def one_of(given: Any, samples: Any, name: str) -> None:
    """Refuse a number that comes together with samples, or neither of them."""
    if (given is None) == (samples is None):
        came = "neither of them" if given is None else "both"
        raise InputError(f"{name} needs a number, or samples=; {came} came")


def check_norm_name(norm: Any, basis: Any) -> None:
    """Refuse a norm that is not known by name, or not for these elements."""
    if not isinstance(norm, str) or norm not in NORMS:
        raise InputError(f"norm is {shown_option(norm)}; expected one of {', '.join(NORMS)}, or a sparse matrix")
    if basis is None:
        raise InputError(f"norm={norm!r} needs functions on a mesh; expected the sparse matrix of a norm")
    if norm != "l2" and field_degree(basis) == 0:
        raise InputError(f"piecewise constants have no {norm} norm; expected norm='l2'")
    if norm == "h2":
        # Refused here where the elements have no lumped mass.
        mass_matrix(basis, lumped=True)


def checked_norm(matrix: Any, size: int) -> Any:
    """The matrix of a squared norm on the dofs, symmetric and positive definite."""
    if matrix.shape != (size, size):
        raise InputError(f"the matrix of the norm has shape {matrix.shape}; expected ({size}, {size}), a row per dof")
    real_array(matrix.tocsr().data, "the matrix of the norm")
    result = freeze_sparse((matrix + matrix.T) / 2.0)
    if abs(matrix - result).max() > 1e-12 * abs(result).max():
        raise InputError("the matrix of the norm is not symmetric")
    try:
        Factorization(result, definite=True, name="matrix of the norm")
    except SolveError as error:
        raise InputError(f"the norm is not one: {error}; expected a symmetric positive definite matrix") from None
    return result


def shown_option(option: Any) -> str:
    """What came, for a message."""
    return repr(option) if isinstance(option, str) else f"a {type(option).__name__}"
