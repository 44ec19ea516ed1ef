"""What goes into the model, checked: the table of series, the kernels, the prior, the posterior.

Every check returns its argument in the form that the model keeps, or raises a ValueError that
says what was expected, what was given, and where.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import gpflow
import numpy as np
from gpflow.base import AnyNDArray, RegressionData
from gpflow.functions import MeanFunction, Zero
from gpflow.kernels import Combination, Kernel, MultioutputKernel, Periodic
from gpflow.utilities import positive, to_default_float

from ..gp.types import FloatTensor
from ..kernels.component import ComponentKernel
from ..runtime.warn import warn
from .ibp import IBP, FiniteIBP, InfiniteIBP
from .posteriors import EnumeratedPosterior, Posterior
from .relaxation import RelaxedPosterior

MIN_NOISE_VARIANCE = 1e-6


@dataclass(frozen=True)
class SeriesGroup:
    """Series that lack the same points."""

    series: AnyNDArray
    """Their columns in Y."""
    mask: FloatTensor | None
    """One where observed, [D]; None if nothing is missing."""


@dataclass(frozen=True)
class ModelData:
    """The table Y, one row per series, with its gaps filled by zeros and noted in a mask."""

    x: FloatTensor
    """[N, D]"""
    mask: FloatTensor | None
    """One where observed, [N, D]; None if nothing is missing in any series."""
    groups: tuple[SeriesGroup, ...]
    num_observed: int
    counts: AnyNDArray
    """Observed values of each series, [N]."""

    @classmethod
    def from_table(cls, Y: AnyNDArray) -> ModelData:
        """Read a table [D, N] in which NaN is a missing observation."""
        observed = ~np.isnan(Y.T)
        patterns, pattern_of = np.unique(observed, axis=0, return_inverse=True)
        groups = tuple(
            SeriesGroup(
                np.flatnonzero(pattern_of == i),
                None if pattern.all() else to_default_float(pattern),
            )
            for i, pattern in enumerate(patterns)
        )
        x = to_default_float(np.where(observed, Y.T, 0.0))
        mask = None if observed.all() else to_default_float(observed)
        return cls(x, mask, groups, int(observed.sum()), observed.sum(axis=1).astype(np.float64))


def checked_data(data: RegressionData) -> tuple[AnyNDArray, AnyNDArray]:
    """X [D, Q] and Y [D, N] as float64; finite, but for NaN in Y, and no series without values."""
    try:
        X, Y = (np.asarray(part, dtype=np.float64) for part in data)
    except (TypeError, ValueError) as error:
        parts = [type(part).__name__ for part in data] if isinstance(data, tuple | list) else []
        raise ValueError(
            "data: expected a pair (X, Y) of tables of numbers, X [D, 1] of times and Y [D, N] of "
            f"series, got a {type(data).__name__}{' of ' * bool(parts)}{', '.join(parts)}"
        ) from error
    if X.ndim != 2 or Y.ndim != 2 or len(X) != len(Y) or 0 in X.shape or 0 in Y.shape:
        raise ValueError(
            "data: expected X [D, 1] and Y [D, N] with the same number of rows and at least one "
            f"row and one series, got shapes {X.shape} and {Y.shape}"
        )
    for name, table, bad in (("X", X, ~np.isfinite(X)), ("Y", Y, np.isinf(Y))):
        if bad.any():
            row, column = np.argwhere(bad)[0]
            raise ValueError(
                f"data: expected finite numbers in {name}"
                f"{' (or NaN for a missing one)' if name == 'Y' else ''}, "
                f"got {table[row, column]} in row {row}, column {column}"
            )
    empty = np.flatnonzero(np.isnan(Y).all(axis=0))
    if empty.size:
        raise ValueError(
            "data: expected at least one observation in every column of Y, "
            f"got only missing ones in column {empty[0]}"
        )
    return X, Y


def warn_if_long(num_times: int, longest: float) -> None:
    """Warn of more time points than an exact model can cope with."""
    if num_times > longest:
        warn(
            f"expected at most {longest:g} time points, because time grows with their third power "
            f"and memory with their second, got {num_times}: take fewer rows, or learn by "
            "discover, which is faster at regular times",
        )


def checked_kernels(kernels: Sequence[Kernel], num_inputs: int) -> list[Kernel]:
    """The kernels as a list: at least one, of one output each, for this many columns of X."""
    if isinstance(kernels, str | Kernel) or not isinstance(kernels, Iterable) or not [*kernels]:
        raise ValueError(f"kernels: expected a list with at least one kernel, got {kernels!r}")
    for i, kernel in enumerate(kernels):
        where = f"kernels[{i}]"
        if not isinstance(kernel, Kernel) or isinstance(kernel, MultioutputKernel):
            raise ValueError(f"{where}: expected a GPflow kernel of one output, got {kernel!r}")
        for part in _parts(kernel):
            _check_inputs(part, num_inputs, f"{where}, {type(part).__name__}")
    return list(kernels)


def _parts(kernel: Kernel) -> Iterator[Kernel]:
    """Yield a kernel and those in it that see columns of X, not what is inside one of your own."""
    yield kernel
    if isinstance(kernel, Periodic):
        yield kernel.base_kernel
    inside = kernel.kernels if isinstance(kernel, Combination) else ()
    for part in kernel.factors if isinstance(kernel, ComponentKernel) else inside:
        yield from _parts(part)


def _check_inputs(kernel: Kernel, num_inputs: int, where: str) -> None:
    dims: Any = kernel.active_dims
    columns = range(num_inputs)[dims] if isinstance(dims, slice) else dims
    if not len(columns) or min(columns) < 0 or max(columns) >= num_inputs:
        raise ValueError(
            f"{where}: expected active_dims among the {num_inputs} column(s) of X, counted from 0, "
            f"got {dims}"
        )
    for name in ("lengthscales", "variance", "period"):
        shape = tuple(getattr(getattr(kernel, name, None), "shape", ()))
        if shape not in ((), (1,), (len(columns),)):
            raise ValueError(
                f"{where}: expected one value of {name} for each of the {len(columns)} column(s) "
                f"of X, got shape {shape}"
            )


def checked_prior(prior: str | IBP, alpha: float, num_components: int) -> IBP:
    """The prior that a name stands for, or the given one if it has this many components."""
    if isinstance(prior, IBP):
        if prior.num_components != num_components:
            raise ValueError(
                f"prior: expected {num_components} components, one for each kernel, "
                f"got {prior.num_components}"
            )
        return prior
    priors = {"finite": FiniteIBP, "infinite": InfiniteIBP}
    if not isinstance(prior, str) or prior not in priors:
        raise ValueError(f"prior: expected one of {sorted(priors)} or an IBP, got {prior!r}")
    return priors[prior](alpha, num_components)


def checked_posterior(posterior: str | Posterior) -> Posterior:
    """The posterior that a name stands for, or the given one."""
    if isinstance(posterior, Posterior):
        return posterior
    posteriors = {"enumerated": EnumeratedPosterior, "relaxed": RelaxedPosterior}
    if not isinstance(posterior, str) or posterior not in posteriors:
        raise ValueError(
            f"posterior: expected one of {sorted(posteriors)} or a Posterior, got {posterior!r}"
        )
    return posteriors[posterior]()


def checked_noise(noise_variance: float | AnyNDArray, num_series: int) -> AnyNDArray:
    """Noise variances [N], finite and not below the least: where learning may have ended."""
    try:
        noise = np.asarray(noise_variance, dtype=np.float64)
    except (TypeError, ValueError):
        noise = np.array(np.nan)
    in_range = (noise >= MIN_NOISE_VARIANCE) & np.isfinite(noise)
    if noise.shape not in ((), (num_series,)) or not in_range.all():
        raise ValueError(
            f"noise_variance: expected a number or {num_series} numbers, one for each series, "
            f"at least {MIN_NOISE_VARIANCE:g}, got {noise_variance!r}"
        )
    # The least itself is minus infinity on the scale of learning.
    least = np.nextafter(MIN_NOISE_VARIANCE, np.inf)
    return np.broadcast_to(np.maximum(noise, least), num_series).copy()


def checked_mean(mean: MeanFunction | None, X: FloatTensor, num_series: int) -> MeanFunction:
    """The given mean function, or zero, if it has one output or one for each series."""
    if mean is None:
        return Zero()
    shape = tuple(mean(X).shape) if isinstance(mean, MeanFunction) else None
    if shape not in ((len(X), 1), (len(X), num_series)):
        raise ValueError(
            f"mean_function: expected a mean function of GPflow with 1 or {num_series} outputs at "
            f"X, got {mean!r}{'' if shape is None else f' of shape {shape}'}"
        )
    return mean


def initial_tau(prior: IBP, num_series: int) -> gpflow.Parameter:
    """The best tau [K, 2] of the finite prior if every component is as likely as not."""
    even = [prior.concentration + 0.5 * num_series, 1.0 + 0.5 * num_series]
    return gpflow.Parameter(np.tile(even, (prior.num_components, 1)), transform=positive())
