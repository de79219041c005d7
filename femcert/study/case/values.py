"""Numbers, formulas and tables of them, as coefficients and boundary conditions on a mesh.

A formula knows its key, and says it where its value is no number.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from skfem import Mesh

from ...checks import number
from ...errors import InputError
from ...mesh.geometry import boundary_facets, region_elements
from ...problem.boundary import Value
from ...problem.coefficients import Coefficient
from ..expression import Expression, number_or_expression
from ..keys import at_key


def scalar_value(value: Any, key: str) -> Any:
    """A number, or a formula as a function of x."""
    made = number_or_expression(value, key)
    return made.as_function() if isinstance(made, Expression) else number(made, key)


def coefficient_value(value: Any, mesh: Mesh, key: str) -> Coefficient:
    """A number, a formula, or a table of these on subdomains that cover the mesh."""
    if not isinstance(value, Mapping):
        return scalar_value(value, key)
    covered = np.zeros(mesh.nelements, dtype=int)
    for region in value:
        covered[at_key(key, partial(region_elements, mesh, region))] += 1
    if covered.max(initial=0) > 1 or not covered.all():
        missing = np.count_nonzero(covered == 0)
        came = f"leaves out {missing} of {mesh.nelements} elements" if missing else "has subdomains that overlap"
        raise InputError(f"{key} {came}; expected subdomains that cover the mesh once")
    return {region: scalar_value(part, f"{key}.{region}") for region, part in value.items()}


def boundary_values(section: Mapping[str, Any], mesh: Mesh) -> dict[str, Any]:
    """The options ``dirichlet``, ``neumann`` and ``robin`` of a problem, where they are given."""
    made: dict[str, Any] = {}
    for kind, given in section.items():
        if not isinstance(given, Mapping):
            made[kind] = scalar_value(given, f"boundary.{kind}")
            continue
        for name in given:
            at_key(f"boundary.{kind}.{name}", partial(boundary_facets, mesh, name))
        read = _pair if kind == "robin" else scalar_value
        made[kind] = {name: read(value, f"boundary.{kind}.{name}") for name, value in given.items()}
    return made


def _pair(pair: Any, key: str) -> tuple[Value, Value]:
    alpha, g = (scalar_value(part, f"{key}[{i}]") for i, part in enumerate(pair))
    if not callable(alpha):
        number(alpha, f"{key}[0]", least=0.0)
    return alpha, g
