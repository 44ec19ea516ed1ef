"""What is done, failed and missing; and the page that says whether the paper's claims hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from .profiles import Experiment, Plan, Run
from .store import Record, Store

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
"""What is between them in a page is written by `with_results`."""


@dataclass(frozen=True)
class Progress:
    """The runs of an experiment in one profile, by what has become of them."""

    experiment: Experiment
    done: tuple[tuple[Run, Record], ...]
    failed: tuple[tuple[Run, Record], ...]
    missing: tuple[Run, ...]

    @property
    def minutes_left(self) -> float:
        """How long what is failed or missing is expected to take, on one processor."""
        return sum(run.minutes for run in self.missing) + sum(run.minutes for run, _ in self.failed)

    @property
    def minutes_taken(self) -> float:
        """How long what is done took: processor time where a notebook tells it, else by the clock.

        A clock also counts what else the machine was doing.
        """
        taken = (r.scores.get("processor_seconds", r.seconds) for _, r in self.done)
        return sum(map(float, taken)) / 60.0

    @property
    def verdict(self) -> str:
        """Whether the paper's claims hold, by what the notebooks say."""
        said = [bool(r.scores["holds"]) for _, r in self.done if "holds" in r.scores]
        if self.failed:
            return "failed"
        if self.missing:
            return "not complete" if self.done else "not run"
        if not said:
            return "no claim"
        return "holds" if all(said) else f"does not hold in {said.count(False)} of {len(said)} runs"


def progress_of(plan: Plan, profile: str, store: Store, only: Sequence[str] = ()) -> list[Progress]:
    """Sort the runs of a profile; see `Plan.runs`."""
    chosen = [store.resolved(run, plan) for run in plan.runs(profile, only)]
    found = []
    for experiment in plan.experiments:
        done, failed, missing = [], [], []
        for run in chosen:
            if run.experiment != experiment.id:
                continue
            if record := store.finished(run):
                done.append((run, record))
            elif record := store.failed(run):
                failed.append((run, record))
            else:
                missing.append(run)
        if done or failed or missing:
            found.append(Progress(experiment, tuple(done), tuple(failed), tuple(missing)))
    return found


def overview(progress: Sequence[Progress]) -> pd.DataFrame:
    """One row an experiment: runs done, failed, missing, and minutes that the rest will take."""
    rows = {
        each.experiment.id: {
            "done": len(each.done),
            "failed": len(each.failed),
            "missing": len(each.missing),
            "minutes left": round(each.minutes_left, 1),
        }
        for each in progress
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("experiment")


def artefacts(progress: Sequence[Progress], profile: str) -> pd.DataFrame:
    """One row an experiment: artefact, notebook, command, minutes, and whether the claim holds."""
    return pd.DataFrame(
        {
            "artefact": each.experiment.artefact,
            "notebook": each.experiment.notebook,
            "command": f"lkm-gpflow reproduce --profile {profile} --only {each.experiment.id}",
            "minutes": f"{each.minutes_taken:.1f}" if each.done else "-",
            "paper's claim": each.verdict,
        }
        for each in progress
    )


def with_results(page: str, progress: Sequence[Progress], profile: str) -> str:
    """Return a page in Markdown with its table of artefacts brought up to date.

    Raises
    ------
    ValueError
        If the page does not say where the table is.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"expected a page with the lines {BEGIN} and {END}")
    table = artefacts(progress, profile)
    table["notebook"] = [f"[{name}]({name})" for name in table["notebook"]]
    table["command"] = [f"`{command}`" for command in table["command"]]
    lines = [
        "| " + " | ".join(table.columns) + " |",
        "| " + " | ".join("---" for _ in table.columns) + " |",
        *("| " + " | ".join(map(str, row)) + " |" for row in table.itertuples(index=False)),
    ]
    return f"{before}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{after}"
