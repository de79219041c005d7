"""Integrals along given segments against closed forms, whole lines and each other; piecewise constant images."""

import meshio
import numpy as np
import pytest
from ray_truth import box_span, line_integral
from skfem import Basis, ElementQuad0, ElementTriP0, ElementTriP1, ElementTriP2, MeshTri
from zoo import ELEMENTS, PLANE, hits, jittered, unit_basis, unit_mesh

import femcert as fc

# Of sums of a few tens of chords, each with a few roundings.
ROUNDING = 1e-13


def segments(count=40, seed=0, reach=0.3):
    """Starts and ends in and around the unit square."""
    rng = np.random.default_rng(seed)
    return tuple(-reach + (1.0 + 2.0 * reach) * rng.random((2, count, 2)))


def inside_square(starts, ends):
    """Where a segment enters and leaves the unit square, as parts of its length; equal where it misses."""
    enter, leave = box_span(starts.T, (ends - starts).T)
    enter = np.maximum(enter, 0.0)
    return enter, np.maximum(enter, np.minimum(leave, 1.0))


def integral(value, starts, ends, points=5):
    """Of a function on the part in the square."""
    length = np.linalg.norm(ends - starts, axis=1)
    return length * line_integral(value, starts.T, (ends - starts).T, *inside_square(starts, ends), points)


def problem_of(basis, rays, **options):
    return fc.Tomography(basis, parameters=fc.FullSpace(basis), rays=rays, **options)


@pytest.mark.parametrize("name", PLANE)
def test_polynomials_along_segments(name):
    kind, element, degree = ELEMENTS[name]
    basis = Basis(jittered(unit_mesh(kind, 5), 0.02) if kind == "tri" else unit_mesh(kind, 5), element())
    value = (lambda x: 1.0 + 2 * x[0] - x[1]) if degree == 1 else (lambda x: 1.0 + x[0] ** 2 - 3 * x[0] * x[1])
    rays = segments()
    found = problem_of(basis, rays).observe(value(basis.doflocs))
    np.testing.assert_allclose(found, integral(value, *rays), rtol=0, atol=ROUNDING)


@pytest.mark.parametrize(("kind", "element"), [("tri", ElementTriP0), ("quad", ElementQuad0)])
def test_piecewise_constant_images(kind, element):
    """A half of the square that is 2 where the rest is 5: lengths of the parts of each segment."""
    basis = Basis(unit_mesh(kind, 4), element())
    middles = basis.mesh.p[:, basis.mesh.t].mean(axis=1)
    left = middles[0] < 0.5
    starts, ends = segments()
    found = problem_of(basis, (starts, ends)).observe(np.where(left, 2.0, 5.0))
    enter, leave = inside_square(starts, ends)
    crossing = np.clip((0.5 - starts[:, 0]) / (ends - starts)[:, 0], enter, leave)
    length = np.linalg.norm(ends - starts, axis=1)
    eastwards = ends[:, 0] > starts[:, 0]
    west = np.where(eastwards, crossing - enter, leave - crossing)
    expected = length * (5.0 * (leave - enter) - 3.0 * west)
    np.testing.assert_allclose(found, expected, rtol=0, atol=10 * ROUNDING)
    # The values on regions are the coordinates of such a class.
    regions = fc.RegionSpace(basis, [np.flatnonzero(left), np.flatnonzero(~left)])
    posed = fc.Tomography(basis, parameters=regions, rays=(starts, ends))
    np.testing.assert_allclose(posed.forward_matrix() @ [2.0, 5.0], expected, rtol=0, atol=10 * ROUNDING)


@pytest.mark.parametrize("name", PLANE)
def test_whole_lines_are_parallel_beams(name):
    basis = unit_basis(name, 4)
    parallel = fc.RaySensors(basis, angles=[0.0, 33.0, 90.0, 121.0], bins=7)
    # From before the mesh to behind it, in both directions.
    starts, ends = (parallel.origins + t * parallel.directions for t in (-2.0, 2.0))
    for rays in ((starts.T, ends.T), (ends.T, starts.T)):
        # A line along an edge belongs to the cell on its left: the sums are the same, what they are sums of is not.
        apart = np.abs((fc.RaySensors(basis, rays=rays).matrix - parallel.matrix) @ basis.doflocs.T)
        assert apart.max() <= 10 * ROUNDING


def test_parts_of_a_segment_add_up():
    rng = np.random.default_rng(4)
    basis = Basis(jittered(unit_mesh("tri", 6), 0.03), ElementTriP2())
    starts, ends = segments(seed=5)
    # Also cut at vertices, on edges and at midpoints of edges.
    mesh = basis.mesh
    starts[:10], ends[:10] = mesh.p[:, rng.integers(0, mesh.nvertices, (2, 10))].transpose(1, 2, 0)
    ends[:10] += np.where(np.all(ends[:10] == starts[:10], axis=1), 0.1, 0.0)[:, None]
    facets = rng.integers(0, mesh.nfacets, 10)
    starts[10:20] = mesh.p[:, mesh.facets[:, facets]].mean(axis=1).T
    between = starts + rng.random((len(starts), 1)) * (ends - starts)
    whole, first, last = (fc.RaySensors(basis, rays=r) for r in ((starts, ends), (starts, between), (between, ends)))
    fields = rng.standard_normal((basis.N, 3))
    apart = np.abs((first.matrix + last.matrix - whole.matrix) @ fields)
    # The middle point is a rounding beside the line, and a field changes by at most 40 per unit length.
    assert apart.max() <= 1e3 * np.finfo(float).eps * 40.0


@pytest.mark.parametrize("kind", ["tri", "quad"])
def test_segments_along_edges_count_once(kind):
    basis = unit_basis("tri P1" if kind == "tri" else "quad Q1", 4)
    levels = np.linspace(0.0, 1.0, 5)
    for a, b in ((0.1, 0.85), (0.85, 0.1), (0.25, 0.75), (-1.0, 0.6)):
        low, high = max(min(a, b), 0.0), max(a, b)
        along, across = (np.column_stack([np.full(5, t), levels]) for t in (a, b))
        for rays in ((along, across), (along[:, ::-1], across[:, ::-1])):
            found = fc.RaySensors(basis, rays=rays)(np.ones(basis.N))
            np.testing.assert_allclose(found, high - low, rtol=0, atol=ROUNDING)


def test_the_adjoint_is_one():
    basis = unit_basis("tri P2", 5)
    problem = problem_of(basis, segments(12))
    rng = np.random.default_rng(1)
    q, w = rng.standard_normal((basis.N, 2)), rng.standard_normal((problem.observation_count, 2))
    forth, back = np.sum(problem.apply(q) * w), np.sum(q * problem.adjoint(w))
    assert forth == pytest.approx(back, rel=1e-12)
    assert np.array_equal(problem.apply(q)[:, 0], problem.predict(None, q[:, 0]))


def test_a_fan_through_a_disc():
    """Chords ``2 (1 - s²)^1/2`` of the disc from a source outside of it; a detector inside sees a part of them."""
    basis = Basis(MeshTri.init_circle(4), ElementTriP1())
    source, angles = np.array([-3.0, 0.0]), np.linspace(-0.3, 0.3, 13)
    along = np.column_stack([np.cos(angles), np.sin(angles)])
    offsets = 3.0 * np.sin(angles)
    chord = 2.0 * np.sqrt(1.0 - offsets**2)
    starts = np.tile(source, (13, 1))
    behind = fc.RaySensors(basis, rays=(starts, starts + 6.0 * along))(np.ones(basis.N))
    assert np.all(behind <= chord + 1e-12)
    np.testing.assert_allclose(behind, chord, atol=5e-3)
    # To the foot of the perpendicular from the centre: a half.
    half = fc.RaySensors(basis, rays=(starts, starts + 3.0 * np.cos(angles)[:, None] * along))(np.ones(basis.N))
    np.testing.assert_allclose(half, chord / 2.0, atol=5e-3)


def test_repeated_rays_and_evidence():
    """Rays that were measured twice, a ball of the full space, and an interval over noises."""
    basis = unit_basis("tri P1", 5)
    starts, ends = segments(12, seed=2, reach=0.0)
    rays = np.vstack([starts, starts[:4]]), np.vstack([ends, ends[:4]])
    truth = 1.0 + 0.5 * basis.doflocs[0]
    space = fc.FullSpace(basis).within_ball(0.6, norm="h1-seminorm")
    problem = fc.Tomography(basis, parameters=space, rays=rays)
    exact = problem.observe(truth)
    np.testing.assert_array_equal(exact[:4], exact[12:])
    west = fc.Mean(basis, lambda x: x[0] < 0.5)
    evidence = fc.evidence(problem, fc.Data.gaussian(exact, std=0.02))
    # The 1 % quantile of a binomial of 200 trials at 95 %.
    assert hits(evidence, exact, 0.02, west, west.value(space, truth), seed=7) >= 182


def test_classes_of_functions_along_segments():
    """A continuous claim: the sine itself is integrated along the segments, not its interpolant."""
    basis = unit_basis("tri P1", 16)
    starts, ends = segments(10, seed=3, reach=0.1)
    problem = fc.Tomography(basis, parameters=fc.SineSpace(basis, 2), rays=(starts, ends))
    data = fc.Data(problem.observe(problem.parameters.field([1.0, 0.5])), 0.05)
    candidate = fc.Candidate.from_coefficients(problem, [1.0, 0.5])
    certificate = fc.certify(problem, data, candidate, fc.ExactRadius(guarantee="continuous"))
    assert certificate.scope == "continuous"
    matrix = problem.closed_map(np.eye(10)).matrix
    expected = integral(lambda x: np.sin(np.pi * x[0]) * np.sin(np.pi * x[1]), starts, ends, 60)
    # The first column is the sine times a number near 2.
    factor = float(matrix[:, 0] @ expected / (expected @ expected))
    assert factor == pytest.approx(2.0, rel=0.02)
    np.testing.assert_allclose(matrix[:, 0], factor * expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "angles or bins are missing"),
        ({"angles": [1.0]}, "angles or bins are missing"),
        ({"rays": [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]}, "expected a pair"),
        ({"rays": ([0.0, 0.0], [1.0, 1.0])}, r"starts has shape \(2,\); expected \(m, 2\)"),
        ({"rays": ([[0.0, 0.0]], [[1.0, 1.0], [0.0, 1.0]])}, "1 starts and 2 ends"),
        ({"rays": ([[0.0, np.nan]], [[1.0, 1.0]])}, "starts has 1 NaN"),
        ({"rays": ([[0.0, 0.0]], [[0.0, 0.0]])}, "1 segments end where they start, the first is 0"),
        ({"rays": ([[5.0, 5.0]], [[6.0, 5.0]])}, "none of 1 rays meets the mesh"),
        ({"rays": ([[0.0, 0.0]], [[1.0, 1.0]]), "bins": 3}, "rays came together with"),
        ({"rays": ([[0.0, 0.0]], [[1.0, 1.0]]), "rule": "sampled"}, "rays came together with"),
    ],
)
def test_rays_that_are_refused(options, message):
    basis = unit_basis("tri P1", 4)
    with pytest.raises(fc.InputError, match=message):
        fc.RaySensors(basis, **options)


def test_a_piecewise_constant_image_on_the_page_and_in_a_file(tmp_path):
    basis = Basis(unit_mesh("tri", 4), ElementTriP0())
    space = fc.FullSpace(basis).within_ball(5.0, norm="l2")
    problem = fc.Tomography(basis, parameters=space, rays=segments(20))
    truth = np.where(np.arange(basis.N) % 3 == 0, 1.0, 2.0)
    data = problem.simulate(truth, noise=0.01)
    found = fc.no_harm(
        problem, data, baseline=fc.Tikhonov(weight=1e-3), learned=fc.Candidate(None, truth), rule=fc.ResidualRadius()
    )
    assert "Tomography" in fc.write_report(found, tmp_path / "page.html").read_text()
    written = meshio.read(fc.write_fields(found, tmp_path / "fields.vtu"))
    np.testing.assert_allclose(written.cell_data["learned_parameter"][0], truth)
