"""Lines through boxes, and integrals along them by Gauss: what ray sums are compared with."""

import numpy as np


def box_span(origins, directions, low=(0.0, 0.0), high=(1.0, 1.0)):
    """Parameters at which rays enter and leave an axis-parallel box (slab method); an empty span for a miss."""
    with np.errstate(divide="ignore", invalid="ignore"):
        cuts = (np.array([low, high])[:, :, None] - origins) / directions
    enter = np.nanmax(np.min(cuts, axis=0), axis=0)
    leave = np.nanmin(np.max(cuts, axis=0), axis=0)
    return enter, np.maximum(enter, leave)


def line_integral(function, origins, directions, enter, leave, points=6):
    """Over the parameters of each span, exact for polynomials of degree ``2 points - 1``."""
    nodes, weights = np.polynomial.legendre.leggauss(points)
    t = (enter + leave)[:, None] / 2 + (leave - enter)[:, None] / 2 * nodes
    return function(origins[:, :, None] + directions[:, :, None] * t) @ weights * (leave - enter) / 2
