"""Dual norms in H1 against Riesz representatives on fine meshes, made with scikit-fem alone."""

import numpy as np
import pytest
from exact_cases import draw
from scipy.sparse.linalg import spsolve
from skfem import Basis, BilinearForm, ElementQuad2, ElementTriP2, FacetBasis, LinearForm, asm
from skfem.helpers import dot, grad

import femcert as fc
from femcert.mesh.refine import refined


@BilinearForm
def h1(u, v, w):
    return dot(grad(u), grad(v)) + u * v


@LinearForm
def residual(v, w):
    return (w["f"] - w["c"] * w["u"]) * v - w["a"] * dot(grad(w["u"]), grad(v))


@LinearForm
def natural(v, w):
    return (w["g"] - w["alpha"] * w["u"]) * v


def prolonged(coarse, state, fine):
    """A coarse function in a fine space that contains it; the children of an element follow each other."""
    parents = np.repeat(np.arange(coarse.nelems), fine.nelems // coarse.nelems)
    result = np.zeros(fine.N)
    for dofs in fine.element_dofs:
        X = coarse.mapping.invF(fine.doflocs[:, dofs][:, :, None], tind=parents)
        assert X.min() > -1e-9
        assert X.max() < 1.0 + 1e-9
        result[dofs] = sum(
            np.asarray(coarse.elem.gbasis(coarse.mapping, X, j, tind=parents)[0])[:, 0] * state[local[parents]]
            for j, local in enumerate(coarse.element_dofs)
        )
    return result


def fine_dual_norm(case, state, levels):
    """The largest value of the residual on quadratic functions of a refined mesh: a bound from below."""
    mesh, coarse = case.problem.basis.mesh, case.problem.basis
    for _ in range(levels):
        mesh = refined(mesh)
    fine = Basis(mesh, (ElementTriP2 if mesh.t.shape[0] == 3 else ElementQuad2)(), intorder=8)
    u, f = prolonged(coarse, state, fine), case.source(np.asarray(fine.doflocs))
    a = np.repeat(case.a, 4**levels)[:, None] if isinstance(case.a, np.ndarray) else case.a
    a = a(np.asarray(fine.global_coordinates())) if callable(a) else a
    r = asm(residual, fine, f=fine.interpolate(f), u=fine.interpolate(u), a=a * np.ones(fine.dx.shape), c=case.c)
    for part in case.problem.boundary.natural:
        side = FacetBasis(mesh, fine.elem, facets=mesh.boundaries[part.name], intorder=10)
        y = np.asarray(side.global_coordinates())
        alpha = part.coefficient(y) if callable(part.coefficient) else part.coefficient * np.ones(side.dx.shape)
        r += asm(natural, side, g=part.value(y), alpha=alpha, u=side.interpolate(u))
    essential = [mesh.boundaries[p.name] for p in case.problem.boundary.dirichlet if p.name != "boundary"]
    if any(p.name == "boundary" for p in case.problem.boundary.dirichlet):
        essential = [mesh.boundary_facets()]
    fixed = fine.get_dofs(np.concatenate(essential)).flatten() if essential else np.zeros(0, dtype=int)
    free = np.setdiff1d(np.arange(fine.N), fixed)
    K = asm(h1, fine).tocsc()[free][:, free]
    return float(np.sqrt(r[free] @ spsolve(K, r[free])))


@pytest.mark.parametrize("element", ["P1", "P2", "Q1", "Q2"])
def test_bounds_in_h1_enclose_the_reference(element):
    over = []
    for seed in range(9):
        case, state, words = draw(element, seed)
        coarser, finer = (fine_dual_norm(case, state, levels) for levels in (1, 2))
        result = fc.dual_norm(case.problem, case.candidate(state), norm="h1")
        assert (result.upper.side, result.lower.side) == ("upper", "lower"), words
        # What is missing from the finer reference is at most what it gained over the coarser one.
        assert 0.85 * finer <= result.lower.value <= 2.0 * finer - coarser + 1e-9 * finer, (words, finer, result)
        assert result.upper.value >= finer * (1.0 - 1e-9), words
        over.append(result.upper.value / finer)
        assert over[-1] <= (20.0 if "stretched" in words else 1.6), (words, over[-1])
    assert np.median(over) <= 1.1, np.sort(over)
