"""Sensors: linear functionals of the state, as the rows of a sparse matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags, identity, issparse
from scipy.spatial import cKDTree
from skfem import Basis, asm

from ..checks import Array, coordinates, freeze_sparse, number, real_array
from ..errors import InputError, UncertifiedError
from ..mesh.assembly import mass_form
from ..mesh.elements import check_field_basis, constant_basis
from ..mesh.geometry import diameters, is_affine, measures
from ..mesh.integrate import disc_averages, disc_matrix, disc_overlaps
from ..mesh.locate import Locator, interpolation_matrix
from ..mesh.sample import MOST_ORDER, Sampler
from ..mesh.vectors import is_vector, of_component, scalar_basis
from ..shown import Shown, of_basis
from .functions import radius_around, resolved_degree
from .local_spaces import region_indicators


@dataclass(frozen=True)
class PointLoads:
    """Point values on a line as functionals: ``v -> sum_j w_ji v(x_j)`` for sensor i.

    Attributes
    ----------
    points
        ``x_j``, ``(n,)``.
    weights
        ``w``, sparse ``(n, count)``.
    """

    points: Array
    weights: Any


@dataclass(frozen=True)
class Representers:
    """Sensors as functionals of functions: ``H_i v = (d_i, v) + point values``, as far as the mesh resolves them.

    On finite-element functions of the sensors' basis that is what the rows of the matrix give, to rounding.

    Attributes
    ----------
    means, rest
        Sparse ``(elements, count)``: means of the densities d_i on the elements, and ``‖d_i - mean‖²`` there.
    loads
        Point values, on a line only.
    """

    means: Any
    rest: Any
    loads: PointLoads | None = None


class Sensors(Shown):
    """Functionals ``y_i = (H u)_i`` given by the rows of `matrix`.

    Attributes
    ----------
    matrix
        CSR, ``(count, dofs)``.
    bounded
        Whether the functionals are bounded on H1, which continuous claims about maps in closed form (heat) need.
    basis
        The basis they were made for, or None for a bare matrix.
    """

    bounded = False

    def __init__(self, matrix: Any, basis: Basis | None = None) -> None:
        self.basis = basis
        if issparse(matrix):
            if np.iscomplexobj(matrix):
                raise InputError("the sensor matrix is complex; expected real numbers")
        else:
            matrix = real_array(matrix, "the sensor matrix")
            if matrix.ndim != 2:
                raise InputError(f"the sensor matrix has shape {matrix.shape}; expected (m, dofs)")
        H = csr_matrix(matrix, dtype=np.float64)
        if H.shape[0] < 1:
            raise InputError("there are no sensors; expected at least one")
        if not np.all(np.isfinite(H.data)):
            raise InputError("the sensor matrix has NaN or infinite entries")
        self.matrix = freeze_sparse(H)

    def summary(self) -> dict[str, str]:
        """How many, and of what."""
        made = f"a matrix for {self.matrix.shape[1]} dofs" if self.basis is None else of_basis(self.basis)
        return {"count": f"{self.count} of them", "read": made, "bounded": "on H1" if self.bounded else "not on H1"}

    @property
    def count(self) -> int:
        """Number of sensors m."""
        return int(self.matrix.shape[0])

    def representers(self) -> Representers | None:
        """The sensors as functionals bounded on H1; None where they are known by their matrix only."""
        return None

    def of_functions(self, functions_at: Callable[[Array], Array], steepness: float) -> tuple[Array, Array] | None:
        """What the sensors read of smooth functions themselves; None where they are known by their matrix only.

        The default integrates against densities that are constant on elements.

        Parameters
        ----------
        functions_at
            ``(dimension, points) -> (functions, points)``.
        steepness
            s: the n-th derivatives of a function are at most ``s^n`` times its largest value.

        Returns
        -------
        values, errors
            ``(count, functions)``, and ``(count,)``: how far they may be off for functions with values up to one.

        Raises
        ------
        CoarseMeshError
            The elements are so large for the functions that no rule integrates them.
        """
        found = self.representers()
        if found is None or self.basis is None or (found.rest.nnz and found.rest.data.any()):
            return None
        mesh = self.basis.mesh
        values = np.zeros((self.count, functions_at(mesh.p[:, :1]).shape[0]))
        errors = np.zeros(self.count)
        if found.means.nnz:
            degree, remainder = _resolved(mesh, steepness, mesh.t.shape[0])
            sampler = Sampler(mesh, degree + _spare(mesh.t.shape[0]))
            sampled = functions_at(sampler.x.reshape(mesh.dim(), -1)).reshape(-1, *sampler.dx.shape)
            values += found.means.T @ np.array([sampler.integral(f) for f in sampled]).T
            # A density that integrates to one makes an average.
            errors += 2.0 * remainder * np.asarray(abs(found.means).T @ measures(mesh))
        if found.loads is not None:
            values += found.loads.weights.T @ functions_at(found.loads.points[None]).T
        return values, errors

    def on(self, basis: Basis) -> Sensors | None:
        """The same sensors for states on another basis of the same domain; None where that is not known."""
        return None

    def read_at(self, basis: Basis) -> tuple[Array, Array]:
        """Points ``(dimension, n)`` and weights ``(count, n)`` with ``H_i u = sum_j w_ij u(x_j)`` for a function u.

        For a finite-element function on `basis`; of another function it is its interpolant that is read, except where
        the sensors are point values.
        """
        used = np.flatnonzero(abs(self.matrix).sum(axis=0))
        return basis.doflocs[:, used], self.matrix[:, used].toarray()

    def __call__(self, state: Any) -> Array:
        """Values of the sensors on a dof vector, or on columns."""
        u = real_array(state, "state")
        if u.ndim not in (1, 2) or u.shape[0] != self.matrix.shape[1]:
            raise InputError(f"state has shape {u.shape}; the sensors expect {self.matrix.shape[1]} dofs")
        return np.asarray(self.matrix @ u)


class PointSensors(Sensors):
    """Point values ``u(x_i)``.

    Bounded on H1 in one dimension only; in 2D use `AverageSensors` for a claim about the continuous problem.

    Parameters
    ----------
    points
        ``(m, dimension)``, a row per sensor; ``(m,)`` in 1D. scikit-fem's ``(dimension, m)`` is understood too, but a
        square array is read by rows.
    component
        Of a vector field: the one that is read; None: every one, all sensors of the first component, then of the next.
    """

    def __init__(self, basis: Basis, points: Any, *, component: int | None = None) -> None:
        check_field_basis(basis)
        self.component, scalar = component, scalar_basis(basis)
        self.points = sensor_points(basis, points)
        cells = _inside(Locator(basis.mesh), self.points)
        self.bounded = basis.mesh.dim() == 1
        rows = interpolation_matrix(scalar, self.points.T, cells)
        super().__init__(of_component(basis, rows, scalar, component), basis)

    def representers(self) -> Representers | None:
        """Point loads on a line; None in the plane, where point values are not bounded on H1, and of vector fields."""
        assert self.basis is not None
        if not self.bounded or is_vector(self.basis):
            return None
        none = csr_matrix((self.basis.mesh.nelements, self.count))
        return Representers(none, none, PointLoads(self.points[:, 0], identity(self.count, format="csr")))

    def of_functions(self, functions_at: Callable[[Array], Array], steepness: float) -> tuple[Array, Array] | None:
        """Their values at the points; None of vector fields."""
        if is_vector(self.basis):
            return None
        return functions_at(self.points.T).T, np.zeros(self.count)

    def on(self, basis: Basis) -> PointSensors:
        """At the same points."""
        return PointSensors(basis, self.points, component=self.component)

    def read_at(self, basis: Basis) -> tuple[Array, Array]:
        """The points themselves, for any function."""
        return self.points.T, np.eye(self.count)


class AverageSensors(Sensors):
    """Averages over discs (intervals in 1D) of the given radius about the points, clipped to the mesh.

    A disc is the regular polygon of the same area, integrated exactly, so the sensor does not depend on the mesh.

    Parameters
    ----------
    points, radius
        Centres, ``(m, dimension)``, and radius of the discs.
    component
        Of a vector field: the one that is read; None: every one, all sensors of the first component, then of the next.

    Examples
    --------
    The average of x + y over a disc is its value at the centre.

    >>> from skfem import Basis, ElementTriP1, MeshTri
    >>> basis = Basis(MeshTri().refined(3), ElementTriP1())
    >>> sensors = AverageSensors(basis, [[0.25, 0.5], [0.75, 0.5]], radius=0.1)
    >>> sensors(basis.doflocs.sum(axis=0)).round(3).tolist()
    [0.75, 1.25]
    """

    bounded = True

    def __init__(self, basis: Basis, points: Any, *, radius: float, component: int | None = None) -> None:
        check_field_basis(basis)
        self.component, scalar = component, scalar_basis(basis)
        self.points = sensor_points(basis, points)
        self.radius = number(radius, "radius", above=0.0)
        extent = float(np.ptp(basis.mesh.p, axis=1).max())
        if not 1e-9 * extent < self.radius < 10.0 * extent:
            raise InputError(f"radius is {self.radius:g} on a mesh of size {extent:g}; expected something between")
        locator = Locator(basis.mesh)
        _inside(locator, self.points)
        rows = disc_matrix(scalar, self.points.T, self.radius, index=locator.index)
        super().__init__(of_component(basis, rows, scalar, component), basis)
        total = np.asarray(rows.sum(axis=1)).ravel()
        if not np.allclose(total, 1.0, rtol=0.0, atol=1e-6):
            i = int(np.argmax(np.abs(total - 1.0)))
            where = self.points[i].tolist()
            raise InputError(f"the disc of sensor {i} at {where} is too small to be told from a point")

    def representers(self) -> Representers | None:
        """See `Sensors.representers`; made once."""
        return self._representers

    @cached_property
    def _representers(self) -> Representers | None:
        """Constant densities inside the discs, so that only elements on their edges have a rest; None of vector fields.

        Raises
        ------
        UncertifiedError
            The matrix does not integrate exactly: the elements are quadrilaterals that are no parallelograms.
        """
        assert self.basis is not None
        if is_vector(self.basis):
            return None
        mesh = self.basis.mesh
        if not is_affine(mesh):
            raise UncertifiedError("averages over discs are not exact on quadrilaterals that are no parallelograms")
        areas, covered = disc_overlaps(mesh, self.points.T, self.radius)
        height, area = 1.0 / covered, measures(mesh)
        parts = csr_matrix((diags(height) @ areas).T)
        means = csr_matrix(diags(1.0 / area) @ parts)
        # int d² = height int d, since d is either 0 or its height.
        rest = csr_matrix(parts @ diags(height) - means.multiply(parts))
        rest.data = np.maximum(rest.data, 0.0) + 1e-14 * height.max() ** 2 * area.max()
        return Representers(means, rest)

    def of_functions(self, functions_at: Callable[[Array], Array], steepness: float) -> tuple[Array, Array] | None:
        """Their averages over the discs, by a rule on every piece of a disc in an element; None of vector fields."""
        assert self.basis is not None
        if is_vector(self.basis):
            return None
        mesh = self.basis.mesh
        degree, remainder = _resolved(mesh, steepness, min(mesh.t.shape[0], 3))
        values = disc_averages(mesh, self.points.T, self.radius, functions_at, degree).T
        return values, np.full(self.count, 2.0 * remainder)

    def on(self, basis: Basis) -> AverageSensors:
        """Over the same discs."""
        return AverageSensors(basis, self.points, radius=self.radius, component=self.component)


class RegionSensors(Sensors):
    """Averages over regions: names of subdomains or arrays of element indices.

    Parameters
    ----------
    regions
        Where to average.
    component
        Of a vector field: the one that is read; None: every one, all sensors of the first component, then of the next.
    """

    bounded = True

    def __init__(
        self, basis: Basis, regions: Sequence[str | NDArray[np.int64]], *, component: int | None = None
    ) -> None:
        check_field_basis(basis)
        scalar = scalar_basis(basis)
        indicators = region_indicators(basis.mesh, regions)
        # Integrals of the basis functions over each element, then sums over the elements of each region.
        moments = asm(mass_form, scalar, constant_basis(scalar)).tocsr()
        areas = basis.dx.sum(axis=1)
        H = diags(1.0 / (indicators.T @ areas)) @ (indicators.T @ moments)
        super().__init__(of_component(basis, H, scalar, component), basis)
        _refuse_equal_rows(self.matrix)
        self._means = freeze_sparse(indicators @ diags(1.0 / (indicators.T @ areas)))

    def representers(self) -> Representers | None:
        """Densities that are constant on elements; None of vector fields."""
        if is_vector(self.basis):
            return None
        return Representers(self._means, csr_matrix(self._means.shape))


class MatrixSensors(Sensors):
    """The rows of a given matrix, dense or sparse, ``(m, dofs)``."""

    def __init__(self, matrix: Any) -> None:
        super().__init__(matrix)
        size = np.sqrt(np.asarray(self.matrix.multiply(self.matrix).sum(axis=1)).ravel())
        if not np.all(size > 0.0):
            raise InputError(f"sensor {int(np.argmin(size))} is zero; expected non-zero rows")
        _refuse_equal_rows(self.matrix)


def sensor_points(basis: Basis, points: Any) -> Array:
    """Sensor locations as ``(m, dimension)``, finite, not empty, no two at the same place."""
    dim = basis.mesh.dim()
    array = coordinates(points, "points")
    if array.ndim == 1 and dim == 1:
        array = array[:, None]
    if array.size == 0:
        raise InputError("points is empty; expected at least one sensor")
    if array.ndim == 2 and array.shape[1] != dim and array.shape[0] == dim:
        array = array.T
    if array.ndim != 2 or array.shape[1] != dim:
        raise InputError(f"points has shape {array.shape}; expected (m, {dim}), a row per sensor")
    extent = float(np.ptp(basis.mesh.p, axis=1).max())
    pairs = cKDTree(array).query_pairs(1e-12 * extent)
    if pairs:
        i, j = min(pairs)
        raise InputError(f"sensors {i} and {j} are both at {array[i].tolist()}; expected distinct points")
    return array


def _resolved(mesh: Any, steepness: float, corners: int) -> tuple[int, float]:
    """The degree of a rule on pieces with so many corners that integrates functions to a remainder, and that."""
    h = float(diameters(mesh).max())
    most = MOST_ORDER[corners] - _spare(corners)
    degree, remainder = resolved_degree(steepness, h, radius_around(h, mesh.dim()), most)
    # Two of the rules on triangles have negative weights.
    return degree + (corners == 3 and degree in (3, 7)), remainder


def _spare(corners: int) -> int:
    """The degree that the Jacobian of a quadrilateral takes."""
    return 1 if corners == 4 else 0


def _inside(locator: Locator, points: Array) -> NDArray[np.int64]:
    cells = locator.find(points.T)
    outside = np.flatnonzero(cells < 0)
    if len(outside):
        i = outside[0]
        raise InputError(
            f"sensor {i} at {points[i].tolist()} lies outside the mesh ({len(outside)} of {len(points)} do)"
        )
    return cells


def _refuse_equal_rows(matrix: csr_matrix) -> None:
    # Two random functionals separate distinct rows almost surely; only rows that agree there are compared.
    probe = matrix @ np.random.default_rng(0).standard_normal((matrix.shape[1], 2))
    order = np.lexsort(probe.T)
    for i, j in pairwise(order):
        if np.array_equal(probe[i], probe[j]) and abs(matrix[i] - matrix[j]).nnz == 0:
            raise InputError(f"sensors {min(i, j)} and {max(i, j)} have the same row; expected distinct ones")
