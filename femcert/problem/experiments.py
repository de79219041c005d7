"""Several experiments with one unknown: loads, sensors or equations that share a parameter."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..checks import Array, frozen
from ..errors import InputError
from ..linalg import SharedFactors
from ..mesh.elements import same_mesh
from ..shown import in_brief
from .base import Problem, check_problem
from .data import Data
from .forward import Linearization, LinearMap
from .space import ParameterSpace, check_space
from .together import Chain, applied, finish_all, matrices, pulled


class Experiments(Problem):
    """Problems that share a parameter: their data are stacked, one experiment after the other.

    The states are internal: a candidate is its parameter, its state is None, and every rule that needs no state
    applies. All problems must have the same class, on the same dofs.

    Parameters
    ----------
    problems
        At least one.
    parameters
        The class that they share; default: that of the first problem.

    Examples
    --------
    >>> import numpy as np
    >>> import femcert as fc
    >>> from skfem import Basis, ElementLineP1, MeshLine
    >>> basis = Basis(MeshLine(np.linspace(0.0, 1.0, 33)), ElementLineP1())
    >>> space = fc.SineSpace(basis, 3)
    >>> sensors = [fc.PointSensors(basis, points) for points in ([0.1, 0.3], [0.6, 0.9])]
    >>> both = fc.Experiments([fc.EllipticSource(basis, parameters=space, sensors=each) for each in sensors])
    >>> both.observation_count
    4
    """

    def __init__(self, problems: Sequence[Problem], *, parameters: ParameterSpace | None = None) -> None:
        if not isinstance(problems, Sequence):
            raise InputError(f"problems is a {type(problems).__name__}; expected a list of problems")
        self.problems = tuple(problems)
        if not self.problems:
            raise InputError("problems is empty; expected at least one such as EllipticSource")
        for problem in self.problems:
            check_problem(problem)
        self.parameters = self.problems[0].parameters if parameters is None else check_space(parameters)
        for i, problem in enumerate(self.problems):
            if not _same_class(problem.parameters, self.parameters):
                raise InputError(f"problem {i} has another class; expected that of all: pass one space to each of them")
        shared = SharedFactors()
        for problem in self.problems:
            problem.factorize = shared

    @property
    def experiments(self) -> tuple[Problem, ...]:
        """The problems."""
        return self.problems

    @property
    def observation_count(self) -> int:
        """Of all experiments."""
        return sum(problem.observation_count for problem in self.problems)

    def summary(self) -> dict[str, str]:
        """How many, and the class."""
        return {
            "experiments": f"{len(self.problems)} with {self.observation_count} data",
            "parameters": in_brief(self.parameters),
        }

    @cached_property
    def forward(self) -> LinearMap | None:
        """Stacked, where every experiment is linear."""
        parts = [problem.forward for problem in self.problems]
        return None if any(part is None for part in parts) else StackedMap(self.parameters, parts)  # type: ignore[arg-type]

    def linearize(self, at: Any = None) -> Linearization:
        """Stacked."""
        if self.forward is not None:
            return self.forward
        q = self.check_parameter(at)
        waiting = [problem.one_solve(q) for problem in self.problems]
        finish_all([one for one in waiting if one is not None])
        return StackedLinearization(self.parameters, [problem.linearize(q) for problem in self.problems], q)

    def predict(self, state: Any, parameter: Any) -> Array:
        """Of each experiment; those with one operator are solved together."""
        if self.forward is None:
            return self.linearize(parameter).predicted
        return np.concatenate([problem.predict(problem.solve(parameter), parameter) for problem in self.problems])

    def split_data(self, data: Data) -> list[Array]:
        """The values of each experiment."""
        ends = np.cumsum([problem.observation_count for problem in self.problems])[:-1]
        return np.split(self.check_data(data).values, ends)

    @property
    def rounding(self) -> float:
        """The largest of them."""
        return max(problem.rounding for problem in self.problems)

    @property
    def backend(self) -> str | None:
        """What solves, if it is the same for all."""
        found = {problem.backend for problem in self.problems}
        return found.pop() if len(found) == 1 else None


def _same_class(one: ParameterSpace, other: ParameterSpace) -> bool:
    """Whether two spaces have the same mesh, columns, norm and ball."""
    if one is other:
        return True
    if one.matrix.shape != other.matrix.shape or (one.basis is None) != (other.basis is None):
        return False
    if one.basis is not None and not same_mesh(one.basis.mesh, other.basis.mesh):
        return False
    equal = (abs(a - b).max() == 0.0 for a, b in ((one.matrix, other.matrix), (one.weight, other.weight)))
    return one.ball is other.ball and all(equal)


class StackedLinearization(Linearization):
    """``[J_1; J_2; ...]``."""

    def __init__(self, parameters: ParameterSpace, parts: Sequence[Linearization], at: Array | None = None) -> None:
        self.parameters, self.parts, self.at = parameters, tuple(parts), at
        self._counts = [part.observation_count for part in self.parts]
        self.observation_count = sum(self._counts)

    @cached_property
    def _chains(self) -> list[Chain] | None:
        """Of all parts; None where some have none."""
        known = [part.chain for part in self.parts if part.chain is not None]
        return known if len(known) == len(self.parts) else None

    @cached_property
    def offset(self) -> Array:
        """Stacked."""
        return frozen(np.concatenate([part.offset for part in self.parts]))

    @property
    def predicted(self) -> Array:
        """Stacked."""
        q = self.at
        if q is None:
            return self.offset
        linear = (part.everywhere for part in self.parts)
        pairs = zip(self.parts, linear, strict=True)
        return np.concatenate(
            [part.apply(q[:, None])[:, 0] + part.offset if known else part.predicted for part, known in pairs]
        )

    def apply(self, fields: Any) -> Array:
        """Stacked."""
        if self._chains is not None:
            return applied(self._chains, fields)
        return np.vstack([part.apply(fields) for part in self.parts])

    def adjoint(self, weights: Array) -> Array:
        """Summed."""
        pieces = np.split(weights, np.cumsum(self._counts)[:-1])
        if self._chains is not None:
            return pulled(self._chains, pieces)
        return np.asarray(sum(part.adjoint(piece) for part, piece in zip(self.parts, pieces, strict=True)))

    @cached_property
    def matrix(self) -> Array:
        """Stacked."""
        if self._chains is not None:
            return frozen(matrices(self._chains, self.parameters.matrix))
        return frozen(np.vstack([part.matrix for part in self.parts]))

    def pulled(self, weights: Array) -> tuple[Array, Array]:
        """Summed."""
        pieces = np.split(weights, np.cumsum(self._counts)[:-1])
        found = [part.pulled(piece) for part, piece in zip(self.parts, pieces, strict=True)]
        return np.asarray(sum(values for values, _ in found)), np.asarray(sum(lost for _, lost in found))

    def rounding_of(self, data: Data | None) -> float:
        """The largest of them, in the norm of all data."""
        return max(part.rounding_of(None) for part in self.parts) * (1.0 if data is None else data.spread)

    def error(self, data: Data | None) -> float:
        """``(sum e_i²)^1/2`` for the errors of the parts, in the norm of all data."""
        size = float(np.linalg.norm([part.error(None) for part in self.parts]))
        return size if data is None else size * data.largest_weight

    def offset_rounding(self, data: Data) -> float:
        """Likewise."""
        parts = zip(self.parts, np.split(data.values, np.cumsum(self._counts)[:-1]), strict=True)
        lost = [part.offset_rounding(Data(values, 0.0)) for part, values in parts]
        return float(np.linalg.norm(lost)) * data.largest_weight


class StackedMap(StackedLinearization, LinearMap):
    """The same of linear problems, at every parameter."""
