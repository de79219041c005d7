"""The sweep on processes, on clients and from files: the same records, whoever computes them."""

import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context

import numpy as np
import pytest
from scipy.sparse import identity

import femcert as fc
from femcert.errors import InputError
from femcert.linalg import Factorization, use_backend
from femcert.linalg.backends import is_installed
from femcert.paper import RULES, BatchDecision, Grid, Setting, Sweep, paper_setting
from femcert.paper.rules import weighted
from femcert.paper.sweep import sweep

GRID = Grid(sensors=(10, 35), noise=(0.0, 0.05), perturbation=(0.0, 0.1), mismatch=(0.0, 0.02), replications=40)
SMALL = replace(GRID, sensors=(10,), perturbation=(0.1,), replications=10)


class Stop(Exception):
    """Somebody interrupts."""


@pytest.fixture(scope="module")
def whole():
    return sweep(grid=GRID)


def stop_after(trials):
    def finished(done):
        if done >= trials:
            raise Stop

    return finished


def same(one, other):
    return one.records.tobytes() == other.records.tobytes()


# Rules at the top of the module, for other processes.
def never(trials):
    # Without a Dask client nobody needs Dask.
    assert "distributed" not in sys.modules
    return BatchDecision(np.zeros(len(trials.level), dtype=bool))


def solving(trials):
    """Accepts where multigrid solves, which nobody chooses for four unknowns unasked."""
    found = Factorization(identity(4), definite=True)
    return BatchDecision(np.full(len(trials.level), (found.backend, found.tolerance) == ("multigrid", 0.01)))


def broken(trials):
    raise ZeroDivisionError("mine")


# Who computes


def test_two_processes(whole):
    told = []
    found = sweep(grid=GRID, jobs=2, chunk=97, rules={**RULES, "never": never}, finished=told.append)
    assert all(np.array_equal(found.ratio(rule), whole.ratio(rule), equal_nan=True) for rule in RULES)
    assert found.outcomes() == [*whole.outcomes(), found.outcome("never")]
    assert told == [*range(97, GRID.trials, 97), GRID.trials]


@pytest.mark.parametrize(
    "executor",
    [partial(ThreadPoolExecutor, 3), partial(ProcessPoolExecutor, 2, get_context("spawn"))],
    ids=["threads", "processes"],
)
def test_an_executor(whole, executor, tmp_path):
    with executor() as client:
        assert same(sweep(grid=GRID, client=client, chunk=97, out=tmp_path / "out"), whole)
    assert same(sweep(grid=GRID, chunk=97, out=tmp_path / "out", resume=True), whole)


@pytest.mark.filterwarnings("ignore")
def test_a_dask_cluster(whole):
    """Two workers in processes of their own; rules of this process go along."""
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    rules = {"none": lambda trials: BatchDecision(trials.level < 0.0), **RULES}
    with (
        distributed.LocalCluster(processes=True, **options) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        assert same(sweep(grid=GRID, client=client, chunk=97), whole)
        assert same(sweep(grid=GRID, client=client, rules=rules), sweep(grid=GRID, rules=rules))
        with pytest.raises(ZeroDivisionError, match="mine"):
            sweep(grid=SMALL, client=client, rules={"broken": broken})


@pytest.mark.parametrize("jobs", [2])
def test_what_a_rule_raises_comes_through(jobs):
    with pytest.raises(ZeroDivisionError, match="mine"):
        sweep(grid=SMALL, jobs=jobs, chunk=10, rules={**RULES, "broken": broken})


@pytest.mark.skipif(not is_installed("multigrid"), reason="pyamg is not installed")
@pytest.mark.parametrize("jobs", [2])
def test_rules_solve_with_the_backend_that_is_named_around_the_sweep(jobs):
    with use_backend("multigrid", tolerance=0.01):
        inside = sweep(grid=SMALL, jobs=jobs, chunk=10, rules={"solving": solving})
    outside = sweep(grid=SMALL, jobs=jobs, chunk=10, rules={"solving": solving})
    assert inside.records["accepted"].all()
    assert not outside.records["accepted"].any()


# From files


def test_an_interrupted_sweep_goes_on(whole, tmp_path):
    with pytest.raises(Stop):
        sweep(grid=GRID, out=tmp_path, chunk=97, finished=stop_after(200))
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.npz")}
    assert len(kept) == 3
    told = []
    assert same(sweep(grid=GRID, out=tmp_path, chunk=97, resume=True, finished=told.append), whole)
    assert told == [291, *range(388, GRID.trials, 97), GRID.trials]
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    again = []
    assert same(sweep(grid=GRID, out=tmp_path, chunk=97, resume=True, finished=again.append), whole)
    assert again == [GRID.trials]
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"grid": Grid.of(vars(SMALL) | {"replications": 41})}, "grid was"),
        ({"seed": 5}, "seed was 101, now it is 5"),
        ({"rules": {"exact": RULES["exact"]}}, "rules was"),
        ({"rules": {**RULES, "operational": partial(weighted, pde=0.06)}}, "rules was"),
        ({"setting": replace(paper_setting(), weight=2e-5)}, "problem was"),
    ],
)
def test_other_settings_are_refused(tmp_path, options, word):
    with pytest.raises(Stop):
        sweep(grid=SMALL, chunk=10, out=tmp_path, finished=stop_after(1))
    before = sorted((path.name, path.read_bytes()) for path in tmp_path.iterdir())
    with pytest.raises(InputError, match=f"other settings: {word}"):
        sweep(**{"grid": SMALL, "chunk": 10, **options}, out=tmp_path, resume=True)
    assert sorted((path.name, path.read_bytes()) for path in tmp_path.iterdir()) == before


def test_chunks_are_not_overwritten_unasked(tmp_path):
    sweep(grid=SMALL, out=tmp_path)
    with pytest.raises(InputError, match="unfinished sweep; resume it, or remove it"):
        sweep(grid=SMALL, out=tmp_path)


# Results


def test_save_and_load(whole, tmp_path):
    path = tmp_path / "new" / "trials.npz"
    whole.save(path)
    found = Sweep.load(path)
    assert same(found, whole)
    assert (found.grid, found.seed, found.rules) == (whole.grid, whole.seed, whole.rules)
    assert str(found) == str(whole)
    first = path.read_bytes()
    found.save(path)
    assert path.read_bytes() == first
    with np.load(path, allow_pickle=False) as arrays:
        assert arrays["accepted"].shape == (40, 2, 2, 2, 2, len(RULES))
        assert arrays["noise"].tolist() == [0.0, 0.05]


def test_a_problem_in_the_plane_with_its_own_class_and_rule():
    """Averages on a square, eigenmodes of its Laplacian; a rule of the user beside those of the library."""
    from skfem import Basis, ElementTriP1, MeshTri

    basis = Basis(MeshTri.init_tensor(*2 * [np.linspace(0.0, 1.0, 13)]), ElementTriP1())
    space = fc.EigenmodeSpace(basis, 4)
    points = np.stack(np.meshgrid(*2 * [np.linspace(0.15, 0.85, 5)]), -1).reshape(-1, 2)
    problem = fc.EllipticSource(basis, parameters=space, sensors=fc.AverageSensors(basis, points, radius=0.1))
    bump = fc.EigenmodeSpace(basis, 9).matrix[:, 8]
    setting = Setting.of(problem, truth=[1.0, -0.5, 0.25, 0.1], mismatch=np.asarray(bump).ravel(), weight=1e-6)

    def oracle(trials):
        return BatchDecision(trials.learned.error <= trials.baseline.error)

    grid = {"sensors": (4, 8, 25), "noise": (0.0, 0.05), "perturbation": (0.0, 0.2), "mismatch": (0.0,)}
    found = fc.sweep(setting=setting, grid=grid, rules={**RULES, "oracle": oracle}, chunk=64)
    best = found.outcome("oracle")
    assert best.unsafe == best.false_rejections == 0
    assert 0 < found.outcome("dominance").accepted < best.accepted
    assert found.outcome("dominance").unsafe == 0
