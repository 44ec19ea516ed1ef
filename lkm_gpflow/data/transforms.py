"""Transformations of series: the scale on which they are modelled, and the way back.

A series is modelled as it is, or its logarithm is, or a latent function is of which its values are
counts or shares (`gp.likelihoods`).  A forecast that is normal on the modelled scale
is then normal or lognormal in the units of the series.  A forecast that is Student-t there (see
`likelihoods`) has exact quantiles in the units too, but the exponential of a Student-t has no
mean: mean and variance are those of the lognormal of the same log mean and log variance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import pandas as pd
from numpy.lib.stride_tricks import sliding_window_view

from ..gp.likelihoods import PointLikelihood, Student
from ..gp.types import Booleans, Floats, Integers
from ..runtime.arguments import check_series

TransformName = Literal["none", "log"]
Transform: TypeAlias = "TransformName | Literal['auto'] | Mapping[object, TransformName]"
"""One for all series, or by name of those that have another than "none".

"auto": logarithms of the series that are better described by them, see `log_gain`.
"""

NAMES = ("auto", *get_args(TransformName))


@dataclass(frozen=True)
class Transforms:
    r"""Which of N series are modelled by their logarithms.

    .. math:: y^* = \log y

    where `is_log`, and :math:`y^* = y` elsewhere.  All methods broadcast over series, which are the
    last axis.  Of a series with a link the modelled scale is that of its latent function.
    """

    is_log: Booleans  # [N]
    kinds: tuple[PointLikelihood | None, ...] = ()  # of the values, [N]; empty: there are none

    @classmethod
    def of(
        cls, frame: pd.DataFrame, transform: Transform, left: pd.DataFrame | None = None
    ) -> Transforms:
        """Read the transformation that was asked for of every series of a checked table.

        "auto" chooses by what is `left` without suspicious values.  A ValueError says if there is
        no such transformation or series, or which value has no logarithm.
        """
        columns: list[object] = list(frame.columns)
        if isinstance(transform, str) and transform == "auto":
            chosen = wants_logarithm((frame if left is None else left).to_numpy())
            return cls(chosen & ~(frame <= 0.0).any().to_numpy())
        wanted = transform if isinstance(transform, Mapping) else dict.fromkeys(columns, transform)
        for name, kind in wanted.items():
            if kind not in get_args(TransformName):
                some = f"one for each of some series such as {{{columns[0]!r}: 'log'}}"
                raise ValueError(
                    f"transform: expected 'none' or 'log' for the series {name!r}, got {kind!r}"
                    if isinstance(transform, Mapping)
                    else f"expected a transform among {NAMES}, or {some}, got {kind!r}"
                )
            check_series(name, columns, "transform: ")
        is_log = np.array([wanted.get(name, "none") == "log" for name in columns])
        for column in np.flatnonzero(is_log):
            _check_positive(frame.iloc[:, column])
        return cls(is_log)

    def with_kinds(
        self, kinds: tuple[PointLikelihood | None, ...], columns: list[object], transform: Transform
    ) -> Transforms:
        """Return them with likelihoods of values: a link goes before a logarithm that was chosen.

        A ValueError says if the logarithm of a series with a link was asked for.
        """
        linked = Transforms(self.is_log, kinds).is_linked
        both = np.flatnonzero(linked & self.is_log)
        if len(both) and transform != "auto":
            raise ValueError(
                f"transform: expected 'none' for the series {columns[both[0]]!r}, which has the "
                f"likelihood {kinds[both[0]]!r} and its link, got 'log'"
            )
        return Transforms(self.is_log & ~linked, kinds if any(kinds) else ())

    @property
    def names(self) -> list[TransformName]:
        """The name of each series' transformation."""
        return ["log" if each else "none" for each in self.is_log]

    @property
    def any(self) -> bool:
        """Whether any series is modelled on another scale than its own."""
        return bool(self.is_curved.any())

    @property
    def links(self) -> bool:
        """Whether any series has a link."""
        return bool(self.is_linked.any())

    @property
    def multiplies(self) -> Booleans:
        """Where components multiply, rather than add: values, rates or odds, [N]."""
        return self.is_log | self._where(lambda kind: kind.link in ("log", "logit"))

    @property
    def is_linked(self) -> Booleans:
        """Which series have a link, [N]."""
        return self._where(lambda kind: not isinstance(kind, Student))

    @property
    def is_whole(self) -> Booleans:
        """Which series are whole numbers, [N]."""
        return self._where(lambda kind: kind.is_whole)

    @property
    def is_curved(self) -> Booleans:
        """Which series are modelled on another scale than their own, [N]."""
        return self.is_log | self.is_linked

    def _where(self, holds: Callable[[PointLikelihood], bool]) -> Booleans:
        found = [kind is not None and holds(kind) for kind in self.kinds]
        return np.array(found or np.zeros(len(self.is_log)), np.bool_)

    def _linked(self) -> Iterator[tuple[PointLikelihood, Booleans]]:
        """Yield each likelihood with a link and where it holds, [N]."""
        for kind in dict.fromkeys(self.kinds):
            if kind is not None and not isinstance(kind, Student):
                yield kind, np.array([own == kind for own in self.kinds], np.bool_)

    def of_series(self, places: Sequence[int] | Integers) -> Transforms:
        """Return those of some series."""
        kinds = tuple(self.kinds[n] for n in np.asarray(places)) if self.kinds else ()
        return Transforms(self.is_log[np.asarray(places)], kinds)

    def forward(self, values: Floats) -> Floats:
        """Return values [..., N] on the modelled scale; NaN where there is no logarithm."""
        positive = np.where(values > 0.0, values, np.nan)
        return np.where(self.is_log, np.log(positive), values)

    def back(self, values: Floats) -> Floats:
        """Return values [..., N] of the modelled scale, such as quantiles, in the series' units."""
        return np.where(self.is_log, np.exp(np.where(self.is_log, values, 0.0)), values)

    def moments(self, mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
        r"""Mean and variance in the series' units of what is normal on the modelled scale.

        .. math:: E y = e^{m + v/2}, \qquad \mathrm{Var}\, y = (e^v - 1)\, e^{2 m + v}

        of a lognormal; [..., N] each.
        """
        v, m = np.where(self.is_log, variance, 0.0), np.where(self.is_log, mean, 0.0)
        # Far ahead both may be beyond all numbers, and are then infinite.
        with np.errstate(over="ignore", divide="ignore"):
            centre = self.back(mean + 0.5 * v)
            spread: Floats = np.exp(2.0 * (m + v) + np.log(-np.expm1(-v)))
        spread = np.where(self.is_log, spread, variance)
        for kind, own in self._linked():
            centre[..., own], spread[..., own] = kind.predictive_moments(
                mean[..., own], variance[..., own]
            )
        return centre, spread

    def means(self, values: Floats) -> Floats:
        """Return values [..., N] of the modelled scale in the units; of a link their means."""
        found = self.back(values)
        for kind, own in self._linked():
            found[..., own] = kind.mean(kind.clipped(values[..., own]))
        return found

    def quantile(self, q: float, modelled: Floats, mean: Floats, variance: Floats) -> Floats:
        """Quantiles in the series' units, from those on the modelled scale and its moments, [N]."""
        found = self.back(modelled)
        for kind, own in self._linked():
            found[own] = kind.predictive_quantile(q, mean[own], variance[own])
        return found

    def cdf(self, values: Floats, modelled: Floats, mean: Floats, variance: Floats) -> Floats:
        """Probabilities of no more than values, given those on the modelled scale, [N]."""
        found = modelled.copy()
        for kind, own in self._linked():
            own = own & np.isfinite(values)
            found[own] = kind.predictive_cdf(values[own], mean[own], variance[own])
        return found

    def draw(self, values: Floats, rng: np.random.Generator) -> Floats:
        """Return values [..., N] of the modelled scale in the series' units; of a link, draws."""
        found = self.back(values)
        for kind, own in self._linked():
            found[..., own] = kind.draw(values[..., own], rng)
        return found

    def joint_moments(self, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        r"""Mean [N] and covariance [N, N] in the units of variables that are jointly normal.

        .. math:: \mathrm{Cov}[e^{a}, e^{b}] = E e^a\, E e^b\, (e^{c} - 1), \qquad
           \mathrm{Cov}[a, e^{b}] = c\, E e^b, \qquad c = \mathrm{Cov}[a, b]
        """
        centre, _ = self.moments(mean, covariance.diagonal())
        gain: Floats = np.where(self.is_log, centre, 1.0)
        both = np.outer(self.is_log, self.is_log)
        inner: Floats = np.where(both, np.expm1(np.where(both, covariance, 0.0)), covariance)
        return centre, inner * gain[:, None] * gain


def _check_positive(column: pd.Series) -> None:
    values = column.to_numpy()
    bad = np.flatnonzero(values <= 0.0)  # false for NaN
    if len(bad):
        row, more = int(bad[0]), len(bad) - 1
        others = f", and {more} more of its values are not positive" if more else ""
        raise ValueError(
            f"transform: series {column.name!r}: expected positive numbers for 'log', got "
            f"{values[row]:g} at {column.index[row]}{others}: model it as it is "
            f"(transform={{...}} names the series to take logarithms of), or make it NaN if it "
            "stands for a missing observation"
        )


# --- which series, if nobody says: a likelihood ratio for each ----------------------------------

ORDERS = (1, 3, 12)  # orders of the autoregressions that are asked: all must agree

STRONG = 10.0
"""Nats that the logarithm must gain, by each order.

Chosen on the last windows of tables of the benchmark that choose defaults.  It leaves the prices of
the paper's four data sets as they are.
"""

_ONE_UNIT = 10.0  # series whose medians differ by a smaller factor may be of one unit

_MOST = 0.75
"""Share of the series of one unit, with the one that is asked, that must want the logarithm."""

_EXACT = 1e-14  # a mean squared error that is less of the mean square is one of rounding

_ROWS_PER_COEFFICIENT = 3
"""An order is asked if there are so many complete rows for each of its coefficients."""


def wants_logarithm(values: Floats) -> Booleans:
    """Which of N series [D, N] are better described by their logarithms, [N]; see `log_gain`.

    Where most series of one magnitude are, as those of one unit, the others are, too, unless they
    are clearly better described as they are.
    """
    gains = np.array([log_gain(column) for column in values.T])
    chosen: Booleans = gains >= STRONG
    with np.errstate(invalid="ignore"):
        positive = ~np.any(values <= 0.0, axis=0)
        size = np.log(np.abs(np.nanmedian(values, axis=0)) + 1e-300)
    open_ = positive & ~chosen & (np.abs(gains) < STRONG)
    for n in np.flatnonzero(open_):
        near = positive & (np.abs(size - size[n]) < np.log(_ONE_UNIT))
        chosen[n] = near.sum() > 2 and (gains[near] >= STRONG).sum() >= _MOST * near.sum()
    return chosen


def log_gain(values: Floats) -> float:
    r"""By how many nats an autoregression of the logarithms describes a series better.

    .. math:: \ell^* - \ell, \qquad
       \ell = -\tfrac n2 \log \hat\sigma^2, \qquad
       \ell^* = -\tfrac n2 \log \hat\sigma_*^2 - \sum_t \log y_t

    with :math:`\hat\sigma^2` the mean squared error of the least squares regression of
    :math:`y_t` on a constant and the values before it, :math:`\hat\sigma_*^2` that of
    :math:`\log y_t`; the sum is the Jacobian (Box and Cox 1964, *An analysis of transformations*).
    Swings that grow with the level make it large.  Of `ORDERS` the one that gains least counts:
    what only one of them sees may be the shape of a season.  Values [D] are at equal steps, NaN is
    missing; zero where nothing can be said: too few values, or one that is not positive.
    """
    seen = values[np.isfinite(values)]
    if not len(seen) or np.any(seen <= 0.0):
        return 0.0
    # Units make no difference, but regressions of tiny or huge numbers would.
    values = values / np.exp(np.log(seen).mean())
    return min(_gains(values, lambda y: (np.log(y), -np.log(y))), default=0.0)


def root_gain(values: Floats) -> float:
    r"""The same of square roots, :math:`2 \sqrt{y + 3/8}`, for values from zero on.

    The scatter of counts grows with their level, and that of their roots does not (Anscombe 1948).
    Of `ORDERS` the one that gains most counts.
    """

    def roots(y: Floats) -> tuple[Floats, Floats]:
        root = np.sqrt(y + 0.375)
        return 2.0 * root, -np.log(root)

    return max(_gains(values, roots), default=0.0)


def _gains(values: Floats, scale: Callable[[Floats], tuple[Floats, Floats]]) -> list[float]:
    """Nats that each order gains by another scale, which comes with the logarithm of its slope."""
    found = (_gain(values, order, scale) for order in ORDERS)
    return [gain for gain in found if gain is not None]


def _gain(
    values: Floats, order: int, scale: Callable[[Floats], tuple[Floats, Floats]]
) -> float | None:
    if len(values) <= order:
        return None
    rows = sliding_window_view(values, order + 1)
    rows = rows[np.isfinite(rows).all(axis=1)]
    if len(rows) < _ROWS_PER_COEFFICIENT * (order + 1):
        return None
    others, log_slopes = scale(rows)
    errors = _mean_squared_error(rows), _mean_squared_error(others)
    if any(
        error <= _EXACT * np.mean(np.square(each[:, -1]))
        for error, each in zip(errors, (rows, others), strict=True)
    ):
        return None
    return float(-0.5 * len(rows) * np.log(errors[1] / errors[0]) + log_slopes[:, -1].sum())


def _mean_squared_error(rows: Floats) -> float:
    """Of the last column regressed on a constant and those before it."""
    before = np.column_stack([np.ones(len(rows)), rows[:, :-1]])
    coefficients = np.linalg.lstsq(before, rows[:, -1], rcond=None)[0]
    return float(np.mean(np.square(rows[:, -1] - before @ coefficients)))
