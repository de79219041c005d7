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
from .sampled import read_truths

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
            space = Table.read(table.more[name], f"class.{name}", make)(parameters=space, folder=folder)
    return space


def _ball(
    parameters: ParameterSpace,
    folder: Path,
    *,
    radius: float | None = None,
    norm: str = "h1",
    length: float = 1.0,
    centre: Any = None,
    samples: Any = None,
    confidence: float | None = None,
) -> ParameterSpace:
    """`ParameterSpace.within_ball`; the centre is a number or a formula, the samples are a file of truths."""
    middle = None if centre is None else _dofs(parameters, centre, "class.ball.centre")
    learned = _learned(parameters, folder, "class.ball", "radius", radius, samples, confidence)
    return parameters.within_ball(radius, norm=norm, length=length, centre=middle, **learned)


def _remainder(
    parameters: ParameterSpace,
    folder: Path,
    *,
    size: float | None = None,
    norm: str | None = None,
    length: float = 1.0,
    samples: Any = None,
    confidence: float | None = None,
) -> ParameterSpace:
    """`ParameterSpace.with_remainder`; the samples are a file of truths."""
    learned = _learned(parameters, folder, "class.remainder", "size", size, samples, confidence)
    if learned and norm is not None:
        raise InputError("norm and class.remainder.samples are both given; expected one of them")
    return parameters.with_remainder(size, norm=norm, length=length, **learned)


def _learned(
    space: ParameterSpace, folder: Path, key: str, name: str, number: Any, samples: Any, confidence: float | None
) -> dict[str, Any]:
    """Samples and confidence for a set whose size they determine, nothing for one of a given size."""
    if (number is None) == (samples is None):
        came = f"{key}.{name} is missing" if samples is None else f"{name} and {key}.samples are both given"
        raise InputError(
            f"{came}; expected it, or {key}.samples" if samples is None else f"{came}; expected one of them"
        )
    if samples is None:
        if confidence is not None:
            raise InputError(f"confidence is given without {key}.samples; expected both")
        return {}
    level = {} if confidence is None else {"confidence": confidence}
    return {"samples": read_truths(folder, samples, space, f"{key}.samples").fields, **level}


def _bounds(parameters: ParameterSpace, folder: Path, *, lower: Any = None, upper: Any = None) -> ParameterSpace:
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
