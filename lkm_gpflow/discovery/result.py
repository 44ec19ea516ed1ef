"""What was discovered in a table of series: components, who has them, forecasts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd
from scipy.stats import norm

from ..fit.fits import Fit
from ..gp.types import Floats, Integers
from ..kernels.grammar import Product, change_unit
from ..runtime.arguments import check_level
from ..runtime.text import counted, numbered, quoted
from ..search.ledger import Ledger
from ..sharing.alternatives import with_alternatives
from ..sharing.consensus import OTHERS, Consensus, agree, alone, predict_parts
from ..sharing.hyperparameters import Marginal, marginals
from .forecaster import Averaging as Averaging
from .forecaster import Forecaster

if TYPE_CHECKING:
    from ..plotting.accessor import DiscoveryPlots
    from ..report import AllPairs, GroupReport, PairReport

_MOST_SHOWN = 40
"""Series by name where a discovery shows itself."""

_AT_ONCE = 200
"""Up to so many series are taken apart together; of more, each when it is asked for."""


@dataclass(frozen=True, eq=False)
class Discovery(Forecaster):
    """What `discover` or `learn` found: components, who has them, forecasts.

    Names, kernels, probabilities, structure and components are those on which the fits of the
    search agree (`consensus`), weighted as in the forecast.  `best` is the single fit with the
    lowest criterion (see `discover`), with the same attributes; with ``averaging="none"`` there is
    no other.

    Its parameters are those of `Forecaster`.
    """

    # --- what was found ---

    @property
    def best(self) -> Discovery:
        """The best fit alone: its names, kernels, probabilities, components and forecast."""
        if self.averaging == "none":
            return self
        if self.whole is not self:
            return self.whole.best.select(list(self.table.frame.columns))
        best = replace(self, averaging="none", stacked=(), autoregression=None)
        best.__dict__["fit"] = self.fit
        return best

    @cached_property
    def consensus(self) -> Consensus:
        """The components that the weighted fits of the search agree upon, and who has them."""
        settings = self.settings.fit
        if self.averaging == "none":
            return alone(self.fit, settings)
        agreed = agree(self.searched, self.predictors)
        return with_alternatives(agreed, self.table.observations, settings)

    @property
    def names(self) -> list[str]:
        """Names of the components: their structure, numbered where several share it."""
        return list(self._names)

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(numbered([str(kernel.structure) for kernel in self.consensus.kernels]))

    @cached_property
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
        """P(z_nk = 1), series x components, on average over the fits; see `consensus`.

        Alternatives are left open, see `discovery.alternatives`; not so with the paper's
        amplitudes ("none"), one fit, or more than 64 series.
        """
        return self._by_series(self.consensus.probabilities)

    @property
    def evidence(self) -> pd.DataFrame:
        """Log Bayes factors of having a component, series x components; see `consensus`."""
        return self._by_series(self.consensus.evidence)

    @property
    def structure(self) -> pd.DataFrame:
        """Z, series x components, 0 or 1: likely, and with evidence for it; see `Consensus.Z`."""
        return self._by_series(self.consensus.Z.astype(int))

    def _by_series(self, values: Floats | Integers) -> pd.DataFrame:
        return pd.DataFrame(values, index=self.table.frame.columns, columns=self.names)

    @cached_property
    def marginals(self) -> tuple[tuple[Marginal, ...], ...]:
        """Posteriors of the hyperparameters of every component, in scaled time."""
        if self.whole is not self:  # what was learnt on all series
            return self.whole.marginals
        return marginals(self.consensus, self.table.observations, self.settings.fit)

    def hyperparameters(self, level: float = 0.9) -> pd.DataFrame:
        """How sure the periods, lengthscales and locations of the components are.

        They come from a posterior that takes little for granted, and over all fits that have the
        component; see `learning.coarsened`.  On planted tables 90% intervals hold 88 to 97% of
        the true values, depending on the hyperparameter (`experiments.calibration`).  The
        location of a line is not known at all, since averages are subtracted: its interval is
        that of the prior.

        Parameters
        ----------
        level
            Probability of the interval.

        Returns
        -------
        DataFrame with index (component, hyperparameter) and columns median, lower, upper, in the
        data's own time as in `kernels`: days, and of locations days since the first date; or index
        numbers.  A lengthscale of PER has no unit.

        Raises
        ------
        ValueError
            If the level is not between 0 and 1.
        """
        check_level(level)
        ends = (0.5, 0.5 - 0.5 * level, 0.5 + 0.5 * level)
        rows = {
            (name, one.name): [
                change_unit(one.quantile(p), one.kind, self.table.span, self.table.start)
                for p in ends
            ]
            for name, own in zip(self.names, self.marginals, strict=True)
            for one in own
        }
        index = pd.MultiIndex.from_tuples(list(rows), names=["component", "hyperparameter"])
        columns = ["median", "lower", "upper"]
        return pd.DataFrame(list(rows.values()), index, columns, dtype=np.float64)

    @property
    def bic(self) -> float:
        """BIC of the best fit."""
        return self.fit.bic

    @cached_property
    def ledger(self) -> pd.DataFrame:
        """One row per fit of the search."""
        ledger = Ledger({})
        for entry in self.entries:
            ledger.entries[entry.step, entry.restart] = entry
            ledger.decisions[entry.step, entry.restart] = entry.decision
        return ledger.to_frame()

    def components(
        self, series: object, horizon: int | pd.Index = 0, level: float | None = None
    ) -> pd.DataFrame:
        """Posterior of every component of one series, over the history and a forecast.

        Parameters
        ----------
        series
            Name of a column.
        horizon
            How many steps after the last row to go on, or the times to add.
        level
            Probability of an interval; by default there is none.

        Returns
        -------
        DataFrame: rows are times; columns are (component, "mean" or "sd"), and with a level
        (component, "lower" or "upper"), in the units of the
        series.  Means add up to the series' posterior mean less its training average, on average
        over the fits of the search; "others" are components that only few of them have.

        Of a series that is modelled by its logarithm, in percent: by how much the component raises
        or lowers what the others make.  There components multiply.

        Raises
        ------
        ValueError
            If there is no such series, or the level is not between 0 and 1.
        """
        if level is not None:
            check_level(level)
        times = self.table.frame.index
        if isinstance(horizon, pd.Index) or horizon:
            times = times.append(self.times(horizon))
        (n,) = self.places(series)
        if self.table.frame.shape[1] > _AT_ONCE:
            return self.select([series]).components(series, horizon, level)
        mean, variance = (part[:, :, n] for part in self._parts(times))
        half = None if level is None else float(norm.ppf(0.5 + 0.5 * level))
        moments = self._heights(mean, np.sqrt(variance), n, half)
        names = self.names
        if any(np.any(places < 0) for places in self.consensus.places):
            names = [*names, OTHERS]
        parts = {
            (name, moment): values[k]
            for k, name in enumerate(names)
            for moment, values in moments.items()
        }
        columns = pd.MultiIndex.from_tuples(list(parts), names=["component", "moment"])
        return pd.DataFrame(parts, index=times, columns=columns)

    def _heights(self, mean: Floats, sd: Floats, n: int, half: float | None) -> dict[str, Floats]:
        """Moments and interval of components of series n, in its units, or in percent."""
        m, s = mean * self.table.scale[n], sd * self.table.scale[n]
        ends = {} if half is None else {"lower": m - half * s, "upper": m + half * s}
        if not self.table.transforms.is_log[n]:
            return {"mean": m, "sd": s, **ends}
        own = self.table.transforms.of_series([n])
        factor, variance = (each[..., 0] for each in own.moments(m[..., None], s[..., None] ** 2))
        percent = {name: 100.0 * np.expm1(end) for name, end in ends.items()}
        return {"mean": 100.0 * (factor - 1.0), "sd": 100.0 * np.sqrt(variance), **percent}

    def _parts(self, times: pd.Index) -> tuple[Floats, Floats]:
        """Mean and variance of components and others, scaled, [K + 1, M, N]; asked again."""
        x = self.table.scaled_times(times)
        key = ("parts", *x)
        if key not in self._told:
            self._tell(key, predict_parts(self.consensus, self.predictors, x))
        mean, variance = self._told[key]
        return mean, variance

    def select(self, series: Sequence[object]) -> Discovery:
        """Return the discovery of some of the series, for forecasts, pictures and reports of them.

        Components and their names, noise and probabilities stay those learnt on all.
        """
        if isinstance(series, str) or not isinstance(series, Collection) or not len(series):
            known = quoted(self.table.frame.columns)
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
            autoregression=self.autoregression and self.autoregression.of_series(places),
        )
        # Or components could change their order, and with it their names.
        selected.__dict__["fit"] = part(self.fit)
        consensus = self.consensus
        selected.__dict__["consensus"] = replace(
            consensus.of_series(places), fits=tuple(map(part, consensus.fits))
        )
        selected.__dict__["_whole"] = self.whole
        return selected

    @property
    def whole(self) -> Discovery:
        """The discovery of all series of which this one was selected, or itself; see `select`."""
        return cast("Discovery", self.__dict__.get("_whole", self))

    def to_xarray(self, horizon: int, levels: Sequence[float] = (0.5, 0.9), **options: Any) -> Any:
        """Return everything as an xarray `Dataset`; parameters are those of `export.to_xarray`."""
        from .export import to_xarray

        return to_xarray(self, horizon, levels, **options)

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

    def explore(self, horizon: int | None = None, units: Mapping[Any, str] | None = None) -> Any:
        """Return controls for JupyterLab that draw the pictures one asks for.

        Parameters are those of `plotting.Explorer`, which needs the extra ``explorer``.
        """
        return self.plot.explore(horizon, units)

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write one file, data only, that `lkm_gpflow.load` reads; see `storage`."""
        from .storage import save

        save(self, path, force=force)

    def __repr__(self) -> str:
        rows = [
            f"  {name}: {kernel:.3g} -- {self._owners(k) or 'no likely series'}"
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
        logs = int(self.table.transforms.is_log.sum())
        which = "" if N == 1 else f"{'all' if logs == N else logs} of them "
        scale = f", {which}on a log scale" if logs else ""
        size = f"{N} series of {D} times{scale}"
        return f"Discovery: {size}, {counted(K, 'component')}{agreed}, BIC {self.bic:.1f}"

    def _owners(self, k: int) -> str:
        owners = [name for n, name in enumerate(self.table.names) if self.consensus.Z[n, k] == 1.0]
        return ", ".join(owners) if len(owners) <= _MOST_SHOWN else f"{len(owners)} series"
