"""How objects show themselves: one line as `repr`, at most eight with `print`, a table in notebooks. Never arrays."""

from __future__ import annotations

from html import escape
from typing import Any

MOST_LINES = 8


class Shown:
    """A class that says what its objects are in `summary`, name by name."""

    def summary(self) -> dict[str, str]:
        """What it is, in words: at most seven entries; the first one says the most."""
        raise NotImplementedError

    def __repr__(self) -> str:
        first = next(iter(self.summary().values()), "")
        return f"<{type(self).__name__}: {first}>"

    def __str__(self) -> str:
        rows = self.summary()
        width = max(map(len, rows), default=0)
        lines = [type(self).__name__, *(f"  {name.ljust(width)}  {words}" for name, words in rows.items())]
        return "\n".join(lines[:MOST_LINES])

    def _repr_html_(self) -> str:
        rows = self.summary().items()
        body = "".join(f"<tr><th>{escape(name)}</th><td>{escape(words)}</td></tr>" for name, words in rows)
        return f"<p><b>{escape(type(self).__name__)}</b></p><table><tbody>{body}</tbody></table>"


def in_brief(thing: Shown) -> str:
    """One line for the summary of something that has it as a part."""
    return repr(thing).strip("<>")


def of_basis(basis: Any) -> str:
    """Dofs, elements and mesh of a scikit-fem basis."""
    mesh, element = basis.mesh, type(basis.elem).__name__.removeprefix("Element")
    return f"{basis.N} dofs ({element}) on {mesh.nelements} cells of a {type(mesh).__name__}"
