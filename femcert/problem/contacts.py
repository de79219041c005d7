"""Electrodes on the boundary of a body: contacts, patterns of currents and voltages, and the forms they measure.

The complete electrode model: ``-div(sigma grad u) = 0``, on the electrode l ``u + z_l sigma du/dn = U_l`` and
``∫ sigma du/dn = I_l``, no current elsewhere. Its weak form for the potentials u inside and U of the electrodes is

    (sigma grad u, grad v) + sum_l 1/z_l ∫_l (u - U_l) (v - V_l) = sum_l I_l V_l.

It determines (u, U) up to a constant; the currents sum up to zero. ``U = R I`` is symmetric on such currents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_diag, coo_matrix, csr_matrix, diags, hstack
from scipy.sparse.csgraph import connected_components
from skfem import Basis, FacetBasis

from ..checks import Array, frozen, kind_of, real_array, real_vector
from ..errors import InputError, UncertifiedError
from ..linalg import Factorization
from ..mesh.assembly import diffusion_matrix
from ..mesh.geometry import boundary_facets

# Of the largest current of a pattern: how far its currents may be from summing up to zero.
BALANCE_TOLERANCE = 1e-9
# Of the largest singular value: patterns that depend on others to rounding.
DEPENDENT = 1e-10
Factors = Callable[..., Factorization]


class Form(NamedTuple):
    """A form on currents, ``matrix = C' R C``, on the columns of a basis; rounding may have moved its norm."""

    matrix: Array
    rounding: float


class Contacts:
    """Electrodes as named parts of the boundary, and what is driven and read through them.

    Attributes
    ----------
    conductivity
        Of the background, at the quadrature points of the basis.
    names, impedances
        Of the L electrodes.
    currents, voltages
        ``(L, K)`` and ``(L, M)``: a column for each pattern. All M voltages are read for each of the K currents.
    gains
        ``(L,)``: of the channels, on the potentials above that of the electrode where most of the current leaves.
    """

    def __init__(
        self,
        basis: Basis,
        names: Sequence[str],
        *,
        conductivity: Array,
        impedances: Any,
        currents: Any = None,
        voltages: Any = None,
        gains: Any = None,
    ) -> None:
        self.basis, self.names, self.conductivity = basis, tuple(names), conductivity
        for i, name in enumerate(self.names):
            if not isinstance(name, str):
                raise InputError(f"electrodes[{i}] is {kind_of(name)}; expected the name of a boundary of the mesh")
        if isinstance(names, str) or len(set(self.names)) < max(2, len(self.names)):
            raise InputError(f"electrodes is {names!r}; expected at least two names of boundaries, each once")
        self._background: Form | None = None
        L = len(self.names)
        facets = [boundary_facets(basis.mesh, name) for name in self.names]
        self._facets = np.concatenate(facets)
        self._owner = np.repeat(np.arange(L), [len(part) for part in facets])
        if np.any(basis.mesh.f2t[1, self._facets] >= 0):
            raise InputError("an electrode has facets inside the domain; expected parts of its boundary")
        if len(np.unique(self._facets)) < len(self._facets):
            raise InputError("two electrodes share facets; expected parts of the boundary that do not overlap")
        self.impedances = _per_electrode(impedances, L, "impedances")
        self.gains = _per_electrode(1.0 if gains is None else gains, L, "gains")
        neighbours = np.eye(L)[:, :-1] - np.eye(L)[:, 1:]
        self.currents = _patterns(neighbours if currents is None else currents, L, "currents")
        self.voltages = _patterns(neighbours if voltages is None else voltages, L, "voltages")
        unbalanced = np.abs(self.currents.sum(axis=0)) > BALANCE_TOLERANCE * np.abs(self.currents).max(axis=0)
        if unbalanced.any():
            raise InputError(f"currents: pattern {np.argmax(unbalanced)} does not sum up to zero; expected all to")
        self._sinks = np.argmin(self.currents, axis=0)

    @property
    def count(self) -> int:
        """How many data there are: K M."""
        return int(self.currents.shape[1] * self.voltages.shape[1])

    def _on_facets(self, kept: Any, dofs: NDArray[Any], size: int) -> csr_matrix:
        """``sum_l 1/z_l ∫_l (u - U_l) (v - V_l)`` on `size` dofs of u and on U, over some of the facets."""
        owner, basis = self._owner[kept], self.basis
        part = FacetBasis(basis.mesh, basis.elem, facets=self._facets[kept], intorder=2 * basis.elem.maxdeg)
        u = at_points(dofs, [np.broadcast_to(np.asarray(shape[0]), part.dx.shape) for shape in part.basis], size)
        U = at_points(owner[None], [np.ones(part.dx.shape)], len(self.names))
        difference = hstack([u, -U]).tocsr()
        return difference.T @ diags((part.dx / self.impedances[owner][:, None]).ravel()) @ difference

    def _operator(self, conductivity: Array) -> csr_matrix:
        """Of the whole body, on u and U."""
        A, L, N = diffusion_matrix(self.basis, conductivity), len(self.names), int(self.basis.N)
        dofs = self.basis.element_dofs[:, self.basis.mesh.f2t[0, self._facets]]
        return (block_diag([A, csr_matrix((L, L))]) + self._on_facets(slice(None), dofs, N)).tocsr()

    def response(self, conductivity: Array, factorize: Factors) -> Response:
        """Potentials of unit currents through each electrode but the last, which is grounded."""
        K = self._operator(conductivity)[:-1, :-1]
        factor = factorize(K, definite=True, name="operator of the electrodes", to_rounding=True)
        load = np.zeros((K.shape[0], len(self.names) - 1))
        load[self.basis.N :] = np.eye(len(self.names) - 1)
        found = factor.solve(load)
        return Response(factor, frozen(found[: self.basis.N]), frozen(found[self.basis.N :]))

    def potentials(self, matrix: Array) -> Array:
        """``R I`` for all patterns, ``(L, K, ...)``; R is ``(L - 1, L - 1, ...)``, the last electrode grounded."""
        others = np.moveaxis(np.tensordot(matrix, self.currents[:-1], axes=(1, 0)), -1, 1)
        return np.concatenate([others, np.zeros((1, *others.shape[1:]))])

    def read(self, potentials: Array) -> Array:
        """Data ``(K M, ...)`` of potentials ``(L, K, ...)``: those of the first current, of the second, and so on."""
        above = potentials - potentials[self._sinks, np.arange(len(self._sinks))]
        values = np.tensordot(self.gains[:, None] * self.voltages, above, axes=(0, 0))
        return np.moveaxis(values, 0, 1).reshape(self.count, *potentials.shape[2:])

    def pull(self, weights: Array) -> Array:
        """The transpose of `read` after `potentials`: for a column of weights on the data ``(L - 1, L - 1)``."""
        W = weights.reshape(len(self._sinks), self.voltages.shape[1], -1)
        on = np.einsum("lm,kmc->lkc", self.gains[:, None] * self.voltages, W)
        np.subtract.at(on, (self._sinks, np.arange(len(self._sinks))), on.sum(axis=0))
        return np.einsum("akc,bk->abc", on[:-1], self.currents[:-1])

    # Forms on currents, for what can be said of conductivities that are larger or smaller.

    @cached_property
    def _decomposed(self) -> tuple[Array, Array, Array]:
        left, sizes, right = np.linalg.svd(self.currents, full_matrices=False)
        kept = sizes > DEPENDENT * sizes[0]
        return left[:, kept], sizes[kept], right[kept]

    @property
    def driven(self) -> Array:
        """C: an orthonormal basis of the currents that are driven, ``(L, r)``."""
        return self._decomposed[0]

    def measured_form(self, values: Array) -> tuple[Array, float]:
        """``C' R C`` as the data say, not symmetric, ``(r, r, ...)``; and a bound of its norm for data of norm one.

        Raises
        ------
        UncertifiedError
            The voltages do not determine the potentials of all electrodes.
        """
        C, sizes, right = self._decomposed
        rest = values.shape[1:]
        Y = np.moveaxis(values.reshape(len(self._sinks), -1, *rest), 0, 1)
        X, most = np.zeros((len(self.names), len(self._sinks), *rest)), 0.0
        for sink in np.unique(self._sinks):
            others = np.arange(len(self.names)) != sink
            M = (self.gains[:, None] * self.voltages)[others].T
            singular = np.linalg.svd(M, compute_uv=False)
            if len(M) < M.shape[1] or not singular[-1] > DEPENDENT * singular[0]:
                raise UncertifiedError(
                    "the voltages do not determine the potentials of all electrodes: too few of them"
                )
            patterns = np.flatnonzero(self._sinks == sink)
            found = np.linalg.lstsq(M, Y[:, patterns].reshape(len(M), -1), rcond=None)[0]
            X[np.ix_(others, patterns)] = found.reshape(-1, len(patterns), *rest)
            most = max(most, 1.0 / float(singular[-1]))
        form = np.tensordot(C.T, np.einsum("lk...,rk->lr...", X, right / sizes[:, None]), axes=1)
        return form, most / float(sizes[-1])

    def background_form(self, factorize: Factors) -> Form:
        """``C' R C`` of the background, computed once."""
        if self._background is None:
            response, C = self.response(self.conductivity, factorize), self.driven[:-1]
            self._background = _form(C, response.matrix @ C, response.factor)
        return self._background

    def shorted_form(self, elements: NDArray[np.bool_], factorize: Factors) -> Form:
        """That of a body which conducts perfectly outside of the elements: a constant potential on each part."""
        N, L, basis = int(self.basis.N), len(self.names), self.basis
        K = self._operator(np.where(elements[:, None], self.conductivity, 0.0))
        label = _parts(basis.element_dofs[:, ~elements], N)
        inside = np.setdiff1d(np.arange(N), basis.element_dofs[:, ~elements])
        label[inside] = label.max() + 1 + np.arange(len(inside))
        merged = np.append(np.unique(label, return_inverse=True)[1].ravel(), N + np.arange(L))
        place = np.unique(merged, return_inverse=True)[1].ravel()
        T = csr_matrix((np.ones(N + L), (np.arange(N + L), place)))
        factor = factorize(
            (T.T @ K @ T).tocsr()[:-1, :-1], definite=True, name="operator of the shorted body", to_rounding=True
        )
        load = np.zeros((T.shape[1] - 1, self.driven.shape[1]))
        load[1 - L :] = self.driven[:-1]
        return _form(load, factor.solve(load), factor)

    def insulated_form(self, elements: NDArray[np.bool_], factorize: Factors) -> tuple[Form, Array]:
        """That of a body which does not conduct outside of the elements, and the currents for which it is finite.

        The currents, columns Z in the coordinates of `driven`, go through electrodes of the elements, and sum up to
        zero on each connected part; the form is ``Z' C' R C Z``.
        """
        basis, L, C = self.basis, len(self.names), self.driven
        touching = elements[basis.mesh.f2t[0, self._facets]]
        within, owner = basis.mesh.f2t[0, self._facets[touching]], self._owner[touching]
        # Parts that meet in a vertex are not connected there: each has its own dofs.
        label = _facet_parts(basis.mesh, elements)
        count = int(label.max()) + 1
        keys, broken = np.unique(label[elements] * int(basis.N) + basis.element_dofs[:, elements], return_inverse=True)
        dofs = np.zeros(basis.element_dofs.shape, dtype=np.int64)
        dofs[:, elements] = broken.reshape(-1, int(elements.sum()))
        n = len(keys)
        # An electrode connects the parts that it touches.
        graph = csr_matrix((np.ones(len(owner)), (label[within], count + owner)), shape=(count + L,) * 2)
        joined = connected_components(graph, directed=False)[1]
        held = np.unique(owner)
        parts, first = np.unique(joined[count + held], return_index=True)
        sums = (joined[count + held] == parts[:, None]) @ C[held]
        _, sizes, right = np.linalg.svd(np.vstack([np.delete(C, held, axis=0), sums]))
        # Columns of C have norm one, so that what is small is rounding.
        Z = right[int(np.sum(sizes > DEPENDENT)) :].T
        if not Z.shape[1]:
            return Form(np.zeros((0, 0)), 0.0), Z
        slopes = gradients(basis, dofs, n, elements)
        weights = diags((self.conductivity * basis.dx)[elements].ravel())
        A = sum(D.T @ weights @ D for D in slopes)
        K = (block_diag([A, csr_matrix((L, L))]) + self._on_facets(touching, dofs[:, within], n)).tocsr()
        inside = np.isin(joined[keys // int(basis.N)], parts)
        free = np.append(np.flatnonzero(inside), n + np.delete(held, first))
        name = "operator of the insulated part"
        factor = factorize(K[free][:, free], definite=True, name=name, to_rounding=True)
        load = np.vstack([np.zeros((n, Z.shape[1])), C @ Z])[free]
        return _form(load, factor.solve(load), factor), Z


class Response(NamedTuple):
    """What unit currents do: potentials inside ``(N, L - 1)``, and R ``(L - 1, L - 1)`` of the electrodes."""

    factor: Factorization
    fields: Array
    matrix: Array


def at_points(dofs: NDArray[Any], shapes: Sequence[Array], size: int) -> csr_matrix:
    """From `size` dofs to quadrature points: the values ``(cells, points)`` of each local shape, and its dofs."""
    cells, points = shapes[0].shape
    rows = np.tile(np.arange(cells * points), len(shapes))
    values = np.concatenate([np.ravel(shape) for shape in shapes])
    return coo_matrix((values, (rows, np.repeat(dofs, points, axis=1).ravel())), shape=(cells * points, size)).tocsr()


def gradients(basis: Basis, dofs: NDArray[Any], size: int, elements: Any = slice(None)) -> list[csr_matrix]:
    """From dofs to each component of the gradient at the quadrature points of some elements."""
    full = (basis.mesh.dim(), *basis.dx.shape)
    shapes = [np.broadcast_to(np.asarray(shape[0].grad), full)[:, elements] for shape in basis.basis]
    return [at_points(dofs[:, elements], [shape[d] for shape in shapes], size) for d in range(full[0])]


def _facet_parts(mesh: Any, elements: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The part of each of the elements, connected through facets; -1 for the others."""
    both = mesh.f2t[:, mesh.f2t[1] >= 0]
    both = both[:, elements[both].all(axis=0)]
    graph = csr_matrix((np.ones(both.shape[1]), (both[0], both[1])), shape=(mesh.nelements,) * 2)
    found = connected_components(graph, directed=False)[1]
    label = np.full(mesh.nelements, -1, dtype=np.int64)
    label[elements] = np.unique(found[elements], return_inverse=True)[1].ravel()
    return label


def _form(load: Array, states: Array, factor: Factorization) -> Form:
    """The symmetric part of ``load' states``; it loses as the solve does, relative to what its entries are sums of."""
    matrix = load.T @ states
    return Form((matrix + matrix.T) / 2.0, factor.loss * float(np.linalg.norm(np.abs(load).T @ np.abs(states))))


def _parts(dofs: NDArray[Any], N: int) -> NDArray[np.int64]:
    """The connected part of each dof, where the dofs of an element are connected."""
    ends = np.tile(dofs[0], len(dofs)), dofs.ravel()
    graph = csr_matrix((np.ones(dofs.size), ends), shape=(N, N))
    return np.asarray(connected_components(graph, directed=False)[1]).astype(np.int64)


def _per_electrode(value: Any, L: int, name: str) -> Array:
    given = real_array(value, name)
    found = np.full(L, float(given)) if given.ndim == 0 else real_vector(given, L, name)
    if not np.all(found > 0.0):
        raise InputError(f"{name} has the value {found.min():.4g}; expected positive numbers")
    return frozen(found)


def _patterns(value: Any, L: int, name: str) -> Array:
    found = real_array(value, name)
    if found.ndim != 2 or found.shape[0] != L or not found.shape[1]:
        raise InputError(f"{name} has shape {found.shape}; expected ({L}, patterns), a column for each")
    if not np.all(np.abs(found).max(axis=0) > 0.0):
        raise InputError(f"{name} has a pattern that is zero; expected none")
    return frozen(found)
