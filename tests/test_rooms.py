"""Imports go one way through the rooms, and a few habits of the code that a reader relies on."""

import ast
import sys
from importlib import import_module
from pathlib import Path

import pytest

import femcert

PACKAGE = Path(femcert.__file__).parent
ROOMS = (
    "bound", "errors", "checks", "files", "shown", "timing", "linalg", "mesh", "problem", "residual", "stability",
    "evidence", "certificate", "selection", "learn", "study", "report", "paper", "cli",
)  # fmt: skip
# A bound refuses NaN with an InputError; the two files are the ground floor.
GROUND = {"bound", "errors"}
MOST_LINES = 450


def imported_modules(path, root):
    """Every module that a file imports, with absolute names, also inside functions and ``if TYPE_CHECKING``."""
    package = [root.name, *path.relative_to(root).parts[:-1]]
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*start, *([node.module] if node.module else [])])
            found += [module, *(f"{module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in (
            "import_module",
            "__import__",
        ):
            found += [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    return found


def room_of(parts):
    return parts[0].removesuffix(".py")


def uphill_imports(root):
    """``file -> module`` for each import of a later room, and files in no room."""
    wrong = []
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).parts
        here = room_of(parts)
        if parts in (("__init__.py",), ("__main__.py",)):
            continue
        if here not in ROOMS:
            wrong.append(f"{path.name} is in no room")
            continue
        for module in imported_modules(path, root):
            names = module.split(".")
            if names[0] != root.name:
                continue
            # `from femcert import X` or `from . import X` may reach anything, so a room must not do it.
            there = names[1] if len(names) > 1 else "the package itself"
            if there == here or {here, there} == GROUND:
                continue
            if there not in ROOMS or ROOMS.index(there) > ROOMS.index(here):
                wrong.append(f"{'/'.join(parts)} -> {module}")
    return wrong


def importers(root, prefix):
    """Rooms that import a module under `prefix`."""
    rooms = set()
    for path in root.rglob("*.py"):
        if any((module + ".").startswith(prefix + ".") for module in imported_modules(path, root)):
            rooms.add(room_of(path.relative_to(root).parts))
    return rooms


def broad_excepts(root):
    """Files with a bare ``except`` or one that catches Exception or BaseException."""
    found = set()
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ExceptHandler):
                continue
            kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            names = {getattr(kind, "id", getattr(kind, "attr", "")) for kind in kinds}
            if node.type is None or names & {"Exception", "BaseException"}:
                found.add(path.relative_to(root).as_posix())
    return found


def long_files(root, most=MOST_LINES):
    return {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if len(path.read_text(encoding="utf-8").splitlines()) > most
    }


def test_imports_flow_one_way():
    assert uphill_imports(PACKAGE) == []


def test_meshes_know_nothing_of_inverse_problems():
    known = {"__future__", "femcert", "meshio", "numpy", "scipy", "skfem", *sys.stdlib_module_names}
    modules = {module for path in (PACKAGE / "mesh").glob("*.py") for module in imported_modules(path, PACKAGE)}
    assert {module.split(".")[0] for module in modules} <= known
    rooms = {module.split(".")[1] for module in modules if module.startswith("femcert.")}
    assert rooms == {"mesh", "checks", "errors"}


def test_only_linalg_calls_sparse_solvers():
    assert importers(PACKAGE, "scipy.sparse.linalg") == {"linalg"}


def test_only_report_draws():
    assert importers(PACKAGE, "matplotlib") <= {"report", "paper"}
    assert importers(PACKAGE, "mpl_toolkits") <= {"report", "paper"}


def test_broad_excepts_only_in_the_guard():
    assert broad_excepts(PACKAGE) == {"selection/guard.py"}


def problem_gates(root):
    """Where code asks whether something is a problem, or a problem of some class."""
    classes = {"Problem"} | {name for name in femcert.__all__ if _is_problem(getattr(femcert, name))}
    found = []
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or getattr(node.func, "id", "") not in ("isinstance", "issubclass"):
                continue
            if {name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)} & classes:
                found.append(path.relative_to(root).as_posix())
    return found


def _is_problem(thing):
    return isinstance(thing, type) and issubclass(thing, femcert.Problem)


def test_nothing_asks_of_which_class_a_problem_is():
    """One check that a problem is one; everything else is asked for: states, forward, strong, energy, time."""
    assert problem_gates(PACKAGE) == ["problem/base.py"]


def test_no_file_is_too_long():
    assert long_files(PACKAGE) == set()


def test_files_parse_and_there_are_many():
    assert len(list(PACKAGE.rglob("*.py"))) > 30
    assert {room_of(p.relative_to(PACKAGE).parts) for p in PACKAGE.rglob("*.py")} >= set(ROOMS)


@pytest.fixture
def tree(tmp_path):
    """A small package that is in order; the test below spoils one file each."""
    root = tmp_path / "femcert"
    for room in ROOMS[ROOMS.index("linalg") :]:
        (root / room).mkdir(parents=True)
    (root / "__init__.py").write_text("from .selection import anything\n")
    (root / "bound.py").write_text("from .errors import InputError\n")
    (root / "cli" / "entry.py").write_text("from ..report import draw\n")
    return root


SPOILED = {
    "residual/uphill.py": ("from ..selection.guard import attempt\n", uphill_imports),
    "residual/inside.py": ("import importlib\nimportlib.import_module('femcert.report')\n", uphill_imports),
    "problem/typed.py": ("if TYPE_CHECKING:\n    from ..cli import main\n", uphill_imports),
    "helpers.py": ("", uphill_imports),
    "residual/gate.py": ("def f(p):\n    return isinstance(p, (int, EllipticSource))\n", problem_gates),
    "problem/solver.py": ("from scipy.sparse import linalg\n", lambda root: importers(root, "scipy.sparse.linalg")),
    "study/drawing.py": ("def f():\n    from matplotlib import pyplot\n", lambda root: importers(root, "matplotlib")),
    "study/broad.py": ("try:\n    pass\nexcept (ValueError, BaseException) as e:\n    pass\n", broad_excepts),
    "study/long.py": ("x = 1\n" * (MOST_LINES + 1), long_files),
}


@pytest.mark.parametrize("name", SPOILED)
def test_the_checker_sees_what_is_wrong(tree, name):
    text, check = SPOILED[name]
    assert not check(tree)
    (tree / name).write_text(text)
    assert check(tree)


def test_packages_offer_what_their_list_says_and_nothing_else():
    """What a package imports for its own use does not show; modules of femcert may."""
    packages = [femcert, *(import_module(f"femcert.{path.parent.name}") for path in PACKAGE.glob("*/__init__.py"))]
    for package in packages:
        named = {name: value for name, value in vars(package).items() if not name.startswith("_")}
        foreign = {name for name, value in named.items() if not getattr(value, "__name__", "").startswith("femcert.")}
        assert foreign <= {*package.__all__}, package.__name__
