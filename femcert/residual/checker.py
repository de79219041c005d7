"""The checker for fluxes from anywhere: what upper bound of the dual norm does a given flux prove?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..bound import Bound
from ..errors import InputError, UncertifiedError
from ..problem.base import Problem
from ..problem.candidate import Candidate, check_candidate
from ..problem.elliptic import EllipticCoefficient, EllipticSource
from ..problem.lagrange import same_mesh
from .flux import ElementFlux
from .majorant import Majorant, majorant
from .static import described
from .weak import check_norm
from .workspace import workspace_of


def flux_majorant(problem: Problem, candidate: Candidate, flux: Any, *, norm: str = "energy") -> Majorant:
    """Upper bound of the dual norm of a candidate's residual from any conforming flux p, close to ``a grad u`` or not.

    It knows nothing of how the flux was made: it checks that the normal component is continuous, and evaluates
    the misfit, the divergence defect times a guaranteed Friedrichs constant, and the oscillation; see `majorant`.

    Parameters
    ----------
    flux
        A pair ``(basis, dofs)`` of a scikit-fem basis with an H(div) element (``ElementTriRT1``, ``ElementQuadRT1``; on
        lines ``ElementLineP1`` or ``P2``) on the problem's mesh.
    norm
        ``"energy"`` or ``"h1"``.

    Returns
    -------
    Majorant
        Its ``bound`` has the side ``"upper"`` where the quadrature was exact.

    Raises
    ------
    UncertifiedError
        The flux is not conforming, or the problem is not an elliptic one.
    """
    check_norm(norm)
    if not isinstance(problem, (EllipticSource, EllipticCoefficient)):
        raise UncertifiedError(f"a {type(problem).__name__} has no flux; expected an elliptic problem")
    check_candidate(problem, candidate)
    if not isinstance(flux, (tuple, list)) or len(flux) != 2:
        raise InputError(f"flux is a {type(flux).__name__}; expected a pair (basis, dofs)")
    given = ElementFlux(*flux)
    if not same_mesh(given.basis.mesh, problem.basis.mesh):
        raise InputError("the flux lives on another mesh than the problem; build its basis on the same mesh")
    workspace, equation = workspace_of(problem), problem.equation(candidate.parameter)
    rule = workspace.rule(equation, norm, enriched=max(workspace.degree, given.trace_degree))
    r = workspace.residual(equation, problem.check_state(candidate.state), norm, rule)

    def constant(sharp: bool) -> Bound | None:
        return workspace.friedrichs(r, rule, norm, sharp)

    result = majorant(r, given, rule, constant, workspace.facets)
    return replace(result, exact=described(r, rule)[0])
