"""How much time and memory a search may take, and when that is spent."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

Spent = Callable[[], str]
"""Says which budget is spent, such as "the time budget of 10m"; nothing if none is."""

_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES = {
    "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
    "KIB": 2.0**10, "MIB": 2.0**20, "GIB": 2.0**30, "TIB": 2.0**40,
}  # fmt: skip

_NUMBER = r"(\d+(?:\.\d+)?|\.\d+)"


class OutOfBudget(Exception):
    """A budget was spent before all was done; the text says which."""


def never_spent() -> str:
    """Budget of one who has no limit."""
    return ""


def seconds(budget: float | str) -> float:
    """Read a time budget: seconds, or a text such as 90, 90s, 10m or 1h30m; a ValueError else."""
    wanted = "seconds, or with a unit (s, m, h, d) such as 90s, 10m or 1h30m"
    return _read(budget, "a time budget", wanted, _SECONDS, str.lower)


def num_bytes(budget: float | str) -> float:
    """Read a memory budget: bytes, or a text such as 500MB, 4GB or 2.5GiB; a ValueError else."""
    wanted = "bytes, or with a unit (KB, MB, GB, TB, KiB, MiB, GiB, TiB) such as 500MB or 2.5GiB"
    return _read(budget, "a memory budget", wanted, _BYTES, str.upper)


def _read(
    budget: float | str,
    what: str,
    wanted: str,
    units: Mapping[str, float],
    fold: Callable[[str], str],
) -> float:
    value = math.nan
    if isinstance(budget, str):
        part = rf"{_NUMBER}\s*({'|'.join(units)})"
        text = fold(budget.strip())
        if re.fullmatch(_NUMBER, text):
            value = float(text)
        elif re.fullmatch(rf"(?:{part}\s*)+", text):
            value = sum(float(number) * units[unit] for number, unit in re.findall(part, text))
    elif not isinstance(budget, bool):
        with suppress(TypeError):  # such as a timedelta
            value = float(budget)
    if not math.isfinite(value):
        raise ValueError(f"expected {what} in {wanted}, got {budget!r}")
    if value <= 0.0:
        raise ValueError(f"expected {what} above zero, got {budget!r}")
    return value


def resident_memory() -> float:
    """Bytes in main memory of this process and of those that it started.

    Workers of a pool or of a Dask `LocalCluster` are among them, those on other machines are not.
    Pages that several processes share count once for each.
    """
    try:
        import psutil  # what only those need who set a memory budget
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "expected the library psutil for a memory budget: "
            "pip install '.[scale]' in a clone of lkm_gpflow"
        ) from error
    own = psutil.Process()
    total = 0.0
    for process in (own, *own.children(recursive=True)):
        try:
            total += process.memory_info().rss
        except psutil.Error:  # it has just ended
            continue
    return total


class Guard:
    """Watches the budgets of one call, from the moment at which it is made.

    A time budget is in seconds, or a text such as "10m"; a memory budget in bytes, or a text such
    as "4GB", for `resident_memory`.  Memory that was once above its budget counts as spent for
    good: what is learnt next would only take more.  A ValueError says if a budget cannot be read,
    or if more memory than that is in use already.
    """

    def __init__(
        self,
        time_budget: float | str | None = None,
        memory_budget: float | str | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        memory: Callable[[], float] = resident_memory,
    ) -> None:
        self._clock, self._memory = clock, memory
        self._began = clock()
        self._seconds = None if time_budget is None else seconds(time_budget)
        self._bytes = None if memory_budget is None else num_bytes(memory_budget)
        self._memory_spent = False
        if self._bytes is not None and (used := memory()) >= self._bytes:
            raise ValueError(
                f"expected a memory budget above the {_size(used)} that this process and those it "
                f"started take before anything is learnt, got {_size(self._bytes)}"
            )

    def spent(self, share: float = 1.0) -> str:
        """Say in words which budget is spent, of the time budget this share; nothing if none."""
        if self._bytes is not None:
            self._memory_spent = self._memory_spent or self._memory() >= self._bytes
            if self._memory_spent:
                return f"the memory budget of {_size(self._bytes)}"
        if self._seconds is not None and self._clock() - self._began >= share * self._seconds:
            return f"the time budget of {_duration(self._seconds)}"
        return ""


def _duration(value: float) -> str:
    """Seconds as one would give them: 1h30m, 10m, 90s becomes 1m30s."""
    if value < 60.0:
        return f"{value:.3g}s"
    left, parts = round(value), []
    for unit in ("d", "h", "m", "s"):
        count, left = divmod(left, round(_SECONDS[unit]))
        parts += [f"{count}{unit}"] if count else []
    return "".join(parts)


def _size(value: float) -> str:
    return f"{value / 1e9:.3g}GB" if value >= 1e9 else f"{value / 1e6:.3g}MB"
