"""A discovery whose series know of each other: gaps, joint forecasts, sums and what-if."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
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
from ..runtime.arguments import check_level, check_series
from ..runtime.text import counted, whole_number
from ..runtime.threads import threads_for
from .learn_coupling import STRONG, Coupling, coupling_of, predict_cells
from .patterns import Patterns
from .uncertainty import CouplingPosterior, intervals, posterior

NOISE = "noise"  # what the correlations of the noise are called, among those of the patterns


def couple(table: Table, members: Sequence[Member], most: int = 4) -> CoupledDiscovery:
    """Learn which components of different series go together, for the `most` heaviest fits.

    A ValueError says if `most` is below one, or the table has more values than can be coupled (see
    `density.LARGEST`).
    """
    most = whole_number(most, "most fits to couple", 1)
    table.observations.check_alike("couplings of series")
    heaviest = sorted(members, key=lambda member: -member.weight)[:most]
    total = sum(member.weight for member in heaviest)
    kept = tuple(replace(member, weight=member.weight / total) for member in heaviest)
    with threads_for(table.observations.num_observed):
        learnt = tuple(coupling_of(member.fit, table.observations) for member in kept)
    return CoupledDiscovery(table, kept, learnt)


@dataclass(frozen=True, eq=False)
class CoupledDiscovery:
    """Fits of a search in which the components of different series may be correlated.

    Where there was no strong evidence that two series go together they are independent, as they
    are in the discovery itself.
    """

    table: Table  #: The training data and its scaling
    members: tuple[Member, ...]  #: The fits that count, and their weights
    couplings: tuple[Coupling, ...]  #: How the series of each fit go together

    # --- what goes together ---

    def correlations(self, level: float = 0.9) -> pd.DataFrame:
        """Tell how far series go together in each pattern of the heaviest fit, and in its noise.

        Returns
        -------
        DataFrame with index (pattern, first, second), for every two series that have the pattern,
        and columns ``correlation``, zero without strong evidence that there is any; ``lower`` and
        ``upper``, what the data leave open (see `intervals`); ``evidence``, the log
        Bayes factor of this correlation, from the two series alone (strong from 3 on).

        Notes
        -----
        The first call asks for the gradient of the likelihood as often as there are free loadings
        and amplitudes: about a minute for 13 series of 251 values.
        """
        check_level(level)
        coupling, names = self.couplings[0], self.table.frame.columns
        lower, upper = self.intervals(0, level)
        patterns = [*map(str, (kernel.structure for kernel in coupling.patterns.kernels)), NOISE]
        has = coupling.patterns.amplitudes.T > 0.0
        rows, index = [], []
        for k, n, m in np.argwhere(np.triu(has[:, :, None] & has[:, None, :], 1)):
            index.append((patterns[k], names[n], names[m]))
            told = (coupling.correlations, lower, upper, coupling.pair_evidence)
            rows.append([float(each[k, n, m]) for each in told])
        return pd.DataFrame(
            np.array(rows).reshape(-1, 4),
            pd.MultiIndex.from_tuples(index, names=["pattern", "first", "second"])
            if index
            else pd.MultiIndex.from_arrays([[], [], []], names=["pattern", "first", "second"]),
            ["correlation", "lower", "upper", "evidence"],
        )

    def intervals(self, member: int, level: float = 0.9) -> tuple[Floats, Floats]:
        """Ends [K + 1, N, N] of intervals of the correlations of a fit, by its number."""
        observations = self.table.observations
        with threads_for(observations.num_observed):
            if member not in self._posteriors:
                self._posteriors[member] = posterior(self.couplings[member], observations)
            return intervals(self._posteriors[member], observations, level)

    @cached_property
    def _posteriors(self) -> dict[int, CouplingPosterior]:
        return {}

    @property
    def pairs(self) -> pd.DataFrame:
        """Every pair of series that goes together in a pattern or its noise, on average over fits.

        Returns
        -------
        DataFrame with a row a pair, the strongest first: ``correlation`` of what the two do in a
        step (all patterns and noise, weighted by how much they move in a step), and ``evidence``,
        the log Bayes factor of the pattern that has most, from the two series alone: strong from
        3 on.
        """
        N = len(self.table.scale)
        correlation, evidence, joined = np.zeros((3, N, N))
        for member, coupling in zip(self.members, self.couplings, strict=True):
            correlation += member.weight * step_correlation(coupling, self.table.observations.x)
            is_joined = coupling.correlations != 0.0
            best = np.where(is_joined, coupling.pair_evidence, -np.inf).max(axis=0)
            evidence += member.weight * np.where(np.isfinite(best), best, 0.0)
            joined += is_joined.any(axis=0)
        rows = [
            (self.table.names[n], self.table.names[m], correlation[n, m], evidence[n, m])
            for n in range(N)
            for m in range(n + 1, N)
            if joined[n, m] > 0.0
        ]
        frame = pd.DataFrame(rows, columns=["first", "second", "correlation", "evidence"])
        order = frame["correlation"].abs().sort_values(ascending=False, kind="stable").index
        return frame.loc[order].reset_index(drop=True)

    # --- what follows ---

    def joint(self, cells: pd.MultiIndex) -> MixtureForecast:
        """Return the joint distribution of new observations of cells (series, time)."""
        table = self.table
        for name in cells.unique(0):
            check_series(name, list(table.frame.columns))
        n = table.frame.columns.get_indexer(cells.get_level_values(0))
        x = table.scaled_times(cells.get_level_values(1))
        parts, scale = [], table.scale[n]
        with threads_for(table.observations.num_observed):
            for member, coupling in zip(self.members, self.couplings, strict=True):
                mean, covariance = predict_cells(coupling, table.observations, n, x)
                mean, covariance = (
                    mean * scale + table.location[n],
                    covariance * scale * scale[:, None],
                )
                parts.append(Part.joint(member.weight, mean, covariance))
        return MixtureForecast(cells, tuple(parts), table.transforms.of_series(n))

    def ahead(
        self, horizon: int | pd.Index, given: Mapping[object, Course] | None = None
    ) -> MixtureForecast:
        """Return the joint distribution of all series at the times of a forecast."""
        product = [self.table.frame.columns, self.table.after(horizon)]
        cells = pd.MultiIndex.from_product(product, names=["series", "time"])
        joint = self.joint(cells)
        return joint if given is None else joint.given(given)

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
        the last time, or a value for every time (NaN: unknown), or a Series with some of the times.
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
        """What missing observations may have been, also by what other series did at the time.

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
        names, pairs = self.table.names, self.pairs
        pairs = pairs[pairs["evidence"] >= STRONG]
        head = f"CoupledDiscovery: {len(names)} series, {counted(len(self.members), 'fit')}"
        rows = [
            f"  {row.first} and {row.second}: correlation {row.correlation:+.2f}, "
            f"log evidence {row.evidence:.1f}"
            for row in pairs.head(12).itertuples()
        ]
        left = [f"  and {len(pairs) - 12} more pairs"] if len(pairs) > 12 else []
        return "\n".join(
            [head, *(rows or ["  no strong evidence that any series go together"]), *left]
        )


def step_correlation(coupling: Coupling, x: Floats) -> Floats:
    """Correlation [N, N] of what series do from one time to the next, on average over times."""
    C, a = coupling.patterns.covariances(x), coupling.patterns.amplitudes.T
    variance = C[:, range(len(x)), range(len(x))]
    moved = variance[:, 1:] + variance[:, :-1] - 2.0 * C[:, range(1, len(x)), range(len(x) - 1)]
    B = coupling.correlations * a[:, :, None] * a[:, None, :]
    total = np.tensordot(moved.mean(axis=1), B, axes=1)
    sd = np.sqrt(total.diagonal())
    return np.asarray(total / np.outer(sd, sd))


_ARRAYS = ("loadings", "evidence", "pair_evidence")


def _coupling_to_json(coupling: Coupling) -> dict[str, Any]:
    """Write a coupling in JSON's types; numbers keep all their digits."""
    return {
        "kernels": [str(kernel) for kernel in coupling.patterns.kernels],
        "model": coupling.patterns.model,
        "parameters": dict(coupling.patterns.parameters),
        "components": coupling.patterns.components,
        "amplitudes": coupling.patterns.amplitudes.tolist(),
        **{name: getattr(coupling, name).tolist() for name in _ARRAYS},
        "log_likelihood": coupling.log_likelihood,
        "uncoupled": coupling.uncoupled,
    }


def _coupling_from_json(record: Mapping[str, Any]) -> Coupling:
    patterns = Patterns(
        tuple(parse(text) for text in record["kernels"]),
        np.array(record["amplitudes"], np.float64),
        tuple(tuple(own) for own in record["components"]),
        record["model"],
        record["parameters"],
    )
    arrays = {name: np.array(record[name], np.float64) for name in _ARRAYS}
    return Coupling(
        patterns, **arrays, log_likelihood=record["log_likelihood"], uncoupled=record["uncoupled"]
    )
