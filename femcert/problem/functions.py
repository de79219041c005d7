"""Classes of true functions, of which the columns of a space are only interpolants: sines, cosines, polynomials."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import exp, lgamma, log
from typing import Any, Protocol

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.sparse import csr_matrix
from skfem import Basis

from ..checks import Array
from ..errors import CoarseMeshError, UncertifiedError
from ..mesh.geometry import diameters
from ..mesh.sample import MOST_ORDER, Sampler
from .polynomial import declared_error, known_degree, unknown

# Taylor remainders below the first are rounding; above the second no rule integrates the functions.
SMALL_REMAINDER, MOST_REMAINDER = 1e-13, 1e-2
# Numbers in the arrays of a batch of elements, and in those of all functions at all points, if they are kept.
NUMBERS, KEPT = 4_000_000, 50_000_000


class SmoothFunctions(Protocol):
    """Functions of x that are close to polynomials on small elements."""

    def at(self, x: Array) -> Array:
        """Values at points ``(dimension, points)``: shape ``(functions, points)``."""

    def near_polynomials(self, size: float, radius: float, most: int) -> tuple[int, Array]:
        """A degree of at most `most`, and how far each function may be from polynomials of it on an element.

        The element has the diameter `size` and lies in a circle of this radius.
        """


@dataclass(frozen=True)
class Waves:
    """Functions whose n-th derivatives are at most ``steepness^n`` times their amplitudes: sines and cosines.

    Attributes
    ----------
    at
        ``(dimension, points) -> (functions, points)``.
    steepness
        The largest wave number.
    amplitudes
        The largest value of each function.
    """

    at: Callable[[Array], Array]
    steepness: float
    amplitudes: Array

    def near_polynomials(self, size: float, radius: float, most: int) -> tuple[int, Array]:
        """By the remainder of Taylor's formula."""
        degree, remainder = resolved_degree(self.steepness, size, radius, most)
        return degree, remainder * self.amplitudes


@dataclass(frozen=True)
class Declared:
    """Functions of the user, of which each says how far it is from which polynomial, as `Polynomial` does.

    Raises
    ------
    UncertifiedError
        Of one of them only samples are known.
    """

    functions: tuple[Any, ...]

    def __post_init__(self) -> None:
        for i, function in enumerate(self.functions):
            if known_degree(function) is None:
                raise UncertifiedError(
                    unknown(f"column functions[{i}] of the class", "a space of finite-element fields")
                )

    def at(self, x: Array) -> Array:
        """Values at points ``(dimension, points)``: shape ``(functions, points)``."""
        return np.array([np.broadcast_to(f(x) if callable(f) else f, x.shape[1:]) for f in self.functions])

    def near_polynomials(self, size: float, radius: float, most: int) -> tuple[int, Array]:
        """The declared degree and errors."""
        degree = max(known_degree(function) or 0 for function in self.functions)
        if degree > most:
            raise UncertifiedError(f"a function of the class is declared to have the degree {degree}; expected {most}")
        return degree, np.array([declared_error(function) for function in self.functions])


@dataclass(frozen=True)
class BoxModes:
    """Eigenfunctions of the Laplacian on a box that vanish on its boundary: under heat they just decay.

    Attributes
    ----------
    waves
        The functions.
    low, high
        Opposite corners of the box.
    eigenvalues
        ``lam`` with ``-Laplace phi = lam phi``.
    norms
        Of the functions, in L2 of the box.
    """

    waves: Waves
    low: Array
    high: Array
    eigenvalues: Array
    norms: Array


class FunctionClass:
    """``p = sum_j c_j phi_j`` with the functions phi_j themselves, integrated on a mesh with a known remainder.

    On an element inside a circle of radius rho, a mode of wave number s and amplitude A is within
    ``A (s rho)^(n+1) / (n+1)!`` of its Taylor polynomial of degree n; a declared polynomial is within its error of one.
    A rule with positive weights that is exact for the squares of such polynomials misses at most twice that, times
    ``|Omega|^1/2``, of an L2 norm.

    Attributes
    ----------
    functions, mesh
        As given.
    root
        Upper triangular R with ``‖p‖ = ‖R c‖`` (by quadrature).
    largest
        The largest absolute value of each function at the points.

    Parameters
    ----------
    functions
        phi_j, such as `Waves`.
    mesh
        Where they are integrated.
    interpolants
        Upper triangular R with ``‖B c‖_Q = ‖R c‖`` for the columns B of the space, which interpolate them.
    """

    def __init__(self, functions: SmoothFunctions, mesh: Any, interpolants: Array) -> None:
        self.functions, self.mesh, self._interpolants = functions, mesh, interpolants
        order, away = _order(mesh, functions)
        self.sampler = Sampler(mesh, order)
        k, dx = len(away), self.sampler.dx
        # Where all of them would fill the memory, values are computed anew when they are needed.
        self._kept: Array | None = self._sampled(slice(None)) if k * dx.size <= KEPT else None
        gram, self.largest = np.zeros((k, k)), np.zeros(k)
        for here in self._batches(k):
            values = self.values(here).reshape(k, -1)
            gram += (values * dx[here].ravel()) @ values.T
            self.largest = np.maximum(self.largest, np.abs(values).max(axis=1))
        self.root: Array = cholesky(gram)
        self._missed = 2.0 * away * float(np.sqrt(dx.sum()))

    def _batches(self, columns: int) -> Iterator[slice]:
        """All elements, so many at a time that arrays of so many columns at their points stay small."""
        elements, points = self.sampler.dx.shape
        step = max(NUMBERS // (points * columns), 1)
        return (slice(start, min(start + step, elements)) for start in range(0, elements, step))

    def _sampled(self, here: slice) -> Array:
        x = self.sampler.x[:, here]
        return np.asarray(self.functions.at(x.reshape(len(x), -1)).reshape(-1, *x.shape[1:]))

    def values(self, here: slice = slice(None)) -> Array:
        """``phi_j`` at the points of some elements, ``(functions, elements, points)``."""
        return self._sampled(here) if self._kept is None else self._kept[:, here]

    def missed(self, coefficients: Array) -> Array:
        """What quadrature may miss of ``‖q - sum_j c_j phi_j‖``, for a vector c or for each column."""
        return np.asarray(self._missed @ np.abs(coefficients))

    @property
    def orthonormal(self) -> Array:
        """``R^-1``: coordinates of orthonormal functions, a column for each."""
        return np.asarray(solve_triangular(self.root, np.eye(len(self.root))))

    @property
    def interpolation_norm(self) -> float:
        """An upper bound of the norm of an interpolant over that of its function."""
        unit = self.orthonormal
        missed = float(np.linalg.norm(self.missed(unit)))
        return float(np.linalg.norm(self._interpolants @ unit, 2)) / max(1.0 - missed, 0.5)

    def beyond(self, basis: Basis, dofs: Array, coefficients: Array) -> Array:
        """Samples of ``sum_j c_j phi_j - q`` for a finite-element function q of the mesh."""
        batches = self._batches(len(coefficients))
        sums = np.concatenate([np.tensordot(coefficients, self.values(here), axes=1) for here in batches])
        return np.asarray(sums - self.sampler.values(basis, dofs))

    def size(self, samples: Array) -> float:
        """L2 norm of a function given by its samples."""
        return float(np.sqrt(self.sampler.integral(samples**2).sum()))

    def distance(self, basis: Basis, dofs: Array, coefficients: Array) -> float:
        """An upper bound of ``‖q - sum_j c_j phi_j‖`` in L2."""
        return self.size(self.beyond(basis, dofs, coefficients)) + float(self.missed(coefficients))

    def beyond_block(self, basis: Basis, columns: Array, coordinates: Array, states: Basis) -> tuple[Array, Array]:
        """For ``g_j = sum_l c_lj phi_l - q_j``, many at once: ``(g_i, g_j)``, and ``(v_i, g_j)`` for functions v_i.

        Parameters
        ----------
        basis, columns
            ``q_j``, ``(dofs, k)``, finite-element functions of the mesh.
        coordinates
            ``c``, ``(functions, k)``.
        states
            The basis of the functions ``v_i``.
        """
        k = columns.shape[1]
        gram, moments = np.zeros((k, k)), np.zeros((states.N, k))
        table, test = (self.sampler.table(part.elem)[0].T for part in (basis, states))
        for here in self._batches(2 * k):
            root = np.sqrt(self.sampler.dx[here])[..., None]
            g = np.tensordot(self.values(here), coordinates, axes=(0, 0))
            g = root * (g - table @ columns[basis.element_dofs[:, here].T])
            local = (test.T @ (root * g)).reshape(-1, k)
            dofs, place = np.unique(states.element_dofs[:, here].T, return_inverse=True)
            gather = csr_matrix((np.ones(place.size), (place.ravel(), np.arange(place.size))))
            moments[dofs] += gather @ local
            flat = g.reshape(-1, k)
            gram += flat.T @ flat
        return gram, moments


def _order(mesh: Any, functions: SmoothFunctions) -> tuple[int, Array]:
    """An order, and the distances of the functions from polynomials of half of it."""
    corners, h = mesh.t.shape[0], float(diameters(mesh).max())
    # On quadrilaterals the Jacobian takes one degree.
    spare = 1 if corners == 4 else 0
    most = (MOST_ORDER[corners] - spare) // 2
    degree, away = functions.near_polynomials(h, radius_around(h, mesh.dim()), most)
    return max(2 * degree + spare, 6), away


def resolved_degree(steepness: float, h: float, radius: float, most: int) -> tuple[int, float]:
    """The least degree n (up to `most`) at which ``(s rho)^(n+1) / (n+1)!`` is rounding, and that remainder.

    Raises
    ------
    CoarseMeshError
        It is not even small: no rule integrates the modes on elements of size h.
    """
    reach = max(steepness * radius, 1e-300)
    for n in range(2, most + 1):
        size = (n + 1) * log(reach) - lgamma(n + 2)
        if size < log(SMALL_REMAINDER):
            break
    if not size <= log(MOST_REMAINDER):
        raise CoarseMeshError(
            f"not certified on this mesh, refine: a mode has a wavelength of {2.0 * np.pi / steepness:.2g}, which no "
            f"quadrature resolves on elements of size {h:.2g}; elements of size {1.0 / steepness:.2g} would do"
        )
    return n, exp(size)


def radius_around(diameter: float, dimension: int) -> float:
    """Of the circle around any set of a diameter (Jung); half of it on a line."""
    return diameter / 2.0 if dimension == 1 else diameter / float(np.sqrt(3.0))
