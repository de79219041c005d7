"""Blocks of bounds: as the single ones for single columns, and for no combination below the energy error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import zoo
from scipy.sparse import csr_matrix
from skfem import Basis, ElementQuad1, ElementQuad2, ElementTriP1, ElementTriP2, MeshQuad, MeshTri

import femcert as fc
from femcert.linalg import Factorization
from femcert.mesh.assembly import diffusion_matrix
from femcert.mesh.elements import constant_basis, mass_matrix
from femcert.problem.forward import dense
from femcert.problem.states import strong_form
from femcert.residual import blocks
from femcert.residual.block_chunk import Columns
from femcert.residual.block_errors import block_errors, combined, largest, products
from femcert.residual.block_maps import flux_maps
from femcert.residual.block_plain import PlainFluxes
from femcert.residual.blocks import BlockFluxes, ground_of
from femcert.residual.elliptic import elliptic_bound
from femcert.residual.energy import state_norm
from femcert.residual.equilibrate import equilibrated_flux
from femcert.residual.majorant import majorant
from femcert.residual.workspace import Workspace

ELEMENTS = {"tri P1": ElementTriP1, "tri P2": ElementTriP2, "quad Q1": ElementQuad1, "quad Q2": ElementQuad2}
BOUNDARIES = {
    "dirichlet": {},
    "neumann": {"dirichlet": {"left": 0.0}},
    "robin": {"dirichlet": {"left": 0.0}, "robin": {"rest": (2.0, 0.0)}},
}


def crooked(element, seed=1, cells=(6, 5), jitter=0.03):
    """A basis on a grid whose inner vertices were moved."""
    rng = np.random.default_rng(seed)
    kind = MeshTri if element.startswith("tri") else MeshQuad
    mesh = kind.init_tensor(np.linspace(0.0, 1.0, cells[0] + 1), np.linspace(0.0, 1.0, cells[1] + 1) ** 1.2)
    p, inner = mesh.p.copy(), mesh.interior_nodes()
    p[:, inner] += rng.uniform(-jitter, jitter, (2, len(inner)))
    mesh = kind(p, mesh.t)
    return Basis(
        mesh.with_boundaries({"left": lambda x: x[0] == 0.0, "rest": lambda x: x[0] > 0.0}), ELEMENTS[element]()
    )


class Case:
    """Sources of the state's space and piecewise constants, with their states; everything a block needs."""

    def __init__(self, element, boundary="dirichlet", reaction=0.0, seed=1, k=3, m=4, **options):
        rng = np.random.default_rng(seed)
        self.basis = crooked(element, seed, **options)
        mesh = self.basis.mesh
        given = {"parameters": 1, "sensors": fc.RegionSensors(self.basis, [np.array([0, 1])]), **BOUNDARIES[boundary]}
        conductivity = rng.uniform(0.5, 2.0, mesh.nelements)
        self.problem = zoo.source(self.basis, reaction=reaction, conductivity=conductivity, **given)
        (equation,) = self.problem.states
        self.workspace, self.norm = Workspace(equation), state_norm(self.problem, "energy")
        self.form = strong_form(equation, np.zeros(self.basis.N))
        self.constants = constant_basis(self.basis)
        loads = rng.standard_normal((mesh.nelements, m)) * (rng.random((mesh.nelements, m)) < 0.2)
        sources = (self.constants, csr_matrix(loads)), (self.basis, rng.standard_normal((self.basis.N, k)))
        self.blocks = [Columns(self.solved(*source), *source) for source in sources]

    def solved(self, basis, sources):
        states = np.zeros((self.basis.N, sources.shape[1]))
        load = dense(moments(self.basis, basis) @ sources)
        states[self.problem.free] = self.problem.factor.solve(load[self.problem.free])
        return states

    def errors(self, **options):
        return block_errors(self.workspace, self.form, self.norm, self.blocks, **options)

    def residual(self, number, weights):
        """The residual of a combination, and what it was sampled with."""
        block = self.blocks[number]
        form = replace(self.form, source=fc.Interpolant(block.basis, block.sources @ weights))
        zero = replace(self.form, source=fc.Interpolant(self.basis, np.zeros(self.basis.N)))
        rule = self.workspace.rule(zero, "energy")
        return self.workspace.residual(form, block.states @ weights, "energy", rule), rule


def moments(test, source):
    """``(psi_j, phi_i)``."""
    if source is test:
        return mass_matrix(test)
    weights = [np.sum(np.broadcast_to(np.asarray(field[0]), test.dx.shape) * test.dx, axis=1) for field in test.basis]
    rows, columns = test.element_dofs, np.broadcast_to(np.arange(test.mesh.nelements), test.element_dofs.shape)
    return csr_matrix((np.ravel(weights), (rows.ravel(), columns.ravel())), shape=(test.N, test.mesh.nelements))


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("reaction", [0.0, 5.0])
def test_equilibration_is_a_matrix(element, boundary, reaction):
    case = Case(element, boundary, reaction)
    tools = case.workspace.equilibration
    zero, _ = case.residual(1, np.zeros(3))
    maps = flux_maps(tools, zero)
    for number, block in enumerate(case.blocks):
        weights = np.random.default_rng(number).standard_normal(block.count)
        r, _ = case.residual(number, weights)
        flux = equilibrated_flux(tools, r, steps=0, bubbles=False)
        found = maps.state @ (block.states @ weights) + maps.of_source(block.basis) @ (block.sources @ weights)
        found = np.array([found, found]) if maps.merged else found.reshape(2, -1)
        np.testing.assert_allclose(found, flux.gamma, atol=1e-13 * np.abs(flux.gamma).max())
        if maps.bent is not None:
            bent = maps.bent @ (block.states @ weights)
            np.testing.assert_allclose(bent, flux.stream, atol=1e-12 * np.abs(flux.stream).max())


def checked_by_majorant(case, fluxes, rule, number, weights):
    r, _ = case.residual(number, weights)
    flux = fluxes.single(number, weights)
    return majorant(r, flux, rule, lambda sharp: case.workspace.friedrichs(r, rule, "energy", sharp),
                    case.workspace.facets)  # fmt: skip


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize(("boundary", "reaction"), [("dirichlet", 0.0), ("neumann", 5.0), ("robin", 5.0)])
def test_the_quadratic_form_is_the_majorant(element, boundary, reaction):
    """Of the flux of every combination, evaluated by the code that checks any flux."""
    case = Case(element, boundary, reaction)
    zero, rule = case.residual(1, np.zeros(3))
    fluxes = BlockFluxes(case.workspace, zero, rule, tuple(case.blocks), steps=8)
    misfits, cross = fluxes.misfits()
    for number, found in enumerate(misfits):
        for column in range(len(found.both)):
            e = np.eye(len(found.both))[column]
            for weights in (e, np.random.default_rng(column).standard_normal(len(e))):
                checked = checked_by_majorant(case, fluxes, rule, number, weights)
                square, value = weights @ found.flux @ weights, np.sqrt(weights @ found.both @ weights)
                assert checked.misfit**2 == pytest.approx(square, rel=1e-9)
                # One s for all combinations costs something.
                assert checked.value - checked.defect <= value * (1.0 + 1e-9)
                assert value <= 1.1 * (checked.value - checked.defect)
    assert cross[0, 1].shape == (4, 3)
    sizes = [np.sqrt(np.diag(found.flux)) for found in misfits]
    assert np.all(np.abs(cross[0, 1]) <= np.outer(*sizes) * (1.0 + 1e-12))


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("boundary", ["dirichlet", "robin"])
def test_single_columns_as_single_bounds(element, boundary):
    case = Case(element, boundary, 5.0, k=2, m=1)
    together, given = case.errors(), case.blocks
    for number, block in enumerate(given):
        for j in range(block.count):
            case.blocks = [Columns(block.states[:, [j]], block.basis, block.sources[:, [j]])]
            (alone,) = case.errors().blocks
            form = replace(case.form, source=fc.Interpolant(block.basis, dense(block.sources[:, [j]])[:, 0]))
            single = elliptic_bound(case.workspace, form, alone.states[:, 0], "energy", case.norm.factor)
            # For P1 the single bound may do without bubbles.
            assert alone.single[0] == pytest.approx(single.upper, rel=2e-2 if element == "tri P1" else 1e-7)
            assert single.lower <= together.blocks[number].single[j] <= 1.05 * single.upper


def reference_gram(case, free_of):
    """``a(e_i, e_j)`` for the columns of both blocks, with solutions on a finer mesh: at most the true Gram matrix."""
    mesh = case.basis.mesh
    fine = Basis(mesh.refined(2), case.basis.elem)
    parents = np.tile(np.arange(mesh.nelements), 16)
    a = np.asarray(case.norm.diffusion.value)[parents][:, None]
    K = (diffusion_matrix(fine, a) + float(case.norm.reaction.value) * mass_matrix(fine)).tocsr()
    free = np.setdiff1d(np.arange(fine.N), fine.get_dofs(free_of).all())
    to_fine = case.basis.probes(fine.doflocs)
    constants, fields = (dense(block.sources) for block in case.blocks)
    load = np.hstack([moments(fine, None) @ constants[parents], mass_matrix(fine) @ (to_fine @ fields)])
    u = np.zeros(load.shape)
    u[free] = Factorization(K[free][:, free], definite=True).solve(load[free])
    e = u - to_fine @ np.hstack([block.states for block in case.blocks])
    return e.T @ (K @ e)


def is_below(low, high):
    """Whether ``c' low c <= c' high c`` for all c, but for rounding."""
    return np.linalg.eigvalsh(high - low)[0] >= -1e-10 * np.linalg.eigvalsh(high)[-1]


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("boundary", ["dirichlet", "neumann"])
def test_no_combination_below_its_error(element, boundary):
    """Random meshes, coefficients and sources; the truth on a finer mesh. Products of errors, too."""
    ratios = []
    for seed in range(4):
        case = Case(element, boundary, reaction=[0.0, 8.0][seed % 2], seed=seed, cells=(4, 5))
        found = case.errors()
        E = reference_gram(case, None if boundary == "dirichlet" else "left")
        m = case.blocks[0].count
        grams = E[:m, :m], E[m:, m:]
        for gram, errors in zip(grams, found.blocks, strict=True):
            assert is_below(gram, errors.total)
            assert np.all(np.diag(gram) <= errors.single**2)
            ratios.append(np.sqrt(np.trace(errors.total) / np.trace(gram)))
        known, spread = products(*found.blocks, found.cross[0, 1], found.remainder)
        missed = E[:m, m:] - known
        assert is_below(missed.T @ missed, spread)
        if element.startswith("tri") and seed % 2 == 0:
            assert all(is_below(errors.gradient, errors.flux) for errors in found.blocks)
            assert all(np.trace(errors.gradient) >= 0.5 * np.trace(errors.flux) for errors in found.blocks)
        # What is known is worth something.
        assert np.linalg.norm(missed, 2) < np.linalg.norm(E[:m, m:], 2)
    assert np.median(ratios) <= 1.5


def test_states_that_are_no_solutions_are_corrected():
    case = Case("tri P1")
    off = replace(case.blocks[1], states=0.9 * case.blocks[1].states)
    plain = case.errors()
    case.blocks = [case.blocks[0], off]
    found = case.errors().blocks[1]
    np.testing.assert_allclose(found.states, plain.blocks[1].states, rtol=0.0, atol=1e-10)
    np.testing.assert_allclose(found.total, plain.blocks[1].total, rtol=1e-6)


@pytest.mark.parametrize("element", ["tri P1", "quad Q2"])
def test_the_size_of_chunks_and_batches_does_not_matter(element, monkeypatch):
    whole = Case(element).errors()
    monkeypatch.setattr(blocks, "CHUNK", 1)
    monkeypatch.setattr(blocks, "BATCH", 1)
    monkeypatch.setattr(blocks, "AT_ONCE", 1)
    parts = Case(element).errors()
    monkeypatch.setattr(blocks, "DOUBLE", 0)
    single = Case(element).errors()
    for one, other, rough in zip(whole.blocks, parts.blocks, single.blocks, strict=True):
        np.testing.assert_allclose(other.total, one.total, rtol=1e-10, atol=1e-12 * np.trace(one.total))
        np.testing.assert_allclose(rough.total, one.total, rtol=1e-5, atol=1e-6 * np.trace(one.total))


def test_where_single_bounds_are_better_there_is_no_block():
    assert Case("tri P1", reaction=4000.0).errors() is None
    rough = Case("tri P1")
    rough.form = replace(rough.form, conductivity=fc.Given(lambda x: 1.5 + np.sin(9.0 * x[0]), "conductivity"))
    with pytest.raises(fc.UncertifiedError, match="only estimated"):
        rough.errors()


def test_sums_of_norms_as_one_quadratic_form():
    rng = np.random.default_rng(0)
    for _ in range(200):
        k = int(rng.integers(1, 6))
        grams = [A @ A.T * 10.0 ** rng.uniform(-6, 2) for A in rng.standard_normal((3, k, k))]
        G, c = combined(grams), rng.standard_normal(k)
        assert np.sqrt(c @ G @ c) >= sum(np.sqrt(c @ part @ c) for part in grams) * (1.0 - 1e-12)
        whole = sum(np.sqrt(largest(part)) for part in grams)
        assert np.sqrt(largest(G)) <= whole * (1.0 + 1e-9)
    assert not combined([np.zeros((2, 2))]).any()


def test_plain_fluxes_are_those_without_steps():
    """Lowest order on linear triangles: sparse products give what the general way gives, and what `majorant` says."""
    for boundary in ("dirichlet", "neumann"):
        case = Case("tri P1", boundary)
        zero, rule = case.residual(1, np.zeros(3))
        plain = PlainFluxes(ground_of(case.workspace, zero, rule), case.blocks)
        general = BlockFluxes(case.workspace, zero, rule, tuple(case.blocks), steps=0)
        (found, columns), cross = plain.misfits()
        (expected, _), _ = general.misfits()
        np.testing.assert_allclose(found.flux, expected.flux, rtol=1e-10, atol=1e-12 * np.trace(expected.flux))
        for number, part in enumerate((found, columns)):
            for seed in range(3):
                weights = np.random.default_rng(seed).standard_normal(len(part.flux))
                checked = checked_by_majorant(case, plain, rule, number, weights)
                assert checked.misfit**2 == pytest.approx(weights @ part.flux @ weights, rel=1e-9)
                value = np.sqrt(weights @ part.both @ weights)
                assert checked.value - checked.defect <= value * (1.0 + 1e-9)
                assert value <= 1.3 * (checked.value - checked.defect)
        sizes = [np.sqrt(np.diag(part.flux)) for part in (found, columns)]
        assert np.all(np.abs(cross[0, 1]) <= np.outer(*sizes))
        assert np.max(np.abs(cross[0, 1]) / np.outer(*sizes)) > 0.05
