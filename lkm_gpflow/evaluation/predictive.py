"""Forecast distributions cell by cell: Student-t or normal, lognormal, or given by quantiles."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import beta, erf, ndtr, ndtri, stdtr
from scipy.stats import t

from ..comparators.protocol import PROBABILITIES
from ..forecast.mixture import quantile_column
from ..gp.likelihoods import unit_quantile, unit_scale
from ..gp.types import LOG_2PI, Booleans, Floats

LOG_MOMENTS = ("log_mean", "log_sd")
"""Columns of forecasts, beside mean and sd: moments of the logarithm, NaN where it is not modelled.
"""

DEGREES = "degrees"
"""Another such column: degrees of freedom of a Student-t, NaN where the forecast is another."""

QUANTILES = tuple(quantile_column(q) for q in PROBABILITIES)
"""Further columns: of counts, shares and others that are none of these; NaN elsewhere."""


@dataclass(frozen=True)
class Predictive:
    r"""Forecasts of cells, in the units of the data.

    .. math:: y \sim N(\mu, s^2) \qquad\text{or}\qquad
        (y - \mu) / c s \sim t_v,\; c = \sqrt{1 - 2 / v} \qquad\text{or}\qquad
        \log y \sim N(m, r^2)

    or y has given quantiles, such as a count or a share.
    """

    # mu and s: mean and standard deviation, of a lognormal and of a Student-t, too.
    mean: Floats
    sd: Floats
    # m and r; NaN where the forecast is not lognormal.
    log_mean: Floats
    log_sd: Floats
    degrees: Floats  # v, more than two; infinite where the forecast is no Student-t
    quantiles: Floats | None = None  # [Q, ...], of `PROBABILITIES`; NaN where it has a formula

    @classmethod
    def of(cls, columns: Mapping[str, Floats]) -> Predictive:
        """Take the columns of a forecast, of which all but mean and sd may be absent."""
        nothing = np.full(np.shape(columns["mean"]), np.nan)
        log_mean, log_sd, degrees = (columns.get(n, nothing) for n in (*LOG_MOMENTS, DEGREES))
        degrees = np.where(np.isnan(degrees), np.inf, degrees)
        given = np.array([columns[n] for n in QUANTILES]) if QUANTILES[0] in columns else None
        return cls(columns["mean"], columns["sd"], log_mean, log_sd, degrees, given)

    def divided_by(self, scale: Floats) -> Predictive:
        """Return the forecasts of values that are divided by scales of the cells."""
        return Predictive(
            self.mean / scale, self.sd / scale, self.log_mean - np.log(scale), self.log_sd,
            self.degrees, None if self.quantiles is None else self.quantiles / scale,
        )  # fmt: skip

    def crps(self, y: Floats) -> Floats:
        r"""Continuous ranked probability score of every cell, in units of the data.

        Of a lognormal (Baran and Lerch 2015)

        .. math:: y\,(2 \Phi(z) - 1) - 2 e^{m + r^2/2}
            \left(\Phi(z - r) + \Phi(r / \sqrt 2) - 1\right), \qquad z = (\log y - m) / r

        and for values that are not positive the limit :math:`z \to -\infty`; the absolute error
        where r = 0.  Of a Student-t see `student_crps`; of quantiles :math:`q_p` the sum by the
        midpoint rule of :math:`2 \int_0^1 (p - 1[y < q_p])(y - q_p)\, dp`.
        """
        z = _standardised(self._log(y) - self.log_mean, self.log_sd)
        tail = ndtr(z - self.log_sd) - ndtr(-self.log_sd / np.sqrt(2.0))
        middle = np.exp(self.log_mean + 0.5 * np.square(self.log_sd))
        lognormal = y * (2.0 * ndtr(z) - 1.0) - 2.0 * middle * tail
        other = student_crps(y, self.mean, self.sd, self.degrees)
        found = np.where(self._is_log, lognormal, other)
        if self.quantiles is None:
            return found
        # Cells of the same width around the probabilities, and half a one at either end.
        step = PROBABILITIES[0]
        p = np.array([0.25 * step, *PROBABILITIES, 1.0 - 0.25 * step])
        width = step * np.array([0.5, *np.ones(len(PROBABILITIES)), 0.5])
        p, width = (np.reshape(each, (-1, *[1] * np.ndim(y))) for each in (p, width))
        error = y - self.quantiles[[0, *range(len(PROBABILITIES)), -1]]
        pinball = np.where(error < 0.0, p - 1.0, p) * error
        return np.where(np.isnan(self.quantiles[0]), found, 2.0 * (width * pinball).sum(axis=0))

    def nlpd(self, y: Floats) -> Floats:
        r"""Negative log density of every cell, in nats.

        Of a lognormal that of the logarithm plus :math:`\log y`, the Jacobian: infinite where a
        value is not positive.  Of quantiles that of a normal of the same mean and sd, a proper
        score of these two (Dawid and Sebastiani 1999).
        """
        log_y = self._log(y)
        finite = np.where(np.isneginf(log_y), 0.0, log_y)
        lognormal = normal_nlpd(finite, self.log_mean, np.square(self.log_sd)) + finite
        lognormal = np.where(np.isneginf(log_y), np.inf, lognormal)
        other = student_nlpd(y, self.mean, self.sd, self.degrees)
        return np.where(self._is_log, lognormal, other)

    def inside(self, y: Floats, level: float) -> Floats:
        """How much of each cell lies in its central interval: one or zero, of a count between.

        A count spreads evenly from the probability of less to that of no more than it, so that the
        mean is the level if the forecast is true (Czado, Gneiting and Held 2009); to 1.25%.
        """
        p = 0.5 + 0.5 * level
        lognormal = np.abs(self._log(y) - self.log_mean) <= ndtri(p) * self.log_sd
        other = np.abs(y - self.mean) <= unit_quantile(p, self.degrees) * self.sd
        found = np.where(self._is_log, lognormal, other).astype(np.float64)
        if self.quantiles is None:
            return found
        cells = len(self.quantiles) + 1.0
        rounding = 1e-4 * self.sd  # of forecasts that a journal keeps with five digits
        less = np.sum(self.quantiles < y - rounding, axis=0)
        no_more = np.sum(self.quantiles <= y + rounding, axis=0)
        below = np.where(less == 0, 0.0, (less + 0.5) / cells)
        above = np.where(no_more == cells - 1.0, 1.0, (no_more + 0.5) / cells)
        both = np.minimum(above, p) - np.maximum(below, 1.0 - p)
        step = np.maximum(both, 0.0) / np.maximum(above - below, 0.5 / cells)
        alone = np.abs((less + 0.5) / cells - 0.5) < 0.5 * level
        return np.where(np.isnan(self.quantiles[0]), found, np.where(less < no_more, step, alone))

    @property
    def _is_log(self) -> Booleans:
        return np.isfinite(self.log_sd)

    @staticmethod
    def _log(y: Floats) -> Floats:
        """Return logarithms: minus infinity of what is not positive, NaN of what is missing."""
        safe = np.where(y > 0.0, y, 1.0)
        return np.where(y > 0.0, np.log(safe), np.where(np.isnan(y), np.nan, -np.inf))


def normal_crps(y: Floats, mean: Floats, sd: Floats) -> Floats:
    r"""Continuous ranked probability score of normal forecasts, cell by cell.

    .. math:: s \left( z (2 \Phi(z) - 1) + 2 \varphi(z) - \pi^{-1/2} \right),
        \qquad z = (y - \mu) / s
    """
    error = y - mean
    z = _standardised(error, sd)
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    return np.asarray(error * erf(z / np.sqrt(2)) + sd * (2 * density - 1 / np.sqrt(np.pi)))


def _standardised(error: Floats, sd: Floats) -> Floats:
    """Return z, and where the sd is zero its limit, at which a CRPS is the absolute error."""
    return np.divide(error, sd, out=np.copysign(np.inf, error), where=sd > 0.0)


def normal_nlpd(y: Floats, mean: Floats, variance: Floats) -> Floats:
    """Negative log density of normal forecasts, cell by cell, in nats."""
    return np.asarray(0.5 * (LOG_2PI + np.log(variance) + (y - mean) ** 2 / variance))


def student_crps(y: Floats, mean: Floats, sd: Floats, degrees: Floats) -> Floats:
    r"""Continuous ranked probability score of Student-t forecasts of given moments, cell by cell.

    .. math:: c s \left( z (2 F_v(z) - 1) + 2 f_v(z) \frac{v + z^2}{v - 1}
        - \frac{2 \sqrt v}{v - 1} \frac{B(1/2, v - 1/2)}{B(1/2, v/2)^2} \right),
        \qquad z = \frac{y - \mu}{c s}, \quad c = \sqrt{1 - 2/v}

    (Jordan, Krueger and Lerch 2019, appendix A), and that of the normal where v is infinite.
    """
    v = np.where(np.isinf(degrees), 3.0, degrees)  # any number: those are normal
    scale = np.asarray(sd * unit_scale(v))
    z = _standardised(y - mean, scale)
    finite = np.where(np.isinf(z), 0.0, z)
    density = t.pdf(finite, v)
    constant = 2.0 * np.sqrt(v) / (v - 1.0) * beta(0.5, v - 0.5) / np.square(beta(0.5, 0.5 * v))
    spread = 2.0 * density * (v + np.square(finite)) / (v - 1.0) - constant
    student = (y - mean) * (2.0 * stdtr(v, z) - 1.0) + scale * spread
    return np.where(np.isinf(degrees), normal_crps(y, mean, sd), student)


def student_nlpd(y: Floats, mean: Floats, sd: Floats, degrees: Floats) -> Floats:
    """Negative log density of Student-t forecasts of given moments, cell by cell, in nats."""
    v = np.where(np.isinf(degrees), 3.0, degrees)
    student = -t.logpdf(y, v, mean, sd * unit_scale(v))
    return np.where(np.isinf(degrees), normal_nlpd(y, mean, np.square(sd)), student)


def columns_of(forecast: Container[str]) -> list[str]:
    """Return the columns of a forecast that are to be kept."""
    others = (*LOG_MOMENTS, DEGREES, *QUANTILES)
    return ["mean", "sd", *(name for name in others if name in forecast)]


def matrices(forecast: pd.DataFrame, times: pd.Index, series: pd.Index) -> dict[str, Floats]:
    """Return the columns of a forecast that are to be kept, [M, N] each, whatever its rows' order.

    A ValueError says if rows of these M times and N series are absent or there twice, a mean or an
    sd is not finite, or an sd not positive.
    """
    wanted = pd.MultiIndex.from_product([series, times], names=["series", "time"])
    index = forecast.index
    if index.nlevels != 2 or not index.is_unique or not wanted.isin(index).all():
        raise ValueError(
            f"expected a forecast with one row for each of {len(series)} series and {len(times)} "
            f"times, index (series, time), got {len(index)} rows with index {list(index.names)}"
        )
    rows = forecast.reindex(wanted)
    columns = {name: rows[name].to_numpy(np.float64) for name in columns_of(forecast)}
    mean, sd = columns["mean"], columns["sd"]
    bad = np.flatnonzero(~(np.isfinite(mean) & np.isfinite(sd) & (sd > 0.0)))
    if bad.size:
        name, when = wanted[bad[0]]
        raise ValueError(
            f"expected finite means and positive, finite sds, got mean {mean[bad[0]]} and sd "
            f"{sd[bad[0]]} of series {name!r} at {when}"
        )
    return {name: values.reshape(len(series), len(times)).T for name, values in columns.items()}
