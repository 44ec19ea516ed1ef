"""The output folder of ``discover``: what is deleted, and what goes on from its ledger."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from small import command, small_table

from lkm_gpflow.cli.folder import OutputFolder
from lkm_gpflow.search import structure_search

TABLE = "checksum of a table"

pytestmark = pytest.mark.usefixtures("quick_fits", "one_picture")
QUICK = ("--restarts", "1", "--depth", "0", "--bases", "C,RW", "--jobs", "1")


def test_force_keeps_pictures_of_the_user(tmp_path: Path) -> None:
    folder = OutputFolder(tmp_path)
    folder.figures.mkdir()
    own = {"mine.png", "forecasts-2.png", "components-of-gold.png"}
    drawn = {"forecasts.png", "structure.png", "search.png", "components-01-a.png"}
    for name in {*own, *drawn, "components-02.png", "components-100-c.png"}:
        (folder.figures / name).touch()
    folder.claim(5, 0.9, TABLE, force=True)
    assert {path.name for path in folder.figures.iterdir()} == own
    folder.claim(5, 0.9, TABLE, force=False)  # nothing is there but the user's own


def test_another_horizon_or_level_goes_on_from_the_ledger(
    csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    assert command("discover", csv, "--out", out, *QUICK, "--horizon", 2)[0] == 0
    monkeypatch.setattr(structure_search, "fit", None)  # it must not be called
    for options, steps, width in ((("--horizon", 3), 3, "90%"), (("--level", 0.5), 2, "50%")):
        code, said = command("discover", csv, "--out", out, *QUICK, *options)
        assert (code, "going on from 1 fit in" in said) == (0, True), said
        assert len(pd.read_csv(out / "forecast.csv")) == 2 * steps
        assert f"{steps} steps, {width} intervals" in (out / "report.html").read_text("utf-8")
        code, said = command("discover", csv, "--out", out, *QUICK, *options)
        assert (code, "holds a finished result already" in said) == (2, True)


def test_a_result_of_another_table_is_not_replaced(csv: Path, tmp_path: Path) -> None:
    """Even if the values differ in nothing but their unit, which a ledger does not know."""
    out = tmp_path / "out"
    assert command("discover", csv, "--out", out, *QUICK, "--horizon", 2)[0] == 0
    (1000.0 * pd.read_csv(csv, index_col=0)).to_csv(csv)
    for horizon in (2, 3):
        code, said = command("discover", csv, "--out", out, *QUICK, "--horizon", horizon)
        assert (code, "holds the result of another table" in said) == (2, True)
    assert command("discover", csv, "--out", out, *QUICK, "--horizon", 2, "--force")[0] == 0


@pytest.mark.parametrize(
    "line",
    [
        '{"note": ["report", 3]}', '{"note": ["report", null]}', '{"note": ["report", "2"]}',
        '{"note": ["report", [2]]}', '{"note": ["report", [2, "x"]]}', '{"note": ["report", [2, ',
        '{"note": ["report", [2, 0.9], 1]}', '{"note": ["report", \udcff]}',
    ],
)  # fmt: skip
def test_a_damaged_line_about_the_report_says_nothing_about_it(line: str, tmp_path: Path) -> None:
    """As where no such line was written: the result counts as finished."""
    folder = OutputFolder(tmp_path)
    for path in (folder.model, folder.report, folder.ledger):
        path.touch()
    folder.note_report(2, 0.9, TABLE)
    folder.claim(3, 0.9, TABLE, force=False)  # another forecast
    with folder.ledger.open("ab") as file:
        file.write(line.encode(errors="surrogateescape") + b"\n")
    for horizon in (2, 3):
        with pytest.raises(ValueError, match="holds a finished result already"):
            folder.claim(horizon, 0.9, TABLE, force=False)
    folder.note_report(2, 0.9, TABLE)
    folder.claim(3, 0.9, TABLE, force=False)


def test_a_changed_option_is_said_once_before_anything_is_loaded(csv: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert command("discover", csv, "--out", out, *QUICK)[0] == 0
    (out / "report.html").unlink()
    again = ["discover", str(csv), "--out", str(out), *QUICK, "--depth", "1"]
    code = (
        "import sys\n"
        "from lkm_gpflow.cli import main\n"
        "try: main()\n"
        "finally: print('tensorflow' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", code, *again], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (2, "False\n"), ended.stderr
    assert " ".join(ended.stderr.split()) == (
        f"Error: {out / 'ledger.jsonl'} is a ledger of other settings or data, it differs in "
        "settings: depth (0 there, 1 here): name another folder with --out, or start over with "
        "--force"
    )


def test_new_rows_are_taken_without_a_new_search(
    csv: Path, tmp_path: Path, one_picture: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, table = tmp_path / "out", small_table(num_times=22)[["a", "b"]]
    table.iloc[:20].to_csv(csv)
    arguments = ("discover", csv, "--out", out, *QUICK, "--horizon", 2)
    code, said = command(*arguments, "--update")
    assert (code, "--update: expected a folder with a finished result" in said) == (2, True)
    assert command(*arguments)[0] == 0
    monkeypatch.setattr(structure_search, "fit", None)  # it must not be called
    table.to_csv(csv)
    code, said = command(*arguments)
    assert (code, "take them with --update" in said) == (2, True)
    code, said = command(*arguments, "--update", "--force")
    assert (code, "expected --update or --force, got both" in said) == (2, True)
    code, said = command(*arguments, "--update")
    assert code == 0, said
    assert "2 new rows up to" in said
    assert "2 new rows up to" in (out / "changes.txt").read_text("utf-8")
    assert len(pd.read_csv(out / "components.csv", index_col=0).loc["a"]) % (22 + 2) == 0
    code, said = command(*arguments)
    assert (code, "holds a finished result already" in said) == (2, True)
