"""What is declared of a function, what is checked of it, and how far a fit may be from it."""

import numpy as np
import pytest
from skfem import MeshLine, MeshQuad, MeshTri

import femcert as fc
from femcert.mesh.sample import Sampler
from femcert.problem.polynomial import declared_error, known_degree, unknown


def test_what_is_known():
    assert [known_degree(v) for v in (2.0, fc.Polynomial(np.sin, 3), np.sin)] == [0, 3, None]
    assert [declared_error(v) for v in (2.0, fc.Polynomial(np.sin, 3, 0.1), np.sin)] == [0.0, 0.1, 0.0]
    assert unknown("source").startswith("the source is a function of which only samples are known; declare it as fc.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((2.0, 1), "function is a float"),
        ((np.sin, -1), "degree is -1"),
        ((np.sin, 1, -0.1), "error is -0.1"),
    ],
)
def test_bad_declarations(arguments, message):
    with pytest.raises(fc.InputError, match=message):
        fc.Polynomial(*arguments)


def test_tables_are_known_if_all_their_parts_are():
    part = fc.Polynomial(np.sin, 2, 0.1)
    assert fc.Given({"one": 1.0, "two": part}, "a").degree == 2
    assert fc.Given({"one": 1.0, "two": part}, "a").error == 0.1
    mixed = fc.Given({"one": np.cos, "two": part, "three": np.sin}, "a")
    assert mixed.degree is None
    assert mixed.doubt_on(MeshTri()).startswith("the a on 'one' and the a on 'three' is a function of which")
    assert fc.Given(np.arange(3.0), "a").degree == 0


MESHES = {
    "line": MeshLine().refined(2),
    "tri": MeshTri().refined(2),
    "quad": MeshQuad().refined(1),
    "bent": MeshQuad(MeshQuad().refined(1).p ** np.array([[1.3], [0.8]]), MeshQuad().refined(1).t),
}


@pytest.mark.parametrize("degree", [0, 1, 2, 4])
@pytest.mark.parametrize("name", MESHES)
def test_what_is_missed_is_at_most_what_is_said(name, degree):
    mesh, error = MESHES[name], 1e-2

    def near(x):
        return 2.0 + x[0] ** degree + error * np.sin(90.0 * x[0]) * np.cos(70.0 * x[-1])

    given = fc.Given(fc.Polynomial(near, degree, error), "a", "positive")
    missed = given.missed(mesh)
    # Of a polynomial and of anything else that is as near to it.
    s = np.linspace(0.0, 1.0, 31)
    X = s[None] if mesh.dim() == 1 else np.array(np.meshgrid(s, s)).reshape(2, -1)
    if mesh.t.shape[0] == 3:
        X = X[:, X.sum(axis=0) <= 1.0]
    dense = Sampler(mesh, 0, points=X)
    for true in (near(dense.x), 2.0 + dense.x[0] ** degree + error, 2.0 + dense.x[0] ** degree - error):
        assert np.all(np.abs(given.at(dense) - true).max(axis=1) <= missed)
    assert missed.max() <= 40.0 * error
    assert not fc.Given(fc.Polynomial(near, degree), "a").missed(mesh).any()


def test_a_false_degree_is_noticed():
    with pytest.raises(fc.InputError, match="source is declared as a polynomial of degree 2 with error 0, but is"):
        fc.Given(fc.Polynomial(lambda x: np.exp(3.0 * x[0]), 2), "source").fit(MESHES["tri"])
    fc.Given(fc.Polynomial(lambda x: np.exp(3.0 * x[0]), 2, 0.05), "source").fit(MESHES["tri"])
