"""What currents and voltages prove about a region without linearization, ball or prior: monotonicity.

``R_sigma`` maps currents to voltages. ``sigma <= tau`` implies ``R_sigma >= R_tau`` in the order of forms. Let sigma0
be the background, and suppose that there is no matter in the region that conducts better: ``sigma <= tau`` with
``tau = sigma0`` in the region and a perfect conductor outside. Then

    R_sigma - R_0 >= D,    D = R_tau - R_0 <= 0.

With a measured form S, ``‖S - (R_sigma - R_0)‖ <= err``, and a simulated one, ``D >= (1 + eps) D_h``, the smallest
eigenvalue of ``S - (1 + eps) D_h`` is then at least ``-err``. If it is smaller, there is matter in the region that
conducts better than the background. For matter that conducts worse the body outside is taken for an insulator: D is
finite and at least 0 for currents through the electrodes of the region that sum up to zero on each connected part of
it, ``D <= (1 + eps) D_h``, and the largest eigenvalue of ``S - (1 + eps) D_h`` is compared with err.

Nothing is assumed about what is outside of the region. Statements prove that something is *somewhere in* the region;
they never prove that nothing is there. One err serves all regions, so that any number of them may be asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..checks import Array, number, required
from ..errors import InputError, UncertifiedError
from ..mesh.pick import picked_elements
from ..problem.base import Problem, check_problem
from ..problem.contacts import Contacts
from ..problem.data import Data
from ..problem.forward import ROUNDING
from ..shown import Shown

NEEDS = "electrodes that drive currents and read voltages"


@dataclass(frozen=True, repr=False)
class Monotonicity(Shown):
    """What is proved of a region, given both errors.

    Attributes
    ----------
    region
        Its name.
    above, below
        Whether there is matter *somewhere in* the region that conducts better, or worse, than the background. False:
        it is not known.
    above_by, below_by
        By how much each proof holds (positive) or fails, in the unit of the form (voltage by current).
    error, model_error
        Bounds of the norm of the error of the measured form (its symmetric part), and of the relative error of the
        simulated ones.
    label
        ``"proved"``; ``"estimate"`` where the error is a guess made from the data.
    confidence
        Probability with which the noise is within `error`; 1 where the error was given as a number.
    """

    region: str
    above: bool
    below: bool
    above_by: float
    below_by: float
    error: float
    model_error: float
    label: str
    confidence: float

    @property
    def margin(self) -> float:
        """The larger one of `above_by` and `below_by`: positive where something is proved."""
        return max(self.above_by, self.below_by)

    @property
    def claim(self) -> str:
        """In words."""
        found = [word for word, holds in (("better", self.above), ("worse", self.below)) if holds]
        if not found:
            return f"nothing is known of {self.region}"
        words = " and matter that conducts ".join(found)
        given = f"given errors of {self.error:.3g} and {100.0 * self.model_error:.3g} %"
        given += f", with confidence {self.confidence:.3g}" if self.confidence < 1.0 else ""
        return f"somewhere in {self.region} there is matter that conducts {words} than the background, {given}"

    def summary(self) -> dict[str, str]:
        """Claim and margins."""
        margins = f"better by {self.above_by:.3g}, worse by {self.below_by:.3g}"
        return {"claim": f"{self.claim} ({self.label})" if self.margin > 0.0 else self.claim, "margins": margins}


def monotonicity(
    problem: Problem,
    data: Data,
    region: Any,
    *,
    model_error: float,
    error: float | str | None = None,
    reference: Data | None = None,
) -> Monotonicity:
    """Whether there is certainly matter in a region that conducts better or worse than the background.

    See the text of `femcert.evidence.monotonicity` for the theorem. The background is that of the parameter zero.

    Parameters
    ----------
    problem
        One with electrodes that drive and measure, such as `ElectrodeModel`. The voltages must determine the potentials
        of all electrodes.
    data
        Of the body.
    region
        The name of a subdomain, indices of elements, or a function of x that picks elements by their midpoints.
    model_error
        eps: how much the simulated effect of the region may be too small, relative to itself, as a form: mesh,
        impedances, shape, background.
    error
        err: a bound of the norm of the error of the measured form ``C' (R_sigma - R_0) C``, with an orthonormal basis C
        of the currents that were driven, or of its symmetric part. ``"noise"``: what the noise of the data (and of the
        reference) adds to the symmetric part, in the norm of Frobenius and with the confidence of the data. Voltages
        then err by nothing else, neither those that were measured nor those that are simulated for the background: what
        the mesh does to these is no noise: without a `reference`, or data with a model error, the label is
        ``"estimate"``. None: twice the norm
        of the part that is not symmetric, which would vanish without errors: a usual guess. A symmetric error does not
        show in it, so that the label is ``"estimate"``.
    reference
        Data of the background, measured with the same electrodes: errors of impedances and gains cancel for the most
        part. Default: the simulated data of the parameter zero.

    Raises
    ------
    UncertifiedError
        The problem has no such electrodes; readings are missing; the voltages do not determine the form; there is one
        current only, and no error given.

    Examples
    --------
    A strip of which the right half conducts better than the background:

    >>> import numpy as np
    >>> import femcert as fc
    >>> from skfem import Basis, ElementTriP1, MeshTri
    >>> mesh = MeshTri.init_tensor(np.linspace(0.0, 2.0, 9), np.linspace(0.0, 1.0, 5)).with_boundaries(
    ...     {"left": lambda x: x[0] == 0.0, "right": lambda x: x[0] == 2.0}
    ... )
    >>> basis = Basis(mesh, ElementTriP1())
    >>> space = fc.FullSpace(basis)
    >>> problem = fc.ElectrodeModel(basis, electrodes=["left", "right"], impedances=0.1, parameters=space)
    >>> data = problem.simulate(np.where(basis.doflocs[0] > 1.0, 1.0, 0.0))
    >>> right, left = (
    ...     fc.monotonicity(problem, data, half, error=0.01, model_error=0.0)
    ...     for half in (lambda x: x[0] > 0.5, lambda x: x[0] < 0.5)
    ... )
    >>> right.above, right.below, left.above, left.label
    (True, False, False, 'proved')
    """
    check_problem(problem)
    contacts = required(problem.electrodes, "monotonicity", NEEDS, problem)
    eps = number(model_error, "model_error", least=0.0)
    name, elements = picked_elements(problem.basis.mesh, region)
    chosen = np.zeros(problem.basis.mesh.nelements, dtype=bool)
    chosen[elements] = True
    background = contacts.background_form(problem.factorize)
    measured = [problem.check_data(each) for each in (data, reference) if each is not None]
    forms = [_measured(contacts, each) for each in measured]
    S = forms[0][0] - (background.matrix if reference is None else forms[1][0])
    bound = _error(error, S, contacts, measured)
    S = (S + S.T) / 2.0
    shorted = contacts.shorted_form(chosen, problem.factorize)
    insulated, Z = contacts.insulated_form(chosen, problem.factorize)
    small = np.linalg.eigvalsh(S - (1.0 + eps) * (shorted.matrix - background.matrix))[0]
    large = _largest(Z.T @ S @ Z - (1.0 + eps) * (insulated.matrix - Z.T @ background.matrix @ Z))
    # Sums over the data lose as all sums do.
    norms = [norm * float(np.linalg.norm(each.values)) for (_, norm), each in zip(forms, measured, strict=True)]
    summed = ROUNDING * sum(norms)
    lost = [
        summed + background.rounding + (1.0 + eps) * (form.rounding + background.rounding)
        for form in (shorted, insulated)
    ]
    above_by, below_by = float(-small - bound - lost[0]), float(large - bound - lost[1])
    noise = isinstance(error, str)
    # What the mesh does to the simulated background is no noise.
    unknown = reference is None and data.model is None
    guessed = error is None or (noise and (unknown or not all(each.law.proven for each in measured)))
    confidence = 1.0 - sum(1.0 - each.confidence for each in measured) if noise else 1.0
    label = "estimate" if guessed else "proved"
    return Monotonicity(name, above_by > 0.0, below_by > 0.0, above_by, below_by, bound, eps, label, confidence)


def _measured(contacts: Contacts, data: Data) -> tuple[Array, float]:
    """The form of data, and how much it may change for a change of norm one of the values."""
    if data.count < data.values.size:
        raise UncertifiedError("readings are missing; monotonicity needs those of all electrodes")
    return contacts.measured_form(data.values)


def _noise(contacts: Contacts, data: Data) -> float:
    """What noise and model error may add to the symmetric part of the form, in the norm of Frobenius."""
    root = np.asarray(np.linalg.inv(data.whiten(np.eye(data.count))), dtype=float)
    forms, _ = contacts.measured_form(root)
    a, b = np.triu_indices(len(forms))
    rows = (forms[a, b] + forms[b, a]) / np.where(a == b, 2.0, np.sqrt(2.0))[:, None]
    systematic = 0.0 if data.model is None else data.model.norm * float(np.linalg.norm(rows, 2))
    return data.law.length(rows.T @ rows, min(rows.shape), data.law.zeta) + systematic


def _error(error: float | str | None, S: Array, contacts: Contacts, measured: list[Data]) -> float:
    """The bound that is asked for."""
    if isinstance(error, str):
        if error != "noise":
            raise InputError(f"error is {error!r}; expected a number, 'noise' or None")
        return float(sum(_noise(contacts, data) for data in measured))
    if error is not None:
        return number(error, "error", least=0.0)
    if len(S) < 2:
        raise UncertifiedError("one current has no part that is not symmetric, which could show errors; give error=")
    return float(np.linalg.norm(S - S.T, 2))


def _largest(matrix: Array) -> float:
    """The largest eigenvalue; of no currents none."""
    return float(np.linalg.eigvalsh(matrix)[-1]) if len(matrix) else -np.inf
