r"""How sure hyperparameters are when little is taken for granted: a coarsened posterior.

The curvature of a fit's own objective makes intervals that are too narrow: the fit may be wrong
about much else.  This posterior leaves that open.

.. math::
   p(\theta, h, \sigma^2 \mid X) &\propto p(\theta)\, p(h)\, p(\sigma^2)
   \prod_n \mathcal{N}(H x_n \mid 0, H V_n H)^{1/2} \\
   V_n &= \sum_k z_{nk} h_{nk} C_k(\theta) + h_{n0} C_0 + \sigma_n^2 I

- Every series has heights of its own, :math:`\log h_{nk} \sim \mathcal{N}(0, 1.5^2)`, whatever
  likelihood the fit was learnt with.
- C_0 is a random walk that every series may have besides, unless the fit has a walk: it stands for
  slow movements that the fit has no component for.
- H subtracts averages, because those of the data were subtracted (`matching.centred`).  The
  location of a line is nothing but a level then, and keeps its prior.
- The power of the likelihood leaves open that the model is wrong (Miller and Dunson 2019).

The mode is found by Fisher scoring from the fit; heights and noise are integrated out there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from ..data.observations import Observations
from ..fit.engine import variances
from ..fit.fits import Fit, FitSettings
from ..fit.initialization import NOISE_VARIANCE, Ranges, typical_step
from ..fit.layout import Layout
from ..fit.model_covariances import fit_covariances
from ..gp.series import log_density
from ..gp.types import Floats, Integers
from ..kernels.grammar import Product, parse
from ..runtime.threads import single_threaded
from .matching import average, centred

_HEIGHT_SD = 1.5
"""A component has between a fifth and five times its variance in 72 of 100 series."""

POWER = 0.5
"""Of the likelihood of a series."""

_WALK = 0.1
"""Mean variance of the walk that a series may have besides, in series of variance one."""

_WALK_BEGINS = -1.0
"""Its log height where scoring begins."""

_STEP = 1e-4
"""Of the finite differences of covariances, on the scale on which hyperparameters are learnt."""

_MOST_STEPS = 10
_SETTLED = 0.05
"""Fisher scoring ends with a step that gains less, in nats."""

_LARGEST_STEP = 2.0
"""On any logarithm."""


@dataclass(frozen=True)
class HyperparameterPosterior:
    """A normal distribution over the hyperparameters of a fit, in scaled units.

    Parameters
    ----------
    layout
        Places of the hyperparameters in the flat vector: logarithms of the positive ones.
    ranges
        Their bounds and priors.
    mean
        [P].
    covariance
        [P, P]; zero for what is not learnt.
    """

    layout: Layout
    ranges: Ranges
    mean: Floats
    covariance: Floats

    @property
    def sd(self) -> Floats:
        """Standard deviations, [P]: relative errors of positive hyperparameters where small."""
        return np.sqrt(np.diag(self.covariance))


_SHORTENED = (1.0, 1 / 3, 1 / 9, 1 / 27)
"""What is tried of a step that gains nothing."""

_MOST_SERIES = 16
"""Of more series as many, evenly spread, are asked."""

_MOST_TIMES = 300
"""Of more times as many, evenly spread, are looked at."""


@dataclass(frozen=True)
class _Point:
    """Where the posterior is looked at, or a direction.

    Parameters
    ----------
    theta
        Log variances and hyperparameters of the kernels, [P].
    own
        For each series log heights of what it has, and last its log noise variance.
    """

    theta: Floats
    own: tuple[Floats, ...]

    def towards(self, direction: _Point, length: float) -> _Point:
        """Return the point so far in a direction."""
        own = (at + length * d for at, d in zip(self.own, direction.own, strict=True))
        return _Point(self.theta + length * direction.theta, tuple(own))


class _Series:
    """A series, and what it says of a posterior.

    Parameters
    ----------
    y
        Its observed values, [d].
    places
        Of these among all D, [d].
    has
        Numbers of its components, the walk among them, [J].
    """

    def __init__(self, y: Floats, places: Integers, has: Integers) -> None:
        self.y, self.has = y - y.mean(), has
        self._places = places
        self._average = average(len(y))
        self._noise = np.eye(len(y)) - self._average
        # Priors of log heights and log noise.
        self.mean = np.append(np.zeros(len(has)), NOISE_VARIANCE.mean)
        self.precision = np.append(np.full(len(has), _HEIGHT_SD), NOISE_VARIANCE.sd) ** -2.0

    def select(self, C: Floats) -> Floats:
        """From covariances of all points [., D, D] to centred ones of its own, [., d, d]."""
        is_all = len(self._places) == C.shape[-1]
        return centred(C if is_all else C[:, self._places][:, :, self._places])

    def parts(self, own: Floats, C: Floats) -> Floats:
        """What its covariance is the sum of, [J + 1, d, d]: components, and noise."""
        noise = math.exp(own[-1]) * self._noise
        return np.concatenate([np.exp(own[:-1])[:, None, None] * C, noise[None]])

    def value(self, own: Floats, C: Floats) -> float:
        """Log posterior up to a constant.

        Parameters
        ----------
        own
            Log heights and log noise variance, [J + 1].
        C
            Centred covariances of what it has, [J, d, d].
        """
        V = self.parts(own, C).sum(axis=0) + self._average
        likelihood = log_density(np.asfortranarray(V), self.y)
        if not math.isfinite(likelihood):
            return -math.inf
        return POWER * likelihood - 0.5 * float(self.precision @ (own - self.mean) ** 2)

    def slopes(self, parts: Floats, others: Floats) -> tuple[Floats, Floats]:
        r"""Gradient and Fisher information of the coarsened likelihood.

        .. math:: g_i = \tfrac12 (b^\top M_i b - \operatorname{tr} V^{-1} M_i), \qquad
           F_{ij} = \tfrac12 \operatorname{tr}(V^{-1} M_i V^{-1} M_j), \qquad b = V^{-1} y

        Parameters
        ----------
        parts
            Of V, see `parts`: its derivatives by log heights and log noise.
        others
            Its derivatives by hyperparameters, [Q, d, d].

        Returns
        -------
        g, [J + 1 + Q], and F.
        """
        V = parts.sum(axis=0) + self._average
        M = np.concatenate([parts, others])
        L, failed = dpotrf(V, lower=1)
        if failed:
            raise np.linalg.LinAlgError("expected a positive definite covariance of a series")
        b, _ = dpotrs(L, self.y, lower=1)
        V_inverse, _ = dpotrs(L, np.eye(len(V)), lower=1)
        products = (M.reshape(-1, len(V)) @ V_inverse).reshape(M.shape)
        rows, columns = (A.reshape(len(M), -1) for A in (products, products.transpose(0, 2, 1)))
        g = 0.5 * (M @ b @ b - np.trace(products, axis1=1, axis2=2))
        return POWER * g, POWER * 0.5 * rows @ columns.T


class _Posterior:
    """Log posterior of the hyperparameters of a fit, and of heights and noise of its series.

    Parameters are those of `coarsened`.
    """

    def __init__(self, fit: Fit, observations: Observations, settings: FitSettings) -> None:
        self._x, self._K = observations.x, len(fit.kernels)
        self._fit = fit
        self.layout = Layout(fit.kernels, num_series=0)
        self.ranges = Ranges.of(self.layout, typical_step(self._x))
        owners = [k for k, p in enumerate(fit.kernels) for f in p.factors for _ in f.values]
        self._owner = np.array([*range(self._K), *owners], np.int32)
        is_free = ~self.layout.is_fixed
        self._free = np.flatnonzero(is_free)
        self._shapes = np.flatnonzero(is_free & (np.arange(self.layout.size) >= self._K))
        self._walk = np.empty((0, len(self._x), len(self._x)))
        if not any(all(f.base.is_walk for f in kernel.factors) for kernel in fit.kernels):
            self._walk = fit_covariances(fit, self._x, [_walk(self._x)])
        C = fit_covariances(fit, self._x)
        self.series, own = [], []
        says_something = fit.Z.any(axis=1) & (observations.mask.sum(axis=1) > 1.0)
        for n in _spread_out(np.flatnonzero(says_something), _MOST_SERIES):
            has, places = np.flatnonzero(fit.Z[n]), np.flatnonzero(observations.mask[n])
            y, d = observations.Y[n, places], len(places)
            log_own = np.log(np.append(np.ones(len(has)), fit.noise_variance[n]))
            V = C[has][:, places][:, :, places].sum(axis=0)
            q = float(y @ np.linalg.solve(V + fit.noise_variance[n] * np.eye(d), y))
            log_own -= math.log(settings.likelihood.weight(q, d))
            if len(self._walk):
                has, log_own = np.append(has, self._K), np.insert(log_own, -1, _WALK_BEGINS)
            self.series.append(_Series(y, places, has.astype(np.int32)))
            own.append(log_own)
        self.start = _Point(self.layout.pack(np.empty(0)), tuple(own))

    def value(self, point: _Point) -> float:
        """Log density up to a constant."""
        total, _ = self.ranges.log_prior(point.theta)
        C = self._covariances(point.theta)
        for series, own in zip(self.series, point.own, strict=True):
            total += series.value(own, series.select(C[series.has]))
        return total

    def scored(self, point: _Point) -> tuple[_Point, Floats]:
        """A step of Fisher scoring, and the precision of theta [P, P], the rest integrated out."""
        _, gradient = self.ranges.log_prior(point.theta)
        precision = np.diag(self.ranges.precision)
        C, dC = self._covariances(point.theta), self._derivatives(point.theta)
        answers = []
        for series, own in zip(self.series, point.own, strict=True):
            parts = series.parts(own, series.select(C[series.has]))
            height = np.zeros(self._K + 1)
            height[series.has] = np.exp(own[:-1])
            of_shape = height[self._owner[self._shapes]]
            learnt = np.flatnonzero(of_shape)
            g, F = series.slopes(parts, of_shape[learnt, None, None] * series.select(dC[learnt]))
            # Which entries of theta these slopes are also by: log variances act as heights do.
            J = len(own)
            T = np.zeros((len(g), self.layout.size + 1))
            T[range(J - 1), np.where(series.has < self._K, series.has, -1)] = 1.0
            T[range(J, len(g)), self._shapes[learnt]] = 1.0
            T = T[:, :-1]
            across = T.T @ F[:, :J]
            of_own = F[:J, :J] + np.diag(series.precision)
            slope = g[:J] - series.precision * (own - series.mean)
            answer = np.linalg.solve(of_own, np.column_stack([slope, across.T]))
            gradient += T.T @ g - across @ answer[:, 0]
            precision += T.T @ F @ T - across @ answer[:, 1:]
            answers.append(answer)
        d, free = np.zeros(self.layout.size), self._free
        d[free] = np.linalg.solve(precision[np.ix_(free, free)], gradient[free])
        return _Point(d, tuple(a[:, 0] - a[:, 1:] @ d for a in answers)), precision

    def _covariances(self, theta: Floats) -> Floats:
        """Covariances of the components, and last of the walk, [K or K + 1, D, D]."""
        kernels, _ = self.layout.unpack(theta)
        return np.concatenate([fit_covariances(self._fit, self._x, kernels), self._walk])

    def _derivatives(self, theta: Floats) -> Floats:
        """Derivatives of covariances by hyperparameters, by central differences, [Q, D, D]."""
        dC = np.empty((len(self._shapes), len(self._x), len(self._x)))
        for out, i in zip(dC, self._shapes, strict=True):
            moved = []
            for step in (_STEP, -_STEP):
                at = theta.copy()
                at[i] += step
                moved.append(self.layout.unpack(at)[0][self._owner[i]])
            up, down = fit_covariances(self._fit, self._x, moved)
            out[...] = (up - down) / (2.0 * _STEP)
        return dC

    def clipped(self, point: _Point) -> _Point:
        """Return the point within the bounds of the hyperparameters."""
        inside = np.clip(point.theta, self.ranges.lower, self.ranges.upper)
        return replace(point, theta=np.where(self.layout.is_fixed, point.theta, inside))


@single_threaded()
def coarsened(
    fit: Fit, observations: Observations, settings: FitSettings
) -> HyperparameterPosterior:
    """Approximate the coarsened posterior of a fit's variances and hyperparameters.

    Parameters
    ----------
    fit
        A fit of these observations.
    observations
        The scaled data.  Of more than 16 series with a component 16 are asked, and of more than
        300 times as many.
    settings
        With which the fit was learnt.

    Returns
    -------
    A normal distribution over the kernels' numbers, without noise variances.
    """
    x = np.arange(len(observations.x), dtype=np.int32)
    posterior = _Posterior(fit, observations.at_times(_spread_out(x, _MOST_TIMES)), settings)
    point, value = posterior.start, posterior.value(posterior.start)
    direction, precision = posterior.scored(point)
    for _ in range(_MOST_STEPS):
        largest = max(np.abs(d).max(initial=0.0) for d in (direction.theta, *direction.own))
        whole = min(1.0, _LARGEST_STEP / max(largest, _LARGEST_STEP))
        for shortened in _SHORTENED:
            tried = posterior.clipped(point.towards(direction, shortened * whole))
            reached = posterior.value(tried)
            if reached > value:
                break
        else:
            break
        gain, point, value = reached - value, tried, reached
        if gain < _SETTLED:
            break
        direction, precision = posterior.scored(point)
    free = np.flatnonzero(~posterior.layout.is_fixed)
    covariance = np.zeros_like(precision)
    covariance[np.ix_(free, free)] = np.linalg.inv(precision[np.ix_(free, free)])
    return HyperparameterPosterior(posterior.layout, posterior.ranges, point.theta, covariance)


def _walk(x: Floats) -> Product:
    """Return a walk of mean variance `_WALK`; averages are subtracted, so any start will do."""
    walk = parse(f"1.0 x RW(start={x[0] - typical_step(x)})")
    return replace(walk, variance=_WALK / float(variances([walk], x).mean()))


def _spread_out(places: Integers, most: int) -> Integers:
    """Return the places, or so many of them, evenly spread."""
    if len(places) <= most:
        return places
    return places[np.linspace(0, len(places) - 1, most).round().astype(int)]
