"""Reports: what they say, of every sort of table."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from html import unescape
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from small import made_by_hand

import lkm_gpflow as lkm
from lkm_gpflow.coupling.learn_coupling import independent
from lkm_gpflow.explain.comparison import Correlation
from lkm_gpflow.explain.stories import stories
from lkm_gpflow.forecast.forecasters import Member
from lkm_gpflow.gp.types import FloatTensor
from lkm_gpflow.kernels import grammar
from lkm_gpflow.kernels.base import KERNELS
from lkm_gpflow.report import GroupReport, PairReport, page
from lkm_gpflow.report.pairwise import PairPattern
from lkm_gpflow.report.series_report import series_reports

LONG, RTL = "a name of thirty signs, exactly", "ذهب"
ODD_NAMES = ("<b>&amp;</b>", "😀 & co", LONG, RTL, "a|b*c_d")


def waves(names: Sequence[str] = ("Gold", "Oil", "USD"), dated: bool = True) -> pd.DataFrame:
    """A wave that the first series share, against each other, and a line in the last."""
    t = np.arange(60.0)
    rng = np.random.default_rng(0)
    columns = [(-1.0) ** i * np.sin(2 * np.pi * t / 12) for i in range(len(names) - 1)]
    values = np.column_stack([*columns, 0.05 * t]) + 0.1 * rng.normal(size=(60, len(names)))
    index = pd.date_range("2020-01-05", periods=60, freq="W") if dated else pd.Index(t)
    return pd.DataFrame(values, index, list(names))


def found_in(frame: pd.DataFrame) -> lkm.Discovery:
    """The planted components of `waves`."""
    unit = 7.0 if isinstance(frame.index, pd.DatetimeIndex) else 1.0
    kernels = [
        f"1 x PER(period={12 * unit},lengthscale=2)",
        f"{0.002 / unit**2} x LIN(location={30 * unit})",
    ]
    Z = [[1, 0]] * (frame.shape[1] - 1) + [[0, 1]]
    return made_by_hand(frame, kernels, Z, noise=0.03)


@pytest.fixture(scope="module")
def report() -> GroupReport:
    return found_in(waves()).report()


def test_patterns_are_told_once(report: GroupReport) -> None:
    wave, line = report.patterns
    assert wave.title == "2.8-month cycle"
    assert report.statements[0].startswith(
        "Gold and Oil have a 2.8-month cycle, in opposite directions, that makes up 9"
    )
    assert re.match(
        r"USD rises by 2.\d a year \(2.\d to 2.\d\) \(\d+% of its variation\).", line.sentence
    )
    assert "periodic with a period of 2.8 months" in report.components[0].description.text
    for said in (wave.sentence, report.components[0].description.text):
        assert said.replace("-", "") in report.text.replace("\\", "").replace("-", "")


def test_what_was_unusual_and_what_was_not_found_is_told() -> None:
    frame = waves()
    frame.iloc[40, 1] += 0.9  # one series alone
    frame.iloc[25] += 0.5  # all
    frame.iloc[5, 0] = np.nan
    missing, furthest, absent = found_in(frame).report().further
    assert missing == "1 value is missing: Gold, 2020-02-09."
    assert re.search(r"2020-10-11 \(Oil \+[3-9].\d\)", furthest)
    assert re.search(r"2020-06-28 \(all 3 higher, typically \+[2-9]", furthest)
    assert absent == "Looked for and not found: a shift of level."


def test_all_series_are_named_together() -> None:
    frame = waves()
    frame += frame[["USD"]].to_numpy()
    kernels = ["1 x PER(period=84,lengthscale=2)", f"{0.002 / 49} x LIN(location=210)"]
    alike = frame.assign(USD=frame["USD"] + frame["Gold"])
    told = made_by_hand(alike, kernels, [[1, 1]] * 3, noise=0.03).report()
    assert "All 3 series have a 2.8-month cycle" in told.summary
    assert "All 3 series rise (" in told.summary
    pair = told.found.compare("Gold", "Oil").patterns
    assert [each.correlation for each in pair if each.story.pattern.kind == "trend"] == [None]
    rest = made_by_hand(frame[["Gold", "USD"]], kernels, [[1, 1], [0, 1]], noise=0.03).report()
    assert re.search(r"Both series rise by \d\.\d a year .* and \d\.\d a year", rest.summary)
    assert "Gold has a 2.8-month cycle of ±" in rest.summary


def test_a_kernel_that_a_user_registers_speaks_in_its_own_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for known in (KERNELS, grammar._REGISTRY, grammar._WORDS):
        monkeypatch.setitem(known, "MA12", None)
        monkeypatch.delitem(known, "MA12")

    @lkm.kernels.register_kernel
    class Matern12(lkm.kernels.UnitKernel):
        base = lkm.kernels.BaseKernel("MA12", (("lengthscale", lkm.kernels.Kind.DURATION),))
        words = lkm.kernels.Words(
            "a gust & a calm", "It blows <hard>, and returns.", "Beyond the data it calms down."
        )

        @staticmethod
        def covariance(x: FloatTensor, x2: FloatTensor, *parameters: FloatTensor) -> FloatTensor:
            return tf.exp(-tf.abs(x - x2) / parameters[0])

    rng, frame = np.random.default_rng(3), waves(("Gold", "Oil"))
    K = np.exp(-np.abs(np.subtract.outer(np.arange(60), np.arange(60))) / 10.0)
    frame[:] = (np.linalg.cholesky(K) @ rng.normal(size=(60, 2))) + 0.1 * rng.normal(size=(60, 2))
    found = made_by_hand(frame, ["1 x MA12(lengthscale=70)"], [[1], [1]], noise=0.02)
    told, pair = found.report(), found.compare("Gold", "Oil")
    assert told.summary.startswith("Both series have a gust & a calm (")
    assert told.components[0].heading == "1. Gust & a calm"
    said = "It blows <hard>, and returns. Beyond the data it calms down."
    assert told.components[0].description.text == said
    assert said in unescape(told._repr_html_())
    assert "<hard>" not in told._repr_html_()
    for text in (told.text, pair.text, str(found._repr_html_())):
        assert "calm" in text
        assert "kernel MA12" not in text
    assert told.series[0].account.startswith("Gold has a gust & a calm (")


def test_it_says_how_much_of_the_forecast_rests_on_walks() -> None:
    made = made_by_hand(waves(("a", "b")), ["1 x SE(lengthscale=70)"], [[1], [1]], noise=0.02)
    assert made.report().rests_on == ""
    stacked = (
        Member(made.fit, 0.7),
        Member(made.fit, 0.2, "walk"),
        Member(made.fit, 0.1, "seasonal walk"),
    )
    told = replace(made, averaging="stacked", stacked=stacked).report().rests_on
    assert told == (
        "The patterns above account for 70% of the forecast, and random walks, a safeguard, for "
        "30%."
    )


def test_directions_that_differ_are_named() -> None:
    frame = waves(("up", "down"))
    frame["up"] = np.linspace(0.0, 1.0, 60) + 0.02 * frame["up"]
    frame["down"] = -frame["up"]
    told = made_by_hand(frame, ["4e-5 x LIN(location=210)"], [[1], [1]], noise=0.01).report()
    assert re.match(
        r"up rises by 0\.\d+ a year \(.*\) and down falls by 0\.\d+ a year", told.summary
    )
    slopes = told.found.patterns().loc["trend", "slope"]
    assert slopes["up"] == pytest.approx(1.0 / (59 * 7), rel=0.05)
    assert slopes["down"] == pytest.approx(-1.0 / (59 * 7), rel=0.05)


def test_those_who_may_have_it_are_named_with_their_probability() -> None:
    told = told_as(found_in(waves()), {"2.8-month cycle": (1.0, 0.8, 0.3)})
    assert re.search(
        r"Gold has a 2.8-month cycle .*; perhaps Oil, too\.", told.patterns[0].sentence
    )
    gold, oil, usd = told.series
    assert "Perhaps it has a 2.8-month cycle" in oil.account
    assert ", P 0.80" in oil.account
    assert "It cannot be told whether it has a 2.8-month cycle" in usd.account
    assert [told.cell(one, told.patterns[0])[0] for one in told.series] == [
        "has", "perhaps", "untold",
    ]  # fmt: skip


def test_sizes_are_in_the_units_of_the_series() -> None:
    told = found_in(waves() * [50.0, 1.0, 1.0]).report(units={"Gold": "USD"})
    wave = told.patterns[0]
    assert wave.measure("Gold") == "±50 USD"
    assert wave.measure("Oil") == "±1"
    sizes = told.found.patterns(units={"Gold": "USD"}).loc[wave.title, "size"]
    assert sizes["Gold"] == pytest.approx(50.0, rel=0.05)


@pytest.mark.parametrize("name", [1, "1"])
def test_units_are_found_by_name_or_its_text(name: object) -> None:
    found = found_in(waves().set_axis([1, 2, 3], axis=1))
    told = found.report(units={name: "USD"})  # type: ignore[dict-item]
    assert told.patterns[0].units == ("USD", "", "")


def test_units_may_be_those_of_a_larger_table(report: GroupReport) -> None:
    """As long as no series is left without one: its name may have been misspelt."""
    units = {"Gold": "USD", "Oil": "USD", "USD": "EUR", "Silver": "USD"}
    assert report.found.select(["Gold", "Oil"]).report(units=units).units == units
    with pytest.raises(ValueError, match="got one of 'Gould'; did you mean 'Gold'"):
        report.found.compare("Gold", "Oil", units={"Gould": "USD"})


def test_logarithms_are_told_in_percent_and_said_once(tmp_path: Path) -> None:
    """Gold and USD are modelled by their logarithms, Oil is not."""
    frame = waves()
    positive = frame.assign(Gold=100.0 * np.exp(0.1 * frame["Gold"]), USD=np.exp(frame["USD"]))
    logs = frame.assign(Gold=0.1 * frame["Gold"])
    kernels = ["1 x PER(period=84,lengthscale=2)", f"{0.002 / 49.0} x LIN(location=210)"]
    Z = [[1, 0], [1, 0], [0, 1]]
    found = made_by_hand(positive, kernels, Z, 0.03, {"Gold": "log", "USD": "log"})
    plain = made_by_hand(logs, kernels, Z, 0.03).report()
    report = found.report(units={"Gold": "USD", "Oil": "USD"})
    wave = report.patterns[0]
    assert wave.measure("Gold") == "×1.2"  # a tenth of a sine: exp(0.2)
    assert wave.measure("Oil").endswith(" USD")
    note = "Gold and USD are modelled on a log scale: components multiply rather than add"
    assert report.text.count(note) == report.text.count("log scale") == 1
    report.to_html(tmp_path / "report.html")
    with pytest.raises(IsADirectoryError, match="expected the name of a file, got the folder"):
        report.to_html(tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count(note) == 1
    pair = found.compare("Gold", "Oil")
    assert "Gold is modelled on a log scale" in pair.text
    assert found.compare("Oil", "USD").text.count("USD is modelled on a log scale") == 1
    assert "log scale" not in plain.text
    assert "2 of them on a log scale" in repr(found)
    assert "1 series of 60 times, on a log scale, " in repr(found.select(["Gold"]))
    assert "2 of them on a log scale" in found._repr_html_()
    # What does not depend on units is the same.
    for story, same in zip(report.patterns, plain.patterns, strict=True):
        told, other = ([own.share.median for own in each.behaviours] for each in (story, same))
        assert told == pytest.approx(other)
    for one, other in zip(report.series, plain.series, strict=True):
        assert (one.inside, one.normality) == pytest.approx((other.inside, other.normality))


def test_data_is_complete_and_json(report: GroupReport) -> None:
    data = json.loads(report.to_json(), parse_constant=pytest.fail)
    assert [each["name"] for each in data["components"]] == report.found.names
    assert [each["title"] for each in data["patterns"]] == [e.title for e in report.patterns]
    assert set(data["patterns"][0]["series"]) == {"Gold", "Oil", "USD"}
    assert data["pairs"][0][:2] == ["Oil", "Gold"]
    assert data["pairs"][0][2] == pytest.approx(-1.0, abs=0.02)


def test_trust_is_measured_on_the_tail(report: GroupReport) -> None:
    assert report.hold_out.probabilities.shape == (3, 6)
    assert "Of 18 observations in the last tenth" in report.trust
    assert {each.verdict for each in report.series} <= {
        "good", "with some care", "with care", "doubtful",
    }  # fmt: skip


def test_intervals_that_miss_are_called_too_narrow(report: GroupReport) -> None:
    missed = replace(report.series[0], held_out=10, inside=5, normality=1e-5)
    assert missed.verdict == "doubtful"
    assert "5 fell into the 90% interval: the intervals are too narrow." in missed.findings[0]
    assert "(p below 0.001)" in missed.findings[-1]
    assert replace(missed, inside=9, normality=0.5).verdict == "good"


def test_few_misses_are_no_verdict_on_intervals(report: GroupReport) -> None:
    """A third of right 90% intervals hold no more than 3 of 4."""
    cases = ((4, 3, True), (4, 1, False), (20, 16, True), (20, 15, False))
    for held_out, inside, is_covered in cases:
        one = replace(report.series[0], held_out=held_out, inside=inside)
        draws = np.random.default_rng(0).binomial(held_out, 0.9, 100_000)
        assert ((draws <= inside).mean() >= 0.05) == is_covered == one.is_covered
        assert ("too narrow" in one.findings[0]) == (not is_covered)


def test_pair(report: GroupReport) -> None:
    found = report.found
    pair = found.compare("Gold", "Oil")
    (wave,) = pair.patterns
    assert "in opposite directions" in wave.sentence
    assert "At no lag: correlation -1.00, 90% interval -1.00 to " in wave.sentence
    assert pair.summary.startswith("Gold and Oil share a 2.8-month cycle; 9")
    apart = found.compare("Gold", "USD")
    assert apart.summary == "Gold and USD have no pattern in common."
    assert [who for who, _ in apart.groups] == ["Gold alone", "USD alone"]
    assert json.loads(pair.to_json())["patterns"][0]["correlation"][0] < -0.9
    with pytest.raises(ValueError, match=r"expected one of the series .* got 'Silver'"):
        found.compare("Gold", "Silver")
    with pytest.raises(ValueError, match="expected different series, got 'Oil' twice"):
        found.compare("Oil", "Oil")


@pytest.mark.parametrize(
    ("lower", "typical", "upper", "by_chance", "said"),
    [
        (0.8, 0.9, 0.95, 0.5, "It moves in step (correlation +0.90, 90% interval +0.80 to +0.95)."),
        (-0.95, -0.9, -0.8, 0.5, "It moves in opposite directions (correlation -0.90"),
        (0.8, 0.9, 0.95, 1.0, "It moves in step, which may be chance (correlation"),
        (-0.5, -0.3, -0.1, 1.0, "It moves in opposite directions a little, which may be chance ("),
        (0.1, 0.3, 0.5, 0.0, "It moves in step a little (correlation +0.30"),
        (-0.1, 0.3, 0.5, 0.0, "It cannot be told whether it moves in step (correlation +0.30"),
    ],
)
def test_a_correlation_in_words(
    lower: float, typical: float, upper: float, by_chance: float, said: str, report: GroupReport
) -> None:
    line = report.patterns[1]
    line = replace(line, behaviours=(line.of("USD"),) * 3)
    assert not line.timing
    told = Correlation(typical, lower, upper, by_chance)
    assert PairPattern(line, told, 0.9).together.startswith(said)


def test_pair_says_no_more_than_is_known(report: GroupReport) -> None:
    pair = report.found.compare("Gold", "Oil")
    (wave,) = pair.patterns

    def judged(*p: float) -> PairReport:
        own = tuple(
            replace(each, probability=q) for each, q in zip(wave.story.behaviours, p, strict=True)
        )
        return replace(pair, patterns=(replace(wave, story=replace(wave.story, behaviours=own)),))

    open_ = judged(0.99, 0.4)
    assert open_.summary == "Gold and Oil have no pattern in common that is certain."
    assert [head for head, _ in open_.groups] == ["Gold alone"]
    assert "It cannot be told whether Oil has it." in open_.text
    assert judged(0.99, 0.8).summary.startswith("Gold and Oil perhaps share a 2.8-month cycle;")
    assert "; perhaps Oil, too." in judged(0.99, 0.8).text
    assert judged(0.99, 0.01).summary == "Gold and Oil have no pattern in common."


def test_a_pair_is_told_as_the_whole_is(small_found: lkm.Discovery) -> None:
    whole = {story.title: story for story in stories(small_found)}
    for (a, b), pair in small_found.compare_all().pairs.iterrows():
        alone = small_found.compare(a, b)
        told = [each.story for each in alone.patterns]
        assert told
        for story in told:
            verdicts = whole[story.title].verdicts
            assert story.verdicts == {name: verdicts[name] for name in (a, b)}
            assert story.number == whole[story.title].number
        both = [each.story.title for each in alone.patterns if len(each.owners) == 2]
        assert pair.shared == tuple(both)
        assert pair.likeness == pytest.approx(alone.likeness)


def test_all_pairs(report: GroupReport) -> None:
    pairs = report.found.compare_all()
    assert len(pairs.pairs) == 3
    assert pairs.pairs.index[0] == ("Gold", "Oil")
    assert pairs.pairs["shared"].iloc[0] == ("2.8-month cycle",)
    assert pairs.pairs.loc[("Gold", "USD"), "likeness"] == 0.0
    assert set(pairs.likeness.index[:2]) == {"Gold", "Oil"} or pairs.likeness.index[2] == "Gold"
    assert "| Gold and Oil | 9" in pairs.text


def test_of_too_many_series_some_must_be_chosen(
    report: GroupReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = report.found
    monkeypatch.setattr(page, "MOST_SERIES", 2)
    for too_many in (found.report, found.compare_all):
        with pytest.raises(ValueError, match=r"at most 2 series to report on, got 3.*select\("):
            too_many()
    assert len(found.select(["Gold", "USD"]).report().series) == 2


@pytest.mark.parametrize("dated", [True, False])
def test_a_lone_series_and_numeric_times(dated: bool, tmp_path: Path) -> None:
    frame = waves(dated=dated)[["Gold"]]
    kernel = f"1 x PER(period={84 if dated else 12},lengthscale=2)"
    told = made_by_hand(frame, [kernel], [[1]], noise=0.03).report()
    assert told.title == "What Gold does"
    assert ("a 2.8-month cycle" if dated else "a cycle of 12") in told.summary
    assert "move together" not in told.to_html(tmp_path / "r.html").read_text()


def test_a_component_that_nobody_uses_is_no_pattern(tmp_path: Path) -> None:
    told = made_by_hand(
        waves(), ["1 x PER(period=84,lengthscale=2)", "1 x SE(lengthscale=9)"], [[1, 0]] * 3
    ).report()
    assert told.patterns[0].pattern.kind == "cycle"
    assert len(told.components) == 2
    told.to_html(tmp_path / "r.html")


def test_gaps_are_counted() -> None:
    frame = waves()
    frame.iloc[3:9, 1] = np.nan
    frame.iloc[-6:, 0] = np.nan
    told = found_in(frame).report()
    assert dict(told.about)["missing"] == "12 of 180 values (7%)"
    assert [each.held_out for each in told.series] == [0, 6, 6]


def test_odd_names_stay_as_they_are(tmp_path: Path) -> None:
    found = found_in(waves(ODD_NAMES))
    html = found.report().to_html(tmp_path / "group.html").read_text("utf-8")
    assert "<b>&amp;</b>" not in html
    cells = {unescape(cell) for cell in re.findall(r"<td><bdi>(.*?)</bdi></td>", html)}
    assert set(ODD_NAMES) <= cells
    pair = found.compare(ODD_NAMES[0], RTL)
    written = pair.to_html(tmp_path / "pair.html").read_text("utf-8")
    assert f"<bdi>{RTL}</bdi>" in written
    assert "&lt;b&gt;" in written
    assert r"\<b\>\&amp;\</b\>" in pair.text
    assert r"a\|b\*c\_d" in found.compare_all().text


def test_a_notebook_shows_it(report: GroupReport) -> None:
    html = report._repr_html_()
    assert html.startswith("<style>")
    assert "<html" not in html
    assert html.count("data:image/png;base64,") == len(report.pictures()) + 1
    assert repr(report) == report.text


def test_who_has_what_is_a_table(report: GroupReport, tmp_path: Path) -> None:
    html = report.to_html(tmp_path / "r.html").read_text("utf-8")
    (table,) = re.findall(r'<table class="who">(.*?)</table>', html, re.DOTALL)
    rows = re.findall(r"<tr><th scope=\"row\"><bdi>(.*?)</bdi></th>(.*?)</tr>", table, re.DOTALL)
    assert [unescape(name) for name, _ in rows] == [each.name for each in report.series]
    for one, (_, cells) in zip(report.series, rows, strict=True):
        shown = [re.sub(r"<.*?>.*", "", each) for each in re.findall(r"<td[^>]*>(.*?)</td>", cells)]
        assert shown == [report.cell(one, each)[1] for each in report.patterns]


def test_what_comes_next_stands_beside_what_was(report: GroupReport) -> None:
    """By hand, on the table itself."""
    head, *rows = report.forecast_rows
    frame = report.found.table.frame
    assert head[:3] == ["series", "last, 2021-02-21", "next, 2021-02-28"]
    told = report.found.forecast(report.horizon, report.level)
    for name, row in zip(frame.columns, rows, strict=True):
        first = told.loc[name].iloc[0]
        assert row[0] == name
        assert float(row[1].replace("\N{MINUS SIGN}", "-")) == pytest.approx(
            frame[name].iloc[-1], abs=0.006
        )
        assert float(row[2].split(" ")[0].replace("\N{MINUS SIGN}", "-")) == pytest.approx(
            first["mean"], abs=0.006
        )
    naive = (frame.iloc[-6:] - frame.iloc[-7]).abs().mean()
    pd.testing.assert_series_equal(report.hold_out.errors["last value"], naive, check_names=False)
    assert report.hold_out.errors["forecast"].max() < 0.3


def coupled_by_hand(found: lkm.Discovery, correlation: float) -> lkm.CoupledDiscovery:
    """A coupling in which the noise of the first two series has this correlation."""
    alone = independent(found.fit, found.table.observations)
    w = alone.loadings.copy()
    w[-1, :2, 0] = np.sqrt(abs(correlation)) * np.array([np.sign(correlation), 1.0])
    coupling = replace(alone, loadings=w)
    return lkm.CoupledDiscovery(found.table, (Member(found.fit, 1.0),), (coupling,))


def test_a_coupling_says_what_knowing_a_series_is_worth(tmp_path: Path) -> None:
    found = found_in(waves())
    coupled = coupled_by_hand(found, -0.9)
    report = found.report(coupled=coupled)
    (said,) = report.worth
    now = coupled.narrowing().loc[("Gold", "Oil"), "now"]
    assert said == (
        f"Knowing Oil narrows the forecast of Gold by {1.0 - now:.0%}: Gold moves against Oil "
        f"(correlation {coupled.pairs['correlation'].iloc[0]:+.2f})."
    ) or said.startswith("Knowing Gold narrows the forecast of Oil by")
    assert f"- {said}" in unescape(report.text).replace("\\", "")
    record = report.to_dict()["together"][0]
    assert (record["series"], record["given"]) == ("Gold", "Oil")
    assert record["now"] == pytest.approx(now)
    page = report.to_html(tmp_path / "report.html").read_text(encoding="utf-8")
    assert said in unescape(page)
    (nothing,) = found.report(coupled=coupled_by_hand(found, 0.0)).worth
    assert nothing.startswith("There is no strong evidence")
    assert "What knowing one series" not in found.report().text


def told_as(found: lkm.Discovery, probabilities: dict[str, Sequence[float]]) -> GroupReport:
    """The report with other probabilities of some patterns, by title."""
    report = found.report()
    patterns = tuple(
        replace(each, behaviours=tuple(
            replace(own, probability=p)
            for own, p in zip(each.behaviours, probabilities[each.title], strict=True)
        )) if each.title in probabilities else each
        for each in report.patterns
    )  # fmt: skip
    series = series_reports(found, patterns, report.hold_out, report.level)
    return replace(report, patterns=patterns, series=series)


def test_it_is_said_why_nothing_was_checked(report: GroupReport) -> None:
    """The rows were there, but no fit could be learnt without them."""
    unlearnt = replace(report.hold_out, probabilities=report.hold_out.probabilities * np.nan)
    series = tuple(replace(each, held_out=0, inside=0) for each in report.series)
    told = replace(report, hold_out=unlearnt, series=series)
    assert told.trust.startswith("Nothing could be learnt without the last tenth of the rows")
    frame = waves()
    frame.iloc[-6:] = np.nan
    assert found_in(frame).report().trust.startswith("Nothing of the last tenth of the rows was")


def test_a_coupling_of_another_table_is_refused() -> None:
    found, other = found_in(waves()), found_in(waves(("Gold", "Oil", "Silver", "USD")))
    with pytest.raises(ValueError, match="expected the coupling of this discovery, got one of"):
        found.report(coupled=coupled_by_hand(other, 0.5))
