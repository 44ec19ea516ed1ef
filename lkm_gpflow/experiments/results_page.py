"""``results.html``: the tables and figures of all executed notebooks in one file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .overview import Progress, artefacts
from .store import Store


def results_html(progress: Sequence[Progress], profile: str, store: Store) -> str:
    """Join the executed notebooks, without their code, after a table of what was run.

    Pictures are in the file; formulas are set by MathJax, which a browser fetches.

    Parameters
    ----------
    progress
        See `progress_of`.  Experiments that are run with several parameters, whose results others
        aggregate, are in the table alone.
    profile
        Its name, for the heading.
    store
        Where the executed notebooks are.
    """
    import nbformat
    from nbconvert import HTMLExporter

    page = nbformat.v4.new_notebook()
    page.metadata["title"] = f"Results, profile {profile}"
    page.cells = [_markdown(_summary(progress, profile))]
    aggregated = {name for each in progress for run in _runs(each) for name in run.reads}
    # What aggregates comes first: it is the table of the paper.
    for each in sorted(progress, key=lambda each: not any(run.reads for run in _runs(each))):
        if each.experiment.id in aggregated:
            continue
        for run, _ in each.done:
            page.cells += _shown(store.executed_path(run.id), run.id)
    for number, cell in enumerate(page.cells):
        cell.id = f"cell-{number}"  # they come from several notebooks
    exporter = HTMLExporter(exclude_input=True, embed_images=True)
    html, _ = exporter.from_notebook_node(page, {"metadata": {"name": page.metadata["title"]}})
    return str(html)


def _runs(progress: Progress) -> list[Any]:
    return [run for run, _ in (*progress.done, *progress.failed)] + list(progress.missing)


def _summary(progress: Sequence[Progress], profile: str) -> str:
    table = artefacts(progress, profile).to_html(index=False, border=0)
    failed = [f"- {run.id}: {_last(r.error)}" for each in progress for run, r in each.failed]
    missing = [f"- {run.id}" for each in progress for run in each.missing]
    parts = [f"# Results, profile {profile}", table]
    parts += ["**Failed**", "\n".join(failed)] if failed else []
    parts += ["**Missing**", "\n".join(missing)] if missing else []
    return "\n\n".join(parts)


def _last(error: str) -> str:
    return error.strip().splitlines()[-1]


def _markdown(text: str) -> Any:
    import nbformat

    return nbformat.v4.new_markdown_cell(text)


def _shown(path: Path, run_id: str) -> list[Any]:
    """Prose, and outputs other than noise, under the name of the run."""
    import nbformat

    try:
        cells = nbformat.read(path, as_version=4).cells
    except (OSError, ValueError, KeyError, TypeError, AttributeError, nbformat.ValidationError):
        # Elsewhere, or damaged: the page is made of the others.
        return [_markdown(f"# {run_id}\n\nIts executed notebook is not here or cannot be read.")]
    shown = [_markdown(f"---\n\n`{run_id}`")]
    for cell in cells:
        if cell.cell_type == "code":
            cell.outputs = [o for o in cell.outputs if o.get("name") != "stderr"]
            if not cell.outputs:
                continue
        shown.append(cell)
    return shown
