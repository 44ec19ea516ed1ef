"""What a step on a minibatch costs: measured, fitted, checked at sizes that were not fitted.

Run alone: ``python tests/benchmarks/minibatch_cost.py``.  Processor seconds, which do not depend on
what else the machine does.  One thread (set TF_NUM_INTRAOP_THREADS and OMP_NUM_THREADS to 1) makes
them comparable.
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
from scipy.optimize import nnls

import lkm_gpflow as lkm
from lkm_gpflow.kernels.component import ComponentKernel, to_kernel

FITTED = ((50, 64, 6), (50, 512, 6), (100, 256, 6), (200, 64, 6), (200, 512, 6), (200, 256, 4))
CHECKED = ((200, 256, 6), (150, 256, 6), (100, 512, 5))
PLAN = {"N": 1_000_000, "D": 200, "K": 6, "learning": (256, 500), "look-up": (1024, 1)}


def six_kernels(num_components: int = 6) -> list[ComponentKernel]:
    texts = [
        "1.0 x SE(lengthscale=0.2)",
        "0.5 x SE(lengthscale=0.02)",
        "1.0 x PER(period=0.3, lengthscale=1.0)",
        "0.5 x PER(period=0.05, lengthscale=0.6)",
        "1.0 x LIN(location=0.5)",
        "1.0 x RW(start=-0.01)",
    ]
    return [to_kernel(lkm.parse(text)) for text in texts[:num_components]]


def measured(D: int, B: int, K: int, posterior: str) -> float:
    """Processor seconds of a step of learning, the median of six."""
    rng, times = np.random.default_rng(0), []
    batch = np.linspace(0.0, 1.0, D)[:, None], 0.1 * rng.normal(size=(D, B)).cumsum(axis=0)
    lkm.learn_by_minibatches(
        lkm.MinibatchLKM(six_kernels(K), 10**6, posterior=posterior),  # type: ignore[arg-type]
        [batch],
        lkm.MinibatchSettings(num_steps=7),
        callback=lambda number, model: times.append(time.process_time()),
    )
    return float(np.median(np.diff(times)))


def terms(D: int, B: int, K: int) -> list[float]:
    """Of the cost model: a step, its decompositions, what is done for each value of the batch."""
    return [1.0, 2.0**K * D**3, 2.0**K * B * D]


def main() -> None:
    for posterior in ("enumerated", "relaxed"):
        rows = {size: measured(*size, posterior) for size in (*FITTED, *CHECKED)}
        weights = 1.0 / np.array([rows[size] for size in FITTED])  # relative errors count
        A = np.array([terms(*size) for size in FITTED]) * weights[:, None]
        c, _ = nnls(A, np.ones(len(FITTED)))
        table = pd.DataFrame(
            [
                (*size, "fitted" if size in FITTED else "checked", seconds, float(c @ terms(*size)))
                for size, seconds in rows.items()
            ],
            columns=["D", "B", "K", "", "seconds", "model"],
        )
        table["model / seconds"] = table["model"] / table["seconds"]
        print(f"\n{posterior}: c0, c3, c1 = {', '.join(f'{value:.2g}' for value in c)}")
        print(table.round(3).to_string(index=False))
        D, K = PLAN["D"], PLAN["K"]
        B, steps = PLAN["learning"]
        learning = steps * (c @ terms(D, B, K))
        B, passes = PLAN["look-up"]
        look_up = passes * PLAN["N"] / B * (c @ terms(D, B, K))
        print(f"1 million series of {D}: {learning:.0f} s to learn, at most {look_up:.0f} s a pass")


if __name__ == "__main__":
    main()
