"""Moments of mixtures over rows of Z, some rows at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import tensorflow as tf
from gpflow.base import MeanAndVariance

from ..gp.types import FloatTensor
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

    def add_chunk(known: _Moments, start: tf.Tensor) -> _Moments:
        series, z, weights = (part[start : start + chunk_size] for part in rows)
        mean, variance = moments_of(series, z)
        total = tf.math.unsorted_segment_sum(weights, series, num_series)
        centre = tf.math.divide_no_nan(
            _sum_by_series(weights, mean, series, num_series), beside(total, mean)
        )
        if variance.shape.rank == mean.shape.rank:
            variance = tf.maximum(variance, 0.0)
        around = variance + _square(mean - tf.gather(centre, series), variance)
        spread = _sum_by_series(weights, around, series, num_series)
        return _together(known, _Moments(total, centre, spread))

    # An empty chunk says how large the moments are.
    mean, variance = moments_of(rows.series[:0], rows.rows[:0])
    empty = _Moments(
        *(
            tf.zeros(tf.concat([[num_series], tf.shape(part)[1:]], 0), mean.dtype)
            for part in (rows.series[:0], mean, variance)
        )
    )
    found = tf.foldl(add_chunk, tf.range(0, tf.size(rows.series), chunk_size), empty)
    return found.mean, tf.math.divide_no_nan(found.spread, beside(found.weight, found.spread))


class _Moments(NamedTuple):
    """Of the rows of each series that were seen.

    Squares of deviations from the mean are added up: those of the values themselves lose all digits
    in series far from zero.  Source: Chan, Golub and LeVeque 1983, *Algorithms for Computing the
    Sample Variance*.
    """

    weight: FloatTensor
    """[N]"""
    mean: FloatTensor
    """[N, G, M]"""
    spread: FloatTensor
    """Weighted sum of squares around the mean, [N, G, M] or [N, G, M, M]."""


def _together(a: _Moments, b: _Moments) -> _Moments:
    weight = a.weight + b.weight
    share = tf.math.divide_no_nan(b.weight, weight)
    apart = b.mean - a.mean
    between = beside(a.weight * share, a.spread) * _square(apart, a.spread)
    return _Moments(weight, a.mean + beside(share, apart) * apart, a.spread + b.spread + between)


def _square(deviation: FloatTensor, like: FloatTensor) -> FloatTensor:
    """Squares [P, G, M], or products [P, G, M, M] if `like` has as many dimensions."""
    if like.shape.rank == deviation.shape.rank:
        return tf.square(deviation)
    return deviation[..., :, None] * deviation[..., None, :]


def beside(values: FloatTensor, like: FloatTensor) -> FloatTensor:
    """Values [P] with dimensions of one after them, to multiply a tensor [P, ...]."""
    return tf.reshape(
        values, tf.concat([tf.shape(values), tf.ones(tf.rank(like) - 1, tf.int32)], 0)
    )


def _sum_by_series(
    weights: FloatTensor, moment: FloatTensor, series: tf.Tensor, num_series: int
) -> FloatTensor:
    """Weighted sum of moments [P, ...] within each series, [N, ...]."""
    weighted = tf.einsum("p,p...->p...", weights, moment)
    return tf.math.unsorted_segment_sum(weighted, series, num_series)
