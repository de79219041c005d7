"""The section ``class``: the admissible parameters."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skfem import Basis

from ...errors import InputError
from ...problem import (
    CoarseSpace,
    CosineSpace,
    EigenmodeSpace,
    FullSpace,
    FunctionSpace,
    RegionSpace,
    SineSpace,
)
from ...problem.space import ParameterSpace
from ..expression import Expression
from ..keys import at_key
from .equation import read_mesh

_MODES: dict[str, Any] = {"eigenmodes": EigenmodeSpace, "sine": SineSpace, "cosine": CosineSpace}


def build_space(section: Mapping[str, Any], basis: Basis, folder: Path) -> ParameterSpace:
    """The admissible class, within its ball where there is one."""
    options = {name: value for name, value in section.items() if name not in ("kind", "ball")}
    space = _of_kind(section["kind"], options, basis, folder)
    if "ball" not in section:
        return space
    ball = dict(section["ball"])
    return at_key("class.ball", lambda: space.within_ball(ball.pop("radius"), **ball))


def _of_kind(kind: str, options: dict[str, Any], basis: Basis, folder: Path) -> ParameterSpace:
    if kind in _MODES:
        modes = options.pop("modes")
        count = tuple(modes) if isinstance(modes, list) else modes
        try:
            return at_key("class", lambda: _MODES[kind](basis, count, **options), options)
        except InputError as error:
            # What is said of no other key is said of the number of modes.
            raise InputError(str(error).replace("class: ", "class.modes: ", 1)) from None
    if kind == "regions":
        regions = options.pop("regions", None)
        return at_key("class.regions", lambda: RegionSpace(basis, regions, **options))
    if kind == "coarse":
        coarse = read_mesh(options.pop("mesh"), folder, "class.mesh")
        return at_key("class", lambda: CoarseSpace(basis, coarse, **options))
    if kind == "functions":
        texts = enumerate(options.pop("functions"))
        made = [Expression(text, f"class.functions[{i}]").as_function() for i, text in texts]
        space = at_key("class", lambda: FunctionSpace(basis, made, **options))
        # It fails if they are linearly dependent; here, where the key is known.
        at_key("class.functions", lambda: space.root)
        return space
    return at_key("class", lambda: FullSpace(basis, **options))
