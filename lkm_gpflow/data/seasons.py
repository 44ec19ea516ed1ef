"""Seasons by the frequency of the index."""

from __future__ import annotations

from .tables import Table

MAX_SEASON = 12  # comparators model longer seasons only if they are asked to
MIN_SEASONS = 3  # so many seasons must have been seen for a season to be modelled unasked


def season_length(table: Table) -> int:
    """Return the steps in a season by the grid of the dates, one where there is none.

    A season is a year of months, quarters or weeks, a week of days, and a day of anything shorter:
    24 hours, 48 half-hours.  Every second week has 26 steps; every second day, of which a week has
    no whole number, has no season.  Of a timetable a season is a day, or a week if the table has
    one row a day: ten rows of office hours, six of Monday to Saturday.
    """
    return table.axis.season


def checked_season(table: Table, season: int) -> int:
    """Return a season that was asked for; a ValueError says if it is longer than the table."""
    most = len(table.frame) - 1
    if not 1 <= season <= most:
        raise ValueError(f"expected a season of 1 to {most} steps, got {season}")
    return season


def seasons_of(table: Table, season: int | None) -> list[int]:
    """Return the steps in a season of every series, one for none, or the one that was asked for.

    Unasked it is that of the index, where it is at most `MAX_SEASON` and `MIN_SEASONS` of it lie
    between the first and the last observation of a series.
    """
    if season is not None:
        return [checked_season(table, season)] * table.observations.num_series
    by_frequency = season_length(table)
    begins, stops = table.observations.ends
    seen = (stops - begins) // MIN_SEASONS
    return [by_frequency if by_frequency <= min(MAX_SEASON, most) else 1 for most in seen]
