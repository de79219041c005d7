"""Sensors as functionals: exact on polynomials, means in closed form, and what is refused."""

import numpy as np
import pytest
import zoo
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from skfem import Basis, ElementTriP0, ElementTriP1
from zoo import ELEMENTS, MESHES, jittered, unit_basis, unit_mesh

import femcert as fc


def polynomial(p, seed=0):
    """A random polynomial of total degree p in one or two variables."""
    a = np.random.default_rng(seed).standard_normal(6)

    def value(x):
        y = x[1] if len(x) > 1 else 0.0 * x[0]
        return a[0] + a[1] * x[0] + a[2] * y + (p - 1) * (a[3] * x[0] ** 2 + a[4] * x[0] * y + a[5] * y**2)

    return value


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(sorted(ELEMENTS)), st.integers(0, 2**32 - 1))
def test_point_values_of_polynomials(name, seed):
    kind, element, p = ELEMENTS[name]
    basis = Basis(jittered(unit_mesh(kind, 4), 0.05, seed % 7), element())
    points = np.random.default_rng(seed).random((6, basis.mesh.dim()))
    sensors = fc.PointSensors(basis, points)
    u = polynomial(p, seed)
    assert sensors.count == 6
    assert np.allclose(sensors(u(basis.doflocs)), u(points.T), rtol=0, atol=1e-10)
    assert np.allclose(sensors.matrix.sum(axis=1), 1.0)
    assert sensors.bounded == (basis.mesh.dim() == 1)


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(sorted(ELEMENTS)), st.integers(0, 2**32 - 1), st.floats(0.01, 0.1))
def test_averages_of_polynomials(name, seed, radius):
    """Over a disc inside the mesh the mean of a linear function is its value at the centre; of |x - c|² it is known."""
    kind, element, p = ELEMENTS[name]
    basis = Basis(jittered(unit_mesh(kind, 4), 0.05, seed % 7), element())
    dim = basis.mesh.dim()
    points = 0.15 + 0.7 * np.random.default_rng(seed).random((4, dim))
    sensors = fc.AverageSensors(basis, points, radius=radius)
    linear = polynomial(1, seed)
    assert np.allclose(sensors(linear(basis.doflocs)), linear(points.T), rtol=0, atol=1e-9)
    assert sensors.bounded
    if p == 2:
        # The 24-gon of the disc's area has the second moment of the disc, pi r^4 / 2, up to 0.03 percent.
        mean = {1: radius**2 / 3, 2: radius**2 / 2}[dim]
        for i, point in enumerate(points):
            square = np.sum((basis.doflocs - point[:, None]) ** 2, axis=0)
            assert sensors(square)[i] == pytest.approx(mean, rel=1e-3 if dim == 2 else 1e-8)


@pytest.mark.parametrize("name", ELEMENTS)
def test_region_means(name):
    kind, element, p = ELEMENTS[name]
    mesh = unit_mesh(kind.removeprefix("bent "), 6).with_subdomains(
        {"west": lambda x: x[0] < 0.5, "third": lambda x: x[0] > 2 / 3}
    )
    basis = Basis(mesh, element())
    sensors = fc.RegionSensors(basis, ["west", "third", np.arange(mesh.nelements)])
    assert sensors.bounded
    x = basis.doflocs[0] ** p
    mean = {1: [1 / 4, 5 / 6, 1 / 2], 2: [1 / 12, 19 / 27, 1 / 3]}[p]
    assert sensors(x) == pytest.approx(mean, rel=1e-12)
    assert np.allclose(sensors.matrix.sum(axis=1), 1.0)
    with pytest.raises(fc.InputError, match="region 'north' is not in the mesh"):
        fc.RegionSensors(basis, ["north"])
    with pytest.raises(fc.InputError, match="sensors 0 and 1 have the same row"):
        fc.RegionSensors(basis, ["west", "west"])
    # Unlike parameter regions, sensor regions may overlap.
    assert fc.RegionSensors(basis, ["west", np.arange(mesh.nelements)]).count == 2


def test_matrix_sensors():
    dense = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    for matrix in (dense, csr_matrix(dense), dense.tolist(), dense.astype(int)):
        sensors = fc.MatrixSensors(matrix)
        assert sensors.count == 2
        assert sensors([1.0, 1.0, 1.0]).tolist() == [3.0, 3.0]
        assert sensors(np.eye(3)).tolist() == dense.tolist()
        assert not sensors.bounded
    dense[0, 0] = 99.0
    assert fc.MatrixSensors(dense)([1.0, 0.0, 0.0])[0] == 99.0
    assert sensors([1.0, 0.0, 0.0])[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        sensors.matrix.data[0] = 1.0


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.zeros((0, 3)), "there are no sensors"),
        ([[1.0, np.nan]], r"sensor matrix has 1 NaN or infinite entries, the first at index \(0, 1\)"),
        (csr_matrix([[1.0, np.inf]]), "sensor matrix has NaN or infinite entries"),
        ([[1.0, 1j]], "sensor matrix is complex"),
        (np.ones(3), r"sensor matrix has shape \(3,\)"),
        ([[1.0, 2.0], [0.0, 0.0]], "sensor 1 is zero"),
        ([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]], "sensors 0 and 2 have the same row"),
    ],
)
def test_bad_matrices(matrix, message):
    with pytest.raises(fc.InputError, match=message):
        fc.MatrixSensors(matrix)


@pytest.mark.parametrize("make", [fc.PointSensors, lambda b, x: fc.AverageSensors(b, x, radius=0.05)])
@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([[0.5, 0.5], [1.5, 0.5], [0.5, -2.0]], r"sensor 1 at \[1\.5, 0\.5\] lies outside the mesh \(2 of 3 do\)"),
        ([[0.5, 0.5], [0.2, 0.2], [0.5, 0.5]], r"sensors 0 and 2 are both at \[0\.5, 0\.5\]"),
        ([], "points is empty"),
        ([[0.5, np.nan]], r"points has 1 NaN or infinite entries, the first at index \(0, 1\)"),
        ([[0.5, 0.5, 0.5]], r"points has shape \(1, 3\)"),
    ],
)
def test_bad_points(make, points, message):
    with pytest.raises(fc.InputError, match=message):
        make(unit_basis("tri P1", 4), points)


def test_points_in_a_hole_are_outside():
    basis = Basis(fc.load_mesh(MESHES / "plate_with_holes.msh"), ElementTriP1())
    with pytest.raises(fc.InputError, match=r"sensor 0 at \[0\.45, 0\.55\] lies outside the mesh"):
        fc.PointSensors(basis, [[0.45, 0.55], [0.1, 0.1]])
    # On nodes and edges of the boundary they are inside.
    corner = fc.PointSensors(basis, [[0.0, 0.0], [2.0, 1.0], [1.0, 0.0]])
    assert corner(basis.doflocs[0]) == pytest.approx([0.0, 2.0, 1.0], abs=1e-12)


def test_bad_radius_state_and_basis():
    basis, points = unit_basis("tri P1", 4), [[0.5, 0.5]]
    for deed, word in (
        (lambda: fc.AverageSensors(basis, points, radius=0.0), "radius is"),
        (lambda: fc.AverageSensors(basis, points, radius=np.nan), "radius has 1 NaN"),
        (lambda: fc.PointSensors(basis, points)(np.ones(7)), "expect 25 dofs"),
        (lambda: fc.PointSensors(basis.with_element(ElementTriP0()), points), "discontinuous"),
        (lambda: fc.PointSensors(None, points), "basis is a NoneType"),
    ):
        with pytest.raises(fc.InputError, match=word):
            deed()


# Bases with equally many dofs on different meshes, and of different elements.
FOREIGN = {
    "other triangles": (zoo.square(3), zoo.unit_basis("tri P1", 8)),
    "other degree": (zoo.square(4, 1, "quad"), zoo.square(3, 2, "quad")),
}


@pytest.mark.parametrize("pair", FOREIGN.values(), ids=FOREIGN)
def test_sensors_of_another_mesh_are_refused(pair):
    assert pair[0].N == pair[1].N
    points = [[0.3, 0.4], [0.6, 0.2]]
    for basis, other in (pair, pair[::-1]):
        for sensors in (
            fc.PointSensors(other, points),
            fc.AverageSensors(other, points, radius=0.1),
            fc.RegionSensors(other, [np.arange(4)]),
            fc.BoundarySensors(other, count=3),
        ):
            for make in (fc.EllipticSource, fc.EllipticCoefficient, lambda b, **o: fc.HeatInitial(b, times=0.1, **o)):
                with pytest.raises(fc.InputError, match="sensors were made for another mesh or element than basis"):
                    make(basis, parameters=fc.FullSpace(basis), sensors=sensors)
        # An equal mesh is as good as the same one, and of a bare matrix nothing is known.
        twin = Basis(type(basis.mesh)(basis.mesh.p.copy(), basis.mesh.t.copy()), type(basis.elem)())
        for sensors in (fc.PointSensors(twin, points), fc.MatrixSensors(fc.PointSensors(other, points).matrix)):
            zoo.source(basis, parameters=fc.FullSpace, sensors=sensors)
