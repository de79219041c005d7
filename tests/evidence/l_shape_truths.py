"""The source on the L-shape that tables of intervals and of calibrated selections are about, with truths of no span.

Blobs ``exp(-|x - c|² / w)`` and sharp discs lie in the left lower half; shifted ones in the arm where no sample is.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from skfem import Basis, ElementTriP1, MeshTri

import femcert as fc

LOW, HIGH = np.array([-0.9, -0.9]), np.array([-0.1, 0.0])
# Where shifted ones are.
ELSEWHERE = np.array([0.2, -0.9]), np.array([0.9, -0.1])
WIDTHS, RADII, LARGER = (0.05, 0.2), (0.1, 0.3), (0.15, 0.25)
# Squares of side 1/2 about these points.
REGIONS = {
    "centre": (-0.5, -0.5), "north": (-0.5, 0.0), "east": (0.0, -0.5), "far north": (-0.5, 0.5), "far east": (0.5, -0.5)
}  # fmt: skip


@cache
def l_shape_basis(refined: int = 4) -> Any:
    """Linear elements; every refinement halves the mesh width, 4 gives 1/16."""
    return Basis(MeshTri.init_lshaped().refined(refined), ElementTriP1())


def l_shape_sensors(basis: Any, count: int = 33) -> Any:
    """Averages over discs around 33 points of a grid, or around some of these."""
    coarse = MeshTri.init_lshaped().refined(2)
    points = coarse.p[:, coarse.interior_nodes()].T
    return fc.AverageSensors(basis, points[np.linspace(0, len(points) - 1, count).round().astype(int)], radius=0.1)


def l_shape_problem(parameters: Any = None, *, sensors: int = 33, refined: int = 4) -> Any:
    """The source problem; `parameters` is a function of the basis, by default the whole space."""
    basis = l_shape_basis(refined)
    space = (parameters or fc.FullSpace)(basis)
    return fc.EllipticSource(basis, parameters=space, sensors=l_shape_sensors(basis, sensors))


def blobs(basis: Any, count: int, seed: Any, *, box: Any = (LOW, HIGH)) -> Any:
    """Rows of dof values of ``exp(-|x - c|² / w)``, c uniform in a box and w in `WIDTHS`."""
    rng = np.random.default_rng(seed)
    centres, widths = rng.uniform(*box, (count, 2)), rng.uniform(*WIDTHS, count)
    return np.exp(-_squares(basis, centres) / widths[:, None])


def discs(basis: Any, count: int, seed: Any, *, box: Any = (LOW, HIGH), radii: Any = RADII) -> Any:
    """Rows of dof values of sharp discs of height one."""
    rng = np.random.default_rng(seed)
    centres, radii = rng.uniform(*box, (count, 2)), rng.uniform(*radii, count)
    return (_squares(basis, centres) <= radii[:, None] ** 2).astype(float)


def larger_discs(basis: Any, count: int, seed: Any) -> Any:
    """Discs about as wide as the sensors are apart."""
    return discs(basis, count, seed, radii=LARGER)


def shifted(basis: Any, count: int, seed: Any) -> Any:
    """Blobs in the other arm."""
    return blobs(basis, count, seed, box=ELSEWHERE)


def means(basis: Any) -> list[Any]:
    """Of the regions."""
    return [fc.Mean(basis, _square(*middle), name=name) for name, middle in REGIONS.items()]


def readings(problem: Any, fields: Any) -> Any:
    """Exact ones, a row for each field."""
    return problem.forward.apply(fields.T).T


def deviation(problem: Any, fields: Any, noise: float) -> float:
    """A standard deviation of that share of the root mean square of the readings of such truths."""
    return noise * float(np.sqrt(np.mean(readings(problem, fields) ** 2)))


def _square(a: float, b: float) -> Any:
    return lambda x: np.maximum(np.abs(x[0] - a), np.abs(x[1] - b)) < 0.25


def _squares(basis: Any, centres: Any) -> Any:
    return np.sum((basis.doflocs.T[None] - centres[:, None]) ** 2, axis=2)
