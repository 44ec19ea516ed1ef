"""``results.html``: the tables and figures of all executed notebooks in one file."""

from __future__ import annotations

from collections.abc import Sequence
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
            path = store.executed_path(run.id)
            if path.exists():
                page.cells += _shown(nbformat.read(path, as_version=4).cells, run.id)
            else:
                page.cells.append(
                    _markdown(f"# {run.id}\n\nIts notebook was executed elsewhere and is not here.")
                )
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


def _shown(cells: Sequence[Any], run_id: str) -> list[Any]:
    """Prose, and outputs other than noise, under the name of the run."""
    shown = [_markdown(f"---\n\n`{run_id}`")]
    for cell in cells:
        if cell.cell_type == "code":
            cell.outputs = [o for o in cell.outputs if o.get("name") != "stderr"]
            if not cell.outputs:
                continue
        shown.append(cell)
    return shown
