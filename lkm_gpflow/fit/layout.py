"""The hyperparameters of a structure as one flat vector."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..gp.types import Floats
from ..kernels.grammar import Kind, Product, with_values


class Layout:
    """Where the hyperparameters of a list of products stand in one flat vector.

    The vector holds K log variances, then the values of all factors (logarithms of the positive
    ones), then N log noise variances.
    """

    def __init__(self, products: Sequence[Product], num_series: int) -> None:
        self.products = tuple(products)
        self.num_series = num_series
        num_components = len(self.products)
        is_log = [True] * num_components
        is_fixed = [False] * num_components
        for product in self.products:
            for factor in product.factors:
                is_log.extend(kind.positive for _, kind in factor.base.parameters)
                is_fixed.extend(kind is Kind.ORIGIN for _, kind in factor.base.parameters)
        is_log.extend([True] * num_series)
        self.is_log = np.array(is_log, bool)
        self.is_fixed = np.array(is_fixed + [False] * num_series, bool)

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
