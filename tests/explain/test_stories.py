"""Every sentence that is said of a pattern, on planted tables: where it is true, and where not."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.signal import lfilter
from small import made_by_hand
from told import artificial, contradictions_of

from lkm_gpflow.explain.stories import Story, gist, stories
from lkm_gpflow.gp.types import Floats
from lkm_gpflow.sharing.behaviour import Interval

MONTHS = pd.date_range("2010-01-01", periods=120, freq="MS")
HOURS = pd.date_range("2024-01-01", periods=24 * 7, freq="h")
DAYS = pd.date_range("2024-01-01", periods=140, freq="D")
YEAR = 365.2425


def days_of(index: pd.DatetimeIndex) -> Floats:
    return np.asarray((index - index[0]) / pd.Timedelta(days=1))


def told(
    index: pd.Index, columns: list[Floats], kernels: list[str], Z: list[list[int]] | None = None,
    units: dict[str, str] | None = None, noise: float = 0.1, transform: str = "none",
) -> tuple[Story, ...]:  # fmt: skip
    """The stories of series a, b, ... with some noise."""
    rng = np.random.default_rng(0)
    names = [chr(ord("a") + n) for n in range(len(columns))]
    values = np.column_stack(columns) + noise * rng.normal(size=(len(index), len(columns)))
    if transform == "log":
        values = np.exp(values)
    frame = pd.DataFrame(values, index, names)
    chosen = [[1] * len(kernels)] * len(columns) if Z is None else Z
    found = made_by_hand(frame, kernels, chosen, noise**2, {n: transform for n in names})
    return stories(found, units=units)


def season(index: pd.DatetimeIndex, period: float, peak: float, size: float = 1.0) -> Floats:
    """A cycle that is highest so many days after the first row."""
    return np.asarray(size * np.cos(2.0 * np.pi * (days_of(index) - peak) / period))


YEARLY = f"1 x PER(period={YEAR}, lengthscale=1.5)"


def test_a_year_is_told_by_month_and_size() -> None:
    (year,) = told(MONTHS, [season(MONTHS, YEAR, 196.0, 8.0)], [YEARLY], units={"a": "°C"})
    assert year.title == "1-year cycle"
    assert re.fullmatch(
        r"a has a 1-year cycle of ±8(\.1)? °C that is highest around July and makes up "
        r"(over )?\d+% of its variation\.", year.sentence,
    )  # fmt: skip


def test_a_week_is_told_by_weekday_and_a_day_by_the_clock() -> None:
    (week,) = told(DAYS, [season(DAYS, 7.0, 4.3)], ["1 x PER(period=7, lengthscale=1)"])
    assert "1-week cycle of ±1 that is highest on Fridays" in week.sentence
    (day,) = told(HOURS, [season(HOURS, 1.0, 14.5 / 24.0)], ["1 x PER(period=1, lengthscale=1)"])
    assert re.search(r"1-day cycle of ±1 that is highest around 14:(15|30|45)", day.sentence)


@pytest.mark.parametrize(
    ("lag", "said"),
    [
        (0.0, r"Both series have a 1-year cycle, in step to within \d+ days, that"),
        (YEAR / 2, "Both series have a 1-year cycle, in opposite directions, that"),
        (60.0, r"(b follows a|a leads b) by (8\.[3-9] weeks|2 months)"),
        (-60.0, r"(a follows b|b leads a) by (8\.[3-9] weeks|2 months)"),
        (130.0, r"Both series have a 1-year cycle that makes up|highest between"),
    ],
)
def test_lags_are_told_where_they_are(lag: float, said: str) -> None:
    columns = [season(MONTHS, YEAR, 196.0), 0.9 * season(MONTHS, YEAR, 196.0 + lag)]
    (year,) = told(MONTHS, columns, [YEARLY])
    assert re.search(said, year.sentence)
    others = {"in step", "in opposite directions", "follows", "leads"}
    true = {word for word in others if word in said}
    assert not any(word in year.sentence for word in others - true)


def test_peaks_that_differ_are_told_from_first_to_last() -> None:
    columns = [season(MONTHS, YEAR, 15.0 + 75.0 * n) for n in range(3)]
    (year,) = told(MONTHS, columns, [YEARLY])
    assert "highest between January and June" in year.sentence


def test_cycles_that_grow_and_fade_are_told_of_each_series() -> None:
    """A lake whose season is constant above and fades below."""
    fade = np.linspace(1.0, 0.2, 120)
    season_ = season(MONTHS, YEAR, 196.0)
    kernels = [f"1 x PER(period={YEAR}, lengthscale=1.5) x SE(lengthscale=4000)"]
    (year,) = told(MONTHS, [season_, fade * season_, fade[::-1] * season_], kernels)
    assert year.sentence.endswith("it has grown in c and it has faded in b.")


def test_the_last_cycle_is_told_where_it_is_unusual() -> None:
    """Of three years that double, vanish and are as ever, the last of ten."""
    wave = season(MONTHS, YEAR, 196.0)
    last = np.arange(120) >= 108
    columns = [wave * (1.0 + last), wave * (1.0 - last), wave]
    (year,) = told(MONTHS, columns, [YEARLY], noise=0.2)
    assert "the last one was larger than usual in a" in year.sentence
    assert "the last one was smaller than usual in b." in year.sentence
    assert year.row(0)["last"] == pytest.approx(2.0, abs=0.3)


def test_lines_are_told_by_their_slope() -> None:
    line = 0.5 * days_of(MONTHS) / YEAR
    kernels = ["1e-6 x LIN(location=1800)"]
    (rise,) = told(MONTHS, [line], kernels, units={"a": "°C"})
    assert re.match(r"a rises by 0\.\d+ °C a year \(0\.\d+ to 0\.\d+\) \(", rise.sentence)
    low, high = map(float, re.search(r"\((0\.\d+) to (0\.\d+)\)", rise.sentence).groups())
    assert low <= 0.5 <= high
    (both,) = told(MONTHS, [line, -line], kernels)
    assert re.match(r"a rises by .* and b falls by ", both.sentence)


def test_a_bend_is_told_by_when_it_turned() -> None:
    x = days_of(MONTHS)
    bend = -np.square((x - 1800.0) / 1800.0) * 3.0
    (trend,) = told(MONTHS, [bend], ["1 x SE(lengthscale=4000)"])
    assert trend.pattern.kind == "trend"
    assert re.search(r"highest around \w{3} 201[45]", trend.when(trend.of("a")))
    (line,) = told(MONTHS, [x / 1000.0], ["1e-6 x LIN(location=1800)"])
    assert line.when(line.of("a")) == ""


def test_what_wanders_is_told_by_its_kind() -> None:
    rng = np.random.default_rng(3)
    walk = np.cumsum(rng.normal(size=120))
    one, *_ = told(MONTHS, [walk], ["0.001 x RW(start=-1000)"])
    assert re.match("(Perhaps )?a wanders and does not return, like a random walk ", one.sentence)
    smooth = np.convolve(rng.normal(size=160), np.hanning(12), "same")[:120]
    two, *_ = told(MONTHS, [smooth], ["1 x SE(lengthscale=100)"])
    assert two.sentence.startswith("a has smooth changes over ")
    soon, later = lfilter([1.0], [1.0, -0.5], rng.normal(size=200)), rng.normal(size=200)
    later = lfilter([1.0], [1.0, -0.9], later)
    for values, said in (
        (soon, "has noise in which a disturbance lasts"),
        (later, "wanders and re"),
    ):
        three, *_ = told(MONTHS, [values[80:]], ["0.001 x RW(start=-1000)"])
        assert re.match(f"(Perhaps )?a {said}", three.sentence)


def test_a_jump_is_a_shift_and_no_line() -> None:
    step = np.where(np.arange(120) >= 50, 3.0, 0.0)
    kernels = ["1e-6 x LIN(location=1800)", "0.0005 x RW(start=-1000)"]
    (shift,) = told(MONTHS, [step], kernels, units={"a": "V"})
    assert re.match(r"a shifts by \+3 V around (Feb|Mar) 2014 \(", shift.sentence)
    line, *_ = told(MONTHS, [3.0 * np.arange(120) / 120.0], kernels)
    assert "shifts" not in line.sentence


def test_one_moment_is_an_event_and_no_cycle() -> None:
    spike = np.where(np.arange(120) == 60, 4.0, 0.0)
    (event,) = told(MONTHS, [spike], ["1 x PER(period=5000, lengthscale=0.05)"])
    assert re.match(r"a has a single event of \+\d(\.\d)? around Jan 2015 \(", event.sentence)
    (year,) = told(MONTHS, [season(MONTHS, YEAR, 0.0)], [YEARLY])
    assert "event" not in year.sentence


def test_a_long_cycle_is_said_to_be_seen_less_than_twice() -> None:
    (once,) = told(
        MONTHS, [season(MONTHS, 2900.0, 500.0)], ["1 x PER(period=2900, lengthscale=1.5)"]
    )
    assert once.sentence.startswith("a has a swing over about 7.9 years, seen less than twice")


def test_cycles_of_logarithms_are_told_by_their_factor() -> None:
    (year,) = told(MONTHS, [season(MONTHS, YEAR, 196.0, 0.5)], [YEARLY], transform="log")
    factor = float(re.search(r"a 1-year cycle of ×(\d\.\d) that is", year.sentence).group(1))
    assert factor == pytest.approx(np.e, rel=0.1)  # from trough to peak: a distance of one


def test_numbers_without_dates_have_no_calendar() -> None:
    t = np.arange(80.0)
    (wave,) = told(
        pd.Index(t), [np.cos(2.0 * np.pi * (t - 5.0) / 10.0)], ["1 x PER(period=10, lengthscale=1)"]
    )
    assert re.search(r"a cycle of 10 of ±1 that is highest around 75", wave.sentence)


def test_noise_is_no_pattern_and_the_gist_says_so() -> None:
    nothing = told(MONTHS, [np.zeros(120), np.zeros(120)], [], Z=[[], []], noise=1.0)
    assert gist(nothing) == ["No series certainly has a pattern."]


@pytest.mark.parametrize(
    ("days", "said"),
    [
        ((-20.0, -70.0, 30.0), ""),
        ((20.0, -30.0, 70.0), ""),
        ((-20.0, -25.0, -15.0), "b leads a by"),
    ],
)
def test_nobody_leads_where_the_lag_may_be_none(
    days: tuple[float, float, float], said: str
) -> None:
    columns = [season(MONTHS, YEAR, 196.0), 0.9 * season(MONTHS, YEAR, 196.0)]
    (year,) = told(MONTHS, columns, [YEARLY])
    lag = Interval(*days).times(1.0 / year.timeline.span)
    first, second = (replace(own, lag=None) for own in year.behaviours)
    other = replace(year, behaviours=(first, replace(second, lag=lag)))
    assert other.timing[: len(said) or None] == said


@pytest.mark.parametrize("first", [0, 100, 200])
def test_nothing_told_of_a_posterior_contradicts_another(first: int) -> None:
    for seed in range(first, first + 10):
        assert list(contradictions_of(artificial(seed))) == []


def test_contradictions_are_found() -> None:
    columns = [season(MONTHS, YEAR, 196.0)] * 2
    (year,) = told(MONTHS, columns, [YEARLY])
    walk = replace(year, pattern=replace(year.pattern, kind="walk"), title="random walk")
    noise = replace(walk, pattern=replace(walk.pattern, kind="changes"), title="noise")
    first = year.behaviours[0]
    upside = Interval(1.0, 2.0, 3.0)
    for wrong, said in {
        (year, year): "one name",
        (year, replace(year, title="another")): "one cycle is told twice",
        (walk, noise): "wander in two ways",
        (replace(year, behaviours=(replace(first, lag=upside),) * 2),): "upside down",
    }.items():
        assert any(said in each for each in contradictions_of(wrong))
