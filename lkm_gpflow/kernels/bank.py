"""Component kernels whose structure is data: one traced function serves many structures.

TensorFlow traces a function anew for every model, and a search learns hundreds of structures.  A
`KernelBank` holds K components in variables: which base kernels multiply to which component, and
their hyperparameters.  `load` puts other products there, and traced functions then use them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import TensorType
from gpflow.kernels import Kernel

from ..gp.lags import LagGrid, lag_grid
from ..gp.types import Floats, FloatTensor
from .base import KERNELS, UnitKernel
from .grammar import Kind, Product, with_values

_NO_PRIOR = 1e6
"""Standard deviation of a prior that says nothing."""


def open_variable(values: TensorType) -> tf.Variable:
    """Return an untrainable variable [None] of whole numbers.

    A copy by `copy.deepcopy` is a variable of the length that it has then: who owns such variables
    opens those of a copy again, in ``__setstate__``.
    """
    return tf.Variable(tf.cast(values, tf.int32), trainable=False, shape=[None])


class KernelBank(gpflow.base.Module):
    r"""K component kernels, products of at most M base kernels each, with one variance each.

    .. math:: k_k(x, x') = \sigma_k^2 \prod_{m \le M_k} B_{km}(x, x'; \theta_{km})

    Parameters
    ----------
    num_components
        K.
    num_factors
        M.

    Attributes
    ----------
    kernels
        The components as GPflow kernels, for a model.
    log_variances
        Parameter [K].
    values
        Hyperparameters of factors, logarithms of the positive ones, a parameter [K, M, P] with P
        those of the base kernel that has most.
    """

    # Whole numbers, which no optimiser can train: hidden from `gpflow.set_trainable`.
    _TF_MODULE_IGNORED_PROPERTIES = frozenset(
        {"kernels", "_places", *gpflow.base.Module._TF_MODULE_IGNORED_PROPERTIES}
    )

    def __init__(self, num_components: int, num_factors: int) -> None:
        super().__init__()
        self.num_components, self.num_factors = num_components, num_factors
        # By class: what is registered later, or again, is the matter of other banks.
        self._bases = tuple(KERNELS.values())
        most = max(len(kernel.base.parameters) for kernel in self._bases)
        self.log_variances = _parameter([num_components])
        self.values = _parameter([num_components, num_factors, most])
        self._places = [open_variable(()) for _ in self._bases]
        self._products: tuple[Product, ...] = ()
        self.kernels: tuple[Kernel, ...] = tuple(_Slot(self, k) for k in range(num_components))

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the state of another, as `gpflow.utilities.deepcopy` does."""
        self.__dict__.update(state)
        self._places = [open_variable(places) for places in state["_places"]]

    def load(self, products: Sequence[Product]) -> None:
        """Put K complete products in.

        Raises
        ------
        ValueError
            If there are not K of them, one has more than M factors, or a number is absent.
        """
        if len(products) != self.num_components:
            raise ValueError(f"expected {self.num_components} products, got {len(products)}")
        values = np.zeros(self.values.shape)
        places: list[list[int]] = [[] for _ in self._bases]
        names = [kernel.base.name for kernel in self._bases]
        for k, product in enumerate(products):
            if not product.is_complete or len(product.factors) > self.num_factors:
                raise ValueError(
                    f"expected products with all their numbers and at most {self.num_factors} "
                    f"factors, got {product}"
                )
            for m, factor in enumerate(product.factors):
                places[names.index(factor.base.name)].append(k * self.num_factors + m)
                for p, ((_, kind), value) in enumerate(
                    zip(factor.base.parameters, factor.values, strict=True)
                ):
                    assert value is not None
                    values[k, m, p] = np.log(value) if kind.positive else value
        self.log_variances.assign(np.log([product.variance or 1.0 for product in products]))
        self.values.assign(values)
        for variable, own in zip(self._places, places, strict=True):
            variable.assign(np.array(own, np.int32))
        self._products = tuple(products)

    def load_priors(self, variance: tuple[float, float], values: Floats) -> None:
        """Give hyperparameters normal priors on the scale on which they are kept.

        Parameters
        ----------
        variance
            Mean and standard deviation of log variances.
        values
            Of `values`: means and standard deviations, [K, M, P, 2]; an infinite one is no prior.
        """
        for parameter, moments in ((self.log_variances, variance), (self.values, values)):
            prior: Any = parameter.prior
            mean, sd = np.moveaxis(np.asarray(moments, np.float64), -1, 0)
            prior.loc.assign(np.broadcast_to(mean, parameter.shape))
            prior.scale.assign(np.broadcast_to(np.minimum(sd, _NO_PRIOR), parameter.shape))

    @check_shapes("X: [D, Q]", "X2: [D2, Q]")
    def covariances(
        self, X: TensorType, X2: TensorType | None = None, component: int | None = None
    ) -> FloatTensor:
        """Covariances of all components between X and X2 (or X), [K, D, D2], or of one, [1, D, D2].

        Only the first column of the inputs counts.
        """
        times = tf.get_static_value(X) if X2 is None and component is None else None
        if times is not None:
            return self._on_grid(lag_grid(np.ascontiguousarray(times[:, 0])))
        x, x2 = X[:, :1], tf.transpose((X if X2 is None else X2)[:, :1])
        matrices, owner = self._factors(self._bases, x, x2, component)
        count, variances = self.num_components, tf.exp(self.log_variances)
        if component is not None:
            owner, count, variances = owner - component, 1, variances[component : component + 1]
        return variances[:, None, None] * tf.math.unsorted_segment_prod(matrices, owner, count)

    def _on_grid(self, grid: LagGrid) -> FloatTensor:
        """Covariances of all components between known times, [K, D, D]: much by lag alone."""
        stationary = [kernel for kernel in self._bases if kernel.base.stationary]
        origin = tf.zeros([1, 1], tf.float64)
        values, owner = self._factors(stationary, origin, grid.lags[None, :])
        product = tf.math.unsorted_segment_prod(values[:, 0, :], owner, self.num_components)
        by_lag = tf.exp(self.log_variances)[:, None] * product
        moving = [kernel for kernel in self._bases if not kernel.base.stationary]
        x = grid.x[:, None]
        matrices, owner = self._factors(moving, x, x.T)
        owners, place = tf.unique(owner)
        products = tf.cond(  # seldom has a component two; the gradient of products is slow
            tf.equal(tf.size(owners), tf.size(owner)),
            lambda: matrices,
            lambda: tf.math.unsorted_segment_prod(matrices, place, tf.size(owners)),
        )
        return _spread(by_lag, products, owners, grid)

    def _factors(
        self,
        bases: Sequence[type[UnitKernel]],
        x: TensorType,
        x2: TensorType,
        component: int | None = None,
    ) -> tuple[FloatTensor, tf.Tensor]:
        """All factors of these base kernels, [F, D, D2], and whose they are, [F]."""
        values = tf.reshape(self.values, [-1, self.values.shape[-1]])
        shape = [tf.shape(x)[0], tf.shape(x2)[1]]
        matrices, owners = [], []
        for kernel, variable in zip(self._bases, self._places, strict=True):
            if kernel not in bases:
                continue
            places = tf.convert_to_tensor(variable)
            if component is not None:
                own = tf.equal(places // self.num_factors, component)
                places = tf.boolean_mask(places, own)
            learnt = _hyperparameters(kernel.base.parameters, values, places)
            covariance = kernel.covariance(x, x2, *learnt)
            matrices.append(tf.broadcast_to(covariance, [tf.size(places), *shape]))
            owners.append(places // self.num_factors)
        return tf.concat(matrices, 0), tf.concat(owners, 0)

    def to_expressions(self) -> tuple[Product, ...]:
        """Return the products with the numbers that they have now."""
        values, variances = self.values.numpy(), np.exp(self.log_variances.numpy())
        found = []
        for k, product in enumerate(self._products):
            numbers = [
                float(np.exp(values[k, m, p]) if kind.positive else values[k, m, p])
                for m, factor in enumerate(product.factors)
                for p, (_, kind) in enumerate(factor.base.parameters)
            ]
            found.append(with_values(product, float(variances[k]), numbers))
        return tuple(found)


def _spread(
    by_lag: FloatTensor, products: FloatTensor, owners: tf.Tensor, grid: LagGrid
) -> FloatTensor:
    """Matrices of values by lag, those of some owners times another; see `KernelBank._on_grid`.

    With its own gradient: TensorFlow takes four times as long to sum over the pairs of a lag.

    Parameters
    ----------
    by_lag
        [K, R].
    products
        Matrices that depend on more than the lag, [U, D, D].
    owners
        Which of the K are multiplied by them, [U].
    grid
        D times with R different lags.

    Returns
    -------
    Tensor [K, D, D].
    """
    K, R, D = by_lag.shape[0], len(grid.lags), len(grid.x)
    by_first = np.argsort(grid.lag_of_pair, kind="stable")
    places = np.column_stack([grid.lag_of_pair[by_first], by_first]).astype(np.int64)
    pairs = tf.SparseTensor(places, np.ones(D * D), [R, D * D])

    @tf.custom_gradient
    def spread(
        by_lag: FloatTensor, products: FloatTensor
    ) -> tuple[FloatTensor, Callable[[FloatTensor], tuple[FloatTensor, FloatTensor]]]:
        # Lags first: TensorFlow gathers whole rows far faster than single numbers.
        rows = tf.gather(tf.transpose(by_lag), grid.lag_of_pair)
        stationary = tf.reshape(tf.transpose(rows), [K, D, D])
        own = tf.gather(stationary, owners)

        def gradient(upstream: FloatTensor) -> tuple[FloatTensor, FloatTensor]:
            d_own = tf.gather(upstream, owners)
            d_rows = tf.tensor_scatter_nd_update(upstream, owners[:, None], d_own * products)
            d_rows = tf.reshape(d_rows, [K, D * D])
            d_by_lag = tf.sparse.sparse_dense_matmul(pairs, d_rows, adjoint_b=True)
            return tf.transpose(d_by_lag), d_own * own

        return tf.tensor_scatter_nd_update(stationary, owners[:, None], own * products), gradient

    found: FloatTensor = spread(by_lag, products)
    return found


class _Slot(Kernel):
    """One component of a bank."""

    def __init__(self, bank: KernelBank, component: int) -> None:
        super().__init__(active_dims=slice(None))
        self.bank, self.component = bank, component

    @inherit_check_shapes
    def K(self, X: TensorType, X2: TensorType | None = None) -> FloatTensor:
        return self.bank.covariances(X, X2, self.component)[0]

    @inherit_check_shapes
    def K_diag(self, X: TensorType) -> FloatTensor:
        one = lambda x: self.bank.covariances(x[None], None, self.component)[0, 0, 0]  # noqa: E731
        return tf.map_fn(one, X)


@check_shapes("X: [D, Q]", "X2: [D2, Q]")
def stacked_covariances(
    kernels: Sequence[Kernel], X: TensorType, X2: TensorType | None = None
) -> FloatTensor:
    """Covariances of kernels between X and X2 (or X), [K, D, D2]; those of a bank all at once."""
    first = kernels[0]
    if isinstance(first, _Slot) and tuple(kernels) == first.bank.kernels:
        return first.bank.covariances(X, X2)
    return tf.stack([kernel(X, X2) for kernel in kernels])


def _parameter(shape: Sequence[int]) -> gpflow.Parameter:
    moments = (tf.Variable(np.full(shape, v), trainable=False) for v in (0.0, _NO_PRIOR))
    return gpflow.Parameter(np.zeros(shape), prior=tfp.distributions.Normal(*moments))


def _hyperparameters(
    parameters: Sequence[tuple[str, Kind]], values: FloatTensor, places: tf.Tensor
) -> list[FloatTensor]:
    """Those of all factors of one kind, [F, 1, 1] each; what is not learnt has no gradient."""
    own = tf.gather(values, places)[:, None, None, :]
    learnt = []
    for p, (_, kind) in enumerate(parameters):
        value = own[..., p]
        if kind is Kind.ORIGIN:
            value = tf.stop_gradient(value)
        learnt.append(tf.exp(value) if kind.positive else value)
    return learnt
