"""How good forecasts of the tail were, and what probabilities mean: how far to trust a report."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..discovery.result import Discovery
from ..explain.holdout import HoldOut
from ..explain.verdicts import STRONG, SURE, WEIGHTY
from ..gp import limits
from ..runtime.text import counted, level_in_percent, listed, percent
from ..sharing.posterior import DISAGREE, MOST_ASKED, VISIBLE
from .series_report import SeriesReport

_MOST_APART = 6
"""Disagreements of chains that are named."""

_MIXED = 1.1
"""Chains with a larger split R-hat have not mixed (Gelman et al. 2013)."""


def trust(found: Discovery, series: Sequence[SeriesReport], tail: HoldOut, level: float) -> str:
    """Say how good the forecasts of the last rows were, over all series."""
    held_out = sum(each.held_out for each in series)
    if not held_out:
        if len(found.table.frame) > limits.LONGEST:
            return "The table is too long to be learnt twice: forecasts were not checked."
        if found.table.frame.loc[tail.times].notna().to_numpy().any():
            return (
                "Nothing could be learnt without the last tenth of the rows: forecasts were "
                "not checked."
            )
        return "Nothing of the last tenth of the rows was observed: forecasts were not checked."
    return (
        f"Of {counted(held_out, 'observation')} in the last tenth of the rows, forecast from "
        f"what came before, {percent(tail.overall(level))} fell into the "
        f"{level_in_percent(level)} intervals. "
        f"Hyperparameters were learnt without these rows, but structures and weights were "
        f"chosen with them, so expect the future to be slightly harder."
    )


def caveat(found: Discovery) -> str:
    """Say what probabilities, evidence and heights mean."""
    percentages = ", or of the percentage by which it changes the series"
    return (
        f"{_what_p_means(found)} "
        "Evidence is the log Bayes factor of this series "
        "alone: how much likelier it is with the component than without. A series has a "
        f"component if P is at least {SURE}, the evidence at least {STRONG:.0f} and its share "
        f"of the variation at least {WEIGHTY:.0%}; perhaps, if it is more likely than not, its "
        "evidence is positive, and it fails one of these. Height is the standard deviation "
        f"over time of what the component adds{percentages if found.table.transforms.any else ''}."
    )


def _what_p_means(found: Discovery) -> str:
    if not found.says_by_fits:
        return " ".join(filter(None, [
            "P is the probability that a component, in whatever form, makes at least "
            f"{VISIBLE:.0%} of the variance of a series: the share of the draws of a Markov "
            "chain in which it does.",
            _rows_looked_at(found),
            _agreement(found),
        ]))  # fmt: skip
    if found.averaging == "none":
        of_what = "given the components of this one fit; other fits may differ"
    else:
        of_what = "averaged over the fits of the search"
    many = found.whole.table.observations.num_series > MOST_ASKED
    why = f" Tables of more than {MOST_ASKED} series are not sampled." if many else ""
    return f"P is the probability that a series has a component, {of_what}.{why}"


def _rows_looked_at(found: Discovery) -> str:
    looked_at, every = len(found.posterior.times), len(found.table.observations.x)
    if looked_at == every:
        return ""
    return f"To save time the chains saw {looked_at} of the {every} rows, chosen at random."


def _agreement(found: Discovery) -> str:
    """Say how far two chains agree, one of which began at the best fit and one at nothing."""
    apart = found.statements.disagreement
    if not apart.size:
        return ""
    text = (
        f"Two chains, one from the best fit and one from nothing, differ by {apart.mean():.2f} "
        "on average"
    )
    wide = [
        f"{name} and component {k + 1}"
        for (n, k), name in (
            ((n, k), found.table.names[n]) for n, k in np.argwhere(apart >= DISAGREE)
        )
    ]
    if wide:
        text += f". They disagree, so do not rely on P, for {listed(wide, _MOST_APART)}"
    if found.posterior.split_r_hat > _MIXED:
        text += (
            ". They have not forgotten where they began (split R-hat "
            f"{found.posterior.split_r_hat:.2f}): take all P with caution"
        )
    return f"{text}."
