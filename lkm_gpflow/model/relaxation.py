"""Learning with the relaxed posterior: Adam while the temperature falls (paper, section 4.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.keras import tf_keras

from ..gp.seeds import seed_pair
from ..gp.types import Floats, FloatTensor
from .annealing import Annealing, Climb
from .lkm import LKM
from .posteriors import RelaxedPosterior

_STEPS_AT_ONCE = 10
"""Steps in one call of TensorFlow: few enough that Ctrl-C is soon heard."""


class Annealer:
    """Climbs the relaxed objective of a model, from wherever the model's variables are.

    Steps are traced once.  After assigning other numbers, or loading other products into a
    `KernelBank`, `run` climbs again with the same trace.

    Parameters
    ----------
    model
        With a `RelaxedPosterior`.

    Raises
    ------
    ValueError
        If the posterior is not relaxed.
    """

    def __init__(self, model: LKM) -> None:
        if not isinstance(model.posterior, RelaxedPosterior):
            raise ValueError(f"expected a RelaxedPosterior, got {type(model.posterior).__name__}")
        self.model, self.posterior = model, model.posterior
        closed_form: set[Any] = set()
        if model.prior.has_best_tau:
            closed_form = {variable.ref() for variable in model.tau.trainable_variables}
        self._tau_follows = bool(closed_form)
        variables = [v for v in model.trainable_variables if v.ref() not in closed_form]
        logits = {variable.ref() for variable in self.posterior.trainable_variables}
        self._variables = sorted(variables, key=lambda v: v.ref() not in logits)
        self._num_logits = sum(v.ref() in logits for v in variables)
        self._optimizers = [tf_keras.optimizers.Adam() for _ in self._groups(self._variables)]
        for optimizer, group in zip(self._optimizers, self._groups(self._variables), strict=True):
            optimizer.build(group)
        self._steps = tf.function(
            self._take,
            input_signature=[tf.TensorSpec([None], tf.float64), tf.TensorSpec([None, 2], tf.int32)],
            autograph=False,
        )
        self._evaluate = tf.function(model.elbo, autograph=False)

    def run(
        self,
        annealing: Annealing,
        seed: int = 0,
        callback: Callable[[int, LKM], None] | None = None,
        *,
        begun: Climb | None = None,
        most_steps: int | None = None,
    ) -> Climb:
        """Climb once, as `anneal` does, or go on with what has begun; return where that led.

        With ``most_steps`` learning stops after so many steps, if these are fewer than the
        temperature takes to fall.  Going on from there with the same schedule and seed leads to
        where learning without a break does; with as many as have begun, to where these led.
        """
        if begun is None:
            for optimizer in self._optimizers:
                for variable in optimizer.variables:
                    variable.assign(tf.zeros_like(variable))
        else:
            for variable, value in zip(self._all_variables(), begun.variables, strict=True):
                variable.assign(value)
        own_rate = annealing.logits_rate
        rates = (annealing.learning_rate if own_rate is None else own_rate, annealing.learning_rate)
        for optimizer, rate in zip(self._optimizers, rates, strict=True):
            optimizer.learning_rate = rate
        objective = [] if begun is None else begun.objective.tolist()
        first_key, second_key = seed_pair(seed)

        at_once = _STEPS_AT_ONCE if callback is None else 1

        def take_steps(temperatures: Floats) -> float:
            first = len(objective)
            for own in np.array_split(temperatures, range(at_once, len(temperatures), at_once)):
                numbers = np.arange(len(objective), len(objective) + len(own), dtype=np.int32)
                draws = np.stack([np.full_like(numbers, first_key), second_key ^ numbers], axis=1)
                objective.extend(self._steps(own, draws).numpy())
                if callback is not None:
                    callback(int(numbers[0]), self.model)
            return float(np.nanmean(objective[first:]))

        temperatures = np.geomspace(
            annealing.first_temperature, annealing.last_temperature, annealing.num_steps
        )
        if begun is not None:
            last = min(len(objective), annealing.num_steps) - 1
            self.posterior.temperature.assign(temperatures[last])
        to_take = temperatures[len(objective) : most_steps]
        if to_take.size:
            take_steps(to_take)
        if most_steps is not None and most_steps < annealing.num_steps:
            return self._climb_so_far(objective)
        for optimizer, rate in zip(self._optimizers, annealing.settling_rates, strict=True):
            optimizer.learning_rate = rate
        block = np.full(annealing.block_steps, annealing.last_temperature)
        reached = -np.inf
        for _ in range(annealing.most_blocks):
            before, reached = reached, take_steps(block)
            if not reached > before + annealing.tolerance:
                break
        return self._climb_so_far(objective)

    def objective(self, count: int) -> float:
        """The objective at the current parameters, averaged over this many sets of draws."""
        return float(np.mean([self._evaluate(tf.constant([i, 1])) for i in range(count)]))

    def _climb_so_far(self, objective: list[float]) -> Climb:
        values = tuple(variable.numpy() for variable in self._all_variables())
        return Climb(values, np.array(objective))

    def _all_variables(self) -> list[Any]:
        """All that changes while learning: of the model, and of both optimizers."""
        own = [v for optimizer in self._optimizers for v in optimizer.variables]
        return [*self.model.trainable_variables, *own]

    def _groups(self, values: list[Any]) -> tuple[list[Any], list[Any]]:
        """Entries that belong to the logits, and all others."""
        return values[: self._num_logits], values[self._num_logits :]

    def _take(self, temperatures: tf.Tensor, draws: tf.Tensor) -> tf.Tensor:
        """Take a step at each temperature; the objective before every step."""

        def step(given: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
            temperature, draw = given
            self.posterior.temperature.assign(temperature)
            return self._climb(draw)

        return tf.map_fn(
            step, (temperatures, draws), parallel_iterations=1, fn_output_signature=tf.float64
        )

    def _climb(self, draw: tf.Tensor) -> tf.Tensor:
        """One step, with fresh draws and tau by its closed form after it; the objective before."""
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(self._variables)
            loss = self.model.training_loss(draw)
        gradients = tape.gradient(
            loss, self._variables, unconnected_gradients=tf.UnconnectedGradients.ZERO
        )
        # A covariance that is not positive definite has no gradient: stay, with other draws next.
        every = (loss, *gradients)
        is_finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(value)) for value in every])
        tf.cond(is_finite, lambda: self._move(gradients), lambda: None)
        return -loss

    def _move(self, gradients: list[FloatTensor]) -> None:
        """Follow the gradients, and let tau follow."""
        for optimizer, own, group in zip(
            self._optimizers, self._groups(gradients), self._groups(self._variables), strict=True
        ):
            optimizer.apply_gradients(zip(own, group, strict=True))
        if self._tau_follows:
            self.model.update_tau()


def anneal(
    model: LKM,
    annealing: Annealing | None = None,
    *,
    seed: int = 0,
    callback: Callable[[int, LKM], None] | None = None,
) -> None:
    """Train all trainable parameters of a model with a relaxed posterior, in place.

    Every step uses fresh draws of Z.  With the finite prior tau then follows in closed form; with
    the infinite prior it is trained by gradient.

    Parameters
    ----------
    model
        With a `RelaxedPosterior`.
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
    Annealer(model).run(annealing or Annealing(), seed, callback)
