"""Spaces of the user's functions, of values on regions, and of a coarse mesh."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from skfem import Basis, ElementVector
from skfem.mesh import MeshQuad1

from ..errors import InputError
from ..mesh.elements import (
    MESHES,
    check_quadrature,
    check_state_basis,
    constant_basis,
    field_degree,
    lagrange,
    nodal_values,
)
from ..mesh.geometry import region_elements
from ..mesh.locate import Locator, interpolation_matrix
from ..mesh.vectors import is_vector, of_component
from .functions import Declared, FunctionClass
from .space import ParameterSpace

# How far fine functions may be from coarse ones that they are, at any point.
NESTED_TOLERANCE = 1e-9
# Vertices are looked for so far inside of their elements, in parts of these.
PULLED = 1e-6


class FunctionSpace(ParameterSpace):
    """Span of the nodal interpolants of given functions of ``x`` (scikit-fem coordinates).

    A continuous guarantee is about the functions themselves, so that all of them must be declared as `Polynomial`;
    for one about the interpolants give these as fields, ``femcert.problem.space.ParameterSpace(basis, matrix)``.

    On a basis of vectors a function has a row for each component, ``(components, points)``.

    Attributes
    ----------
    functions
        As given.
    """

    def __init__(self, basis: Basis, functions: Sequence[Callable[..., Any]], *, inner: str = "l2") -> None:
        field_degree(basis)
        check_quadrature(basis)
        if not isinstance(functions, Sequence) or not len(functions):
            raise InputError(f"functions is {functions!r}; expected a list of at least one function of x")
        columns = [nodal_values(basis, function, f"functions[{i}]") for i, function in enumerate(functions)]
        self.functions = tuple(functions)
        super().__init__(basis, np.column_stack(columns), inner=inner)

    def functions_on(self, mesh: Any) -> FunctionClass | None:
        """The functions themselves, where the norm is that of L2; refused if one of them is not declared."""
        declared = Declared(self.functions)
        return FunctionClass(declared, mesh, self.root) if self.inner == "l2" else None


class RegionSpace(ParameterSpace):
    """Constants on regions: the coordinates are the values on the regions, zero outside them.

    Parameters
    ----------
    basis
        A basis on the mesh; the parameter lives on its piecewise constants. They are vectors where its fields are:
        the coordinates are then the values of the first component on all regions, those of the second, and so on.
    regions
        Names of subdomains, or arrays of element indices; they must not overlap.
    """

    def __init__(
        self, basis: Basis, regions: Sequence[str | NDArray[np.int64]] | None = None, *, inner: str = "l2"
    ) -> None:
        field_degree(basis)
        if regions is None:
            # Gmsh's own bookkeeping is no region.
            regions = sorted(name for name in basis.mesh.subdomains or {} if not name.startswith("gmsh:"))
        regions = listed(regions)
        self.regions = [name if isinstance(name, str) else f"region {i}" for i, name in enumerate(regions)]
        matrix = region_indicators(basis.mesh, regions)
        if np.max(matrix.sum(axis=1)) > 1:
            raise InputError("regions overlap; expected disjoint sets of elements")
        constants = constant_basis(basis)
        if is_vector(basis):
            vectors = basis.with_element(ElementVector(constants.elem, basis.elem.dim))
            matrix, constants = csr_matrix(of_component(vectors, matrix.T, constants, None).T), vectors
        super().__init__(constants, matrix, inner=inner)


def region_indicators(mesh: Any, regions: Sequence[str | NDArray[np.int64]]) -> csr_matrix:
    """Sparse ``(elements, regions)`` matrix of ones; unknown names, empty and repeated regions are refused."""
    regions = listed(regions)
    cells = [_elements(mesh, region, i) for i, region in enumerate(regions)]
    columns = np.repeat(np.arange(len(cells)), [len(c) for c in cells])
    rows = np.concatenate(cells)
    return csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(mesh.nelements, len(cells)))


def listed(regions: Any) -> list[Any]:
    """`regions` as a list with something in it."""
    if isinstance(regions, str) or not isinstance(regions, (Sequence, np.ndarray)) or not len(regions):
        raise InputError(f"regions is {regions!r}; expected a list of subdomain names or of element arrays")
    return list(regions)


def _elements(mesh: Any, region: str | NDArray[np.int64], i: int) -> NDArray[np.int64]:
    try:
        cells = region_elements(mesh, region) if isinstance(region, str) else np.asarray(region)
    except ValueError as error:
        raise InputError(f"region {i}: {error}") from None
    if cells.ndim != 1 or not len(cells) or not np.issubdtype(cells.dtype, np.integer):
        raise InputError(f"region {i} has shape {cells.shape} and type {cells.dtype}; expected element indices")
    if cells.min() < 0 or cells.max() >= mesh.nelements or len(np.unique(cells)) < len(cells):
        raise InputError(f"region {i} has repeated or impossible element indices; the mesh has {mesh.nelements}")
    return cells.astype(np.int64)


def _is_exact(basis: Basis, coarse: Basis, home: NDArray[np.int64], matrix: Any) -> bool:
    """Whether the fine functions `matrix` are the coarse ones at the quadrature points, element `home` by element."""
    x = np.asarray(basis.global_coordinates())
    here = np.repeat(np.arange(basis.nelems), x.shape[2])
    x = x.reshape(len(x), -1)
    difference = interpolation_matrix(basis, x, here) @ matrix - interpolation_matrix(coarse, x, home[here])
    return bool(abs(difference).max() <= NESTED_TOLERANCE)


class CoarseSpace(ParameterSpace):
    """Continuous piecewise linears (`degree` 1) or constants (0) of a coarser mesh, on the fine mesh.

    Attributes
    ----------
    nested
        Whether every fine element lies in one coarse element and the coarse functions are represented exactly
        (P1 on triangles does not hold bilinear ones). If not, the class is that of the interpolants.
    """

    def __init__(self, basis: Basis, coarse_mesh: Any, *, degree: int = 1, inner: str = "l2") -> None:
        check_state_basis(basis)
        if type(coarse_mesh) not in MESHES or coarse_mesh.dim() != basis.mesh.dim():
            expected = f"a first-order mesh of dimension {basis.mesh.dim()}"
            raise InputError(f"coarse_mesh is a {type(coarse_mesh).__name__}; expected {expected}")
        locator = Locator(coarse_mesh)
        fine = basis.mesh
        centre = fine.p[:, fine.t].mean(axis=1)
        home = locator.find(centre)
        if np.any(home < 0):
            outside = int(np.sum(home < 0))
            raise InputError(f"{outside} element centres lie outside coarse_mesh; expected the same domain")
        # A vertex moved slightly towards the centre lies in the coarse element its fine element ends there.
        pulled = (1.0 - PULLED) * fine.p[:, fine.t] + PULLED * centre[:, None, :]
        ends = locator.find(pulled.reshape(fine.dim(), -1)).reshape(fine.t.shape)
        self.nested = bool(np.all(ends == home))
        if degree == 0:
            target, matrix = constant_basis(basis), csr_matrix(
                (np.ones(len(home)), (np.arange(len(home)), home)), shape=(len(home), coarse_mesh.nelements)
            )
        elif degree == 1:
            coarse = Basis(coarse_mesh, lagrange(coarse_mesh, 1))
            cells = locator.find(basis.doflocs)
            if np.any(cells < 0):
                raise InputError(f"{int(np.sum(cells < 0))} dofs lie outside coarse_mesh; expected the same domain")
            target, matrix = basis, interpolation_matrix(coarse, basis.doflocs, cells)
            if type(coarse_mesh) is MeshQuad1:
                self.nested = self.nested and _is_exact(basis, coarse, home, matrix)
        else:
            raise InputError(f"degree is {degree!r}; expected 0 or 1")
        super().__init__(target, matrix, inner=inner)
