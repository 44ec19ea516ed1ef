"""How a notebook reports its scores: in an output, so that any tool may run it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from .profiles import Scalar

MIME_TYPE = "application/vnd.lkm-gpflow.scores+json"


def report_scores(scores: Mapping[str, Any]) -> None:
    """Show the scores of a notebook, in a form that `lkm-gpflow reproduce` reads.

    By convention ``holds`` says whether the paper's claim holds, and ``seconds`` how long the
    method took.  Numbers are rounded to six digits, so that a notebook reports the same on
    processors that round differently.  A notebook may report several times; of a name that is
    reported again the last value counts.

    Parameters
    ----------
    scores
        Numbers, texts, true or false, by name.

    Raises
    ------
    ValueError
        If a value is something else or not finite.
    """
    from IPython.display import display  # only notebooks have it

    plain: dict[str, Scalar] = {}
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


def reported_scores(notebook: Mapping[str, Any]) -> dict[str, Scalar]:
    """Scores that an executed notebook has reported, later ones over earlier ones."""
    scores: dict[str, Scalar] = {}
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            scores.update(output.get("data", {}).get(MIME_TYPE, {}))
    return scores
