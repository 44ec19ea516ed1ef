"""Files of tables: CSV, Parquet and Excel, recognised by their contents."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections import Counter
from pathlib import Path
from zipfile import BadZipFile

import pandas as pd

from ..runtime.text import quoted
from ..runtime.warn import TableNote, warn
from .foreign import has_times
from .numerals import is_missing, is_number
from .reading import Dialect, cells_of, read, with_header
from .shapes import from_long

TAB = "\t"

_SEPARATORS = f";{TAB},|"
"""The likelier ones first where all lines have as many of each: commas stand in numbers, too."""

_BEGINNINGS = {
    b"PAR1": "Parquet", b"PK\x03\x04": "Excel", b"\xd0\xcf\x11\xe0": "old Excel",
    b"\x1f\x8b": "gzip",
}  # fmt: skip
"""First bytes of files that are no text, and what they are, whatever their names say."""

_TABLE = 40
"""Numbers of a sheet: with fewer it may hold parameters or notes, and the largest sheet is read."""

_WORKBOOK = b"xl/"  # begins the names of files in the ZIP archive that is an Excel file


def read_table(path: str | Path, dialect: Dialect | None = None) -> pd.DataFrame:
    """Read a file of series.

    Parameters
    ----------
    path
        Parquet, Excel (.xlsx), or CSV as UTF-8 text: by its contents, whatever its name says.
    dialect
        How it is written, where that is known; see `reading` for what is found out.

    Returns
    -------
    DataFrame
        As `lkm_gpflow.discover` takes it: rows are times, columns are series.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If something is wrong with the file: what was expected, what was given, and where.
    ModuleNotFoundError
        If the library that reads such files is not installed.
    """
    path = Path(path)
    contents = path.read_bytes()  # once: a pipe has nothing more to say
    beginnings = filter(contents.startswith, _BEGINNINGS)
    kind = next((_BEGINNINGS[beginning] for beginning in beginnings), "CSV")
    if kind == "Excel" and _WORKBOOK not in contents:
        kind = "a ZIP archive"
    dialect = dialect or Dialect()
    try:
        if kind == "CSV":
            return read(_csv_cells(contents, dialect.separator), dialect)
        if kind == "Excel":
            return _read_workbook(contents, dialect)
        if kind == "Parquet":
            return _of_parquet(contents, dialect)
        raise ValueError(f"expected CSV, Parquet or Excel (.xlsx), got {kind}: save it as CSV")
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    except ImportError as error:
        raise ModuleNotFoundError(
            f"{path}: reading {kind} needs another library: pip install '.[files]' in a clone of "
            "lkm_gpflow"
        ) from error


def _of_parquet(contents: bytes, dialect: Dialect) -> pd.DataFrame:
    try:
        frame = pd.read_parquet(io.BytesIO(contents))
    except (ValueError, KeyError, OSError) as error:
        raise ValueError(f"cannot be read as Parquet ({error})") from error
    if dialect.long is not None:
        return from_long(frame, *dialect.long)
    return read(cells_of(frame, with_index=has_times(frame)), dialect)


# --- CSV ---


def _csv_cells(contents: bytes, separator: str | None) -> pd.DataFrame:
    """Return the cells of a CSV file; rows are numbered as an editor numbers its lines."""
    text = _decoded(contents)
    if not text.strip():
        raise ValueError("expected a header and rows of values, got an empty file")
    separator = separator or _separator(text)
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True
    )
    rows: list[list[str]] = []
    lines = [1]  # where each row begins: cells in quotes may span several
    try:
        for row in reader:
            rows.append([cell.strip() for cell in row])
            lines.append(reader.line_num + 1)
    except csv.Error as error:
        quotes = [n for n, line in enumerate(text.split("\n"), 1) if line.count('"') % 2]
        where = f"row {quotes[-1]}: " if quotes else ""
        raise ValueError(f"{where}not CSV ({error}): close the quotes") from error
    _check_lengths(rows, lines, separator)
    if (width := max(map(len, rows))) == 1:
        raise ValueError(
            "expected a column of times and at least one series, got only one column: name the "
            "sign between cells with --separator, or put a column of times first"
        )
    whole = [row + [""] * (width - len(row)) for row in rows]
    return with_header(whole, [f"row {line}" for line in lines[:-1]])


def _decoded(contents: bytes) -> str:
    if contents.startswith((b"\xff\xfe", b"\xfe\xff")):
        return contents.decode("utf-16")
    try:
        return contents.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ValueError(
            f"row {line}: expected UTF-8 text, got another encoding: save the file as UTF-8 (in a "
            "spreadsheet: CSV UTF-8)"
        ) from error


def _separator(text: str) -> str:
    """Return the sign between cells: the one that most lines have as often as the header."""
    lines = [re.sub('"[^"]*"', "", line) for line in text.splitlines()[:200] if line.strip()]
    scores = {}
    for sign in _SEPARATORS:
        counts = Counter(line.count(sign) for line in lines)
        most, lines_with = max(counts.items(), key=lambda item: (item[0] > 0, item[1]))
        scores[sign] = lines_with / len(lines) if most else 0.0
    best = max(_SEPARATORS, key=lambda sign: scores[sign] + 0.02 * (sign == ","))
    commas = [line.count(",") for line in lines]
    if scores[";"] > 0.7 or (best == "," and scores[TAB] > 0.9 and commas[0] == 0):
        best = ";" if scores[";"] > 0.7 else TAB
    if scores[best] == 0.0:
        if all(len(re.split(r"\s{2,}|\s+", line.strip())) > 1 for line in lines):
            raise ValueError(
                "expected a sign between the cells, got spaces: save it with commas, or tabs "
                "(--separator tab)"
            )
        return ","
    if best != ",":
        warn(f"the cells are separated by {best!r} (--separator)", TableNote)
    return best


def _check_lengths(rows: list[list[str]], lines: list[int], separator: str) -> None:
    """Reject rows of values that have more or fewer cells than the others."""
    filled, lengths = [place for place, row in enumerate(rows) if any(row)], list(map(len, rows))
    usual, _ = Counter(lengths[place] for place in filled).most_common(1)[0]
    first = next(place for place in filled if lengths[place] == usual)
    header = next((p for p in filled if lengths[p] >= 2), first)
    usual = lengths[header] if header < first and len(filled) - header < 4 else usual
    for place in filled:
        row = [cell for cell in rows[place] if cell]
        is_note = len(row) == 1 and lengths[place] <= usual
        if lengths[place] == usual or place < first or is_note:
            continue
        extra = rows[place][usual:]
        if not any(extra) and lengths[place] > usual:
            continue  # separators at the end of a line
        quotes = '; put decimals in quotes, "1,5"' if separator == "," else ""
        raise ValueError(
            f"row {lines[place]}: expected {usual} cells as in the other rows, got "
            f"{lengths[place]}{quotes if lengths[place] > usual else ''}"
        )


# --- Excel ---


def _read_workbook(contents: bytes, dialect: Dialect) -> pd.DataFrame:
    """Read the sheet that is asked for, or the first one that is a table of some size."""
    try:
        sheets = pd.read_excel(
            io.BytesIO(contents), sheet_name=None, header=None, dtype=object,
            keep_default_na=False, na_values=[""],
        )  # fmt: skip
    except (ValueError, KeyError, BadZipFile) as error:
        raise ValueError(f"cannot be read as Excel ({error})") from error
    if dialect.sheet is not None and dialect.sheet not in sheets:
        raise ValueError(f"expected --sheet among {quoted(sheets)}, got {dialect.sheet!r}")
    sizes = {
        name: sheet.map(lambda cell: is_number(cell) and not is_missing(cell)).to_numpy().sum()
        for name, sheet in sheets.items()
        if dialect.sheet in (None, name) and not sheet.empty
    }
    most = max(sizes.values(), default=0)
    errors: list[str] = []
    for name in (name for name, size in sizes.items() if size >= min(most, _TABLE)):
        try:
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                rows = sheets[name].astype(object).to_numpy().tolist()
                frame = read(with_header(rows, [f"row {n + 1}" for n in range(len(rows))]), dialect)
        except ValueError as error:
            errors.append(f"sheet {name!r}, {error}")
            continue
        if len(sizes) > 1:
            others = quoted(other for other in sizes if other != name)
            warn(f"sheet {name!r} is read; others are {others} (--sheet)", TableNote)
        for each in said:
            warn(str(each.message), each.category)  # type: ignore[arg-type]
        return frame
    raise ValueError(errors[0] if errors else "expected a sheet with a table, got empty ones")
