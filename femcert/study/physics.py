"""Problems of case files whose forms are written here: diffusion in time, linear elasticity, electrodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from skfem import Basis, BilinearForm, LinearForm, asm
from skfem.helpers import ddot, dot, eye, grad, sym_grad, trace

from ..checks import Array, real_array
from ..errors import InputError
from ..problem import ElectrodeModel, LinearProblem, NonlinearProblem, ParabolicProblem, Problem
from ..problem.coefficients import Coefficient, at_quadrature
from ..problem.sensors import Sensors
from ..problem.space import ParameterSpace
from .conditions import scalar_value, vector_value
from .keys import check_choice, shown

# Kinds of problems whose states are vectors, and what their parameter may be.
VECTORS = frozenset({"elasticity"})
ELASTIC = ("force", "traction", "stiffness")


def parabolic(
    basis: Basis,
    *,
    parameters: ParameterSpace,
    sensors: Sensors,
    times: Any,
    steps: int,
    unknown: str = "initial",
    conductivity: Coefficient = 1.0,
    reaction: Coefficient = 0.0,
    capacity: Coefficient = 1.0,
    velocity: Any = None,
    source: Coefficient = 0.0,
    initial: Any = None,
    history: Any = None,
    source_history: Any = None,
    boundary_history: Any = None,
    scheme: str = "crank-nicolson",
    dirichlet: Any = None,
    neumann: Any = None,
    robin: Any = None,
) -> ParabolicProblem:
    """``capacity u_t - div(conductivity grad u) + velocity . grad u + reaction u = source source_history(t)``.

    The unknown is the initial value, or a source ``q(x) history(t)`` beside the known one.
    """
    check_choice(unknown, ("initial", "source"), "problem.unknown")
    a, c, f = (
        at_quadrature(value, basis, name, sign=sign)
        for value, name, sign in (
            (conductivity, "conductivity", "positive"),
            (reaction, "reaction", "nonnegative"),
            (source, "source", "any"),
        )
    )
    m = at_quadrature(capacity, basis, "capacity", sign="positive")
    v = None if velocity is None else _vectors(velocity, "problem.velocity", basis)

    def form(u: Any, w: Any, _: Any) -> Any:
        moved = 0.0 if v is None else dot(v, grad(u)) * w
        return a * dot(grad(u), grad(w)) + c * u * w + moved

    known, in_time = asm(LinearForm(lambda w, _: f * w), basis), _of_time(source_history, "problem.source_history")
    start = None if initial is None else scalar_value(initial, "problem.initial")
    return ParabolicProblem(
        basis,
        operator=BilinearForm(form),
        mass=BilinearForm(lambda u, w, _: m * u * w),
        parameters=parameters,
        sensors=sensors,
        times=times,
        steps=steps,
        scheme=scheme,
        unknown=unknown,
        history=_of_time(history, "problem.history"),
        source=known if in_time is None else lambda t: in_time(t) * known,
        initial=start,
        boundary_history=_of_time(boundary_history, "problem.boundary_history"),
        dirichlet=dirichlet,
        neumann=neumann,
        robin=robin,
        definite=v is None,
    )


def elasticity(
    basis: Basis,
    *,
    parameters: ParameterSpace,
    sensors: Sensors,
    young: Coefficient,
    poisson: float,
    plane: str = "strain",
    unknown: str = "force",
    load: Any = None,
    dirichlet: Any = None,
    neumann: Any = None,
) -> Problem:
    """``-div stress(u) = load``; unknown: a body force, a traction, or q where Young's modulus is ``young exp(q)``.

    Displacements and stresses are in the plane of the mesh, without strain or without stress across it.
    """
    check_choice(unknown, ELASTIC, "problem.unknown")
    check_choice(plane, ("strain", "stress"), "problem.plane")
    if not -1.0 < poisson < 0.5:
        raise InputError(f"poisson is {poisson}; expected a number above -1 and below 0.5")
    if (parameters.facets is not None) != (unknown == "traction"):
        expected = "class.kind = 'trace' for a traction, and another one else"
        raise InputError(f"unknown is {unknown!r}, which does not fit the class; expected {expected}")
    E = at_quadrature(young, basis, "young", sign="positive")
    ratio = poisson / (1.0 - poisson if plane == "stress" else 1.0 - 2.0 * poisson)

    def stress(u: Any) -> Any:
        strain = sym_grad(u)
        return E / (1.0 + poisson) * (strain + ratio * eye(trace(strain), len(strain)))

    given = None if load is None else _vectors(load, "problem.load", basis)
    where = {"parameters": parameters, "sensors": sensors, "dirichlet": dirichlet, "neumann": neumann, "definite": True}
    if unknown != "stiffness":
        known = None if given is None else LinearForm(lambda v, w: dot(given, v))
        operator = BilinearForm(lambda u, v, w: ddot(stress(u), sym_grad(v)))
        return LinearProblem(basis, operator=operator, source=known, **where)
    return NonlinearProblem(
        basis,
        equation=LinearForm(
            lambda v, w: np.exp(w["q"]) * ddot(stress(w["u"]), sym_grad(v)) - (0.0 if given is None else dot(given, v))
        ),
        state_derivative=BilinearForm(lambda u, v, w: np.exp(w["q"]) * ddot(stress(u), sym_grad(v))),
        parameter_derivative=BilinearForm(lambda q, v, w: q * np.exp(w["q"]) * ddot(stress(w["u"]), sym_grad(v))),
        linear_in_state=True,
        **where,
    )


def electrode_model(
    basis: Basis,
    *,
    parameters: ParameterSpace,
    electrodes: Any,
    impedances: Any,
    currents: Any = None,
    voltages: Any = None,
    gains: Any = None,
    conductivity: Coefficient = 1.0,
    transform: str = "exp",
) -> ElectrodeModel:
    """`ElectrodeModel`, with a row for each pattern of currents or voltages."""
    if not isinstance(electrodes, list) or not all(isinstance(name, str) for name in electrodes):
        raise InputError(f"electrodes is {shown(electrodes)}; expected a list of names of boundaries")
    patterns = {"currents": currents, "voltages": voltages}
    for name, rows in patterns.items():
        if rows is not None:
            table = real_array(rows, name)
            if table.ndim != 2 or table.shape[1] != len(electrodes):
                expected = f"rows of {len(electrodes)} numbers, one for each electrode"
                raise InputError(f"{name} has shape {table.shape}; expected {expected}")
            patterns[name] = table.T
    return ElectrodeModel(
        basis, electrodes=electrodes, impedances=impedances, gains=gains, parameters=parameters,
        conductivity=conductivity, transform=transform, **patterns,
    )  # fmt: skip


def _vectors(value: Any, key: str, basis: Basis) -> Array:
    """A row for each component at the quadrature points."""
    return np.asarray(vector_value(value, key, basis.mesh.dim())(np.asarray(basis.global_coordinates())))


def _of_time(value: Any, key: str) -> Callable[[float], float] | None:
    """Pairs of a time and a value, linear between them and constant outside."""
    if value is None:
        return None
    pairs = real_array(value, key)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.all(np.diff(pairs[:, 0]) > 0.0):
        raise InputError(f"{key} is {shown(value)}; expected pairs [time, value] with increasing times")
    return lambda t: float(np.interp(t, pairs[:, 0], pairs[:, 1]))
