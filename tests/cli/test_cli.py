"""The command line: what it writes, what it refuses, and how it goes on after it was stopped."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result
from jobs import wait_until
from small import command, made_by_hand

import lkm_gpflow as lkm
from lkm_gpflow import cli
from lkm_gpflow.cli import output
from lkm_gpflow.cli.discover_command import discover_command
from lkm_gpflow.cli.folder import OutputFolder
from lkm_gpflow.cli.options import bases as read_bases
from lkm_gpflow.cli.options import by_series
from lkm_gpflow.data.reading import Dialect
from lkm_gpflow.datasets import downloads
from lkm_gpflow.kernels.grammar import EXTENDED_BASES, PAPER_BASES
from lkm_gpflow.search import structure_search

QUICK = ("--restarts", "1", "--depth", "0", "--bases", "SE", "--jobs", "1")
ODD_NAMES = ("<A&B>", "$x$", "../😀 up")


def tiny_frame(*names: str) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    days = pd.date_range("2024-01-01", periods=24, freq="D", name="date")
    wave = np.sin(np.arange(24) / 3)[:, None] * np.arange(1, len(names) + 1)
    values = wave + 0.1 * rng.standard_normal(wave.shape)
    return pd.DataFrame(values.round(3), days, list(names))


def write_tiny(path: Path, *names: str) -> Path:
    frame = tiny_frame(*(names or ("a", "b")))
    frame.iloc[3, 0] = np.nan
    frame.to_csv(path)
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli.main, ["discover", *map(str, arguments)])


def said(result: Result) -> str:
    return re.sub(r"\s+", " ", result.output)


def refused(result: Result, *pieces: str) -> None:
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    for piece in pieces:
        assert piece in said(result), result.output


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run; its tests leave it as it is."""
    folder = tmp_path_factory.mktemp("finished")
    result = run(
        write_tiny(folder / "odd.csv", *ODD_NAMES), "--out", folder / "out", "--horizon", 5, *QUICK
    )
    assert result.exit_code == 0, result.output
    return folder / "out"


@pytest.fixture
def stop_at_third_fit(monkeypatch: pytest.MonkeyPatch) -> Callable[[signal.Signals], None]:
    """Let the third fit of a search be stopped by a signal."""
    real_fit = structure_search.fit
    calls = []

    def arrange(number: signal.Signals) -> None:
        def fit(*arguments: object, **options: object) -> object:
            calls.append(1)
            if len(calls) == 3:
                signal.raise_signal(number)
            return real_fit(*arguments, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(structure_search, "fit", fit)

    return arrange


# --- what it writes ---


def test_the_tables_agree_with_the_saved_model(finished: Path) -> None:
    found = lkm.load(finished / "model.lkm")
    forecast = pd.read_csv(finished / "forecast.csv", parse_dates=["time"])
    assert list(forecast.columns) == ["series", "time", "mean", "sd", "lower", "upper"]
    expected = found.forecast(5)
    np.testing.assert_allclose(forecast.iloc[:, 2:], expected, rtol=1e-8)
    assert list(forecast["time"]) == list(expected.index.get_level_values("time"))

    probabilities = pd.read_csv(finished / "probabilities.csv", index_col="series")
    assert list(probabilities.index) == list(ODD_NAMES)
    np.testing.assert_allclose(probabilities, found.probabilities, rtol=1e-8)

    components = pd.read_csv(finished / "components.csv")
    assert list(components.columns) == ["series", "time", "component", "mean", "sd"]
    assert len(components) == len(ODD_NAMES) * (24 + 5) * len(found.names)
    chosen = components.query("series == '$x$' and component == @found.names[0]")
    np.testing.assert_allclose(
        chosen["mean"], found.components("$x$", 5)[found.names[0], "mean"], rtol=1e-8
    )

    kernels = pd.read_csv(finished / "kernels.csv", index_col="component")
    for name, text in kernels["kernel"].items():
        assert lkm.parse(text).structure == lkm.parse(str(name)).structure


def test_noise_has_results(tmp_path: Path) -> None:
    """No component: the tables, the pictures and the report say so."""
    white = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 2)), columns=["a", "b"])
    folder = OutputFolder(tmp_path)
    nothing = made_by_hand(white, [], [[], []], noise=1.0)
    output.write(folder, nothing, 2, 0.9, {}, lambda line: None)
    loaded = lkm.load(folder.model)
    assert (loaded.table.names, loaded.names) == (["a", "b"], [])
    pd.testing.assert_frame_equal(loaded.forecast(2), nothing.forecast(2))
    report = folder.report.read_text("utf-8")
    assert "No series certainly has a pattern" in report
    assert len(pd.read_csv(tmp_path / "patterns.csv")) == 0
    assert len(pd.read_csv(tmp_path / "components.csv")) == 0
    assert list(pd.read_csv(tmp_path / "components.csv").columns[-2:]) == ["mean", "sd"]


@pytest.mark.parametrize("start", [1.7e9 + 0.25, 1.7e12])
@pytest.mark.usefixtures("one_picture")
def test_tables_keep_all_digits(start: float, tmp_path: Path) -> None:
    """Of times such as seconds since 1970, and of series far from zero."""
    frame = 1e9 + tiny_frame("a", "b")
    frame.index = pd.Index(start + np.arange(len(frame)))
    found = made_by_hand(frame, ["1 x SE(lengthscale=3)"], [[1], [1]])
    output.write(OutputFolder(tmp_path), found, 2, 0.9, {}, lambda line: None)
    forecast = pd.read_csv(tmp_path / "forecast.csv", index_col=["series", "time"])
    expected = found.forecast(2)
    assert list(forecast.index) == list(expected.index)
    pd.testing.assert_frame_equal(forecast, expected, rtol=1e-15)
    components = pd.read_csv(tmp_path / "components.csv")
    assert list(components["time"].unique()) == [*frame.index, *found.times(2)]


def test_of_many_series_all_are_forecast_and_the_first_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "MOST_SHOWN", 2)
    table = write_tiny(tmp_path / "many.csv", "a", "b", "c", "d")
    refused(run(table, "--out", tmp_path / "out", "--subset", 4, *QUICK), "fewer than all 4 series")
    assert not (tmp_path / "out").exists()
    result = run(table, "--out", tmp_path / "out", "--subset", 3, *QUICK)
    assert result.exit_code == 0, result.output
    assert "report, figures and components.csv have the first 2 series" in said(result)
    series = {
        name: list(pd.read_csv(tmp_path / "out" / f"{name}.csv")["series"].unique())
        for name in ("forecast", "probabilities", "components")
    }
    assert series == {"forecast": [*"abcd"], "probabilities": [*"abcd"], "components": [*"ab"]}
    drawn = {path.name for path in (tmp_path / "out" / "figures").glob("components-*")}
    assert drawn == {"components-01-a.png", "components-02-b.png"}
    found = lkm.load(tmp_path / "out" / "model.lkm")
    assert list(found.probabilities.index) == [*"abcd"]
    assert found.averaging == "tempered"
    notes = [json.loads(line) for line in (tmp_path / "out" / "ledger.jsonl").open()]
    assert notes[0]["header"]["subset"] == 3


def test_draws_one_picture_for_every_series_whatever_its_name(finished: Path) -> None:
    names = {path.name for path in (finished / "figures").iterdir()}
    assert {"forecasts.png", "structure.png", "search.png"} < names
    assert len([name for name in names if name.startswith("components-")]) == len(ODD_NAMES)
    assert all(re.fullmatch(r"[\w.-]+\.png", name) for name in names)


@pytest.mark.usefixtures("one_picture")
def test_logarithms_are_told_in_the_units_of_the_data(tmp_path: Path) -> None:
    table, out = tmp_path / "prices.csv", tmp_path / "out"
    frame = tiny_frame("Gold", "Oil")
    frame["Gold"] = 100.0 * np.exp(frame["Gold"])
    frame.to_csv(table)
    result = run(table, "--out", out, "--transform", "Gold=log", "--horizon", 2, *QUICK)
    assert result.exit_code == 0, result.output
    found = lkm.load(out / "model.lkm")
    assert found.table.transforms.names == ["log", "none"]
    forecast = pd.read_csv(out / "forecast.csv", index_col="series")
    assert forecast.loc["Gold", "lower"].min() > 10.0
    np.testing.assert_allclose(forecast["upper"], found.forecast(2)["upper"], rtol=1e-8)
    other = tmp_path / "other"
    refused(run(table, "--out", other, "--transform", "log", *QUICK), "series 'Oil': expected pos")
    refused(run(table, "--out", other, "--transform", "Lead=log", *QUICK), "got 'Lead'")
    refused(run(table, "--out", other, "--transform", "root", *QUICK), "expected a transform among")
    both = ("--transform", "auto", "--transform", "Gold=log")
    refused(
        run(table, "--out", other, *both, *QUICK),
        "expected 'none' or 'log' for the series 'Oil', got 'auto'",
    )
    assert not other.exists()


@pytest.mark.usefixtures("one_picture")
def test_it_ends_with_the_gist_of_the_report_in_the_default_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "_WIDTH", 30)
    monkeypatch.chdir(tmp_path)
    result = run(write_tiny(tmp_path / "prices.csv").name, *QUICK)
    assert result.exit_code == 0, result.output
    out = tmp_path / "prices-lkm"
    assert len(pd.read_csv(out / "forecast.csv")) == 2 * 2
    gist = lkm.load(out / "model.lkm").report().summary.replace("* ", "")
    lines = iter(result.output.splitlines())
    assert "writing the report ..." in lines
    told = list(itertools.takewhile(lambda line: "steps forecast;" not in line, lines))
    assert " ".join(line[2:] for line in told) == gist
    assert len(told) > 1
    assert max(map(len, told)) <= 30


# --- what is there already ---


def test_a_finished_result_is_kept(finished: Path, tmp_path: Path) -> None:
    before = (finished / "model.lkm").stat().st_mtime_ns
    table = write_tiny(tmp_path / "odd.csv", *ODD_NAMES)
    same = run(table, "--out", finished, "--horizon", 5, *QUICK)
    refused(same, "finished result", "--force", "--out")
    deeper = run(table, "--out", finished, *QUICK, "--depth", 1)
    refused(deeper, "other settings or data", "--force", "--out")
    other = run(write_tiny(tmp_path / "t.csv"), "--out", finished, *QUICK)
    refused(other, "result of another table", "--force", "--out")
    assert (finished / "model.lkm").stat().st_mtime_ns == before


def test_a_finished_result_may_be_coupled(finished: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(finished, out)
    asked = (write_tiny(tmp_path / "odd.csv", *ODD_NAMES), "--out", out, "--horizon", 5, *QUICK)
    result = run(*asked, "--couple")
    assert result.exit_code == 0, result.output
    assert "learning how the 3 series go together" in result.output
    coupled = lkm.CoupledDiscovery.load(out / "coupled.lkm")
    told = pd.read_csv(out / "coupled.csv")
    np.testing.assert_allclose(told.iloc[:, 2:], coupled.forecast(5), rtol=1e-8)
    worth = pd.read_csv(out / "narrowing.csv")
    assert list(worth.columns) == ["series", "given", "past", "now", "correlation", "delay"]
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "What knowing one series is worth for another" in page
    refused(run(*asked, "--couple"), "finished result")


def test_force_starts_over_and_quiet_says_nothing(finished: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(finished, out)
    result = run(write_tiny(tmp_path / "t.csv"), "--out", out, "--force", "--quiet", *QUICK)
    assert (result.exit_code, result.output) == (0, "")
    assert lkm.load(out / "model.lkm").table.names == ["a", "b"]
    drawn = sorted(path.name for path in (out / "figures").glob("components-*"))
    assert drawn == ["components-01-a.png", "components-02-b.png"]


def test_force_deletes_nothing_when_the_settings_are_wrong(finished: Path, tmp_path: Path) -> None:
    table = write_tiny(tmp_path / "t.csv")
    refused(run(table, "--out", finished, "--force", "--bases", "NO"), "base kernel", "'NO'")
    tiny_frame("a").iloc[:2].to_csv(table)
    refused(run(table, "--out", finished, "--force", *QUICK), "at least 3 rows", "got 2")
    table = write_tiny(tmp_path / "t.csv")
    two = ("--averaging", "stacked", "--subset", "2")
    refused(run(table, "--out", finished, "--force", *two), "'tempered' or 'none' with a subset")
    little = ("--memory-budget", "50MB")
    refused(run(table, "--out", finished, "--force", *little), "a memory budget above the")
    assert (finished / "model.lkm").exists()


def test_files_without_a_ledger_are_kept(tmp_path: Path) -> None:
    (tmp_path / "forecast.csv").write_text("mine", encoding="utf-8")
    refused(run("toy", "--out", tmp_path, *QUICK), "forecast.csv", "--force")
    assert (tmp_path / "forecast.csv").read_text(encoding="utf-8") == "mine"


@pytest.mark.usefixtures("one_picture")
def test_a_stopped_search_goes_on(
    tmp_path: Path, stop_at_third_fit: Callable[[signal.Signals], None]
) -> None:
    table = write_tiny(tmp_path / "t.csv")
    quick = ("--restarts", "3", "--depth", "0", "--bases", "SE", "--jobs", "1")
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert run(table, "--out", whole, *quick).exit_code == 0

    stop_at_third_fit(signal.SIGTERM)
    stopped = run(table, "--out", parts, *quick)
    assert stopped.exit_code == 128 + signal.SIGTERM
    assert "2 fits are kept" in said(stopped)
    assert "the same command continues" in said(stopped)
    assert not (parts / "model.lkm").exists()

    refused(run(table, "--out", parts, *quick, "--seed", "1"), "other settings or data", "--force")
    on = run(table, "--out", parts, *quick)
    assert on.exit_code == 0, on.output
    assert "going on from 2 fits" in said(on)
    assert (parts / "forecast.csv").read_bytes() == (whole / "forecast.csv").read_bytes()


def test_handlers_of_signals_are_put_back(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    run("no such thing", "--out", tmp_path)
    assert signal.getsignal(signal.SIGINT) is before


# --- bad input ---

ROWS = "2024-01-01,1,2\n2024-01-02,2,1\n2024-01-03,4,5\n"


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", ["empty file"]),
        ("date a\n2024-01-01 1\n", ["got spaces", "--separator tab"]),
        ("date,a,b\n" + ROWS + "2024-01-04,1,x\n", ["row 5", "'b'", "expected a number", "'x'"]),
        ("date,a,b\n" + ROWS.replace("4,5", "4,"), ["'b'", "at least 3 observed", "got 2"]),
        ('t,a\n1,"2\n', ["row 2", "not CSV"]),
    ],
)
def test_bad_tables_are_refused(text: str, pieces: list[str], tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    out = tmp_path / "out"
    refused(run(tmp_path / "t.csv", "--out", out, *QUICK), *pieces)
    assert not out.exists()


@pytest.mark.parametrize("dates", [True, False])
def test_a_horizon_without_end_is_refused_before_the_search(dates: bool, tmp_path: Path) -> None:
    frame = tiny_frame("a", "b")
    frame.index = pd.date_range("2020-01-31", periods=24, freq="ME", name="date")
    frame.drop(frame.index[[] if dates else [3, 5, 9]]).to_csv(tmp_path / "t.csv")
    result = run(tmp_path / "t.csv", "--out", tmp_path / "out", "--horizon", 4000, *QUICK)
    refused(result, "a horizon that ends before 2262, got 4000 steps after 2021-12-31")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "pieces"),
    [
        (("--out", ""), ["expected the name of a folder, got ''"]),
        (("--horizon", "0"), ["--horizon"]),
        (("--restarts", "0"), ["--restarts"]),
        (("--level", "1"), ["--level"]),
        (("--level", "nan"), ["expected a level between 0 and 1, got nan"]),
        (("--jobs", "0"), ["--jobs"]),
        (("--averaging", "some"), ["stacked", "tempered", "none"]),
        (("--separator", ";;"), ["a single character as separator", "';;'"]),
        (("--dates", "%d/%m"), ["a format of dates with a year", "%d/%m/%Y"]),
        (("--long", "id,y"), ["names of three columns", "'id,y'"]),
        (("--bases", ""), ["expected base kernels"]),
        (("--bases", "SE,ABC"), ["'ABC'", "PER"]),
    ],
)
def test_bad_options_are_refused(
    options: tuple[str, str], pieces: list[str], tmp_path: Path
) -> None:
    refused(run("toy", "--out", tmp_path / "out", *options), *pieces)
    assert not (tmp_path / "out").exists()


def test_a_source_that_is_nothing_is_refused(tmp_path: Path) -> None:
    refused(run(tmp_path / "absent.csv"), "no file", "absent.csv", "gonu")
    refused(run("gnou"), "no file 'gnou'", "did you mean 'gonu'?")
    refused(run(tmp_path), f"cannot use {tmp_path} (Is a directory)")
    refused(run(""), "there is no file ''", "data sets: toy")


@pytest.mark.usefixtures("one_picture")
def test_doubts_are_warnings(tmp_path: Path) -> None:
    frame = tiny_frame("a").iloc[:12]
    frame.iloc[4, 0] = 1e12
    frame.to_csv(tmp_path / "t.csv")
    result = run(tmp_path / "t.csv", "--out", tmp_path / "out", *QUICK)
    assert result.exit_code == 0, result.output
    for piece in (
        "at least 20 rows",
        "'a' alone",
        "column 'a': 1e+12 at 2024-01-05",
    ):
        assert said(result).count(piece) == 1, result.output


@pytest.mark.usefixtures("one_picture")
def test_files_of_other_countries_and_long_format(tmp_path: Path) -> None:
    long = lkm.to_long(tiny_frame("a", "b").unstack().rename("y").to_frame())
    long["ds"] = long["ds"].dt.strftime("%d/%m/%Y")
    long.to_csv(tmp_path / "t.csv", sep=";", decimal=",", index=False)
    how = ("--separator", ";", "--decimal", ",", "--dates", "%d/%m/%Y", "--long", "unique_id,ds,y")
    result = run(tmp_path / "t.csv", "--out", tmp_path / "out", *how, *QUICK)
    assert result.exit_code == 0, result.output
    frame = lkm.load(tmp_path / "out" / "model.lkm").table.frame
    np.testing.assert_array_equal(frame, tiny_frame("a", "b"))
    assert list(frame.index) == list(tiny_frame("a").index)


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    table = write_tiny(tmp_path / "t.csv")
    for out in (table, table / "below"):
        refused(run(table, "--out", out, *QUICK), "output folder", str(out))


def test_a_damaged_ledger_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ledger.jsonl").write_text("no ledger\n{}\n", encoding="utf-8")
    refused(run("toy", "--out", tmp_path, *QUICK), "ledger.jsonl", "--force")


# --- reading tables ---


@pytest.mark.parametrize(
    "how",
    [
        "t.csv --series c a --horizon 1", "t.csv --series c --series a", "--series a c t.csv",
        "--horizon 1 --series a c t.csv", "--without b t.csv --horizon 1",
        "t.csv --series a c b --without b --separator tab",
    ],
)  # fmt: skip
def test_series_are_named_one_after_another(how: str) -> None:
    told = discover_command.make_context("discover", how.split()).params
    assert told["source"] == "t.csv"
    chosen = Dialect(series=told["series"], without=told["without"]).chosen(["a", "b", "c"])
    assert chosen == ["a", "c"]


# --- the other commands ---


def test_help_and_version() -> None:
    for arguments in (["--help"], ["discover", "--help"], ["data", "--help"]):
        result = CliRunner().invoke(cli.main, arguments)
        assert (result.exit_code, result.output[:6]) == (0, "Usage:")
    assert lkm.__version__ in CliRunner().invoke(cli.main, ["--version"]).output


# --- real processes ---


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_process_that_was_stopped_goes_on(tmp_path: Path) -> None:
    """Stopped as a terminal does it: all its processes get the signal."""
    table, out = write_tiny(tmp_path / "t.csv"), tmp_path / "out"
    quick = ("--restarts", "3", "--depth", "1", "--bases", "SE,PER")
    code = "from lkm_gpflow.cli import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", code, "discover", table, "--out", out, *quick, "--jobs", "2"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    ) as process:  # fmt: skip
        ledger = out / "ledger.jsonl"
        wait_until(
            lambda: (
                process.poll() is not None
                or (ledger.exists() and '{"fit"' in ledger.read_text(encoding="utf-8"))
            ),
            180.0,
        )
        assert process.poll() is None, "it ended before it could be stopped"
        os.killpg(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT, output
    assert "continues from there" in output
    assert "Traceback" not in output
    on = run(table, "--out", out, *quick, "--jobs", 1)
    assert on.exit_code == 0, on.output
    assert re.search(r"going on from [1-9]\d* fits?", on.output)
    assert (out / "model.lkm").exists()


def test_the_list_of_commands_says_what_they_say() -> None:
    """It does so without importing them."""
    context = click.Context(cli.main)
    assert isinstance(cli.main, click.Group)
    listed = said(CliRunner().invoke(cli.main, ["--help"]))
    for name in cli.main.list_commands(context):
        command = cli.main.get_command(context, name)
        assert command is not None
        first = re.sub(r"\s+", " ", command.help or "").split(". ")[0].rstrip(".")
        assert f"{name} {first}." in listed


# --- `lkm-gpflow data` ---


@pytest.fixture
def raw_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "raw"
    path.mkdir()
    monkeypatch.setenv(downloads.FOLDER_VARIABLE, str(path))
    return path


def test_the_list_says_what_can_be_fetched_and_what_is_damaged(raw_folder: Path) -> None:
    (raw_folder / "stock-9.mat").write_bytes(b"something else")
    code, said = command("data")
    assert code == 0
    assert "gonu to be fetched: gonu_train.mat, gonu_test.mat" in said
    assert "stocks there, but damaged: `lkm-gpflow data stocks` says which file" in said


def test_a_folder_in_the_place_of_a_file_is_named(raw_folder: Path) -> None:
    path = raw_folder / "stock-9.mat"
    path.mkdir()
    expected = f"Error: expected the file {path.name}, got a folder of that name: {path}"
    assert command("data", "stocks") == (1, expected)


def test_a_data_folder_that_is_a_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(downloads.FOLDER_VARIABLE, str(tmp_path / "file"))
    code, said = command("data", "stocks")
    assert code == 1
    assert f"the folder {tmp_path / 'file'} cannot be written to (" in said
    assert "network" not in said


# --- options ---


@pytest.mark.parametrize(
    ("text", "bases"),
    [
        ("paper", PAPER_BASES),
        ("extended", EXTENDED_BASES),
        ("paper,CP", (*PAPER_BASES, "CP")),
        ("se, Extended", ("SE", *(base for base in EXTENDED_BASES if base != "SE"))),
        ("se,per", ("SE", "PER")),
    ],
)
def test_sets_of_base_kernels_may_stand_in_lists(text: str, bases: tuple[str, ...]) -> None:
    assert read_bases(text) == bases


def test_options_for_all_series_and_for_some() -> None:
    assert by_series("--unit", [], ["a", "b"]) is None
    assert by_series("--unit", ["m", "km"], ["a", "b"]) == "km"
    assert by_series("--unit", ["a=s"], ["a", "b"]) == {"a": "s"}
    assert by_series("--unit", ["a=b=s", "m"], ["a=b", "c"]) == {"a=b": "s", "c": "m"}
    with pytest.raises(ValueError, match="--unit: expected one of the series 'a', got 'b'"):
        by_series("--unit", ["b=s"], ["a"])


def test_a_folder_of_results_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code, said = command("reproduce", "--results", tmp_path / "file" / "x")
    assert code == 2
    assert f"folder of results that can be written to, got {tmp_path / 'file' / 'x'} (" in said
