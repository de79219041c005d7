"""The command line in a test."""

import pytest

from femcert.cli import main


def leaves(*arguments):
    """The exit code of what the parser itself ends: help, versions, wrong options."""
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    return end.value.code
