"""The continuous guarantee against forward maps in closed form: never optimistic, and the gap closes at its rate."""

from __future__ import annotations

import numpy as np
import pytest
import zoo
from skfem import Basis, MeshLine
from zoo import CLASSES, ELEMENTS, LINES, PLANE, unit_basis

import femcert as fc
from femcert.stability.continuous import continuous_error

SIDE = 4


def averages(wave, edges):
    """Averages of ``sin(wave x)`` over the parts of an interval between edges."""
    return -np.diff(np.cos(wave * edges)) / (wave * np.diff(edges))


def equal(cells):
    return np.linspace(0.0, 1.0, cells + 1)


def exact_matrix(frequencies):
    """Of sines on the square, seen by averages over sixteen squares."""
    columns = []
    for j, l in frequencies.T:
        part = np.outer(averages(j * np.pi, equal(SIDE)), averages(l * np.pi, equal(SIDE))).ravel()
        columns.append(2.0 * part / (np.pi**2 * (j**2 + l**2)))
    return np.column_stack(columns)


def squares(mesh):
    column, row = np.floor(SIDE * mesh.p[:, mesh.t].mean(axis=1)).astype(int)
    return [np.flatnonzero((column == i) & (row == j)) for i in range(SIDE) for j in range(SIDE)]


def on_square(n, element, space=None):
    basis = unit_basis(element, n)
    sensors = fc.RegionSensors(basis, squares(basis.mesh))
    return fc.EllipticSource(basis, parameters=space(basis) if space else fc.SineSpace(basis, 5), sensors=sensors)


def on_line(n, element, reaction=0.0, mass="consistent"):
    """Five modes, sixteen sensors, and sigma_min in closed form."""
    k, cells = 5, 16
    basis = unit_basis(element, n)
    sensors = fc.RegionSensors(basis, between(basis.mesh.p[0, basis.mesh.t].mean(axis=0), equal(cells)))
    problem = zoo.source(basis, parameters=(fc.SineSpace, k), sensors=sensors, reaction=reaction, mass=mass)
    waves = np.pi * np.arange(1, k + 1)
    columns = [np.sqrt(2.0) * averages(w, equal(cells)) / (w**2 + reaction) for w in waves]
    return problem, np.linalg.svd(np.column_stack(columns), compute_uv=False)[-1]


def between(middles, edges):
    """Elements, by their middles, of the parts between edges."""
    part = np.searchsorted(edges, middles) - 1
    return [np.flatnonzero(part == i) for i in range(len(edges) - 1)]


def certified(problem, data=None):
    try:
        return fc.stability(problem, data=data, guarantee="continuous")
    except fc.UncertifiedError as error:
        if "not certified on this mesh, refine" not in str(error):
            raise
        return None


def checked_gaps(made):
    """Relative gaps by n; the certified sigma_min is below the exact one wherever there is one."""
    gaps = {}
    for n, (problem, exact) in made.items():
        found = certified(problem)
        if found is not None:
            assert found.scope == "continuous"
            assert found.sigma_min <= exact
            assert found.constant.side == "upper"
            assert found.constant.value >= 1.0 / exact
            gaps[n] = 1.0 - found.sigma_min / exact
    return gaps


def rate(gaps, *sizes):
    return -np.polyfit(np.log(sizes), np.log([gaps[n] for n in sizes]), 1)[0]


@pytest.mark.parametrize(("element", "order", "cap"), [
    ("tri P1", 2.0, 0.06), ("tri P2", 4.0, 1e-3), ("quad Q1", 2.0, 0.06), ("quad Q2", 4.0, 1e-3),
])  # fmt: skip
def test_sine_modes_on_the_square(element, order, cap):
    made = {n: on_square(n, element) for n in (4, 8, 16, 32, 64)}
    least = {n: np.linalg.svd(exact_matrix(p.parameters.frequencies), compute_uv=False)[-1] for n, p in made.items()}
    gaps = checked_gaps({n: (problem, least[n]) for n, problem in made.items()})
    assert {8, 16, 32, 64} <= gaps.keys()
    assert gaps[64] <= cap / 4.0
    # On regular meshes what neither fluxes nor test functions see is of higher order.
    assert -0.2 <= rate(gaps, 16, 32, 64) - order <= 1.4


@pytest.mark.parametrize(("element", "order", "cap"), [("line P1", 2.0, 0.06), ("line P2", 4.0, 1e-3)])
@pytest.mark.parametrize("reaction", [0.0, 40.0])
def test_sine_modes_on_the_interval(element, order, cap, reaction):
    gaps = checked_gaps({n: on_line(n, element, reaction) for n in (16, 32, 64, 128)})
    assert {32, 64, 128} <= gaps.keys()
    assert gaps[64] <= cap
    if element == "line P2" and reaction == 0.0:
        # The adjoint states are quadratic between the edges of the regions: P2 has them.
        assert max(gaps.values()) <= 1e-8
    else:
        assert abs(rate(gaps, 32, 64, 128) - order) <= 0.2


def test_states_that_are_no_galerkin_solutions():
    # A lumped load makes other states; the adjoint ones are exact on P2 and tell what is missing.
    for n in (16, 32):
        problem, exact = on_line(n, "line P2", mass="lumped")
        assert abs(fc.stability(problem).sigma_min / exact - 1.0) > 1e-6
        found = fc.stability(problem, guarantee="continuous")
        assert (1.0 - 1e-8) * exact <= found.sigma_min <= exact


@pytest.mark.parametrize(("element", "reaction"), [("line P1", 0.0), ("line P1", 40.0), ("line P2", 40.0)])
def test_every_entry_of_the_forward_matrix(element, reaction):
    """``|F_ij - (F_h)_ij| <= eta*_i eta_j``, and some of them by no more than a factor of ten."""
    edges, waves = equal(16), np.pi * np.arange(1, 6)
    F = np.column_stack([np.sqrt(2.0) * averages(w, edges) / (w**2 + reaction) for w in waves])
    for n in (16, 32, 64):
        gap = continuous_error(on_line(n, element, reaction)[0], None)
        ratio = np.abs(gap.forward - F) / np.outer(gap.rows, gap.columns)
        assert 0.1 <= ratio.max() <= 1.0


def subdivided(edges, counts):
    inner = [np.linspace(*ends, n, endpoint=False) for *ends, n in zip(edges[:-1], edges[1:], counts, strict=True)]
    return np.append(np.concatenate(inner), edges[-1])


def random_case(seed):
    """A random line or rectangle with a random grid, regions, coefficients and noise; sigma_min in closed form."""
    rng = np.random.default_rng(seed)
    flat = seed % 3 == 0
    lengths = rng.uniform(0.5, 2.0, 1 if flat else 2)
    count = 5 if flat else 3
    moved = [np.r_[0.0, rng.uniform(-0.3, 0.3, count - 1), 0.0] for _ in lengths]
    parts = [L * (np.arange(count + 1) + move) / count for L, move in zip(lengths, moved, strict=True)]
    grids = [subdivided(edges, rng.integers(2, 7, count)) for edges in parts]
    element = LINES[seed % 2] if flat else PLANE[int(rng.integers(4))]
    kind, made, _ = ELEMENTS[element]
    mesh = MeshLine(*grids) if flat else CLASSES[kind].init_tensor(*grids)
    basis = Basis(mesh, made())
    cells = [between(axis, edges) for axis, edges in zip(mesh.p[:, mesh.t].mean(axis=1), parts, strict=True)]
    regions = cells[0] if flat else [np.intersect1d(i, j) for i in cells[0] for j in cells[1]]
    a, c = rng.uniform(0.2, 3.0), float(rng.choice([0.0, 10.0, 60.0]))
    given = {"parameters": (fc.SineSpace, int(rng.integers(1, 4))), "sensors": fc.RegionSensors(basis, regions)}
    problem = zoo.source(basis, **given, conductivity=a, reaction=c)
    m = len(regions)
    root = rng.standard_normal((m, m))
    covariance = root @ root.T + np.eye(m)
    columns = []
    for waves in (np.pi * problem.parameters.frequencies / lengths[:, None]).T:
        part = [np.sqrt(2.0 / L) * averages(w, edges) for w, L, edges in zip(waves, lengths, parts, strict=True)]
        columns.append((part[0] if flat else np.outer(*part).ravel()) / (a * np.sum(waves**2) + c))
    whitened = np.linalg.solve(np.linalg.cholesky(covariance), np.column_stack(columns))
    exact = np.linalg.svd(whitened, compute_uv=False)[-1]
    return problem, fc.Data(np.zeros(m), 0.1, covariance), exact


def test_no_false_claims():
    ratios, optimistic = [], 0
    for seed in range(36):
        problem, data, exact = random_case(seed)
        optimistic += fc.stability(problem, data=data).sigma_min > exact
        found = certified(problem, data)
        if found is not None:
            assert found.sigma_min <= exact * (1.0 + 1e-12)
            ratios.append(found.sigma_min / exact)
    # The meshes alone claim too much often enough, and the guarantee says something.
    assert optimistic >= 5
    assert len(ratios) >= 25
    assert np.median(ratios) >= 0.85


def test_a_coarse_mesh_says_how_fine_it_should_be():
    coarse = on_square(4, "tri P1")
    with pytest.raises(fc.UncertifiedError, match=r"refine.* elements of size 0\.17") as refusal:
        fc.stability(coarse, guarantee="continuous")
    assert "sigma_min" in str(refusal.value)
    assert certified(on_square(16, "tri P1")) is not None


def exact_quadrants(terms=400):
    """Constants on the four quadrants, seen by averages over sixteen squares: a double sine series."""
    j = np.arange(1, terms + 1)
    halves = np.array([averages(k * np.pi, equal(2)) / np.sqrt(2.0) for k in j])
    parts = np.array([averages(k * np.pi, equal(SIDE)) for k in j])
    weight = 4.0 / (np.pi**2 * (j[:, None] ** 2 + j[None, :] ** 2))
    # Orthonormal columns: indicator of a quadrant times 2.
    F = np.einsum("jl,ja,lb,jp,lq->abpq", weight, parts, parts, halves, halves, optimize=True)
    return np.linalg.svd(F.reshape(SIDE**2, 4), compute_uv=False)[-1]


def test_piecewise_constants_are_exact_on_the_mesh():
    def quadrants(basis):
        column, row = np.floor(2 * basis.mesh.p[:, basis.mesh.t].mean(axis=1)).astype(int)
        return fc.RegionSpace(basis, [np.flatnonzero((column == i) & (row == j)) for i in (0, 1) for j in (0, 1)])

    exact = exact_quadrants()
    found = [certified(on_square(n, "tri P2", quadrants)) for n in (8, 16, 32)]
    values = np.array([f.sigma_min for f in found])
    assert np.all(values <= exact * (1.0 + 1e-6))
    assert np.all(np.diff(values) > 0.0)
    assert values[-1] >= 0.999 * exact


def test_discs_and_covariances():
    points = np.random.default_rng(0).uniform(0.2, 0.8, (10, 2))
    problem, reference = (
        zoo.source("tri P1", n, parameters=2, sensors=zoo.discs(points, 0.1)) for n in (32, 128)
    )
    for covariance in (None, np.diag(np.linspace(0.5, 2.0, 10))):
        data = fc.Data(np.zeros(10), 0.1, covariance)
        found = fc.stability(problem, data=data, guarantee="continuous")
        near = fc.stability(reference, data=data)
        assert found.sigma_min <= near.sigma_min * (1.0 + 1e-3)
        assert found.sigma_min >= 0.7 * near.sigma_min


def test_refused():
    points = {"parameters": 1, "sensors": [[0.3, 0.4], [0.5, 0.6]]}
    heat = zoo.heat(zoo.square(3), **points, times=0.1)
    wild = {"conductivity": lambda x: 1.5 + np.sin(9.0 * x[0])}
    rough = zoo.source(zoo.square(3), parameters=1, sensors=zoo.discs([[0.3, 0.4]], 0.2), **wild)
    for problem, word in (
        (zoo.source(zoo.square(3), **points), "Average- or RegionSensors"), (heat, "EllipticSource"), (rough, "only")
    ):  # fmt: skip
        with pytest.raises(fc.UncertifiedError, match=word):
            fc.stability(problem, guarantee="continuous")
    with pytest.raises(fc.InputError, match="guarantee"):
        fc.stability(heat, guarantee="sure")


def test_modes_that_no_quadrature_resolves_are_refused():
    # P2 has the adjoint states, so nothing but the integrals of the mode is in the way.
    basis = zoo.unit_basis("line P2", 2)
    sensors = fc.RegionSensors(basis, [np.array([0]), np.array([1])])
    for width, refused in ((0.37, False), (0.0031, True)):
        space = fc.SineSpace(basis, 1, box=[[0.0, width]])
        problem = fc.EllipticSource(basis, parameters=space, sensors=sensors)
        if refused:
            with pytest.raises(fc.UncertifiedError, match="no quadrature resolves"):
                fc.stability(problem, guarantee="continuous")
        else:
            assert fc.stability(problem, guarantee="continuous").scope == "continuous"
