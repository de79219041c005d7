"""Adam, then L-BFGS, with a record of what they did."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

from tqdm import tqdm

from ..errors import SolveError
from .torch import load_torch, one_thread

# Iterations of L-BFGS between two looks at the loss, and pairs of vectors that it remembers.
BLOCK, MEMORY = 20, 50
# Adam's rate falls by this factor from the first step to the last.
FALL = 0.1


@dataclass(frozen=True)
class Record:
    """What a training did.

    Attributes
    ----------
    seed
        Of weights, points and (for an operator) data.
    steps
        Steps after which the loss was recorded, the first being 0.
    losses
        The terms of the loss after these steps, by name, not weighted.
    total
        The weighted sums.
    gradient_norm
        Euclidean norm of the gradient of the (dimensionless) loss at the end.
    seconds
        Wall clock.
    """

    seed: int
    steps: tuple[int, ...]
    losses: dict[str, tuple[float, ...]]
    total: tuple[float, ...]
    gradient_norm: float
    seconds: float


class Trainer:
    """Minimizes a weighted sum of terms over tensors, recording as it goes.

    Parameters
    ----------
    terms, weights
        By name; a term without a weight has weight 1.
    variables
        Tensors; they are changed in place.
    """

    def __init__(self, terms: dict[str, Any], weights: dict[str, float], variables: list[Any], *, seed: int) -> None:
        self._terms, self._weights, self._variables, self._seed = terms, weights, variables, seed
        self._steps: list[int] = []
        self._losses: dict[str, list[float]] = {name: [] for name in terms}
        self._total: list[float] = []
        self._best: list[Any] = []

    def run(self, *, adam: int, lbfgs: int, rate: float, quiet: bool, keep_best: bool = False) -> Record:
        """Train, or raise a `SolveError` where the loss is not finite or larger than it was.

        With `keep_best` the variables end as they were at the least recorded loss, perhaps where they began.
        """
        start = time.perf_counter()
        for variable in self._variables:
            variable.requires_grad_(True)
        try:
            with one_thread(), _bar(adam + lbfgs, quiet) as bar:
                self._note(0)
                self._adam(adam, rate, bar)
                self._lbfgs(adam, lbfgs, bar)
                if keep_best:
                    self._go_back()
                gradient = self._gradient_norm()
        finally:
            for variable in self._variables:
                variable.requires_grad_(False)
        if not math.isfinite(gradient) or (self._total[-1] > self._total[0] and not keep_best):
            came = f"the loss went from {self._total[0]:.3g} to {self._total[-1]:.3g}, its gradient is {gradient:.3g}"
            raise SolveError(f"training diverged: {came}; lower rate= or check the data")
        losses = {name: tuple(values) for name, values in self._losses.items()}
        seconds = time.perf_counter() - start
        return Record(self._seed, tuple(self._steps), losses, tuple(self._total), gradient, seconds)

    def _loss(self) -> Any:
        return sum(self._weights.get(name, 1.0) * term() for name, term in self._terms.items())

    def _note(self, step: int) -> float:
        with load_torch().no_grad():
            values = {name: float(term()) for name, term in self._terms.items()}
        total = sum(self._weights.get(name, 1.0) * value for name, value in values.items())
        self._steps.append(step)
        self._total.append(total)
        for name, value in values.items():
            self._losses[name].append(value)
        if not math.isfinite(total):
            came = f"the loss is {total} after {step} steps"
            raise SolveError(f"training diverged: {came}; lower rate= or check the data")
        if total <= min(self._total):
            self._best = [variable.detach().clone() for variable in self._variables]
        return total

    def _go_back(self) -> None:
        with load_torch().no_grad():
            for variable, best in zip(self._variables, self._best, strict=True):
                variable.copy_(best)

    def _adam(self, steps: int, rate: float, bar: Any) -> None:
        if not steps:
            return
        torch = load_torch()
        optimizer = torch.optim.Adam(self._variables, lr=rate)
        decay = torch.optim.lr_scheduler.ExponentialLR(optimizer, FALL ** (1.0 / steps))
        for step in range(1, steps + 1):
            optimizer.zero_grad()
            self._loss().backward()
            optimizer.step()
            decay.step()
            bar.update()
            if step % BLOCK == 0 or step == steps:
                bar.set_postfix(loss=f"{self._note(step):.2e}", refresh=False)

    def _lbfgs(self, before: int, steps: int, bar: Any) -> None:
        torch = load_torch()
        optimizer = torch.optim.LBFGS(
            self._variables,
            max_iter=BLOCK,
            history_size=MEMORY,
            tolerance_grad=0.0,
            tolerance_change=0.0,
            line_search_fn="strong_wolfe",
        )

        def closure() -> Any:
            optimizer.zero_grad()
            loss = self._loss()
            loss.backward()
            return loss

        done = 0
        while done < steps:
            optimizer.param_groups[0]["max_iter"] = min(BLOCK, steps - done)
            optimizer.step(closure)
            done += min(BLOCK, steps - done)
            bar.update(min(BLOCK, before + done - bar.n))
            loss = self._note(before + done)
            bar.set_postfix(loss=f"{loss:.2e}", refresh=False)
            if loss == self._total[-2]:
                # No step was found: rounding.
                break

    def _gradient_norm(self) -> float:
        torch = load_torch()
        parts = torch.autograd.grad(self._loss(), self._variables, materialize_grads=True)
        return float(torch.cat([part.reshape(-1) for part in parts]).norm())


def _bar(total: int, quiet: bool) -> Any:
    """A progress bar on a terminal, nothing elsewhere."""
    return tqdm(total=total, desc="training", unit="step", leave=False, disable=True if quiet else None)
