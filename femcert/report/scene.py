"""What there is to show of a selection: its fields, and what is computed for showing them."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..certificate import Certificate
from ..errors import FemcertError
from ..problem.base import Problem
from ..problem.candidate import Candidate
from ..problem.data import Data
from ..residual.dual import DualNorm, dual_norm
from ..selection import Selection
from ..stability import Stability, stability

# Above this many elements the equilibrated bound takes longer than a page is worth.
MOST_EQUILIBRATED = 20_000


@dataclass(frozen=True)
class Scene:
    """What there is to draw of a selection.

    Attributes
    ----------
    problem
        Where the fields live.
    data
        None for a selection from a file.
    candidates
        Those that are known, by role: ``"baseline"``, ``"learned"``.
    certificates
        Theirs, by role.
    """

    problem: Problem
    data: Data | None
    candidates: dict[str, Candidate]
    certificates: dict[str, Certificate | None] = field(default_factory=dict)

    @classmethod
    def of(cls, selection: Selection, problem: Problem | None) -> Scene | None:
        """From what the selection remembers, else from a problem alone; None without both."""
        case = selection.case
        if case is not None:
            named = {"baseline": case.baseline, "learned": case.learned}
            known = {"baseline": selection.baseline, "learned": selection.learned}
            return cls(case.problem, case.data, {role: c for role, c in named.items() if c is not None}, known)
        if problem is None:
            return None
        problem.check_parameter(selection.parameter)
        return cls(problem, None, {})

    def physics(self) -> tuple[dict[str, DualNorm], str]:
        """The dual norms of the physics residuals with their shares by element, and why there are none.

        Those of the certificates, where they were measured by equilibrated fluxes.
        """
        mesh = self.problem.mesh
        method = "equilibrated" if mesh is not None and mesh.nelements <= MOST_EQUILIBRATED else "indicator"
        try:
            found = {role: self._of(role) or dual_norm(self.problem, c, method) for role, c in self.candidates.items()}
        except FemcertError as error:
            return {}, f"Left out: {error}."
        return found, ""

    def _of(self, role: str) -> DualNorm | None:
        certificate = self.certificates.get(role)
        known = None if certificate is None else certificate.residuals.physics
        return known if known is not None and known.method == "equilibrated" else None


def known_stability(selection: Selection, scene: Scene | None) -> tuple[Stability | None, str]:
    """The stability that was used, computed again where it was not kept with its directions; and why there is none."""
    used = [c.stability for c in (selection.learned, selection.baseline) if c is not None and c.stability is not None]
    chosen = used[0] if selection.accepted and used else used[-1] if used else None
    if scene is None or (chosen is not None and chosen.weakest is not None):
        return chosen, ""
    try:
        return stability(scene.problem, at=selection.parameter, data=scene.data, validate=False), ""
    except FemcertError as error:
        return chosen, f"Left out: {error}."
