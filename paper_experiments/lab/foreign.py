"""Whether what is said is true on tables that no Gaussian process drew.

Four generators whose components are known: shapes of fixed form with autoregressive noise,
structural models and dynamic factor models (statsmodels), and counts of sales.  What is true of a
series follows from the functions that were drawn: a pattern is in it if its function makes at least
2% of the variance of the series.  `SET_ASIDE` chose nothing, and neither did seeds from
`FIRST_JUDGED` on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from scipy.signal import lfilter
from statsmodels.tsa.statespace.dynamic_factor import DynamicFactor
from statsmodels.tsa.statespace.structural import UnobservedComponents

from lkm_gpflow.discovery.discover import discover
from lkm_gpflow.discovery.result import Discovery
from lkm_gpflow.explain.stories import Story, stories
from lkm_gpflow.gp.types import Floats

from . import RESULTS
from .calibration import expected_calibration_error
from .journals import fill, opened

VISIBLE = 0.02
KINDS = ("cycle", "trend", "shift", "walk")
SET_ASIDE = "sales"
FIRST_JUDGED = 100
"""Tables from this seed on chose nothing."""

_NEAR = 0.03  # spans: a shift was told where it is
_BURN = 50  # rows of a factor model before the first
_MEASURED = ("share", "size", "slope", "peak", "lag")


@dataclass(frozen=True)
class Part:
    """A component of one series: its values at all rows, and what is true of it.

    `period`, `peak` (of a cycle) and `date` (of a shift) are in rows; `size` is half the distance
    from trough to peak of a cycle's average shape, the jump of a shift, else the standard
    deviation.
    """

    series: int
    kind: str
    values: Floats
    size: float
    period: float = 0.0
    peak: float = np.nan
    date: float = np.nan


@dataclass(frozen=True)
class Foreign:
    """A table and its components; `unclear` are kinds that nobody could say of a series."""

    frame: pd.DataFrame
    parts: tuple[Part, ...]
    unclear: frozenset[tuple[int, str]] = frozenset()

    @property
    def times(self) -> Floats:
        """Of the rows, in days since the first, or index numbers."""
        index = self.frame.index
        if isinstance(index, pd.DatetimeIndex):
            return np.asarray((index - index[0]) / pd.Timedelta(days=1), np.float64)
        return index.to_numpy(np.float64)

    def share(self, part: Part) -> float:
        """Of the variance of its series."""
        return float(part.values.var() / self.frame.iloc[:, part.series].var(ddof=0))

    def visible(self, kind: str) -> list[Part]:
        """Return components of a kind that can be seen."""
        return [p for p in self.parts if p.kind == kind and self.share(p) >= VISIBLE]


# --- generators ----------------------------------------------------------------------------------

_Rng: TypeAlias = np.random.Generator


def _extent(rng: _Rng) -> tuple[int, int]:
    """Draw how many series and rows, rather few than many."""
    return 5 + int(11 * rng.uniform() ** 2), 60 + int(140 * rng.uniform() ** 2)


def _height(rng: _Rng) -> float:
    return float(np.exp(0.5 * rng.normal()))


def _table(columns: Floats, freq: str = "") -> pd.DataFrame:
    index = pd.date_range("2015-01-01", periods=len(columns), freq=freq) if freq else None
    return pd.DataFrame(columns, index, [f"s{n + 1}" for n in range(columns.shape[1])])


def _autoregressive(rho: float, count: int, rng: _Rng) -> Floats:
    """Noise of variance one whose neighbours have correlation rho."""
    shocks = np.sqrt(1.0 - rho**2) * rng.normal(size=_BURN + count)
    return np.asarray(lfilter([1.0], [1.0, -rho], shocks)[_BURN:])


_SHAPES: tuple[Callable[[Floats, float], Floats], ...] = (
    lambda turn, a: np.cos(2.0 * np.pi * turn),
    lambda turn, a: np.interp(turn % 1.0, [0.0, 0.1 + 0.4 * a, 1.0], [1.0, -1.0, 1.0]),  # saw
    lambda turn, a: np.exp((1.0 + 3.0 * a) * np.cos(2.0 * np.pi * turn)),  # pulse
)
"""Of cycles, highest at zero, by time in turns and a number in [0, 1]."""


def _periods(count: int, rng: _Rng) -> list[float]:
    """One or two periods, neither a multiple of the other."""
    periods = [float(np.exp(rng.uniform(np.log(6.0), np.log(count / 4.0))))]
    other = float(np.exp(rng.uniform(np.log(6.0), np.log(count / 4.0))))
    ratio = max(other, periods[0]) / min(other, periods[0])
    if rng.uniform() < 0.5 and ratio > 1.4 and abs(ratio - round(ratio)) > 0.1:
        periods.append(other)
    return periods


def shapes(seed: int) -> Foreign:
    """Sines, saws and pulses with delays, lines, bends and steps, and autoregressive noise."""
    rng = np.random.default_rng((31, seed))
    N, D = _extent(rng)
    x, parts = np.arange(D, dtype=np.float64), []
    columns = np.column_stack([
        rng.uniform(0.3, 1.0) * _autoregressive(rng.uniform(0.0, 0.7), D, rng) for _ in range(N)
    ])  # fmt: skip
    fine = np.linspace(0.0, 1.0, 1000, endpoint=False)
    for period in _periods(D, rng):
        shape, a = _SHAPES[rng.integers(3)], rng.uniform()
        first, unit = rng.uniform(0.0, period), shape(fine, a)
        for n in np.flatnonzero(rng.uniform(size=N) < 0.5):
            peak = first + period * (rng.uniform() < 0.5) * rng.uniform(-0.2, 0.2)
            height = _height(rng) / unit.std()
            values = height * shape((x - peak) / period, a)
            parts.append(Part(n, "cycle", values, 0.5 * height * np.ptp(unit), period, peak))
    for n in range(N):
        if rng.uniform() < 0.4:
            turn = rng.uniform(0.2, 0.8) * D
            f = x if rng.uniform() < 0.6 else np.square(x - turn)
            f = rng.choice([-1.0, 1.0]) * _height(rng) * (f - f.mean()) / f.std()
            parts.append(Part(n, "trend", f, f.std()))
        if rng.uniform() < 0.15:
            date, size = rng.integers(D // 5, D - D // 5), 2.0 * rng.choice([-1, 1]) * _height(rng)
            parts.append(Part(n, "shift", size * (x >= date), size, date=float(date)))
    for part in parts:
        columns[:, part.series] += part.values
    return Foreign(_table(columns), tuple(parts))


def _average_shape(values: Floats, period: int) -> tuple[float, float]:
    """Half the distance from trough to peak of values by phase, interpolated, and when it peaks.

    The peak is within half a row of the phase whose average is highest.
    """
    mean = np.array([values[phase::period].mean() for phase in range(period)])
    waves = np.fft.rfft(mean)
    waves[-1] *= 1.0 if period % 2 else 0.5  # the fastest is its own mirror image
    wave = np.fft.irfft(waves, 100 * period) * 100.0
    near = 100 * mean.argmax() + np.arange(-50, 51)
    return 0.5 * float(np.ptp(wave)), float(near[wave[near % len(wave)].argmax()] / 100.0)


def structural(seed: int) -> Foreign:
    """Local levels, slopes and seasons that may change, and white noise: statsmodels' states.

    Where a slope changes nobody could say whether that is a trend or a walk.
    """
    rng = np.random.default_rng((32, seed))
    N, D = _extent(rng)
    period = int(rng.choice([4, 7, 12]))
    season = rng.normal(size=period)
    season = (season - season.mean()) / season.std()
    changes = rng.choice([0.0, 0.05])
    columns, parts, unclear = [], [], set()
    for n in range(N):
        level = rng.choice(["fixed", "walk", "line", "both", "changing slope"])
        model = UnobservedComponents(np.zeros(D), "lltrend", seasonal=period)
        slope = rng.choice([-1, 1]) * _height(rng) * np.sqrt(12.0) / D * (level in ("line", "both"))
        walk = _height(rng) * np.sqrt(6.0 / D) * (level in ("walk", "both"))
        bend = _height(rng) * 5.0 * D**-1.5 * (level == "changing slope")
        height = _height(rng) * (rng.uniform() < 0.6)
        sds = np.array([rng.uniform(0.3, 1.0), walk, bend, changes * height])
        model.update(np.square(sds))
        start = np.concatenate([[0.0, slope], height * season[: period - 1]])
        observed, states = model.ssm.simulate(
            D, measurement_shocks=sds[0] * rng.normal(size=(D, 1)),
            state_shocks=sds[1:] * rng.normal(size=(D, 3)), initial_state=start,
        )  # fmt: skip
        columns.append(observed[:, 0])
        line = slope * np.arange(D)
        parts.append(Part(n, "trend", line, line.std()))
        wandering = states[:, 0] - line
        parts.append(Part(n, "walk", wandering, wandering.std()))
        size, peak = _average_shape(states[:, 2], period)
        parts.append(Part(n, "cycle", states[:, 2], size, period, peak))
        if level == "changing slope":
            unclear |= {(n, "trend"), (n, "walk")}
    freq = {4: "QS", 7: "D", 12: "MS"}[period]
    return Foreign(_table(np.column_stack(columns), freq), tuple(parts), frozenset(unclear))


def factors(seed: int) -> Foreign:
    """Common autoregressive factors, loadings and noise with a memory; a wave and a line beside."""
    rng = np.random.default_rng((33, seed))
    N, D = _extent(rng)
    x, order = np.arange(-_BURN, D), int(rng.integers(1, 3))
    period, peak = float(np.exp(rng.uniform(np.log(6.0), np.log(D / 4.0)))), rng.uniform(0.0, D)
    wave = np.sqrt(2.0) * np.cos(2.0 * np.pi * (x - peak) / period)
    line = x * np.sqrt(12.0) / D
    model = DynamicFactor(
        rng.normal(size=(len(x), N)), k_factors=1, factor_order=order, error_order=1,
        exog=np.column_stack([wave, line]),
    )  # fmt: skip
    beta = np.array([[_height(rng) * rng.choice([-1, 1]) for _ in range(2)] for _ in range(N)])
    beta *= rng.uniform(size=(N, 2)) < 0.4
    variances, memories = rng.uniform(0.1, 0.6, N), rng.uniform(0.0, 0.6, N)
    memory = [rng.uniform(0.3, 0.85)] if order == 1 else [0.5, rng.uniform(-0.5, 0.3)]
    loadings = rng.normal(size=N) * 0.6
    parameters = np.concatenate([loadings, beta.ravel(), variances, memory, memories])
    shocks = rng.normal(size=(len(x), 1 + N)) * np.sqrt(np.append(1.0, variances))
    columns = model.simulate(
        parameters, len(x), measurement_shocks=np.zeros((len(x), N)), state_shocks=shocks,
        initial_state=np.zeros(model.k_states),
    )[_BURN:]  # fmt: skip
    parts = []
    for n, (of_wave, of_line) in enumerate(beta):
        crest = peak + (of_wave < 0.0) * 0.5 * period
        size = abs(of_wave) * np.sqrt(2.0)
        parts.append(Part(n, "cycle", of_wave * wave[_BURN:], size, period, crest))
        f = of_line * line[_BURN:]
        parts.append(Part(n, "trend", f, f.std()))
    return Foreign(_table(np.asarray(columns)), tuple(parts))


def sales(seed: int) -> Foreign:
    """Counts a day: growth times a week times a step, and more variable than Poisson."""
    rng = np.random.default_rng((34, seed))
    N, D = _extent(rng)
    x, week = np.arange(D), rng.gamma(4.0, size=7)
    columns, parts = [], []
    for n in range(N):
        base, noise = np.exp(rng.uniform(np.log(40.0), np.log(400.0))), rng.uniform(0.03, 0.2)
        growth = rng.uniform(-0.4, 0.8) * (rng.uniform() < 0.5) * x / D
        date = int(rng.integers(D // 5, D - D // 5))
        step = rng.choice([-0.3, 0.5]) * (rng.uniform() < 0.2) * (x >= date)
        own = (week / week.mean() - 1.0) * rng.uniform(0.1, 0.8) * (rng.uniform() < 0.6)
        level = base * (1.0 + growth + step)
        cycle = level * own[x % 7]
        memory = noise * _autoregressive(rng.uniform(0.0, 0.6), D, rng)
        columns.append(rng.poisson((level + cycle) * np.exp(memory - 0.5 * noise**2)))
        size, peak = _average_shape(cycle, 7)
        parts.append(Part(n, "cycle", cycle, size, 7.0, peak))
        parts.append(Part(n, "trend", base * growth, (base * growth).std()))
        parts.append(Part(n, "shift", base * step, base * step[-1], date=float(date)))
    return Foreign(_table(np.column_stack(columns).astype(np.float64), "D"), tuple(parts))


GENERATORS: Mapping[str, Callable[[int], Foreign]] = {
    "shapes": shapes, "structural": structural, "factors": factors, SET_ASIDE: sales,
}  # fmt: skip


# --- judging -------------------------------------------------------------------------------------


def _is_told(story: Story, part: Part, foreign: Foreign) -> bool:
    """Whether a story is about a component: cycles of a frequency, shifts at a date."""
    if story.pattern.kind != part.kind:
        return False
    rows = len(foreign.frame) - 1
    if part.kind == "cycle":
        return bool(abs(1.0 / story.pattern.period - rows / part.period) < 0.5)
    return part.kind != "shift" or abs(story.pattern.date - part.date / rows) < _NEAR


def judged(found: Discovery, foreign: Foreign) -> dict[str, Any]:
    """Compare all that is said of a table with what is true, in JSON's types.

    Returns
    -------
    "said": for every series and pattern that is told or was drawn, kind, P, whether it is true, and
    of what; "intervals": of true patterns more likely than not, what, truth, median and ends, and
    the period of cycles.
    """
    told, said = stories(found), []
    measured: list[dict[str, Any]] = []
    for kind in KINDS:
        drawn = foreign.visible(kind)
        about = [each for each in told if each.pattern.kind == kind]
        for n in range(foreign.frame.shape[1]):
            if (n, kind) in foreign.unclear:
                continue
            own = [part for part in drawn if part.series == n]
            for story in about:
                true = [part for part in own if _is_told(story, part, foreign)]
                p = story.behaviours[n].probability
                said.append([kind, p, bool(true), f"{story.names[n]} {story.title}"])
                if true and p > 0.5:
                    measured += _intervals(story, true[0], foreign, found)
            untold = [p for p in own if not any(_is_told(story, p, foreign) for story in about)]
            said += [[kind, 0.0, True, f"s{n + 1} untold {p.period:.3g}"] for p in untold]
            if not about and not own:
                said.append([kind, 0.0, False, f"s{n + 1}"])
    return {"said": said, "intervals": measured, "shape": list(foreign.frame.shape)}


def _intervals(
    story: Story, part: Part, foreign: Foreign, found: Discovery
) -> Iterator[dict[str, Any]]:
    """What is said of a true pattern in one series, beside the truth."""
    row, n = story.row(part.series), part.series
    times, rows = foreign.times, np.arange(len(foreign.frame))
    period = row["period"] if part.kind == "cycle" else 0.0
    truth = {"share": foreign.share(part)}
    if not found.table.transforms.multiplies[n]:
        truth["size"] = part.size
        truth["slope"] = float(np.polyfit(times, part.values, 1)[0])
    if part.kind == "cycle":
        middle = part.peak + part.period * round((0.5 * rows[-1] - part.peak) / part.period)
        truth["peak"] = float(np.interp(middle, rows, times)) - story.origin
        first = [m for m, own in enumerate(story.behaviours)
                 if own.lag is None and own.probability > 0.1]  # fmt: skip
        like = [p for p in foreign.visible("cycle")
                if [p.series] == first and p.period == part.period]  # fmt: skip
        if like:
            truth["lag"] = (part.peak - like[0].peak) * (times[-1] / rows[-1])
    for what in _MEASURED:
        if what in truth and np.isfinite(row[what]):
            ends = [row[name] for name in (what, f"{what}_lower", f"{what}_upper")]
            yield {"what": what, "kind": part.kind, "period": period, "truth": truth[what],
                   "told": ends, "of": story.names[n]}  # fmt: skip


def judge(generator: str, seed: int) -> dict[str, Any]:
    """Draw a table, discover everything in it, and judge what is said."""
    foreign = GENERATORS[generator](seed)
    found = discover(foreign.frame, seed=seed, progress=False)
    return {"generator": generator, "seed": seed, **judged(found, foreign)}


def run(
    generators: Sequence[str],
    seeds: Sequence[int],
    results: Path = RESULTS,
    executor: Executor | None = None,
) -> list[dict[str, Any]]:
    """Judge the tables that the journal has not, and return the records of those asked for."""
    journal = opened(results, "foreign", {"visible": VISIBLE})
    done = {(record["generator"], record["seed"]) for record in journal.records}
    asked = [(generator, seed) for seed in seeds for generator in generators]
    jobs = {key: partial(judge, *key) for key in asked if key not in done}
    records = fill(journal, jobs, executor, "table")
    return [record for record in records if (record["generator"], record["seed"]) in asked]


def statements(records: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Per kind: how many statements and true ones, calibration error, mean P of those that are
    false and true, and how many there are of "has" and "perhaps" with the share that is false.
    """
    said = [each for record in records for each in record["said"]]
    table = pd.DataFrame(said, columns=["kind", "p", "true", "of"])
    rows = {}
    for kind, own in table.groupby("kind"):
        p, true = own["p"], own["true"].astype(bool)
        has, perhaps = p >= 0.9, (p > 0.5) & (p < 0.9)
        rows[kind] = {
            "count": len(own), "true": int(true.sum()),
            "error": expected_calibration_error(p.tolist(), true.astype(float).tolist()),
            "P if false": p[~true].mean(), "P if true": p[true].mean(),
            "has": int(has.sum()), "has, false": 1.0 - true[has].mean(),
            "perhaps": int(perhaps.sum()), "perhaps, false": 1.0 - true[perhaps].mean(),
        }  # fmt: skip
    return pd.DataFrame.from_dict(rows, orient="index")


def held(records: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Per kind and number: how many 90% intervals there are, the share that holds the truth, and
    of points of cycles the share of medians within 5% of the period of it.
    """
    rows = []
    for each in (one for record in records for one in record["intervals"]):
        (middle, lower, upper), truth, period = each["told"], each["truth"], each["period"]
        is_point = each["what"] in ("peak", "lag")
        if is_point:
            truth += period * round((middle - truth) / period)
        near = abs(middle - truth) <= 0.05 * period if is_point else np.nan
        rows.append([each["kind"], each["what"], lower <= truth <= upper, near])
    table = pd.DataFrame(rows, columns=["kind", "what", "held", "within 5%"])
    groups = table.astype({"held": float, "within 5%": float}).groupby(["kind", "what"])
    return groups.mean().assign(intervals=groups.size())
