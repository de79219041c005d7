"""Parameters that live on a part of the boundary: fluxes, data of Robin conditions, Dirichlet values out of reach."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import identity
from skfem import Basis, BilinearForm, FacetBasis, asm
from skfem.helpers import ddot, dot, grad, mul

from ..checks import Array, freeze_sparse, frozen
from ..errors import InputError
from ..mesh.assembly import mass_form
from ..mesh.elements import check_field_basis, nodal_values
from ..mesh.geometry import index_facets
from ..mesh.pick import picked_facets
from .constraints import shown_option
from .space import INNER, ParameterSpace


class TraceSpace(ParameterSpace):
    """Traces on facets of the boundary of the finite-element functions of a basis, with the norm of L2 there.

    Dof vectors hold the values at the n dofs of these facets: ``q = sum_j q_j phi_j`` on G and
    ``‖q‖_Q² = ∫_G q² ds``. Without `functions` the coordinates are these values. Of a basis of vectors the traces are
    vectors, and a function has a row for each component.

    Parameters
    ----------
    basis
        Of the state, or another one on its mesh.
    boundary
        G: the name of a boundary part, indices of facets, or a function of x that picks facets of the boundary by
        their midpoints; None: all of the boundary.
    functions
        Functions of x whose interpolants span the class, one for each coordinate. Default: all traces.
    inner
        ``"l2"``, or ``"euclidean"``: the norm of the vector.

    Attributes
    ----------
    facets, dofs
        Those of G.
    name
        Of G.

    Examples
    --------
    >>> import femcert as fc
    >>> from skfem import Basis, ElementTriP1, MeshTri
    >>> basis = Basis(MeshTri().refined(3), ElementTriP1())
    >>> flux = fc.TraceSpace(basis, lambda x: x[0] == 0.0)
    >>> flux.dimension, round(flux.norm(1.0 + flux.points[1]) ** 2, 12)
    (9, 2.333333333333)
    """

    def __init__(
        self,
        basis: Basis,
        boundary: Any = None,
        *,
        functions: Sequence[Callable[..., Any]] | None = None,
        inner: str = "l2",
    ) -> None:
        check_field_basis(basis)
        if not isinstance(inner, str) or inner not in INNER:
            raise InputError(f"inner is {shown_option(inner)}; expected one of {', '.join(INNER)}")
        index_facets(basis.mesh)
        self.name, self.facets = picked_facets(basis.mesh, boundary)
        inside = int(np.sum(basis.mesh.f2t[1, self.facets] >= 0))
        if inside:
            raise InputError(f"{inside} facets of {self.name!r} lie inside the domain; expected a part of its boundary")
        self._host, self.dofs = basis, frozen(basis.get_dofs(facets=self.facets).flatten())
        self.basis, self.inner, self.ball = None, inner, None
        if functions is None:
            self.matrix = freeze_sparse(identity(len(self.dofs), format="csr"))
        else:
            self.matrix = self._columns(functions)

    def _columns(self, functions: Any) -> Array:
        if not isinstance(functions, Sequence) or not 0 < len(functions) <= len(self.dofs):
            raise InputError(f"functions is {functions!r}; expected a list of 1 to {len(self.dofs)} functions of x")
        names = [f"functions[{i}]" for i in range(len(functions))]
        columns = [nodal_values(self._host, f, name, self.dofs) for f, name in zip(functions, names, strict=True)]
        return frozen(np.column_stack(columns))

    @property
    def points(self) -> Array:
        """Where the dofs are, ``(dimension of the mesh, n)``."""
        return np.asarray(self._host.doflocs[:, self.dofs])

    @property
    def carrier(self) -> Basis:
        """The basis whose traces these are."""
        return self._host

    def restrict(self, functionals: Any) -> Any:
        """See `Carried.restrict`."""
        return functionals[self.dofs]

    def extend(self, field: Array) -> Array:
        """The function that is zero at all other dofs."""
        full = np.zeros(self._host.N)
        full[self.dofs] = field
        return full

    @cached_property
    def _on_facets(self) -> FacetBasis:
        element = self._host.elem
        return FacetBasis(self._host.mesh, element, facets=self.facets, intorder=2 * element.maxdeg)

    @cached_property
    def _mass(self) -> Any:
        return freeze_sparse(asm(mass_form, self._on_facets).tocsr()[self.dofs][:, self.dofs])

    @cached_property
    def weight(self) -> Any:
        """The mass matrix of the facets."""
        return self._mass if self.inner == "l2" else freeze_sparse(identity(self.size, format="csr"))

    @property
    def norm_name(self) -> str:
        """The norm on this part of the boundary."""
        return f"L2 norm on {self.name}" if self.inner == "l2" else "Euclidean norm of the dofs"

    def within_ball(self, radius: float | None = None, *, norm: Any = "h1", **options: Any) -> TraceSpace:
        """As for other classes; the gradient is the one along the boundary, and there is no ``"h2"``."""
        if isinstance(norm, str) and norm == "h2":
            raise InputError("norm is 'h2'; expected 'l2', 'h1', 'h1-seminorm' or a sparse matrix on a boundary")
        if isinstance(norm, str) and norm == "h1-seminorm" and self._host.mesh.dim() == 1:
            raise InputError("a boundary of points has no gradient along it; expected norm='l2'")
        return super().within_ball(radius, norm=norm, **options)  # type: ignore[return-value]

    def form(self, norm: str, length: float = 1.0) -> Any:
        """``∫_G q²``, with ``length² ∫_G |grad_G q|²`` for ``"h1"``, and this alone for ``"h1-seminorm"``."""
        if norm == "matrix":
            return super().form(norm, length)
        if norm == "l2":
            return self._mass
        along = length**2 * asm(_along, self._on_facets).tocsr()[self.dofs][:, self.dofs]
        return freeze_sparse(along if norm == "h1-seminorm" else self._mass + along)

    def parts_of_form(self, norm: str, length: float = 1.0) -> tuple[Array, Any] | None:
        """None: there is no ``"h2"``."""
        return None


@BilinearForm
def _along(u: Any, v: Any, w: Any) -> Any:
    """(grad u, grad v) without the normal parts."""
    if u.ndim > 2:
        return ddot(grad(u), grad(v)) - dot(mul(grad(u), w.n), mul(grad(v), w.n))
    return dot(grad(u), grad(v)) - dot(grad(u), w.n) * dot(grad(v), w.n)
