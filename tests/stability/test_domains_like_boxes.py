"""Closed forms of a box are for a box: not for a domain that has its bounding box, or even its area."""

import numpy as np
import pytest
import zoo
from skfem import Basis, ElementLineP1, ElementQuad1, ElementTriP1, MeshLine, MeshQuad, MeshTri

import femcert as fc
from femcert.residual.friedrichs import box_friedrichs_constant


def pieces(*intervals, n=16):
    """A line for each interval, not connected to the others."""
    x = np.concatenate([np.linspace(a, b, n + 1) for a, b in intervals])
    t = [[(n + 1) * i + j, (n + 1) * i + j + 1] for i in range(len(intervals)) for j in range(n)]
    return MeshLine(x[None], np.array(t).T)


def slit(mesh, y):
    """The vertices on x = 1/2 up to the height y are doubled: elements on both sides are no longer connected there."""
    on = np.flatnonzero((np.abs(mesh.p[0] - 0.5) < 1e-12) & (mesh.p[1] <= y))
    new = np.arange(mesh.nvertices)
    new[on] = mesh.nvertices + np.arange(len(on))
    left, t = mesh.p[0, mesh.t].mean(axis=0) < 0.5, mesh.t.copy()
    t[:, left] = new[t[:, left]]
    return type(mesh)(np.hstack([mesh.p, mesh.p[:, on]]), t)


def frame():
    """A square with a square hole."""
    mesh = MeshTri().refined(3)
    centre = mesh.p[:, mesh.t].mean(axis=1)
    return mesh.restrict(np.flatnonzero(np.abs(centre - 0.5).max(axis=0) > 0.25))


def frame_and_its_hole():
    """The hole is filled by a mesh of its own, so that the areas agree."""
    outer, inner = frame(), MeshTri().refined(2).scaled(0.5).translated((0.25, 0.25))
    return MeshTri(np.hstack([outer.p, inner.p]), np.hstack([outer.t, outer.nvertices + inner.t]))


NO_BOXES = {
    "rod cut at 1/2": lambda: pieces((0.0, 0.5), (0.5, 1.0)),
    "rod with a gap": lambda: pieces((0.0, 0.4), (0.6, 1.0)),
    "rod and a piece of it": lambda: pieces((0.0, 1.0), (0.25, 0.5)),
    "two halves of two rods": lambda: pieces((0.0, 0.75), (0.75, 1.0), (0.0, 1.0)),
    "square cut in two": lambda: slit(MeshTri().refined(3), 1.0),
    "square with a crack": lambda: slit(MeshTri().refined(3), 0.5),
    "quads with a crack": lambda: slit(MeshQuad().refined(3), 0.5),
    "square with a hole": frame,
    "hole filled by another mesh": frame_and_its_hole,
}
BOXES = {
    "rod": lambda: MeshLine(np.linspace(0.0, 1.0, 33)),
    "refined rod": lambda: MeshLine().refined(4),
    "square": lambda: MeshTri().refined(3),
    "quads": lambda: MeshQuad().refined(3),
    "far from the origin": lambda: MeshTri().refined(3).scaled(0.1).translated((100.0, -30.0)),
}


def heat(mesh, k=2):
    basis = Basis(mesh, {2: ElementLineP1, 3: ElementTriP1, 4: ElementQuad1}[mesh.t.shape[0]]())
    low, high = mesh.p.min(axis=1), mesh.p.max(axis=1)
    if mesh.dim() == 1:
        sensors = low + (high - low) * np.array([[0.1, 0.2, 0.35, 0.7, 0.85]]).T
    else:
        corners = np.array([[x, y] for x in (0.12, 0.4, 0.85) for y in (0.13, 0.87)])
        sensors = zoo.discs(low + (high - low) * corners, 0.08 * float((high - low).min()))
    return zoo.heat(basis, parameters=k, sensors=sensors, times=[0.005], steps=5)


@pytest.mark.parametrize("name", NO_BOXES)
def test_a_domain_that_only_looks_like_a_box_has_no_closed_form(name):
    problem = heat(NO_BOXES[name]())
    with pytest.raises(fc.UncertifiedError, match=r"SineSpace on a mesh that is its box.*; here "):
        fc.stability(problem, guarantee="continuous")
    q = problem.parameters.field([1.0, 0.5])
    data = problem.simulate(q, noise=0.01)
    candidate = fc.Candidate(problem.solve(q), q)
    for rule in (fc.GuaranteedRadius(), fc.ExactRadius(guarantee="continuous")):
        with pytest.raises(fc.UncertifiedError, match="; here "):
            fc.certify(problem, data, candidate, rule)


@pytest.mark.parametrize("name", BOXES)
def test_a_box_has_one(name):
    assert fc.stability(heat(BOXES[name]()), guarantee="continuous").scope == "continuous"


def test_point_values_on_a_line_in_pieces_are_refused():
    basis = Basis(pieces((0.0, 0.5), (0.5, 1.0)), ElementLineP1())
    with pytest.raises(fc.UncertifiedError, match="a line in one piece"):
        fc.stability(zoo.source(basis, parameters=2, sensors=[[0.2], [0.4], [0.7]]), guarantee="continuous")


@pytest.mark.parametrize("name", ["square cut in two", "square with a crack", "square with a hole"])
def test_the_constant_of_the_bounding_box_is_a_theorem_for_every_domain_in_it(name):
    # Continued by zero, a function that vanishes on cracks and holes is one of the box.
    mesh = NO_BOXES[name]()
    sharp = fc.friedrichs_constant(mesh, dirichlet=mesh.boundary_facets())
    assert sharp.value <= 1.02 * box_friedrichs_constant(mesh).value
