"""What the tables of a case file make: their keys are the arguments of these classes and functions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from skfem import Basis, Mesh

from ..certificate import (
    Dominance,
    ExactRadius,
    GuaranteedRadius,
    OperationalRadius,
    ResidualRadius,
    Rule,
    StochasticRadius,
)
from ..checks import count, naming, number
from ..errors import InputError
from ..mesh import load_mesh
from ..problem import (
    AverageSensors,
    BoundarySensors,
    Candidate,
    CoarseSpace,
    CosineSpace,
    EigenmodeSpace,
    EllipticCoefficient,
    EllipticSource,
    FullSpace,
    FunctionSpace,
    HeatInitial,
    PointSensors,
    Problem,
    RaySensors,
    RegionSensors,
    RegionSpace,
    SineSpace,
    Tomography,
    TraceSpace,
)
from ..problem.sensors import Sensors
from ..problem.space import ParameterSpace
from ..selection import GaussNewton, Tikhonov
from ..timing import stage
from .expression import Expression
from .keys import checked_text, shown
from .physics import elasticity, electrode_model, parabolic
from .sampled import calibrated, conformal, linear_map, operator

MOST_NAME = 80


def read_mesh(folder: Path, *, file: str) -> Mesh:
    """The mesh in a file, whose name is relative to the folder of the case."""
    with stage("mesh"):
        return load_mesh(folder / file)


def tomography(basis: Basis, *, parameters: ParameterSpace, sensors: Sensors) -> Tomography:
    """A problem whose rays are the sensors of the case."""
    if not isinstance(sensors, RaySensors):
        raise InputError("sensors.kind does not fit; an image is seen by 'rays' or 'segments'")
    names = ("rays",) if sensors.rays is not None else ("angles", "bins", "spacing", "rule")
    return Tomography(basis, parameters=parameters, **{name: getattr(sensors, name) for name in names})


def segments(basis: Basis, *, starts: Any, ends: Any) -> RaySensors:
    """`RaySensors` along given segments."""
    return RaySensors(basis, rays=(starts, ends))


def ray_sensors(
    basis: Basis, *, angles: Any, bins: int, spacing: float | None = None, rule: str = "exact"
) -> RaySensors:
    """`RaySensors`; a whole number of angles is spread evenly over half a turn."""
    if isinstance(angles, int):
        angles = (180.0 / count(angles, "angles") * np.arange(angles)).tolist()
    return RaySensors(basis, angles=angles, bins=bins, spacing=spacing, rule=rule)


def function_space(basis: Basis, functions: Any, *, inner: str = "l2") -> FunctionSpace:
    """The span of formulas, which must be linearly independent."""
    if not isinstance(functions, list) or not functions:
        raise InputError(f"functions is {shown(functions)}; expected a list of formulas in x and y")
    texts = [checked_text(text, f"class.functions[{i}]", "a formula in x and y") for i, text in enumerate(functions)]
    made = [Expression(text, f"class.functions[{i}]").as_function() for i, text in enumerate(texts)]
    space = FunctionSpace(basis, made, inner=inner)
    with naming("class.functions"):
        space.root  # noqa: B018  (dependent ones are refused here, where the key is known)
    return space


def trace_space(basis: Basis, *, boundary: str, inner: str = "l2") -> TraceSpace:
    """All traces on a named part of the boundary."""
    return TraceSpace(basis, boundary, inner=inner)


def candidate_of(
    problem: Problem,
    folder: Path,
    *,
    file: str,
    parameter: str = "parameter",
    state: str | None = None,
    name: str | None = None,
    tolerance: float | None = None,
    optimality: float | None = None,
    key: str = "candidate.file",
) -> Candidate:
    """The candidate from the file under a key; `optimality` is for a file that has none."""
    if name is not None and (len(name) > MOST_NAME or not name.isprintable()):
        expected = f"a name of at most {MOST_NAME} characters, without control characters"
        raise InputError(f"name is {shown(name)}; expected {expected}")
    with stage("candidate"), naming(key):
        made = Candidate.from_file(
            problem, folder / file, name=name, parameter=parameter, state=state, tolerance=tolerance
        )
    if optimality is None:
        return made
    if made.optimality is not None:
        raise InputError(f"optimality is given, and in {key} too; expected one of them")
    known = {"mesh": problem.mesh, "interpolation": made.interpolation}
    return Candidate(made.state, made.parameter, number(optimality, "optimality", least=0.0), made.name, **known)


PROBLEMS: dict[str, Callable[..., Problem]] = {
    "elliptic-source": EllipticSource,
    "elliptic-coefficient": EllipticCoefficient,
    "heat-initial": HeatInitial,
    "tomography": tomography,
    "parabolic": parabolic,
    "electrodes": electrode_model,
    "elasticity": elasticity,
}
CLASSES: dict[str, Callable[..., ParameterSpace]] = {
    "eigenmodes": EigenmodeSpace,
    "sine": SineSpace,
    "cosine": CosineSpace,
    "regions": RegionSpace,
    "coarse": CoarseSpace,
    "functions": function_space,
    "full": FullSpace,
    "trace": trace_space,
}
SENSORS: dict[str, Callable[..., Sensors]] = {
    "points": PointSensors,
    "averages": AverageSensors,
    "regions": RegionSensors,
    "boundary": BoundarySensors,
    "rays": ray_sensors,
    "segments": segments,
}
BASELINES: dict[str, Callable[..., Any]] = {"tikhonov": Tikhonov, "gauss-newton": GaussNewton}
RULES: dict[str, Callable[..., Rule]] = {
    "residual": ResidualRadius,
    "operational": OperationalRadius,
    "stochastic": StochasticRadius,
    "guaranteed": GuaranteedRadius,
    "exact": ExactRadius,
    "dominance": Dominance,
    "calibrated": calibrated,
    "conformal": conformal,
}
# What makes a candidate of data: rules that make trials need it, instead of the file of a finished one.
SOLVERS: dict[str, Callable[..., Any]] = {**BASELINES, "linear-map": linear_map, "operator": operator}
