"""A discovery whose series know of each other: gaps, joint forecasts, sums and what-if."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from ..data.tables import Table
from ..data.transforms import Transform
from ..forecast.forecasters import Member
from ..forecast.mixture import Course, MixtureForecast, Part, quantile_column
from ..gp.types import Floats
from ..kernels.grammar import UnknownBaseError, parse
from ..runtime import archive
from ..runtime.arguments import check_series
from ..runtime.executors import check_executor, num_workers, run_all
from ..runtime.progress import part_of
from ..runtime.text import counted, listed, percent, whole_number
from ..runtime.threads import threads_for
from ..runtime.warn import warn
from .delays import aligned, later, most_rows
from .density import check_number_of_cells
from .learn_coupling import Coupling, coupling_of, predict_cells
from .patterns import Patterns

ALL_OTHERS = "all others"  # what the forecast of a series is told in `narrowing`, beside each

_LITTLE = 0.99  # what is left of a width where a series is said not to follow from others

_JITTER = 1e-12
_MOST_SHOWN = 12  # pairs by name where a coupling shows itself

_SECONDS = 2e-8
"""Of one core, for each cell to the third power: what a fit takes on average, and a second more."""


def couple(
    table: Table,
    members: Sequence[Member],
    most: int = 4,
    *,
    executor: Executor | None = None,
    progress: bool = True,
) -> CoupledDiscovery:
    """Learn which components of different series go together, for the `most` heaviest fits.

    A ValueError says if `most` is below one, or the table has more values than can be coupled (see
    `density.LARGEST`).
    """
    most = whole_number(most, "most fits to couple", 1)
    table.observations.check_alike("couplings of series")
    check_executor(executor)
    observations = table.observations
    cells = observations.num_observed
    check_number_of_cells(cells)
    heaviest = sorted(members, key=lambda member: -member.weight)[:most]
    total = sum(member.weight for member in heaviest)
    kept = tuple(replace(member, weight=member.weight / total) for member in heaviest)
    ahead, rows = np.zeros(0), most_rows(len(observations.x))
    steps = np.diff(observations.x)
    if rows and (table.axis.grid is not None or np.ptp(steps) < 1e-6 * observations.x[-1]):
        ahead = table.scaled_times(table.after(rows))
    jobs = {i: partial(coupling_of, each.fit, observations, ahead) for i, each in enumerate(kept)}
    rounds = -(-len(kept) // num_workers(executor))
    label = f"coupling {len(table.names)} series"
    learnt = {}
    with threads_for(cells), part_of(progress, label, len(kept)) as bar:
        bar.left(rounds * (1.0 + _SECONDS * cells**3))
        for i, coupling in run_all(jobs, executor, hear=bar.hear):
            learnt[i] = coupling
            bar.update()
    return CoupledDiscovery(table, kept, tuple(learnt[i] for i in jobs))


@dataclass(frozen=True, eq=False)
class CoupledDiscovery:
    """Fits of a search in which the components of different series may be correlated.

    Where there was no strong evidence that two series go together they are independent, as they
    are in the discovery itself.
    """

    table: Table  #: The training data and its scaling
    members: tuple[Member, ...]  #: The fits that count, and their weights
    couplings: tuple[Coupling, ...]  #: How the series of each fit go together

    # --- what knowing others is worth ---

    def narrowing(self, horizon: int | pd.Index = 1) -> pd.DataFrame:
        """Tell by how much knowing another series narrows the forecast of each.

        Widths are what the model expects of intervals, over the horizon, as a share of the width
        that the series' own history leaves: 1 where nothing is gained, 0.7 where intervals are
        narrower by 30%.  The expected CRPS falls by the same factor.

        Parameters
        ----------
        horizon
            Steps ahead, or the times.

        Returns
        -------
        DataFrame with index (series, given): each other series, and at last "all others".  Columns:
        ``past``, the width if the history of the given series is known, too; ``now``, if also
        what it does at the times of the forecast is; ``correlation`` of what the two do from one
        row to the next, and ``delay``, rows by which the series follows the given one: not a number
        where nothing goes together, and both for all others.
        """
        names, times = list(self.table.frame.columns), self.table.after(horizon)
        N, delays = len(names), self.couplings[0].delays
        alone, rho = np.zeros((N, 1, 1)), np.zeros((N, N))
        widths = np.zeros((N, N + 1, 2))  # by series and what is given: past, now
        for i, (member, coupling) in enumerate(zip(self.members, self.couplings, strict=True)):
            own = np.array([self._widths(i, [n], times)[:, :1] for n in range(N)])
            told = np.tile(own, (1, N + 1, 2))
            joined = np.any(coupling.correlations != 0.0, axis=0)
            for n, m in np.argwhere(np.triu(joined, 1)):
                told[[n, m], [m, n]] = self._widths(i, [n, m], times)
            if joined.sum() > N:
                told[:, N] = self._widths(i, list(range(N)), times)
            alone += member.weight * own
            widths += member.weight * told
            rho += member.weight * step_correlation(coupling, self.table.observations.x)
        left = widths / alone
        pairs = {"correlation": rho, "delay": np.where(rho, delays[:, None] - delays, np.nan)}
        pairs = {name: np.column_stack([of, np.full(N, np.nan)]) for name, of in pairs.items()}
        others = ~np.eye(N, N + 1, dtype=bool)
        product = pd.MultiIndex.from_product([names, [*names, ALL_OTHERS]])
        index = product[others.ravel()].set_names(["series", "given"])
        columns = {"past": left[..., 0], "now": left[..., 1], **pairs}
        return pd.DataFrame({name: each[others] for name, each in columns.items()}, index)

    def _widths(self, i: int, places: list[int], times: pd.Index) -> Floats:
        """Mean sd over the times of some series by fit i, [P, 2].

        From the history of all of them, and from what the others do at the times as well.
        """
        names = self.table.frame.columns[places]
        _, S = self._moments(i, pd.MultiIndex.from_product([names, times]), places)
        P = len(places)
        precision = np.linalg.inv(S + _JITTER * S.diagonal().mean() * np.eye(len(S)))
        precision = precision.reshape(P, len(times), P, len(times))
        now = [np.linalg.inv(precision[n, :, n]).diagonal() for n in range(P)]
        variances = np.array([S.diagonal().reshape(P, -1), now])
        return np.asarray(np.sqrt(variances).mean(axis=2).T)

    @cached_property
    def pairs(self) -> pd.DataFrame:
        """The rows of `narrowing` of series that go together, once for two, the closest first."""
        told = self.narrowing().drop(ALL_OTHERS, level="given")
        told = told[told["now"] < _LITTLE].sort_values("now", kind="stable")
        pairs = [tuple(sorted(map(str, index))) for index in told.index]
        return told[~pd.Index(pairs).duplicated()]

    # --- what follows ---

    def joint(self, cells: pd.MultiIndex) -> MixtureForecast:
        """Return the joint distribution of new observations of cells (series, time)."""
        table = self.table
        for name in cells.unique(0):
            check_series(name, list(table.frame.columns))
        n = table.frame.columns.get_indexer(cells.get_level_values(0))
        parts, scale = [], table.scale[n]
        for i, member in enumerate(self.members):
            mean, covariance = self._moments(i, cells)
            mean = mean * scale + table.location[n]
            parts.append(Part.joint(member.weight, mean, covariance * scale * scale[:, None]))
        return MixtureForecast(cells, tuple(parts), table.transforms.of_series(n))

    def _moments(
        self, i: int, cells: pd.MultiIndex, places: Sequence[int] | None = None
    ) -> tuple[Floats, Floats]:
        """Mean [P] and covariance [P, P] of cells by fit i, scaled, from some of the series."""
        table, coupling, observations = self.table, self.couplings[i], self.table.observations
        columns = table.frame.columns
        if places is not None:
            some = np.array(places, np.int32)
            columns, observations = columns[some], observations.of_series(some)
            coupling = coupling.of_series(some)
        n = columns.get_indexer(cells.get_level_values(0))
        x, delays = table.scaled_times(cells.get_level_values(1)), coupling.delays
        if delays.any():
            ahead = table.scaled_times(table.after(int(delays.max()) + len(cells)))
            x = later(x, delays.max() - delays[n], np.concatenate([observations.x, ahead]))
            observations = aligned(observations, delays, ahead)
        with threads_for(observations.num_observed):
            return predict_cells(coupling, observations, n, x)

    def ahead(
        self, horizon: int | pd.Index, given: Mapping[object, Course] | None = None
    ) -> MixtureForecast:
        """Return the joint distribution of all series at the times of a forecast.

        If something is `given`, and no other series follows from it, a UserWarning says so.
        """
        product = [self.table.frame.columns, self.table.after(horizon)]
        joint = self.joint(pd.MultiIndex.from_product(product, names=["series", "time"]))
        if given is None:
            return joint
        known = joint.given(given)
        others = set(joint.series) - set(given)
        if others and not others & set(_moved(joint, known)):
            warn(self.what_follows(horizon, given))
        return known

    def what_follows(self, horizon: int | pd.Index, given: Mapping[object, Course]) -> str:
        """Say what a what-if assumes, which series it moves, and for which nothing follows."""
        joint = self.ahead(horizon)
        moved = _moved(joint, joint.given(given))
        others = [name for name in joint.series if name not in given]
        told = [f"{name} ({moved[name]:+.1f} sd)" for name in others if name in moved]
        left = [name for name in others if name not in moved]
        what = listed(list(given))
        if not told:
            return (
                f"Nothing follows from {what} for the other series: there is no strong evidence "
                "that their surprises go together."
            )
        said = (
            f"If {what} did this, others move as their surprises went together with it in the "
            f"past, whatever the cause; at the last time {listed(told)}."
        )
        return said + (f" Nothing follows for {listed(left)}." if left else "")

    def forecast(
        self,
        horizon: int | pd.Index,
        level: float = 0.9,
        *,
        given: Mapping[object, Course] | None = None,
        quantiles: Sequence[float] = (),
    ) -> pd.DataFrame:
        """Forecast new observations, of series that ended early from those that did not.

        Arguments and columns are those of `Discovery.forecast`, but quantiles are those of a normal
        of this mean and sd.  What some series are taken to do may be `given`: ``{"Oil": 80.0}`` at
        the last time, or a value for every time (NaN: unknown), or a Series with some of the times;
        `what_follows` says what that assumes.
        """
        return self.ahead(horizon, given).frame(level, quantiles)

    def quantiles(
        self,
        horizon: int | pd.Index,
        levels: Sequence[float] = (0.05, 0.5, 0.95),
        *,
        given: Mapping[object, Course] | None = None,
    ) -> pd.DataFrame:
        """Quantiles of new observations: index (series, time), columns the levels."""
        told = self.ahead(horizon, given).frame(quantiles=levels)
        return told[[quantile_column(q) for q in levels]].set_axis(list(levels), axis=1)

    def samples(
        self,
        horizon: int | pd.Index,
        count: int = 100,
        *,
        seed: int = 0,
        given: Mapping[object, Course] | None = None,
    ) -> pd.DataFrame:
        """Draw paths that hold together over time and series: a column each."""
        return self.ahead(horizon, given).samples(count, seed)

    def aggregate(
        self,
        horizon: int | pd.Index,
        weights: Mapping[object, float],
        level: float = 0.9,
        *,
        given: Mapping[object, Course] | None = None,
    ) -> pd.DataFrame:
        """Weighted sums of series (totals, spreads, portfolios): mean, sd, lower, upper by time.

        A ValueError says if there is no such series, no weight, or one that is not a finite number.
        """
        return self.ahead(horizon, given).aggregate(weights, level)

    def fill(self, level: float = 0.9) -> pd.DataFrame:
        """What missing observations may have been, also by what other series did then.

        Of series that follow others by some rows, by what those did so many rows before.

        A table of the gaps, index (series, time), with columns mean, sd, lower, upper.
        """
        return self.joint(self.table.gaps).frame(level)

    # --- keeping and showing ---

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write one file, data only, that `load` reads; it raises what `Discovery.save` raises."""
        document = {
            "coupled": [member.to_json() for member in self.members],
            "couplings": [_coupling_to_json(coupling) for coupling in self.couplings],
            "transforms": self.table.transforms.names,
        }
        archive.write_archive(path, "CoupledDiscovery", self.table.frame, document, force=force)

    @staticmethod
    def load(path: str | Path) -> CoupledDiscovery:
        """Read what `save` wrote; it raises what `lkm_gpflow.load` raises."""
        frame, document = archive.read_archive(path, "CoupledDiscovery")
        with archive.fitting_together(path, UnknownBaseError):
            transforms = zip(list(frame.columns), document["transforms"], strict=True)
            return CoupledDiscovery(
                Table.of(frame, cast("Transform", dict(transforms))),
                tuple(map(Member.from_json, document["coupled"])),
                tuple(map(_coupling_from_json, document["couplings"])),
            )

    def __repr__(self) -> str:
        head = (
            f"CoupledDiscovery: {len(self.table.names)} series, {counted(len(self.members), 'fit')}"
        )
        pairs = self.pairs
        rows = [f"  {each}" for each in told_pairs(pairs.head(_MOST_SHOWN))]
        left = len(pairs) - len(rows)
        more = [f"  and {left} more pairs"] if left else []
        return "\n".join([head, *(rows or [f"  {NOTHING}"]), *more])


NOTHING = "There is no strong evidence that knowing one series helps to forecast another."


def told_pairs(pairs: pd.DataFrame) -> list[str]:
    """Say what knowing a series is worth for another, for rows of `narrowing`."""
    told = []
    for (series, given), row in zip(pairs.index, pairs.to_dict("records"), strict=True):
        way = "with" if row["correlation"] > 0.0 else "against"
        rows = 0 if np.isnan(row["delay"]) else int(row["delay"])
        late = f", {counted(abs(rows), 'row')} {'later' if rows > 0 else 'earlier'}"
        told.append(
            f"Knowing {given} narrows the forecast of {series} by {percent(1.0 - row['now'])}: "
            f"{series} moves {way} {given}{late if rows else ''} "
            f"(correlation {row['correlation']:+.2f})."
        )
    return told


def step_correlation(coupling: Coupling, x: Floats) -> Floats:
    """Correlation [N, N] of what series do from one row to the next, delays aside, on average."""
    C, a = coupling.patterns.covariances(x), coupling.patterns.amplitudes.T
    variance = C[:, range(len(x)), range(len(x))]
    moved = variance[:, 1:] + variance[:, :-1] - 2.0 * C[:, range(1, len(x)), range(len(x) - 1)]
    B = coupling.correlations * a[:, :, None] * a[:, None, :]
    total = np.tensordot(moved.mean(axis=1), B, axes=1)
    sd = np.sqrt(total.diagonal())
    return np.asarray(total / np.outer(sd, sd))


def _moved(joint: MixtureForecast, known: MixtureForecast) -> dict[object, float]:
    """Series about which something follows, and by how many sds the last time is moved."""
    (m0, v0), (m1, v1) = joint.modelled, known.modelled
    sd = np.sqrt(np.maximum(v0, 1e-300))
    names = joint.cells.get_level_values(0)
    found = {}
    for name in joint.series:
        own = np.flatnonzero(names == name)
        if np.any(v1[own] < _LITTLE**2 * v0[own]):
            found[name] = float((m1[own[-1]] - m0[own[-1]]) / sd[own[-1]])
    return found


_ARRAYS = {"loadings": np.float64, "evidence": np.float64, "delays": np.int32}
"""Of a coupling, and how they are kept in memory."""


def _coupling_to_json(coupling: Coupling) -> dict[str, Any]:
    """Write a coupling in JSON's types; numbers keep all their digits."""
    patterns = {
        **vars(coupling.patterns),
        "kernels": [str(kernel) for kernel in coupling.patterns.kernels],
        "amplitudes": coupling.patterns.amplitudes.tolist(),
        "parameters": dict(coupling.patterns.parameters),
    }
    arrays = {name: getattr(coupling, name).tolist() for name in _ARRAYS}
    return {**vars(coupling), **arrays, "patterns": patterns}


def _coupling_from_json(record: Mapping[str, Any]) -> Coupling:
    own = record["patterns"]
    known = {
        "kernels": tuple(map(parse, own["kernels"])),
        "amplitudes": np.array(own["amplitudes"], np.float64),
        "components": tuple(map(tuple, own["components"])),
    }
    arrays = {name: np.array(record[name], kind) for name, kind in _ARRAYS.items()}
    return Coupling(**{**record, **arrays, "patterns": Patterns(**{**own, **known})})
