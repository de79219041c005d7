"""An unknown standard deviation, estimated from combinations of the data in which the class has no part, or little."""

from __future__ import annotations

import numpy as np

from ..errors import UncertifiedError
from ..linalg.accuracy import dense_rounding
from ..problem.data import Data
from ..problem.noise import Student
from .sights import Observed

# Fewer degrees of freedom than this say nothing of a deviation.
FEWEST = 2


def with_estimated_deviation(known: Observed, data: Data) -> tuple[Observed, Student]:
    """The other combinations of the data, in units of the estimate, and the law of their noise.

    With a projection P of rank nu, fixed before the data, that no free direction reaches, ``s² = ‖P b‖² / nu``. What
    truth, remainder or model add to ``P b`` makes s larger only, and the noise in the rest is independent of it: so
    ``a . b ± (bias + t_{nu, 1 - zeta / 2} s ‖a‖)`` holds for weights with ``P a = 0``. For a span P is all that its
    columns do not reach; else half of that, the directions in which the sets move the data least.

    Raises
    ------
    UncertifiedError
        There are too few data.
    """
    m, f = len(known.free), known.free.shape[1]
    U, s, _ = np.linalg.svd(known.free, full_matrices=True)
    rank = int(np.sum(s > dense_rounding(m, f) * s[0])) if s.size else 0
    reached, rest = U[:, :rank], U[:, rank:]
    moved = np.zeros((m - rank, m - rank))
    for sight in known.sights:
        moved += sight.radius**2 * (rest.T @ sight.gram @ rest)
    bounded = any(not part.systematic for part in known.parts)
    degrees = (m - rank) // 2 if bounded else m - rank
    if degrees < FEWEST:
        raise UncertifiedError(
            f"{m} data and {rank} directions that nothing bounds leave {degrees} degrees of freedom to estimate a "
            f"standard deviation from; expected at least {FEWEST}, or give std="
        )
    # Ascending: the first ones are moved least.
    V = rest @ np.linalg.eigh(moved)[1]
    estimate = float(np.linalg.norm(V[:, :degrees].T @ known.values(data))) / float(np.sqrt(degrees))
    if not estimate > 0.0:
        raise UncertifiedError("the class explains the data without any error: no standard deviation can be estimated")
    used = np.hstack([reached, V[:, degrees:]])
    return known.restricted(used.T / estimate), Student(data.law.zeta, degrees, exact=False)
