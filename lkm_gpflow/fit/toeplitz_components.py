r"""Components at regular times as a Toeplitz matrix and a few columns, with their pull-back.

.. math:: C = T + U^\top W U

- Stationary kernels are Toeplitz.
- LIN, UNTIL and FROM are a column c(x), alone or times a stationary kernel that is a sum of few
  waves: :math:`c_i c_j \sum_f \lambda_f \cos \omega_f (x_i - x_j)`, two columns a wave.  PER is
  one, by Bessel functions; so is SE within the span, by the Fourier series of a longer circle.
- RW and IOU are :math:`t(|x_i - x_j|) + u(x_i) + u(x_j) - \kappa'`: a tent, which is
  stationary, and the columns 1 and u.  Times a sum of few waves they have these columns for each.

Anything else is not of this form.  What needs more columns than it is worth is left to LAPACK, on
longer tables to nobody: its covariance is NaN, and learning turns back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

import numpy as np
from scipy.special import expit, ive

from ..gp.lags import Lags
from ..gp.types import Floats
from ..kernels.arrays import evaluate
from ..kernels.bases import BaseKernel
from .covariances import pull_factors

Factors: TypeAlias = Sequence[tuple[BaseKernel, Sequence[float]]]

_SHARE = 5
"""At most a fifth of the rows are columns of one component: more cost more than they save."""

_LONGEST_DENSE = 600
"""On more rows a search would spend nearly all of its time on components of too many columns."""

_SIGMAS = 7.4
"""Where a squared exponential ends, in time and in frequency: there it is below 1e-11."""

_MOST_HARMONICS = 200
_NEGLIGIBLE = 1e-13
"""Waves of a periodic kernel that are left out are a smaller share of its variance."""


@dataclass(frozen=True)
class ToeplitzComponent:
    """The covariance of a component, T + U' W U.

    Parameters
    ----------
    by_lag
        T by lag, [D].
    columns
        U, [m, D].
    weights
        W, [m, m].
    pull
        From gradients by these three to those by the log variance and the values of the factors
        (logarithms of the positive ones).
    """

    by_lag: Floats
    columns: Floats
    weights: Floats
    pull: Callable[[Floats, Floats, Floats], list[float]]


def toeplitz_component(lags: Lags, variance: float, factors: Factors) -> ToeplitzComponent | None:
    """Return a product of base kernels in this form, or None if it is left to LAPACK.

    Parameters
    ----------
    lags
        Regular times, and their distances from the first, [D].
    variance
        Variance of the component.
    factors
        Base kernels and their hyperparameters.
    """
    stationary = [(base, values) for base, values in factors if base.stationary]
    moving = [(base, values) for base, values in factors if not base.stationary]
    if not moving and any(base.name != "C" for base, _ in stationary):
        return _of_lags(lags, variance, stationary)
    is_walk = bool(moving) and moving[0][0].name in _TENTS
    if is_walk:
        # The start of a walk is the last of its values.
        has_form = len(moving) == 1 and moving[0][1][-1] <= lags.x[0]
    else:
        has_form = all(base.name in _ENVELOPES for base, _ in moving)
    if not has_form or not all(base.name in ("C", *_SPECTRA) for base, _ in stationary):
        return None
    waves = _Waves.of(lags, stationary, len(lags.x) // _SHARE)
    if waves is not None:
        return (_Walk if is_walk else _Enveloped)(lags, variance, factors, waves).component()
    return None if len(lags.x) <= _LONGEST_DENSE else _out_of_reach(len(lags.x))


def _out_of_reach(D: int) -> ToeplitzComponent:
    """Return a component of which nothing is known."""
    nothing = np.empty((0, D)), np.empty((0, 0))
    return ToeplitzComponent(np.full(D, np.nan), *nothing, lambda *_: [])


def _of_lags(lags: Lags, variance: float, factors: Factors) -> ToeplitzComponent:
    parts = [evaluate(base, lags, values) for base, values in factors]
    by_lag = variance * reduce(np.multiply, [k for k, _ in parts])

    def pull(d_lag: Floats, d_columns: Floats, d_weights: Floats) -> list[float]:
        return [float(d_lag @ by_lag), *pull_factors(parts, variance * d_lag)]

    nothing = np.empty((0, len(lags.x)))
    return ToeplitzComponent(by_lag, nothing, np.empty((0, 0)), pull)


# --- stationary kernels as sums of waves ----------------------------------------------------------


@dataclass(frozen=True)
class _Spectrum:
    """Weights and angular frequencies, [F], and their derivatives by the values, [Q, F]."""

    weights: Floats
    omega: Floats
    d_weights: Floats
    d_omega: Floats


def _periodic_spectrum(span: float, period: float, lengthscale: float) -> _Spectrum:
    """Weights 2 I_j(a) / (e^a - I_0(a)), a = 1 / l^2."""
    a, j = lengthscale**-2.0, np.arange(_MOST_HARMONICS + 1)
    bessel = ive(j, a)
    below = 1.0 - bessel[0]
    weights = 2.0 * bessel[1:] / below
    rest = np.cumsum(weights[::-1])[::-1]
    keep = int(np.searchsorted(-rest, -_NEGLIGIBLE))  # all of these and more, if it is too short
    slopes = 0.5 * (bessel[:-2] + bessel[2:]) - bessel[1:-1]
    by_a = 2.0 * slopes / below + weights[:-1] * (bessel[1] - bessel[0]) / below
    weights, by_a = weights[:keep], by_a[:keep]
    omega = 2.0 * np.pi * j[1 : keep + 1] / period
    nothing = np.zeros(keep)
    return _Spectrum(
        weights, omega, np.array([nothing, -2.0 * a * by_a]), np.array([-omega, nothing])
    )


def _smooth_spectrum(span: float, lengthscale: float) -> _Spectrum:
    """Return the Fourier series on a circle so long that its other half is not seen."""
    length = span + _SIGMAS * lengthscale
    count = int(np.ceil(_SIGMAS * length / (2.0 * np.pi * lengthscale)))
    omega = 2.0 * np.pi * np.arange(count + 1) / length
    squared = np.square(omega * lengthscale)
    weights = np.sqrt(2.0 * np.pi) * lengthscale / length * np.exp(-0.5 * squared)
    weights[1:] *= 2.0
    # The circle is one of many that would do: it is held as it is.
    return _Spectrum(weights, omega, (weights * (1.0 - squared))[None], np.zeros((1, count + 1)))


_SPECTRA: dict[str, Callable[..., _Spectrum]] = {"PER": _periodic_spectrum, "SE": _smooth_spectrum}


class _Waves:
    """A product of stationary kernels as a sum of waves: a cosine and a sine each.

    Parameters
    ----------
    lags
        The times.
    spectrum
        Of the product.
    """

    def __init__(self, lags: Lags, spectrum: _Spectrum) -> None:
        self._spectrum, self._h = spectrum, lags.lags
        self._turns = spectrum.omega != 0.0  # the sine of a constant is none
        waves = np.exp(1j * np.multiply.outer(spectrum.omega, lags.lags))
        self._cosines, self._sines = waves.real, waves.imag[self._turns]
        self.columns = np.concatenate([self._cosines, self._sines])  # [m, D]
        self.weights = np.concatenate([spectrum.weights, spectrum.weights[self._turns]])

    @classmethod
    def of(cls, lags: Lags, factors: Factors, most: int) -> _Waves | None:
        """Return the waves of C, SE and PER, or None if these are more than `most` columns."""
        found = _Spectrum(np.ones(1), np.zeros(1), np.empty((0, 1)), np.empty((0, 1)))
        span = float(lags.x[-1] - lags.x[0])
        for base, values in factors:
            if base.name == "C":
                continue
            found = _times(found, _SPECTRA[base.name](span, *values))
            if 2 * len(found.omega) > most:
                return None
        return cls(lags, found)

    def pull(self, d_columns: Floats, d_weights: Floats) -> Floats:
        """From gradients by the columns, [m, D], and weights, [m], to that by the values, [Q]."""
        count, turns = len(self._spectrum.omega), self._turns
        by_weight, by_omega = d_weights[:count].copy(), np.zeros(count)
        by_weight[turns] += d_weights[count:]
        turned = d_columns[count:] * self._cosines[turns]
        turned -= d_columns[:count][turns] * self._sines
        by_omega[turns] = turned @ self._h
        return self._spectrum.d_weights @ by_weight + self._spectrum.d_omega @ by_omega


def _times(one: _Spectrum, other: _Spectrum) -> _Spectrum:
    """Product of sums of waves: cos a cos b is half of cos (a + b) + cos (a - b)."""
    a, b = one.omega[:, None], other.omega
    is_single = (a == 0.0) | (b == 0.0)  # both terms are the same
    weights = one.weights[:, None] * other.weights
    d_weights = _by_both(one.d_weights, other.d_weights, one.weights[:, None], other.weights)
    waves = []
    for sign in (1.0, -1.0):
        keep = weights > 0.01 * _NEGLIGIBLE
        if sign < 0.0:
            keep &= ~is_single
        share = np.where(is_single, 1.0, 0.5)
        d_omega = _by_both(one.d_omega, sign * other.d_omega, np.ones_like(a), np.ones_like(b))
        arrays = (share * weights, a + sign * b, share * d_weights, d_omega)
        waves.append([array[..., keep] for array in arrays])
    return _Spectrum(*(np.concatenate(both, axis=-1) for both in zip(*waves, strict=True)))


def _by_both(by_one: Floats, by_other: Floats, one: Floats, other: Floats) -> Floats:
    """Derivatives of products of all pairs by the values of either, [Q, F, F']."""
    return np.concatenate([by_one[:, :, None] * other, one * by_other[:, None, :]])


# --- what is not stationary -----------------------------------------------------------------------


def _line(x: Floats, location: float) -> tuple[Floats, list[Floats]]:
    return x - location, [-np.ones_like(x)]


def _until(x: Floats, at: float, width: float) -> tuple[Floats, list[Floats]]:
    return _window(x, at, width, -1.0)


def _from(x: Floats, at: float, width: float) -> tuple[Floats, list[Floats]]:
    return _window(x, at, width, 1.0)


def _window(x: Floats, at: float, width: float, sign: float) -> tuple[Floats, list[Floats]]:
    u = sign * (x - at) / width
    c = expit(u)
    slope = c * expit(-u)
    return c, [-sign * slope / width, -u * slope]


_ENVELOPES: dict[str, Callable[..., tuple[Floats, list[Floats]]]] = {
    "LIN": _line,
    "UNTIL": _until,
    "FROM": _from,
}
"""Base kernels c(x) c(x'): c, [D], and its derivatives by the values."""


class _Enveloped:
    """Waves, or a constant, times kernels c(x) c(x')."""

    def __init__(self, lags: Lags, variance: float, factors: Factors, waves: _Waves) -> None:
        self._variance, self._factors, self._waves, self._D = variance, factors, waves, len(lags.x)
        self._envelopes = {
            i: _ENVELOPES[base.name](lags.x, *values)
            for i, (base, values) in enumerate(factors)
            if not base.stationary
        }

    def component(self) -> ToeplitzComponent:
        """The component; nothing of it is Toeplitz."""
        columns = self._waves.columns * self._envelope(None)
        weights = np.diag(self._variance * self._waves.weights)
        return ToeplitzComponent(np.zeros(self._D), columns, weights, self._pull)

    def _envelope(self, without: int | None) -> Floats:
        return reduce(
            np.multiply, [c for i, (c, _) in self._envelopes.items() if i != without],
            np.ones(self._D),
        )  # fmt: skip

    def _pull(self, d_lag: Floats, d_columns: Floats, d_weights: Floats) -> list[float]:
        by_weight = self._variance * d_weights.diagonal()
        waving = iter(self._waves.pull(d_columns * self._envelope(None), by_weight))
        by_time = np.einsum("md,md->d", d_columns, self._waves.columns)
        found = [float(by_weight @ self._waves.weights)]
        for i, (_, values) in enumerate(self._factors):
            if i in self._envelopes:
                others = by_time * self._envelope(i)
                found += [float(others @ slope) for slope in self._envelopes[i][1]]
            else:
                found += [float(next(waving)) for _ in values]
        return found


@dataclass(frozen=True)
class _Tent:
    """A walk as t(|x - x'|) + u(x) + u(x') + level: t and u, [D], and derivatives by its values."""

    t: Floats
    u: Floats
    d_t: tuple[Floats | float, ...]
    d_u: tuple[Floats | float, ...]
    d_level: tuple[float, ...]


def _random_walk_tent(lags: Lags, start: float) -> _Tent:
    half = 0.5 * lags.lags
    return _Tent(lags.lags[-1] - half, half, (0.0,), (0.0,), (-1.0,))


def _momentum_tent(lags: Lags, lengthscale: float, start: float) -> _Tent:
    """See `base.IntegratedOrnsteinUhlenbeck`."""
    walk = _random_walk_tent(lags, start)
    s, h = lags.x - start, lags.lags
    by_time, by_lag = np.expm1(-s / lengthscale), np.expm1(-h / lengthscale)

    def slope(r: Floats, expm1: Floats) -> Floats:
        return -0.5 * (lengthscale * expm1 + r * (1.0 + expm1))

    return _Tent(
        walk.t - 0.5 * lengthscale * by_lag,
        walk.u + 0.5 * lengthscale * by_time,
        (slope(h, by_lag), 0.0),
        (-slope(s, by_time), 0.5 * (1.0 + by_time)),
        (0.0, -1.0),
    )


_TENTS: dict[str, Callable[..., _Tent]] = {"RW": _random_walk_tent, "IOU": _momentum_tent}


class _Walk:
    """A walk that begins before the first time, times waves."""

    def __init__(self, lags: Lags, variance: float, factors: Factors, waves: _Waves) -> None:
        self._variance, self._factors, self._waves = variance, factors, waves
        self._parts = [evaluate(base, lags, values) for base, values in factors if base.stationary]
        self._waving = reduce(np.multiply, [k for k, _ in self._parts], np.ones_like(lags.lags))
        [(base, values)] = [factor for factor in factors if not factor[0].stationary]
        self._tent = _TENTS[base.name](lags, *values)
        self._level = float(lags.x[0] - values[-1] - lags.lags[-1])

    def component(self) -> ToeplitzComponent:
        """The component: its Toeplitz part is the waves' times the tent."""
        tent, waves, m = self._tent, self._waves, len(self._waves.weights)
        weights = np.zeros((2 * m, 2 * m))
        weights[:m, :m] = np.diag(self._level * waves.weights)
        weights[:m, m:] = weights[m:, :m] = np.diag(waves.weights)
        return ToeplitzComponent(
            self._variance * self._waving * tent.t,
            np.concatenate([waves.columns, waves.columns * tent.u]),
            self._variance * weights,
            self._pull,
        )

    def _pull(self, d_lag: Floats, d_columns: Floats, d_weights: Floats) -> list[float]:
        tent, waves, m = self._tent, self._waves, len(self._waves.weights)
        d_lag, d_weights = self._variance * d_lag, self._variance * d_weights
        by_level = d_weights[:m, :m].diagonal()
        by_weight = self._level * by_level
        by_weight = by_weight + d_weights[:m, m:].diagonal() + d_weights[m:, :m].diagonal()
        waving = waves.pull(d_columns[:m] + d_columns[m:] * tent.u, by_weight)
        waving += pull_factors(self._parts, d_lag * tent.t)
        by_t, by_u = d_lag * self._waving, np.einsum("md,md->d", d_columns[m:], waves.columns)
        level, values = float(by_level @ waves.weights), iter(waving)
        found = [float(by_t @ tent.t + by_weight @ waves.weights)]
        for base, own in self._factors:
            if base.stationary:
                found += [float(next(values)) for _ in own]
                continue
            for d_t, d_u, d_level in zip(tent.d_t, tent.d_u, tent.d_level, strict=True):
                found.append(float((by_t * d_t).sum() + (by_u * d_u).sum() + d_level * level))
        return found
