"""GPflow kernels for the base kernels; `component` multiplies them.

A base kernel is a subclass of `UnitKernel`: unit variance, one `grammar.BaseKernel` that
describes it, and one static method `covariance`.  That method holds all the mathematics; it
broadcasts over leading dimensions of the hyperparameters, so that the search can evaluate many
kernels of one kind in a single call.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import gpflow
import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.base import Parameter
from gpflow.utilities import positive

from ..gp.types import FloatTensor
from . import grammar
from .grammar import Kind


class UnitKernel(gpflow.kernels.Kernel):
    """A base kernel of unit variance on one-dimensional input.

    Subclasses set `base`, define `covariance` and may set `words`; `register_kernel` makes them
    known to expressions, to the search and to reports.

    Parameters
    ----------
    values
        The hyperparameters by name, as ``base.parameters`` lists them.
    active_dims
        The input column the kernel looks at (GPflow's argument).
    """

    base: ClassVar[grammar.BaseKernel]
    words: ClassVar[grammar.Words | None] = None
    """What reports say of it."""

    def __init__(self, *, active_dims: Sequence[int] = (0,), **values: float) -> None:
        super().__init__(active_dims=active_dims, name=type(self).__name__)
        names = [name for name, _ in self.base.parameters]
        if set(values) != set(names):
            raise ValueError(f"{self.base.name}: expected values for {names}, got {list(values)}")
        for name, kind in self.base.parameters:
            parameter = Parameter(
                values[name],
                transform=positive(base="exp") if kind.positive else None,
                trainable=kind is not Kind.ORIGIN,
                name=name,
            )
            setattr(self, name, parameter)

    @staticmethod
    def covariance(x: FloatTensor, x2: FloatTensor, *parameters: FloatTensor) -> FloatTensor:
        """Covariance of two sets of times.

        Parameters
        ----------
        x, x2
            Times, [D, 1] and [1, D2]: they broadcast.
        parameters
            Hyperparameters in the order of ``base.parameters``, each [..., 1, 1].

        Returns
        -------
        Tensor [..., D, D2], or a shape that broadcasts to it.
        """
        raise NotImplementedError

    @property
    def values(self) -> tuple[Parameter, ...]:
        """The hyperparameters in the order of ``base.parameters``."""
        return tuple(getattr(self, name) for name, _ in self.base.parameters)

    @inherit_check_shapes
    def K(self, X: FloatTensor, X2: FloatTensor | None = None) -> FloatTensor:
        if X2 is None:
            return self._between(X[..., :1], tf.linalg.matrix_transpose(X[..., :1]))
        # All rows of one batch with all rows of the other, as GPflow has it.
        covariance = self._between(tf.reshape(X[..., 0], [-1, 1]), tf.reshape(X2[..., 0], [1, -1]))
        return tf.reshape(covariance, tf.concat([tf.shape(X)[:-1], tf.shape(X2)[:-1]], 0))

    def _between(self, x: FloatTensor, x2: FloatTensor) -> FloatTensor:
        values = (tf.convert_to_tensor(value)[None, None] for value in self.values)
        shape = tf.broadcast_dynamic_shape(tf.shape(x), tf.shape(x2))
        return tf.broadcast_to(self.covariance(x, x2, *values), shape)

    @inherit_check_shapes
    def K_diag(self, X: FloatTensor) -> FloatTensor:
        values = (tf.convert_to_tensor(value)[None, None] for value in self.values)
        single = X[..., :1, None]
        diagonal = self.covariance(single, single, *values)
        return tf.broadcast_to(diagonal, tf.shape(single))[..., 0, 0]


KERNELS: dict[str, type[UnitKernel]] = {}
"""The registered base kernels by name."""


def register_kernel(kernel: type[UnitKernel]) -> type[UnitKernel]:
    """Make a base kernel known to expressions and to the search (usable as a decorator).

    A class that is defined again, for example by an edited notebook cell, replaces the old one.

    Raises
    ------
    ValueError
        If the class has no `base` or no `covariance`, if `words` are not `Words`, if covariances
        have a wrong shape, or if another class has registered a base kernel of this name.
    """
    base = _checked_base(kernel)
    _check_covariance(kernel)
    before = KERNELS.get(base.name)
    is_again = before is not None and _where_defined(before) == _where_defined(kernel)
    if before is not None and not is_again:
        raise ValueError(
            f"{kernel.__name__}: expected a base kernel of a new name, but there is another base "
            f"kernel named {base.name}, of {'.'.join(_where_defined(before))}"
        )
    grammar.register_base(base, kernel.words, replace=is_again)
    KERNELS[base.name] = kernel
    return kernel


def _where_defined(kernel: type[UnitKernel]) -> tuple[str, str]:
    return kernel.__module__, kernel.__qualname__


def _checked_base(kernel: type[UnitKernel]) -> grammar.BaseKernel:
    if not (isinstance(kernel, type) and issubclass(kernel, UnitKernel)):
        raise ValueError(f"expected a subclass of UnitKernel to register, got {kernel!r}")
    base = getattr(kernel, "base", None)
    if not isinstance(base, grammar.BaseKernel):
        raise ValueError(f"{kernel.__name__}: expected base = BaseKernel(...), got {base!r}")
    if not isinstance(kernel.words, grammar.Words | None):
        raise ValueError(f"{kernel.__name__}: expected words = Words(...), got {kernel.words!r}")
    return base


def _check_covariance(kernel: type[UnitKernel]) -> None:
    """Refuse a kernel whose covariances are not there or have a wrong shape."""
    name = kernel.__name__
    if kernel.covariance is UnitKernel.covariance:
        raise ValueError(f"{name}: expected a static method covariance(x, x2, *parameters)")
    expected = [3, 4, 5]
    with tf.Graph().as_default():  # shapes only: nothing is computed, no device is initialised
        x, x2 = tf.zeros([4, 1], tf.float64), tf.zeros([1, 5], tf.float64)
        values = [tf.ones([3, 1, 1], tf.float64) for _ in kernel.base.parameters]
        given = kernel.covariance(x, x2, *values)
        fits = isinstance(given, tf.Tensor) and given.dtype == tf.float64
        try:
            fits = fits and tf.broadcast_static_shape(given.shape, tf.TensorShape(expected)) == (
                tf.TensorShape(expected)
            )
        except ValueError:
            fits = False
    if not fits:
        raise ValueError(
            f"{name}.covariance: expected a float64 tensor [..., D, D2], for x [4, 1], x2 [1, 5] "
            f"and hyperparameters [3, 1, 1] one that broadcasts to {expected}, got {given}"
        )


@register_kernel
class WhiteNoise(UnitKernel):
    r"""White noise, :math:`\delta(x, x')`: one where the times are equal.

    Unlike GPflow's ``White`` it is also one between two inputs that hold the same time.
    """

    base = grammar.WN

    @staticmethod
    def covariance(x: FloatTensor, x2: FloatTensor, *parameters: FloatTensor) -> FloatTensor:
        """See `UnitKernel.covariance`."""
        return tf.cast(tf.equal(x, x2), x.dtype)


@register_kernel
class Constant(UnitKernel):
    """Constant functions, k = 1."""

    base = grammar.C

    @staticmethod
    def covariance(x: FloatTensor, x2: FloatTensor, *parameters: FloatTensor) -> FloatTensor:
        """See `UnitKernel.covariance`."""
        return tf.ones(tf.broadcast_dynamic_shape(tf.shape(x), tf.shape(x2)), x.dtype)


@register_kernel
class Linear(UnitKernel):
    """Linear functions that vanish at a location l, k = (x - l)(x' - l) (paper, appendix A)."""

    base = grammar.LIN

    @staticmethod
    def covariance(x: FloatTensor, x2: FloatTensor, *parameters: FloatTensor) -> FloatTensor:
        """See `UnitKernel.covariance`."""
        (location,) = parameters
        return (x - location) * (x2 - location)


@register_kernel
class SquaredExponential(UnitKernel):
    r"""Smooth functions, :math:`k = \exp(-(x - x')^2 / 2 l^2)` (paper, appendix A)."""

    base = grammar.SE

    @staticmethod
    def covariance(x: FloatTensor, x2: FloatTensor, *parameters: FloatTensor) -> FloatTensor:
        """See `UnitKernel.covariance`."""
        (lengthscale,) = parameters
        return tf.exp(-0.5 * tf.square((x - x2) / lengthscale))


def _remainder(r: FloatTensor, period: FloatTensor) -> FloatTensor:
    """``r - round(r / period) * period`` without loss: small l magnify an error by 1 / l.

    Half of the period's digits at a time (Dekker's split), so that both products are exact.
    """
    whole = tf.stop_gradient(tf.round(r / period))
    shifted = (2.0**27 + 1.0) * period
    upper = shifted - (shifted - period)
    return (r - whole * upper) - whole * (period - upper)


def _bessel_i0_minus_1(x: FloatTensor) -> FloatTensor:
    """I0(x) - 1 by its power series, for 0 <= x <= 0.5."""
    quarter = 0.25 * tf.square(x)
    value = tf.zeros_like(x)
    # Horner's scheme; the next term is below 1e-20.
    for j in range(7, 0, -1):
        value = quarter / (j * j) * (1.0 + value)
    return value


@register_kernel
class ZeroMeanPeriodic(UnitKernel):
    r"""Periodic functions with their mean removed (paper, appendix A; Lloyd et al. 2014).

    .. math:: k = \frac{\exp(\cos(2\pi r/p)/l^2) - I_0(1/l^2)}{\exp(1/l^2) - I_0(1/l^2)},
       \qquad r = x - x'

    tends to a cosine for large l.  Evaluated in a form that loses no digits for any l.
    """

    base = grammar.PER

    @staticmethod
    def covariance(x: FloatTensor, x2: FloatTensor, *parameters: FloatTensor) -> FloatTensor:
        """See `UnitKernel.covariance`."""
        period, lengthscale = parameters
        rest = _remainder(x - x2, period)
        sine_squared = tf.square(tf.sin(math.pi * rest / period))
        precision = 1.0 / tf.square(lengthscale)
        is_small = precision < 0.5
        # Both branches see arguments of their own range, or gradients of the other become NaN.
        small = tf.where(is_small, precision, 0.25 * tf.ones_like(precision))
        large = tf.where(is_small, tf.ones_like(precision), precision)
        small_mean = _bessel_i0_minus_1(small)
        small_value = (tf.math.expm1(small * (1.0 - 2.0 * sine_squared)) - small_mean) / (
            tf.math.expm1(small) - small_mean
        )
        large_mean = tf.math.special.bessel_i0e(large)
        large_value = (tf.exp(-2.0 * large * sine_squared) - large_mean) / (1.0 - large_mean)
        return tf.where(is_small, small_value, large_value)


@register_kernel
class RandomWalk(UnitKernel):
    """The random walk (Wiener process), k = min(x - x0, x' - x0) for times after x0.

    x0, the `start`, is fixed; a search sets it a third of the span before the first observation.
    Before it the walk is zero.  The variance is per unit of time.
    """

    base = grammar.RW

    @staticmethod
    def covariance(x: FloatTensor, x2: FloatTensor, *parameters: FloatTensor) -> FloatTensor:
        """See `UnitKernel.covariance`."""
        (start,) = parameters
        return tf.maximum(tf.minimum(x, x2) - start, 0.0)


@register_kernel
class IntegratedOrnsteinUhlenbeck(UnitKernel):
    r"""A random walk with momentum: its velocity is an Ornstein-Uhlenbeck process.

    With s = x - x0, t = x' - x0 and the lengthscale l of the velocity,

    .. math:: k = \min(s, t)
       - \tfrac{l}{2} \big(1 + e^{-|t - s| / l} - e^{-s / l} - e^{-t / l}\big).

    Over times much longer than l it is a random walk of unit variance per unit of time (as l tends
    to zero: RW); over shorter ones it keeps its direction.  The velocity is in its stationary state
    at the `start` x0, which is fixed: see `RandomWalk`.  Before it the walk is zero.
    Source: Taylor, Cumberland and Sy 1994, "A stochastic model for analysis of longitudinal AIDS
    data".
    """

    base = grammar.IOU

    @staticmethod
    def covariance(x: FloatTensor, x2: FloatTensor, *parameters: FloatTensor) -> FloatTensor:
        """See `UnitKernel.covariance`."""
        lengthscale, start = parameters
        s, t = tf.maximum(x - start, 0.0), tf.maximum(x2 - start, 0.0)
        # 1 + e^{-|t - s| / l} - e^{-s / l} - e^{-t / l}, with expm1 for small times.
        shorter, longer = tf.minimum(s, t) / lengthscale, tf.maximum(s, t) / lengthscale
        lost = tf.math.expm1(shorter - longer) - tf.math.expm1(-shorter) - tf.math.expm1(-longer)
        return tf.minimum(s, t) - 0.5 * lengthscale * lost


@register_kernel
class OrnsteinUhlenbeck(UnitKernel):
    r"""A walk that returns to its mean, :math:`k = \exp(-|x - x'| / l)`.

    The Ornstein-Uhlenbeck process, or Matern kernel of smoothness one half: at regular times an
    autoregression of the first order.  Over times much shorter than l it is a random walk.
    """

    base = grammar.OU

    @staticmethod
    def covariance(x: FloatTensor, x2: FloatTensor, *parameters: FloatTensor) -> FloatTensor:
        """See `UnitKernel.covariance`."""
        (lengthscale,) = parameters
        return tf.exp(-tf.abs(x - x2) / lengthscale)


@register_kernel
class Until(UnitKernel):
    r"""What ends at a change point; other factors say what it is.

    .. math:: k = u(x)\,u(x'), \qquad u(x) = \sigma\big((\mathtt{at} - x) / \mathtt{width}\big),

    with the logistic sigmoid: one long before `at`, a half there, zero long after it.
    """

    base = grammar.UNTIL

    @staticmethod
    def covariance(x: FloatTensor, x2: FloatTensor, *parameters: FloatTensor) -> FloatTensor:
        """See `UnitKernel.covariance`."""
        at, width = parameters
        return tf.sigmoid((at - x) / width) * tf.sigmoid((at - x2) / width)


@register_kernel
class From(UnitKernel):
    """What begins at a change point: as `Until`, but zero before `at` and one after it.

    The change point of Lloyd et al. 2014, CP(k, k') = k x UNTIL + k' x FROM, is a sum, so its terms
    are two components of the model, and each series may have both, or one of them.
    """

    base = grammar.FROM

    @staticmethod
    def covariance(x: FloatTensor, x2: FloatTensor, *parameters: FloatTensor) -> FloatTensor:
        """See `UnitKernel.covariance`."""
        at, width = parameters
        return tf.sigmoid((x - at) / width) * tf.sigmoid((x2 - at) / width)
