"""The paper's stochastic radius: the physics residual from random points, with high probability."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from skfem.mesh import MeshLine1, MeshTri1

from ..bound import Bound
from ..errors import InputError
from ..problem.base import Problem
from ..problem.candidate import Candidate
from ..problem.checks import Array, count, number
from ..problem.lagrange import degree
from ..problem.locate import interpolation_matrix
from ..residual import Residuals
from ..residual.strong import strong_field
from .rules import WeightedRule

# Largest sum of |basis functions| on the reference element: sup |f| <= factor * max |nodal values|.
_LEBESGUE = {("line", 2): 1.25, ("tri", 2): 5.0 / 3.0, ("quad", 2): 1.25**2}


def hoeffding(squares: Array, envelope: float, zeta: float) -> float:
    """Upper bound of a mean with probability ``1 - zeta``: ``mean + B (log(1/zeta) / 2M)^(1/2)`` (high-prob-residual).

    Parameters
    ----------
    squares
        M independent samples in ``[0, envelope]``.
    envelope
        B, a sure upper bound of the samples.
    """
    number(envelope, "envelope", least=0.0)
    check_zeta(zeta)
    M = squares.shape[-1]
    return float(np.mean(squares) + envelope * np.sqrt(np.log(1.0 / zeta) / (2.0 * M)))


def check_zeta(zeta: float) -> float:
    """`zeta` if it lies strictly between 0 and 1."""
    value = number(zeta, "zeta")
    if not 0.0 < value < 1.0:
        raise InputError(f"zeta is {value}; expected a probability strictly between 0 and 1")
    return value


@dataclass(frozen=True, kw_only=True)
class StochasticRadius(WeightedRule):
    """The paper's R_stoch: R_delta with the physics residual replaced by its high-probability upper value.

    The strong residual of the frozen candidate (its L2 representative, a finite-element function) is sampled at
    independent points, uniform on the domain, drawn here after the candidate is fixed.

    Parameters
    ----------
    points
        Number of points M.
    zeta
        Probability that the bound fails, for each candidate.
    seed
        Of the draw, together with a checksum of the candidate: nobody can fit a residual to the points beforehand.
    bound
        ``"hoeffding"``.
    """

    points: int = 1000
    zeta: float = 0.05
    seed: int = 0
    bound: str = "hoeffding"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pde_norm != "rms":
            raise InputError(f"pde_norm is {self.pde_norm!r}; the stochastic radius samples the strong residual itself")
        object.__setattr__(self, "points", count(self.points, "points"))
        object.__setattr__(self, "seed", count(self.seed, "seed", least=0))
        object.__setattr__(self, "zeta", check_zeta(self.zeta))
        if self.bound != "hoeffding":
            raise InputError(f"bound is {self.bound!r}; expected 'hoeffding'")

    def physics(self, problem: Problem, candidate: Candidate, residuals: Residuals) -> Bound:
        """``(mean of squares + B (log(1/zeta)/2M)^(1/2))^(1/2)`` (hp-pde-residual)."""
        q = candidate.parameter
        u = problem.solve(q) if candidate.state is None else candidate.state
        field = strong_field(problem, u, q)
        values = np.zeros((problem.basis.N, 1 if field.ndim == 1 else field.shape[1]))
        values[problem.free] = field.reshape(len(problem.free), -1)
        rng = np.random.default_rng([self.seed, zlib.crc32(q.tobytes()), zlib.crc32(u.tobytes())])
        points, cells = uniform_points(problem.basis.mesh, self.points, rng)
        column = rng.integers(values.shape[1], size=self.points)
        sampled = (interpolation_matrix(problem.basis, points, cells) @ values)[np.arange(self.points), column]
        top = hoeffding(sampled**2, envelope(problem, values) ** 2, self.zeta)
        source = f"RMS at {self.points} random points, probability {1.0 - self.zeta:g}"
        return Bound(float(np.sqrt(top)), "upper", source)

    def to_dict(self) -> dict[str, Any]:
        """Name, weights and options, for the record."""
        options = {"points": self.points, "zeta": self.zeta, "seed": self.seed, "bound": self.bound}
        return {**super().to_dict(), **options}


def envelope(problem: Problem, values: Array) -> float:
    """A sure upper bound of ``|f|`` for a finite-element function with these dof values."""
    mesh = problem.basis.mesh
    shape = "line" if isinstance(mesh, MeshLine1) else "tri" if isinstance(mesh, MeshTri1) else "quad"
    return _LEBESGUE.get((shape, degree(problem.basis)), 1.0) * float(np.abs(values).max())


def uniform_points(mesh: Any, number_of_points: int, rng: np.random.Generator) -> tuple[Array, NDArray[np.int64]]:
    """Independent points, uniform on the mesh, and the cells they lie in."""
    p, t = mesh.p, mesh.t
    corners = t[:, :, None] if mesh.dim() == 1 or len(t) == 3 else np.stack([t[[0, 1, 2]], t[[0, 2, 3]]], axis=2)
    corners = corners.reshape(len(corners), -1)
    pieces = 1 if len(t) < 4 else 2
    x = p[:, corners]
    edges = x[:, 1:] - x[:, :1]
    size = np.abs(edges[0, 0]) if mesh.dim() == 1 else np.abs(edges[0, 0] * edges[1, 1] - edges[0, 1] * edges[1, 0])
    chosen = rng.choice(corners.shape[1], size=number_of_points, p=size / size.sum())
    s = rng.random((len(corners) - 1, number_of_points))
    if len(s) == 2:
        s = np.where(s.sum(axis=0) > 1.0, 1.0 - s, s)
    return x[:, 0, chosen] + np.einsum("dij,ij->dj", edges[:, :, chosen], s), chosen // pieces
