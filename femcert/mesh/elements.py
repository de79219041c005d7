"""The meshes and Lagrange elements that femcert works with, and what it needs to know of them."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import diags
from skfem import (
    Basis,
    ElementLineP0,
    ElementLineP1,
    ElementLineP2,
    ElementQuad0,
    ElementQuad1,
    ElementQuad2,
    ElementTriP0,
    ElementTriP1,
    ElementTriP2,
)
from skfem.mesh import MeshLine1, MeshQuad1, MeshTri1
from skfem.quadrature import get_quadrature

from ..checks import Array, freeze_sparse, real_array
from ..errors import InputError
from .assembly import consistent_mass
from .vectors import components, dof_components, is_vector, scalar_element

# The elements of degree 0, 1 and 2 on each kind of mesh.
LAGRANGE: dict[Any, tuple[Any, Any, Any]] = {
    MeshLine1: (ElementLineP0, ElementLineP1, ElementLineP2),
    MeshTri1: (ElementTriP0, ElementTriP1, ElementTriP2),
    MeshQuad1: (ElementQuad0, ElementQuad1, ElementQuad2),
}
MESHES = tuple(LAGRANGE)
# How far the mass matrix of a basis on the reference element may be from the exact one.
MASS_TOLERANCE = 1e-9
# Of the largest row sum of a mass matrix: one that is smaller is not positive but for rounding.
ROW_TOLERANCE = 1e-12

_assembled: WeakKeyDictionary[Basis, Any] = WeakKeyDictionary()
_constants: WeakKeyDictionary[Basis, Basis] = WeakKeyDictionary()


def lagrange(mesh: Any, degree: int) -> Any:
    """The element of a degree, 0 to 2, on a supported mesh."""
    return LAGRANGE[type(mesh)][degree]()


def degree(basis: Basis) -> int:
    """Polynomial degree of a supported basis; anything else is an `InputError`."""
    if not isinstance(basis, Basis):
        raise InputError(f"basis is a {type(basis).__name__}; expected a skfem.Basis on the whole mesh")
    if is_vector(basis):
        raise InputError("the basis has vector fields (ElementVector); what is asked for is known for scalar ones only")
    return field_degree(basis)


def field_degree(basis: Basis) -> int:
    """`degree` of a field, scalar or vector: that of its components."""
    if not isinstance(basis, Basis):
        raise InputError(f"basis is a {type(basis).__name__}; expected a skfem.Basis on the whole mesh")
    known, element = LAGRANGE.get(type(basis.mesh)), scalar_element(basis)
    if known is None or type(element) not in known:
        raise InputError(
            f"{type(element).__name__} on {type(basis.mesh).__name__} is not supported; expected P1 or P2 on "
            "MeshLine or MeshTri, Q1 or Q2 on MeshQuad (first-order meshes)"
        )
    if basis.nelems != basis.mesh.nelements:
        raise InputError(f"basis covers {basis.nelems} of {basis.mesh.nelements} elements; expected the whole mesh")
    return known.index(type(element))


def check_state_basis(basis: Basis) -> Basis:
    """`basis` if a state can live on it: supported and continuous."""
    degree(basis)
    return check_field_basis(basis)


def check_field_basis(basis: Basis) -> Basis:
    """The same for scalar and vector fields."""
    if field_degree(basis) == 0:
        raise InputError(f"{type(scalar_element(basis)).__name__} is discontinuous; a state needs degree 1 or 2")
    check_quadrature(basis)
    return basis


def check_quadrature(basis: Basis) -> None:
    """Refuse a basis whose own quadrature does not integrate the mass matrix: its norms would be wrong."""
    if not hasattr(basis, "doflocs"):
        raise InputError("basis was made with disable_doflocs=True; expected one with dof locations")
    X, W = get_quadrature(basis.mesh.refdom, 2 * basis.elem.maxdeg)
    own, exact = _reference_mass(basis, basis.X, basis.W), _reference_mass(basis, X, W)
    if not np.allclose(own, exact, rtol=0.0, atol=MASS_TOLERANCE):
        raise InputError(
            f"the quadrature of basis ({basis.W.size} points) is too coarse for "
            f"{type(scalar_element(basis)).__name__}; expected intorder of at least {2 * field_degree(basis)}"
        )


def _reference_mass(basis: Basis, X: Array, W: Array) -> Array:
    element, count = scalar_element(basis), basis.Nbfun // components(basis)
    phi = np.array([np.broadcast_to(element.lbasis(X, i)[0], W.shape) for i in range(count)])
    return np.asarray((phi * W) @ phi.T)


def constant_basis(basis: Basis) -> Basis:
    """Piecewise constants on the mesh and quadrature of `basis`; made once."""
    found = _constants.get(basis)
    if found is None:
        found = _constants[basis] = basis.with_element(lagrange(basis.mesh, 0))
    return found


def same_mesh(first: Any, second: Any) -> bool:
    """Whether two meshes have the same nodes and elements in the same order."""
    return first is second or (
        first.p.shape == second.p.shape
        and first.t.shape == second.t.shape
        and np.array_equal(first.p, second.p)
        and np.array_equal(first.t, second.t)
    )


def mass_matrix(basis: Basis, *, lumped: bool = False) -> Any:
    """Mass matrix (CSR, read-only), with ``lumped=True`` the diagonal matrix of its row sums.

    Assembled once per basis: spaces, loads and residuals of one problem share it.
    """
    M = _assembled.get(basis)
    if M is None:
        M = _assembled[basis] = freeze_sparse(consistent_mass(basis))
    if not lumped:
        return M
    rows = np.asarray(M.sum(axis=1)).ravel()
    if not np.all(rows > ROW_TOLERANCE * rows.max()):
        raise InputError(
            f"row sums of the {type(basis.elem).__name__} mass matrix are not positive; mass must be 'consistent'"
        )
    return freeze_sparse(diags(rows))


def sampled(basis: Basis, function: Any, name: str, dofs: Any = slice(None)) -> NDArray[Any]:
    """`function` (a number or a callable of the scikit-fem coordinates ``x``) at dofs of `basis`, as it is.

    Of vector fields it gives a row for each component; a number stands for all of them.
    """
    # A copy: a function may write to what it gets.
    x = np.array(basis.doflocs[:, dofs])
    values = np.asarray(function(x) if callable(function) else function)
    if is_vector(basis) and values.shape != ():
        shape = (components(basis), x.shape[1])
        if values.shape != shape:
            raise InputError(f"{name} returned shape {values.shape} for x of shape {x.shape}; expected {shape}")
        return np.array(values[dof_components(basis)[dofs], np.arange(x.shape[1])])
    if values.shape not in ((), (x.shape[1],)):
        raise InputError(f"{name} returned shape {values.shape} for x of shape {x.shape}; expected ({x.shape[1]},)")
    return np.array(np.broadcast_to(values, (x.shape[1],)))


def nodal_values(basis: Basis, function: Any, name: str, dofs: Any = slice(None)) -> Array:
    """`sampled`, refused unless finite and real."""
    return real_array(sampled(basis, function, name, dofs), name)
