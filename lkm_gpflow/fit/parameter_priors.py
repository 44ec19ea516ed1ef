"""The weak priors of `initialization` on the parameters of GPflow kernels."""

from __future__ import annotations

import tensorflow as tf
import tensorflow_probability as tfp

from ..kernels.component import ComponentKernel
from ..kernels.grammar import Kind
from .initialization import VARIANCE, hyperparameter_range


def add_priors(kernel: ComponentKernel, step: float) -> None:
    """Give every learnt parameter of a kernel the weak prior of its `Range`.

    Parameters
    ----------
    kernel
        A component, for times of span one and series of unit variance.
    step
        Typical distance of two times.
    """
    parameters = [(kernel.variance, VARIANCE)]
    for factor in kernel.factors:
        kinds = (kind for _, kind in factor.base.parameters)
        parameters += [
            (parameter, hyperparameter_range(kind, step))
            for parameter, kind in zip(factor.values, kinds, strict=True)
            if kind is not Kind.ORIGIN
        ]
    for parameter, range_ in parameters:
        mean, sd = tf.constant(range_.mean, tf.float64), tf.constant(range_.sd, tf.float64)
        parameter.prior = tfp.distributions.Normal(mean, sd)
        # Unconstrained is the logarithm for positive parameters, the value itself for others.
        parameter.prior_on = "unconstrained"
