r"""The engine of long tables at regular times: exact, in O(D log^2 D) where LAPACK takes O(D^3).

Components are brought to the form of a Toeplitz matrix and a few columns, series to that of
`gp.toeplitz`.

.. math:: C = T + U^\top W U


- Stationary kernels are Toeplitz.
- LIN, UNTIL and FROM are a column c(x), alone or times a stationary kernel that is a sum of few
  waves: :math:`c_i c_j \sum_f \lambda_f \cos \omega_f (x_i - x_j)`, two columns a wave.  PER is
  one, by Bessel functions; so is SE within the span, by the Fourier series of a longer circle.
- RW and IOU are :math:`t(|x_i - x_j|) + u(x_i) + u(x_j) - \kappa'`: a tent, which is
  stationary, and the columns 1 and u.  Times a sum of few waves they have these columns for each.

Anything else is not of this form: rows of Z with such a component stay with LAPACK.  So do those
with a component that needs more columns than it is worth, up to some hundred rows; on longer tables
its covariance is NaN, and learning turns back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ive

from ..data.observations import Observations
from ..gp import limits
from ..gp.lags import Lags
from ..gp.likelihoods import GAUSSIAN, SeriesLikelihood
from ..gp.toeplitz import RowTransforms, ToeplitzSeries, are_regular, predictors
from ..gp.types import Booleans, Floats, Integers
from ..kernels.arrays import evaluate, window
from ..kernels.grammar import BaseKernel, Product
from .assignments import Pairs
from .covariances import pull_factors
from .engine import Engine, Entrance, Objective
from .fits import Fit, State
from .layout import Layout

Factors: TypeAlias = Sequence[tuple[BaseKernel, Sequence[float]]]

_ON_GRID = 1e-6
"""Times that are off by a smaller share of a step are on the grid."""

_AT_ONCE = 10**6
"""So many numbers are in the rows of the series that are gone through together."""

_AT_A_TIME = 1000
"""So many times are asked about together: each has a row of all times."""

_SHARE = 5
"""At most a fifth of the rows are columns of one component: more cost more than they save."""

_MOST_COLUMNS = 120
"""At most so many in any case: a transform each for every series."""

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
    walk = _WALKS.get(moving[0][0].name) if moving else None
    if walk is not None:
        # The start of a walk is the last of its values.
        has_form = len(moving) == 1 and moving[0][1][-1] <= lags.x[0]
    else:
        has_form = all(base.name in _ENVELOPES for base, _ in moving)
    if not has_form or not all(base.name in ("C", *_SPECTRA) for base, _ in stationary):
        return None if len(lags.x) <= limits.LONGEST else _out_of_reach(len(lags.x))
    waves = _Waves.of(lags, stationary, min(len(lags.x) // _SHARE, _MOST_COLUMNS))
    if waves is not None:
        form = _enveloped(lags, moving) if walk is None else walk(lags, *moving[0][1])
        return _of_waves(lags, variance, factors, form, waves)
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
    """A product of stationary kernels as a sum of waves: a cosine and a sine each."""

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


_Slope: TypeAlias = tuple[Floats | float, Floats, Floats]


class _Form(NamedTuple):
    """What is not stationary in a product, as t(|x - x'|) + v(x)' S v(x')."""

    t: Floats | float  # by lag, [D]
    v: Floats  # [J, D]
    S: Floats  # [J, J]
    slopes: list[_Slope]
    """Derivatives of these three by the values."""


def _line(x: Floats, location: float) -> tuple[Floats, list[Floats]]:
    return x - location, [-np.ones_like(x)]


_ENVELOPES: dict[str, Callable[..., tuple[Floats, list[Floats]]]] = {
    "LIN": _line,
    "UNTIL": partial(window, sign=-1.0),
    "FROM": partial(window, sign=1.0),
}
"""Base kernels c(x) c(x'): c, [D], and its derivatives by the values."""


def _enveloped(lags: Lags, factors: Factors) -> _Form:
    """Return the product of kernels c(x) c(x'); for none of them one."""
    envelopes = [_ENVELOPES[base.name](lags.x, *values) for base, values in factors]
    nothing, slopes = np.zeros((1, 1)), list[_Slope]()
    for i, (_, own) in enumerate(envelopes):
        others = _product([c for j, (c, _) in enumerate(envelopes) if j != i], lags.x)
        slopes += [(0.0, (others * slope)[None], nothing) for slope in own]
    return _Form(0.0, _product([c for c, _ in envelopes], lags.x)[None], np.ones((1, 1)), slopes)


def _product(factors: Sequence[Floats], like: Floats) -> Floats:
    return reduce(np.multiply, factors, np.ones_like(like))


def _random_walk(lags: Lags, start: float) -> _Form:
    """A tent: minus half the distance, and half of both times from the first one."""
    half, level = 0.5 * lags.lags, float(lags.x[0] - start - lags.lags[-1])
    v, S = np.array([np.ones_like(half), half]), np.array([[level, 1.0], [1.0, 0.0]])
    return _Form(lags.lags[-1] - half, v, S, [(0.0, np.zeros_like(v), np.diag([-1.0, 0.0]))])


def _momentum(lags: Lags, lengthscale: float, start: float) -> _Form:
    """See `base.IntegratedOrnsteinUhlenbeck`."""
    walk = _random_walk(lags, start)
    s, h = lags.x - start, lags.lags
    by_time, by_lag = np.expm1(-s / lengthscale), np.expm1(-h / lengthscale)

    def slope(r: Floats, expm1: Floats) -> Floats:
        return -0.5 * (lengthscale * expm1 + r * (1.0 + expm1))

    def of_u(u: Floats) -> Floats:
        return np.array([np.zeros_like(u), u])

    [(_, _, by_start)] = walk.slopes
    slopes: list[_Slope] = [
        (slope(h, by_lag), of_u(-slope(s, by_time)), np.zeros((2, 2))),
        (0.0, of_u(0.5 * (1.0 + by_time)), by_start),
    ]
    t, v = walk.t - 0.5 * lengthscale * by_lag, walk.v + of_u(0.5 * lengthscale * by_time)
    return _Form(t, v, walk.S, slopes)


_WALKS: dict[str, Callable[..., _Form]] = {"RW": _random_walk, "IOU": _momentum}


def _of_waves(
    lags: Lags, variance: float, factors: Factors, form: _Form, waves: _Waves
) -> ToeplitzComponent:
    """Return a form times waves: columns of each wave times each v, and by lag waves times t."""
    parts = [evaluate(base, lags, values) for base, values in factors if base.stationary]
    waving, w, J = _product([k for k, _ in parts], lags.lags), waves.weights, len(form.v)

    def pull(d_lag: Floats, d_columns: Floats, d_weights: Floats) -> list[float]:
        d_lag, d_weights = variance * d_lag, variance * d_weights
        by_column = d_columns.reshape(J, len(w), -1)
        by_S = np.einsum("imjm->ijm", d_weights.reshape(J, len(w), J, len(w)))
        by_weight = np.tensordot(form.S, by_S, axes=2)
        by_t, by_v = d_lag * waving, np.einsum("jmd,md->jd", by_column, waves.columns)
        stationary = waves.pull(np.einsum("jmd,jd->md", by_column, form.v), by_weight)
        stationary += pull_factors(parts, d_lag * form.t)
        own, by_S = iter(stationary), by_S @ w
        moving = (
            (by_t * d_t).sum() + (by_v * d_v).sum() + (by_S * d_S).sum()
            for d_t, d_v, d_S in form.slopes
        )
        found = [float((by_t * form.t).sum() + by_weight @ w)]
        for base, values in factors:
            found += [float(next(own if base.stationary else moving)) for _ in values]
        return found

    columns = np.concatenate([waves.columns * v for v in form.v])
    return ToeplitzComponent(
        variance * waving * form.t, columns, variance * np.kron(form.S, np.diag(w)), pull
    )


# --- sums of components, and series ---------------------------------------------------------------


class ComponentSums:
    """Sums of components in Toeplitz form, for pairs of a series and a row of Z.

    Parameters
    ----------
    engine
        Gives the series.
    components
        K of them; None for those that have not got the form.
    """

    def __init__(
        self, engine: ToeplitzEngine, components: Sequence[ToeplitzComponent | None]
    ) -> None:
        self.components, self._engine = components, engine
        self._has_form = np.array([one is not None for one in components], bool)
        self._counts = np.array([0 if one is None else len(one.weights) for one in components], int)
        lengths = [len(one.by_lag) for one in components if one is not None]
        self._by_lag = np.zeros((len(components), max(lengths, default=engine.transforms.D)))
        self._is_unknown = np.zeros(len(components))
        for k, one in enumerate(components):
            if one is not None and np.isnan(one.by_lag[0]):
                self._is_unknown[k] = 1.0
            elif one is not None:
                self._by_lag[k] = one.by_lag
        self._transformed: dict[int, NDArray[np.complex128]] = {}

    def serve(self, configurations: Floats) -> Booleans:
        """Of which rows of Z, [P, K], the sums have the form, [P]."""
        return ~(configurations[:, ~self._has_form] > 0.0).any(axis=1)

    def series(
        self,
        numbers: Integers,
        configurations: Floats,
        noise_variance: Floats,
    ) -> Iterator[tuple[Integers, ToeplitzSeries]]:
        """Series with rows of Z that have the form, some at a time, with their places.

        Parameters
        ----------
        numbers, configurations, noise_variance
            Which series, [P], their rows, [P, K], and noise, [P].
        """
        of_series, of_row = self._engine.num_gaps[numbers], (configurations > 0.0) @ self._counts
        counts = of_row + 1 + of_series
        _, group = np.unique(np.array([of_series, of_row]), axis=1, return_inverse=True)
        group = group.reshape(-1)
        for number in range(group.max(initial=-1) + 1):
            every = np.flatnonzero(group == number)
            at_once = max(1, int(_AT_ONCE // (counts[every[0]] * self._engine.transforms.D)))
            for places in np.split(every, range(at_once, len(every), at_once)):
                own = numbers[places], configurations[places], noise_variance[places]
                yield places, self._some(*own)

    def until(self, D: int) -> ComponentSums:
        """The same on the first D times."""
        return ComponentSums(
            self._engine,
            [
                one and replace(one, by_lag=one.by_lag[:D], columns=one.columns[:, :D])
                for one in self.components
            ],
        )

    def log_densities(
        self, numbers: Integers, configurations: Floats, noise_variance: Floats
    ) -> Floats:
        """Log densities of `series`, [P]."""
        found = np.empty(len(numbers))
        for places, block in self.series(numbers, configurations, noise_variance):
            found[places] = block.log_densities
        return found

    def own(self, configuration: Floats) -> list[tuple[int, ToeplitzComponent, slice]]:
        """The components of a row of Z, by number, with the places of their columns."""
        found, place = [], 0
        for k in np.flatnonzero(configuration).tolist():
            component = self.components[k]
            assert component is not None  # `serve` has seen to it
            found.append((k, component, slice(place, place + self._counts[k])))
            place += self._counts[k]
        return found

    def sum(self, configuration: Floats) -> tuple[Floats, Floats, Floats]:
        """Sum of components that have the form: by lag, columns [m, D] and their weights."""
        own = [component for _, component, _ in self.own(configuration)]
        columns = np.concatenate([component.columns for component in own])
        weights = np.zeros((len(columns), len(columns)))
        for k, component, places in self.own(configuration):
            weights[places, places] = configuration[k] * component.weights
        return configuration @ self._by_lag, columns, weights

    def _some(
        self, numbers: Integers, configurations: Floats, noise_variance: Floats
    ) -> ToeplitzSeries:
        """Series of as many columns and gaps each."""
        engine, r = self._engine, configurations @ self._by_lag
        r[:, 0] += noise_variance
        r[configurations @ self._is_unknown > 0.0] = np.nan
        m = int((configurations[0] > 0.0) @ self._counts)
        rows = np.empty((len(r), 1 + m, engine.Y.shape[1]), complex)
        W, gaps = np.zeros((len(r), m, m)), np.array([engine.gaps(n) for n in numbers.tolist()])
        rows[:, 0] = engine.Y[numbers]
        for configuration, own_rows, own_W in zip(configurations, rows[:, 1:], W, strict=True):
            for k, component, columns in self.own(configuration) if m else ():
                own_rows[columns] = self._columns(k, component)
                own_W[columns, columns] = configuration[k] * component.weights
        return ToeplitzSeries(
            predictors(r), r[:, 0], engine.transforms, rows, W, gaps, engine.likelihood
        )

    def _columns(self, k: int, component: ToeplitzComponent) -> NDArray[np.complex128]:
        if k not in self._transformed:
            self._transformed[k] = self._engine.transforms.forward(component.columns)
        return self._transformed[k]


# --- the engine -----------------------------------------------------------------------------------


class ToeplitzEngine(Engine):
    """`Engine` of `LKM` itself on long tables at regular times.

    Parameters
    ----------
    observations
        The table.
    likelihood
        How a series scatters around its covariance.
    """

    def __init__(self, observations: Observations, likelihood: SeriesLikelihood = GAUSSIAN) -> None:
        super().__init__(observations, likelihood)
        self._lags = Lags(observations.x, observations.x - observations.x[0])
        self.transforms = RowTransforms(len(observations.x))
        self.Y = self.transforms.forward(observations.Y)
        """The series transformed, [N, F]."""
        self.num_gaps = (observations.mask == 0.0).sum(axis=1)
        """Values that each series lacks, [N]."""

    def gaps(self, n: int) -> Integers:
        """Places where a series has no value, [g]."""
        return np.flatnonzero(self.observations.mask[n] == 0.0)

    @staticmethod
    def serves(observations: Observations) -> bool:
        """Whether times are regular, all noise is learnt, and LAPACK is slower."""
        if observations.known is not None:
            return False
        return observations.is_long and are_regular(observations.x)

    def sums(self, kernels: Sequence[Product]) -> ComponentSums:
        """Return complete products in Toeplitz form, for rows of Z."""
        layout = Layout(kernels, num_series=0)
        return self.sums_at(layout, layout.pack(np.empty(0)))

    def sums_at(self, layout: Layout, flat: Floats) -> ComponentSums:
        """Return the components at a flat vector in Toeplitz form, for rows of Z."""
        return ComponentSums(self, self._components(layout, flat, self._lags))

    def _components(
        self, layout: Layout, flat: Floats, lags: Lags
    ) -> list[ToeplitzComponent | None]:
        return [toeplitz_component(lags, *own) for own in layout.factors(flat)]

    def log_densities(self, at: State | Fit, noise_levels: Floats, pairs: Pairs) -> Floats:
        """See `Engine.log_densities`."""
        sums, L = self.sums(at.kernels), len(noise_levels)
        serves = sums.serve(pairs.configurations)
        found = np.empty((L, len(serves)))
        series, rows = pairs.series[serves], pairs.configurations[serves]
        found[:, serves] = sums.log_densities(
            np.tile(series, L), np.tile(rows, (L, 1)), noise_levels[:, series].ravel()
        ).reshape(L, -1)
        if not serves.all():
            others = Pairs(pairs.series[~serves], pairs.configurations[~serves])
            found[:, ~serves] = super().log_densities(at, noise_levels, others)
        return found

    def scales(self, at: State | Fit, pairs: Pairs) -> Floats:
        """See `Engine.scales`."""
        sums = self.sums(at.kernels)
        if not sums.serve(pairs.configurations).all():
            return super().scales(at, pairs)
        found, own = np.empty(len(pairs.series)), (pairs.series, pairs.configurations)
        for places, block in sums.series(*own, at.noise_variance[pairs.series]):
            found[places] = block.scales
        return found

    def predict(self, at: State | Fit, x: Floats) -> tuple[Floats, Floats]:
        """See `Engine.predict`."""
        pairs, whole = Pairs.of_rows(at.Z), np.ones((1, len(at.kernels)))
        found = self.moments(at, pairs, x, whole, full_cov=False)
        if found is None:
            return super().predict(at, x)
        mean, variance = np.zeros((2, len(at.Z), len(x)))
        variance += (self.scales(at, pairs) * at.noise_variance)[:, None]
        for p, _, own, rest in found:
            mean[p] += own
            variance[p] += rest
        if np.isnan(variance).any():
            raise ValueError("the covariance of a series is not positive definite")
        return mean, variance

    def places(self, x: Floats) -> Integers | None:
        """Places of times on the grid of the table, [M]; None if one is elsewhere."""
        steps = (x - self.observations.x[0]) / self._lags.lags[1]
        places = steps.round().astype(int)
        if not len(x) or places.min() < 0 or abs(steps - places).max() > _ON_GRID:
            return None
        return places

    def moments(
        self, at: State | Fit, pairs: Pairs, x: Floats, groups: Floats, *, full_cov: bool
    ) -> Iterator[tuple[int, int, Floats, Floats]] | None:
        """Moments of sums of components, given the series; None where LAPACK has to find them.

        Parameters
        ----------
        at
            Kernels and noise.
        pairs
            Series with their rows of Z.
        x
            Times, [M], on the table's grid or where it goes on.
        groups
            Which components make up each sum, [G, K].
        full_cov
            Whether to find covariances over the times, or variances.

        Yields
        ------
        Places of a pair and of a sum that is not zero, mean [M], and variance [M] or [M, M].
        """
        places, D = self.places(x), len(self._lags.x)
        if places is None:
            return None
        ahead = self._lags.lags[1] * np.arange(max(D, places.max() + 1))
        layout = Layout(at.kernels, num_series=0)
        lags = Lags(self.observations.x[0] + ahead, ahead)
        far = ComponentSums(self, self._components(layout, layout.pack(np.empty(0)), lags))
        if not far.serve(pairs.configurations).all():
            return None
        return self._moments(far, pairs, at.noise_variance, places, groups, full_cov)

    def _moments(
        self,
        far: ComponentSums,
        pairs: Pairs,
        noise_variance: Floats,
        places: Integers,
        groups: Floats,
        full_cov: bool,
    ) -> Iterator[tuple[int, int, Floats, Floats]]:
        noise, near = noise_variance[pairs.series], far.until(self.transforms.D)
        parts = [places]
        if not full_cov:
            parts = np.array_split(places, range(_AT_A_TIME, len(places), _AT_A_TIME))
        for some, block in near.series(pairs.series, pairs.configurations, noise):
            whole = None
            for i, p in enumerate(some.tolist()):
                row = pairs.configurations[p]
                among = groups * row
                for g in np.flatnonzero(among.any(axis=1)).tolist():
                    if not full_cov and np.array_equal(among[g], row):
                        if whole is None:
                            own = pairs.series[some], pairs.configurations[some], noise[some]
                            whole = self._wholes(far, block, *own, places)
                        yield p, g, whole[0][i], whole[1][i]
                        continue
                    total = far.sum(among[g])
                    found = [_conditional(block, i, total, part, full_cov) for part in parts]
                    mean, variance = map(np.concatenate, zip(*found, strict=True))
                    yield p, g, mean, variance

    def _wholes(
        self,
        far: ComponentSums,
        block: ToeplitzSeries,
        numbers: Integers,
        rows: Floats,
        noise: Floats,
        places: Integers,
    ) -> tuple[Floats, Floats]:
        """Moments [P, M] of the sums of all that series have, in O(D log D) each."""
        D = self.transforms.D
        is_ahead = places >= D
        mean, variance = np.empty((2, len(rows), len(places)))
        if not is_ahead.all():
            found = block.within(self.observations.Y[numbers], noise)
            for total, part in zip((mean, variance), found, strict=True):
                total[:, ~is_ahead] = part[:, places[~is_ahead]]
        if is_ahead.any():
            by_lag, columns, _ = map(np.array, zip(*map(far.sum, rows), strict=True))
            by_lag[:, 0] += noise
            found = block.ahead(by_lag, columns[:, :, D:])
            for total, part in zip((mean, variance), found, strict=True):
                total[:, is_ahead] = part[:, places[is_ahead] - D]
            variance[:, is_ahead] -= (block.scales * noise)[:, None]
        return mean, variance

    def objective(self, layout: Layout, pairs: Pairs, log_weights: Floats) -> Objective:
        """See `Engine.objective`."""
        return _ToeplitzObjective(self, layout, pairs, log_weights)

    def entrance(self, state: State) -> Entrance:
        """See `Engine.entrance`."""
        return _ToeplitzEntrance(self, self.observations, state)


def _conditional(
    block: ToeplitzSeries,
    i: int,
    total: tuple[Floats, Floats, Floats],
    places: Integers,
    full_cov: bool,
) -> tuple[Floats, Floats]:
    """Moments of a sum of components, by its three parts, at some times, given series i."""
    r, U, W = total
    D = block.num_times
    projected = U[:, places].T @ W  # [M, m]
    cross = r[abs(places[:, None] - np.arange(D))] + projected @ U[:, :D]
    if full_cov:
        prior = r[abs(places[:, None] - places)] + projected @ U[:, places]
    else:
        prior = r[0] + np.einsum("mc,cm->m", projected, U[:, places])
    mean, known = block.explained(i, cross, full=full_cov)
    return mean, block.scales[i] * (prior - known)


@dataclass
class _Served:
    """A pair in Toeplitz form, and what its gradient weighs."""

    log_density: float
    weight: float = 0.0


class _ToeplitzObjective(Objective):
    """`Objective` in Toeplitz form; rows that have not got the form keep their Cholesky factors."""

    _engine: ToeplitzEngine

    def _begin(self, flat: Floats) -> None:
        self._flat, self._has_others = flat, False
        self._sums = sums = self._engine.sums_at(self._layout, flat)
        self._noise = np.exp(flat[self._layout.noise])
        self._places = np.flatnonzero(sums.serve(self._pairs.configurations))
        series = self._pairs.series[self._places]
        rows = self._pairs.configurations[self._places]
        self._blocks = list(sums.series(series, rows, self._noise[series]))
        self._served = {
            int(self._places[place]): _Served(log_density)
            for places, block in self._blocks
            for place, log_density in zip(places, block.log_densities.tolist(), strict=True)
        }

    def _factors(self, n: int, own: Integers, noise_variance: float) -> Sequence[Any]:
        rest = np.array([p for p in own if p not in self._served], np.int32)
        if rest.size and not self._has_others:
            super()._begin(self._flat)
            self._has_others = True
        others = iter(super()._factors(n, rest, noise_variance) if rest.size else ())
        return [self._served.get(p) or next(others) for p in own.tolist()]

    def _add(self, n: int, p: int, weight: float, factor: Any) -> float:
        """Pairs in Toeplitz form are added later, all at once."""
        if not isinstance(factor, _Served):
            return super()._add(n, p, weight, factor)
        factor.weight = weight
        return 0.0

    def _gradient(self) -> Floats:
        found = super()._gradient() if self._has_others else np.zeros(self._layout.size)
        totals = self._totals(found[self._layout.noise])
        for component, places, total in zip(
            self._sums.components, self._layout.places, totals, strict=True
        ):
            if component is not None:
                found[places] += component.pull(*total)
        return found

    def _totals(self, d_noise: Floats) -> list[list[Floats]]:
        """Gradients by each component's three parts; those by noise are added to `d_noise`."""
        totals: list[list[Floats]] = [
            []
            if one is None
            else [np.zeros_like(a) for a in (one.by_lag, one.columns, one.weights)]
            for one in self._sums.components
        ]
        for places, block in self._blocks:
            pairs = self._places[places]
            weights = np.array([self._served[p].weight for p in pairs.tolist()])
            by_lag, by_columns, by_weights = block.gradient()
            by_lag *= weights[:, None]
            series, rows = self._pairs.series[pairs], self._pairs.configurations[pairs]
            np.add.at(d_noise, series, self._noise[series] * by_lag[:, 0])
            for total, summed in zip(totals, rows.T @ by_lag, strict=True):
                if total:
                    total[0] += summed
            for i, row in enumerate(rows if by_weights.size else ()):
                for k, _, own in self._sums.own(row):
                    totals[k][1] += weights[i] * by_columns[i, own]
                    totals[k][2] += weights[i] * by_weights[i, own, own]
        return totals


class _ToeplitzEntrance(Entrance):
    """`Entrance` in Toeplitz form where what a series has and the candidate have it."""

    _engine: ToeplitzEngine

    def _base_at(self, places: Integers) -> Floats:
        C = self._engine.covariances(
            self._state.kernels, self._state.parameters, self._observations.x[places]
        )
        return np.tensordot(self._state.Z, C, axes=1)

    def scan(self, candidates: Sequence[Product], noise_variance: Floats) -> Floats:
        """See `Entrance.scan`."""
        state, Z = self._state, self._state.Z
        sums = self._engine.sums([*state.kernels, *candidates])
        M, N = len(candidates), len(Z)
        found = np.empty((M, *noise_variance.shape[-2:]))
        levels = np.broadcast_to(noise_variance, found.shape)
        added = np.eye(M)
        has_form = sums.serve(np.concatenate([np.zeros((M, len(state.kernels))), added], axis=1))
        serves = sums.serve(np.concatenate([Z, np.zeros((N, M))], axis=1))
        m, n = (each.ravel() for each in np.meshgrid(has_form.nonzero(), serves.nonzero()))
        rows, L = np.concatenate([Z[n], added[m]], axis=1), found.shape[1]
        densities = sums.log_densities(
            np.tile(n.astype(np.int32), L), np.tile(rows, (L, 1)), levels[m, :, n].T.ravel()
        )
        found[m, :, n] = densities.reshape(L, -1).T
        every = np.ones(M, bool)
        for own, some in ((np.flatnonzero(~serves), every), (np.flatnonzero(serves), ~has_form)):
            if own.size and some.any():
                others = Entrance(
                    self._engine, self._observations.of_series(own), replace(state, Z=Z[own])
                )
                chosen = [candidates[m] for m in np.flatnonzero(some)]
                found[some.nonzero()[0][:, None], :, own] = others.scan(
                    chosen, levels[some][:, :, own]
                ).swapaxes(1, 2)
        return found
