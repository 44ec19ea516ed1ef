r"""Draws of the posterior of a table, and the functions by which they explain each series.

Each draw of the sampler decomposes a series into functions, one for each of its columns,

.. math:: f_k \mid x_n \sim \mathcal{GP}, \qquad x_n = \mu_n 1 + \textstyle\sum_k f_k + \epsilon_n

(drawn by Matheron's rule).  Every statement is a share of draws: see `pattern_draws` for what
series do, and `statements` for the components of the best fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ..data.observations import Observations
from ..fit.fits import Fit, FitSettings
from ..forecast.forecasters import Member
from ..forecast.predictors import Predictors
from ..gp.lags import lag_grid
from ..gp.likelihoods import SeriesLikelihood
from ..gp.types import Floats, Integers
from ..kernels.grammar import Product, parse
from ..runtime.progress import Progress
from .forms import covariance_of
from .matching import shapes_of
from .sampler import SamplerSettings, is_pattern, sample_posterior
from .states import Draw

VISIBLE = 0.02
"""What has less of a series' variance cannot be seen in it."""

MOST_ASKED = 64
"""Of more series the fits speak: a sweep takes longer with every series."""

_BY_FITS = 60
"""Draws where the fits speak."""

_FORECASTING = 64
"""Draws that forecast: with twice as many nothing changes but the time."""

_LEVEL = parse("100 x C")
"""A level about which next to nothing is known, of series of unit variance."""

_WORK = 120_000
_FEWEST_TIMES, _MOST_TIMES = 60, 200
"""Of more times so many are drawn that series times squared times stay within `_WORK`."""

DISAGREE = 0.2
"""Two chains that differ by as much on a probability disagree."""


@dataclass(frozen=True)
class PosteriorDraws:
    """Draws of the posterior of a table, and what was looked at.

    Parameters
    ----------
    chains
        Draws of each chain.
    times
        Places of the times that were looked at.
    prior_share
        alpha / K of the Indian buffet process.
    """

    chains: tuple[tuple[Draw, ...], ...]
    times: Integers
    prior_share: float

    @classmethod
    def of(
        cls,
        observations: Observations,
        fits: Sequence[Fit],
        bases: Sequence[str],
        fit_settings: FitSettings,
        *,
        seed: int = 0,
        executor: Executor | None = None,
        progress: bool | Progress = False,
    ) -> PosteriorDraws:
        """Sample; parameters are those of `sampler.sample_posterior`."""
        settings = SamplerSettings()
        times = times_looked_at(observations)
        chains = sample_posterior(
            observations.at_times(times), fits, bases, fit_settings, settings,
            seed=seed, executor=executor, progress=progress,
        )  # fmt: skip
        return cls(chains, times, fit_settings.ibp(1).alpha / settings.num_columns)

    @property
    def draws(self) -> tuple[Draw, ...]:
        """Of all chains."""
        return tuple(draw for chain in self.chains for draw in chain)

    @property
    def split_r_hat(self) -> float:
        """Of the log likelihood, over the halves of the chains (Gelman et al. 2013)."""
        halves = [
            [draw.log_likelihood for draw in half]
            for chain in self.chains
            for half in (chain[: len(chain) // 2], chain[len(chain) - len(chain) // 2 :])
        ]
        values = np.array(halves)
        if values.size == 0 or values.shape[1] < 2:
            return 1.0
        within = max(float(values.var(axis=1, ddof=1).mean()), 1e-12)
        between = float(values.mean(axis=1).var(ddof=1))
        return float(np.sqrt((values.shape[1] - 1) / values.shape[1] + between / within))

    def to_json(self) -> dict[str, Any]:
        """Return everything in JSON's types."""
        chains = [
            [
                {
                    "kernels": [str(kernel) for kernel in draw.kernels],
                    "Z": draw.Z.astype(int).tolist(),
                    "log_heights": draw.log_heights.tolist(),
                    "log_noise": draw.log_noise.tolist(),
                    "log_likelihood": draw.log_likelihood,
                }
                for draw in chain
            ]
            for chain in self.chains
        ]
        return {"chains": chains, "times": self.times.tolist(), "prior_share": self.prior_share}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> PosteriorDraws:
        """Read what `to_json` wrote."""

        def draw(one: dict[str, Any]) -> Draw:
            log_noise, J = np.array(one["log_noise"], np.float64), len(one["kernels"])
            return Draw(
                tuple(map(parse, one["kernels"])),
                np.array(one["Z"], bool).reshape(len(log_noise), J),
                np.array(one["log_heights"], np.float64).reshape(len(log_noise), J),
                log_noise,
                one["log_likelihood"],
            )

        chains = tuple(tuple(map(draw, chain)) for chain in record["chains"])
        return cls(chains, np.array(record["times"], int), record["prior_share"])


def draws_by_fits(
    members: Sequence[Member], predictors: Predictors, seed: int = 0
) -> PosteriorDraws:
    """Draw fits by their weights, and rows of Z of each, where no chain was run."""
    rng = np.random.default_rng(seed)
    weights = np.array([member.weight for member in members])
    draws = []
    for m in np.sort(rng.choice(len(members), _BY_FITS, p=weights / weights.sum())):
        fit = members[m].fit
        pairs, weight = predictors.of(fit).posterior
        # A row of each series by its weight: the largest of log weights with Gumbel noise.
        keys = np.log(np.maximum(weight, 1e-300)) + rng.gumbel(size=len(weight))
        best = pairs.by_series(keys, -np.inf).argmax(axis=1)
        Z = pairs.configurations[pairs.starts + best].astype(bool)
        noise = np.zeros_like(fit.noise_variance) + fit.noise_variance
        kept = [k for k, kernel in enumerate(fit.kernels) if is_pattern(kernel)]
        for k in set(range(len(fit.kernels))) - set(kept):
            if str(fit.kernels[k].structure) == "WN":
                noise = noise + Z[:, k] * fit.kernels[k].variance
        kernels, own = tuple(fit.kernels[k] for k in kept), Z[:, kept]
        draws.append(Draw(kernels, own, np.zeros(own.shape), np.log(noise), fit.log_likelihood))
    return PosteriorDraws((tuple(draws),), times_looked_at(predictors.observations), 0.0)


def members_of(posterior: PosteriorDraws, share: float = 1.0) -> list[Member]:
    """Return some draws of all chains as fits that forecast, of equal weights that make a share.

    Heights are entries of Z, and a wide constant is the level that draws leave open.
    """
    places = np.linspace(0, len(posterior.draws) - 1, _FORECASTING).round().astype(int)
    return [
        Member(_as_fit(posterior.draws[t]), share * float(count) / _FORECASTING)
        for t, count in zip(*np.unique(places, return_counts=True), strict=True)
    ]


def _as_fit(draw: Draw) -> Fit:
    heights = np.where(draw.Z, np.exp(draw.log_heights), 0.0)
    Z = np.column_stack([heights, np.ones(len(heights))])
    return Fit(
        (*draw.kernels, _LEVEL), Z, np.sign(Z), np.empty((0, 2)), np.exp(draw.log_noise),
        draw.log_likelihood, np.nan, np.nan, 0.0,
    )  # fmt: skip


def times_looked_at(observations: Observations) -> Integers:
    """Places of all times, or of some drawn at random: an even grid would hide short cycles.

    They are those of the table, whatever the seed: two runs differ by their chains alone.
    """
    N, D = observations.Y.shape
    most = int(np.clip(np.sqrt(_WORK / N), _FEWEST_TIMES, _MOST_TIMES))
    if most >= D:
        return np.arange(D)
    inner = np.random.default_rng(0).choice(np.arange(1, D - 1), most - 2, replace=False)
    return np.sort(np.append(inner, [0, D - 1]))


def functions_of(
    posterior: PosteriorDraws, functions: DrawnFunctions, seed: int = 0
) -> list[Floats]:
    """Draw the functions of the columns of every draw, [T] arrays of [N, J, D]."""
    rng = np.random.default_rng(seed)
    return [functions.of(draw, rng) for draw in posterior.draws]


class DrawnFunctions:
    """Functions of columns, drawn given the data.

    Parameters
    ----------
    observations
        The data that were sampled.
    likelihood
        How a series scatters around its covariance.
    """

    def __init__(self, observations: Observations, likelihood: SeriesLikelihood) -> None:
        self._observations, self._likelihood = observations, likelihood
        self._grid = lag_grid(observations.x)
        self._seen = [np.flatnonzero(mask > 0.0) for mask in observations.mask]
        self._sds = observations.standard()[1]
        self._known: dict[Product, tuple[Floats, Floats]] = {}

    @property
    def x(self) -> Floats:
        """Scaled times of the functions, [D]."""
        return self._observations.x

    def of(self, draw: Draw, rng: np.random.Generator) -> Floats:
        """Draw the functions of all columns in all series, zero where they are not, [N, J, D]."""
        f = np.zeros((*draw.Z.shape, len(self._observations.x)))
        for n in range(len(f)):
            if len(owned := np.flatnonzero(draw.Z[n])):
                f[n, owned] = self.drawn(draw, n, owned, rng)
        return f

    def shares(self, f: Floats) -> Floats:
        """Return the share of each function [N, J, D] in the variance of the series, [N, J]."""
        shares = np.zeros(f.shape[:2])
        for n, seen in enumerate(self._seen):
            if (whole := float(self._sds[n]) ** 2) > 0.0:
                shares[n] = f[n][:, seen].var(axis=1) / whole
        return shares

    def drawn(self, draw: Draw, n: int, owned: Integers, rng: np.random.Generator) -> Floats:
        r"""Draw the functions of a series given its values, by Matheron's rule, [J, D].

        .. math:: f_k = g_k + C_k P \Big(x - \sum_j g_j - e\Big), \qquad
           P = V^{-1} - \frac{V^{-1} 1 1^\top V^{-1}}{1^\top V^{-1} 1}

        with g and e of the prior, their scale drawn given the data; P takes the level off.
        """
        seen = self._seen[n]
        noise = np.exp(draw.log_noise[n]) + self._observations.known_of(n, seen)
        y, d, D = self._observations.Y[n, seen], len(seen), len(self._observations.x)
        known = [self._known_of(draw.kernels[k]) for k in owned]
        heights = np.exp(draw.log_heights[n, owned])
        parts = np.array([h * C for h, (C, _) in zip(heights, known, strict=True)])
        V = parts.sum(axis=0)[np.ix_(seen, seen)] + noise * np.eye(d)
        factor = cho_factor(V, lower=True)
        w = cho_solve(factor, np.ones(d))

        def projected(residual: Floats) -> Floats:
            solved = cho_solve(factor, residual)
            return np.asarray(solved - w * (solved.sum() / w.sum()))

        scale = float(self._likelihood.draw_scales(float(y @ projected(y)), d - 1, 1, rng)[0])
        # The shape is the symmetric root of C, of unit length: its square has the trace of C.
        sizes = np.sqrt(scale * np.trace(parts, axis1=1, axis2=2))
        g = np.array([
            size * shape.reshape(D, D) @ rng.normal(size=D)
            for size, (_, shape) in zip(sizes, known, strict=True)
        ])  # fmt: skip
        e = np.sqrt(scale * noise) * rng.normal(size=d)
        b = projected(y - g[:, seen].sum(axis=0) - e)
        return np.asarray(g + parts[:, :, seen] @ b)

    def _known_of(self, kernel: Product) -> tuple[Floats, Floats]:
        """Covariance about its average, [D, D], and shape, [D * D]; most columns come again."""
        if kernel not in self._known:
            shape = shapes_of([kernel], self._observations.x)[0]
            self._known[kernel] = covariance_of(kernel, self._grid), shape
        return self._known[kernel]
