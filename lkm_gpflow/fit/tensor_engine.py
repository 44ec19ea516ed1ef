"""The engine of any subclass of `LKM`: its own `component_covariances`, by TensorFlow.

Densities stay with LAPACK.  The model is asked for one component at a time, and its gradient is
pulled back to the kernel's hyperparameters and to the trainable parameters that the subclass adds.
So one traced function serves every structure that has a component of the same factors, and a
subclass must treat each component alike, whatever the others are.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.optimizers import Scipy

from ..data.observations import Observations
from ..gp.likelihoods import GAUSSIAN, SeriesLikelihood
from ..gp.types import Floats, FloatTensor
from ..kernels.component import ComponentKernel, to_kernel
from ..kernels.grammar import Product, parse
from ..model.lkm import LKM
from ..model.subclasses import model_class
from .covariances import Components
from .engine import Engine
from .layout import Layout

_OF_EVERY_LKM = (".kernels", ".noise_variance", ".tau", ".posterior")
"""Paths of the parameters of every `LKM`; others are those of a subclass."""

_FUNCTIONS = threading.local()
"""Traced functions of this thread: each assigns to variables of its own."""


def own_parameters(model: LKM) -> dict[str, gpflow.Parameter]:
    """Return the parameters that a subclass of `LKM` adds, by path."""
    return {
        path: parameter
        for path, parameter in gpflow.utilities.parameter_dict(model).items()
        if path.partition("[")[0] not in _OF_EVERY_LKM and not path.startswith(".posterior.")
    }


def values_of(parameters: Mapping[str, gpflow.Parameter]) -> dict[str, Any]:
    """Return the values of parameters by path, in JSON's types."""
    return {path: parameter.numpy().tolist() for path, parameter in parameters.items()}


def check_zero_mean(model: LKM) -> None:
    """Refuse a model with a mean function: series are scaled before they are learnt."""
    if not isinstance(model.mean_function, gpflow.functions.Zero):
        raise ValueError(
            f"model: expected a subclass of LKM without a mean function, got "
            f"{type(model).__name__} with {model.mean_function!r}: subtract it from the table"
        )


class TensorEngine(Engine):
    """`Engine` of a subclass of `LKM`.

    Parameters
    ----------
    observations
        The table.
    model
        Name of the class.
    likelihood
        How a series scatters around its covariance.

    Raises
    ------
    UnknownModelError
        If the class is not defined.
    ValueError
        If it has a mean function.
    """

    def __init__(
        self,
        observations: Observations,
        model: str,
        likelihood: SeriesLikelihood = GAUSSIAN,
    ) -> None:
        super().__init__(observations, likelihood)
        self._class = model_class(model)
        check_zero_mean(self._any.model)
        self.parameters = values_of(own_parameters(self._any.model))

    def covariances(
        self, kernels: Sequence[Product], parameters: Mapping[str, Any], x: Floats | None = None
    ) -> Floats:
        """See `Engine.covariances`."""
        x = self.observations.x if x is None else x
        layout, extras = Layout(kernels, num_series=0), self.unconstrained(parameters)
        flat = layout.pack(np.empty(0))
        C = np.empty((len(kernels), len(x), len(x)))
        for k, (kernel, places) in enumerate(zip(kernels, layout.places, strict=True)):
            C[k] = self._function(kernel)(x, flat[places], extras)
        return C

    def components(self, layout: Layout, flat: Floats) -> Components:
        """See `Engine.components`."""
        x, extras = self.observations.x, flat[layout.extras]
        parts = [
            _TensorComponent(self._function(product), x, flat[places], extras)
            for product, places in zip(layout.products, layout.places, strict=True)
        ]
        return Components(layout, parts)

    def unconstrained(self, parameters: Mapping[str, Any]) -> Floats:
        """See `Engine.unconstrained`."""
        gpflow.utilities.multiple_assign(self._any.model, dict(parameters))
        return np.concatenate([np.empty(0), *(np.ravel(v.numpy()) for v in self._any.extras)])

    def constrained(self, extras: Floats) -> Mapping[str, Any]:
        """See `Engine.constrained`."""
        self._any.assign_extras(extras)
        return values_of(own_parameters(self._any.model))

    def log_prior(self, extras: Floats) -> tuple[float, Floats]:
        """See `Engine.log_prior`: the priors that the subclass gave its parameters."""
        self._any.assign_extras(extras)
        value, slopes = self._any.log_prior()
        return float(value), np.concatenate([np.empty(0), *map(np.ravel, slopes)])

    @cached_property
    def _any(self) -> _ComponentFunction:
        """A component of the model, for its own parameters."""
        return self._function(parse("1 x C"))

    def _function(self, product: Product) -> _ComponentFunction:
        known: dict[tuple[object, ...], _ComponentFunction]
        known = _FUNCTIONS.__dict__.setdefault("known", {})
        key = self._class, str(product.structure), self.observations.num_series
        if key not in known:
            known[key] = _ComponentFunction(self._class, product, self.observations.num_series)
        return known[key]


class _ComponentFunction:
    """The covariance of components of some factors, and its gradient, as traced functions."""

    def __init__(self, kind: type[LKM], product: Product, num_series: int) -> None:
        kernel = to_kernel(product)
        X = np.linspace(0.0, 1.0, 4)[:, None]
        self.model = kind((X, np.zeros((len(X), num_series))), kernels=[kernel])
        self.own = _variables(kernel)
        self._learnt = [p for p in own_parameters(self.model).values() if p.trainable]
        self.extras = [parameter.unconstrained_variable for parameter in self._learnt]
        self.log_prior = tf.function(self._log_prior, autograph=False)
        self._value = tf.function(self._covariance, autograph=False, reduce_retracing=True)
        self._slopes = tf.function(self._gradient, autograph=False, reduce_retracing=True)

    def __call__(self, x: Floats, flat: Floats, extras: Floats) -> Floats:
        """Covariance [D, D] on times x [D], from unconstrained numbers."""
        self._assign(flat, extras)
        return np.asarray(self._value(tf.constant(x[:, None])))

    def slopes(self, x: Floats, flat: Floats, extras: Floats, G: Floats) -> Floats:
        """Gradient of the sum of ``G * C`` by the kernel's numbers and then by the extras."""
        self._assign(flat, extras)
        found = self._slopes(tf.constant(x[:, None]), tf.constant(G))
        return np.concatenate([np.ravel(each) for each in found])

    def assign_extras(self, extras: Floats) -> None:
        """Assign the model's own parameters, unconstrained, [E]."""
        Scipy.assign_tensors(self.extras, Scipy.unpack_tensors(self.extras, extras))

    def _assign(self, flat: Floats, extras: Floats) -> None:
        for variable, value in zip(self.own, flat, strict=True):
            variable.assign(value)
        self.assign_extras(extras)

    def _log_prior(self) -> tuple[FloatTensor, list[FloatTensor]]:
        """Log prior density of the model's own parameters, and its gradient."""
        with tf.GradientTape() as tape:
            terms = [parameter.log_prior_density() for parameter in self._learnt]
            total = tf.add_n([tf.zeros((), tf.float64), *terms])
        return total, tape.gradient(total, self.extras, unconnected_gradients="zero")

    def _covariance(self, X: FloatTensor) -> FloatTensor:
        return self.model.component_covariances(X)[0]

    def _gradient(self, X: FloatTensor, G: FloatTensor) -> list[FloatTensor]:
        variables = [*self.own, *self.extras]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(variables)
            C = self._covariance(X)
        found: list[FloatTensor] = tape.gradient(C, variables, G, unconnected_gradients="zero")
        return found


class _TensorComponent:
    """One component at a flat vector."""

    def __init__(
        self, function: _ComponentFunction, x: Floats, flat: Floats, extras: Floats
    ) -> None:
        self._function, self._at = function, (x, flat, extras)
        self.by_lag, self.is_stationary = np.empty(0), False

    def matrix(self) -> Floats:
        return self._function(*self._at)

    def pull_back(self, gradient: Floats) -> Floats:
        return self._function.slopes(*self._at, gradient)


def _variables(kernel: ComponentKernel) -> list[tf.Variable]:
    """Unconstrained variables of a component: on their scale the flat vector is."""
    values = [value for factor in kernel.factors for value in factor.values]
    return [parameter.unconstrained_variable for parameter in (kernel.variance, *values)]
