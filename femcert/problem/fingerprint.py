"""What coordinates and sensor values mean, in numbers that are the same on every machine.

Coordinates mean fields of one class on one mesh: on another mesh a mode may have the other sign, on another domain it
is another field. A fingerprint says which class and which sensors numbers belong to that were trained or stored. It
holds integrals of the columns and sensor values for fixed waves, not the bits of their entries, so that it differs by
rounding only between processors, solvers and numberings of the same mesh.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csc_matrix

from ..checks import Array, required
from ..errors import InputError
from ..mesh.elements import mass_matrix
from .base import Problem

# Two for each wave number; these grow by a factor, from half a wave across the domain to eight.
WAVES, FIRST, FACTOR = 16, 3.0, 1.5
# Of norms: columns of eigenmodes differ by up to (r / lam)^1/2 between processors, 3e-5 on a million dofs; those of
# another class, if they differ by less, mean nearly the same fields.
SAME_TOLERANCE = 1e-4


def fingerprint(problem: Problem) -> dict[str, Array]:
    """Of the class and the sensors of a problem.

    Returns
    -------
    dict
        ``"box"``, the corners of the domain ``(dimension, 2)``; ``"coordinates"`` and ``"sensors"``, a row for each
        one of them: first its size, then its products with fixed waves. Where there is no mesh, the waves are those of
        the unit interval, and data without sensors are known by what they are of these.
    """
    space, mesh = problem.parameters, problem.mesh
    p = np.array([[0.0, 1.0]]) if mesh is None else mesh.p
    box = np.stack([p.min(axis=1), p.max(axis=1)], axis=1)
    if space.basis is None:
        M, W = space.weight, _waves(np.linspace(0.0, 1.0, space.size)[None], np.array([[0.0, 1.0]]))
    else:
        M, W = mass_matrix(space.basis), _waves(space.basis.doflocs, box)
    norms = np.sqrt(np.sum(W * (M @ W), axis=0))
    B = csc_matrix(space.matrix)
    sizes = np.sqrt(np.asarray(B.multiply(M @ B).sum(axis=0)).ravel())
    coordinates = np.column_stack([sizes, (B.T @ (M @ W)) / norms])
    return {"box": box, "coordinates": coordinates, "sensors": _seen(problem, W, box)}


def _seen(problem: Problem, waves: Array, box: Array) -> Array:
    """A row for each datum."""
    if problem.experiments:
        return np.vstack([_seen(each, waves, box) for each in problem.experiments])
    if problem.sensors is not None:
        H = problem.sensors.matrix
        return np.column_stack([abs(H) @ np.ones(H.shape[1]), H @ _waves(problem.basis.doflocs, box)])
    response = required(problem.forward, "a fingerprint", "sensors, or data that are linear", problem).apply(waves)
    return np.column_stack([np.linalg.norm(response, axis=1), response])


def check_fingerprint(problem: Problem, expected: dict[str, Array], what: str) -> None:
    """Raise `InputError` unless a problem has the class and the sensors of a fingerprint.

    Parameters
    ----------
    expected
        From `fingerprint`.
    what
        Was made for them, in words.
    """
    found = fingerprint(problem)
    size = float(np.linalg.norm(found["box"][:, 1] - found["box"][:, 0]))
    advice = "make it anew for this problem"
    same_shape = found["box"].shape == expected["box"].shape
    if not same_shape or np.abs(found["box"] - expected["box"]).max() > SAME_TOLERANCE * size:
        here, there = (record["box"].tolist() for record in (found, expected))
        raise InputError(f"{what} was made on a domain in the box {there}; this one is in {here}: {advice}")
    for name, one in (("coordinates", "coordinate"), ("sensors", "sensor")):
        here, there = found[name], expected[name]
        if here.shape != there.shape:
            raise InputError(f"{what} was made for {len(there)} {name}; the problem has {len(here)}: {advice}")
        away = np.abs(here - there).max(axis=1) / np.maximum(here[:, 0], there[:, 0])
        if not np.all(away <= SAME_TOLERANCE):
            row = int(np.argmax(~(away <= SAME_TOLERANCE)))
            mine, other = here[row, 1:], there[row, 1:]
            turned = np.abs(mine + other).max() < 0.1 * np.abs(mine - other).max()
            words = "has the other sign" if turned else "is another one"
            raise InputError(
                f"{what} was made for other {name}: {one} {row + 1} {words} here, as on another mesh; {advice}, "
                "or use the mesh, the class and the sensors that it was made for"
            )


def _waves(x: Array, box: Array) -> Array:
    """Plane waves in irregular directions at points ``(dimension, points)``; shape ``(points, WAVES)``."""
    j = np.arange(WAVES)
    numbers = FIRST * FACTOR ** (j // 2) / float(np.linalg.norm(box[:, 1] - box[:, 0]))
    directions = np.cos(np.outer(j + 1.0, np.sqrt([2.0, 3.0, 5.0][: len(x)])))
    return np.asarray(np.cos((numbers[:, None] * directions) @ (x - box[:, :1]) + np.sqrt(7.0) * (j[:, None] + 1.0)).T)
