"""Whether probabilities can be believed: simulation-based calibration on planted data.

Data are drawn from the model, with everything drawn from its prior, and then learnt.  Among the
entries of Z that are one with stated probability p, a share p must be one; the true
hyperparameters must be spread evenly over the quantiles of their posteriors (Talts et al. 2018,
"Validating Bayesian inference algorithms with simulation-based calibration").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from ..data.observations import Observations
from ..discovery.discover import discover
from ..discovery.result import Discovery
from ..fit.engine import components
from ..fit.fits import FitSettings
from ..fit.initialization import (
    NOISE_VARIANCE,
    VARIANCE,
    Range,
    hyperparameter_range,
    typical_step,
    walks_begin,
)
from ..fit.layout import Layout
from ..fit.training import fit
from ..gp.types import Floats
from ..kernels.component import to_kernel
from ..kernels.grammar import Kind, Product, parse
from ..model.lkm import LKM
from ..sharing.coarsened import coarsened
from .sharing import counterparts

STRUCTURES = ("SE", "PER", "LIN", "RW")
ALPHA = float(len(STRUCTURES))
"""Makes P(z_nk = 1) uniform before anything is seen."""

NUM_CHOSEN = 200
"""Tables of the seeds below chose how probabilities leave alternatives open; others judge that."""

UNEQUAL = 0.5
"""Standard deviation of the logarithm of amplitudes in the tables that are searched."""


@dataclass(frozen=True)
class Planted:
    """Data whose whole truth is known.

    Parameters
    ----------
    observations
        The data, scaled as drawn.
    kernels
        The components, [K].
    Z
        Who has them, [N, K].
    noise_variance
        [N].
    """

    observations: Observations
    kernels: tuple[Product, ...]
    Z: Floats
    noise_variance: Floats


def plant(seed: int, num_series: int = 6, num_times: int = 80) -> Planted:
    """Draw hyperparameters, Z and data from the model's prior."""
    rng = np.random.default_rng(seed)
    x = np.linspace(0.0, 1.0, num_times)
    kernels = tuple(_draw_kernel(parse(name), x, rng) for name in STRUCTURES)
    share = rng.beta(ALPHA / len(kernels), 1.0, size=len(kernels))
    Z = (rng.uniform(size=(num_series, len(kernels))) < share).astype(np.float64)
    noise_variance = np.exp([_draw(NOISE_VARIANCE, rng) for _ in range(num_series)])
    C = np.asarray(components(kernels, x))
    Y = np.empty((num_series, num_times))
    for n in range(num_series):
        V = np.tensordot(Z[n], C, axes=1) + noise_variance[n] * np.eye(num_times)
        Y[n] = np.linalg.cholesky(V) @ rng.normal(size=num_times)
    return Planted(Observations(x, Y, np.ones_like(Y)), kernels, Z, noise_variance)


def with_heights(planted: Planted, seed: int, sd: float = UNEQUAL) -> Planted:
    """Draw new data in which every component has a height of its own in each series.

    Parameters
    ----------
    planted
        What there is, and who has it.
    seed
        Of heights and data.
    sd
        Standard deviation of the logarithm of the amplitudes.
    """
    rng = np.random.default_rng((7, seed))
    x = planted.observations.x
    C = components(planted.kernels, x)
    amplitudes = np.exp(sd * rng.normal(size=planted.Z.shape))
    Y = np.empty((len(planted.Z), len(x)))
    for n, (loadings, noise) in enumerate(
        zip(planted.Z * amplitudes**2, planted.noise_variance, strict=True)
    ):
        V = np.tensordot(loadings, C, axes=1) + noise * np.eye(len(x))
        Y[n] = np.linalg.cholesky(V) @ rng.normal(size=len(x))
    return replace(planted, observations=Observations(x, Y, np.ones_like(Y)))


def _draw_kernel(structure: Product, x: Floats, rng: np.random.Generator) -> Product:
    """A kernel with hyperparameters from the priors of `initialization`."""
    factors = []
    for factor in structure.factors:
        values = []
        for _, kind in factor.base.parameters:
            range_ = hyperparameter_range(kind, typical_step(x))
            value = walks_begin(x) if kind is Kind.ORIGIN else _draw(range_, rng)
            values.append(float(np.exp(value)) if kind.positive else value)
        factors.append(replace(factor, values=tuple(values)))
    return Product(tuple(factors), float(np.exp(_draw(VARIANCE, rng))))


def _draw(range_: Range, rng: np.random.Generator) -> float:
    """A draw from a range's normal prior within its bounds."""
    while True:
        value = float(rng.normal(range_.mean, range_.sd))
        if range_.lower < value < range_.upper:
            return value


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
    members = [parse(name) for name in STRUCTURES]
    found = fit(planted.observations, members, seed=seed, settings=settings)
    probabilities = np.zeros_like(planted.Z)
    truth = list(found.kernels)
    is_matched = []
    for k, kernel in enumerate(found.kernels):
        column = STRUCTURES.index(str(kernel.structure))
        probabilities[:, column] = found.probabilities[:, k]
        truth[k] = planted.kernels[column]
        is_matched.append(bool(np.any(planted.Z[:, column])))
    posterior = coarsened(found, planted.observations, settings)
    true_values = Layout(truth, num_series=0).pack(np.empty(0))
    deviation = true_values - posterior.mean
    quantiles = {
        label: float(norm.cdf(deviation[i] / posterior.sd[i]))
        for i, (label, known_owner) in enumerate(_labels(posterior.layout, is_matched))
        if known_owner and posterior.sd[i] > 0.0
    }
    return probabilities, quantiles


def _labels(layout: Layout, is_matched: Sequence[bool]) -> list[tuple[str, bool]]:
    """Names of the entries of the flat vector, and whether their component was planted."""
    owners = list(zip(layout.products, is_matched, strict=True))
    return [
        *((f"{product.structure} variance", known) for product, known in owners),
        *(
            (f"{factor.base.name} {name}", known)
            for product, known in owners
            for factor in product.factors
            for name, _ in factor.base.parameters
        ),
    ]


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
    planted = with_heights(plant(seed), seed)
    o = planted.observations
    found = discover(
        pd.DataFrame(o.Y.T, index=o.x), bases=("C", *STRUCTURES), alpha=ALPHA, seed=seed,
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


def calibrate_one(seed: int, *, search: bool) -> dict[str, Any]:
    """All of it for one planted data set, in JSON's types.

    Returns
    -------
    "truth", "known", "learnt": flat lists over the entries of Z; "quantiles" by hyperparameter;
    with `search` also what `calibrate_search` returns.
    """
    planted = plant(seed)
    probabilities, quantiles = learnt(planted, seed)
    record: dict[str, Any] = {
        "seed": seed,
        "truth": planted.Z.ravel().tolist(),
        "known": known(planted).ravel().tolist(),
        "learnt": probabilities.ravel().tolist(),
        "quantiles": quantiles,
    }
    return {**record, **calibrate_search(seed)} if search else record


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
