"""The H^1/2 norm of a violation of Dirichlet values, by lifting it into the domain."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..bound import Bound
from ..checks import Array
from ..errors import UncertifiedError
from ..linalg.accuracy import EPS
from ..problem.base import Problem
from ..problem.boundary import Part
from ..problem.polynomial import declared_error
from ..problem.states import StateEquation
from .edges import Edges
from .energy import StateNorm, state_equation, state_norm
from .remainders import ROUNDING, finished_upper

# A value that differs this much, relative to the largest on its edge, from its limit at the end is not continuous; but
# for rounding, relative to the largest of all.
JUMP, ROUNDED = 1e-9, 1e-15
# Relative to the largest on an edge, what rounding may leave between a Dirichlet value and the trace of a state.
ATTAINED = 1e-13


def boundary_norm(problem: Problem, state: Any, *, norm: str = "energy", parameter: Any = None) -> Bound:
    """An upper bound of ``‖u - g‖_1/2 = min { ‖v‖_V : v in H1(Omega), v = u - g on the Dirichlet part }``.

    ``‖v‖_V² = (a grad v, grad v) + (c v, v) + <alpha v, v>`` with the coefficients of the equation and of its Robin
    conditions (``"energy"``), or ``‖grad v‖² + ‖v‖²`` (``"h1"``). In the energy norm the exact solution u* has
    ``‖u* - u‖_V² = ‖r‖² + ‖u - g‖_1/2²``, with the dual norm of the residual r over the functions that vanish on
    the Dirichlet part: u* - u is one of these plus the minimal lift of its boundary values, and the two are orthogonal.

    The defect is ``(u - g_h) + (g_h - g)`` with the nodal interpolant g_h of g on the boundary. The first part is a
    finite-element function, whose minimal lift over the finite-element space is no smaller than the minimum over H1.
    The second one, which the mesh does not resolve, vanishes at the ends of every edge and is lifted into the triangle
    over the edge, linearly to zero towards the apex. The bound is the sum of the norms of both lifts.

    Parameters
    ----------
    state
        Dof values; of a heat problem one column per time, and the bound is the largest over the times.
    parameter
        Needed by ``"energy"`` for a nonlinear problem, whose coefficients depend on it.

    Returns
    -------
    Bound
        ``"upper"`` if g is a number or a declared `Polynomial` and all integrals are exact, or their errors known:
        coefficients that are known polynomials on elements, or exponentials of finite-element fields that do not
        vary too much on them. Else, and where g jumps at a vertex, ``"estimate"``, and the source says why. For
        forms of the user's own the energy is that of the assembled matrix.

    Raises
    ------
    UncertifiedError
        There is no energy norm (an operator that is not definite), or only its matrix is known and the mesh does not
        resolve g; ``norm="h1"`` works for both.
    """
    equation = state_equation(problem, "boundary_norm")
    u = problem.check_state(state)
    columns = u[:, None] if u.ndim == 1 else u
    space = state_norm(problem, norm, state=None if u.ndim > 1 else u, parameter=parameter)
    lifts = space.lift(columns - equation.boundary.values[:, None], equation.free)
    squares = [space.square(lift) for lift in lifts.T if lift.any()]
    resolved = np.sqrt(max((square for square, _ in squares), default=0.0))
    unresolved, doubts = _unresolved(equation, space)
    doubts = list(dict.fromkeys([*(squares[0][1] if squares else []), *doubts]))
    # Gradients of a nearly constant lift are differences of its values, which carry rounding errors.
    local = equation.basis.element_dofs.shape[0] * float(space.matrix.diagonal().sum())
    rounding = 8.0 * EPS * float(np.abs(lifts).max(initial=0.0)) * np.sqrt(max(local, 0.0))
    total = finished_upper(resolved + unresolved) + rounding
    source = "; ".join([f"lifting of the boundary defect in the {space.name}", *doubts])
    return Bound(total, "estimate" if doubts else "upper", source)


def refuse_unresolved(equation: StateEquation) -> None:
    """Raise an `UncertifiedError` unless traces of finite-element states attain the Dirichlet values, to rounding."""
    for part in equation.boundary.dirichlet:
        if declared_error(part.value) > 0.0:
            raise UncertifiedError(_no_lift(part))
        if not callable(part.value) or equation.basis.mesh.dim() == 1:
            continue
        edges = Edges(equation.basis, part.facets)
        doubts = edges.doubts(part.value, f"Dirichlet value on {part.name!r}")
        if doubts:
            raise UncertifiedError(doubts[0])
        g = edges.sample(part.value, f"the Dirichlet value on {part.name!r}")
        off = g - edges.trace(equation.boundary.values)[0]
        if not _is_rounding(off, g, ATTAINED):
            raise UncertifiedError(
                f"no finite-element state attains the Dirichlet value on {part.name!r}: the nearest is "
                f"{np.abs(off).max():.2g} off; expected a polynomial of the degree of the elements along the edges"
            )


def _unresolved(equation: StateEquation, space: StateNorm) -> tuple[float, list[str]]:
    """Norm of the lift of ``g - g_h`` over the edges, and why it is no upper bound.

    On an edge with arc length s, below an apex of height H over the point ``s = c``, b(s) is lifted to ``(1 - t) b(s)``
    at ``(1 - t) (s, 0) + t (c, H)``. Its gradient is ``(b', -(b + (c - s) b') / H)`` for all t, so that on the triangle
    ``‖grad v‖² = H/2 int b'² + ((b + (c - s) b') / H)² ds`` and ``‖v‖² = H/4 int b² ds``.
    """
    basis = equation.basis
    parts = [part for part in equation.boundary.dirichlet if callable(part.value)]
    doubts = [_no_lift(part) for part in parts if declared_error(part.value) > 0.0]
    if basis.mesh.dim() == 1 or not parts:
        return 0.0, doubts
    norms = np.zeros(basis.mesh.nelements)
    weights = None if space.diffusion is None else space.maxima()
    for part in parts:
        edges = Edges(basis, part.facets)
        g = edges.sample(part.value, f"the Dirichlet value on {part.name!r}")
        more = edges.doubts(part.value, f"Dirichlet value on {part.name!r}")
        doubts += more
        nodal, nodal_slope = edges.trace(equation.boundary.values)
        b, db = g - nodal, edges.slope(g) - nodal_slope
        if not more and not _is_rounding(edges.at_ends(b), g, JUMP):
            doubts.append(f"the Dirichlet value on {part.name!r} jumps at a vertex, so that no lift has a finite norm")
        if weights is None:
            if not _is_rounding(b, g, ROUNDING):
                raise UncertifiedError(
                    f"the mesh does not resolve the Dirichlet value on {part.name!r}, and the coefficients of the "
                    "energy are not known; use norm='h1'"
                )
            continue
        elements, apexes = edges.apexes()
        a, c, more = weights
        doubts += more
        squares = [_lift_square(edges, b, db, apex, a[elements], c[elements]) for apex in np.moveaxis(apexes, 1, 0)]
        # Lifts of two edges of one element overlap; the norm of their sum is at most the sum of their norms.
        norms += np.bincount(elements, np.sqrt(np.min(squares, axis=0)), minlength=len(norms))
    return float(np.linalg.norm(norms)), doubts


def _is_rounding(off: Array, values: Array, tolerance: float) -> bool:
    """Whether `off` is small on every edge, against the values there: strong edges hide nothing on weak ones."""
    size = np.abs(values).max(axis=1)
    return bool(np.all(np.abs(off).max(axis=1) <= tolerance * size + ROUNDED * size.max()))


def _no_lift(part: Part) -> str:
    return f"the declared error of the Dirichlet value on {part.name!r} is a sup norm, which bounds the norm of no lift"


def _lift_square(edges: Edges, b: Array, db: Array, apex: Array, a: Array, c: Array) -> Array:
    start = edges.ends[:, 0]
    tangent = (edges.ends[:, 1] - start) / edges.length
    reach = apex - start
    foot = np.sum(reach * tangent, axis=0)[:, None]
    height = np.abs(tangent[0] * reach[1] - tangent[1] * reach[0])
    up = (b + (foot - edges.arc) * db) / height[:, None]
    return np.asarray(a * (0.5 * height) * edges.integral(db**2 + up**2) + c * (0.25 * height) * edges.integral(b**2))
