"""A refinement study: the bounds, the radii and the decision of one problem on a sequence of meshes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np
from skfem import Mesh

from ..checks import count, number
from ..errors import FemcertError, InputError
from ..mesh.elements import same_mesh
from ..mesh.refine import check_adaptive, doerfler, refined
from ..residual.weak import NORMS
from .level import Case, Findings, evaluated
from .study import Level, Study


def refinement_study(
    build: Callable[..., Any],
    *,
    levels: int | Sequence[Any] = 5,
    adaptive: bool = False,
    mesh: Mesh | None = None,
    theta: float = 0.5,
    tolerance: float | None = None,
    most_dofs: int | None = None,
    method: str = "equilibrated",
    norm: str = "energy",
    progress: Callable[[Level], Any] | None = None,
) -> Study:
    """Solve, bound and decide on finer and finer meshes.

    Parameters
    ----------
    build
        ``build(mesh)`` returns the `Case` on a mesh, or a pair ``(problem, candidate)``.
    levels
        How many meshes at most. Or a sequence of things (numbers, meshes): `build` is then called with each of them.
        A `build` whose one argument is not called ``mesh`` gets the numbers 0, 1, ... of the levels instead of meshes.
    adaptive
        Refine only the elements that `doerfler` marks by their share of the upper bound; else all of them.
    mesh
        The first one. Without it ``build()`` must work and bring its own.
    theta
        The fraction of Dörfler's marking, in (0, 1].
    tolerance
        Stop once the upper bound is at most this.
    most_dofs
        Stop before a level with more dofs of the state.
    method, norm
        Passed to `femcert.residual.dual_norm`.
    progress
        Called with each finished `Level`.

    Raises
    ------
    InputError, SolveError, UncertifiedError
        A level could not be built, solved or bounded; the message begins with its number. Where only the stability
        constant is infinite, it and the radii are left out instead.
    """
    things, most = _things(build, levels, adaptive, mesh)
    plan = Plan(
        levels=most,
        adaptive=adaptive,
        theta=theta,
        tolerance=tolerance,
        most_dofs=most_dofs,
        norm=norm,
    )
    run = _Run(plan, build, method, progress)
    stopped = run.through(things, mesh)
    return Study(
        rows=tuple(found.level for _, found in run.results),
        stopped=stopped,
        adaptive=bool(adaptive),
        theta=float(theta),
        method=method,
        norm=norm,
        meshes=tuple(mesh for mesh, _ in run.results),
        indicators=tuple(found.indicators for _, found in run.results),
        selections=tuple(found.selection for _, found in run.results),
    )


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Checked options of a study, as for `refinement_study`: also the keys of the table ``study`` of a case file."""

    levels: int = 5
    adaptive: bool = False
    theta: float = 0.5
    tolerance: float | None = None
    most_dofs: int | None = None
    norm: str = "energy"

    def __post_init__(self) -> None:
        count(self.levels, "levels")
        if not isinstance(self.adaptive, (bool, np.bool_)):
            raise InputError(f"adaptive is {self.adaptive!r}; expected True or False")
        if number(self.theta, "theta", above=0.0) > 1.0:
            raise InputError(f"theta is {self.theta}; expected at most 1")
        if self.tolerance is not None:
            number(self.tolerance, "tolerance", least=0.0)
        if self.most_dofs is not None:
            count(self.most_dofs, "most_dofs")
        if self.norm not in NORMS:
            raise InputError(f"norm is {self.norm!r}; expected {' or '.join(map(repr, NORMS))}")


def _things(build: Any, levels: Any, adaptive: Any, mesh: Any) -> tuple[list[Any] | None, int]:
    """What `build` is called with (None: meshes, each a refinement of the one before), and how many levels at most."""
    if not callable(build):
        raise InputError(f"build is a {type(build).__name__}; expected a function of a mesh that returns a Case")
    if isinstance(levels, (list, tuple, range, np.ndarray)):
        if adaptive or mesh is not None:
            raise InputError("levels is a sequence to build from; expected no mesh= and no adaptive=, or a number")
        if not len(levels):
            raise InputError("levels is empty; expected at least one level")
        return list(levels), len(levels)
    if mesh is None and not adaptive and _takes_a_number(build):
        return list(range(count(levels, "levels"))), levels
    if mesh is None and not _works_without_argument(build):
        raise InputError("build needs a mesh; expected mesh=, the first one, or a build with a default mesh")
    if mesh is not None and not isinstance(mesh, Mesh):
        raise InputError(f"mesh is a {type(mesh).__name__}; expected a scikit-fem mesh")
    return None, levels


def _takes_a_number(build: Any) -> bool:
    """Whether `build` needs one argument that is not called a mesh: then it is the number of the level."""
    try:
        parameters = list(inspect.signature(build).parameters.values())
    except (TypeError, ValueError):
        return False
    needed = [p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(needed) == 1 and "mesh" not in needed[0].name.lower()


def _works_without_argument(build: Any) -> bool:
    try:
        inspect.signature(build).bind()
    except TypeError:
        return False
    except ValueError:  # code without a signature
        return True
    return True


@dataclass(frozen=True)
class _Run:
    """A study on its way: `results` has the mesh and the findings of each level that is done."""

    plan: Plan
    build: Any
    method: str
    progress: Any
    results: list[tuple[Mesh, Findings]] = field(default_factory=list)

    def through(self, things: list[Any] | None, first: Mesh | None) -> str:
        """All levels; why it ended."""
        plan, thing, most = self.plan, first, self.plan.most_dofs or np.inf
        for current in range(1, plan.levels + 1):
            start = perf_counter()
            with _about_level(current):
                case = _built(self.build, thing if things is None else things[current - 1])
                basis = case.problem.basis
                if plan.adaptive:
                    check_adaptive(basis.mesh)
                if most < basis.N:
                    if current == 1:
                        raise InputError(f"it already has {basis.N} dofs; most_dofs is {most:g}")
                    return "dofs"
                found = evaluated(case, level=current, method=self.method, norm=plan.norm)
            found = replace(found, level=replace(found.level, seconds=perf_counter() - start))
            self.results.append((basis.mesh, found))
            if self.progress is not None:
                self.progress(found.level)
            if (plan.tolerance is not None and found.level.upper <= plan.tolerance) or not found.indicators.any():
                return "tolerance"
            if current < plan.levels and things is None:
                with _about_level(current):
                    thing = refined(basis.mesh, doerfler(found.indicators, plan.theta) if plan.adaptive else None)
                if _dofs(thing, basis.elem) > most:
                    return "dofs"
        return "levels"


@contextmanager
def _about_level(current: int) -> Iterator[None]:
    try:
        yield
    except FemcertError as error:
        raise type(error)(f"level {current}: {error}") from error


def _built(build: Any, thing: Any) -> Case:
    case = build() if thing is None else build(thing)
    if isinstance(case, tuple) and len(case) == 2:
        case = Case(case[0], candidate=case[1])
    if not isinstance(case, Case):
        raise InputError(f"build returned a {type(case).__name__}; expected a Case or a pair (problem, candidate)")
    if isinstance(thing, Mesh) and not same_mesh(thing, case.problem.basis.mesh):
        raise InputError("build returned a problem on another mesh than the one it was given")
    return case


def _dofs(mesh: Mesh, element: Any) -> int:
    """Dofs of a scalar element on a mesh, without making the basis."""
    facets = mesh.facets.shape[1] if element.facet_dofs else 0
    return int(
        element.nodal_dofs * mesh.p.shape[1] + element.facet_dofs * facets + element.interior_dofs * mesh.nelements
    )
