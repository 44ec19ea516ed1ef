"""What is run: the notebooks of the paper and their grids of parameters, from one file.

``experiments.yml`` beside this module is part of the package; notebooks are found in a clone of the
repository.  Each entry of the file names a notebook and, by profile, grids of parameters: a
parameter that has a list of values is run with each of them.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, get_args

import yaml

from .folders import notebooks_folder

Scalar = str | int | float | bool

PROFILES = ("smoke", "quick", "paper")

_ENTRY_KEYS = {"id", "artefact", "notebook", "data", "reads", "runs"}
_GRID_KEYS = {"minutes", "grid"}


@dataclass(frozen=True)
class Run:
    """One notebook with one set of parameters.

    Parameters
    ----------
    experiment
        The id of the entry.
    notebook
        File name of the notebook.
    parameters
        What papermill puts into it.
    data
        Data sets that it uses.
    reads
        Experiments whose results it aggregates.
    minutes
        How long it is expected to take, on one processor.
    inputs
        A checksum of the results that it aggregates; see `Store.resolved`.
    aggregated
        The ids of their runs.
    """

    experiment: str
    notebook: str
    parameters: Mapping[str, Scalar]
    data: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    minutes: float = 1.0
    inputs: str = ""
    aggregated: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """A name for people and files: experiment, then the values of the parameters."""
        parts = [
            value if isinstance(value, str) else f"{name}-{value}"
            for name, value in self.parameters.items()
            if value != ""
        ]
        name = re.sub(r"[^\w.-]+", "-", "_".join(parts)).strip("-.")
        return f"{self.experiment}/{name}" if name else self.experiment

    @property
    def configuration(self) -> dict[str, Any]:
        """What the result depends on, in JSON's types."""
        return {
            "experiment": self.experiment,
            "notebook": self.notebook,
            "parameters": dict(self.parameters),
            "inputs": self.inputs,
        }

    @property
    def hash(self) -> str:
        """SHA-256 of the configuration."""
        return configuration_hash(self.configuration)


def configuration_hash(configuration: Mapping[str, Any]) -> str:
    """SHA-256 of a configuration, whatever the order of its keys."""
    text = json.dumps(configuration, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Experiment:
    """An entry of the file: what it reproduces, and its runs by profile."""

    id: str
    artefact: str
    notebook: str
    runs: Mapping[str, tuple[Run, ...]]


@dataclass(frozen=True)
class Plan:
    """All experiments, and the folder their notebooks are in."""

    experiments: tuple[Experiment, ...]
    folder: Path

    def runs(self, profile: str, only: Sequence[str] = ()) -> list[Run]:
        """Runs of a profile, in the order of the file.

        Parameters
        ----------
        profile
            Among `PROFILES`.
        only
            Ids of experiments or of runs, or patterns of them such as ``extrapolation/gonu*``; by
            default all.

        Raises
        ------
        ValueError
            If there is no such profile, or an id stands for no run of it.
        """
        if profile not in PROFILES:
            raise ValueError(f"expected a profile among {', '.join(PROFILES)}, got {profile!r}")
        runs = [run for each in self.experiments for run in each.runs.get(profile, ())]
        for pattern in only:
            if not any(_matches(run, pattern) for run in runs):
                known = ", ".join(dict.fromkeys(run.experiment for run in runs))
                raise ValueError(
                    f"expected ids of profile {profile!r}, got {pattern!r}: its experiments are "
                    f"{known}, and `lkm-gpflow status --profile {profile} --runs` lists all ids"
                )
        return [run for run in runs if not only or any(_matches(run, p) for p in only)]

    def runs_of(self, experiment: str) -> list[Run]:
        """Runs of an experiment in all profiles; some may be in several."""
        return [
            run
            for each in self.experiments
            if each.id == experiment
            for runs in each.runs.values()
            for run in runs
        ]


def _matches(run: Run, pattern: str) -> bool:
    return fnmatchcase(run.experiment, pattern) or fnmatchcase(run.id, pattern)


def read_plan(file: Path | None = None) -> Plan:
    """Read the experiments.

    Parameters
    ----------
    file
        A file of one's own, with its notebooks beside it; by default the paper's experiments.

    Raises
    ------
    ValueError
        If the file is not as it should be, or the notebooks are not found.
    """
    if file is None:
        file = Path(__file__).with_name("experiments.yml")
        folder = notebooks_folder()
    else:
        folder = file.resolve().parent
    try:
        entries = yaml.safe_load(file.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ValueError(f"{file}: expected YAML, got {error}") from error
    if not isinstance(entries, list) or not entries:
        raise ValueError(f"{file}: expected a list of experiments, got {entries!r:.40}")
    experiments = tuple(
        _experiment(entry, f"{file}, entry {i + 1}") for i, entry in enumerate(entries)
    )
    _check_ids(experiments, file)
    return Plan(experiments, folder)


def _experiment(entry: Any, where: str) -> Experiment:
    _check_keys(entry, _ENTRY_KEYS, {"id", "artefact", "notebook", "runs"}, where)
    where = f"{where} ({entry['id']})"
    for key in ("id", "artefact", "notebook"):
        _expect(entry[key], str, f"{key} to be text", where)
    for key in ("data", "reads"):
        for name in _expect(entry.get(key, []), list, f"{key} to be a list of names", where):
            _expect(name, str, f"{key} to be a list of names", where)
    _check_keys(entry["runs"], set(PROFILES), set(), f"{where}, runs")
    runs = {
        profile: tuple(
            run
            for grid in _expect(grids, list, "a list of grids", f"{where}, {profile}")
            for run in _runs(entry, grid, f"{where}, {profile}")
        )
        for profile, grids in entry["runs"].items()
    }
    return Experiment(entry["id"], entry["artefact"], entry["notebook"], runs)


def _runs(entry: Mapping[str, Any], grid: Any, where: str) -> Iterator[Run]:
    _check_keys(grid, _GRID_KEYS, {"minutes"}, where)
    minutes = float(_expect(grid["minutes"], (int, float), "minutes to be a number", where))
    given = _expect(grid.get("grid", {}), dict, "grid to be parameters and their values", where)
    axes = {
        name: values if isinstance(values, list) else [values] for name, values in given.items()
    }
    for name, values in axes.items():
        for value in values:
            if not isinstance(value, get_args(Scalar)):
                raise ValueError(
                    f"{where}: expected {name} to be text, a number, true or false, or a list of "
                    f"them, got {value!r}"
                )
    for point in itertools.product(*axes.values()):
        parameters = dict(zip(axes, point, strict=True))
        data = entry.get("data", [])
        if "dataset" in parameters:
            data = [parameters["dataset"]]
        yield Run(
            entry["id"], entry["notebook"], parameters, tuple(data), tuple(entry.get("reads", [])),
            minutes,
        )  # fmt: skip


def _expect(value: Any, kind: type | tuple[type, ...], what: str, where: str) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"{where}: expected {what}, got {value!r}")
    return value


def _check_keys(mapping: Any, known: set[str], needed: set[str], where: str) -> None:
    if not isinstance(mapping, dict):
        raise ValueError(f"{where}: expected keys {sorted(known)}, got {mapping!r}")
    if not needed <= set(mapping) <= known:
        raise ValueError(
            f"{where}: expected keys among {sorted(known)} with {sorted(needed)}, "
            f"got {sorted(map(str, mapping))}"
        )


def _check_ids(experiments: Iterable[Experiment], file: Path) -> None:
    """Ids are names of files: one must not stand for two configurations.

    And experiments must not read each other in a circle: there would be no order to run them in.
    """
    ids = [each.id for each in experiments]
    if len(set(ids)) < len(ids):
        raise ValueError(f"{file}: expected different ids, got {ids}")
    hashes: dict[str, str] = {}
    for each in experiments:
        for profile, runs in each.runs.items():
            if len({run.id for run in runs}) < len(runs):
                raise ValueError(f"{file}: {each.id}, {profile}: a run is there twice")
            for run in runs:
                if unknown := [name for name in run.reads if name not in ids]:
                    raise ValueError(f"{file}: {each.id} reads {unknown}, expected among {ids}")
                if hashes.setdefault(run.id, run.hash) != run.hash:
                    raise ValueError(
                        f"{file}: two runs have the id {run.id!r}: give their parameters values "
                        "that differ"
                    )
    reads = {
        each.id: {name for runs in each.runs.values() for run in runs for name in run.reads}
        for each in experiments
    }
    try:
        TopologicalSorter(reads).prepare()
    except CycleError as error:
        circle = " reads ".join(reversed(error.args[1]))
        raise ValueError(f"{file}: expected reads that are no circle, got {circle}") from error
