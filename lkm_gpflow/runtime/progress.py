"""The progress bar: a widget in a notebook that has ipywidgets, lines of text elsewhere.

It never stands still: while it is open its clock goes on, whatever the work does.
"""

from __future__ import annotations

import os
import sys
import threading

from tqdm.auto import tqdm

_BEAT = 1.0
_BEAT_OF_A_FILE = 30.0
"""Seconds between two looks at the clock, on a terminal or in a notebook, and in a log file."""

_FORMAT = "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]"


class Progress:
    """A progress bar with a clock, the latest news of the work, and what is expected of it.

    Parameters
    ----------
    label
        What is counted, before the bar.
    total
        How many there are; more can be expected later.
    done
        How many of them are there already.
    shown
        Whether there is a bar at all.
    """

    def __init__(
        self, label: str = "", total: int = 0, *, done: int = 0, shown: bool = True
    ) -> None:
        self._bar = tqdm(
            total=total, initial=done, desc=label or None, disable=not shown,
            bar_format=_FORMAT, **_size(),
        )  # fmt: skip
        self._shown = shown
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
        self._bar.refresh()

    def hear(self, news: str) -> None:
        """Show what the work does just now."""
        if self._shown and news != self._news:
            self._news = news
            self._say()
            self._bar.refresh()

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
        self._bar.update()
        self._bar.refresh()

    def _say(self) -> None:
        self._bar.set_postfix_str(", ".join(filter(None, [self._standing, self._news])), False)

    def _beat(self) -> None:
        is_notebook = not hasattr(self._bar.fp, "isatty") or "ipykernel" in sys.modules
        beat = _BEAT if is_notebook or self._bar.fp.isatty() else _BEAT_OF_A_FILE
        while not self._ended.wait(beat):
            self._bar.refresh()


def _size() -> dict[str, int | bool]:
    """Let a bar be as wide as the terminal, or 80 columns where that says that it has no size."""
    try:
        size = os.get_terminal_size(sys.stderr.fileno())
    except (OSError, ValueError, AttributeError):  # no terminal
        return {"dynamic_ncols": True}
    return {"dynamic_ncols": True} if all(size) else {"ncols": 80, "nrows": 24}
