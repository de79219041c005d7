"""Which bases are taken: quadratures that integrate the mass matrix, and dofs with a place."""

import numpy as np
import pytest
from skfem import Basis, ElementLineP2, ElementQuad2, ElementTriP2
from zoo import ELEMENTS, unit_basis, unit_mesh

import femcert as fc
from femcert.mesh.assembly import mass_form
from femcert.mesh.elements import mass_matrix

COARSE = [
    ("line", ElementLineP2, (1, 2, 3), 4),
    ("tri", ElementTriP2, (1, 2, 3), 4),
    ("quad", ElementQuad2, (1, 2, 3), 4),
    ("bent quad", ElementQuad2, (1, 2, 3), 5),
]


def users(basis):
    """Every constructor that takes a basis."""
    points = np.full((1, basis.mesh.dim()), 0.3)
    return [
        lambda: fc.FullSpace(basis),
        lambda: fc.SineSpace(basis, 2),
        lambda: fc.FunctionSpace(basis, [lambda x: x[0]]),
        lambda: fc.EigenmodeSpace(basis, 2),
        lambda: fc.CoarseSpace(basis, basis.mesh),
        lambda: fc.PointSensors(basis, points),
        lambda: fc.AverageSensors(basis, points, radius=0.1),
        lambda: fc.RegionSensors(basis, [np.arange(3)]),
        lambda: fc.BoundarySensors(basis, count=2),
    ]


@pytest.mark.parametrize(("kind", "element", "orders", "enough"), COARSE)
def test_a_coarse_quadrature_is_refused(kind, element, orders, enough):
    mesh = unit_mesh(kind, 4)
    for order in orders:
        for use in users(Basis(mesh, element(), intorder=order)):
            with pytest.raises(fc.InputError, match=r"quadrature of basis .* is too coarse .*expected intorder of at"):
                use()
    exact = mass_form.assemble(Basis(mesh, element(), intorder=12))
    for order in (enough, enough + 1, enough + 4, None):
        basis = Basis(mesh, element(), intorder=order)
        assert abs(mass_matrix(basis) - exact).max() < 1e-12
        for use in users(basis):
            use()


def test_the_problems_refuse_it_too():
    fine = unit_basis("tri P2", 4)
    coarse = Basis(fine.mesh, ElementTriP2(), intorder=2)
    sensors = fc.PointSensors(fine, [[0.3, 0.4]])
    for make in (
        lambda: fc.EllipticSource(coarse, parameters=fc.FullSpace(fine), sensors=sensors),
        lambda: fc.HeatInitial(coarse, parameters=fc.FullSpace(fine), sensors=sensors, times=0.1),
        lambda: fc.EllipticCoefficient(coarse, parameters=fc.FullSpace(fine), sensors=sensors),
        lambda: fc.Tomography(coarse, parameters=fc.FullSpace(fine), angles=[0.0], bins=3),
    ):
        with pytest.raises(fc.InputError, match="intorder"):
            make()


@pytest.mark.parametrize("name", ELEMENTS)
def test_dofs_without_a_place(name):
    basis = unit_basis(name, 4)
    for use in users(Basis(basis.mesh, basis.elem, disable_doflocs=True)):
        with pytest.raises(fc.InputError, match="disable_doflocs=True; expected one with dof locations"):
            use()
