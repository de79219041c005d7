"""Initial value of the heat equation from 45 values of u at a later time."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...checks import Array
from ...problem import HeatInitial, SineSpace
from ...stability import Stability, stability
from .grid import decaying, line_basis, spread_sensors
from .outcome import Scenario, scenario
from .setup import (
    DIFFUSIVITY,
    HALLUCINATION,
    HEAT,
    HEAT_DECAY,
    HEAT_TIMES,
    HEAT_TRUTH_NORM,
)

# Times of the curve: from well before the first to well after the last time of the paper.
CURVE = np.linspace(0.0025, 0.24, 48)


def problem(time: float | Array, mass: str = "lumped") -> HeatInitial:
    """P1 in space, the exact exponential in time."""
    basis = line_basis(HEAT.grid)
    return HeatInitial(
        basis,
        parameters=SineSpace(basis, HEAT.modes, inner="euclidean"),
        sensors=spread_sensors(basis, HEAT.observations),
        times=time,
        diffusivity=DIFFUSIVITY,
        scheme="exact",
        mass=mass,
    )


def label(time: float) -> str:
    """Name of the scenario in the paper."""
    return f"T={time:.2f}"


def scenarios() -> list[Scenario]:
    """One for each observation time."""
    truth = decaying(HEAT.modes, HEAT_DECAY, HEAT_TRUTH_NORM)
    return [
        scenario(HEAT, problem(time), truth, learned, name=label(time), number=HEAT.first + i)
        for i, time in enumerate(HEAT_TIMES)
    ]


def learned(case: Scenario, rng: np.random.Generator) -> list[tuple[str, Array, Any]]:
    """Close to the truth; the same with a high frequency that the data hardly see; shifted in four modes."""
    good = case.moved(rng, HEAT.perturbation)
    amplitude, frequency = HALLUCINATION
    x = case.problem.basis.doflocs[0]
    return [
        ("learned good", good, None),
        ("hallucinated high freq.", good + amplitude * np.sin(frequency * np.pi * x), None),
        ("shifted learned", case.shifted(), None),
    ]


def further_stability() -> list[tuple[str, Stability]]:
    """The consistent mass, which the paper does not have."""
    return [(f"{label(time)}, consistent mass", stability(problem(time, "consistent"))) for time in HEAT_TIMES]


def stability_curve() -> tuple[Array, Array]:
    """Times and stability constants between and around the three times of the paper.

    One problem observed at all times: each time's block of rows is the forward matrix of that time alone.
    """
    model = problem(CURVE)
    blocks = model.forward_matrix().reshape(len(CURVE), HEAT.observations, HEAT.modes)
    # The basis is orthonormal, so coordinates have the norm of the parameter.
    sigma_min = [np.linalg.svd(block, compute_uv=False)[-1] for block in blocks]
    return CURVE, 1.0 / np.array(sigma_min)
