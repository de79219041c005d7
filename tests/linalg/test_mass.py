"""Mass solves against direct ones, on stretched, graded and distorted meshes, with a bounded number of steps."""

import numpy as np
import pytest
import zoo
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import diags
from scipy.sparse.linalg import spsolve
from skfem import Basis, BilinearForm, MeshLine, asm
from zoo import CLASSES, ELEMENTS, jittered

from femcert.linalg import solve_mass

form = BilinearForm(lambda u, v, w: u * v)


def nodes(n, grading):
    """From uniform (1) to geometrically graded: neighbours differ by `grading`."""
    steps = float(grading) ** np.arange(n)
    return np.r_[0.0, np.cumsum(steps)] / steps.sum()


def basis_of(name, grading, stretch):
    kind, element, _ = ELEMENTS[name]
    if kind == "line":
        # Thirty cells from 1 to 1e12 are enough.
        return Basis(MeshLine(nodes(30, 2.5 if grading == 10.0 else grading)), element())
    mesh = CLASSES[kind].init_tensor(nodes(8, grading), stretch * nodes(7, 1.0))
    moved = kind == "bent quad" and grading == stretch == 1.0
    return Basis(jittered(mesh, 0.05) if moved else mesh, element())


@pytest.mark.parametrize("stretch", [1.0, 1e-6])
@pytest.mark.parametrize("grading", [1.0, 3.0, 10.0])
@pytest.mark.parametrize("name", ELEMENTS)
def test_against_a_direct_solver(name, grading, stretch):
    basis = basis_of(name, grading, stretch)
    M = asm(form, basis).tocsr()
    rng = np.random.default_rng(0)
    for b in (rng.standard_normal(basis.N), rng.standard_normal((basis.N, 4)), M @ rng.standard_normal(basis.N)):
        x = solve_mass(M, b)
        assert x.shape == b.shape
        scale = np.sqrt(M.diagonal()) if b.ndim == 1 else np.sqrt(M.diagonal())[:, None]
        # Scaled by the diagonal, the matrix is well conditioned: the error is small in the scaled unknowns.
        exact = spsolve(M.tocsc(), b)
        assert np.linalg.norm(scale * (x - exact)) <= 1e-10 * np.linalg.norm(scale * exact)


@pytest.mark.parametrize("name", ELEMENTS)
def test_steps_do_not_depend_on_the_mesh(name):
    for grading, stretch in ((1.0, 1.0), (3.0, 1e-6)):
        M = asm(form, basis_of(name, grading, stretch)).tocsr()
        exact = np.random.default_rng(0).standard_normal(M.shape[0])
        # More than 80 steps would be a SolveError.
        error = solve_mass(M, M @ exact, most=80) - exact
        assert np.sqrt(error @ (M @ error)) <= 1e-11 * np.sqrt(exact @ (M @ exact))


def test_lumped_takes_one_step():
    M = diags(np.linspace(1e-8, 1.0, 50)).tocsr()
    b = np.random.default_rng(0).standard_normal((50, 2))
    assert np.allclose(solve_mass(M, b, most=1), b / M.diagonal()[:, None], rtol=1e-14)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1), st.floats(1e-100, 1e100), st.integers(0, 3))
def test_columns_are_independent(seed, size, zero):
    """One column huge, one zero: each is solved as if it were alone."""
    M = asm(form, zoo.square(2, 2)).tocsr()
    b = np.random.default_rng(seed).standard_normal((M.shape[0], 4))
    b[:, zero] = 0.0
    b[:, (zero + 1) % 4] *= size
    x = solve_mass(M, b)
    assert not x[:, zero].any()
    for i in range(4):
        assert np.allclose(x[:, i], solve_mass(M, b[:, i]), rtol=0, atol=1e-11 * np.abs(x[:, i]).max())
