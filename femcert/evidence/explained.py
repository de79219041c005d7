"""Whether the data contradict a candidate as a whole: what it predicts, through the problem's own model.

For the parameter q the whitened data are ``b = F(q) + E w + e``, with noise e and a model error ``‖w‖ <= r``. If q is
the truth, ``min ‖b - F(q) - E w‖`` over these w is at most ``‖e‖``, so that its tail probability is a p-value. F may be
nonlinear: one prediction is all that is needed, no class, no linearization.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..problem.base import Problem, check_problem
from ..problem.candidate import Candidate, check_candidate
from ..problem.data import Data
from ..shown import Shown
from .affine import Sight
from .misfit import least_misfit


@dataclass(frozen=True, repr=False)
class Explained(Shown):
    """How far the predictions of a candidate are from the data.

    Attributes
    ----------
    name
        Of the candidate.
    distance
        ``‖b - F(q)‖`` in whitened data.
    beyond
        What the model error cannot explain of it, ``min ‖b - F(q) - E w‖``, from below.
    allowed
        What noise can explain, with the confidence of its law.
    p_value
        At least the chance of `beyond`, or more, if the candidate is the truth: that of the noise, and that of a model
        error outside of a set that was learned from samples. For a noise level 1 or 0 beside that; None for repeats.
    confidence
        A candidate that is the truth is refuted with probability ``1 - confidence`` at most: noise, and what was
        learned of the model error from samples.
    label
        ``"proved"``; ``"estimate"`` where the law of the noise is one.
    """

    name: str
    distance: float
    beyond: float
    allowed: float
    p_value: float | None
    confidence: float
    label: str

    @property
    def refuted(self) -> bool:
        """Whether the data contradict the candidate."""
        return bool(not self.beyond <= self.allowed)

    @property
    def claim(self) -> str:
        """In words."""
        if not self.refuted:
            return f"the data do not contradict {self.name}"
        given = f"{self.beyond:.3g}, noise explains {self.allowed:.3g}"
        return f"{self.name} is not the truth: beyond the model error the misfit is {given}"

    def summary(self) -> dict[str, str]:
        """Claim and confidence."""
        return {"claim": f"{self.claim} ({self.label})", "confidence": f"{100.0 * self.confidence:.4g} %"}


def explained(problem: Problem, data: Data, candidate: Candidate) -> Explained:
    """Whether noise and model error explain what a candidate leaves of the data, through the (nonlinear) model.

    Unlike intervals it says nothing of parts of the candidate, and needs no class: a candidate is refuted as a whole.
    One that is not refuted need not be near the truth.

    Parameters
    ----------
    problem
        Linear or nonlinear. The state is computed from the parameter.
    data
        With what is known of the noise, and a model error if there is one (`Data.with_model_error`).
    candidate
        Fixed before the data, or made of them: a truth is refuted no more often for it.

    Raises
    ------
    UncertifiedError
        The standard deviation of the noise is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> import femcert as fc
    >>> from skfem import Basis, ElementTriP1, MeshTri
    >>> mesh = MeshTri.init_tensor(np.linspace(0.0, 2.0, 9), np.linspace(0.0, 1.0, 5)).with_boundaries(
    ...     {"left": lambda x: x[0] == 0.0, "right": lambda x: x[0] == 2.0}
    ... )
    >>> basis = Basis(mesh, ElementTriP1())
    >>> body = fc.ElectrodeModel(
    ...     basis, electrodes=["left", "right"], impedances=0.1, parameters=fc.FullSpace(basis)
    ... )
    >>> truth = np.where(basis.doflocs[0] > 1.0, 1.0, 0.0)
    >>> data = fc.Data.gaussian(body.simulate(truth).values, std=0.02).with_model_error(matrix=[[1.0]], size=0.05)
    >>> [fc.explained(body, data, fc.Candidate(None, q)).refuted for q in (truth, 0.0 * truth)]
    [False, True]
    """
    check_problem(problem)
    problem.check_data(data)
    check_candidate(problem, candidate)
    q = candidate.parameter
    state = problem.solve(q)
    predicted = problem.predict(state, q)
    left = np.asarray(data.whiten(data.values - predicted))
    law, model = data.law, data.model
    sights = [] if model is None else [Sight(model.size, model.matrix @ model.matrix.T)]
    distance = float(np.linalg.norm(left))
    # What solves and sums may have lost is no evidence.
    lost = problem.lost_to_rounding(data, state, q) + problem.solved_error(data, state, q)
    beyond = max(least_misfit(sights, left) - lost, 0.0)
    tail = law.tail(beyond, len(left))
    return Explained(
        candidate.name,
        distance,
        beyond,
        law.size(len(left), law.zeta),
        None if tail is None else min(tail + data.alpha, 1.0),
        data.confidence,
        "proved" if law.proven else "estimate",
    )
