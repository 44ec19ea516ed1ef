"""Where a forecast comes from: its mean and variance, divided among components."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pandas as pd

from ..discovery.result import Discovery
from ..forecast.forecasters import Member
from ..gp.types import Floats
from ..sharing.consensus import OTHERS

LEVEL, NOISE, DISAGREEMENT = "level", "noise", "disagreement of forecasters"
"""Parts that are no component: the series' average (mean alone), its noise, and the variance of the
means of the forecasters that it averages over: fits and the vector autoregression."""

WALKS = "walks added for safety"  # the part of fits that the search did not find

AUTOREGRESSION = "vector autoregression"
"""The part that comes from what all series did last (`search.autoregression`)."""

OTHER_TITLES = {OTHERS: "other patterns"} | {
    part: part for part in (NOISE, WALKS, AUTOREGRESSION, DISAGREEMENT)
}
"""Names for readers of parts that are no component."""

Parts: TypeAlias = dict[tuple[str, str], Floats]
"""What each part has of a moment, [M, N], by (moment, part)."""

_LITTLE = 0.02

_NEVER_LITTLE = (NOISE, WALKS, AUTOREGRESSION, DISAGREEMENT)


def attribute(found: Discovery, horizon: int | pd.Index) -> pd.DataFrame:
    r"""Divide the forecast of every series among its components.

    The mean is a sum already.  A component's part of the variance is its covariance with the whole,

    .. math:: \mathrm{Var}\Big[\sum_k f_k\Big] = \sum_k \mathrm{Cov}\Big[f_k, \sum_l f_l\Big],

    the only division that treats all components alike (their Shapley values); a component that
    offsets others has a negative share.  Where the forecast averages over several fits, what
    they say of a consensus component is added, constants to the level, and what is left is the
    disagreement of the forecasters.  The walks that were added for safety (`search.stacking`) are
    one part, as are the vector autoregression and components that few fits have, "others".

    Where logarithms are modelled, components multiply.  With m the mean of the logarithm, of which
    component k has m_k and the level l, they are given

    .. math:: \frac{e^m - e^l}{m - l}\, m_k

    of the mean (the logarithmic mean Divisia index, Ang 2004), what a mean lies above the median
    goes to the level, and the variance is divided as that of the logarithm is.

    Returns
    -------
    DataFrame with index (series, time) and columns (moment, part), moments "mean" and "variance",
    in the units of the series and their squares.  The parts of a row add up to the mean and the
    squared sd of `Discovery.forecast`.
    """
    times = found.times(horizon)
    x, ensemble = found.table.scaled_times(times), found.ensemble
    parts: Parts = {}

    def add(moment: str, part: str, values: Floats) -> None:
        parts[moment, part] = parts.get((moment, part), 0.0) + values

    shape = (len(times), found.table.frame.shape[1])
    add("mean", LEVEL, np.broadcast_to(found.table.location, shape))
    whole = []
    for member, weight in zip(ensemble.members, ensemble.weights(x)[:, :, None], strict=True):
        if not isinstance(member, Member):
            if weight.any():
                mean, variance = member.moments(x, found.predictors)
                mean, variance = mean * found.table.scale, variance * found.table.scale**2
                add("mean", AUTOREGRESSION, weight * mean)
                add("variance", AUTOREGRESSION, weight * variance * ensemble.variance_factors(x))
                whole.append((weight, mean))
            continue
        constant = [str(kernel.structure) == "C" for kernel in member.fit.kernels]
        is_level = np.array(constant, bool) & (found.averaging != "none")
        names, sums = [WALKS], np.ones((1, len(member.fit.kernels)))
        if not member.is_walk:
            names, sums = [*found.names, OTHERS], found.sums(member.fit)  # [G, K_m]
        # Constants stand alone, because their means belong to the level.
        split = np.concatenate([sums * ~is_level, sums * is_level])
        mean, covariance, noise = _moments(found, member, times, split)
        for g in np.flatnonzero(split.any(axis=1)):
            name = names[g % len(names)]
            add("mean", name if g < len(names) else LEVEL, weight * mean[g])
            add("variance", name, weight * covariance[g])
        add("variance", NOISE, weight * noise)
        whole.append((weight, mean.sum(axis=0)))
    if len(whole) > 1:
        centre = sum(weight * mean for weight, mean in whole)
        add("variance", DISAGREEMENT, sum(w * np.square(mean - centre) for w, mean in whole))
    if found.table.transforms.any:
        parts = _in_units(found, times, parts)
    index = pd.MultiIndex.from_product([found.table.frame.columns, times], names=["series", "time"])
    table = pd.DataFrame({key: values.T.ravel() for key, values in parts.items()}, index=index)
    table.columns = pd.MultiIndex.from_tuples(list(parts), names=["moment", "part"])
    return table.sort_index(axis=1, level="moment", sort_remaining=False)


_SHORT = 1e-6
"""Shortest chord of a link."""


def _in_units(found: Discovery, times: pd.Index, parts: Parts) -> Parts:
    """Return parts of the modelled scale in the units of the series, [M, N]; see `attribute`."""
    transforms = found.table.transforms
    is_log, is_curved = transforms.is_log, transforms.is_curved
    told = found.predict(times).to_numpy().reshape(len(is_log), len(times), -1)
    mean, sd = told[:, :, 0].T, told[:, :, 1].T
    level = parts["mean", LEVEL]
    shift: Floats = sum(m for (moment, _), m in parts.items() if moment == "mean") - level
    whole: Floats = np.asarray(sum(v for (moment, _), v in parts.items() if moment == "variance"))
    with np.errstate(over="ignore", invalid="ignore"):  # of series that are no logarithms
        # (e^m - e^l) / (m - l), which is e^l where both are one.
        slope = np.exp(level) * np.where(shift == 0.0, 1.0, np.expm1(shift) / shift)
        if transforms.links:
            step = np.where(np.abs(shift) < _SHORT, _SHORT, shift)
            chord = (transforms.means(level + step) - transforms.means(level)) / step
            slope = np.where(is_log, slope, chord)
        gain = {"mean": slope, "variance": np.square(sd) / whole}
        scaled = {key: np.where(is_curved, m * gain[key[0]], m) for key, m in parts.items()}
    rest = sum(m for key, m in scaled.items() if key[0] == "mean" and key[1] != LEVEL)
    scaled["mean", LEVEL] = np.where(is_curved, mean - rest, level)
    return scaled


def _moments(
    found: Discovery, member: Member, times: pd.Index, parts: Floats
) -> tuple[Floats, Floats, Floats]:
    """Means and covariances with the whole [G, M, N], and noise [M, N], on the modelled scale."""
    x, predictor = found.table.scaled_times(times), found.predictors.of(member.fit)
    G = len(parts)
    # Of f = f_g + h_g: Cov[f_g, f] = (Var[f] + Var[f_g] - Var[h_g]) / 2.
    sums = np.vstack([np.ones((1, parts.shape[1])), parts, 1.0 - parts])
    mean, variance = predictor.sums(x, sums)
    covariance = 0.5 * (variance[:, :1] + variance[:, 1 : G + 1] - variance[:, G + 1 :])
    spread, scale = found.ensemble.variance_factors(x), found.table.scale
    return (
        mean[:, 1 : G + 1].transpose(1, 2, 0) * scale,
        covariance.transpose(1, 2, 0) * spread * scale**2,
        np.broadcast_to(predictor.noise(), (len(x), len(scale))) * spread * scale**2,
    )


def shares(attribution: pd.DataFrame, moment: str) -> pd.DataFrame:
    r"""Return the share of every part of `attribute` in the "mean" or "variance", series x parts.

    .. math:: s_p = \frac{\sum_t |m_{pt}|}{\sum_q \sum_t |m_{qt}|}

    over the whole horizon, with m the variance, or the departure of the mean from the average of
    the series: how much each part moves it in either direction.  Shares are between zero and one,
    even where parts offset each other, and add up to one; all are zero where the mean stays at its
    level.
    """
    size = _parts(attribution, moment).abs().groupby(level="series", sort=False).sum()
    whole = size.sum(axis=1)
    return size.div(whole.where(whole > 0.0, 1.0), axis=0)


def _parts(attribution: pd.DataFrame, moment: str) -> pd.DataFrame:
    """Return a moment without the level."""
    return pd.DataFrame(attribution[moment]).drop(columns=LEVEL, errors="ignore")


def folded(attribution: pd.DataFrame) -> pd.DataFrame:
    """Return the attribution with the parts that are little in every series among "others"."""
    size = pd.concat([shares(attribution, moment).abs().max() for moment in ("mean", "variance")])
    size = size.groupby(level=0).max()
    little = [str(part) for part in size.index[size < _LITTLE] if part not in _NEVER_LITTLE]
    if len(little) < 2:
        return attribution
    renamed = attribution.rename(columns=dict.fromkeys(little, OTHERS), level="part")
    return renamed.T.groupby(level=["moment", "part"], sort=False).sum().T


def part_order(found: Discovery, parts: Sequence[str]) -> list[str]:
    """Return the parts in the order of the components, others and the noise after them."""
    rank = {name: k for k, name in enumerate(found.names)}
    last = [OTHERS, WALKS, AUTOREGRESSION, NOISE, DISAGREEMENT]
    places = rank | {name: len(rank) + 1 + i for i, name in enumerate(last)} | {LEVEL: -1}
    return sorted(parts, key=lambda part: places.get(part, len(rank)))
