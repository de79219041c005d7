"""The examples of a Markdown page, with the output that the page shows for them."""

import io
import re
import shlex
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from femcert.cli import main

# A block of code, and the block of text that follows it at once, if any: its output.
BLOCK = re.compile(r"^```(python|sh|toml)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.S | re.M)
# Residuals at rounding level differ between machines; everything else is the same to the printed digits.
ROUNDING = re.compile(r"\S*e-(?:0[89]|1\d)\b")


@dataclass(frozen=True)
class Example:
    """A block of code, its output as the page shows it (or None), and the line of the page that it begins at."""

    language: str
    code: str
    shown: str | None
    line: int

    def check(self, page, names):
        """Run it in the working directory, with the names that examples before it have made."""
        printed = io.StringIO()
        with redirect_stdout(printed):
            if self.language == "python":
                # Empty lines before it, so that a traceback has the lines of the page.
                exec(compile("\n" * (self.line - 1) + self.code, page, "exec"), names)
            elif self.language == "sh":
                for command in self.code.splitlines():
                    program, *arguments = shlex.split(command)
                    assert program == "femcert"
                    assert main(arguments) == 0
            else:
                # The first line is a comment with the name of the file.
                Path(self.code.splitlines()[0].removeprefix("# ")).write_text(self.code, encoding="utf-8")
        if self.shown is not None:
            assert settled(printed.getvalue()) == settled(self.shown), printed.getvalue()


def examples(text):
    """All examples of a page."""
    return [Example(*found.groups(), text.count("\n", 0, found.start()) + 2) for found in BLOCK.finditer(text)]


def settled(text):
    """The words of an output, without what differs between machines."""
    return ROUNDING.sub("~0", text).split()


def broken_links(path):
    """Relative links of a page that lead nowhere: no such file, or no such heading in a page."""
    text = path.read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:href|src)="([^"]+)"', text)
    return [target for target in targets if "://" not in target and not _leads_somewhere(path, target)]


def _leads_somewhere(page, target):
    name, _, heading = target.partition("#")
    path = page.parent / name if name else page
    if not heading or not path.is_file():
        return path.exists() and not heading
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.M)
    return heading in {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in headings}
