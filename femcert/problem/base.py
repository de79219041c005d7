"""What an inverse problem offers: a class of parameters, data, states, and what is known of each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from skfem import Basis

from ..checks import Array, count, kind_of, number, real_vector
from ..errors import InputError
from ..linalg import Factorization
from ..mesh.elements import check_field_basis, same_mesh
from ..shown import Shown, in_brief, of_basis
from .boundary import BoundaryConditions, Value, boundary_conditions
from .contacts import Contacts
from .data import Data
from .forward import ROUNDING, Linearization, LinearMap
from .noise import gaussian_radius
from .sensors import Sensors
from .space import ParameterSpace, check_space
from .states import StateEquation
from .together import OneSolve


class Problem(Shown, ABC):
    """An inverse problem: recover `parameter` from data that depend on it.

    A subclass gives `parameters`, `observation_count`, `linearize`, and `forward` if it is linear (`LinearMap` gives
    both); then evidence, exact radii, Tikhonov and the selector work. What more it offers (state equations with a
    strong form, a map in closed form) is asked for where a rule needs it. No rule depends on the class of a problem.

    Attributes
    ----------
    parameters
        The admissible class (its ``basis`` is the parameter's).
    basis
        Of the state, or of an image; None where a problem is known by matrices only.
    sensors
        Functionals of the state; None where the data are no readings of one state.
    states
        The state equations: none (images, matrices), one (the problem itself), or several.
    """

    parameters: ParameterSpace
    basis: Any = None
    sensors: Any = None
    # What makes factorizations; `Experiments` gives its problems one that shares them.
    factorize: Callable[..., Factorization] = Factorization

    @property
    def states(self) -> tuple[StateEquation, ...]:
        """The state equations that candidates carry states of."""
        return ()

    @property
    def experiments(self) -> tuple[Problem, ...]:
        """The experiments that its data come from, one after the other, where there are several."""
        return ()

    @property
    def electrodes(self) -> Contacts | None:
        """Electrodes that drive currents and read voltages; None where there are none."""
        return None

    @property
    @abstractmethod
    def observation_count(self) -> int:
        """Length of the data vector."""

    @abstractmethod
    def linearize(self, at: Any = None) -> Linearization:
        """``data = J c + offset`` about a parameter (dof vector).

        Of a linear problem it holds everywhere: `at` is ignored, and the same object is returned each time. Of a
        nonlinear problem `at` is needed.
        """

    @property
    def forward(self) -> LinearMap | None:
        """``data = F c + offset`` for every parameter of the class; None where the data are not linear in it."""
        return None

    @property
    def mesh(self) -> Any:
        """That of the parameter; None where there is none."""
        return None if self.parameters.basis is None else self.parameters.basis.mesh

    def closed_map(self, whitening: Array) -> Any:
        """The forward map of the continuous problem in closed form, to whitened data; None where none is known.

        Raises
        ------
        UncertifiedError
            One is known for such problems, but not for this one; the message says why.
        """
        return None

    def summary(self) -> dict[str, str]:
        """Class and number of data."""
        return {"parameters": in_brief(self.parameters), "data": f"{self.observation_count} values"}

    def check_parameter(self, parameter: Any) -> Array:
        """`parameter` as a finite real dof vector on the parameter's basis, or an `InputError`."""
        return real_vector(parameter, self.parameters.size, "parameter")

    def check_state(self, state: Any) -> Array:
        """`state` as finite real dof values, or an `InputError`."""
        raise InputError(f"a {type(self).__name__} has no state; expected state=None")

    def check_data(self, data: Data) -> Data:
        """`data` if it has one value per observation, else an `InputError`."""
        if not isinstance(data, Data):
            raise InputError(f"data is {kind_of(data)}; expected femcert.Data(values, noise_level)")
        if data.values.size != self.observation_count:
            expected = f"the problem has {self.observation_count} observations"
            raise InputError(f"data has {data.values.size} values; {expected}")
        return data

    def solve(self, parameter: Any) -> Array | None:
        """The state that belongs to a parameter (dof vectors); None where candidates have none."""
        return None

    def one_solve(self, parameter: Any) -> OneSolve | None:
        """The solve that `linearize` at a parameter waits for, if it is one, so that several can be done together."""
        return None

    def predict(self, state: Any, parameter: Any) -> Array:
        """What a candidate pair says the data should be: ``H u`` where there is a state, else those of the parameter.

        The default is for linear problems without a state.
        """
        q = self.check_parameter(parameter)
        forward = self.linearize(q)
        return forward.apply(q[:, None])[:, 0] + forward.offset

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
        exact = self.predict(self.solve(parameter), parameter)
        m = exact.size
        deviation = number(noise, "noise", least=0.0) * float(np.linalg.norm(exact)) / np.sqrt(m)
        error = deviation * np.random.default_rng(count(seed, "seed", least=0)).standard_normal(m)
        level = float(np.linalg.norm(error)) if oracle else deviation * gaussian_radius(m, confidence)
        return Data(exact + error, level)

    def misfit_gradient(self, parameter: Any, data: Data, *, coordinates: Array | None = None) -> Array:
        """Gradient of ``½ ‖predicted - y‖_Y²`` in the coordinates, at a parameter, by one adjoint.

        `coordinates` are those of the parameter, where they are known already.
        """
        q = self.check_parameter(parameter)
        misfit = data.whiten(self.predict(self.solve(q), q) - self.check_data(data).values)
        weights = data.whiten_transposed(misfit)[:, None]
        return np.asarray(self.parameters.matrix.T @ self.linearize(q).adjoint(weights))[:, 0]

    @property
    def rounding(self) -> float:
        """What the solves behind a prediction may lose to rounding, relative to its size."""
        return ROUNDING

    def lost_to_rounding(self, data: Data, state: Any, at: Any = None) -> float:
        """What rounding may leave in ``predicted - y``, in the norm of Y, for a computed state u."""
        forward, q = self.linearize(at), self.check_parameter(at)
        parts = [self.predict(state, q)] if self.forward is None else [forward.apply(q[:, None])[:, 0], forward.offset]
        size = sum(data.norm(part) for part in [*parts, data.values])
        return forward.rounding_of(data) * size + forward.error(data) * self.parameters.norm(q)

    def solved_error(self, data: Data, state: Any, at: Any = None) -> float:
        """What the solve for a state may have left in its data, in the norm of Y, where `rounding` does not say it."""
        return 0.0

    @property
    def backend(self) -> str | None:
        """What solves the state equation (see `femcert.linalg.use_backend`); None if nothing was solved."""
        return None

    @property
    def solve_tolerance(self) -> float | None:
        """Relative energy error at which its solves end, 0 where it has factors; None if nothing was solved."""
        return None


class EquationProblem(Problem, StateEquation):
    """A problem with one state equation on a finite-element basis, which it is itself.

    A subclass gives `solve`, `residual`, `derivatives` and `linearize`.
    """

    basis: Basis
    sensors: Sensors
    # Whether parameters may live on a boundary, be several, or be numbers without a mesh.
    any_class = False

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
        check_field_basis(basis)
        check_home(basis, parameters, sensors)
        if not self.any_class and parameters.basis is None:
            raise InputError(
                f"a {type(self).__name__} takes fields in the domain, not a {type(parameters).__name__}; use "
                "LinearProblem or NonlinearProblem with your forms"
            )
        self.basis = basis
        self.parameters = parameters
        self.sensors = sensors
        self.boundary = boundary_conditions(basis, dirichlet=dirichlet, neumann=neumann, robin=robin)
        check_reach(parameters, self.boundary)
        self.lumped = lumped

    @property
    def states(self) -> tuple[StateEquation, ...]:
        """Itself."""
        return (self,)

    @property
    def observation_count(self) -> int:
        """Length of the data vector."""
        return self.sensors.count

    @property
    def mesh(self) -> Any:
        """That of the state; None where parameters are no fields in the domain, so that there is none for both."""
        return None if self.parameters.basis is None else self.basis.mesh

    def summary(self) -> dict[str, str]:
        """Mesh, class, sensors and boundary conditions."""
        return {
            "mesh": of_basis(self.basis),
            "parameters": in_brief(self.parameters),
            "sensors": in_brief(self.sensors),
            "boundary": in_brief(self.boundary),
        }

    def check_state(self, state: Any) -> Array:
        """`state` as finite real dof values on the state's basis, or an `InputError`."""
        if state is None:
            raise InputError(f"a {type(self).__name__} needs the state; expected problem.solve(parameter), got None")
        return real_vector(state, self.basis.N, "state")

    @abstractmethod
    def solve(self, parameter: Any) -> Array:
        """State that belongs to a parameter (dof vectors)."""

    def observe(self, state: Any) -> Array:
        """``H u``, a value per observation."""
        return self.sensors(self.check_state(state))

    def predict(self, state: Any, parameter: Any) -> Array:
        """``H u``."""
        return self.observe(state)

    def observed_states(self, state: Array) -> Array:
        """The dof vector that the sensors read, or a column for each observation time."""
        return state

    def lost_to_rounding(self, data: Data, state: Any, at: Any = None) -> float:
        """What rounding may leave in ``H u - y``, in the norm of Y, for a computed state u.

        Errors of a state are relative to its largest value, not to what the sensors read of it: averages cancel, and
        differences of large temperatures are small.
        """
        weights = np.asarray(abs(self.sensors.matrix).sum(axis=1)).ravel()
        sizes = np.multiply.outer(np.abs(self.observed_states(state)).max(axis=0), weights).ravel()
        return self.linearize(at).rounding_of(data) * (data.norm(sizes) + data.norm(data.values))

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


def check_problem(problem: Any) -> Problem:
    """`problem` if it is one, else an `InputError`."""
    if not isinstance(problem, Problem):
        raise InputError(f"problem is {kind_of(problem)}; expected one such as EllipticSource")
    return problem


def check_home(basis: Basis, parameters: Any, sensors: Any) -> None:
    """Refuse parameters or sensors that were made for another mesh or element than `basis`."""
    check_space(parameters)
    if not isinstance(sensors, Sensors):
        raise InputError(f"sensors is {kind_of(sensors)}; expected sensors such as PointSensors")
    for space in [factor for factor, _ in parameters.factors.values()] or [parameters]:
        if space.carrier is not None and not same_mesh(basis.mesh, space.carrier.mesh):
            raise InputError("parameters live on another mesh than basis; build them on the same mesh")
    made_for = sensors.basis
    if made_for is not None and not (same_mesh(basis.mesh, made_for.mesh) and type(made_for.elem) is type(basis.elem)):
        raise InputError("sensors were made for another mesh or element than basis; build them on this basis")
    if sensors.matrix.shape[1] != basis.N:
        raise InputError(f"sensors expect {sensors.matrix.shape[1]} dofs, but basis has {basis.N}")


def check_reach(parameters: ParameterSpace, boundary: BoundaryConditions) -> None:
    """Refuse unknowns on facets where the state is given: it would not see them."""
    given = [part.facets for part in boundary.dirichlet]
    for space in [factor for factor, _ in parameters.factors.values()] or [parameters]:
        shared = 0 if space.facets is None or not given else len(np.intersect1d(space.facets, np.concatenate(given)))
        if shared:
            raise InputError(
                f"u is given on {shared} facets of the unknown (by default it is 0 wherever no natural condition is "
                "named); expected dirichlet={...} with other parts only, or {} for none"
            )
