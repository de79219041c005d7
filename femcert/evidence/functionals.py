"""What may be asked of a parameter: means, values, moments, predictions. Each is linear, and fixed before the data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack
from skfem import Basis, FacetBasis, LinearForm

from ..checks import Array, number, real_vector
from ..errors import InputError
from ..mesh.elements import field_degree, same_mesh
from ..mesh.geometry import boundary_facets, measures, region_elements
from ..mesh.vectors import components, is_vector, of_component, scalar_basis
from ..problem.forward import dense
from ..problem.sensors import AverageSensors, Representers
from ..problem.space import ParameterSpace


class Functional(ABC):
    """A linear functional of the parameter.

    Attributes
    ----------
    name
        For tables and pages.
    std
        Of the noise of a reading that was not made yet; 0: the functional itself is asked for.
    """

    name: str
    std: float = 0.0

    @abstractmethod
    def of_fields(self, space: ParameterSpace) -> Array:
        """The vector w with ``psi(q) = w . q`` for all dof vectors."""

    def weights(self, space: ParameterSpace) -> Array:
        """The same for a class; where only a part of it is of interest, that of the field of this part."""
        return np.asarray(restricted(space, self.of_fields(space)))

    def on(self, space: ParameterSpace) -> Array:
        """The same for coordinates, ``B' w``."""
        return np.asarray(space.matrix.T @ self.of_fields(space))

    def representers(self, space: ParameterSpace) -> Representers | None:
        """Its density on the elements, for parameters that are functions; None where it has none that is known."""
        return None

    def value(self, space: ParameterSpace, parameter: Array) -> float:
        """``psi(q)`` of a dof vector."""
        return float(self.weights(space) @ parameter)


class _OnMesh(Functional):
    """One that integrates functions on a mesh."""

    def __init__(self, basis: Basis, name: str, component: int | None = None) -> None:
        field_degree(basis)
        self._mesh, self.name, self.component = basis.mesh, name, component

    def _basis(self, space: ParameterSpace) -> Basis:
        if space.basis is None or not same_mesh(space.basis.mesh, self._mesh):
            raise InputError(f"{self.name}: the functional was made on another mesh than the parameters")
        return space.basis

    def _scalar(self, space: ParameterSpace) -> Basis:
        """The basis of the component that is asked for."""
        whole = self._basis(space)
        if is_vector(whole) and self.component is None:
            most = components(whole) - 1
            raise InputError(f"{self.name}: the parameters are vectors; expected component=0 to {most}")
        return scalar_basis(whole)

    def _of_component(self, space: ParameterSpace, weights: Any) -> Array:
        """Weights on the dofs of a component, on those of the parameters."""
        whole = self._basis(space)
        row = csr_matrix(np.asarray(weights)[None])
        return np.asarray(of_component(whole, row, scalar_basis(whole), self.component).toarray()[0])


class Mean(_OnMesh):
    """The mean over a part of the domain, ``∫_R q / |R|``.

    Parameters
    ----------
    basis
        A basis on the mesh.
    region
        The name of a subdomain, indices of elements, or a function of x that picks elements by their midpoints; None:
        the whole domain.
    name
        For tables; default: that of the region.
    component
        Of vector parameters: the one that is asked for.

    Examples
    --------
    >>> import numpy as np
    >>> import femcert as fc
    >>> from skfem import Basis, ElementLineP1, MeshLine
    >>> basis = Basis(MeshLine(np.linspace(0.0, 1.0, 5)), ElementLineP1())
    >>> mean = fc.Mean(basis, lambda x: x[0] > 0.5)
    >>> mean.value(fc.FullSpace(basis), basis.doflocs[0])
    0.75
    """

    def __init__(
        self, basis: Basis, region: Any = None, *, name: str | None = None, component: int | None = None
    ) -> None:
        found, elements = _elements(basis, region)
        super().__init__(basis, name or found, component)
        self.elements = elements

    def of_fields(self, space: ParameterSpace) -> Array:
        """See `Functional.of_fields`."""
        whole = self._scalar(space)
        part = Basis(whole.mesh, whole.elem, elements=self.elements, intorder=2 * max(field_degree(whole), 1))
        return self._of_component(space, np.asarray(_integral.assemble(part)) / float(np.sum(part.dx)))

    def representers(self, space: ParameterSpace) -> Representers | None:
        """Constant in the region; None for vector parameters."""
        if is_vector(self._basis(space)):
            return None
        area = measures(self._basis(space).mesh)
        chosen, n = self.elements, len(self.elements)
        density = csr_matrix((np.full(n, 1.0 / area[chosen].sum()), (chosen, np.zeros(n, int))), shape=(len(area), 1))
        return Representers(density, csr_matrix(density.shape))


class Moment(_OnMesh):
    """``∫ f q`` with a function of x.

    Parameters
    ----------
    basis
        A basis on the mesh.
    function
        f, evaluated at quadrature points: for what follows it is its interpolant there.
    region
        Where it is integrated, as for `Mean`.
    component
        Of vector parameters: the one that is asked for.
    """

    def __init__(
        self,
        basis: Basis,
        function: Callable[..., Any],
        *,
        region: Any = None,
        name: str = "moment",
        component: int | None = None,
    ) -> None:
        super().__init__(basis, name, component)
        if not callable(function):
            raise InputError(f"function is a {type(function).__name__}; expected a function of x")
        self.function, self.elements = function, _elements(basis, region)[1]

    def of_fields(self, space: ParameterSpace) -> Array:
        """See `Functional.of_fields`."""
        whole = self._scalar(space)
        part = Basis(whole.mesh, whole.elem, elements=self.elements, intorder=2 * max(field_degree(whole), 1) + 2)
        x = np.asarray(part.global_coordinates())
        values = np.broadcast_to(np.asarray(self.function(x), dtype=float), part.dx.shape)
        weights = np.asarray(LinearForm(lambda v, w: w["f"] * v).assemble(part, f=values))
        return self._of_component(space, real_vector(weights, whole.N, self.name))


class Value(_OnMesh):
    """The mean over a disc (an interval on a line), clipped to the mesh: a value, smoothed so that data can bound it.

    Parameters
    ----------
    basis
        A basis on the mesh.
    point
        The centre.
    radius
        Of the disc.
    component
        Of vector parameters: the one that is asked for.
    """

    def __init__(
        self, basis: Basis, point: Any, *, radius: float, name: str | None = None, component: int | None = None
    ) -> None:
        self.point = np.atleast_1d(real_vector(np.atleast_1d(point), None, "point"))
        self.radius = number(radius, "radius", above=0.0)
        where = ", ".join(f"{x:.3g}" for x in self.point)
        super().__init__(basis, name or f"about ({where})", component)

    def of_fields(self, space: ParameterSpace) -> Array:
        """See `Functional.of_fields`."""
        return self._disc(space).matrix.toarray()[0]

    def representers(self, space: ParameterSpace) -> Representers | None:
        """Constant in the disc; None for vector parameters."""
        return self._disc(space).representers()

    def _disc(self, space: ParameterSpace) -> AverageSensors:
        whole = self._basis(space)
        self._scalar(space)
        if field_degree(whole) == 0:
            raise InputError("values of piecewise constants are their coordinates; expected a vector or a Mean")
        return AverageSensors(whole, self.point[None], radius=self.radius, component=self.component)


class Flux(_OnMesh):
    """The mean over a part of the boundary, ``∫_G q ds / |G|``: the mean flux where the parameter is a flux.

    Of a parameter that lives in the domain it is the mean of the trace. The normal derivative of a parameter is not
    asked for: balls in the norms of L2 and H1 do not bound it.

    Parameters
    ----------
    basis
        A basis on the mesh.
    boundary
        The name of a boundary part, indices of facets, or a function of x that picks facets of the boundary by their
        midpoints; None: all of the boundary.
    name
        For tables; default: that of the part.
    component
        Of vector parameters: the one that is asked for.

    Examples
    --------
    >>> import femcert as fc
    >>> from skfem import Basis, ElementTriP1, MeshTri
    >>> basis = Basis(MeshTri().refined(2), ElementTriP1())
    >>> flux = fc.Flux(basis, lambda x: x[0] == 1.0)
    >>> round(flux.value(fc.FullSpace(basis), basis.doflocs[0] + basis.doflocs[1]), 12)
    1.5
    """

    def __init__(
        self, basis: Basis, boundary: Any = None, *, name: str | None = None, component: int | None = None
    ) -> None:
        found, facets = _facets(basis, boundary)
        super().__init__(basis, name or found, component)
        self.facets = facets

    def of_fields(self, space: ParameterSpace) -> Array:
        """See `Functional.of_fields`."""
        whole = self._scalar(space)
        part = FacetBasis(whole.mesh, whole.elem, facets=self.facets, intorder=2 * max(field_degree(whole), 1))
        return self._of_component(space, np.asarray(_integral.assemble(part)) / float(np.sum(part.dx)))


class Prediction(Functional):
    """A measurement that was not made, with `std` the noisy reading of it: ``row @ q``.

    Parameters
    ----------
    row
        The weights of the parameter's dofs in the reading: a column of ``problem.forward.adjoint(weights)`` of a
        problem with other sensors.
    std
        Standard deviation of its noise, independent of that of the data; default: the reading without noise.

    Examples
    --------
    >>> import numpy as np
    >>> import femcert as fc
    >>> fc.Prediction(np.array([0.5, 0.5]), std=0.01).name
    'prediction'
    """

    def __init__(self, row: Any, *, std: float | None = None, name: str = "prediction") -> None:
        self.row, self.name = real_vector(row, None, "row"), name
        self.std = 0.0 if std is None else number(std, "std", above=0.0)

    def of_fields(self, space: ParameterSpace) -> Array:
        """See `Functional.of_fields`."""
        return real_vector(self.row, space.size, "row")


class Coordinate(Functional):
    """A weighted sum of the coordinates of the class, or of those of interest."""

    def __init__(self, weights: Any, *, name: str = "coordinates") -> None:
        self.of_coordinates, self.name = real_vector(weights, None, "weights"), name

    def of_fields(self, space: ParameterSpace) -> Array:
        """Of the dofs, by the projection on the class."""
        return _on_span(space, self.on(space))

    def on(self, space: ParameterSpace) -> Array:
        """Themselves."""
        if space.part is None:
            return real_vector(self.of_coordinates, space.dimension, "weights of the coordinates")
        full = np.zeros(space.dimension)
        count = int(space.part.chosen.sum())
        full[space.part.chosen] = real_vector(self.of_coordinates, count, "weights of the coordinates of interest")
        return full


def restricted(space: ParameterSpace, functionals: Any) -> Any:
    """Functionals on the dofs, a vector or columns, as they see the part of the class that is of interest."""
    if space.part is None:
        return functionals
    return _on_span(space, np.einsum("i,i...->i...", space.part.chosen, dense(space.matrix.T @ functionals)))


def _on_span(space: ParameterSpace, weights: Array) -> Array:
    """The functional on the dofs that is this one of the coordinates, and zero on what is orthogonal to the class."""
    return np.asarray(space.weight @ (space.matrix @ space.solve_gram(weights)))


def as_functional(given: Any, space: ParameterSpace) -> Functional:
    """A `Functional`, or one made of what it stands for: a vector of weights on the coordinates, or a region."""
    if isinstance(given, Functional):
        return given
    if isinstance(given, str) or callable(given) or (isinstance(given, np.ndarray) and given.dtype.kind in "iu"):
        return Mean(space.basis, given)
    return Coordinate(given)


# Called where densities count, since not all functionals have some.
Densities = Callable[[], Representers | None]


def densities(functionals: Sequence[Functional], space: ParameterSpace) -> Representers | None:
    """Those of all functionals, side by side; None where one of them has none."""
    found = [each.representers(space) for each in functionals]
    known = [each for each in found if each is not None and each.loads is None]
    if len(known) < len(found):
        return None
    return Representers(hstack([each.means for each in known]), hstack([each.rest for each in known]))


@LinearForm
def _integral(v: Any, _: Any) -> Any:
    return v


def _elements(basis: Basis, region: Any) -> tuple[str, NDArray[np.intp]]:
    """Name and indices of the elements of a region."""
    mesh = basis.mesh
    if region is None:
        return "domain", np.arange(mesh.nelements)
    if isinstance(region, str):
        return region, region_elements(mesh, region)
    if callable(region):
        return _name_of(region, "region"), _picked(region, mesh.p[:, mesh.t].mean(axis=1), "region")
    return "region", _indices(region, mesh.nelements, "region")


def _facets(basis: Basis, boundary: Any) -> tuple[str, NDArray[np.intp]]:
    """Name and indices of the facets of a part of the boundary."""
    mesh = basis.mesh
    if boundary is None:
        return "boundary", mesh.boundary_facets()
    if isinstance(boundary, str):
        return boundary, boundary_facets(mesh, boundary)
    if callable(boundary):
        whole = mesh.boundary_facets()
        middles = mesh.p[:, mesh.facets[:, whole]].mean(axis=1)
        return _name_of(boundary, "boundary"), whole[_picked(boundary, middles, "boundary")]
    return "boundary", _indices(boundary, mesh.facets.shape[1], "boundary")


def _name_of(function: Callable[..., Any], otherwise: str) -> str:
    name = getattr(function, "__name__", otherwise)
    return otherwise if name == "<lambda>" else str(name)


def _picked(function: Callable[..., Any], middles: Array, what: str) -> NDArray[np.intp]:
    """Where a function of x is True, at least once."""
    found = np.asarray(function(middles))
    if found.shape != (middles.shape[1],) or found.dtype != bool:
        raise InputError(f"{what} gives {found.dtype} of shape {found.shape}; expected True or False per midpoint")
    return _not_empty(np.flatnonzero(found), what, _name_of(function, what))


def _indices(given: Any, count: int, what: str) -> NDArray[np.intp]:
    found = np.unique(np.asarray(given))
    if found.dtype.kind not in "iu" or found.min(initial=0) < 0 or found.max(initial=0) >= count:
        raise InputError(f"{what} has indices outside of 0 to {count - 1}; expected those of a mesh")
    return _not_empty(found, what, what)


def _not_empty(found: NDArray[np.intp], what: str, name: str) -> NDArray[np.intp]:
    if not found.size:
        kind = "element" if what == "region" else "facet"
        raise InputError(f"the {what} {name!r} has no {kind}; expected at least one")
    return found
