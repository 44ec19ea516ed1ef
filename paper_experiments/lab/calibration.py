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

from lkm_gpflow.discovery.discover import discover
from lkm_gpflow.discovery.result import Discovery
from lkm_gpflow.fit.fits import FitSettings
from lkm_gpflow.fit.training import fit
from lkm_gpflow.gp.types import Floats
from lkm_gpflow.kernels.component import to_kernel
from lkm_gpflow.kernels.grammar import Kind, Product, parse
from lkm_gpflow.model.lkm import LKM
from lkm_gpflow.sharing.posterior import PosteriorDraws, statements_of

from . import RESULTS
from .journals import fill, opened
from .planted import ALPHA, PRIOR_STRUCTURES, Planted, from_prior, with_heights
from .sharing import counterparts

NUM_CHOSEN = 200
"""Tables of the seeds below chose how probabilities leave alternatives open; others judge that."""

FIRST_OF_INTERVALS = 300
"""Seed from which on tables judge intervals."""


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


def learnt(planted: Planted, seed: int) -> tuple[Floats, dict[str, float]]:
    """Learn with known structures and unknown numbers.

    Returns
    -------
    P(z_nk = 1), [N, K], and for every hyperparameter of the components that were planted and
    found the quantile of its true value in the posterior that reports rest on.
    """
    settings = FitSettings(alpha=ALPHA, prune=False)
    members = [parse(name) for name in PRIOR_STRUCTURES]
    found = fit(planted.observations, members, seed=seed, settings=settings)
    probabilities = np.zeros_like(planted.Z)
    truth = list(found.kernels)
    is_matched = []
    for k, kernel in enumerate(found.kernels):
        column = PRIOR_STRUCTURES.index(str(kernel.structure))
        probabilities[:, column] = found.probabilities[:, k]
        truth[k] = planted.kernels[column]
        is_matched.append(bool(np.any(planted.Z[:, column])))
    draws = PosteriorDraws.of(planted.observations, [found], PRIOR_STRUCTURES, settings, seed=seed)
    told = statements_of(draws, truth, planted.observations, settings.likelihood, seed)
    quantiles = {
        one.name: float(np.mean(one.values < value))
        for kernel, is_planted, own in zip(truth, is_matched, told.marginals, strict=True)
        if is_planted
        for one, value in zip(own, _shape_values(kernel), strict=True)
        if len(one.values)
    }
    return probabilities, quantiles


def searched(seed: int) -> tuple[Floats, Floats]:
    """Discover everything in a table of unequal heights: what is said, and whether it is true.

    A found component stands for the planted one whose shape is most like its own, one to one
    (`sharing.counterparts`); planted ones that no series has cannot be found.  What is said of a
    component that stands for none is false.  Weights over the fits of the search are those of the
    default, which adds walks to forecasts only.

    Returns
    -------
    P(n has k) over the fits of the search, and truth, of all found components but constants, [M].
    """
    return compared(*discovered(seed))


def discovered(seed: int) -> tuple[Discovery, Planted]:
    """Plant a table of unequal heights, and discover everything in it."""
    planted = with_heights(from_prior(seed), seed)
    found = discover(
        planted.frame, bases=("C", *PRIOR_STRUCTURES), alpha=ALPHA, seed=seed,
        averaging="tempered", progress=False,
    )  # fmt: skip
    return found, planted


def compared(found: Discovery, planted: Planted) -> tuple[Floats, Floats]:
    """Return what is said of found components, and whether it is true; see `searched`."""
    kernels = found.consensus.kernels
    truth = np.zeros((len(planted.Z), len(kernels)))
    for i, k in _counterparts(found, planted):
        truth[:, i] = planted.Z[:, k]
    is_pattern = np.array([str(kernel.structure) != "C" for kernel in kernels], bool)
    said = found.consensus.probabilities
    return said[:, is_pattern].ravel(), truth[:, is_pattern].ravel()


def _counterparts(found: Discovery, planted: Planted) -> list[tuple[int, int]]:
    """Pairs of a found component and the planted one, had by some series, that it stands for."""
    had = [int(k) for k in np.flatnonzero(planted.Z.any(axis=0))]
    kernels = [planted.kernels[k] for k in had]
    pairs = counterparts(found.consensus.kernels, kernels, planted.observations.x)
    return [(i, had[j]) for i, j in pairs]


def intervals(found: Discovery, planted: Planted) -> list[dict[str, Any]]:
    """What is said of the hyperparameters of components that were planted and found.

    Components are matched as in `searched`; where both have the same structure their
    hyperparameters can be compared.

    Returns
    -------
    For each hyperparameter "name", "planted", "lower" and "upper" (its 90% interval), in scaled
    time, and "probability": that of the component in the series that most likely has it.
    """
    consensus = found.consensus
    told = []
    for i, k in _counterparts(found, planted):
        kernel = planted.kernels[k]
        if consensus.kernels[i].structure != kernel.structure:
            continue
        for one, value in zip(found.marginals[i], _shape_values(kernel), strict=True):
            told.append({
                "name": one.name,
                "planted": value,
                "lower": one.quantile(0.05),
                "upper": one.quantile(0.95),
                "probability": float(consensus.probabilities[:, i].max()),
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


def calibrate_intervals(seed: int) -> dict[str, Any]:
    """`intervals` of one planted table, in JSON's types."""
    return {"seed": seed, "intervals": intervals(*discovered(seed))}


def held(told: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Per hyperparameter: how many intervals there are, and which share holds what was planted."""
    table = pd.DataFrame(told)
    table["held"] = (table["lower"] <= table["planted"]) & (table["planted"] <= table["upper"])
    by_name = table.groupby("name")["held"]
    return pd.DataFrame({"intervals": by_name.size(), "held": by_name.mean()})


def calibrate_search(seed: int) -> dict[str, Any]:
    """What a search says of one planted table, in JSON's types: "searched", "searched_truth"."""
    said, truth = searched(seed)
    return {"seed": seed, "searched": said.tolist(), "searched_truth": truth.tolist()}


def calibrate_one(seed: int) -> dict[str, Any]:
    """All of it for one planted data set, in JSON's types.

    Returns
    -------
    "truth", "known", "learnt": flat lists over the entries of Z; "quantiles" by hyperparameter;
    and what `calibrate_search` returns.
    """
    planted = from_prior(seed)
    probabilities, quantiles = learnt(planted, seed)
    return {
        "truth": planted.Z.ravel().tolist(),
        "known": known(planted).ravel().tolist(),
        "learnt": probabilities.ravel().tolist(),
        "quantiles": quantiles,
        **calibrate_search(seed),
    }


def run(
    count: int, num_intervals: int, results: Path = RESULTS, executor: Executor | None = None
) -> list[dict[str, Any]]:
    """Calibrate the planted data sets that the journal has not.

    The first `NUM_CHOSEN` seeds are the part "choosing", of those after them, "judging", only the
    search is run; "intervals" judges the 90% intervals of hyperparameters.
    """
    header = {"structures": PRIOR_STRUCTURES, "alpha": ALPHA}
    journal = opened(results, "calibration", header)
    judged = range(FIRST_OF_INTERVALS, FIRST_OF_INTERVALS + num_intervals)
    parts = {
        "choosing": (range(min(count, NUM_CHOSEN)), calibrate_one),
        "judging": (range(NUM_CHOSEN, count), calibrate_search),
        "intervals": (judged, calibrate_intervals),
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
    return {"part": part, **calibrate(seed)}


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
