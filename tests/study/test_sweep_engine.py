"""The sweep by way of the disk and on several processes: the same bytes whatever was interrupted, and by whom."""

import os
import signal
import sys

import numpy as np
import pytest
from scipy.sparse import identity

import femcert as fc
from femcert.errors import InputError, SolveError
from femcert.linalg import Factorization, use_backend
from femcert.linalg.backends import is_installed
from femcert.study.sweep import RULES, Grid, Setting, Sweep, Verdict, pool, sweep
from femcert.study.sweep.job import Job
from femcert.study.sweep.setting import paper_setting

GRID = Grid(sensors=(10, 35), noise=(0.0, 0.05), perturbation=(0.0, 0.1), mismatch=(0.0, 0.02), replications=40)

SMALL = Grid(sensors=(10,), noise=(0.05,), perturbation=(0.1,), mismatch=(0.0,), replications=40)


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
    return Verdict(np.zeros(len(trials.level), dtype=bool))


def deadly(trials):
    os.kill(os.getpid(), signal.SIGKILL)


def deadly_once(trials):
    path = os.environ["FEMCERT_TEST_DEADLY"]
    if os.path.exists(path):
        os.unlink(path)
        os.kill(os.getpid(), signal.SIGKILL)
    # Without a scheduler nobody needs Dask.
    assert "distributed" not in sys.modules
    return never(trials)


def solving(trials):
    """Accepts where multigrid solves, which nobody chooses for four unknowns unasked."""
    found = Factorization(identity(4), definite=True)
    return Verdict(np.full(len(trials.level), (found.backend, found.tolerance) == ("multigrid", 0.01)))


def broken(trials):
    raise ZeroDivisionError("mine")


def test_by_way_of_the_disk(whole, tmp_path):
    assert same(sweep(grid=GRID, store=tmp_path / "s", chunk=97, file=tmp_path / "all.npy"), whole)
    assert np.load(tmp_path / "all.npy").tobytes() == whole.records.tobytes()


@pytest.mark.parametrize("other", [97, 50, 1000])
def test_an_interrupted_sweep_goes_on_with_any_chunk_size(whole, tmp_path, other):
    with pytest.raises(Stop):
        sweep(grid=GRID, store=tmp_path, chunk=97, finished=stop_after(200))
    told = []
    assert same(sweep(grid=GRID, store=tmp_path, chunk=other, resume=True, finished=told.append), whole)
    # Three chunks were kept.
    assert told[0] == 291
    assert told == sorted(told)
    assert told[-1] == GRID.trials
    again = []
    assert same(sweep(grid=GRID, store=tmp_path, resume=True, finished=again.append), whole)
    assert again == [GRID.trials]


def test_a_hole_is_filled(whole, tmp_path):
    sweep(grid=GRID, store=tmp_path, chunk=97)
    chunks = sorted(tmp_path.glob("*-*.chunk"))
    before = [chunk.stat().st_mtime_ns for chunk in chunks]
    chunks[1].unlink()
    chunks[3].write_bytes(chunks[3].read_bytes()[:-5])
    (tmp_path / ".000.npy.1.part").write_text("half")
    told = []
    assert same(sweep(grid=GRID, store=tmp_path, resume=True, finished=told.append), whole)
    assert told == [GRID.trials - 2 * 97, GRID.trials - 97, GRID.trials]
    assert chunks[0].stat().st_mtime_ns == before[0]
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"grid": Grid(replications=40)}, "another grid: sensors was"),
        ({"grid": Grid.of(vars(GRID) | {"replications": 41})}, "another grid: replications was 40, now 41"),
        ({"seed": 5}, "another seed: was 101, now 5"),
        ({"rules": {"exact": RULES["exact"]}}, "another rules"),
        ({"rules": {**RULES, "exact": never}}, "another rules: exact was"),
    ],
)
def test_another_sweep_is_not_resumed(tmp_path, options, message):
    with pytest.raises(Stop):
        sweep(grid=GRID, store=tmp_path, chunk=97, finished=stop_after(1))
    before = sorted((path.name, path.read_bytes()) for path in tmp_path.iterdir())
    with pytest.raises(InputError, match=message):
        sweep(**{"grid": GRID, **options}, store=tmp_path, resume=True)
    assert sorted((path.name, path.read_bytes()) for path in tmp_path.iterdir()) == before


def test_another_problem_or_version_is_not_resumed(tmp_path, monkeypatch):
    sweep(grid=GRID, store=tmp_path)
    from dataclasses import replace

    with pytest.raises(InputError, match="another inverse problem"):
        sweep(grid=GRID, store=tmp_path, setting=replace(paper_setting(), weight=2e-5), resume=True)
    from femcert.study.sweep import job

    monkeypatch.setattr(job, "package_versions", lambda: {**fc.selection.selection.package_versions(), "numpy": "1.0"})
    with pytest.raises(InputError, match=r'another package versions: numpy was "\d.*", now "1.0"'):
        sweep(grid=GRID, store=tmp_path, resume=True)


def test_unfinished_work_is_not_thrown_away(tmp_path):
    with pytest.raises(Stop):
        sweep(grid=GRID, store=tmp_path, chunk=97, finished=stop_after(1))
    with pytest.raises(InputError, match=r"unfinished sweep \(1 chunks\)"):
        sweep(grid=GRID, store=tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(InputError, match="damaged"):
        sweep(grid=GRID, store=tmp_path, resume=True)


def test_a_store_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write to"):
        sweep(grid=GRID, store=tmp_path / "file")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"jobs": 0}, "jobs is 0"),
        ({"jobs": 2, "scheduler": "tcp://x:1"}, "jobs and a scheduler"),
        ({"resume": True}, "without a store"),
        ({"grid": {"nois": (0.1,)}}, "did you mean 'noise'"),
        ({"grid": 3}, "expected a Grid or a mapping"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(InputError, match=message):
        fc.sweep(**options)


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_two_processes_one_of_which_dies_give_the_same_bytes(tmp_path, monkeypatch):
    mark = tmp_path / "deadly"
    mark.write_text("")
    monkeypatch.setenv("FEMCERT_TEST_DEADLY", str(mark))
    told, store = [], tmp_path / "store"
    found = sweep(
        grid=GRID, jobs=2, chunk=101, store=store, rules={**RULES, "never": deadly_once}, finished=told.append
    )
    assert not mark.exists()
    assert same(found, sweep(grid=GRID, rules={**RULES, "never": never}))
    assert told == sorted(told)
    assert told[-1] == GRID.trials


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_workers_that_always_die_are_given_up(monkeypatch):
    monkeypatch.setattr(pool, "PATIENCE", 1)
    with pytest.raises(SolveError, match="died 1 times in a row"):
        sweep(grid=GRID, jobs=2, rules={"deadly": deadly})


def test_an_error_of_a_rule_names_it():
    for jobs in (1, 2):
        with pytest.raises(InputError, match=r"^the rule 'bad one' raised ZeroDivisionError: mine$"):
            sweep(grid=GRID, jobs=jobs, rules={**RULES, "bad one": broken})


def test_a_rule_that_cannot_be_sent():
    with pytest.raises(InputError, match="at the top of a module"):
        sweep(grid=GRID, jobs=2, rules={"local": lambda trials: never(trials)})


def test_a_job_goes_there_and_back():
    from femcert.study.sweep.job import unpacked

    job = Job(paper_setting(), GRID, 3, RULES)
    other = unpacked(job.packed())
    assert other(5, 20).tobytes() == job(5, 20).tobytes()
    assert other.manifest() == job.manifest()


@pytest.mark.skipif(not is_installed("multigrid"), reason="pyamg is not installed")
@pytest.mark.parametrize("jobs", [1, 2])
def test_rules_solve_with_the_backend_that_is_named_around_the_sweep(jobs):
    with use_backend("multigrid", tolerance=0.01):
        inside = sweep(grid=SMALL, jobs=jobs, rules={"solving": solving})
    outside = sweep(grid=SMALL, jobs=jobs, rules={"solving": solving})
    assert inside.records["accepted"].all()
    assert not outside.records["accepted"].any()


def test_save_and_load(whole, tmp_path):
    path = tmp_path / "new" / "trials.npz"
    whole.save(path)
    found = Sweep.load(path)
    assert same(found, whole)
    assert (found.grid, found.seed, found.rules) == (whole.grid, whole.seed, whole.rules)
    assert str(found) == str(whole)
    first = path.read_bytes()
    sweep(grid=GRID, file=tmp_path / "f.npy").save(path)
    assert path.read_bytes() == first
    with np.load(path, allow_pickle=False) as arrays:
        assert arrays["accepted"].shape == (40, 2, 2, 2, 2, len(RULES))
        assert arrays["noise"].tolist() == [0.0, 0.05]


def test_other_files_are_no_sweeps(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.ones(3))
    (tmp_path / "b.npz").write_text("text")
    (tmp_path / "c.npz").write_bytes(b"PK\x03\x04 and nothing else")
    np.save(tmp_path / "d.npy", np.ones(3))
    for name in ("a.npz", "b.npz", "c.npz", "d.npy"):
        with pytest.raises(InputError, match="is not the file of a sweep"):
            Sweep.load(tmp_path / name)
    with pytest.raises(InputError, match="cannot be read"):
        Sweep.load(tmp_path / "nothing.npz")


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
        return Verdict(trials.learned.error <= trials.baseline.error)

    grid = {"sensors": (4, 8, 25), "noise": (0.0, 0.05), "perturbation": (0.0, 0.2), "mismatch": (0.0,)}
    found = fc.sweep(setting=setting, grid=grid, rules={**RULES, "oracle": oracle}, chunk=64)
    best = found.outcome("oracle")
    assert best.unsafe == best.false_rejections == 0
    assert 0 < found.outcome("dominance").accepted < best.accepted
    assert found.outcome("dominance").unsafe == 0
