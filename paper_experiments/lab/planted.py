"""Tables whose whole truth is known, drawn from latent kernel models; five ways to draw one.

A column is the sum of one path from each component that its series has, and noise.  Kernels are on
a time of span one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from lkm_gpflow.data.observations import Observations
from lkm_gpflow.datasets.synthetic import demo
from lkm_gpflow.fit.engine import components
from lkm_gpflow.fit.initialization import (
    NOISE_VARIANCE,
    VARIANCE,
    Range,
    hyperparameter_range,
    typical_step,
    walks_begin,
)
from lkm_gpflow.gp.types import Floats
from lkm_gpflow.kernels.grammar import Kind, Product, parse

PRIOR_STRUCTURES = ("SE", "PER", "LIN", "RW")
ALPHA = float(len(PRIOR_STRUCTURES))
"""Makes P(z_nk = 1) uniform before anything is seen."""

DESIGNS: Mapping[str, tuple[str, ...]] = {
    "SE+PER": ("1 x SE(lengthscale=0.15)", "1 x PER(period=0.17, lengthscale=0.8)"),
    "SE+PER+LIN": (
        "1 x SE(lengthscale=0.1)",
        "1 x PER(period=0.17, lengthscale=0.8)",
        "6 x LIN(location=0.4)",
    ),
    "RW+PER": (f"3 x RW(start={-1.0 / 119!r})", "1 x PER(period=0.17, lengthscale=0.8)"),
    "SE+SE": ("1 x SE(lengthscale=0.03)", "1 x SE(lengthscale=0.25)"),
}
HEIGHTS = {"equal": 0.0, "unequal": 0.5}
"""Standard deviation of the logarithm of amplitudes, drawn for every series and component."""


@dataclass(frozen=True)
class Planted:
    """A table [D, N] and what it was drawn from: K kernels, Z, amplitudes, noise and levels.

    `heights` [N, K] are standard deviations of components of variance one.
    """

    frame: pd.DataFrame
    kernels: tuple[Product, ...]
    Z: Floats
    heights: Floats
    noise_variance: Floats
    level: Floats

    @property
    def observations(self) -> Observations:
        """The table as drawn, without scaling."""
        Y = self.frame.to_numpy().T
        return Observations(self.frame.index.to_numpy(np.float64), Y, np.ones_like(Y))


def _planted(
    values: Floats, x: Floats, kernels: Sequence[Product], Z: Floats, heights: Floats, noise: Floats
) -> Planted:
    names = [f"series {n + 1}" for n in range(len(Z))]
    frame = pd.DataFrame(values, index=x, columns=names)
    return Planted(frame, tuple(kernels), Z, heights, noise, np.zeros(len(Z)))


def _draw_series(V: Floats, rng: np.random.Generator) -> Floats:
    return np.asarray(np.linalg.cholesky(V) @ rng.normal(size=len(V)))


def _draw_components(
    kernels: Sequence[Product], x: Floats, heights: Floats, rng: np.random.Generator
) -> Floats:
    """Draw the sums of components [D, N], each series with paths of its own."""
    values = np.zeros((len(x), len(heights)))
    for k, C in enumerate(components(kernels, x)):
        root = np.linalg.cholesky(C + 1e-6 * np.eye(len(x)))
        values += root @ rng.normal(size=values.shape) * heights[:, k]
    return values


def from_prior(seed: int, num_series: int = 6, num_times: int = 80) -> Planted:
    """Draw hyperparameters, Z, noise and data from the model's prior."""
    rng = np.random.default_rng(seed)
    x = np.linspace(0.0, 1.0, num_times)
    kernels = tuple(_draw_kernel(parse(name), x, rng) for name in PRIOR_STRUCTURES)
    share = rng.beta(ALPHA / len(kernels), 1.0, size=len(kernels))
    Z = (rng.uniform(size=(num_series, len(kernels))) < share).astype(np.float64)
    noise = np.exp([_draw(NOISE_VARIANCE, rng) for _ in range(num_series)])
    C = np.asarray(components(kernels, x))
    columns = [
        _draw_series(np.tensordot(z, C, axes=1) + s * np.eye(num_times), rng)
        for z, s in zip(Z, noise, strict=True)
    ]
    return _planted(np.column_stack(columns), x, kernels, Z, np.ones_like(Z), noise)


def with_heights(planted: Planted, seed: int, sd: float = HEIGHTS["unequal"]) -> Planted:
    """Draw new data in which every component has a height of its own in each series."""
    rng = np.random.default_rng((7, seed))
    x = planted.observations.x
    C = np.asarray(components(planted.kernels, x))
    heights = np.exp(sd * rng.normal(size=planted.Z.shape))
    columns = [
        _draw_series(np.tensordot(z * h**2, C, axes=1) + s * np.eye(len(x)), rng)
        for z, h, s in zip(planted.Z, heights, planted.noise_variance, strict=True)
    ]
    return _planted(
        np.column_stack(columns), x, planted.kernels, planted.Z, heights, planted.noise_variance
    )


def designed(design: str, heights: str, seed: int) -> Planted:
    """Draw six series of 120 times, with the same Z and noise whatever the heights.

    Every component has two series or more, all but one of them are not in all series, and no
    series goes without.  `design` is a key of `DESIGNS`, or "demo": the data set of that name,
    whose heights are equal; `heights` is a key of `HEIGHTS`.
    """
    if design == "demo":
        data = demo(seed=seed)
        assert data.truth is not None
        Z, scale = data.truth.Z.to_numpy(np.float64), data.truth.scale
        kernels = tuple(parse(kernel) for kernel in data.truth.kernels)
        noise = scale**2 * data.truth.noise_variance
        own = scale[:, None] * np.ones_like(Z)
        return Planted(data.frame, kernels, Z, own, noise, data.truth.offset)
    rng = np.random.default_rng((23, seed, list(DESIGNS).index(design)))
    kernels = tuple(parse(text) for text in DESIGNS[design])
    Z = np.zeros((6, len(kernels)))
    while not _is_telling(Z):
        Z = rng.integers(0, 2, Z.shape).astype(np.float64)
    x = np.linspace(0.0, 1.0, 120)
    sd = rng.uniform(0.1, 0.3, len(Z))
    values = sd * rng.normal(size=(len(x), len(Z)))
    amplitudes = np.exp(HEIGHTS[heights] * rng.normal(size=Z.shape))
    values += _draw_components(kernels, x, Z * amplitudes, rng)
    return _planted(values, x, kernels, Z, amplitudes, sd**2)


def _is_telling(Z: Floats) -> bool:
    users = Z.sum(axis=0)
    some_lack_it = (users < len(Z)).sum() >= Z.shape[1] - 1
    return bool(Z.any(axis=1).all() and (users >= 2).all() and some_lack_it)


def smooth_and_periodic(number: int) -> Planted:
    """Draw six series of 120 times: an SE and a PER whose numbers are drawn too."""
    rng = np.random.default_rng((17, number))
    kernels = (
        parse(f"1.0 x SE(lengthscale={_log_uniform(0.04, 0.3, rng)!r})"),
        parse(
            f"1.0 x PER(period={_log_uniform(0.08, 0.3, rng)!r}, "
            f"lengthscale={_log_uniform(0.5, 1.5, rng)!r})"
        ),
    )
    Z = np.zeros((6, 2))
    while not (Z.any(axis=1).all() and (Z.sum(axis=0) >= 2).all() and not Z.all()):
        Z = rng.integers(0, 2, Z.shape).astype(np.float64)
    noise = rng.uniform(0.1, 0.3, len(Z)) ** 2
    x = np.linspace(0.0, 1.0, 120)
    values = np.sqrt(noise) * rng.normal(size=(len(x), len(Z)))
    values += _draw_components(kernels, x, Z, rng)
    return _planted(values, x, kernels, Z, np.ones_like(Z), noise)


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


def _log_uniform(lower: float, upper: float, rng: np.random.Generator) -> float:
    return float(np.exp(rng.uniform(np.log(lower), np.log(upper))))
