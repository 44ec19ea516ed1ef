r"""Gaussian sites of series that are counts, shares or have outliers.

A value with a likelihood :math:`p(y \mid f)` becomes a pseudo-observation of f with a variance of
its own, the site of conjugate-computation variational inference (Khan and Lin 2017):

.. math:: t(f) = \mathcal{N}(\tilde y \mid f, \tilde s), \qquad
   \tilde s = -\frac{1}{2\, \partial_v E}, \qquad \tilde y = m + \tilde s\, \partial_m E, \qquad
   E = \mathrm{E}_{\mathcal{N}(f \mid m, v)} \log p(y \mid f)

where m and v are what a flexible process says of f: a level, two walks that return, a smooth
curve, seasons and noise, with variances learnt from the series alone.  All that follows sees the
sites.  Student noise needs no other value, only more variance where a value is off.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import pandas as pd
from scipy.optimize import minimize

from ..gp.likelihoods import (
    Binomial,
    FromGPflow,
    NegativeBinomial,
    PointLikelihood,
    PointName,
    Poisson,
    Share,
    Student,
)
from ..gp.series import GaussianSeries
from ..gp.types import LOG_2PI, Floats
from ..runtime.arguments import check_series
from ..runtime.text import listed
from .suspicious import COLUMNS
from .transforms import root_gain

PointChoice: TypeAlias = "Literal['auto', 'none'] | PointName | PointLikelihood | Mapping[Any, Any]"
"""One for all series, or by name of those that are not plain.

"auto": counts, shares and outliers where the values show them, see `rules`.
"""

Kinds: TypeAlias = "tuple[PointLikelihood | None, ...]"
"""The likelihood of the values of each series; None: Gaussian noise."""

_ROUNDS = 8  # rounds of variances and sites, in turn
_UPDATES = 6  # steps of the sites in a round, half of the way each
_SETTLED = 1e-3  # sites have settled when the mean of f moves less, in its sds
_LEVEL = 10.0  # variance of the level of f about its first guess

_USUAL, _LOOSE = 0.1, 2.0
"""Prior of the variances of the flexible process, log-normal: median and sd of the logarithm."""

_LEAST = 1e-2
"""A series whose f hardly moves is scaled as if it had this share of the variance of its sites."""

_AT_A_TIME = 500  # longer series are gone through in parts: sites are a matter of their neighbours
_MOST_CHOOSING = 150  # of more values the last ones choose the parameters of a likelihood
_MOST_SERIES = 50  # tables of more series stay as they are, unless they are asked for

LITTLE_WEIGHT = 0.25
"""Values of a smaller Student weight count less and are listed: four standard deviations away.

Others would give the learnt noise, and with it forecasts, too little.
"""

_MOST_OFF = 0.03  # share of counts that may be far off: more are how a series is
_NO_TRUST = 100.0  # variance of the site of such a count, in variances of f: it says nothing
_SINGLE_DIGITS = 9.0  # whole numbers are small counts if some are so small

_UNDER = 0.5
"""Counts scatter from step to step with a variance of at least this share of their mean."""

_NO_ROOTS = 3.0
"""Nats by which square roots may describe counts worse than the values themselves.

Of planted counts of rates 0.3 to 30, in 60 to 400 rows, at most 7% lose more; of planted whole
degrees 81 to 92% in 120 rows, and all 8 in 365.
"""

_EDGE, _NAMED_EDGE = 0.02, 0.1
"""Shares come within so much of their bounds, of series with a word for them in their names."""

_PERCENT_WORDS = (
    "%", "percent", "pct", "share", "humidity", "occupancy", "availability", "utili", "fraction",
    "proportion", "coverage", "uptime",
)  # fmt: skip


@dataclass(frozen=True)
class Sites:
    """Pseudo-observations of a table, and what they stand for."""

    # On the modelled scale, [D, N]; of plain series the values themselves, and zeros.
    values: Floats
    variances: Floats
    location: Floats  # by which the values are scaled, [N], as the next two
    scale: Floats
    kinds: Kinds  # with the parameters that were chosen
    weights: Floats  # Student weights of values that count less, [D, N]; one of all others

    @classmethod
    def of(cls, x: Floats, modelled: Floats, kinds: Kinds, period: float | None) -> Sites:
        """Make the sites of series on their modelled scale [D, N], those of a link as they are.

        Times x [D] have a span of one; the `period` of the season, if there is one, is in its unit.
        """
        sites = cls(
            modelled.copy(), np.zeros_like(modelled), np.nanmean(modelled, axis=0),
            np.nanstd(modelled, axis=0), kinds, np.ones_like(modelled),
        )  # fmt: skip
        chosen = list(kinds)
        for n, kind in enumerate(kinds):
            if kind is None:
                continue
            seen = np.flatnonzero(np.isfinite(modelled[:, n]))
            last = seen[-_MOST_CHOOSING:]
            chosen[n] = kind = _best(modelled[last, n], _flexible(x[last], period), kind)
            moments = []
            for some in np.array_split(seen, -(-len(seen) // _AT_A_TIME)):
                y, K = modelled[some, n], _flexible(x[some], period)
                if isinstance(kind, Student):
                    own, sites.weights[some, n] = _student(y, K, kind)
                else:
                    own, sites.weights[some, n] = _without_spikes(y, K, kind)
                sites.values[some, n], sites.variances[some, n] = own.values, own.variances
                moments.append((len(some), own.location, own.location**2 + own.scale**2))
            counts, firsts, seconds = np.array(moments).T
            sites.location[n] = np.average(firsts, weights=counts)
            second = np.average(seconds, weights=counts)
            sites.scale[n] = np.sqrt(second - sites.location[n] ** 2)
        return replace(sites, kinds=tuple(chosen))

    def of_series(self, places: Any) -> Sites:
        """Return those of some series."""
        return Sites(
            self.values[:, places], self.variances[:, places], self.location[places],
            self.scale[places], tuple(self.kinds[n] for n in places), self.weights[:, places],
        )  # fmt: skip

    def little_weight(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return values of little Student weight as rows of `suspicious.find`."""
        rows = []
        for n, kind in enumerate(self.kinds):
            degrees = kind.degrees if isinstance(kind, Student) else Student().degrees
            for place in np.flatnonzero(self.weights[:, n] < LITTLE_WEIGHT):
                far = np.sqrt((degrees + 1.0) / self.weights[place, n] - degrees)
                row = frame.columns[n], frame.index[place], frame.iat[place, n]
                rows.append((*row, "little weight", float(far)))
        return pd.DataFrame(rows, columns=list(COLUMNS))

    def to_json(self) -> dict[str, Any]:
        """Return the arrays in JSON's types."""
        return {name: each.tolist() for name, each in vars(self).items() if name != "kinds"}

    @classmethod
    def from_json(cls, record: Mapping[str, Any], kinds: Kinds) -> Sites:
        """Read what `to_json` wrote."""
        return cls(kinds=kinds, **{name: np.array(each) for name, each in record.items()})


# --- the flexible process -----------------------------------------------------------------------


def _flexible(x: Floats, period: float | None) -> Floats:
    """Covariances of unit variance that a flexible process is a sum of, [C, d, d]; noise last."""
    lags = np.abs(np.subtract.outer(x, x))
    step = float(np.median(np.diff(x)))
    parts = [np.exp(-0.5 * np.square(lags / 0.3)), np.exp(-lags / 0.3), np.exp(-lags / (3 * step))]
    if period is not None and period < 0.5:
        wave = np.exp(-2.0 * np.square(np.sin(np.pi * lags / period)))
        parts += [wave - wave.mean()]
    return np.array([*parts, np.eye(len(x))])


@dataclass(frozen=True)
class _Site:
    """Sites of one series, [d], mean and sd of f over time, evidence lower bound, errors [d].

    The errors are those of each value given all others, in their standard deviations.
    """

    values: Floats
    variances: Floats
    location: float
    scale: float
    bound: float
    errors: Floats

    @classmethod
    def of(cls, y: Floats, K: Floats, kind: PointLikelihood) -> _Site:
        """Alternate between sites and the variances of the flexible process."""
        guess = kind.guess(y)
        centre, K = (
            float(np.mean(guess)),
            K * (1.0 if kind.link in ("log", "logit") else guess.var()),
        )
        m, v = 0.5 * (guess + centre), np.full(len(y), 0.5)
        _, by_mean, by_variance = kind.expectations(y, m, v)
        precision = np.maximum(-2.0 * by_variance, kind.least_precision(m))
        linear = by_mean + precision * m
        log_variances = np.full(len(K), np.log(_USUAL))
        bound = -np.inf
        for _ in range(_ROUNDS):
            log_variances = _learnt(linear / precision - centre, 1.0 / precision, K, log_variances)
            V = _prior(K, log_variances)
            for _ in range(_UPDATES):
                values, variances = linear / precision, 1.0 / precision
                before = m
                m, v, evidence = _posterior(values - centre, variances, V)
                m = m + centre
                value, by_mean, by_variance = kind.expectations(y, m, v)
                own = -0.5 * (LOG_2PI + np.log(variances)
                              + (np.square(values - m) + v) / variances)  # fmt: skip
                bound = evidence + float((value - own).sum())
                wanted = np.maximum(-2.0 * by_variance, kind.least_precision(m))
                linear = 0.5 * (linear + by_mean + wanted * m)
                precision = 0.5 * (precision + wanted)
            if np.max(np.abs(m - before) / np.sqrt(v)) < _SETTLED:
                break
        values, variances = linear / precision, 1.0 / precision
        # Of a function that hardly moves, a share of what the sites say.
        spread = max(m.var() + v.mean(), _LEAST / np.mean(precision))
        errors = (values - m) / np.sqrt(np.maximum(variances - v, 1e-12))
        return cls(values, variances, float(m.mean()), float(np.sqrt(spread)), bound, errors)


def _without_spikes(y: Floats, K: Floats, kind: PointLikelihood) -> tuple[_Site, Floats]:
    """Sites, of counts without the few values that are far off, and the weights of these."""
    own, weights = _Site.of(y, K, kind), np.ones(len(y))
    found = Student().weights(np.square(own.errors))
    off = found < LITTLE_WEIGHT
    if kind.link != "log" or not 0 < off.sum() <= _MOST_OFF * len(y):
        return own, weights
    rest = np.flatnonzero(~off)
    kept = _Site.of(y[rest], K[:, rest[:, None], rest], kind)
    values, variances = own.values, own.variances + _NO_TRUST * kept.scale**2
    values[rest], variances[rest], weights[off] = kept.values, kept.variances, found[off]
    return replace(kept, values=values, variances=variances), weights


def _student(y: Floats, K: Floats, kind: Student) -> tuple[_Site, Floats]:
    """Weights of values by their errors about a flexible process, and a scale, in turn."""
    spread = float(np.std(y)) if kind.scale is None else kind.scale
    K = K[:-1]
    values, centre = y / spread, float(np.median(y / spread))
    robust = 1.4826 * float(np.median(np.abs(np.diff(values)))) / np.sqrt(2.0)
    scale = kind.scale / spread if kind.scale is not None else max(robust, 1e-3)
    log_variances, weights = np.full(len(K), np.log(_USUAL)), np.ones(len(y))
    weights = kind.weights(np.square((values - centre) / max(scale, 0.3)))
    for _ in range(4 * _ROUNDS):
        before = weights
        log_variances = _learnt(values - centre, scale**2 / weights, K, log_variances, 3)
        m, v, _ = _posterior(values - centre, scale**2 / weights, _prior(K, log_variances))
        squares = np.square(values - centre - m) + v
        if kind.scale is None:
            scale = max(float(np.sqrt(np.mean(weights * squares))), 1e-6)
        weights = kind.weights(squares / scale**2)
        if np.max(np.abs(weights - before)) < 1e-3:
            break
    weights = np.where(weights < LITTLE_WEIGHT, weights, 1.0)
    extra = (spread * scale) ** 2 * (1.0 / weights - 1.0)
    location = float((weights * y).sum() / weights.sum())
    deviation = float(np.sqrt((weights * np.square(y - location)).sum() / weights.sum()))
    return _Site(y, extra, location, deviation, 0.0, squares), weights


def _prior(K: Floats, log_variances: Floats) -> Floats:
    return np.tensordot(np.exp(log_variances), K, axes=1) + _LEVEL * K[0, 0, 0]


def _learnt(y: Floats, variances: Floats, K: Floats, begin: Floats, iterations: int = 15) -> Floats:
    """Log variances of the flexible process, given sites: the evidence with a weak prior."""

    def loss(log_variances: Floats) -> tuple[float, Floats]:
        own = np.exp(log_variances)
        V = _prior(K, log_variances)
        V.flat[:: len(y) + 1] += variances
        off = (log_variances - np.log(_USUAL)) / _LOOSE
        series = GaussianSeries(V, y)
        if np.isnan(series.q):
            return 1e15, np.zeros_like(own)
        value = 0.5 * float(off @ off) - series.log_density - 0.5 * len(y) * LOG_2PI
        gradient = own * (K.reshape(len(K), -1) @ series.gradient().ravel())
        return value, off / _LOOSE - gradient

    bounds = [(np.log(1e-6), np.log(1e3))] * len(begin)
    options = {"maxiter": iterations}
    found = minimize(loss, begin, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return np.asarray(found.x)


def _posterior(y: Floats, variances: Floats, V: Floats) -> tuple[Floats, Floats, float]:
    """Mean and variance of f at the values, [d] each, and the log density of the sites."""
    total = V.copy()
    total.flat[:: len(y) + 1] += variances
    series = GaussianSeries(total, y)
    if np.isnan(series.q):
        raise ValueError("the covariance of a series is not positive definite")
    inverse = np.square(series.b) - 2.0 * series.gradient().diagonal()
    v = variances - np.square(variances) * inverse
    return y - variances * series.b, np.maximum(v, 1e-9), series.log_density


def _best(y: Floats, K: Floats, kind: PointLikelihood) -> PointLikelihood:
    """Return the likelihood of the parameters under which the bound is largest."""
    several = kind.candidates()
    if len(several) == 1:
        return several[0]
    return several[int(np.argmax([_Site.of(y, K, each).bound for each in several]))]


# --- which series have which --------------------------------------------------------------------


def kinds_of(
    frame: pd.DataFrame,
    left: pd.DataFrame,
    found: pd.DataFrame | None,
    choice: Any,
    logs: Collection[object] = (),
) -> tuple[Kinds, list[str]]:
    """Return the likelihood of each series, and what was chosen here, a sentence each.

    "auto" chooses by what is `left` of a checked table without the suspicious values that were
    `found`, and no link for `logs`, the series whose logarithms are asked for.  A ValueError says
    if there is no such likelihood or series, or a value has no density.
    """
    columns: list[object] = list(frame.columns)
    by_name = choice if isinstance(choice, Mapping) else dict.fromkeys(columns, choice)
    for name in by_name:
        check_series(name, columns, "likelihood: ")
    is_open = [isinstance(each := by_name.get(n), str) and each == "auto" for n in columns]
    automatic, notes = rules(left, found, logs) if any(is_open) else ((None,) * len(columns), [])
    kinds = []
    for n, name in enumerate(columns):
        values = frame[name].to_numpy()
        if is_open[n]:  # sentinels may have no density: such series stay as they are
            kind = automatic[n]
            kinds.append(None if kind is None or kind.refused(values) is not None else kind)
            continue
        kind = _named(name, by_name.get(name, "none"), values)
        if kind is not None:
            kind.check(name, values)
        kinds.append(kind)
    return tuple(kinds), notes


def _named(name: object, wanted: Any, values: Floats) -> PointLikelihood | None:
    """Return what was asked for of one series."""
    if isinstance(wanted, PointLikelihood):
        return wanted
    if hasattr(wanted, "variational_expectations"):
        seen = values[np.isfinite(values)]
        return FromGPflow(wanted, bool(np.all(seen == np.round(seen))))
    if isinstance(wanted, str) and wanted in ("none", "gaussian", "scaled"):
        return None
    named: dict[str, PointLikelihood] = {
        "student": Student(), "poisson": Poisson(), "negative-binomial": NegativeBinomial(),
        "binomial": Binomial(), "share": Share(0.0, 1.0 if np.nanmax(values) <= 1.0 else 100.0),
    }  # fmt: skip
    if not isinstance(wanted, str) or wanted not in named:
        raise ValueError(
            f"likelihood: expected one of {('auto', 'gaussian', 'scaled', *get_args(PointName))}, "
            f"a PointLikelihood or one of gpflow.likelihoods for {name!r}, got {wanted!r}"
        )
    return named[wanted]


def rules(
    frame: pd.DataFrame, found: pd.DataFrame | None, logs: Collection[object] = ()
) -> tuple[Kinds, list[str]]:
    """Return what the values of each series show, and a sentence for each kind.

    Zeros and ones are yes or no.  Numbers from 0 to 1 or 100 that come near their bounds are
    shares.  Whole numbers with zeros, or with single digits and the scatter of counts, are counts
    if the scatter does not shrink with the level; so are then all other whole numbers that scatter
    so.  Series with isolated outliers have Student
    noise.
    """
    if frame.shape[1] > _MOST_SERIES:
        return (None,) * frame.shape[1], []
    columns = [frame.iloc[:, n].dropna().to_numpy() for n in range(frame.shape[1])]
    outliers = set() if found is None else set(found.loc[found["kind"] == "outlier", "series"])
    kinds = [_kind_of(str(name), y) for name, y in zip(frame.columns, columns, strict=True)]
    kinds = [None if n in logs else kind for n, kind in zip(frame.columns, kinds, strict=True)]
    some_count = any(isinstance(kind, Poisson) for kind in kinds)
    for k, (name, y) in enumerate(zip(frame.columns, columns, strict=True)):
        if kinds[k] is None and some_count and name not in logs and _are_counts(y, alone=False):
            kinds[k] = Poisson()
        elif kinds[k] is None and name in outliers:
            kinds[k] = Student()
    return tuple(kinds), list(_sentences(frame, kinds))


def _kind_of(name: str, y: Floats) -> PointLikelihood | None:
    """Return what a series is by itself; None if it is not clear."""
    if np.isin(y, (0.0, 1.0)).all():
        return Binomial()
    return _share(name, y) or (Poisson() if _are_counts(y, alone=True) else None)


def _share(name: str, y: Floats) -> Share | None:
    """Return the likelihood of what is clearly a share; None if it is not clear."""
    low, high, is_whole = float(y.min()), float(y.max()), bool(np.all(y == np.round(y)))
    if low < 0.0 or high > 100.0 or (high <= 1.0 and is_whole):
        return None
    upper = 1.0 if high <= 1.0 else 100.0
    edge = upper * (_NAMED_EDGE if any(w in name.lower() for w in _PERCENT_WORDS) else _EDGE)
    near = [low <= edge, high >= upper - edge]
    is_full = int(np.sum(y == upper)) > 1
    is_called = edge > _EDGE * upper and any(near)
    return Share(0.0, upper) if is_full or is_called or (all(near) and not is_whole) else None


def _are_counts(y: Floats, *, alone: bool) -> bool:
    """Whether values are counts, by themselves or in a table that has some."""
    if not np.all(y == np.round(y)) or y.min() < 0.0 or (alone and y.min() > _SINGLE_DIGITS):
        return False
    scatter = 0.5 * np.mean(np.square(np.diff(y)))
    return bool((y.min() == 0.0 or scatter >= _UNDER * y.mean()) and root_gain(y) >= -_NO_ROOTS)


def _sentences(frame: pd.DataFrame, kinds: Sequence[PointLikelihood | None]) -> Iterator[str]:
    """Say which series were taken for what, and why."""
    plain = 'likelihood="scaled", at the command line --likelihood scaled, goes without'
    why = {
        Poisson: "taken as counts, whole numbers from zero on",
        Binomial: "taken as yes or no",
        Share: "taken as shares, which stay within their bounds",
        Student: "given Student noise, as some values are far from all others",
    }
    for kind, words in why.items():
        names = [
            str(name) for name, each in zip(frame.columns, kinds, strict=True) if type(each) is kind
        ]
        if names:
            verb = "is" if len(names) == 1 else "are"
            yield f"{listed(names, 4)} {verb} {words}: {plain}"
