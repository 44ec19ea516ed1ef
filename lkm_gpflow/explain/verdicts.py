"""Whether a series has a component: what probability, evidence and share say together."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import pandas as pd

from ..discovery.result import Discovery
from .decomposition import Decomposition

Verdict = Literal["has", "perhaps", "cannot be told", "has not"]
"""What is said of a series and a component."""

SURE = 0.9
"""From this probability on a series may be said to have a component."""

HARDLY = 0.1
"""Up to this probability it is said not to have it."""

STRONG = 3.0
"""Log Bayes factor from which evidence is strong (Kass and Raftery 1995: a factor of 20)."""

WEIGHTY = 0.05
"""Share of the variation of a series from which a component is more than a correction."""


def verdicts(found: Discovery, parts: Decomposition) -> pd.DataFrame:
    """Judge every series and component.

    A series *has* a component if that is probable (`SURE`), the data of this very series say so
    (`STRONG`), and it makes up some of the variation (`WEIGHTY`).  What is more likely than not
    but fails one of the three is said with *perhaps*; of what is neither likely nor unlikely
    *cannot be told* which; the rest *has not*.

    Parameters
    ----------
    found
        A discovery.
    parts
        Its decomposition.

    Returns
    -------
    DataFrame of `Verdict`, series x components.
    """
    probability = found.probabilities
    share = parts.share[:, :-1]
    supported = (found.evidence.to_numpy() >= STRONG) & (share >= WEIGHTY)
    p = probability.to_numpy()
    said = np.select(
        [(p >= SURE) & supported, p > 0.5, p > HARDLY], get_args(Verdict)[:3], get_args(Verdict)[3]
    )
    return pd.DataFrame(said, probability.index, probability.columns)
