"""The ledger: every fit of a search, on disk as it happens.

A journal whose header holds the settings and a fingerprint of the data, with one line for every fit
and one for every decision.  A search is a deterministic function of its header, so a search that
was stopped continues by looking up its fits in the ledger first.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..fit.fits import PLAIN_MODEL, Fit, Relaxed
from ..kernels.grammar import parse
from ..runtime.journal import Journal

START, EVERY, REGROUPED = "start", "every member", "pairs and products"
"""What was expanded where it is not one member: nothing, all of them, and in the last step each two
members are multiplied, and products made sums."""

ACCEPTED = "accepted"
"""The decision on a fit that others begin at."""

_UNDECIDED = "none: the search was stopped before"


@dataclass(frozen=True)
class Entry:
    """One fit of a search.

    Parameters
    ----------
    step
        The structures are numbered in the order in which they are tried.
    restart
        Number of the fit within its step: of a restart, or of a pair or product.
    depth
        Search depth; 0 is the start.
    expanded
        The member that was expanded; `START`, `EVERY` or `REGROUPED`.
    parent
        Step whose kernels were expanded; -1 at the start.
    structure
        The members that were tried.
    fit
        What was learnt.
    decision
        "accepted", or why not.
    """

    step: int
    restart: int
    depth: int
    expanded: str
    parent: int
    structure: tuple[str, ...]
    fit: Fit
    decision: str = ""

    @classmethod
    def alone(cls, fit: Fit) -> Entry:
        """Return the entry of a fit that no search found."""
        structure = tuple(str(kernel.structure) for kernel in fit.kernels)
        return cls(0, 0, 0, START, -1, structure, fit, ACCEPTED)

    @property
    def action(self) -> str:
        """What the step does, in words."""
        known = {START: "start", REGROUPED: "regrouping"}
        return known.get(self.expanded, f"expanding {self.expanded}")


@dataclass
class Ledger:
    """The fits of one search, in memory and (if it has a path) on disk.

    Parameters
    ----------
    header
        What the search depends on, in JSON's types.
    path
        File to keep; an existing one must have the same header, and is continued.

    Raises
    ------
    ValueError
        If the file is something else, of another header, or damaged: in which line.
    OSError
        If the file cannot be read or written.
    """

    header: Mapping[str, Any]
    path: Path | None = None
    entries: dict[tuple[int, int], Entry] = field(default_factory=dict)
    decisions: dict[tuple[int, int], str] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._journal = Journal(self.path, "ledger", self.header)
        for number, record in enumerate(self._journal.records, start=2):
            try:
                self._recall(record)
            except (AttributeError, LookupError, TypeError, ValueError) as error:
                raise self._journal.damaged(number, json.dumps(record)) from error

    def _recall(self, record: Mapping[str, Any]) -> None:
        if "fit" in record:
            entry = entry_from_json(record["fit"])
            self.entries[entry.step, entry.restart] = entry
        elif "note" in record:
            key, value = record["note"]
            self.notes[key] = value
        else:
            step, restart, decision = record["decision"]
            self.decisions[step, restart] = decision

    def add(self, entry: Entry) -> None:
        """Keep a fit."""
        self.entries[entry.step, entry.restart] = entry
        record = asdict(entry)
        record["fit"] = fit_to_json(entry.fit)
        del record["decision"]
        self._journal.append({"fit": record})

    def decide(self, step: int, restart: int, decision: str) -> None:
        """Keep the decision on a fit."""
        if self.decisions.get((step, restart)) != decision:
            self.decisions[step, restart] = decision
            self._journal.append({"decision": [step, restart, decision]})

    def note(self, key: str, value: Any) -> None:
        """Keep something else that was computed once, in JSON's types."""
        self.notes[key] = value
        self._journal.append({"note": [key, value]})

    @property
    def rows(self) -> list[Entry]:
        """All fits in order, with their decisions."""
        return [
            Entry(**{**vars(entry), "decision": self.decisions.get(key, _UNDECIDED)})
            for key, entry in sorted(self.entries.items())
        ]

    def to_frame(self) -> pd.DataFrame:
        """One row per fit: what was tried, the result, and the decision."""
        return pd.DataFrame(
            [
                {
                    "step": e.step,
                    "restart": e.restart,
                    "depth": e.depth,
                    "parent": e.parent,
                    "expanded": e.expanded,
                    "tried": ", ".join(e.structure),
                    "found": ", ".join(str(kernel.structure) for kernel in e.fit.kernels),
                    "bic": e.fit.bic,
                    "criterion": e.fit.criterion,
                    "elbo": e.fit.elbo,
                    "seconds": e.fit.seconds,
                    "decision": e.decision,
                }
                for e in self.rows
            ]
        )


def entry_from_json(record: Mapping[str, Any]) -> Entry:
    """Read an entry back."""
    given = {"structure": tuple(record["structure"]), "fit": fit_from_json(record["fit"])}
    return Entry(**{**record, **given})


def fit_to_json(fit: Fit) -> dict[str, Any]:
    """Write a fit in JSON's types; numbers keep all their digits."""
    values = {
        key: value.tolist() if isinstance(value, np.ndarray) else value
        for key, value in vars(fit).items()
    }
    values["kernels"] = [str(kernel) for kernel in fit.kernels]
    relaxed = fit.relaxed
    if relaxed is not None:
        values["relaxed"] = {**vars(relaxed), "logits": relaxed.logits.tolist()}
    if fit.model == PLAIN_MODEL:
        del values["model"], values["parameters"]
    return {key: value for key, value in values.items() if value is not None}


def fit_key(fit: Fit) -> str:
    """Return a checksum of a fit, regardless of how long it took."""
    content = {key: value for key, value in fit_to_json(fit).items() if key != "seconds"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def fit_from_json(record: Mapping[str, Any]) -> Fit:
    """Read a fit back."""
    num_series = len(record["noise_variance"])
    values: dict[str, Any] = {
        key: np.array(value, np.float64) if isinstance(value, list) else value
        for key, value in record.items()
        if key not in ("kernels", "relaxed", "parameters")
    }
    for key in ("Z", "probabilities"):
        values[key] = values[key].reshape(num_series, -1)
    values["tau"] = values["tau"].reshape(-1, 2)  # also of a fit without components
    if "relaxed" in record:
        logits = np.array(record["relaxed"]["logits"], np.float64).reshape(num_series, -1)
        values["relaxed"] = Relaxed(**{**record["relaxed"], "logits": logits})
    kernels = tuple(parse(text) for text in record["kernels"])
    return Fit(kernels=kernels, parameters=record.get("parameters", {}), **values)


_SAME_BIC = 0.5
"""Two fits of one structure that differ by less in BIC are the same optimum."""


def different(fits: Sequence[Fit]) -> list[Fit]:
    """Sort fits by BIC, and keep one of those that found the same optimum."""
    kept: list[Fit] = []
    for fit in sorted(fits, key=lambda fit: fit.criterion):
        if not any(_is_same(fit, other) for other in kept):
            kept.append(fit)
    return kept


def _is_same(fit: Fit, other: Fit) -> bool:
    names = [sorted(str(kernel.structure) for kernel in f.kernels) for f in (fit, other)]
    return names[0] == names[1] and abs(fit.criterion - other.criterion) < _SAME_BIC
