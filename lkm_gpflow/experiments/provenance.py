"""Where a result comes from: data, versions, processor, commit."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pandas as pd

from .. import datasets

_PACKAGES = (
    "lkm_gpflow",
    "gpflow",
    "tensorflow",
    "tensorflow-probability",
    "numpy",
    "scipy",
    "pandas",
    "statsforecast",
    "papermill",
)


def table_checksum(frame: pd.DataFrame) -> str:
    """SHA-256 of a table: names, times and values to the last digit."""
    return hashlib.sha256(frame.to_csv(float_format="%.17g").encode()).hexdigest()


@cache
def data_checksum(name: str) -> str:
    """Checksum of a data set by name; it is downloaded if it is not there."""
    return table_checksum(datasets.load(name).frame)


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that results depend on, if they are installed."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def processor() -> str:
    """Model and number of processors."""
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        models = [
            line.partition(":")[2].strip()
            for line in cpuinfo.read_text(encoding="utf-8").splitlines()
            if line.startswith("model name")
        ]
        name = models[0] if models else name
    return f"{os.cpu_count()} x {name}"


@cache
def commit(folder: Path) -> str:
    """Commit of the repository that a folder is in; "changed" if code differs; empty if none."""

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True
        ).stdout.strip()

    try:
        head = git("rev-parse", "HEAD")
        changed = git("status", "--porcelain", "--untracked-files=no", "--", ":/*.py", ":/*.ipynb")
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f"{head} changed" if changed else head
