"""Nothing that comes from a file is unpickled or run: by the sources, and by traps that would leave a mark."""

import ast
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from fuzz_inputs import candidate, problem, swept

import femcert as fc
from femcert.paper import Sweep

PACKAGE = Path(fc.__file__).parent
# What unpickles, compiles or runs something, and modules that do nothing else.
CALLS = {"eval", "exec", "compile", "__import__"}
MODULES = {"pickle", "cPickle", "_pickle", "dill", "joblib", "shelve", "marshal", "cloudpickle", "yaml", "runpy"}
# A sweep tries whether its rules can be sent to its own workers; it reads no pickle.
WORKERS = {"paper/sweep.py": {"pickle"}}


def imports(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name.split(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield str(node.module).split(".")[0]


def calls(tree):
    """Names of functions that are called, with their keywords."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            keywords = {word.arg: getattr(word.value, "value", None) for word in node.keywords}
            yield ast.unparse(node.func), keywords


def test_sources_unpickle_and_run_nothing():
    for path in PACKAGE.rglob("*.py"):
        tree, place = ast.parse(path.read_text(encoding="utf-8")), path.relative_to(PACKAGE).as_posix()
        assert set(imports(tree)) & MODULES <= WORKERS.get(place, set()), place
        for name, keywords in calls(tree):
            assert name not in CALLS, place
            assert name not in {"torch.load", "pickle.load", "pickle.loads"}, place
            if name in {"np.load", "NpzFile"}:
                assert keywords["allow_pickle"] is False, place


class Trap:
    """Unpickled, it makes a directory."""

    def __init__(self, mark):
        self.mark = str(mark)

    def __reduce__(self):
        return Path.mkdir, (Path(self.mark),)


@pytest.fixture
def mark(tmp_path):
    path = tmp_path / "mark"
    yield path
    assert not path.exists()


def trapped(path, mark):
    """The archive with each of its arrays in turn replaced by a trap."""
    with zipfile.ZipFile(path) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist()]
    with np.load(path, allow_pickle=False) as found:
        arrays = {name: found[name] for name in names}
    for name in names:
        other = path.with_name(f"trap-{name}.npz")
        np.savez(other, allow_pickle=True, **{**arrays, name: np.array([Trap(mark)], dtype=object)})
        yield other


def test_the_trap_works(tmp_path):
    np.save(tmp_path / "trap.npy", np.array([Trap(tmp_path / "sprung")], dtype=object), allow_pickle=True)
    np.load(tmp_path / "trap.npy", allow_pickle=True)
    assert (tmp_path / "sprung").is_dir()


def test_archives_with_objects_are_refused(tmp_path, mark):
    candidate().save(tmp_path / "candidate.npz")
    swept().save(tmp_path / "trials.npz")
    readers = {"candidate": lambda path: fc.Candidate.from_file(problem(), path), "trials": Sweep.load}
    for name, read in readers.items():
        for path in trapped(tmp_path / f"{name}.npz", mark):
            with pytest.raises(fc.FemcertError):
                read(path)


def test_a_pickle_under_any_name_is_refused(tmp_path, mark):
    np.save(tmp_path / "trap.npy", np.array([Trap(mark)], dtype=object), allow_pickle=True)
    content = (tmp_path / "trap.npy").read_bytes()
    for ending in ("npz", "csv", "vtu", "vtk", "xdmf", "msh"):
        path = tmp_path / f"candidate.{ending}"
        path.write_bytes(content)
        with pytest.raises(fc.FemcertError):
            fc.Candidate.from_file(problem(), path)
        with pytest.raises(fc.FemcertError):
            fc.load_mesh(path)
    (tmp_path / "selection.json").write_bytes(content)
    with pytest.raises(fc.FemcertError):
        fc.Selection.load(tmp_path / "selection.json")
    (tmp_path / "selection.json").write_text(json.dumps({"py/object": "pathlib.Path", "selection": []}))
    with pytest.raises(fc.FemcertError):
        fc.Selection.load(tmp_path / "selection.json")
