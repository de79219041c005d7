"""Energy errors of blocks of states: quadratic forms that bound the error of every combination."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..bound import Bound
from ..checks import Array
from ..errors import UncertifiedError
from ..linalg import Factorization
from ..linalg.accuracy import EPS
from ..mesh.assembly import diffusion_matrix, is_linear_on_triangles
from ..mesh.elements import mass_matrix
from ..problem.forward import dense
from ..problem.strong import Interpolant, StrongForm
from .block_chunk import Columns
from .block_maps import probes, scattered, source_moments
from .block_plain import PlainFluxes
from .blocks import BlockFluxes, Misfits, batches, ground_of
from .elliptic import DOMINATING, STEPS, bounded
from .energy import StateNorm
from .majorant import BALANCE_ROUNDING, CRUDE, _crude_constant, _defect
from .patches import NotConformingError
from .quadrature import Quadrature
from .remainders import ROUNDING, SIZE_ROUNDING, is_exact, quadrature_words
from .weak import WeakResidual
from .workspace import Workspace

# A residual on the trial space that is this small against the load needs no further solve: the bound includes it.
SOLVED = 1e-11
MOST_CORRECTIONS = 4
# Most numbers in the stream functions of all columns; where there would be more, fluxes are not improved if they can do
# without that.
IMPROVED = 20_000_000
# Numbers in the arrays of states that are corrected at once.
BATCH = 4_000_000


@dataclass(frozen=True)
class EnergyErrors:
    """What is known of the energy errors ``e_c = sum_j c_j (exact state j - state j)`` of the columns of a block.

    ``a(e_c, v) = (t_c, grad v) + rest_c(v)`` with a flux t_c that is known and a functional rest_c of known size, so

        ‖e_c‖² <= c' total c,    ‖a^-1/2 t_c‖² = c' flux c,    ‖rest_c‖² <= c' rest c.

    Attributes
    ----------
    states
        The states that the errors are of: those given, with a Galerkin correction where they are no solutions.
    residual
        ``<r_j, phi_i>`` of these states on the free dofs.
    flux, rest, total
        Gram matrices, see above.
    single
        Upper bounds of the energy errors of the columns.
    gradient
        ``‖P a^-1/2 t_c‖² >= c' gradient c`` with the projection P on gradients of states; None where it is not known.
    """

    states: Array
    residual: Array
    flux: Array
    rest: Array
    total: Array
    single: Array
    gradient: Array | None = None

    def beside(self, gram: Array, norms: Array) -> EnergyErrors:
        """With further functionals in the residuals, known by a Gram matrix, and by the norms of the single ones."""
        single = self.single + norms
        if not self.flux.any():
            return replace(self, rest=isotropic(single), total=isotropic(single), single=single)
        return replace(self, rest=combined([self.rest, gram]), total=combined([self.total, gram]), single=single)


@dataclass(frozen=True)
class BlockErrors:
    """The energy errors of several blocks of one equation.

    Attributes
    ----------
    blocks
        One for each.
    cross
        ``(i, j) -> (a^-1 t_p, t_q)``, the columns p of block i and q of a later block j.
    remainder
        Relative to the product of the norms of two fluxes, what quadrature may miss of these.
    """

    blocks: tuple[EnergyErrors, ...]
    cross: dict[tuple[int, int], Array]
    remainder: float


def products(adjoint: EnergyErrors, states: EnergyErrors, cross: Array, remainder: float) -> tuple[Array, Array]:
    """What is known of ``M_ij = a(e_i, e*_j)``, the errors of states against those of adjoint states, and the rest.

    With the projection P on gradients ``a(e, e*) = (a^-1 t*, P t) + rest(e*) + ..`` and ``‖P - 1/2‖ = 1/2``, so for the
    matrix ``X_ij = (a^-1 t*_i, t_j)``

        ‖(M - X/2) c‖ <= (g/2 + o) (c'Gc)^1/2 + (g + o) (c'Oc)^1/2    for all c,

    G and O the Gram matrices `flux` and `rest` of the states, g² and o² the largest eigenvalues of those of the adjoint
    states. Where it is known how much of the fluxes are gradients, ``‖P t_c‖² >= c'Lc``, more of X may be taken:
    ``(a^-1 t*, P t) = (a^-1 t*, t) - (a^-1 (1 - P) t*, (1 - P) t)``, so with p² the largest eigenvalue of ``G* - L*``

        ‖(M - X) c‖ <= p (c'(G - L)c)^1/2 + o (c'Gc)^1/2 + (g + o) (c'Oc)^1/2.

    Returns
    -------
    known, spread
        ``X / 2`` or X, whichever leaves less, and a Gram matrix S with ``‖(M - known) c‖² <= c'Sc``.
    """
    g, o = (float(np.sqrt(largest(gram))) for gram in (adjoint.flux, adjoint.rest))
    missed = remainder * g * float(np.sqrt(largest(states.flux)))
    others = [(g + o) ** 2 * states.rest, missed**2 * np.eye(len(states.flux))]
    half = combined([(0.5 * g + o) ** 2 * states.flux, *others])
    if adjoint.gradient is None or states.gradient is None:
        return 0.5 * cross, half
    left, right = (_no_gradients(block.flux, block.gradient) for block in (adjoint, states))
    whole = combined([largest(left) * right, o**2 * states.flux, *others])
    return (cross, whole) if largest(whole) < largest(half) else (0.5 * cross, half)


def _no_gradients(flux: Array, gradient: Array | None) -> Array:
    """A Gram matrix above ``‖(1 - P) t_c‖²``."""
    assert gradient is not None
    values, vectors = np.linalg.eigh(flux - gradient)
    slack = len(flux) * EPS * float(np.trace(flux))
    return np.asarray((vectors * (np.maximum(values, 0.0) + slack)) @ vectors.T)


def isotropic(norms: Array) -> Array:
    """The Gram matrix of functionals of which only the norms are known: ``(sum_j |c_j| n_j)² <= |c|² sum_j n_j²``."""
    return np.asarray(np.sum(norms**2) * np.eye(len(norms)))


def combined(grams: Sequence[Array]) -> Array:
    """A Gram matrix G with ``(c'Gc)^1/2 >= sum_i (c'G_i c)^1/2`` for all c.

    ``sum_i G_i / p_i`` for any weights that add up to one; here those for which the largest eigenvalue of G is at most
    ``(sum_i lam_i^1/2)²``, that of G_i being lam_i.
    """
    sizes = np.array([np.sqrt(largest(gram)) for gram in grams])
    total = float(sizes.sum())
    if not total > 0.0:
        return np.zeros_like(grams[0])
    parts = [gram * (total / size) for gram, size in zip(grams, sizes, strict=True) if size > 0.0]
    return np.asarray(sum(parts))


def largest(gram: Array) -> float:
    """The largest eigenvalue of a Gram matrix, from above."""
    if not gram.any():
        return 0.0
    top = float(np.linalg.eigvalsh((gram + gram.T) / 2.0)[-1])
    return max(top, 0.0) * (1.0 + ROUNDING) + len(gram) * EPS * float(np.trace(gram))


def block_errors(
    workspace: Workspace,
    equation: StrongForm,
    norm: StateNorm,
    blocks: Sequence[Columns],
    *,
    steps: int | None = None,
) -> BlockErrors | None:
    """Energy errors of all combinations of the columns of some blocks, guaranteed; None where they are not for blocks.

    With conforming fluxes ``p_j`` and ``t_j = p_j - a grad u_j``, the bound of `majorant` for the combination c is a
    quadratic form in c: with parts ``x_K, y_K`` of the flux and of the oscillation on element K,
    ``(x + y)² <= (1 + s_K) x² + (1 + 1/s_K) y²`` with one s_K for all c. The fluxes are evaluated on a few elements at
    a time; what is kept is one vector of the length of a state, and one of a stream function, for each column.

    Parameters
    ----------
    equation
        With homogeneous boundary conditions; its source is that of the columns.
    norm
        The energy norm of the equation.
    blocks
        States that vanish on the Dirichlet boundary, with sources that are finite-element functions on the mesh.
    steps
        Most improving steps of the fluxes. Default: as many as are worth their cost; on linear triangles without a
        reaction none for so many columns that the stream functions would take more than 160 MB: bounds are then 1.2 to
        1.35 times as large, and products of two 1.3 to 1.75 times, in a quarter of the time.

    Returns
    -------
    BlockErrors or None
        None on lines, for a reaction that dominates on some element, for exponential conductivities, and for Robin
        coefficients that vary along a facet: there single bounds are the better ones.

    Raises
    ------
    UncertifiedError
        The integrals are not exact, so that the bounds would be estimates.
    """
    if workspace.basis.mesh.dim() != 2:
        return None
    richest = max(blocks, key=lambda block: block.basis.elem.maxdeg)
    sampled = replace(equation, source=Interpolant(richest.basis, np.zeros(richest.basis.N)))
    rule = workspace.rule(sampled, "energy")
    r = workspace.residual(sampled, np.zeros(workspace.basis.N), "energy", rule)
    if not is_exact(r, rule):
        raise UncertifiedError(f"an energy error is only estimated: {quadrature_words(r, rule)}")
    if not _for_blocks(workspace, r, rule):
        return None
    operator = _operator(r)
    solved = [_solved(r, operator, block, norm.factor, workspace.free) for block in blocks]
    fluxes = _fluxes(workspace, r, rule, tuple(block for block, _ in solved), steps)
    _check_conforming(workspace, fluxes, r)
    misfits, cross = fluxes.misfits()
    found = [_errors(workspace, r, rule, operator, *pair, parts) for pair, parts in zip(solved, misfits, strict=True)]
    return BlockErrors(tuple(found), cross, float(np.max(rule.remainder)) + 2.0 * rule.signed)


def _fluxes(
    workspace: Workspace, r: WeakResidual, rule: Quadrature, blocks: tuple[Columns, ...], steps: int | None
) -> BlockFluxes | PlainFluxes:
    """With improving steps, or plain ones where there are many columns on linear triangles."""
    count = sum(block.count for block in blocks) * workspace.equilibration.space.N
    simple = workspace.degree == 1 and workspace.basis.mesh.t.shape[0] == 3 and r.norm.A.shape[1] == 1
    simple = simple and not (r.norm.C.any() or r.traces.coefficient.any() or np.any(rule.remainder))
    if simple and (steps == 0 or (steps is None and count > IMPROVED)):
        return PlainFluxes(ground_of(workspace, r, rule), blocks)
    return BlockFluxes(workspace, r, rule, blocks, steps=STEPS if steps is None else steps)


def _for_blocks(workspace: Workspace, r: WeakResidual, rule: Quadrature) -> bool:
    alpha = r.traces.coefficient
    ratio = r.sampler.means(r.norm.C) * workspace.facets.diameters**2 / r.sampler.means(r.norm.A)
    level = not alpha.size or bool(np.ptp(alpha, axis=1).max() == 0.0)
    return level and not rule.separate and rule.missed is None and not bool(ratio.max() > DOMINATING)


def _operator(r: WeakResidual) -> Any:
    """``a(phi_j, phi_i)`` by the rule of a residual, sparse, on all dofs."""
    basis, shape = r.basis, (r.basis.N, r.basis.N)
    part = r.traces.basis if r.traces.coefficient.any() else None
    if is_linear_on_triangles(basis) and part is None and not r.norm.C.any():
        return diffusion_matrix(basis, r.sampler.means(r.norm.A)[:, None])
    dofs, rows, columns, values = basis.element_dofs, [], [], []
    for j, probe in enumerate(probes(r)):
        rows.append(dofs)
        columns.append(np.broadcast_to(dofs[j], dofs.shape))
        values.append(-r.sampler.local_moments(basis.elem, probe.source, -probe.flux).T)
    if part is not None:
        phi = [np.broadcast_to(np.asarray(part.basis[i][0]), part.dx.shape) for i in range(part.Nbfun)]
        weighted = [r.traces.coefficient * part.dx * value for value in phi]
        for i, j in np.ndindex(part.Nbfun, part.Nbfun):
            rows.append(part.element_dofs[i])
            columns.append(part.element_dofs[j])
            values.append(np.sum(weighted[i] * phi[j], axis=1))
    return scattered(rows, columns, values, shape)


def _solved(r: WeakResidual, operator: Any, block: Columns, factor: Factorization, free: Any) -> tuple[Columns, Array]:
    """The block with states that solve the discrete problem with exact integrals, and their residuals."""
    if block.basis is r.basis:
        moments = mass_matrix(r.basis)
    else:
        moments = source_moments(r.sampler, r.basis.elem, r.basis.element_dofs, r.basis.N, block.basis)
    inner, moments = operator[free][:, free], moments[free]
    found, left = np.take(block.states, free, axis=0), np.empty((len(free), block.count))
    for here in batches(block.count, max(BATCH // r.basis.N, 1)):
        load = dense(moments @ block.sources[:, here])
        found[:, here], left[:, here] = _corrected(inner, load, found[:, here].copy(), factor)
    states, residuals = np.zeros((r.basis.N, block.count)), np.zeros((r.basis.N, block.count))
    states[free], residuals[free] = found, left
    return replace(block, states=states), residuals


def _corrected(operator: Any, load: Array, states: Array, factor: Factorization) -> tuple[Array, Array]:
    def residual(u: Array) -> tuple[Array, Array]:
        left = operator @ u
        np.subtract(load, left, out=left)
        return left, np.einsum("ij,ij->j", left, left)

    enough = SOLVED**2 * np.einsum("ij,ij->j", load, load)
    left, missing = residual(states)
    for _ in range(MOST_CORRECTIONS):
        if np.all(missing <= enough):
            break
        better = factor.solve(left)
        better += states
        after, remaining = residual(better)
        if not np.any(remaining < 0.25 * missing):
            break
        states, left, missing = better, after, remaining
    return states, left


def _check_conforming(workspace: Workspace, fluxes: BlockFluxes | PlainFluxes, r: WeakResidual) -> None:
    """Look at the normal components of a random combination from both sides of all facets."""
    rng = np.random.default_rng(0)
    for number, part in enumerate(fluxes.parts):
        flux = fluxes.single(number, rng.standard_normal(part.columns.count))
        try:
            workspace.facets.traces(flux, r.traces.facets)
        except NotConformingError as error:
            raise UncertifiedError(
                f"the elements are too thin for a flux in double precision ({error}); use method='enriched'"
            ) from None


def _errors(
    workspace: Workspace,
    r: WeakResidual,
    rule: Quadrature,
    operator: Any,
    block: Columns,
    left: Array,
    parts: Misfits,
) -> EnergyErrors:
    """Add what is missing in the balance of the elements, and rounding."""
    squares = np.maximum(np.einsum("ij,ij->j", block.states, operator @ block.states), 0.0)
    size = float(np.sqrt(squares.sum()))
    least, value = float(np.min(rule.least_conductivity)), float(np.sqrt(np.trace(parts.both)))
    crude = _crude_constant(r, least, float(workspace.facets.areas.sum()))

    def constant(sharp: bool) -> Bound | None:
        return workspace.friedrichs(r, rule, "energy", sharp)

    width = float(workspace.facets.diameters.max() / np.sqrt(least))
    defect = _defect(parts.lacking, 0.0, value, crude, CRUDE * BALANCE_ROUNDING * size, width, constant)
    # For the whole block: columns that are not alike had better come in blocks of their own.
    extra = (defect + SIZE_ROUNDING * size) ** 2 * np.eye(block.count)
    stretch = (1.0 + ROUNDING) ** 2
    rest = extra if parts.oscillation is None else combined([stretch * parts.oscillation, extra])
    total = combined([stretch * parts.both, extra])
    single = np.sqrt(np.diag(stretch * parts.both)) + float(np.sqrt(extra[0, 0]))
    return EnergyErrors(block.states, left, stretch * parts.flux, rest, total, single, parts.gradient)


def single_errors(
    workspace: Workspace, equation: StrongForm, factor: Factorization, block: Columns, loads: Array | None = None
) -> EnergyErrors:
    """Bounds of the columns one by one, for equations that are not for blocks: no flux is known, only norms are.

    Parameters
    ----------
    loads
        Point loads at the vertices, a column for each state; on a line only.
    """
    upper, residuals = np.zeros(block.count), np.zeros_like(block.states)
    for j in range(block.count):
        form = replace(equation, source=Interpolant(block.basis, dense(block.sources[:, [j]])[:, 0]))
        given = None if loads is None else loads[:, j]
        bound = bounded(workspace, form, block.states[:, j], "energy", lambda: factor, loads=given)
        if not bound.exact:
            raise UncertifiedError(f"an energy error is only estimated: {bound.words}")
        upper[j], residuals[:, j] = bound.upper, bound.residual.on_basis()
    total = isotropic(upper)
    return EnergyErrors(block.states, residuals, np.zeros_like(total), total, total, upper)
