"""Where a forecast comes from: its mean and variance, divided among components."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..discovery.result import Discovery
from ..numerics.types import Floats
from ..search.averaging import Member, to_model

LEVEL, NOISE, DISAGREEMENT = "level", "noise", "fits disagree"
"""Parts that are no component: the series' average (mean alone), its noise, and the variance of the
means of the fits that a forecast averages over."""

OTHERS = "others"
"""Parts that count for little, together; see `folded`."""

_LITTLE = 0.02


def attribute(found: Discovery, horizon: int | pd.Index) -> pd.DataFrame:
    r"""Divide the forecast of every series among its components.

    The mean is a sum already.  Of the variance a component is given its covariance with the whole,

    .. math:: \mathrm{Var}\Big[\sum_k f_k\Big] = \sum_k \mathrm{Cov}\Big[f_k, \sum_l f_l\Big],

    the only division that treats all components alike (their Shapley values); a component that
    makes up for others has a negative share.  Where the forecast averages over several fits, parts
    of the same structure are added, constants to the level, and what is left is the disagreement
    of the fits.

    Parameters
    ----------
    found
        A discovery.
    horizon
        As `Discovery.forecast`.

    Returns
    -------
    DataFrame with index (series, time) and columns (moment, part), moments "mean" and "variance",
    in the units of the series and their squares.  The parts of a row add up to the mean and the
    squared sd of `Discovery.forecast`.
    """
    times = found.times(horizon)
    members = found.counting_members
    alone = len(members) == 1 and members[0].fit is found.fit
    parts: dict[tuple[str, str], Floats] = {}

    def add(moment: str, part: str, values: Floats) -> None:
        parts[moment, part] = parts.get((moment, part), 0.0) + values

    shape = (len(times), found.table.frame.shape[1])
    add("mean", LEVEL, np.broadcast_to(found.table.location, shape))
    whole = []
    for member in members:
        names = found.names if alone else [str(k.structure) for k in member.fit.kernels]
        mean, covariance, noise = _moments(found, member, times)
        for name, m, c in zip(names, mean, covariance, strict=True):
            add("mean", LEVEL if name == "C" and not alone else name, member.weight * m)
            add("variance", name, member.weight * c)
        add("variance", NOISE, member.weight * noise)
        whole.append(mean.sum(axis=0))
    if len(members) > 1:
        weights = [member.weight for member in members]
        centre = np.tensordot(weights, whole, axes=1)
        add("variance", DISAGREEMENT, np.tensordot(weights, np.square(whole - centre), axes=1))
    index = pd.MultiIndex.from_product([found.table.frame.columns, times], names=["series", "time"])
    table = pd.DataFrame({key: values.T.ravel() for key, values in parts.items()}, index=index)
    table.columns = pd.MultiIndex.from_tuples(list(parts), names=["moment", "part"])
    return table.sort_index(axis=1, level="moment", sort_remaining=False)


def _moments(found: Discovery, member: Member, times: pd.Index) -> tuple[Floats, Floats, Floats]:
    """Means and covariances with the whole [K, M, N], and noise [M, N], in the series' units."""
    x = found.table.scaled_times(times)[:, None]
    model = to_model(member.fit, found.table.observations, found.settings.fit)
    K = len(member.fit.kernels)
    # Of f = f_k + g_k: Cov[f_k, f] = (Var[f] + Var[f_k] - Var[g_k]) / 2.
    sums = np.vstack([np.ones((1, K)), np.eye(K), 1.0 - np.eye(K)])
    mean, variance = (np.asarray(m) for m in model.predict_sums(x, sums, False, None))
    covariance = 0.5 * (variance[:, :1] + variance[:, 1 : K + 1] - variance[:, K + 1 :])
    spread = np.where(x > found.table.observations.x[-1], member.spread, 1.0)  # [M, 1]
    scale = found.table.scale
    return (
        mean[:, 1 : K + 1].transpose(1, 2, 0) * scale,
        covariance.transpose(1, 2, 0) * spread * scale**2,
        np.broadcast_to(model.predict_noise(), (len(x), len(scale))) * spread * scale**2,
    )


def shares(attribution: pd.DataFrame, moment: str) -> pd.DataFrame:
    r"""Return the share of every part in a moment of the forecast, over the whole horizon.

    .. math:: s_p = \frac{\sum_t \mathrm{sign}(m_t)\, m_{pt}}{\sum_t |m_t|}, \quad
       m_t = \sum_p m_{pt}

    with m the variance, or the mean's departure from the average of the series.

    Parameters
    ----------
    attribution
        Of `attribute`.
    moment
        "mean" or "variance".

    Returns
    -------
    DataFrame, series x parts; rows add up to one.
    """
    parts = pd.DataFrame(attribution[moment]).drop(columns=LEVEL, errors="ignore")
    whole = parts.sum(axis=1)
    signed = parts.mul(np.sign(whole), axis=0).groupby(level="series", sort=False).sum()
    return signed.div(whole.abs().groupby(level="series", sort=False).sum(), axis=0)


def folded(attribution: pd.DataFrame) -> pd.DataFrame:
    """Return the attribution with the parts that are little in every series added up."""
    size = pd.concat([shares(attribution, moment).abs().max() for moment in ("mean", "variance")])
    size = size.groupby(level=0).max()
    little = [str(part) for part in size.index[size < _LITTLE] if part not in (NOISE, DISAGREEMENT)]
    if len(little) < 2:
        return attribution
    renamed = attribution.rename(columns=dict.fromkeys(little, OTHERS), level="part")
    return renamed.T.groupby(level=["moment", "part"], sort=False).sum().T


def part_order(found: Discovery, parts: Sequence[str]) -> list[str]:
    """Return the parts in the order of the components, others and the noise after them."""
    structures = [str(kernel.structure) for kernel in found.fit.kernels]
    rank = {name: k for k, name in reversed(list(enumerate(structures)))}
    rank |= {name: k for k, name in enumerate(found.names)}
    last = [OTHERS, NOISE, DISAGREEMENT]
    places = rank | {name: len(rank) + 1 + i for i, name in enumerate(last)} | {LEVEL: -1}
    return sorted(parts, key=lambda part: places.get(part, len(rank)))
