"""Whether a series has a component: what probability, evidence and share say together."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..coupling.learn_coupling import STRONG as STRONG
from ..discovery.result import Discovery
from ..gp.types import Floats
from ..sharing.consensus import is_likely
from ..sharing.pattern_draws import SURE as SURE
from .decomposition import Decomposition

Verdict = Literal["has", "perhaps", "cannot be told", "has not"]
"""What is said of a series and a component."""

ORDER = {verdict: i for i, verdict in enumerate(get_args(Verdict))}  # of verdicts, the surest first

HARDLY = 0.05
"""Up to this probability it is said not to have it.

Of a forecast's variance it may be more: the one fit that had a component, of a weight of 0.07, made
up 0.23 of it on the small table of the tests.
"""

WEIGHTY = 0.05
"""Share of the variation of a series from which a component is more than a correction."""


def verdicts(found: Discovery, parts: Decomposition) -> pd.DataFrame:
    """Return the `Verdict` on every series and component, a table of both.

    A series *has* a component if that is probable (`SURE`), the data of this series alone say so
    (`STRONG`), and the component makes up some of the variation (`WEIGHTY`).  It *perhaps* has a
    component that is more likely than not, with evidence for rather than against it
    (`consensus.is_likely`), but fails one of the three.  It *has not* a component that is unlikely
    (`HARDLY`), with equally strong evidence against it.  All else *cannot be told*.
    """
    p = found.probabilities
    said = judge(p.to_numpy(), found.evidence.to_numpy(), parts.share[:, :-1])
    return pd.DataFrame(said, p.index, p.columns)


def judge(probability: Floats, evidence: Floats, share: Floats) -> NDArray[np.str_]:
    """Return the `Verdict` for each entry of arrays of one shape; see `verdicts`."""
    has, perhaps, untold, has_not = get_args(Verdict)
    said: NDArray[np.str_] = np.select(
        [
            (probability >= SURE) & (evidence >= STRONG) & (share >= WEIGHTY),
            is_likely(probability, evidence),
            (probability > HARDLY) | (evidence > -STRONG),
        ],
        [has, perhaps, untold],
        has_not,
    )
    return said
