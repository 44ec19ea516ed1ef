r"""Learning a `MinibatchLKM`: Adam on the kernels, natural gradient steps on tau.

What it costs, for N series of D points, K components, batches of B, P passes over the series:

.. math:: \text{seconds} \approx \frac{P N}{B} [ c_0 + 2^K (c_3 D^3 + c_1 B D) ]

The cubic work is done once a batch, whatever B, so larger batches are cheaper by series, up to the
memory, about ``2^K (8 B D + 4 D^2)`` numbers.  Measured on one core of a busy machine, D from 50 to
200, B from 64 to 512: c_0 near 0.02 s, c_3 near 6e-10 s, c_1 near 1e-7 s.
`tests/benchmarks/minibatch_cost.py` measures them anew and checks them at sizes that were not
fitted.  N enters only through the number of passes, and learning needs less than one: a few
hundred steps, however many series there are, and then one pass to infer what each series has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray, RegressionData
from gpflow.keras import tf_keras

from ..gp.types import Floats, FloatTensor
from ..runtime.text import whole_number
from .minibatch import MinibatchLKM, checked_batch

SeriesSource: TypeAlias = tuple[AnyNDArray, AnyNDArray] | Iterable[RegressionData]
"""X [D, 1] and all series Y [D, N] (an array or a memory map), or an iterable (for example a
`tf.data.Dataset`) of batches X [D, 1] and Y [D, B]."""


@dataclass(frozen=True)
class MinibatchSettings:
    r"""The schedule by which `learn_by_minibatches` climbs the stochastic bound.

    Step i of Adam has the rate ``learning_rate * (1 + i / half)^-forgetting``, that of tau
    ``(1 + i)^-forgetting``: sums of the rates diverge, those of their squares do not (Robbins and
    Monro 1951).  The result is the average of the last iterates (Polyak and Juditsky 1992).

    Parameters
    ----------
    batch_size
        B; all series where there are fewer.  Without effect if batches come ready-made.
    num_steps
        Steps, one batch each.
    learning_rate
        Of Adam, at first.
    half
        Steps after which the rate of Adam begins to fall.
    forgetting
        Above 0.5 and at most 1.
    averaged
        Which part of the iterates, counted from the last, is averaged; from 0 to 1.
    """

    batch_size: int = 256
    num_steps: int = 500
    learning_rate: float = 0.05
    half: int = 100
    forgetting: float = 0.7
    averaged: float = 0.5

    def __post_init__(self) -> None:
        for name in ("batch_size", "num_steps", "half"):
            whole_number(getattr(self, name), name, 1)
        if not self.learning_rate > 0.0:
            raise ValueError(
                f"learning_rate: expected a positive number, got {self.learning_rate!r}"
            )
        if not 0.5 < self.forgetting <= 1.0:
            raise ValueError(
                f"forgetting: expected a number above 0.5 and at most 1, got {self.forgetting!r}"
            )
        if not 0.0 <= self.averaged <= 1.0:
            raise ValueError(f"averaged: expected a number from 0 to 1, got {self.averaged!r}")


@dataclass(frozen=True)
class MinibatchTrace:
    """How the learning went."""

    elbo: Floats
    """The estimate of the bound at each step, from its batch alone, [num_steps]."""
    num_skipped: int
    """Steps whose bound or gradient was not finite, after which nothing moved."""


def learn_by_minibatches(
    model: MinibatchLKM,
    data: SeriesSource,
    settings: MinibatchSettings | None = None,
    *,
    seed: int = 0,
    callback: Callable[[int, MinibatchLKM], None] | None = None,
) -> MinibatchTrace:
    """Learn the kernels and tau, in place.

    Parameters
    ----------
    model
        Its trainable parameters are learnt.
    data
        See `SeriesSource`.  From arrays, every step draws B different series uniformly.  A memory
        map is read only where the batch is: store it series by series, [N, D], and pass its
        transpose.  Ready-made batches start again from the first when they end; the estimate is
        without bias if they are drawn uniformly.
    settings
        See `MinibatchSettings`.
    seed
        The draws follow from it.
    callback
        Called after every step with its number and the model.

    Raises
    ------
    ValueError
        If the data do not belong to the model, or as `MinibatchLKM.local_terms`.
    """
    settings = settings or MinibatchSettings()
    batches = _endless_batches(model, data, settings.batch_size, seed)
    step = _step_function(model, settings)
    average = _Average(model, round(settings.averaged * settings.num_steps))
    elbo, num_skipped = np.empty(settings.num_steps), 0
    for number in range(settings.num_steps):
        estimate, moved = step(
            *checked_batch(next(batches)),
            settings.learning_rate * (1.0 + number / settings.half) ** -settings.forgetting,
            (1.0 + number) ** -settings.forgetting,
        )
        elbo[number], num_skipped = estimate, num_skipped + (not moved)
        if number >= settings.num_steps - average.length:
            average.add()
        if callback is not None:
            callback(number, model)
    if num_skipped == settings.num_steps:
        raise ValueError(
            f"expected a finite bound and gradient, got none in all {num_skipped} steps: other "
            "hyperparameters of the kernels to start from may cure this"
        )
    average.assign()
    return MinibatchTrace(elbo, num_skipped)


def elbo_in_batches(
    model: MinibatchLKM, data: tuple[AnyNDArray, AnyNDArray], batch_size: int = 256
) -> float:
    """The evidence lower bound of all N series, exact, by one pass in batches.

    Parameters
    ----------
    model
        See `MinibatchLKM`.
    data
        X [D, 1] and all series Y [D, N].
    batch_size
        Series at a time: the memory grows with it.

    Raises
    ------
    ValueError
        As `learn_by_minibatches`.
    """
    X, Y = _checked_source(model, data)
    batch_size = whole_number(batch_size, "batch_size", 1)
    bounds = [
        tf.reduce_sum(model.local_terms((X, Y[:, first : first + batch_size])).bounds)
        for first in range(0, model.num_series, batch_size)
    ]
    return float(tf.add_n(bounds) + model.global_bound())


def _step_function(
    model: MinibatchLKM, settings: MinibatchSettings
) -> Callable[..., tuple[tf.Tensor, tf.Tensor]]:
    """One step: from a batch and the two rates to the estimate, and whether it was finite."""
    of_tau = {variable.ref() for variable in model.tau.trainable_variables}
    variables = [v for v in model.trainable_variables if v.ref() not in of_tau]
    optimizer = tf_keras.optimizers.Adam(settings.learning_rate)
    optimizer.build(variables)
    inputs, table, number = (
        tf.TensorSpec(shape, tf.float64) for shape in ([None, 1], [None, None], [])
    )

    @tf.function(input_signature=[inputs, table, number, number])
    def step(
        X: FloatTensor, Y: FloatTensor, learning_rate: FloatTensor, tau_rate: FloatTensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(variables)
            terms = model.local_terms((X, Y))
            elbo = model.elbo_from(terms)
            # A series' share, so that what Adam sees does not grow with N.
            loss = -(elbo + model.log_prior_density()) / model.num_series
        gradients = tape.gradient(
            loss, variables, unconnected_gradients=tf.UnconnectedGradients.ZERO
        )
        is_finite = tf.reduce_all(
            [tf.reduce_all(tf.math.is_finite(value)) for value in (elbo, *gradients)]
        )
        # Otherwise stay, with another batch next.
        if is_finite:
            optimizer.learning_rate.assign(tf.cast(learning_rate, optimizer.learning_rate.dtype))
            optimizer.apply_gradients(zip(gradients, variables, strict=True))
            if of_tau:
                model.update_tau_from(terms, tau_rate)
        return elbo, is_finite

    return step


class _Average:
    """Mean of the last iterates of all that is learnt, unconstrained as the optimiser sees it."""

    def __init__(self, model: MinibatchLKM, length: int) -> None:
        self.length = length
        self._variables = model.trainable_variables
        self._count = 0
        self._mean = [np.zeros(v.shape) for v in self._variables]

    def add(self) -> None:
        self._count += 1
        for mean, variable in zip(self._mean, self._variables, strict=True):
            mean += (variable.numpy() - mean) / self._count

    def assign(self) -> None:
        if self._count:
            for mean, variable in zip(self._mean, self._variables, strict=True):
                variable.assign(mean)


def _endless_batches(
    model: MinibatchLKM, data: SeriesSource, batch_size: int, seed: int
) -> Iterator[RegressionData]:
    if not isinstance(data, tuple):
        while True:
            is_empty = True
            for batch in data:
                is_empty = False
                yield batch
            if is_empty:
                raise ValueError(
                    "data: expected an iterable that starts again from its first batch when it "
                    "ends, as a tf.data.Dataset or a list does, got one without batches"
                )
    X, Y = _checked_source(model, data)
    batch_size = min(batch_size, model.num_series)
    rng = np.random.default_rng(seed)
    while True:
        # NumPy draws a few of many without a table of all.
        chosen = rng.choice(model.num_series, batch_size, replace=False, shuffle=False)
        yield X, Y[:, np.sort(chosen)]


def _checked_source(
    model: MinibatchLKM, data: tuple[AnyNDArray, AnyNDArray]
) -> tuple[AnyNDArray, AnyNDArray]:
    """X and Y as they are (a memory map stays one) if they suit the model."""
    X, Y = (np.asanyarray(part) for part in data)
    if X.ndim != 2 or Y.shape != (len(X), model.num_series):
        raise ValueError(
            f"data: expected X [D, 1] and Y [D, N] with N = {model.num_series} as the model has "
            f"it, got shapes {X.shape} and {Y.shape}"
        )
    return X, Y
