"""A network from sensor values to coordinates of the admissible class, trained on simulated data."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from ..checks import Array, number, real_array
from ..checks import count as whole
from ..errors import InputError
from ..problem.base import Problem, check_problem
from ..problem.candidate import Candidate
from ..problem.data import Data
from ..problem.fingerprint import check_fingerprint, fingerprint
from .torch import array_of, recording, tensor
from .training import Record, Trainer

Sampler = Callable[[int, np.random.Generator], Any]
# What np.load raises for a missing, damaged or foreign file.
_READ_ERRORS = (OSError, ValueError, TypeError, KeyError, EOFError, RuntimeError, MemoryError, BadZipFile, zlib.error)
_NAMES = ("middle_in", "size_in", "middle_out", "size_out", "linear", "first", "bias", "last")
# Which class and which sensors it was trained for.
_MADE_FOR = ("box", "coordinates", "sensors")


class NeuralOperator:
    """A data-driven reconstruction map, ``c = A y + W tanh(V y + b)`` in normalized values. Call it as a solver.

    `fit` starts from the linear map A that is best in the mean square, trains all weights, and keeps the best. It uses
    no physics beyond its training data, so it is accurate only where these resemble the data at hand.
    It keeps a fingerprint of the class and the sensors that it was trained for, also in its file, and refuses others.

    Parameters
    ----------
    width
        Of the hidden layer.
    name
        Of its candidates.
    """

    def __init__(self, *, width: int = 64, name: str = "operator") -> None:
        self.width, self.name = whole(width, "width"), str(name)
        self.record: Record | None = None
        self._arrays: dict[str, Array] = {}
        self._made_for: dict[str, Array] = {}

    @recording()
    def fit(
        self,
        problem: Problem,
        *,
        sampler: Sampler,
        count: int = 1000,
        noise: float = 0.0,
        steps: int = 500,
        rate: float = 1e-3,
        seed: int = 0,
        quiet: bool = False,
    ) -> NeuralOperator:
        """Train on simulated data; returns itself, with the losses in ``record``.

        Parameters
        ----------
        sampler
            ``sampler(count, rng)`` draws coordinates of the class, ``(count, dimension)``.
        count
            Number of simulated reconstructions.
        noise
            Relative noise of the simulated data, as in ``problem.simulate``.
        steps, rate
            Of Adam, on all samples at once; the learning rate falls tenfold.
        seed
            Of samples, noise and weights.
        """
        rng = np.random.default_rng(whole(seed, "seed", least=0))
        c = _samples(problem, sampler, whole(count, "count", least=2), rng)
        clean = _simulated(problem, c)
        scale = number(noise, "noise", least=0.0) * np.linalg.norm(clean, axis=1, keepdims=True)
        y = clean + scale / np.sqrt(clean.shape[1]) * rng.standard_normal(clean.shape)
        start = _initial(y, c, self.width, rng)
        trained = {name: tensor(start[name]) for name in _NAMES}
        inputs = tensor((y - start["middle_in"]) / start["size_in"])
        wanted = tensor((c - start["middle_out"]) / start["size_out"])

        def misfit() -> Any:
            hidden = (inputs @ trained["first"] + trained["bias"]).tanh()
            return ((inputs @ trained["linear"] + hidden @ trained["last"] - wanted) ** 2).mean()

        variables = [trained[name] for name in _NAMES[4:]]
        trainer = Trainer({"misfit": misfit}, {}, variables, seed=seed)
        steps, rate = whole(steps, "steps", least=0), number(rate, "rate", above=0.0)
        self.record = trainer.run(adam=steps, lbfgs=0, rate=rate, quiet=quiet, keep_best=True)
        self._arrays = {name: array_of(values) for name, values in trained.items()}
        self._made_for = fingerprint(problem)
        return self

    def coefficients(self, values: Any) -> Array:
        """Coordinates for sensor values ``(m,)`` or rows of them."""
        if not self._arrays:
            raise InputError("the operator is not trained; call fit(problem, sampler=...) or load(path)")
        w, y = self._arrays, real_array(values, "values")
        if y.ndim not in (1, 2) or y.shape[-1] != w["middle_in"].size:
            raise InputError(f"values has shape {y.shape}; the operator was trained for {w['middle_in'].size} sensors")
        inputs = (y - w["middle_in"]) / w["size_in"]
        result = inputs @ w["linear"] + np.tanh(inputs @ w["first"] + w["bias"]) @ w["last"]
        return np.asarray(w["middle_out"] + w["size_out"] * result)

    @property
    def mean_values(self) -> Array:
        """Mean of the training data, ``(m,)``: something to put in for a sensor that is lost."""
        if not self._arrays:
            raise InputError("the operator is not trained; call fit(problem, sampler=...) or load(path)")
        return self._arrays["middle_in"].copy()

    def __call__(self, problem: Problem, data: Data) -> Candidate:
        """The candidate ``B c`` with the state that the problem's own solver gives it.

        Raises
        ------
        InputError
            The class or the sensors of the problem are not those of the training, as on another mesh.
        """
        c = self.coefficients(problem.check_data(data).values)
        if c.size != problem.parameters.dimension:
            expected = f"the problem's class has {problem.parameters.dimension}"
            raise InputError(f"the operator gives {c.size} coordinates; {expected}")
        check_fingerprint(problem, self._made_for, "the operator")
        return Candidate.from_coefficients(problem, c, name=self.name)

    def save(self, path: str | Path) -> None:
        """Write the weights and the fingerprint as plain arrays to an ``.npz`` file that `load` reads."""
        if not self._arrays:
            raise InputError("the operator is not trained; there is nothing to save")
        arrays: dict[str, Any] = {**self._arrays, **self._made_for}
        file = _npz_path(path)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            np.savez_compressed(file, **arrays)
        except OSError as error:
            raise InputError(f"cannot write {path}: {error.strerror or error}") from None

    @classmethod
    def load(cls, path: str | Path, *, name: str = "operator") -> NeuralOperator:
        """An operator that was saved. No pickled object is ever loaded; PyTorch is not needed."""
        arrays = _read(_npz_path(path))
        result = cls(width=arrays["bias"].size, name=name)
        result._made_for = {name: arrays.pop(name) for name in _MADE_FOR}
        result._arrays = arrays
        return result


def _samples(problem: Problem, sampler: Any, size: int, rng: np.random.Generator) -> Array:
    check_problem(problem)
    if not callable(sampler):
        raise InputError(f"sampler is a {type(sampler).__name__}; expected a callable sampler(count, rng)")
    c = real_array(sampler(size, rng), "the samples")
    expected = (size, problem.parameters.dimension)
    if c.shape != expected:
        raise InputError(f"the sampler returned shape {c.shape}; expected {expected}")
    return c


def _simulated(problem: Problem, coefficients: Array) -> Array:
    """Exact data, a row for each sample."""
    if problem.forward is not None:
        return np.asarray(coefficients @ problem.forward.matrix.T + problem.forward.offset)
    fields = [problem.parameters.field(c) for c in coefficients]
    return np.array([problem.predict(problem.solve(q), q) for q in fields])


def _initial(y: Array, c: Array, width: int, rng: np.random.Generator) -> dict[str, Array]:
    """Normalization, the best linear map, and a hidden layer that does not contribute yet."""
    inputs, middle_in, size_in = _normalized(y)
    outputs, middle_out, size_out = _normalized(c)
    first = rng.standard_normal((y.shape[1], width)) / np.sqrt(y.shape[1])
    return {
        "middle_in": middle_in,
        "size_in": size_in,
        "middle_out": middle_out,
        "size_out": size_out,
        "linear": np.linalg.lstsq(inputs, outputs, rcond=None)[0],
        "first": first,
        "bias": np.zeros(width),
        "last": np.zeros((width, c.shape[1])),
    }


def _normalized(values: Array) -> tuple[Array, Array, Array]:
    middle, size = values.mean(axis=0), values.std(axis=0)
    # Values that never vary carry nothing; they must not be divided by zero.
    size = np.where(size > 1e-12 * max(float(np.abs(values).max()), 1e-300), size, 1.0)
    return (values - middle) / size, middle, size


def _read(path: Path) -> dict[str, Array]:
    try:
        with path.open("rb") as file:
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise ValueError("it holds a single array")
            found = sorted(archive.files)
            arrays = {name: archive[name] for name in (*_NAMES, *_MADE_FOR) if name in found}
    except _READ_ERRORS as error:
        raise InputError(f"{path} cannot be read as an .npz archive of plain arrays: {error}") from None
    if found == sorted(_NAMES):
        raise InputError(f"{path} does not say which class it was trained for; train and save the operator anew")
    if found != sorted((*_NAMES, *_MADE_FOR)):
        raise InputError(f"{path} holds {found}; expected the arrays of a saved operator, {sorted(_NAMES)}")
    arrays = {name: real_array(values, f"{name} in {path}") for name, values in arrays.items()}
    m, k, width = (arrays[name].size for name in ("middle_in", "middle_out", "bias"))
    shapes = ((m,), (m,), (k,), (k,), (m, k), (m, width), (width,), (width, k))
    for name, shape in zip(_NAMES, shapes, strict=True):
        if arrays[name].shape != shape:
            raise InputError(f"{name} in {path} has shape {arrays[name].shape}; expected {shape}")
    if not all(arrays[name].ndim == 2 for name in _MADE_FOR):
        raise InputError(f"{path} holds a fingerprint of its class that is no table; expected one from save")
    if not (arrays["size_in"].min(initial=1.0) > 0.0 and arrays["size_out"].min(initial=1.0) > 0.0):
        raise InputError(f"{path} holds a normalization that is not positive")
    return arrays


def _npz_path(path: Any) -> Path:
    if not isinstance(path, (str, Path)) or Path(path).suffix != ".npz":
        raise InputError(f"path is {path!r}; expected a file name that ends in .npz")
    return Path(path)

