"""Self-contained HTML: templates of this folder, pictures inside the page, nothing loaded from anywhere."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import Any

TEMPLATES = Path(__file__).parent / "templates"


@cache
def _environment() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["digits"] = digits

    def script(*names: str) -> Any:
        return Markup("".join((TEMPLATES / name).read_text(encoding="utf-8") for name in names))

    def policy(code: str) -> Any:
        """The hash of the one script of a page: no other script runs there."""
        hashed = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode("ascii")
        return Markup("; script-src 'sha256-{}'").format(hashed)

    environment.globals.update(script=script, policy=policy)
    return environment


def render(template: str, **content: Any) -> str:
    """A page from a template; everything that is put in is escaped."""
    return str(_environment().get_template(template).render(**content))


def digits(value: float | None, count: int) -> str:
    """A number with `count` significant digits, trailing zeros kept; thousands in full; a dash for None."""
    if value is None:
        return "-"
    if abs(value) >= 10.0**count:
        return f"{value:,.0f}"
    return f"{value:#.{count}g}".rstrip(".")


def data_uri(path: Path) -> str:
    """A PNG file as a ``data:`` address."""
    return "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode("ascii")
