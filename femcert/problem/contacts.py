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
from scipy.sparse import block_diag, bmat, coo_matrix, csr_matrix, diags
from scipy.sparse.csgraph import connected_components
from skfem import Basis, BilinearForm, FacetBasis, asm

from ..checks import Array, frozen, real_array, real_vector
from ..errors import InputError, UncertifiedError
from ..linalg import Factorization
from ..mesh.assembly import diffusion_matrix
from ..mesh.geometry import boundary_facets

# Of the largest current of a pattern: how far its currents may be from summing up to zero.
BALANCE_TOLERANCE = 1e-9
# Of the largest singular value: patterns that depend on others to rounding.
DEPENDENT = 1e-10
Factors = Callable[..., Factorization]


@BilinearForm
def _contact(u: Any, v: Any, w: Any) -> Any:
    """(c u, v)"""
    return w["c"] * u * v


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
        if isinstance(names, str) or len(set(names)) < 2 or len(set(names)) < len(names):
            raise InputError(f"electrodes is {names!r}; expected at least two names of boundaries, each once")
        self.basis, self.names, self.conductivity = basis, tuple(names), conductivity
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

    def contact_matrix(self, elements: NDArray[np.bool_] | None = None) -> csr_matrix:
        """``sum_l 1/z_l ∫_l (u - U_l) (v - V_l)`` on u and U, over the facets of chosen elements."""
        kept = slice(None) if elements is None else elements[self.basis.mesh.f2t[0, self._facets]]
        facets, owner = self._facets[kept], self._owner[kept]
        N, L = int(self.basis.N), len(self.names)
        part = FacetBasis(self.basis.mesh, self.basis.elem, facets=facets, intorder=2 * self.basis.elem.maxdeg)
        weight = (1.0 / self.impedances[owner])[:, None] * np.ones_like(part.dx)
        shares = [np.sum(np.asarray(shape[0]) * weight * part.dx, axis=1) for shape in part.basis]
        dofs = part.element_dofs[: len(shares)]
        where = dofs.ravel(), np.tile(owner, len(shares))
        coupling = coo_matrix((-np.concatenate(shares), where), shape=(N, L)).tocsr()
        sizes = diags(np.bincount(owner, np.sum(weight * part.dx, axis=1), L))
        return bmat([[asm(_contact, part, c=weight), coupling], [coupling.T, sizes]], format="csr")

    def response(self, conductivity: Array, factorize: Factors) -> Response:
        """Potentials of unit currents through each electrode but the last, which is grounded."""
        A = diffusion_matrix(self.basis, conductivity)
        K = (block_diag([A, csr_matrix((len(self.names),) * 2)]) + self.contact_matrix()).tocsr()[:-1, :-1]
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
        """``C' R C`` as the data say, not symmetric; and a bound of its norm for data of norm one.

        Raises
        ------
        UncertifiedError
            The voltages do not determine the potentials of all electrodes.
        """
        C, sizes, right = self._decomposed
        Y = values.reshape(len(self._sinks), -1).T
        X, most = np.zeros((len(self.names), Y.shape[1])), 0.0
        for sink in np.unique(self._sinks):
            others = np.arange(len(self.names)) != sink
            M = (self.gains[:, None] * self.voltages)[others].T
            singular = np.linalg.svd(M, compute_uv=False)
            if len(M) < M.shape[1] or not singular[-1] > DEPENDENT * singular[0]:
                raise UncertifiedError(
                    "the voltages do not determine the potentials of all electrodes: too few of them"
                )
            patterns = np.flatnonzero(self._sinks == sink)
            X[np.ix_(others, patterns)] = np.linalg.lstsq(M, Y[:, patterns], rcond=None)[0]
            most = max(most, 1.0 / float(singular[-1]))
        return C.T @ (X @ right.T / sizes), most / float(sizes[-1])

    def background_form(self, factorize: Factors) -> Form:
        """``C' R C`` of the background, computed once."""
        if self._background is None:
            response, C = self.response(self.conductivity, factorize), self.driven[:-1]
            self._background = _form(C.T @ response.matrix @ C, response.factor)
        return self._background

    def shorted_form(self, elements: NDArray[np.bool_], factorize: Factors) -> Form:
        """That of a body which conducts perfectly outside of the elements: a constant potential on each part."""
        N, L, basis = int(self.basis.N), len(self.names), self.basis
        A = diffusion_matrix(basis, np.where(elements[:, None], self.conductivity, 0.0))
        K = block_diag([A, csr_matrix((L, L))]) + self.contact_matrix()
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
        return _form(load.T @ factor.solve(load), factor)

    def insulated_form(self, elements: NDArray[np.bool_], factorize: Factors) -> tuple[Form, Array]:
        """That of a body which does not conduct outside of the elements, and the currents for which it is finite.

        The currents, columns Z in the coordinates of `driven`, go through electrodes of the elements, and sum up to
        zero on each connected part; the form is ``Z' C' R C Z``.
        """
        N, L, C = int(self.basis.N), len(self.names), self.driven
        touching = elements[self.basis.mesh.f2t[0, self._facets]]
        owner = self._owner[touching]
        # Elements and electrodes that are connected share the label of a part.
        dofs = self.basis.element_dofs
        through = dofs[0, self.basis.mesh.f2t[0, self._facets[touching]]]
        pairs = [(np.tile(dofs[0, elements], len(dofs)), dofs[:, elements].ravel()), (through, N + owner)]
        ends = tuple(np.concatenate(side) for side in zip(*pairs, strict=True))
        label = connected_components(csr_matrix((np.ones(len(ends[0])), ends), shape=(N + L, N + L)), directed=False)[1]
        held = np.unique(owner)
        parts, first = np.unique(label[N + held], return_index=True)
        sums = (label[N + held] == parts[:, None]) @ C[held]
        _, sizes, right = np.linalg.svd(np.vstack([np.delete(C, held, axis=0), sums]))
        # Columns of C have norm one, so that what is small is rounding.
        Z = right[int(np.sum(sizes > DEPENDENT)) :].T
        if not Z.shape[1]:
            return Form(np.zeros((0, 0)), 0.0), Z
        A = diffusion_matrix(self.basis, np.where(elements[:, None], self.conductivity, 0.0))
        K = (block_diag([A, csr_matrix((L, L))]) + self.contact_matrix(elements)).tocsr()
        free = np.setdiff1d(np.flatnonzero(np.isin(label, parts)), N + held[first])
        name = "operator of the insulated part"
        factor = factorize(K[free][:, free], definite=True, name=name, to_rounding=True)
        load = np.vstack([np.zeros((N, Z.shape[1])), C @ Z])[free]
        return _form(load.T @ factor.solve(load), factor), Z


class Response(NamedTuple):
    """What unit currents do: potentials inside ``(N, L - 1)``, and R ``(L - 1, L - 1)`` of the electrodes."""

    factor: Factorization
    fields: Array
    matrix: Array


def _form(matrix: Array, factor: Factorization) -> Form:
    """The symmetric part; each entry loses as a solve does."""
    size = float(np.linalg.norm(matrix))
    return Form((matrix + matrix.T) / 2.0, factor.loss * size)


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
