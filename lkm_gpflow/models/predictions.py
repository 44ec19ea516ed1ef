"""Moments of mixtures over rows of Z, some rows at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import tensorflow as tf
from gpflow.base import MeanAndVariance

from ..numerics.types import FloatTensor
from .posteriors import WeightedRows

ConditionalMoments: TypeAlias = Callable[[tf.Tensor, FloatTensor], MeanAndVariance]
"""From series [P] and their z [P, K] to mean [P, G, M] and variance [P, G, M] or covariance
[P, G, M, M] of G sums of components."""


def average_over_rows(
    moments_of: ConditionalMoments, rows: WeightedRows, num_series: int, chunk_size: int
) -> MeanAndVariance:
    """Moments of the mixtures of Gaussians that belong to the rows of each series.

    Parameters
    ----------
    moments_of
        The Gaussians.
    rows
        Rows of Z with their weights.
    num_series
        N.
    chunk_size
        Rows whose moments are held at a time.

    Returns
    -------
    Mean [N, G, M], and variance [N, G, M] or covariance [N, G, M, M].
    """

    def add_chunk(
        moments: tuple[FloatTensor, FloatTensor], start: tf.Tensor
    ) -> tuple[FloatTensor, FloatTensor]:
        series, z, weights = (part[start : start + chunk_size] for part in rows)
        mean, variance = moments_of(series, z)
        if variance.shape.rank > mean.shape.rank:
            second = variance + mean[..., :, None] * mean[..., None, :]
        else:
            second = tf.maximum(variance, 0.0) + tf.square(mean)
        return tuple(
            total + _sum_by_series(weights, moment, series, num_series)
            for total, moment in zip(moments, (mean, second), strict=True)
        )

    # An empty chunk says how large the moments are.
    none = moments_of(rows.series[:0], rows.rows[:0])
    empty = tuple(
        tf.zeros(tf.concat([[num_series], tf.shape(part)[1:]], 0), part.dtype) for part in none
    )
    mean, second = tf.foldl(add_chunk, tf.range(0, tf.size(rows.series), chunk_size), empty)
    if second.shape.rank > mean.shape.rank:
        return mean, second - mean[..., :, None] * mean[..., None, :]
    return mean, tf.maximum(second - tf.square(mean), 0.0)


def _sum_by_series(
    weights: FloatTensor, moment: FloatTensor, series: tf.Tensor, num_series: int
) -> FloatTensor:
    """Weighted sum of moments [P, ...] within each series, [N, ...]."""
    weighted = tf.einsum("p,p...->p...", weights, moment)
    return tf.math.unsorted_segment_sum(weighted, series, num_series)
