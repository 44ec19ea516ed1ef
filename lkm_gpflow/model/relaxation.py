"""The paper's relaxation of Z and its learner: Adam while the temperature falls (section 4.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.config import default_float
from gpflow.keras import tf_keras
from gpflow.utilities import positive

from ..gp.limits import MAX_ENUMERATED_COMPONENTS
from ..gp.types import Floats, FloatTensor
from ..runtime.arguments import seed_pair
from ..runtime.text import whole_number
from .annealing import Annealing
from .bound import mean_field_bound
from .posteriors import (
    AssignmentModel,
    Posterior,
    Seed,
    WeightedRows,
    all_configurations,
    independent_log_weights,
    significant,
)


class RelaxedBernoulli(tfp.distributions.RelaxedBernoulli):
    r"""TFP's `RelaxedBernoulli`, with samples whose gradients are finite.

    .. math::
        \tilde z = \mathrm{sigmoid}(y), \qquad
        y \sim \mathrm{Logistic}(\mathrm{logit}\,\nu / \lambda,\; 1 / \lambda)

    TFP draws from this law too, but its sigmoid takes the exponential of large y on the way, which
    has no gradient: at logits of 30 it gives NaN from a temperature of about 0.05 down.
    `tf.sigmoid` of TFP's `Logistic` does not.  Everything else is inherited.
    """

    def _sample_n(self, n: tf.Tensor, seed: tf.Tensor | None = None) -> FloatTensor:
        scale = tf.math.reciprocal(tf.convert_to_tensor(self.temperature))
        y = tfp.distributions.Logistic(self.logits_parameter() * scale, scale)
        return tf.sigmoid(y.sample(n, seed=seed))


class RelaxedPosterior(Posterior):
    r"""Independent Bernoulli variables, learnt through a continuous relaxation.

    .. math::
        q(z_{nk}) = \mathrm{Bernoulli}(\nu_{nk}), \qquad
        \tilde z_{nk} \sim \mathrm{RelaxedBernoulli}(\lambda, \mathrm{logit}\,\nu_{nk})

    The objective replaces z by S samples of z~ in the likelihood term only.  It is not a bound,
    because the mean of z~ is not nu; `hard_elbo` and `mean_field_elbo` are.  Source: Tong and
    Choi 2019, section on variational inference; Maddison et al. 2017, *The Concrete Distribution*.

    All logits start at zero, a probability of one half.  Components with different kernels get
    different gradients, and independent draws separate identical ones.

    The posterior keeps its random numbers, so that the objective is a function of the parameters
    alone, as L-BFGS requires.  A stochastic optimiser needs new ones before every step:

    >>> @tf.function
    ... def step():
    ...     model.posterior.resample()
    ...     optimizer.minimize(model.training_loss, model.trainable_variables)

    Parameters
    ----------
    num_samples
        S, at least 1.
    temperature
        lambda > 0.  ``posterior.temperature.assign`` changes it without retracing; it is never
        trained.
    seed
        Of the draws that it keeps.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """

    # Configuration: hidden from `gpflow.set_trainable`, which would let optimisers train it.
    _TF_MODULE_IGNORED_PROPERTIES = frozenset(
        {"temperature", "seed", *gpflow.base.Module._TF_MODULE_IGNORED_PROPERTIES}
    )

    def __init__(self, num_samples: int = 10, temperature: float = 0.5, seed: int = 0) -> None:
        super().__init__()
        is_number = isinstance(temperature, int | float | np.number)
        if not is_number or not 0.0 < temperature < np.inf:
            raise ValueError(f"temperature: expected a positive number, got {temperature!r}")
        self.num_samples = whole_number(num_samples, "num_samples", 1)
        self.temperature = gpflow.Parameter(temperature, transform=positive(), trainable=False)
        self.seed = tf.Variable(seed_pair(seed), dtype=tf.int32, trainable=False)

    def build(self, num_series: int, num_components: int) -> None:
        """Create ``logits`` [N, K]; see `Posterior.build`."""
        super().build(num_series, num_components)
        self.logits = gpflow.Parameter(np.zeros((num_series, num_components)))

    def distribution(self, model: AssignmentModel) -> tfp.distributions.RelaxedBernoulli:
        """TFP's distribution of the relaxed Z, batch [N, K], differentiable in the logits."""
        return RelaxedBernoulli(self.temperature, logits=tf.convert_to_tensor(self.logits))

    def resample(self, seed: int | None = None) -> None:
        """Keep other draws: the next ones, or those of a seed; also within a `tf.function`."""
        if seed is None:
            self.seed.assign_add([0, 1])
        else:
            self.seed.assign(seed_pair(seed))

    @inherit_check_shapes
    def elbo(self, model: AssignmentModel, seed: Seed = None) -> FloatTensor:
        """The paper's relaxed objective, with the draws that are kept or those of `seed`."""
        log_likelihood = model.log_likelihood(self.relaxed_sample(model, seed))  # [S, N]
        return self.bound(model, _mean_over_samples(log_likelihood))

    @check_shapes("return: [S, N, K]")
    def relaxed_sample(self, model: AssignmentModel, seed: Seed = None) -> FloatTensor:
        """The samples z~ of the objective, [S, N, K], differentiable in the logits."""
        return self.distribution(model).sample(self.num_samples, seed=self._key(seed))

    @check_shapes("expected_log_likelihood: []", "return: []")
    def bound(self, model: AssignmentModel, expected_log_likelihood: FloatTensor) -> FloatTensor:
        """`bound.mean_field_bound` with an expected log likelihood, or an estimate of it."""
        return mean_field_bound(model.prior, model.tau, self.logits, expected_log_likelihood)

    @check_shapes("return: []")
    def hard_elbo(self, model: AssignmentModel, seed: Seed = None) -> FloatTensor:
        """Unbiased estimate of the mean-field bound, from S binary draws of Z.

        It has no gradient: that of its other terms alone would lead away from the bound.
        """
        q = tfp.distributions.Bernoulli(logits=tf.convert_to_tensor(self.logits))
        Z = tf.cast(q.sample(self.num_samples, seed=self._key(seed)), default_float())
        return tf.stop_gradient(self.bound(model, _mean_over_samples(model.log_likelihood(Z))))

    @check_shapes("return: []")
    def mean_field_elbo(self, model: AssignmentModel) -> FloatTensor:
        """The exact mean-field bound, by summing over {0, 1}^K.

        Raises
        ------
        ValueError
            If K is above 12.
        """
        configurations = all_configurations(self.num_components)
        weights = tf.exp(independent_log_weights(self.logits, configurations))
        log_likelihood = model.configuration_log_likelihood(configurations)
        return self.bound(model, tf.reduce_sum(weights * log_likelihood))

    def _key(self, seed: Seed) -> tf.Tensor:
        """The pair of integers that TFP's samplers want."""
        if seed is None:
            return tf.convert_to_tensor(self.seed)
        if not tf.is_tensor(seed) and np.ndim(seed) == 0:
            return tf.constant(seed_pair(seed), tf.int32)
        pair = tf.convert_to_tensor(seed)
        return pair if pair.shape.rank == 1 else tf.stack([pair, tf.zeros_like(pair)])

    @inherit_check_shapes
    def probabilities(self, model: AssignmentModel) -> FloatTensor:
        """``sigmoid(logits)``, [N, K]."""
        return tf.sigmoid(self.logits)

    @inherit_check_shapes
    def assignment(self, model: AssignmentModel) -> FloatTensor:
        """One where nu > 0.5, [N, K]."""
        return tf.cast(self.probabilities(model) > 0.5, default_float())

    def configurations(self, model: AssignmentModel) -> WeightedRows:
        """Products of nu; beyond 12 components all but the 12 most uncertain are rounded."""
        num_free = min(self.num_components, MAX_ENUMERATED_COMPONENTS)
        _, free = tf.math.top_k(-tf.abs(self.logits), num_free)  # [N, M]
        patterns = all_configurations(num_free)  # [T, M]
        uncertain = tf.gather(self.logits, free, batch_dims=1)
        weights = tf.exp(independent_log_weights(uncertain, patterns))
        series, pattern, weights = significant(weights)
        columns = tf.gather(free, series)  # [P, M]
        positions = tf.stack(
            [tf.broadcast_to(tf.range(tf.size(series))[:, None], tf.shape(columns)), columns], -1
        )
        rows = tf.tensor_scatter_nd_update(
            tf.gather(self.assignment(model), series), positions, tf.gather(patterns, pattern)
        )
        return WeightedRows(series, rows, weights)


def _mean_over_samples(log_likelihood: FloatTensor) -> FloatTensor:
    """[S, N] -> scalar: the sum over series, averaged over samples."""
    return tf.reduce_mean(tf.reduce_sum(log_likelihood, axis=-1))


# --- learning ---------------------------------------------------------------------------------


class AnnealedModel(AssignmentModel, Protocol):
    """An `LKM`, as far as its learner knows it."""

    posterior: Posterior

    @property
    def trainable_variables(self) -> tuple[tf.Variable, ...]:
        """All that is learnt."""

    def elbo(self, seed: Seed = None) -> FloatTensor:
        """The objective."""

    def training_loss(self, seed: Seed = None) -> FloatTensor:
        """Minus the objective and the log density of priors on parameters."""

    def update_tau(self) -> None:
        """Set tau to its optimum given nu."""


class Annealer:
    """Climbs the relaxed objective of a model, from wherever the model's variables are.

    Steps are traced once.  After assigning other numbers, `run` climbs again with the same trace.

    Parameters
    ----------
    model
        With a `RelaxedPosterior`.

    Raises
    ------
    ValueError
        If the posterior is not relaxed.
    """

    def __init__(self, model: AnnealedModel) -> None:
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
        self._step = tf.function(
            self._climb,
            input_signature=[tf.TensorSpec([], tf.float64), tf.TensorSpec([2], tf.int32)],
            autograph=False,
        )
        self._evaluate = tf.function(model.elbo, autograph=False)

    def run(
        self,
        annealing: Annealing,
        seed: int = 0,
        callback: Callable[[int, Any], None] | None = None,
    ) -> Floats:
        """Climb, as `anneal` does; return the objective before every step."""
        for optimizer in self._optimizers:
            for variable in optimizer.variables:
                variable.assign(tf.zeros_like(variable))
        own_rate = annealing.logits_rate
        rates = (annealing.learning_rate if own_rate is None else own_rate, annealing.learning_rate)
        for optimizer, rate in zip(self._optimizers, rates, strict=True):
            optimizer.learning_rate = rate
        objective: list[float] = []
        first_key, second_key = seed_pair(seed)

        def take_steps(temperatures: Floats) -> float:
            first = len(objective)
            for number, temperature in enumerate(temperatures, start=first):
                draw = tf.constant([first_key, second_key ^ number], tf.int32)
                objective.append(float(self._step(temperature, draw)))
                if callback is not None:
                    callback(number, self.model)
            return float(np.nanmean(objective[first:]))

        take_steps(
            np.geomspace(
                annealing.first_temperature, annealing.last_temperature, annealing.num_steps
            )
        )
        for optimizer, rate in zip(self._optimizers, annealing.settling_rates, strict=True):
            optimizer.learning_rate = rate
        block = np.full(annealing.block_steps, annealing.last_temperature)
        reached = -np.inf
        for _ in range(annealing.most_blocks):
            before, reached = reached, take_steps(block)
            if not reached > before + annealing.tolerance:
                break
        return np.array(objective)

    def objective(self, count: int) -> float:
        """The objective at the current parameters, averaged over this many sets of draws."""
        return float(np.mean([self._evaluate(tf.constant([i, 1])) for i in range(count)]))

    def _groups(self, values: list[Any]) -> tuple[list[Any], list[Any]]:
        """Entries that belong to the logits, and all others."""
        return values[: self._num_logits], values[self._num_logits :]

    def _climb(self, temperature: tf.Tensor, draw: tf.Tensor) -> tf.Tensor:
        """One step, with fresh draws and tau by its closed form after it; the objective before."""
        self.posterior.temperature.assign(temperature)
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
    model: AnnealedModel,
    annealing: Annealing | None = None,
    *,
    seed: int = 0,
    callback: Callable[[int, Any], None] | None = None,
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
