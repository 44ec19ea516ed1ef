"""What all commands share: errors in plain words, and signals that stop them cleanly."""

from __future__ import annotations

import signal
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import click

from ..datasets import downloads
from ..runtime.executors import WorkersLost
from ..runtime.warn import TableNote


class _Refused(click.ClickException):
    """The command cannot be carried out as given."""

    exit_code = 2


class Stopped(BaseException):
    """A signal asks this process to stop."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def signals_stop() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM raise `Stopped`."""

    def stop(number: int, _: FrameType | None) -> None:
        raise Stopped(number)

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, stop) for number in numbers]
    try:
        yield
    except Stopped as stopped:
        sys.exit(128 + stopped.number)
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def check_writable(folder: Path, what: str) -> None:
    """Make a folder if it is not there; refuse one that cannot be written to, `what` it is."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ValueError(
            f"expected {what} that can be written to, got {folder} ({error.strerror})"
        ) from error


@contextmanager
def said_plainly() -> Iterator[None]:
    """Turn errors that a user can mend into messages, and warnings into lines."""

    def show(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        if issubclass(category, UserWarning):
            said = "Note" if issubclass(category, TableNote) else "Warning"
            click.echo(f"{said}: {message}", err=True)

    with warnings.catch_warnings():
        warnings.showwarning = show
        try:
            yield
        except (ValueError, ModuleNotFoundError) as error:
            raise _Refused(str(error)) from error
        except MemoryError as error:
            raise click.ClickException(
                f"not enough memory ({error}): ask for a shorter horizon, or fewer rows or series"
            ) from error
        except (WorkersLost, downloads.DownloadError, downloads.ChecksumError) as error:
            raise click.ClickException(str(error)) from error
        except BrokenPipeError:  # `main` ends the command
            raise
        except OSError as error:
            plain = f"cannot use {error.filename} ({error.strerror})"
            raise _Refused(plain if error.filename else str(error)) from error
