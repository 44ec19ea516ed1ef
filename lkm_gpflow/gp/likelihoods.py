r"""How values scatter: of a whole series given its covariance, and each given a latent function.

A series has D observed values x and a covariance V, noise included.  Everything that a likelihood
says depends on them through the quadratic form and the number of values:

.. math::
    \log p(x) = -\tfrac12 (q + \log|V| + D \log 2\pi) + \mathrm{gain}(q, D), \qquad
    q = x^\top V^{-1} x, \qquad
    \frac{d \log p}{d V} = \tfrac12 (w b b^\top - V^{-1}), \quad b = V^{-1} x, \quad
    w = 1 - 2 \frac{\partial\, \mathrm{gain}}{\partial q}.

`GaussianNoise` is the paper's.  `ScaledNoise` integrates a scale of each series out.  Another
likelihood is a subclass of `SeriesLikelihood` with four short formulas.

A count, a share or a measurement that may be an outlier has a density :math:`p(y \mid f)` given a
latent function f on the scale of a link, a `PointLikelihood`.  Learning knows Gaussian noise alone,
so each value becomes a *site*, a pseudo-observation of f with a variance of its own
(`data.sites`).  For that a likelihood says what its expected log density is under a normal f, with
its derivatives; for forecasts it says how y scatters given f.

Formulas of series get numbers, arrays or tensors, and use operations that all three have (those of
`elementary` among them).  Formulas of NumPy alone work as well: TensorFlow then calls
them from its graph.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from scipy.special import expit, gammaln, logit, stdtrit

from .elementary import log, log1p, log_gamma
from .types import LOG_2PI, Floats

LikelihoodName: TypeAlias = Literal["gaussian", "scaled"]

SCALE_DEGREES = 4.0
"""Degrees of freedom of the scale of a series: half of all scales lie between 0.74 and 2.1."""


class SeriesLikelihood(abc.ABC):
    """Base class: log density of a series from its quadratic form q and its number of values D.

    Subclasses are frozen dataclasses, so that settings can hold, compare and save them.
    """

    rescales: ClassVar[bool] = True
    """Whether `predictive_scale` is other than one: False saves predictions the work."""

    @abc.abstractmethod
    def gain(self, q: Any, num_observed: Any) -> Any:
        """``log p(x) - log N(x | 0, V)``.

        Parameters
        ----------
        q
            Quadratic forms ``x' V^-1 x``, a number, an array or a tensor.
        num_observed
            D, a number, or an array or a tensor that broadcasts with q.
        """

    @abc.abstractmethod
    def weight(self, q: Any, num_observed: Any) -> Any:
        """Weight w of ``b b'`` in the gradient, ``1 - 2 d gain / dq``; arguments as of `gain`."""

    @abc.abstractmethod
    def predictive_scale(self, q: Any, num_observed: Any) -> Any:
        """Factor of the predictive variance after these values; arguments as of `gain`."""

    @abc.abstractmethod
    def predictive_degrees(self, num_observed: Any) -> Any:
        """Degrees of freedom of predictions after so many values; infinite for a normal."""

    def log_density(self, q: Any, log_determinant: Any, num_observed: Any) -> Any:
        """``log p(x)`` from q, ``log |V|`` and D."""
        gaussian = -0.5 * (q + log_determinant + num_observed * LOG_2PI)
        return gaussian + self.gain(q, num_observed)

    def draw_scales(
        self, q: float, num_observed: int, count: int, rng: np.random.Generator
    ) -> Floats:
        """Draw factors of the predictive covariance, [count]; their mean is `predictive_scale`."""
        mean = self.predictive_scale(q, num_observed)
        degrees = self.predictive_degrees(num_observed)
        if math.isinf(degrees):
            return np.full(count, float(mean))
        return np.asarray(mean * (degrees - 2.0) / rng.chisquare(degrees, count))


@dataclass(frozen=True)
class GaussianNoise(SeriesLikelihood):
    r"""Gaussian noise, as in the paper: :math:`x \sim \mathcal{N}(0, V)`."""

    rescales: ClassVar[bool] = False

    def gain(self, q: Any, num_observed: Any) -> Any:
        """Zero."""
        return 0.0

    def weight(self, q: Any, num_observed: Any) -> Any:
        """One."""
        return 1.0

    def predictive_scale(self, q: Any, num_observed: Any) -> Any:
        """One."""
        return 1.0

    def predictive_degrees(self, num_observed: Any) -> Any:
        """Infinite: predictions are normal."""
        return math.inf + 0.0 * num_observed


@dataclass(frozen=True)
class ScaledNoise(SeriesLikelihood):
    r"""Gaussian noise and an unknown scale of the whole series, integrated out: a Student-t.

    .. math::
        s \sim \mathrm{InvGamma}(v/2, v/2), \quad x \mid s \sim \mathcal{N}(0, s V)
        \;\Rightarrow\;
        \log p(x) = \log\Gamma\tfrac{v+D}{2} - \log\Gamma\tfrac{v}{2} - \tfrac{D}{2}\log(v\pi)
        - \tfrac12 \log|V| - \tfrac{v+D}{2} \log\Big(1 + \frac{q}{v}\Big).

    Series that share a pattern may then show it at different heights.  The scale costs no
    parameter, and the noise is relative to it.  Source: Shah, Wilson and Ghahramani 2014,
    *Student-t processes as alternatives to Gaussian processes*.

    Parameters
    ----------
    degrees
        v, the degrees of freedom, positive and finite.

    Raises
    ------
    ValueError
        If `degrees` is not a positive finite number.
    """

    degrees: float = SCALE_DEGREES

    def __post_init__(self) -> None:
        if not (isinstance(self.degrees, int | float) and 0.0 < self.degrees < math.inf):
            raise ValueError(f"degrees: expected a positive finite number, got {self.degrees!r}")

    def gain(self, q: Any, num_observed: Any) -> Any:
        """Log density of the Student-t less that of the Gaussian."""
        return student_gain(q, num_observed, self.degrees)

    def weight(self, q: Any, num_observed: Any) -> Any:
        """``(v + D) / (v + q)``: the posterior mean of 1 / s."""
        return (self.degrees + num_observed) / (self.degrees + q)

    def predictive_scale(self, q: Any, num_observed: Any) -> Any:
        """``(v + q) / (v + D - 2)``: the posterior mean of s."""
        return (self.degrees + q) / (self.degrees + num_observed - 2.0)

    def predictive_degrees(self, num_observed: Any) -> Any:
        """``v + D``."""
        return self.degrees + num_observed


GAUSSIAN = GaussianNoise()


def likelihood_of(likelihood: LikelihoodName | SeriesLikelihood) -> SeriesLikelihood:
    """Return the likelihood that a name stands for, or the given object.

    Raises
    ------
    ValueError
        If it is neither.
    """
    if isinstance(likelihood, SeriesLikelihood):
        return likelihood
    named = {"gaussian": GAUSSIAN, "scaled": ScaledNoise()}
    if not isinstance(likelihood, str) or likelihood not in named:
        raise ValueError(
            f"likelihood: expected one of {sorted(named)}, a SeriesLikelihood or one of "
            f"gpflow.likelihoods, got {likelihood!r}"
        )
    return named[likelihood]


# --- Student-t ----------------------------------------------------------------------------------


def student_gain(q: Any, num_observed: Any, degrees: Any) -> Any:
    """Log density of a Student-t less that of a Gaussian, from q over so many values.

    Arguments are numbers, arrays or tensors that broadcast; degrees are finite.
    """
    if isinstance(num_observed, int) and isinstance(degrees, int | float):
        constant = _student_constant(num_observed, degrees)
    else:
        half, more = 0.5 * degrees, 0.5 * num_observed
        constant = log_gamma(half + more) - log_gamma(half) - more * log(half)
    return constant - 0.5 * (degrees + num_observed) * log1p(q / degrees) + 0.5 * q


@lru_cache(maxsize=1024)
def _student_constant(num_observed: int, degrees: float) -> float:
    """Return the term without q: learning asks for it at every covariance."""
    half, halves = 0.5 * degrees, 0.5 * (degrees + num_observed)
    return float(gammaln(halves) - gammaln(half)) - 0.5 * num_observed * math.log(half)


def unit_quantile(p: float | Floats, degrees: Floats) -> Floats:
    """Quantiles of Student-t distributions of mean zero and variance one.

    Parameters
    ----------
    p
        Probabilities that broadcast with the degrees.
    degrees
        Degrees of freedom, more than two; infinite for the standard normal.
    """
    return np.asarray(stdtrit(degrees, p) * unit_scale(degrees))


def unit_scale(degrees: Floats) -> Floats:
    """Scales with which Student-t distributions have variance one; one for the normal."""
    return np.sqrt(1.0 - 2.0 / degrees)


# --- single values ------------------------------------------------------------------------------

PointName: TypeAlias = Literal["student", "poisson", "negative-binomial", "binomial", "share"]

Link: TypeAlias = Literal["identity", "log", "logit", "own"]

_NODES = 32
"""Of Gauss and Hermite: errors of expected log densities stay below 1e-6 for sds up to two."""

_MOST = 34.0
"""Latent functions of links are clipped at so much: NumPy draws no counts of larger rates."""

_BISECTIONS = 60

_STEP = 1e-3
"""Of differences of means by f."""


@lru_cache(maxsize=4)
def hermite(count: int = _NODES) -> tuple[Floats, Floats]:
    """Nodes and weights with which expectations under a standard normal are sums, [count] each."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    return nodes, weights / weights.sum()


class PointLikelihood(abc.ABC):
    """Base class: the distribution of a value given a latent function, in NumPy and SciPy.

    A subclass says which one (`law`), and near which latent function a value lies (`guess`).
    Subclasses are frozen dataclasses, so that settings can hold, compare and save them.
    """

    link: ClassVar[Link] = "identity"
    """The scale on which the function lives, such as that of logarithms or of log odds."""

    is_whole: ClassVar[bool] = False
    """Whether values are whole numbers."""

    bounds: ClassVar[tuple[float, float]] = (-np.inf, np.inf)
    """The smallest and the largest value."""

    words: ClassVar[str] = "values"
    """What the values are, for sentences."""

    is_concave: ClassVar[bool] = True
    """Whether log densities are concave in f; else sites are given a least precision."""

    choices: ClassVar[Mapping[str, tuple[float, ...]]] = MappingProxyType({})
    """Values of parameters that are None, of which the data may choose."""

    @abc.abstractmethod
    def law(self, f: Floats) -> tuple[Any, dict[str, Any]]:
        """Return the distribution of y given f: one of `scipy.stats`, and its parameters."""

    @abc.abstractmethod
    def guess(self, y: Floats) -> Floats:
        """Return latent values near which the sites may begin, as values say by themselves."""

    def log_prob(self, y: Floats, f: Floats) -> Floats:
        """``log p(y | f)``; arguments broadcast."""
        return self._asked_law("logpmf" if self.is_whole else "logpdf", f, y)

    def mean(self, f: Floats) -> Floats:
        """``E[y | f]``."""
        return self._asked_law("mean", f)

    def variance(self, f: Floats) -> Floats:
        """``Var[y | f]``."""
        return self._asked_law("var", f)

    def cdf(self, y: Floats, f: Floats) -> Floats:
        """Probability of no more than y given f; arguments broadcast."""
        return self._asked_law("cdf", f, y)

    def draw(self, f: Floats, rng: np.random.Generator) -> Floats:
        """Draw a value for every f."""
        return self._asked_law("rvs", f, random_state=rng)

    def _asked_law(self, what: str, f: Floats, *given: Floats, **options: Any) -> Floats:
        distribution, parameters = self.law(self.clipped(f))
        found = getattr(distribution, what)(*given, **parameters, **options)
        return np.asarray(found, np.float64)

    def refused(self, values: Floats) -> float | None:
        """Return the first value to which the likelihood gives no density; NaN is missing."""
        low, high = self.bounds
        seen = values[np.isfinite(values)]
        bad = (seen < low) | (seen > high)
        if self.is_whole:
            bad |= seen != np.round(seen)
        return float(seen[bad][0]) if np.any(bad) else None

    def check(self, name: object, values: Floats) -> None:
        """Refuse a series with such a value."""
        value, (low, high) = self.refused(values), self.bounds
        if value is not None:
            kind = "whole numbers" if self.is_whole else "numbers"
            raise ValueError(
                f"likelihood: series {name!r}: expected {kind} from {low:g} to {high:g} for "
                f"{self!r}, got {value:g}"
            )

    def candidates(self) -> tuple[PointLikelihood, ...]:
        """Return likelihoods of other parameters, of which the data may choose."""
        found: tuple[Any, ...] = (self,)
        for name, values in self.choices.items():
            if getattr(self, name) is None:
                found = tuple(replace(own, **{name: value}) for own in found for value in values)
        return found

    def expectations(self, y: Floats, mean: Floats, variance: Floats) -> tuple[Floats, ...]:
        r"""Expected log density under a normal f, and its derivatives by its mean and variance.

        .. math:: \frac{\partial}{\partial m} E = E[\ell\, z] / s, \qquad
           \frac{\partial}{\partial v} E = E[\ell\, (z^2 - 1)] / 2 v, \qquad f = m + s z

        by Gauss-Hermite (Opper and Archambeau 2009); all [D].
        """
        nodes, weights = hermite()
        sd = np.sqrt(variance)[:, None]
        found = self.log_prob(y[:, None], mean[:, None] + sd * nodes) * weights
        # Without the value at the mean, or small variances would lose digits.
        rest = found - weights * self.log_prob(y, mean)[:, None]
        by_mean, by_variance = rest @ nodes, rest @ (np.square(nodes) - 1.0)
        return found.sum(axis=1), by_mean / sd[:, 0], 0.5 * by_variance / variance

    def least_precision(self, f: Floats) -> Floats | float:
        """Of sites: where log densities may bend upwards, half of what a mean and variance tell."""
        if self.is_concave:
            return 1e-6
        slope = (self.mean(f + _STEP) - self.mean(f - _STEP)) / (2.0 * _STEP)
        return np.maximum(0.5 * np.square(slope) / self.variance(f), 1e-6)

    # --- forecasts, f normal ---

    def predictive_moments(self, mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
        """Mean and variance of y if f is normal, of the shape of `mean`."""
        nodes, weights = hermite()
        f = self.clipped(mean[..., None] + np.sqrt(variance)[..., None] * nodes)
        means = self.mean(f)
        centre = means @ weights
        return centre, (self.variance(f) + np.square(means - centre[..., None])) @ weights

    def predictive_cdf(self, y: Floats, mean: Floats, variance: Floats) -> Floats:
        """Probability of no more than y if f is normal, [P] each."""
        nodes, weights = hermite()
        f = self.clipped(mean[:, None] + np.sqrt(variance)[:, None] * nodes)
        return np.asarray(self.cdf(y[:, None], f) @ weights)

    def predictive_quantile(self, q: float, mean: Floats, variance: Floats) -> Floats:
        """Smallest y whose `predictive_cdf` is at least q, by bisection, [P]."""
        nodes, _ = hermite()
        widest = mean[:, None] + np.sqrt(variance)[:, None] * nodes[[0, -1]]
        low, high = self._bracket(self.clipped(widest))
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            middle = np.floor(middle) if self.is_whole else middle
            is_above = self.predictive_cdf(middle, mean, variance) >= q
            low, high = np.where(is_above, low, middle), np.where(is_above, middle, high)
            if np.all(high - low <= (1.0 if self.is_whole else 1e-9 * (1.0 + np.abs(high)))):
                break
        return high

    def _bracket(self, widest: Floats) -> tuple[Floats, Floats]:
        """Return values below and above all quantiles, [P] each, from the extremes of f, [P, 2]."""
        far = 40.0 * np.sqrt(self.variance(widest)) + 10.0
        low, high = self.bounds
        lowest = (self.mean(widest) - far).min(axis=1)
        highest = (self.mean(widest) + far).max(axis=1)
        if self.is_whole:  # the lowest one has no probability of less
            return np.floor(np.maximum(lowest, low - 1.0)), np.ceil(np.minimum(highest, high))
        return np.maximum(lowest, low), np.minimum(highest, high)

    def clipped(self, f: Floats) -> Floats:
        """Return latent values within what exponentials bear."""
        return f if self.link == "identity" else np.clip(f, -_MOST, _MOST)


@dataclass(frozen=True)
class Student(PointLikelihood):
    r"""Measurements with outliers: Student-t noise about f.

    That is a normal of a variance of its own at every value, :math:`\sigma^2 / w`.  What a site
    knows of a value of little weight is how much more that is than the noise of the others, which
    is learnt: :math:`\sigma^2 (1 / w - 1)`.  So forecasts are of values that are not outliers.

    Parameters
    ----------
    scale
        Sigma, of the modelled values; None: it is estimated.
    degrees
        Degrees of freedom.
    """

    scale: float | None = None
    degrees: float = 4.0

    words: ClassVar[str] = "measurements with outliers"

    def law(self, f: Floats) -> tuple[Any, dict[str, Any]]:
        """See `PointLikelihood`."""
        scale = 1.0 if self.scale is None else self.scale
        return _stats().t, {"df": self.degrees, "loc": f, "scale": scale}

    def weights(self, squares: Floats) -> Floats:
        """Weights w of values from expected squares of their standardised errors."""
        return (self.degrees + 1.0) / (self.degrees + squares)

    def guess(self, y: Floats) -> Floats:
        """See `PointLikelihood`."""
        return y


class _Counts(PointLikelihood):
    """Whole numbers from zero on, whose logarithm of the mean is f."""

    link: ClassVar[Link] = "log"
    is_whole: ClassVar[bool] = True
    bounds: ClassVar[tuple[float, float]] = (0.0, np.inf)
    words: ClassVar[str] = "counts"

    def guess(self, y: Floats) -> Floats:
        """See `PointLikelihood`."""
        return np.log(y + 0.5)


@dataclass(frozen=True)
class Poisson(_Counts):
    """Counts that scatter as little as counts can, beside the noise of f that is learnt."""

    def law(self, f: Floats) -> tuple[Any, dict[str, Any]]:
        """See `PointLikelihood`."""
        return _stats().poisson, {"mu": np.exp(f)}

    def expectations(self, y: Floats, mean: Floats, variance: Floats) -> tuple[Floats, ...]:
        """See `PointLikelihood`; in closed form."""
        rate = np.exp(self.clipped(mean + 0.5 * variance))
        return y * mean - rate - gammaln(y + 1.0), y - rate, -0.5 * rate


@dataclass(frozen=True)
class NegativeBinomial(_Counts):
    r"""Counts that scatter more: of variance :math:`\lambda + \alpha \lambda^2`.

    Parameters
    ----------
    alpha
        Squared coefficient of variation of the rate; None: it is estimated.
    """

    alpha: float | None = None

    choices: ClassVar[Mapping[str, tuple[float, ...]]] = MappingProxyType(
        {"alpha": (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)}
    )

    def law(self, f: Floats) -> tuple[Any, dict[str, Any]]:
        """See `PointLikelihood`."""
        size = 1.0 / (self.alpha or 0.3)
        return _stats().nbinom, {"n": size, "p": expit(np.log(size) - f)}


@dataclass(frozen=True)
class Binomial(PointLikelihood):
    """Successes of so many trials, whose log odds are f; of one trial yes or no.

    Parameters
    ----------
    trials
        Of each value.
    """

    trials: int = 1

    link: ClassVar[Link] = "logit"
    is_whole: ClassVar[bool] = True

    @property
    def words(self) -> str:  # type: ignore[override]
        """See `PointLikelihood`."""
        return "yes or no" if self.trials == 1 else f"successes of {self.trials} trials"

    def __post_init__(self) -> None:
        if isinstance(self.trials, bool) or self.trials != int(self.trials) or self.trials < 1:
            raise ValueError(f"trials: expected a whole number from one on, got {self.trials!r}")

    @property
    def bounds(self) -> tuple[float, float]:  # type: ignore[override]
        """See `PointLikelihood`."""
        return 0.0, float(self.trials)

    def law(self, f: Floats) -> tuple[Any, dict[str, Any]]:
        """See `PointLikelihood`."""
        return _stats().binom, {"n": int(self.trials), "p": expit(f)}

    def guess(self, y: Floats) -> Floats:
        """See `PointLikelihood`."""
        return np.asarray(logit((y + 0.5) / (self.trials + 1.0)))


@dataclass(frozen=True)
class Share(PointLikelihood):
    r"""Shares of a whole: a beta distribution of mean :math:`1 / (1 + e^{-f})`.

    Parameters
    ----------
    lower, upper
        The bounds: 0 and 1, or 0 and 100 for percentages.
    precision
        Sum of the parameters of the beta distribution; None: it is estimated.
    edge
        Values at a bound count as so far from it, in shares: the density there is none.
    """

    lower: float = 0.0
    upper: float = 1.0
    precision: float | None = None
    edge: float = 0.002

    link: ClassVar[Link] = "logit"
    words: ClassVar[str] = "shares"
    is_concave: ClassVar[bool] = False
    choices: ClassVar[Mapping[str, tuple[float, ...]]] = MappingProxyType(
        {"precision": (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)}
    )

    def __post_init__(self) -> None:
        if not -np.inf < self.lower < self.upper < np.inf:
            raise ValueError(f"expected a lower bound below the upper, got {self!r}")

    @property
    def bounds(self) -> tuple[float, float]:  # type: ignore[override]
        """See `PointLikelihood`."""
        return self.lower, self.upper

    def law(self, f: Floats) -> tuple[Any, dict[str, Any]]:
        """See `PointLikelihood`."""
        f, n = np.clip(f, -12.0, 12.0), 30.0 if self.precision is None else self.precision
        where = {"loc": self.lower, "scale": self.upper - self.lower}
        return _stats().beta, {"a": n * expit(f), "b": n * expit(-f), **where}

    def _inside(self, y: Floats) -> Floats:
        edge = self.edge * (self.upper - self.lower)
        return np.clip(y, self.lower + edge, self.upper - edge)

    def log_prob(self, y: Floats, f: Floats) -> Floats:
        """See `PointLikelihood`."""
        return super().log_prob(self._inside(y), f)

    def guess(self, y: Floats) -> Floats:
        """See `PointLikelihood`."""
        return np.asarray(logit((self._inside(y) - self.lower) / (self.upper - self.lower)))


def _stats() -> Any:
    from scipy import stats  # which takes half a second to load

    return stats


@dataclass(frozen=True, eq=False)
class FromGPflow(PointLikelihood):
    """A likelihood of GPflow, by its densities, for forecasts on grids of values.

    Parameters
    ----------
    likelihood
        Of one latent function and one value.
    whole
        Whether values are whole numbers.
    """

    likelihood: Any
    whole: bool = False

    words: ClassVar[str] = "values of a likelihood of your own"
    is_concave: ClassVar[bool] = False

    @property
    def is_whole(self) -> bool:  # type: ignore[override]
        """See `PointLikelihood`."""
        return self.whole

    @property
    def link(self) -> Link:  # type: ignore[override]
        """See `PointLikelihood`: what the conditional mean shows."""
        f = np.array([-1.0, 0.5, 2.0])
        mean, known = self.mean(f), {"identity": f, "log": np.exp(f), "logit": expit(f)}
        named: tuple[Link, ...] = ("identity", "log", "logit")
        return next((each for each in named if np.allclose(mean, known[each])), "own")

    def law(self, f: Floats) -> tuple[Any, dict[str, Any]]:
        """Raise NotImplementedError: its methods are those of GPflow's likelihood."""
        raise NotImplementedError

    def _asked(self, method: str, *columns: Floats) -> list[Floats]:
        """Call a method of the likelihood with columns, [P, 1] each, and no inputs."""
        shape = np.broadcast_shapes(*(np.shape(each) for each in columns))
        given = [np.broadcast_to(each, shape).reshape(-1, 1) for each in columns]
        nothing = np.zeros((given[0].shape[0], 0))
        found = getattr(self.likelihood, method)(nothing, *given)
        every = found if isinstance(found, tuple) else (found,)
        return [np.asarray(each, np.float64).reshape(shape) for each in every]

    def log_prob(self, y: Floats, f: Floats) -> Floats:
        """See `PointLikelihood`."""
        f, y = np.broadcast_arrays(f, y)
        return self._asked("log_prob", f, y)[0]

    def guess(self, y: Floats) -> Floats:
        """See `PointLikelihood`: the likeliest of many."""
        if self.link == "identity":
            return y
        f = np.linspace(-10.0, 10.0, 401)
        best = np.nan_to_num(self.log_prob(y[:, None], f), nan=-np.inf).argmax(axis=1)
        return np.clip(f[best], -5.0, 8.0)

    def mean(self, f: Floats) -> Floats:
        """See `PointLikelihood`."""
        return self._asked("conditional_mean", f)[0]

    def variance(self, f: Floats) -> Floats:
        """See `PointLikelihood`."""
        return self._asked("conditional_variance", f)[0]

    def _cumulated(self, mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
        """Values on grids, and probabilities of no more than them, [P, G] each."""
        centre, spread = self._asked("predict_mean_and_var", mean, variance)
        steps = np.linspace(-12.0, 12.0, 1201)
        grid = centre[:, None] + np.sqrt(spread)[:, None] * steps
        if self.whole:
            grid = np.unique(np.round(grid), axis=1)
        asked = (each[:, None] for each in (mean, variance))
        density = np.exp(self._asked("predict_log_density", *asked, grid)[0])
        width = np.gradient(grid, axis=1)
        if self.whole:  # a grid of cells may name a number twice
            width = np.diff(grid, axis=1, prepend=grid[:, :1] - 1.0)
            density = np.where(grid < self._least, 0.0, density)
        mass = np.nan_to_num(density) * width
        return grid, np.cumsum(mass, axis=1) / mass.sum(axis=1, keepdims=True)

    @property
    def _least(self) -> float:
        """Smallest whole number: zero if no density is said of minus one."""
        density = self.log_prob(np.array([-1.0]), np.array([0.3]))
        return -np.inf if np.isfinite(density[0]) and density[0] > -30.0 else 0.0

    def predictive_cdf(self, y: Floats, mean: Floats, variance: Floats) -> Floats:
        """See `PointLikelihood`."""
        grid, share = self._cumulated(mean, variance)
        places = (grid <= y[:, None]).sum(axis=1)
        padded = np.column_stack([np.zeros(len(y)), share])
        return np.asarray(np.take_along_axis(padded, places[:, None], axis=1)[:, 0])

    def predictive_quantile(self, q: float, mean: Floats, variance: Floats) -> Floats:
        """See `PointLikelihood`."""
        grid, share = self._cumulated(mean, variance)
        return np.asarray(np.take_along_axis(grid, (share >= q).argmax(axis=1)[:, None], 1)[:, 0])

    def draw(self, f: Floats, rng: np.random.Generator) -> Floats:
        """See `PointLikelihood`; f is rounded to one of 256 values."""
        nodes = np.linspace(f.min(), f.max(), 256)
        grid, share = self._cumulated(nodes, np.full(len(nodes), 1e-10))
        between = max(float(nodes[1] - nodes[0]), 1e-300)
        nearest = np.clip(np.rint((f.ravel() - nodes[0]) / between), 0, 255).astype(int)
        drawn = np.empty(nearest.shape)
        for k in np.unique(nearest):
            own = nearest == k
            places = np.searchsorted(share[k], rng.random(own.sum()))
            drawn[own] = grid[k, np.minimum(places, grid.shape[1] - 1)]
        return drawn.reshape(f.shape)
