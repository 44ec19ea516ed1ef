"""Families: components that are one thing in several forms, taken together.

Fits of a search may agree that a series repeats every eleven years, and disagree on how: strictly,
approximately, or with a height that wanders.  Or they agree that it moves slowly, and disagree on
whether it is a random walk, a smooth curve or a straight line.  Then no component is certain, and
yet the cycle, or the slow movement, is.  In a short table they may agree on no more than that a
series is not noise alone: it has a pattern, whatever it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ..fit.engine import components
from ..gp.types import Booleans, Floats, Integers
from ..kernels.grammar import Product
from .cycles import of_one_period
from .matching import FLAT, centred

Kind = Literal["cycle", "slow movement", "pattern"]
"""What the components of a family have in common."""

TENTHS = 10
"""Stretches of equal length that the time is cut into."""

_EACH = 20
"""Times of the grid in each of them."""

_SLOW = 0.75
"""Share of the variance that a slow component has between the averages of these stretches.

A random walk has 0.90, a straight line 0.99, a smooth component of a lengthscale of a tenth of the
time 0.90 and one of a thirtieth 0.54, a cycle of a fifth of the time 0.31 or less.
"""


@dataclass(frozen=True)
class Family:
    """Consensus components that are one thing in several forms, and who has any of them.

    Parameters
    ----------
    kind
        Cycles with about one period, slow movements, or all components there are.
    members
        Numbers of the components, ascending.
    by_fit
        Probability that a series has any of them, by each fit, [M, N].
    evidence
        Log Bayes factors of having any of them, [N]; as `Consensus.evidence`.
    """

    kind: Kind
    members: tuple[int, ...]
    by_fit: Floats
    evidence: Floats

    def of_series(self, places: Integers) -> Family:
        """Return the part about some series."""
        return replace(self, by_fit=self.by_fit[:, places], evidence=self.evidence[places])


def families_of(kernels: Sequence[Product], x: Floats) -> list[tuple[Kind, tuple[int, ...]]]:
    """Return families: kind, and numbers of the kernels.

    A single slow component is a family, too, and so is any single component: it may have a form
    that no fit has.

    Parameters
    ----------
    kernels
        Complete products, [K].
    x
        The times of the data.
    """
    slow = tuple(np.flatnonzero(are_slow(kernels, x)).tolist())
    return [
        *(("cycle", members) for members in of_one_period(kernels) if len(members) > 1),
        *((("slow movement", slow),) if slow else ()),
        *((("pattern", tuple(range(len(kernels)))),) if kernels else ()),
    ]


def are_slow(kernels: Sequence[Product], x: Floats) -> Booleans:
    """Whether components mostly change from one tenth of the time to another, [K].

    Three quarters of the variance over time that they are expected to have (`sizes_of`) must lie
    between the averages of tenths.

    Parameters
    ----------
    kernels
        Complete products, [K].
    x
        The times of the data.
    """
    grid = np.linspace(x[0], x[-1], TENTHS * _EACH)
    C = components(kernels, grid)
    before = np.einsum("kii->k", C)
    C = centred(C)
    total = np.einsum("kii->k", C) / len(grid)
    blocks = C.reshape(-1, TENTHS, _EACH, TENTHS, _EACH).mean(axis=(2, 4))
    between = np.einsum("kii->k", blocks) / TENTHS
    slow: Booleans = (between >= _SLOW * total) & (total > FLAT * before / len(grid))
    return slow
