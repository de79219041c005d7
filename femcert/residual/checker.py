"""The checker for fluxes from anywhere: what upper bound of the dual norm does a given flux prove?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..bound import Bound
from ..errors import InputError, UncertifiedError
from ..mesh.elements import same_mesh
from ..mesh.sample import dot
from ..problem.base import Problem
from ..problem.candidate import Candidate, check_candidate
from ..problem.elliptic import EllipticCoefficient, EllipticSource
from .flux import ElementFlux
from .majorant import Majorant, areas_over, majorant
from .quadrature import Rule
from .static import ROUNDING, SIZE_ROUNDING, described, size_of
from .traces import FacetCheck
from .weak import WeakResidual, check_norm
from .workspace import workspace_of

# Jumps of a flux beyond this, relative to the flux, are more than the rounding of its evaluation.
JUMP = 1e-13


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
    workspace, equation = workspace_of(problem), problem.strong(candidate.parameter)
    rule = workspace.rule(equation, norm, enriched=max(workspace.degree, given.trace_degree))
    r = workspace.residual(equation, problem.check_state(candidate.state), norm, rule)

    def constant(sharp: bool) -> Bound | None:
        return workspace.friedrichs(r, rule, norm, sharp)

    result = majorant(r, given, rule, constant, workspace.facets)
    jumps = _jumps(r, given, workspace.facets, rule, constant)
    value = (result.value + jumps) * (1.0 + ROUNDING) + SIZE_ROUNDING * size_of(r)
    exact, words = described(r, rule)
    if rule.missed is not None:
        exact, words = False, "without the declared errors of its coefficients; use dual_norm, which includes them"
    return replace(result, value=value, defect=result.defect + jumps, exact=exact, words=words)


def _jumps(
    r: WeakResidual, flux: ElementFlux, check: FacetCheck, rule: Rule, constant: Callable[[bool], Bound | None]
) -> float:
    """What jumps of the normal component contribute that are too small to refuse the flux, but larger than rounding.

    ``sum_e <[p.n], v>_e`` with the trace inequality of the majorant on one element of each facet.
    """
    mesh, squares = r.sampler.mesh, check.jumps(flux)
    element = mesh.f2t[0]
    over, length = check.areas[element], np.ones(len(squares))
    if mesh.dim() == 2:
        start, end = mesh.p[:, mesh.facets].transpose(1, 0, 2)
        over, length = areas_over(mesh, np.arange(len(squares)), element), np.linalg.norm(end - start, axis=0)
    size = float(r.sampler.integral(dot(r.flux, r.flux)).sum())
    if not float(np.sum(squares * over / length)) > JUMP**2 * size:
        return 0.0
    C = constant(True) or constant(False)
    assert C is not None
    width = float(check.diameters.max() / np.sqrt(rule.least_conductivity.min()))
    # Each element lends itself to at most all of its facets.
    total = float(len(mesh.t2f) * np.sum(squares * length / over))
    return float(np.sqrt(total * (C.value**2 + 2.0 * width * C.value)))
