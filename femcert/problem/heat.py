"""The heat equation with an unknown initial condition."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from skfem import Basis

from ..checks import Array, count, frozen, real_array
from ..errors import InputError
from ..linalg import Factorization, dense_eigenpairs, solve_mass
from ..mesh.assembly import diffusion_matrix
from ..mesh.elements import check_state_basis, mass_matrix, mass_share
from .boundary import Value
from .closed_maps import ContinuousMap, heat_map
from .coefficients import Coefficient, at_quadrature
from .data import Data
from .elliptic import is_lumped, lumped_load
from .forward import dense
from .gram import weight_below
from .linear import LinearProblem
from .sensors import Sensors
from .solve_errors import SolveErrors, norm_above
from .space import ParameterSpace
from .states import Energy, TimeStepping
from .strong import ZERO, Given, Interpolant, StrongForm
from .time_steps import THETA, checked_times, on_grid

# Beyond this the exact exponential, which is dense, would be the wrong tool.
MOST_EXACT_DOFS = 1500


class HeatInitial(LinearProblem):
    """Recover the initial value q of ``u_t - div(kappa grad u) = 0``, ``u(0) = q``, from later observations.

    Homogeneous Dirichlet conditions on the whole boundary or on named parts, insulated elsewhere; Robin conditions
    ``kappa du/dn + alpha u = 0`` on named parts.

    Parameters
    ----------
    times
        Observation time or times, increasing; the data are the sensor values time after time.
    diffusivity
        kappa > 0; of a function, bounds know only what a `Polynomial` declares.
    scheme
        ``"crank-nicolson"`` (order 2), ``"backward-euler"`` (order 1), or ``"exact"``: the exponential of the discrete
        operator, for at most 1,500 free dofs.
    steps
        Time steps up to the last observation time; every observation time must be on the grid.
    mass
        ``"consistent"`` or ``"lumped"``.
    """

    any_class = False

    def __init__(
        self,
        basis: Basis,
        *,
        parameters: ParameterSpace,
        sensors: Sensors,
        times: Any,
        diffusivity: Coefficient = 1.0,
        scheme: str = "crank-nicolson",
        steps: int = 100,
        dirichlet: Value | Mapping[str, Value] | None = None,
        robin: Mapping[str, tuple[Value, Value]] | None = None,
        mass: str = "consistent",
    ) -> None:
        check_state_basis(basis)
        lumped = is_lumped(mass)
        if scheme not in (*THETA, "exact"):
            raise InputError(f"scheme is {scheme!r}; expected 'crank-nicolson', 'backward-euler' or 'exact'")
        self.scheme = scheme
        self.times = frozen(checked_times(times))
        self.steps = count(steps, "steps")
        self.observed = frozen(
            np.arange(len(self.times)) if scheme == "exact" else on_grid(self.times, self.steps)
        )
        kappa = at_quadrature(diffusivity, basis, "diffusivity", sign="positive")
        super().__init__(
            basis,
            operator=diffusion_matrix(basis, kappa),
            load=lumped_load(basis, parameters) if lumped else None,
            parameters=parameters,
            sensors=sensors,
            dirichlet=dirichlet,
            robin=robin,
            definite=True,
            lumped=lumped,
        )
        self._diffusivity = Given(diffusivity, "diffusivity", "positive")
        if not self.boundary.homogeneous:
            raise InputError("the heat problem takes homogeneous boundary conditions; a non-zero value came")
        if scheme == "exact" and len(self.free) > MOST_EXACT_DOFS:
            raise InputError(
                f"the exact exponential is for at most {MOST_EXACT_DOFS} free dofs, this mesh has {len(self.free)}; "
                "use scheme='crank-nicolson'"
            )

    @property
    def time(self) -> TimeStepping:
        """Observation times, steps and scheme; the elliptic equation ``-div(kappa grad u) = -u_t`` at one time."""
        return TimeStepping(
            self.times, self.steps, self.time_step, self.scheme, self.observed, self.trajectory, self._at_one_time
        )

    def _at_one_time(self, rate: Any) -> StrongForm:
        return StrongForm(self._diffusivity, ZERO, Interpolant(self.basis, -rate), self.boundary, "initial")

    def energy(self, parameter: Any = None, state: Any = None) -> Energy:
        """``(kappa grad u, grad u)`` and Robin terms."""
        return Energy("energy norm", self.operator)

    def closed_map(self, whitening: Array) -> ContinuousMap:
        """Sines on a box just decay, see `femcert.problem.closed_maps.heat_map`."""
        return heat_map(self, whitening)

    def system(self) -> None:
        """None: the state depends on time."""

    @property
    def time_step(self) -> float:
        """Length of a time step."""
        return float(self.times[-1] / self.steps)

    @property
    def observation_count(self) -> int:
        """Sensors times observation times."""
        return self.sensors.count * len(self.times)

    def check_state(self, state: Any) -> Array:
        """States at the observation times (a vector if there is one time), or a trajectory from t = 0."""
        array = real_array(state, "state")
        n, t, s = int(self.basis.N), len(self.times), self.steps + 1
        allowed = [(n, t)] + ([(n,)] if t == 1 else []) + ([(n, s)] if self.scheme != "exact" else [])
        if array.shape not in allowed:
            raise InputError(f"state has shape {array.shape}; expected {' or '.join(map(str, allowed))}")
        return array

    def observed_states(self, state: Array) -> Array:
        """Columns at the observation times."""
        if state.ndim == 1:
            return state[:, None]
        return state if state.shape[1] == len(self.times) else state[:, self.observed]

    def solve(self, parameter: Any) -> Array:
        """States at the observation times: ``(dofs,)`` for one time, ``(dofs, times)`` for several."""
        states = self._states_at(self.check_parameter(parameter)[:, None])[:, :, 0].T
        return states[:, 0].copy() if len(self.times) == 1 else states.copy()

    def trajectory(self, parameter: Any) -> Array:
        """All time levels from t = 0, ``(dofs, steps + 1)``."""
        if self.scheme == "exact":
            raise InputError("the exact exponential has no time levels; use a time-stepping scheme")
        return self._march(self.check_parameter(parameter)[:, None], np.arange(self.steps + 1))[:, :, 0].T

    def observe(self, state: Any) -> Array:
        """Sensor values time after time."""
        return self.sensors(self.observed_states(self.check_state(state))).T.ravel()

    def residual(self, state: Any, parameter: Any) -> Array:
        """A column of weak residuals for each time.

        For a trajectory the residual of each step, ``-(u_{n+1} - u_n, v)/dt - a(theta u_{n+1} + (1-theta) u_n, v)``;
        for states at the observation times their distance ``(S q - u, v)`` from the propagated parameter.
        """
        u, q = self.check_state(state), self.check_parameter(parameter)
        if u.ndim == 2 and u.shape[1] == self.steps + 1 and self.scheme != "exact":
            theta = THETA[self.scheme]
            r = -(self.mass @ np.diff(u, axis=1)) / self.time_step
            r -= self.operator @ (theta * u[:, 1:] + (1.0 - theta) * u[:, :-1])
        else:
            r = self.mass @ (self.observed_states(self.solve(q)) - self.observed_states(u))
        r[self.boundary.prescribed] = 0.0
        return np.asarray(r)

    def boundary_defect(self, state: Any, parameter: Any) -> float:
        """L2 norm of the boundary values (largest over time), plus ``‖u(0) - q‖`` where a trajectory is given."""
        u = self.check_state(state)
        if u.ndim == 1:
            u = u[:, None]
        on_boundary = np.einsum("ij,ij->j", u, self.boundary.mass @ u)
        defect = float(np.sqrt(max(on_boundary.max(), 0.0)))
        if self.scheme == "exact" or u.shape[1] != self.steps + 1:
            return defect
        start = u[:, 0].copy()
        start[self.free] -= self._initial(self.check_parameter(parameter)[:, None])[:, 0]
        return defect + float(np.sqrt(max(start @ (self.mass @ start), 0.0)))

    def apply(self, fields: Any) -> Array:
        """Observations of the propagated columns, time after time."""
        return np.vstack([self.sensors.matrix @ u for u in self._states_at(dense(fields))])

    def adjoint(self, weights: Array) -> Array:
        """The transpose: the adjoint scheme run backwards in time."""
        return self.pull(weights)[0]

    def read(self, fields: Any) -> tuple[Array, Array]:
        """`apply`; the values of states are largest at the start, and so are their energies."""
        columns, values = dense(fields), self.apply(fields)
        if not self.measured:
            return values, np.abs(columns).max(axis=0)
        return values, self._lost * self.factor.energies(self._initial(columns))

    def pull(self, weights: Array) -> tuple[Array, Array]:
        """`adjoint`; the values and energies of adjoint states are largest at the last observation."""
        H = self.sensors.matrix[:, self.free]
        parts = [H.T @ w for w in weights.reshape(len(self.times), self.sensors.count, -1)]
        if self.scheme == "exact":
            z = np.sum([self._exponential(t, w, adjoint=True) for t, w in zip(self.times, parts, strict=True)], axis=0)
        else:
            z = self._march_back(parts)
        if not self.measured:
            sizes = np.abs(solve_mass(self.residual_mass, np.asarray(sum(parts)))).max(axis=0, initial=0.0)
        else:
            sizes = self._lost * np.sum([self.solve_errors.factor.dual_norms_above(part) for part in parts], axis=0)
        return np.asarray(self.load[self.free].T @ solve_mass(self.residual_mass, z)), sizes

    @cached_property
    def mass(self) -> Any:
        """Mass matrix on all dofs."""
        return mass_matrix(self.basis, lumped=self.lumped)

    @property
    def solve_rounding(self) -> float:  # type: ignore[override]
        """Every time step is a solve, and loses digits as its condition number says; so do the eigenvectors."""
        return (1 if self.scheme == "exact" else self.steps) * self.factor.rounding

    @property
    def measured(self) -> bool:
        """Where steps end early; with factors it is estimated what rounding leaves of the largest values of states."""
        return self.scheme != "exact" and self.factor.tolerance > 0.0

    @cached_property
    def solve_errors(self) -> SolveErrors:
        """In the energy norm of a step, in which neither states nor errors grow."""
        if self.basis.W.min() > 0.0:
            # Else the stiffness need not be positive.
            self.factor.bound_least(float((self._mass_below / self.factor.diagonal).min()))
        H = self.sensors.matrix[:, self.free]
        return SolveErrors(self.factor, self.load[self.free], H, weight_below(self.parameters))

    @property
    def _mass_below(self) -> Array:
        """A diagonal matrix below the mass matrix, as a vector."""
        return (1.0 if self.lumped else mass_share(self.basis)) * np.asarray(self.residual_mass.diagonal())

    @property
    def _lost(self) -> float:
        """The energy error of all steps, in parts of the energy at the start."""
        return self.steps * (self.factor.rounding + self.factor.tolerance)

    @cached_property
    def loads(self) -> Any:
        """With measured errors: at least ``‖M^-1 l q‖_A / ‖q‖_Q``, A the operator of a step."""
        if not self.measured:
            return self.state_loads
        below = self._mass_below
        size = self.factor.size * float((self.factor.diagonal / below).max())
        return float(np.sqrt(size)) * norm_above(self.load[self.free], below, weight_below(self.parameters))

    def solved_error(self, data: Data, state: Any, at: Any = None) -> float:
        """See `Problem.solved_error`."""
        if not self.measured:
            return 0.0
        error = float(self.read(self.check_parameter(at)[:, None])[1][0])
        return error * data.norm_of_errors(self._at_times(self.solve_errors.sharp_sights))

    @cached_property
    def _stiffness(self) -> Any:
        return self.operator[self.free][:, self.free]

    @cached_property
    def factor(self) -> Factorization:
        """``M + theta dt A`` on the free dofs: one factorization for all steps and all columns."""
        step = self.times[0] if self.scheme == "exact" else THETA[self.scheme] * self.time_step
        matrix = self.residual_mass + step * self._stiffness
        return self.factorize(matrix, definite=True, name="time-stepping operator")

    @cached_property
    def _spectrum(self) -> tuple[Array, Array]:
        values, vectors = dense_eigenpairs(self._stiffness, self.residual_mass, shift=1.0 / self.times[0])
        # What has decayed below e^-60 at the first observation is rounding from then on.
        kept = values * self.times[0] < 60.0
        return values[kept], vectors[:, kept]

    def _initial(self, fields: Array) -> Array:
        """L2 projection of parameter columns on the free dofs."""
        return solve_mass(self.residual_mass, np.asarray((self.load @ fields)[self.free]))

    def _states_at(self, fields: Array) -> Array:
        if self.scheme == "exact":
            start = self._initial(fields)
            states = np.zeros((len(self.times), self.basis.N, fields.shape[1]))
            states[:, self.free] = [self._exponential(t, start) for t in self.times]
            return states
        return self._march(fields, self.observed)

    def _exponential(self, time: float, columns: Array, *, adjoint: bool = False) -> Array:
        """``V exp(-lam t) V' M`` for eigenvectors with ``V' M V = I``, or its transpose."""
        values, V = self._spectrum
        decay = np.exp(-values * time)[:, None]
        if adjoint:
            return np.asarray(self.residual_mass @ (V @ (decay * (V.T @ columns))))
        return V @ (decay * (V.T @ (self.residual_mass @ columns)))

    def _explicit(self, columns: Array) -> Array:
        theta = THETA[self.scheme]
        result = self.residual_mass @ columns
        return result - (1.0 - theta) * self.time_step * (self._stiffness @ columns) if theta < 1.0 else result

    def _march(self, fields: Array, keep: NDArray[np.int64]) -> Array:
        """Time levels `keep` (increasing), shape ``(levels, dofs, columns)``."""
        states = np.zeros((len(keep), self.basis.N, fields.shape[1]))
        u = self._initial(fields)
        slot = {int(level): i for i, level in enumerate(keep)}
        for level in range(int(keep[-1]) + 1):
            if level:
                u = self.factor.solve(self._explicit(u))
            if level in slot:
                states[slot[level], self.free] = u
        return states

    def _march_back(self, parts: list[Array]) -> Array:
        z = np.zeros_like(parts[0])
        slot = {int(level): i for i, level in enumerate(self.observed)}
        for level in range(int(self.observed[-1]), 0, -1):
            if level in slot:
                z = z + parts[slot[level]]
            z = self._explicit(self.factor.solve(z))
        return z
