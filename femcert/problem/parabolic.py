"""Parabolic problems of the user's own forms: an unknown initial value, source, or release in time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import block_diag, csr_matrix
from skfem import Basis

from ..checks import Array, count, freeze_sparse, frozen
from ..errors import InputError
from ..linalg import Factorization, solve_mass
from ..mesh.elements import check_state_basis, mass_matrix
from ..shown import in_brief, of_basis
from .base import Problem, check_home, check_reach
from .boundary import Value, boundary_conditions
from .data import Data
from .forward import ROUNDING, SizedMap, dense
from .histories import history_at, means_over_steps, strengths_of
from .known_loads import KnownLoads
from .matrices import CoordinateSpace
from .sensors import Sensors
from .space import ParameterSpace, check_space
from .terms import bilinear, by_factor, linear, load_matrix
from .time_steps import THETA, TimeSteps, checked_times, on_grid

UNKNOWNS = ("initial", "source", "release")


class ParabolicProblem(SizedMap, Problem):
    """``m(u_t, v) + a(u, v) = l(q, v) f(t) + s(t; v)`` with the user's own scikit-fem forms, observed at several times.

    The states are internal: a candidate is its parameter, its state is None, and every rule that needs no state
    applies. Claims are about the discrete problem, with these steps. There is one factorization; neither states nor
    adjoints are kept, so that memory does not grow with steps times dofs.

    Parameters
    ----------
    basis
        Basis of the state.
    mass, operator
        m and a: a ``BilinearForm``, a pair ``(form, basis)``, a sparse matrix, or a list of these, which is a sum. They
        do not depend on time. Default of `mass`: ``(u, v)``.
    parameters, sensors
        The admissible class, and what is read of the state at each time.
    times
        Observation times, increasing and positive; the data are the readings time after time.
    steps
        Equal steps up to the last observation time; every observation time must be on the grid.
    scheme
        ``"crank-nicolson"`` (order 2) or ``"backward-euler"`` (order 1). Sources are averaged over each step, by two
        Gauss points. Crank-Nicolson does not damp what is not smooth.
    unknown
        ``"initial"``: ``u(0) = q``, by projection, ``(u(0), v) = l(q, v)``. ``"source"``: the source ``q(x) f(t)``.
        ``"release"``: a load that is known in space with a strength q(t) that is not.
    load
        ``l(q, v)``; a form, pair, matrix or list, as in `LinearProblem`. Default: ``(q, v)``. Of a release the known
        load ``l(v)``, a ``LinearForm``, pair, vector or list; for a `ProductSpace` a list or mapping with one for each
        factor.
    history
        Of a source, f: a function of time, default 1. Of a release, functions of time whose coefficients the
        parameters are; default, for a `CoordinateSpace` of k numbers: constant on k equal intervals of time. A class on
        a mesh of the time line needs none.
    source
        Known load s: a form, pair, vector or list, or a function of time that returns one.
    initial
        Known initial value: a number, a function of x, or dof values; default 0.
    dirichlet, neumann, robin
        Boundary conditions, see `femcert.problem.boundary.boundary_conditions`.
    boundary_history
        A function of time by which the values of all these are multiplied; default 1.
    observed
        Mask ``(times, sensors)``, True where there is a reading; the data are those only. Default: all. A few that are
        missing may also be NaN in `Data.gaussian`.
    definite
        Say True where m and a are symmetric and positive definite together: a faster factorization.

    Attributes
    ----------
    state_basis, state_sensors
        As given. `basis` and `sensors` are the same, but None for a release, which lives on the line of time.
    levels
        Those of the observation times on the grid of steps.

    Examples
    --------
    How much was released when, from two sensors downstream:

    >>> import numpy as np
    >>> import femcert as fc
    >>> from skfem import Basis, BilinearForm, ElementLineP1, LinearForm, MeshLine
    >>> basis = Basis(MeshLine(np.linspace(0.0, 1.0, 41)), ElementLineP1())
    >>> problem = fc.ParabolicProblem(
    ...     basis,
    ...     operator=BilinearForm(lambda u, v, w: 0.05 * u.grad[0] * v.grad[0] + u.grad[0] * v),
    ...     load=LinearForm(lambda v, w: (np.abs(w.x[0] - 0.2) < 0.05) * v),
    ...     unknown="release",
    ...     parameters=fc.CoordinateSpace(4),
    ...     sensors=fc.PointSensors(basis, [0.4, 0.6]),
    ...     times=np.linspace(0.1, 2.0, 20),
    ...     steps=40,
    ... )
    >>> problem.matrix.shape
    (40, 4)
    """

    def __init__(
        self,
        basis: Basis,
        *,
        operator: Any,
        parameters: ParameterSpace,
        sensors: Sensors,
        times: Any,
        steps: int,
        mass: Any = None,
        scheme: str = "crank-nicolson",
        unknown: str = "initial",
        load: Any = None,
        history: Any = None,
        source: Any = None,
        initial: Any = None,
        dirichlet: Value | Mapping[str, Value] | None = None,
        neumann: Mapping[str, Value] | None = None,
        robin: Mapping[str, tuple[Value, Value]] | None = None,
        boundary_history: Callable[[float], float] | None = None,
        observed: Any = None,
        definite: bool = False,
    ) -> None:
        check_state_basis(basis)
        if scheme not in THETA:
            raise InputError(f"scheme is {scheme!r}; expected 'crank-nicolson' or 'backward-euler'")
        if unknown not in UNKNOWNS:
            raise InputError(f"unknown is {unknown!r}; expected 'initial', 'source' or 'release'")
        release = unknown == "release"
        # Histories live on the line of time, not in the domain.
        check_home(basis, CoordinateSpace(1) if release else check_space(parameters), sensors)
        self.state_basis, self.state_sensors, self.parameters = basis, sensors, check_space(parameters)
        self.basis, self.sensors = (None, None) if release else (basis, sensors)
        self.scheme, self.unknown, self.definite = scheme, unknown, definite
        self.times, self.steps = frozen(checked_times(times)), count(steps, "steps")
        self.levels = frozen(on_grid(self.times, self.steps))
        self.grid = frozen(np.linspace(0.0, self.times[-1], self.steps + 1))
        self.boundary = boundary_conditions(basis, dirichlet=dirichlet, neumann=neumann, robin=robin)
        if not release:
            check_reach(parameters, self.boundary)
        self.free = self.boundary.free
        A = bilinear(operator, basis, "operator")
        self.operator = freeze_sparse(A if self.boundary.operator is None else A + self.boundary.operator)
        self.mass = freeze_sparse(mass_matrix(basis) if mass is None else bilinear(mass, basis, "mass"))
        self.mask = _checked_mask(observed, (len(self.times), sensors.count))
        self._set_unknown(load, history)
        if initial is not None and unknown == "initial":
            raise InputError("initial came, but the initial value is the unknown; expected one of them")
        self._known = KnownLoads(basis, self.boundary, source, initial, boundary_history)

    def _set_unknown(self, load: Any, history: Any) -> None:
        """Loads, one column for each of what they are multiplied with, and the weights of the steps."""
        self._strengths: Any = None
        if self.unknown != "release":
            if history is not None and self.unknown == "initial":
                raise InputError("history came for an unknown initial value; it is for a source or a release")
            self.load = freeze_sparse(load_matrix(load, self.parameters, self.state_basis))
            f = history_at(history or (lambda t: 1.0), "history")
            self._weights = frozen(np.array(means_over_steps(f, self.grid) if self.unknown == "source" else []))
            return
        if load is None:
            raise InputError("load is missing; a release needs its known load, such as a LinearForm")
        if self.parameters.factors:
            if history is not None:
                raise InputError("history came for a product of releases; give classes on a mesh of the time line")
            parts = by_factor(load, self.parameters)
        else:
            parts = [("load", self.parameters, load)]
        columns = [linear(form, self.state_basis, f"load of {name!r}") for name, _, form in parts]
        self.load = freeze_sparse(csr_matrix(np.stack(columns, axis=1)))
        strengths = block_diag([strengths_of(space, history, self.grid) for _, space, _ in parts], format="csr")
        order = np.arange(strengths.shape[0]).reshape(len(parts), -1).T.ravel()
        self._strengths = freeze_sparse(csr_matrix(strengths[order]))

    @property
    def observation_count(self) -> int:
        """Readings at all times, without the gaps of `observed`."""
        return int(self.mask.sum())

    @property
    def time_step(self) -> float:
        """Length of a step."""
        return float(self.times[-1] / self.steps)

    def summary(self) -> dict[str, str]:
        """Mesh, unknown, class, sensors and times."""
        return {
            "mesh": of_basis(self.state_basis),
            "unknown": self.unknown,
            "parameters": in_brief(self.parameters),
            "sensors": in_brief(self.state_sensors),
            "boundary": in_brief(self.boundary),
            "times": f"{len(self.times)} up to {self.times[-1]:g}, {self.steps} steps of {self.scheme}",
            "data": f"{self.observation_count} values",
        }

    @cached_property
    def factor(self) -> Factorization:
        """``M + theta dt A`` on the free dofs: one factorization for all steps, columns and adjoints."""
        K = (self.mass + THETA[self.scheme] * self.time_step * self.operator)[self.free][:, self.free]
        return self.factorize(K, definite=self.definite, name="time-stepping operator", to_rounding=True)

    @cached_property
    def time_steps(self) -> TimeSteps:
        """The scheme on the free dofs."""
        M, A = (matrix[self.free][:, self.free] for matrix in (self.mass, self.operator))
        return TimeSteps(M, A, self.factor, self.time_step, THETA[self.scheme])

    @cached_property
    def _projection(self) -> Any:
        """Rows of the free dofs of the L2 mass matrix, which takes an unknown initial value to the state."""
        return mass_matrix(self.state_basis)[self.free]

    def _right(self, fields: Array) -> Callable[[int], Array]:
        """``dt b_n`` of parameter columns."""
        load, dt, p = self.load[self.free], self.time_step, self.load.shape[1]
        if self.unknown == "initial":
            return lambda n: np.zeros((len(self.free), fields.shape[1]))
        if self.unknown == "source":
            right = dt * np.asarray(load @ fields)
            return lambda n: self._weights[n] * right
        strengths = dt * np.asarray(self._strengths @ fields)
        return lambda n: np.asarray(load @ strengths[n * p : (n + 1) * p])

    def _start(self, fields: Array) -> Array:
        if self.unknown != "initial":
            return np.zeros((len(self.free), fields.shape[1]))
        return solve_mass(self._projection[:, self.free], np.asarray((self.load @ fields)[self.free]))

    def _known_right(self, n: int) -> Array:
        begin, end = (float(t) for t in self.grid[n : n + 2])
        return self._known.right(self.mass, self.operator, begin, end, THETA[self.scheme])

    def _known_start(self) -> Array:
        if self.unknown != "initial":
            return self._known.start[self.free][:, None]
        # What the projection of zero takes from the boundary values.
        values = np.asarray(self._projection @ self._known.values_at(0.0))
        return -solve_mass(self._projection[:, self.free], values)[:, None]

    def _known_levels(self, fields: Array | None = None) -> Iterator[tuple[int, Array]]:
        """All dofs at each level, with what is known, and a column of the parameter."""
        start, right = self._known_start(), self._known_right
        if fields is not None:
            unknown, start = self._right(fields), start + self._start(fields)
            right = lambda n: self._known_right(n) + unknown(n)  # noqa: E731
        for level, u in self.time_steps.forth(start, right, self.steps):
            state = self._known.values_at(float(self.grid[level]))
            state[self.free] = u[:, 0]
            yield level, state

    def trajectory(self, parameter: Any) -> Array:
        """The states at the observation times, ``(dofs, times)``."""
        q, wanted = self.check_parameter(parameter)[:, None], set(self.levels.tolist())
        return np.stack([u for level, u in self._known_levels(q) if level in wanted], axis=1)

    @cached_property
    def _rest(self) -> tuple[Array, float]:
        """Data of the parameter zero, and the largest value of its states."""
        if self._known.nothing:
            return frozen(np.zeros(self.observation_count)), 0.0
        values, size, slot = np.zeros(self.mask.shape), 0.0, _slots(self.levels)
        for level, u in self._known_levels():
            size = max(size, float(np.abs(u).max()))
            if level in slot:
                values[slot[level]] = self.state_sensors.matrix @ u
        return frozen(values[self.mask]), size

    @property
    def offset(self) -> Array:
        """Data of the zero parameter: of known sources, initial and boundary values."""
        return self._rest[0]

    def read(self, fields: Any) -> tuple[Array, Array]:
        """Readings of the columns at all times, and the largest value of every state."""
        columns, slot = dense(fields), _slots(self.levels)
        H = self.state_sensors.matrix[:, self.free]
        values = np.zeros((*self.mask.shape, columns.shape[1]))
        sizes = self._summed(columns)
        most = np.zeros(columns.shape[1])
        for level, u in self.time_steps.forth(self._start(columns), self._right(columns), self.steps):
            most = np.maximum(most, np.abs(u).max(axis=0))
            if level in slot:
                values[slot[level]] = H @ u
        return values[self.mask], sizes + most

    def _summed(self, columns: Array) -> Array:
        """How large a step would make states without cancellation in their loads."""
        if self.unknown == "initial":
            right, diagonal = self._sizes @ np.abs(columns), self._projection[:, self.free].diagonal()
        else:
            weights = abs(self._weights) if self._strengths is None else self._strengths
            if self._strengths is None:
                most = weights.max() * np.abs(columns)
            else:
                sums = np.asarray(abs(weights) @ np.abs(columns)).reshape(self.steps, -1, columns.shape[1])
                most = sums.max(axis=0)
            right = self.time_step * (self._sizes @ most)
            diagonal = (self.mass + THETA[self.scheme] * self.time_step * self.operator).diagonal()[self.free]
        return np.asarray(right / np.where(diagonal == 0.0, 1.0, np.abs(diagonal))[:, None]).max(axis=0, initial=0.0)

    @cached_property
    def _sizes(self) -> Any:
        return abs(self.load[self.free])

    def pull(self, weights: Array) -> tuple[Array, Array]:
        """The transpose: adjoint steps back in time; and the largest value of every adjoint state."""
        H, p = self.state_sensors.matrix[:, self.free], self.load.shape[1]
        columns = np.asarray(weights).shape[1]
        spread = np.zeros((*self.mask.shape, columns))
        spread[self.mask] = weights
        parts = {level: H.T @ spread[i] for level, i in _slots(self.levels).items()}
        sizes, total = np.zeros(columns), np.zeros((len(self.free), columns))
        load, inner = self.load[self.free], np.zeros((0 if self._strengths is None else self.steps * p, columns))
        for n, z, start in self.time_steps.back(parts, self.steps):
            sizes = np.maximum(sizes, np.abs(z).max(axis=0, initial=0.0))
            if self.unknown == "initial":
                total = start
            elif self.unknown == "source":
                total += self.time_step * self._weights[n] * z
            else:
                inner[n * p : (n + 1) * p] = self.time_step * (load.T @ z)
        if self.unknown == "release":
            return np.asarray(self._strengths.T @ inner), sizes
        if self.unknown == "initial":
            total = solve_mass(self._projection[:, self.free], total)
            sizes = np.maximum(sizes, np.abs(total).max(axis=0, initial=0.0))
        return np.asarray(load.T @ total), sizes

    @property
    def readings(self) -> Array:
        """Of the sensors, time after time."""
        weights = np.asarray(abs(self.state_sensors.matrix).sum(axis=1)).ravel()
        return np.broadcast_to(weights, self.mask.shape)[self.mask]

    @cached_property
    def loads(self) -> Array:
        """Of the columns of the class, summed over the steps."""
        B, rows = abs(self.parameters.matrix), np.asarray(self._sizes.sum(axis=0)).ravel()
        if self._strengths is not None:
            rows = abs(self._strengths).T @ (self.time_step * np.tile(rows, self.steps))
        elif self.unknown == "source":
            rows = rows * self.time_step * np.abs(self._weights).sum()
        return np.asarray(B.T @ rows).ravel()

    @cached_property
    def solve_rounding(self) -> float:  # type: ignore[override]
        """Every step is a solve, and loses digits as its condition number says; what grows takes errors with it."""
        return float(self.steps * self.factor.rounding * self.time_steps.growth(self.steps))

    @property
    def rounding(self) -> float:
        """The same, for predictions."""
        return max(ROUNDING, self.solve_rounding)

    def rounding_of(self, data: Any) -> float:
        """`rounding`, in the norm of the data."""
        return self.rounding * (1.0 if data is None else data.spread)

    def offset_rounding(self, data: Data) -> float:
        """What rounding may leave in ``y - offset``, in the norm of Y."""
        size = self._rest[1]
        return self.rounding_of(data) * (data.norm(size * self.readings) + data.norm(data.values)) if size else 0.0

    def lost_to_rounding(self, data: Data, state: Any, at: Any = None) -> float:
        """What rounding may leave in ``predicted - y``, in the norm of Y."""
        return super().lost_to_rounding(data, state, at) + self.offset_rounding(data)

    @property
    def backend(self) -> str:
        """What solves the steps."""
        return self.factor.backend

    @property
    def solve_tolerance(self) -> float:
        """Relative energy error at which its solves end, 0 with factors."""
        return self.factor.tolerance


def _slots(levels: Array) -> dict[int, int]:
    return {int(level): i for i, level in enumerate(levels)}


def _checked_mask(observed: Any, shape: tuple[int, int]) -> Array:
    mask = np.ones(shape, dtype=bool) if observed is None else np.array(observed)
    if mask.shape != shape or mask.dtype != bool:
        raise InputError(f"observed has shape {mask.shape} of {mask.dtype}; expected bool {shape}, times by sensors")
    if not mask.any():
        raise InputError("observed is False everywhere; expected a reading at least")
    return frozen(mask)
