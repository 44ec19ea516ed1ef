"""One Gaussian process with one fixed kernel and no search: what the search must beat."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import gpflow
import numpy as np
import pandas as pd
import tensorflow as tf
import tensorflow_probability as tfp

from ..data.seasons import seasons_of
from ..data.tables import Table
from ..gp.types import Floats
from .independent import fit_each_gp
from .registry import register
from .scaled import ScaledForecast

_ROWS = 12
"""Rows in a unit of time where there is no season: the months of a year."""

_VARIANCE = -1.5
_SE, _PERIODIC = 1.1, 0.2
_MIXTURE = ((1.1, 1.6), (-0.7, 0.5))
"""Medians of the priors, as logarithms: of variances, of lengthscales, and of the lengthscale and
that of the cosine of each spectral component.  All sds are one."""


@register("gp-fixed")
@dataclass(frozen=True)
class FixedKernelGP:
    r"""The kernel of Corani, Benavoli and Zaffalon (2021), every series alone.

    *Time series forecasting with Gaussian processes needs priors*, ECML-PKDD 2021:

    .. math:: k = \mathrm{LIN} + \mathrm{C} + \mathrm{SE} + \mathrm{PER} + \sum_{q=1}^{2}
              \mathrm{SE}_q \times \cos_q

    with log-normal priors learnt by its authors on other tables (monthly and quarterly M3), time
    in seasons, and a maximum a posteriori estimate.  PER is left out where there is no season.
    Missing observations are left out.

    Parameters
    ----------
    season
        Steps in a season, see `seasons_of`; the longest of any series is that of all.
    restarts
        Starts: the medians of the priors, and draws from them.
    """

    season: int | None = None
    restarts: int = 2

    def fit(self, train: pd.DataFrame, *, seed: int) -> ScaledForecast:
        """Learn every series alone; starts are drawn by the seed."""
        table = Table.of(train)
        season = max(seasons_of(table, self.season))
        rows = season if season > 1 else _ROWS
        # Time from 0 to 1 becomes time in seasons.
        seasons = (len(table.frame) - 1) / rows
        kernel = fixed_kernel(season > 1)
        parameters = kernel.trainable_parameters
        medians = [float(np.log(parameter.numpy())) for parameter in parameters]
        rng = np.random.default_rng(seed)
        starts = [
            [math.exp(median + z) for median, z in zip(medians, shifts, strict=True)]
            for shifts in [
                np.zeros(len(parameters)),
                *rng.normal(size=(self.restarts - 1, len(parameters))),
            ]
        ]

        def start(series: int, number: int) -> None:
            for parameter, value in zip(parameters, starts[number], strict=True):
                parameter.assign(value)

        observations = table.observations
        stretched = replace(observations, x=(observations.x * seasons))
        models = fit_each_gp(
            stretched, kernel, start, self.restarts, noise_prior=_log_normal(_VARIANCE)
        )

        def predict(x: Floats) -> tuple[Floats, Floats]:
            moments = [model.predict_y(seasons * x[:, None]) for model in models]
            means, variances = zip(*moments, strict=True)
            return np.hstack(means), np.hstack(variances)

        return ScaledForecast(table, predict)


def fixed_kernel(seasonal: bool) -> gpflow.kernels.Kernel:
    """Return the kernel with its priors, at their medians; time is in seasons."""
    k = gpflow.kernels
    linear, constant, smooth = k.Linear(), k.Constant(), k.SquaredExponential()
    terms = [linear, constant, smooth]
    _give(smooth.lengthscales, _SE)
    if seasonal:
        periodic = k.Periodic(k.SquaredExponential(), period=1.0)
        gpflow.set_trainable(periodic.period, False)
        _give(periodic.base_kernel.lengthscales, _PERIODIC)
        _give(periodic.base_kernel.variance, _VARIANCE)
        terms.append(periodic)
    for term in (linear, constant, smooth):
        _give(term.variance, _VARIANCE)
    for lengthscale, cosine in _MIXTURE:
        envelope, wave = k.SquaredExponential(), k.Cosine()
        gpflow.set_trainable(wave.variance, False)
        _give(envelope.variance, _VARIANCE)
        _give(envelope.lengthscales, lengthscale)
        # GPflow's cosine is of 2 pi r / l, that of the paper's library of r / l.
        _give(wave.lengthscales, cosine + math.log(2.0 * math.pi))
        terms.append(k.Product([envelope, wave]))
    return k.Sum(terms)


def _give(parameter: gpflow.Parameter, log_median: float) -> None:
    parameter.prior = _log_normal(log_median)
    parameter.assign(math.exp(log_median))


def _log_normal(log_median: float) -> tfp.distributions.Distribution:
    return tfp.distributions.LogNormal(tf.constant(log_median, tf.float64), tf.ones((), tf.float64))
