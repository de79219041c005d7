"""The residual-based indicator: a classical estimate, with all constants set to one. It is no bound."""

from __future__ import annotations

import numpy as np

from ..checks import Array
from ..mesh.geometry import diameters
from ..mesh.sample import Sampler, nodal_fit
from .traces import FacetCheck
from .weak import WeakResidual


class BrokenField:
    """A sampled vector field as polynomials on the elements, without any continuity."""

    trace_degree = 2

    def __init__(self, sampler: Sampler, field: Array, degree: int) -> None:
        self.elem, fit = nodal_fit(sampler, degree)
        whole = np.broadcast_to(field, (len(field), sampler.mesh.nelements, len(sampler.W)))
        self.nodes = [component @ fit.T for component in whole]

    def at(self, sampler: Sampler) -> tuple[Array, Array]:
        """Values and divergence."""
        phi, slopes = sampler.table(self.elem)
        values = np.array([nodes @ phi for nodes in self.nodes])
        divergence = np.zeros(values.shape[1:])
        for i, nodes in enumerate(self.nodes):
            divergence += sampler.physical([nodes @ slopes[:, j] for j in range(len(sampler.X))])[i]
        return values, divergence


def residual_indicators(r: WeakResidual, check: FacetCheck, degree: int) -> Array:
    """On each element the root of ``h²/A ‖source + div flux‖² + sum_e s_e h/A ‖[flux . n]‖_e²``.

    Jumps count half for each of two elements, defects of natural boundary values in full.
    """
    sampler, mesh = r.sampler, r.sampler.mesh
    flux = BrokenField(sampler, r.flux, degree)
    _, divergence = flux.at(sampler)
    h, A = diameters(mesh), sampler.means(r.norm.A)
    total = h**2 / A * sampler.integral((r.source + divergence) ** 2)
    jumps = check.jumps(flux)
    total += h / A * sum(0.5 * jumps[facets] for facets in mesh.t2f)
    part = r.traces.basis
    if part is not None:
        element, facets = mesh.f2t[0, r.traces.facets], r.traces.facets
        _, outward = check.outward(flux)
        # The means suffice for an estimate.
        weights = part.dx.sum(axis=1) if mesh.t.shape[0] > 2 else np.ones(len(facets))
        gap = r.natural.mean(axis=1) - outward[check.first[facets]].mean(axis=1)
        np.add.at(total, element, h[element] / A[element] * gap**2 * weights)
    return np.sqrt(total)
