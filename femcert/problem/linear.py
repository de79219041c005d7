"""Linear inverse problems: one factorization serves states, forward matrix and adjoints."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import diags
from skfem import Basis

from ..checks import Array, freeze_sparse, frozen
from ..errors import SolveError
from ..linalg import Factorization
from ..linalg.accuracy import gamma
from .base import EquationProblem
from .boundary import Value
from .data import Data
from .forward import dense
from .gram import weight_below
from .sensors import Sensors
from .solve_errors import MeasuredMap, SolveErrors, bound_least
from .space import ParameterSpace
from .states import Energy, SparseSystem
from .terms import bilinear, linear, load_matrix

# Entries of a forward matrix that is cheap enough to be made for a gradient alone.
SMALL_FORWARD_MATRIX = 10_000_000


class LinearProblem(MeasuredMap, EquationProblem):
    """State equation ``a(u, v) = l(q, v) + f(v)`` with the user's own scikit-fem forms.

    Parameters
    ----------
    basis
        Basis of the state.
    operator
        ``a(u, v)`` as a ``BilinearForm`` or as an assembled sparse matrix. Here and below a pair ``(form, basis)``
        says where a form is integrated, such as ``(form, FacetBasis(mesh, element, facets=...))``, and a list is a sum.
    load
        ``l(q, v)``, trial function q on the parameter's basis; form, pair, matrix or list. Default: ``(q, v)``, on the
        boundary part of a `TraceSpace`. For a `ProductSpace` a list, or a mapping by name: one entry for each factor.
    source
        Known load ``f(v)``: a ``LinearForm``, a pair, an assembled vector, or a list.
    parameters, sensors
        The admissible class and the observations.
    dirichlet, neumann, robin
        Boundary conditions; see `femcert.problem.boundary.boundary_conditions`.
    definite
        Say True where the operator is symmetric positive definite: its factorization is two to four times faster.
    lumped
        Measure strong residuals with the lumped instead of the consistent mass matrix.
    """

    any_class = True

    def __init__(
        self,
        basis: Basis,
        *,
        operator: Any,
        parameters: ParameterSpace,
        sensors: Sensors,
        load: Any = None,
        source: Any = None,
        dirichlet: Value | Mapping[str, Value] | None = None,
        neumann: Mapping[str, Value] | None = None,
        robin: Mapping[str, tuple[Value, Value]] | None = None,
        definite: bool = False,
        lumped: bool = False,
    ) -> None:
        super().__init__(
            basis, parameters, sensors, dirichlet=dirichlet, neumann=neumann, robin=robin, lumped=lumped
        )
        A = bilinear(operator, basis, "operator")
        self.operator = freeze_sparse(A if self.boundary.operator is None else A + self.boundary.operator)
        self.load = freeze_sparse(load_matrix(load, parameters, basis))
        self.source = linear(source, basis, "source")
        if self.boundary.load is not None:
            self.source = self.source + self.boundary.load
        self.source = frozen(self.source)
        self.definite = definite

    @cached_property
    def factor(self) -> Factorization:
        """The factorized operator on the free dofs."""
        A = self.operator[self.free][:, self.free]
        try:
            return self.factorize(A, definite=self.definite, name="operator of the state equation")
        except SolveError as error:
            if len(self.boundary.prescribed):
                raise
            hint = "no Dirichlet condition is given; a reaction or a Robin condition would also fix the state"
            raise SolveError(f"{error} ({hint})") from None

    @property
    def least_share(self) -> float:
        """A proved c with ``A >= c D`` for the operator on the free dofs and its diagonal D; 0 where none is known."""
        return 0.0

    @property
    def measured(self) -> bool:
        """See `MeasuredMap.measured`: where the operator is said to be definite."""
        return self.definite

    @cached_property
    def solve_errors(self) -> SolveErrors:
        """See `MeasuredMap.solve_errors`."""
        free = self.free
        bound_least(self.factor, self.operator[free][:, free], self.least_share)
        return SolveErrors(self.factor, self.load[free], self.sensors.matrix[:, free], weight_below(self.parameters))

    @property
    def solve_rounding(self) -> float:  # type: ignore[override]
        """What rounding takes of the states behind a reading, relative to them: an estimate."""
        return self.factor.rounding

    def solve(self, parameter: Any) -> Array:
        """``u`` with ``a(u, v) = l(q, v) + f(v)`` for all v, and ``u = g`` on the Dirichlet part."""
        q = self.check_parameter(parameter)
        u = self.boundary.values.copy()
        right = self.load @ q + self.source - self.operator @ u
        u[self.free] = self.factor.solve(right[self.free])
        return u

    def residual(self, state: Any, parameter: Any) -> Array:
        """Weak residual ``l(q, phi_i) + f(phi_i) - a(u, phi_i)``, zero at prescribed dofs."""
        u, q = self.check_state(state), self.check_parameter(parameter)
        r = self.load @ q + self.source - self.operator @ u
        r[self.boundary.prescribed] = 0.0
        return np.asarray(r)

    def derivatives(self, state: Any, parameter: Any) -> tuple[Any, Any]:
        """The operator and minus the load, the same at every pair."""
        return self.operator, -self.load

    def energy(self, parameter: Any = None, state: Any = None) -> Energy | None:
        """The norm of the operator, where it is said to be definite."""
        return Energy("norm of the operator", self.operator, self.factor) if self.definite else None

    def system(self) -> SparseSystem | None:
        """Operator, load and sensors on the free dofs."""
        free = self.free
        values = self.boundary.values
        A, load, H = self.operator[free][:, free], self.load[free], self.sensors.matrix
        known = (self.source - self.operator @ values)[free]
        return SparseSystem(A, load, H[:, free], known, H @ values, lambda: self.factor)

    def _states(self, fields: Any) -> tuple[Array, Array]:
        """Loads and states of columns of parameter dofs on the free dofs, source and data set to zero."""
        right = dense((self.load @ fields)[self.free])
        return right, self.factor.solve(right)

    def apply(self, fields: Any) -> Array:
        """``H S`` for columns of parameter dofs, data and source set to zero."""
        return np.asarray(self.sensors.matrix[:, self.free] @ self._states(fields)[1])

    def read(self, fields: Any) -> tuple[Array, Array]:
        """`apply`, and the energy error of every state; where that is not measured, its largest value."""
        right, u = self._states(fields)
        values = np.asarray(self.sensors.matrix[:, self.free] @ u)
        if self.measured:
            return values, self.solve_errors.of_fields(u, right, fields)
        return values, np.abs(u).max(axis=0, initial=0.0) + self._summed(fields)

    def _summed(self, fields: Any) -> Array:
        """How large states would be without cancellation in their loads: largest ``|l| |q| / A_ii`` for each column."""
        return np.asarray(dense(self._load_sizes @ abs(fields))).max(axis=0, initial=0.0)

    @cached_property
    def _load_sizes(self) -> Any:
        diagonal = np.abs(self.operator.diagonal()[self.free])
        return diags(1.0 / np.where(diagonal > 0.0, diagonal, 1.0)) @ abs(self.load[self.free])

    def _adjoint_states(self, weights: Array) -> tuple[Array, Array]:
        right = dense((self.sensors.matrix.T @ weights)[self.free])
        return right, self.factor.solve_transposed(right)

    def adjoint(self, weights: Array) -> Array:
        """``(H S)'`` for columns of sensor weights."""
        return np.asarray(self.load[self.free].T @ self._adjoint_states(weights)[1])

    def pull(self, weights: Array) -> tuple[Array, Array]:
        """`adjoint`, and the energy error of every adjoint state; where that is not measured, its largest value."""
        right, z = self._adjoint_states(weights)
        values = np.asarray(self.load[self.free].T @ z)
        if self.measured:
            return values, self.solve_errors.of_adjoints(z, right, weights)
        return values, np.abs(z).max(axis=0, initial=0.0)

    @property
    def state_readings(self) -> Array:
        """Of the sensors, time after time."""
        return self._at_times(np.asarray(abs(self.sensors.matrix).sum(axis=1)).ravel())

    def _at_times(self, weights: Array) -> Array:
        return np.tile(weights, self.observation_count // self.sensors.count)

    @property
    def state_loads(self) -> Array:
        """Of the columns of the class."""
        B = self.parameters.matrix
        return np.asarray(abs(B).T @ (abs(self.load).T @ np.ones(self.basis.N))).ravel()

    def exact(self, purpose: str) -> LinearProblem:
        """Itself, if the solves with its factorization end at rounding."""
        self.factor.exact(purpose)
        return self

    def misfit_gradient(self, parameter: Any, data: Data, *, coordinates: Array | None = None) -> Array:
        """Gradient of ``½ ‖H u(q) - y‖_Y²`` in the coordinates, at a parameter of the class.

        From the forward matrix where it is small, else by one state and one adjoint solve.
        """
        k, m = self.parameters.dimension, self.check_data(data).values.size
        if not (k <= m and k * m <= SMALL_FORWARD_MATRIX):
            return super().misfit_gradient(parameter, data)
        F = data.whiten(self.matrix)
        q = self.check_parameter(parameter)
        c = self.parameters.project(q)[0] if coordinates is None else coordinates
        return np.asarray(F.T @ (F @ c - data.whiten(data.values - self.offset)))

    @cached_property
    def _rest_state(self) -> Array | None:
        """State of the zero parameter; None where nothing is prescribed, so that it is zero."""
        if self.boundary.homogeneous and not self.source.any():
            return None
        return frozen(self.solve(np.zeros(self.parameters.size)))

    @cached_property
    def offset(self) -> Array:
        """Data of the zero parameter: ``y = F c + offset``."""
        if self._rest_state is None:
            return frozen(np.zeros(self.observation_count))
        return frozen(self.observe(self._rest_state))

    def offset_rounding(self, data: Data) -> float:
        """What rounding may leave in ``y - offset``, in the norm of Y; 0 where there is no offset."""
        u = self._rest_state
        if u is None:
            return 0.0
        if not self.measured:
            return self.lost_to_rounding(data, u)
        H = self.sensors.matrix
        read = self._at_times(gamma(int(np.diff(H.indptr).max(initial=0))) * np.asarray(abs(H) @ np.abs(u)))
        return super().offset_rounding(data) + data.norm_of_errors(read) + self.solved_error(data, u)

    def solved_error(self, data: Data, state: Any, at: Any = None) -> float:
        """See `Problem.solved_error`: by the residual of the state."""
        if not self.measured:
            return 0.0
        errors = self.solve_errors
        q, free = np.zeros(self.parameters.size) if at is None else self.check_parameter(at), self.free
        terms = self.load @ q, self.source, -(self.operator @ self.boundary.values)
        sizes = abs(self.load) @ np.abs(q), np.abs(self.source), abs(self.operator) @ np.abs(self.boundary.values)
        right, summed = (np.asarray(sum(each))[free, None] for each in (terms, sizes))
        error = float(errors.of_states(np.asarray(state)[free, None], right, summed)[0])
        return error * data.norm_of_errors(errors.sights_for(error, float(np.linalg.norm(data.values))))
