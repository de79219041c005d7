"""Meshes from files: what is in the shipped ones, what survives a round trip, and which files are refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import meshio
import numpy as np
import pytest
from skfem import Mesh, MeshLine1, MeshQuad, MeshTri

import femcert as fc
from femcert.mesh.geometry import boundary_facets, diameters, measures, region_elements

MESHES = Path(__file__).parents[2] / "meshes"
SQUARE = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
TRIANGLES = np.array([[0, 1, 2], [0, 2, 3]])


def ngon(segments: int, radius: float) -> tuple[float, float]:
    """Area and perimeter of a regular polygon with its corners on a circle."""
    angle = 2 * np.pi / segments
    return segments / 2 * radius**2 * np.sin(angle), 2 * segments * radius * np.sin(angle / 2)


DISC, INCLUSION, BIG, SMALL = ngon(120, 1.0), ngon(36, 0.3), ngon(48, 0.2), ngon(36, 0.15)
SLOPE = np.hypot(1.0, 0.3)  # length of the fault per depth
# areas between the tops left (0, -0.3, -0.6) and right (-0.12, -0.42, -0.72) of the fault x = 0.9 - 0.3 y
UPPER = 0.3 * 0.945 + 0.3 * (2 - 0.981)
MIDDLE = 0.3 * 1.035 + 0.3 * (2 - 1.071)
BASEMENT = 0.4 * 1.14 + 0.28 * (2 - 1.158)

# file: (kind, lengths of the parts of the boundary, lengths of interior curves, areas of the regions)
SHIPPED = {
    "l_shape": (MeshTri, {"reentrant": 2, "outer": 6}, {}, {"domain": 3}),
    "l_shape_quads": (MeshQuad, {"reentrant": 2, "outer": 6}, {}, {"domain": 3}),
    "plate_with_holes": (
        MeshTri, {"outer": 6, "holes": 2 * BIG[1] + SMALL[1]}, {}, {"plate": 2 - 2 * BIG[0] - SMALL[0]},
    ),
    "disc": (
        MeshTri, {"rim": DISC[1]}, {"interface": INCLUSION[1]},
        {"inclusion": INCLUSION[0], "background": DISC[0] - INCLUSION[0]},
    ),
    "fault": (
        MeshTri, {"surface": 0.9 + 0.12 * SLOPE + 2 - 0.936, "bottom": 2, "sides": 1 + 0.88},
        {"fault": 0.88 * SLOPE}, {"upper": UPPER, "middle": MIDDLE, "basement": BASEMENT},
    ),
    "interval": (MeshLine1, {"left": 1, "right": 1}, {}, {"first": 0.5, "second": 0.5}),
}  # fmt: skip


def length(mesh: Mesh, facets: np.ndarray) -> float:
    """Length of some facets; their number if they are points."""
    if mesh.dim() == 1:
        return len(facets)
    a, b = mesh.p[:, mesh.facets[:, facets]].transpose(1, 0, 2)
    return float(np.linalg.norm(b - a, axis=0).sum())


def sets(mesh: Mesh, kind: str) -> dict[str, set[int]]:
    return {name: set(np.asarray(chosen).tolist()) for name, chosen in (getattr(mesh, kind) or {}).items()}


def save(path, points=SQUARE, cells=(("triangle", TRIANGLES),), **more):
    meshio.write(path, meshio.Mesh(points, list(cells), **more))
    return path


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_mesh_has_its_names_and_its_size(name):
    kind, outer, inner, regions = SHIPPED[name]
    mesh = fc.load_mesh(MESHES / f"{name}.msh")
    assert type(mesh) is kind
    assert set(mesh.boundaries) == {*outer, *inner}
    assert set(mesh.subdomains) == set(regions)
    for part, expected in {**outer, **inner}.items():
        assert length(mesh, boundary_facets(mesh, part)) == pytest.approx(expected, rel=1e-12)
    for part, expected in regions.items():
        assert measures(mesh)[region_elements(mesh, part)].sum() == pytest.approx(expected, rel=1e-12)
    # each facet of the boundary has one name, each element has one region, each interior curve is interior
    facets = np.concatenate([boundary_facets(mesh, part) for part in outer])
    assert np.array_equal(np.sort(facets), mesh.boundary_facets())
    elements = np.concatenate([region_elements(mesh, part) for part in regions])
    assert np.array_equal(np.sort(elements), np.arange(mesh.nelements))
    for part in inner:
        assert np.all(mesh.f2t[1, boundary_facets(mesh, part)] >= 0)


@pytest.mark.parametrize("name", SHIPPED)
def test_the_script_of_a_shipped_mesh_makes_that_mesh(name, tmp_path):
    pytest.importorskip("gmsh")
    path = tmp_path / "again.msh"
    subprocess.run([sys.executable, MESHES / f"make_{name}.py", path], check=True, timeout=60)
    shipped, again = fc.load_mesh(MESHES / f"{name}.msh"), fc.load_mesh(path)
    assert set(again.boundaries) == set(shipped.boundaries)
    assert set(again.subdomains) == set(shipped.subdomains)
    # versions of Gmsh differ in the mesh, not in the domain
    assert measures(again).sum() == pytest.approx(measures(shipped).sum(), rel=1e-12)
    assert again.nelements == pytest.approx(shipped.nelements, rel=0.1)


@pytest.mark.parametrize(
    ("kind", "suffix"),
    # meshio writes .vtk and .msh files of lines that it cannot read
    [(MeshLine1, ".vtu"), *((kind, suffix) for kind in (MeshTri, MeshQuad) for suffix in (".vtu", ".vtk", ".msh"))],
)
def test_what_scikit_fem_saved_comes_back(kind, suffix, tmp_path, capsys):
    mesh = (
        kind().refined(3).with_boundaries({"left": lambda x: x[0] == 0, "right": lambda x: x[0] == 1})
        .with_subdomains({"half": lambda x: x[0] < 0.5})
    )  # fmt: skip
    mesh.save(tmp_path / f"saved{suffix}")
    capsys.readouterr()
    back = fc.load_mesh(tmp_path / f"saved{suffix}")
    assert type(back) is kind
    assert np.array_equal(back.p, mesh.p)
    assert sets(back, "boundaries") == sets(mesh, "boundaries")
    assert sets(back, "subdomains") == sets(mesh, "subdomains")
    assert capsys.readouterr() == ("", "")


def test_a_curve_and_a_face_with_the_same_gmsh_tag_keep_their_names(tmp_path):
    tags = [np.array([1]), np.array([1, 2])]
    raw = meshio.Mesh(
        np.c_[SQUARE, np.zeros(4)], [("line", np.array([[0, 1]])), ("triangle", TRIANGLES)],
        cell_data={"gmsh:physical": tags, "gmsh:geometrical": [tag.copy() for tag in tags]},
        field_data={"bottom": np.array([1, 1]), "lower": np.array([1, 2]), "upper": np.array([2, 2])},
    )  # fmt: skip
    meshio.write(tmp_path / "tags.msh", raw, file_format="gmsh22", binary=False)
    mesh = fc.load_mesh(tmp_path / "tags.msh")
    assert mesh.p[1, mesh.facets[:, boundary_facets(mesh, "bottom")]].max() == 0
    assert list(region_elements(mesh, "lower")) == [0]
    assert list(region_elements(mesh, "upper")) == [1]
    assert set(mesh.boundaries) == {"bottom"}


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0]])
def test_quadrilaterals_come_out_counterclockwise(order, tmp_path):
    mesh = fc.load_mesh(save(tmp_path / "quad.vtk", cells=[("quad", np.array([order]))]))
    x, y = mesh.p[:, mesh.t[:, 0]]
    assert x @ np.roll(y, -1) - y @ np.roll(x, -1) == 2
    assert list(mesh.mapping().detDF(np.array([[0.3], [0.6]])).ravel()) == pytest.approx([1.0])


def test_diameters_are_longest_edges_and_diagonals():
    assert np.allclose(diameters(MeshTri()), np.sqrt(2))
    assert np.allclose(diameters(MeshQuad().scaled([3.0, 4.0])), 5)
    # the shorter diagonal of a kite is no edge either
    kite = MeshQuad(np.array([[0.0, 1.0, 0.0, -1.0], [-3.0, 0.0, 1.0, 0.0]]))
    assert diameters(kite) == 4
    assert measures(kite) == 4


FLAT = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [0.0, 1.0]])
BENT = np.c_[SQUARE, [0.0, 0.0, 0.0, 0.5]]
DART = np.array([[0.0, 0.0], [1.0, 0.0], [0.2, 0.2], [0.0, 1.0]])
QUAD, BOWTIE = ("quad", np.array([[0, 1, 2, 3]])), ("quad", np.array([[0, 2, 1, 3]]))
BAD_CONTENT = {
    "no cells": ({"cells": [("vertex", np.array([[0]]))]}, "no cells"),
    "mixed": ({"cells": [("triangle", TRIANGLES[:1]), QUAD]}, "mixes quad and triangle"),
    "volume": ({"points": BENT, "cells": [("tetra", np.array([[0, 1, 2, 3]]))]}, "tetra"),
    "second order": ({"points": np.r_[SQUARE, SQUARE], "cells": [("triangle6", np.arange(6)[None])]}, "triangle6"),
    "not planar": ({"points": BENT}, "plane"),
    "curved line": ({"cells": [("line", np.array([[0, 1], [1, 2]]))]}, "along x"),
    "NaN": ({"points": np.where(SQUARE == 1, np.nan, SQUARE)}, "NaN"),
    "infinite": ({"points": np.where(SQUARE == 1, np.inf, SQUARE)}, "infinite"),
    "overflow": ({"points": 1e300 * SQUARE}, "cells"),
    "flat triangle": ({"points": FLAT}, "zero area"),
    "flat line": ({"points": 0 * SQUARE + [2, 0], "cells": [("line", np.array([[0, 1]]))]}, "zero area"),
    "repeated corner": ({"cells": [("triangle", np.array([[0, 1, 1]]))]}, "zero area"),
    "bowtie": ({"cells": [BOWTIE]}, "folded"),
    "dart": ({"points": DART, "cells": [QUAD]}, "not convex"),
    "cell twice": ({"cells": [("triangle", TRIANGLES[[0, 1, 1]])]}, "twice"),
    "overlap": (
        {"points": np.r_[SQUARE, [[0.2, 0.6]]], "cells": [("triangle", np.r_[TRIANGLES, [[0, 2, 4]]])]},
        "1 facets of more than two cells",
    ),
    "unknown node": ({"cells": [("triangle", np.array([[0, 1, 9]]))]}, "not among the 4"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_CONTENT)
def test_an_unusable_mesh_is_refused(case, tmp_path, capsys):
    content, reason = BAD_CONTENT[case]
    path = save(tmp_path / "bad.vtk", **content)
    capsys.readouterr()
    check_refused(path, reason, capsys)


def check_refused(path: Path, reason: str, capsys) -> None:
    """`load_mesh` raises one line with the name of the file and the reason, and prints nothing."""
    with pytest.raises(fc.InputError, match=reason) as caught:
        fc.load_mesh(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert capsys.readouterr() == ("", "")


def test_a_missing_or_unknown_file_is_refused(tmp_path, capsys):
    (tmp_path / "notes.foo").write_text("hello")
    (tmp_path / "empty.msh").write_text("")
    (tmp_path / "text.msh").write_text("hello\nworld\n")
    (tmp_path / "picture.vtu").write_bytes(bytes(range(256)))
    check_refused(tmp_path / "nothing.msh", "no such file", capsys)
    check_refused(tmp_path, "directory", capsys)
    check_refused(tmp_path / "notes.foo", "unknown extension '.foo'", capsys)
    for name in ("empty.msh", "text.msh", "picture.vtu"):
        check_refused(tmp_path / name, "cannot be read", capsys)
    with pytest.raises(fc.InputError, match="expected a path, got int"):
        fc.load_mesh(3)


@pytest.mark.parametrize("suffix", [".msh", ".vtu", ".vtk", ".mesh", ".meshb"])
def test_a_file_of_any_format_is_read_and_a_truncated_one_refused(suffix, tmp_path, capsys):
    shipped = fc.load_mesh(MESHES / "l_shape.msh")
    whole = MESHES / "l_shape.msh"
    if suffix != ".msh":
        whole = save(tmp_path / f"whole{suffix}", shipped.p.T, [("triangle", shipped.t.T)])
        capsys.readouterr()
    content, back = whole.read_bytes(), fc.load_mesh(whole)
    assert np.allclose(back.p, shipped.p, rtol=0, atol=1e-14)
    assert np.array_equal(back.t, shipped.t)
    cut = tmp_path / f"cut{suffix}"
    # the last cut leaves all data of a .meshb and takes its end mark, which its reader does not look for
    last = len(content) - (40 if suffix == ".meshb" else 4)
    for size in [*np.linspace(0, last, 23).astype(int), last - 7]:
        cut.write_bytes(content[:size])
        check_refused(cut, "truncated|damaged|no cells|not among", capsys)
