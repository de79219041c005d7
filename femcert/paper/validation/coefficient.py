"""Conductivity ``a = exp(q)`` of ``-(a u')' = f`` from 30 values of u."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...checks import Array
from ...problem import EllipticCoefficient, SineSpace
from ...stability import Stability
from .grid import line_basis, spread_sensors
from .outcome import Scenario, scenario
from .setup import COEFFICIENT, COEFFICIENT_TRUTH


def source(x: Array) -> Array:
    """``f(x) = 1 + 0.5 sin(2 pi x)``."""
    return 1.0 + 0.5 * np.sin(2.0 * np.pi * x[0])


def problem() -> EllipticCoefficient:
    """P1 with the logarithm of the conductivity as the parameter."""
    basis = line_basis(COEFFICIENT.grid)
    return EllipticCoefficient(
        basis,
        parameters=SineSpace(basis, COEFFICIENT.modes, inner="euclidean"),
        sensors=spread_sensors(basis, COEFFICIENT.observations),
        source=source,
    )


def scenarios() -> list[Scenario]:
    """The one scenario of the paper; relative errors are those of ``exp(q)`` at the interior nodes."""
    model = problem()
    inside = model.free
    return [scenario(COEFFICIENT, model, COEFFICIENT_TRUTH, learned, measured=lambda q: np.exp(q[inside]))]


def learned(case: Scenario, rng: np.random.Generator) -> list[tuple[str, Array, Any]]:
    """Close to the truth; and shifted in all six modes."""
    return [
        ("learned good", case.moved(rng, COEFFICIENT.perturbation), None),
        ("shifted learned", case.shifted(), None),
    ]


def further_stability() -> list[tuple[str, Stability]]:
    """None: the mass enters only the known source, not the map from the conductivity to the data."""
    return []
