"""Forms with their own bases: ``(form, basis)`` pairs, several of them, and one for each of several unknowns.

Wherever a problem takes a form, it takes a pair of a form and a basis of the state on some elements or facets, such
as ``(form, FacetBasis(mesh, element, facets=...))``, or a list of forms and pairs, which are summed. Where the
parameter is a product, the form of a load or of a derivative in the parameter is a list, or a mapping by name, with one
entry for each factor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, hstack, issparse
from skfem import Basis, BilinearForm, FacetBasis, LinearForm, asm
from skfem.assembly.basis import AbstractBasis

from ..checks import Array, kind_of, real_vector
from ..errors import InputError
from ..mesh.assembly import mass_form
from ..mesh.elements import mass_matrix, same_mesh
from .space import ParameterSpace


def listed_terms(given: Any, state: Basis, name: str) -> list[tuple[Any, Any]]:
    """Forms, or matrices, each with its basis of the state; None where none was given."""
    if isinstance(given, list):
        if not given:
            raise InputError(f"{name} is an empty list; expected at least one form")
        return [term for each in given for term in listed_terms(each, state, name)]
    if not isinstance(given, tuple):
        return [(given, None)]
    if len(given) != 2 or not isinstance(given[1], AbstractBasis):
        raise InputError(f"{name} is a tuple of {len(given)}; expected a pair (form, basis), or a list of them")
    where = given[1]
    if not same_mesh(where.mesh, state.mesh) or type(where.elem) is not type(state.elem):
        raise InputError(f"{name}: the basis of the pair is on another mesh or element than the state")
    return [given]


def bilinear(given: Any, state: Basis, name: str) -> Any:
    """The matrix of forms in two states."""
    return sum(_matrix(form, where or state, where or state, name) for form, where in listed_terms(given, state, name))


def linear(given: Any, state: Basis, name: str) -> Array:
    """The vector of forms; zero for None."""
    if given is None:
        return np.zeros(state.N)
    return np.asarray(sum(_vector(form, where or state, name) for form, where in listed_terms(given, state, name)))


def load_matrix(given: Any, space: ParameterSpace, state: Basis, name: str = "load") -> Any:
    """The matrix of forms in a parameter of the class and a state; None: ``(q, v)``, where the parameter lives."""
    if space.factors and not issparse(given):
        entries = by_factor(given, space)
        blocks = [load_matrix(part, factor, state, f"{name} of {key!r}") for key, factor, part in entries]
        return hstack(blocks, format="csr")
    terms = [(None, None)] if given is None else listed_terms(given, state, name)
    return sum(_load(form, where, space, state, name) for form, where in terms)


def by_factor(given: Any, space: ParameterSpace) -> list[tuple[str, ParameterSpace, Any]]:
    """What was given for each factor of a product: name, class, entry."""
    if given is None:
        given = [None] * len(space.factors)
    if isinstance(given, Mapping):
        if set(given) != set(space.factors):
            raise InputError(f"forms came for {sorted(given)}; expected one for each of {sorted(space.factors)}")
        return [(name, factor, given[name]) for name, (factor, _) in space.factors.items()]
    if not isinstance(given, list) or len(given) != len(space.factors):
        came = f"{len(given)} forms" if isinstance(given, list) else f"a {type(given).__name__}"
        expected = f"a list of {len(space.factors)}, one for each of {', '.join(space.factors)}"
        raise InputError(f"{came} came for a product of unknowns; expected {expected}")
    return [(name, factor, part) for (name, (factor, _)), part in zip(space.factors.items(), given, strict=True)]


def homes(space: ParameterSpace, where: Any, state: Basis, name: str) -> tuple[Any, Any]:
    """Bases of parameter and state with one quadrature: of a pair, or by default where the parameter lives."""
    if space.carrier is None:
        raise InputError(f"{name}: the parameters have no mesh for forms; expected a matrix")
    if where is None and space.facets is None:
        return load_bases(space.carrier, state)
    if where is None:
        elements = (space.carrier.elem, state.elem)
        order = 2 * max(element.maxdeg for element in elements)
        where = FacetBasis(state.mesh, state.elem, facets=space.facets, intorder=order)
    elif not lives_on(space, where):
        raise InputError(f"{name}: the parameters live on facets; expected a pair (form, FacetBasis) on some of these")
    return where.with_element(space.carrier.elem), where


def lives_on(space: ParameterSpace, where: Any) -> bool:
    """Whether the parameters are known wherever a basis integrates."""
    if space.facets is None:
        return space.carrier is not None
    return isinstance(where, FacetBasis) and bool(np.all(np.isin(where.find, space.facets)))


def load_bases(parameter: Basis, state: Basis) -> tuple[Basis, Basis]:
    """Bases with one quadrature, fine enough for the product of a parameter and a state."""
    if parameter is state:
        return state, state
    if parameter.elem.maxdeg > state.elem.maxdeg:
        return parameter, parameter.with_element(state.elem)
    return state.with_element(parameter.elem), state


def _load(form: Any, where: Any, space: ParameterSpace, state: Basis, name: str) -> Any:
    if issparse(form):
        return _matrix_of(form, (state.N, space.size), name)
    trial, test = homes(space, where, state, name)
    if form is None:
        form = mass_matrix(state) if trial is state else mass_form
    found = _matrix(form, trial, test, name)
    return csr_matrix(space.restrict(found.T.tocsr()).T)


def _matrix(form: Any, trial: Any, test: Any, name: str) -> Any:
    matrix = asm(form, trial, test) if isinstance(form, BilinearForm) else form
    if not issparse(matrix):
        raise InputError(f"{name} is {kind_of(form)}; expected a BilinearForm or a sparse matrix")
    return _matrix_of(matrix, (test.N, trial.N), name)


def _matrix_of(matrix: Any, shape: tuple[int, int], name: str) -> Any:
    if matrix.shape != shape:
        raise InputError(f"{name} has shape {matrix.shape}; expected {shape}")
    if np.iscomplexobj(matrix) or not np.all(np.isfinite(matrix.data)):
        raise InputError(f"{name} has complex, NaN or infinite entries; expected finite real numbers")
    return csr_matrix(matrix, dtype=np.float64)


def _vector(form: Any, basis: Any, name: str) -> Array:
    return real_vector(asm(form, basis) if isinstance(form, LinearForm) else form, basis.N, name)


@dataclass(frozen=True)
class Term:
    """A form of a nonlinear problem with its bases.

    Attributes
    ----------
    form
        As given.
    basis
        Of the state.
    unknowns
        For each parameter that is known there: its name, class, slice of the dofs and basis.
    trial
        The number of the parameter that the form is linear in, for a derivative in it.
    """

    form: Any
    basis: Any
    unknowns: tuple[tuple[str, ParameterSpace, slice, Any], ...]
    trial: int | None = None

    def parameters(self, q: Array) -> dict[str, Any]:
        """Those that are known there, at the quadrature points."""
        return {name: home.interpolate(space.extend(q[part])) for name, space, part, home in self.unknowns}

    def fields(self, u: Array, q: Array) -> dict[str, Any]:
        """State and parameters at the quadrature points."""
        return {"u": self.basis.interpolate(u), **self.parameters(q)}

    def vector(self, u: Array, q: Array) -> Any:
        """Of a linear form."""
        return asm(self.form, self.basis, **self.fields(u, q))

    def matrix(self, u: Array, q: Array) -> Any:
        """Of a bilinear form, in two states, or in a parameter and a state with columns for all of its dofs."""
        if self.trial is None:
            return asm(self.form, self.basis, **self.fields(u, q)).tocsr()
        _, space, part, home = self.unknowns[self.trial]
        block = asm(self.form, home, self.basis, **self.fields(u, q)).tocsr()
        block = csr_matrix(space.restrict(block.T.tocsr()).T)
        if block.shape[1] == q.size:
            return block
        left, right = (csr_matrix((block.shape[0], n)) for n in (part.start, q.size - part.stop))
        return hstack([left, block, right], format="csr")


def terms_of(given: Any, space: ParameterSpace, state: Basis, name: str, kind: Any) -> list[Term]:
    """The forms of a nonlinear problem, with what is known where they are integrated."""
    found = []
    for form, where in listed_terms(given, state, name):
        _check_kind(form, kind, name)
        found.append(Term(form, where or state, _known(space, where, state)))
    return found


def derivatives_of(given: Any, space: ParameterSpace, state: Basis, name: str) -> list[Term]:
    """The same for derivatives in the parameter, for each factor of a product its own."""
    if not space.factors:
        return _derivatives(given, "q", space, space, state, name)
    entries = by_factor(given, space)
    return [term for key, factor, part in entries for term in _derivatives(part, key, factor, space, state, name)]


def _derivatives(
    given: Any, key: str, factor: ParameterSpace, space: ParameterSpace, state: Basis, name: str
) -> list[Term]:
    found = []
    for form, where in listed_terms(given, state, name):
        _check_kind(form, BilinearForm, name)
        test = homes(factor, where, state, name)[1] if where is not None or factor.facets is not None else None
        known = _known(space, test, state)
        trial = [each[0] for each in known].index(key)
        found.append(Term(form, state if test is None else test, known, trial))
    return found


def _known(space: ParameterSpace, where: Any, state: Basis) -> tuple[tuple[str, ParameterSpace, slice, Any], ...]:
    """The unknowns that are known on a basis, by default that of the state, with their bases there."""
    parts = space.factors or {"q": (space, slice(0, space.size))}
    at = state if where is None else where
    return tuple(
        (name, each, part, at if each.carrier is at else at.with_element(each.carrier.elem))
        for name, (each, part) in parts.items()
        if lives_on(each, at)
    )


def _check_kind(form: Any, kind: Any, name: str) -> None:
    if not isinstance(form, kind):
        raise InputError(f"{name} is a {type(form).__name__}; expected a skfem {kind.__name__}")
