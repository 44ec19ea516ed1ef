"""Kernel trees: sums and products of base kernels, nested, and the grammar that grows them.

Pure Python.  A `Sum` is a whole kernel, and a factor of one of its terms may be a sum again:

    Sum = Term + ... + Term,    Term = variance x factor x ... x factor,    factor = base or Sum.

As in `kernels.grammar`, every number may be absent (None): ``SE x (C + LIN)`` is a structure.
Duvenaud, Lloyd, Grosse, Tenenbaum and Ghahramani 2013; Lloyd et al. 2014.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias, Union

from ..kernels.grammar import RW, WN, BaseKernel, C, Factor, Kind, Product, base_kernel

Node: TypeAlias = Union[Factor, "Sum"]
"""What a product is made of."""


class ForbiddenProduct(ValueError):
    """RW times a kernel that is not stationary."""


@dataclass(frozen=True)
class Term:
    """A product with one variance, in canonical form.

    The constructor puts it there: base kernels as in `kernels.grammar.Product` (sorted;
    SE x SE = SE; C x k = k; WN times a stationary kernel = WN), and sums of one term dissolved.
    A product of RW with a kernel that is not stationary raises a `ForbiddenProduct`.
    """

    factors: tuple[Node, ...]
    variance: float | None = None

    def __post_init__(self) -> None:
        nodes: list[Node] = []
        variances = [self.variance]
        for node in self.factors:
            if isinstance(node, Sum) and len(node.terms) == 1:
                nodes += node.terms[0].factors
                variances.append(node.terms[0].variance)
            else:
                nodes.append(node)
        moving = [node for node in nodes if not is_stationary(node)]
        if len(moving) > 1 and any(_contains(_names(node), RW) for node in moving):
            raise ForbiddenProduct(f"RW can only be multiplied by stationary kernels, got {self}")
        bases = [node for node in nodes if isinstance(node, Factor)]
        sums = [node for node in nodes if isinstance(node, Sum)]
        if any(factor.base == WN for factor in bases):
            # Where two times are equal, a stationary kernel is a number.
            variances += [node.at_zero_lag for node in sums if node.is_stationary]
            sums = [node for node in sums if not node.is_stationary]
        if bases:
            bases = list(Product(tuple(bases)).factors)
        if sums:
            bases = [factor for factor in bases if factor.base != C]
        sums.sort(key=lambda node: node.sort_key)
        object.__setattr__(self, "factors", (*bases, *sums))
        object.__setattr__(self, "variance", _product(variances))

    @cached_property
    def names(self) -> str:
        """Its text without the numbers."""
        return " x ".join(_names(node) for node in self.factors)

    @property
    def num_bases(self) -> int:
        """How many base kernels it is made of."""
        return sum(node.num_bases if isinstance(node, Sum) else 1 for node in self.factors)

    @cached_property
    def is_stationary(self) -> bool:
        """Whether it depends on the difference of two times alone."""
        return all(is_stationary(node) for node in self.factors)

    @property
    def learnt(self) -> list[Kind]:
        """Kinds of what is learnt of its base kernels, those in sums left out."""
        bases = (node.base for node in self.factors if isinstance(node, Factor))
        return [kind for base in bases for _, kind in base.parameters if kind is not Kind.ORIGIN]

    def __format__(self, spec: str) -> str:
        head = [] if self.variance is None else [format(self.variance, spec)]
        nodes = (
            f"({format(node, spec)})" if isinstance(node, Sum) else format(node, spec)
            for node in self.factors
        )
        return " x ".join([*head, *nodes])

    def __str__(self) -> str:
        return format(self)


@dataclass(frozen=True)
class Sum:
    """A kernel: a sum of products in canonical form.  Without any it is zero.

    The constructor puts it there: sums in sums dissolved, terms sorted (shorter first, then by
    names), and equal terms merged where only their variances can differ (C + C = C).
    """

    terms: tuple[Term, ...] = ()

    def __post_init__(self) -> None:
        kept: dict[object, Term] = {}
        for term in (inner for outer in self.terms for inner in _dissolved(outer)):
            is_rigid = not term.learnt and not any(isinstance(n, Sum) for n in term.factors)
            key = term.names if is_rigid else len(kept)
            variance = _sum([kept[key].variance, term.variance]) if key in kept else term.variance
            kept[key] = replace(kept.get(key, term), variance=variance)
        terms = sorted(kept.values(), key=lambda term: (term.num_bases, term.names))
        object.__setattr__(self, "terms", tuple(terms))

    @classmethod
    def of(cls, name: str) -> Sum:
        """Return a base kernel alone, without numbers."""
        base = base_kernel(name)
        return cls((Term((Factor(base, (None,) * len(base.parameters)),)),))

    @cached_property
    def names(self) -> str:
        """Its text without the numbers, which two kernels share if their structure is one."""
        return " + ".join(term.names for term in self.terms) if self.terms else "0"

    @property
    def num_bases(self) -> int:
        """How many base kernels it is made of."""
        return sum(term.num_bases for term in self.terms)

    @property
    def sort_key(self) -> tuple[int, str]:
        """Fewer base kernels first, then by names."""
        return self.num_bases, self.names

    @cached_property
    def is_stationary(self) -> bool:
        """Whether it depends on the difference of two times alone."""
        return all(term.is_stationary for term in self.terms)

    @property
    def at_zero_lag(self) -> float | None:
        """The variance of a stationary kernel (base kernels have one); None where absent."""
        return _sum(
            _product([t.variance, *(n.at_zero_lag for n in t.factors if isinstance(n, Sum))])
            for t in self.terms
        )

    @property
    def structure(self) -> Sum:
        """The same kernel without its numbers."""
        return self.fill(
            lambda factor: replace(factor, values=(None,) * len(factor.values)), lambda *_: None
        )

    @property
    def parameters(self) -> tuple[tuple[Kind | None, float | None], ...]:
        """All that is learnt, in order: kinds (None for a variance) and numbers.

        A product has one variance: the first weight of a sum that is a factor is redundant, hence
        not learnt (and one where the kernel is `normalised`).
        """
        found: list[tuple[Kind | None, float | None]] = []

        def shape(factor: Factor) -> Factor:
            kinds = (kind for _, kind in factor.base.parameters)
            pairs = zip(kinds, factor.values, strict=True)
            found.extend((kind, value) for kind, value in pairs if kind is not Kind.ORIGIN)
            return factor

        def weight(term: Term, is_redundant: bool) -> float | None:
            if not is_redundant:
                found.append((None, term.variance))
            return term.variance

        self.fill(shape, weight)
        return tuple(found)

    @property
    def num_parameters(self) -> int:
        """How many numbers are learnt."""
        return len(self.parameters)

    @property
    def normalised(self) -> Sum:
        """The same complete kernel, with weight one where a weight is redundant."""
        terms = []
        for term in self.terms:
            nodes, variances = list[Node](), [term.variance]
            for node in term.factors:
                if isinstance(node, Sum):
                    node = node.normalised
                    first = node.terms[0].variance
                    if first is None:
                        raise ValueError(f"expected a kernel with all its numbers, got {self}")
                    variances.append(first)
                    rest = Sum(node.terms[1:]).scaled(1.0 / first)
                    node = Sum((replace(node.terms[0], variance=1.0), *rest.terms))
                nodes.append(node)
            terms.append(Term(tuple(nodes), _product(variances)))
        return Sum(tuple(terms))

    def fill(
        self,
        shape: Callable[[Factor], Factor],
        weight: Callable[[Term, bool], float | None],
        is_factor: bool = False,
    ) -> Sum:
        """Return the kernel with other numbers.

        Parameters
        ----------
        shape
            From a base kernel to the same with other values.
        weight
            From a term whose factors are filled, and whether its variance is redundant, to its
            variance.
        is_factor
            Whether this sum is a factor of a product.
        """
        terms = []
        for i, term in enumerate(self.terms):
            nodes = (
                node.fill(shape, weight, is_factor=True) if isinstance(node, Sum) else shape(node)
                for node in term.factors
            )
            filled = Term(tuple(nodes), term.variance)
            terms.append(replace(filled, variance=weight(filled, is_factor and i == 0)))
        return Sum(tuple(terms))

    def with_parameters(self, values: Iterable[float]) -> Sum:
        """Return the normalised kernel with these numbers, in the order of `parameters`."""
        remaining = iter(values)

        def shape(factor: Factor) -> Factor:
            kinds = (kind for _, kind in factor.base.parameters)
            pairs = zip(kinds, factor.values, strict=True)
            new = (v if kind is Kind.ORIGIN else float(next(remaining)) for kind, v in pairs)
            return replace(factor, values=tuple(new))

        return self.fill(shape, lambda _, fixed: 1.0 if fixed else float(next(remaining)))

    def scaled(self, variance: float | None) -> Sum:
        """Return the kernel times a number (or None: as it is)."""
        return Sum(tuple(replace(t, variance=_product([t.variance, variance])) for t in self.terms))

    def change_units(self, time_scale: float, time_shift: float = 0.0) -> Sum:
        """Express the same kernel in new time ``t = time_shift + time_scale * x``."""
        kernel = Sum()
        for term in self.terms:
            nodes, variances = list[Node](), [term.variance]
            for node in term.factors:
                if isinstance(node, Sum):
                    nodes.append(node.change_units(time_scale, time_shift))
                else:
                    changed = Product((node,), 1.0).change_units(time_scale, time_shift)
                    nodes += changed.factors
                    variances.append(changed.variance)
            kernel += Sum((Term(tuple(nodes), _product(variances)),))
        return kernel.normalised

    def __add__(self, other: Sum) -> Sum:
        return Sum(self.terms + other.terms)

    def __mul__(self, other: Sum) -> Sum:
        if not (self.terms and other.terms):
            return Sum()
        has_scale = any(all(t.variance is not None for t in s.terms) for s in (self, other))
        return Sum((Term((self, other), 1.0 if has_scale else None),))

    def __format__(self, spec: str) -> str:
        return " + ".join(format(term, spec) for term in self.terms) if self.terms else "0"

    def __str__(self) -> str:
        return format(self)


def expand(kernel: Sum, bases: Sequence[str]) -> tuple[Sum, ...]:
    """All kernels that the grammar derives from one in a step (Lloyd et al. 2014, table 2).

    For every base kernel B and every subexpression S, S' (the whole, a term of a sum, a factor of
    a product): S -> S + B, S -> S x B, S -> S x (B + C), S + S' -> S, S x S' -> S, S -> B.
    Change points are left out.  Numbers of what stays are kept, new ones are absent; of
    several ways to a structure the one that keeps most counts.  White noise in a term that is
    stationary is left out: every series has its own noise already.
    """
    found: dict[str, Sum] = {}
    for place, rebuild, neutral in _places(kernel):
        for change in _changes(place, neutral, bases):
            try:
                derived = rebuild(change())
            except ForbiddenProduct:
                continue
            known = found.get(derived.names, derived)
            if not any(_is_white(term) for term in derived.terms):
                found[derived.names] = min(known, derived, key=_num_absent)
    return tuple(k for names, k in found.items() if names not in (kernel.names, Sum().names))


def is_stationary(node: Node) -> bool:
    """Whether a factor depends on the difference of two times alone."""
    return node.is_stationary if isinstance(node, Sum) else node.base.stationary


_Place: TypeAlias = tuple[Sum, Callable[[Sum], Sum], "Sum | None"]


def _places(kernel: Sum, neutral: Sum | None = None) -> Iterator[_Place]:
    """All subexpressions, how to put another in their place, and what takes them away."""
    yield kernel, lambda new: new, neutral
    for i, term in enumerate(kernel.terms):
        rest = Sum(kernel.terms[:i] + kernel.terms[i + 1 :])
        if rest.terms:
            yield Sum((term,)), rest.__add__, Sum()
        for j, node in enumerate(term.factors if len(term.factors) > 1 else ()):
            others = Sum((replace(term, factors=term.factors[:j] + term.factors[j + 1 :]),))
            one = None if term.variance is None else 1.0
            inside = node if isinstance(node, Sum) else Sum((Term((node,), one),))
            for place, rebuild, removal in _places(inside, Sum.of(C.name).scaled(one)):
                yield place, _multiplied(rest, others, rebuild), removal


def _multiplied(rest: Sum, others: Sum, rebuild: Callable[[Sum], Sum]) -> Callable[[Sum], Sum]:
    return lambda new: rest + others * rebuild(new)


def _changes(place: Sum, neutral: Sum | None, bases: Sequence[str]) -> Iterator[Callable[[], Sum]]:
    """What may stand in the place of a subexpression."""
    fresh = [Sum.of(name) for name in bases]
    yield from ((lambda b=b: place + b) for b in fresh)
    yield from ((lambda b=b: place * b) for b in fresh)
    if neutral is not None:
        yield lambda: neutral
    yield from ((lambda b=b: place * (b + Sum.of(C.name))) for b in fresh)
    yield from ((lambda b=b: b) for b in fresh)


def _names(node: Node) -> str:
    return f"({node.names})" if isinstance(node, Sum) else node.base.name


def _contains(names: str, base: BaseKernel) -> bool:
    return base.name in re.findall(r"\w+", names)


def _num_absent(kernel: Sum) -> int:
    return sum(value is None for _, value in kernel.parameters)


def _is_white(term: Term) -> bool:
    """Whether white noise of one variance is all or a part of it."""
    return _contains(term.names, WN) and term.is_stationary


def _dissolved(term: Term) -> tuple[Term, ...]:
    """The terms of a term that is nothing but a sum."""
    only = term.factors[0]
    if len(term.factors) > 1 or not isinstance(only, Sum):
        return (term,)
    return tuple(replace(t, variance=_product([term.variance, t.variance])) for t in only.terms)


def _product(values: Iterable[float | None]) -> float | None:
    """Product of those that are given."""
    given = [value for value in values if value is not None]
    return math.prod(given) if given else None


def _sum(values: Iterable[float | None]) -> float | None:
    """Sum of those that are given."""
    given = [value for value in values if value is not None]
    return sum(given) if given else None
