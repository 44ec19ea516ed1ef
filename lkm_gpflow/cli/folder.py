"""The folder that ``lkm-gpflow discover`` writes to: its files, and when it may be overwritten."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..runtime.journal import Journal
from ..runtime.replacing import UNFINISHED
from ..runtime.text import counted
from .common import check_writable

TABLES = ("forecast.csv", "patterns.csv", "components.csv", "probabilities.csv", "kernels.csv")
"""The tables in the folder."""

COUPLED = ("coupled.lkm", "coupled.csv", "narrowing.csv")
"""Of a coupling, where it was asked: the model, its forecast, what series are worth."""

SUSPICIOUS = "suspicious.csv"  # values that look wrong, where there are any

CHANGES = "changes.txt"  # what changed since the last result, where there was an update

_PICTURE = re.compile(r"(forecasts|structure|search|components-\d{2,}(-.*)?)\.png")
"""Names of the pictures that this program draws; others are the user's own."""

_REPORTED = b'{"note": ["report",'
"""How the line of a ledger begins that says which forecast the report is about."""


class OutputFolder:
    """A folder that holds one discovery: tables, figures, model and ledger.

    The model is written first and the report last: a folder with both is complete.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ledger = path / "ledger.jsonl"  #: Of the search, written as it goes
        self.model = path / "model.lkm"  #: The saved discovery
        self.report = path / "report.html"  #: One file that opens in any browser
        self.figures = path / "figures"  #: The folder of pictures

    def claim(
        self, horizon: int, level: float, table: str, *, couple: bool = False, force: bool
    ) -> None:
        """Make the folder ready to be written to, without losing what is there unless by `force`.

        A finished search may go on to another horizon or level, or to a coupling, an unfinished one
        may go on; a ValueError says if the folder holds these results already, or those of another
        table (by its checksum), or cannot be written to.
        """
        check_writable(self.path, "an output folder")
        if force:
            for file in self._results():
                file.unlink()
            return
        reported = self._reported()
        if reported is not None and reported[2] != table:
            raise ValueError(
                f"{self.path} holds the result of another table (values, times or names differ): "
                "if it is this table with new rows or revised values, take them with --update; "
                "otherwise name another folder with --out, or start over with --force"
            )
        if (
            self.model.exists()
            and self.report.exists()
            and (reported is None or reported == (horizon, level, table, False))
            and not (couple and not (self.path / COUPLED[-1]).exists())
        ):
            raise ValueError(
                f"{self.path} holds a finished result already: name another folder with --out, "
                f"delete {self.report.name} to write it again from the ledger, or start over with "
                "--force"
            )
        if not self.ledger.exists() and (there := self._results()):
            raise ValueError(
                f"{there[0]} exists already, and the folder has no ledger to continue from: name "
                "another folder with --out, or overwrite it with --force"
            )

    def claim_update(self) -> None:
        """Refuse a folder that holds no result, or cannot be written to."""
        if not self.model.exists():
            raise ValueError(
                f"--update: expected a folder with a finished result, got {self.path}, which has "
                f"no {self.model.name}: name the folder with --out, or leave out --update to "
                "search"
            )
        check_writable(self.path, "an output folder")

    def _results(self) -> list[Path]:
        files = [
            self.ledger,
            self.model,
            self.report,
            *(self.path / name for name in (*TABLES, *COUPLED, SUSPICIOUS, CHANGES)),
        ]
        drawn = [file for file in self.figures.glob("*.png") if _PICTURE.fullmatch(file.name)]
        return [file for file in files if file.exists()] + sorted(drawn)

    def check_ledger(self, header: Mapping[str, Any]) -> None:
        """Refuse the ledger of another search, by what it depends on, before anything slow is done.

        How a single fit is learnt is taken from the ledger: no option of the command changes it.
        """
        if not self.ledger.is_file():
            return
        with self.ledger.open("rb") as file:
            first = file.readline()
        if not first.endswith(b"\n"):  # whoever began it died within the first line
            return
        try:
            fit = json.loads(first)["header"]["settings"]["fit"]
        except (ValueError, KeyError, TypeError):  # no ledger, which `Journal` says
            fit = None
        with self.going_on():
            Journal(
                self.ledger, "ledger", {**header, "settings": {**header["settings"], "fit": fit}}
            )

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Say what to do about a ledger that cannot be gone on from."""
        try:
            yield
        except ValueError as error:
            cause = str(error).removesuffix(": choose another file or delete it")
            if not cause.startswith(str(self.ledger)):
                raise
            raise ValueError(
                f"{cause}: name another folder with --out, or start over with --force"
            ) from error

    def remove_unfinished(self) -> None:
        """Delete the files that processes were writing when they were ended."""
        for cut_off in self.path.glob(f"{UNFINISHED}*"):
            cut_off.unlink(missing_ok=True)

    def note_report(self, horizon: int, level: float, table: str, *, stopped: bool = False) -> None:
        """Keep in the ledger what the report is about, and whether a budget ended the search."""
        if self.ledger.is_file():
            note = ["report", [horizon, level, table, stopped]]
            with self.ledger.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"note": note}) + "\n")

    def _reported(self) -> tuple[int, float, str, bool] | None:
        """Horizon, level and table of the report, and whether it was stopped; None if unknown."""
        if not self.ledger.is_file():
            return None
        with self.ledger.open("rb") as file:
            lines = [line for line in file if line.startswith(_REPORTED) and line.endswith(b"\n")]
        try:
            horizon, level, table, stopped = json.loads(lines[-1])["note"][1]
        except (ValueError, TypeError, KeyError, IndexError):
            return None
        return horizon, level, table, stopped

    def kept(self) -> str:
        """Say how many fits the ledger keeps."""
        fits = self.num_fits()
        return f"{counted(fits, 'fit')} {'is' if fits == 1 else 'are'} kept in {self.ledger}"

    def num_fits(self) -> int:
        """Count the fits in the ledger."""
        if not self.ledger.is_file():
            return 0
        with self.ledger.open("rb") as file:
            return sum(line.startswith(b'{"fit"') and line.endswith(b"\n") for line in file)
