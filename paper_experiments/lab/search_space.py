"""Sizes of search spaces by enumeration, beside the formulas of the paper (its appendix C).

Compositional kernel learning (CKL) keeps one kernel, a sum of K products, and tries every kernel
that a rule makes of one of its substructures.  Partial set expansion keeps the set of the K
products; expanding one of them gives a longer set, and every series may use any subset of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from lkm_gpflow.comparators.grammar import Node, Sum, Term

from lkm_gpflow.kernels.grammar import Product, expand, with_values

RULES_PER_BASE = 3
"""S -> S + B, S -> S x B and S -> B, so that R = 3 x the number of base kernels."""

Kernel = tuple[str, ...]
"""A kernel as the sorted names of the products that it is the sum of."""


def as_sum(members: Sequence[Product]) -> Sum:
    """Return the kernel that is the sum of these products."""
    return Sum(tuple(Term(member.structure.factors) for member in members))


def flatten(kernel: Sum) -> Kernel:
    """Multiply a nested kernel out: (LIN + PER) x SE gives ("LIN x SE", "PER x SE")."""
    return tuple(sorted(str(product) for product in _products(kernel)))


def _products(kernel: Sum) -> Iterator[Product]:
    for term in kernel.terms:
        for choice in itertools.product(*(_choices(node) for node in term.factors)):
            factors = itertools.chain.from_iterable(product.factors for product in choice)
            yield Product(tuple(factors))


def _choices(node: Node) -> list[Product]:
    return list(_products(node)) if isinstance(node, Sum) else [Product((node,))]


def ckl_applications(members: Sequence[Product], bases: Sequence[str]) -> Iterator[Sum]:
    """Apply every rule with every base kernel to every substructure of a sum of products.

    Substructures are the products of some factors of one member, and the sums of two members or
    more (one member alone is the product of all its factors).  Kernels come as often as rules lead
    to them, what was there before included.
    """
    members = [member.structure for member in members]
    for place, rebuild in _substructures(members):
        for name in bases:
            base = Sum.of(name)
            yield from map(rebuild, (place + base, place * base, base))


def _substructures(members: Sequence[Product]) -> Iterator[tuple[Sum, Callable[[Sum], Sum]]]:
    """Pairs of a substructure and of what puts another in its place."""
    for k, member in enumerate(members):
        others = as_sum([*members[:k], *members[k + 1 :]])
        for inside in _subsets(range(len(member.factors)), smallest=1):
            chosen = Sum((Term(tuple(member.factors[i] for i in inside)),))
            left = tuple(f for i, f in enumerate(member.factors) if i not in inside)
            yield chosen, partial(_put_back, left=left, others=others)
    for inside in _subsets(range(len(members)), smallest=2):
        others = as_sum([m for k, m in enumerate(members) if k not in inside])
        yield as_sum([members[k] for k in inside]), others.__add__


def _put_back(new: Sum, left: tuple[Node, ...], others: Sum) -> Sum:
    """``new x left + others``."""
    return (new * Sum((Term(left),)) if left else new) + others


def _subsets(items: Sequence[int], smallest: int) -> Iterator[tuple[int, ...]]:
    sizes = range(smallest, len(items) + 1)
    return itertools.chain.from_iterable(itertools.combinations(items, size) for size in sizes)


def ckl_candidates(members: Sequence[Product], bases: Sequence[str]) -> dict[str, Kernel]:
    """All different kernels that CKL tries next, by name, and multiplied out."""
    before = as_sum(members).names
    found = {kernel.names: kernel for kernel in ckl_applications(members, bases)}
    return {names: flatten(kernel) for names, kernel in found.items() if names != before}


def ckl_bound(num_members: int, num_factors: int, num_bases: int) -> int:
    """R K 2^L + R 2^K, what the paper's O(.) says with a constant of one."""
    rules = RULES_PER_BASE * num_bases
    return int(rules * num_members * 2**num_factors + rules * 2**num_members)


def expansions(members: Sequence[Product], bases: Sequence[str]) -> list[list[str]]:
    """The sets that partial expansion tries from one set, one for each member expanded."""
    return [
        [
            *(str(other.structure) for i, other in enumerate(members) if i != k),
            *(str(derived.structure) for derived in expand(_learnt(member), bases)),
        ]
        for k, member in enumerate(members)
    ]


def full_expansion(members: Sequence[Product], bases: Sequence[str]) -> list[str]:
    """The set that partial expansion ends with if every expansion is kept and nothing dropped.

    What several members derive is there once; the members themselves stay.
    """
    derived = {
        str(product.structure): None for m in members for product in expand(_learnt(m), bases)[1:]
    }
    return [*(str(member.structure) for member in members), *derived]


def _learnt(member: Product) -> Product:
    """Give a member numbers, as in a search: only then does SE derive a second SE."""
    count = sum(len(factor.values) for factor in member.factors)
    return with_values(member, 1.0, [1.0] * count)


def sub_kernels(members: Sequence[str]) -> set[Kernel]:
    """Every different kernel that a row of Z can choose from a set of members.

    Raises
    ------
    ValueError
        If there are more than 2^20 rows to look at.
    """
    if len(members) > 20:
        raise ValueError(f"expected at most 20 members to enumerate 2^K rows, got {len(members)}")
    ordered = sorted(members)
    return {
        tuple(itertools.compress(ordered, row))
        for row in itertools.product((False, True), repeat=len(ordered))
    }


def partial_expansion_kernels(members: Sequence[Product], bases: Sequence[str]) -> set[Kernel]:
    """Every kernel that a series can have in one of the sets of `expansions`."""
    return set().union(*(sub_kernels(tried) for tried in expansions(members, bases)))


def partial_expansion_bound(num_members: int, num_factors: int, num_bases: int) -> int:
    """K 2^(R 2^L + K), what the paper's O(.) says with a constant of one."""
    rules = RULES_PER_BASE * num_bases
    return int(num_members * 2 ** (rules * 2**num_factors + num_members))


def is_within(kernel: Kernel, members: Sequence[str]) -> bool:
    """Whether a kernel, multiplied out, is a subset (with multiplicity) of a set of members."""
    left = list(members)
    for product in kernel:
        if product not in left:
            return False
        left.remove(product)
    return True
