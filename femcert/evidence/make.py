"""Where an evidence begins: a problem, data, and the scope of the claims."""

from __future__ import annotations

from ..checks import required
from ..errors import InputError
from ..problem.base import Problem, check_problem
from ..problem.data import Data
from .continuous import ContinuousEvidence
from .evidence import Evidence
from .sights import observed


def evidence(problem: Problem, data: Data, *, guarantee: str = "discrete") -> Evidence:
    """What the data say about the truth: intervals, p-value, least norm, refutation.

    Parameters
    ----------
    problem
        A linear problem; its class is a ball, ``FullSpace(basis).within_ball(radius)``, or a span that the data
        determine.
    data
        With what is known of the noise: `Data.gaussian`, or a noise level.
    guarantee
        ``"discrete"``: for the discretized problem. ``"continuous"``: for the equation itself, for sources that are
        functions of a ball in the H1 norm: means and values, without limits, by two equilibrated fluxes for each.

    Raises
    ------
    UncertifiedError
        The problem is not linear, or nothing bounds the class.

    Examples
    --------
    >>> import numpy as np
    >>> import femcert as fc
    >>> from skfem import Basis, ElementTriP1, MeshTri
    >>> basis = Basis(MeshTri().refined(4), ElementTriP1())
    >>> space = fc.FullSpace(basis).within_ball(2.0, norm="h1", length=0.3)
    >>> x = np.linspace(0.1, 0.9, 6)
    >>> sensors = fc.AverageSensors(basis, np.array([(a, b) for a in x for b in x]), radius=0.05)
    >>> problem = fc.EllipticSource(basis, parameters=space, sensors=sensors)
    >>> truth = np.exp(-np.sum((basis.doflocs - 0.4) ** 2, axis=0) / 0.1)
    >>> exact = problem.observe(problem.solve(truth))
    >>> noise = 2e-4 * np.random.default_rng(0).standard_normal(exact.size)
    >>> found = fc.evidence(problem, fc.Data.gaussian(exact + noise, std=2e-4))
    >>> west = fc.Mean(basis, lambda x: x[0] < 0.5, name="west")
    >>> found.interval(west).contains(west.value(space, truth))
    True
    """
    check_problem(problem)
    problem.check_data(data)
    if guarantee not in ("discrete", "continuous"):
        raise InputError(f"guarantee is {guarantee!r}; expected 'discrete' or 'continuous'")
    forward = required(problem.forward, "evidence", "data that depend linearly on the parameter", problem)
    kind = Evidence if guarantee == "discrete" else ContinuousEvidence
    return kind(problem, data, observed(forward, data))
