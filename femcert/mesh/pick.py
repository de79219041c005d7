"""Facets and elements that are named, listed, or picked by a function of x."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks import Array
from ..errors import InputError
from .geometry import boundary_facets, region_elements


def picked_elements(mesh: Any, region: Any, name: str | None = None) -> tuple[str, NDArray[np.intp]]:
    """Name and indices of the elements of a region: a name, indices, or a function of their midpoints; None: all."""
    if region is None:
        return "domain", np.arange(mesh.nelements)
    if isinstance(region, str):
        return region, region_elements(mesh, region)
    if callable(region):
        return _name_of(region, "region"), _picked(region, mesh.p[:, mesh.t].mean(axis=1), "region", name)
    return "region", _indices(region, mesh.nelements, "region", name)


def picked_facets(mesh: Any, boundary: Any, name: str | None = None) -> tuple[str, NDArray[np.intp]]:
    """Name and indices of the facets of a part of the boundary, in the same way."""
    if boundary is None:
        return "boundary", mesh.boundary_facets()
    if isinstance(boundary, str):
        return boundary, boundary_facets(mesh, boundary)
    if callable(boundary):
        whole = mesh.boundary_facets()
        middles = mesh.p[:, mesh.facets[:, whole]].mean(axis=1)
        return _name_of(boundary, "boundary"), whole[_picked(boundary, middles, "boundary", name)]
    return "boundary", _indices(boundary, mesh.facets.shape[1], "boundary", name)


def _name_of(function: Callable[..., Any], otherwise: str) -> str:
    name = getattr(function, "__name__", otherwise)
    return otherwise if name == "<lambda>" else str(name)


def _picked(function: Callable[..., Any], middles: Array, what: str, name: str | None) -> NDArray[np.intp]:
    """Where a function of x is True, at least once."""
    found = np.asarray(function(middles))
    if found.shape != (middles.shape[1],) or found.dtype != bool:
        raise InputError(f"{what} gives {found.dtype} of shape {found.shape}; expected True or False per midpoint")
    return _not_empty(np.flatnonzero(found), what, name or _name_of(function, what))


def _indices(given: Any, count: int, what: str, name: str | None) -> NDArray[np.intp]:
    found = np.unique(np.asarray(given))
    if found.dtype.kind not in "iu" or found.min(initial=0) < 0 or found.max(initial=0) >= count:
        raise InputError(f"{what} has indices outside of 0 to {count - 1}; expected those of a mesh")
    return _not_empty(found, what, name or what)


def _not_empty(found: NDArray[np.intp], what: str, name: str) -> NDArray[np.intp]:
    if not found.size:
        kind = "element" if what == "region" else "facet"
        raise InputError(f"the {what} {name!r} has no {kind}; expected at least one")
    return found
