"""Guaranteed constants of Friedrichs' and Poincaré's inequality on the domain of a mesh.

Both are ``lam^-1/2`` for an eigenvalue ``lam`` of the continuous problem, so an upper bound needs ``lam`` from below.
That is what nonconforming elements give. Let ``I u`` be the Crouzeix-Raviart function with the facet means of ``u``.
It is the projection of ``u`` in

    a_h(u, v) = sum_K a_K (grad u, grad v)_K + sum_e alpha_e |e| mean_e(u) mean_e(v),

the second sum over Robin facets, because ``u - I u`` has zero means; and ``a_h(u, u)`` is at most the energy of ``u``
if ``a_K`` and ``alpha_e`` are lower bounds of the coefficients. With ``‖u - I u‖ <= C_h ‖u - I u‖_a_h`` the j-th
eigenvalues satisfy (Liu 2015; Carstensen, Gedicke 2014)

    lam_j >= lam_h,j / (1 + C_h² lam_h,j),    C_h = kappa max_K h_K / sqrt(a_K),

with ``kappa = 0.1893`` on triangles and ``1/pi`` on lines; if there are fewer than j facets, ``lam_j >= 1 / C_h²``. No
convexity, no regularity and no fine mesh is assumed. ``lam_h,j`` itself is proved from below by the inertia of a
factorization.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags

from ..bound import Bound
from ..checks import Array, real_array, real_vector
from ..errors import InputError, UncertifiedError
from ..linalg import eigenvalue_lower_bound
from ..mesh.geometry import connected_parts, diameters, measures
from ..mesh.locate import check_mesh

Indices = NDArray[np.int64]

# ‖u - I u‖ <= kappa h ‖grad (u - I u)‖ on a cell of diameter h, where I u has the facet means of u: on a triangle (Liu,
# A framework of verified eigenvalue bounds for self-adjoint differential operators, 2015), and on a line, where I u
# has the end values and the bound is Friedrichs' inequality of an interval.
TRIANGLE_CONSTANT = 0.1893
LINE_CONSTANT = 1.0 / np.pi
# Rounding of the few operations between a proved number and the one returned.
ROUND_UP = 1.0 + 1e-13


def friedrichs_constant(
    mesh: Any,
    *,
    dirichlet: Any,
    conductivity: Any = 1.0,
    robin: tuple[Any, Any] | None = None,
    reaction: Any = 0.0,
) -> Bound:
    """Upper bound of the smallest C with ``‖v‖_L2 <= C ‖v‖_V`` for all v in H1 that vanish on the Dirichlet facets.

    ``‖v‖_V² = (a grad v, grad v) + (c v, v) + <alpha v, v>`` with the conductivity a, the reaction c and the Robin
    coefficient alpha, and ``C = (lam + min c)^-1/2`` with the smallest eigenvalue ``lam`` of the other two terms. The
    bound converges to the constant of the given lower bounds like h². It costs an eigenvalue problem with one unknown
    per facet. Any mesh of the same domain will do: a coarse one where the mesh at hand is large, or so graded that
    rounding spoils the proof (h_min / h_max below about 1e-6). `box_friedrichs_constant` costs nothing.

    Parameters
    ----------
    mesh
        Lines, triangles or convex quadrilaterals with straight edges.
    dirichlet
        Indices of boundary facets where v vanishes; may be empty.
    conductivity, reaction
        A number, or a lower bound for each element; positive, and at least 0.
    robin
        None, or indices of boundary facets and a lower bound of alpha on each, or one number for all; at least 0.

    Returns
    -------
    Bound
        Side ``"upper"``.

    Raises
    ------
    InputError
        The mesh, the facets or the coefficients cannot be used.
    UncertifiedError
        There is no such constant: some connected part of the domain has neither Dirichlet nor Robin facets, and the
        reaction vanishes somewhere.
    SolveError
        The eigensolver failed, or its result could not be proved.
    """
    check_mesh(mesh)
    a = _per_element(mesh, conductivity, "conductivity", positive=True)
    least = float(_per_element(mesh, reaction, "reaction", positive=False).min())
    fixed = _boundary_facets(mesh, dirichlet, "dirichlet")
    alpha = _robin(mesh, robin, fixed)
    loose = _loose_parts(mesh, np.union1d(fixed, np.flatnonzero(alpha)))
    if loose and not least > 0.0:
        raise UncertifiedError(
            f"{loose} connected parts of the domain have neither Dirichlet facets nor a positive Robin coefficient, "
            "and the reaction vanishes somewhere; constants have no energy there, so there is no Friedrichs constant"
        )
    if loose:
        return _constant(least, "smallest reaction coefficient")
    return _constant(_eigenvalue(mesh, a, alpha, fixed, 1) + least, "Crouzeix-Raviart eigenvalue")


def poincare_constant(mesh: Any, *, conductivity: Any = 1.0) -> Bound:
    """Upper bound of the smallest C with ``‖v‖_L2 <= C ‖a^1/2 grad v‖_L2`` for all v in H1 with mean zero.

    ``C = lam_2^-1/2`` with the second eigenvalue of the insulated domain. Cost, parameters and errors as in
    `friedrichs_constant`.

    Raises
    ------
    UncertifiedError
        The elements are not connected by facets, so that there is no such constant.
    """
    check_mesh(mesh)
    a = _per_element(mesh, conductivity, "conductivity", positive=True)
    parts = len(np.unique(connected_parts(mesh)))
    if parts > 1:
        raise UncertifiedError(
            f"the domain has {parts} parts that no facet connects; functions that are constant on each have no energy, "
            "so there is no Poincaré constant"
        )
    none = np.zeros(0, dtype=np.int64)
    return _constant(_eigenvalue(mesh, a, np.zeros(mesh.nfacets), none, 2), "second Crouzeix-Raviart eigenvalue")


def box_friedrichs_constant(mesh: Any, *, conductivity: Any = 1.0) -> Bound:
    """Upper bound of the smallest C with ``‖v‖_L2 <= C ‖a^1/2 grad v‖_L2`` for v in H1_0 (zero on the whole boundary).

    Continued by zero, v lives on the bounding box with sides L_i, whose constant is
    ``C = (pi² sum_i L_i^-2)^-1/2 a_min^-1/2``. No equation is solved; the bound is exact for a box.
    """
    check_mesh(mesh)
    a = _per_element(mesh, conductivity, "conductivity", positive=True)
    sides = np.ptp(mesh.p[:, mesh.t.ravel()], axis=1)
    return _constant(float(np.pi**2 * np.sum(sides**-2.0) * a.min()), "bounding box")


def _constant(eigenvalue: float, source: str) -> Bound:
    return Bound(float(ROUND_UP / np.sqrt(eigenvalue)), "upper", source)


def _eigenvalue(mesh: Any, conductivity: Array, robin: Array, fixed: Indices, index: int) -> float:
    """Lower bound of an eigenvalue of the continuous problem."""
    pencil = facet_pencil(mesh, conductivity, robin, fixed)
    if pencil.stiffness.shape[0] < index:
        return pencil.distance**-2.0
    discrete = eigenvalue_lower_bound(pencil.stiffness, pencil.mass, index)
    return discrete / (1.0 + pencil.distance**2 * discrete)


def _loose_parts(mesh: Any, facets: Indices) -> int:
    """Number of connected parts that have none of the facets."""
    part = connected_parts(mesh)
    return len(np.setdiff1d(part, part[mesh.f2t[0, facets]]))


def _per_element(mesh: Any, values: Any, name: str, *, positive: bool) -> Array:
    array = real_array(values, name)
    if array.shape not in ((), (mesh.nelements,)):
        raise InputError(f"{name} has shape {array.shape}; expected a number or ({mesh.nelements},), one per element")
    least = float(array.min())
    if least < 0.0 or (positive and least == 0.0):
        expected = "positive values" if positive else "at least 0"
        raise InputError(f"{name} takes the value {least:.4g}; expected {expected}")
    return np.array(np.broadcast_to(array, mesh.nelements))


def _boundary_facets(mesh: Any, facets: Any, name: str) -> Indices:
    array = np.asarray(facets)
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        came = f"an array of shape {array.shape} and type {array.dtype}"
        raise InputError(f"{name} is {came}; expected a list of facet indices")
    if array.min() < 0 or array.max() >= mesh.nfacets:
        came = f"facets {array.min()} to {array.max()}"
        raise InputError(f"{name} has {came}; expected indices from 0 to {mesh.nfacets - 1}")
    if len(np.unique(array)) < len(array):
        raise InputError(f"{name} names {len(array) - len(np.unique(array))} facets twice")
    inner = int(np.count_nonzero(mesh.f2t[1, array] >= 0))
    if inner:
        raise InputError(f"{name} has {inner} facets inside the domain; expected facets of its boundary")
    return array.astype(np.int64)


def _robin(mesh: Any, robin: Any, fixed: Indices) -> Array:
    """The Robin coefficient of every facet of the mesh."""
    alpha = np.zeros(mesh.nfacets)
    if robin is None:
        return alpha
    if not isinstance(robin, (tuple, list)) or len(robin) != 2:
        raise InputError(f"robin is a {type(robin).__name__}; expected a pair (facets, coefficients) or None")
    facets = _boundary_facets(mesh, robin[0], "robin")
    name = "the Robin coefficient"
    given = real_array(robin[1], name)
    values = real_vector(np.full(len(facets), given) if given.ndim == 0 else given, len(facets), name)
    if np.any(values < 0.0):
        raise InputError(f"{name} takes the value {values.min():.4g}; expected at least 0")
    both = len(np.intersect1d(facets, fixed))
    if both:
        raise InputError(f"dirichlet and robin share {both} facets; expected each in one of them")
    alpha[facets] = values
    return alpha


@dataclass(frozen=True)
class FacetPencil:
    """Stiffness and mass of the facet means, and how well they represent a function.

    Attributes
    ----------
    stiffness
        ``a_h(u, v) = sum_K a_K (grad u, grad v)_K + sum_e alpha_e |e| u_e v_e`` on the facets that are not prescribed.
    mass
        ``(u, v)`` in L2, diagonal on triangles.
    distance
        ``C_h`` with ``‖u - I u‖ <= C_h ‖u - I u‖_a_h``, the largest ``kappa h_K / sqrt(a_K)``.
    """

    stiffness: Any
    mass: Any
    distance: float


def facet_pencil(mesh: Any, conductivity: Array, robin: Array, prescribed: Indices) -> FacetPencil:
    """Pencil of a mesh of lines, triangles or convex quadrilaterals, each cut in two along its shorter diagonal.

    On a triangle with edges ``e_i`` (as vectors, around the triangle) the stiffness is
    ``a e_i . e_j / |K|`` and the mass ``|K| / 3`` for each edge.

    Parameters
    ----------
    conductivity
        ``a_K`` of each element of the mesh.
    robin
        ``alpha_e`` of each facet of the mesh, zero where there is no Robin condition.
    prescribed
        Facets where the function vanishes.
    """
    if mesh.dim() == 1:
        cells, stiffness, mass = _lines(mesh, conductivity)
        size, distance = np.ones(mesh.nfacets), LINE_CONSTANT * diameters(mesh) / np.sqrt(conductivity)
    else:
        points, cells, parent = _triangles(mesh)
        stiffness, mass, longest = _triangle_matrices(points, conductivity[parent])
        size = np.linalg.norm(mesh.p[:, mesh.facets[0]] - mesh.p[:, mesh.facets[1]], axis=0)
        distance = TRIANGLE_CONSTANT * longest / np.sqrt(conductivity[parent])
    n = int(cells.max()) + 1
    boundary = np.zeros(n)
    boundary[: mesh.nfacets] = robin * size
    kept = np.setdiff1d(np.arange(n), prescribed)
    K, M = (_assembled(part, cells, n) for part in (stiffness, mass))
    K = (K + diags(boundary)).tocsr()
    return FacetPencil(K[kept][:, kept], M[kept][:, kept], float(distance.max()))


def _lines(mesh: Any, conductivity: Array) -> tuple[Indices, Array, Array]:
    h = measures(mesh)
    stiffness = np.array([[1.0, -1.0], [-1.0, 1.0]])[:, :, None] * conductivity / h
    return mesh.t2f, stiffness, np.array([[2.0, 1.0], [1.0, 2.0]])[:, :, None] * h / 6.0


def _triangles(mesh: Any) -> tuple[Array, Indices, Indices]:
    """Corners (2, 3, n) and facets (3, n) of triangles that fill the mesh, and the element of each.

    Facet i is opposite to corner i. Facets of the mesh keep their numbers; the diagonals of quadrilaterals follow.
    """
    p, t, f = mesh.p, mesh.t, mesh.t2f
    element = np.arange(t.shape[1])
    if t.shape[0] == 3:  # scikit-fem's facets are those of the corners 01, 12, 02
        return p[:, t], f[[1, 2, 0]], element
    # Corners 0123 with facets 01, 12, 23, 03, turned by one where the diagonal 13 is the shorter one.
    turned = np.linalg.norm(p[:, t[1]] - p[:, t[3]], axis=0) < np.linalg.norm(p[:, t[0]] - p[:, t[2]], axis=0)
    t, f = (np.where(turned, np.roll(x, -1, axis=0), x) for x in (t, f))
    cut = mesh.nfacets + element
    corners = np.concatenate([t[[0, 1, 2]], t[[0, 2, 3]]], axis=1)
    facets = np.concatenate([np.array([f[1], cut, f[0]]), np.array([f[2], f[3], cut])], axis=1)
    return p[:, corners], facets, np.concatenate([element, element])


def _triangle_matrices(points: Array, conductivity: Array) -> tuple[Array, Array, Array]:
    # edge i runs from corner i+1 to corner i+2, opposite to corner i
    edges = np.roll(points, -2, axis=1) - np.roll(points, -1, axis=1)
    area = 0.5 * np.abs(edges[0, 0] * edges[1, 1] - edges[1, 0] * edges[0, 1])
    stiffness = np.einsum("dik,djk->ijk", edges, edges) * conductivity / area
    mass = np.eye(3)[:, :, None] * area / 3.0
    return stiffness, mass, np.sqrt(np.max(np.sum(edges**2, axis=0), axis=0))


def _assembled(local: Array, cells: Indices, n: int) -> Any:
    m = len(cells)
    entries = [(local[i, j], cells[i], cells[j]) for i, j in itertools.product(range(m), range(m)) if local[i, j].any()]
    data, rows, columns = (np.concatenate(part) for part in zip(*entries, strict=True))
    return csr_matrix((data, (rows, columns)), shape=(n, n))
