"""The first paragraph of a group report: the gist."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..discovery.result import Discovery
from ..explain.comparison import component_correlations
from ..runtime.text import listed, percent
from .component_report import MOST_NAMES, ComponentReport

_MOST_SAID = 4  # components of a kind that the paragraph names

LIKELY = 2.0 / 3.0
"""What a series perhaps has is named from this probability on: nobody repeats what is as likely
as the toss of a coin."""


def summary(
    found: Discovery,
    components: Sequence[ComponentReport],
    ways: Mapping[int, str],
) -> str:
    """Say who has what, who perhaps has what, what is absent, and what forecasts rest on.

    `ways` has what `ways_of_pairs` says of components, by their numbers.
    """
    sure = [each for each in components if each.owners]
    # It is not worth saying that what has a pattern may have another of the same name.
    told = {each.description.short: set(each.owners) for each in sure[:_MOST_SAID]}
    maybe = [
        each
        for each in components
        if not each.owners and set(_likely(each)) - told.get(each.description.short, set())
    ]
    said = _sentences(
        [
            (each.owners, each.description.short, ways.get(each.number, "") + _likely_too(each))
            for each in sure[:_MOST_SAID]
        ],
        found,
    )
    said += _sentences(
        [(_likely(each), each.description.short, "") for each in maybe[:_MOST_SAID]],
        found,
        is_sure=False,
    )
    if not said:
        said = ["No series certainly has a pattern."]
    return " ".join(filter(None, [*said, _nothing_seasonal(found, components), rests_on(found)]))


def _sentences(
    claims: Sequence[tuple[tuple[str, ...], str, str]], found: Discovery, *, is_sure: bool = True
) -> list[str]:
    """Say who has what: each claim is who, what, and more words.

    What the same series have stands in one sentence; what has more words, in one of its own.
    """
    groups: dict[tuple[tuple[str, ...], str, int], list[str]] = {}
    for number, (names, what, more) in enumerate(claims):
        groups.setdefault((names, more, number if more else -1), []).append(what)
    said = []
    for (names, more, _), what_they_have in groups.items():
        every = _every(names, found)
        who = (every if is_sure else every.lower()) or listed(names, MOST_NAMES)
        verb = "have" if len(names) > 1 else "has"
        said.append(f"{'' if is_sure else 'Perhaps '}{who} {verb} {listed(what_they_have)}{more}.")
    return said


def _likely(each: ComponentReport) -> tuple[str, ...]:
    """Return who perhaps has it, and is likely to."""
    return tuple(n for n in each.those("perhaps") if each.claims[n].probability >= LIKELY)


def _likely_too(each: ComponentReport) -> str:
    """Name those who perhaps have what others surely have."""
    likely = _likely(each)
    return f"; perhaps {listed(likely, MOST_NAMES)}, too" if likely else ""


def _every(names: Sequence[str], found: Discovery) -> str:
    """Return "All 4 series" if these are all, of two or more; else nothing."""
    if len(names) != len(found.table.names) or len(names) == 1:
        return ""
    return "Both series" if len(names) == 2 else f"All {len(names)} series"


def _nothing_seasonal(found: Discovery, components: Sequence[ComponentReport]) -> str:
    """Say that there is no cycle, if one was looked for and none is even likely."""
    if "PER" not in found.settings.bases:
        return ""
    cycles = [each for each in components if "PER" in each.name]
    is_absent = all(len(each.those("has not")) == len(each.claims) for each in cycles)
    return "Nothing repeats in cycles." if is_absent else ""


def rests_on(found: Discovery) -> str:
    """Say how much of a forecast comes from what the search did not find, if any does."""
    shares = found.ensemble.shares
    others = shares["autoregression"]
    walks = shares["walk"] + shares["seasonal walk"]
    described = 1.0 - others - walks
    text = f"The patterns described here have {percent(described)} of the weight in forecasts"
    if walks:
        text += f"; random walks added for safety, with and without a season, have {percent(walks)}"
    if others:
        text += (
            "; a vector autoregression, which forecasts each series from the last values of all, "
            f"has {percent(others)}"
        )
    return "" if described == 1.0 else f"{text}."


def ways_of_pairs(found: Discovery, components: Sequence[ComponentReport]) -> dict[int, str]:
    """Say of components that two series have ", in step" or ", in opposite directions", by number.

    The posteriors say it by their correlation, where that is more than chance (`Correlation.way`).
    """
    names = found.table.names
    ways = {}
    for each in components:
        if len(each.owners) != 2:
            continue
        a, b = (names.index(owner) for owner in each.owners)
        c = component_correlations(found, a, b).get(each.number - 1)
        if c is not None and c.way:
            ways[each.number] = ", in step" if c.way > 0.0 else ", in opposite directions"
    return ways
