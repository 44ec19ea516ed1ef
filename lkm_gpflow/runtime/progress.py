"""The progress bar: a widget in a notebook that has ipywidgets, lines of text elsewhere.

It never stands still: while it is open its clock goes on, whatever the work does.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any

from tqdm.auto import tqdm

_BEAT = 1.0
_BEAT_OF_A_FILE = 30.0
"""Seconds between two looks at the clock, on a terminal or in a notebook.  A log file keeps every
line: of all that happens between two looks it has nothing.
"""

_FORMAT = "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]"


class Progress:
    """A progress bar with a clock, the latest news of the work, and what is expected of it.

    The label stands before the bar; `total` things are counted, of which `done` are there already.
    """

    def __init__(
        self, label: str = "", total: int = 0, *, done: int = 0, shown: bool = True
    ) -> None:
        self._bar = tqdm(
            total=total, initial=done, desc=label or None, disable=not shown,
            bar_format=_FORMAT, **_size(),
        )  # fmt: skip
        self._shown = shown
        self._is_file = shown and _is_file(self._bar)
        self._last_written = time.monotonic()
        self._news = ""
        self._standing = ""
        self._ended = threading.Event()

    def __enter__(self) -> Progress:
        if self._shown:
            threading.Thread(target=self._beat, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._bar.close()

    def expect(self, count: int) -> None:
        """Expect so many more."""
        self._bar.total = (self._bar.total or 0) + count
        self._refresh()

    def hear(self, news: str) -> None:
        """Show what the work does just now."""
        if self._shown and news != self._news:
            self._news = news
            self._say()
            self._refresh()

    def label(self, text: str) -> None:
        """Change the label."""
        self._bar.set_description_str(text, refresh=False)

    def stand(self, text: str) -> None:
        """Show how things stand, before the news."""
        self._standing = text
        self._say()

    def update(self, standing: str = "") -> None:
        """Count one more, and show how things stand."""
        self._news = ""
        self.stand(standing)
        self._bar.n += 1
        self._refresh()

    def _say(self) -> None:
        self._bar.set_postfix_str(", ".join(filter(None, [self._standing, self._news])), False)

    def _refresh(self) -> None:
        now = time.monotonic()
        if not self._is_file or now - self._last_written >= _BEAT_OF_A_FILE:
            self._last_written = now
            self._bar.refresh()

    def _beat(self) -> None:
        while not self._ended.wait(_BEAT_OF_A_FILE if self._is_file else _BEAT):
            self._refresh()


def _is_file(bar: tqdm[Any]) -> bool:
    """Whether a bar is written to a log file: neither to a terminal nor into a notebook."""
    is_notebook = not hasattr(bar.fp, "isatty") or "ipykernel" in sys.modules
    return not is_notebook and not bar.fp.isatty()


def _size() -> dict[str, int | bool]:
    """Let a bar be as wide as the terminal, or 80 columns where that says that it has no size."""
    try:
        size = os.get_terminal_size(sys.stderr.fileno())
    except (OSError, ValueError, AttributeError):  # no terminal
        return {"dynamic_ncols": True}
    return {"dynamic_ncols": True} if all(size) else {"ncols": 80, "nrows": 24}
