"""Experiments that take a second each: notebooks that square a number."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import nbformat

from lkm_gpflow.experiments.profiles import Plan, read_plan
from lkm_gpflow.experiments.scores import MIME_TYPE

SQUARE = f"""\
import os, time
from IPython.display import display

with open("started.log", "a") as log:
    log.write(f"{{x}} {{os.getpid()}}\\n")
time.sleep(PAUSE)
display({{"text/plain": "", {MIME_TYPE!r}: {{"square": x * x, "holds": x < 3}}}}, raw=True)
"""


def write_notebook(path: Path, code: str, parameters: str = "x = 0") -> None:
    """A notebook with a cell of parameters and one of code."""
    notebook = nbformat.v4.new_notebook()
    notebook.metadata["kernelspec"] = {"display_name": "Python 3", "name": "python3"}
    first = nbformat.v4.new_code_cell(parameters)
    first.metadata["tags"] = ["parameters"]
    title = nbformat.v4.new_markdown_cell("# A square")
    notebook.cells = [title, first, nbformat.v4.new_code_cell(code)]
    nbformat.write(notebook, path)


def write_squares(
    folder: Path, numbers: Sequence[int], code: str = SQUARE, pause: float = 0.0, more: str = ""
) -> Plan:
    """Experiment "square" with one run a number; `more` is YAML of further experiments."""
    folder.mkdir(parents=True, exist_ok=True)
    write_notebook(folder / "square.ipynb", code.replace("PAUSE", str(pause)))
    (folder / "experiments.yml").write_text(
        "- id: square\n  artefact: Squares\n  notebook: square.ipynb\n"
        f"  runs:\n    smoke:\n      - minutes: 0.1\n        grid: {{x: {list(numbers)}}}\n" + more,
        encoding="utf-8",
    )
    return read_plan(folder / "experiments.yml")


def started(folder: Path) -> list[int]:
    """Numbers whose notebook was started, in order."""
    return [x for x, _ in _log(folder)]


def kernels(folder: Path) -> list[int]:
    """Process ids of the notebooks that were started."""
    return [pid for _, pid in _log(folder)]


def _log(folder: Path) -> list[tuple[int, int]]:
    log = folder / "started.log"
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    return [(int(x), int(pid)) for x, pid in (line.split() for line in lines)]
