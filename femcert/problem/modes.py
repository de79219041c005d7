"""Global modes: sines, cosines, and the Laplace eigenmodes of the domain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from skfem import Basis

from ..checks import Array, count, real_array
from ..errors import InputError
from ..linalg import canonical_eigenpairs
from ..mesh.assembly import stiffness_matrix
from ..mesh.elements import check_state_basis, mass_matrix
from .functions import BoxModes, FunctionClass, Waves
from .space import ParameterSpace

Box = Sequence[Sequence[float]]


class _ProductSpace(ParameterSpace):
    """Products of one-dimensional modes of a box, with columns of unit norm."""

    _first: int
    _mode: Callable[..., Any]

    def __init__(
        self, basis: Basis, k: int | tuple[int, int], *, inner: str = "l2", box: Box | None = None
    ) -> None:
        x = check_state_basis(basis).doflocs
        # Here already: tables of modes that no space can hold may not fit in memory.
        dimension = prod(count(n, "k") for n in (k if isinstance(k, tuple) else (k,)))
        if dimension > basis.N:
            raise InputError(f"a space of dimension {dimension} on {basis.N} dofs; expected 1 to {basis.N}")
        self.low, self.high = _limits(basis, box)
        self.frequencies = _frequencies(k, self.lengths, self._first)
        modes = self._modes(x)
        super().__init__(basis, _unit_columns(basis, modes.T, inner), inner=inner)
        # The columns are the modes times these.
        self._scales = np.einsum("ij,ji->i", modes, self.matrix) / np.einsum("ij,ij->i", modes, modes)

    def _modes(self, x: Array) -> Array:
        s = (x - self.low[:, None]) / self.lengths[:, None]
        result = np.ones((self.frequencies.shape[1], x.shape[1]))
        for frequencies, along in zip(self.frequencies, s, strict=True):
            # Many modes share the frequency along an axis.
            different, index = np.unique(frequencies, return_inverse=True)
            result *= type(self)._mode(np.pi * different[:, None] * along)[index]
        return result

    def functions_at(self, x: Array) -> Array:
        """The functions that the columns interpolate, at points ``(dimension, points)``: shape ``(modes, points)``."""
        return self._scales[:, None] * self._modes(x)

    @property
    def waves(self) -> Waves:
        """The functions that the columns interpolate."""
        return Waves(self.functions_at, self.steepness, self.amplitudes)

    def functions_on(self, mesh: Any) -> FunctionClass | None:
        """The modes themselves, where the norm is that of L2."""
        return FunctionClass(self.waves, mesh, self.root) if self.inner == "l2" else None

    @property
    def lengths(self) -> Array:
        """Sides of the box."""
        return self.high - self.low

    @property
    def amplitudes(self) -> Array:
        """The largest values of the functions."""
        return np.abs(self._scales)

    @property
    def steepness(self) -> float:
        """The largest wave number: the n-th derivatives are at most its n-th power times the function's amplitude."""
        return float(np.sqrt(np.sum((np.pi * self.frequencies / self.lengths[:, None]) ** 2, axis=0)).max())


class SineSpace(_ProductSpace):
    """The first `k` modes ``sin(j pi s)`` of a box (in 2D products), columns of unit norm in `inner`.

    Parameters
    ----------
    k
        Number of modes, ordered by frequency; in 2D also a pair ``(k1, k2)`` for all products.
    box
        ``[[low, high], ...]`` per dimension; default: the bounding box of the mesh.
    """

    _first = 1
    _mode = np.sin

    def dirichlet_modes(self) -> BoxModes | None:
        """The sines, where the norm is that of L2."""
        if self.inner != "l2":
            return None
        squares = np.sum((np.pi * self.frequencies / self.lengths[:, None]) ** 2, axis=0)
        norms = self.amplitudes * np.sqrt(np.prod(self.lengths / 2.0))
        return BoxModes(self.waves, self.low, self.high, squares, norms)


class CosineSpace(_ProductSpace):
    """The first `k` modes ``cos(j pi s)``, ``j = 0, 1, ...``, of a box; otherwise like `SineSpace`."""

    _first = 0
    _mode = np.cos


class EigenmodeSpace(ParameterSpace):
    """The first `k` Laplace eigenmodes of the domain, from a sparse eigensolver, residual-checked.

    The sign of a mode and the basis of a multiple eigenvalue are not what the eigensolver happens to return: they are
    fixed by the constant and by waves across the domain (`femcert.linalg.eigen`), also where the first `k` modes
    are only a part of the basis. So the class and its coordinates do not depend on machine and backend. Eigenvalues
    count as one where neighbours are closer than ``(r / lam)^1/2``, relatively, with their rounding error r (some 1e-6
    on 1e4 dofs); each mode is an eigenmode up to that, and the same on every machine up to that.

    Parameters
    ----------
    boundary
        ``"dirichlet"`` (zero on the whole boundary) or ``"neumann"``.

    Attributes
    ----------
    eigenvalues
        Discrete eigenvalues, ascending; by conformity each is an upper bound of the continuous one.

    Examples
    --------
    Those of the unit square are pi² (i² + j²); these are from above, by one to three per cent.

    >>> from skfem import Basis, ElementTriP1, MeshTri
    >>> space = EigenmodeSpace(Basis(MeshTri().refined(4), ElementTriP1()), 3)
    >>> space.dimension, (space.eigenvalues / 9.8696).round(2).tolist()
    (3, [2.02, 5.08, 5.13])
    """

    def __init__(self, basis: Basis, k: int, *, boundary: str = "dirichlet", inner: str = "l2") -> None:
        check_state_basis(basis)
        if boundary not in ("dirichlet", "neumann"):
            raise InputError(f"boundary is {boundary!r}; expected 'dirichlet' or 'neumann'")
        K, M = stiffness_matrix(basis), mass_matrix(basis)
        free = np.arange(basis.N)
        if boundary == "dirichlet":
            free = np.setdiff1d(free, basis.get_dofs(facets=basis.mesh.boundary_facets()).flatten())
        if count(k, "k") > len(free):
            raise InputError(f"k is {k}, but the mesh has {len(free)} free dofs; refine it or take fewer modes")
        low, high = _limits(basis, None)
        x, size = basis.doflocs[:, free] - low[:, None], float(np.linalg.norm(high - low))
        self.eigenvalues, vectors = canonical_eigenpairs(
            K[free][:, free], M[free][:, free], k, lambda value, count: _waves(x, size, value, 2 * count + 6)
        )
        matrix = np.zeros((basis.N, k))
        matrix[free] = vectors
        super().__init__(basis, _unit_columns(basis, matrix, inner), inner=inner)


def _waves(x: Array, size: float, value: float, number: int) -> Array:
    """The constant and plane waves about as long as the modes of an eigenvalue, in irregular directions.

    Shape ``(points, number)``, for points from a corner of a domain of this size; they do not depend on the mesh, nor
    on the unit of length.
    """
    # With a part that tells directions apart for the eigenvalue zero too.
    steepness = np.sqrt(max(value, 0.0) + 1.0 / size**2)
    j = np.arange(1.0, number)
    directions = np.cos(np.outer(j, np.sqrt([2.0, 3.0, 5.0][: len(x)])))
    waves = np.cos(steepness * (directions @ x) + np.sqrt(7.0) * j[:, None])
    return np.vstack([np.ones(x.shape[1]), waves]).T


def _limits(basis: Basis, box: Box | None) -> tuple[Array, Array]:
    if box is None:
        return basis.mesh.p.min(axis=1), basis.mesh.p.max(axis=1)
    limits = real_array(box, "box")
    if limits.shape != (basis.mesh.dim(), 2) or not np.all(limits[:, 0] < limits[:, 1]):
        raise InputError(f"box is {limits.tolist()}; expected {basis.mesh.dim()} pairs [low, high]")
    return limits[:, 0], limits[:, 1]


def _frequencies(k: int | tuple[int, int], lengths: Array, first: int) -> Array:
    """Mode numbers, shape ``(dimension, modes)``, lowest frequency first."""
    dimension = len(lengths)
    if isinstance(k, tuple):
        if len(k) != dimension:
            raise InputError(f"k is {k}; expected {dimension} numbers or one")
        ranges = [np.arange(first, first + count(n, "k")) for n in k]
        return np.array(np.meshgrid(*ranges, indexing="ij"), dtype=float).reshape(dimension, -1)
    count(k, "k")
    # A box of the k lowest frequencies holds at most k mode numbers in each direction, and about
    # sqrt(k) times the aspect ratio of it are enough.
    most = k if dimension == 1 else min(k, 2 + 4 * int(np.ceil(np.sqrt(k) * lengths.max() / lengths.min())))
    ranges = [np.arange(first, first + most)] * dimension
    grid = np.array(np.meshgrid(*ranges, indexing="ij"), dtype=float).reshape(dimension, -1)
    # Relative to the longest side, so that the rounding that makes ties exact does not depend on the unit of length.
    squares = np.sum((grid * (lengths.max() / lengths)[:, None]) ** 2, axis=0)
    order = np.lexsort((*grid[::-1], np.round(squares, 6)))
    return grid[:, order[:k]]


def _unit_columns(basis: Basis, matrix: Array, inner: str) -> Array:
    if inner == "l2":
        size = np.sqrt(np.einsum("ij,ij->j", matrix, mass_matrix(basis) @ matrix))
    else:
        size = np.linalg.norm(matrix, axis=0)
    if not np.all(size > 1e-12 * size.max()):
        raise InputError(f"mode {int(np.argmin(size)) + 1} vanishes at all nodes; refine the mesh or take fewer modes")
    return matrix / size
