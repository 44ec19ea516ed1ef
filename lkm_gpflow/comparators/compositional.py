"""Learning of kernel trees: many short runs from drawn and inherited numbers, few long ones.

What is done with the covariance is up to a `Likelihood`, so that the same learning serves one
series or many that share a kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from ..fit.initialization import Proposer
from ..gp.types import Floats
from ..kernels.grammar import Factor, Product
from ..model.criterion import bic
from .grammar import Sum, Term
from .tree_covariance import Grid, TreeCovariance, covariance

_FAILED = 1e15
"""Loss where a covariance is not positive definite: the line search goes back."""

_POOL = 64
"""Draws for each base kernel, from which all starts choose."""

_DRAWS = 8
"""Of so many draws the likeliest is started from."""

_SHORT = 8
"""Iterations from every start."""

_ROUNDS = ((12, 30), (3, 200))
"""How many of the best go on, and for how many iterations; then again."""

_LESS_NOISE = (0.0, 1.0, 3.0)
"""By how much the logarithms of noise variances are lowered in a warm start."""

_LOG_VARIANCES = (math.log(0.03), math.log(3.0))
"""Between these the mean variance of a new term is drawn."""

_JITTER = 0.3
"""Standard deviation of the noise on parameters (as they are learnt) of a jittered start."""


class Likelihood(Protocol):
    """What is observed of functions with a covariance K on a grid.

    Parameters
    ----------
    x
        The times of the grid, [D].
    num_observed
        How many values were observed.
    lower, upper
        Bounds of its own parameters (noise, scales: what is not in the kernel), [P].
    is_noise
        Which of them are logarithms of noise variances, [P].
    """

    x: Floats
    num_observed: int
    lower: Floats
    upper: Floats
    is_noise: NDArray[np.bool_]

    def draw(self, rng: np.random.Generator) -> Floats:
        """Draw values of its own parameters to start from, [P]."""

    def __call__(self, K: Floats, own: Floats) -> tuple[float, Callable[[], tuple[Floats, Floats]]]:
        """Log likelihood, and its gradients by K, [D, D], and by its own parameters, [P].

        The value is minus infinity where a covariance is not positive definite.
        """


@dataclass(frozen=True)
class Fit:
    """A kernel that was learnt.

    Parameters
    ----------
    kernel
        Complete and normalised.
    own
        Parameters of the likelihood.
    log_likelihood
        Of all that was observed.
    bic
        ``-2 log likelihood + (p + P) log(number of observed values)``, p parameters of the kernel
        without redundant variances, P of the likelihood.
    """

    kernel: Sum
    own: Floats
    log_likelihood: float
    bic: float


class Learner:
    """Learns kernels for one likelihood: many short runs, of which the best go on.

    Parameters
    ----------
    likelihood
        What is observed.
    proposer
        Draws starting values from what the data suggest.
    restarts
        Random starts of a structure, beside two warm ones.
    rng
        Source of all randomness.
    """

    def __init__(
        self, likelihood: Likelihood, proposer: Proposer, restarts: int, rng: np.random.Generator
    ) -> None:
        self._likelihood = likelihood
        self._proposer = proposer
        self._restarts = restarts
        self._rng = rng
        self._grid = Grid(likelihood.x)
        self._pool: dict[str, list[Factor]] = {}

    def noise_alone(self) -> Fit:
        """Fit the kernel that is zero."""
        return self.run(Sum(), self._likelihood.draw(self._rng), 100)

    def compete(self, candidates: Sequence[Sum], parent: Fit) -> Fit:
        """Return the fit of lowest BIC, of kernels derived from the parent's.

        Short runs from all starts of all candidates; the best go on, and the best of these again.
        """
        fits = [fit for kernel in candidates for fit in self.begin(kernel, parent)]
        for keep, max_iterations in _ROUNDS:
            fits = [self.run(fit.kernel, fit.own, max_iterations) for fit in _promising(fits, keep)]
        return min(fits, key=lambda fit: fit.bic)

    def begin(self, kernel: Sum, parent: Fit) -> list[Fit]:
        """Short runs from the parent's numbers, from these jittered, and from random ones.

        Each starts at the likeliest of a few draws of what is absent.  A new part may explain what
        passed for noise, so warm starts are tried with less of it.
        """
        noise = self._likelihood.is_noise
        lowered = [parent.own - less * noise for less in self._rng.choice(_LESS_NOISE, _DRAWS)]
        warm = self._likeliest([(self.complete(kernel), own) for own in (parent.own, *lowered)])
        starts = [warm, self._jittered(*warm)]
        for _ in range(self._restarts):
            draws = [
                (self.complete(kernel.structure), self._likelihood.draw(self._rng))
                for _ in range(_DRAWS)
            ]
            starts.append(self._likeliest(draws))
        return [self.run(*start, _SHORT) for start in starts]

    def run(self, kernel: Sum, own: Floats, max_iterations: int) -> Fit:
        """L-BFGS-B from a complete, normalised kernel, within the ranges of all parameters."""
        tree = TreeCovariance(kernel, self._grid)
        count = len(tree.lower)

        def loss(values: Floats) -> tuple[float, Floats]:
            K, by_theta = tree(values[:count])
            value, gradients = self._likelihood(K, values[count:])
            if not math.isfinite(value):
                return _FAILED, np.zeros_like(values)
            G, by_own = gradients()
            return -value, -np.concatenate([by_theta(G), by_own])

        lower = np.concatenate([tree.lower, self._likelihood.lower])
        upper = np.concatenate([tree.upper, self._likelihood.upper])
        found = minimize(
            loss,
            np.clip(np.concatenate([tree.pack(kernel), own]), lower, upper),
            jac=True,
            method="L-BFGS-B",
            bounds=np.column_stack([lower, upper]),
            options={"maxiter": max_iterations, "maxfun": 2 * max_iterations},
        )
        return Fit(
            tree.unpack(found.x[:count]),
            found.x[count:],
            -float(found.fun),
            bic(-float(found.fun), len(found.x), self._likelihood.num_observed),
        )

    def complete(self, kernel: Sum) -> Sum:
        """Draw the numbers that are absent.

        Shapes from what the data suggest; variances such that the mean variance of a term over
        the observed times is log-uniform between 0.03 and 3 (series have unit variance).
        """

        def shape(factor: Factor) -> Factor:
            return self._drawn(factor) if None in factor.values else factor

        def weight(term: Term, is_redundant: bool) -> float:
            if term.variance is not None:
                return term.variance
            unit = Sum((replace(term, variance=1.0),))
            mean = covariance(unit, self._grid.x, self._grid.x).mean()
            wanted = 1.0 if is_redundant else math.exp(self._rng.uniform(*_LOG_VARIANCES))
            return wanted / max(float(mean), 1e-9)

        return kernel.fill(shape, weight).normalised

    def _drawn(self, factor: Factor) -> Factor:
        name = factor.base.name
        if name not in self._pool:
            # One call for many: a call costs a thousand times a draw.
            drawn = self._proposer.propose(Product((factor,)), _POOL, self._rng)
            self._pool[name] = [product.factors[0] for product in drawn]
        return self._pool[name][self._rng.integers(_POOL)]

    def _jittered(self, kernel: Sum, own: Floats) -> tuple[Sum, Floats]:
        tree = TreeCovariance(kernel, self._grid)
        theta = tree.pack(kernel)
        return tree.unpack(theta + _JITTER * self._rng.normal(size=len(theta))), own

    def _likeliest(self, starts: Sequence[tuple[Sum, Floats]]) -> tuple[Sum, Floats]:
        def log_likelihood(start: tuple[Sum, Floats]) -> float:
            tree = TreeCovariance(start[0], self._grid)
            return self._likelihood(tree(tree.pack(start[0]))[0], start[1])[0]

        return max(starts, key=log_likelihood)


def _promising(fits: Sequence[Fit], count: int) -> list[Fit]:
    """Return the best by BIC, at most two of a structure."""
    chosen: list[Fit] = []
    for fit in sorted(fits, key=lambda fit: fit.bic):
        if sum(fit.kernel.names == other.kernel.names for other in chosen) < 2:
            chosen.append(fit)
    return chosen[:count]
