"""Source of the Poisson equation ``-u'' = q`` from 35 values of u."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...checks import Array
from ...problem import EllipticSource, SineSpace
from ...stability import Stability, stability
from .grid import decaying, line_basis, spread_sensors
from .outcome import Scenario, scenario
from .setup import POISSON, POISSON_DECAY, POISSON_TRUTH_NORM, UNFINISHED_PERTURBATION, UNFINISHED_STATE


def problem(mass: str) -> EllipticSource:
    """P1 with the lumped (the paper's finite differences) or the consistent mass."""
    basis = line_basis(POISSON.grid)
    return EllipticSource(
        basis,
        parameters=SineSpace(basis, POISSON.modes, inner="euclidean"),
        sensors=spread_sensors(basis, POISSON.observations),
        mass=mass,
    )


def scenarios() -> list[Scenario]:
    """The one scenario of the paper."""
    truth = decaying(POISSON.modes, POISSON_DECAY, POISSON_TRUTH_NORM)
    return [scenario(POISSON, problem("lumped"), truth, learned)]


def learned(case: Scenario, rng: np.random.Generator) -> list[tuple[str, Array, Any]]:
    """Close to the truth; shifted in three modes; and a state that does not solve its own equation."""
    good = case.moved(rng, POISSON.perturbation)
    rough = case.moved(rng, UNFINISHED_PERTURBATION)
    amplitude, frequency = UNFINISHED_STATE
    x = case.problem.basis.doflocs[0]
    inconsistent = case.problem.solve(rough) + amplitude * np.sin(frequency * np.pi * x)
    return [
        ("learned good", good, None),
        ("shifted learned", case.shifted(), None),
        ("unfinished PINN", rough, inconsistent),
    ]


def further_stability() -> list[tuple[str, Stability]]:
    """The consistent mass, which the paper does not have."""
    return [("default, consistent mass", stability(problem("consistent")))]
