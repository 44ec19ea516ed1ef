"""Jobs for workers in other processes, which import them by name."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from lkm_gpflow.runtime.news import tell


def square(x: int) -> int:
    return x * x


def square_but_die_at_first(x: int, folder: Path) -> int:
    """Square a number in the second attempt; the first one ends with its process."""
    tried = folder / f"tried-{x}"
    if not tried.exists():
        tried.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return x * x


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def wait_until(condition: Callable[[], object], seconds: float = 120.0) -> None:
    """Wait for others, such as a process that was killed, to get there."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def wait_for(path: Path) -> str:
    """Keep a worker busy until there is a file."""
    wait_until(path.exists)
    return "done"


def is_imported(module: str) -> bool:
    return module in sys.modules


def process_id(pause: float = 0.0) -> int:
    time.sleep(pause)
    return os.getpid()


def tell_and_wait(name: str, seconds: float) -> str:
    """Tell that it begins, then wait."""
    tell(lambda: f"{name} begins")
    time.sleep(seconds)
    return name
