"""The engine of long tables at regular times: exact, in O(D^2) where LAPACK takes O(D^3).

Components are brought to the form of `toeplitz_components`, series to that of `gp.toeplitz`.  Rows
of Z with a component that has not got this form stay with LAPACK, row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from ..data.observations import Observations
from ..gp.lags import Lags
from ..gp.likelihoods import GAUSSIAN, SeriesLikelihood
from ..gp.toeplitz import RowTransforms, ToeplitzSeries, are_regular
from ..gp.types import Booleans, Floats, Integers
from ..kernels.grammar import Product
from .assignments import Pairs
from .engine import Entrance, LapackEngine, LapackEntrance, Objective, Rows
from .layout import Layout
from .toeplitz_components import ToeplitzComponent, toeplitz_component

FEWEST_TIMES = 300
"""Below it LAPACK is as fast."""


class _Times:
    """Regular times, and the transforms of the series at them.

    Parameters
    ----------
    observations
        The table.
    """

    def __init__(self, observations: Observations) -> None:
        self.lags = Lags(observations.x, observations.x - observations.x[0])
        self.transforms = RowTransforms(len(observations.x))
        self._observations = observations
        self._Y = self.transforms.forward(observations.Y)
        self._gaps: dict[bytes, NDArray[np.complex128]] = {}

    def rows(self, n: int, columns: NDArray[np.complex128]) -> NDArray[np.complex128]:
        """RowTransforms of a series, of columns, and of the units where the series has gaps."""
        mask = self._observations.mask[n]
        key = mask.tobytes()
        if key not in self._gaps:
            self._gaps[key] = self.transforms.units(np.flatnonzero(mask == 0.0))
        return np.concatenate([self._Y[n : n + 1], columns, self._gaps[key]])


class ComponentSums:
    """Sums of components in Toeplitz form, for rows of Z.

    Parameters
    ----------
    times
        The times.
    components
        K of them; None for those that have not got the form.
    likelihood
        How a series scatters around its covariance.
    """

    def __init__(
        self,
        times: _Times,
        components: Sequence[ToeplitzComponent | None],
        likelihood: SeriesLikelihood,
    ) -> None:
        self.components, self._times, self._likelihood = components, times, likelihood
        self._has_form = np.array([one is not None for one in components], bool)
        self._transformed: dict[int, NDArray[np.complex128]] = {}
        self._known: dict[bytes, tuple[Floats, NDArray[np.complex128], Floats]] = {}

    def serve(self, configurations: Floats) -> Booleans:
        """Of which rows of Z, [P, K], the sums have the form, [P]."""
        return ~(configurations[:, ~self._has_form] > 0.0).any(axis=1)

    def series(self, n: int, configuration: Floats, noise_variance: float) -> ToeplitzSeries:
        """Return series n with a row of Z that has the form."""
        by_lag, columns, weights = self._sum(configuration)
        r = by_lag.copy()
        r[0] += noise_variance
        rows = self._times.rows(n, columns)
        return ToeplitzSeries(r, self._times.transforms, rows, weights, self._likelihood)

    def own(self, configuration: Floats) -> list[tuple[int, ToeplitzComponent, slice]]:
        """The components of a row of Z, by number, with the places of their columns."""
        found, place = [], 0
        for k in np.flatnonzero(configuration):
            component = self.components[k]
            assert component is not None  # `serve` has seen to it
            found.append((int(k), component, slice(place, place + len(component.weights))))
            place += len(component.weights)
        return found

    def _sum(self, configuration: Floats) -> tuple[Floats, NDArray[np.complex128], Floats]:
        """Sum by lag [D], transformed columns [m, F] and their weights [m, m]."""
        key = configuration.tobytes()
        if key not in self._known:
            own = self.own(configuration)
            by_lag = np.zeros(self._times.transforms.D)
            for _, component, _ in own:
                by_lag += component.by_lag
            columns = [self._times.transforms.forward(np.empty((0, len(by_lag))))]
            columns += [self._columns(k, component) for k, component, _ in own]
            weights = block_diag(np.empty((0, 0)), *(component.weights for _, component, _ in own))
            self._known[key] = by_lag, np.concatenate(columns), weights
        return self._known[key]

    def _columns(self, k: int, component: ToeplitzComponent) -> NDArray[np.complex128]:
        if k not in self._transformed:
            self._transformed[k] = self._times.transforms.forward(component.columns)
        return self._transformed[k]


class ToeplitzEngine(LapackEngine):
    """`Engine` of `LKM` itself on long tables at regular times.

    Parameters
    ----------
    observations
        The table.
    likelihood
        How a series scatters around its covariance.
    """

    def __init__(self, observations: Observations, likelihood: SeriesLikelihood = GAUSSIAN) -> None:
        super().__init__(observations, likelihood)
        self._times = _Times(observations)

    @staticmethod
    def serves(observations: Observations) -> bool:
        """Whether the times of a table are regular, and so many that this is faster."""
        return len(observations.x) >= FEWEST_TIMES and are_regular(observations.x)

    def sums(self, kernels: Sequence[Product]) -> ComponentSums:
        """Return complete products in Toeplitz form, for rows of Z."""
        layout = Layout(kernels, num_series=0)
        return self.sums_at(layout, layout.pack(np.empty(0)))

    def sums_at(self, layout: Layout, flat: Floats) -> ComponentSums:
        """Return the components at a flat vector in Toeplitz form, for rows of Z."""
        values, place = layout.values(flat).tolist(), layout.shapes.start
        found = []
        for variance, product in zip(values, layout.products, strict=False):
            factors = []
            for factor in product.factors:
                factors.append((factor.base, values[place : place + len(factor.values)]))
                place += len(factor.values)
            found.append(toeplitz_component(self._times.lags, variance, factors))
        return ComponentSums(self._times, found, self.likelihood)

    def log_densities(
        self,
        kernels: Sequence[Product],
        parameters: Mapping[str, Any],
        noise_levels: Floats,
        pairs: Pairs,
    ) -> Floats:
        """See `Engine.log_densities`."""
        sums = self.sums(kernels)
        serves = sums.serve(pairs.configurations)
        found = np.empty((len(noise_levels), len(serves)))
        for p in np.flatnonzero(serves):
            n, row = int(pairs.series[p]), pairs.configurations[p]
            found[:, p] = [sums.series(n, row, s).log_density for s in noise_levels[:, n]]
        if not serves.all():
            others = Pairs(pairs.series[~serves], pairs.configurations[~serves])
            found[:, ~serves] = super().log_densities(kernels, parameters, noise_levels, others)
        return found

    def objective(self, layout: Layout, pairs: Pairs, log_weights: Floats) -> Objective:
        """See `Engine.objective`."""
        return _ToeplitzObjective(self, layout, pairs, log_weights)

    def entrance(
        self, kernels: Sequence[Product], parameters: Mapping[str, Any], Z: Floats
    ) -> Entrance:
        """See `Engine.entrance`."""
        return _ToeplitzEntrance(self, self.observations, kernels, parameters, Z)


class _ToeplitzObjective(Objective):
    """`Objective` with `_ToeplitzRows`."""

    _engine: ToeplitzEngine

    def _rows(self, flat: Floats) -> Rows:
        sums, others = self._engine.sums_at(self._layout, flat), partial(super()._rows, flat)
        return _ToeplitzRows(sums, self._layout, self._pairs.configurations, others)


class _ToeplitzRows:
    """`Rows` in Toeplitz form, and others by Cholesky factors.

    Parameters
    ----------
    sums
        The components.
    layout
        Places of their hyperparameters.
    configurations
        The rows, [P, K].
    others
        Makes the `Rows` of those that have not got the form.
    """

    def __init__(
        self,
        sums: ComponentSums,
        layout: Layout,
        configurations: Floats,
        others: Callable[[], Rows],
    ) -> None:
        self._sums, self._layout, self._configurations = sums, layout, configurations
        self._serves, self._make_others = sums.serve(configurations), others
        self._totals: list[list[Floats]] = [
            []
            if one is None
            else [np.zeros_like(a) for a in (one.by_lag, one.columns, one.weights)]
            for one in sums.components
        ]

    @cached_property
    def _others(self) -> Rows:
        return self._make_others()

    def factors(self, n: int, own: Integers, noise_variance: float) -> Sequence[Any]:
        """See `Rows.factors`."""
        serves = self._serves[own]
        rest = [] if serves.all() else self._others.factors(n, own[~serves], noise_variance)
        others = iter(rest)
        return [
            self._sums.series(n, self._configurations[p], noise_variance)
            if self._serves[p]
            else next(others)
            for p in own
        ]

    def add(self, n: int, p: int, weight: float, factor: Any) -> float:
        """See `Rows.add`."""
        if not self._serves[p]:
            return self._others.add(n, p, weight, factor)
        by_lag, columns, weights = factor.gradient()
        for k, _, own in self._sums.own(self._configurations[p]):
            total = self._totals[k]
            total[0] += weight * by_lag
            total[1] += weight * columns[own]
            total[2] += weight * weights[own, own]
        return weight * float(by_lag[0])

    def gradient(self) -> Floats:
        """See `Rows.gradient`."""
        found = np.zeros(self._layout.size) if self._serves.all() else self._others.gradient()
        place = self._layout.shapes.start
        for k, product in enumerate(self._layout.products):
            count = sum(len(factor.values) for factor in product.factors)
            component = self._sums.components[k]
            if component is not None:
                by_variance, *by_values = component.pull(*self._totals[k])
                found[k] += by_variance
                found[place : place + count] += by_values
            place += count
        return found


class _ToeplitzEntrance(LapackEntrance):
    """`Entrance` in Toeplitz form where what a series has and the candidate have it."""

    _engine: ToeplitzEngine

    def _base_at(self, places: Integers) -> Floats:
        x = self._observations.x[places]
        return np.tensordot(
            self._Z, self._engine.covariances(self._kernels, self._parameters, x), axes=1
        )

    def scan(self, candidates: Sequence[Product], noise_variance: Floats) -> Floats:
        """See `Entrance.scan`."""
        sums = self._engine.sums([*self._kernels, *candidates])
        M, N = len(candidates), len(self._Z)
        found = np.empty((M, *noise_variance.shape[-2:]))
        levels = np.broadcast_to(noise_variance, found.shape)
        added = np.eye(M)
        has_form = sums.serve(np.concatenate([np.zeros((M, len(self._kernels))), added], axis=1))
        serves = sums.serve(np.concatenate([self._Z, np.zeros((N, M))], axis=1))
        for n in np.flatnonzero(serves):
            for m in np.flatnonzero(has_form):
                row = np.concatenate([self._Z[n], added[m]])
                found[m, :, n] = [sums.series(n, row, s).log_density for s in levels[m, :, n]]
        every = np.ones(M, bool)
        for own, some in ((np.flatnonzero(~serves), every), (np.flatnonzero(serves), ~has_form)):
            if own.size and some.any():
                others = LapackEntrance(
                    self._engine, self._observations.of_series(own), self._kernels,
                    self._parameters, self._Z[own],
                )  # fmt: skip
                chosen = [candidates[m] for m in np.flatnonzero(some)]
                found[some.nonzero()[0][:, None], :, own] = others.scan(
                    chosen, levels[some][:, :, own]
                ).swapaxes(1, 2)
        return found
