"""News of work under way: told where the work is done, heard where it is waited for.

A job tells what it is about to do; whoever listens shows it.  In this process the listener is
called at once.  A job in another process of this machine writes its news to a file that the waiting
process reads; on another machine there is no such file, and its news are not heard.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

_Result = TypeVar("_Result")

Hear = Callable[[str], None]
"""Takes the latest news, a few words."""

_LISTENER: ContextVar[Hear | None] = ContextVar("listener", default=None)


def tell(news: Callable[[], str]) -> None:
    """Tell what goes on to whoever listens; where nobody does, the words are not even made."""
    hear = _LISTENER.get()
    if hear is not None:
        hear(news())


@contextmanager
def heard_by(hear: Hear | None) -> Iterator[None]:
    """Let a listener hear what is told in this context; None: nobody."""
    token = _LISTENER.set(hear)
    try:
        yield
    finally:
        _LISTENER.reset(token)


@dataclass(frozen=True)
class _Reporting(Generic[_Result]):
    """A job that writes its news to a file, if it can."""

    job: Callable[[], _Result]
    path: str

    def __call__(self) -> _Result:
        with heard_by(self._write):
            return self.job()

    def _write(self, news: str) -> None:
        with suppress(OSError):
            Path(self.path).write_text(news, encoding="utf-8")


class Newsroom:
    """Collects the news of jobs in other processes, in a file that all of them write over.

    Where nobody listens (`hear` is None) jobs are left as they are.
    """

    def __init__(self, hear: Hear | None) -> None:
        self._hear, self._last = hear, ""
        self._folder = tempfile.TemporaryDirectory(prefix="lkm-news-") if hear else None

    def __enter__(self) -> Newsroom:
        return self

    def __exit__(self, *_: object) -> None:
        if self._folder is not None:
            with suppress(OSError):  # a worker that is still busy writes to it
                self._folder.cleanup()

    def reporting(self, job: Callable[[], _Result]) -> Callable[[], _Result]:
        """Return the job as one that tells its news here."""
        return job if self._folder is None else _Reporting(job, f"{self._folder.name}/news")

    def look(self) -> None:
        """Hand on the latest news, if there are any since the last look."""
        if self._folder is None or self._hear is None:
            return
        latest = ""
        with suppress(OSError, UnicodeDecodeError):  # none yet, or half of them
            latest = Path(self._folder.name, "news").read_text(encoding="utf-8")
        if latest not in ("", self._last):
            self._last = latest
            self._hear(latest)
