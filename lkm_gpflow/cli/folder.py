"""The folder that ``lkm-gpflow discover`` writes to: its files, and when it may be overwritten."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..discovery import archive
from ..runtime.text import counted

TABLES = ("forecast.csv", "components.csv", "probabilities.csv", "kernels.csv")
"""The tables in the folder."""


@dataclass(frozen=True)
class OutputFolder:
    """A folder that holds one discovery: tables, figures, model and ledger.

    The model is written first and the report last: a folder with both is complete.
    """

    path: Path

    @property
    def ledger(self) -> Path:
        """The ledger of the search, which is written as it goes."""
        return self.path / "ledger.jsonl"

    @property
    def model(self) -> Path:
        """The saved discovery."""
        return self.path / "model.lkm"

    @property
    def report(self) -> Path:
        """The report: one file that opens in any browser."""
        return self.path / "report.html"

    @property
    def figures(self) -> Path:
        """The folder of pictures."""
        return self.path / "figures"

    def claim(self, *, force: bool) -> None:
        """Make the folder ready to be written to, without losing what is there.

        Parameters
        ----------
        force
            Whether the results that are there may be deleted.

        Raises
        ------
        ValueError
            If the folder holds results already (an unfinished search may go on), or cannot be
            written to.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.path):
                pass
        except OSError as error:
            raise ValueError(
                f"expected an output folder that can be written to, got {self.path} "
                f"({error.strerror})"
            ) from error
        if force:
            for file in self._results():
                file.unlink()
        elif self._is_complete() and not self._was_stopped():
            raise ValueError(
                f"{self.path} holds a finished result already: name another folder with --out, "
                "or overwrite it with --force"
            )
        elif not self.ledger.exists() and (there := self._results()):
            raise ValueError(
                f"{there[0]} exists already and no ledger says that it may be replaced: name "
                "another folder with --out, or overwrite it with --force"
            )

    def _is_complete(self) -> bool:
        return self.model.exists() and self.report.exists()

    def _was_stopped(self) -> bool:
        """Whether a budget ended the search, which may go on from its ledger."""
        try:
            return self.ledger.exists() and bool(archive.read(self.model).document["stopped"])
        except ValueError:  # damaged: nothing that may be replaced unasked
            return False

    def _results(self) -> list[Path]:
        files = [self.ledger, self.model, self.report, *(self.path / name for name in TABLES)]
        return [file for file in files if file.exists()] + sorted(self.figures.glob("*.png"))

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
