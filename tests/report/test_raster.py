"""Large meshes by pixels: what a pixel shows, and that pages draw them so."""

import numpy as np
import pytest
from skfem import Basis, ElementTriP0, ElementTriP1, ElementTriP2, MeshTri

from femcert.report import raster
from femcert.report.fields import elements_picture, field_picture
from femcert.report.raster import raster_of


@pytest.fixture(autouse=True)
def all_by_pixels(monkeypatch):
    monkeypatch.setattr(raster, "MOST_ELEMENTS", 0)
    monkeypatch.setattr(raster, "PIXELS", 40)


def l_shape():
    mesh = MeshTri.init_tensor(np.linspace(0.0, 2.0, 9), np.linspace(0.0, 1.0, 7))
    middle = mesh.p[:, mesh.t].mean(axis=1)
    return mesh.remove_elements(np.flatnonzero((middle[0] > 1.0) & (middle[1] > 0.5)))


@pytest.mark.parametrize("element", [ElementTriP1, ElementTriP2])
def test_a_pixel_shows_the_field_at_its_middle(element):
    basis = Basis(l_shape(), element())
    found = raster_of(basis.mesh)
    image = found.of_field(basis, 3.0 * basis.doflocs[0] - basis.doflocs[1])
    x, y = found.points.reshape(2, *found.shape)
    assert found.shape == (20, 40)
    assert found.extent == (0.0, 2.0, 0.0, 1.0)
    np.testing.assert_array_equal(image.mask, (x > 1.0) & (y > 0.5))
    np.testing.assert_allclose(image.compressed(), (3.0 * x - y)[~image.mask], atol=1e-13)


def test_the_largest_number_of_small_elements_is_shown():
    mesh = MeshTri().refined(7)
    values = np.zeros(mesh.nelements)
    values[12345] = 1.0
    image = raster_of(mesh).of_elements(mesh, values)
    assert image.max() == 1.0
    assert np.count_nonzero(image == 1.0) <= 2
    assert not image.mask.any()


def test_pixels_are_made_once_and_forgotten_with_the_mesh():
    mesh = MeshTri().refined(2)
    assert raster_of(mesh) is raster_of(mesh)
    number = id(mesh)
    del mesh
    assert number not in raster._made


def test_pictures_are_images():
    basis = Basis(l_shape(), ElementTriP1())
    steps = Basis(basis.mesh, ElementTriP0())
    for home in (basis, steps):
        picture = field_picture("field", "A field", home, np.linspace(-1.0, 2.0, home.N), signed=True)
        assert str(picture.svg).count("<image") >= 1
    picture = elements_picture("shares", "Shares", basis.mesh, np.linspace(0.0, 1.0, basis.mesh.nelements), 1.0)
    assert str(picture.svg).count("<image") >= 1
