"""Kernel expressions: base kernels, their products in canonical form, and the grammar.

Pure Python.  A `Product` stands for one component kernel of the latent kernel model,

    variance x B_1(parameters) x ... x B_L(parameters),

with a single variance.  Every number may be absent (None): ``PER x SE`` is a structure,
``0.5 x PER(period=1.4, lengthscale=0.3) x SE(lengthscale=2.7)`` a kernel.  A sum is never formed:
its terms are separate members of the set that the search keeps (Tong and Choi 2019, section 5).
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum


class Kind(Enum):
    """What a hyperparameter measures: decides its range and how a change of units acts on it."""

    DURATION = "duration"
    """A positive length of time."""
    MEMORY = "memory"
    """A positive length of time over which something is remembered; it may be far below a step."""
    PERIOD = "period"
    """A positive length of time after which a pattern repeats."""
    RATIO = "ratio"
    """A positive number without a unit."""
    LOCATION = "location"
    """A point in time, learnt."""
    ORIGIN = "origin"
    """A point in time, given by the data and not learnt."""
    CHANGE = "change"
    """A point in time within the data, learnt."""
    WIDTH = "width"
    """A positive length of time over which a change happens; it may be far below a step."""

    @property
    def positive(self) -> bool:
        """Whether values must be above zero."""
        return self in (Kind.DURATION, Kind.MEMORY, Kind.PERIOD, Kind.RATIO, Kind.WIDTH)


@dataclass(frozen=True)
class BaseKernel:
    """A base kernel of unit variance, as the grammar sees it.

    Parameters
    ----------
    name
        Its name in expressions, upper case.
    parameters
        Names and kinds of its hyperparameters, in order.
    stationary
        Whether it depends on the difference of two times alone.
    degree
        The power of time in its values (LIN 2, RW 1), which a change of the unit of time moves
        into the variance.
    """

    name: str
    parameters: tuple[tuple[str, Kind], ...] = ()
    stationary: bool = True
    degree: int = 0

    @property
    def is_walk(self) -> bool:
        """Whether it sets out from a point in time that the data give, as RW and IOU do."""
        return any(kind is Kind.ORIGIN for _, kind in self.parameters)

    @property
    def is_window(self) -> bool:
        """Whether it only says when others are there, as UNTIL and FROM do."""
        return any(kind is Kind.CHANGE for _, kind in self.parameters)


@dataclass(frozen=True)
class Words:
    """A base kernel in words, for reports.

    Parameters
    ----------
    title
        A noun as it stands after "has", with its article if it needs one: "growth that levels
        off", "a sudden jump".
    sentence
        What a series with it does; a whole sentence.
    beyond
        What happens beyond the data; a whole sentence.
    """

    title: str
    sentence: str
    beyond: str


WN = BaseKernel("WN")
C = BaseKernel("C")
LIN = BaseKernel("LIN", (("location", Kind.LOCATION),), stationary=False, degree=2)
SE = BaseKernel("SE", (("lengthscale", Kind.DURATION),))
PER = BaseKernel("PER", (("period", Kind.PERIOD), ("lengthscale", Kind.RATIO)))
RW = BaseKernel("RW", (("start", Kind.ORIGIN),), stationary=False, degree=1)
IOU = BaseKernel(
    "IOU", (("lengthscale", Kind.MEMORY), ("start", Kind.ORIGIN)), stationary=False, degree=1
)

OU = BaseKernel("OU", (("lengthscale", Kind.MEMORY),))

UNTIL = BaseKernel("UNTIL", (("at", Kind.CHANGE), ("width", Kind.WIDTH)), stationary=False)
FROM = BaseKernel("FROM", (("at", Kind.CHANGE), ("width", Kind.WIDTH)), stationary=False)

PAPER_BASES = ("WN", "C", "LIN", "SE", "PER")
"""The base kernels of the paper (its appendix A)."""

EXTENDED_BASES = (*PAPER_BASES, "RW", "IOU")
"""The paper's base kernels, the random walk, and the random walk with momentum."""

CHANGE_POINTS = "CP"
"""Stands among bases for change points: the search may tell what ends from what begins."""

_REGISTRY = {base.name: base for base in (WN, C, LIN, SE, PER, RW, IOU, OU, UNTIL, FROM)}
_WORDS: dict[str, Words] = {}


def register_base(base: BaseKernel, words: Words | None = None, *, replace: bool = False) -> None:
    """Make a base kernel known to the grammar; `lkm_gpflow.kernels.register_kernel` calls this.

    Parameters
    ----------
    base
        Its name and hyperparameters.
    words
        What reports say of it.
    replace
        Whether another base kernel of this name may be there, and goes.

    Raises
    ------
    ValueError
        If the name is not upper case letters and digits, or belongs to another base kernel.
    """
    if not re.fullmatch(r"[A-Z][A-Z0-9]*", base.name) or base.name in ("X", CHANGE_POINTS):
        raise ValueError(f"expected a base kernel name of capitals and digits, got {base.name!r}")
    if not replace and _REGISTRY.get(base.name, base) != base:
        raise ValueError(
            f"there is another base kernel named {base.name}, with other hyperparameters: choose "
            "another name"
        )
    _REGISTRY[base.name] = base
    _WORDS.pop(base.name, None)
    if words is not None:
        _WORDS[base.name] = words


def words_of(name: str) -> Words | None:
    """Return the words that a base kernel was registered with; built-in ones have none here."""
    return _WORDS.get(name)


class UnknownBaseError(ValueError):
    """No base kernel has this name; the text lists the known ones."""


def base_kernel(name: str) -> BaseKernel:
    """Return the base kernel of this name.

    Raises
    ------
    UnknownBaseError
        If none is registered under this name.
    """
    if name not in _REGISTRY:
        raise UnknownBaseError(
            f"expected a base kernel among {', '.join(_REGISTRY)}, got {name!r}: register one of "
            "your own first (lkm_gpflow.kernels.register_kernel)"
        )
    return _REGISTRY[name]


def with_windows(bases: Sequence[str]) -> tuple[str, ...]:
    """Names of base kernels, UNTIL and FROM in the place of change points ("CP")."""
    windows = {CHANGE_POINTS: (UNTIL.name, FROM.name)}
    return tuple(each for name in bases for each in windows.get(name, (name,)))


# --- factors and products ------------------------------------------------------------------------


@dataclass(frozen=True)
class Factor:
    """A base kernel with a value (or None) for each of its hyperparameters."""

    base: BaseKernel
    values: tuple[float | None, ...]

    def __post_init__(self) -> None:
        if len(self.values) != len(self.base.parameters):
            raise ValueError(
                f"{self.base.name} has {len(self.base.parameters)} hyperparameters, "
                f"got {len(self.values)} values"
            )
        for (name, kind), value in zip(self.base.parameters, self.values, strict=True):
            if value is None:
                continue
            if not math.isfinite(value) or (kind.positive and value <= 0.0):
                wanted = "a positive number" if kind.positive else "a finite number"
                raise ValueError(f"{self.base.name}: expected {wanted} as {name}, got {value}")

    @classmethod
    def of(cls, name: str, **values: float | None) -> Factor:
        """Build from a base kernel's name and its hyperparameters by name."""
        base = base_kernel(name)
        known = [parameter for parameter, _ in base.parameters]
        if unknown := set(values) - set(known):
            raise ValueError(f"{name}: expected hyperparameters among {known}, got {unknown}")
        return cls(base, tuple(values.get(parameter) for parameter in known))

    @property
    def sort_key(self) -> tuple[str, tuple[float, ...]]:
        """Names first; values break ties, absent ones last."""
        return self.base.name, tuple(math.inf if v is None else v for v in self.values)

    def __format__(self, spec: str) -> str:
        given = [
            f"{name}={_number(value, spec)}"
            for (name, _), value in zip(self.base.parameters, self.values, strict=True)
            if value is not None
        ]
        return self.base.name + (f"({', '.join(given)})" if given else "")

    def __str__(self) -> str:
        return format(self)


@dataclass(frozen=True, repr=False)
class Product:
    """A product of base kernels with one variance, in canonical form.

    The constructor puts it there: factors sorted; SE x SE = SE; C x k = k; WN times a stationary
    kernel = WN.  A product of a walk (RW, IOU) with another kernel that is not stationary, windows
    (UNTIL, FROM) excepted, raises a ValueError.
    """

    factors: tuple[Factor, ...]
    variance: float | None = None

    def __post_init__(self) -> None:
        if not self.factors:
            raise ValueError("expected at least one factor in a product, got none")
        if self.variance is not None and not (math.isfinite(self.variance) and self.variance > 0.0):
            raise ValueError(f"expected a positive variance, got {self.variance}")
        object.__setattr__(self, "factors", _canonical(self.factors))

    @property
    def structure(self) -> Product:
        """The same product without its numbers."""
        bare = (Factor(f.base, (None,) * len(f.values)) for f in self.factors)
        return Product(tuple(bare))

    @property
    def is_complete(self) -> bool:
        """Whether every number is there."""
        return self.variance is not None and all(None not in f.values for f in self.factors)

    @property
    def num_parameters(self) -> int:
        """How many numbers are learnt: one variance and the shape parameters."""
        learnt = (k for f in self.factors for _, k in f.base.parameters if k is not Kind.ORIGIN)
        return 1 + sum(1 for _ in learnt)

    @property
    def sort_key(self) -> tuple[object, ...]:
        """Shorter products first, then by names, then by values."""
        names = tuple(f.base.name for f in self.factors)
        variance = math.inf if self.variance is None else self.variance
        return len(names), names, tuple(f.sort_key for f in self.factors), variance

    def __mul__(self, other: Product) -> Product:
        given = [v for v in (self.variance, other.variance) if v is not None]
        return Product(self.factors + other.factors, math.prod(given) if given else None)

    def change_units(self, time_scale: float, time_shift: float = 0.0) -> Product:
        """Express the same kernel in new time ``t = time_shift + time_scale * x``."""
        changed = self._with_each(lambda v, kind: change_unit(v, kind, time_scale, time_shift))
        if self.variance is None:
            return changed
        degree = sum(factor.base.degree for factor in self.factors)
        return replace(changed, variance=self.variance / time_scale**degree)

    def beginning_at(self, start: float) -> Product:
        """Return the same kernel, whose walks, if any, begin at this time."""
        return self._with_each(lambda value, kind: start if kind is Kind.ORIGIN else value)

    def _with_each(self, changed: Callable[[float | None, Kind], float | None]) -> Product:
        """Return the product with another number for each, by what kind of number it is."""
        factors = (
            Factor(f.base, tuple(map(changed, f.values, (kind for _, kind in f.base.parameters))))
            for f in self.factors
        )
        return Product(tuple(factors), self.variance)

    def __format__(self, spec: str) -> str:
        head = [] if self.variance is None else [_number(self.variance, spec)]
        return " x ".join(head + [format(factor, spec) for factor in self.factors])

    def __str__(self) -> str:
        return format(self)

    def __repr__(self) -> str:
        return format(self, ".4g")


def parse(text: str) -> Product:
    """Read a product; ``parse(str(e)) == e``.

    Parameters
    ----------
    text
        ``[variance x] NAME[(parameter=value, ...)] [x ...]``; ``*`` may stand for ``x``.

    Raises
    ------
    ValueError
        Saying which part could not be read.
    """
    if not isinstance(text, str):
        raise ValueError(f"expected a kernel expression such as 'PER x SE', got {text!r}")
    parts = [part.strip() for part in re.split(r"(?<![\w.])x(?![\w.])|[*×]", text)]
    variance = None
    if parts and re.fullmatch(_FLOAT, parts[0]):
        variance = float(parts.pop(0))
    return Product(tuple(_parse_factor(part, text) for part in parts), variance)


_FLOAT = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_FACTOR = re.compile(rf"([A-Z][A-Z0-9]*)(?:\((\s*\w+\s*=\s*{_FLOAT}\s*(?:,[^()]*)?)\))?")


def _parse_factor(part: str, text: str) -> Factor:
    match = _FACTOR.fullmatch(part)
    if match is None:
        raise ValueError(
            f"cannot read {part!r} in the kernel expression {text!r}: expected "
            "NAME or NAME(parameter=value, ...)"
        )
    values: dict[str, float | None] = {}
    for assignment in (match[2] or "").split(",") if match[2] else ():
        name, _, number = (piece.strip() for piece in assignment.partition("="))
        if not re.fullmatch(_FLOAT, number):
            raise ValueError(f"expected a number for {name!r} in {text!r}, got {number!r}")
        if name in values:
            raise ValueError(f"expected different hyperparameters in {part!r}, got {name!r} twice")
        values[name] = float(number)
    return Factor.of(match[1], **values)


def expand(member: Product, bases: Sequence[str]) -> tuple[Product, ...]:
    """All members that the grammar derives from one (paper, section 5 and appendices A and C).

    The rules replace a subexpression T of the member by T + B, T x B or B, for every base kernel B;
    subexpressions of a product are the products of some of its factors, R being the others.  Terms
    of a sum are members of their own, so T + B gives the member itself and R x B; T x B gives the
    member times B, whatever T is; B gives R x B.  Together: S itself, with its numbers; S x B; and
    R x B for every choice of factors to keep, none of them included.

    Factors that are kept keep their numbers; new ones have none, so that SE derives a second SE.
    WN alone is left out, because every series has its own noise already.

    Change points ("CP" among the bases) are the operator

        CP(k, k', at, width) = k x UNTIL(at, width) + k' x FROM(at, width),

    whose terms are members of their own like those of any sum: UNTIL and FROM are base kernels to
    all rules above, except that a product has each once.
    """
    derived: dict[Product, Product] = {}
    for name in with_windows(bases):
        fresh = _fresh(name)
        for factors in _kept(member.factors):
            is_again = fresh.base.is_window and any(f.base == fresh.base for f in factors)
            if is_again or not _allowed((*factors, fresh)):
                continue
            product = Product((*factors, fresh))
            if product.factors != member.factors:
                derived.setdefault(product.structure, product)
    derived.pop(Product((_fresh("WN"),)), None)
    return (member, *derived.values())


def multiplied(a: Product, b: Product) -> Product | None:
    """The product of two members, without numbers; None if it is one of them or not allowed."""
    factors = (*a.structure.factors, *b.structure.factors)
    windows = [factor for factor in factors if factor.base.is_window]
    if not _allowed(factors) or len(set(windows)) < len(windows):
        return None
    product = Product(factors)
    return None if product in (a.structure, b.structure) else product


def split(member: Product) -> tuple[tuple[Product, ...], ...]:
    """All ways of making the product of a member a sum of two, without numbers.

    WN alone is left out of the sum, because every series has its own noise already.
    """
    factors = member.structure.factors
    found: dict[tuple[Product, ...], None] = {}
    for count in range(1, len(factors)):
        for own in itertools.combinations(range(len(factors)), count):
            parts = [Product(tuple(factors[i] for i in own))]
            parts.append(Product(tuple(f for i, f in enumerate(factors) if i not in own)))
            kept = (part for part in parts if part.factors != (_fresh("WN"),))
            found[tuple(sorted(kept, key=lambda part: part.sort_key))] = None
    return tuple(found)


def _kept(factors: tuple[Factor, ...]) -> Iterator[tuple[Factor, ...]]:
    """All choices of factors to keep: first all of them, at last none."""
    for count in range(len(factors) + 1):
        for dropped in itertools.combinations(range(len(factors)), count):
            yield tuple(factor for i, factor in enumerate(factors) if i not in dropped)


def _fresh(name: str) -> Factor:
    base = base_kernel(name)
    return Factor(base, (None,) * len(base.parameters))


def _allowed(factors: Sequence[Factor]) -> bool:
    """A walk may be multiplied by stationary kernels and windows only."""
    moving = [f for f in factors if not (f.base.stationary or f.base.is_window)]
    return len(moving) < 2 or not any(factor.base.is_walk for factor in moving)


def _canonical(factors: Iterable[Factor]) -> tuple[Factor, ...]:
    kept = list(factors)
    if not _allowed(kept):
        names = " x ".join(factor.base.name for factor in kept)
        walk = next(factor.base.name for factor in kept if factor.base.is_walk)
        raise ValueError(
            f"{walk} can only be multiplied by stationary kernels, UNTIL and FROM, got {names}"
        )
    if any(factor.base == WN for factor in kept):
        kept = [_fresh("WN")] + [f for f in kept if not f.base.stationary]
    squared = [factor for factor in kept if factor.base == SE]
    if len(squared) > 1:
        kept = [factor for factor in kept if factor.base != SE] + [_merge_se(squared)]
    if len(kept) > 1:
        kept = [factor for factor in kept if factor.base != C] or [_fresh("C")]
    return tuple(sorted(kept, key=lambda factor: factor.sort_key))


def _merge_se(factors: Sequence[Factor]) -> Factor:
    """Merge SE(l) x SE(m) into SE with 1 / l^2 + 1 / m^2; the given one where one is absent."""
    lengthscales = [factor.values[0] for factor in factors if factor.values[0] is not None]
    if not lengthscales:
        return factors[0]
    return Factor(SE, (1.0 / math.hypot(*(1.0 / scale for scale in lengthscales)),))


def change_unit(
    value: float | None, kind: Kind, time_scale: float, time_shift: float
) -> float | None:
    """Express one number in new time ``t = time_shift + time_scale * x``."""
    if value is None or kind is Kind.RATIO:
        return value
    is_time_point = kind in (Kind.LOCATION, Kind.ORIGIN, Kind.CHANGE)
    return value * time_scale + (time_shift if is_time_point else 0.0)


def _number(value: float, spec: str) -> str:
    return format(value, spec) if spec else repr(float(value))


def with_values(product: Product, variance: float, values: Sequence[float]) -> Product:
    """Return the product with these numbers, `values` running over its factors in order."""
    remaining = iter(float(value) for value in values)
    factors = tuple(
        replace(factor, values=tuple(next(remaining) for _ in factor.values))
        for factor in product.factors
    )
    return Product(factors, float(variance))


def change_point(
    before: Product, after: Product, at: float | None = None, width: float | None = None
) -> tuple[Product, Product]:
    r"""Return the two terms of CP(before, after, at, width), see Lloyd et al. (2014).

    .. math:: k(x, x') = (1 - s(x))\,(1 - s(x'))\,k_1(x, x') + s(x)\,s(x')\,k_2(x, x'),
       \qquad s(x) = \sigma\big((x - \mathtt{at}) / \mathtt{width}\big).

    A sum is never formed (see `grammar`): its terms are ``before x UNTIL`` and ``after x FROM``,
    two components.  So each learns a date and a width of its own, and a series may have one of
    them alone: what ends in all need not give way to the same in all.

    Parameters
    ----------
    before, after
        What is there before and after the change.
    at
        When, in the unit of time of the other numbers; None: not known.
    width
        Positive: over how long.  The sigmoid goes from 12% to 88% within four widths.
    """
    values = (at, width)
    return (
        Product((*before.factors, Factor(UNTIL, values)), before.variance),
        Product((*after.factors, Factor(FROM, values)), after.variance),
    )
