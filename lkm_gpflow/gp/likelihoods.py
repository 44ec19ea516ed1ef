r"""How the values of a series scatter, once its covariance is known: the likelihood of the LKM.

A series has D observed values x and a covariance V, noise included.  Everything that a likelihood
says depends on them through the quadratic form and the number of values:

.. math::
    \log p(x) = -\tfrac12 (q + \log|V| + D \log 2\pi) + \mathrm{gain}(q, D), \qquad
    q = x^\top V^{-1} x, \qquad
    \frac{d \log p}{d V} = \tfrac12 (w b b^\top - V^{-1}), \quad b = V^{-1} x, \quad
    w = 1 - 2 \frac{\partial\, \mathrm{gain}}{\partial q}.

`GaussianNoise` is the paper's.  `ScaledNoise` integrates a scale of each series out.  Another
likelihood is a subclass of `SeriesLikelihood` with four short formulas.

Formulas get numbers, arrays or tensors, and use operations that all three have (those of
`elementary` among them).  Formulas of NumPy alone work as well: TensorFlow then calls
them from its graph.
"""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from scipy.special import gammaln, stdtrit

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
            f"likelihood: expected one of {sorted(named)} or a SeriesLikelihood, got {likelihood!r}"
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
