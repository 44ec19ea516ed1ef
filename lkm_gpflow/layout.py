"""What learning works on: observations, and the hyperparameters of a structure as one vector."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .config import Floats, Integers
from .expressions import Kind, Product, with_values
from .kernels import KERNELS


@dataclass(frozen=True)
class Observations:
    """Scaled observations.

    Parameters
    ----------
    x
        Times, [D], sorted.
    Y
        One row a series, [N, D]; zero where missing.
    mask
        One where observed, [N, D].
    """

    x: Floats
    Y: Floats
    mask: Floats

    @property
    def num_series(self) -> int:
        """N."""
        return int(self.Y.shape[0])

    @property
    def num_observed(self) -> int:
        """How many values were observed."""
        return int(self.mask.sum())

    @property
    def table(self) -> tuple[Floats, Floats]:
        """The same in GPflow's order: X [D, 1] and Y [D, N], with NaN where missing."""
        return self.x[:, None], np.where(self.mask > 0.0, self.Y, np.nan).T

    @cached_property
    def is_complete(self) -> bool:
        """Whether nothing is missing."""
        return bool(np.all(self.mask == 1.0))

    @cached_property
    def mask_patterns(self) -> tuple[Integers, Floats]:
        """Which pattern of observed points each series has, [N], and the patterns, [M, D]."""
        if self.is_complete:
            return np.zeros(self.num_series, np.int32), np.ones((1, len(self.x)))
        patterns, of_series = np.unique(self.mask, axis=0, return_inverse=True)
        return of_series.reshape(-1).astype(np.int32), patterns

    def of_series(self, places: Integers) -> Observations:
        """Return the observations of some series."""
        return Observations(self.x, self.Y[places], self.mask[places])

    @property
    def fingerprint(self) -> str:
        """A checksum of the scaled data."""
        digest = hashlib.sha256()
        for array in (self.x, self.Y, self.mask):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


class Layout:
    """Where the hyperparameters of a list of products stand in one flat vector.

    The vector holds K log variances, then the values of all factors (logarithms of the positive
    ones), then N log noise variances.
    """

    def __init__(self, products: Sequence[Product], num_series: int) -> None:
        self.products = tuple(products)
        self.num_series = num_series
        num_components = len(self.products)
        kinds = tuple(KERNELS)
        places: dict[str, list[list[int]]] = {name: [] for name in kinds}
        owners: dict[str, list[int]] = {name: [] for name in kinds}
        is_log = [True] * num_components
        is_fixed = [False] * num_components
        for owner, product in enumerate(self.products):
            for factor in product.factors:
                first = len(is_log)
                is_log.extend(kind.positive for _, kind in factor.base.parameters)
                is_fixed.extend(kind is Kind.ORIGIN for _, kind in factor.base.parameters)
                places[factor.base.name].append(list(range(first, len(is_log))))
                owners[factor.base.name].append(owner)
        is_log.extend([True] * num_series)
        self.is_log = np.array(is_log, bool)
        self.is_fixed = np.array(is_fixed + [False] * num_series, bool)
        self.kinds = kinds
        self.factors = tuple(
            (
                np.array(places[name], np.int32).reshape(
                    len(owners[name]), len(KERNELS[name].base.parameters)
                ),
                np.array(owners[name], np.int32),
            )
            for name in kinds
        )

    @property
    def size(self) -> int:
        """Length of the flat vector."""
        return len(self.is_log)

    def pack(self, noise_variance: Floats) -> Floats:
        """Return the flat vector of the products' own numbers and these noise variances, [N]."""
        values = [product.variance for product in self.products]
        values += [v for p in self.products for f in p.factors for v in f.values]
        if None in values:
            raise ValueError(f"expected products with all their numbers, got {self.products}")
        flat = np.concatenate([np.array(values, np.float64), noise_variance])
        flat[self.is_log] = np.log(flat[self.is_log])
        return flat

    def unpack(self, flat: Floats) -> tuple[tuple[Product, ...], Floats]:
        """Return the products with the numbers of a flat vector, and the noise variances [N]."""
        values = np.where(self.is_log, np.exp(np.where(self.is_log, flat, 0.0)), flat)
        products, first = [], len(self.products)
        for k, product in enumerate(self.products):
            count = sum(len(factor.values) for factor in product.factors)
            products.append(with_values(product, values[k], values[first : first + count].tolist()))
            first += count
        return tuple(products), values[first:]
