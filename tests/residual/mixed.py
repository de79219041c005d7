"""Mixed finite elements with scikit-fem alone: conforming fluxes that owe nothing to femcert."""

import numpy as np
from scipy.sparse import bmat
from scipy.sparse.linalg import spsolve
from skfem import (
    Basis,
    BilinearForm,
    ElementQuad0,
    ElementQuadRT1,
    ElementTriBDM1,
    ElementTriP0,
    ElementTriP1DG,
    ElementTriRT1,
    ElementTriRT2,
    FacetBasis,
    LinearForm,
    asm,
    condense,
)  # fmt: skip
from skfem.helpers import div, dot

# Stable pairs of flux and potential. In scikit-fem the lowest order of Raviart and Thomas is RT1 (RT0 is the same).
PAIRS = {
    "RT1": (ElementTriRT1, ElementTriP0),
    "BDM1": (ElementTriBDM1, ElementTriP0),
    "RT2": (ElementTriRT2, ElementTriP1DG),
    "quad RT1": (ElementQuadRT1, ElementQuad0),
}


@BilinearForm
def inverse_mass(p, q, w):
    return dot(p, q) / w["a"]


@BilinearForm
def divergence_form(p, v, w):
    return div(p) * v


@LinearForm
def load(v, w):
    return -w["f"] * v


@LinearForm
def lifted(q, w):
    return w["g"] * dot(q, w.n)


@BilinearForm
def normal_mass(p, q, w):
    return dot(p, w.n) * dot(q, w.n)


def mixed_flux(pair, mesh, a, f, essential, natural):
    """The flux ``p = a grad u``, ``-div p = f``: its basis and dofs.

    Parameters
    ----------
    a, f
        Functions of x.
    essential, natural
        Pairs of facets and a function of ``(x, elements)``: values of u, and of ``p . n``.
    """
    flux, potential = (Basis(mesh, element(), intorder=8) for element in PAIRS[pair])
    x = np.asarray(flux.global_coordinates())
    ones = np.ones(flux.dx.shape)
    M = asm(inverse_mass, flux, a=a(x) * ones)
    B = asm(divergence_form, flux, potential)
    right = np.concatenate([np.zeros(flux.N), asm(load, potential, f=f(x) * ones)])
    fixed, known = [], np.zeros(flux.N + potential.N)
    for facets, value in essential:
        part = FacetBasis(mesh, flux.elem, facets=facets, intorder=8)
        right[: flux.N] += asm(lifted, part, g=value(np.asarray(part.global_coordinates())))
    for facets, value in natural:
        part = FacetBasis(mesh, flux.elem, facets=facets, intorder=8)
        here = part.get_dofs(facets).flatten()
        b = asm(lifted, part, g=value(part))
        known[here] = spsolve(asm(normal_mass, part).tocsc()[here][:, here], b[here])
        fixed.append(here)
    K = bmat([[M, B.T], [B, None]]).tocsc()
    dofs = np.unique(np.concatenate(fixed)) if fixed else np.zeros(0, dtype=int)
    inner = condense(K, right, x=known, D=dofs, expand=False)
    solution = known.copy()
    free = np.setdiff1d(np.arange(len(known)), dofs)
    solution[free] = spsolve(inner[0].tocsc(), inner[1])
    return flux, solution[: flux.N]


def flux_of(case, pair):
    """The mixed solution of a case, conforming and in balance up to the degrees of the elements.

    Where there is a Robin condition, with the values of the solution: the flux there is off by what a state is.
    """
    problem, mesh = case.problem, case.problem.basis.mesh
    a = case.a if callable(case.a) else (lambda x: np.broadcast_to(case.a, mesh.nelements)[:, None])

    def outflow(part):
        def value(facets):
            return part.value(np.asarray(facets.global_coordinates()))

        return value

    essential = [(part.facets, part.value) for part in problem.boundary.dirichlet]
    essential += [(mesh.boundaries[side], case.solution[-1]) for side in case.alpha]
    natural = [(part.facets, outflow(part)) for part in problem.boundary.natural if part.name not in case.alpha]
    return mixed_flux(pair, mesh, a, case.source, essential, natural)
