"""Whether probabilities can be believed: simulation-based calibration on planted data.

Data are drawn from the model, with everything drawn from its prior, and then learnt.  Among the
entries of Z that are one with stated probability p, a share p must be one; the true
hyperparameters must be spread evenly over the quantiles of their posteriors (Talts et al. 2018,
"Validating Bayesian inference algorithms with simulation-based calibration").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lkm_gpflow.data.observations import Observations
from lkm_gpflow.discovery.discover import discover
from lkm_gpflow.discovery.result import Discovery
from lkm_gpflow.fit.fits import FitSettings
from lkm_gpflow.fit.training import fit
from lkm_gpflow.gp.likelihoods import GAUSSIAN
from lkm_gpflow.gp.types import Floats
from lkm_gpflow.kernels.component import to_kernel
from lkm_gpflow.kernels.grammar import Kind, Product, parse
from lkm_gpflow.model.lkm import LKM
from lkm_gpflow.sharing.posterior import VISIBLE, DrawnFunctions
from lkm_gpflow.sharing.statements import stand_for
from lkm_gpflow.sharing.states import Draw

from . import RESULTS
from .journals import fill, opened
from .planted import ALPHA, PRIOR_STRUCTURES, Planted, from_prior, with_heights
from .sharing import counterparts

NUM_GIVEN = 200
"""Tables of the first seeds are learnt with given kernels."""

FIRST_SEARCHED = 300
"""Searches are judged on tables from this seed on: those before it were looked at."""


def known(planted: Planted) -> Floats:
    """P(z_nk = 1) with kernels and noise known, [N, K]: the enumerated posterior."""
    model = LKM(
        planted.observations.table,
        kernels=[to_kernel(kernel) for kernel in planted.kernels],
        alpha=ALPHA,
        posterior="enumerated",
        noise_variance=np.maximum(planted.noise_variance, 1.1e-6),
    )
    for _ in range(100):
        before = model.tau.numpy()
        model.update_tau()
        if np.allclose(before, model.tau.numpy(), rtol=1e-8):
            break
    return np.asarray(model.probabilities())


def learnt(planted: Planted, seed: int) -> Floats:
    """P(z_nk = 1) with known structures and unknown numbers, by one fit, [N, K]."""
    settings = FitSettings(alpha=ALPHA, prune=False)
    members = [parse(name) for name in PRIOR_STRUCTURES]
    found = fit(planted.observations, members, seed=seed, settings=settings)
    probabilities = np.zeros_like(planted.Z)
    for k, kernel in enumerate(found.kernels):
        column = PRIOR_STRUCTURES.index(str(kernel.structure))
        probabilities[:, column] = found.probabilities[:, k]
    return probabilities


def discovered(seed: int) -> tuple[Discovery, Planted]:
    """Plant a table of unequal heights, and discover everything in it."""
    planted = with_heights(from_prior(seed), seed)
    found = discover(
        planted.frame, bases=("C", *PRIOR_STRUCTURES), alpha=ALPHA, seed=seed,
        averaging="tempered", progress=False,
    )  # fmt: skip
    return found, planted


def compared(found: Discovery, planted: Planted, seed: int) -> tuple[Floats, Floats]:
    """Return what is said of found components but constants, and whether it is true, [M].

    It is true if a planted component for which the found one stands (`sharing.posterior`) makes at
    least 2% of the variance of the series; its function is drawn given the data and all else that
    was planted, which is as good as the function itself.
    """
    x, Y = planted.observations.x, planted.frame.to_numpy().T
    data = Observations(x, Y - Y.mean(axis=1, keepdims=True), np.ones_like(Y))
    functions = DrawnFunctions(data, GAUSSIAN)
    heights = 2.0 * np.log(np.maximum(planted.heights, 1e-300))
    truth = Draw(planted.kernels, planted.Z > 0.0, heights, np.log(planted.noise_variance), np.nan)
    drawn = functions.of(truth, np.random.default_rng((9, seed)))
    is_visible = functions.shares(drawn) >= VISIBLE
    kernels = found.fit.kernels
    is_true = is_visible.astype(int) @ stand_for(planted.kernels, kernels, x) > 0
    is_pattern = np.array([str(kernel.structure) != "C" for kernel in kernels], bool)
    said = found.statements.probabilities
    return said[:, is_pattern].ravel(), is_true[:, is_pattern].ravel().astype(np.float64)


def _counterparts(found: Discovery, planted: Planted) -> list[tuple[int, int]]:
    """Pairs of a found component and the planted one, had by some series, that it stands for."""
    had = [int(k) for k in np.flatnonzero(planted.Z.any(axis=0))]
    kernels = [planted.kernels[k] for k in had]
    pairs = counterparts(found.fit.kernels, kernels, planted.observations.x)
    return [(i, had[j]) for i, j in pairs]


def intervals(found: Discovery, planted: Planted) -> list[dict[str, Any]]:
    """What is said of the hyperparameters of components that were planted and found.

    Components are matched by shape, one to one; where both have the same structure their
    hyperparameters can be compared.

    Returns
    -------
    For each hyperparameter "name", "planted", "lower" and "upper" (its 90% interval), in scaled
    time, and "probability": that of the component in the series that most likely has it.
    """
    told = []
    for i, k in _counterparts(found, planted):
        kernel = planted.kernels[k]
        if found.fit.kernels[i].structure != kernel.structure:
            continue
        for one, value in zip(found.marginals[i], _shape_values(kernel), strict=True):
            if not len(one.values):
                continue
            told.append({
                "name": one.name,
                "planted": value,
                "lower": one.quantile(0.05),
                "upper": one.quantile(0.95),
                "probability": float(found.statements.probabilities[:, i].max()),
            })  # fmt: skip
    return told


def _shape_values(kernel: Product) -> list[float]:
    """Hyperparameters that are learnt, but for the variance."""
    return [
        float(value)
        for factor in kernel.factors
        for value, (_, kind) in zip(factor.values, factor.base.parameters, strict=True)
        if value is not None and kind is not Kind.ORIGIN
    ]


def held(told: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Per hyperparameter: how many intervals there are, and which share holds what was planted."""
    table = pd.DataFrame(told)
    table["held"] = (table["lower"] <= table["planted"]) & (table["planted"] <= table["upper"])
    by_name = table.groupby("name")["held"]
    return pd.DataFrame({"intervals": by_name.size(), "held": by_name.mean()})


def calibrate_search(seed: int) -> dict[str, Any]:
    """What a search says of a table, in JSON's types: searched, searched_truth, intervals."""
    found, planted = discovered(seed)
    said, truth = compared(found, planted, seed)
    return {
        "searched": said.tolist(),
        "searched_truth": truth.tolist(),
        "intervals": intervals(found, planted),
    }


def calibrate_given(seed: int) -> dict[str, Any]:
    """Flat lists over the entries of Z, in JSON's types: truth, known, learnt."""
    planted = from_prior(seed)
    return {
        "truth": planted.Z.ravel().tolist(),
        "known": known(planted).ravel().tolist(),
        "learnt": learnt(planted, seed).ravel().tolist(),
    }


def run(
    count: int, results: Path = RESULTS, executor: Executor | None = None
) -> list[dict[str, Any]]:
    """Calibrate the planted data sets that the journal has not.

    The first `NUM_GIVEN` are the part "given", those after them the part "searched".
    """
    header = {"structures": PRIOR_STRUCTURES, "alpha": ALPHA}
    journal = opened(results, "calibration", header)
    parts = {
        "given": (range(min(count, NUM_GIVEN)), calibrate_given),
        "searched": (range(FIRST_SEARCHED, FIRST_SEARCHED + count - NUM_GIVEN), calibrate_search),
    }
    done = {(record["part"], record["seed"]) for record in journal.records}
    jobs = {
        (part, seed): partial(_part, part, calibrate, seed)
        for part, (seeds, calibrate) in parts.items()
        for seed in seeds
        if (part, seed) not in done
    }
    return fill(journal, jobs, executor, "data set")


def _part(part: str, calibrate: Callable[[int], dict[str, Any]], seed: int) -> dict[str, Any]:
    return {"part": part, "seed": seed, **calibrate(seed)}


def read(part: str, results: Path | str = RESULTS) -> list[dict[str, Any]]:
    """Return what was kept of a part, by seed."""
    kept = opened(results, "calibration", {"structures": PRIOR_STRUCTURES, "alpha": ALPHA})
    own = [record for record in kept.records if record["part"] == part]
    return sorted(own, key=lambda record: record["seed"])


def expected_calibration_error(p: Sequence[float], z: Sequence[float], bins: int = 10) -> float:
    r"""How far stated probabilities are from frequencies.

    .. math:: \mathrm{ECE} = \sum_b \frac{n_b}{n} \left| \bar z_b - \bar p_b \right|

    over bins of equal width of p (Guo et al. 2017).
    """
    table = reliability(p, z, bins)
    return float((table["count"] * (table["frequency"] - table["stated"]).abs()).sum() / len(p))


def reliability(p: Sequence[float], z: Sequence[float], bins: int = 10) -> pd.DataFrame:
    """Per bin of stated probability: how many entries, their mean p, and how often z is one."""
    table = pd.DataFrame({"stated": p, "frequency": z})
    bin_of = (table["stated"] * bins).astype(int).clip(upper=bins - 1).rename("bin")
    means = table.groupby(bin_of).mean()
    return means.assign(count=table.groupby(bin_of).size())
