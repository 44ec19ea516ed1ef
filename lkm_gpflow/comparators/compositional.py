"""Fast learning of kernel trees: no trace for each structure, analytic gradients in NumPy.

A tree is evaluated from its leaves up and differentiated from its root down.  Stationary parts
live on the different lags of the grid, of which a regular grid of D times has D, and are spread to
pairs of times where they meet parts that are not.  One value with its gradient takes well below a
millisecond for D = 120.

What is done with the covariance is up to a `Likelihood`, so that the same learning serves one
series or many that share a kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import gpflow
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import i0e, i1e

from .. import kernels
from ..config import Floats
from ..expressions import Factor, Kind, Product
from ..initialization import (
    VARIANCE,
    Proposer,
    hyperparameter_range,
    typical_step,
)
from ..kernels import ComponentKernel
from .grammar import Node, Sum, Term, is_stationary

_LAG_DIGITS = 13
"""Lags (in spans) that agree to so many decimals are one."""

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

# --- base kernels: values, and gradients as they are learnt (logarithms of positive values) -------

_Gradients: TypeAlias = Callable[[], tuple[Floats, ...]]


def _white(x: Floats, x2: Floats) -> tuple[Floats, _Gradients]:
    return np.asarray(x == x2, np.float64), tuple


def _constant(x: Floats, x2: Floats) -> tuple[Floats, _Gradients]:
    return np.ones_like(x - x2), tuple


def _linear(x: Floats, x2: Floats, location: float) -> tuple[Floats, _Gradients]:
    return (x - location) * (x2 - location), lambda: (2.0 * location - x - x2,)


def _squared_exponential(x: Floats, x2: Floats, lengthscale: float) -> tuple[Floats, _Gradients]:
    squared = np.square((x - x2) / lengthscale)
    k = np.exp(-0.5 * squared)
    return k, lambda: (k * squared,)


def _periodic(
    x: Floats, x2: Floats, period: float, lengthscale: float
) -> tuple[Floats, _Gradients]:
    """``k = (exp(a c) - I0(a)) / (exp(a) - I0(a))``, a = 1 / l^2, c = cos(2 pi r / p).

    Of both sides one is taken for small a, and both are divided by exp(a) for large ones, as in
    `kernels.ZeroMeanPeriodic`.
    """
    angle = 2.0 * np.pi * (x - x2) / period
    c, a = np.cos(angle), lengthscale**-2.0
    if a < 0.5:
        f, f_at_1, i1 = np.exp(a * c), math.exp(a), math.exp(a) * i1e(a)
        i0_minus_1 = sum((0.5 * a) ** (2 * j) / math.factorial(j) ** 2 for j in range(1, 8))
        below = math.expm1(a) - i0_minus_1
        k = (np.expm1(a * c) - i0_minus_1) / below
    else:
        f, f_at_1, i1 = np.exp(a * (c - 1.0)), 1.0, i1e(a)
        below = 1.0 - i0e(a)
        k = (f - i0e(a)) / below

    def gradients() -> tuple[Floats, ...]:
        by_a = (c * f - i1 - k * (f_at_1 - i1)) / below
        return a * f / below * np.sin(angle) * angle, -2.0 * a * by_a

    return k, gradients


def _random_walk(x: Floats, x2: Floats, start: float) -> tuple[Floats, _Gradients]:
    return np.maximum(np.minimum(x, x2) - start, 0.0), tuple


_BASES: dict[str, Callable[..., tuple[Floats, _Gradients]]] = {
    "WN": _white,
    "C": _constant,
    "LIN": _linear,
    "SE": _squared_exponential,
    "PER": _periodic,
    "RW": _random_walk,
}
"""The kernels of `kernels` once more, without TensorFlow and with their gradients."""

KNOWN_BASES = tuple(_BASES)
"""Base kernels that can be learnt here."""


def covariance(kernel: Sum, x: Floats, x2: Floats) -> Floats:
    """Covariances of a complete kernel at times that broadcast: [D, 1] and [1, D2] give [D, D2]."""
    total = np.zeros(np.broadcast_shapes(x.shape, x2.shape))
    for term in kernel.terms:
        value = np.full_like(total, term.variance)
        for node in term.factors:
            if isinstance(node, Sum):
                value *= covariance(node, x, x2)
            else:
                value *= _BASES[node.base.name](x, x2, *node.values)[0]
        total += value
    return total


def to_kernel(kernel: Sum, is_factor: bool = False) -> gpflow.kernels.Kernel:
    """Return the GPflow kernel of a complete, normalised tree.

    Parameters
    ----------
    kernel
        The tree.
    is_factor
        Whether it is a factor of a product: then its first weight is redundant, hence fixed.

    Raises
    ------
    ValueError
        If the kernel is zero, for which GPflow has none.
    """
    if not kernel.terms:
        raise ValueError("expected a kernel of at least one term, got the kernel that is zero")
    terms = []
    for term in kernel.terms:
        if term.variance is None:
            raise ValueError(f"expected a kernel with all its numbers, got {kernel}")
        terms.append(ComponentKernel([_gpflow_factor(n) for n in term.factors], term.variance))
    if is_factor:
        gpflow.set_trainable(terms[0].variance, False)
    return terms[0] if len(terms) == 1 else gpflow.kernels.Sum(terms)


def _gpflow_factor(node: Node) -> gpflow.kernels.Kernel:
    if isinstance(node, Sum):
        return to_kernel(node, is_factor=True)
    return kernels.to_kernel(Product((node,), 1.0)).factors[0]


# --- a structure on a grid ------------------------------------------------------------------------


class Grid:
    """Times with their different lags.

    Parameters
    ----------
    x
        Scaled times, [D], sorted.
    """

    def __init__(self, x: Floats) -> None:
        self.x = x
        self.step = typical_step(x)
        rows, columns = np.repeat(x, len(x)), np.tile(x, len(x))
        distances = np.abs(rows - columns)
        _, first, self._lag_of_pair = np.unique(
            distances.round(_LAG_DIGITS), return_index=True, return_inverse=True
        )
        lags = distances[first]
        self.lags, self.pairs = (lags, np.zeros_like(lags)), (rows, columns)

    def spread(self, by_lag: Floats) -> Floats:
        """From values by lag to values by pair of times, [D * D]."""
        return by_lag[self._lag_of_pair]

    def collect(self, by_pair: Floats) -> Floats:
        """Sums over all pairs of a lag: the transpose of `spread`."""
        return np.bincount(self._lag_of_pair, by_pair, len(self.lags[0])).astype(np.float64)


_Pull: TypeAlias = Callable[[Floats], list[float]]
"""From the gradient by covariances to that by the parameters, in their order."""


class TreeCovariance:
    """The covariance of a structure on a grid, as a function of its parameters.

    The parameters are those of `Sum.parameters`, in their order, the positive ones as logarithms.

    Parameters
    ----------
    kernel
        The structure; of its numbers only those that are not learnt matter.
    grid
        The times, D of them.
    """

    def __init__(self, kernel: Sum, grid: Grid) -> None:
        self._kernel = kernel
        self._grid = grid
        kinds = [kind for kind, _ in kernel.parameters]
        ranges = [VARIANCE if k is None else hyperparameter_range(k, grid.step) for k in kinds]
        self._is_log = np.array([k is None or k.positive for k in kinds], bool)
        self.lower = np.array([r.lower for r in ranges])
        self.upper = np.array([r.upper for r in ranges])

    def pack(self, kernel: Sum) -> Floats:
        """Parameters of a normalised kernel of this structure."""
        theta = np.array([value for _, value in kernel.parameters], np.float64)
        theta[self._is_log] = np.log(theta[self._is_log])
        return theta

    def unpack(self, theta: Floats) -> Sum:
        """Return the kernel with these parameters."""
        return self._kernel.with_parameters(self._values(theta))

    def _values(self, theta: Floats) -> list[float]:
        return np.where(self._is_log, np.exp(np.where(self._is_log, theta, 0.0)), theta).tolist()

    def __call__(self, theta: Floats) -> tuple[Floats, Callable[[Floats], Floats]]:
        """Return K, [D, D], and what turns a gradient by K, [D, D], into one by theta."""
        D = len(self._grid.x)
        k, pull = self._sum(self._kernel, iter(self._values(theta)), is_factor=False)
        if self._kernel.is_stationary:
            k = self._grid.spread(k)

        def gradient(G: Floats) -> Floats:
            flat = G.ravel()
            return np.array(pull(self._grid.collect(flat) if self._kernel.is_stationary else flat))

        return k.reshape(D, D), gradient

    def _sum(self, kernel: Sum, values: Iterator[float], is_factor: bool) -> tuple[Floats, _Pull]:
        points = self._points(kernel.is_stationary)
        total, pulls = np.zeros_like(points[0]), []
        for i, term in enumerate(kernel.terms):
            k, pull = self._term(term, values, is_redundant=is_factor and i == 0)
            k, pull = self._fit(k, pull, term.is_stationary, kernel.is_stationary)
            total += k
            pulls.append(pull)
        return total, lambda g: [value for pull in pulls for value in pull(g)]

    def _term(
        self, term: Term, values: Iterator[float], is_redundant: bool
    ) -> tuple[Floats, _Pull]:
        factors: list[Floats] = []
        pulls: list[_Pull] = []
        for node in term.factors:
            if isinstance(node, Sum):
                k, pull = self._sum(node, values, is_factor=True)
            else:
                k, pull = self._base(node, values)
            k, pull = self._fit(k, pull, is_stationary(node), term.is_stationary)
            factors.append(k)
            pulls.append(pull)
        variance = 1.0 if is_redundant else next(values)
        product = _product(factors, variance)

        def gradient(g: Floats) -> list[float]:
            found = []
            for j, pull in enumerate(pulls):
                found += pull(g * _product(factors[:j] + factors[j + 1 :], variance))
            return found if is_redundant else [*found, float(g @ product)]

        return product, gradient

    def _base(self, factor: Factor, values: Iterator[float]) -> tuple[Floats, _Pull]:
        numbers = (
            value if kind is Kind.ORIGIN else next(values)
            for (_, kind), value in zip(factor.base.parameters, factor.values, strict=True)
        )
        k, gradients = _BASES[factor.base.name](*self._points(factor.base.stationary), *numbers)
        return k, lambda g: [float(g @ by) for by in gradients()]

    def _points(self, is_stationary: bool) -> tuple[Floats, Floats]:
        return self._grid.lags if is_stationary else self._grid.pairs

    def _fit(
        self, k: Floats, pull: _Pull, is_stationary: bool, is_whole_stationary: bool
    ) -> tuple[Floats, _Pull]:
        """Bring a part to the points of the whole."""
        if is_stationary == is_whole_stationary:
            return k, pull
        return self._grid.spread(k), lambda g: pull(self._grid.collect(g))


def _product(factors: Sequence[Floats], variance: float) -> Floats:
    product = np.array(variance)
    for factor in factors:
        product = product * factor
    return product


# --- learning -------------------------------------------------------------------------------------


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
            2.0 * float(found.fun) + len(found.x) * math.log(self._likelihood.num_observed),
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
