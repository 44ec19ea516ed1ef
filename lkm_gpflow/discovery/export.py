"""A discovery for other tools: several intervals, sample paths, and xarray."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..forecast.columns import SIDES, interval_columns, quantile_column
from ..gp.types import Floats
from ..runtime.text import whole_number
from ..runtime.threads import single_threaded

if TYPE_CHECKING:
    from .forecaster import Forecaster
    from .result import Discovery

_JITTER = 1e-10
"""In variances of the scaled series, for covariances of neighbouring times."""


def several_intervals(
    found: Forecaster, times: pd.Index, levels: Sequence[float], quantiles: Sequence[float]
) -> pd.DataFrame:
    """Predict with several intervals and quantiles.

    Parameters
    ----------
    found
        The discovery.
    times
        At which times.
    levels
        Probabilities of central intervals.
    quantiles
        Probabilities of not being above.

    Returns
    -------
    DataFrame with index (series, time); columns mean, sd, then lower90 and upper90 for the level
    0.9, then q0.05 for the quantile 0.05.

    Raises
    ------
    ValueError
        If a level or quantile is not between 0 and 1.
    """
    table = found.predict(times)[["mean", "sd"]]
    for level in levels:
        told = found.predict(times, level)
        for side, column in zip(SIDES, interval_columns(level), strict=True):
            table[column] = told[side]
    for q in quantiles:
        if q == 0.5:
            table[quantile_column(q)] = found.median(times)
        else:  # an end of an interval
            told = found.predict(times, abs(2.0 * q - 1.0))
            table[quantile_column(q)] = told["lower" if q < 0.5 else "upper"]
    return table


@single_threaded()
def sample_paths(found: Forecaster, times: pd.Index, count: int, seed: int) -> pd.DataFrame:
    r"""Draw paths of new observations, which hold together over time.

    Each path takes one of the fits that forecasts average over, by its weight w_m, and draws every
    series from

    .. math:: m_m + \sqrt{(v - 2) / \chi^2_v}\; e, \qquad
        e \sim N(0,\; c_m (S_m + E[s] \sigma_m^2 I))

    with mean and covariance of that fit at all times at once, E[s] the mean of the series' scale
    (one if it has none), c_m the factor of the fit's variances, and v the degrees of freedom of
    the forecast: a Student-t process (`tails`).  Series are independent given the fit.  Where
    logarithms are modelled, these are drawn, as normals.  By its weight a path takes the vector
    autoregression instead after the data, whose paths hold together over the series, too.

    Parameters
    ----------
    found
        The discovery.
    times
        At any times; of those within the data fits speak alone.
    count
        How many paths.
    seed
        Everything random follows from it.

    Returns
    -------
    DataFrame with index (series, time) and a column for each path, in the units of the series.
    """
    count, seed = whole_number(count, "samples", 1), whole_number(seed, "seed", 0)
    rng = np.random.default_rng(seed)
    members, table = found.counting_members, found.table
    x = table.scaled_times(times)
    weights = np.array([member.weight for member in members])
    counts = rng.multinomial(count, weights / weights.sum())
    degrees = found.degrees_of_freedom(x)
    drawn = []
    for member, own in zip(members, counts, strict=True):
        if own:
            predictor = found.predictors.of(member.fit)
            whole = np.ones((1, len(member.fit.kernels)))
            mean, covariance = (moment[:, 0] for moment in predictor.sums(x, whole, full_cov=True))
            noise = predictor.noise() + _JITTER
            factors = np.linalg.cholesky(covariance + noise[:, None, None] * np.eye(len(x)))
            wider = np.sqrt(found.variance_factors(x, member.spread)).T
            errors = factors @ rng.standard_normal((own, *mean.shape, 1))
            drawn.append(mean + _tails(degrees, own, rng) * wider * errors[..., 0])
    paths: Floats = rng.permutation(np.concatenate(drawn))
    is_ahead = found.shares_of_fits(x)[:, 0] < 1.0
    if is_ahead.any():
        others = np.flatnonzero(rng.random(count) >= found.share_of_fits)
        every = np.arange(paths.shape[1])
        later = _by_autoregression(found, x[is_ahead], len(others), rng)
        paths[np.ix_(others, every, np.flatnonzero(is_ahead))] = later
    paths = paths * table.scale[:, None] + table.location[:, None]
    paths = table.transforms.back(paths.swapaxes(1, 2)).swapaxes(1, 2)
    index = pd.MultiIndex.from_product([table.frame.columns, times], names=["series", "time"])
    columns = pd.RangeIndex(count, name="sample")
    return pd.DataFrame(paths.reshape(count, -1).T, index, columns)


def _by_autoregression(
    found: Forecaster, x: Floats, count: int, rng: np.random.Generator
) -> Floats:
    """Draw paths of the vector autoregression at scaled times after the data, [count, N, M]."""
    assert found.autoregression is not None
    paths = found.autoregression.samples(count, x, rng)
    centre = found.autoregression.observed(x)[0].T
    return np.asarray(centre + np.sqrt(found.variance_factors(x)).T * (paths - centre))


def _tails(degrees: Floats, count: int, rng: np.random.Generator) -> Floats:
    """Draw what makes normals Student-t of degrees [M, N] and the same variance, [count, N, M].

    Times of the same degrees share it: within the data, and after them.
    """
    factors = np.empty((count, *degrees.T.shape))
    for own in np.unique(degrees, axis=0):
        finite = np.where(np.isinf(own), 3.0, own)
        drawn = np.sqrt((finite - 2.0) / rng.chisquare(finite, (count, len(own))))
        drawn = np.where(np.isinf(own), 1.0, drawn)
        factors[:, :, (degrees == own).all(axis=1)] = drawn[:, :, None]
    return factors


def to_xarray(
    found: Discovery,
    horizon: int | pd.Index,
    levels: Sequence[float] = (0.5, 0.9),
    *,
    samples: int = 0,
    seed: int = 0,
) -> Any:
    """Return what was found as an xarray `Dataset`, which ``.to_netcdf(path)`` writes.

    Parameters
    ----------
    found
        The discovery.
    horizon
        Steps of forecast, or their times.
    levels
        Probabilities of the intervals.
    samples
        How many paths; see `sample_paths`.
    seed
        Of the paths.

    Returns
    -------
    Dataset
        Times of a time zone are in UTC, and the attribute `time_zone` names the zone.
        Variables: observed (series, time); transform (series); probability and structure (series,
        component); kernel (component); component_mean and component_sd (series, part, all_times),
        on the history and the forecast, where a part is a component (or what components of little
        weight add up to), in percent of series whose transform is "log";
        forecast_mean and forecast_sd (series, ahead); interval (level, side, series, ahead); if
        asked for, sample (draw, series, ahead).

    Raises
    ------
    ModuleNotFoundError
        If xarray is not installed.
    ValueError
        If a level is not between 0 and 1, or there is none.
    """
    if np.ndim(levels) == 0 or not len(levels):
        raise ValueError(f"expected a list of levels such as [0.5, 0.9], got {levels!r}")
    try:
        xarray = import_module("xarray")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "expected the library xarray: pip install '.[files]' in a clone of lkm_gpflow"
        ) from error
    frame, times = found.table.frame, found.times(horizon)
    N = frame.shape[1]
    told = several_intervals(found, times, levels, ())
    mean, sd = (told[moment].to_numpy().reshape(N, -1) for moment in ("mean", "sd"))
    interval = np.stack(
        [
            np.stack([told[end].to_numpy().reshape(N, -1) for end in interval_columns(level)])
            for level in levels
        ]
    )
    components = [found.components(series, horizon) for series in frame.columns]
    names = list(components[0].columns.unique(level=0))
    heights = np.stack([own.to_numpy().T.reshape(len(names), 2, len(own)) for own in components])
    variables = {
        "observed": (("series", "time"), frame.to_numpy().T),
        "transform": ("series", found.table.transforms.names),
        "probability": (("series", "component"), found.probabilities.to_numpy()),
        "structure": (("series", "component"), found.structure.to_numpy()),
        "kernel": ("component", [str(kernel) for kernel in found.kernels]),
        **{
            f"component_{moment}": (("series", "part", "all_times"), heights[:, :, i])
            for i, moment in enumerate(("mean", "sd"))
        },
        "forecast_mean": (("series", "ahead"), mean),
        "forecast_sd": (("series", "ahead"), sd),
        "interval": (("level", "side", "series", "ahead"), interval),
    }
    if samples:
        paths = sample_paths(found, times, samples, seed).to_numpy().T.reshape(samples, N, -1)
        variables["sample"] = (("draw", "series", "ahead"), paths)
    zone = getattr(frame.index, "tz", None)
    return xarray.Dataset(
        variables,
        coords={
            "series": found.table.names,
            "component": found.names,
            "part": names,
            "time": _in_utc(frame.index),
            "ahead": _in_utc(times),
            "all_times": _in_utc(frame.index.append(times)),
            "level": list(levels),
            "side": list(SIDES),
        },
        attrs={
            "bic": found.bic,
            "averaging": found.averaging,
            **({} if zone is None else {"time_zone": str(zone)}),
        },
    )


def _in_utc(times: pd.Index) -> Any:
    """Return an array of times without a zone, which files of netCDF do not know."""
    if isinstance(times, pd.DatetimeIndex) and times.tz is not None:
        times = times.tz_convert("UTC").tz_localize(None)
    return times.to_numpy()
