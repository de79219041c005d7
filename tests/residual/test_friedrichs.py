"""Friedrichs and Poincaré constants: never below the closed form, of order h² above it, on meshes of every kind."""

import numpy as np
import pytest
from scipy.linalg import eigh, null_space
from scipy.optimize import brentq
from scipy.spatial import Delaunay
from skfem import Basis, BilinearForm, ElementTriP2, FacetBasis, LinearForm, MeshLine, MeshQuad, MeshTri, asm
from skfem.helpers import dot, grad

import femcert as fc
from femcert.linalg import inertia
from femcert.mesh.geometry import diameters
from femcert.residual.friedrichs import (
    TRIANGLE_CONSTANT,
    box_friedrichs_constant,
    facet_pencil,
)

PI = np.pi
L_SHAPE = 9.6397238440219  # first Dirichlet eigenvalue of three unit squares (Betcke, Trefethen)
L_SHAPE_NEUMANN = 1.47562182408  # its second Neumann eigenvalue (Dauge)


def delaunay(count, seed):
    """The unit square with random vertices, also on its sides; slivers as they come."""
    rng = np.random.default_rng(seed)
    side = np.r_[0.0, rng.uniform(0.05, 0.95, max(1, count // 8)), 1.0]
    zero, one = 0.0 * side, 0.0 * side + 1.0
    around = np.c_[np.r_[side, side, zero, one], np.r_[zero, one, side, side]]
    points = np.unique(np.r_[around, rng.uniform(0.02, 0.98, (count, 2))], axis=0)
    t = Delaunay(points).simplices
    x = points[t]
    area = np.abs(np.linalg.det(x[:, 1:] - x[:, :1]))
    return MeshTri(points.T.copy(), t[area > 1e-14].T.copy())


def grid(n, kind=MeshTri):
    nodes = np.linspace(0.0, 1.0, n + 1)
    return kind.init_tensor(nodes, nodes)


def graded(n):
    return MeshTri.init_tensor(np.linspace(0.0, 1.0, n + 1) ** 3, 1.0 - np.linspace(1.0, 0.0, n + 1) ** 2)


def distorted_quads(n, seed):
    mesh = grid(n, MeshQuad)
    p = mesh.p.copy()
    inner = mesh.interior_nodes()
    p[:, inner] += np.random.default_rng(seed).uniform(-0.25, 0.25, (2, len(inner))) / n
    return MeshQuad(p, mesh.t)


SQUARES = {
    "two triangles": MeshTri(),
    "one quad": MeshQuad(),
    "symmetric": MeshTri.init_sqsymmetric(),
    **{f"triangles {n}": grid(n) for n in (3, 8, 24)},
    **{f"quads {n}": grid(n, MeshQuad) for n in (2, 5, 16)},
    **{f"distorted quads {n}": distorted_quads(n, n) for n in (3, 12)},
    **{f"graded {n}": graded(n) for n in (4, 12)},
    **{f"stretched {n}": MeshTri.init_tensor(np.linspace(0, 1, n + 1), np.linspace(0, 1, 8 * n + 1)) for n in (1, 4)},
    **{f"delaunay {count}": delaunay(count, seed) for count, seed in ((1, 0), (9, 1), (40, 2), (300, 3))},
}


def facets(mesh, *sides):
    """Boundary facets on sides of the unit square or interval: l, r, b, t."""
    where = {"l": (0, 0.0), "r": (0, 1.0), "b": (1, 0.0), "t": (1, 1.0)}
    chosen = [mesh.facets_satisfying(lambda x, s=s: np.abs(x[where[s][0]] - where[s][1]) < 1e-12) for s in sides]
    return np.unique(np.concatenate(chosen)) if chosen else np.zeros(0, dtype=np.int64)


def first_root(function, step=1e-3):
    """Smallest positive root."""
    x = np.arange(step, 60.0, step)
    y = function(x)
    i = int(np.argmax(np.sign(y) != np.sign(y[0])))
    assert i > 0
    return brentq(function, x[i - 1], x[i], xtol=1e-14)


def check(bound, eigenvalue, mesh, *, least_conductivity=1.0, cap=0.06, order=2.0):
    """At least the truth, and above it by no more than ``cap lam h² / a`` of it (h^4/3 at a re-entrant corner)."""
    truth = eigenvalue**-0.5
    assert bound.side == "upper"
    assert bound.value >= truth
    h = float(diameters(mesh).max())
    assert bound.value <= truth * (1.0 + 1e-4 + cap * eigenvalue * h**order / least_conductivity)


@pytest.mark.parametrize("mesh", SQUARES.values(), ids=SQUARES.keys())
def test_square(mesh):
    """Dirichlet and insulated sides in every combination that separates, and the second eigenvalue of the insulated."""
    check(fc.friedrichs_constant(mesh, dirichlet=mesh.boundary_facets()), 2.0 * PI**2, mesh)
    check(fc.friedrichs_constant(mesh, dirichlet=facets(mesh, "l")), PI**2 / 4.0, mesh)
    check(fc.friedrichs_constant(mesh, dirichlet=facets(mesh, "l", "r")), PI**2, mesh)
    check(fc.friedrichs_constant(mesh, dirichlet=facets(mesh, "l", "b")), PI**2 / 2.0, mesh)
    check(fc.friedrichs_constant(mesh, dirichlet=facets(mesh, "b", "t", "r")), 1.25 * PI**2, mesh)
    check(fc.poincare_constant(mesh), PI**2, mesh)


@pytest.mark.parametrize("alpha", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("name", ["two triangles", "triangles 8", "quads 16", "distorted quads 3", "delaunay 40"])
def test_square_with_robin_sides(name, alpha):
    """k tan(k/2) = alpha with Robin on both ends; k cot k = -alpha with Dirichlet on one; 2 k² on all four sides."""
    mesh = SQUARES[name]
    sides = mesh.boundary_facets()
    both = first_root(lambda k: k * np.sin(k / 2.0) - alpha * np.cos(k / 2.0)) ** 2
    one = first_root(lambda k: k * np.cos(k) + alpha * np.sin(k)) ** 2
    check(fc.friedrichs_constant(mesh, dirichlet=[], robin=(sides, alpha)), 2.0 * both, mesh)
    left = facets(mesh, "l")
    robin = (facets(mesh, "r"), np.full(len(facets(mesh, "r")), alpha))
    check(fc.friedrichs_constant(mesh, dirichlet=left, robin=robin), one, mesh)
    check(fc.friedrichs_constant(mesh, dirichlet=left, robin=robin, reaction=2.5), one + 2.5, mesh)


def jump_eigenvalues(first, second):
    """Of ``-(a u')' = lam u``, a = first on (0, 1/2) and second on (1/2, 1): Dirichlet, and the second Neumann one."""
    p, q = np.sqrt(first), np.sqrt(second)

    def dirichlet(k):
        return p * np.cos(k / 2 / p) * np.sin(k / 2 / q) + q * np.cos(k / 2 / q) * np.sin(k / 2 / p)

    def neumann(k):
        return p * np.sin(k / 2 / p) * np.cos(k / 2 / q) + q * np.sin(k / 2 / q) * np.cos(k / 2 / p)

    return first_root(dirichlet) ** 2, first_root(neumann) ** 2


@pytest.mark.parametrize("values", [(1.0, 10.0), (0.05, 1.0), (100.0, 0.3)])
@pytest.mark.parametrize("mesh", [MeshLine().refined(1), MeshLine().refined(6), grid(2), grid(12), grid(8, MeshQuad)])
def test_jumping_conductivity(values, mesh):
    """On the square the eigenfunctions depend on x only, as long as the insulated direction is not slower."""
    a = np.where(mesh.p[0, mesh.t].mean(axis=0) < 0.5, *values)
    dirichlet, neumann = jump_eigenvalues(*values)
    found = fc.friedrichs_constant(mesh, dirichlet=facets(mesh, "l", "r"), conductivity=a)
    check(found, dirichlet, mesh, least_conductivity=min(values))
    found = fc.poincare_constant(mesh, conductivity=a)
    if mesh.dim() == 1:
        check(found, neumann, mesh, least_conductivity=min(values))
    assert found.value >= neumann**-0.5  # functions of x alone are among all functions


@pytest.mark.parametrize("mesh", [MeshLine([0.0, 1.0]), MeshLine([0.0, 0.1, 1.0]), MeshLine().refined(3), MeshLine(
    np.sort(np.r_[0.0, np.random.default_rng(0).uniform(0, 1, 200), 1.0]))])  # fmt: skip
def test_interval(mesh):
    ends = mesh.boundary_facets()
    check(fc.friedrichs_constant(mesh, dirichlet=ends), PI**2, mesh)
    check(fc.friedrichs_constant(mesh, dirichlet=facets(mesh, "r"), conductivity=3.0), 0.75 * PI**2, mesh)
    check(fc.poincare_constant(mesh), PI**2, mesh)
    robin = first_root(lambda k: k * np.sin(k / 2.0) - 2.0 * np.cos(k / 2.0)) ** 2
    check(fc.friedrichs_constant(mesh, dirichlet=[], robin=(ends, [2.0, 2.0])), robin, mesh)


@pytest.mark.parametrize("level", range(6))
def test_other_shapes(level):
    """Right isosceles and equilateral triangle, rectangle, L-shape; from a single triangle on."""
    right = MeshTri.init_refdom().refined(level)
    check(fc.friedrichs_constant(right, dirichlet=right.boundary_facets()), 5.0 * PI**2, right)
    check(fc.poincare_constant(right), PI**2, right)
    equilateral = MeshTri(np.array([[0.0, 1.0, 0.5], [0.0, 0.0, np.sqrt(0.75)]]), right.t[:, :1] * 0 + [[0], [1], [2]])
    equilateral = equilateral.refined(level)
    check(fc.friedrichs_constant(equilateral, dirichlet=equilateral.boundary_facets()), 16 * PI**2 / 3, equilateral)
    check(fc.poincare_constant(equilateral), 16 * PI**2 / 9, equilateral)
    rectangle = MeshQuad().refined(level).scaled((3.0, 0.5))
    eigenvalue = PI**2 * (1 / 9 + 4)
    check(fc.friedrichs_constant(rectangle, dirichlet=rectangle.boundary_facets()), eigenvalue, rectangle)
    check(fc.poincare_constant(rectangle), PI**2 / 9, rectangle)
    check(box_friedrichs_constant(rectangle, conductivity=4.0), 4.0 * eigenvalue, rectangle)


@pytest.mark.parametrize("level", range(6))
def test_l_shape(level):
    corner = MeshTri.init_lshaped().refined(level)
    check(fc.friedrichs_constant(corner, dirichlet=corner.boundary_facets()), L_SHAPE, corner, cap=0.15, order=4 / 3)
    check(fc.poincare_constant(corner), L_SHAPE_NEUMANN, corner, cap=0.15, order=4 / 3)
    assert L_SHAPE**-0.5 <= box_friedrichs_constant(corner).value <= 1.4 * L_SHAPE**-0.5


@pytest.mark.parametrize("kind", [MeshLine, MeshTri, MeshQuad])
def test_order_two(kind):
    meshes = [kind().refined(level) for level in (2, 3, 4, 5)]
    lam = PI**2 * meshes[0].dim()
    errors = [
        [fc.friedrichs_constant(m, dirichlet=m.boundary_facets()).value * lam**0.5 - 1.0 for m in meshes],
        [fc.poincare_constant(m).value * PI - 1.0 for m in meshes],
    ]
    for error in errors:
        slope = np.polyfit([2, 3, 4, 5], np.log2(error), 1)[0]
        assert -2.1 < slope < -1.85


def test_interpolation_constant_of_triangles():
    """sup ‖u‖ / (h ‖grad u‖) over u with zero mean on each edge, from P2 functions: just below 0.1893, never above."""
    mesh = MeshTri.init_refdom()
    shapes = [(0.0, 1.0), (0.5, 0.75**0.5), (0.5, 0.5), (0.5, 0.1), (0.2, 0.4), (0.9, 0.3), (0.5, 0.6), (0.0, 0.05)]
    found = []
    for apex in shapes:
        p = np.array([[0.0, 1.0, apex[0]], [0.0, 0.0, apex[1]]])
        fine = MeshTri(p, mesh.t).with_boundaries({"e0": [0], "e1": [1], "e2": [2]}).refined(3)
        basis = Basis(fine, ElementTriP2())
        K = asm(BilinearForm(lambda u, v, w: dot(grad(u), grad(v))), basis).toarray()
        M = asm(BilinearForm(lambda u, v, w: u * v), basis).toarray()
        edges = [FacetBasis(fine, ElementTriP2(), facets=name) for name in fine.boundaries]
        Z = null_space(np.array([asm(LinearForm(lambda v, w: v), edge) for edge in edges]))
        found.append(eigh(Z.T @ M @ Z, Z.T @ K @ Z, eigvals_only=True)[-1] ** 0.5 / diameters(MeshTri(p, mesh.t))[0])
    assert 0.185 < max(found) <= TRIANGLE_CONSTANT


def test_pencil_of_a_quadrilateral_is_that_of_its_triangles():
    """Cut along the shorter diagonal, whatever the numbering; facet means of linear functions have the exact energy."""
    p = np.array([[0.0, 2.0, 2.5, 0.3], [0.0, 0.1, 1.5, 1.2]])
    for turn in range(4):
        mesh = MeshQuad(np.roll(p, turn, axis=1), np.arange(4)[:, None])
        pencil = facet_pencil(mesh, np.array([2.0]), np.zeros(4), np.zeros(0, dtype=np.int64))
        assert pencil.stiffness.shape == (5, 5)
        middle = np.c_[mesh.p[:, mesh.facets].mean(axis=1), p[:, [1, 3]].mean(axis=1)].T
        area = 0.5 * abs(np.cross(np.r_[p[:, 2] - p[:, 0], 0], np.r_[p[:, 3] - p[:, 1], 0])[2])
        assert middle.T @ (pencil.stiffness @ middle) == pytest.approx(2.0 * area * np.eye(2), abs=1e-12)
        assert pencil.mass.sum() == pytest.approx(area)
        assert pencil.distance == pytest.approx(0.1893 * np.linalg.norm(p[:, 0] - p[:, 1]) / 2**0.5, rel=0.2)


def two_squares(shift):
    nodes = np.linspace(0.0, 1.0, 3)
    return MeshTri.init_tensor(nodes, nodes) + MeshTri.init_tensor(nodes + shift, nodes + shift)


@pytest.mark.parametrize("shift", [1.0, 3.0])
def test_parts_that_touch_in_a_point_or_not_at_all(shift):
    mesh = two_squares(shift)
    with pytest.raises(fc.UncertifiedError, match="2 parts that no facet connects"):
        fc.poincare_constant(mesh)
    left = facets(mesh, "l")
    with pytest.raises(fc.UncertifiedError, match="1 connected parts of the domain have neither Dirichlet"):
        fc.friedrichs_constant(mesh, dirichlet=left)
    assert fc.friedrichs_constant(mesh, dirichlet=left, reaction=4.0).value == pytest.approx(0.5)
    check(fc.friedrichs_constant(mesh, dirichlet=mesh.boundary_facets()), 2.0 * PI**2, mesh)


def test_reaction_alone():
    mesh = grid(4)
    c = np.linspace(0.25, 7.0, mesh.nelements)
    assert fc.friedrichs_constant(mesh, dirichlet=[], reaction=c).value == pytest.approx(2.0, rel=1e-12)
    for robin in (None, (mesh.boundary_facets(), 0.0), ([], [])):
        with pytest.raises(fc.UncertifiedError, match="no Friedrichs constant"):
            fc.friedrichs_constant(mesh, dirichlet=[], robin=robin)


def test_wrong_eigenvalues_are_found_out(monkeypatch):
    """An eigensolver that misses the smallest eigenvalue does not make the constant too small."""
    genuine = inertia.smallest_eigenpairs
    mesh = grid(8)
    for factor in (1.05, 1.5, 10.0):
        monkeypatch.setattr(inertia, "smallest_eigenpairs", lambda K, M, k, f=factor: (f * genuine(K, M, k)[0], None))
        if factor < 2.0:
            assert fc.friedrichs_constant(mesh, dirichlet=mesh.boundary_facets()).value >= 1 / PI / 2**0.5
            assert fc.poincare_constant(mesh).value >= 1 / PI
        else:
            with pytest.raises(fc.SolveError, match="could not be bounded from below: 6 eigenvalues"):
                fc.friedrichs_constant(mesh, dirichlet=mesh.boundary_facets())
