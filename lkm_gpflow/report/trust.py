"""How good forecasts of the tail were, and what probabilities mean: how far to trust a report."""

from __future__ import annotations

from collections.abc import Sequence

from ..discovery.result import Discovery
from ..explain.holdout import HoldOut
from ..explain.verdicts import STRONG, SURE, WEIGHTY
from ..gp import limits
from ..gp.likelihoods import GAUSSIAN
from ..runtime.text import counted, level_in_percent, percent
from .series_report import SeriesReport


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
    if found.averaging == "none":
        of_what = "given the components of this one fit; other fits may differ"
    elif found.settings.fit.likelihood == GAUSSIAN:
        of_what = "averaged over the fits of the search"
    else:
        of_what = (
            "averaged over the fits of the search and, in tables of usual size, over "
            "alternatives to them"
        )
    percentages = ", or of the percentage by which it changes the series"
    return (
        f"P is the probability that a series has a component, {of_what}. "
        "Evidence is the log Bayes factor of this series "
        "alone: how much likelier it is with the component than without. A series has a "
        f"component if P is at least {SURE}, the evidence at least {STRONG:.0f} and its share "
        f"of the variation at least {WEIGHTY:.0%}; perhaps, if it is more likely than not, its "
        "evidence is positive, and it fails one of these. Height is the standard deviation "
        f"over time of what the component adds{percentages if found.table.transforms.any else ''}."
    )
