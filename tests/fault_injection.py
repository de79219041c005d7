"""Kills, full disks and places that cannot be written to, for the commands that write results.

Whatever happens, a result file is whole and belongs to one run: the former one or the new one, never to both, and the
page, which comes last, never stands without the files that it speaks of.
"""

from __future__ import annotations

import hashlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from femcert.cli import main

ENDINGS = {".html": b"</html>", ".png": b"IEND\xaeB`\x82"}
LAST = "report.html"
MINUTES = 600


class Fault(AssertionError):
    """A result that is half-written, mixed or wrong."""


@dataclass
class Command:
    """A femcert command with two sets of results, called the former and the new one.

    Attributes
    ----------
    former, new
        Arguments without ``--out``.
    references
        File names with digests, as an undisturbed run wrote them; None for a file that two runs write differently.
    """

    former: list[str]
    new: list[str]
    references: dict[str, dict[str, str | None]] = field(default_factory=dict)
    seconds: float = 0.0
    results: Path = Path()

    def learn(self, folder: Path) -> None:
        """Run both undisturbed, the new one twice: in a process of its own, which is timed, and in this one."""
        self.results = folder
        start = time.monotonic()
        self.finish("new", folder / "new")
        self.seconds = time.monotonic() - start
        for which, out in (("former", folder / "former"), ("new", folder / "again")):
            if main([*getattr(self, which), "--quiet", "--out", str(out)]):
                raise Fault(f"the {which} run failed")
        self.references = {which: dict(digests(folder / which)) for which in ("former", "new")}
        again = digests(folder / "again")
        for reference in self.references.values():
            for name in reference:
                if name in again and again[name] != self.references["new"].get(name):
                    reference[name] = None

    def start(self, which: str, out: Path, *, limit: int | None = None) -> subprocess.Popen[str]:
        """Run in a session of its own; `limit`: the largest file in bytes."""

        def limited() -> None:
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        command = [sys.executable, "-m", "femcert.cli", *getattr(self, which), "--quiet", "--out", str(out)]
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
            preexec_fn=limited, env={**os.environ, "MPLBACKEND": "Agg"},
        )  # fmt: skip

    def finish(self, which: str, out: Path) -> None:
        """Run to the end, which must be a good one."""
        process = self.start(which, out)
        _, stderr = process.communicate(timeout=MINUTES)
        if process.returncode:
            raise Fault(f"exit {process.returncode}: {stderr}")


def commands(folder: Path, names: tuple[str, ...] = ("certify", "validate")) -> dict[str, Command]:
    """The commands with the files that they need."""
    made = {}
    if "certify" in names:
        case = _example(folder)
        made["certify"] = Command(["certify", str(case.with_name("former.toml"))], ["certify", str(case)])
    if "validate" in names:
        made["validate"] = Command(["validate", "--only", "poisson"], ["validate", "--only", "stochastic"])
    return made


def _example(folder: Path) -> Path:
    from femcert.study.case.example import write_example

    case = write_example(folder / "case")
    text = case.read_text(encoding="utf-8")
    case.with_name("former.toml").write_text(text.replace('kind = "exact"', 'kind = "residual"'), encoding="utf-8")
    return case


def visible(out: Path) -> Iterator[Path]:
    """Result files, not the drafts."""
    # Not by rglob, which stumbles over drafts that vanish meanwhile.
    for folder, inner, names in os.walk(out):
        inner[:] = [name for name in inner if not name.startswith(".")]
        yield from (Path(folder, name) for name in sorted(names) if not name.startswith("."))


def digests(out: Path) -> dict[str, str]:
    return {path.relative_to(out).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in visible(out)}


def check_whole(command: Command, out: Path, allowed: tuple[str, ...]) -> str:
    """Which run the results belong to: ``"former"``, ``"new"``, ``"either"`` or ``"none"``.

    Raises
    ------
    Fault
        They are of no run, or of both.
    """
    found, owners = digests(out) if out.exists() else {}, set(allowed)
    for name, digest in found.items():
        path = out / name
        if not path.read_bytes().rstrip().endswith(ENDINGS.get(path.suffix, b"")):
            raise Fault(f"{path} is not whole")
        runs = {run for run in allowed if command.references[run].get(name, "") in (digest, None)}
        if not runs:
            raise Fault(f"{path} is of no run")
        owners &= runs
    if not owners:
        raise Fault(f"{out} mixes results of two runs: {sorted(found)}")
    complete = {run for run in owners if set(command.references[run]) <= set(found)}
    if LAST in found and not complete:
        raise Fault(f"{out} has a page without the results it speaks of: {sorted(found)}")
    if not found:
        return "none"
    return "either" if len(owners) > 1 else owners.pop()


def killed(command: Command, out: Path, rng: np.random.Generator, *, over: bool, watch: bool) -> str:
    """Kill -9 a run at a random time, or (`watch`) as soon as its results begin to move; what it left.

    `over`: it began in a directory with the results of the former run.
    """
    if over:
        shutil.copytree(command.results / "former", out)
    before = digests(out) if out.exists() else {}
    wait = float(rng.uniform(0.02, 1.1)) * command.seconds
    process, start = command.start("new", out), time.monotonic()
    moment = 0.0
    while process.poll() is None and time.monotonic() - start < (10.0 * command.seconds if watch else wait):
        if watch and out.exists() and {path.relative_to(out).as_posix() for path in visible(out)} != set(before):
            # Somewhere in the few milliseconds in which files are moved.
            moment = moment or time.monotonic() + float(rng.uniform(0.0, 0.003))
            if time.monotonic() >= moment:
                break
        time.sleep(0.0 if watch else 0.005)
    # With its workers, if it has any.
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=MINUTES)
    return check_whole(command, out, ("former", "new") if over else ("new",))


def check_next(command: Command, out: Path) -> None:
    """The run after a kill ends well, with all results and nothing left of the one that was killed."""
    command.finish("new", out)
    if check_whole(command, out, ("new",)) != "new" or set(digests(out)) != set(command.references["new"]):
        raise Fault(f"{out} is not complete after the next run: {sorted(digests(out))}")
    left = [path.name for path in out.iterdir() if path.name.startswith(".draft")]
    if left:
        raise Fault(f"{out} still has {left}")


def refused(command: Command, out: Path, limit: int | None = None) -> None:
    """A run that cannot write: exit 2, one line that is no traceback, and no page."""
    process = command.start("new", out, limit=limit)
    stdout, stderr = process.communicate(timeout=MINUTES)
    if process.returncode != 2 or stdout or stderr.count("\n") != 1 or "Traceback" in stderr:
        raise Fault(f"exit {process.returncode}, {stdout!r}, {stderr!r}")
    if out.is_dir():
        check_whole(command, out, ("new",))
        if LAST in digests(out):
            raise Fault(f"a page in {out} although the run failed")


def can_mount(folder: Path) -> bool:
    try:
        with mounted(folder / "probe", "size=64k"):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[Any]:
    """A small disk in memory, for who may mount one; yields a function that mounts it anew."""
    folder.mkdir(parents=True, exist_ok=True)

    def mount(options: str) -> None:
        arguments = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        subprocess.run(arguments, check=True, capture_output=True)

    mount(options)
    try:
        yield mount
    finally:
        subprocess.run(["umount", str(folder)], check=True, capture_output=True)
