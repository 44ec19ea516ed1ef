"""Lomb-Scargle periodograms of many series at once, by matrix products."""

from __future__ import annotations

import numpy as np

from ..gp.types import Floats

_MOST_NUMBERS = 2_000_000
"""Frequencies are taken in blocks: a block's cosines at all times are at most so many numbers."""

_NEGLIGIBLE = 1e-9
"""A wave with a smaller mean square at the times is zero there, and explains nothing."""


def lomb_scargle(x: Floats, Y: Floats, mask: Floats, frequencies: Floats) -> Floats:
    r"""Share of each series' sum of squares that a wave of each frequency explains.

    .. math:: P_n(f) = \frac{1}{y^\top y} \Big[ \frac{(y^\top c)^2}{c^\top c}
       + \frac{(y^\top s)^2}{s^\top s} \Big], \qquad
       c_i = \cos 2 \pi f (x_i - \tau), \quad s_i = \sin 2 \pi f (x_i - \tau)

    over the times that the series has, with the :math:`\tau` that makes c and s orthogonal.
    As SciPy's ``lombscargle(normalize=True)`` of one series; a thousand take little longer.
    Source: Scargle 1982, *Studies in astronomical time series analysis II*, equation 10.

    Parameters
    ----------
    x
        Times, [D].
    Y, mask
        Series, and one where they were observed, [N, D].
    frequencies
        Cycles per unit of time, [F].

    Returns
    -------
    [N, F]; zero for a series of zeros.
    """
    y = Y * mask
    squares = np.square(y).sum(axis=1)
    power = np.empty((len(Y), len(frequencies)))
    size = max(1, _MOST_NUMBERS // len(x))
    for begin in range(0, len(frequencies), size):
        block = slice(begin, begin + size)
        angles = 2.0 * np.pi * np.outer(x, frequencies[block])
        power[:, block] = _explained(np.cos(angles), np.sin(angles), y, mask)
    # A series of zeros has no power in any wave.
    return power / np.where(squares > 0.0, squares, 1.0)[:, None]


def _explained(cosines: Floats, sines: Floats, y: Floats, mask: Floats) -> Floats:
    """Sum of squares that waves explain, [N, F], from cosines and sines, [D, F]."""
    seen = mask.sum(axis=1, keepdims=True)
    twice = mask @ (cosines * sines)
    difference = mask @ (np.square(cosines) - np.square(sines))
    turned = 0.5 * np.arctan2(2.0 * twice, difference)
    half = 0.5 * np.hypot(2.0 * twice, difference)
    a, b, c, s = y @ cosines, y @ sines, np.cos(turned), np.sin(turned)
    products = np.array([c * a + s * b, c * b - s * a])
    squares = np.array([0.5 * seen + half, 0.5 * seen - half])
    counts = squares > _NEGLIGIBLE * seen
    explained = np.divide(np.square(products), squares, out=np.zeros_like(squares), where=counts)
    return np.asarray(explained.sum(axis=0))
