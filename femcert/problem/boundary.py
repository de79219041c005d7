"""Dirichlet, Neumann and Robin conditions on the whole boundary or on named parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from skfem import Basis, BilinearForm, FacetBasis, LinearForm, asm
from skfem.helpers import dot

from ..checks import Array, freeze_sparse, frozen, number, real_array
from ..errors import InputError
from ..mesh.assembly import mass_form
from ..mesh.elements import nodal_values
from ..mesh.geometry import boundary_facets, index_facets
from ..mesh.vectors import components, is_vector
from ..shown import Shown

Value = float | Callable[[Array], Any]
# Of the largest value: how far two conditions may differ in the corner where they meet.
CORNER_TOLERANCE = 1e-12


@dataclass(frozen=True)
class Part:
    """A condition as it was given: on `facets`, ``u = value``, or ``a du/dn + coefficient u = value``."""

    name: str
    facets: NDArray[np.int64]
    value: Value
    coefficient: Value = 0.0


@dataclass(frozen=True, repr=False)
class BoundaryConditions(Shown):
    """Boundary conditions as algebra: prescribed dofs, and what natural conditions add to operator and load. Read-only.

    Attributes
    ----------
    basis
        The basis of the dofs.
    prescribed, values
        Dirichlet dofs, and a full-length dof vector with their values (zero elsewhere).
    free
        All other dofs.
    operator, load
        Robin matrix ``(alpha u, v)`` and natural load ``(g, v)``, or None where there is none.
    dirichlet, natural
        The conditions as they were given, for quadrature of any order. Boundary facets in neither have ``a du/dn = 0``.
    """

    basis: Basis
    prescribed: NDArray[np.int64]
    free: NDArray[np.int64]
    values: Array
    operator: Any
    load: Array | None
    dirichlet: tuple[Part, ...]
    natural: tuple[Part, ...]

    def summary(self) -> dict[str, str]:
        """How many dofs are prescribed, and where."""
        parts = [f"u given on {part.name}" for part in self.dirichlet if len(part.facets)]
        parts += [f"flux given on {part.name}" for part in self.natural]
        prescribed = f"{len(self.prescribed)} of {self.basis.N} dofs prescribed"
        return {"conditions": "; ".join([prescribed, *parts[:3]]) + ("; ..." if len(parts) > 3 else "")}

    @property
    def homogeneous(self) -> bool:
        """Whether the solution for a zero parameter and zero source is zero."""
        return not self.values.any() and (self.load is None or not self.load.any())

    @cached_property
    def mass(self) -> Any:
        """L2 mass matrix of the Dirichlet part of the boundary, on all dofs."""
        facets = [part.facets for part in self.dirichlet if len(part.facets)]
        if not facets:
            return freeze_sparse(csr_matrix((self.basis.N, self.basis.N)))
        return freeze_sparse(asm(mass_form, _facet_basis(self.basis, np.concatenate(facets))).tocsr())


def boundary_conditions(
    basis: Basis,
    *,
    dirichlet: Value | Mapping[str, Value] | None = None,
    neumann: Mapping[str, Value] | None = None,
    robin: Mapping[str, tuple[Value, Value]] | None = None,
) -> BoundaryConditions:
    """Assemble ``u = g`` (dirichlet), ``a du/dn = g`` (neumann), ``a du/dn + alpha u = g`` (robin).

    Parameters
    ----------
    dirichlet
        None: zero wherever no Neumann or Robin condition is named. A number or function: that value there.
        A mapping: values on the named parts only, natural conditions elsewhere; ``{}`` for none at all.
        Of vector fields a function has a row for each component, and a number stands for all of them; so for ``g``.
    neumann, robin
        Named parts with ``g``, and with the pair ``(alpha, g)``, ``alpha >= 0``.
    """
    mesh = basis.mesh
    index_facets(mesh)
    natural = {**_facets(mesh, neumann, "neumann"), **_facets(mesh, robin, "robin")}
    if set(neumann or {}) & set(robin or {}):
        raise InputError(f"{sorted(set(neumann or {}) & set(robin or {}))} is both in neumann and in robin")
    if isinstance(dirichlet, Mapping):
        parts = {name: (_outer_facets(mesh, name), value) for name, value in dirichlet.items()}
    elif dirichlet is not None and not callable(dirichlet) and np.ndim(dirichlet):
        raise InputError(f"dirichlet is a {type(dirichlet).__name__}; expected a number, a function or a mapping")
    else:
        named = np.concatenate(list(natural.values())) if natural else np.zeros(0, dtype=np.int64)
        rest = np.setdiff1d(mesh.boundary_facets(), named)
        parts = {"boundary": (rest, 0.0 if dirichlet is None else dirichlet)} if len(rest) else {}
    _refuse_overlap({**natural, **{f"dirichlet {name}": facets for name, (facets, _) in parts.items()}})
    prescribed, values = _essential(basis, parts)
    operator, load = _natural(basis, natural, neumann or {}, robin or {})
    is_free = np.ones(basis.N, dtype=bool)
    is_free[prescribed] = False
    free = np.flatnonzero(is_free)
    if not len(free):
        raise InputError(f"the mesh ({mesh.nelements} elements) has no interior dofs; refine it")
    return BoundaryConditions(
        basis=basis,
        prescribed=frozen(prescribed),
        free=frozen(free),
        values=frozen(values),
        operator=None if operator is None else freeze_sparse(operator),
        load=None if load is None else frozen(load),
        dirichlet=tuple(Part(name, frozen(where), value) for name, (where, value) in parts.items()),
        natural=tuple(_natural_part(name, where, neumann or {}, robin or {}) for name, where in natural.items()),
    )


def _facets(mesh: Any, parts: Mapping[str, Any] | None, kind: str) -> dict[str, NDArray[np.int64]]:
    if parts is not None and not isinstance(parts, Mapping):
        raise InputError(f"{kind} is a {type(parts).__name__}; expected a mapping from boundary names")
    return {name: _outer_facets(mesh, name) for name in parts or {}}


def _outer_facets(mesh: Any, name: str) -> NDArray[np.int64]:
    facets = boundary_facets(mesh, name)
    inner = int(np.sum(mesh.f2t[1, facets] >= 0))
    if inner:
        raise InputError(f"{inner} facets of {name!r} lie inside the domain; expected a part of its boundary")
    return facets


def _refuse_overlap(parts: Mapping[str, NDArray[np.int64]]) -> None:
    names = list(parts)
    for i, first in enumerate(names):
        for second in names[i + 1 :]:
            shared = np.intersect1d(parts[first], parts[second])
            if len(shared):
                raise InputError(f"boundary conditions {first!r} and {second!r} share {len(shared)} facets")


def _essential(basis: Basis, parts: Mapping[str, Any]) -> tuple[NDArray[np.int64], Array]:
    values = np.zeros(basis.N)
    prescribed = np.zeros(basis.N, dtype=bool)
    for name, (facets, value) in parts.items():
        dofs = basis.get_dofs(facets=facets).flatten()
        given = nodal_values(basis, value, f"the Dirichlet value on {name!r}", dofs)
        # Two parts may meet in a corner; they must agree there, or the state would be ambiguous.
        scale = max(np.abs(values).max(), np.abs(given).max(initial=0.0))
        clash = prescribed[dofs] & (np.abs(values[dofs] - given) > CORNER_TOLERANCE * scale)
        if clash.any():
            where = basis.doflocs[:, dofs[clash][0]]
            raise InputError(f"the Dirichlet value on {name!r} contradicts another part at {where.round(6).tolist()}")
        values[dofs], prescribed[dofs] = given, True
    return np.flatnonzero(prescribed), values


def _natural(
    basis: Basis,
    facets: Mapping[str, NDArray[np.int64]],
    neumann: Mapping[str, Value],
    robin: Mapping[str, tuple[Value, Value]],
) -> tuple[Any, Array | None]:
    operator, load = None, None
    for name, where in facets.items():
        part = _facet_basis(basis, where)
        if name in robin:
            if not isinstance(robin[name], (tuple, list)) or len(robin[name]) != 2:
                raise InputError(f"robin[{name!r}] is {robin[name]!r}; expected a pair (alpha, g)")
            alpha, g = robin[name]
            weight = on_facets(alpha, part, f"the Robin coefficient on {name!r}")
            if weight.min() < 0.0:
                raise InputError(f"the Robin coefficient on {name!r} takes {weight.min():.4g}; expected at least 0")
            matrix = asm(_weighted_mass, part, alpha=weight).tocsr()
            operator = matrix if operator is None else operator + matrix
        else:
            g = neumann[name]
        vector = asm(_weighted_load, part, g=_natural_value(g, part, f"the flux on {name!r}"))
        load = vector if load is None else load + vector
    return operator, load


def _natural_part(name: str, facets: NDArray[np.int64], neumann: Mapping[str, Any], robin: Mapping[str, Any]) -> Part:
    if name in neumann:
        return Part(name, frozen(facets), neumann[name])
    coefficient, value = robin[name]
    return Part(name, frozen(facets), value, coefficient)


def _facet_basis(basis: Basis, facets: NDArray[np.int64]) -> FacetBasis:
    return FacetBasis(basis.mesh, basis.elem, facets=facets, intorder=2 * basis.elem.maxdeg + 1)


def _natural_value(value: Value, part: FacetBasis, name: str) -> Array:
    """`on_facets`, of vector fields ``(components, facets, points)``."""
    if not is_vector(part):
        return on_facets(value, part, name)
    shape = (components(part), *part.dx.shape)
    if not callable(value):
        return np.full(shape, number(value, name))
    values = real_array(value(np.asarray(part.global_coordinates())), name)
    if values.shape != shape:
        raise InputError(f"{name} returned shape {values.shape}; expected {shape}, a row for each component")
    return values


def on_facets(value: Value, part: FacetBasis, name: str) -> Array:
    """A number or a function of x at the quadrature points of boundary facets, ``(facets, points)``."""
    if not callable(value):
        return np.full(part.dx.shape, number(value, name))
    values = real_array(value(np.asarray(part.global_coordinates())), name)
    if values.shape not in ((), part.dx.shape):
        raise InputError(f"{name} returned shape {values.shape}; expected {part.dx.shape}")
    return np.array(np.broadcast_to(values, part.dx.shape))


@BilinearForm
def _weighted_mass(u: Any, v: Any, w: Any) -> Any:
    return w["alpha"] * (dot(u, v) if u.ndim > 2 else u * v)


@LinearForm
def _weighted_load(v: Any, w: Any) -> Any:
    return dot(w["g"], v) if v.ndim > 2 else w["g"] * v
