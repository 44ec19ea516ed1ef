"""The paper's observations on seizure data (figure 5), each with a definition that can miss.

All are read off the *profile* of an activity: the shares of its series that have each component.
`TumourPatients`, `rapid_components` and `slow_period` were written before anybody looked at a
result; `lacking_in_seizures`, `mains_share` and `mains_excess` came after.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from ..datasets.seizure import SAMPLING_RATE
from ..gp.types import Floats
from ..kernels.component import to_kernel
from ..kernels.grammar import Product
from ..sharing.cycles import longest_period

SEIZURE, TUMOUR_AREA, HEALTHY_AREA, EYES_CLOSED, EYES_OPEN = 1, 2, 3, 4, 5
"""The labels of the activities, see `lkm_gpflow.datasets.seizure.ACTIVITIES`.

The paper calls 2 and 3 "located tumour" and "identifying tumour", together "tumour areas".
"""

OTHERS = [TUMOUR_AREA, HEALTHY_AREA, EYES_CLOSED, EYES_OPEN]

MAINS = 50.0
"""Hertz, of the electricity where the recordings were made."""


def correlation_time(kernel: Product) -> float:
    r"""Return the lag at which a stationary kernel's correlation first falls to exp(-1/2).

    One measure of rapidity for all kernels: for SE it is the lengthscale; for PER it grows with the
    period and with the lengthscale; for a product it is below that of every factor.

    Parameters
    ----------
    kernel
        Complete and stationary.

    Returns
    -------
    A time in the kernel's unit; infinity if the correlation never falls so low.
    """
    lags = np.geomspace(1e-5, 1e3, 40_001)
    below = np.flatnonzero(correlations(kernel, lags) <= np.exp(-0.5))
    return float(lags[below[0]]) if len(below) else np.inf


def correlations(kernel: Product, lags: Floats) -> Floats:
    """Return a stationary kernel's correlations at some lags, [L] both."""
    times = np.concatenate([[0.0], lags])[:, None]
    covariances = np.asarray(to_kernel(kernel)(times, np.zeros((1, 1))))[:, 0]
    return covariances[1:] / covariances[0]


@dataclass(frozen=True)
class TumourPatients:
    """Observation 1: both areas of patients with a tumour have the same sparsity.

    It holds if each of the two profiles is the other's nearest (mean absolute difference, all five
    activities) and a permutation of the labels of their series is as far apart in more than
    one case of twenty.

    Parameters
    ----------
    distances
        Between all pairs of profiles, activity x activity.
    p_value
        Of the permutation test.
    """

    distances: pd.DataFrame
    p_value: float

    @property
    def are_nearest(self) -> bool:
        """Whether each is the other's nearest."""
        pair = {TUMOUR_AREA: HEALTHY_AREA, HEALTHY_AREA: TUMOUR_AREA}
        return all(self.distances[a].drop(a).idxmin() == b for a, b in pair.items())

    @property
    def holds(self) -> bool:
        """See the class."""
        return self.are_nearest and self.p_value > 0.05


def tumour_patients(
    Z: pd.DataFrame, activities: pd.Series[int], *, permutations: int = 2000, seed: int = 0
) -> TumourPatients:
    """Measure observation 1 on an assignment."""
    profiles = Z.groupby(activities).mean()
    distances = pd.DataFrame(0.0, profiles.index, profiles.index)
    for a, b in combinations(profiles.index, 2):
        distances.loc[a, b] = distances.loc[b, a] = (profiles.loc[a] - profiles.loc[b]).abs().mean()
    first, second = (Z[activities == a].to_numpy(np.float64) for a in (TUMOUR_AREA, HEALTHY_AREA))
    rows, rng = np.concatenate([first, second]), np.random.default_rng(seed)
    observed = _distance(rows, len(first))
    shuffled = [_distance(rng.permutation(rows), len(first)) for _ in range(permutations)]
    # The observed labelling is one of the permutations.
    count = 1 + sum(distance >= observed - 1e-12 for distance in shuffled)
    return TumourPatients(distances, count / (permutations + 1))


def _distance(rows: Floats, cut: int) -> float:
    return float(np.abs(rows[:cut].mean(axis=0) - rows[cut:].mean(axis=0)).mean())


@dataclass(frozen=True)
class Presence:
    """How common some components are in each activity, and whether an observation holds.

    Parameters
    ----------
    shares
        Components x activities, with a column of what was measured of the component.
    holds
        Whether the observation holds.
    """

    shares: pd.DataFrame
    holds: bool


def rapid_components(profiles: pd.DataFrame, kernels: tuple[Product, ...]) -> Presence:
    """Measure observation 2: eyes open and eyes closed share rapidly varying components.

    Rapid are the components with the shorter half of the correlation times.  It holds if one of
    them is in at least half of the series of both activities, and more common in either
    than in either area of patients with a tumour.
    """
    times = pd.Series([correlation_time(kernel) for kernel in kernels], profiles.columns)
    rapid = times.sort_values().index[: (len(times) + 1) // 2]
    shares = profiles[rapid].T
    eyes = shares[[EYES_CLOSED, EYES_OPEN]].min(axis=1)
    tumours = shares[[TUMOUR_AREA, HEALTHY_AREA]].max(axis=1)
    holds = bool(((eyes >= 0.5) & (eyes > tumours)).any())
    return Presence(shares.assign(**{"correlation time": times[rapid]}), holds)


def slow_period(profiles: pd.DataFrame, kernels: tuple[Product, ...]) -> Presence:
    """Measure observation 3: seizures lack the low-frequency periodic component.

    That is the component with the longest period.  It holds if at most a tenth of the seizure
    series have it and at least a quarter of all others.
    """
    periods = pd.Series([longest_period(kernel) for kernel in kernels], profiles.columns)
    shares = profiles[periods.index[periods > 0.0]].T.assign(period=periods[periods > 0.0])
    slowest = shares.sort_values("period", ascending=False).iloc[0]
    others = slowest[OTHERS].mean()
    holds = bool(slowest[SEIZURE] <= 0.1 and others >= 0.25)
    return Presence(shares.sort_values("period", ascending=False), holds)


def lacking_in_seizures(profiles: pd.DataFrame, kernels: tuple[Product, ...]) -> Presence:
    """Look for a periodic component of any period that seizures lack: 3, after looking.

    It holds if at most a tenth of the seizure series have it and at least half of all others.
    """
    periods = pd.Series([longest_period(kernel) for kernel in kernels], profiles.columns)
    shares = profiles[periods.index[periods > 0.0]].T.assign(period=periods[periods > 0.0])
    lacking = (shares[SEIZURE] <= 0.1) & (shares[OTHERS].mean(axis=1) >= 0.5)
    return Presence(shares[lacking], bool(lacking.any()))


def mains_share(component: Floats) -> float:
    """Return the share of a component's power within 1.5 Hz of the mains, averaged over series.

    Parameters
    ----------
    component
        Posterior means, [N, D], sampled at `SAMPLING_RATE`; zero where a series lacks it.
    """
    frequencies, power = _spectra(component[np.any(component, axis=1)])
    near = np.abs(frequencies - MAINS) <= 1.5
    return float((power[:, near].sum(axis=1) / power.sum(axis=1)).mean())


def mains_excess(series: Floats) -> Floats:
    """Return how far the mains stand out of each series.

    It is the mean power within 1.5 Hz of the mains over that of the frequencies around, up to 6 Hz
    away: about one if there is no line.

    Parameters
    ----------
    series
        [N, D], sampled at `SAMPLING_RATE`.

    Returns
    -------
    Array [N].
    """
    frequencies, power = _spectra(series)
    distance = np.abs(frequencies - MAINS)
    line = power[:, distance <= 1.5].mean(axis=1)
    return np.asarray(line / power[:, (distance > 1.5) & (distance <= 6.0)].mean(axis=1))


def _spectra(series: Floats) -> tuple[Floats, Floats]:
    """Frequencies in Hertz [F] and periodograms [N, F], without the mean."""
    frequencies = np.fft.rfftfreq(series.shape[1], 1.0 / SAMPLING_RATE)
    return frequencies[1:], np.abs(np.fft.rfft(series, axis=1)[:, 1:]) ** 2
