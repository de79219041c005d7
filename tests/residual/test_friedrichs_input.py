"""What the Friedrichs and Poincaré constants refuse."""

import numpy as np
import pytest
from skfem import MeshQuad, MeshTet, MeshTri, MeshTri2

import femcert as fc
from femcert.residual.friedrichs import box_friedrichs_constant

MESH = MeshTri().refined(1)
OUTER = MESH.boundary_facets()
INNER = np.setdiff1d(np.arange(MESH.nfacets), OUTER)


def friedrichs(mesh, dirichlet=None, **options):
    return fc.friedrichs_constant(mesh, dirichlet=mesh.boundary_facets() if dirichlet is None else dirichlet, **options)


@pytest.mark.parametrize("constant", [friedrichs, fc.poincare_constant, box_friedrichs_constant])
def test_conductivities_and_meshes(constant):
    for a, word in ((-1.0, "takes the value -1"), (np.nan, "conductivity has 1 NaN"), (np.ones(7), "one per element")):
        with pytest.raises(fc.InputError, match=word):
            constant(MESH, conductivity=a)
    flat = MeshTri(np.zeros((2, 3)), np.array([[0], [1], [2]]))
    folded = MeshQuad(np.array([[0.0, 1.0, 0.2, 0.0], [0.0, 0.0, 0.2, 1.0]]), np.arange(4)[:, None])
    for mesh in (MeshTri2(), MeshTet(), flat, folded):
        with pytest.raises(fc.InputError, match="mesh"):
            constant(mesh)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dirichlet": INNER}, "dirichlet .*facets inside the domain"),
        ({"dirichlet": [MESH.nfacets]}, "dirichlet .*expected indices from 0 to 15"),
        ({"dirichlet": [OUTER[0], OUTER[0]]}, "dirichlet .*names 1 facets twice"),
        ({"dirichlet": [], "robin": (INNER, 1.0)}, "robin .*facets inside the domain"),
        ({"dirichlet": OUTER[4:], "robin": (OUTER[:2], [1.0, -1.0])}, "takes the value -1"),
        ({"dirichlet": OUTER[4:], "robin": (OUTER[:2], [1.0])}, r"expected \(2,\)"),
        ({"dirichlet": OUTER[4:], "robin": OUTER[:2]}, "expected a pair"),
        ({"dirichlet": OUTER[4:], "robin": (OUTER[3:5], 1.0)}, "share 1 facets"),
        ({"reaction": np.ones(3)}, "reaction"),
        ({"reaction": np.r_[np.ones(7), -1e-9]}, "reaction"),
    ],
)
def test_facets_and_coefficients(options, message):
    with pytest.raises(fc.InputError, match=message):
        friedrichs(MESH, **options)
