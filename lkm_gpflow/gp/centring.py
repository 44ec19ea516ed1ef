r"""Covariances of series whose averages were subtracted.

.. math:: x - \bar x 1 = H x \sim \mathcal{N}(0, H V H), \qquad H = I - \tfrac1D 1 1^\top

H V H has no inverse: nothing is left in the direction of 1.  With :math:`\tfrac1D 1 1^\top` added
it has one, log determinants and quadratic forms of centred series are those of the D - 1 other
directions, and a level of any height is integrated out (restricted likelihood, Patterson and
Thompson 1971).
"""

from __future__ import annotations

import numpy as np

from .types import Floats


def centred(C: Floats) -> Floats:
    """Return ``H C H`` of covariances, [..., D, D]."""
    by_column: Floats = C - C.mean(axis=-2, keepdims=True)
    return by_column - by_column.mean(axis=-1, keepdims=True)


def average(D: int) -> Floats:
    """Return what makes a centred covariance invertible, ``1 1' / D``, [D, D]."""
    return np.full((D, D), 1.0 / D)
