"""What others wrote as a page may show it: letters that would turn or break the text around them become escapes."""

from __future__ import annotations

import re

# Control characters but for spaces, what turns the direction of the text that follows, and halves of letters, such as
# bytes of a file name that are not UTF-8.
_HIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """The text with such letters by their numbers, as Python writes them."""
    return _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
