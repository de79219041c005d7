"""Sweep files: what is varied, the rules and the inverse problem, in TOML. Whatever is left out is the paper's.

.. code-block:: toml

    [grid]                          # see Grid
    sensors = [8, 16, 32]
    noise = [0.0, 0.02]
    perturbation = [0.0, 0.1]
    mismatch = [0.0, 0.05]
    replications = 100

    [sweep]
    seed = 7
    chunk = 2048

    [rules]                         # instead of the five of the paper's sweep; regimes are judged by the first
    mine = { kind = "operational", pde = 0.1, bc = 1.0, optimality = 0.0 }
    sure = { kind = "dominance" }   # also with zeta = 0.05; and "residual", "exact"

    [mesh]                          # another problem has this and all that follows
    file = "plate_with_holes.msh"   # relative to this file; anything that load_mesh reads

    [problem]
    kind = "elliptic-source"        # -div(a grad u) + c u = q
    conductivity = 1.0              # a number, or a table: { inclusion = 5.0, background = 1.0 }
    reaction = 0.0
    degree = 1                      # of the state: 1 or 2
    dirichlet = ["outer"]           # where the state is zero, natural conditions elsewhere; without it: everywhere

    [class]                         # the admissible sources
    kind = "eigenmodes"             # or "sine", "cosine", "regions"
    modes = 8                       # of "regions": regions = ["inclusion", "background"]

    [places]                        # where sensors may be
    kind = "averages"               # or "points"
    radius = 0.05
    at = "nodes"                    # inside the mesh, or a list of points
    most = 200                      # of the nodes

    [truth]
    coefficients = [1.0, -0.5, 0.25, -0.12, 0.06, -0.03, 0.01, 0.0]

    [mismatch]
    mode = 30                       # mu times this eigenmode, of largest value 1, is added to the learned state

    [baseline]
    weight = 1e-6                   # of Tikhonov
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from skfem import Basis

from ...checks import Array, count, number, real_array
from ...errors import InputError
from ...mesh.read import boundary_facets
from ...problem import (
    AverageSensors,
    CosineSpace,
    EigenmodeSpace,
    EllipticSource,
    PointSensors,
    RegionSpace,
    SineSpace,
    load_mesh,
)
from ...problem.sensors import Sensors
from ...problem.space import ParameterSpace
from ..case import coefficient_value, state_basis
from ..keys import as_table, as_text, known_keys, parsed_file, required_key
from ..validation.setup import BASE_SEED
from .grid import Grid
from .job import Job
from .rules import RULES, BatchRule, dominance, exact, weighted
from .run import CHUNK
from .setting import Setting, paper_setting
from .store import MANIFEST, check_same, results_are_whole

_OWN = ("mesh", "problem", "class", "places", "truth", "mismatch", "baseline")
_SECTIONS = ("grid", "sweep", "rules", *_OWN)
_MODES = {"eigenmodes": EigenmodeSpace, "sine": SineSpace, "cosine": CosineSpace}
_RULES: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "operational": (weighted, ("pde", "bc", "optimality")),
    "residual": (weighted, ()),
    "exact": (exact, ()),
    "dominance": (dominance, ("zeta",)),
}


@dataclass(frozen=True)
class SweepFile:
    """A sweep file that was read and checked.

    Attributes
    ----------
    grid, seed, chunk, rules
        As `sweep` takes them.
    own
        Whether the problem is one of the file's own.
    """

    grid: Grid
    seed: int
    chunk: int
    rules: Mapping[str, BatchRule]
    setting: Setting
    own: bool

    def changed(self, *, replications: int | None, seed: int | None, chunk: int | None) -> SweepFile:
        """With other settings, where they are given."""
        grid = self.grid if replications is None else replace(self.grid, replications=replications)
        return replace(
            self, grid=grid, seed=self.seed if seed is None else seed, chunk=self.chunk if chunk is None else chunk
        )

    def options(self) -> dict[str, Any]:
        """What `sweep` takes."""
        return {name: getattr(self, name) for name in ("grid", "seed", "chunk", "rules", "setting")}

    def is_finished(self, out: Path) -> bool:
        """Whether the directory holds all results of this sweep as they were written, and none of its chunks.

        Raises
        ------
        InputError
            It holds the results of another one.
        """
        if (out / "chunks").exists() or not (out / MANIFEST).exists():
            return False
        manifest = Job(self.setting, self.grid, self.seed, self.rules).manifest()
        return results_are_whole(check_same(out / MANIFEST, manifest), out)


def paper_file() -> SweepFile:
    """What an empty file says: the paper's sweep."""
    return SweepFile(Grid(), BASE_SEED, CHUNK, RULES, paper_setting(), False)


def read_sweep(path: str | Path) -> SweepFile:
    """Read and check a sweep file, and build its problem.

    Raises
    ------
    InputError
        The file or its mesh is missing or damaged, or a key is missing, unknown or of the wrong type; the message names
        file and key.
    """
    path = Path(path)
    try:
        return _checked(parsed_file(path), path.parent)
    except InputError as error:
        raise InputError(f"sweep file '{path}': {error}") from None


def _checked(record: dict[str, Any], folder: Path) -> SweepFile:
    known_keys(record, _SECTIONS, "")
    sections = {name: as_table(record.get(name, {}), name) for name in _SECTIONS}
    settings = sections["sweep"]
    known_keys(settings, ("seed", "chunk"), "sweep")
    seed = count(settings.get("seed", BASE_SEED), "sweep.seed", least=0)
    chunk = count(settings.get("chunk", CHUNK), "sweep.chunk")
    rules = _rules(sections["rules"]) if "rules" in record else RULES
    grid = _located("grid", lambda: Grid.of(sections["grid"]))
    own = any(name in record for name in _OWN)
    setting = _setting(record, sections, folder) if own else paper_setting()
    if max(grid.sensors) > setting.places:
        raise InputError(f"grid.sensors has the entry {max(grid.sensors)}; there are {setting.places} places")
    return SweepFile(grid, seed, chunk, rules, setting, own)


def _rules(section: Mapping[str, Any]) -> dict[str, BatchRule]:
    if not section:
        raise InputError("rules is empty; expected at least one rule, or no such section")
    return {name: _rule(as_table(rule, f"rules.{name}"), f"rules.{name}") for name, rule in section.items()}


def _rule(table: Mapping[str, Any], where: str) -> BatchRule:
    function, options = _RULES[_choice(table, "kind", _RULES, where)]
    known_keys(table, ("kind", *options), where)
    values = {name: number(table[name], f"{where}.{name}", least=0.0) for name in options if name in table}
    if not 0.0 < values.get("zeta", 0.5) < 1.0:
        raise InputError(f"{where}.zeta is {values['zeta']:g}; expected a number between 0 and 1")
    return partial(function, **values) if values else function


def _setting(record: Mapping[str, Any], sections: Mapping[str, Mapping[str, Any]], folder: Path) -> Setting:
    missing = [name for name in _OWN if name not in record]
    if missing:
        raise InputError(f"section [{missing[0]}] is missing; a problem of its own has {', '.join(_OWN)}")
    for name, keys in (("mesh", ("file",)), ("truth", ("coefficients",)), ("mismatch", ("mode",))):
        known_keys(sections[name], keys, name)
    known_keys(sections["baseline"], ("weight",), "baseline")
    problem = sections["problem"]
    known_keys(problem, ("kind", "conductivity", "reaction", "degree", "dirichlet"), "problem")
    _choice(problem, "kind", ("elliptic-source",), "problem")
    weight = number(required_key(sections["baseline"], "weight", "baseline"), "baseline.weight", above=0.0)
    mode = count(required_key(sections["mismatch"], "mode", "mismatch"), "mismatch.mode")
    mesh = load_mesh(folder / as_text(required_key(sections["mesh"], "file", "mesh"), "mesh.file"))
    basis = state_basis(mesh, problem.get("degree", 1))
    space = _space(basis, sections["class"])
    built = EllipticSource(
        basis,
        parameters=space,
        sensors=_places(basis, sections["places"]),
        conductivity=coefficient_value(problem.get("conductivity", 1.0), mesh, "problem.conductivity"),
        reaction=coefficient_value(problem.get("reaction", 0.0), mesh, "problem.reaction"),
        dirichlet=_dirichlet(problem, basis),
    )
    truth = real_array(required_key(sections["truth"], "coefficients", "truth"), "truth.coefficients")
    if truth.shape != (space.dimension,):
        raise InputError(f"truth.coefficients has shape {truth.shape}; the class expects ({space.dimension},)")
    return Setting.of(built, truth=truth, mismatch=_mode(basis, mode), weight=weight)


def _space(basis: Basis, section: Mapping[str, Any]) -> ParameterSpace:
    kind = _choice(section, "kind", (*_MODES, "regions"), "class")
    if kind == "regions":
        known_keys(section, ("kind", "regions"), "class")
        return _located("class.regions", lambda: RegionSpace(basis, section.get("regions")))
    known_keys(section, ("kind", "modes"), "class")
    modes = count(required_key(section, "modes", "class"), "class.modes")
    return _located("class.modes", lambda: _MODES[kind](basis, modes))


def _places(basis: Basis, section: Mapping[str, Any]) -> Sensors:
    kind = _choice(section, "kind", ("points", "averages"), "places")
    known_keys(section, ("kind", "at", "most", *(["radius"] if kind == "averages" else [])), "places")
    at = section.get("at", "nodes")
    if isinstance(at, str) and at != "nodes":
        raise InputError(f"places.at is {at!r}; expected 'nodes' or a list of points")
    points = _nodes(basis, section) if at == "nodes" else real_array(at, "places.at")
    if kind == "points":
        return _located("places.at", lambda: PointSensors(basis, points))
    radius = number(required_key(section, "radius", "places"), "places.radius", above=0.0)
    return _located("places", lambda: AverageSensors(basis, points, radius=radius))


def _nodes(basis: Basis, section: Mapping[str, Any]) -> Array:
    """Nodes inside the mesh, all or every so-manieth."""
    nodes = basis.mesh.p[:, basis.mesh.interior_nodes()].T
    most = count(section.get("most", len(nodes)), "places.most")
    chosen = np.unique(np.linspace(0, len(nodes) - 1, min(most, len(nodes))).round().astype(int))
    return np.asarray(nodes[chosen])


def _dirichlet(problem: Mapping[str, Any], basis: Basis) -> dict[str, float] | None:
    if "dirichlet" not in problem:
        return None
    names = problem["dirichlet"]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError(f"problem.dirichlet is {names!r}; expected a list of names of boundaries")
    for name in names:
        _located("problem.dirichlet", partial(boundary_facets, basis.mesh, name))
    return dict.fromkeys(names, 0.0)


def _mode(basis: Basis, mode: int) -> Array:
    """An eigenmode of the Laplacian with zero boundary values; its largest value is 1."""
    space = _located("mismatch.mode", lambda: EigenmodeSpace(basis, mode))
    field = space.field(np.eye(mode)[-1])
    return np.asarray(field / field[np.argmax(np.abs(field))])


def _choice(table: Mapping[str, Any], name: str, names: Collection[str], where: str) -> str:
    value = required_key(table, name, where)
    if not isinstance(value, str) or value not in names:
        near = difflib.get_close_matches(str(value), names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise InputError(f"{where}.{name} is {value!r}; expected one of {', '.join(map(repr, names))}{hint}")
    return value


def _located(key: str, make: Callable[[], Any]) -> Any:
    """Say where in the file it was, if something is wrong."""
    try:
        return make()
    except InputError as error:
        text = str(error)
        raise InputError(text if f"'{key}." in text else f"{key}: {text}") from None
