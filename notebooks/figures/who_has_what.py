"""Draw who_has_what.png, the picture of README.md: eight series, and what each has.

`python notebooks/figures/who_has_what.py`; the fits are those of ledgers/demo.jsonl.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from textwrap import fill

import matplotlib.pyplot as plt

import lkm_gpflow as lkm
from lkm_gpflow.plotting import plot_forecast

HERE = Path(__file__).parent
SHADES = {"has": "#0072B2", "perhaps": "#9CC7E3", "cannot be told": "#EDEDED", "has not": "white"}
HORIZON = 12


def discovered() -> lkm.Discovery:
    """Return what `discover` finds, from the fits that are kept beside the notebooks."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = shutil.copy(HERE.parent / "ledgers" / "demo.jsonl", folder)
        frame = lkm.datasets.load("demo").frame
        return lkm.discover(frame, ledger=ledger, progress=False)


def draw(found: lkm.Discovery) -> plt.Figure:
    """Draw a row for each series: its forecast, then a cell for each pattern that one has."""
    names, told = list(found.table.frame.columns), found.patterns()
    likely = told["verdict"].isin(["has", "perhaps"]).groupby(level="pattern", sort=False).any()
    patterns = list(likely.index[likely])
    figure, axes = plt.subplots(
        len(names), 1 + len(patterns), figsize=(10.5, 6.4), layout="constrained",
        gridspec_kw={"width_ratios": [3.2] + [1] * len(patterns)},
    )  # fmt: skip
    for row, name in zip(axes, names, strict=True):
        plot_forecast(found, name, HORIZON, row[0])
        row[0].set(title="", xlabel="", ylabel="", yticks=[])
        row[0].set_ylabel(name, rotation=0, ha="right", va="center", fontsize=12)
        row[0].spines[:].set_visible(False)
        if legend := row[0].get_legend():
            legend.remove()
        if name != names[-1]:
            row[0].tick_params(bottom=False, labelbottom=False)
        for ax, pattern in zip(row[1:], patterns, strict=True):
            claim = told.loc[(pattern, name)]
            ax.set(xticks=[], yticks=[], facecolor=SHADES[claim["verdict"]])
            ax.spines[:].set_color("#BBBBBB")
            text = f"{claim['verdict']}\n{claim['probability']:.2f}"
            colour = "white" if claim["verdict"] == "has" else "#333333"
            ax.text(
                0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", color=colour,
                fontsize=9,
            )  # fmt: skip
    axes[0, 0].set_title("history, forecast, 90% interval", fontsize=11)
    for ax, pattern in zip(axes[0, 1:], patterns, strict=True):
        ax.set_title(fill(pattern, 14), fontsize=11)
    return figure


if __name__ == "__main__":
    draw(discovered()).savefig(HERE / "who_has_what.png", dpi=150)
