r"""Heights: the factor by which the variance of a component differs from series to series.

.. math:: x_n \mid z_n, h_n \sim \mathcal{N}\Big(0, \sum_k z_{nk} h_{nk} C_k + \sigma_n^2 I\Big),
   \qquad a_{nk} = \log h_{nk} \sim \mathcal{N}(0, s^2)

What a row of Z is worth is the evidence, heights integrated out by Laplace's approximation in a:

.. math:: \log p(x_n \mid z_n) \approx \log p(x_n \mid z_n, \hat a)
   - \frac{|\hat a|^2}{2 s^2} - \frac12 \log |I + s^2 F|, \qquad
   F_{kl} = \tfrac12 h_k h_l \operatorname{tr}(V^{-1} C_k V^{-1} C_l)

with F the Fisher information, and a-hat found by Fisher scoring.  The last term is what a component
pays for having a height to choose; heights do not count in BIC.  They cost a few products of
matrices for every row that is worth it, and covariances are no longer shared by series: this is for
tables of some dozen series.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dsymm
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from ..data.observations import Observations
from ..gp.types import LOG_2PI, Floats, Integers
from ..model.amplitudes import HEIGHT_SD
from .assignments import Pairs
from .missing import seen_by_series

MOST_SERIES = 64
"""Each series has covariances of its own: the time of everything grows with their number."""

LEVELS = (0.2, 1.0, 5.0)
"""Heights that a component which a series has not is tried with."""

_WORTH = 12.0
"""Rows of Z whose density is this much (in nats) below the best keep the heights they have."""

_MOST_STEPS = 6
_SETTLED = 0.01
"""Fisher scoring ends with a step that gains less, in nats."""

_LARGEST_STEP = 1.5


class SeriesEvidence:
    """What rows of Z are worth to one series, and with which heights.

    Parameters
    ----------
    C
        Covariances of the components at the points that the series has, [K, d, d].
    y
        Its values there, [d].
    noise_variance
        Its noise.
    """

    def __init__(self, C: Floats, y: Floats, noise_variance: float) -> None:
        self._C, self._y, self._noise = C, y, noise_variance
        self._flat = C.reshape(len(C), len(y) ** 2)

    def plain(self, row: Floats, log_heights: Floats) -> float:
        """Log density of the series and of the heights it uses up to a constant; -inf: none."""
        on = np.flatnonzero(row).astype(np.int32)
        L, failed = self._factor(on, log_heights[on])
        return -np.inf if failed else self._joint(L, log_heights[on])[0]

    def log_density(self, row: Floats, log_heights: Floats) -> float:
        """Log density of the series alone; -inf where there is none."""
        a = log_heights[row > 0.0]
        return self.plain(row, log_heights) + 0.5 * float(a @ a) / HEIGHT_SD**2

    def laplace(self, row: Floats, log_heights: Floats) -> tuple[float, Floats]:
        """Evidence of a row, and all log heights [K], those that it uses at their best."""
        on = np.flatnonzero(row).astype(np.int32)
        a = log_heights[on]
        L, failed = self._factor(on, a)
        if failed:
            return -np.inf, log_heights
        joint, b = self._joint(L, a)
        for _ in range(_MOST_STEPS):
            slope, F = self._derivatives(L, b, on, a)
            step = np.linalg.solve(F + np.eye(len(on)) / HEIGHT_SD**2, slope)
            step *= min(1.0, _LARGEST_STEP / max(float(np.abs(step).max(initial=0.0)), 1e-12))
            if float(step @ slope) < 2.0 * _SETTLED:
                break
            for _ in range(4):
                L_new, failed = self._factor(on, a + step)
                new, b_new = (-np.inf, b) if failed else self._joint(L_new, a + step)
                if new > joint:
                    break
                step *= 0.4
            else:
                break
            a, L, b, joint = a + step, L_new, b_new, new
        else:
            _, F = self._derivatives(L, b, on, a)
        occam = 0.5 * float(np.linalg.slogdet(np.eye(len(on)) + HEIGHT_SD**2 * F)[1])
        found = log_heights.copy()
        found[on] = a
        return joint - occam, found

    def _factor(self, on: Integers, a: Floats) -> tuple[Floats, int]:
        d = len(self._y)
        V = (np.exp(a) @ self._flat[on]).reshape(d, d).T
        V.T.reshape(-1)[:: d + 1] += self._noise
        L, failed = dpotrf(V, lower=1, clean=0, overwrite_a=1)
        return L, failed

    def _joint(self, L: Floats, a: Floats) -> tuple[float, Floats]:
        """Log density of series and heights, and ``b = V^-1 y``."""
        b, _ = dpotrs(L, self._y, lower=1)
        log_determinant = 2.0 * float(np.log(L.diagonal()).sum())
        log_density = -0.5 * (float(self._y @ b) + log_determinant + len(b) * LOG_2PI)
        return log_density - 0.5 * float(a @ a) / HEIGHT_SD**2, b

    def _derivatives(self, L: Floats, b: Floats, on: Integers, a: Floats) -> tuple[Floats, Floats]:
        """Slope of the log joint density in a, and the Fisher information."""
        V_inverse, _ = dpotri(L, lower=1)
        products = [dsymm(1.0, V_inverse, self._C[k].T, lower=1) for k in on]
        h = np.exp(a)
        quadratic = np.array([b @ self._C[k] @ b for k in on])
        trace = np.array([float(np.trace(M)) for M in products])
        # tr(A B) of A = V^-1 C_k and B = V^-1 C_l is the sum of the products of A' and B.
        F = np.array([[float(np.vdot(A.T, B)) for B in products] for A in products])
        F = 0.5 * F.reshape(len(on), len(on)) * np.outer(h, h)
        return 0.5 * h * (quadratic - trace) - a / HEIGHT_SD**2, F


def every_series(
    C: Floats, noise_variance: Floats, observations: Observations
) -> list[SeriesEvidence]:
    """Return the `SeriesEvidence` of all series, from covariances [K, D, D] of the components."""
    seen = seen_by_series(observations)
    own = {id(points): C for points in seen if points.is_all}
    for points in seen:
        if id(points) not in own:
            own[id(points)] = np.ascontiguousarray(C[:, points.places][:, :, points.places])
    return [
        SeriesEvidence(own[id(points)], np.ascontiguousarray(points.rows(y)), float(noise))
        for points, y, noise in zip(seen, observations.Y, noise_variance, strict=True)
    ]


def pair_evidence(
    evidence: list[SeriesEvidence], pairs: Pairs, log_heights: Floats
) -> tuple[Floats, Floats]:
    """Evidence of all pairs, [P], and the log heights of each, [P, K].

    Parameters
    ----------
    evidence
        Of `every_series`.
    pairs
        Of a series and a row.
    log_heights
        To begin with, [N, K].
    """
    values, heights = np.empty(len(pairs.series)), log_heights[pairs.series]
    ends = [*pairs.starts[1:], len(pairs.series)]
    for n, (start, end) in enumerate(zip(pairs.starts, ends, strict=True)):
        rows = pairs.configurations[start:end]
        plain = np.array([evidence[n].plain(row, log_heights[n]) for row in rows])
        best = -np.inf
        for i in np.argsort(-plain):
            values[start + i] = plain[i]
            if plain[i] > max(best, plain.max()) - _WORTH:
                found = evidence[n].laplace(rows[i], log_heights[n])
                values[start + i], heights[start + i] = found
                best = max(best, found[0])
    return values, heights


def would_be(evidence: list[SeriesEvidence], Z: Floats, log_heights: Floats) -> Floats:
    """Log heights [N, K] in which those of components that a series has not are the best of few."""
    found = log_heights.copy()
    for n, k in np.argwhere(Z == 0.0):
        row, tried = Z[n].copy(), log_heights[n].copy()
        row[k] = 1.0
        best = -np.inf
        for a in (log_heights[n, k], *np.log(LEVELS)):
            tried[k] = a
            value = evidence[n].plain(row, tried)
            if value > best:
                best, found[n, k] = value, a
    return found


def chosen_heights(
    pairs: Pairs, values: Floats, heights: Floats, Z: Floats, before: Floats
) -> Floats:
    """Log heights [N, K]: of what a series has, those of its row; of the rest the best there are.

    Parameters
    ----------
    pairs, values, heights
        Rows, their evidence, and their heights; see `pair_evidence`.
    Z
        The row that each series has now.
    before
        Log heights of what no row is worth keeping for.
    """
    found = before.copy()
    ends = [*pairs.starts[1:], len(pairs.series)]
    for n, (start, end) in enumerate(zip(pairs.starts, ends, strict=True)):
        rows = pairs.configurations[start:end]
        for k in range(Z.shape[1]):
            has = np.flatnonzero(rows[:, k])
            if has.size:
                found[n, k] = heights[start + has[np.argmax(values[start + has])], k]
        own = start + int(np.argmax((rows == Z[n]).all(axis=1)))
        found[n, Z[n] > 0.0] = heights[own, Z[n] > 0.0]
    return found
