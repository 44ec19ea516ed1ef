"""Where notebooks and results are, for the command line and for the notebooks themselves."""

from __future__ import annotations

import os
from pathlib import Path

RESULTS_VARIABLE = "LKM_GPFLOW_RESULTS"
"""The environment variable by which the runner tells its notebooks where results are: those that
aggregate are given a folder of the results that they aggregate alone."""

_NAME = "paper_experiments"


def notebooks_folder() -> Path:
    """Return the folder ``paper_experiments`` of the clone one works in.

    It is looked for beside the working folder, which is where notebooks run in an editor, in the
    working folder, and beside the package (an editable installation).

    Raises
    ------
    ValueError
        If it is in none of these places.
    """
    here = Path.cwd()
    beside = Path(__file__).resolve().parents[2] / _NAME
    for folder in (here.parent / _NAME, here / _NAME, beside):
        if any(folder.glob("*.ipynb")):
            return folder
    raise ValueError(
        f"expected the folder {_NAME} with its notebooks in the working folder, got {here}: the "
        "notebooks are in the repository, run this in a clone of it"
    )


def results_folder() -> Path:
    """Return where results are: what the environment says, or ``results`` beside the notebooks."""
    named = os.environ.get(RESULTS_VARIABLE)
    return Path(named) if named else notebooks_folder() / "results"
