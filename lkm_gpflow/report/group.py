"""The group report: what series do, together and alone, in words, pictures and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, cast

import numpy as np
import pandas as pd

from .. import plotting
from ..coupling.coupled_discovery import NOTHING, CoupledDiscovery, told_pairs
from ..discovery.result import Discovery
from ..explain.holdout import HoldOut, hold_out_tail
from ..explain.stories import MOST_NAMES, Story, gist, stories, table_of
from ..explain.wording import Timeline, scale_note
from ..fit.training import most_times
from ..plotting.style import units_by_name
from ..runtime.arguments import check_level
from ..runtime.text import counted, level_in_percent, listed, percent
from ..runtime.threads import single_threaded
from ..sharing.behaviour import together
from ..sharing.pattern_draws import SURE
from ..sharing.posterior import DISAGREE, MOST_ASKED, VISIBLE
from .components import ComponentReport
from .page import Picture, Report, check_few
from .series_report import SeriesReport, series_reports

_FEW = 12  # up to so many series have panels and pairs of their own; more are drawn in rows
_MOST_ROWS = 20  # series of a pattern's table
_CLEARLY = 0.5  # correlations of this size are named
_FURTHEST = 5  # times that are named as furthest from what was expected
_FEWEST_ERRORS = 20  # of fewer times none is named
_LOOKED_FOR = {
    "a trend": {"trend", "drift"}, "a cycle": {"cycle"}, "a shift of level": {"shift"},
}  # fmt: skip
_MIXED = 1.1
"""Chains with a larger split R-hat have not mixed (Gelman et al. 2013)."""


@dataclass(frozen=True, repr=False)
class GroupReport(Report):
    """What the series of a discovery share, and what each has alone."""

    found: Discovery  #: The discovery
    horizon: int  #: Steps of forecast
    level: float  #: Probability of intervals
    units: Mapping[str, str]  #: Of the series, by name
    patterns: tuple[Story, ...]  #: Those that make up more come first
    series: tuple[SeriesReport, ...]  #: In the order of the table
    components: tuple[ComponentReport, ...]  #: By which the fits express the patterns
    hold_out: HoldOut  #: The tail, forecast from what came before it
    correlations: np.ndarray[Any, np.dtype[np.float64]]  #: See `sharing.behaviour.together`
    #: What knowing one series is worth for another, if a coupling was asked.
    coupled: CoupledDiscovery | None = None
    given_title: str = ""  #: The title, if one was given
    template: str = field(default="group", init=False)

    # --- the gist ---

    @property
    def title(self) -> str:
        """See `Report.title`."""
        if self.given_title:
            return self.given_title
        if len(self.series) == 1:
            return f"What {self.series[0].name} does"
        count, total = len(self.series), len(self.found.whole.table.names)
        return f"What {count}{f' of {total}' if total > count else ''} series do"

    @cached_property
    def statements(self) -> list[str]:
        """A sentence for each pattern that matters, and what to be careful about."""
        return gist(self.patterns)

    @property
    def summary(self) -> str:
        """The gist, in a paragraph."""
        return " ".join(filter(None, [*self.statements, self.caution]))

    @cached_property
    def caution(self) -> str:
        """What to be careful about; empty if nothing is known."""
        said = []
        narrow = [each for each in self.series if each.held_out and not each.is_covered]
        if len(narrow) == 1:
            (one,) = narrow
            said.append(
                f"the forecast of {one.name}: only {one.inside} of its last {one.held_out} values "
                f"fell into the {level_in_percent(self.level)} interval"
            )
        elif narrow:
            names = listed([each.name for each in narrow], MOST_NAMES)
            said.append(f"the forecasts of {names}, whose intervals missed too many of the last "
                        "values")  # fmt: skip
        suspicious = self.found.suspicious
        if count := int(suspicious["series"].isin(self.found.table.frame.columns).sum()):
            said.append(f"{counted(count, 'value')} that look{'s' if count == 1 else ''} wrong")
        if once := [
            each for each in self.patterns if "less than twice" in each.title and each.owners
        ]:
            said.append(f"the {once[0].title}, which may be a single event")
        return f"Be careful with {listed(said)}." if said else ""

    @property
    def note(self) -> str:
        """Which series are modelled on a log scale, and what that means; empty if none is."""
        return scale_note(self.found.table)

    # --- who has what ---

    def cell(self, one: SeriesReport, story: Story) -> tuple[str, str, str, str, float]:
        """Class, text, size, explanation and depth of colour of a series and pattern."""
        own, verdict = story.of(one.name), story.verdicts[one.name]
        share = min(own.share.median, 1.0)
        words = f"{verdict}, P {own.probability:.2f}"
        if own.share.upper > 0.0:
            words += f", {percent(share)} of the variation"
        size = ""
        if len(self.series) <= _FEW:
            when = story.when(own) if story.pattern.kind == "cycle" else ""
            size = ", ".join(filter(None, [story.measure(one.name), when]))
        text = {"has": percent(share), "perhaps": f"{percent(share)}?", "cannot be told": "?"}
        kind = {"has": "has", "perhaps": "perhaps", "cannot be told": "untold", "has not": "hasnot"}
        size = size if verdict in ("has", "perhaps") else ""
        return kind[verdict], text.get(verdict, ""), size, words, round(20.0 + 80.0 * share)

    # --- what was unusual, and what was not found ---

    @cached_property
    def further(self) -> list[str]:
        """Missing values, times furthest from what was expected, and kinds that were not found."""
        frame, timeline = self.found.table.frame, Timeline.of(self.found.table)
        said = []
        gaps = frame.isna()
        if missing := int(gaps.to_numpy().sum()):
            worst = gaps.sum().to_numpy().argsort()[::-1]
            owners = [self.series[n].name for n in worst if gaps.iloc[:, n].any()]
            (at,) = gaps.index[gaps.any(axis=1)][:1]
            where = f"{owners[0]}, {timeline.moment(at)}" if missing == 1 else listed(owners, 4)
            verb = "is" if missing == 1 else "are"
            said.append(f"{counted(missing, 'value')} {verb} missing: {where}.")
        errors = pd.concat([each.residuals for each in self.series], axis=1)
        errors.columns = pd.Index([each.name for each in self.series])
        furthest = np.square(errors).mean(axis=1).nlargest(_FURTHEST).index
        if len(errors) >= _FEWEST_ERRORS:
            each = [f"{timeline.moment(time)} ({_who_was_off(errors.loc[time])})"
                    for time in furthest]  # fmt: skip
            said.append(f"Furthest from what the values before and the patterns let expect, in "
                        f"standard deviations: {listed(each)}.")  # fmt: skip
        found = {
            story.pattern.kind
            for story in self.patterns
            if story.those("has") or story.those("perhaps")
        }
        absent = [words for words, kinds in _LOOKED_FOR.items() if not found & kinds]
        if absent:
            said.append(f"Looked for and not found: {listed(absent)}.")
        return said

    # --- what comes next ---

    @property
    def _season(self) -> tuple[int, str]:
        """Steps of a cycle of the calendar, and how long it is; empty if none can be repeated."""
        found, timeline = self.found, Timeline.of(self.found.table)
        season = found.table.axis.season
        known = 1 < season <= len(found.table.frame) and "a season ago" in self.hold_out.errors
        return season, timeline.duration(season * timeline.step) if known else ""

    @cached_property
    def forecast_rows(self) -> list[list[str]]:
        """A head, and what comes next of every series, beside what was last."""
        found, timeline = self.found, Timeline.of(self.found.table)
        forecast = found.forecast(self.horizon, self.level)
        frame, errors = found.table.frame, self.hold_out.errors
        times = forecast.index.get_level_values(1).unique()
        ends = [times[0]] if self.horizon == 1 else [times[0], times[-1]]
        season, ago = self._season
        has_season = bool(ago)
        head = ["series", f"last, {timeline.moment(frame.index[-1])}"]
        head += [f"next, {timeline.moment(ends[0])}"]
        head += [f"{ago} before that"] if has_season else []
        head += [f"then, {timeline.moment(end)}" for end in ends[1:]]
        head += ["typical miss", "of last value", *([f"of {ago} before"] if has_season else [])]
        head += ["inside"]
        rows = [head]
        for each, column in zip(self.series, frame.columns, strict=True):
            name = each.name
            unit = self.units.get(name, "")
            last = frame[column].dropna()
            say = partial(_number, decimals=_decimals(float(last.std())))
            row = [name, f"{say(float(last.iloc[-1]))} {unit}".rstrip()]
            for i, time in enumerate(ends):
                at = forecast.loc[(column, time)]
                row.append(f"{say(at['mean'])} ({say(at['lower'])} to {say(at['upper'])})")
                if has_season and i == 0:
                    row.append(say(float(frame[column].iloc[-season])))
            finer = partial(_number, decimals=_decimals(0.1 * float(last.std())))
            row += [finer(value) for value in errors.loc[column].to_numpy()]
            rows.append([*row, f"{each.inside}/{each.held_out}" if each.held_out else ""])
        return rows

    @property
    def misses(self) -> str:
        """What the columns of errors say."""
        ago = self._season[1]
        also = f", and of the value {ago} before" if ago else ""
        return (
            f"Expected values, with {level_in_percent(self.level)} intervals. The last "
            f"{counted(len(self.hold_out.times), 'row')} were forecast from those before: the "
            "typical miss is the mean absolute error, inside says how many values the interval "
            f"held. Beside it, the misses of the last value{also}."
        )

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
        with_them = (
            "Draws of the posterior and weights were made with these rows"
            if self.found.forecasts_by_draws
            else "Hyperparameters were learnt without these rows, but structures and weights were "
            "chosen with them"
        )
        return (
            f"Of {counted(held_out, 'observation')} in the last tenth of the rows, forecast from "
            f"what came before, {percent(self.hold_out.overall(self.level))} fell into the "
            f"{level_in_percent(self.level)} intervals. {with_them}, so expect the future to be "
            "slightly harder."
        )

    @property
    def rests_on(self) -> str:
        """How much of the forecast comes from what the search did not find, if any does."""
        walks = sum(each.weight for each in self.found.ensemble.members if each.is_walk)
        if not walks:
            return ""
        return (
            f"The patterns above account for {percent(1.0 - walks)} of the forecast, and random "
            f"walks, a safeguard, for {percent(walks)}."
        )

    # --- do they move together? ---

    @property
    def pairs(self) -> list[tuple[str, str, float, float, float]]:
        """Pairs of series with the correlation of their patterns and its interval."""
        names = [each.name for each in self.series]
        return [
            (names[a], names[b], *self.correlations[a, b].tolist())
            for a in range(len(names))
            for b in range(a)
            if np.isfinite(self.correlations[a, b, 0])
        ]

    def pair_cell(self, a: int, b: int) -> tuple[str, str, str, int] | None:
        """Class, number, explanation and depth of colour of a pair of series."""
        r, low, high = self.correlations[a, b].tolist()
        if not np.isfinite(r):
            return None
        words = f"{_signed(low)} to {_signed(high)}"
        return "has" if r > 0.0 else "against", _signed(r), words, round(100.0 * abs(r))

    @property
    def moves(self) -> str:
        """Which pairs clearly move together or against each other, so far."""
        clear = [pair for pair in self.pairs if max(pair[3], -pair[4]) >= _CLEARLY]
        if len(self.series) < 2:
            return ""
        if not clear:
            return "So far no two series clearly move together."
        clear.sort(key=lambda pair: -abs(pair[2]))
        if len(clear) == len(self.pairs) > 3 and min(pair[3] for pair in clear) > 0.0:
            low, high = (_signed(pick(pair[2] for pair in clear)) for pick in (min, max))
            return f"So far all series move together: their correlations are {low} to {high}."
        said = [
            f"{b} and {a} ({_signed(r)}, {_signed(low)} to {_signed(high)})"
            for a, b, r, low, high in clear
        ]
        return (
            f"So far these move together most clearly: {listed(said, 4)}. The number is the "
            f"correlation over the data of what the model takes for signal, with its "
            f"{level_in_percent(self.level)} interval. Series that wander can move together by "
            "chance."
        )

    @cached_property
    def worth(self) -> list[str]:
        """What knowing one series is worth for another: a sentence for each pair, or one if none.

        Nothing without a coupling.
        """
        if self.coupled is None:
            return []
        return told_pairs(self.coupled.pairs) or [NOTHING]

    # --- how sure ---

    @property
    def caveat(self) -> str:
        """What probabilities mean."""
        return (
            f"{_what_p_means(self.found)} A series has a pattern if P is at least {SURE}, and "
            "perhaps has it if P is above one half. Intervals hold the true value with "
            f"{level_in_percent(self.level)} probability, if the model is right."
        )

    @property
    def about(self) -> list[tuple[str, str]]:
        """Data and settings: what, and its value."""
        table, settings = self.found.table, self.found.settings
        times, values = table.frame.index, table.frame
        total = len(self.found.whole.table.names)
        missing = int(values.isna().to_numpy().sum())
        timeline = Timeline.of(table)
        first, last = timeline.moment(times[0]), timeline.moment(times[-1])
        members = self.found.ensemble.members
        drawn = sum(member.fit.is_drawn for member in members)
        numbers = {"fit": len(members) - drawn, "draw": drawn}
        averaged = listed([counted(number, what) for what, number in numbers.items() if number])
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
                         f"{level_in_percent(self.level)} intervals, {averaged} averaged"),
            *([("kernels", f"times in days, counted from {timeline.moment(timeline.origin)}")]
              if timeline.origin is not None else []),
        ]  # fmt: skip

    # --- patterns in detail ---

    def rows_of(self, story: Story) -> list[list[str]]:
        """A head, and what a pattern does in each series that may have it, the surest first."""
        rows = [["series", "verdict", "P", "share", "size", "when"]]
        told = [n for n, verdict in story.verdicts.items() if verdict != "has not"]
        for name in sorted(told, key=lambda name: -story.of(name).probability)[:_MOST_ROWS]:
            own = story.of(name)
            low, high = (percent(min(end, 1.0)) for end in (own.share.lower, own.share.upper))
            rows.append([
                name, story.verdicts[name], f"{own.probability:.2f}",
                f"{percent(min(own.share.median, 1.0))} ({low} to {high})",
                *((story.measure(name), story.when(own)) if own.probability > 0.5 else ("", "")),
            ])  # fmt: skip
        return rows

    def forms_of(self, story: Story) -> str:
        """In which forms the draws have a pattern."""
        forms = [f"{form} {percent(share)}" for form, share in story.pattern.forms if share >= 0.05]
        return f"Forms in the draws: {', '.join(forms)}." if forms else ""

    # --- the report as data and pictures ---

    def to_dict(self) -> dict[str, Any]:
        """See `Report.to_dict`."""
        names = [each.name for each in self.series]
        return {
            "title": self.title,
            "about": dict(self.about),
            "statements": self.statements,
            "caution": self.caution,
            "further": self.further,
            "scale": dict(
                zip(self.found.table.names, self.found.table.transforms.names, strict=True)
            ),
            "patterns": [
                {"title": each.title, "sentence": each.sentence,
                 "series": {name: _plain(each.row(n)) for n, name in enumerate(names)}}
                for each in self.patterns
            ],
            "components": [each.to_dict() for each in self.components],
            "series": [each.to_dict() for each in self.series],
            "pairs": [list(pair) for pair in self.pairs],
            "together": None if self.coupled is None else _records(self.coupled.narrowing()),
            "trust": self.trust,
            "caveat": self.caveat,
        }  # fmt: skip

    @cached_property
    def forecast_picture(self) -> Picture | None:
        """Small multiples of the forecasts; none of many series."""
        if len(self.series) > _FEW:
            return None
        panels = plotting.plot_forecasts(
            self.found, self.horizon, level=self.level, units=self.units
        )
        caption = f"The band holds {level_in_percent(self.level)} of new observations."
        return Picture.of("Forecasts", caption, panels[0])

    def pictures(self) -> list[Picture]:
        """See `Report.pictures`: those that fold."""
        caption = (
            "A place is blank where the series does not have the pattern, or it cannot be told. "
            f"All curves of a row have one scale. Bands are {level_in_percent(self.level)} "
            "intervals."
        )
        ax = plotting.plot_decomposition(self.found, self.horizon, level=self.level)[0]
        pictures = [Picture.of("Every series and its patterns", caption, ax)]
        if self.coupled is not None:
            caption = "One step ahead; pairs without strong evidence are blank."
            ax = plotting.plot_narrowing(self.coupled)
            pictures.append(Picture.of("What knowing one series is worth for another", caption, ax))
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
    """Report what the series of a discovery do and share.

    Parameters
    ----------
    found
        The discovery.
    horizon
        Steps of forecast; None: a tenth of the rows.
    level
        Probability of intervals.
    units
        Of the series, by name, such as {"Gold": "USD"}.
    title
        Of the report; empty: one is made.
    coupled
        ``found.couple()``, for what knowing one series is worth for the forecast of another.

    Returns
    -------
    The report: `summary`, `patterns`, `series` and more; it shows itself in a notebook, `to_html`
    writes a page, `text` is Markdown.

    Raises
    ------
    ValueError
        If the horizon is below one, the level not between 0 and 1, or the coupling that of another
        table.
    """
    check_level(level)
    check_few(found)
    if coupled is not None and not found.table.frame.equals(coupled.table.frame):
        raise ValueError(
            "expected the coupling of this discovery, got one of another table: give "
            "coupled=found.couple()"
        )
    units, horizon = units_by_name(units, found.whole.table.names), found.table.steps(horizon)
    told, hold_out = stories(found, level, units), hold_out_tail(found)
    return GroupReport(
        found=found,
        horizon=horizon,
        level=level,
        units=units,
        patterns=told,
        series=series_reports(found, told, hold_out, level),
        components=tuple(ComponentReport(found, k + 1) for k in range(len(found.names))),
        hold_out=hold_out,
        correlations=together(found.pattern_draws, level),
        coupled=coupled,
        given_title=title,
    )


def pattern_table(
    found: Discovery, level: float = 0.9, units: Mapping[Any, str] | None = None
) -> pd.DataFrame:
    """Return the table of `Discovery.patterns`; parameters are its own."""
    check_level(level)
    units = units_by_name(units, found.whole.table.names)
    return table_of(stories(found, level, units), list(found.table.frame.columns))


def _who_was_off(errors: pd.Series) -> str:
    """One series that was, or most of them in one direction, and how far."""
    errors = errors.dropna()
    values = errors.to_numpy()
    alone = int(np.abs(values).argmax())
    if values[alone] ** 2 > 0.5 * np.square(values).sum():
        return f"{errors.index[alone]} {_signed(values[alone], 1)}"
    typical = float(np.median(values))
    way = np.sign(typical)
    same = int((np.sign(values) == way).sum())
    if same < 0.75 * len(values):
        return f"{len(values)} series, not all in one direction"
    who = f"all {same}" if same == len(values) else f"{same} of {len(values)}"
    return f"{who} {'higher' if way > 0 else 'lower'}, typically {_signed(typical, 1)}"


def _number(value: float, decimals: int) -> str:
    """Return a value of a series: not finer than a tenth of its standard deviation, or nothing."""
    text = f"{value:,.{decimals}f}".replace(",", "\N{NARROW NO-BREAK SPACE}")
    return text.replace("-", "\N{MINUS SIGN}") if np.isfinite(value) else ""


def _decimals(spread: float) -> int:
    return int(np.clip(1 - np.floor(np.log10(spread)), 0, 12)) if spread > 0.0 else 0


def _signed(value: float, decimals: int = 2) -> str:
    return f"{round(value, decimals) + 0.0:+.{decimals}f}".replace("-", "\N{MINUS SIGN}")


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Numbers that JSON knows."""
    return {k: None if isinstance(v, float) and not np.isfinite(v) else v for k, v in row.items()}


def _records(narrowing: pd.DataFrame) -> list[dict[str, Any]]:
    """A record for each series and what is given, in JSON's types."""
    told = narrowing.rename(index=str).reset_index().astype(object)
    return cast("list[dict[str, Any]]", told.where(told.notna(), None).to_dict("records"))


def _what_p_means(found: Discovery) -> str:
    visible = (
        f"a pattern, in whatever form, makes at least {VISIBLE:.0%} of the variance of a series"
    )
    if not found.says_by_fits:
        return " ".join(filter(None, [
            f"P is the probability that {visible}: the share of the draws of a Markov chain in "
            "which it does.",
            _rows_looked_at(found),
            _agreement(found),
        ]))  # fmt: skip
    many = len(found.whole.table.names) > MOST_ASKED
    why = f" Tables of more than {MOST_ASKED} series are not sampled." if many else ""
    of_what = "this one fit" if found.averaging == "none" else "the fits of the search"
    return f"P is the probability that {visible}, by draws from {of_what}; others may differ.{why}"


def _rows_looked_at(found: Discovery) -> str:
    looked_at, every = len(found.posterior.times), len(found.table.observations.x)
    if looked_at == every:
        return ""
    return f"To save time the chains saw {looked_at} of the {every} rows, chosen at random."


def _agreement(found: Discovery) -> str:
    """Say how far two chains agree, one of which began at the best fit and one at nothing."""
    told = found.pattern_draws
    if not told.patterns:
        return ""
    own = [told.visible[told.chain == c].mean(axis=0) for c in np.unique(told.chain)]
    apart = np.ptp(own, axis=0)  # [N, P]
    text = (
        f"Two chains, one from the best fit and one from nothing, differ by {apart.mean():.2f} "
        "on average"
    )
    if wide := sorted({found.table.names[n] for n, _ in np.argwhere(apart >= DISAGREE)}):
        text += f". They disagree about some pattern of {listed(wide, MOST_NAMES)}"
    if found.posterior.split_r_hat > _MIXED:
        text += (
            ". They have not forgotten where they began (split R-hat "
            f"{found.posterior.split_r_hat:.2f}): take all P with caution"
        )
    return f"{text}."
