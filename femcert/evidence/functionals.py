"""What may be asked of a parameter: means, values, moments, predictions. Each is linear, and fixed before the data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, hstack
from skfem import Basis, FacetBasis, LinearForm

from ..checks import Array, number, real_vector
from ..errors import InputError
from ..mesh.elements import degree, field_degree, same_mesh
from ..mesh.geometry import measures
from ..mesh.pick import picked_elements, picked_facets
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

    def of_fields(self, space: ParameterSpace) -> Array:
        """See `Functional.of_fields`; of several unknowns it sees the one that is asked for."""
        return space.seen(self._of_class)

    @abstractmethod
    def _of_class(self, space: ParameterSpace) -> Array:
        """The weights of the dofs of one class."""

    def _basis(self, space: ParameterSpace) -> Basis:
        if space.facets is not None:
            raise InputError(f"{self.name}: the parameters live on a boundary; expected a Flux, its mean there")
        if space.basis is None or not same_mesh(space.basis.mesh, self._mesh):
            raise InputError(f"{self.name}: the functional was made on another mesh than the parameters")
        return space.basis

    def _scalar(self, whole: Basis) -> Basis:
        """The basis of the component that is asked for."""
        if is_vector(whole) and self.component is None:
            most = components(whole) - 1
            raise InputError(f"{self.name}: the parameters are vectors; expected component=0 to {most}")
        return scalar_basis(whole)

    def _of_component(self, whole: Basis, weights: Any) -> Array:
        """Weights on the dofs of a component, on those of the parameters."""
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
        found, elements = picked_elements(basis.mesh, region, name)
        super().__init__(basis, name or _named(found, component), component)
        self.elements = elements

    def _of_class(self, space: ParameterSpace) -> Array:
        whole = self._basis(space)
        one = self._scalar(whole)
        part = Basis(one.mesh, one.elem, elements=self.elements, intorder=2 * max(degree(one), 1))
        return self._of_component(whole, np.asarray(_integral.assemble(part)) / float(np.sum(part.dx)))

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
        self.function, self.elements = function, picked_elements(basis.mesh, region, name)[1]

    def _of_class(self, space: ParameterSpace) -> Array:
        whole = self._basis(space)
        one = self._scalar(whole)
        part = Basis(one.mesh, one.elem, elements=self.elements, intorder=2 * max(degree(one), 1) + 2)
        x = np.asarray(part.global_coordinates())
        values = np.broadcast_to(np.asarray(self.function(x), dtype=float), part.dx.shape)
        weights = np.asarray(LinearForm(lambda v, w: w["f"] * v).assemble(part, f=values))
        return self._of_component(whole, real_vector(weights, one.N, self.name))


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
        super().__init__(basis, name or _named(f"about ({where})", component), component)

    def _of_class(self, space: ParameterSpace) -> Array:
        return self._disc(space).matrix.toarray()[0]

    def representers(self, space: ParameterSpace) -> Representers | None:
        """Constant in the disc; None for vector parameters."""
        return self._disc(space).representers()

    def _disc(self, space: ParameterSpace) -> AverageSensors:
        whole = self._basis(space)
        self._scalar(whole)
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
        found, facets = picked_facets(basis.mesh, boundary, name)
        super().__init__(basis, name or _named(found, component), component)
        self.facets = facets

    def _of_class(self, space: ParameterSpace) -> Array:
        whole = self._basis(space) if space.facets is None else space.carrier
        if space.facets is not None:
            outside = len(np.setdiff1d(self.facets, space.facets))
            if outside or not same_mesh(whole.mesh, self._mesh):
                raise InputError(f"{self.name}: {outside} of its facets are not those that the parameters live on")
        one = self._scalar(whole)
        part = FacetBasis(one.mesh, one.elem, facets=self.facets, intorder=2 * max(degree(one), 1))
        weights = self._of_component(whole, _integral.assemble(part))
        return np.asarray(space.restrict(weights)) / float(np.sum(part.dx))


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
        home = space.asked
        return Mean(home.basis, given) if home.facets is None else Flux(home.carrier, given)
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


def _named(what: str, component: int | None) -> str:
    return what if component is None else f"{what}, component {component}"


@LinearForm
def _integral(v: Any, _: Any) -> Any:
    return v
