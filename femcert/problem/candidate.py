"""A reconstruction to be judged: a state and a parameter, wherever they come from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from skfem import Basis

from ..checks import Array, kind_of, number
from ..errors import InputError
from ..mesh.elements import same_mesh, sampled
from ..mesh.read import about
from ..mesh.sample import callable_of
from ..mesh.transfer import Interpolation, PointCloud, on_dofs
from ..shown import Shown
from .base import Problem, check_problem
from .candidate_files import read_fields, write_archive
from .candidate_functions import Functions, checked_envelope, sampled_state
from .candidate_values import stored, stored_number


class Candidate(Shown):
    """A pair (state, parameter) of dof vectors, read-only from here on.

    Parameters
    ----------
    state
        Dof values of the state, as the problem's ``solve`` returns them; None where there is no state (tomography).
    parameter
        Dof values of the parameter.
    optimality
        Gradient norm (or another stationarity measure) that the solver reached, the paper's r_opt; None: not known.
    name
        What to call it in tables.
    mesh
        The mesh it was made on, if known: a candidate of another mesh is then refused even if the sizes agree.
    functions
        The functions it was made of, if any.
    interpolation
        How far it is from the values that it was interpolated from, if it was.
    """

    def __init__(
        self,
        state: Any,
        parameter: Any,
        optimality: float | None = None,
        name: str = "learned",
        *,
        mesh: Any = None,
        functions: Functions | None = None,
        interpolation: Interpolation | None = None,
    ) -> None:
        self._state = None if state is None else stored(state, "state")
        self._parameter = stored(parameter, "parameter")
        self._optimality = None if optimality is None else stored_number(optimality)
        self.name = str(name)
        self._mesh = mesh
        self._functions = functions
        self._interpolation = interpolation

    @property
    def state(self) -> Array | None:
        """Dof values of the state (read-only), or None."""
        return self._state

    @property
    def parameter(self) -> Array:
        """Dof values of the parameter (read-only)."""
        return self._parameter

    @property
    def optimality(self) -> float | None:
        """Stationarity measure of the solver that made it, or None."""
        return self._optimality

    @property
    def functions(self) -> Functions | None:
        """The functions it was made of, or None."""
        return self._functions

    @property
    def interpolation(self) -> Interpolation | None:
        """How far it is from the values that it was interpolated from; None if nothing was interpolated."""
        return self._interpolation

    def summary(self) -> dict[str, str]:
        """Name, sizes, and how it was interpolated."""
        made = {} if self._interpolation is None else {"values": str(self._interpolation)}
        stationary = "not reported" if self.optimality is None else f"{self.optimality:.4g}"
        return {
            "name": self.name,
            "parameter": f"{self._parameter.size} dofs",
            "state": "none" if self._state is None else f"shape {self._state.shape}",
            "optimality": stationary,
            **made,
        }

    def __repr__(self) -> str:
        size = "no state" if self._state is None else f"state {self._state.shape}"
        made = "" if self._interpolation is None else f", {self._interpolation}"
        return f"Candidate({self.name!r}, {size}, parameter {self._parameter.shape}{made})"

    @classmethod
    def from_coefficients(
        cls, problem: Problem, coefficients: Any, *, optimality: float | None = None, name: str = "learned"
    ) -> Candidate:
        """The parameter ``B c`` with the state that the problem's own solver gives it."""
        q = check_problem(problem).parameters.field(coefficients)
        return cls(_state_of(problem, q), q, optimality, name, mesh=problem.mesh)

    @classmethod
    def from_functions(
        cls,
        problem: Problem,
        *,
        parameter: Any,
        state: Any = None,
        optimality: float | None = None,
        name: str = "learned",
        residual: Any = None,
        envelope: Any = None,
    ) -> Candidate:
        """Nodal interpolants of functions of ``x`` (scikit-fem coordinates ``(dimension, points)``).

        Without a `state` the problem's own solver computes it. A heat state is a function for each observation
        time, in a list (or one function, for one time). Claims are about the interpolants, which are handed out.

        A function is a number, a callable, or an object with a method ``value(x)``. With methods ``gradient(x)``,
        ``(dimension, points)``, and ``laplacian(x)``, as automatic differentiation gives them, and an `envelope`,
        `StochasticRadius` samples the strong residual of the state's own function instead of its interpolant; the
        parameter q is the interpolant q_h there, too, since that is what is handed out.

        Parameters
        ----------
        residual
            The strong residual of the functions u and q at x, for functions without derivatives; needs an `envelope`.
            Of an elliptic source ``q - q_h`` is added to it; for other problems it is refused.
        envelope
            A sure upper bound, on the domain or for each element, of the absolute residual of the function u with the
            interpolant q_h: one of u and q, plus one of ``|q - q_h|`` (on P1 elements of diameter h at most
            ``h²/2 max |D²q|``).

        Examples
        --------
        >>> Candidate.from_functions(problem, parameter=lambda x: np.sin(np.pi * x[0]), state=0.0, name="no state")
        Candidate('no state', state (33,), parameter (33,))
        """
        home = check_problem(problem).parameters.basis
        if home is None:
            raise InputError("the problem has no mesh for functions; expected Candidate(None, parameter) with numbers")
        q = sampled(home, callable_of(parameter), "parameter")
        if residual is not None and (not callable(residual) or state is None or envelope is None):
            raise InputError("residual needs a callable, the state it belongs to, and envelope=, a bound that is sure")
        u = _state_of(problem, q) if state is None else sampled_state(problem, state)
        functions = Functions(state, parameter, residual, checked_envelope(problem, envelope))
        mesh = problem.mesh
        return cls(u, q, optimality, name, mesh=mesh, functions=functions)

    @classmethod
    def from_basis(
        cls,
        problem: Problem,
        basis: Basis,
        *,
        parameter: Any,
        state: Any = None,
        parameter_basis: Basis | None = None,
        tolerance: float | None = None,
        optimality: float | None = None,
        name: str = "learned",
    ) -> Candidate:
        """Dof values on another basis, of another mesh perhaps, interpolated at the problem's dofs.

        The same nodes, in any order, give the values themselves; what interpolation did else is in `interpolation`.
        Without a `state` the problem's own solver computes it.

        Parameters
        ----------
        basis
            P1, P2, Q1 or Q2 on a mesh of the same domain.
        parameter, state
            Dof values; a heat state has a column for each time.
        parameter_basis
            Where it is not `basis`: piecewise constants, say, which a piecewise constant parameter of the problem
            samples at the centres of its cells.
        tolerance
            How far outside of the other mesh a dof of the problem may lie; it then gets the value at the nearest point
            of the boundary. Default: a quarter of the diameter of the nearest cell, enough for edges of a circle.
        """
        homes = (basis, basis if parameter_basis is None else parameter_basis)
        fields = on_dofs(_bases(problem), homes, parameter, state, tolerance=tolerance)
        return cls._of_fields(problem, *fields, optimality=optimality, name=name)

    @classmethod
    def from_points(
        cls,
        problem: Problem,
        points: Any,
        *,
        parameter: Any,
        state: Any = None,
        tolerance: float | None = None,
        optimality: float | None = None,
        name: str = "learned",
    ) -> Candidate:
        """Values at scattered points ``(points, dimension)``, interpolated linearly at the problem's dofs.

        Points that are the problem's nodes, in any order, give the values themselves; what interpolation did else is
        in `interpolation`. It works on the convex hull of the points, whatever the domain. Without a `state` the
        problem's own solver computes it.

        Parameters
        ----------
        parameter, state
            A value for each point; a heat state has a column for each time.
        tolerance
            How far outside of the hull a dof of the problem may lie; it then gets the value at the nearest point of
            the hull. Default: the median distance of a point to its nearest neighbour.
        """
        bases = _bases(problem)
        cloud = PointCloud(points, bases[0].mesh.dim())
        q = cloud.nodal(parameter, "parameter")
        u = None if state is None else cloud.nodal(state, "state")
        reach = cloud.spacing if tolerance is None else tolerance
        fields = on_dofs(bases, (cloud.basis, cloud.basis), q, u, tolerance=reach, words=cloud.words)
        return cls._of_fields(problem, *fields, optimality=optimality, name=name)

    @classmethod
    def from_file(
        cls,
        problem: Problem,
        path: str | Path,
        *,
        name: str | None = None,
        parameter: str = "parameter",
        state: str | None = None,
        tolerance: float | None = None,
    ) -> Candidate:
        """Fields from a file; its ending says of which kind it is.

        ``.npz``
            Arrays on the problem's dofs, as `save` writes them; or, with an array ``points``, values at scattered
            points. Also ``optimality``. No pickled object is ever loaded.
        ``.csv``
            A header, then a row per point: ``x``, ``y`` (or ParaView's ``Points:0``, ``Points:1``) and the fields.
        ``.vtu``, ``.vtk``, ``.xdmf`` (with the package h5py)
            Point data on the problem's mesh or another one, with linear or straight quadratic cells; cell data where
            the problem's parameter is piecewise constant.

        Values that are not on the problem's dofs are interpolated: see `from_basis` and `from_points`.

        Parameters
        ----------
        parameter, state
            Names of the fields. A heat state is the fields ``state_0``, ``state_1`` and so on, one for each time.
            Without a state the problem's own solver computes it.
        tolerance
            See `from_basis` and `from_points`.

        Raises
        ------
        InputError
            The file is missing, damaged or foreign, has no such field, or does not fit the problem.
        """
        if not isinstance(path, (str, Path)):
            raise InputError(f"path is {path!r}; expected the name of a file")
        check_problem(problem)
        with about(path, "candidate"):
            found = read_fields(Path(path), problem, parameter=parameter, state=state)
            more: dict[str, Any] = {"optimality": found.optimality}
            more["name"] = Path(path).stem if name is None else name
            fields = {"parameter": found.parameter, "state": found.state}
            if found.points is not None:
                return cls.from_points(problem, found.points, tolerance=tolerance, **fields, **more)
            if found.basis is not None:
                home = found.parameter_basis
                return cls.from_basis(problem, found.basis, parameter_basis=home, tolerance=tolerance, **fields, **more)
            return cls._of_fields(problem, interpolation=found.interpolation, **fields, **more)

    @classmethod
    def _of_fields(
        cls, problem: Problem, parameter: Any, state: Any, interpolation: Interpolation | None, **more: Any
    ) -> Candidate:
        """Dof values that came from elsewhere; without a state, the one that the problem's solver gives."""
        q = problem.check_parameter(parameter)
        u = _state_of(problem, q) if state is None else problem.check_state(state)
        return cls(u, q, mesh=problem.mesh, interpolation=interpolation, **more)

    def save(self, path: str | Path) -> None:
        """Write an ``.npz`` file that `from_file` reads."""
        write_archive(
            path,
            parameter=self._parameter,
            state=self._state,
            optimality=self._optimality,
            interpolation=self._interpolation,
        )


def plain_copy(candidate: Candidate, name: str | None = None) -> Candidate:
    """A `Candidate` with the values that this one (perhaps of a subclass) shows now, and will show for good.

    `name` is another one for it.
    """
    return Candidate(
        candidate.state,
        candidate.parameter,
        candidate.optimality,
        str(candidate.name) if name is None else name,
        mesh=candidate._mesh,
        functions=candidate.functions,
        interpolation=candidate.interpolation,
    )


def with_state(problem: Problem, candidate: Any) -> Any:
    """The candidate with the state that the equation gives its parameter, where it has none."""
    if not isinstance(candidate, Candidate) or candidate.state is not None or not problem.states:
        return candidate
    found = plain_copy(candidate)
    found._state = stored(problem.solve(problem.check_parameter(found.parameter)), "state")
    return found


def check_candidate(problem: Problem, candidate: Any) -> Candidate:
    """`candidate` if it belongs to `problem`: right type, right mesh, right shapes, finite and real."""
    if not isinstance(candidate, Candidate):
        raise InputError(f"got {kind_of(candidate)}; expected a femcert.Candidate")
    if candidate._mesh is not None and not same_mesh(candidate._mesh, problem.mesh):
        raise InputError(f"candidate {candidate.name!r} was made on another mesh than the problem's")
    problem.check_parameter(candidate.parameter)
    if candidate.optimality is not None:
        number(candidate.optimality, "optimality", least=0.0)
    if candidate.state is not None:
        problem.check_state(candidate.state)
    elif problem.states:
        raise InputError(
            f"candidate {candidate.name!r} has no state; expected one, such as Candidate(problem.solve(q), q), "
            "or use Candidate.from_coefficients"
        )
    return candidate


def _bases(problem: Any) -> tuple[Basis, Basis]:
    """Of state and parameter."""
    home = check_problem(problem).parameters.basis
    if home is None:
        raise InputError("the problem has no mesh for fields; expected Candidate(None, parameter) with numbers")
    return home if problem.basis is None else problem.basis, home


def _state_of(problem: Problem, parameter: Array) -> Array | None:
    return problem.solve(parameter) if problem.states else None
