"""The progress bar: a widget in a notebook that has ipywidgets, a line of text elsewhere.

A work has parts, such as the search and the weights of forecasts, and one bar for all of them.  The
time that is left stands first, so that a narrow terminal cuts off what matters least.  The bar
never stands still: while it is open its clock goes on, whatever the work does.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from .text import duration

_BEAT = 1.0
_BEAT_OF_A_FILE = 30.0
"""Seconds between two looks at the clock, on a terminal or in a notebook.  A log file keeps every
line: of all that happens between two looks it has nothing.
"""

_FORMAT = "{desc}|{bar}| {percentage:3.0f}% {elapsed}{postfix}"

_COLUMNS = 80  # where nobody says how wide a line is
_MOST_LETTERS = 36  # of what the work does just now: at 80 columns the bar has ten or more


class Progress:
    """One bar for a work of several parts: what is left of it, and what it does just now.

    ``about 2 min left |####......| 31% 00:45, search, 12 fits: adding SE (2 of 4)``

    The share that is done is that of the time, spent and expected, and never falls.
    """

    def __init__(self, *, shown: bool = True) -> None:
        self._bar = tqdm(total=100, disable=not shown, bar_format=_FORMAT, **_size())
        self._shown = shown
        self._is_file = shown and _is_file(self._bar)
        self._began = self._last_written = time.monotonic()
        self._ended = threading.Event()
        self._news = self._standing = self._part = ""
        self.later = 0.0  #: Seconds that are expected of the parts after this one
        self.begin("")

    def __enter__(self) -> Progress:
        if self._shown:
            threading.Thread(target=self._beat, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._ended.set()
        if kind is None and self._shown:
            self._bar.set_description_str("done ", refresh=False)
            self._bar.set_postfix_str("", refresh=False)
            self._bar.n = 100
        self._bar.close()

    def begin(self, part: str, total: int = 0) -> None:
        """Begin a part of so many things."""
        self._part, self._total = part, total
        self._count, self._part_began = 0, time.monotonic()
        self._ends: tuple[float, ...] = ()  # when all ends, or from and to
        self._news = self._standing = ""
        self._refresh()

    def left(self, *seconds: float) -> None:
        """Expect this part to go on for so many seconds, or between the first and the last."""
        now = time.monotonic()
        self._ends = tuple(now + each + self.later for each in seconds)

    def hear(self, news: str) -> None:
        """Show what the work does just now."""
        if self._shown and news != self._news:
            self._news = news
            self._refresh()

    def write(self, line: str) -> None:
        """Write a line above the bar."""
        if self._shown:
            self._bar.write(line)

    def stand(self, text: str) -> None:
        """Show how this part stands, before the news."""
        self._standing, self._news = text, ""
        self._refresh()

    def update(self) -> None:
        """Count one more thing of this part, and expect the others to take as long on average."""
        self._count += 1
        each = (time.monotonic() - self._part_began) / self._count
        self.left(each * max(self._total - self._count, 0))
        self.stand(f"{self._count} of {self._total}")

    def _refresh(self) -> None:
        now = time.monotonic()
        if self._shown and (not self._is_file or now - self._last_written >= _BEAT_OF_A_FILE):
            self._last_written = now
            self._say(now)
            self._bar.refresh()

    def _say(self, now: float) -> None:
        """Put what is known into the bar."""
        left = [max(end - now, 1.0) for end in self._ends]
        if left:
            spent = now - self._began
            share = 100.0 * spent / (spent + float(np.exp(np.mean(np.log(left)))))
            self._bar.n = max(self._bar.n, min(int(share), 99))
            words = list(dict.fromkeys(map(duration, left)))
            text = " to ".join(words) if len(words) > 1 else f"about {words[0]}"
            self._bar.set_description_str(f"{text} left ", refresh=False)
        stands = ", ".join(filter(None, [self._part, self._standing]))
        doing = ": ".join(filter(None, [stands, self._news]))
        self._bar.set_postfix_str(_shortened(doing), refresh=False)

    def _beat(self) -> None:
        while not self._ended.wait(_BEAT_OF_A_FILE if self._is_file else _BEAT):
            self._refresh()


@contextmanager
def part_of(progress: bool | Progress, part: str, total: int = 0) -> Iterator[Progress]:
    """Begin a part of a bar that is open already, or of one of its own, which may not be shown."""
    if isinstance(progress, Progress):
        progress.begin(part, total)
        yield progress
        return
    with Progress(shown=progress) as bar:
        bar.begin(part, total)
        yield bar


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 3]}..."


def _is_file(bar: tqdm[Any]) -> bool:
    """Whether a bar is written to a log file: neither to a terminal nor into a notebook."""
    is_notebook = not hasattr(bar.fp, "isatty") or "ipykernel" in sys.modules
    return not is_notebook and not bar.fp.isatty()


def _size() -> dict[str, int | bool]:
    """Let a bar be as wide as the terminal, or 80 columns where none says how wide it is."""
    try:
        size = os.get_terminal_size(sys.stderr.fileno())
    except (OSError, ValueError, AttributeError):  # no terminal
        return {"ncols": _COLUMNS} if "ipykernel" not in sys.modules else {"dynamic_ncols": True}
    return {"dynamic_ncols": True} if all(size) else {"ncols": _COLUMNS, "nrows": 24}
