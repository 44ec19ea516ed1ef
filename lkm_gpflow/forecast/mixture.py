"""A forecast: the weighted mixture of what several forecasters say of new observations.

A cell is a series at a time.  A forecaster's part of the mixture is normal on the modelled scale
(logarithms, where these are modelled); whatever can be asked of the whole follows from the moments
of the parts: intervals and quantiles of each cell, sums over series, paths, and, where the parts
say how all cells go together, the forecast given some of the cells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import TypeAlias, cast

import numpy as np
import pandas as pd
from scipy.special import stdtr
from scipy.stats import norm
from scipy.stats import t as student_t

from ..data.checks import LARGEST
from ..data.transforms import Transforms
from ..gp.likelihoods import unit_quantile, unit_scale
from ..gp.series import GaussianSeries, root
from ..gp.types import Floats, FloatTensor, Integers
from ..runtime.arguments import check_level, check_quantiles, check_series, check_weights
from ..runtime.text import whole_number

SIDES = ("lower", "upper")
"""Ends of an interval."""


def interval_columns(level: float) -> tuple[str, str]:
    """Return ("lower90", "upper90") for the level 0.9."""
    lower, upper = (f"{side}{_percent(level)}" for side in SIDES)
    return lower, upper


def coverage_column(level: float) -> str:
    """Return "coverage90" for the level 0.9, and "coverage99.5" for 0.995."""
    return f"coverage{_percent(level)}"


def quantile_column(q: float) -> str:
    """Return "q0.05" for the quantile 0.05."""
    return f"q{_digits(q)}"


def _percent(level: float) -> str:
    return f"{(100 * Decimal(_digits(level))).normalize():f}"


def _digits(probability: float) -> str:
    """Return the fewest digits that tell a number from its neighbours, of its own precision."""
    return str(probability if isinstance(probability, np.floating) else float(probability))


Course: TypeAlias = "float | Sequence[float] | pd.Series[float]"
"""What a series is taken to do: its value at the last time, at every time, or at some times."""

_DRAWS = 20_000
"""Draws of a sum of lognormals: the ends of a 90% interval have a standard error of 0.15%."""

_JITTER = 1e-10
"""Added to the diagonal of a covariance of known cells, in units of its mean."""


def mixture_moments(
    parts: Sequence[tuple[float, FloatTensor | Floats, FloatTensor | Floats]],
) -> tuple[Floats, Floats]:
    """Mean and variance of a mixture, from the weight, mean and variance of each part."""
    weights = np.array([weight for weight, _, _ in parts])
    means = np.array([np.asarray(mean) for _, mean, _ in parts])
    variances = np.array([np.asarray(variance) for _, _, variance in parts])
    mean = np.einsum("m,m...->...", weights, means)
    deviations = np.subtract(means, mean, out=np.full_like(means, np.inf), where=np.isfinite(mean))
    with np.errstate(over="ignore"):  # moments far ahead may be beyond all numbers
        variance = np.einsum("m,m...->...", weights, variances + deviations**2)
    return mean, variance


@dataclass(frozen=True, eq=False)
class Part:
    """What one forecaster says of P cells, on the modelled scale.

    Parameters
    ----------
    weight
        In the mixture.
    mean, variance
        Of new observations, [P].
    draw
        Draws so many paths through all cells, [count, P].
    covariance
        Of all cells, [P, P]; None if the forecaster does not say how they go together: then cells
        of one time are independent.
    """

    weight: float
    mean: Floats
    variance: Floats
    draw: Callable[[int, np.random.Generator], Floats]
    covariance: Floats | None = None

    @classmethod
    def independent(cls, weight: float, mean: Floats, variance: Floats) -> Part:
        """Return a part whose cells are independent."""

        def draw(count: int, rng: np.random.Generator) -> Floats:
            return mean + rng.standard_normal((count, len(mean))) * np.sqrt(variance)

        return cls(weight, mean, variance, draw)

    @classmethod
    def joint(cls, weight: float, mean: Floats, covariance: Floats) -> Part:
        """Return the part of a forecaster that knows the covariance [P, P] of all cells."""
        variance = np.maximum(covariance.diagonal(), 0.0)

        def draw(count: int, rng: np.random.Generator) -> Floats:
            return mean + rng.standard_normal((count, len(mean))) @ root(covariance).T

        return cls(weight, mean, variance, draw, covariance)


@dataclass(frozen=True, eq=False)
class MixtureForecast:
    r"""New observations y of P cells, a mixture of F parts.

    .. math:: y_p = g_p(u_p), \qquad u \sim \sum_f w_f\, \mathcal{N}(m_f, S_f)

    with g the way back from the modelled scale.  Quantiles are those of a Student-t with the mean
    and variance of the mixture of u; the mean and variance of y are those of the mixture itself.

    Parameters
    ----------
    cells
        Index (series, time), [P].
    parts
        What each forecaster says; weights add up to one.
    transforms
        Of each cell: which are logarithms, [P].
    degrees
        Of freedom of the quantiles, [P]; None: normal.
    """

    cells: pd.MultiIndex
    parts: tuple[Part, ...]
    transforms: Transforms
    degrees: Floats | None = field(default=None)

    # --- each cell ---

    @cached_property
    def modelled(self) -> tuple[Floats, Floats]:
        """Mean and variance on the modelled scale, [P] each."""
        return mixture_moments([(each.weight, each.mean, each.variance) for each in self.parts])

    @cached_property
    def moments(self) -> tuple[Floats, Floats]:
        """Mean and variance in the units of the series, [P] each."""
        if not self.transforms.any:
            return self.modelled
        in_units = self.transforms.moments
        return mixture_moments(
            [(each.weight, *in_units(each.mean, each.variance)) for each in self.parts]
        )

    @property
    def series(self) -> list[object]:
        """Names of the series."""
        return list(self.cells.get_level_values(0).unique()) or list(self.cells.levels[0])

    @property
    def mean(self) -> Floats:
        """Means in the units of the series, [P]."""
        return self.moments[0]

    @property
    def variance(self) -> Floats:
        """Variances in the units of the series, [P]."""
        return self.moments[1]

    @property
    def sd(self) -> Floats:
        """Standard deviations in the units of the series, [P]."""
        return np.asarray(np.sqrt(self.variance))

    def quantile(self, q: float) -> Floats:
        """Quantiles in the units of the series, [P]."""
        mean, variance = self.modelled
        modelled = mean + unit_quantile(q, self._degrees) * np.sqrt(variance)
        return self.transforms.quantile(q, modelled, mean, variance)

    def cdf(self, values: Floats) -> Floats:
        """Probabilities of no more than these values [P], which are in the units of the series."""
        mean, variance = self.modelled
        z = (self.transforms.forward(values) - mean) / np.sqrt(variance)
        found = np.asarray(stdtr(self._degrees, z / unit_scale(self._degrees)))
        return self.transforms.cdf(values, found, mean, variance)

    def pit(self, values: Floats) -> Floats:
        """`cdf`, at random within its step where values are whole numbers, [P]: uniform if true."""
        share = np.random.default_rng(0).random(len(values))
        below = self.cdf(values - self.transforms.is_whole)
        return below + share * (self.cdf(values) - below)

    def log_density(self, values: Floats) -> Floats:
        """Log densities [..., P] of values in the units of the series, on the modelled scale."""
        mean, variance = self.modelled
        scale = np.sqrt(variance) * unit_scale(self._degrees)
        return np.asarray(
            student_t.logpdf(self.transforms.forward(values), self._degrees, mean, scale)
        )

    @property
    def _weights(self) -> Floats:
        """Weights of the parts, [F]; they add up to one to the last digit."""
        weights = np.array([part.weight for part in self.parts])
        return np.asarray(weights / weights.sum())

    @property
    def _degrees(self) -> Floats:
        return np.full(len(self.cells), np.inf) if self.degrees is None else self.degrees

    def frame(
        self, level: float | Sequence[float] = 0.9, quantiles: Sequence[float] = ()
    ) -> pd.DataFrame:
        """Return a row for each cell, in the units of the series.

        Parameters
        ----------
        level
            Probability of the interval from `lower` to `upper`; of several, the columns are
            called lower50, upper50, lower90 and so on.
        quantiles
            Such as 0.05, for columns called q0.05.

        Returns
        -------
        DataFrame with columns mean, sd, the ends of the intervals, and the quantiles.

        Raises
        ------
        ValueError
            If a level or a quantile is not between 0 and 1.
        """
        wanted = _quantile_columns(level, quantiles)
        columns = {"mean": self.mean, "sd": self.sd}
        columns |= {name: self.quantile(q) for name, q in wanted.items()}
        return pd.DataFrame(columns, self.cells)

    # --- cells together ---

    def samples(self, count: int, seed: int) -> pd.DataFrame:
        """Draw all cells together: one row per cell, one column per draw, in units of the series.

        Each path takes one of the parts by its weight.

        Raises
        ------
        ValueError
            If the count is below one, or the seed negative.
        """
        count, seed = whole_number(count, "samples", 1), whole_number(seed, "seed", 0)
        rng = np.random.default_rng(seed)
        asked = zip(self.parts, rng.multinomial(count, self._weights), strict=True)
        drawn = [part.draw(number, rng) for part, number in asked if number]
        paths = rng.permutation(np.concatenate(drawn))  # [count, P]
        told = self.transforms.draw(paths, rng).T
        return pd.DataFrame(told, self.cells, pd.RangeIndex(count, name="sample"))

    def aggregate(
        self,
        weights: Mapping[object, float],
        level: float = 0.9,
        quantiles: Sequence[float] = (),
    ) -> pd.DataFrame:
        """Weighted sums of the series at every time, in the units of the series.

        Mean and sd are exact, but of draws where series are counts or shares.  The quantiles of a
        multiple of one series are those of the series; those of a sum are normal or, where another
        scale is modelled, those of draws that all times share, so that intervals do not flutter.

        Parameters
        ----------
        weights
            By series; of a spread one is negative.
        level, quantiles
            As of `frame`.

        Returns
        -------
        DataFrame by time with columns mean, sd, lower, upper, and the quantiles.

        Raises
        ------
        ValueError
            If there are no weights, one is not finite, or names no series; or as `frame`.
        """
        check_weights(weights)
        for name in weights:
            check_series(name, self.series)
        wanted = _quantile_columns(level, quantiles)
        w = np.array([float(weights.get(name, 0.0)) for name in self.cells.get_level_values(0)])
        counts = (w != 0.0) | (not w.any())  # the variance of other series may be infinite
        times = self.cells.get_level_values(1).unique()
        at = times.get_indexer(self.cells.get_level_values(1))
        sums = [
            self._sum(np.flatnonzero((at == t) & counts), w, list(wanted.values()))
            for t in range(len(times))
        ]
        return pd.DataFrame(np.reshape(sums, (-1, 2 + len(wanted))), times, ["mean", "sd", *wanted])

    def _sum(self, some: Integers, w: Floats, probabilities: Sequence[float]) -> list[float]:
        """Mean, sd and quantiles of the weighted sum of some cells of one time."""
        transforms, moments = self.transforms.of_series(some), []
        w = w[some]
        for part in self.parts:
            if part.covariance is None:
                mean, variance = transforms.moments(part.mean[some], part.variance[some])
                total = np.square(w) @ variance
            else:
                covariance = part.covariance[np.ix_(some, some)]
                mean, covariance = transforms.joint_moments(part.mean[some], covariance)
                total = np.maximum(w @ covariance @ w, 0.0)
            moments.append((part.weight, mean @ w, total))
        centre, spread = map(float, mixture_moments(moments))
        told = [centre, np.sqrt(spread)]
        if len(some) == 1:
            q = [p if w[0] > 0.0 else 1.0 - p for p in probabilities]
            return [*told, *(float(w[0] * self.quantile(each)[some[0]]) for each in q)]
        if transforms.links:
            sums = self._draws(some) @ w
            return [float(sums.mean()), float(sums.std()), *np.quantile(sums, probabilities)]
        if transforms.any:
            return [*told, *np.quantile(self._draws(some) @ w, probabilities)]
        return [*told, *(told[0] + told[1] * norm.ppf(probabilities))]

    def _draws(self, some: Integers) -> Floats:
        """Draw some cells of one time, in units, [draws, p]; each part has its share, to a draw."""
        rng = np.random.default_rng(0)
        normal = rng.standard_normal((_DRAWS, len(some)))
        places = (np.arange(_DRAWS) + 0.5) / _DRAWS
        which = np.searchsorted(np.cumsum(self._weights), places)
        values = np.empty_like(normal)
        for f, part in enumerate(self.parts):
            own = normal[which == f]
            if part.covariance is None:
                own = own * np.sqrt(part.variance[some])
            else:
                own = own @ root(part.covariance[np.ix_(some, some)]).T
            values[which == f] = part.mean[some] + own
        return self.transforms.of_series(some).draw(values, rng)

    # --- what if ---

    def given(self, known: Mapping[object, Course]) -> MixtureForecast:
        r"""Return what is to be expected if some series did this.

        .. math:: \mu_a + \Sigma_{ab} \Sigma_{bb}^{-1} (y_b - \mu_b), \qquad
           \Sigma_{aa} - \Sigma_{ab} \Sigma_{bb}^{-1} \Sigma_{ba}

        for each part, on the modelled scale.  Weights stay: what is supposed says nothing about
        which part is right, and twice the shock moves others twice as far.

        Parameters
        ----------
        known
            By series: its value at the last time, or one for every time (NaN is unknown), or a
            Series with some of the times.

        Raises
        ------
        ValueError
            If a series or time is not in the forecast, a time is given twice, a value is infinite
            or above 1e100 in size, nothing is given, or a part does not know the covariance of all
            cells (those of `CoupledDiscovery` do).
        """
        values = self._given_values(known)
        b = np.flatnonzero(np.isfinite(values))
        if not len(b):
            raise ValueError(f"expected at least one known value, got {dict(known)!r}")
        parts = []
        for part in self.parts:
            if part.covariance is None:
                raise ValueError("expected a joint forecast, of couple(), got one of each series")
            mean, covariance = part.mean, part.covariance
            own = covariance[np.ix_(b, b)]
            own = own + _JITTER * own.diagonal().mean() * np.eye(len(b))
            seen = GaussianSeries(own, values[b] - mean[b])
            shift, conditional = seen.predict(covariance[b], covariance)
            conditional[b] = conditional[:, b] = 0.0
            expected = mean + shift
            expected[b] = values[b]
            parts.append(Part.joint(part.weight, expected, conditional))
        return replace(self, parts=tuple(parts))

    def _given_values(self, known: Mapping[object, Course]) -> Floats:
        """Return what is known of every cell as it is modelled, [P], NaN where nothing is."""
        if not hasattr(known, "items"):
            raise ValueError(f"expected what is known by series, {{'a': 1.0}}, got {known!r}")
        values: pd.Series[float] = pd.Series(np.nan, self.cells)
        for name, path in known.items():
            check_series(name, self.series)
            times = self.cells[self.cells.get_level_values(0) == name].get_level_values(1)
            own = _course(name, path)
            if not isinstance(path, pd.Series):
                if len(own) not in (1, len(times)):
                    raise ValueError(
                        f"expected one value of {name!r}, at the last time, or {len(times)}, one "
                        f"for each time, or a Series by time, got {len(own)}"
                    )
                path = pd.Series(own, times[-len(own) :])
            if path.index.has_duplicates:
                twice = path.index[path.index.duplicated()][0]
                raise ValueError(
                    f"expected one value of {name!r} at a time, got several at {twice}"
                )
            unknown = path.index.difference(times)
            if len(unknown):
                raise ValueError(
                    f"expected values of {name!r} at times of the forecast, {times[0]} to "
                    f"{times[-1]}, got {unknown[0]}"
                )
            own_cells = pd.MultiIndex.from_product([[name], path.index])
            values.loc[own_cells] = own
        modelled = self.transforms.forward(values.to_numpy(np.float64))
        if np.any(lost := np.isnan(modelled) & values.notna().to_numpy()):
            name, time = self.cells[int(np.argmax(lost))]
            raise ValueError(
                f"expected positive values of {name!r}, whose logarithm is modelled, got "
                f"{values[lost].iloc[0]:g} at {time}"
            )
        return modelled


def _course(name: object, path: Course) -> Floats:
    """Return what a series is taken to do as an array, NaN where it is unknown."""
    try:
        values = np.atleast_1d(np.asarray(path, np.float64))
    except (TypeError, ValueError):
        values = np.array([np.inf])
    if values.ndim > 1 or np.any(np.isinf(values)):
        raise ValueError(
            f"expected a finite number of {name!r}, or a list of them (NaN: unknown), got {path!r}"
        )
    if np.any(huge := np.abs(values) > LARGEST):
        raise ValueError(
            f"expected values of {name!r} of at most {LARGEST:g} in size, got {values[huge][0]:g}"
        )
    return values


def _quantile_columns(
    level: float | Sequence[float], quantiles: Sequence[float]
) -> dict[str, float]:
    """Names of the columns of intervals and quantiles, and the probability that each stands for."""
    check_quantiles(quantiles)
    wanted: dict[str, float] = {}
    for each in cast(Sequence[float], [level] if np.ndim(level) == 0 else level):
        check_level(each)
        names = SIDES if np.ndim(level) == 0 else interval_columns(each)
        wanted |= dict(zip(names, (0.5 - 0.5 * each, 0.5 + 0.5 * each), strict=True))
    return wanted | {quantile_column(q): q for q in quantiles}
