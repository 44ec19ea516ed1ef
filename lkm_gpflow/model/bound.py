r"""The evidence lower bound of the LKM, for the two forms of q(Z) (paper, section 4.1).

.. math::
    \log p(X) \ge E_q[\log p(X \mid Z)] + E_q[\log p(Z \mid \pi)] + E_q[\log p(\pi)]
        + H[q(Z)] + H[q(\pi)]

`lkm.LKM.log_likelihood` has the first term for every Z; `ibp` has the expectations and the entropy
that follow from the prior (paper, appendix B).  Here they are put together.
"""

from __future__ import annotations

import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType

from ..gp.types import FloatTensor
from .ibp import IBP


@check_shapes("tau: [K, 2]", "logits: [N, K]", "expected_log_likelihood: []", "return: []")
def mean_field_bound(
    prior: IBP, tau: TensorType, logits: TensorType, expected_log_likelihood: FloatTensor
) -> FloatTensor:
    r"""The bound for independent rows and columns, ``q(z_nk) = Bernoulli(nu_nk)``.

    Parameters
    ----------
    prior
        Over Z.
    tau
        Beta parameters of q(pi), [K, 2].
    logits
        Those of nu, [N, K].
    expected_log_likelihood
        :math:`E_q[\log p(X \mid Z)]`, or an estimate of it.
    """
    return (
        expected_log_likelihood
        + prior.expected_log_weights(tau)
        + prior.expected_log_assignments(tau, tf.sigmoid(logits))
        + bernoulli_entropy(logits)
        + prior.entropy(tau)
    )


@check_shapes("tau: [K, 2]", "configurations: [T, K]", "log_likelihood: [N, T]", "return: [N, T]")
def log_joint(
    prior: IBP, tau: TensorType, configurations: FloatTensor, log_likelihood: FloatTensor
) -> FloatTensor:
    r"""``log p(x_n | t)`` plus the expected log prior of t; the best q(z_n) is its softmax.

    .. math:: \log p(x_n \mid t) + \sum_k t_k\, E_q[\log \pi_k] + (1 - t_k)\, E_q[\log(1 - \pi_k)]
    """
    on, off = prior.expected_log_on(tau), prior.expected_log_off(tau)  # [K] each
    log_prior = tf.linalg.matvec(configurations, on) + tf.linalg.matvec(1.0 - configurations, off)
    return log_likelihood + log_prior


@check_shapes("tau: [K, 2]", "joint: [N, T]", "return: []")
def enumerated_bound(prior: IBP, tau: TensorType, joint: FloatTensor) -> FloatTensor:
    r"""The bound at the best q(Z) of independent rows, from `log_joint` of its configurations.

    .. math:: \sum_n \log \sum_t \exp(\mathrm{joint}_{nt}) + E_q[\log p(\pi)] + H[q(\pi)]
    """
    return (
        tf.reduce_sum(tf.reduce_logsumexp(joint, axis=-1))
        + prior.expected_log_weights(tau)
        + prior.entropy(tau)
    )


@check_shapes("logits: [N, K]", "return: []")
def bernoulli_entropy(logits: TensorType) -> FloatTensor:
    """Summed entropy of Bernoulli variables, without cancellation at large logits."""
    logits = tf.convert_to_tensor(logits)
    return tf.reduce_sum(
        tf.sigmoid(logits) * tf.math.softplus(-logits)
        + tf.sigmoid(-logits) * tf.math.softplus(logits)
    )
