"""Kill Table 1 of the smoke profile at ten random moments, let it end, compare with one not killed.

Table 1 is the part of the profile that has many runs, and a notebook that waits for all of them.

Too long for a test of every day, so a script.  Its arguments are the folder of the results of an
undisturbed run and a new folder for those of the killed one.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

from lkm_gpflow.experiments.profiles import read_plan
from lkm_gpflow.experiments.store import Record, Store, damaged

PART = ("extrapolation", "table1")
"""Experiments that are killed."""

KILLS = 10

TRIES = 4
"""With waits half as long each time: the machine may be faster than for the undisturbed run."""


def records(folder: Path) -> dict[str, Record]:
    """What is finished of the part, by id; a file that is no result is an error."""
    store = Store(folder)
    ids = [run.id for run in read_plan().runs("smoke") if run.id.startswith(PART)]
    half_written = damaged(store, ids)
    if half_written:
        sys.exit(f"not whole: {half_written}")
    if any((folder / "failures").rglob("*.json")):
        sys.exit(f"a run failed: see {folder / 'failures'}")
    found = {}
    for experiment in {run_id.partition("/")[0] for run_id in ids}:
        found.update({record.id: record for record in store.records(experiment)})
    return found


def scores(finished: dict[str, Record]) -> dict[str, dict[str, object]]:
    """All but the times, which differ from run to run."""
    return {
        run_id: {name: s for name, s in record.scores.items() if not name.endswith("seconds")}
        for run_id, record in finished.items()
    }


def grown(folder: Path, before: dict[str, Record], when: str) -> dict[str, Record]:
    """What is finished now; what was finished before must be there as it was."""
    now = records(folder)
    changed = [run_id for run_id, record in before.items() if now.get(run_id) != record]
    if changed:
        sys.exit(f"{when}: lost or repeated, though finished before: {changed}")
    print(f"{when}: {len(now)} runs finished", flush=True)
    return now


def reproduce(folder: Path) -> list[str]:
    """Return the command that runs the part into a folder."""
    command = [sys.executable, "-m", "lkm_gpflow.cli", "reproduce", "--profile", "smoke"]
    for experiment in PART:
        command += ["--only", experiment]
    return [*command, "--results", str(folder)]


def killed(folder: Path, longest_wait: float, rng: random.Random) -> dict[str, Record] | None:
    """Kill the part ten times; what is finished then, or None if it ended before."""
    finished: dict[str, Record] = {}
    for kill in range(1, KILLS + 1):
        process = subprocess.Popen(reproduce(folder), stdout=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.0, longest_wait))
        if process.poll() == 0:
            print(f"it ended before kill {kill}", flush=True)
            return None
        if process.poll() is not None:
            sys.exit(f"it ended before kill {kill} with code {process.returncode}")
        process.kill()
        process.wait()
        finished = grown(folder, finished, f"kill {kill}")
    return finished


def main() -> None:
    """Kill, go on, compare."""
    undisturbed, parent = map(Path, sys.argv[1:])
    expected = records(undisturbed)
    # Two runs at a time: ten waits, half as long on average, are as long as all of them.
    longest_wait = sum(record.seconds for record in expected.values()) / KILLS
    seed = random.randrange(2**32)
    print(f"random seed {seed}")
    rng = random.Random(seed)
    for attempt in range(TRIES):
        folder = parent / str(attempt)
        finished = killed(folder, longest_wait / 2**attempt, rng)
        if finished is not None:
            break
    else:
        sys.exit(f"it ended before kill {KILLS} in each of {TRIES} tries")
    if not finished:
        sys.exit("nothing was finished before the last kill: nothing could be lost or repeated")
    subprocess.run(reproduce(folder), check=True)
    now = grown(folder, finished, "at the end")
    if scores(now) != scores(expected):
        sys.exit(f"other results than undisturbed: {folder} and {undisturbed}")
    print(f"{len(now)} runs, killed {KILLS} times: the same results, nothing repeated")


if __name__ == "__main__":
    main()
