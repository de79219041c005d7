"""What a case admits as truth, and which regions it asks about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from skfem import Basis

from ..checks import Array, naming
from ..errors import InputError
from ..evidence import Functional, Mean, Value
from ..problem.space import ParameterSpace
from .conditions import scalar_value
from .expression import Expression
from .keys import Table, checked_table, checked_text, shown
from .kinds import read_mesh

# Tables inside of [class]: what bounds the truths of a class.
BOUNDING = ("ball", "remainder", "bounds")


def admissible(table: Table, basis: Basis, folder: Path) -> ParameterSpace:
    """The admissible class, with its ball, remainder and bounds where there are any."""
    values = dict(table.values)
    if "mesh" in values:
        file = checked_text(values["mesh"], "class.mesh", "the name of a mesh file")
        with naming("class.mesh"):
            values["mesh"] = read_mesh(folder, file=file)
    if isinstance(values.get("modes"), list):
        values["modes"] = tuple(values["modes"])
    space: ParameterSpace = table(values=values, basis=basis)
    for name, make in (("ball", _ball), ("remainder", _remainder), ("bounds", _bounds)):
        if name in table.more:
            space = Table.read(table.more[name], f"class.{name}", make)(parameters=space)
    return space


def _ball(
    parameters: ParameterSpace, *, radius: float, norm: str = "h1", length: float = 1.0, centre: Any = None
) -> ParameterSpace:
    """`ParameterSpace.within_ball`; the centre is a number or a formula."""
    middle = None if centre is None else _dofs(parameters, centre, "class.ball.centre")
    return parameters.within_ball(radius, norm=norm, length=length, centre=middle)


def _remainder(
    parameters: ParameterSpace, *, size: float, norm: str | None = None, length: float = 1.0
) -> ParameterSpace:
    """`ParameterSpace.with_remainder`."""
    return parameters.with_remainder(size, norm=norm, length=length)


def _bounds(parameters: ParameterSpace, *, lower: Any = None, upper: Any = None) -> ParameterSpace:
    """`ParameterSpace.within_bounds`; both are numbers or formulas."""
    ends = {"lower": lower, "upper": upper}
    if lower is None and upper is None:
        raise InputError("lower and class.bounds.upper are both missing; expected one of them at least")
    found = {name: _dofs(parameters, end, f"class.bounds.{name}") for name, end in ends.items() if end is not None}
    return parameters.within_bounds(**found)


def _dofs(space: ParameterSpace, value: Any, key: str) -> Array:
    """A number or a formula at the dofs of the parameter."""
    found = scalar_value(value, key)
    return np.asarray(np.broadcast_to(found(space.basis.doflocs) if callable(found) else found, (space.size,)))


def regions_of(
    parameters: ParameterSpace, *, names: Any = None, where: Any = None, points: Any = None, radius: float | None = None
) -> list[Functional]:
    """Functionals of the table ``regions``: means over parts of the mesh, and values smoothed over discs.

    Parameters
    ----------
    parameters
        The class.
    names
        Subdomains of the mesh.
    where
        Formulas by the name of a region: it has the elements in whose middle the formula is positive.
    points, radius
        Centres of discs, and their radius.
    """
    if (points is None) != (radius is None):
        raise InputError("points and regions.radius belong together; expected both or none")
    basis, found = parameters.basis, list[Functional]()
    for i, name in enumerate(_texts(names, "regions.names")):
        with naming(f"regions.names[{i}]"):
            found.append(Mean(basis, name))
    for name, text in checked_table({} if where is None else where, "regions.where").items():
        key = f"regions.where.{name}"
        inside = Expression(checked_text(text, key, "a formula in x and y"), key)
        with naming(key):
            found.append(Mean(basis, lambda x, inside=inside: inside(x) > 0.0, name=name))
    with naming("regions.points"):
        discs = [Value(basis, point, radius=radius or 0.0) for point in _list(points, "regions.points")]
        for disc in discs:
            # One outside of the mesh is refused here, where the key is known.
            disc.weights(parameters)
    found += discs
    if not found:
        raise InputError("regions is empty; expected names, where or points")
    return found


def _list(value: Any, key: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise InputError(f"{key} is {shown(value)}; expected a list")
    return value


def _texts(value: Any, key: str) -> list[str]:
    return [checked_text(text, f"{key}[{i}]", "the name of a subdomain") for i, text in enumerate(_list(value, key))]
