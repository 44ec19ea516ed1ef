"""The group report: what all series share, in words, pictures and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd

from .. import plotting
from ..coupling.coupled_discovery import CoupledDiscovery
from ..discovery.result import Discovery
from ..explain.attribution import AUTOREGRESSION, OTHER_TITLES, WALKS, attribute, part_order
from ..explain.comparison import clustered, likeness
from ..explain.decomposition import Decomposition
from ..explain.holdout import HoldOut, hold_out_tail
from ..explain.ties import Ties
from ..explain.verdicts import STRONG, SURE, WEIGHTY, verdicts
from ..explain.wording import Timeline, scale_note
from ..fit.training import most_times
from ..plotting.style import units_by_name
from ..runtime.arguments import check_level
from ..runtime.text import counted, level_in_percent, listed, percent
from ..runtime.threads import single_threaded
from ..sharing.posterior import DISAGREE, MOST_ASKED, VISIBLE
from .component_report import ComponentReport, component_report
from .page import Picture, Report, markdown, markdown_table
from .pairwise import likeness_picture
from .series_report import SeriesReport, series_reports
from .summary import summary, ways_of_pairs
from .together import TogetherReport

_FEW = 12  # up to so many series have panels of their own; more are drawn in rows


_MOST_APART = 6
"""Disagreements of chains that are named."""

_MIXED = 1.1
"""Chains with a larger split R-hat have not mixed (Gelman et al. 2013)."""


@dataclass(frozen=True, repr=False)
class GroupReport(Report):
    """What the series of a discovery share, and what each has alone."""

    found: Discovery  #: The discovery
    horizon: int  #: Steps of forecast
    level: float  #: Probability of intervals
    units: Mapping[str, str]  #: Of the series, by name
    summary: str  #: The gist, in a paragraph
    #: Those that are more certain and explain more come first.
    components: tuple[ComponentReport, ...]
    series: tuple[SeriesReport, ...]  #: In the order of the table
    parts: Decomposition  #: Components on the history
    #: Where forecasts come from; see `lkm_gpflow.explain.attribution.attribute`.
    attribution: pd.DataFrame
    likeness: pd.DataFrame  #: Shared variance of every two series, like ones side by side
    hold_out: HoldOut  #: The tail, forecast from what came before it
    #: What goes together in different series, if a coupling was asked.
    together: TogetherReport | None = None
    given_title: str = ""  #: The title, if one was given
    template: str = field(default="group.html", init=False)

    @property
    def title(self) -> str:
        """See `Report.title`."""
        if self.given_title:
            return self.given_title
        if len(self.series) == 1:
            return f"What {self.series[0].name} is made of"
        count, total = len(self.series), len(self.found.whole.table.names)
        return f"What {count}{f' of {total}' if total > count else ''} series share"

    @property
    def heading(self) -> str:
        """What stands above the components."""
        return "Its patterns" if len(self.series) == 1 else "What they share"

    @property
    def note(self) -> str:
        """Which series are modelled on a log scale, and what that means; empty if none is."""
        return scale_note(self.found.table)

    @property
    def groups(self) -> list[tuple[str, list[ComponentReport]]]:
        """Components by who has them: heading, components.

        Those that are certain and explain much come first; without averaging those that most
        series have, as in the paper.
        """
        if self.found.averaging == "none":
            ordered = sorted(self.components, key=lambda c: (-len(c.owners), c.owners, c.number))
        else:
            ordered = sorted(self.components, key=lambda c: (_uncertainty(c), c.number))
        return [(who, list(each)) for who, each in groupby(ordered, key=lambda c: c.who)]

    @property
    def nothing(self) -> str:
        """What stands in the place of components where there is none."""
        these = "this" if len(self.series) == 1 else "these"
        return f"The search found no pattern in {these} series, nothing but noise."

    @property
    def titles(self) -> dict[str, str]:
        """Names for readers of the components and other parts, by the names of parts."""
        return self._told([each.title for each in self.components])

    @property
    def phrases(self) -> dict[str, str]:
        """The same as they stand in a sentence: "a 1.4-year cycle"."""
        told = self._told([each.description.short for each in self.components])
        return told | {
            AUTOREGRESSION: f"the {AUTOREGRESSION}",
            WALKS: "random walks added for safety, with and without a season",
        }

    def _told(self, words: list[str]) -> dict[str, str]:
        """Words for each part, with a number where two components have the same."""
        told = {
            each.name: f"{own} (component {each.number})" if words.count(own) > 1 else own
            for each, own in zip(self.components, words, strict=True)
        }
        return told | OTHER_TITLES

    @property
    def about(self) -> list[tuple[str, str]]:
        """Data and settings: what, and its value."""
        table, settings = self.found.table, self.found.settings
        times, values = table.frame.index, table.frame
        total = len(self.found.whole.table.names)
        missing = int(values.isna().to_numpy().sum())
        timeline = Timeline.of(table)
        first, last = timeline.moment(times[0]), timeline.moment(times[-1])
        return [
            ("series", f"{values.shape[1]}{f' of {total}' if total > values.shape[1] else ''}"),
            ("times", f"{len(times)}, {first} to {last}, step {timeline.duration(timeline.step)}"),
            ("missing", f"{missing} of {values.size} values ({percent(missing / values.size)})"),
            ("search", f"{settings.strategy} set expansion, depth {settings.depth}, "
                       f"{counted(settings.restarts, 'start')} each, "
                       f"bases {', '.join(settings.bases)}, seed {settings.seed}"),
            *([("stopped", self.found.stopped)] if self.found.stopped else []),
            ("fits", f"{len(self.found.entries)}; BIC of the best {self.found.bic:.1f}"),
            ("forecast", f"{counted(self.horizon, 'step')}, "
                         f"{level_in_percent(self.level)} intervals, "
                         f"{self._averaged}"),
            *([("components", self._agreed)] if self.found.averaging != "none" else []),
            *([("kernels", f"times in days, counted from {timeline.moment(timeline.origin)}")]
              if timeline.origin is not None else []),
        ]  # fmt: skip

    @property
    def _averaged(self) -> str:
        """What forecasts average over."""
        ensemble = self.found.ensemble
        fits = counted(len(ensemble.fits), "fit")
        others = " and a vector autoregression" if ensemble.shares["autoregression"] else ""
        return f"{fits}{others} averaged"

    @property
    def _agreed(self) -> str:
        """Which fits the components are taken from."""
        num_fits = len(self.found.searched)
        if num_fits == 1:
            return "those of one fit of the search"
        return f"those that {num_fits} fits of the search agree on"

    @property
    def parts_of_variance(self) -> list[str]:
        """Names of the parts of forecast variances, in order."""
        return part_order(self.found, list(self.series[0].variance_shares))

    @cached_property
    def trust(self) -> str:
        """How good the forecasts of the last rows were, over all series."""
        held_out = sum(each.held_out for each in self.series)
        if not held_out:
            table, fit = self.found.table, self.found.settings.fit
            if len(table.frame) > most_times(table.observations, fit):
                return "The table is too long to be learnt twice: forecasts were not checked."
            if self.found.table.frame.loc[self.hold_out.times].notna().to_numpy().any():
                return (
                    "Nothing could be learnt without the last tenth of the rows: forecasts were "
                    "not checked."
                )
            return "Nothing of the last tenth of the rows was observed: forecasts were not checked."
        return (
            f"Of {counted(held_out, 'observation')} in the last tenth of the rows, forecast from "
            f"what came before, {percent(self.hold_out.overall(self.level))} fell into the "
            f"{level_in_percent(self.level)} intervals. "
            f"Hyperparameters were learnt without these rows, but structures and weights were "
            f"chosen with them, so expect the future to be slightly harder."
        )

    @property
    def caveat(self) -> str:
        """What probabilities mean."""
        found = self.found
        percentages = ", or of the percentage by which it changes the series"
        return (
            f"{_what_p_means(found)} "
            "Evidence is the log Bayes factor of this series "
            "alone: how much likelier it is with the component than without. A series has a "
            f"component if P is at least {SURE}, the evidence at least {STRONG:.0f} and its share "
            f"of the variation at least {WEIGHTY:.0%}; perhaps, if it is more likely than not, its "
            "evidence is positive, and it fails one of these. Height is the standard deviation "
            "over time of what the component adds"
            f"{percentages if found.table.transforms.any else ''}."
        )

    @property
    def text(self) -> str:
        """See `Report.text`."""
        lines = [f"# {markdown(self.title)}", ""]
        lines += [markdown(self.summary), ""]
        lines += [markdown(self.note), ""] if self.note else []
        lines += [f"## {self.heading}", ""]
        lines += [] if self.components else [self.nothing, ""]
        for who, components in self.groups:
            lines.append(f"{markdown(who)}:")
            for each in components:
                said = [each.description.text, each.directions, each.membership, each.explained]
                words = " ".join(filter(None, [each.membership] if each.is_doubtful else said))
                lines += ["", f"**{markdown(each.heading)}.** {markdown(words)}", ""]
                lines += [f"`{each.name}: {each.kernel}`", ""]
                if each.table:
                    lines.append(markdown_table(each.table[0], each.table[1:]))
            lines.append("")
        lines += [] if self.together is None else self.together.lines
        lines += ["## Each series", ""]
        lines += [f"- {markdown(each.account(self.phrases))}" for each in self.series]
        lines += ["", "## How sure to be", "", self.trust, "", self.caveat, ""]
        lines += [
            f"- **{markdown(each.heading)}**: {markdown(each.intervals)}"
            for each in self.components
            if each.intervals
        ]
        lines.append("")
        lines += [
            f"- {markdown(each.name)}: **{each.verdict}**. {markdown(' '.join(each.findings))}"
            for each in self.series
        ]
        lines += ["", "## Who has what", "", self._probability_table(), "", "## Data", ""]
        lines += [f"- {what}: {markdown(value)}" for what, value in self.about]
        return "\n".join(lines) + "\n"

    def _probability_table(self) -> str:
        rows = [
            [one.name, *(f"{each.probabilities[one.name]:.2f}" for each in self.components)]
            for one in self.series
        ]
        heads = [each.heading for each in self.components]
        return markdown_table(["series", *map(markdown, heads)], rows)

    def to_dict(self) -> dict[str, Any]:
        """See `Report.to_dict`."""
        return {
            "title": self.title,
            "about": dict(self.about),
            "summary": self.summary,
            "scale": dict(
                zip(self.found.table.names, self.found.table.transforms.names, strict=True)
            ),
            "components": [each.to_dict() for each in self.components],
            "series": [each.to_dict() for each in self.series],
            "likeness": {
                str(a): {str(b): float(value) for b, value in row.items()}
                for a, row in self.likeness.iterrows()
            },
            "together": None if self.together is None else self.together.records,
            "trust": self.trust,
            "caveat": self.caveat,
        }

    def pictures(self) -> list[Picture]:
        """See `Report.pictures`."""
        found, few = self.found, len(self.series) <= _FEW
        pictures = [
            Picture.of(
                "Every series and its components",
                "A place is blank where the series does not have the component, or it cannot be "
                "told. All curves of a row have one scale. Bands are "
                f"{level_in_percent(self.level)} intervals.",
                plotting.plot_decomposition(
                    found, self.horizon, level=self.level, parts=self.parts
                )[0],
            )
        ]
        if few:
            panels = plotting.plot_forecasts(
                found, self.horizon, level=self.level, units=self.units
            )
            caption = f"The band holds {level_in_percent(self.level)} of new observations."
            pictures.append(Picture.of("Forecasts", caption, panels[0]))
            panels = plotting.plot_attribution(found, self.horizon, attribution=self.attribution)
            caption = (
                "The parts of the variance of the forecast, step by step; areas below zero "
                "belong to components that offset others."
            )
            pictures.append(Picture.of("Where the uncertainty comes from", caption, panels[0]))
        for moment, title in (
            ("mean", "Shares in the forecast"),
            ("variance", "Shares in its variance"),
        ):
            ax = plotting.plot_attribution_shares(found, self.attribution, moment)
            pictures.append(
                Picture.of(title, "One bar for each series, over the whole horizon.", ax)
            )
        if len(self.series) > 1:
            pictures.append(likeness_picture(self.likeness, found.table.frame))
        if self.together is not None:
            pictures.append(self.together.picture())
        return pictures


@single_threaded()
def group_report(
    found: Discovery,
    horizon: int | None = None,
    *,
    level: float = 0.9,
    units: Mapping[Any, str] | None = None,
    title: str = "",
    coupled: CoupledDiscovery | None = None,
) -> GroupReport:
    """Report what the series of a discovery share.

    Parameters
    ----------
    found
        The discovery.
    horizon
        Steps of forecast; by default a tenth of the rows.
    level
        Probability of intervals.
    units
        Of the series, by name, for the pictures.
    title
        Of the report; by default what it is about.
    coupled
        ``found.couple()``, for evidence that components go together in different series.

    Raises
    ------
    ValueError
        If the horizon is below one, the level not between 0 and 1, or the coupling that of another
        table.
    """
    check_level(level)
    ties = None if coupled is None else Ties(found, coupled)
    frame = found.table.frame
    units, horizon = units_by_name(units, found.whole.table.names), found.table.steps(horizon)
    parts = Decomposition.of(found)
    judged = verdicts(found, parts)
    attribution = attribute(found, horizon)
    hold_out = hold_out_tail(found)
    alike = likeness(parts)
    order = clustered(alike)
    names = frame.columns[order]
    components = tuple(
        component_report(found, parts, judged, units, k) for k in range(len(found.names))
    )
    return GroupReport(
        found=found,
        horizon=horizon,
        level=level,
        units=units,
        summary=summary(found, components, ways_of_pairs(found, components, ties)),
        components=components,
        series=series_reports(found, parts, judged, attribution, hold_out, level),
        parts=parts,
        attribution=attribution,
        likeness=pd.DataFrame(alike[order][:, order], names, names),
        hold_out=hold_out,
        together=None if ties is None else TogetherReport(ties, components),
        given_title=title,
    )


def _uncertainty(component: ComponentReport) -> int:
    """Return 0 if a series has it, 1 if one has it perhaps, 2 if that cannot be told."""
    return 0 if component.owners else 1 if component.those("perhaps") else 2


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
