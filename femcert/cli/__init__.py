"""The command line: ``femcert`` and one of certify, refine, sweep, validate, new, doctor.

Exit code 0 on success, 1 if a check or a computation failed, 2 on bad input or files that cannot be written, 3 if
nothing could be decided, 130 and 143 if it was interrupted or terminated; one line on stderr says why, never a
traceback. A reader of the output that leaves early changes nothing; output that cannot be written is 2, with the
results in their place.
"""

from .main import build_parser, main

__all__ = ["build_parser", "main"]
