r"""How series that share a component may differ: not at all, in scale, or in each height.

The paper's components have one variance for all series.  Series are divided by their standard
deviation first, so a pattern that two series share has a different height in each, and a search
then splits it by height.  There are three choices:

"none", the paper's:
    :math:`x_n \sim \mathcal{N}(0, \sum_k z_{nk} C_k + \sigma_n^2 I)`.
"series":
    :math:`x_n \sim \mathcal{N}(0, s_n (\sum_k z_{nk} C_k + \sigma_n^2 I))` with
    :math:`s_n \sim \mathrm{InvGamma}(v/2, v/2)` integrated out: a Student-t with v degrees of
    freedom (`numerics.student`).  One eigendecomposition still serves all series, and there is
    nothing more to learn; the noise is relative to the scale.
"component":
    :math:`x_n \sim \mathcal{N}(0, \sum_k z_{nk} h_{nk} C_k + \sigma_n^2 I)` with
    :math:`\log h_{nk} \sim \mathcal{N}(0, s^2)`, s = 1.5: a height for every series and component.
    Each series then has its own covariances, so use this for a few dozen series at most.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

from ..gp.student import SERIES_DEGREES

Amplitudes = Literal["none", "series", "component"]

HEIGHT_SD = 1.5
"""s: a component has between a fifth and five times its variance in 72 of 100 series."""


def degrees_of(amplitudes: Amplitudes) -> float:
    """Degrees of freedom of the scale of a series; infinite where it is one.

    Raises
    ------
    ValueError
        If there are no such amplitudes.
    """
    if amplitudes not in get_args(Amplitudes):
        raise ValueError(
            f"amplitudes: expected one of {list(get_args(Amplitudes))}, got {amplitudes!r}"
        )
    return SERIES_DEGREES if amplitudes == "series" else math.inf
