"""Run the paper's notebooks, as far as a profile of `experiments.yml` is not done yet.

::

    results/runs.jsonl          one record a run, written when it ends; the last of an id counts
    results/executed/ID.ipynb   the notebooks as they were run, those that failed too
    results/results.html        tables and figures of all

Workers (processes of this machine, or a Dask cluster that sees the same folders) run notebooks;
this process alone writes records.  It may be killed at any time: the same call goes on.
"""

from __future__ import annotations

import ast
import hashlib
import itertools
import json
import math
import os
import platform
import re
import subprocess
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from fnmatch import fnmatchcase
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
import yaml
from threadpoolctl import threadpool_info

from lkm_gpflow import datasets
from lkm_gpflow.runtime.executors import as_finished, kept_in
from lkm_gpflow.runtime.journal import Journal
from lkm_gpflow.runtime.replacing import replacing

FOLDER = Path(__file__).parents[1]
"""Of the notebooks."""

PLAN = Path(__file__).with_name("experiments.yml")
PROFILES = ("smoke", "quick", "paper")
MIME_TYPE = "application/vnd.lkm-gpflow.scores+json"
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
_PACKAGES = (
    "lkm_gpflow", "gpflow", "tensorflow", "tensorflow-probability", "tf-keras", "numpy", "scipy",
    "pandas", "scikit-learn", "statsmodels", "statsforecast", "papermill",
)  # fmt: skip

Record = dict[str, Any]
State = Literal["done", "failed", "stale", "missing"]


# --- the plan ---


@dataclass(frozen=True)
class Run:
    """One notebook with one set of parameters; `reads` are experiments whose records it uses.

    What it computes is told by `code`, see `code_of`; earlier ones in `same` gave the same scores.
    """

    experiment: str
    artefact: str
    notebook: str
    parameters: Mapping[str, Any]
    data: tuple[str, ...]
    reads: tuple[str, ...]
    minutes: float
    version: int
    code: str
    same: tuple[str, ...]

    @property
    def id(self) -> str:
        """The experiment, then the values of the parameters; also the name of a file."""
        parts = [v if isinstance(v, str) else f"{k}-{v}" for k, v in self.parameters.items()]
        name = re.sub(r"[^\w.-]+", "-", "_".join(parts)).strip("-.")
        return f"{self.experiment}/{name}" if name else self.experiment


def read_plan(profile: str, only: Sequence[str] = (), file: Path = PLAN) -> list[Run]:
    """Return the runs of a profile, in the order of the file.

    `only` has ids of experiments or of runs, or patterns such as ``extrapolation/gonu*``.

    Raises
    ------
    ValueError
        If there is no such profile, or an id stands for no run of it.
    """
    if profile not in PROFILES:
        raise ValueError(f"expected a profile among {', '.join(PROFILES)}, got {profile!r}")
    runs = []
    for entry in yaml.safe_load(file.read_text(encoding="utf-8")):
        version = entry.get("version", 1)
        code = code_of((file.parents[1] / entry["notebook"]).read_bytes(), version)
        for grid in entry["runs"].get(profile, ()):
            axes = {k: v if isinstance(v, list) else [v] for k, v in grid.get("grid", {}).items()}
            for point in itertools.product(*axes.values()):
                parameters = dict(zip(axes, point, strict=True))
                data = [parameters["dataset"]] if "dataset" in axes else entry.get("data", [])
                runs.append(
                    Run(
                        entry["id"], entry["artefact"], entry["notebook"], parameters, tuple(data),
                        tuple(entry.get("reads", ())), float(grid["minutes"]),
                        version, code, tuple(entry.get("same", ())),
                    )
                )  # fmt: skip
    for pattern in only:
        if not any(_matches(run, pattern) for run in runs):
            known = ", ".join(dict.fromkeys(run.experiment for run in runs))
            raise ValueError(
                f"expected ids of profile {profile!r}, got {pattern!r}: its experiments are "
                f"{known}, and `lkm-gpflow status --profile {profile} --runs` lists all ids"
            )
    return [run for run in runs if not only or any(_matches(run, p) for p in only)]


def _matches(run: Run, pattern: str) -> bool:
    return fnmatchcase(run.experiment, pattern) or fnmatchcase(run.id, pattern)


# --- records ---


def read_records(results: Path) -> dict[str, Record]:
    """Return the last record of every run, by id; there may be no file yet."""
    path = results / "runs.jsonl"
    return {r["id"]: r for r in Journal(path, "runs", {}).records} if path.exists() else {}


def state(run: Run, records: Mapping[str, Record]) -> State:
    """Return how a run stands; it is stale if its notebook, or what it reads, is not as it was."""
    record = records.get(run.id)
    if record is None or record["parameters"] != dict(run.parameters):
        return "missing"
    if record["error"]:
        return "failed"
    is_fresh = record.get("code") in (run.code, *run.same)
    return "done" if is_fresh and record["inputs"] == inputs_of(run, records) else "stale"


def code_of(notebook: bytes, version: int) -> str:
    """Hash what a notebook computes: its code cells, and a number for all that they call.

    Prose and outputs do not count.  A change of the package or the lab that changes scores counts
    when the plan raises the number.
    """
    cells = json.loads(notebook)["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return hashlib.sha256(json.dumps([version, *code]).encode()).hexdigest()[:16]


def inputs_of(run: Run, records: Mapping[str, Record]) -> str:
    """Hash the scores that a run reads: those of equal parameters, as far as both have them."""
    read = {
        id_: record["scores"]
        for id_, record in sorted(records.items())
        if record["experiment"] in run.reads
        and not record["error"]
        and all(record["parameters"].get(k, v) == v for k, v in run.parameters.items())
    }
    return (
        hashlib.sha256(json.dumps(read, sort_keys=True).encode()).hexdigest() if run.reads else ""
    )


def report_scores(scores: Mapping[str, Any]) -> None:
    """Show the scores of a notebook, in a form that the runner reads.

    By convention ``holds`` says whether the paper's claim holds.  Numbers are rounded to six
    digits, so that a notebook reports the same on processors that round differently.

    Raises
    ------
    ValueError
        If a value is no finite number, text or truth.
    """
    from IPython.display import display  # only notebooks have it

    plain: dict[str, Any] = {}
    for name, value in scores.items():
        value = value.item() if isinstance(value, np.generic) else value
        if not isinstance(value, str | int | float | bool):
            raise ValueError(f"expected {name} to be a number, text or truth, got {value!r}")
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"expected {name} to be finite, got {value!r}")
        plain[name] = float(f"{value:.6g}") if isinstance(value, float) else value
    width = max(map(len, plain), default=0)
    lines = [
        f"{name:<{width}}  {value:.6g}" if isinstance(value, float) else f"{name:<{width}}  {value}"
        for name, value in plain.items()
    ]
    display({"text/plain": "\n".join(lines), MIME_TYPE: plain}, raw=True)


def table_checksum(frame: pd.DataFrame) -> str:
    """SHA-256 of a table: names, times and values to the last digit."""
    return hashlib.sha256(frame.to_csv(float_format="%.17g").encode()).hexdigest()


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _processor() -> str:
    """Return its family and model, or what the platform calls it."""
    path = Path("/proc/cpuinfo")
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    names = ("vendor_id", "cpu family", "model", "model name")
    told = [re.search(rf"^{name}\s*: (.+)$", text, re.MULTILINE) for name in names]
    found = ", ".join(match[1] for match in told if match)
    return found or platform.processor() or platform.machine()


def _blas() -> list[str]:
    """Return each library of linear algebra, and the processor that it takes this one for."""
    names = ("internal_api", "version", "architecture")
    told = [each for each in threadpool_info() if each["user_api"] == "blas"]
    return sorted({" ".join(str(each.get(name)) for name in names) for each in told})


def _commit(folder: Path) -> str:
    """Return the commit, with "changed" after it if code differs; empty outside of a repository."""
    git = ["git", "-C", str(folder)]
    try:
        head = subprocess.check_output(
            [*git, "rev-parse", "HEAD"], text=True, stderr=subprocess.DEVNULL
        ).strip()
        code = ["--untracked-files=no", "--", ":/*.py", ":/*.ipynb"]
        changed = subprocess.check_output([*git, "status", "--porcelain", *code])
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f"{head} changed" if changed else head


# --- running ---


def execute(run: Run, folder: Path, results: Path, inputs: str) -> Record:
    """Run one notebook, in a worker, and return its record; what fails is in its ``error``."""
    began = time.perf_counter()
    output = results / "executed" / f"{run.id}.ipynb"
    scores: dict[str, Any] = {}
    data: dict[str, str] = {}
    error = code = ""
    try:
        data = {name: table_checksum(datasets.load(name).frame) for name in run.data}
        text = (folder / run.notebook).read_bytes()
        code = code_of(text, run.version)
        known = parameters_of(json.loads(text))
        if unknown := [name for name in run.parameters if name not in known]:
            raise ValueError(
                f"{run.notebook}: expected parameters among {known} (its cell tagged "
                f"'parameters'), got {unknown}"
            )
        output.parent.mkdir(parents=True, exist_ok=True)
        read = {"results": str(results)} if run.reads else {}
        _papermill(folder / run.notebook, output, {**run.parameters, **read})
        scores = _reported(json.loads(output.read_text(encoding="utf-8")))
    except Exception:
        error = re.sub(r"\x1b\[[0-9;]*m", "", traceback.format_exc()).strip()
    return {
        "id": run.id,
        "experiment": run.experiment,
        "notebook": run.notebook,
        "code": code,
        "parameters": dict(run.parameters),
        "inputs": inputs,
        "data": data,
        "scores": scores,
        "seconds": round(time.perf_counter() - began, 3),
        "error": error,
        "versions": _versions(),
        "processor": f"{os.cpu_count()} x {_processor()}",
        "blas": _blas(),
        "commit": _commit(folder),
        "finished": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }


def _papermill(notebook: Path, output: Path, parameters: Mapping[str, Any]) -> None:
    """Execute a notebook in a kernel of its own, which ends when this process does."""
    import papermill
    from traitlets.config import Config

    os.environ.pop("MPLBACKEND", None)  # or the notebook shows no pictures
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if (clone := str(FOLDER.parent)) not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [clone, *paths]))
    with tempfile.TemporaryDirectory(prefix="kernel-") as sockets:
        # Two kernels that start at the same time can choose the same port of TCP.
        connection = {} if os.name == "nt" else {"transport": "ipc", "ip": f"{sockets}/socket"}
        # Papermill's own `cwd` moves the whole process, and with it the notebooks of other threads.
        papermill.execute_notebook(
            str(notebook), str(output), parameters=dict(parameters), kernel_name="python3",
            language="python", progress_bar=False, start_timeout=600,
            resources={"metadata": {"path": str(notebook.parent)}},
            config=Config(KernelManager=connection),
        )  # fmt: skip


def parameters_of(notebook: Mapping[str, Any]) -> list[str]:
    """Names that the cell tagged ``parameters`` gives values to."""
    names = []
    for cell in notebook["cells"]:
        if "parameters" in cell.get("metadata", {}).get("tags", []):
            for statement in ast.parse("".join(cell["source"])).body:
                targets = getattr(statement, "targets", [getattr(statement, "target", None)])
                names += [target.id for target in targets if isinstance(target, ast.Name)]
    return names


def _reported(notebook: Mapping[str, Any]) -> dict[str, Any]:
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", [])]
    found = [output.get("data", {}).get(MIME_TYPE, {}) for output in outputs]
    return {name: value for each in found for name, value in each.items()}


@contextmanager
def dask_executor(address: str) -> Iterator[Executor]:
    """Run on a Dask cluster, whose workers see the same folders under the same names.

    Raises
    ------
    ValueError
        If Dask is not installed, or no scheduler answers at the address.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise ValueError("--scheduler needs Dask: pip install '.[scale]' in the clone") from error
    try:
        # As the default, even a client that got no answer would serve the whole process.
        client: Any = Client(address, timeout="10s", set_as_default=False)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"expected the address of a Dask scheduler such as tcp://host:8786, got {address!r} "
            f"({error})"
        ) from error
    try:
        yield client.get_executor(pure=False)
    finally:
        client.close()


def reproduce(
    runs: Sequence[Run],
    results: Path,
    executor: Executor,
    *,
    folder: Path = FOLDER,
    force: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, str]:
    """Execute runs that are not done, those that read others after them.

    Returns
    -------
    By id "done", "failed" or "there".

    Raises
    ------
    WorkersLost
        If a scheduler goes away; what is finished is kept.
    """
    results.mkdir(parents=True, exist_ok=True)
    journal = Journal(results / "runs.jsonl", "runs", {})
    records = {record["id"]: record for record in journal.records}
    states: dict[str, str] = {}
    began, left = time.monotonic(), sum(run.minutes for run in runs)
    with kept_in(results, "results"):
        for reading in (False, True):
            todo = {}
            for run in [run for run in runs if bool(run.reads) == reading]:
                if not force and state(run, records) == "done":
                    states[run.id], left = "there", left - run.minutes
                else:
                    inputs = inputs_of(run, records)
                    todo[executor.submit(execute, run, folder, results, inputs)] = run
            ran = 0.0
            for future in as_finished(todo, executor):
                run = todo[future]
                # `execute` itself does not raise: its worker died.
                lost = future.exception()
                record = future.result() if lost is None else _lost(run, records, repr(lost))
                journal.append(record)
                records[run.id] = record
                states[run.id] = "failed" if record["error"] else "done"
                ran, left = ran + run.minutes, left - run.minutes
                minutes = (time.monotonic() - began) * left / max(ran, 1e-9) / 60.0
                what = last_line(record["error"]) or f"{record['seconds']:.0f} s"
                say(
                    f"[{len(states)}/{len(runs)}] {run.id} {states[run.id]}: {what}; "
                    f"about {minutes:.0f} min left"
                )
    return states


def _lost(run: Run, records: Mapping[str, Record], error: str) -> Record:
    return {
        "id": run.id, "experiment": run.experiment, "notebook": run.notebook,
        "parameters": dict(run.parameters), "inputs": inputs_of(run, records), "scores": {},
        "seconds": 0.0, "error": f"its worker was lost: {error}",
        "finished": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }  # fmt: skip


def last_line(error: str) -> str:
    """Return what an error says, without the way to it."""
    return error.strip().splitlines()[-1] if error.strip() else ""


# --- how things stand ---


def overview(runs: Sequence[Run], records: Mapping[str, Record], profile: str) -> pd.DataFrame:
    """One row an experiment: what it is, counts of runs, minutes, and whether its claim holds.

    Minutes taken are processor time where a notebook tells it, else by the clock; minutes left are
    those expected on one processor.
    """
    rows = {}
    for experiment in dict.fromkeys(run.experiment for run in runs):
        own = [run for run in runs if run.experiment == experiment]
        states = [state(run, records) for run in own]
        done = [records[run.id] for run, s in zip(own, states, strict=True) if s == "done"]
        taken = [r["scores"].get("processor_seconds", r["seconds"]) / 60.0 for r in done]
        held = [bool(r["scores"]["holds"]) for r in done if "holds" in r["scores"]]
        if "failed" in states:
            verdict = "failed"
        elif "stale" in states:
            verdict = "stale"
        elif "missing" in states:
            verdict = "not complete" if done else "not run"
        elif not held:
            verdict = "no claim"
        else:
            missed = f"does not hold in {held.count(False)} of {len(held)} runs"
            verdict = "holds" if all(held) else missed
        rows[experiment] = {
            "artefact": own[0].artefact,
            "notebook": own[0].notebook,
            "command": f"lkm-gpflow reproduce --profile {profile} --only {experiment}",
            "done": len(done),
            **{each: states.count(each) for each in get_args(State)[1:]},
            "minutes": f"{sum(taken):.1f}" if done else "-",
            "minutes left": round(
                sum(run.minutes for run, s in zip(own, states, strict=True) if s != "done"), 1
            ),
            "paper's claim": verdict,
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("experiment")


_ARTEFACTS = ["artefact", "notebook", "command", "minutes", "paper's claim"]


def with_results(page: str, table: pd.DataFrame) -> str:
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
    shown = table[_ARTEFACTS].assign(
        notebook=[f"[{name}]({name})" for name in table["notebook"]],
        command=[f"`{command}`" for command in table["command"]],
    )
    rows = [_ARTEFACTS, ["---"] * len(_ARTEFACTS), *shown.to_numpy().tolist()]
    lines = "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows)
    return f"{before}{BEGIN}\n{lines}\n{END}{after}"


def write_page(runs: Sequence[Run], results: Path, profile: str) -> Path:
    """Write ``results.html``: the executed notebooks without their code, after a table of runs.

    Experiments that others read, run with many parameters, are in the table alone.
    """
    import nbformat
    from nbconvert import HTMLExporter

    records = read_records(results)
    markdown = nbformat.v4.new_markdown_cell
    table = overview(runs, records, profile)[_ARTEFACTS].to_html(index=False, border=0)
    page = nbformat.v4.new_notebook(metadata={"title": f"Results, profile {profile}"})
    page.cells = [markdown(f"# Results, profile {profile}\n\n{table}")]
    read = {name for run in runs for name in run.reads}
    # What reads others comes first: it is the table of the paper.
    for run in sorted(runs, key=lambda run: not run.reads):
        standing = state(run, records)
        if standing != "done":
            error = last_line(records.get(run.id, {}).get("error", ""))
            page.cells.append(markdown(f"**{standing}**: `{run.id}` {error}"))
        elif run.experiment not in read:
            page.cells.append(markdown(f"---\n\n`{run.id}`"))
            page.cells += _shown(results / "executed" / f"{run.id}.ipynb")
    for number, cell in enumerate(page.cells):
        cell.id = f"cell-{number}"  # they come from several notebooks
    exporter = HTMLExporter(exclude_input=True, embed_images=True)
    html, _ = exporter.from_notebook_node(page, {"metadata": {"name": page.metadata["title"]}})
    path = results / "results.html"
    with replacing(path) as unfinished:
        unfinished.write_text(html, encoding="utf-8")
    return path


def _shown(path: Path) -> list[Any]:
    """Prose, and outputs other than noise; the page is made of what can be read."""
    import nbformat

    try:
        cells = nbformat.read(path, as_version=4).cells
    except (OSError, ValueError, KeyError, TypeError, AttributeError, nbformat.ValidationError):
        return [nbformat.v4.new_markdown_cell("Its executed notebook is not here.")]
    for cell in cells:
        if cell.cell_type == "code":
            cell.outputs = [o for o in cell.outputs if o.get("name") != "stderr"]
    return [cell for cell in cells if cell.cell_type != "code" or cell.outputs]
