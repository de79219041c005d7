"""Stages of a computation and how long they take: said through ``logging``, and added up for whoever collects them.

The logger is called ``femcert`` and quiet unless the user, or ``--verbose``, gives it a handler.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, field
from time import perf_counter

LOGGER = logging.getLogger("femcert")
LOGGER.addHandler(logging.NullHandler())


@dataclass
class Timings:
    """Seconds by stage. What a stage inside another one takes is counted for the inner one only, so that they add up.

    Attributes
    ----------
    seconds
        By name, in the order in which the stages ended first.
    began
        Called with the name of every stage that begins and is not inside another one.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    began: Callable[[str], None] | None = None


@dataclass
class _Frame:
    """A stage that runs: how deep inside of others, and what the stages inside of it took."""

    depth: int
    inner: float = 0.0


_collector: ContextVar[Timings | None] = ContextVar("femcert_timings", default=None)
_frame: ContextVar[_Frame | None] = ContextVar("femcert_stage", default=None)


@contextmanager
def collected(began: Callable[[str], None] | None = None) -> Iterator[Timings]:
    """Add up the stages that run inside of the ``with`` block, in this thread."""
    timings = Timings(began=began)
    token = _collector.set(timings)
    try:
        yield timings
    finally:
        _collector.reset(token)


def context_apart() -> Context:
    """A copy of this context for work that may outlive its caller: its stages are not counted."""
    context = copy_context()
    for variable in (_collector, _frame):
        context.run(variable.set, None)
    return context


@contextmanager
def stage(name: str, detail: str = "") -> Iterator[None]:
    """Say and count that the block is a stage of the computation.

    Its start is logged at level DEBUG; its end with the duration at INFO, at DEBUG for a stage inside another one.
    """
    parent = _frame.get()
    frame = _Frame(0 if parent is None else parent.depth + 1)
    indent, text = "  " * frame.depth, f"{name} ({detail})" if detail else name
    token = _frame.set(frame)
    LOGGER.debug("%s%s ...", indent, text)
    timings = _collector.get()
    if timings is not None and timings.began is not None and parent is None:
        timings.began(name)
    start = perf_counter()
    try:
        yield
    finally:
        elapsed = perf_counter() - start
        _frame.reset(token)
        if parent is not None:
            parent.inner += elapsed
        LOGGER.log(logging.DEBUG if frame.depth else logging.INFO, "%s%s: %.3f s", indent, text, elapsed)
        if timings is not None:
            timings.seconds[name] = timings.seconds.get(name, 0.0) + elapsed - frame.inner
