"""The result of `discover` and `learn`: components, who has them, forecasts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd
from scipy.stats import norm

from ..coupling.coupled_discovery import CoupledDiscovery, couple
from ..data.foreign import Tabular
from ..data.observations import Observations
from ..data.sites import Sites
from ..data.tables import Suspicious, Table
from ..data.transforms import Transforms
from ..fit.fits import PLAIN_MODEL, Fit
from ..forecast.forecasters import Ensemble, Member, counting, warn_of_late_series, weighted
from ..forecast.mixture import SIDES, quantile_column
from ..forecast.predictors import Predictors
from ..forecast.stacking import average_fits
from ..gp.likelihoods import GAUSSIAN, FromGPflow, PointLikelihood
from ..gp.types import Floats, Integers
from ..kernels.grammar import Product, UnknownBaseError, change_unit
from ..model import subclasses
from ..model.subclasses import UnknownModelError, object_from_json, object_to_json
from ..runtime import archive
from ..runtime.archive import label_from_json, label_to_json
from ..runtime.arguments import check_level, check_series
from ..runtime.executors import check_executor
from ..runtime.progress import Progress
from ..runtime.text import counted, numbered, quoted
from ..runtime.warn import warn
from ..search.ledger import Entry, Ledger, entry_from_json, fit_key, fit_to_json
from ..search.many_series import decided
from ..search.settings import SearchSettings
from ..sharing.pattern_draws import PatternDraws, patterns_of
from ..sharing.posterior import (
    MOST_ASKED,
    DrawnFunctions,
    PosteriorDraws,
    draws_by_fits,
    functions_of,
    members_of,
)
from ..sharing.sampler import is_pattern
from ..sharing.statements import Marginal, Statements, by_draws, by_fit
from .keywords import Averaging

if TYPE_CHECKING:
    from ..explain.changes import Changes
    from ..model.lkm import LKM
    from ..plotting.accessor import DiscoveryPlots
    from ..report import AllPairs, GroupReport, PairReport

_MOST_TOLD = 8
"""Predictions that are kept, for pictures that ask for them again."""

_MOST_SHOWN = 40
"""Series by name where a discovery shows itself."""

_WORTH_DRAWS = 0.05
"""Share of the forecast from which on draws are worth their time."""

_AT_ONCE = 200
"""Up to so many series are taken apart together; of more, each when it is asked for."""


@dataclass(frozen=True, eq=False)
class Discovery:
    """The fits of a search, what series do by draws of a posterior, and what all forecast together.

    Patterns are what series do in the draws, in whatever form (`patterns`).  Names, kernels and
    components are those of `fit`, the single fit with the lowest criterion (see `discover`); who
    has them (`probabilities`) and how sure their numbers are (`hyperparameters`), draws say, too.
    Where there are none, see `says_by_fits`, it is this fit that says it.  Forecasts average over
    the draws, too (`ensemble`).

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
        The forecasters of the average if `averaging` is "stacked"; none: as if "tempered".
    stopped
        Which budget ended what, in a sentence; empty if nothing was stopped.
    news
        What the last `update` found in the new rows, in sentences; empty if there was none.
    surprises
        For each update since the search and each series how well the new rows agree with their
        forecast, as normal scores; see `updating.Surprise`.
    """

    table: Table
    settings: SearchSettings
    averaging: Averaging
    entries: tuple[Entry, ...]
    stacked: tuple[Member, ...] = ()
    stopped: str = ""
    news: str = ""
    surprises: tuple[tuple[float, ...], ...] = ()

    @cached_property
    def fit(self) -> Fit:
        """The best fit, in scaled units; components that explain more come first."""
        entries = self.entries
        if self.settings.fit.learner == "relaxed":
            # Of the starts of a structure the bound has chosen one.
            entries = tuple(e for e in entries if e.decision == "accepted") or entries
        best = min((entry.fit for entry in entries), key=lambda fit: fit.criterion)
        return self.predictors.best_first(best)

    @cached_property
    def model(self) -> LKM:
        """The fitted model, on scaled data: times span one, series have unit variance."""
        from ..forecast.by_model import to_model  # with TensorFlow, which takes seconds to load

        return to_model(self.fit, self.table.observations, self.settings.fit)

    # --- going on ---

    def update(
        self,
        frame: Tabular,
        *,
        suspicious: Suspicious = "listed",
        executor: Executor | None = None,
        progress: bool | Progress = True,
    ) -> Discovery:
        """Take the new rows of a longer table, or revised values, without a new search.

        The structures of the fits stay.  Hyperparameters and who has what are learnt on from where
        they are, and fits and forecasters are weighed again by how they forecast the new rows: it
        takes at most a tenth of the time of a search.  `changes` says what changed.

        >>> found = lkm.load("sales.lkm").update(frame)    # doctest: +SKIP
        >>> print(found.changes)                           # doctest: +SKIP

        Parameters
        ----------
        frame
            The series of the discovery at all of its times, and new rows.
        suspicious
            As of `discover`.
        executor
            Runs the fits; None: this process.
        progress
            Whether to show a progress bar.

        Returns
        -------
        The discovery of the longer table; this one if nothing is new, and a UserWarning says so.

        Raises
        ------
        ValueError
            If series or times of the discovery are absent, new rows come at other steps, or this is
            a selection or a discovery by the learner "relaxed".
        """
        from . import updating

        if self.whole is not self:
            raise ValueError(
                f"expected the discovery of all {len(self.whole.table.names)} series, got a "
                f"selection of {len(self.table.names)}: found.whole.update(frame) goes on"
            )
        settings, seed, every = self.settings.fit, self.settings.seed, tuple(self.members)
        check_executor(executor)
        if settings.learner != "scan":
            raise ValueError(
                "expected a discovery by the learner 'scan', got one by "
                f"{settings.learner!r}: discover the longer table"
            )
        table = updating.longer(self.table, frame, suspicious, settings)
        new, others, revised = updating.differences(self.table.frame, table.frame)
        if not len(new) and not others and not revised:
            warn("the table has no new or revised values: the discovery stays as it is")
            return self
        rows = table.frame.loc[new]
        surprise = updating.Surprise.of(self.ensemble, rows, self.surprises, seed)
        moved = updating.moved(every, self.table, table, settings, executor, progress)
        known = {fit_key(entry.fit): entry for entry in self.entries}
        entries = [
            replace(known.get(fit_key(before.fit), Entry.alone(before.fit)), fit=after.fit)
            for before, after in zip(every, moved, strict=True)
            if not before.is_walk
        ]
        stacked: tuple[Member, ...] = ()
        if self.stacked:
            told = Ensemble(self.table, every, self.predictors)
            stacked = updating.weighed(told, table, moved, new)
        found = replace(
            self,
            table=table,
            entries=tuple(decided(entries)),
            stacked=stacked,
            stopped="",
            news=updating.said(new, others, revised, surprise),
            surprises=(*self.surprises, surprise.scores) if len(new) else self.surprises,
        )
        found.__dict__["_before"] = self
        return found

    @property
    def changes(self) -> str:
        """What the last `update` changed, in sentences; empty if there was none.

        How new values compare with their forecast, which patterns are no longer needed or now
        probable, and whether a new search is advised.
        """
        before = self.__dict__.get("_before")
        return " ".join(filter(None, [self.news, before and self.changes_since(before).text]))

    def changes_since(self, before: Discovery) -> Changes:
        """Compare patterns and forecasts with those of an earlier discovery of these series.

        Draws are those of the posterior if both were sampled (`sample`), else those of the fits.

        Raises
        ------
        ValueError
            If it is a discovery of other series, or of times of another sort.
        """
        from ..explain.changes import compare_discoveries

        return compare_discoveries(before, self)

    # --- what was found ---

    @property
    def best(self) -> Discovery:
        """The best fit alone: its names, kernels, probabilities, components and forecast."""
        if self.averaging == "none":
            return self
        if self.whole is not self:
            return self.whole.best.select(list(self.table.frame.columns))
        best = replace(self, averaging="none", stacked=())
        best.__dict__["fit"] = self.fit
        if "posterior" in self.__dict__:
            best.__dict__["posterior"] = self.posterior
        return best

    @property
    def says_by_fits(self) -> bool:
        """Whether the fits say who has what, and no draws of a posterior.

        That is so of a single fit, of the paper's model and learner, of a model class of one's own,
        of more than 64 series, and where there is no pattern.
        """
        settings = self.settings.fit
        return (
            self.averaging == "none"
            or settings.likelihood == GAUSSIAN
            or settings.learner == "relaxed"
            or settings.model != PLAIN_MODEL
            or self.whole.table.observations.num_series > MOST_ASKED
            or not any(is_pattern(kernel) for m in self.searched for kernel in m.fit.kernels)
        )

    @cached_property
    def posterior(self) -> PosteriorDraws:
        """Draws of the posterior over components, who has them, heights and noise; see `sample`."""
        return self._sampled() if self.whole is self else self.whole.posterior

    def sample(
        self, *, executor: Executor | None = None, progress: bool | Progress = True
    ) -> Discovery:
        """Draw from the posterior now, and not when probabilities are first asked for.

        The draws are kept, and saved with the discovery.  It takes seconds to half a minute.

        Parameters
        ----------
        executor
            Runs the chains; None: this process, one after the other.
        progress
            Whether to show a progress bar.

        Returns
        -------
        The discovery itself.
        """
        if not self.is_sampled:
            self.whole.__dict__["posterior"] = self.whole._sampled(executor, progress)
        return self

    @property
    def is_sampled(self) -> bool:
        """Whether draws of the posterior have been made already."""
        return "posterior" in self.whole.__dict__

    def _sampled(
        self, executor: Executor | None = None, progress: bool | Progress = False
    ) -> PosteriorDraws:
        settings, (observations, series) = self.settings, self._asked
        heaviest_first = sorted(self.searched, key=lambda member: -member.weight)
        return PosteriorDraws.of(
            observations, [m.fit.of_series(series) for m in heaviest_first], settings.bases,
            settings.fit, seed=settings.seed, executor=executor, progress=progress,
        )  # fmt: skip

    @property
    def _asked(self) -> tuple[Observations, Integers]:
        """Of many series some, evenly spread, are sampled: for hyperparameters they will do."""
        observations = self.table.observations
        N = observations.num_series
        count = N if N <= MOST_ASKED else MOST_ASKED // 4
        series = np.linspace(0, N - 1, count).astype(int)
        return observations.of_series(series), series

    @cached_property
    def statements(self) -> Statements:
        """What is said of every series and component: by draws, or else by the best fit."""
        if self.whole is not self:
            return self.whole.statements.of_series(self._places)
        return by_fit(self.fit, self.settings.fit) if self.says_by_fits else self._by_draws

    @cached_property
    def _by_draws(self) -> Statements:
        fit = self.fit.of_series(self._asked[1])
        return by_draws(self.posterior, *self._functions, fit, self.settings.fit)

    @cached_property
    def pattern_draws(self) -> PatternDraws:
        """What every series does in every draw; see `sharing.pattern_draws`."""
        if self.says_by_fits:
            return self.patterns_by_fits
        if self.whole is not self:
            return self.whole.pattern_draws.of_series(self._places)
        return self._patterns(self.posterior, self._asked[0], self._functions[1])

    @cached_property
    def patterns_by_fits(self) -> PatternDraws:
        """The same where draws are of the fits and their rows of Z; of many series, of these."""
        if self.whole is not self and len(self.whole.table.names) <= MOST_ASKED:
            return self.whole.patterns_by_fits.of_series(self._places)
        posterior = draws_by_fits(self.searched, self.predictors, self.settings.seed)
        observations = self.table.observations
        return self._patterns(posterior, observations, self._drawn(posterior, observations)[1])

    def _patterns(
        self, posterior: PosteriorDraws, observations: Observations, drawn: Sequence[Floats]
    ) -> PatternDraws:
        seen = observations.at_times(posterior.times)
        chain = np.repeat(np.arange(len(posterior.chains)), [len(c) for c in posterior.chains])
        day = 0.0 if self.table.axis.origin is None else 1.0 / self.table.span
        return patterns_of(posterior.draws, drawn, chain, seen, day)

    @cached_property
    def _functions(self) -> tuple[DrawnFunctions, list[Floats]]:
        return self._drawn(self.posterior, self._asked[0])

    def _drawn(
        self, posterior: PosteriorDraws, observations: Observations
    ) -> tuple[DrawnFunctions, list[Floats]]:
        likelihood = self.settings.fit.likelihood
        functions = DrawnFunctions(observations.at_times(posterior.times), likelihood)
        return functions, functions_of(posterior, functions, self.settings.seed)

    @property
    def _places(self) -> Integers:
        """Numbers of the series in the whole."""
        return np.array(self.whole.places(*self.table.frame.columns), int)

    @property
    def names(self) -> list[str]:
        """Names of the components: their structure, numbered where several share it."""
        return numbered([str(kernel.structure) for kernel in self.fit.kernels])

    @cached_property
    def kernels(self) -> tuple[Product, ...]:
        """The components in the data's own time: days since the first date, or index numbers.

        Variances are shares of the variance of each series that has the component.
        """
        span, start = self.table.span, self.table.start
        return tuple(kernel.change_units(span, start) for kernel in self.fit.kernels)

    @property
    def probabilities(self) -> pd.DataFrame:
        """P(a component is visible in a series), series x components.

        Visible is what has at least 2% of the variance of the series; see `sharing.statements`.
        Where fits speak (`says_by_fits`) it is P(z_nk = 1) by the best one.
        """
        return self._by_series(self.statements.probabilities)

    @property
    def memberships(self) -> pd.DataFrame:
        """P(z_nk = 1), series x components: a series has the component, however little of it."""
        return self._by_series(self.statements.memberships)

    def patterns(self, level: float = 0.9, units: Mapping[Any, str] | None = None) -> pd.DataFrame:
        """What every series does, in whatever form: the table behind the report.

        Parameters
        ----------
        level
            Probability of the intervals.
        units
            Of the series, by name.

        Returns
        -------
        DataFrame with index (pattern, series).  Columns: kind; period and date of the pattern
        (days, or index numbers); probability that it makes at least 2% of the variance of the
        series, and the verdict; and, each with its lower and upper end, share of the variance; size
        in the unit of the series (of a cycle half the distance from trough to peak, of a shift or
        event how far, else the standard deviation; percent where logarithms are modelled); peak
        and trough of a cycle and its lag behind the series that has most of it (days, or index
        numbers, from the beginning of a year, week or day, or else of its last period); growth of
        a cycle (last third of the data over first), and of its last period (over those before,
        with the ends of what is usual); slope of a trend per day or index number, and when it
        turned.  NaN where a column does not apply.

        Raises
        ------
        ValueError
            If the level is not between 0 and 1.
        """
        from ..report import pattern_table

        return pattern_table(self, level, units)

    @property
    def evidence(self) -> pd.DataFrame:
        """Log Bayes factors of having a component, series x components."""
        return self._by_series(self.statements.evidence)

    @property
    def structure(self) -> pd.DataFrame:
        """Z, series x components, 0 or 1: more likely than not, and with evidence for it.

        Where fits speak (`says_by_fits`) it is the most probable Z by the best one.
        """
        return self._by_series(self.statements.Z.astype(int))

    def _by_series(self, values: Floats | Integers) -> pd.DataFrame:
        return pd.DataFrame(values, index=self.table.frame.columns, columns=self.names)

    @property
    def marginals(self) -> tuple[tuple[Marginal, ...], ...]:
        """Posteriors of the hyperparameters of every component, in scaled time."""
        return self.whole._by_draws.marginals

    def hyperparameters(self, level: float = 0.9) -> pd.DataFrame:
        """How sure the periods, lengthscales and locations of the components are.

        Intervals are quantiles of the draws that have the component with this structure; NaN if
        none has.  The location of a line is not known at all, since averages are subtracted: its
        interval is that of the prior.

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
    def suspicious(self) -> pd.DataFrame:
        """Values that look wrong: series, time, value, kind, how far off; see `data.suspicious`."""
        return self.table.with_suspicious

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
        series.  Means add up to its posterior mean by the best fit, less its training average.

        Of a series that is modelled by its logarithm, and of counts, in percent: by how much the
        component raises or lowers what the others make.  There components multiply.  Of shares, and
        of yes or no, it is the odds that they multiply.

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
        parts = {
            (name, moment): values[k]
            for k, name in enumerate(self.names)
            for moment, values in moments.items()
        }
        columns = pd.MultiIndex.from_tuples(list(parts), names=["component", "moment"])
        return pd.DataFrame(parts, index=times, columns=columns)

    def _heights(self, mean: Floats, sd: Floats, n: int, half: float | None) -> dict[str, Floats]:
        """Moments and interval of components of series n, in its units, or in percent."""
        m, s = mean * self.table.scale[n], sd * self.table.scale[n]
        ends = {} if half is None else {"lower": m - half * s, "upper": m + half * s}
        if not self.table.transforms.multiplies[n]:
            return {"mean": m, "sd": s, **ends}
        own = Transforms(np.ones(1, np.bool_))
        factor, variance = (each[..., 0] for each in own.moments(m[..., None], s[..., None] ** 2))
        percent = {name: 100.0 * np.expm1(end) for name, end in ends.items()}
        return {"mean": 100.0 * (factor - 1.0), "sd": 100.0 * np.sqrt(variance), **percent}

    def _parts(self, times: pd.Index) -> tuple[Floats, Floats]:
        """Mean and variance of all components in all series, scaled, [K, M, N]; asked again."""
        x = self.table.scaled_times(times)
        if (key := tuple(x)) not in self._told:
            if len(self._told) >= _MOST_TOLD:
                self._told.clear()
            mean, variance = self.predictors.of(self.fit).sums(x, np.eye(len(self.fit.kernels)))
            parts = mean, np.maximum(variance, 0.0)
            self._told[key] = tuple(part.transpose(1, 2, 0) for part in parts)
        mean, variance = self._told[key]
        return mean, variance

    @cached_property
    def _told(self) -> dict[tuple[float, ...], tuple[Floats, ...]]:
        return {}

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
            stacked=tuple(replace(each, fit=part(each.fit)) for each in self.stacked),
        )
        # Or components could change their order, and with it their names.
        selected.__dict__["fit"] = part(self.fit)
        selected.__dict__["_whole"] = self.whole
        return selected

    @property
    def whole(self) -> Discovery:
        """The discovery of all series of which this one was selected, or itself; see `select`."""
        return cast("Discovery", self.__dict__.get("_whole", self))

    # --- forecasts ---

    @cached_property
    def predictors(self) -> Predictors:
        """What each fit says of any times; forecasts, reports and pictures ask again and again."""
        return Predictors(self.table.observations, self.settings.fit)

    @cached_property
    def members(self) -> list[Member]:
        """The forecasters of the average; their weights add up to one."""
        if self.averaging == "none":
            return [Member(self.fit, 1.0)]
        if self.averaging == "stacked" and self.stacked:
            return list(self.stacked)
        return average_fits([entry.fit for entry in self.entries])

    @cached_property
    def forecasts_by_draws(self) -> bool:
        """Whether draws of the posterior (`sample`) forecast in the place of the search's fits.

        They do where forecasters are stacked, where draws say who has what, too, and where fits
        weigh at least 5%: with less, they would move nothing.
        """
        share = sum(each.weight for each in self.members if not each.is_walk)
        return bool(self.stacked) and share >= _WORTH_DRAWS and not self.says_by_fits

    @cached_property
    def ensemble(self) -> Ensemble:
        """The forecasters that weigh something, and what they forecast together."""
        members = counting(self.members)
        if self.forecasts_by_draws:
            walks = [each for each in members if each.is_walk]
            share = sum(each.weight for each in members if not each.is_walk)
            drawn = members_of(self.posterior, share)
            if self.whole is not self:
                drawn = [replace(each, fit=each.fit.of_series(self._places)) for each in drawn]
            members = [*walks, *drawn]
        return Ensemble(self.table, tuple(members), self.predictors, self.averaging != "none")

    @cached_property
    def searched(self) -> list[Member]:
        """The fits that the search found, without the walks; their weights add up to one."""
        return counting(weighted([each for each in self.members if not each.is_walk]))

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
        the series; sd is that of a new observation, with its noise.  An average over fits is a
        Student-t of six degrees of freedom.  If a series is modelled by its
        logarithm, mean and sd are those of a mixture of lognormals, and the median (the quantile
        0.5) lies below the mean.

        Raises
        ------
        ValueError
            If the horizon is below one or goes beyond what dates can tell, times are not of the
            table's kind, or a level or quantile is not between zero and one.
        """
        return self.ensemble.at(self.times(horizon)).frame(level, quantiles)

    def samples(self, horizon: int | pd.Index, count: int = 100, *, seed: int = 0) -> pd.DataFrame:
        """Draw paths of new observations, which hold together over time.

        Returns
        -------
        DataFrame with index (series, time) and a column for each path, in the units of the series.
        """
        return self.ensemble.at(self.times(horizon)).samples(count, seed)

    def quantiles(
        self, horizon: int | pd.Index, levels: Sequence[float] = (0.05, 0.5, 0.95)
    ) -> pd.DataFrame:
        """Quantiles of new observations: index (series, time), columns levels; see `forecast`."""
        told = self.forecast(horizon, quantiles=levels)
        return told[[quantile_column(q) for q in levels]].set_axis(list(levels), axis=1)

    def fill(self, level: float = 0.9) -> pd.DataFrame:
        """What missing observations may have been, each from its own series.

        Other series tell more if they go together: see `couple`.  Random walks (RW, IOU) begin not
        long before the table's first time: of a series that begins later, intervals before its
        first observation are too narrow unless every fit has a level (C), and a UserWarning says
        so.

        Returns
        -------
        DataFrame of the gaps, index (series, time), with columns mean, sd, lower, upper.

        Raises
        ------
        ValueError
            If the level is not between zero and one.
        """
        gaps = self.table.gaps
        warn_of_late_series(self.table.frame, [member.fit for member in self.ensemble.members])
        told = self.predict(gaps.get_level_values(1).unique().sort_values(), level)
        return told.loc[gaps]

    def aggregate(
        self, horizon: int | pd.Index, weights: Mapping[object, float], level: float = 0.9
    ) -> pd.DataFrame:
        """Weighted sums of the series.

        Given a fit series are independent; see `couple`.

        The interval of a single series is that of its forecast, scaled; of a sum it is normal.
        Where logarithms are summed the interval is that of draws; mean and sd are exact.

        Parameters
        ----------
        horizon
            Steps after the last row, or the times themselves.
        weights
            By series; of a spread one is negative.
        level
            Of the interval.

        Returns
        -------
        DataFrame by time with columns mean, sd, lower, upper.

        Raises
        ------
        ValueError
            As `forecast`; or if there are no weights, one is not finite, or names no series.
        """
        return self.ensemble.at(self.times(horizon)).aggregate(weights, level)

    def couple(
        self, most: int = 4, *, executor: Executor | None = None, progress: bool = True
    ) -> CoupledDiscovery:
        """Learn how series go together, in seconds for 500 values, and minutes for 3,000.

        It is a step of its own because not every table gains: gaps and missing ends do, and sums
        and what-if need it.  Forecasts of complete tables may gain or lose: over three origins in
        the training parts their CRPS was 1.01 (GONU), 0.91 (houses), 0.98 (stocks) and 1.04
        (currencies) of that without it.  They are normal, with the variances that the fits say.

        Parameters
        ----------
        most
            So many fits of the highest weight are coupled, and count from there on.
        executor
            Couples fits at a time; None: this process, one after the other.
        progress
            Whether to show a progress bar.

        Raises
        ------
        ValueError
            If `most` is below one, the executor none, or the table has more than 3,400 values.
        """
        members = counting(self.members)
        return couple(self.table, members, most, executor=executor, progress=progress)

    def predict(self, times: pd.Index, level: float = 0.9) -> pd.DataFrame:
        """As `forecast`, at any times, also within the history.

        Random walks (RW, IOU) begin not long before the table's first time.  Before it their
        uncertainty does not grow, so the intervals there are too narrow; a UserWarning says so.

        Raises
        ------
        ValueError
            If the times are not of the table's kind, or the level is not between zero and one.
        """
        return self.ensemble.at(times).frame(level)

    def predict_modelled(self, times: pd.Index) -> pd.DataFrame:
        """Moments on the scale on which each series is modelled (see `data.transforms`).

        Quantiles of new observations are those of a Student-t of this mean and sd, exponentiated
        where logarithms are modelled.  Index (series, time), columns mean, sd and degrees (of
        freedom; infinite: normal).
        """
        told = self.ensemble.at(times)
        mean, variance = told.modelled
        columns = {"mean": mean, "sd": np.sqrt(variance), "degrees": told.degrees}
        return pd.DataFrame(columns, told.cells)

    def places(self, *series: object) -> tuple[int, ...]:
        """Return the numbers of different series; a ValueError says which are known."""
        columns: list[object] = list(self.table.frame.columns)
        for name in series:
            check_series(name, columns)
            if series.count(name) > 1:
                raise ValueError(f"expected different series, got {name!r} twice")
        return tuple(columns.index(name) for name in series)

    def times(self, horizon: int | pd.Index) -> pd.Index:
        """Return the times of a forecast: so many steps after the last row, or those given."""
        return self.table.after(horizon)

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

    def compare_all(self) -> AllPairs:
        """Report every pair of series: how alike they are, and which patterns both have."""
        from ..report import all_pairs

        return all_pairs(self)

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

    def to_xarray(
        self,
        horizon: int | pd.Index,
        levels: Sequence[float] = (0.5, 0.9),
        *,
        samples: int = 0,
        seed: int = 0,
    ) -> Any:
        """Return everything as an xarray `Dataset`, which ``.to_netcdf(path)`` writes.

        Parameters
        ----------
        horizon
            Steps of forecast, or their times.
        levels
            Probabilities of the intervals.
        samples
            How many paths; see `samples`.
        seed
            Of the paths.

        Returns
        -------
        Dataset
            Times of a time zone are in UTC, and the attribute ``time_zone`` names the zone.
            Variables: observed (series, time); transform (series); probability and structure
            (series, component); kernel (component); component_mean and component_sd (series,
            component, all_times), on the history and the forecast, in percent of series whose
            transform is "log";
            forecast_mean and forecast_sd (series, ahead); interval (level, side, series, ahead);
            if asked for, sample (draw, series, ahead).

        Raises
        ------
        ModuleNotFoundError
            If xarray is not installed.
        ValueError
            If a level is not between 0 and 1, or there is none.
        """
        if np.ndim(levels) == 0 or not len(levels):
            raise ValueError(f"expected a list of levels such as [0.5, 0.9], got {levels!r}")
        try:
            xarray = import_module("xarray")
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "expected the library xarray: pip install '.[files]' in a clone of lkm_gpflow"
            ) from error
        frame, times = self.table.frame, self.times(horizon)
        N, M = frame.shape[1], len(times)
        told = self.ensemble.at(times).frame(levels)
        components = [self.components(series, horizon) for series in frame.columns]
        shape = len(self.names), 2, len(components[0])
        heights = np.stack([own.to_numpy().T.reshape(shape) for own in components])
        interval = told.to_numpy()[:, 2:].reshape(N, M, len(levels), 2).transpose(2, 3, 0, 1)
        variables = {
            "observed": (("series", "time"), frame.to_numpy().T),
            "transform": ("series", self.table.transforms.names),
            "probability": (("series", "component"), self.probabilities.to_numpy()),
            "structure": (("series", "component"), self.structure.to_numpy()),
            "kernel": ("component", [str(kernel) for kernel in self.kernels]),
            "component_mean": (("series", "component", "all_times"), heights[:, :, 0]),
            "component_sd": (("series", "component", "all_times"), heights[:, :, 1]),
            "forecast_mean": (("series", "ahead"), told["mean"].to_numpy().reshape(N, M)),
            "forecast_sd": (("series", "ahead"), told["sd"].to_numpy().reshape(N, M)),
            "interval": (("level", "side", "series", "ahead"), interval),
        }
        if samples:
            paths = self.samples(times, samples, seed=seed).to_numpy().T.reshape(samples, N, M)
            variables["sample"] = (("draw", "series", "ahead"), paths)
        zone = getattr(frame.index, "tz", None)
        return xarray.Dataset(
            variables,
            coords={
                "series": self.table.names,
                "component": self.names,
                "time": _in_utc(frame.index),
                "ahead": _in_utc(times),
                "all_times": _in_utc(frame.index.append(times)),
                "level": list(levels),
                "side": list(SIDES),
            },
            attrs={
                "bic": self.bic,
                "averaging": self.averaging,
                **({} if zone is None else {"time_zone": str(zone)}),
            },
        )

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write one file, data only, that `lkm_gpflow.load` reads.

        The file of a selection (`select`) holds the discovery of all series, and which were
        selected.

        Raises
        ------
        FileExistsError
            If the file exists and `force` is not given.
        IsADirectoryError
            If it is a folder.
        ValueError
            If a series has a name, or the times a time zone, that a file cannot keep.
        """
        whole = self.whole
        document: dict[str, Any] = {
            "settings": whole.settings.to_json(),
            "averaging": whole.averaging,
            "stopped": whole.stopped,
            "news": whole.changes,
            "surprises": whole.surprises,
            "entries": [{**vars(entry), "fit": fit_to_json(entry.fit)} for entry in whole.entries],
            "stacked": [each.to_json() for each in whole.stacked],
            "transforms": whole.table.transforms.names,
            **_sites_to_json(whole.table),
        }
        if whole.is_sampled:
            document["posterior"] = whole.posterior.to_json()
        if whole is not self:
            document["selected"] = [label_to_json(name) for name in self.table.frame.columns]
        archive.write_archive(path, "Discovery", whole.table.frame, document, force=force)

    def __repr__(self) -> str:
        rows = [
            f"  {name}: {kernel:.3g} -- {self._owners(k) or 'no likely series'}"
            for k, (name, kernel) in enumerate(zip(self.names, self.kernels, strict=True))
        ]
        return "\n".join([self._headline, *rows, *filter(None, [self.stopped, self.changes])])

    def _repr_html_(self) -> str:
        from ..report.card import card

        return card(self, self._headline)

    @property
    def _headline(self) -> str:
        D, N = self.table.frame.shape
        logs = int(self.table.transforms.is_log.sum())
        which = "" if N == 1 else f"{'all' if logs == N else logs} of them "
        scale = f", {which}on a log scale" if logs else ""
        size = f"{N} series of {D} times{scale}"
        return f"Discovery: {size}, {counted(len(self.names), 'component')}, BIC {self.bic:.1f}"

    def _owners(self, k: int) -> str:
        owners = [name for n, name in enumerate(self.table.names) if self.statements.Z[n, k] == 1.0]
        return ", ".join(owners) if len(owners) <= _MOST_SHOWN else f"{len(owners)} series"


def _sites_to_json(table: Table) -> dict[str, Any]:
    """Return what a file keeps of the sites of a table, if it has some."""
    if table.sites is None:
        return {}
    if any(isinstance(kind, FromGPflow) for kind in table.sites.kinds):
        raise ValueError("expected likelihoods of lkm_gpflow, got one of GPflow: no file keeps it")
    kinds = [kind and object_to_json(kind) for kind in table.sites.kinds]
    return {"sites": table.sites.to_json(), "kinds": kinds}


def load(path: str | Path) -> Discovery:
    """Read a discovery that `Discovery.save` wrote.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is damaged, or not a discovery; if it has a base kernel that is not registered,
        or a model class that is not imported; or if its discovery is coupled.
    """
    frame, document = archive.read_archive(path, "Discovery")
    with archive.fitting_together(path, UnknownBaseError, UnknownModelError):
        table = Table.of(frame, dict(zip(list(frame.columns), document["transforms"], strict=True)))
        if "sites" in document:
            kinds = tuple(k and object_from_json(k, PointLikelihood) for k in document["kinds"])
            table = table.sited(Sites.from_json(document["sites"], kinds))
        settings = SearchSettings.from_json(document["settings"])
        if settings.fit.model != PLAIN_MODEL:
            subclasses.model_class(
                settings.fit.model, imports=False
            )  # a file does not import modules
        whole = Discovery(
            table,
            settings,
            document["averaging"],
            tuple(map(entry_from_json, document["entries"])),
            tuple(map(Member.from_json, document["stacked"])),
            document["stopped"],
            document["news"],
            tuple(map(tuple, document["surprises"])),
        )
        if "posterior" in document:
            whole.__dict__["posterior"] = PosteriorDraws.from_json(document["posterior"])
        selected = document.get("selected")
        return whole if selected is None else whole.select(list(map(label_from_json, selected)))


def _in_utc(times: pd.Index) -> Any:
    """Return an array of times without a zone, which files of netCDF do not know."""
    if isinstance(times, pd.DatetimeIndex) and times.tz is not None:
        times = times.tz_convert("UTC").tz_localize(None)
    return times.to_numpy()
