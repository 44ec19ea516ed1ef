"""What was discovered in a table of series: components, who has them, forecasts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from scipy.stats import norm
from scipy.stats import t as student_t

from ..data.tables import Table
from ..kernels.grammar import Product
from ..learning.fits import Fit
from ..models.amplitudes import degrees_of
from ..models.lkm import LKM
from ..numerics.types import Floats, Integers
from ..runtime.text import did_you_mean, listed
from ..search.averaging import (
    Member,
    average,
    best_first,
    counting,
    mixture_moments,
    predict_in_parts,
    to_model,
)
from ..search.ledger import Entry, Ledger
from ..search.settings import SearchSettings
from .consensus import OTHERS, Consensus, agree, alone, predict_parts

if TYPE_CHECKING:
    from ..plotting.accessor import DiscoveryPlots
    from ..report import AllPairs, GroupReport, PairReport

_MOST_SHOWN = 40
"""Series by name where a discovery shows itself."""

_MOST_NAMED = 12
"""Series by name in an error."""

_MOST_TOLD = 8
"""Predictions that are kept, for pictures that ask for them again."""

_AT_ONCE = 200
"""Up to so many series are taken apart together; of more, each when it is asked for."""

Averaging = Literal["stacked", "tempered", "none"]


@dataclass(frozen=True)
class Discovery:
    """What `discover` or `learn` found: components, who has them, forecasts.

    Names, kernels, probabilities, structure and components are those on which the fits of the
    search agree (`consensus`), weighted as in the forecast.  `best` is the single fit with the
    lowest BIC, with the same attributes; with ``averaging="none"`` there is no other.

    Parameters
    ----------
    table
        The training data and its scaling.
    settings
        Of the search.
    averaging
        "stacked", "tempered" or "none".
    entries
        Every fit of the search; with a subset the fits that were learnt on all series.
    stacked
        The fits that forecasts average over if `averaging` is "stacked"; none: as if "tempered".
    stopped
        Which budget ended what, in a sentence; empty if nothing was stopped.
    """

    table: Table
    settings: SearchSettings
    averaging: Averaging
    entries: tuple[Entry, ...]
    stacked: tuple[Member, ...] = ()
    stopped: str = ""

    # --- what was found ---

    @cached_property
    def fit(self) -> Fit:
        """The best fit, in scaled units; components that explain more come first."""
        entries = self.entries
        if self.settings.fit.learner == "relaxed":
            # Of the starts of a structure the bound has chosen one.
            entries = tuple(e for e in entries if e.decision == "accepted") or entries
        best = min((entry.fit for entry in entries), key=lambda fit: fit.criterion)
        return best_first(best, self.table.observations, self.settings.fit)

    @cached_property
    def model(self) -> LKM:
        """The fitted model, on scaled data: times span one, series have unit variance."""
        return to_model(self.fit, self.table.observations, self.settings.fit)

    @property
    def best(self) -> Discovery:
        """The best fit alone: its names, kernels, probabilities, components and forecast."""
        if self.averaging == "none":
            return self
        best = replace(self, averaging="none", stacked=())
        best.__dict__["fit"] = self.fit
        return best

    @cached_property
    def consensus(self) -> Consensus:
        """The components that the weighted fits of the search agree upon, and who has them."""
        settings = self.settings.fit
        if self.averaging == "none":
            return alone(self.fit, settings)
        return agree(self.searched, self.table.observations, settings)

    @property
    def names(self) -> list[str]:
        """Names of the components: their structure, numbered where several share it."""
        structures = [str(kernel.structure) for kernel in self.consensus.kernels]
        return [
            f"{name} ({structures[: i + 1].count(name)})" if structures.count(name) > 1 else name
            for i, name in enumerate(structures)
        ]

    @property
    def kernels(self) -> tuple[Product, ...]:
        """The components in the data's own time: days since the first date, or index numbers.

        Variances are shares of the variance of each series that has the component.  Numbers are
        those of the heaviest fit that has the component.
        """
        table = self.table
        kernels = self.consensus.kernels
        return tuple(kernel.change_units(table.span, table.start) for kernel in kernels)

    @property
    def probabilities(self) -> pd.DataFrame:
        """P(z_nk = 1), series x components, on average over the fits; see `consensus`."""
        return self._by_series(self.consensus.probabilities)

    @property
    def evidence(self) -> pd.DataFrame:
        """Log Bayes factors of having a component, series x components; see `consensus`."""
        return self._by_series(self.consensus.evidence)

    @property
    def structure(self) -> pd.DataFrame:
        """The most probable Z, series x components, 0 or 1."""
        return self._by_series(self.consensus.Z.astype(int))

    def _by_series(self, values: Floats | Integers) -> pd.DataFrame:
        return pd.DataFrame(values, index=self.table.frame.columns, columns=self.names)

    @property
    def bic(self) -> float:
        """BIC of the best fit."""
        return self.fit.bic

    @cached_property
    def ledger(self) -> pd.DataFrame:
        """One row a fit of the search."""
        ledger = Ledger({})
        for entry in self.entries:
            ledger.entries[entry.step, entry.restart] = entry
            ledger.decisions[entry.step, entry.restart] = entry.decision
        return ledger.to_frame()

    # --- forecasts ---

    @cached_property
    def members(self) -> list[Member]:
        """The fits that forecasts average over, and their weights."""
        if self.averaging == "none":
            return [Member(self.fit, 1.0)]
        if self.averaging == "stacked" and self.stacked:
            return list(self.stacked)
        return average([entry.fit for entry in self.entries], len(self.table.frame))

    @cached_property
    def searched(self) -> list[Member]:
        """The members that the search found, without the walks; their weights add up to one."""
        found = [member for member in self.members if not member.is_walk]
        total = sum(member.weight for member in found)
        return counting([replace(member, weight=member.weight / total) for member in found])

    @property
    def counting_members(self) -> list[Member]:
        """The members without those of next to no weight."""
        return counting(self.members)

    def forecast(
        self,
        horizon: int | pd.Index,
        level: float | Sequence[float] = 0.9,
        quantiles: Sequence[float] = (),
    ) -> pd.DataFrame:
        """Forecast new observations.

        Parameters
        ----------
        horizon
            How many steps after the last row, or the times themselves.
        level
            Probability of the interval from `lower` to `upper`; of several, the columns are
            called lower50, upper50, lower90 and so on.
        quantiles
            Such as 0.05, for columns called q0.05.

        Returns
        -------
        DataFrame with index (series, time) and columns mean, sd, lower, upper, in the units of
        the series; sd is that of a new observation, with its noise.
        """
        times = self.times(horizon)
        if isinstance(level, int | float) and not quantiles:
            return self.predict(times, level)
        from .export import several_intervals

        levels = [level] if isinstance(level, int | float) else level
        return several_intervals(self, times, levels, quantiles)

    def sample(self, horizon: int | pd.Index, count: int = 100, *, seed: int = 0) -> pd.DataFrame:
        """Draw paths of new observations; see `export.sample_paths`."""
        from .export import sample_paths

        return sample_paths(self, self.times(horizon), count, seed)

    def to_xarray(self, horizon: int, levels: Sequence[float] = (0.5, 0.9), **options: Any) -> Any:
        """Return everything as an xarray `Dataset`; parameters are those of `export.to_xarray`."""
        from .export import to_xarray

        return to_xarray(self, horizon, levels, **options)

    def predict(self, times: pd.Index, level: float = 0.9) -> pd.DataFrame:
        """As `forecast`, at any times, also within the history."""
        if not 0.0 < level < 1.0:
            raise ValueError(f"expected a level between 0 and 1, got {level}")
        mean, variance = self._moments(times)
        mean = mean * self.table.scale + self.table.location
        sd = np.sqrt(variance) * self.table.scale
        half = self._half_width(level) * sd
        series = self.table.frame.columns
        index = pd.MultiIndex.from_product([series, times], names=["series", "time"])
        columns = {"mean": mean, "sd": sd, "lower": mean - half, "upper": mean + half}
        return pd.DataFrame({k: v.T.ravel() for k, v in columns.items()}, index=index)

    def _moments(self, times: pd.Index) -> tuple[Floats, Floats]:
        """Mean and variance of new observations in scaled units, [M, N]; pictures ask again."""
        key = tuple(times)
        if key not in self._told:
            x = self.table.scaled_times(times)[:, None]
            observations = self.table.observations
            is_forecast = x > observations.x[-1]
            predictions = []
            for member in self.counting_members:
                mean, variance = predict_in_parts(member.fit, observations, self.settings.fit, x)
                spread = np.where(is_forecast, member.spread, 1.0)
                predictions.append((member.weight, mean, variance * spread))
            self._tell(key, mixture_moments(predictions))
        return self._told[key]

    def _tell(self, key: tuple[object, ...], moments: tuple[Floats, Floats]) -> None:
        if len(self._told) >= _MOST_TOLD:
            self._told.clear()
        self._told[key] = moments

    def _half_width(self, level: float) -> Floats:
        """Half an interval in standard deviations, [N]: of a normal, or of a Student-t.

        Scales of series leave v + D_n degrees of freedom, with D_n the values of series n.
        """
        degrees = degrees_of(self.settings.fit.amplitudes)
        if np.isinf(degrees):
            return np.full(len(self.table.scale), norm.ppf(0.5 + 0.5 * level))
        degrees_left = degrees + self.table.observations.mask.sum(axis=1)
        unit = np.sqrt((degrees_left - 2.0) / degrees_left)
        return np.asarray(student_t.ppf(0.5 + 0.5 * level, degrees_left) * unit)

    @cached_property
    def _told(self) -> dict[tuple[object, ...], tuple[Floats, Floats]]:
        return {}

    def components(self, series: object, horizon: int = 0) -> pd.DataFrame:
        """Posterior of every component of one series, over the history and a forecast.

        Parameters
        ----------
        series
            Name of a column.
        horizon
            How many steps after the last row to go on.

        Returns
        -------
        DataFrame: rows are times; columns are (component, "mean" or "sd"), in the units of the
        series.  Means add up to the series' posterior mean less its training average, on average
        over the fits of the search; "others" are components that only few of them have.
        """
        times = self.table.frame.index
        if horizon:
            times = times.append(self.times(horizon))
        (n,) = self.places(series)
        if self.table.frame.shape[1] > _AT_ONCE:
            return self.select([series]).components(series, horizon)
        mean, variance = (part[:, :, n] for part in self._parts(times))
        scale = float(self.table.scale[n])
        names = self.names
        if any(np.any(places < 0) for places in self.consensus.places):
            names = [*names, OTHERS]
        parts = {}
        for k, name in enumerate(names):
            parts[name, "mean"] = mean[k] * scale
            parts[name, "sd"] = np.sqrt(variance[k]) * scale
        frame = pd.DataFrame(parts, index=times)
        frame.columns.names = ["component", "moment"]
        return frame

    def _parts(self, times: pd.Index) -> tuple[Floats, Floats]:
        """Mean and variance of components and others, scaled, [K + 1, M, N]; asked again."""
        key = ("parts", *times)
        if key not in self._told:
            x = self.table.scaled_times(times)
            observations = self.table.observations
            self._tell(key, predict_parts(self.consensus, observations, self.settings.fit, x))
        return self._told[key]

    def select(self, series: Sequence[object]) -> Discovery:
        """Return the discovery of some of the series, for forecasts, pictures and reports of them.

        Components and their names, noise and probabilities stay those learnt on all.
        """
        if isinstance(series, str) or not series:
            known = listed([repr(column) for column in self.table.frame.columns], _MOST_NAMED)
            raise ValueError(f"expected a list of some of the series {known}, got {series!r}")
        places = np.array(self.places(*series), np.int32)
        parts: dict[int, Fit] = {}  # one object each, so that a fit can be looked up

        def part(fit: Fit) -> Fit:
            return parts.setdefault(id(fit), fit.of_series(places))

        selected = replace(
            self,
            table=self.table.of_series(places),
            entries=tuple(replace(e, fit=part(e.fit)) for e in self.entries),
            stacked=tuple(replace(m, fit=part(m.fit)) for m in self.stacked),
        )
        # Or components could change their order, and with it their names.
        selected.__dict__["fit"] = part(self.fit)
        consensus = self.consensus
        selected.__dict__["consensus"] = replace(
            consensus.of_series(places), fits=tuple(map(part, consensus.fits))
        )
        return selected

    def places(self, *series: object) -> tuple[int, ...]:
        """Return the numbers of different series; a ValueError says which are known."""
        columns: list[object] = list(self.table.frame.columns)
        for name in series:
            if name not in columns:
                known = listed([repr(column) for column in columns], _MOST_NAMED)
                hint = did_you_mean(str(name), map(str, columns))
                raise ValueError(f"expected one of the series {known}, got {name!r}{hint}")
            if series.count(name) > 1:
                raise ValueError(f"expected different series, got {name!r} twice")
        return tuple(columns.index(name) for name in series)

    def times(self, horizon: int | pd.Index) -> pd.Index:
        """Return the times of a forecast: so many steps after the last row, or those given."""
        if isinstance(horizon, pd.Index):
            return horizon
        if isinstance(horizon, bool) or not isinstance(horizon, int | np.integer) or horizon < 1:
            raise ValueError(f"expected a horizon of at least 1 step, got {horizon!r}")
        return self.table.axis.after(self.table.frame.index[-1], int(horizon))

    # --- reports; see `report` ---

    def report(self, horizon: int | None = None, **options: Any) -> GroupReport:
        """Report what the series share; parameters are those of `report.group_report`."""
        from ..report import group_report

        return group_report(self, horizon, **options)

    def compare(
        self, a: object, b: object, horizon: int | None = None, **options: Any
    ) -> PairReport:
        """Report what two series share; parameters are those of `report.pair_report`."""
        from ..report import pair_report

        return pair_report(self, a, b, horizon, **options)

    def compare_all(self, horizon: int | None = None, **options: Any) -> AllPairs:
        """Report every pair of series; parameters are those of `report.all_pairs`."""
        from ..report import all_pairs

        return all_pairs(self, horizon, **options)

    # --- keeping and showing ---

    @property
    def plot(self) -> DiscoveryPlots:
        """Pictures: ``plot()``, or its ``structure()``, ``forecast()`` and ``components()``."""
        from ..plotting.accessor import DiscoveryPlots

        return DiscoveryPlots(self)

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write one file, data only, that `lkm_gpflow.load` reads; see `storage`."""
        from .storage import save

        save(self, path, force=force)

    def __repr__(self) -> str:
        rows = [
            f"  {name}: {kernel:.3g} -- {self._owners(k) or 'no series'}"
            for k, (name, kernel) in enumerate(zip(self.names, self.kernels, strict=True))
        ]
        return "\n".join([self._headline, *rows, *filter(None, [self.stopped])])

    def _repr_html_(self) -> str:
        from ..report.card import card

        return card(self, self._headline)

    @property
    def _headline(self) -> str:
        (D, N), K, M = self.table.frame.shape, len(self.names), len(self.consensus.fits)
        agreed = f" that {M} fits agree upon" if M > 1 else ""
        return f"Discovery: {N} series of {D} times, {K} components{agreed}, BIC {self.bic:.1f}"

    def _owners(self, k: int) -> str:
        owners = [name for n, name in enumerate(self.table.names) if self.consensus.Z[n, k] == 1.0]
        return ", ".join(owners) if len(owners) <= _MOST_SHOWN else f"{len(owners)} series"
