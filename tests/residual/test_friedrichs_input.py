"""What the Friedrichs and Poincaré constants refuse."""

import numpy as np
import pytest
from skfem import MeshQuad, MeshTet, MeshTri, MeshTri2

import femcert as fc
from femcert.residual.friedrichs import box_friedrichs_constant

MESH = MeshTri().refined(1)
OUTER = MESH.boundary_facets()
INNER = np.setdiff1d(np.arange(MESH.nfacets), OUTER)
CONSTANTS = [
    lambda mesh, **options: fc.friedrichs_constant(mesh, dirichlet=mesh.boundary_facets(), **options),
    fc.poincare_constant,
    box_friedrichs_constant,
]


@pytest.mark.parametrize("constant", CONSTANTS)
@pytest.mark.parametrize(
    ("a", "message"),
    [
        (-1.0, "conductivity takes the value -1; expected positive values"),
        (np.r_[np.ones(7), 0.0], "conductivity takes the value 0"),
        (np.nan, "conductivity has 1 NaN"),
        (np.ones(7), r"conductivity has shape \(7,\); expected a number or \(8,\), one per element"),
    ],
)
def test_conductivity(constant, a, message):
    with pytest.raises(fc.InputError, match=message):
        constant(MESH, conductivity=a)


@pytest.mark.parametrize("constant", CONSTANTS)
@pytest.mark.parametrize("mesh", [MeshTri2(), MeshTet(), MeshTri(np.zeros((2, 3)), np.array([[0], [1], [2]])),
    MeshQuad(np.array([[0.0, 1.0, 0.2, 0.0], [0.0, 0.0, 0.2, 1.0]]), np.arange(4)[:, None])])  # fmt: skip
def test_curved_flat_solid_or_folded_meshes(constant, mesh):
    with pytest.raises(fc.InputError, match="mesh"):
        constant(mesh)


@pytest.mark.parametrize(
    ("facets", "message"),
    [
        (INNER, "facets inside the domain"),
        ([MESH.nfacets], "expected indices from 0 to 15"),
        ([OUTER[0], OUTER[0]], "names 1 facets twice"),
    ],
)
def test_facets(facets, message):
    with pytest.raises(fc.InputError, match=f"dirichlet .*{message}"):
        fc.friedrichs_constant(MESH, dirichlet=facets)
    with pytest.raises(fc.InputError, match=f"robin .*{message}"):
        fc.friedrichs_constant(MESH, dirichlet=[], robin=(facets, 1.0))


@pytest.mark.parametrize(
    ("robin", "message"),
    [
        ((OUTER[:2], [1.0, -1.0]), "the Robin coefficient takes the value -1"),
        ((OUTER[:2], [1.0]), r"the Robin coefficient has shape \(1,\); expected \(2,\)"),
        (OUTER[:2], "expected a pair"),
        ((OUTER[3:5], 1.0), "dirichlet and robin share 1 facets"),
    ],
)
def test_robin(robin, message):
    with pytest.raises(fc.InputError, match=message):
        fc.friedrichs_constant(MESH, dirichlet=OUTER[4:], robin=robin)


@pytest.mark.parametrize("c", [-0.1, np.nan, np.ones(3), np.r_[np.ones(7), -1e-9]])
def test_reaction(c):
    with pytest.raises(fc.InputError, match="reaction"):
        fc.friedrichs_constant(MESH, dirichlet=OUTER, reaction=c)
