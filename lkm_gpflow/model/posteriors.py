"""Approximate posteriors over Z, the table of which series has which component.

`Posterior` says what every posterior does: it turns a model's log likelihood into an evidence lower
bound, and into the weighted configurations that predictions average over.  `EnumeratedPosterior`
keeps one probability for every configuration in {0, 1}^K of a series and needs no samples.  The
paper's, `RelaxedPosterior`, is in `relaxation` beside the learner that anneals it.
"""

from __future__ import annotations

import abc
from typing import NamedTuple, Protocol, TypeAlias

import gpflow
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import TensorType
from gpflow.config import default_float

from ..gp.limits import MAX_ENUMERATED_COMPONENTS, MIN_WEIGHT
from ..gp.types import FloatTensor
from ..runtime.arguments import seed_pair
from .bound import enumerated_bound, log_joint
from .ibp import IBP

Seed: TypeAlias = int | tf.Tensor | None
"""None for the draws that the posterior keeps; an integer or an integer tensor [2] for others."""


def sampling_key(seed: int | None) -> tf.Tensor:
    """The key [2] of TensorFlow's stateless samplers; None for one of its global generator."""
    if seed is None:
        return tf.random.uniform([2], maxval=2**31 - 1, dtype=tf.int32)
    return tf.constant(seed_pair(seed), tf.int32)


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

    def draw(self, num_series: int, num_samples: int, key: tf.Tensor) -> tf.Tensor:
        """Draw a row for every series, [S, N]: the numbers of rows, by their weights.

        Parameters
        ----------
        num_series
            N.
        num_samples
            S.
        key
            Two integers, [2].
        """
        # Laid end to end, the weights of series n fill the interval from n to n + 1.
        ends = tf.cumsum(self.weights)  # [P]
        uniform = tf.random.stateless_uniform([num_samples, num_series], key, dtype=ends.dtype)
        places = tf.range(num_series, dtype=ends.dtype) + uniform  # [S, N]
        found = tf.searchsorted(ends, tf.reshape(places, [-1]), side="right")
        counts = tf.math.bincount(self.series, minlength=num_series)  # [N]
        last = tf.cumsum(counts) - 1
        # Rounding may end an interval a little early or late.
        found = tf.reshape(found, [num_samples, num_series])
        return tf.clip_by_value(found, last - counts + 1, last)


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

    @check_shapes("return: [S, N, K]")
    def sample(
        self, model: AssignmentModel, num_samples: int, seed: int | None = None
    ) -> FloatTensor:
        """Draw Z, zeros and ones, from `configurations`.

        Parameters
        ----------
        model
            That of the posterior.
        num_samples
            S.
        seed
            The draws follow from it; None for others each time.

        Returns
        -------
        Tensor [S, N, K].
        """
        rows = self.configurations(model)
        return tf.gather(rows.rows, rows.draw(self.num_series, num_samples, sampling_key(seed)))


class EnumeratedPosterior(Posterior):
    r"""One probability for every configuration of every series, in closed form.

    .. math::
        \mathrm{ELBO} = \sum_n \log \sum_{t \in \{0,1\}^K}
            \exp\Big(\log p(x_n \mid t) + \sum_k t_k a_k + (1 - t_k) b_k\Big)
            + E_q[\log p(\pi)] + H[q(\pi)]

    with a_k = E_q[log pi_k] and b_k = E_q[log(1 - pi_k)].  It is q(Z) at its optimum, without the
    independence that the paper assumes, hence at or above the best mean-field bound; and it is
    deterministic, so that L-BFGS converges on it.
    """

    def build(self, num_series: int, num_components: int) -> None:
        """See `Posterior.build`; a ValueError says if K is above 12, too."""
        check_enumerable(num_components)
        super().build(num_series, num_components)

    @inherit_check_shapes
    def elbo(self, model: AssignmentModel, seed: Seed = None) -> FloatTensor:
        """The bound above; `seed` is without effect."""
        return enumerated_bound(model.prior, model.tau, self._log_joint(model))

    @check_shapes("return: [N, T]")
    def responsibilities(self, model: AssignmentModel) -> FloatTensor:
        """q(z_n = t) of all configurations, [N, T]."""
        return tf.nn.softmax(self._log_joint(model), axis=-1)

    def _log_joint(self, model: AssignmentModel) -> FloatTensor:
        """`bound.log_joint` of all configurations, [N, T]."""
        t = all_configurations(self.num_components)
        return log_joint(model.prior, model.tau, t, model.configuration_log_likelihood(t))

    @inherit_check_shapes
    def probabilities(self, model: AssignmentModel) -> FloatTensor:
        """Responsibilities summed over the configurations that have the component, [N, K]."""
        t = all_configurations(self.num_components)
        # Sums of responsibilities may pass one by a rounding error.
        return tf.minimum(tf.matmul(self.responsibilities(model), t), 1.0)

    @inherit_check_shapes
    def assignment(self, model: AssignmentModel) -> FloatTensor:
        """The jointly most probable configuration of each series, [N, K]."""
        t = all_configurations(self.num_components)
        return tf.gather(t, tf.argmax(self.responsibilities(model), axis=-1))

    def configurations(self, model: AssignmentModel) -> WeightedRows:
        """Configurations weighted by their responsibilities."""
        series, row, weights = significant(self.responsibilities(model))
        return WeightedRows(
            series, tf.gather(all_configurations(self.num_components), row), weights
        )


# --- configurations ---------------------------------------------------------------------------


@check_shapes("return: [T, K]")
def all_configurations(num_components: int) -> FloatTensor:
    """{0, 1}^K as rows, [2^K, K]; component k is bit k of the row's number.

    Raises
    ------
    ValueError
        If K is above 12.
    """
    check_enumerable(num_components)
    numbers = tf.range(2**num_components)
    bits = tf.bitwise.right_shift(numbers[:, None], tf.range(num_components)[None, :])
    return tf.cast(tf.bitwise.bitwise_and(bits, 1), default_float())


@check_shapes("logits: [N, K]", "configurations: [T, K]", "return: [N, T]")
def independent_log_weights(logits: TensorType, configurations: FloatTensor) -> FloatTensor:
    """Log probabilities of configurations under independent Bernoulli variables, [N, T]."""
    logits = tf.convert_to_tensor(logits)
    on, off = tf.math.log_sigmoid(logits), tf.math.log_sigmoid(-logits)
    return tf.matmul(on, configurations, transpose_b=True) + tf.matmul(
        off, 1.0 - configurations, transpose_b=True
    )


def check_enumerable(num_components: int) -> None:
    """Refuse more components than can be enumerated."""
    if num_components > MAX_ENUMERATED_COMPONENTS:
        raise ValueError(
            f"expected at most {MAX_ENUMERATED_COMPONENTS} components to enumerate all "
            f"2^K configurations, got {num_components}: use RelaxedPosterior, or fewer components"
        )


def significant(weights: FloatTensor) -> tuple[tf.Tensor, tf.Tensor, FloatTensor]:
    """Row, column and weight of the entries above `MIN_WEIGHT`, whose rows then sum to one."""
    kept = tf.where(weights >= MIN_WEIGHT, weights, tf.zeros_like(weights))
    kept /= tf.reduce_sum(kept, axis=-1, keepdims=True)
    where = tf.cast(tf.where(kept > 0.0), tf.int32)
    return where[:, 0], where[:, 1], tf.gather_nd(kept, where)
