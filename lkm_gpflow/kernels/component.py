"""Products of base kernels as kernels of GPflow: they have the one variance."""

from __future__ import annotations

from collections.abc import Sequence

import gpflow
from check_shapes import inherit_check_shapes
from gpflow.base import Parameter
from gpflow.utilities import positive

from ..gp.types import FloatTensor
from .base import KERNELS, UnitKernel
from .grammar import Factor, Product


class ComponentKernel(gpflow.kernels.Kernel):
    """A component of the latent kernel model: one variance times a product of base kernels.

    Parameters
    ----------
    factors
        Base kernels of unit variance; with other kernels of GPflow there is no expression for it.
    variance
        The variance of the product; the others would be redundant and do not exist.

    Raises
    ------
    ValueError
        If there are no factors, or one is no kernel.
    """

    def __init__(self, factors: Sequence[UnitKernel], variance: float = 1.0) -> None:
        super().__init__(active_dims=slice(None))
        if not factors or not all(isinstance(each, gpflow.kernels.Kernel) for each in factors):
            raise ValueError(f"factors: expected at least one kernel, got {factors!r}")
        self.variance = Parameter(variance, transform=positive(base="exp"), name="variance")
        self.factors = list(factors)

    @inherit_check_shapes
    def K(self, X: FloatTensor, X2: FloatTensor | None = None) -> FloatTensor:
        value = self.variance * self.factors[0](X, X2)
        for factor in self.factors[1:]:
            value = value * factor(X, X2)
        return value

    @inherit_check_shapes
    def K_diag(self, X: FloatTensor) -> FloatTensor:
        value = self.variance * self.factors[0](X, full_cov=False)
        for factor in self.factors[1:]:
            value = value * factor(X, full_cov=False)
        return value

    def to_expression(self) -> Product:
        """Return the expression that `to_kernel` turns into this kernel."""
        factors = (
            Factor(factor.base, tuple(float(value.numpy()) for value in factor.values))
            for factor in self.factors
        )
        return Product(tuple(factors), float(self.variance.numpy()))


def to_kernel(product: Product) -> ComponentKernel:
    """Return the GPflow kernel of an expression.

    Raises
    ------
    ValueError
        If it is no expression, or a number of it is absent.
    """
    if not isinstance(product, Product):
        raise ValueError(f"expected an expression, as `parse` returns it, got {product!r}")
    if not product.is_complete or product.variance is None:
        raise ValueError(f"expected an expression with all its numbers, got {product}")
    factors = []
    for factor in product.factors:
        names = (name for name, _ in factor.base.parameters)
        values = {n: v for n, v in zip(names, factor.values, strict=True) if v is not None}
        factors.append(KERNELS[factor.base.name](active_dims=(0,), **values))
    return ComponentKernel(factors, product.variance)
