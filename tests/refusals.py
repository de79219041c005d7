"""Many calls that are refused, each with a word of its message."""

import pytest


def refused(error, calls):
    """Each call raises an error of this type whose message has the words that stand before it, a regular expression."""
    for words, call in calls.items():
        with pytest.raises(error, match=words):
            call()
