"""Electrical impedance tomography: the conductivity of a body from currents and voltages of electrodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from skfem import Basis

from ..checks import Array, frozen
from ..errors import InputError
from ..mesh.elements import check_state_basis, same_mesh
from ..shown import in_brief, of_basis
from .base import Problem
from .coefficients import Coefficient, at_quadrature
from .contacts import Contacts, Response, at_points, gradients
from .data import Data
from .forward import BATCH, ROUNDING, Linearization, dense
from .space import ParameterSpace, check_space

TRANSFORMS = ("exp", "contrast")


class ElectrodeTangent(Linearization):
    """The data near a conductivity: ``-∫ sigma' dq grad u . grad w``, u of a current, w of a pattern of voltages."""

    at: Array

    def __init__(self, problem: ElectrodeModel, at: Array, response: Response, slope: Array) -> None:
        self.problem, self.parameters, self.at, self.response = problem, problem.parameters, at, response
        self.observation_count = problem.observation_count
        self._slope = slope

    @cached_property
    def predicted(self) -> Array:
        """Data of the parameter."""
        contacts = self.problem.electrodes
        return frozen(contacts.read(contacts.potentials(self.response.matrix)))

    @property
    def offset(self) -> Array:
        """Data of the coordinates zero, by the linearization."""
        return self.predicted - self.matrix @ self.parameters.project(self.at)[0]

    def _products(self) -> Iterator[tuple[Any, Any, Any]]:
        """``∫ sigma' phi grad u_i . grad u_j`` for pairs ``i <= j`` of unit currents and the dofs phi, in batches."""
        G = self.problem.gradient_at_points(self.response.fields)
        weights = (self._slope * self.problem.basis.dx).reshape(-1, 1)
        first, second = np.triu_indices(G.shape[2])
        for start in range(0, len(first), BATCH):
            i, j = first[start : start + BATCH], second[start : start + BATCH]
            yield i, j, self.problem.parameter_at_points.T @ (weights * np.sum(G[:, :, i] * G[:, :, j], axis=0))

    def apply(self, fields: Any) -> Array:
        """By bilinearity from the change of R, ``-∫ sigma' dq grad u_i . grad u_j``."""
        contacts, n = self.problem.electrodes, len(self.response.matrix)
        change = np.zeros((n, n, np.shape(fields)[1]))
        for i, j, products in self._products():
            change[i, j] = change[j, i] = -dense(fields.T @ products).T
        return contacts.read(contacts.potentials(change))

    def adjoint(self, weights: Array) -> Array:
        """Its transpose: the products of gradients, weighed."""
        pulled = self.problem.electrodes.pull(np.asarray(weights))
        both = pulled + np.swapaxes(pulled, 0, 1)
        found = np.zeros((self.parameters.size, both.shape[2]))
        for i, j, products in self._products():
            found -= products @ (np.where(i == j, 0.5, 1.0)[:, None] * both[i, j])
        return found

    @cached_property
    def matrix(self) -> Array:
        """``J``, ``(m, k)``: no solve but those of the unit currents."""
        return frozen(self.apply(self.parameters.matrix))

    def rounding_of(self, data: Data | None) -> float:
        """A solve loses digits as the condition number of the operator says."""
        return max(ROUNDING, self.response.factor.loss) * (1.0 if data is None else data.spread)


class ElectrodeModel(Problem):
    """Recover the conductivity inside of a body from electrodes that drive currents and read voltages.

    The complete electrode model: ``-div(sigma grad u) = 0``, on the electrode l ``u + z_l sigma du/dn = U_l`` and
    ``∫ sigma du/dn = I_l``, no current through the rest of the boundary. The parameter q is relative to a background
    sigma0, and zero there. The potentials are internal: a candidate is its parameter, its state is None. One
    factorization and L - 1 solves give all data of L electrodes and their Jacobian.

    Parameters
    ----------
    basis
        Of the potential. Potentials are singular at the ends of electrodes: use P2, and a mesh that is finer there.
    electrodes
        Names of parts of the boundary, at least two.
    impedances
        Contact impedances z_l > 0: one number, or one for each electrode.
    currents
        Patterns ``(L, K)``, a column for each; each sums up to zero. Default: from each electrode to the next one.
    voltages
        Patterns ``(L, M)``: what is read for each of the currents, ``sum_l voltages_lm g_l (U_l - U_s)``. Default:
        differences of neighbours. The K M data are those of the first current, then of the second, and so on.
    gains
        g_l > 0 of the channels, one number or one for each, on potentials above that of the electrode s where most of
        the current leaves (the smallest entry of the pattern). Default: 1.
    parameters
        The admissible class of q.
    conductivity
        The background sigma0 > 0: a number, a function of x, per-element array or table by subdomain.
    transform
        ``"exp"``: ``sigma = sigma0 exp(q)``. ``"contrast"``: ``q = 2 (sigma - sigma0) / (sigma + sigma0)``, between -2
        for insulators and 2 for perfect conductors, in which the data are closer to linear.

    Examples
    --------
    A strip between two electrodes, of resistance ``length / (sigma height) + 2 z / height``:

    >>> import numpy as np
    >>> import femcert as fc
    >>> from skfem import Basis, ElementTriP1, MeshTri
    >>> mesh = MeshTri.init_tensor(np.linspace(0.0, 3.0, 7), np.linspace(0.0, 1.0, 3)).with_boundaries(
    ...     {"left": lambda x: x[0] == 0.0, "right": lambda x: x[0] == 3.0}
    ... )
    >>> basis = Basis(mesh, ElementTriP1())
    >>> problem = fc.ElectrodeModel(
    ...     basis, electrodes=["left", "right"], impedances=0.25, parameters=fc.FullSpace(basis), conductivity=2.0
    ... )
    >>> problem.simulate(np.zeros(basis.N)).values.round(9).tolist()
    [2.0]
    """

    def __init__(
        self,
        basis: Basis,
        *,
        electrodes: Sequence[str],
        impedances: Any,
        currents: Any = None,
        voltages: Any = None,
        gains: Any = None,
        parameters: ParameterSpace,
        conductivity: Coefficient = 1.0,
        transform: str = "exp",
    ) -> None:
        self.basis = check_state_basis(basis)
        self.parameters = check_space(parameters)
        if parameters.basis is None or not same_mesh(basis.mesh, parameters.basis.mesh):
            raise InputError("parameters live on another mesh than basis; build them on the same mesh")
        if transform not in TRANSFORMS:
            raise InputError(f"transform is {transform!r}; expected one of {', '.join(TRANSFORMS)}")
        self.transform = transform
        self.conductivity = frozen(at_quadrature(conductivity, basis, "conductivity", sign="positive"))
        patterns = {"currents": currents, "voltages": voltages, "gains": gains}
        self._contacts = Contacts(basis, electrodes, conductivity=self.conductivity, impedances=impedances, **patterns)
        self._latest: ElectrodeTangent | None = None

    @property
    def electrodes(self) -> Contacts:
        """Contacts and patterns."""
        return self._contacts

    @property
    def observation_count(self) -> int:
        """K M."""
        return self._contacts.count

    def summary(self) -> dict[str, str]:
        """Mesh, electrodes, patterns and class."""
        contacts = self._contacts
        patterns = f"{contacts.currents.shape[1]} currents, {contacts.voltages.shape[1]} voltages of each"
        return {
            "mesh": of_basis(self.basis),
            "electrodes": f"{len(contacts.names)}, {patterns}",
            "parameters": in_brief(self.parameters),
        }

    def linearize(self, at: Any = None) -> ElectrodeTangent:
        """Potentials of unit currents at a parameter; the latest ones are kept."""
        if at is None:
            raise InputError("a nonlinear problem is linearized about a parameter; give at=")
        q = self.check_parameter(at)
        if self._latest is None or not np.array_equal(self._latest.at, q):
            sigma, slope = self._sigma(q)
            self._latest = ElectrodeTangent(self, frozen(q), self._contacts.response(sigma, self.factorize), slope)
        return self._latest

    def jacobian(self, parameter: Any) -> Array:
        """``J`` at a parameter, ``(observations, dimension)``."""
        return self.linearize(parameter).matrix

    def predict(self, state: Any, parameter: Any) -> Array:
        """The data of a parameter."""
        return self.linearize(parameter).predicted

    @property
    def backend(self) -> str | None:
        """What solves; None if nothing was solved yet."""
        return None if self._latest is None else self._latest.response.factor.backend

    @property
    def solve_tolerance(self) -> float | None:
        """Relative energy error at which the solves end; None if nothing was solved yet."""
        return None if self._latest is None else self._latest.response.factor.tolerance

    def _sigma(self, q: Array) -> tuple[Array, Array]:
        """The conductivity and its derivative in q, at quadrature points."""
        values = (self.parameter_at_points @ q).reshape(self.basis.dx.shape)
        if self.transform == "exp":
            with np.errstate(over="ignore", under="ignore"):
                sigma = slope = self.conductivity * np.exp(values)
        else:
            if not np.abs(values).max() < 2.0:
                raise InputError(f"a contrast has the size {np.abs(values).max():.4g}; expected less than 2 everywhere")
            sigma = self.conductivity * (2.0 + values) / (2.0 - values)
            slope = self.conductivity * 4.0 / (2.0 - values) ** 2
        if not (np.all(np.isfinite(sigma)) and np.all(sigma > 0.0)):
            raise InputError("the conductivity leaves the range of floats; expected a smaller parameter")
        return sigma, slope

    @cached_property
    def parameter_at_points(self) -> csr_matrix:
        """From parameter dofs to quadrature points, element by element."""
        on = self.basis.with_element(self.parameters.basis.elem)
        shapes = [np.broadcast_to(np.asarray(shape[0]), on.dx.shape) for shape in on.basis]
        return at_points(on.element_dofs, shapes, int(on.N))

    @cached_property
    def _derivatives(self) -> list[csr_matrix]:
        return gradients(self.basis, self.basis.element_dofs, int(self.basis.N))

    def gradient_at_points(self, fields: Array) -> Array:
        """Gradients of states at quadrature points, ``(dimension, points, columns)``."""
        return np.stack([D @ fields for D in self._derivatives])
