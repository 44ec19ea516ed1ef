"""The structures that the paper's authors published, learnt on the training part alone.

Their repository (GitHub LKMGP/LKM, commit 97eb542) has 57 pairwise reports, which name every
component of stocks, houses and currencies, and the series that have it; there is none of GONU.  The
reports of stocks and houses reach the end of the data, so that these shapes may have seen the
window that is forecast.  The locations of LIN are not in the reports: here lines begin at the
first row.  Nor is the lengthscale of SE in two products of currencies: here it is endless.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import tensorflow as tf
from gpflow.utilities import set_trainable

from lkm_gpflow.comparators.lbfgs import MultiStart
from lkm_gpflow.comparators.protocol import ScaledForecast
from lkm_gpflow.data.observations import Observations
from lkm_gpflow.data.tables import Table
from lkm_gpflow.gp.types import Floats
from lkm_gpflow.kernels.component import to_kernel
from lkm_gpflow.kernels.grammar import Product, parse
from lkm_gpflow.model.lkm import LKM

_YEAR = 365.25  # days
_MONTH = _YEAR / 12.0
_STOCKS = ("GE", "MSFT", "XOM", "PFE", "C", "WMT", "INTC", "BP", "AIG")
_HOUSES = ("New York", "Los Angeles", "Chicago", "Phoenix", "San Diego", "San Francisco")
_CURRENCIES = ("ZAR", "IDR", "MYR", "RUB")


def _per(period: float, lengthscale: float) -> str:
    """Write a PER of two times in days; our lengthscale has no unit."""
    return f"PER(period={period!r}, lengthscale={2.0 * np.pi * lengthscale / period!r})"


_LIN = "LIN(location=0)"

STRUCTURES: dict[str, dict[str, tuple[str, ...]]] = {
    "stocks": {
        f"SE(lengthscale=2.4) x {_LIN}": _STOCKS,
        f"{_per(0.8 * _YEAR, 4.4 * _MONTH)} x {_LIN}": ("GE", "MSFT", "C", "WMT", "BP"),
        f"WN x {_LIN}": _STOCKS,
        _per(7.6 * _MONTH, 7.4): _STOCKS,
        _per(1.0 * _YEAR, 15.4): ("MSFT", "C", "AIG", "INTC", "PFE", "XOM"),
        f"{_per(0.8 * _YEAR, 3.2 * _MONTH)} x {_LIN}": ("GE", "WMT"),
        f"{_LIN} x {_LIN}": ("BP",),
    },
    "houses": {
        f"SE(lengthscale={2.5 * _MONTH!r})": _HOUSES,
        f"SE(lengthscale={1.1 * _YEAR!r})": _HOUSES,
    },
    "currencies": {
        f"WN x {_LIN}": _CURRENCIES,
        f"{_per(0.9 * _YEAR, 3.7)} x {_per(1.1 * _YEAR, 23.8)}": _CURRENCIES,
        _per(1.5 * _YEAR, 16.8): _CURRENCIES,
        _per(7.9 * _MONTH, 31.3 / 24.0): _CURRENCIES,
        _per(7.1 * _MONTH, 34.9 / 24.0): ("IDR", "RUB"),
        _per(1.6 * _YEAR, 3.7 * _MONTH): ("IDR", "MYR"),
    },
}
"""By data set: components, in days after the first row, and the series that have them."""


class _AuthorsStructure:
    """The authors' components and Z, learnt by maximum likelihood."""

    shapes_learnt = False

    def fit(self, train: pd.DataFrame, *, seed: int) -> ScaledForecast:
        """Learn; nothing is random.

        Raises
        ------
        ValueError
            If the authors published no structure of these series.
        """
        table = Table.of(train)
        structure, Z = structure_of(train.columns)
        scaled = [parse(f"1 x {each}").change_units(1.0 / table.span) for each in structure]
        return at_assignment(table, self.learn(table.observations, scaled, Z), Z)

    def learn(self, observations: Observations, structure: Sequence[Product], Z: Floats) -> LKM:
        """Return the model of greatest likelihood at Z, of components in scaled time."""
        model = LKM(observations.table, kernels=[to_kernel(each) for each in structure])
        x = observations.x[:, None]
        for kernel in model.kernels:
            kernel.variance.assign(1.0 / (len(structure) * float(np.mean(kernel.K_diag(x)))))
            set_trainable(kernel.factors, False)
        model.noise_variance.assign(np.full(len(Z), 0.1))
        climb(model, Z)
        if self.shapes_learnt:
            for kernel in model.kernels:
                set_trainable(kernel.factors, True)
            climb(model, Z)
        return model


class PublishedStructure(_AuthorsStructure):
    """Variances and noises are learnt; the shapes are the published ones."""


class PublishedStructureRelearnt(_AuthorsStructure):
    """Then shapes are learnt, too, and locations of LIN, from there."""

    shapes_learnt = True


PUBLISHED_STRUCTURES = {
    "lkm-published": PublishedStructure(),
    "lkm-published-shapes": PublishedStructureRelearnt(),
}


def climb(model: LKM, Z: Floats, iterations: int = 500) -> None:
    """Climb the likelihood of Z."""
    MultiStart(model, lambda: -tf.reduce_sum(model.log_likelihood(Z))).run(iterations)


def at_assignment(table: Table, model: LKM, Z: Floats) -> ScaledForecast:
    """Return the forecast of a model at one Z."""

    def predict(times: Floats) -> tuple[Floats, Floats]:
        mean, variance = model.predict_y(times[:, None], Z=Z)
        return np.asarray(mean), np.asarray(variance)

    return ScaledForecast(table, predict)


def structure_of(series: pd.Index) -> tuple[tuple[str, ...], Floats]:
    """Return the published components of a table with these series, and Z [N, K]."""
    for structure in STRUCTURES.values():
        if {name for owners in structure.values() for name in owners} == set(series):
            Z = [[float(name in owners) for owners in structure.values()] for name in series]
            return tuple(structure), np.array(Z)
    raise ValueError(
        f"expected the series of {', '.join(STRUCTURES)}, of which the authors published "
        f"structures, got {', '.join(map(str, series))}"
    )
