"""Names of before `likelihoods`, kept until all rooms call it."""

from __future__ import annotations

import math
from typing import Literal, get_args

from ..gp.likelihoods import GAUSSIAN, SCALE_DEGREES, ScaledNoise, SeriesLikelihood

Amplitudes = Literal["none", "series", "component"]

HEIGHT_SD = 1.5


def degrees_of(amplitudes: Amplitudes) -> float:
    """Return degrees of freedom of the scale of a series; infinite where it is one."""
    if amplitudes not in get_args(Amplitudes):
        raise ValueError(
            f"amplitudes: expected one of {list(get_args(Amplitudes))}, got {amplitudes!r}"
        )
    return SCALE_DEGREES if amplitudes == "series" else math.inf


def likelihood_of_amplitudes(amplitudes: Amplitudes) -> SeriesLikelihood:
    """Return the likelihood that amplitudes stand for."""
    return ScaledNoise() if amplitudes == "series" else GAUSSIAN
