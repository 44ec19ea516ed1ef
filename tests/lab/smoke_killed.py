"""Kill Table 1 of the smoke profile at ten random moments, let it end, compare with one not killed.

Too long for a test of every day, so a script.  Its arguments are the folder of the results of an
undisturbed run and a new folder for those of the killed one.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from paper_experiments.lab.runner import read_plan, read_records

PART = ("extrapolation", "table1")
"""The part of the profile that has many runs, and a notebook that waits for all of them."""

KILLS, TRIES = 10, 4
"""Tries have waits half as long each time: the machine may be faster than for the other run."""


def records(folder: Path) -> dict[str, dict[str, Any]]:
    """What is finished of the part, by id."""
    ids = [run.id for run in read_plan("smoke", PART)]
    kept = read_records(folder)
    if failed := [i for i in ids if kept.get(i, {}).get("error")]:
        sys.exit(f"failed in {folder}: {failed}")
    return {i: kept[i] for i in ids if i in kept}


def scores(finished: dict[str, dict[str, Any]]) -> dict[str, dict[str, object]]:
    """All but the times, which differ from run to run."""
    return {
        i: {name: s for name, s in record["scores"].items() if not name.endswith("seconds")}
        for i, record in finished.items()
    }


def main() -> None:
    """Kill, go on, compare."""
    undisturbed, parent = map(Path, sys.argv[1:])
    expected = records(undisturbed)
    longest_wait = sum(record["seconds"] for record in expected.values()) / KILLS
    seed = random.randrange(2**32)
    print(f"random seed {seed}")
    rng = random.Random(seed)
    command = [sys.executable, "-m", "lkm_gpflow.cli", "reproduce", "--profile", "smoke"]
    command += ["--only", *PART, "--results"]
    for attempt in range(TRIES):
        folder, finished = parent / str(attempt), dict[str, dict[str, Any]]()
        for kill in range(1, KILLS + 1):
            process = subprocess.Popen([*command, str(folder)], stdout=subprocess.DEVNULL)
            time.sleep(rng.uniform(0.0, longest_wait / 2**attempt))
            if process.poll() == 0:
                print(f"it ended before kill {kill}", flush=True)
                break
            process.kill()
            process.wait()
            now = records(folder)
            if changed := [i for i, record in finished.items() if now.get(i) != record]:
                sys.exit(f"kill {kill}: lost or repeated, though finished before: {changed}")
            finished = now
        else:
            break
    else:
        sys.exit(f"it ended before kill {KILLS} in each of {TRIES} tries")
    subprocess.run([*command, str(folder)], check=True)
    now = records(folder)
    if [i for i, record in finished.items() if now[i] != record]:
        sys.exit("lost or repeated at the end, though finished before")
    if scores(now) != scores(expected):
        sys.exit(f"other results than undisturbed: {folder} and {undisturbed}")
    print(f"{len(now)} runs, killed {KILLS} times: the same results, nothing repeated")


if __name__ == "__main__":
    main()
