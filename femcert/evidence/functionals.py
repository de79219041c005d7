"""What may be asked of a parameter: means, values, moments, predictions. Each is linear, and fixed before the data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from skfem import Basis, LinearForm

from ..checks import Array, number, real_vector
from ..errors import InputError
from ..mesh.elements import degree, same_mesh
from ..mesh.geometry import region_elements
from ..problem.sensors import AverageSensors
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
        if space.part is None:
            return self.of_fields(space)
        return _on_span(space, np.where(space.part.chosen, self.on(space), 0.0))

    def on(self, space: ParameterSpace) -> Array:
        """The same for coordinates, ``B' w``."""
        return np.asarray(space.matrix.T @ self.of_fields(space))

    def value(self, space: ParameterSpace, parameter: Array) -> float:
        """``psi(q)`` of a dof vector."""
        return float(self.weights(space) @ parameter)


class _OnMesh(Functional):
    """One that integrates functions on a mesh."""

    def __init__(self, basis: Basis, name: str) -> None:
        degree(basis)
        self._mesh, self.name = basis.mesh, name

    def _basis(self, space: ParameterSpace) -> Basis:
        if space.basis is None or not same_mesh(space.basis.mesh, self._mesh):
            raise InputError(f"{self.name}: the functional was made on another mesh than the parameters")
        return space.basis


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

    def __init__(self, basis: Basis, region: Any = None, *, name: str | None = None) -> None:
        found, elements = _elements(basis, region)
        super().__init__(basis, name or found)
        self.elements = elements

    def of_fields(self, space: ParameterSpace) -> Array:
        """See `Functional.of_fields`."""
        whole = self._basis(space)
        part = Basis(whole.mesh, whole.elem, elements=self.elements, intorder=2 * max(degree(whole), 1))
        return np.asarray(_integral.assemble(part)) / float(np.sum(part.dx))


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
    """

    def __init__(
        self, basis: Basis, function: Callable[..., Any], *, region: Any = None, name: str = "moment"
    ) -> None:
        super().__init__(basis, name)
        if not callable(function):
            raise InputError(f"function is a {type(function).__name__}; expected a function of x")
        self.function, self.elements = function, _elements(basis, region)[1]

    def of_fields(self, space: ParameterSpace) -> Array:
        """See `Functional.of_fields`."""
        whole = self._basis(space)
        part = Basis(whole.mesh, whole.elem, elements=self.elements, intorder=2 * max(degree(whole), 1) + 2)
        values = np.broadcast_to(np.asarray(self.function(part.global_coordinates().value), dtype=float), part.dx.shape)
        return real_vector(np.asarray(LinearForm(lambda v, w: w["f"] * v).assemble(part, f=values)), whole.N, self.name)


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
    """

    def __init__(self, basis: Basis, point: Any, *, radius: float, name: str | None = None) -> None:
        self.point = np.atleast_1d(real_vector(np.atleast_1d(point), None, "point"))
        self.radius = number(radius, "radius", above=0.0)
        where = ", ".join(f"{x:.3g}" for x in self.point)
        super().__init__(basis, name or f"about ({where})")

    def of_fields(self, space: ParameterSpace) -> Array:
        """See `Functional.of_fields`."""
        whole = self._basis(space)
        if degree(whole) == 0:
            raise InputError("values of piecewise constants are their coordinates; expected a vector or a Mean")
        return AverageSensors(whole, self.point[None], radius=self.radius).matrix.toarray()[0]


class Prediction(Functional):
    """A measurement that was not made: ``row . q``, with `std` the noisy reading of it.

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
        middles = mesh.p[:, mesh.t].mean(axis=1)
        picked = np.asarray(region(middles))
        if picked.shape != (mesh.nelements,) or picked.dtype != bool:
            raise InputError(f"region gives {picked.dtype} of shape {picked.shape}; expected True or False per element")
        name, elements = getattr(region, "__name__", "region"), np.flatnonzero(picked)
        name = "region" if name == "<lambda>" else name
    else:
        elements, name = np.unique(np.asarray(region)), "region"
        if elements.dtype.kind not in "iu" or elements.min(initial=0) < 0 or elements.max(initial=0) >= mesh.nelements:
            raise InputError(f"region has indices outside of 0 to {mesh.nelements - 1}; expected those of elements")
    if not elements.size:
        raise InputError(f"the region {name!r} has no element; expected at least one")
    return name, elements
