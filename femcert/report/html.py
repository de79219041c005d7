"""Self-contained HTML: templates of this folder, pictures inside the page, nothing loaded from anywhere."""

from __future__ import annotations

import base64
from functools import cache
from pathlib import Path
from typing import Any


@cache
def _environment() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(template: str, **content: Any) -> str:
    """A page from a template; everything that is put in is escaped."""
    return str(_environment().get_template(template).render(**content))


def data_uri(path: Path) -> str:
    """A PNG file as a ``data:`` address."""
    return "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode("ascii")
