"""Finite-element fields at the points of a quadrature rule of any order, without a scikit-fem basis for each order."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from skfem import Basis
from skfem.quadrature import get_quadrature

from ..errors import InputError
from .checks import Array
from .lagrange import MESHES


class Sampler:
    """A quadrature rule on every element of a mesh of lines, triangles or quadrilaterals.

    Arrays have the shape ``(elements, points)``, vector fields ``(dimension, elements, points)``; the last axis has
    length 1 where nothing varies over an element (Jacobians of straight lines and triangles, gradients of P1).

    Parameters
    ----------
    order
        Polynomials of this degree on the reference element are integrated exactly (on quadrilaterals in each variable).

    Attributes
    ----------
    X, W
        Points ``(dimension, points)`` and weights on the reference element.
    """

    def __init__(self, mesh: Any, order: int) -> None:
        if type(mesh) not in MESHES:
            raise InputError(f"{type(mesh).__name__} is not supported; expected lines, triangles or quadrilaterals")
        self.mesh = mesh
        self.order = order
        self.X, self.W = get_quadrature(mesh.refdom, order)
        self._tables: dict[Any, tuple[Array, Array]] = {}

    @cached_property
    def jacobian(self) -> Array:
        """``dx_i / dX_j``, shape ``(dimension, dimension, elements, 1 or points)``."""
        corners = self.mesh.p[:, self.mesh.t]
        if self.mesh.t.shape[0] < 4:
            return np.moveaxis(corners[:, 1:] - corners[:, :1], 2, -1)[..., None]
        _, slopes = self.table(self.mesh.elem())
        return np.einsum("ick,cjq->ijkq", corners, slopes)

    @cached_property
    def signed_determinant(self) -> Array:
        """Of the Jacobian; negative where an element runs clockwise."""
        J = self.jacobian
        return J[0, 0] if len(J) == 1 else J[0, 0] * J[1, 1] - J[0, 1] * J[1, 0]

    @cached_property
    def determinant(self) -> Array:
        """Absolute value of the determinant of the Jacobian."""
        return np.abs(self.signed_determinant)

    @cached_property
    def inverse(self) -> Array:
        """``dX_i / dx_j``, shaped like the Jacobian."""
        J, d = self.jacobian, self.signed_determinant
        if len(J) == 1:
            return (1.0 / d)[None, None]
        return np.array([[J[1, 1] / d, -J[0, 1] / d], [-J[1, 0] / d, J[0, 0] / d]])

    @cached_property
    def dx(self) -> Array:
        """Quadrature weights on the elements, ``(elements, points)``."""
        return self.determinant * self.W

    @cached_property
    def x(self) -> Array:
        """Coordinates of the points, ``(dimension, elements, points)``."""
        corners = self.mesh.p[:, self.mesh.t]
        shapes, _ = self.table(self.mesh.elem())
        return np.array([axis.T @ shapes for axis in corners])

    def table(self, element: Any) -> tuple[Array, Array]:
        """Basis functions ``(functions, points)`` and reference gradients ``(functions, dimension, points)``."""
        key = type(element)
        if key not in self._tables:
            pairs = [element.lbasis(self.X, i) for i in range(_count(element))]
            values = np.array([np.broadcast_to(value, self.W.shape) for value, _ in pairs])
            shape = (len(self.X), self.W.size)
            slopes = np.array([np.broadcast_to(slope, shape) for _, slope in pairs], dtype=float)
            self._tables[key] = (values, slopes)
        return self._tables[key]

    def values(self, basis: Basis, dofs: Array) -> Array:
        """A finite-element function at the points."""
        phi, _ = self.table(basis.elem)
        return np.asarray(dofs[basis.element_dofs].T @ phi)

    def gradients(self, basis: Basis, dofs: Array) -> Array:
        """Its gradient."""
        _, slopes = self.table(basis.elem)
        if np.ptp(slopes, axis=2).max() == 0.0:
            slopes = slopes[:, :, :1]
        local = dofs[basis.element_dofs].T
        reference = [local @ slopes[:, j] for j in range(len(self.X))]
        return self.physical(np.array(reference))

    def physical(self, reference: Array) -> Array:
        """Gradients with respect to x from gradients with respect to X: ``J^-T g``."""
        B = self.inverse
        return np.array([sum(B[j, i] * reference[j] for j in range(len(B))) for i in range(len(B))])

    def moments(self, basis: Basis, source: Array, flux: Array) -> Array:
        """``int source phi_i + flux . grad phi_i`` for all basis functions, a dof vector."""
        local = self.local_moments(basis.elem, source, flux)
        return np.asarray(np.bincount(basis.element_dofs.ravel(), local.T.ravel(), minlength=basis.N), dtype=float)

    def local_moments(self, element: Any, source: Array, flux: Array) -> Array:
        """The same for each element, ``(elements, functions)``."""
        phi, slopes = self.table(element)
        B = self.inverse
        result = (source * self.dx) @ phi.T if source.shape[1] > 1 else source * (self.dx @ phi.T)
        constant = flux.shape[2] == 1 and B.shape[3] == 1
        for j in range(len(B)):
            along = sum(B[j, i] * flux[i] for i in range(len(B)))
            if constant:
                result += (along * self.determinant) * (slopes[:, j] @ self.W)
            else:
                result += (along * self.dx) @ slopes[:, j].T
        return result

    def integral(self, values: Array) -> Array:
        """Integral over each element."""
        if values.shape[1] == 1 and self.determinant.shape[1] == 1:
            return np.asarray(values[:, 0] * self.determinant[:, 0] * self.W.sum())
        return np.asarray(np.sum(values * self.dx, axis=1))


def _count(element: Any) -> int:
    return len(element.doflocs)


def polynomial_fit(sampler: Sampler, values: NDArray[Any], *, most: int) -> tuple[int, Array] | None:
    """The least degree (up to `most`) of polynomials on the reference element that match samples on all elements.

    Polynomials of total degree d on lines and triangles, of degree d in each variable on quadrilaterals.

    Returns
    -------
    degree, spread
        The degree, and on each element a bound of ``|f - mean| / |mean|`` (0 for degree 0); None if no degree fits.
    """
    size = float(np.abs(values).max(initial=0.0))
    if values.shape[1] == 1 or np.ptp(values, axis=1).max(initial=0.0) <= 1e-13 * size:
        return 0, np.zeros(len(values))
    for degree in range(1, most + 1):
        P = _centred_monomials(sampler, degree)
        if P.shape[0] >= sampler.W.size:
            return None
        coefficients = values @ np.linalg.pinv(P)
        if np.abs(coefficients @ P - values).max() <= 1e-11 * size:
            # |monomial| <= 1 on the reference element, and the first one is the constant.
            spread = np.abs(coefficients[:, 1:]).sum(axis=1)
            mean = np.abs(coefficients[:, 0])
            return degree, np.divide(spread, mean, out=np.full(len(values), np.inf), where=mean > 0.0)
    return None


def _centred_monomials(sampler: Sampler, degree: int) -> Array:
    X = sampler.X - sampler.X @ sampler.W[:, None] / sampler.W.sum()
    powers = np.stack(np.meshgrid(*[np.arange(degree + 1)] * len(X), indexing="ij"), axis=-1).reshape(-1, len(X))
    if sampler.mesh.t.shape[0] < 4:
        powers = powers[powers.sum(axis=1) <= degree]
    return np.array([np.prod(X ** p[:, None], axis=0) for p in powers])
