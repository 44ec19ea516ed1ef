"""The flat vector that an optimiser sees: all hyperparameters of a structure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..gp.types import Floats
from ..kernels.grammar import BaseKernel, Kind, Product, with_values


class Layout:
    """Places of the hyperparameters of a list of products in one flat vector.

    The vector holds K log variances, then the values of all factors (logarithms of the positive
    ones), then N log noise variances, then E further parameters of the model, unconstrained.

    Parameters
    ----------
    products
        The K products.
    num_series
        N.
    num_extras
        E; zero for `LKM` itself.
    """

    def __init__(self, products: Sequence[Product], num_series: int, num_extras: int = 0) -> None:
        self.products = tuple(products)
        self.num_series, self.num_extras = num_series, num_extras
        kinds = [k for p in self.products for f in p.factors for _, k in f.base.parameters]
        first = len(self.products)
        self.shapes = slice(first, first + len(kinds))
        """Values of the factors."""
        self.noise = slice(self.shapes.stop, self.shapes.stop + num_series)
        """Log noise variances."""
        self.extras = slice(self.noise.stop, self.noise.stop + num_extras)
        """Parameters that the model has beside those of `LKM`."""
        self.kinds = kinds
        ends = np.cumsum([first, *(sum(len(f.values) for f in p.factors) for p in self.products)])
        self.places = [[k, *range(ends[k], ends[k + 1])] for k in range(first)]
        """Of each product's log variance and values."""
        self.is_log = np.array(
            [True] * first + [k.positive for k in kinds] + [True] * num_series
            + [False] * num_extras, bool,
        )  # fmt: skip
        self.is_fixed = np.zeros(self.size, bool)
        self.is_fixed[self.shapes] = [kind is Kind.ORIGIN for kind in kinds]

    @property
    def size(self) -> int:
        """Length of the flat vector."""
        return len(self.is_log)

    def pack(self, noise_variance: Floats, extras: Floats | None = None) -> Floats:
        """Return the flat vector of the products' own numbers and these noise variances, [N].

        Raises
        ------
        ValueError
            If a product lacks a number.
        """
        values = [product.variance for product in self.products]
        values += [v for p in self.products for f in p.factors for v in f.values]
        if None in values:
            raise ValueError(f"expected products with all their numbers, got {self.products}")
        parts = [np.array(values, np.float64), noise_variance]
        flat = np.concatenate(parts if extras is None else [*parts, extras])
        flat[self.is_log] = np.log(flat[self.is_log])
        return flat

    def values(self, flat: Floats) -> Floats:
        """Return the numbers of a flat vector, exponentials of the logarithms, [size]."""
        return np.where(self.is_log, np.exp(np.where(self.is_log, flat, 0.0)), flat)

    def unpack(self, flat: Floats) -> tuple[tuple[Product, ...], Floats]:
        """Return the products with the numbers of a flat vector, and the noise variances [N]."""
        values = self.values(flat)
        products = (
            with_values(product, values[places[0]], values[places[1:]].tolist())
            for product, places in zip(self.products, self.places, strict=True)
        )
        return tuple(products), values[self.noise]

    def factors(
        self, flat: Floats
    ) -> Iterator[tuple[float, list[tuple[BaseKernel, Sequence[float]]]]]:
        """Yield the variance of each product, and its base kernels with their numbers."""
        values = self.values(flat).tolist()
        for product, (k, *places) in zip(self.products, self.places, strict=True):
            own = (values[place] for place in places)
            yield values[k], [(f.base, [next(own) for _ in f.values]) for f in product.factors]
