"""What is known of new observations: of a single forecaster, and of all together."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from ..gp.types import Floats

Prediction: TypeAlias = tuple[Floats, Floats, Floats]
"""Weight [M, 1], mean [M, N] and variance [M, N] of a fit, or of the autoregression."""


class Moments(NamedTuple):
    """What is known of new observations, [M, N] each.

    Parameters
    ----------
    centre, spread
        Mean and standard deviation on the modelled scale (of logarithms, where these are modelled).
    mean, sd
        Mean and standard deviation in the units of the series.
    degrees
        Of freedom of the Student-t on the modelled scale; infinite: normal.
    """

    centre: Floats
    spread: Floats
    mean: Floats
    sd: Floats
    degrees: Floats
