"""Algorithm 1 of the paper, partial set expansion, with its two companions.

Each is a pure generator: it yields a `Proposal`, a structure to learn, and receives the fit that
was learnt.  It accepts a fit that improves on the best one, and rolls back otherwise.  Restarts,
ledger, budget, executor and progress belong to `structure_search`.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..fit.fits import Fit, State
from ..kernels.grammar import Product, expand, multiplied, split
from .ledger import EVERY, REGROUPED, START
from .settings import SearchSettings

MIN_IMPROVEMENT = 0.1
"""A criterion that is lower by less is a matter of where the optimiser stopped."""


@dataclass(frozen=True)
class Attempt:
    """What one fit begins with.

    Parameters
    ----------
    members
        Products that enter; the numbers that they have are starting values.
    rest
        The learnt state beside them; None if learning begins from nothing.
    """

    members: Sequence[Product]
    rest: State | None = None

    @property
    def structure(self) -> tuple[str, ...]:
        """All members of the set, as the ledger writes them."""
        kept = () if self.rest is None else self.rest.kernels
        return tuple(str(product.structure) for product in (*kept, *self.members))


@dataclass(frozen=True)
class Proposal:
    """A step of a search: alternatives to learn, of which the best fit is sent back.

    Parameters
    ----------
    expanded
        The member that is expanded; `START`, `EVERY` or `REGROUPED`.
    depth
        Search depth; 0 is the start.
    alternatives
        One set with restarts, or several sets without.
    best
        The fit to improve on; None at the start.
    waiting
        How many members of the same depth may still follow.
    """

    expanded: str
    depth: int
    alternatives: Sequence[Attempt]
    best: Fit | None = None
    waiting: int = 0


Algorithm: TypeAlias = Generator[Proposal, Fit, tuple[Fit, int]]
"""Yields proposals, receives fits, and returns the best fit and the depth of the last proposal."""


def improves(found: Fit, best: Fit | None) -> bool:
    """Whether a fit is accepted in the place of the best one."""
    return best is None or found.criterion < best.criterion - MIN_IMPROVEMENT


def partial_set_expansion(settings: SearchSettings) -> Algorithm:
    """Expand one member S at a time: replace it by expand(S), keep what improves (algorithm 1)."""
    best = yield Proposal(START, 0, [Attempt(settings.start)])
    depth, asked = 0, set[Product]()  # members that were expanded since `best` was accepted
    for depth in range(1, settings.depth + 1):
        before = best
        members = sorted((k.structure for k in best.kernels), key=lambda k: k.sort_key)
        for number, member in enumerate(members, start=1):
            places = [k for k, own in enumerate(best.kernels) if own.structure == member]
            if member in asked or not places:
                continue
            asked.add(member)
            expanded = expand(best.kernels[places[0]], settings.bases)
            rest = State.of(best).without(places[0])
            found = yield Proposal(
                str(member), depth, [Attempt(expanded, rest)], best, len(members) - number
            )
            if improves(found, best):
                best, asked = found, set()
        if best is before:
            break
    return best, depth


def full_set_expansion(settings: SearchSettings) -> Algorithm:
    """Expand all members at once, and keep the union if it improves."""
    best = yield Proposal(START, 0, [Attempt(settings.start)])
    depth = 0
    for depth in range(1, settings.depth + 1):
        derived: dict[Product, Product] = {}
        for kernel in best.kernels:
            for product in expand(kernel, settings.bases)[1:]:
                derived.setdefault(product.structure, product)
        every = (*best.kernels, *derived.values())
        found = yield Proposal(EVERY, depth, [Attempt(every)], best)
        if not improves(found, best):
            break
        best = found
    return best, depth


def regrouping(best: Fit, depth: int, most_factors: int) -> Algorithm:
    """Multiply two members, or split a product into a sum, as long as that improves.

    Expansion alone seldom finds that two members are better multiplied: each explains what the
    other leaves, so that nothing is left for their product.
    """
    while alternatives := _regroupings(State.of(best), most_factors):
        found = yield Proposal(REGROUPED, depth, alternatives, best)
        if not improves(found, best):
            break
        best = found
    return best, depth


def _regroupings(state: State, most_factors: int) -> list[Attempt]:
    """All sets in which two members are one product, or one product is a sum."""
    kernels, attempts = state.kernels, []
    for i, j in itertools.combinations(range(len(kernels)), 2):
        product = multiplied(kernels[i], kernels[j])
        if product is not None and len(product.factors) <= most_factors:
            attempts.append(Attempt([product], state.without(j).without(i)))
    for k, kernel in enumerate(kernels):
        attempts += [Attempt(terms, state.without(k)) for terms in split(kernel)]
    return attempts


def proposals(settings: SearchSettings) -> Algorithm:
    """The whole search: the chosen expansion, and regrouping after partial expansion by scans."""
    is_partial = settings.strategy == "partial"
    expansion = partial_set_expansion if is_partial else full_set_expansion
    best, depth = yield from expansion(settings)
    if depth and is_partial and settings.fit.learner == "scan":
        best, depth = yield from regrouping(best, depth, most_factors=settings.depth + 1)
    return best, depth
