"""Jobs for workers in other processes, which import them by name."""

from __future__ import annotations

import os
import signal
import sys
import time
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


def wait_for(path: Path, seconds: float = 60.0) -> str:
    """Keep a worker busy until there is a file."""
    deadline = time.monotonic() + seconds
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
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
