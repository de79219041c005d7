"""A 28 x 28 image from its line integrals at 15 angles within 100 degrees."""

from __future__ import annotations

from typing import Any

import numpy as np
from skfem import Basis, ElementQuad1, MeshQuad

from ...checks import Array
from ...problem import CosineSpace, Tomography
from ...stability import Stability, stability
from .outcome import Scenario, scenario
from .setup import ANGLES, MODES_PER_DIRECTION, TOMOGRAPHY, TOMOGRAPHY_TRUTH_NORM


def problem(rule: str) -> Tomography:
    """Q1 with the nodes at the pixel centres; rays sampled as in the paper, or integrated exactly."""
    N = TOMOGRAPHY.grid
    centres = np.arange(N) + 0.5
    basis = Basis(MeshQuad.init_tensor(centres, centres), ElementQuad1())
    k = MODES_PER_DIRECTION
    return Tomography(
        basis,
        parameters=CosineSpace(basis, (k, k), inner="euclidean", box=[[0.0, N], [0.0, N]]),
        angles=np.linspace(*ANGLES),
        bins=N,
        spacing=1.0,
        rule=rule,
    )


def phantom(x: Array) -> Array:
    """Three bodies on a background, in pixel coordinates ``(2, points)``."""
    s, t = x / TOMOGRAPHY.grid

    def body(at: tuple[float, float], size: tuple[float, float]) -> Array:
        return np.exp(-(((s - at[0]) / size[0]) ** 2) - ((t - at[1]) / size[1]) ** 2)

    bodies = body((0.24, 0.74), (0.13, 0.16)) + 0.8 * body((0.78, 0.30), (0.12, 0.12))
    return 0.1 + bodies + 0.4 * body((0.70, 0.78), (0.12, 0.10))


def truth(model: Tomography) -> Array:
    """Coordinates of the phantom's projection on the class, scaled."""
    c, _ = model.parameters.project(phantom(model.basis.doflocs))
    return np.asarray(TOMOGRAPHY_TRUTH_NORM * c / np.linalg.norm(c))


def scenarios() -> list[Scenario]:
    """The one scenario of the paper."""
    model = problem("sampled")
    return [scenario(TOMOGRAPHY, model, truth(model), learned)]


def learned(case: Scenario, rng: np.random.Generator) -> list[tuple[str, Array, Any]]:
    """Close to the truth; and with structure of five low modes that is not there."""
    return [
        ("learned good", case.moved(rng, TOMOGRAPHY.perturbation), None),
        ("hallucinated learned", case.shifted(), None),
    ]


def further_stability() -> list[tuple[str, Stability]]:
    """Exact line integrals of the finite-element image, which the paper does not have."""
    return [("default, exact rays", stability(problem("exact")))]
