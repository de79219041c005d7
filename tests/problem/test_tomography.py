"""Ray sums through the public classes against closed forms; angles, bins, and what is refused."""

import numpy as np
import pytest
import zoo
from hypothesis import given, settings
from hypothesis import strategies as st
from ray_truth import box_span, line_integral
from skfem import Basis
from zoo import ELEMENTS, MESHES, jittered, unit_basis, unit_mesh

import femcert as fc

PLANE = [name for name in ELEMENTS if not name.startswith("line")]


def rays_of(sensors, centre):
    """Origins and directions as the docstring of `RaySensors` says, angle by angle."""
    theta = np.deg2rad(np.repeat(sensors.angles, sensors.bins))
    offsets = np.tile(sensors.spacing * (np.arange(sensors.bins) - 0.5 * (sensors.bins - 1)), len(sensors.angles))
    origins = np.array(centre)[:, None] + offsets * np.array([np.cos(theta), np.sin(theta)])
    return origins, np.array([-np.sin(theta), np.cos(theta)])


def value_of_degree(p):
    return (lambda x: 1.0 + 2 * x[0] - x[1]) if p == 1 else (lambda x: 1.0 + x[0] ** 2 - 3 * x[0] * x[1] + x[1])


@settings(deadline=None, max_examples=30)
@given(
    st.sampled_from(PLANE),
    st.lists(st.floats(0.5, 89.0), min_size=1, max_size=4, unique_by=lambda a: round(a, 3)),
    st.integers(1, 9),
)
def test_polynomials_on_the_square(name, angles, bins):
    kind, element, p = ELEMENTS[name]
    basis = Basis(jittered(unit_mesh(kind, 4), 0.03), element())
    problem = fc.Tomography(basis, parameters=fc.FullSpace(basis), angles=[*angles, 90.0 + angles[0]], bins=bins)
    origins, directions = rays_of(problem.sensors, [0.5, 0.5])
    value = value_of_degree(p)
    expected = line_integral(value, origins, directions, *box_span(origins, directions))
    assert problem.observation_count == len(expected)
    # General quadrilaterals are integrated with 16 points per chord, not exactly.
    found = problem.observe(problem.solve(value(basis.doflocs)))
    assert np.allclose(found, expected, rtol=0, atol=1e-11)


def test_axis_parallel_rays():
    """Angle 0: vertical rays, from left to right; angle 90: horizontal, from below to above; also along mesh edges."""
    for name in PLANE:
        basis = unit_basis(name, 4)
        sensors = fc.RaySensors(basis, angles=[0.0, 90.0], bins=3, spacing=0.25)
        x, y = basis.doflocs
        assert sensors(x) == pytest.approx([0.25, 0.5, 0.75, 0.5, 0.5, 0.5], abs=1e-9)
        assert sensors(y) == pytest.approx([0.5, 0.5, 0.5, 0.25, 0.5, 0.75], abs=1e-9)


@pytest.mark.parametrize(("name", "element"), [("l_shape", "tri P1"), ("l_shape", "tri P2"),
                                               ("l_shape_quads", "quad Q1"), ("l_shape_quads", "quad Q2")])  # fmt: skip
def test_l_shape_is_a_square_without_a_quarter(name, element):
    mesh = fc.load_mesh(MESHES / f"{name}.msh")
    basis = Basis(mesh, ELEMENTS[element][1]())
    centres = mesh.p[:, mesh.t].mean(axis=1)
    quarters = [(sx, sy) for sx in (-1, 1) for sy in (-1, 1)]
    (missing,) = [q for q in quarters if not np.any((centres[0] * q[0] > 0) & (centres[1] * q[1] > 0))]
    sensors = fc.RaySensors(basis, angles=[11.0, 47.0, 133.0, 160.0], bins=9)
    origins, directions = rays_of(sensors, [0.0, 0.0])
    value = value_of_degree(ELEMENTS[element][2])
    low, high = np.minimum(missing, 0), np.maximum(missing, 0)
    whole, quarter = (
        line_integral(value, origins, directions, *box_span(origins, directions, *box))
        for box in (([-1, -1], [1, 1]), (low, high))
    )
    assert np.allclose(sensors(value(basis.doflocs)), whole - quarter, rtol=0, atol=1e-9)
    assert np.abs(quarter).max() > 0.1


def test_sampled_rule():
    """Sums of samples, `spacing` apart: by hand at the points; it tends to the exact rule, but is not it."""
    basis = unit_basis("quad Q1", 4)
    sampled = fc.RaySensors(basis, angles=[30.0, 75.0], bins=6, rule="sampled")
    origins, directions = rays_of(sampled, [0.5, 0.5])
    steps = sampled.spacing * (np.arange(6) - 2.5)
    points = origins[:, :, None] + directions[:, :, None] * steps
    inside = np.all((points >= 0.0) & (points <= 1.0), axis=0)
    u = 1.0 + basis.doflocs[0] * basis.doflocs[1]
    expected = sampled.spacing * np.sum(np.where(inside, 1.0 + points[0] * points[1], 0.0), axis=1)
    assert sampled(u) == pytest.approx(expected, rel=1e-12)
    exact = fc.RaySensors(basis, angles=[30.0, 75.0], bins=6)
    assert np.abs(exact(u) - sampled(u)).max() > 1e-3
    # The paper's rule has as many samples as bins; with many of them the odd ray through the centre is integrated.
    centre = [fc.RaySensors(basis, angles=[30.0], bins=401, rule=rule)(u)[200] for rule in ("exact", "sampled")]
    assert centre[0] == pytest.approx(centre[1], rel=5e-3)


def test_there_is_no_state_but_the_image():
    problem = zoo.tomography(parameters=(fc.SineSpace, 3), angles=[10.0, 80.0])
    assert problem.states == ()
    q = np.random.default_rng(0).standard_normal(problem.basis.N)
    assert np.array_equal(problem.solve(q), q)
    assert np.array_equal(problem.predict(0.0 * q, q), problem.sensors.matrix @ q)
    assert fc.Candidate.from_coefficients(problem, [1.0, 2.0, 3.0]).state is None
    assert np.array_equal(problem.forward_matrix(), problem.sensors.matrix @ problem.parameters.matrix)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"angles": [10.0, 190.0]}, "two angles see the same rays"),
        ({"bins": 0}, "bins is 0"),
        ({"spacing": 0.0}, r"spacing is 0\.0"),
        ({"spacing": 40.0, "bins": 2}, "no ray at angle 0 meets the mesh"),
        ({"rule": "trapezoidal"}, "rule is 'trapezoidal'"),
    ],
)
def test_bad_input(options, message):
    basis = unit_basis("tri P1", 4)
    options = {"parameters": fc.FullSpace(basis), "angles": [0.0, 60.0], "bins": 3, **options}
    with pytest.raises(fc.InputError, match=message):
        fc.Tomography(basis, **options)


def test_bad_bases():
    plane, line, other = unit_basis("tri P1", 4), unit_basis("line P1", 4), unit_basis("tri P1", 5)
    for basis, space, word in (
        (line, fc.FullSpace(line), "rays need a 2D mesh"),
        (plane, fc.RegionSpace(plane, [np.arange(3)]), "the image on ElementTriP1"),
        (plane, fc.FullSpace(other), "another mesh"),
    ):
        with pytest.raises(fc.InputError, match=word):
            fc.Tomography(basis, parameters=space, angles=[0.0], bins=3)
