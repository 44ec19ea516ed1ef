"""ABCD: a search over sums and products of base kernels, for every series alone.

Duvenaud, Lloyd, Grosse, Tenenbaum and Ghahramani, *Structure discovery in nonparametric regression
through compositional kernel search*, ICML 2013; Lloyd, Duvenaud, Grosse, Tenenbaum and Ghahramani,
*Automatic construction and natural-language description of nonparametric regression models*, AAAI
2014.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import gpflow
import numpy as np
import pandas as pd
from scipy.linalg import cho_solve, cholesky, lapack

from ..data.observations import Observations
from ..data.tables import Table
from ..fit.initialization import NOISE_VARIANCE, Proposer
from ..gp.types import LOG_2PI, Floats
from ..kernels.grammar import PAPER_BASES
from ..runtime.threads import single_threaded
from .compositional import Fit, Learner
from .grammar import Sum, expand
from .registry import register
from .scaled import ScaledForecast
from .tree_covariance import KNOWN_BASES, covariance, to_kernel

_SMALLEST_PIVOT = 1e-13
"""Of a covariance's Cholesky decomposition, relative to its largest variance."""


class SingleSeries:
    """One series, y ~ N(0, K + sigma^2 I).

    Its only parameter is log sigma^2, with a floor at 1e-5 of the variance of the series.

    Parameters
    ----------
    x, y
        Scaled times and values that were observed, [D].
    """

    def __init__(self, x: Floats, y: Floats) -> None:
        self.x, self.y = x, y
        self.num_observed = len(x)
        self.lower, self.upper = np.array([NOISE_VARIANCE.lower]), np.array([NOISE_VARIANCE.upper])
        self.is_noise = np.array([True])

    def draw(self, rng: np.random.Generator) -> Floats:
        """See `Likelihood.draw`: log-uniform between 0.01 and 1."""
        return rng.uniform(np.log(0.01), 0.0, size=1)

    def __call__(self, K: Floats, own: Floats) -> tuple[float, Callable[[], tuple[Floats, Floats]]]:
        """See `Likelihood.__call__`."""
        noise_variance = math.exp(own[0])
        V = K.copy()
        V.flat[:: len(V) + 1] += noise_variance
        L, failure = lapack.dpotrf(V, lower=1)
        # Rounding decides about smaller pivots, and with them about the likelihood.
        if failure or np.diag(L).min() ** 2 < _SMALLEST_PIVOT * np.diag(V).max():
            return -math.inf, lambda: (np.zeros_like(K), np.zeros(1))
        L_inverse, _ = lapack.dtrtri(L, lower=1)
        b = L_inverse.T @ (L_inverse @ self.y)
        value = -0.5 * (self.y @ b + len(b) * LOG_2PI) - np.log(np.diag(L)).sum()

        def gradients() -> tuple[Floats, Floats]:
            G = 0.5 * (np.outer(b, b) - L_inverse.T @ L_inverse)
            return G, np.array([noise_variance * np.trace(G)])

        return float(value), gradients


def search(learner: Learner, bases: Sequence[str], depth: int) -> list[Fit]:
    """Greedy search: expand the best kernel, keep the best of what that gives while BIC falls.

    Returns
    -------
    The fits of the path, from the kernel that is zero to the best.
    """
    path = [learner.noise_alone()]
    seen = {path[0].kernel.names}
    for _ in range(depth):
        candidates = [k for k in expand(path[-1].kernel, bases) if k.names not in seen]
        seen.update(kernel.names for kernel in candidates)
        if not candidates:
            break
        best = learner.compete(candidates, path[-1])
        if best.bic >= path[-1].bic:
            break
        path.append(best)
    return path


@dataclass(frozen=True)
class CompositionalFit:
    """The path of the search for a series, and its data.

    Parameters
    ----------
    x, y
        Scaled times and values that were observed, [D].
    path
        Accepted fits, the last the best.
    """

    x: Floats
    y: Floats
    path: tuple[Fit, ...]

    @property
    def kernel(self) -> Sum:
        """The kernel of scaled times that was found, with its numbers."""
        return self.path[-1].kernel

    @property
    def noise_variance(self) -> float:
        """Of the scaled series."""
        return float(np.exp(self.path[-1].own[0]))

    @property
    def model(self) -> gpflow.models.GPR:
        """The same as a GPflow model; a ValueError where no kernel was found."""
        return gpflow.models.GPR(
            (self.x[:, None], self.y[:, None]),
            kernel=to_kernel(self.kernel),
            noise_variance=self.noise_variance,
        )

    def predict(self, x: Floats) -> tuple[Floats, Floats]:
        """Means and variances (with noise) of new observations at scaled times x, [M] each."""
        V = covariance(self.kernel, self.x[:, None], self.x[None, :])
        factor = cholesky(V + self.noise_variance * np.eye(len(V)), lower=True), True
        cross = covariance(self.kernel, self.x[:, None], x[None, :])
        prior = covariance(self.kernel, x, x)
        explained = np.sum(cross * cho_solve(factor, cross), axis=0)
        mean = cross.T @ cho_solve(factor, self.y)
        return mean, np.maximum(prior - explained, 0.0) + self.noise_variance


@dataclass(frozen=True)
class CompositionalForecast(ScaledForecast):
    """The forecast of kernels that were found for each series alone.

    Parameters
    ----------
    fits
        What was found, by series.
    """

    fits: Mapping[str, CompositionalFit]

    @property
    def kernels(self) -> dict[str, str]:
        """The kernels by series, with numbers in the units of the table (times from its start)."""
        return {
            name: format(fit.kernel.change_units(self.table.span).scaled(scale**2), ".3g")
            for (name, fit), scale in zip(self.fits.items(), self.table.scale, strict=True)
        }


@register("abcd")
@dataclass(frozen=True)
class ABCD:
    """Automatic Bayesian Covariance Discovery: each series alone.

    The model of a series is y = f + noise, f ~ GP(0, k), with a kernel k of the grammar of
    `grammar.expand`.  The search starts from noise alone, and as long as BIC falls replaces the
    kernel by the best of those derived from it in a step, learnt by maximum likelihood.

    It departs from Lloyd et al. (2014) in that there are no change points, base kernels are those
    of this package, and the search looks no further when a step brings nothing.

    Parameters
    ----------
    depth
        Steps of the search at most.
    bases
        Names of the base kernels.
    restarts
        Random starts of every kernel, beside two from the numbers of the kernel it derives from.
    """

    depth: int = 4
    bases: tuple[str, ...] = PAPER_BASES
    restarts: int = 2

    def __post_init__(self) -> None:
        if self.depth < 1:
            raise ValueError(f"expected a depth of at least 1, got {self.depth}")
        if self.restarts < 0:
            raise ValueError(f"expected at least 0 restarts, got {self.restarts}")
        if not self.bases or set(self.bases) - set(KNOWN_BASES):
            raise ValueError(
                f"expected base kernels among {', '.join(KNOWN_BASES)}, got {self.bases}"
            )

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
        learner = Learner(SingleSeries(x, y), proposer, self.restarts, rng)
        return CompositionalFit(x, y, tuple(search(learner, self.bases, self.depth)))
