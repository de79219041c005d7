"""A commented case file for somebody's own mesh and data, to start from: an unknown source of an elliptic equation."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from skfem import Mesh

from ..checks import number
from ..errors import InputError
from ..mesh import load_mesh
from ..selection import Tikhonov
from .case import read_certify_case
from .conditions import state_basis
from .measurements import COLUMNS, GAPS, header, read_columns

# Of the ball, where nothing is said: an answer about 1, which varies over a quarter of the domain.
RADIUS, SHARE = 3.0, 0.25
STAND_IN = "candidate.npz"


@dataclass(frozen=True, kw_only=True)
class NewCase:
    """What is asked for a new case.

    Attributes
    ----------
    mesh, data
        Files: anything that `load_mesh` reads, and a CSV file with the columns x, y and value.
    candidate
        The file of a reconstruction to be judged. None: a Tikhonov solution by GCV stands in for one.
    parameter
        What its field is called.
    std
        The standard deviation of the noise; None: a column of the data has it.
    sensor_radius
        Of the discs over which sensors average; 0: points.
    radius, length
        Of the ball in the H1 norm; None: a start that is to be changed.
    title
        Of the page.
    """

    mesh: Path
    data: Path
    candidate: Path | None = None
    parameter: str = "parameter"
    std: float | None = None
    sensor_radius: float = 0.0
    radius: float | None = None
    length: float | None = None
    title: str = ""

    def __post_init__(self) -> None:
        for name in ("std", "radius", "length"):
            if getattr(self, name) is not None:
                number(getattr(self, name), name, above=0.0)
        number(self.sensor_radius, "sensor_radius", least=0.0)


def write_new_case(folder: Path, asked: NewCase) -> tuple[Path, list[str]]:
    """Write ``case.toml`` to a new or empty directory, and check that it can be read and built.

    Its path, and what was assumed, in words.

    Parameters
    ----------
    folder
        Where to write it. Paths in the case are relative to it.
    asked
        What is to be in it.

    Raises
    ------
    InputError
        The directory is not empty, or a file cannot be read; nothing is written. Or they do not make a problem; then
        the case file is there, to be edited.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is a file or not empty; expected a new or empty directory")
    mesh = load_mesh(asked.mesh)
    columns = read_columns(asked.data, COLUMNS, texts=("region",), required={"value"}, gaps=GAPS)
    if asked.std is None and "deviation" not in columns:
        raise InputError(f"{asked.data} has no column {' or '.join(COLUMNS['deviation'])}; expected one, or std")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "case.toml"
    path.write_text(_text(asked, mesh, folder), encoding="utf-8")
    stand_in = folder / STAND_IN
    try:
        if asked.candidate is None:
            np.savez(stand_in, parameter=np.zeros(state_basis(mesh, 1).N))
        case = read_certify_case(path)
        if asked.candidate is None:
            np.savez(stand_in, parameter=Tikhonov(choose="gcv")(case.problem, case.data).parameter)
    except InputError as error:
        stand_in.unlink(missing_ok=True)
        raise InputError(f"{path} is written, and is to be edited: {error}") from None
    return path, _assumed(asked, mesh)


def _assumed(asked: NewCase, mesh: Mesh) -> list[str]:
    """What the case assumes beyond the arguments."""
    names = ", ".join(sorted(mesh.boundaries or {})) or "the whole boundary"
    said = [f"boundary values: 0 on {names}; the case says where to change it"]
    if asked.std is None:
        column = next(name for name in header(asked.data) if name in COLUMNS["deviation"])
        said.append(f"standard deviations of the noise: the column {column!r} of {asked.data}")
    if asked.candidate is None:
        said.append(f"candidate: none was given; {STAND_IN}, regularized less than the baseline, stands in for one")
    return said


def _text(asked: NewCase, mesh: Mesh, folder: Path) -> str:
    """The case file."""
    names, parts = sorted(mesh.boundaries or {}), sorted(mesh.subdomains or {})
    size = float(np.linalg.norm(np.ptp(mesh.p, axis=1)))
    length = SHARE * size if asked.length is None else asked.length
    middle = 0.5 * float(mesh.p[0].min() + mesh.p[0].max())

    def relative(path: Path) -> str:
        return Path(os.path.relpath(path, folder)).as_posix()

    value = "{ " + ", ".join(f"{json.dumps(part)} = 1.0" for part in parts) + " }" if parts else "1.0"
    halves = f'{{ left = "{middle:.6g} - x", right = "x - {middle:.6g}" }}'
    lines = [
        f"# {asked.title or 'A case for femcert certify'}",
        "# Values that follow a '<-' are a start: replace them by what you know.",
        "",
        "[case]  # for the page",
        f"title = {json.dumps(asked.title)}",
        'quantity = "source"',
        'unit = ""  # <-',
        "",
        "[mesh]",
        f'file = "{relative(asked.mesh)}"',
        "",
        "[problem]",
        'kind = "elliptic-source"  # -div(a grad u) + c u = q, and q is unknown',
        f"conductivity = {value}  # <- a: a number, a formula in x and y, or a table of these by subdomain",
    ]
    if names:
        lines += ["", "[boundary.dirichlet]  # <- u = g; see also [boundary.neumann] and [boundary.robin]"]
        lines += [f"{json.dumps(name)} = 0.0" for name in names]
    else:
        lines += ["# <- u = 0 on the whole boundary: the mesh names no parts of it for [boundary.dirichlet]"]
    lines += [
        "",
        "[class]  # which truths are admitted: every claim is about these",
        'kind = "full"',
        "",
        "[class.ball]  # all q with int q^2 + length^2 |grad q|^2 <= radius^2",
        f"radius = {RADIUS if asked.radius is None else asked.radius:g}"
        + "  # <- or samples, a file of truths" * (asked.radius is None),
        'norm = "h1"',
        f"length = {length:.3g}" + "  # <- over which q varies" * (asked.length is None),
        "",
        "[sensors]  # where: the columns x and y of the data",
        *(['kind = "averages"', f"radius = {asked.sensor_radius:g}"] if asked.sensor_radius else ['kind = "points"']),
        "",
        "[data]",
        f'file = "{relative(asked.data)}"',
        *([] if asked.std is None else [f'std = {asked.std:g}  # standard deviation of the noise, or "unknown"']),
        "confidence = 0.95",
        "",
        "[regions]  # <- where the data judge what a candidate claims",
        f"names = {json.dumps(parts)}" if parts else f"where = {halves}  # positive inside",
        "",
        "[baseline]",
        'kind = "tikhonov"',
        'choose = "discrepancy"',
        "",
        "[candidate]  # the reconstruction to be judged: .npz, .csv, .vtu or .xdmf",
        f'file = "{STAND_IN if asked.candidate is None else relative(asked.candidate)}"'
        + "  # <- stands in for yours: regularized less than the baseline" * (asked.candidate is None),
        *([] if asked.parameter == "parameter" else [f"parameter = {json.dumps(asked.parameter)}"]),
        "",
    ]
    return "\n".join(lines)
