r"""Patterns: what a series does, in whatever form, told by the draws of a posterior.

Each draw explains a series by functions, one for each of its columns (`posterior.DrawnFunctions`).
Columns of all draws are sorted by what they do: cycles of one frequency are one pattern, and so
are columns without a period whose shapes are much alike (`MUCH_LIKE`), whatever their kernels, but
that trends (lines and single bends) are kept apart from what wanders.
The functions of a pattern add up to one function of each draw and series,

.. math:: f_{np} = \sum_{k \in p} z_{nk} f_{nk}, \qquad x_n = \mu_n 1 + \sum_p f_{np} + \epsilon_n.

Then functions go where they belong: the part of a weekly cycle that repeats every day is a daily
cycle; what is flat but for a jump is a shift of level, whatever kernel drew it; what is flat but
for a moment is an event; what rises in a line but for noise is a trend; and how likely a
series wanders off, drifts smoothly or has noise with a memory its values say, too
(`forms_of_wandering`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np

from ..data.observations import Observations
from ..fit.engine import components
from ..gp.types import Booleans, Floats, Integers
from ..kernels.grammar import Product, parse
from .matching import MUCH_LIKE, ONE_CYCLE, centred, correlation, period, shapes_of
from .posterior import VISIBLE
from .states import Draw

PatternKind: TypeAlias = Literal[
    "cycle", "trend", "drift", "walk", "changes", "noise", "shift", "event", "other", "none"
]
"""What a pattern is: a line or bend, slow drift, a random walk, changes that are soon forgotten,
noise of changing size, a shift of level, a single event; "other" has a kernel of the user's own."""

SURE = 0.9
"""From this probability on a series is said to have a pattern."""

SEEN_TWICE = 0.525
"""Of the span: a longer period was seen less than twice (five percent are rounding)."""

SELDOM = 0.1
"""Patterns that no series shows with this probability are not spoken of."""

_SMOOTHLY = 1.0 / (2.0 * np.pi)
"""Blur of the frequency of a cycle times the lengthscale over which it changes."""

NEXT = 3.0
"""Steps: what is smooth over no more is noise in which neighbours are alike."""

BRISK = 0.1
"""Spans: smooth functions up to this lengthscale change quickly, and longer memories wander."""

_GRID = 48  # times on which shapes of columns are compared
_MOST_HARMONICS = 24
_NEARLY_ALL = 0.9  # of a function's variance: then the rest is not spoken of
_FASTEST_ALIAS = 6  # a cycle that repeats m times within its period has a period m times as short
_STRAIGHT = 0.8  # spans: smooth functions of this lengthscale bend once at most, and are trends
_WANDERS = ("walk", "drift", "changes")  # told apart by shapes alone
_MOMENT = 0.03  # of the times: an event is no longer
_COSTS = 3.5  # logarithms of the number of values that a line has to gain
_OF_A_PLACE = 1.5  # as many more for a jump, which may be anywhere
_OF_MEMORY = 2.5  # logarithms of the number of values that a jump has to gain over wandering
_AS_NOISE = 2.0  # times as variable as from one value to the next: noise, somewhat correlated
_NOTHING = 1e-4  # of all squares
_FEWEST = 3  # times on either side of a shift
_LENGTHS = 16  # between half a step and the span, that memories and drifts may have
_FAR = 4.0  # quartile distances from the middle: no further may an outlier be, to say how to wander
_ROUNDS = 20  # until it is known which forms a table has
_GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)  # its multiples are spread evenly
_RETURNS = 0.25  # spans: a longer memory is as good as a walk
_NOISE = np.array([0.001, 0.003, 0.01, 0.03, *np.arange(0.1, 1.0, 0.1)])  # shares of white noise
_ALIKE = 2.5  # times as long: memories and drifts of different series are one


@dataclass(frozen=True)
class Pattern:
    """Something that series do.

    Parameters
    ----------
    kind
        See `PatternKind`.
    kernel
        The column with the median lengthscale among those of the form of most weight, in scaled
        units.
    period
        Of a cycle, in scaled time; zero of all else.
    date
        Of a shift or event, in scaled time.
    forms
        Structures of its columns with their shares of its weight, the heaviest first.
    """

    kind: PatternKind
    kernel: Product
    period: float = 0.0
    date: float = float("nan")
    forms: tuple[tuple[Product, float], ...] = ()

    @property
    def lasting(self) -> float:
        """How long changes are remembered, in scaled time: then a correlation of 0.14 is left."""
        return 2.0 * _length(self.kernel)


@dataclass(frozen=True)
class PatternDraws:
    """Functions of patterns in every draw.

    Parameters
    ----------
    patterns
        The patterns, [P], those that make up most first.
    functions
        Of each draw, series, pattern and time, [T, N, P, D].
    periods
        Of each draw and pattern, [T, P]; NaN in draws without it, and of what is no cycle.
    x
        Scaled times, [D].
    Y
        Scaled values, [N, D]; NaN where nothing was observed.
    variances
        Of the series, [N].
    is_plain
        Whether all values of a series have the same noise, [N].
    chain
        Number of the chain of each draw, [T].
    """

    patterns: tuple[Pattern, ...]
    functions: Floats
    periods: Floats
    x: Floats
    Y: Floats
    variances: Floats
    is_plain: Booleans
    chain: Integers

    @property
    def shares(self) -> Floats:
        """Share of the variance of each series, at times that were observed, [T, N, P]."""
        seen = np.isfinite(self.Y)[None, :, None]
        count = seen.sum(axis=-1)
        mean = (self.functions * seen).sum(axis=-1) / count
        squares = np.square(self.functions - mean[..., None]) * seen
        whole = np.where(self.variances > 0.0, self.variances, np.inf)[:, None]
        return np.asarray(squares.sum(axis=-1) / count / whole)

    @property
    def visible(self) -> Booleans:
        """Whether a pattern makes at least 2% of the variance of a series, [T, N, P]."""
        return np.asarray(self.shares >= VISIBLE)

    def of_series(self, places: Integers) -> PatternDraws:
        """Return the part about some series."""
        return replace(
            self,
            functions=self.functions[:, places],
            Y=self.Y[places],
            variances=self.variances[places],
            is_plain=self.is_plain[places],
        )


def patterns_of(
    draws: Sequence[Draw],
    functions: Sequence[Floats],
    chain: Integers,
    observations: Observations,
    day: float = 0.0,
) -> PatternDraws:
    """Sort the columns of draws into patterns.

    Parameters
    ----------
    draws
        The draws, [T].
    functions
        Of the columns of each draw, [N, J, D] each.
    chain
        Number of the chain of each draw, [T].
    observations
        The data that were sampled.
    day
        Length of a day in scaled time; zero where times have no calendar.
    """
    x, known, T = observations.x, observations.known, len(draws)
    Y = np.where(observations.mask > 0.0, observations.Y, np.nan)
    N, D = Y.shape
    variances = np.square(observations.standard()[1])
    is_plain = np.ones(N, bool) if known is None else ~(known * observations.mask).any(axis=1)
    whole = np.maximum(variances, 1e-300)
    columns = [kernel for draw in draws for kernel in draw.kernels]
    weights = np.array([w for f in functions for w in (f.var(axis=2) / whole[:, None]).sum(axis=0)])
    own_periods = np.array([p for draw, f in zip(draws, functions, strict=True)
                            for p in _periods(draw.kernels, f, x)])  # fmt: skip
    label = _sorted(columns, weights, own_periods, x)
    P = 1 + int(label.max(initial=-1))
    table = np.zeros((T, N, P, D))
    periods = np.full((T, P), np.nan)
    i = 0
    for t, f in enumerate(functions):
        for j in range(f.shape[1]):
            table[t, :, label[i]] += f[:, j]
            if own_periods[i] > 0.0:
                periods[t, label[i]] = own_periods[i]
            i += 1
    told = PatternDraws(
        tuple(_pattern([columns[i] for i in own], weights[own], own_periods[own])
              for own in (np.flatnonzero(label == p) for p in range(P))),
        table, periods, x, Y, variances, is_plain, chain,
    )  # fmt: skip
    if day:
        told = _days_of_weeks(told, day)
    told = _wanderings(_jumps(told))
    frequent = told.visible.mean(axis=0).max(axis=0, initial=0.0) >= SELDOM
    size = told.shares.mean(axis=(0, 1))
    kept = np.array([p for p in np.argsort(-size, kind="stable") if frequent[p]], int)
    return replace(
        told, patterns=tuple(told.patterns[p] for p in kept),
        functions=told.functions[:, :, kept], periods=told.periods[:, kept],
    )  # fmt: skip


# --- sorting columns -----------------------------------------------------------------------------


def fourier(x: Floats, period: float, count: int) -> Floats:
    """Cosines and sines of a period and its harmonics, [D, 2 count]."""
    angle = 2.0 * np.pi * np.outer(x, np.arange(1, count + 1)) / period
    return np.concatenate([np.cos(angle), np.sin(angle)], axis=1)


def harmonics(x: Floats, period: float) -> int:
    """How many harmonics of a period so many times tell apart."""
    step = (x[-1] - x[0]) / (len(x) - 1)
    return int(np.clip(min(0.95 * period / (2.0 * step), len(x) / 6.0), 1, _MOST_HARMONICS))


def regress(basis: Floats, f: Floats) -> Floats:
    """Coefficients of functions [..., D] on a basis [D, B] and a level, shrunk a little."""
    centred = basis - basis.mean(axis=0)
    gram = centred.T @ centred
    gram += 1e-6 * np.trace(gram) / len(gram) * np.eye(len(gram))
    return np.asarray((f - f.mean(axis=-1, keepdims=True)) @ np.linalg.solve(gram, centred.T).T)


def _periods(kernels: Sequence[Product], f: Floats, x: Floats) -> list[float]:
    """Period of each column by what it does; zero if it does not repeat.

    A function with a period of two weeks that is the same in both has a period of one.
    """
    periods = []
    for kernel, own in zip(kernels, f.transpose(1, 0, 2), strict=True):
        p = period(kernel)
        if p > 0.0:
            H = harmonics(x, p)
            b = regress(fourier(x, p, H), own)
            power = np.square(b).reshape(len(b), 2, H).sum(axis=(0, 1))
            for m in range(min(H, _FASTEST_ALIAS), 1, -1):
                if power[m - 1 :: m].sum() >= _NEARLY_ALL * power.sum() > 0.0:
                    p /= m
                    break
        periods.append(p)
    return periods


def same(columns: Sequence[Product], periods: Floats, x: Floats) -> Booleans:
    """Whether columns do the same, [J, J]; periods are zero of what does not repeat."""
    kernels = list(dict.fromkeys(columns))
    place = {kernel: i for i, kernel in enumerate(kernels)}
    shapes = shapes_of(kernels, np.linspace(x[0], x[-1], min(len(x), _GRID)))
    likeness = correlation(shapes, shapes) >= MUCH_LIKE
    kinds = np.array([kind_of(kernel) for kernel in kernels], object)
    sorts = np.where(np.isin(kinds, _WANDERS), "wanders", kinds)
    likeness &= sorts[:, None] == sorts
    likeness |= (kinds[:, None] == kinds) & np.isin(kinds, ("trend", "walk"))
    own = [place[kernel] for kernel in columns]
    once = periods == 0.0
    blur = np.maximum(ONE_CYCLE, [_SMOOTHLY / _lengthscale(kernel) for kernel in columns])
    with np.errstate(divide="ignore", invalid="ignore"):  # NaN where neither repeats
        near = np.abs(1.0 / periods[:, None] - 1.0 / periods) < np.minimum(blur[:, None], blur)
    return np.asarray(likeness[np.ix_(own, own)] & once[:, None] & once | near)


def _sorted(columns: Sequence[Product], weights: Floats, periods: Floats, x: Floats) -> Integers:
    """Number columns by pattern: those that do the same as the one with most weight around it."""
    label = np.full(len(columns), -1)
    if not len(columns):
        return label
    alike = same(columns, periods, x)
    number = 0
    while (free := label < 0).any():
        mass = np.where(free, alike @ (weights * free) + 1e-12 * weights, -1.0)
        leader = int(mass.argmax())
        label[free & alike[leader]] = number
        label[leader] = number
        number += 1
    return label


def _length(kernel: Product) -> float:
    """First number of a kernel: a lengthscale, of all that wanders."""
    return float(kernel.factors[0].values[0] or 0.0)


def _lengthscale(kernel: Product) -> float:
    """Shortest lengthscale of the smooth factors; infinite without any."""
    own = [float(f.values[0] or np.inf) for f in kernel.factors if f.base.name == "SE"]
    return min(own, default=np.inf)


def _pattern(columns: Sequence[Product], weights: Floats, periods: Floats) -> Pattern:
    """Sum up the columns of a pattern."""
    structures = [kernel.structure for kernel in columns]
    by_form: dict[Product, float] = {}
    for form, weight in zip(structures, weights.tolist(), strict=True):
        by_form[form] = by_form.get(form, 0.0) + weight
    total = sum(by_form.values()) or 1.0
    forms = sorted(((form, w / total) for form, w in by_form.items()), key=lambda w: -w[1])
    main = [i for i, form in enumerate(structures) if form == forms[0][0]]
    main.sort(key=lambda i: _lengthscale(columns[i]))
    half = np.searchsorted(np.cumsum(weights[main]), 0.5 * weights[main].sum())
    kernel = columns[main[min(int(half), len(main) - 1)]]
    order = np.argsort(periods)
    middle = np.searchsorted(np.cumsum(weights[order]), 0.5 * weights.sum())
    middle_period = float(periods[order[min(int(middle), len(order) - 1)]])
    kind = kind_of(kernel) if middle_period == 0.0 else "cycle"
    return Pattern(kind, kernel, middle_period, forms=tuple(forms))


def kind_of(kernel: Product) -> PatternKind:
    """Return what a column without a period does."""
    names = {f.base.name for f in kernel.factors if not f.base.is_window}
    if not names:
        return "shift"
    if not names <= {"C", "LIN", "SE", "RW", "IOU", "OU", "PER", "WN"}:
        return "other"
    if "WN" in names:
        return "noise"
    if names & {"RW", "IOU"}:
        return "walk"
    if "OU" in names:
        return "changes"
    lengthscale = _lengthscale(kernel)
    if lengthscale >= _STRAIGHT:
        return "trend"
    return "drift" if lengthscale > BRISK else "changes"


# --- functions that go where they belong ---------------------------------------------------------


def _days_of_weeks(told: PatternDraws, day: float) -> PatternDraws:
    """Move what repeats daily in a weekly cycle to a daily cycle."""
    week = _cycle_of(told, 7.0 * day)
    H = harmonics(told.x, 7.0 * day)
    if week is None or H < 7:
        return told
    basis = fourier(told.x, 7.0 * day, H)
    daily = np.tile(np.arange(1, H + 1) % 7 == 0, 2)
    b = regress(basis, told.functions[:, :, week])
    part = (b * daily) @ (basis - basis.mean(axis=0)).T  # [T, N, D]
    functions = told.functions.copy()
    functions[:, :, week] -= part
    if (place := _cycle_of(told, day)) is not None:
        functions[:, :, place] += part
        return replace(told, functions=functions)
    kernel = told.patterns[week].kernel
    pattern = Pattern("cycle", kernel, day, forms=told.patterns[week].forms)
    own = np.where(np.isfinite(told.periods[:, [week]]), day, np.nan)
    return replace(
        told,
        patterns=(*told.patterns, pattern),
        functions=np.concatenate([functions, part[:, :, None]], axis=2),
        periods=np.concatenate([told.periods, own], axis=1),
    )


def _cycle_of(told: PatternDraws, period: float) -> int | None:
    """Place of the cycle of a period."""
    for p, pattern in enumerate(told.patterns):
        if pattern.period and abs(1.0 / pattern.period - 1.0 / period) < ONE_CYCLE:
            return p
    return None


_Move: TypeAlias = tuple[int, Integers, Pattern, Floats]
"""A series, places of patterns that it loses, the pattern that it gets, and the functions."""


def _moved(told: PatternDraws, moves: Sequence[_Move]) -> PatternDraws:
    """Give series new patterns, or those that are the same already, in place of others."""
    functions, patterns = told.functions.copy(), list(told.patterns)
    for n, lost, pattern, f in moves:
        place = next((q for q, old in enumerate(patterns) if is_one(pattern, old)), len(patterns))
        if place == len(patterns):
            patterns.append(pattern)
            functions = np.concatenate([functions, np.zeros_like(functions[:, :, :1])], axis=2)
        functions[:, n, lost] = 0.0
        functions[:, n, place] += f
    more = np.full((len(functions), len(patterns) - len(told.patterns)), np.nan)
    periods = np.concatenate([told.periods, more], axis=1)
    return replace(told, patterns=tuple(patterns), functions=functions, periods=periods)


def is_one(a: Pattern, b: Pattern) -> bool:
    """Whether two patterns are the same."""
    if a.period or b.period:
        both = a.period > 0.0 and b.period > 0.0
        return both and abs(1.0 / a.period - 1.0 / b.period) < ONE_CYCLE
    if a.kind in ("shift", "event"):
        return a.kind == b.kind and abs(a.date - b.date) <= _MOMENT
    low, high = sorted((a.lasting, b.lasting))
    is_as_long = a.kernel.structure == b.kernel.structure and high <= _ALIKE * low
    return a.kind == b.kind and (a.kind in ("trend", "walk") or is_as_long)


def _jumps(told: PatternDraws) -> PatternDraws:
    """Move to a shift, an event or a trend what does that and little else, but for sure cycles.

    Otherwise a walk might be said to explain a jump, and a line too.  A cycle that was seen less
    than twice is not sure.
    """
    sure = told.visible.mean(axis=0) >= SURE
    is_cycle = np.array([0.0 < pattern.period <= SEEN_TWICE for pattern in told.patterns], bool)
    moves: list[_Move] = []
    for n, y in enumerate(told.Y):
        stays = is_cycle & sure[n]
        if not told.is_plain[n] or stays.all():
            continue
        seen = np.isfinite(y)
        x, own = told.x[seen], (y - told.functions[:, n, stays].sum(axis=1).mean(axis=0))[seen]
        during, kind = plain_form(x, own)
        if kind == "none":
            continue
        lost = np.flatnonzero(~stays)
        f, date = told.functions[:, n, lost].sum(axis=1), np.nan
        if during is not None:
            date = float(x[during][0])
            level = np.where(during, own[during].mean(), own[~during].mean())
            f = np.broadcast_to(np.interp(told.x, x, level), f.shape)
        else:  # what scatters about the line is noise
            centred = told.x - told.x.mean()
            slope = f @ centred / (centred @ centred)
            f = f.mean(axis=1, keepdims=True) + slope[:, None] * centred
        like = told.patterns[int(lost[0])]
        moves.append((n, lost, replace(like, kind=kind, date=date, period=0.0), f))
    return _moved(told, moves)


def plain_form(x: Floats, y: Floats) -> tuple[Booleans | None, PatternKind]:
    """What values do, if it is that and noise: an event or a shift, and when; a trend; or "none".

    The rest is noise if it varies hardly more than from one value to the next; a jump and a line
    have to pay for their parameters (BIC), and the one that leaves less is chosen.  A jump has to
    be likelier than wandering without it, too.
    """
    d = len(y)
    total = np.square(y - y.mean()).sum()
    if d < 4 * _FEWEST or total == 0.0:
        return None, "none"
    if (briefly := in_moment(y)) is not None:
        return briefly, "event"
    left, right = _squares(y), _squares(y[::-1])[::-1]
    places = np.arange(_FEWEST, d - _FEWEST)
    best = int(places[(left[places - 1] + right[places]).argmin()])
    least = _NOTHING * total
    jumped, straight = max(left[best - 1] + right[best], least), max(_off_line(x, y), least)
    steps, cost = np.square(np.diff(y)), np.log(d)
    is_jump = d * np.log(straight / jumped) > _OF_A_PLACE * cost
    if is_jump:
        steps = np.delete(steps, best - 1)
    rest = jumped if is_jump else straight
    noise = max(_AS_NOISE * 0.5 * d * steps.mean(), least)
    costs = _COSTS + _OF_A_PLACE * is_jump
    if rest > noise or d * np.log(total / rest) < costs * cost:
        return None, "none"
    if not is_jump:
        return None, "trend"
    after = np.arange(d) >= best
    level = np.where(after, y[after].mean(), y[~after].mean())
    wandering, beside = (min(white, losses.min()) for white, losses, _ in
                         (_wandering(x, y), _wandering(x, y - level)))  # fmt: skip
    return (after, "shift") if wandering - beside > _OF_MEMORY * cost else (None, "none")


def _off_line(x: Floats, y: Floats) -> float:
    """Sum of squares about the line of least squares."""
    centred = x - x.mean()
    f = y - y.mean()
    return float(f @ f - (centred @ f) ** 2 / (centred @ centred))


def _squares(y: Floats) -> Floats:
    """Sums of squares about the mean of the first values, [D]."""
    count = np.arange(1, len(y) + 1)
    return np.asarray(np.cumsum(y**2) - np.cumsum(y) ** 2 / count)


def _wanderings(told: PatternDraws) -> PatternDraws:
    """Move what wanders to a walk, a memory or a drift: in as many draws as each is likely."""
    evenly = np.arange(len(told.functions)) * _GOLDEN % 1.0  # over both chains
    wanders = np.array([pattern.kind in _WANDERS for pattern in told.patterns], bool)
    drifts = np.array([pattern.kind == "drift" for pattern in told.patterns], bool)
    p, shares = told.visible.mean(axis=0), told.shares.mean(axis=0)
    order = np.argsort(-shares[:, wanders].sum(axis=1), kind="stable")
    places, likes, forms = [], [], []
    for n in order[p[order][:, wanders].max(axis=1, initial=0.0) >= SELDOM]:
        y = told.Y[n]
        seen = np.isfinite(y)
        sure = wanders & (p[n] >= SURE)
        own = wanders & ~(drifts & sure) if sure.sum() > 1 else wanders  # a drift, and what else
        kept = ~own & (p[n] > 0.5)
        rest = (y - told.functions[:, n, kept].sum(axis=1).mean(axis=0))[seen]
        low, middle, high = np.quantile(rest, (0.25, 0.5, 0.75))
        rest = np.clip(rest, middle - _FAR * (high - low), middle + _FAR * (high - low))
        places.append((int(n), np.flatnonzero(own)))
        likes.append(told.patterns[int(np.where(own, shares[n], -1.0).argmax())])
        forms.append(forms_of_wandering(told.x[seen], rest))
    chances = in_company(np.array([[chance for _, chance in own] for own in forms]))
    moves: list[_Move] = []
    for (n, lost), like, own, chance in zip(places, likes, forms, chances, strict=True):
        f = told.functions[:, n, lost].sum(axis=1)
        number = np.searchsorted(np.cumsum(chance)[:-1], evenly)
        for i, (kernel, _) in enumerate(own):
            pattern = replace(like, kind=kind_of(kernel), kernel=kernel)
            moves.append((n, lost, pattern, f * (number == i)[:, None]))
            lost = lost[:0]
    return _moved(told, moves)


@lru_cache(maxsize=4)
def _forms_on(x: tuple[float, ...]) -> list[tuple[Product, Floats, Floats]]:
    """Walks, memories and smooth functions of all lengths.

    Each with the eigenvalues of its covariance of contrasts, their mean 1, and eigenvectors.
    """
    span, step = x[-1] - x[0], np.diff(x).min()
    lengths = np.geomspace(0.5 * step, span, _LENGTHS)
    texts = [f"1 x RW(start={x[0]})"]
    texts += [
        f"1 x OU(lengthscale={length})"
        for length in lengths
        if length <= max(_RETURNS * span, lengths[0])
    ]
    texts += [
        f"1 x SE(lengthscale={length})"
        for length in lengths
        if length > min(NEXT * step, 0.9 * span)
    ]
    kernels = [parse(text) for text in texts]
    forms = []
    for kernel, C in zip(kernels, components(kernels, np.array(x)), strict=True):
        values, vectors = np.linalg.eigh(centred(C) - 1.0)  # the level comes first
        values = np.maximum(values[1:], 0.0)
        forms.append((kernel, values / values.mean(), vectors[:, 1:]))
    return forms


def _wandering(x: Floats, y: Floats) -> tuple[float, Floats, list[Product]]:
    r"""Minus twice the log likelihoods of white noise and of values that wander, [forms, shares].

    About their level values are a multiple, integrated out, of

    .. math:: (1 - q) C + q I

    with C of a random walk, of a memory exp(-d / l) or of what is smooth, exp(-d^2 / 2 l^2).
    """
    d, forms = len(y) - 1, _forms_on(tuple(x.tolist()))
    losses = []
    for _, values, vectors in forms:
        squares = np.square(vectors.T @ y)
        V = _NOISE[:, None] + (1.0 - _NOISE[:, None]) * values
        losses.append(d * np.log((squares / V).mean(axis=1)) + np.log(V).sum(axis=1))
    white = d * np.log(max(np.square(y - y.mean()).sum() / d, 1e-300))
    return float(white), np.array(losses), [kernel for kernel, *_ in forms]


def forms_of_wandering(x: Floats, y: Floats) -> list[tuple[Product, float]]:
    r"""How likely values wander off, have a memory or drift smoothly, each with its best length.

    The three are equally likely beforehand, and so are the lengths and shares of noise of each:

    .. math:: P(i \mid y) \propto \operatorname{mean}_{l, q} p(y \mid i, l, q)
    """
    _, losses, kernels = _wandering(x, y)
    of_lengths = np.exp(0.5 * (losses.min() - losses)).mean(axis=1)
    structures = np.array([str(kernel.structure) for kernel in kernels])
    best, evidence = [], []
    for structure in dict.fromkeys(structures):
        own = np.flatnonzero(structures == structure)
        best.append(kernels[own[of_lengths[own].argmax()]])
        evidence.append(float(of_lengths[own].mean()))
    return [(kernel, e / sum(evidence)) for kernel, e in zip(best, evidence, strict=True)]


def in_company(chances: Floats) -> Floats:
    r"""How likely each form is in each series, [N, forms], if those of one table are akin.

    Forms are drawn with shares that are the same for all series, uniform beforehand, so that

    .. math:: P_{ni} \propto c_{ni} \Big(1 + \sum_{m \ne n} P_{mi}\Big)

    with c of each series alone (collapsed variational Bayes of order zero, Asuncion et al. 2009).
    """
    told = chances
    for _ in range(_ROUNDS if len(chances) else 0):
        told = chances * (1.0 + told.sum(axis=0) - told)
        told = told / told.sum(axis=1, keepdims=True)
    return told


def in_moment(y: Floats) -> Booleans | None:
    """When values leave their level for a moment, if they do little else."""
    squares = np.square(y - np.median(y))
    width = max(1, int(_MOMENT * len(y)))
    within = np.convolve(squares, np.ones(width), "valid")
    if within.max() < _NEARLY_ALL * squares.sum() or not squares.any():
        return None
    best = int(within.argmax())
    places = np.arange(len(y))
    near = (places >= best) & (places < best + width)
    return np.asarray(near & (squares >= 0.1 * squares.max()))
