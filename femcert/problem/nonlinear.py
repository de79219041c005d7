"""Nonlinear inverse problems: Newton for the state, adjoints for the Jacobian and the gradient."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from skfem import Basis, BilinearForm, LinearForm

from ..checks import Array, freeze_sparse, frozen
from ..errors import InputError, SolveError
from ..linalg import Factorization
from .base import EquationProblem
from .boundary import Value
from .curvature import Curvature
from .data import Data
from .forward import ROUNDING, Linearization
from .sensors import Sensors
from .space import ParameterSpace
from .states import Energy
from .terms import derivatives_of, terms_of
from .together import Chain, OneSolve, applied, pulled

MOST_NEWTON_STEPS = 50
MOST_HALVINGS = 30


class Tangent(Linearization):
    """A nonlinear problem about a solved pair: ``J = -H R_u^-1 R_q B``, by forward or adjoint solves.

    Attributes
    ----------
    state
        Of the parameter `at`.
    factor
        The factorized derivative ``R_u`` in the state, on the free dofs.
    coupling
        The derivative ``R_q`` in the parameter, rows of the free dofs.
    """

    at: Array
    chain: Chain

    def __init__(
        self, problem: NonlinearProblem, at: Array, state: Array, factor: Factorization, coupling: Any
    ) -> None:
        self.problem, self.parameters = problem, problem.parameters
        self.at, self.state, self.factor, self.coupling = at, state, factor, coupling
        self.chain = Chain(problem.sensors.matrix[:, problem.free], factor, coupling)

    @property
    def observation_count(self) -> int:
        """Length of the data vector."""
        return int(self.chain.sensors.shape[0])

    @property
    def predicted(self) -> Array:
        """Data of the state."""
        return self.problem.observe(self.state)

    @property
    def offset(self) -> Array:
        """Data of the coordinates zero, by the linearization."""
        return self.predicted - self.matrix @ self.parameters.project(self.at)[0]

    def apply(self, fields: Any) -> Array:
        """``-H R_u^-1 R_q`` for columns of parameter dofs."""
        return applied([self.chain], fields)

    def adjoint(self, weights: Array) -> Array:
        """Its transpose, by adjoint solves."""
        return pulled([self.chain], [weights])

    def curvature(self, data: Data | None) -> Curvature | None:
        """What is known of how the Jacobian changes."""
        return self.problem.curvature_at(self, data)

    def rounding_of(self, data: Data | None) -> float:
        """A solve loses digits as the condition number of the derivative says."""
        return max(ROUNDING, self.factor.loss) * (1.0 if data is None else data.spread)


class NonlinearProblem(EquationProblem):
    """State equation ``R(u, q; v) = 0`` with the user's own scikit-fem forms.

    Parameters
    ----------
    equation
        ``R(u, q; v)`` as a ``LinearForm`` in v; the fields are ``w["u"]`` and ``w["q"]``. Here and below a pair
        ``(form, basis)`` says where a form is integrated, such as ``(form, FacetBasis(mesh, element, facets=...))``,
        and a list is a sum. The fields of a `ProductSpace` have the names of its factors; one that lives on a part of
        the boundary is known there only.
    state_derivative
        ``R_u(u, q)[du; v]`` as a ``BilinearForm``, with the same fields.
    parameter_derivative
        ``R_q(u, q)[dq; v]``, trial function on the parameter's basis. For a `ProductSpace` a list, or a mapping by
        name: one entry for each factor.
    dirichlet, neumann, robin
        Boundary conditions; see `femcert.problem.boundary.boundary_conditions`.
    linear_in_state
        Say True where R is affine in u: one linear solve then gives the state.
    definite
        Say True where ``R_u`` is symmetric positive definite: a faster factorization.
    """

    any_class = True

    def __init__(
        self,
        basis: Basis,
        *,
        equation: Any,
        state_derivative: Any,
        parameter_derivative: Any,
        parameters: ParameterSpace,
        sensors: Sensors,
        dirichlet: Value | Mapping[str, Value] | None = None,
        neumann: Mapping[str, Value] | None = None,
        robin: Mapping[str, tuple[Value, Value]] | None = None,
        linear_in_state: bool = False,
        definite: bool = False,
    ) -> None:
        super().__init__(basis, parameters, sensors, dirichlet=dirichlet, neumann=neumann, robin=robin)
        self._terms = terms_of(equation, parameters, basis, "equation", LinearForm)
        self._state_terms = terms_of(state_derivative, parameters, basis, "state_derivative", BilinearForm)
        self._parameter_terms = derivatives_of(parameter_derivative, parameters, basis, "parameter_derivative")
        self.linear_in_state = linear_in_state
        self.definite = definite
        self._latest: Tangent | None = None

    @property
    def solve_tolerance(self) -> float | None:
        """Relative energy error at which the solves end; None if nothing was solved yet."""
        return None if self._latest is None else self._latest.factor.tolerance

    @property
    def backend(self) -> str | None:
        """What solves the linearized equation; None if nothing was solved yet."""
        return None if self._latest is None else self._latest.factor.backend

    def residual(self, state: Any, parameter: Any) -> Array:
        """Weak residual ``-R(u, q; phi_i)``, zero at prescribed dofs."""
        return -self._equation(self.check_state(state), self.check_parameter(parameter))

    def solve(self, parameter: Any) -> Array:
        """State of a parameter, by Newton's method with step halving.

        Raises
        ------
        SolveError
            Newton's method stalled, or the derivative became singular.
        """
        return self.linearize(parameter).state.copy()

    def linearize(self, at: Any = None) -> Tangent:
        """State, factorized ``R_u`` and assembled ``R_q`` at a parameter; the latest one is kept."""
        if at is None:
            raise InputError("a nonlinear problem is linearized about a parameter; give at=")
        q = self.check_parameter(at)
        if self._latest is not None and np.array_equal(self._latest.at, q):
            return self._latest
        one = self.one_solve(q)
        if one is None:
            return self._tangent(q, *self._newton(q))
        one.finish(one.factor.solve(one.right))
        return cast(Tangent, self._latest)

    def one_solve(self, parameter: Any) -> OneSolve | None:
        """The solve that gives the state of a parameter; None where it takes several, or is known already."""
        q = self.check_parameter(parameter)
        if not self.linear_in_state or (self._latest is not None and np.array_equal(self._latest.at, q)):
            return None
        u = self.boundary.values.copy()
        R = self._equation(u, q)
        A, factor = self._derivative(u, q)

        def finish(solution: Array) -> None:
            u[self.free] -= solution
            self._tangent(q, self._checked_step(u, q, A, float(np.linalg.norm(R))), factor)

        return OneSolve(factor, R[self.free], finish)

    def _tangent(self, q: Array, u: Array, factor: Factorization) -> Tangent:
        C = self._coupling(u, q)
        if not np.all(np.isfinite(C.data)):
            raise SolveError("the parameter derivative has NaN or infinite entries")
        rows = C if len(self.free) == len(u) else C[self.free]
        self._latest = Tangent(self, frozen(q), frozen(u), factor, freeze_sparse(rows))
        return self._latest

    def curvature_at(self, point: Tangent, data: Data | None) -> Curvature | None:
        """Bounds of the change of the Jacobian around a parameter, in the norm of the data; None: nothing is known."""
        return None

    def energy(self, parameter: Any = None, state: Any = None) -> Energy | None:
        """The norm of the derivative in the state at a pair, by default at a lift of the Dirichlet values."""
        if not self.definite:
            return None
        if parameter is None:
            raise InputError("the energy norm of a nonlinear problem depends on the parameter; expected parameter=...")
        q = self.check_parameter(parameter)
        A = self.derivatives(self.boundary.values if state is None else state, q)[0]
        return Energy("norm of the derivative", A, self.linearize(q).factor if self.linear_in_state else None)

    def derivatives(self, state: Any, parameter: Any) -> tuple[Any, Any]:
        """``R_u`` and ``R_q`` on all dofs at any pair, solved or not; Robin conditions are part of ``R_u``."""
        u, q = self.check_state(state), self.check_parameter(parameter)
        return self._operator(u, q), self._coupling(u, q)

    def jacobian(self, parameter: Any) -> Array:
        """``J = -H R_u^-1 R_q B`` at a parameter, ``(observations, dimension)``: `linearize` has it as `matrix`.

        By k forward or m adjoint solves, whichever is fewer, with the factorization of the state solve.
        """
        return self.linearize(parameter).matrix

    def _equation(self, u: Array, q: Array) -> Array:
        R = _real(sum(term.vector(u, q) for term in self._terms), "equation")
        if self.boundary.operator is not None:
            R = R + self.boundary.operator @ u
        if self.boundary.load is not None:
            R = R - self.boundary.load
        R[self.boundary.prescribed] = 0.0
        return np.asarray(R)

    def _operator(self, u: Array, q: Array) -> Any:
        A = _real(sum(term.matrix(u, q) for term in self._state_terms), "state derivative")
        return A if self.boundary.operator is None else A + self.boundary.operator

    def _on_free(self, u: Array, q: Array) -> Any:
        return self._operator(u, q)[self.free][:, self.free]

    def _coupling(self, u: Array, q: Array) -> Any:
        C = _real(sum(term.matrix(u, q) for term in self._parameter_terms), "parameter derivative")
        return C

    def _derivative(self, u: Array, q: Array) -> tuple[Any, Factorization]:
        A = self._on_free(u, q)
        name = "derivative of the state equation"
        return A, self.factorize(A, definite=self.definite, name=name, to_rounding=True)

    def _newton(self, q: Array) -> tuple[Array, Factorization]:
        u = self.boundary.values.copy()
        R = self._equation(u, q)
        start = size = float(np.linalg.norm(R))
        for _ in range(MOST_NEWTON_STEPS):
            factor = self._derivative(u, q)[1]
            step = np.zeros_like(u)
            step[self.free] = -factor.solve(R[self.free])
            if not size > 1e-12 * start:
                return u, factor
            u, R, fresh = self._halve(u, step, q, size)
            # Rounding stops the descent before 1e-12 on some problems; a tiny step is convergence too.
            if np.linalg.norm(step) <= 1e-12 * np.linalg.norm(u):
                return u, self._derivative(u, q)[1]
            size = fresh
        raise SolveError(f"Newton's method did not converge in {MOST_NEWTON_STEPS} steps (‖R‖ = {size:.2g})")

    def _checked_step(self, u: Array, q: Array, A: Any, start: float) -> Array:
        """`u` after the one step that an equation affine in it needs, refused if the equation is not affine."""
        size = float(np.linalg.norm(self._equation(u, q)))
        rounding = 1e-12 * float(np.linalg.norm(abs(A) @ np.abs(u[self.free])))
        if not size <= 1e-6 * start + rounding:
            raise SolveError(
                f"one linear solve left ‖R‖ = {size:.2g} of {start:.2g}: the equation is not linear in the state; "
                "expected linear_in_state=False"
            )
        return u

    def _halve(self, u: Array, step: Array, q: Array, size: float) -> tuple[Array, Array, float]:
        length = 1.0
        tiny = 1e-12 * float(np.linalg.norm(u + step))
        for _ in range(MOST_HALVINGS):
            trial = u + length * step
            R = self._equation(trial, q)
            fresh = float(np.linalg.norm(R))
            if fresh <= (1.0 - 1e-4 * length) * size or length * np.linalg.norm(step) <= tiny:
                return trial, R, fresh
            length *= 0.5
        raise SolveError(f"Newton's method stalled at ‖R‖ = {size:.2g}")


def _real(assembled: Any, name: str) -> Any:
    if np.iscomplexobj(assembled):
        raise InputError(f"the {name} assembles to complex numbers; expected a real form")
    return assembled
