"""Learning with the relaxed posterior: Adam while the temperature falls (paper, section 4.2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import tensorflow as tf
from gpflow.keras import tf_keras

from .lkm import LKM
from .posteriors import RelaxedPosterior


@dataclass(frozen=True)
class Annealing:
    """How the relaxed objective is climbed.

    Parameters
    ----------
    num_steps
        Steps of Adam.
    learning_rate
        Of Adam.
    first_temperature, last_temperature
        lambda falls geometrically from the one to the other.
    """

    num_steps: int = 200
    learning_rate: float = 0.05
    first_temperature: float = 1.0
    last_temperature: float = 0.1

    def __post_init__(self) -> None:
        if self.num_steps < 1:
            raise ValueError(f"expected at least 1 step, got {self.num_steps}")
        for name in ("learning_rate", "first_temperature", "last_temperature"):
            if not getattr(self, name) > 0.0:
                raise ValueError(f"expected a positive {name}, got {getattr(self, name)}")


def anneal(
    model: LKM,
    annealing: Annealing | None = None,
    *,
    seed: int = 0,
    callback: Callable[[int, LKM], None] | None = None,
) -> None:
    """Train all trainable parameters of a model with a relaxed posterior, in place.

    Fresh draws of Z at every step, tau by its closed form after it.

    Parameters
    ----------
    model
        With a `RelaxedPosterior` and the finite prior.
    annealing
        See `Annealing`.
    seed
        The draws follow from it.
    callback
        Called after every step with its number and the model, for example to keep nu.

    Raises
    ------
    ValueError
        If the posterior is not relaxed.
    """
    annealing = annealing or Annealing()
    posterior = model.posterior
    if not isinstance(posterior, RelaxedPosterior):
        raise ValueError(f"expected a RelaxedPosterior, got {type(posterior).__name__}")
    closed_form = {variable.ref() for variable in model.tau.trainable_variables}
    variables = [v for v in model.trainable_variables if v.ref() not in closed_form]
    optimizer = tf_keras.optimizers.Adam(annealing.learning_rate)

    @tf.function
    def step(draw: tf.Tensor) -> None:
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(variables)
            loss = -(model.elbo(draw) + model.log_prior_density())
        gradients = tape.gradient(loss, variables)
        # A covariance that is not positive definite has no gradient: stay, with other draws next.
        is_finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(g)) for g in gradients])
        gradients = [tf.where(is_finite, g, tf.zeros_like(g)) for g in gradients]
        optimizer.apply_gradients(zip(gradients, variables, strict=True))

    temperatures = np.geomspace(
        annealing.first_temperature, annealing.last_temperature, annealing.num_steps
    )
    for number, temperature in enumerate(temperatures):
        posterior.temperature.assign(temperature)
        step(tf.constant([seed, number]))
        model.update_tau()
        if callback is not None:
            callback(number, model)
