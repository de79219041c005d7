"""The three ways femcert refuses: wrong input, failed solve, missing guarantee."""


class FemcertError(Exception):
    """Base class of every error that femcert raises on purpose."""


class InputError(FemcertError, ValueError):
    """What came in cannot be used; the message says what came and what was expected."""


class MissingPackageError(InputError):
    """A package that is asked for is not installed; the message names it."""


class DatasetError(FemcertError):
    """A file of measured data is not on this machine and cannot be downloaded; the message says what to do."""


class SolveError(FemcertError):
    """A factorization, an eigensolver or an iteration failed, or missed its accuracy check."""


class UncertifiedError(FemcertError):
    """An ingredient of a certificate is missing; no number is given in its place."""


class CoarseMeshError(UncertifiedError):
    """What is asked for cannot be certified on this mesh, but on a finer one; the message says how fine."""


class CandidateError(UncertifiedError):
    """A candidate has no certificate because of what it is itself; another one may have one by the same rule."""


class InconsistentError(UncertifiedError):
    """The evidence contradicts itself: no parameter of the class explains the data within the noise level.

    Attributes
    ----------
    level
        The smallest noise level at which some parameter of the class explains the data, from below.
    """

    def __init__(self, message: str, level: float = float("nan")) -> None:
        super().__init__(message)
        self.level = level
