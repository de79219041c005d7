"""Coefficients and boundary conditions of a case on its mesh: numbers, formulas, and tables of them by name.

A formula carries its key, and an error names it where a value is no number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from skfem import Basis, ElementVector, Mesh

from ..checks import known_keys, naming, number
from ..errors import InputError
from ..mesh.elements import lagrange
from ..mesh.geometry import boundary_facets, region_elements
from .expression import Expression, number_or_expression
from .keys import Table, checked_table, shown

CONDITIONS = ("dirichlet", "neumann", "robin")


def state_basis(mesh: Mesh, degree: int, *, vector: bool = False) -> Basis:
    """Lagrange elements of degree 1 or 2 on a mesh, for vectors of as many components as it has dimensions."""
    element = lagrange(mesh, degree)
    return Basis(mesh, ElementVector(element, mesh.dim()) if vector else element)


def vector_value(value: Any, key: str, components: int) -> Callable[[Any], Any]:
    """A function of x with a row for each component, from a list of numbers or formulas."""
    if not isinstance(value, list) or len(value) != components:
        raise InputError(f"{key} is {shown(value)}; expected a list of {components} numbers or formulas")
    parts = [scalar_value(part, f"{key}[{i}]") for i, part in enumerate(value)]
    return lambda x: np.stack([np.broadcast_to(part(x) if callable(part) else part, x.shape[1:]) for part in parts])


def scalar_value(value: Any, key: str, expected: str = "a number or a formula in x and y") -> Any:
    """A number, or a formula as a function of x."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)) or value == "":
        raise InputError(f"{key} is {shown(value)}; expected {expected}")
    made = number_or_expression(value, key)
    return made.as_function() if isinstance(made, Expression) else number(made, key)


def coefficient_value(value: Any, mesh: Mesh, key: str) -> Any:
    """A number, a formula, or a table of these on subdomains that cover the mesh."""
    if not isinstance(value, Mapping):
        return scalar_value(value, key, "a number, a formula in x and y, or a table of these by subdomain")
    covered = np.zeros(mesh.nelements, dtype=int)
    for region in value:
        with naming(key):
            covered[region_elements(mesh, region)] += 1
    if covered.max(initial=0) > 1 or not covered.all():
        missing = np.count_nonzero(covered == 0)
        came = f"leaves out {missing} of {mesh.nelements} elements" if missing else "has subdomains that overlap"
        raise InputError(f"{key} {came}; expected subdomains that cover the mesh once")
    return {region: scalar_value(part, f"{key}.{region}") for region, part in value.items()}


def boundary_values(section: Any, mesh: Mesh, problem: Table, *, vector: bool = False) -> dict[str, Any]:
    """The boundary conditions of a problem, of the kinds that it has; of vectors with a number for each component."""
    value_of = partial(_row, components=mesh.dim()) if vector else scalar_value
    known_keys(checked_table(section, "boundary"), CONDITIONS, "boundary")
    made: dict[str, Any] = {}
    for kind, given in section.items():
        key = f"boundary.{kind}"
        if kind not in problem.parameters:
            raise InputError(f"{key} is given; a problem of kind {problem.kind!r} has no such condition")
        if kind == "dirichlet" and not isinstance(given, Mapping):
            # Of all of the boundary that has no other condition.
            made[kind] = value_of(given, key, "a number or a formula, or a table of these by boundary")
            continue
        made[kind] = {}
        for name, value in checked_table(given, key).items():
            with naming(f"{key}.{name}"):
                boundary_facets(mesh, name)
            made[kind][name] = (_pair if kind == "robin" else value_of)(value, f"{key}.{name}")
    return made


def _row(value: Any, key: str, expected: str = "", *, components: int) -> Any:
    """A number for all components, or a list with one for each."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return number(value, key)
    return vector_value(value, key, components)


def _pair(pair: Any, key: str) -> tuple[Any, Any]:
    """The factor alpha >= 0 and the value g of ``a du/dn + alpha u = g``."""
    if not isinstance(pair, list) or len(pair) != 2:
        raise InputError(f"{key} is {shown(pair)}; expected a pair [alpha, g]")
    alpha, g = (scalar_value(part, f"{key}[{i}]") for i, part in enumerate(pair))
    if not callable(alpha):
        number(alpha, f"{key}[0]", least=0.0)
    return alpha, g
