"""Backends: the same results with each that is installed, chosen by size, named by the user, refused in words."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import zoo
from scipy.sparse import block_diag, csr_matrix, diags, identity
from skfem import Basis, BilinearForm, ElementTriP1, ElementTriP2, MeshTri, asm
from skfem.helpers import dot, grad

import femcert as fc
from femcert.linalg import (
    Factorization,
    backends,
    factorization_count,
    installed_backends,
    pardiso,
    smallest_eigenpairs,
)
from femcert.linalg.factor import pivoted_factors

INSTALLED = sorted(installed_backends())
FACTORS = [name for name in INSTALLED if name != "multigrid"]
mass = BilinearForm(lambda u, v, w: u * v)
stiffness = BilinearForm(lambda u, v, w: (1.0 + 9.0 * (w.x[0] > 0.5)) * dot(grad(u), grad(v)))


@pytest.fixture(params=INSTALLED)
def backend(request):
    with fc.use_backend(request.param):
        yield request.param


def pencil(n, element=None):
    """Stiffness with a jump and mass on graded triangles, inner dofs."""
    line = np.linspace(0.0, 1.0, n + 1) ** 1.5
    basis = Basis(MeshTri.init_tensor(line, line), element or ElementTriP1())
    free = basis.complement_dofs(basis.get_dofs())
    return [asm(form, basis)[free][:, free] for form in (stiffness, mass)]


@pytest.mark.parametrize("element", [ElementTriP1, ElementTriP2])
def test_all_backends_agree(backend, element):
    K, M = pencil(24, element())
    rng = np.random.default_rng(0)
    found = Factorization(K, definite=True)
    assert found.backend == backend
    with fc.use_backend("superlu"):
        reference = Factorization(K, definite=True)
    # A vector, more columns than one block, columns in C order, and none.
    n = K.shape[0]
    for right in (rng.standard_normal(n), M @ rng.standard_normal((n, 19)), np.zeros((n, 0))):
        x = reference.solve(right)
        for solve in (found.solve, found.solve_transposed):
            assert np.abs(solve(right) - x).max(initial=0.0) <= 1e-9 * np.abs(x).max(initial=1.0)
    assert found.condition == pytest.approx(reference.condition, rel=1e-2)


def test_not_definite_is_refused_by_each(backend):
    K, M = pencil(16)
    first = smallest_eigenpairs(K, M, 1)[0][0]
    Factorization(K - 0.99 * first * M, definite=True)
    for wrong in (K - 1.05 * first * M, -K, csr_matrix([[0.0, 1.0], [1.0, 0.0]]), diags([1.0, 0.0, 2.0])):
        with pytest.raises(fc.SolveError, match=r"not positive definite|singular"):
            Factorization(wrong, definite=True)


def test_the_scale_of_rows_does_not_matter_to_any(backend):
    K, _ = pencil(12)
    plain = Factorization(K, definite=True)
    for power in (6, 100):
        D = diags(10.0 ** np.random.default_rng(0).uniform(-power / 2, power / 2, K.shape[0]))
        found = Factorization(D @ K @ D, definite=True)
        assert found.condition == pytest.approx(plain.condition, rel=1e-3)
        b = K @ np.ones(K.shape[0])
        assert D @ found.solve(D @ b) == pytest.approx(np.ones(K.shape[0]), rel=1e-10)


def test_nearly_singular_is_refused_or_solved_to_what_is_lost(backend):
    """From a Neumann problem that a small reaction makes definite to one that is singular to rounding."""
    basis = zoo.square(4)
    K, M = (asm(form, basis) for form in (stiffness, mass))
    x, refused = np.random.default_rng(0).standard_normal(K.shape[0]), []
    for part in (1e-4, 1e-6, 1e-8, 1e-10, 1e-12, 1e-14):
        A = K + part * M
        try:
            found = Factorization(A, definite=True)
            off = found.solve(A @ x) - x
        except fc.SolveError:
            refused.append(part)
            continue
        assert np.linalg.norm(off) <= found.loss * np.linalg.norm(x)
    # Multigrid gives up sooner than factors do.
    assert {1e-12, 1e-14} <= set(refused) <= {1e-6, 1e-8, 1e-10, 1e-12, 1e-14}


@pytest.mark.parametrize("name", FACTORS)
def test_factors_find_one_negative_direction_among_many(name):
    block = csr_matrix([[1.0, 2.0], [2.0, 1.0]])
    with fc.use_backend(name), pytest.raises(fc.SolveError, match="not positive definite"):
        Factorization(block_diag([pencil(20)[0], block, identity(300)]), definite=True)


@pytest.mark.parametrize("n", [20, 200])
@pytest.mark.parametrize("name", FACTORS)
def test_a_pair_that_is_not_definite_among_ones(name, n):
    """The library itself says so: no object is made of factors with NaN."""
    for place in range(0, n - 1, n // 10):
        A = identity(n, format="lil")
        A[place, place + 1] = A[place + 1, place] = 1.5
        with fc.use_backend(name), pytest.raises(fc.SolveError, match=r"not positive definite|singular"):
            Factorization(A.tocsc(), definite=True)


def test_asymmetry_is_refused_by_each(backend):
    K, _ = pencil(8)
    skew = K.tolil()
    skew[0, 1] += 1e-6 * abs(K).max()
    with pytest.raises(fc.SolveError, match="not symmetric"):
        Factorization(skew.tocsr(), definite=True)
    # Where nothing is said about it, SuperLU takes it.
    assert Factorization(skew.tocsr(), definite=False).backend == "superlu"


def test_each_is_counted_and_solves_from_several_threads(backend):
    K, _ = pencil(24)
    before = factorization_count()
    found = Factorization(K, definite=True)
    assert factorization_count() == before + 1
    rights = np.random.default_rng(1).standard_normal((4, K.shape[0]))
    results = {}
    threads = [threading.Thread(target=lambda i=i: results.update({i: found.solve(rights[i])})) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, right in enumerate(rights):
        assert np.allclose(K @ results[i], right, atol=1e-8)


def test_pardiso_keeps_its_orderings_among_threads():
    """Many small matrices of many patterns at once, with threads that take turns as often as they can."""
    pytest.importorskip("pypardiso")
    interval = sys.getswitchinterval()

    def work(seed):
        for n in np.random.default_rng(seed).integers(3, 30, 400):
            matrix = diags([-np.ones(n - 1), 3.0 * np.ones(n), -np.ones(n - 1)], [-1, 0, 1]).tocsc()
            found = pardiso.Pardiso(matrix, name="matrix").solve(np.ones(n))
            assert np.allclose(matrix @ found, 1.0, atol=1e-12)

    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(6) as threads:
            list(threads.map(work, range(6)))
    finally:
        sys.setswitchinterval(interval)
    assert len(pardiso._orders) <= pardiso.ORDERS


def test_multigrid_where_factors_do_not_fit(monkeypatch):
    monkeypatch.delenv(backends.VARIABLE, raising=False)
    large = identity(backends.LEAST_UNKNOWNS, format="csc")
    monkeypatch.setattr(backends, "free_bytes", lambda: 1e6)
    monkeypatch.setattr(backends, "is_installed", lambda name: name in ("superlu", "multigrid"))
    assert backends.choose(large).name == "multigrid"
    monkeypatch.setattr(backends, "is_installed", lambda name: name == "superlu")
    assert backends.choose(large).name == "superlu"


@pytest.mark.parametrize("definite", [True, False])
def test_factors_that_cannot_fit_are_not_begun(monkeypatch, definite):
    """Also where others than SuperLU have no say: pivots that are counted, matrices that are not definite."""
    A = pencil(30)[0].tocsc()
    monkeypatch.setattr(backends, "free_bytes", lambda: 1e5)
    with fc.use_backend("superlu"), pytest.raises(fc.SolveError, match=r"0\.\d GB, and 0\.0 GB are free"):
        Factorization(A, definite=definite)
    with pytest.raises(fc.SolveError, match="would take about"):
        pivoted_factors(A, name="shifted form")


def test_the_estimate_of_memory_is_near_what_superlu_takes():
    K, _ = pencil(150)
    found = Factorization(K, definite=True)
    took = 12.0 * found._solver._lu.nnz
    assert took < backends.factor_bytes(K, "superlu") < 5.0 * took
    assert backends.free_bytes() > 0.0


def test_a_selection_says_what_solved(backend):
    problem = zoo.source("tri P1", 8, parameters=2, sensors=zoo.averages)
    assert problem.backend is None
    data = problem.simulate(problem.parameters.field([1.0, 0.5]), noise=0.01)
    learned = fc.Candidate.from_coefficients(problem, [1.0, 0.4])
    selection = fc.no_harm(problem, data, baseline=fc.Tikhonov(weight=1e-6), learned=learned, rule=fc.ExactRadius())
    assert problem.backend == backend
    package = backends.PACKAGES[backend][0]
    version = installed_backends()[backend]
    assert selection.versions[package] == version
    found = selection.solver
    assert (found["backend"], found["package"], found["version"]) == (backend, package, version)
    assert found["tolerance"] == (backends.ENERGY_TOLERANCE if backend == "multigrid" else None)


@pytest.mark.parametrize("name", ["umfpack", "", 3])
def test_an_unknown_backend_is_refused(name):
    names = "expected one of 'superlu', 'pardiso', 'cholmod', 'multigrid'"
    with pytest.raises(fc.InputError, match=names), fc.use_backend(name):
        pass


def test_a_backend_that_is_not_installed_is_refused(monkeypatch):
    monkeypatch.setattr(backends, "is_installed", lambda name: name == "superlu")
    with pytest.raises(fc.InputError, match="pypardiso is not installed"), fc.use_backend("pardiso"):
        pass
    monkeypatch.setenv(backends.VARIABLE, "cholmod")
    with pytest.raises(fc.InputError, match="FEMCERT_BACKEND is 'cholmod', but scikit-sparse is not installed"):
        Factorization(identity(3), definite=True)


def test_a_named_backend_holds_within_its_block(monkeypatch):
    monkeypatch.setenv(backends.VARIABLE, "superlu")
    eye = identity(5)
    with fc.use_backend(INSTALLED[0]):
        assert Factorization(eye, definite=True).backend == INSTALLED[0]
        with pytest.raises(fc.SolveError), fc.use_backend("superlu"):
            Factorization(-eye, definite=True)
        assert Factorization(eye, definite=True).backend == INSTALLED[0]
    assert Factorization(eye, definite=True).backend == "superlu"
