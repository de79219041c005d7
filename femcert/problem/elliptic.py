"""Elliptic model problems: an unknown source, and an unknown conductivity."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import diags
from skfem import Basis, BilinearForm, LinearForm, asm
from skfem.helpers import dot, grad

from ..checks import Array, freeze_sparse, frozen
from ..errors import InputError
from ..mesh.assembly import diffusion_matrix, is_linear_on_triangles
from ..mesh.elements import check_state_basis, mass_matrix, mass_share
from ..mesh.geometry import bend, dirichlet_eigenvalue
from ..mesh.vectors import is_vector
from .boundary import Value
from .coefficients import Coefficient, at_quadrature, check_sign
from .conduction import Conduction, conduction_on
from .curvature import ConductivityCurvature, conductivity_curvature
from .data import Data
from .linear import LinearProblem
from .nonlinear import NonlinearProblem, Tangent
from .sensors import Sensors
from .space import ParameterSpace, check_space
from .states import Energy
from .strong import ZERO, Exponential, Given, Interpolant, StrongForm

MASS = ("consistent", "lumped")


@BilinearForm
def reaction_form(u: Any, v: Any, w: Any) -> Any:
    """(c u, v)"""
    return w["c"] * u * v


class EllipticSource(LinearProblem):
    """Recover the source q of ``-div(a grad u) + c u = q``.

    Weak form: ``(a grad u, grad v) + (c u, v) = (q, v)``, with Dirichlet, Neumann (``a du/dn = g``) and Robin
    (``a du/dn + alpha u = g``) conditions.

    Parameters
    ----------
    conductivity, reaction
        a > 0 and c >= 0: numbers, functions of x, per-element arrays or tables by subdomain. Claims about the equation
        itself know a function only as a `Polynomial`; so it is with boundary values.
    mass
        ``"consistent"`` or ``"lumped"`` (row sums) for the terms ``(q, v)`` and ``(c u, v)``. On a uniform line with P1
        the lumped problem is the classical finite-difference scheme.
    """

    any_class = False

    def __init__(
        self,
        basis: Basis,
        *,
        parameters: ParameterSpace,
        sensors: Sensors,
        conductivity: Coefficient = 1.0,
        reaction: Coefficient = 0.0,
        dirichlet: Value | Mapping[str, Value] | None = None,
        neumann: Mapping[str, Value] | None = None,
        robin: Mapping[str, tuple[Value, Value]] | None = None,
        mass: str = "consistent",
    ) -> None:
        check_state_basis(basis)
        lumped = is_lumped(mass)
        self.conductivity = at_quadrature(conductivity, basis, "conductivity", sign="positive")
        self.reaction = at_quadrature(reaction, basis, "reaction", sign="nonnegative")
        operator = diffusion_matrix(basis, self.conductivity)
        if self.reaction.any():
            operator = operator + _reaction_matrix(basis, self.reaction, lumped)
        super().__init__(
            basis,
            operator=operator,
            load=lumped_load(basis, parameters) if lumped else None,
            parameters=parameters,
            sensors=sensors,
            dirichlet=dirichlet,
            neumann=neumann,
            robin=robin,
            definite=True,
            lumped=lumped,
        )
        self._given = (Given(conductivity, "conductivity", "positive"), Given(reaction, "reaction", "nonnegative"))

    @cached_property
    def least_share(self) -> float:
        """``(a_min lam + c_min) share min_i M_ii / A_ii`` over the free dofs, with ``M >= share diag(M)``.

        The least eigenvalue lam is that of `femcert.mesh.geometry.dirichlet_eigenvalue`; it needs gradients that are
        integrated exactly, so straight cells; and the least values need weights of the quadrature that are positive. A
        lumped reaction does not count.
        """
        if not self.basis.W.min() > 0.0:
            return 0.0
        basis, parts = self.basis, [part.facets for part in self.boundary.dirichlet if len(part.facets)]
        least = 0.0 if self.lumped else float(self.reaction.min())
        if parts and not bend(basis.mesh).any():
            least += float(self.conductivity.min()) * dirichlet_eigenvalue(basis.mesh, np.concatenate(parts))
        ratio = (mass_matrix(basis).diagonal() / self.operator.diagonal())[self.free].min()
        return least * mass_share(basis) * float(ratio)

    def energy(self, parameter: Any = None, state: Any = None) -> Energy | None:
        """``(a grad u, grad u) + (c u, u)`` and Robin terms, without lumping."""
        if not (self.lumped and self.reaction.any()):
            return Energy("energy norm", self.operator, self.factor)
        A = diffusion_matrix(self.basis, self.conductivity) + _reaction_matrix(self.basis, self.reaction, False)
        return Energy("energy norm", freeze_sparse(A if self.boundary.operator is None else A + self.boundary.operator))

    def strong(self, parameter: Any) -> StrongForm:
        """The strong form with the source `parameter`."""
        source = Interpolant(self.parameters.basis, self.check_parameter(parameter))
        return StrongForm(*self._given, source, self.boundary, "source")


class EllipticCoefficient(NonlinearProblem):
    """Recover the conductivity of ``-div(a(q) grad u) = f``, with ``a = exp(q)`` or ``a = q``.

    Parameters
    ----------
    source
        f: a number, a function of x (for bounds a `Polynomial`), a per-element array or a table by subdomain.
    transform
        ``"exp"`` (q is the log-conductivity) or ``"identity"`` (q itself; it must stay positive).
    """

    any_class = False

    def __init__(
        self,
        basis: Basis,
        *,
        parameters: ParameterSpace,
        sensors: Sensors,
        source: Coefficient | None = None,
        transform: str = "exp",
        dirichlet: Value | Mapping[str, Value] | None = None,
        neumann: Mapping[str, Value] | None = None,
        robin: Mapping[str, tuple[Value, Value]] | None = None,
    ) -> None:
        check_state_basis(basis)
        if transform not in ("exp", "identity"):
            raise InputError(f"transform is {transform!r}; expected 'exp' or 'identity'")
        self.transform = transform
        f = at_quadrature(0.0 if source is None else source, basis, "source")

        def conductivity(q: Any) -> Any:
            with np.errstate(over="ignore", under="ignore"):
                a = np.exp(q) if transform == "exp" else np.asarray(q)
            check_sign(a, "the conductivity", "positive")
            return a

        def slope(q: Any) -> Any:
            return conductivity(q) if transform == "exp" else 1.0

        self._conductivity, self._slope = conductivity, slope
        super().__init__(
            basis,
            equation=LinearForm(lambda v, w: conductivity(w["q"]) * dot(grad(w["u"]), grad(v)) - f * v),
            state_derivative=BilinearForm(lambda u, v, w: conductivity(w["q"]) * dot(grad(u), grad(v))),
            parameter_derivative=BilinearForm(lambda q, v, w: slope(w["q"]) * q * dot(grad(w["u"]), grad(v))),
            parameters=parameters,
            sensors=sensors,
            dirichlet=dirichlet,
            neumann=neumann,
            robin=robin,
            linear_in_state=True,
            definite=True,
        )
        self._source = Given(0.0 if source is None else source, "source")
        self._load = frozen(asm(LinearForm(lambda v, w: f * v), basis))

    @cached_property
    def _conduction(self) -> Conduction | None:
        """On linear triangles, what makes matrices of new conductivities cheap."""
        home = self.parameters.basis
        if is_vector(home) or not is_linear_on_triangles(self.basis):
            return None
        return conduction_on(self.basis, home, self.transform, self._conductivity, self._slope)

    def _operator(self, u: Array, q: Array) -> Any:
        if self._conduction is None:
            return super()._operator(u, q)
        return self._conduction.at(q).operators(self.boundary.operator, self.free)[0]

    def _on_free(self, u: Array, q: Array) -> Any:
        if self._conduction is None:
            return super()._on_free(u, q)
        return self._conduction.at(q).operators(self.boundary.operator, self.free)[1]

    def _equation(self, u: Array, q: Array) -> Array:
        if self._conduction is None:
            return super()._equation(u, q)
        R = self._operator(u, q) @ u - self._load
        if self.boundary.load is not None:
            R = R - self.boundary.load
        R[self.boundary.prescribed] = 0.0
        return np.asarray(R)

    def _coupling(self, u: Array, q: Array) -> Any:
        if self._conduction is None:
            return super()._coupling(u, q)
        return self._conduction.coupling(u, q)

    def strong(self, parameter: Any) -> StrongForm:
        """The strong form with the conductivity ``a(parameter)``."""
        kind = Exponential if self.transform == "exp" else Interpolant
        a = kind(self.parameters.basis, self.check_parameter(parameter), "positive")
        return StrongForm(a, ZERO, self._source, self.boundary, "conductivity")

    def curvature_at(self, point: Tangent, data: Data | None) -> ConductivityCurvature:
        """From the second derivative of the data, see `femcert.problem.curvature`."""
        fields = self.basis.with_element(self.parameters.basis.elem)
        return conductivity_curvature(point, fields, data, exponential=self.transform == "exp")


def is_lumped(mass: str) -> bool:
    """Whether `mass` is ``"lumped"``; anything but that and ``"consistent"`` is refused."""
    if mass not in MASS:
        raise InputError(f"mass is {mass!r}; expected one of {', '.join(MASS)}")
    return mass == "lumped"


def lumped_load(basis: Basis, parameters: ParameterSpace) -> Any:
    """The row-sum form of ``(q, v)``, or None (the consistent form) where q lives on another element than v."""
    mass = mass_matrix(basis, lumped=True)
    home = check_space(parameters).basis
    return mass if home is not None and type(home.elem) is type(basis.elem) else None


def _reaction_matrix(basis: Basis, c: Any, lumped: bool) -> Any:
    C = asm(reaction_form, basis, c=c).tocsr()
    if not lumped:
        return C
    return diags(np.asarray(C.sum(axis=1)).ravel()).tocsr()
