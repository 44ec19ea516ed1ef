"""Texts that are numbers: decimals, thousands, percent, currencies, brackets, missing values."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..gp.types import Floats
from ..runtime.text import counted, listed

_MISSING = frozenset(("", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "nat"))
"""Cells that stand for a missing observation, in small letters."""

_PERHAPS_MISSING = frozenset((
    "-", "--", "---", "–", "—", ".", "..", "...", "…", ":", "?", "*", "n.a.", "n.a", "n. a.",
    "nd", "n.d.", "no data", "missing", "not available", "unknown", "(blank)", "na.", "#value!",
    "#div/0!", "#ref!", "#num!", "#name?", "#null!",
))  # fmt: skip
"""Those that stand for one among numbers, which is said."""

_NOTHING = frozenset(["-", "--", "---", "–", "—"])  # accountants write zero so

_SIGN = r"[+\-\u2212]?"
_GAPS = "'’ \u00a0\u202f\u2009"  # signs that stand between thousands whatever the decimal mark is

_POWER = r"(?:[eE][+-]?\d+)?"
_LAKHS = r"\d{1,2}(?:,\d{2})+,\d{3}"
_DIGITS = {
    ".": rf"{_SIGN}(?:(?:[1-9]\d{{0,2}}(?:[,{_GAPS}]\d{{3}})+|{_LAKHS})(?:\.\d*)?|"
    rf"\d*(?:\.\d*)?{_POWER})",
    ",": rf"{_SIGN}(?:[1-9]\d{{0,2}}(?:[.{_GAPS}]\d{{3}})+(?:,\d*)?|\d*(?:,\d*)?{_POWER})",
}
"""What a number is, by its decimal mark."""

_CURRENCIES = " $€£¥\u00a0"  # accountants write them before a dash, too

_CURRENCY = r"(?:[$€£¥₹₽₩₺฿]|US\$|[A-Z]{3}|R\$|kr\.?|Rs\.?|zł|Kč|Fr\.?)"
_UNIT = r"(?:[^\W\d_µ°]|[µ°²³/%‰])+(?:[-/][^\W\d_]+)?\d?"
_NUMBER = re.compile(
    rf"(?P<ahead>{_CURRENCY}\s*(?=\())?(?P<open>\(\s*)?(?P<minus>[-\u2212])?\s*(?P<before>{_CURRENCY})?\s*"
    rf"(?P<digits>[+\-\u2212]?[\d.,{_GAPS}]*\d[\d.,]*{_POWER})(?P<after_minus>-)?\s*"
    rf"(?P<unit>%|{_CURRENCY}|{_UNIT})?"
    r"(?P<mark>[*†]|\s?\[\w\]|\s?\(\w\))?(?P<close>\s*\))?"
)

_LARGER = {"k": 1e3, "K": 1e3, "M": 1e6, "m": 1e6, "B": 1e9, "bn": 1e9, "T": 1e12}

_THREE_DIGITS = re.compile(r"[+-]?[1-9]\d{0,2}\.\d{3}")  # may be thousands
_ROUGHER = 20.0  # how much rougher a series must be with one decimal mark than with the other


@dataclass(frozen=True)
class Numbers:
    """A column read as numbers."""

    values: Floats  # [D], NaN where missing
    said: tuple[str, ...] = ()  # what was done that may be of interest
    doubts: tuple[str, ...] = ()  # what is likely, with the option that settles it


class BadCell(ValueError):
    """A cell cannot be read: which, and what to do."""

    def __init__(self, place: int, message: str) -> None:
        super().__init__(message)
        self.place = place


def is_missing(cell: object) -> bool:
    """Whether a cell stands for a missing observation."""
    if isinstance(cell, str):
        return cell.strip().lower() in _MISSING
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def is_number(cell: object) -> bool:
    """Whether a cell is a number, however it is written."""
    if isinstance(cell, str):
        match = _NUMBER.fullmatch(cell)
        return match is not None and any(
            re.fullmatch(form, match["digits"].strip()) for form in _DIGITS.values()
        )
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def is_plain(cell: object, decimal: str | None = None) -> bool:
    """Whether a cell is a number without anything beside it."""
    if not isinstance(cell, str):
        return is_number(cell)
    marks = [decimal] if decimal else [".", ","]
    return any(char.isdigit() for char in cell) and any(
        re.fullmatch(_DIGITS[mark], cell) for mark in marks
    )


def decimal_mark(cells: Sequence[str]) -> str | None:
    """Return the decimal mark that all numbers of a table allow; None if both are possible."""
    texts = {match["digits"].strip() for cell in cells if (match := _NUMBER.fullmatch(cell))}
    fits = {
        mark: sum(re.fullmatch(form, text) is not None for text in texts)
        for mark, form in _DIGITS.items()
    }
    if fits["."] == fits[","]:  # three digits behind each mark, or none
        return None
    return "." if fits["."] > fits[","] else ","


def read_numbers(
    cells: Sequence[object], name: object, mark: str | None, asked: str | None
) -> Numbers:
    """Read the cells of a column, texts and numbers; BadCell says which is none.

    `mark` is the decimal mark of the table, None where both are possible; `asked` the one that was
    asked for: nothing is guessed then.
    """
    if (plain := _plain_numbers(cells, mark or asked)) is not None:
        return Numbers(plain)
    values = np.full(len(cells), np.nan)
    texts: dict[int, re.Match[str]] = {}
    perhaps = Counter[str]()
    for place, cell in enumerate(cells):
        if is_missing(cell):
            continue
        if not isinstance(cell, str):
            if not is_number(cell):
                raise BadCell(place, f"expected a number, got {cell!r}")
            values[place] = float(cell)  # type: ignore[arg-type]
        elif (word := cell.lower().strip(_CURRENCIES)) in _PERHAPS_MISSING:
            perhaps[word] += 1
        elif match := _NUMBER.fullmatch(cell.strip()):
            texts[place] = match
        else:
            wanted = "a finite number" if "inf" in cell.lower() else "a number"
            raise BadCell(place, f"expected {wanted}, got {cell!r}{_cure(cell)}")
    digits = {place: match["digits"].strip() for place, match in texts.items()}
    chosen, doubt = _mark(name, list(digits.values()), mark, asked)
    said, doubts = list[str](), [doubt] if doubt else []
    units = Counter(_unit_of(match) for match in texts.values())
    marked = [match for match in texts.values() if match["mark"]]
    scaled = bool(units) and set(units) <= {"", *_LARGER} and set(units) != {""}
    unit = next(iter(units)) if len(units) == 1 and not scaled else ""
    for place, match in texts.items():
        own = _unit_of(match)
        if len(units) > 1 and own and not scaled:
            if (len(own) == 1 and own.isalpha()) or (units[own] <= 0.5 * len(texts) and own != "%"):
                marked.append(match)
            elif units[""] == 0 or own == "%":
                told = f"got {match[0]!r} beside cells with another, or without"
                raise BadCell(place, f"expected numbers of one unit, {told}: write all cells alike")
        values[place] = _value(place, match, digits[place], chosen)
        if scaled:
            values[place] *= _LARGER.get(own, 1.0)
    if scaled:
        said.append(
            f"column {name!r}: {listed(sorted(filter(None, units)))} stand for thousands and so on"
        )
    elif unit:
        said.append(f"column {name!r}: {unit} is taken off the numbers (as its unit)")
    if any(match["open"] for match in texts.values()):
        said.append(f"column {name!r}: numbers in brackets are negative")
    if marked:
        doubts.append(
            f"column {name!r}: {counted(len(marked), 'cell')} with a mark such as "
            f"{marked[0][0]!r} read without it: if such cells are not to be trusted, empty them"
        )
    for word, count in perhaps.items():
        told = f"column {name!r}: {counted(count, 'cell')} {word!r} read as missing"
        if word in _NOTHING:
            doubts.append(f"{told}: if they stand for zero, write 0")
        else:
            said.append(told)
    if chosen == "," and asked is None and any("," in t or "." in t for t in digits.values()):
        said.append("numbers have decimal commas (--decimal ,)")
    return Numbers(values, tuple(said), tuple(doubts))


def _unit_of(match: re.Match[str]) -> str:
    return (match["unit"] or match["before"] or match["ahead"] or "").strip()


def _plain_numbers(cells: Sequence[object], mark: str | None) -> Floats | None:
    """Read cells such as 1, -2.5 and 1e-3 at once; None where some are written otherwise."""
    dotted = [cell for cell in cells if isinstance(cell, str) and "." in cell]
    if mark != "." or (dotted and all(map(_THREE_DIGITS.fullmatch, dotted))):
        return None
    texts = pd.Series(["" if is_missing(cell) else cell for cell in cells], dtype=object)
    numbers = pd.to_numeric(texts, errors="coerce").to_numpy(np.float64)
    is_read = np.isfinite(numbers) | (texts == "").to_numpy()
    is_text = any(
        (isinstance(cell, str) and "_" in cell) or isinstance(cell, bool) for cell in cells
    )
    return numbers if is_read.all() and not is_text else None


def _value(place: int, match: re.Match[str], digits: str, mark: str) -> float:
    if not re.fullmatch(_DIGITS[mark], digits):
        other = "," if mark == "." else "."
        cure = f"; read it with --decimal {other}" if re.fullmatch(_DIGITS[other], digits) else ""
        raise BadCell(
            place, f"expected a number with the decimal mark {mark!r}, got {match[0]!r}{cure}"
        )
    plain = re.sub(r"['’\s\u00a0\u202f\u2009]" + ("|," if mark == "." else r"|\."), "", digits)
    number = float(plain.replace(",", ".").replace("\u2212", "-"))
    is_negative = match["minus"] or match["after_minus"] or (match["open"] and match["close"])
    if bool(match["open"]) != bool(match["close"]):
        raise BadCell(place, f"expected a number, got {match[0]!r}")
    return -number if is_negative else number


def _mark(
    name: object, texts: Sequence[str], mark: str | None, asked: str | None
) -> tuple[str, str]:
    """Return the decimal mark of a column, and a doubt where it is the likelier of two."""
    if asked is not None:
        return asked, ""
    fits = {each: all(re.fullmatch(form, text) for text in texts) for each, form in _DIGITS.items()}
    if not (fits["."] and fits[","]):
        return ("." if fits["."] else "," if fits[","] else mark or "."), ""
    signs = {sign for sign in ".," if any(sign in text for text in texts)}
    if not signs:
        return mark or ".", ""
    (sign,) = signs
    other = "," if sign == "." else "."
    # All have three digits behind the sign: it may stand before decimals, or between thousands.
    if mark is None and sign == "." and all("." in text for text in texts) and len(texts) >= 8:
        return sign, (
            f"column {name!r}: {texts[0]} is read as a number with decimals, but all have three "
            "digits behind the point: if it stands between thousands, --decimal ,"
        )
    example = next(text for text in texts if sign in text)
    read_as = f"{example} is read as {1000.0 * float(example.replace(',', '.')):g}"
    if mark_by_size(texts) == other:
        return other, (
            f"column {name!r}: {read_as}, because "
            f"{sign!r} stands before three digits wherever it is there, and the other numbers are "
            f"hundreds of times larger: if it is the decimal mark, --decimal {sign}"
        )
    if sign == "," and mark != ",":
        return ".", (f"column {name!r}: {read_as}: if the comma is the decimal mark, --decimal ,")
    if sign == "." and mark == ",":
        return ",", ""
    return sign, ""


def mark_by_size(texts: Sequence[str]) -> str | None:
    """Return the decimal mark that makes 1.021 and 933 numbers of one size; None if none does."""
    signs = {sign for sign in ".," if any(sign in text for text in texts)}
    if len(signs) != 1 or not all(
        re.fullmatch(form, text) for form in _DIGITS.values() for text in texts
    ):
        return None
    (sign,) = signs
    as_decimal = np.array([float(text.replace(",", ".").replace("\u2212", "-")) for text in texts])
    with_sign = np.array([sign in text for text in texts])
    as_thousands = np.where(with_sign, 1000.0 * as_decimal, as_decimal)
    is_rough = _roughness(as_decimal) > _ROUGHER * _roughness(as_thousands)
    return {".": ",", ",": "."}[sign] if is_rough and not with_sign.all() else None


def _roughness(values: Floats) -> float:
    """Return the largest step between neighbours, in proportion to the typical one."""
    logs = np.log(np.abs(values[values != 0.0]))
    return float(np.exp(np.abs(np.diff(logs)).max())) if len(logs) > 1 else 1.0


def _cure(cell: str) -> str:
    """Return what to do about a text among numbers."""
    if re.fullmatch(r"[<>≤≥~]\s*[\d.,]+.*", cell):
        return (
            ": it is a limit and no value; write a number, such as half of it, or leave the cell "
            "empty"
        )
    if re.fullmatch(r"[\d.,]+\s*(-|–|to|\.\.)\s*[\d.,]+", cell):
        return ": it is a range; write its middle, or leave the cell empty"
    if re.fullmatch(r"\d{1,2}:\d{2}(:\d{2})?", cell):
        return ": it is a time; write hours or minutes as a number"
    return "; leave the cell empty if it is missing"
