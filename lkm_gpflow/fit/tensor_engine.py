"""The engine of any subclass of `LKM`: its own `component_covariances`, by TensorFlow.

Densities stay with LAPACK.  The model is asked for the components' covariances alone, and a tape
pulls their gradient back to the kernels' hyperparameters and to the trainable parameters that the
subclass adds.  TensorFlow runs eagerly: a search meets hundreds of structures, and each would take
longer to trace than to learn.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import disable_check_shapes

from ..data.observations import Observations
from ..gp.likelihoods import GAUSSIAN
from ..gp.types import Floats, FloatTensor
from ..kernels.component import ComponentKernel, to_kernel
from ..kernels.grammar import Product, parse
from ..model.lkm import LKM
from ..model.subclasses import find
from .covariances import Component, Components
from .engine import LapackEngine
from .fits import FitSettings
from .layout import Layout

_MODELS_KEPT = 256
"""Models that are kept, one for each structure."""

_OF_EVERY_LKM = (".kernels", ".noise_variance", ".tau", ".posterior")
"""Paths of the parameters of every `LKM`; others are those of a subclass."""


def own_parameters(model: LKM) -> dict[str, gpflow.Parameter]:
    """Return the parameters that a subclass of `LKM` adds, by path."""
    return {
        path: parameter
        for path, parameter in gpflow.utilities.parameter_dict(model).items()
        if not path.startswith(_OF_EVERY_LKM)
    }


def values_of(parameters: Mapping[str, gpflow.Parameter]) -> dict[str, Any]:
    """Return the values of parameters by path, in JSON's types."""
    return {path: parameter.numpy().tolist() for path, parameter in parameters.items()}


class TensorEngine(LapackEngine):
    """`Engine` of a subclass of `LKM`.

    Parameters
    ----------
    observations
        The table.
    settings
        Name the model class.

    Raises
    ------
    UnknownModelError
        If the class is not defined.
    """

    def __init__(self, observations: Observations, settings: FitSettings) -> None:
        super().__init__(observations, settings.likelihood)
        self._class, self._settings = find(settings.model), settings
        self._models: OrderedDict[tuple[str, ...], LKM] = OrderedDict()
        self._template = self._model([parse("1 x C")])
        self.parameters = values_of(own_parameters(self._template))

    def covariances(
        self, kernels: Sequence[Product], parameters: Mapping[str, Any], x: Floats | None = None
    ) -> Floats:
        """See `Engine.covariances`."""
        x = self.observations.x if x is None else x
        if not kernels:
            return np.empty((0, len(x), len(x)))
        layout = Layout(kernels, num_series=0)
        model = self._model(kernels)
        self._assign(model, layout, layout.pack(np.empty(0)))
        gpflow.utilities.multiple_assign(model, dict(parameters))
        with disable_check_shapes():
            return np.asarray(model.component_covariances(tf.constant(x[:, None])))

    def components(self, layout: Layout, flat: Floats) -> Components:
        """See `Engine.components`."""
        model = self._model(layout.products)
        self._assign(model, layout, flat)
        variables = _variables(model)
        place = layout.extras.start
        for variable in self._extras(model):
            size = int(np.prod(variable.shape))
            variable.assign(flat[place : place + size].reshape(variable.shape))
            variables.append(variable)
            place += size
        with disable_check_shapes(), tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(variables)
            C = model.component_covariances(model.data[0])
        return _TapedComponents(layout, C, tape, variables)

    def unconstrained(self, parameters: Mapping[str, Any]) -> Floats:
        """See `Engine.unconstrained`."""
        gpflow.utilities.multiple_assign(self._template, dict(parameters))
        values = [np.ravel(variable.numpy()) for variable in self._extras(self._template)]
        return np.concatenate([np.empty(0), *values])

    def constrained(self, extras: Floats) -> Mapping[str, Any]:
        """See `Engine.constrained`."""
        self._assign_extras(extras)
        return values_of(own_parameters(self._template))

    def log_prior(self, extras: Floats) -> tuple[float, Floats]:
        """See `Engine.log_prior`: the priors that the subclass gave its parameters."""
        self._assign_extras(extras)
        variables = self._extras(self._template)
        learnt = [p for p in own_parameters(self._template).values() if p.trainable]
        with tf.GradientTape() as tape:
            total = tf.add_n([tf.zeros((), tf.float64), *(p.log_prior_density() for p in learnt)])
        gradients = tape.gradient(total, variables, unconnected_gradients="zero")
        slopes = [np.ravel(gradient) for gradient in gradients]
        return float(total), np.concatenate([np.empty(0), *slopes])

    def _assign_extras(self, extras: Floats) -> None:
        place = 0
        for variable in self._extras(self._template):
            size = int(np.prod(variable.shape))
            variable.assign(extras[place : place + size].reshape(variable.shape))
            place += size

    def _model(self, kernels: Sequence[Product]) -> LKM:
        """The model of a structure, its numbers to be assigned."""
        key = tuple(str(kernel.structure) for kernel in kernels)
        model = self._models.pop(key, None)
        if model is None:
            likelihood = self._settings.likelihood
            # Subclasses of a narrower constructor stay usable without.
            options: dict[str, Any] = {} if likelihood == GAUSSIAN else {"likelihood": likelihood}
            model = self._class(
                self.observations.table,
                kernels=[to_kernel(kernel) for kernel in kernels],
                alpha=self._settings.alpha,
                **options,
            )
        self._models[key] = model
        if len(self._models) > _MODELS_KEPT:
            self._models.popitem(last=False)
        return model

    def _assign(self, model: LKM, layout: Layout, flat: Floats) -> None:
        """Assign the kernels' hyperparameters: on their scale a flat vector is unconstrained."""
        for variable, value in zip(_variables(model), flat[: layout.noise.start], strict=True):
            variable.assign(value)

    @staticmethod
    def _extras(model: LKM) -> list[tf.Variable]:
        """Unconstrained variables of the trainable parameters that a subclass adds."""
        return [p.unconstrained_variable for p in own_parameters(model).values() if p.trainable]


@lru_cache(maxsize=8)
def engine_of_model(model: str, num_series: int) -> TensorEngine:
    """Return an engine for covariances alone, on times that nobody asks for."""
    x = np.linspace(0.0, 1.0, 4)
    nothing = Observations(x, np.zeros((num_series, len(x))), np.ones((num_series, len(x))))
    return TensorEngine(nothing, FitSettings(model=model))


def _variables(model: LKM) -> list[tf.Variable]:
    """Unconstrained variables of the kernels in the order of `Layout`."""
    kernels = [kernel for kernel in model.kernels if isinstance(kernel, ComponentKernel)]
    variances = [kernel.variance for kernel in kernels]
    values = [value for kernel in kernels for factor in kernel.factors for value in factor.values]
    return [parameter.unconstrained_variable for parameter in (*variances, *values)]


class _Matrix:
    """One component as a matrix [D, D]."""

    def __init__(self, covariance: Floats) -> None:
        self.by_lag, self.is_stationary = np.empty(0), False
        self._covariance = covariance

    def matrix(self) -> Floats:
        return self._covariance


class _TapedComponents:
    """Covariances [K, D, D] on a tape, see `Components`."""

    def __init__(
        self,
        layout: Layout,
        C: FloatTensor,
        tape: tf.GradientTape,
        variables: Sequence[tf.Variable],
    ) -> None:
        self._layout, self._C, self._tape, self._variables = layout, C, tape, variables
        self._parts = [_Matrix(own) for own in C.numpy()]

    @property
    def parts(self) -> Sequence[Component]:
        return self._parts

    def pull_back(self, gradients: Sequence[Floats]) -> Floats:
        upstream = tf.constant(np.array(gradients))
        with disable_check_shapes():
            found = self._tape.gradient(
                self._C, self._variables, upstream, unconnected_gradients="zero"
            )
        flat = np.concatenate([np.ravel(gradient) for gradient in found])
        gradient = np.zeros(self._layout.size)
        gradient[: self._layout.noise.start] = flat[: self._layout.noise.start]
        gradient[self._layout.extras] = flat[self._layout.noise.start :]
        return gradient
