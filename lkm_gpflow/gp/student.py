r"""From a Gaussian log density to that of a Gaussian whose scale is not known: a Student-t.

A series whose kernels are right but for its height has the covariance s V with an unknown s > 0.
With the conjugate prior the scale is integrated out in closed form:

.. math::
    s \sim \mathrm{InvGamma}(v/2, v/2), \quad x \mid s \sim \mathcal{N}(0, s V)
    \;\Rightarrow\;
    \log p(x) = \log\Gamma\tfrac{v+D}{2} - \log\Gamma\tfrac{v}{2} - \tfrac{D}{2}\log(v\pi)
    - \tfrac12 \log|V| - \tfrac{v+D}{2} \log\Big(1 + \frac{q}{v}\Big), \quad q = x^\top V^{-1} x.

It differs from log N(x | 0, V) by a function of q and D alone, `gain`, so whoever has the Gaussian
and its quadratic form has this, too.  The gradient is that of the Gaussian with the quadratic form
weighted, ``d log p / dV = (w V^-1 x x' V^-1 - V^-1) / 2`` with ``w = (v + D) / (v + q)``, `weight`.
Source: Shah, Wilson and Ghahramani 2014, *Student-t processes as alternatives to Gaussian
processes*.  Infinite degrees of freedom are the Gaussian itself.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import gammaln, stdtrit

from .types import Floats

SERIES_DEGREES = 4.0
"""v of the scale of a series: half of all scales lie between 0.74 and 2.1."""


def gain(q: float, num_observed: int, degrees: float) -> float:
    """``log p(x) - log N(x | 0, V)``, from q over so many points."""
    if math.isinf(degrees):
        return 0.0
    halves = 0.5 * (degrees + num_observed)
    return _constant(num_observed, degrees) - halves * math.log1p(q / degrees) + 0.5 * q


@lru_cache(maxsize=1024)
def _constant(num_observed: int, degrees: float) -> float:
    """What does not depend on q: learning asks for it at every covariance."""
    half, halves = 0.5 * degrees, 0.5 * (degrees + num_observed)
    return float(gammaln(halves) - gammaln(half)) - 0.5 * num_observed * math.log(half)


def weight(q: float, num_observed: int, degrees: float) -> float:
    """w, one over the posterior mean of the scale but for two degrees of freedom."""
    return 1.0 if math.isinf(degrees) else (degrees + num_observed) / (degrees + q)


def gains(q: Floats, num_observed: int, degrees: float) -> Floats:
    """`gain` of many series."""
    if math.isinf(degrees):
        return np.zeros_like(q)
    halves = 0.5 * (degrees + num_observed)
    return _constant(num_observed, degrees) - halves * np.log1p(q / degrees) + 0.5 * q


def weights(q: Floats, num_observed: int, degrees: float) -> Floats:
    """`weight` of many series."""
    return np.ones_like(q) if math.isinf(degrees) else (degrees + num_observed) / (degrees + q)


def unit_quantile(p: float | Floats, degrees: Floats) -> Floats:
    """Quantiles of Student-t distributions of mean zero and variance one.

    Parameters
    ----------
    p
        Probabilities, that broadcast with the degrees.
    degrees
        Of freedom, more than two; infinite: of the standard normal.
    """
    return np.asarray(stdtrit(degrees, p) * unit_scale(degrees))


def unit_scale(degrees: Floats) -> Floats:
    """Scales with which Student-t distributions have variance one; one for the normal."""
    return np.sqrt(1.0 - 2.0 / degrees)
