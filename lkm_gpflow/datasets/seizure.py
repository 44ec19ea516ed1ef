"""EEG of epilepsy: the recordings of Bonn, cut into one-second series as UCI data set 388 has them.

Every recording of 23.6 s gives 23 series. A series is named by recording and piece: ``S001.01`` is
the first piece of recording S001.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from zipfile import ZipFile

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lkm_gpflow.datasets.dataset import Dataset
from lkm_gpflow.datasets.downloads import fetch_dataset

SAMPLING_RATE = 173.61  # Hz
PIECES, LENGTH = 23, 178  # of a recording; its last 3 of 4,097 values belong to no piece
PER_CLASS = 100 * PIECES

# The letter of a class in the names of recordings, in the order of the labels 1 to 5.
SETS = "SFNOZ"
ACTIVITIES = {1: "seizure", 2: "tumour area", 3: "healthy area", 4: "eyes closed", 5: "eyes open"}
"""Areas 2 and 3 are of patients with a tumour, 4 and 5 of healthy volunteers."""


def seizure(*, per_class: int | None = None, seed: int | None = None) -> Dataset:
    """One-second EEG series of five activities, 2,300 of each or `per_class` drawn by seed.

    The index is time in seconds; ``labels`` has the activity, a key of `ACTIVITIES`.  A ValueError
    says if there is a seed (0 by default) and nothing to draw.
    """
    rows = _choose(per_class, seed)  # first, so that a mistake costs no download
    (path,) = fetch_dataset("seizure")
    frame, labels = _read(path)
    title = "one-second pieces of EEG recordings, five activities"
    if per_class is not None:
        title += f", {per_class} of each, seed {seed or 0}"
    return Dataset(
        name="seizure",
        title=title,
        frame=frame.iloc[:, rows],
        units=dict.fromkeys(frame.columns[rows], "amplitude"),
        source="Andrzejak et al., Phys. Rev. E 64, 061907 (2001), and UCI data set 388, "
        "from GitHub RYH2077/EEG-Epilepsy-Datasets",
        licence="UCI CC BY 4.0; recordings free for research with citation; repository MIT",
        labels=labels.iloc[rows],
    )


def _read(path: Path) -> tuple[pd.DataFrame, pd.Series[int]]:
    """Cut all recordings, in the order of `SETS` and by number."""
    with ZipFile(path) as archive:
        texts = {
            PurePosixPath(member).stem: archive.read(member)
            for member in archive.namelist()
            if member.lower().endswith(".txt")
        }
    recordings = sorted(texts, key=lambda name: (SETS.index(name[0]), name))
    values = np.array([texts[name].split()[: PIECES * LENGTH] for name in recordings], dtype=float)
    ids = [f"{name}.{piece:02d}" for name in recordings for piece in range(1, PIECES + 1)]
    time = pd.Index(np.arange(LENGTH) / SAMPLING_RATE, name="time")
    columns = pd.Index(ids, name="id")
    frame = pd.DataFrame(values.reshape(-1, LENGTH).T, time, columns)
    return frame, pd.Series(np.repeat(list(ACTIVITIES), PER_CLASS), columns, name="y")


def _choose(per_class: int | None, seed: int | None) -> NDArray[np.int_]:
    """Positions of the wanted series."""
    if seed is not None and per_class is None:
        raise ValueError("seizure takes `seed` only with `per_class`, the number to draw")
    every = np.arange(len(SETS) * PER_CLASS)
    if per_class is None:
        return every
    rng = np.random.default_rng(seed or 0)
    drawn = [rng.choice(rows, per_class, replace=False) for rows in np.split(every, len(SETS))]
    return np.sort(np.concatenate(drawn))
