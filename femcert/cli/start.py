"""The commands that one starts with: a case of one's own, and what is installed."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from ..errors import InputError
from .commands import FAILED_CHECK, SUCCESS, Ended


def add_starting_commands(commands: Any) -> None:
    """Add them to a parser."""
    _add_new(commands)
    _add_doctor(commands)


def _add_new(commands: Any) -> None:
    command = commands.add_parser(
        "new",
        help="write a case for your own mesh and data",
        description="Write a commented case file for `femcert certify`, for an unknown source of an elliptic equation. "
        "Mesh and data that are not given are asked for.",
    )
    command.add_argument("folder", type=Path, metavar="DIR", help="a new or empty directory for the case")
    for name, word, what in (
        ("mesh", "FILE", "the mesh: Gmsh, or anything else that meshio reads"),
        ("data", "FILE", "the measurements: CSV with the columns x, y, value and, without --std, deviation (or std)"),
        ("candidate", "FILE", "the reconstruction to be judged (.npz, .csv, .vtu, .xdmf); without it one stands in"),
        ("parameter", "NAME", "what its field is called; default: parameter"),
        ("title", "TEXT", "what the case is about"),
    ):
        command.add_argument(f"--{name}", metavar=word, help=what)
    for name, what in (
        ("std", "standard deviation of the noise"),
        ("sensor-radius", "of the discs over which sensors average; 0 for points"),
        ("radius", "of the ball of truths, in the H1 norm"),
        ("length", "over which the truth varies"),
    ):
        command.add_argument(f"--{name}", type=float, metavar="NUMBER", help=what)
    command.set_defaults(run=run_new)


def _add_doctor(commands: Any) -> None:
    command = commands.add_parser(
        "doctor",
        help="say what is installed, and solve a small case with each solver",
        description="Say which versions, extras and solvers are installed, and solve a small case with each solver. "
        "Exit code 1 if one of them fails or differs from the others.",
    )
    command.set_defaults(run=run_doctor)


def run_doctor(options: argparse.Namespace) -> Ended:
    """What is installed, and whether it works."""
    from .doctor import diagnosis

    said, failed = diagnosis()
    return Ended(FAILED_CHECK if failed else SUCCESS, said, failed)


def run_new(options: argparse.Namespace) -> Ended:
    """A case file for somebody's own mesh and data."""
    from ..study.new_case import NewCase, write_new_case

    mesh = options.mesh or _asked("mesh file", "--mesh")
    data = options.data or _asked("data file (CSV: x, y, value, deviation)", "--data")
    case = NewCase(
        mesh=Path(mesh),
        data=Path(data),
        candidate=None if options.candidate is None else Path(options.candidate),
        parameter=options.parameter or "parameter",
        std=options.std,
        sensor_radius=options.sensor_radius or 0.0,
        radius=options.radius,
        length=options.length,
        title=options.title or "",
    )
    path, assumed = write_new_case(options.folder, case)
    return Ended(SUCCESS, [*assumed, f"run: femcert certify {path}"])


def _asked(what: str, flag: str) -> str:
    """An answer on the terminal."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise InputError(f"{flag} is missing, and there is no terminal to ask on")
    return input(f"{what}: ").strip()
