"""Approximate posteriors over Z, the table of which series has which component.

`RelaxedPosterior` is the paper's: independent Bernoulli variables, learnt through continuous
samples.  `EnumeratedPosterior` keeps one probability for every configuration in {0, 1}^K of a
series and needs no samples.  Both turn a model's log likelihood into an evidence lower bound, and
into the weighted configurations that predictions average over.
"""

from __future__ import annotations

import abc
from typing import Any, NamedTuple, Protocol, TypeAlias

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.config import default_float
from gpflow.utilities import positive

from ..gp.limits import MAX_ENUMERATED_COMPONENTS, MIN_WEIGHT
from ..gp.seeds import seed_pair
from ..gp.types import FloatTensor
from ..gp.variables import open_variable
from ..runtime.text import whole_number
from .configurations import (
    all_configurations,
    check_enumerable,
    configurations_from_numbers,
    independent_log_weights,
)
from .ibp import IBP

Seed: TypeAlias = int | tf.Tensor | None
"""None for the draws that the posterior keeps; an integer or an integer tensor [2] for others."""

MIN_RESPONSIBILITY = 1e-8
REFRESH_CHUNK = 256


class AssignmentModel(Protocol):
    """What a posterior needs to know of its model."""

    prior: IBP
    tau: gpflow.Parameter

    def log_likelihood(self, Z: FloatTensor) -> FloatTensor:
        """``log p(x_n | z_n)`` [..., N] of assignments [..., N, K]."""

    def configuration_log_likelihood(self, configurations: FloatTensor) -> FloatTensor:
        """``log p(x_n | t)`` [N, T] of configurations [T, K]."""


class WeightedRows(NamedTuple):
    """Possible rows of Z with their weights; those of one series sum to one."""

    series: tf.Tensor
    """Which series the row belongs to, ascending, [P]."""
    rows: FloatTensor
    """The configurations, [P, K]."""
    weights: FloatTensor
    """[P]"""


class Posterior(gpflow.base.Module, abc.ABC):
    """Base class: q(Z), a configuration object until `build` is called by its model."""

    num_series: int
    num_components: int

    def build(self, num_series: int, num_components: int) -> None:
        """Create the variables for N series and K components; the model calls this once.

        Raises
        ------
        ValueError
            If the posterior belongs to a model already.
        """
        if hasattr(self, "num_series"):
            raise ValueError(
                "this posterior belongs to another model: expected a new object for each LKM, "
                f"got one built for {self.num_series} series and {self.num_components} components"
            )
        self.num_series, self.num_components = num_series, num_components

    @abc.abstractmethod
    @check_shapes("return: []")
    def elbo(self, model: AssignmentModel, seed: Seed = None) -> FloatTensor:
        """Objective to maximise, a scalar."""

    @abc.abstractmethod
    @check_shapes("return: [N, K]")
    def probabilities(self, model: AssignmentModel) -> FloatTensor:
        """``nu``, the marginal probabilities q(z_nk = 1), [N, K]."""

    @abc.abstractmethod
    @check_shapes("return: [N, K]")
    def assignment(self, model: AssignmentModel) -> FloatTensor:
        """The most probable Z, zeros and ones, [N, K]."""

    @abc.abstractmethod
    def configurations(self, model: AssignmentModel) -> WeightedRows:
        """Rows of Z with their weights, without those below 1e-4; sums to one per series."""


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
        Z = self.distribution(model).sample(self.num_samples, seed=self._draws(seed))
        return self._bound(model, _mean_over_samples(model.log_likelihood(Z)))

    @check_shapes("return: []")
    def hard_elbo(self, model: AssignmentModel, seed: Seed = None) -> FloatTensor:
        """Unbiased estimate of the mean-field bound, from S binary draws of Z.

        It has no gradient: that of its other terms alone would lead away from the bound.
        """
        q = tfp.distributions.Bernoulli(logits=tf.convert_to_tensor(self.logits))
        Z = tf.cast(q.sample(self.num_samples, seed=self._draws(seed)), default_float())
        return tf.stop_gradient(self._bound(model, _mean_over_samples(model.log_likelihood(Z))))

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
        return self._bound(model, tf.reduce_sum(weights * log_likelihood))

    def _draws(self, seed: Seed) -> tf.Tensor:
        """The pair of integers that TFP's samplers want."""
        if seed is None:
            return tf.convert_to_tensor(self.seed)
        if not tf.is_tensor(seed) and np.ndim(seed) == 0:
            return tf.constant(seed_pair(seed), tf.int32)
        pair = tf.convert_to_tensor(seed)
        return pair if pair.shape.rank == 1 else tf.stack([pair, tf.zeros_like(pair)])

    def _bound(self, model: AssignmentModel, expected_log_likelihood: FloatTensor) -> FloatTensor:
        return (
            expected_log_likelihood
            + model.prior.expected_log_weights(model.tau)
            + model.prior.expected_log_assignments(model.tau, self.probabilities(model))
            + bernoulli_entropy(self.logits)
            + model.prior.entropy(model.tau)
        )

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
        series, pattern, weights = _significant(weights)
        columns = tf.gather(free, series)  # [P, M]
        positions = tf.stack(
            [tf.broadcast_to(tf.range(tf.size(series))[:, None], tf.shape(columns)), columns], -1
        )
        rows = tf.tensor_scatter_nd_update(
            tf.gather(self.assignment(model), series), positions, tf.gather(patterns, pattern)
        )
        return WeightedRows(series, rows, weights)


class EnumeratedPosterior(Posterior):
    r"""One probability for every configuration of every series, in closed form.

    .. math::
        \mathrm{ELBO} = \sum_n \log \sum_{t \in \{0,1\}^K}
            \exp\Big(\log p(x_n \mid t) + \sum_k t_k a_k + (1 - t_k) b_k\Big)
            + E_q[\log p(\pi)] + H[q(\pi)]

    with a_k = E_q[log pi_k] and b_k = E_q[log(1 - pi_k)].  It is q(Z) at its optimum, without the
    independence that the paper assumes, hence at or above the best mean-field bound; and it is
    deterministic, so that L-BFGS converges on it.

    ``active`` holds the numbers of the configurations in the sum, at first all of them.  `refresh`
    drops those without responsibility for any series.  The rest is still a lower bound.
    """

    # Whole numbers, which no optimiser can train: hidden from `gpflow.set_trainable`.
    _TF_MODULE_IGNORED_PROPERTIES = frozenset(
        {"active", *gpflow.base.Module._TF_MODULE_IGNORED_PROPERTIES}
    )

    def build(self, num_series: int, num_components: int) -> None:
        """Create ``active``; see `Posterior.build`.

        Raises
        ------
        ValueError
            If K is above 12, or if the posterior belongs to a model already.
        """
        check_enumerable(num_components)
        super().build(num_series, num_components)
        self.active = open_variable(tf.range(2**num_components))

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the state of another, as `gpflow.utilities.deepcopy` does."""
        self.__dict__.update(state)
        if "active" in state:
            self.active = open_variable(state["active"])

    @inherit_check_shapes
    def elbo(self, model: AssignmentModel, seed: Seed = None) -> FloatTensor:
        """The bound above; `seed` is without effect."""
        return (
            tf.reduce_sum(tf.reduce_logsumexp(self._log_joint(model, self.active), axis=-1))
            + model.prior.expected_log_weights(model.tau)
            + model.prior.entropy(model.tau)
        )

    @check_shapes("return: [N, T]")
    def responsibilities(self, model: AssignmentModel) -> FloatTensor:
        """q(z_n = t) of the active configurations, [N, T]."""
        return tf.nn.softmax(self._log_joint(model, self.active), axis=-1)

    def refresh(self, model: AssignmentModel) -> None:
        """Evaluate all configurations again and keep those that matter to some series (above 1e-8).

        It holds 256 of them in memory at a time, where the bound holds all that are active.
        """
        everything = tf.range(2**self.num_components)
        parts = [
            self._log_joint(model, everything[start : start + REFRESH_CHUNK])
            for start in range(0, 2**self.num_components, REFRESH_CHUNK)
        ]
        responsibilities = tf.nn.softmax(tf.concat(parts, axis=1), axis=-1)
        # What is not a number cannot be told to be small.
        matters = ~tf.reduce_all(responsibilities < MIN_RESPONSIBILITY, axis=0)
        self.active.assign(tf.boolean_mask(everything, matters))

    def _log_joint(self, model: AssignmentModel, numbers: tf.Tensor) -> FloatTensor:
        """``log p(x_n | t)`` plus the expected log prior of t, [N, T]."""
        t = configurations_from_numbers(numbers, self.num_components)
        on = model.prior.expected_log_on(model.tau)
        off = model.prior.expected_log_off(model.tau)
        log_prior = tf.linalg.matvec(t, on) + tf.linalg.matvec(1.0 - t, off)
        return model.configuration_log_likelihood(t) + log_prior

    @inherit_check_shapes
    def probabilities(self, model: AssignmentModel) -> FloatTensor:
        """Responsibilities summed over the configurations that have the component, [N, K]."""
        t = configurations_from_numbers(self.active, self.num_components)
        # Sums of responsibilities may pass one by a rounding error.
        return tf.minimum(tf.matmul(self.responsibilities(model), t), 1.0)

    @inherit_check_shapes
    def assignment(self, model: AssignmentModel) -> FloatTensor:
        """The jointly most probable configuration of each series, [N, K]."""
        t = configurations_from_numbers(self.active, self.num_components)
        return tf.gather(t, tf.argmax(self.responsibilities(model), axis=-1))

    def configurations(self, model: AssignmentModel) -> WeightedRows:
        """Configurations weighted by their responsibilities."""
        t = configurations_from_numbers(self.active, self.num_components)
        series, row, weights = _significant(self.responsibilities(model))
        return WeightedRows(series, tf.gather(t, row), weights)


@check_shapes("logits: [N, K]", "return: []")
def bernoulli_entropy(logits: FloatTensor) -> FloatTensor:
    """Summed entropy of Bernoulli variables, without cancellation at large logits."""
    logits = tf.convert_to_tensor(logits)
    return tf.reduce_sum(
        tf.sigmoid(logits) * tf.math.softplus(-logits)
        + tf.sigmoid(-logits) * tf.math.softplus(logits)
    )


def _mean_over_samples(log_likelihood: FloatTensor) -> FloatTensor:
    """[S, N] -> scalar: the sum over series, averaged over samples."""
    return tf.reduce_mean(tf.reduce_sum(log_likelihood, axis=-1))


def _significant(weights: FloatTensor) -> tuple[tf.Tensor, tf.Tensor, FloatTensor]:
    """Row index, column index and weight of entries that are not tiny; rows sum to one."""
    kept = tf.where(weights >= MIN_WEIGHT, weights, tf.zeros_like(weights))
    kept /= tf.reduce_sum(kept, axis=-1, keepdims=True)
    where = tf.cast(tf.where(kept > 0.0), tf.int32)
    return where[:, 0], where[:, 1], tf.gather_nd(kept, where)
