"""How the cost of one bound with its gradient grows: a table, exponents and a picture.

    python -m paper_experiments.lab.growth

Writes growth.csv and growth.svg into `paper_experiments/results`; takes a few minutes on one
processor.  Costs are processor seconds, which other work on the machine changes little; the best of
several tries.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import tensorflow as tf

import lkm_gpflow as lkm
from lkm_gpflow.gp.types import Floats
from lkm_gpflow.kernels.component import to_kernel
from lkm_gpflow.plotting.style import FORECAST_COLOUR, HISTORY_COLOUR

from . import RESULTS

LONG_ENOUGH = 0.4
"""Processor seconds of one try."""
TRIES = 3
LETTERS = {"N": "series", "D": "points", "K": "components", "S": "samples"}


@dataclass(frozen=True)
class Size:
    """N series of D points, K components, S samples."""

    N: int = 16
    D: int = 128
    K: int = 4
    S: int = 8


GROWTH = {
    ("relaxed", "N"): (4, 8, 16, 32, 64),
    ("relaxed", "D"): (32, 64, 128, 256, 512),
    ("relaxed", "K"): (1, 2, 4, 8, 12),
    ("relaxed", "S"): (2, 4, 8, 16, 32),
    ("enumerated", "N"): (16, 64, 256, 1024, 4096),
    ("enumerated", "D"): (32, 64, 128, 256, 512),
    ("enumerated", "K"): (1, 2, 3, 4, 5, 6, 7),
}
"""What is varied, and over which values; the rest stays as in `Size`."""


def bound_with_gradient(posterior: str, size: Size) -> Callable[[], object]:
    """Return the traced function that training calls."""
    X = np.linspace(0.0, 1.0, size.D)[:, None]
    Y = np.random.default_rng(0).normal(size=(size.D, size.N))
    kernels = [
        to_kernel(lkm.parse(f"1.0 x SE(lengthscale={0.02 * 1.6**k:.4f})")) for k in range(size.K)
    ]
    relaxed = posterior == "relaxed"
    chosen = lkm.RelaxedPosterior(size.S) if relaxed else lkm.EnumeratedPosterior()
    model = lkm.LKM((X, Y), kernels, posterior=chosen, noise_variance=0.1)
    variables = model.trainable_variables

    @tf.function(autograph=False)
    def run() -> object:
        with tf.GradientTape() as tape:
            value = model.elbo()
        return value, tape.gradient(value, variables)

    return run


def processor_seconds(run: Callable[[], object]) -> float:
    """Return the processor seconds of one call, the least of several tries."""
    run()
    best, calls = np.inf, 1
    for _ in range(TRIES):
        while True:
            began = time.process_time()
            for _ in range(calls):
                run()
            spent = time.process_time() - began
            if spent >= LONG_ENOUGH or calls >= 1000:
                break
            calls = min(1000, max(2 * calls, int(1.2 * calls * LONG_ENOUGH / max(spent, 1e-3))))
        best = min(best, spent / calls)
    return best


def measured() -> pd.DataFrame:
    """One row a measurement: posterior, varied, N, D, K, S, seconds."""
    rows = []
    for (posterior, letter), values in GROWTH.items():
        for value in values:
            size = replace(Size(), **{letter: value})
            seconds = processor_seconds(bound_with_gradient(posterior, size))
            rows.append({"posterior": posterior, "varied": letter, **vars(size),
                         "seconds": seconds})  # fmt: skip
            print(f"{posterior:10s} {letter} = {value:5d}: {1e3 * seconds:9.3f} ms", flush=True)
    return pd.DataFrame(rows)


def _varied(table: pd.DataFrame, posterior: str, letter: str) -> pd.DataFrame:
    """Rows of the table in which this letter was varied."""
    return table[(table["posterior"] == posterior) & (table["varied"] == letter)]


def exponent(x: Floats, seconds: Floats) -> float:
    """Return the slope of log seconds over log x, over the last three values."""
    return float(np.polyfit(np.log(x[-3:]), np.log(seconds[-3:]), 1)[0])


def law(posterior: str, letter: str, x: Floats, seconds: Floats) -> str:
    """Return the law of growth between the largest values."""
    if (posterior, letter) == ("enumerated", "K"):  # a sum over 2^K configurations
        return f"2^({exponent(2.0**x, seconds):.2f} K)"
    return f"{letter}^{exponent(x, seconds):.2f}"


def laws(table: pd.DataFrame) -> pd.DataFrame:
    """Laws of growth, posteriors x letters; empty where a letter does not matter."""
    found = {
        (posterior, letter): law(
            posterior, letter, rows[letter].to_numpy(float), rows["seconds"].to_numpy()
        )
        for posterior, letter in GROWTH
        for rows in [_varied(table, posterior, letter)]
    }
    return pd.Series(found).unstack().reindex(columns=list(LETTERS)).fillna("")


def draw(table: pd.DataFrame) -> None:
    """Draw a panel a letter, both axes logarithmic."""
    figure, panels = plt.subplots(1, 4, figsize=(12, 3.2), layout="constrained", sharey=True)
    colours = {"relaxed": FORECAST_COLOUR, "enumerated": HISTORY_COLOUR}
    found = laws(table)
    for ax, (letter, what) in zip(panels, LETTERS.items(), strict=True):
        for posterior in sorted(posterior for posterior, varied in GROWTH if varied == letter):
            rows = _varied(table, posterior, letter)
            label = f"{posterior}: " + str(found.loc[posterior, letter])
            ax.plot(
                rows[letter], 1e3 * rows["seconds"], "o-", color=colours[posterior], label=label
            )
        ax.set_xscale("log", base=2)
        ax.set_yscale("log")
        ax.set_xlabel(f"{letter}, {what}")
        fixed = ", ".join(f"{k} = {v}" for k, v in vars(Size()).items() if k != letter)
        ax.set_title(fixed, fontsize=9)
        ax.grid(visible=True, which="major", linewidth=0.3)
        ax.legend(fontsize=8, frameon=False)
    panels[0].set_ylabel("one bound with gradient,\nprocessor milliseconds")
    # Text as text, and the same file for the same numbers.
    with plt.rc_context({"svg.fonttype": "none", "svg.hashsalt": "growth"}):
        figure.savefig(RESULTS / "growth.svg", metadata={"Date": None})


def main() -> None:
    """Measure, write, draw."""
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    began = time.process_time()
    table = measured()
    table.to_csv(RESULTS / "growth.csv", index=False, float_format="%.4g")
    draw(table)
    print(laws(table).to_string())
    print(f"{time.process_time() - began:.0f} processor seconds")


if __name__ == "__main__":
    main()
