"""A state equation and what may be known of it: each capability returns an object, or None where it is not known."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from skfem import Basis

from ..checks import Array, freeze_sparse, real_vector
from ..errors import InputError
from ..linalg import Factorization
from ..mesh.elements import mass_matrix
from .boundary import BoundaryConditions
from .sensors import Sensors
from .strong import StrongForm


@dataclass(frozen=True)
class Energy:
    """A symmetric positive definite matrix on the states, ``‖u‖² = u' A u``, and its factorization on the free dofs.

    Attributes
    ----------
    name
        Of the norm, for tables.
    matrix
        On all dofs.
    factor
        On the free dofs; None where it has not been factorized yet.
    """

    name: str
    matrix: Any
    factor: Factorization | None = None


@dataclass(frozen=True)
class SparseSystem:
    """``A u = l B c + f``, ``y = H u`` with sparse matrices on the free dofs, for routes that factorize them together.

    Attributes
    ----------
    operator, load, sensors
        A, l (on the dofs of the parameter) and H.
    known
        f, with what prescribed values add to it.
    prescribed
        What the sensors read of the prescribed values themselves.
    factorize
        Gives the factorization of A that the problem itself solves with, made when it is first asked for.
    """

    operator: Any
    load: Any
    sensors: Any
    known: Array
    prescribed: Array
    factorize: Callable[[], Factorization]

    @property
    def factor(self) -> Factorization:
        """The factorization of A."""
        return self.factorize()


@dataclass(frozen=True)
class TimeStepping:
    """How a state depends on time.

    Attributes
    ----------
    times
        Of the observations, increasing.
    steps, step
        Number and length of the time steps up to the last observation.
    scheme
        ``"crank-nicolson"``, ``"backward-euler"`` or ``"exact"``, which has no time levels in between.
    observed
        Time levels of the observations.
    trajectory
        ``(parameter) -> (dofs, steps + 1)``: all time levels.
    strong
        ``(rate) -> StrongForm``: the elliptic equation at one time, for a time derivative (dof vector).
    """

    times: Array
    steps: int
    step: float
    scheme: str
    observed: NDArray[np.int64]
    trajectory: Callable[[Any], Array]
    strong: Callable[[Array], StrongForm]

    @property
    def stepped(self) -> bool:
        """Whether there are time levels between the observations."""
        return self.scheme != "exact"


def strong_form(equation: StateEquation, parameter: Any) -> StrongForm | None:
    """``equation.strong(parameter)``, refused where it is no strong form, or has other boundary conditions."""
    form = equation.strong(parameter)
    if form is None:
        return None
    if not isinstance(form, StrongForm):
        raise InputError(f"strong() returned a {type(form).__name__}; expected a StrongForm or None")
    if form.boundary is not equation.boundary:
        raise InputError("strong() returned other boundary conditions than those of the forms; expected self.boundary")
    return form


class StateEquation(ABC):
    """One state equation with its sensors. A problem with one equation is its own.

    Attributes
    ----------
    basis
        Of the state.
    boundary
        Boundary conditions as algebra.
    sensors
        Functionals of the state.
    lumped
        Whether a strong residual is measured with the lumped mass matrix.
    """

    basis: Basis
    boundary: BoundaryConditions
    sensors: Sensors
    lumped: bool = False

    @property
    def free(self) -> NDArray[np.int64]:
        """Dofs that no Dirichlet condition prescribes."""
        return self.boundary.free

    @cached_property
    def residual_mass(self) -> Any:
        """Mass matrix on the free dofs, in which a strong residual is measured."""
        return freeze_sparse(mass_matrix(self.basis, lumped=self.lumped)[self.free][:, self.free])

    @abstractmethod
    def residual(self, state: Any, parameter: Any) -> Array:
        """Weak residual ``<r, phi_i> = l(q)(phi_i) - a(u, phi_i)``, zero at prescribed dofs.

        Several columns where the state has several time levels.
        """

    def boundary_defect(self, state: Any, parameter: Any) -> float:
        """``‖u - g‖`` in L2 of the Dirichlet boundary; where there is an initial value, its error too."""
        defect = real_vector(state, self.basis.N, "state") - self.boundary.values
        return float(np.sqrt(max(defect @ (self.boundary.mass @ defect), 0.0)))

    @abstractmethod
    def derivatives(self, state: Any, parameter: Any) -> tuple[Any, Any]:
        """Derivatives of ``-residual`` in state and parameter at any pair, sparse, on all dofs."""

    def energy(self, parameter: Any = None, state: Any = None) -> Energy | None:
        """The energy norm of the operator (linearized at a pair); None where it is not said to be definite."""
        return None

    def strong(self, parameter: Any) -> StrongForm | None:
        """The equation as fields, for bounds over the continuous space; None for forms that are known as forms only."""
        return None

    def system(self) -> SparseSystem | None:
        """The matrices of a stationary linear equation; None elsewhere."""
        return None

    @property
    def time(self) -> TimeStepping | None:
        """How the state depends on time; None where it does not."""
        return None
