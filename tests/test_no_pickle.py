"""Nothing that comes from a file is unpickled or run: by the sources, and by a trap that would leave a mark."""

import ast
from pathlib import Path

import numpy as np
import pytest
import zoo

import femcert as fc
from femcert.paper import Sweep

PACKAGE = Path(fc.__file__).parent
# What unpickles, compiles or runs something, and modules that do nothing else.
CALLS = {"eval", "exec", "compile", "__import__", "torch.load", "pickle.load", "pickle.loads"}
MODULES = {"pickle", "cPickle", "_pickle", "dill", "joblib", "shelve", "marshal", "cloudpickle", "yaml", "runpy"}
# A sweep tries whether its rules can be sent to its own workers; it reads no pickle.
WORKERS = {"paper/sweep.py": {"pickle"}}


def imports(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name.split(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield str(node.module).split(".")[0]


def test_sources_unpickle_and_run_nothing():
    for path in PACKAGE.rglob("*.py"):
        tree, place = ast.parse(path.read_text(encoding="utf-8")), path.relative_to(PACKAGE).as_posix()
        assert set(imports(tree)) & MODULES <= WORKERS.get(place, set()), place
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                assert name not in CALLS, place
                keywords = {word.arg: getattr(word.value, "value", None) for word in node.keywords}
                assert name not in {"np.load", "NpzFile"} or keywords["allow_pickle"] is False, place


class Trap:
    """Unpickled, it makes a directory."""

    def __init__(self, mark):
        self.mark = str(mark)

    def __reduce__(self):
        return Path.mkdir, (Path(self.mark),)


def test_a_pickle_is_refused_and_does_not_run(tmp_path):
    mark, path = tmp_path / "mark", tmp_path / "trap.npz"
    np.savez(path, allow_pickle=True, parameter=np.array([Trap(mark)], dtype=object))
    for read in (lambda: fc.Candidate.from_file(zoo.source(), path), lambda: Sweep.load(path)):
        with pytest.raises(fc.FemcertError):
            read()
    path.rename(path.with_suffix(".json"))
    with pytest.raises(fc.FemcertError):
        fc.Selection.load(path.with_suffix(".json"))
    assert not mark.exists()
    # The trap works.
    np.load(path.with_suffix(".json"), allow_pickle=True)["parameter"]
    assert mark.is_dir()
