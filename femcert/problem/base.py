"""What every inverse problem offers: parameter to state, state to data, and their residual."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from skfem import Basis

from ..checks import Array, count, freeze_sparse, number, real_vector
from ..errors import InputError
from ..mesh.elements import check_state_basis, mass_matrix, same_mesh
from ..shown import Shown, in_brief, of_basis
from .boundary import Value, boundary_conditions
from .data import Data, gaussian_radius
from .sensors import Sensors
from .space import ParameterSpace, check_space

# Sums, products and solves with a mass matrix (they stop at 1e-13) lose at most this, relatively.
ROUNDING = 1e-12


class Problem(Shown, ABC):
    """An inverse problem on finite elements: recover `parameter` from sensor values of its state.

    A subclass gives `solve` and `residual`; everything that a certificate needs follows.

    Attributes
    ----------
    basis
        Basis of the state.
    parameters
        The admissible class (its ``basis`` is the parameter's).
    sensors
        Functionals of the state.
    boundary
        Boundary conditions as algebra.
    linear
        Whether the state depends linearly (affinely) on the parameter.
    has_state
        Whether candidates carry a state.
    """

    linear: bool
    has_state = True

    def __init__(
        self,
        basis: Basis,
        parameters: ParameterSpace,
        sensors: Sensors,
        *,
        dirichlet: Value | Mapping[str, Value] | None,
        neumann: Mapping[str, Value] | None,
        robin: Mapping[str, tuple[Value, Value]] | None,
        lumped: bool = False,
    ) -> None:
        check_state_basis(basis)
        check_space(parameters)
        if not isinstance(sensors, Sensors):
            raise InputError(f"sensors is a {type(sensors).__name__}; expected sensors such as PointSensors")
        if not same_mesh(basis.mesh, parameters.basis.mesh):
            raise InputError("parameters live on another mesh than basis; build them on the same mesh")
        made_for = sensors.basis
        if made_for is not None and not (
            same_mesh(basis.mesh, made_for.mesh) and type(made_for.elem) is type(basis.elem)
        ):
            raise InputError("sensors were made for another mesh or element than basis; build them on this basis")
        if sensors.matrix.shape[1] != basis.N:
            raise InputError(f"sensors expect {sensors.matrix.shape[1]} dofs, but basis has {basis.N}")
        self.basis = basis
        self.parameters = parameters
        self.sensors = sensors
        self.boundary = boundary_conditions(basis, dirichlet=dirichlet, neumann=neumann, robin=robin)
        self.lumped = lumped

    @property
    def observation_count(self) -> int:
        """Length of the data vector."""
        return self.sensors.count

    def summary(self) -> dict[str, str]:
        """Mesh, class, sensors and boundary conditions."""
        return {
            "mesh": of_basis(self.basis),
            "parameters": in_brief(self.parameters),
            "sensors": in_brief(self.sensors),
            "boundary": in_brief(self.boundary),
        }

    def check_parameter(self, parameter: Any) -> Array:
        """`parameter` as a finite real dof vector on the parameter's basis, or an `InputError`."""
        return real_vector(parameter, self.parameters.basis.N, "parameter")

    def check_state(self, state: Any) -> Array:
        """`state` as finite real dof values on the state's basis, or an `InputError`."""
        return real_vector(state, self.basis.N, "state")

    def check_data(self, data: Data) -> Data:
        """`data` if it has one value per observation, else an `InputError`."""
        if not isinstance(data, Data):
            raise InputError(f"data is a {type(data).__name__}; expected femcert.Data(values, noise_level)")
        if data.values.size != self.observation_count:
            expected = f"the problem has {self.observation_count} observations"
            raise InputError(f"data has {data.values.size} values; {expected}")
        return data

    @abstractmethod
    def solve(self, parameter: Any) -> Array:
        """State that belongs to a parameter (dof vectors)."""

    @abstractmethod
    def residual(self, state: Any, parameter: Any) -> Array:
        """Weak residual ``<r, phi_i> = l(q)(phi_i) - a(u, phi_i)``, zero at prescribed dofs.

        Several columns where the state has several time levels.
        """

    def observe(self, state: Any) -> Array:
        """``H u``, a value per observation."""
        return self.sensors(self.check_state(state))

    def predict(self, state: Any, parameter: Any) -> Array:
        """What a candidate pair says the sensors should read: ``H u`` where there is a state."""
        return self.observe(state)

    def simulate(
        self, parameter: Any, *, noise: float = 0.0, seed: int = 0, confidence: float = 0.95, oracle: bool = False
    ) -> Data:
        """Synthetic data of a known parameter, with independent Gaussian noise of equal size at all sensors.

        Parameters
        ----------
        parameter
            The truth, a dof vector.
        noise
            Relative size: the standard deviation at each of the m sensors is ``s = noise ‖H u‖ / sqrt(m)``.
        seed
            Of the noise that is drawn.
        confidence
            Probability with which the noise is at most the noise level of the result, ``s chi2_m(confidence)^1/2``:
            what a user can know who knows the standard deviation of the sensors. In the remaining cases (one in
            twenty) the noise is above its level, and no claim that rests on the level is made for such data.
        oracle
            Take the norm of the noise that was drawn as noise level instead. Nobody who measures knows it; it is the
            protocol of the paper, and of tests that need noise that is certainly within its level.
        """
        exact = self.observe(self.solve(parameter))
        m = exact.size
        deviation = number(noise, "noise", least=0.0) * float(np.linalg.norm(exact)) / np.sqrt(m)
        error = deviation * np.random.default_rng(count(seed, "seed", least=0)).standard_normal(m)
        level = float(np.linalg.norm(error)) if oracle else deviation * gaussian_radius(m, confidence)
        return Data(exact + error, level)

    @property
    def rounding(self) -> float:
        """What the solves behind a prediction may lose to rounding, relative to its size."""
        return ROUNDING

    def rounding_of(self, data: Data | None, at: Any = None) -> float:
        """The same in the norm of the data, relative to ``‖H u‖_Y``; without data the norm is Euclidean.

        Of a nonlinear problem at a parameter.
        """
        return self.rounding * (1.0 if data is None else data.spread)

    def lost_to_rounding(self, data: Data, state: Any, at: Any = None) -> float:
        """What rounding may leave in ``H u - y``, in the norm of Y, for a computed state u.

        Errors of a state are relative to its largest value, not to what the sensors read of it: averages cancel, and
        differences of large temperatures are small.
        """
        weights = np.asarray(abs(self.sensors.matrix).sum(axis=1)).ravel()
        sizes = np.multiply.outer(np.abs(self.observed_states(state)).max(axis=0), weights).ravel()
        return self.rounding_of(data, at) * (data.norm(sizes) + data.norm(data.values))

    def forward_error(self, data: Data | None) -> float:
        """What rounding may have moved the forward map by, as a norm from Q to Y, beside `rounding_of`; 0: no more."""
        return 0.0

    def observed_states(self, state: Array) -> Array:
        """The dof vector that the sensors read, or a column for each observation time."""
        return state

    @property
    def backend(self) -> str | None:
        """What solves the state equation (see `femcert.linalg.use_backend`); None if nothing was solved yet."""
        factor = vars(self).get("factor")
        return None if factor is None else factor.backend

    @property
    def solve_tolerance(self) -> float | None:
        """Relative energy error at which its solves end, 0 where it has factors; None if nothing was solved yet."""
        factor = vars(self).get("factor")
        return None if factor is None else factor.tolerance

    @property
    def free(self) -> NDArray[np.int64]:
        """Dofs that no Dirichlet condition prescribes."""
        return self.boundary.free

    @cached_property
    def residual_mass(self) -> Any:
        """Mass matrix on the free dofs, in which a strong residual is measured."""
        return freeze_sparse(mass_matrix(self.basis, lumped=self.lumped)[self.free][:, self.free])

    def boundary_defect(self, state: Any, parameter: Any) -> float:
        """``‖u - g‖`` in L2 of the Dirichlet boundary; where there is an initial value, its error too."""
        defect = self.check_state(state) - self.boundary.values
        return float(np.sqrt(max(defect @ (self.boundary.mass @ defect), 0.0)))
