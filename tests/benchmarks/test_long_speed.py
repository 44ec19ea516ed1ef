"""Long series: what the sparse bound costs (`paper_experiments.lab.growth` has the exact one).

Processor seconds of one thread, each in a process of its own; several minutes in all.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pandas as pd
import psutil
from long_series import measure
from small import made_by_hand

import lkm_gpflow as lkm
from lkm_gpflow.gp.lowrank import Features
from lkm_gpflow.kernels.component import to_kernel
from lkm_gpflow.model.sparse import place_inducing

Figure = Callable[[str, float, float], None]


def test_sparse_cost_grows_in_proportion(figure: Figure) -> None:
    few, many = measure("sparse", 4000), measure("sparse", 20_000)
    figure("sparse bound, D = 20,000, processor seconds", many["seconds"], 5.0)
    figure("sparse bound, D = 20,000 / D = 4,000", many["seconds"] / few["seconds"], 7.0)
    figure("sparse bound, D = 20,000, GB", many["gigabytes"], 2.0)
    exact, sparse = measure("relaxed", 1600), measure("sparse", 1600)
    figure("sparse / exact bound, D = 1,600", sparse["seconds"] / exact["seconds"], 0.2)


def test_20000_points_of_four_series_are_fitted_in_ten_minutes(figure: Figure) -> None:
    """From perturbed kernels, all series with their planted rows of Z."""
    D, rng = 20_000, np.random.default_rng(0)
    planted = [
        "1.0 x SE(lengthscale=0.1)",
        "0.5 x SE(lengthscale=0.02)",
        "1.0 x PER(period=0.0125, lengthscale=0.8)",
        "1.0 x LIN(location=0.4)",
    ]
    Z = np.array([[1, 0, 1, 1], [1, 0, 1, 0], [0, 1, 1, 0], [1, 1, 0, 1]])
    X, kernels = np.linspace(0.0, 1.0, D)[:, None], [to_kernel(lkm.parse(text)) for text in planted]
    features = Features(kernels, place_inducing(kernels, X, 400, np.full(4, 1e6)))
    B = features.at(X, features.factors()).numpy()
    weights = features.by_component(Z.astype(float)).numpy()
    Y = (weights * rng.normal(size=weights.shape)) @ B + np.sqrt(0.1) * rng.normal(size=(4, D))
    frame = pd.DataFrame(Y.T, index=np.arange(D), columns=list("abcd"))

    begin = [
        f"0.5 x SE(lengthscale={0.13 * D})",
        f"0.3 x SE(lengthscale={0.015 * D})",
        f"0.5 x PER(period={0.0125 * 1.002 * D}, lengthscale=1.2)",
        f"{0.5 / D**2} x LIN(location={0.5 * D})",
    ]
    found = made_by_hand(lkm.thin(frame), begin, Z.tolist(), noise=0.2)
    wall, processor = time.perf_counter(), time.process_time()
    refitted = lkm.refit_sparse(found, frame)
    figure("fit, D = 20,000, N = 4, seconds", time.perf_counter() - wall, 600.0)
    figure("fit, D = 20,000, N = 4, processor seconds", time.process_time() - processor, 600.0)
    figure("fit, D = 20,000, N = 4, GB", psutil.Process().memory_info().rss / 1e9, 4.0)

    truth = lkm.SparseLKM((X, Y.T), kernels, posterior="enumerated", noise_variance=0.1)
    truth.update_tau()
    truth.update_tau()
    ours = refitted.fit.elbo - D * np.log(refitted.table.scale).sum()
    figure("planted bound less ours, nats", float(truth.elbo()) - ours, 10.0)
