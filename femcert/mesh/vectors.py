"""Vector fields: bases of `ElementVector`, their components, and the matrices that pick one of these."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack
from skfem import Basis, ElementVector

from ..checks import Array, count
from ..errors import InputError


def is_vector(basis: Any) -> bool:
    """Whether the fields of a basis are vectors."""
    return isinstance(basis.elem, ElementVector)


def components(basis: Any) -> int:
    """The number of components of a field; 1 of a scalar one."""
    return int(basis.elem.dim) if is_vector(basis) else 1


def scalar_element(basis: Any) -> Any:
    """The element of one component."""
    return basis.elem.elem if is_vector(basis) else basis.elem


def scalar_basis(basis: Basis) -> Basis:
    """The basis of one component, with the same mesh and quadrature; a scalar one itself."""
    return basis.with_element(scalar_element(basis)) if is_vector(basis) else basis


def dof_components(basis: Basis) -> NDArray[np.int64]:
    """Which component each dof belongs to."""
    found = np.zeros(basis.N, dtype=np.int64)
    # The functions of an element are numbered node by node, and at a node component by component.
    found[basis.element_dofs] = (np.arange(basis.Nbfun) % components(basis))[:, None]
    return found


def component_matrix(basis: Basis, scalar: Basis, component: int) -> csr_matrix:
    """The sparse matrix of zeros and ones that takes the dofs of a field to those of one component on `scalar`."""
    columns = np.zeros(scalar.N, dtype=np.int64)
    columns[scalar.element_dofs] = basis.element_dofs[component :: components(basis)]
    return csr_matrix((np.ones(scalar.N), (np.arange(scalar.N), columns)), shape=(scalar.N, basis.N))


def checked_component(basis: Basis, component: int | None) -> int | None:
    """`component` if the fields of `basis` have it; None stays None."""
    if component is None:
        return None
    n = components(basis)
    if not is_vector(basis):
        raise InputError(f"component is {component!r}, but the fields of this basis are scalar; expected None")
    if count(component, "component", least=0) >= n:
        raise InputError(f"component is {component}; expected 0 to {n - 1}")
    return component


def of_component(basis: Basis, rows: Any, scalar: Basis, component: int | None) -> Any:
    """Rows on the dofs of `scalar`, for a component of a field on `basis`; None: for every component, one by one."""
    chosen = checked_component(basis, component)
    if not is_vector(basis):
        return rows
    each = range(components(basis)) if chosen is None else (chosen,)
    return vstack([rows @ component_matrix(basis, scalar, i) for i in each], format="csr")


def nodal_vectors(basis: Basis, values: Array) -> tuple[Basis, Array]:
    """The basis of a component, and the values of all of them at its dofs, ``(components, dofs)``."""
    scalar = scalar_basis(basis)
    return scalar, np.array([component_matrix(basis, scalar, i) @ values for i in range(components(basis))])


def magnitude(basis: Basis, values: Array) -> tuple[Basis, Array]:
    """The interpolant of the length of a vector field, on the basis of a component; a scalar field itself."""
    if not is_vector(basis):
        return basis, np.asarray(values)
    scalar, parts = nodal_vectors(basis, values)
    return scalar, np.asarray(np.sqrt(np.sum(parts**2, axis=0)))
