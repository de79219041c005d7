"""Completion for shells: ``femcert --print-completion bash`` prints a script to source. Needs the package shtab."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from .streams import say

SHELLS = ("bash", "zsh")


class PrintCompletion(argparse.Action):
    """Prints the script for a shell and leaves."""

    def __init__(self, option_strings: list[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, choices=SHELLS, metavar="SHELL", help=options.get("help"))

    def __call__(self, parser: argparse.ArgumentParser, _: Any, shell: Any, *__: Any) -> None:
        try:
            import shtab
        except ImportError:
            parser.error("--print-completion needs the package shtab: pip install 'femcert[completion]'")
        for action in _actions(parser):
            if action.metavar in ("CASE.toml", "DIR"):
                action.complete = shtab.FILE if action.metavar == "CASE.toml" else shtab.DIRECTORY  # type: ignore[attr-defined]
        say(shtab.complete(parser, shell))
        parser.exit()


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """All options and arguments, those of the commands included."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)
