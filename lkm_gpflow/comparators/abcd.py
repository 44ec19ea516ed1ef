"""ABCD: a search over sums of products of base kernels, for every series alone.

Duvenaud, Lloyd, Grosse, Tenenbaum and Ghahramani, *Structure discovery in nonparametric regression
through compositional kernel search*, ICML 2013; Lloyd, Duvenaud, Grosse, Tenenbaum and Ghahramani,
*Automatic construction and natural-language description of nonparametric regression models*, AAAI
2014.

Base kernels, products and their derivatives are those of `lkm_gpflow.kernels`.  As in the search of
Lloyd et al. for interpretable kernels, products are multiplied out: (LIN + SE) x PER is the sum
LIN x PER + SE x PER, in which each term has its own numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..data.observations import Observations
from ..data.tables import Table
from ..fit.covariances import ProductComponents, components_at
from ..fit.initialization import NOISE_VARIANCE, Proposer, Ranges, typical_step
from ..fit.layout import Layout
from ..gp.lags import LagGrid, matrix
from ..gp.series import GaussianSeries
from ..gp.types import Floats
from ..kernels.grammar import PAPER_BASES, Factor, Product, base_kernel, expand, with_windows
from ..model.criterion import bic
from ..runtime.threads import single_threaded
from .lbfgs import minimise
from .protocol import ScaledForecast

_SMALLEST_PIVOT = 1e-13
"""Least pivot of a covariance, relative to its largest variance: rounding decides about smaller
ones, and with them about the likelihood."""

_DRAWS = 8  # A start is the likeliest of so many draws
_SHORT = 8  # iterations from every start

_ROUNDS = ((12, 30), (3, 200))
"""How many of the best go on, and for how many iterations; then again."""

_LESS_NOISE = (0.0, 1.0, 3.0)
"""By how much the logarithms of noise variances are lowered in a warm start."""

_JITTER = 0.3
"""Standard deviation of the noise on parameters (as they are learnt) of a jittered start."""


# --- the grammar ----------------------------------------------------------------------------------

Terms: TypeAlias = tuple[Product, ...]
"""A kernel: the sum of these products, in canonical order.  Without any it is zero."""


def canonical(products: Iterable[Product]) -> Terms:
    """Sort the terms of a sum; keep one of those whose variances alone can differ (C + C)."""
    kept: dict[object, Product] = {}
    for product in sorted(products, key=lambda product: product.sort_key):
        is_rigid = product.num_parameters == 1
        kept.setdefault(product.structure if is_rigid else len(kept), product)
    return tuple(kept.values())


def structure(terms: Terms) -> str:
    """Text without the numbers, which two kernels share if their structure is one."""
    return " + ".join(str(product.structure) for product in terms) or "0"


def num_parameters(terms: Terms) -> int:
    """Count the numbers that are learnt."""
    return sum(product.num_parameters for product in terms)


def neighbours(terms: Terms, bases: Sequence[str]) -> tuple[Terms, ...]:
    """All kernels that the grammar derives from one in a step (Lloyd et al. 2014, table 2).

    For every base kernel B and every subexpression S, S' (the whole, a term of the sum, factors of
    a product): S -> S + B, S -> S x B, S -> S x (B + C), S + S' -> S, S x S' -> S, S -> B, each
    multiplied out.  Numbers of factors that stay are kept, new ones are absent; of several ways to
    a structure the one that keeps most counts.  White noise alone is left out: every series has its
    own noise already.
    """
    found: dict[str, Terms] = {}
    for products in _derived(terms, bases):
        derived = canonical(products)
        if derived and not any(str(product.structure) == "WN" for product in derived):
            known = found.setdefault(structure(derived), derived)
            found[structure(derived)] = min(known, derived, key=_num_absent)
    found.pop(structure(terms), None)
    return tuple(found.values())


def _derived(terms: Terms, bases: Sequence[str]) -> Iterator[Sequence[Product]]:
    """All kernels of a step, as often as rules lead to them."""
    for name in with_windows(bases):
        fresh = Product((Factor(base := base_kernel(name), (None,) * len(base.parameters)),))
        yield *terms, fresh
        yield (fresh,)
        times = [] if base.is_window else [_times(product, fresh) for product in terms]
        whole = [product for product in times if product is not None]
        if len(whole) == len(terms):
            yield whole
            yield *terms, *(replace(product, variance=None) for product in whole)
    for i, term in enumerate(terms):
        others = terms[:i] + terms[i + 1 :]
        yield others
        for j in range(len(term.factors) if len(term.factors) > 1 else 0):
            yield *others, replace(term, factors=term.factors[:j] + term.factors[j + 1 :])
        for product in expand(term, bases)[1:]:
            is_fresh = not set(product.factors) & set(term.factors)
            yield *others, replace(product, variance=None if is_fresh else term.variance)
            # T -> T + B and T -> T x (B + C) for some of its factors T: the term stays.
            yield *terms, product


def _times(product: Product, other: Product) -> Product | None:
    """The product of two, with the variance of the first; None if the grammar forbids it."""
    try:
        return Product(product.factors + other.factors, product.variance)
    except ValueError:
        return None


def _num_absent(terms: Terms) -> int:
    values = [v for p in terms for v in (p.variance, *(v for f in p.factors for v in f.values))]
    return sum(value is None for value in values)


def covariance(terms: Terms, x: Floats) -> Floats:
    """Covariances of a complete kernel at times x, [D] to [D, D]."""
    return _matrix(terms, LagGrid(x))


def _matrix(terms: Terms, grid: LagGrid) -> Floats:
    total = np.zeros((len(grid.x), len(grid.x)))
    for component in components_at(terms, grid):
        total += component.matrix()
    return total


# --- learning: many short runs from drawn and inherited numbers, few long ones --------------------


class KernelLikelihood(Protocol):
    """Minus the log likelihood of what is observed of functions with a covariance K on a grid.

    It has parameters of its own (noise, scales: what is not in the kernel).
    """

    x: Floats  # times of the grid, [D]
    num_observed: int
    lower: Floats  # bounds of its own parameters, [P]
    upper: Floats
    is_noise: NDArray[np.bool_]  # which of them are logarithms of noise variances, [P]

    def draw(self, rng: np.random.Generator) -> Floats:
        """Draw values of its own parameters to start from, [P]."""

    def __call__(self, K: Floats, own: Floats) -> tuple[float, Callable[[], tuple[Floats, Floats]]]:
        """Return the value and its gradients, by K and by its own parameters, [P].

        The value is infinite where a covariance is not positive definite.  The gradient by K is a
        lower triangle [D, D] as of `GaussianSeries.lower_gradient`.
        """


class SingleSeries:
    """One series, y ~ N(0, K + sigma^2 I), at the scaled times x [D] at which it was observed.

    Its only parameter is log sigma^2, with a floor at 1e-5 of the variance of the series.
    """

    def __init__(self, x: Floats, y: Floats) -> None:
        self.x, self.y = x, y
        self.num_observed = len(x)
        self.lower, self.upper = np.array([NOISE_VARIANCE.lower]), np.array([NOISE_VARIANCE.upper])
        self.is_noise = np.array([True])

    def draw(self, rng: np.random.Generator) -> Floats:
        """See `KernelLikelihood.draw`: log-uniform between 0.01 and 1."""
        return rng.uniform(np.log(0.01), 0.0, size=1)

    def __call__(self, K: Floats, own: Floats) -> tuple[float, Callable[[], tuple[Floats, Floats]]]:
        """See `KernelLikelihood.__call__`."""
        noise_variance = math.exp(own[0])
        V = matrix(len(K))
        V += K
        V.T.reshape(-1)[:: len(V) + 1] += noise_variance
        largest = V.diagonal().max()
        series = GaussianSeries(V, self.y, overwrite=True)
        value = series.log_density
        if not V.diagonal().min() ** 2 >= _SMALLEST_PIVOT * largest:  # NaN where it failed
            value = math.nan
        if math.isnan(value):
            return math.inf, lambda: (np.zeros_like(K), np.zeros(1))

        def gradients() -> tuple[Floats, Floats]:
            G = series.lower_gradient()
            return G, np.array([noise_variance * G.trace()])

        return -value, gradients


@dataclass(frozen=True)
class KernelFit:
    """A kernel that was learnt."""

    kernel: Terms  # complete
    own: Floats  # parameters of the likelihood
    log_likelihood: float  # of all observations
    # ``-2 log likelihood + (p + P) log(number of observed values)``, p parameters of the kernel, P
    # of the likelihood.
    bic: float


class KernelLearner:
    """Learns kernels for one likelihood: many short runs, of which the best go on.

    Starting values are drawn by the proposer; every structure gets `restarts` random starts beside
    two warm ones.
    """

    def __init__(
        self,
        likelihood: KernelLikelihood,
        proposer: Proposer,
        restarts: int,
        rng: np.random.Generator,
    ) -> None:
        self._likelihood = likelihood
        self._proposer = proposer
        self._restarts = restarts
        self._rng = rng
        self._grid = LagGrid(likelihood.x)
        self._step = typical_step(likelihood.x)

    def noise_alone(self) -> KernelFit:
        """Fit the kernel that is zero."""
        return self.run((), self._likelihood.draw(self._rng), 100)

    def compete(self, candidates: Sequence[Terms], parent: KernelFit) -> KernelFit:
        """Return the fit of lowest BIC, of kernels derived from the parent's.

        Short runs from all starts of all candidates; the best go on, and the best of these again.
        """
        fits = [fit for kernel in candidates for fit in self.begin(kernel, parent)]
        for keep, max_iterations in _ROUNDS:
            fits = [self.run(fit.kernel, fit.own, max_iterations) for fit in _promising(fits, keep)]
        return min(fits, key=lambda fit: fit.bic)

    def begin(self, kernel: Terms, parent: KernelFit) -> list[KernelFit]:
        """Short runs from the parent's numbers, from these jittered, and from random ones.

        Each starts at the likeliest of a few draws of the numbers that are absent.  A new part may
        explain what passed for noise, so warm starts are tried with less of it.
        """
        likelihood, rng = self._likelihood, self._rng
        less = [0.0, *rng.choice(_LESS_NOISE, _DRAWS)]
        lowered = [parent.own - amount * likelihood.is_noise for amount in less]
        warm = self._likeliest(zip(self.complete(kernel, len(less)), lowered, strict=True))
        starts = [warm, (self._jittered(warm[0]), warm[1])]
        bare = tuple(product.structure for product in kernel)
        for _ in range(self._restarts):
            own = [likelihood.draw(rng) for _ in range(_DRAWS)]
            starts.append(self._likeliest(zip(self.complete(bare, _DRAWS), own, strict=True)))
        return [self.run(*start, _SHORT) for start in starts]

    def run(self, kernel: Terms, own: Floats, max_iterations: int) -> KernelFit:
        """L-BFGS-B from a complete kernel, within the ranges of all parameters."""
        layout = Layout(kernel, num_series=0)
        free = ~layout.is_fixed
        theta, count = layout.pack(np.empty(0)), int(free.sum())

        def loss(values: Floats) -> tuple[float, Floats]:
            theta[free] = values[:count]
            components = ProductComponents(layout, self._grid, theta)
            K = np.zeros((len(self._grid.x), len(self._grid.x)))
            for component in components.parts:
                K += component.matrix()
            value, gradients = self._likelihood(K, values[count:])
            if not math.isfinite(value):
                return value, np.zeros_like(values)
            G, by_own = gradients()
            by_lag = self._grid.collect(G)
            pulled = components.pull_back(
                [by_lag if part.is_stationary else G for part in components.parts]
            )
            return value, np.concatenate([pulled[free], by_own])

        lower, upper = self._likelihood.lower, self._likelihood.upper
        if kernel:
            ranges = Ranges.of(layout, self._step)
            lower = np.concatenate([ranges.lower[free], lower])
            upper = np.concatenate([ranges.upper[free], upper])
        start = np.clip(np.concatenate([theta[free], own]), lower, upper)
        found = minimise(loss, start, max_iterations, np.column_stack([lower, upper]))
        theta[free] = found.values[:count]
        num_learnt = num_parameters(kernel) + len(own)
        return KernelFit(
            layout.unpack(theta)[0],
            found.values[count:],
            -found.loss,
            bic(-found.loss, num_learnt, self._likelihood.num_observed),
        )

    def complete(self, kernel: Terms, count: int) -> list[Terms]:
        """Draw the numbers that are absent, `count` times; see `Proposer.propose`."""
        if not kernel:
            return [()] * count
        drawn = []
        for term in kernel:
            proposed = self._proposer.propose(term, count, self._rng)
            if term.variance is not None:
                proposed = [replace(each, variance=term.variance) for each in proposed]
            drawn.append(proposed * count if len(proposed) < count else proposed)
        return list(zip(*drawn, strict=True))

    def _jittered(self, kernel: Terms) -> Terms:
        layout = Layout(kernel, num_series=0)
        theta = layout.pack(np.empty(0))
        theta[~layout.is_fixed] += _JITTER * self._rng.normal(size=int((~layout.is_fixed).sum()))
        return layout.unpack(theta)[0]

    def _likeliest(self, starts: Iterable[tuple[Terms, Floats]]) -> tuple[Terms, Floats]:
        return min(
            starts, key=lambda start: self._likelihood(_matrix(start[0], self._grid), start[1])[0]
        )


def _promising(fits: Sequence[KernelFit], count: int) -> list[KernelFit]:
    """Return the best by BIC, at most two of a structure."""
    chosen: list[KernelFit] = []
    for fit in sorted(fits, key=lambda fit: fit.bic):
        if sum(structure(fit.kernel) == structure(other.kernel) for other in chosen) < 2:
            chosen.append(fit)
    return chosen[:count]


def greedy_search(learner: KernelLearner, bases: Sequence[str], depth: int) -> list[KernelFit]:
    """Expand the best kernel, and keep the best of its neighbours, while BIC falls.

    Returns the fits of the path, from the kernel that is zero to the best.
    """
    path = [learner.noise_alone()]
    seen = {structure(path[0].kernel)}
    for _ in range(depth):
        candidates = [k for k in neighbours(path[-1].kernel, bases) if structure(k) not in seen]
        seen.update(structure(kernel) for kernel in candidates)
        if not candidates:
            break
        best = learner.compete(candidates, path[-1])
        if best.bic >= path[-1].bic:
            break
        path.append(best)
    return path


def check_search(depth: int, restarts: int, bases: Sequence[str]) -> None:
    """Raise a ValueError if a setting of the search is wrong."""
    if depth < 1:
        raise ValueError(f"expected a depth of at least 1, got {depth}")
    if restarts < 0:
        raise ValueError(f"expected at least 0 restarts, got {restarts}")
    if not bases:
        raise ValueError("expected names of base kernels, got none")
    for name in with_windows(bases):
        base_kernel(name)


# --- what is found --------------------------------------------------------------------------------


def kernel_text(terms: Terms, span: float, variance: float) -> str:
    """Write a kernel of scaled times, times a variance, with times in the units of the table."""
    products = (product.change_units(span) for product in terms)
    scaled = (replace(each, variance=(each.variance or 1.0) * variance) for each in products)
    return " + ".join(format(product, ".3g") for product in scaled) or "0"


@dataclass(frozen=True)
class CompositionalFit:
    """The path of the search for a series, and its data."""

    # Scaled times and values that were observed, [D].
    x: Floats
    y: Floats
    path: tuple[KernelFit, ...]  # accepted fits, the last the best

    @property
    def kernel(self) -> Terms:
        """The kernel of scaled times that was found, with its numbers."""
        return self.path[-1].kernel

    @property
    def noise_variance(self) -> float:
        """The noise variance of the scaled series."""
        return float(np.exp(self.path[-1].own[0]))

    def predict(self, x: Floats) -> tuple[Floats, Floats]:
        """Means and variances (with noise) of new observations at scaled times x, [M] each."""
        D = len(self.x)
        K = covariance(self.kernel, np.concatenate([self.x, x]))
        series = GaussianSeries(K[:D, :D] + self.noise_variance * np.eye(D), self.y)
        mean, variance = series.predict(K[:D, D:], K.diagonal()[D:])
        return mean, np.maximum(variance, 0.0) + self.noise_variance


@dataclass(frozen=True)
class CompositionalForecast(ScaledForecast):
    """The forecast of kernels that were found for each series alone."""

    fits: Mapping[str, CompositionalFit]  # the fit of every series, by name

    @property
    def kernels(self) -> dict[str, str]:
        """The kernels by series, with numbers in the units of the table (times from its start)."""
        return {
            name: kernel_text(fit.kernel, self.table.span, scale**2)
            for (name, fit), scale in zip(self.fits.items(), self.table.scale, strict=True)
        }


@dataclass(frozen=True)
class ABCD:
    """Automatic Bayesian Covariance Discovery: each series alone.

    The model of a series is y = f + noise, f ~ GP(0, k), with a kernel k of the grammar of
    `neighbours`.  The search starts from noise alone, and as long as BIC falls replaces the kernel
    by the best of those derived from it in a step, learnt by maximum likelihood.

    It departs from Lloyd et al. (2014) in that base kernels are those of this package, change
    points ("CP" among the bases) are off by default, and the search ends when a step brings
    nothing.
    """

    depth: int = 4  #: Steps of the search at most
    bases: tuple[str, ...] = PAPER_BASES  #: Names of the base kernels
    #: Random starts of every kernel, beside two from the numbers of the kernel it derives from.
    restarts: int = 2

    def __post_init__(self) -> None:
        check_search(self.depth, self.restarts, self.bases)

    def fit(self, train: pd.DataFrame, *, seed: int) -> CompositionalForecast:
        """Search a kernel for every series; its draws do not depend on the other series."""
        table = Table.of(train)
        observations = table.observations
        with single_threaded():
            fits = {
                name: self._fit_series(observations, n, np.random.default_rng([seed, n]))
                for n, name in enumerate(table.names)
            }

        def predict(x: Floats) -> tuple[Floats, Floats]:
            means, variances = zip(*(fit.predict(x) for fit in fits.values()), strict=True)
            return np.column_stack(means), np.column_stack(variances)

        return CompositionalForecast(table, predict, fits)

    def _fit_series(
        self, observations: Observations, n: int, rng: np.random.Generator
    ) -> CompositionalFit:
        seen = observations.mask[n] > 0.0
        x, y = observations.x[seen], observations.Y[n, seen]
        proposer = Proposer.of(Observations(x, y[None, :], np.ones((1, len(x)))))
        learner = KernelLearner(SingleSeries(x, y), proposer, self.restarts, rng)
        return CompositionalFit(x, y, tuple(greedy_search(learner, self.bases, self.depth)))
