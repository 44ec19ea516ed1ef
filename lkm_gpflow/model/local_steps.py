r"""The best q(z_n) and noise of single series, given everything that all series share.

The bound of a series is a function of its noise and of its q over {0, 1}^K:

.. math::
    \ell_n(q, \sigma_n^2) = \sum_t q(t) [ \log p(x_n \mid t, \sigma_n^2)
        + \sum_k t_k a_k + (1 - t_k) b_k - \log q(t) ],

with a_k = E_q[log pi_k] and b_k = E_q[log(1 - pi_k)].  Here both are set to their optimum, which
needs no memory of the series: what a step on a minibatch learns about a series is found again,
not stored.  As it is an optimum, the gradient of the bound with respect to what is shared is that
at fixed q and noise.

Any q (`best_enumerated`) and independent components (`best_mean_field`) differ in one function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.utilities import to_default_float

from ..gp.tensors import Eigenbasis, eigenbasis, gradients_in_basis, rotate_back
from ..gp.types import LOG_2PI, Floats, FloatTensor
from .configurations import independent_log_weights
from .model_data import MIN_NOISE_VARIANCE

LocalStep: TypeAlias = Callable[[FloatTensor, FloatTensor], FloatTensor]
"""From the log joint densities [B, T] and the configurations [T, K] to log q(z_n = t), [B, T]."""

NOISE_GRID: Floats = np.geomspace(2.0 * MIN_NOISE_VARIANCE, 1e6, 64)
"""Where the search for a noise variance begins: neighbours differ by the factor 1.53."""

NOISE_ROUNDS = 5
"""Looks at one series: from the grid, Newton's method gains 2, 4, 8 digits."""

MEAN_FIELD_SWEEPS = 10
"""Rounds of the coordinate steps."""


class LocalTerms(NamedTuple):
    """What is local to the series of a batch, at its optimum."""

    bounds: FloatTensor
    """The bound of each series, [B]; its gradient flows to what is shared."""
    noise_variance: FloatTensor
    """sigma_n^2, [B]; no gradient."""
    log_weights: FloatTensor
    """log q(z_n = t), [B, T]; no gradient."""


class _Spectra(NamedTuple):
    """T covariances in their eigenbases, and B series that lack the same points."""

    basis: Eigenbasis
    projected: FloatTensor
    """U' x_n, [T, B, D]"""
    num_missing: FloatTensor
    """Missing points of each series: as many eigenvalues are zero that do not belong."""


@check_shapes(
    "covariance: [T, D, D]",
    "x: [B, D]",
    "mask: [D]",
    "log_prior: [T]",
    "configurations: [T, K]",
)
def local_terms(
    covariance: FloatTensor,
    x: FloatTensor,
    mask: FloatTensor,
    log_prior: FloatTensor,
    configurations: FloatTensor,
    step: LocalStep,
) -> LocalTerms:
    """Optimise what is local to series that lack the same points.

    The noise starts from the best of `NOISE_GRID`, where any q is allowed, and follows Newton's
    method in its logarithm, in turn with q; the best pair that was met is kept.  Nothing of one
    series depends on which others are in the batch.

    Parameters
    ----------
    covariance
        Without noise, one for each configuration, [T, D, D].
    x
        Series, zero where missing, [B, D].
    mask
        One where observed, [D].
    log_prior
        Expected log probability of each configuration, [T].
    configurations
        t, [T, K].
    step
        `best_enumerated` or `best_mean_field`.
    """
    observed = covariance * mask[:, None] * mask[None, :]
    basis = eigenbasis(tf.stop_gradient(observed))
    spectra = _Spectra(basis, tf.matmul(x, basis.vectors), tf.reduce_sum(1.0 - mask))
    best = _optimum(spectra, tf.stop_gradient(log_prior), configurations, step)
    # As an optimum it has no gradient, and none is to be looked for.
    noise_variance, log_weights, log_density = map(tf.stop_gradient, best)
    log_density = _attach_gradient(observed, log_density, basis, x, noise_variance)
    log_density -= 0.5 * LOG_2PI * tf.reduce_sum(mask)
    bounds = tf.reduce_sum(tf.exp(log_weights) * (log_density + log_prior - log_weights), axis=1)
    return LocalTerms(bounds, noise_variance, log_weights)


def _optimum(
    spectra: _Spectra, log_prior: FloatTensor, configurations: FloatTensor, step: LocalStep
) -> tuple[FloatTensor, FloatTensor, FloatTensor]:
    """The best noise [B], log q(z_n) there, and log densities without their 2 pi term, [B, T]."""

    def look(
        log_noise: FloatTensor, best: tuple[FloatTensor, ...]
    ) -> tuple[FloatTensor, tuple[FloatTensor, ...]]:
        values, slopes, curvatures = _in_log_noise(spectra, tf.exp(log_noise))
        log_weights = step(values + log_prior, configurations)
        weights = tf.exp(log_weights)
        bounds = tf.reduce_sum(weights * (values + log_prior - log_weights), axis=1)
        better = bounds > best[0]
        met = (bounds, log_noise, log_weights, values)
        best = tuple(
            tf.where(better if new.shape.rank == 1 else better[:, None], new, old)
            for new, old in zip(met, best, strict=True)
        )
        return _newton(log_noise, weights, slopes, curvatures, step is best_enumerated), best

    log_noise = _best_on_grid(spectra, log_prior)
    # NaN stays where no bound is a number: a covariance that is not finite has none.
    shape = [tf.size(log_noise), tf.size(log_prior)]
    nothing = tf.fill(shape, tf.constant(np.nan, log_prior.dtype))
    worst = tf.fill(tf.shape(log_noise), tf.constant(-np.inf, log_prior.dtype))
    _, best = tf.while_loop(
        lambda log_noise, best: True,
        look,
        (log_noise, (worst, log_noise, nothing, nothing)),
        maximum_iterations=NOISE_ROUNDS,
        parallel_iterations=1,
    )
    return tf.exp(best[1]), best[2], best[3]


# --- q(z_n) ---------------------------------------------------------------------------------------


@check_shapes("log_joint: [B, T]", "configurations: [T, K]", "return: [B, T]")
def best_enumerated(log_joint: FloatTensor, configurations: FloatTensor) -> FloatTensor:
    """The best q(z_n) of any form: proportional to the joint density."""
    return tf.nn.log_softmax(log_joint, axis=1)


@check_shapes("log_joint: [B, T]", "configurations: [T, K]", "return: [B, T]")
def best_mean_field(log_joint: FloatTensor, configurations: FloatTensor) -> FloatTensor:
    r"""The best q(z_n) with independent components, by coordinate steps.

    .. math:: \mathrm{logit}\,\nu_{nk} = E_{-k}[\log p(x_n, t) \mid t_k = 1]
        - E_{-k}[\log p(x_n, t) \mid t_k = 0]

    The steps climb to a local optimum: the better of two is kept, one from the margins of the best
    q of any form and one from its most probable configuration.
    """
    free = tf.nn.softmax(log_joint, axis=1)
    margins = tf.clip_by_value(tf.matmul(free, configurations), 1e-3, 1.0 - 1e-3)
    mode = tf.gather(configurations, tf.argmax(free, axis=1))
    starts = (tf.math.log(margins) - tf.math.log1p(-margins), 8.0 * mode - 4.0)
    twice = tf.concat([log_joint, log_joint], axis=0)
    ends = _coordinate_steps(twice, configurations, tf.concat(starts, axis=0))
    values = tf.reduce_sum(tf.exp(ends) * (twice - ends), axis=1, keepdims=True)
    first, second = tf.split(values, 2)
    return tf.where(first >= second, *tf.split(ends, 2))


def _coordinate_steps(
    log_joint: FloatTensor, configurations: FloatTensor, logits: FloatTensor
) -> FloatTensor:
    """Log q(z_n = t) of independent components after all sweeps from these logits, [B, T]."""
    signs = 2.0 * configurations - 1.0

    def sweep(columns: list[FloatTensor]) -> tuple[list[FloatTensor]]:
        columns = list(columns)
        for k in range(len(columns)):
            # With even odds for k, the weights are half of those of the other components.
            columns[k] = tf.zeros_like(columns[k])
            weights = 2.0 * tf.exp(independent_log_weights(tf.stack(columns, 1), configurations))
            columns[k] = tf.reduce_sum(weights * log_joint * signs[:, k], axis=1)
        return (columns,)

    (columns,) = tf.while_loop(
        lambda columns: True,
        sweep,
        (tf.unstack(logits, axis=1),),
        maximum_iterations=MEAN_FIELD_SWEEPS,
    )
    return independent_log_weights(tf.stack(columns, 1), configurations)


# --- the noise ------------------------------------------------------------------------------------


def _best_on_grid(spectra: _Spectra, log_prior: FloatTensor) -> FloatTensor:
    """Log of the noise variance of the grid with the highest marginal density, [B].

    All series share the grid, so that it costs one matrix product and T x G x D logarithms.
    """
    noise = to_default_float(NOISE_GRID)
    total = spectra.basis.values[:, :, None] + noise  # [T, D, G]
    quadratic = tf.matmul(tf.square(spectra.projected), 1.0 / total)  # [T, B, G]
    log_determinant = tf.reduce_sum(tf.math.log(total), axis=1)  # [T, G]
    log_determinant -= spectra.num_missing * tf.math.log(noise)
    log_joint = log_prior[:, None, None] - 0.5 * (quadratic + log_determinant[:, None, :])
    return tf.gather(tf.math.log(noise), tf.argmax(tf.reduce_logsumexp(log_joint, axis=0), axis=1))


def _in_log_noise(
    spectra: _Spectra, noise_variance: FloatTensor
) -> tuple[FloatTensor, FloatTensor, FloatTensor]:
    """Log densities without their 2 pi term, and two derivatives in log sigma_n^2, [B, T] each."""
    total = spectra.basis.values[:, None, :] + noise_variance[:, None]  # [T, B, D]
    share = noise_variance[:, None] / total
    squares = tf.square(spectra.projected) / total
    shared = squares * share
    share_sum = tf.reduce_sum(share, axis=-1)
    shared_sum = tf.reduce_sum(shared, axis=-1)
    missing = spectra.num_missing
    log_determinant = tf.reduce_sum(tf.math.log(total), -1) - missing * tf.math.log(noise_variance)
    value = -0.5 * (tf.reduce_sum(squares, axis=-1) + log_determinant)
    slope = 0.5 * (shared_sum - share_sum + missing)
    curvature = (
        slope
        - 0.5 * missing
        - tf.reduce_sum(shared * share, axis=-1)
        + 0.5 * tf.reduce_sum(tf.square(share), axis=-1)
    )
    return tf.transpose(value), tf.transpose(slope), tf.transpose(curvature)


def _newton(
    log_noise: FloatTensor,
    weights: FloatTensor,
    slopes: FloatTensor,
    curvatures: FloatTensor,
    q_follows: bool,
) -> FloatTensor:
    """One step in log sigma_n^2, at most one cell of the grid; uphill where the bound is convex.

    Where q follows the noise in closed form, the curvature counts how it does.
    """
    slope = tf.reduce_sum(weights * slopes, axis=1)
    curvature = tf.reduce_sum(weights * curvatures, axis=1)
    if q_follows:
        curvature += tf.reduce_sum(weights * tf.square(slopes - slope[:, None]), axis=1)
    cell = float(np.log(NOISE_GRID[1] / NOISE_GRID[0]))
    move = tf.where(curvature < 0.0, -slope / tf.minimum(curvature, -1e-12), tf.sign(slope) * cell)
    moved = log_noise + tf.clip_by_value(move, -cell, cell)
    return tf.maximum(moved, float(np.log(NOISE_GRID[0])))


@tf.custom_gradient
def _attach_gradient(  # type: ignore[no-untyped-def]
    C, log_density, basis, x, noise_variance
):
    """Return the log densities [B, T], which now know their gradient in C [T, D, D]."""

    def gradient(upstream: FloatTensor) -> tuple[FloatTensor | None, ...]:
        inner, _ = gradients_in_basis(basis, x, noise_variance, tf.transpose(upstream))
        return rotate_back(basis, inner), None, None, None, None, None

    return tf.identity(log_density), gradient
