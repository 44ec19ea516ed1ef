"""The weak priors of `initialization` on the parameters of GPflow kernels."""

from __future__ import annotations

import tensorflow as tf
import tensorflow_probability as tfp

from ..kernels.component import ComponentKernel
from ..kernels.grammar import Kind
from .initialization import VARIANCE, hyperparameter_range


def add_priors(kernel: ComponentKernel, step: float, *, of_logarithms: bool = False) -> None:
    """Give every learnt parameter of a kernel the weak prior of its `Range`.

    Parameters
    ----------
    kernel
        A component, for times of span one and series of unit variance.
    step
        Typical distance of two times.
    of_logarithms
        Whether densities are those of the logarithms of positive parameters, as where logarithms
        are learnt; GPflow takes those of the parameters, whose logarithms are less by a variance at
        the mode.
    """
    parameters = [(kernel.variance, VARIANCE, True)]
    for factor in kernel.factors:
        kinds = (kind for _, kind in factor.base.parameters)
        parameters += [
            (parameter, hyperparameter_range(kind, step), kind.positive)
            for parameter, kind in zip(factor.values, kinds, strict=True)
            if kind is not Kind.ORIGIN
        ]
    for parameter, range_, positive in parameters:
        shift = range_.sd**2 if of_logarithms and positive else 0.0
        mean, sd = tf.constant(range_.mean + shift, tf.float64), tf.constant(range_.sd, tf.float64)
        parameter.prior = tfp.distributions.Normal(mean, sd)
        # Unconstrained is the logarithm for positive parameters, the value itself for others.
        parameter.prior_on = "unconstrained"
