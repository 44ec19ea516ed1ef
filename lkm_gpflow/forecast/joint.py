"""Joint forecasts: what several series do together, as mixtures of Gaussians over cells.

A cell is a series at a time.  Whatever can be asked of a joint forecast follows from its means and
covariances by plain linear algebra: intervals, paths, sums, and what else is to be expected if some
of the cells were known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pandas as pd
from scipy.special import softmax
from scipy.stats import norm

from ..data.checks import LARGEST
from ..data.transforms import Transforms
from ..gp.lapack import root
from ..gp.types import LOG_2PI, Floats
from ..runtime.arguments import check_level, check_quantiles, check_series
from ..runtime.text import whole_number
from .columns import quantile_column
from .weighted_series import DRAWS

Course: TypeAlias = "float | Sequence[float] | pd.Series[float]"
"""What a series is taken to do: its value at the last time, or at every time, or at some."""

_JITTER = 1e-10
"""Of the mean variance, for covariances of neighbouring times."""


@dataclass(frozen=True)
class Joint:
    """A mixture of Gaussians over cells, on the modelled scale; what it tells is in units.

    Parameters
    ----------
    cells
        Index (series, time), [P].
    weights
        Of the fits, [F].
    means
        On the modelled scale, [F, P].
    covariances
        [F, P, P].
    transforms
        Of each cell: which of the P are logarithms.
    """

    cells: pd.MultiIndex
    weights: Floats
    means: Floats
    covariances: Floats
    transforms: Transforms

    @property
    def series(self) -> list[object]:
        """Names of the series."""
        return list(self.cells.get_level_values(0).unique())

    def moments(self) -> tuple[Floats, Floats]:
        """Mean [P] and covariance [P, P] of the mixture, in the units of the series."""
        if not self.transforms.any:
            return self._mixed(self.means, self.covariances)
        both = map(self.transforms.joint_moments, self.means, self.covariances)
        means, covariances = map(np.array, zip(*both, strict=True))
        return self._mixed(means, covariances)

    def _mixed(self, means: Floats, covariances: Floats) -> tuple[Floats, Floats]:
        """Mean and covariance of a mixture, from those of the fits."""
        mean = self.weights @ means
        apart = means - mean
        within = np.tensordot(self.weights, covariances, axes=1)
        return mean, within + np.einsum("f,fp,fq->pq", self.weights, apart, apart)

    def frame(self, level: float = 0.9, quantiles: Sequence[float] = ()) -> pd.DataFrame:
        """Columns mean, sd, lower, upper, and q0.05 for the quantile 0.05; one row per cell."""
        mean, covariance = self._mixed(self.means, self.covariances)
        sd = np.sqrt(np.maximum(covariance.diagonal(), 0.0))
        told = intervals(self.cells, mean, sd, level, quantiles)
        if self.transforms.any:
            told = told.apply(self.transforms.back, raw=True)
            mean, covariance = self.moments()
            told["mean"], told["sd"] = mean, np.sqrt(np.maximum(covariance.diagonal(), 0.0))
        return told

    def samples(self, count: int, seed: int) -> pd.DataFrame:
        """Draw all cells together: one row per cell, one column per draw."""
        count, seed = whole_number(count, "samples", 1), whole_number(seed, "seed", 0)
        rng = np.random.default_rng(seed)
        drawn = []
        for own, mean, covariance in zip(
            rng.multinomial(count, self.weights), self.means, self.covariances, strict=True
        ):
            normal = rng.standard_normal((own, len(mean)))
            drawn.append(mean + normal @ root(covariance).T)
        paths = self.transforms.back(rng.permutation(np.concatenate(drawn)))
        return pd.DataFrame(paths.T, self.cells, pd.RangeIndex(count, name="sample"))

    def given(self, known: Mapping[object, Course]) -> Joint:
        r"""What is to be expected if some series did this.

        .. math:: \mu_a + \Sigma_{ab} \Sigma_{bb}^{-1} (y_b - \mu_b), \qquad
           \Sigma_{aa} - \Sigma_{ab} \Sigma_{bb}^{-1} \Sigma_{ba}

        for each fit, whose weight is multiplied by the density that it had for what is given; all
        on the modelled scale.

        Parameters
        ----------
        known
            By series: its value at the last time, or one for every time (NaN is unknown), or a
            Series with some of the times.

        Raises
        ------
        ValueError
            If a series or time is not in the forecast, a time is given twice, a value is infinite
            or above 1e100 in size, or nothing is given.
        """
        values = self._given_values(known)
        b = np.flatnonzero(np.isfinite(values))
        if not len(b):
            raise ValueError(f"expected at least one known value, got {dict(known)!r}")
        log_weights, means, covariances = np.log(self.weights), [], []
        for f, (mean, covariance) in enumerate(zip(self.means, self.covariances, strict=True)):
            own = covariance[np.ix_(b, b)]
            own = own + _JITTER * own.diagonal().mean() * np.eye(len(b))
            off = values[b] - mean[b]
            gain = np.linalg.solve(own, covariance[b]).T
            log_weights[f] -= 0.5 * float(
                off @ np.linalg.solve(own, off) + np.linalg.slogdet(own)[1] + len(b) * LOG_2PI
            )
            conditional = covariance - gain @ covariance[b]
            conditional[b] = conditional[:, b] = 0.0
            expected = mean + gain @ off
            expected[b] = values[b]
            means.append(expected)
            covariances.append(conditional)
        weights = np.asarray(softmax(log_weights))
        return replace(
            self, weights=weights, means=np.array(means), covariances=np.array(covariances)
        )

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

    def aggregate(
        self,
        weights: Mapping[object, float],
        level: float = 0.9,
        quantiles: Sequence[float] = (),
    ) -> pd.DataFrame:
        """Weighted sums of the series at every time, with intervals.

        Where logarithms are modelled quantiles are those of draws; mean and sd are exact.

        Parameters
        ----------
        weights
            By series; of a spread one is negative.
        level, quantiles
            Of the interval, and of more columns.

        Returns
        -------
        DataFrame by time with columns mean, sd, lower, upper.

        Raises
        ------
        ValueError
            If there is no such series.
        """
        for name in weights:
            check_series(name, self.series)
        times = self.cells.get_level_values(1).unique()
        own = np.array([float(weights.get(name, 0.0)) for name, _ in self.cells])
        at = times.get_indexer(self.cells.get_level_values(1))
        W = np.zeros((len(times), len(own)))
        W[at, np.arange(len(own))] = own
        mean, covariance = self.moments()
        sd = np.sqrt(np.maximum(np.einsum("tp,pq,tq->t", W, covariance, W), 0.0))
        told = intervals(times, W @ mean, sd, level, quantiles)
        if self.transforms.any:
            sums = W @ self.samples(DRAWS, 0).to_numpy()
            tail = 0.5 - 0.5 * level
            wanted = np.quantile(sums, [tail, 1.0 - tail, *quantiles], axis=1)
            told.iloc[:, 2:] = wanted.T
        return told


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


def intervals(
    index: pd.Index, mean: Floats, sd: Floats, level: float, quantiles: Sequence[float]
) -> pd.DataFrame:
    """Columns mean, sd, lower, upper, and quantiles, of normals.

    Raises
    ------
    ValueError
        If the level or a quantile is not between 0 and 1.
    """
    check_level(level)
    check_quantiles(quantiles)
    half = norm.ppf(0.5 + 0.5 * level) * sd
    columns = {"mean": mean, "sd": sd, "lower": mean - half, "upper": mean + half}
    columns |= {quantile_column(q): mean + norm.ppf(q) * sd for q in quantiles}
    return pd.DataFrame(columns, index)
