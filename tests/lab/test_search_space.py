"""Sizes of search spaces: against lists made by hand, formulas of counting, and the paper."""

from __future__ import annotations

import pytest

from lkm_gpflow.kernels.grammar import Product, parse
from paper_experiments.lab.search_space import (
    ckl_applications,
    ckl_bound,
    ckl_candidates,
    full_expansion,
    is_within,
    partial_expansion_bound,
    partial_expansion_kernels,
)

BASES = ("C", "LIN", "SE", "PER")
STARTS = ("SE", "SE, PER", "LIN, PER, SE", "LIN, PER x SE", "LIN x PER, PER x SE", "LIN x PER x SE")


def members_of(text: str) -> list[Product]:
    return [parse(part) for part in text.split(", ")]


@pytest.mark.parametrize(("num_members", "num_factors"), [(1, 1), (3, 1), (1, 3), (2, 2), (3, 3)])
def test_rules_are_applied_to_every_substructure_once(num_members: int, num_factors: int) -> None:
    """K (2^L - 1) sub-products, and the subsets of two members or more."""
    member = " x ".join(["LIN"] * num_factors)  # LIN x LIN is not simplified
    count = num_members * (2**num_factors - 1) + 2**num_members - 1 - num_members
    applied = list(ckl_applications([parse(member)] * num_members, BASES))
    assert len(applied) == 3 * len(BASES) * count


@pytest.mark.parametrize("text", STARTS)
def test_the_papers_formulas_bound_what_is_there(text: str) -> None:
    members = members_of(text)
    K, L = len(members), max(len(member.factors) for member in members)
    num_candidates = len(ckl_candidates(members, BASES))
    num_kernels = len(partial_expansion_kernels(members, BASES))
    assert num_candidates <= ckl_bound(K, L, len(BASES))
    assert num_candidates < num_kernels <= partial_expansion_bound(K, L, len(BASES))


@pytest.mark.parametrize("text", STARTS)
def test_expanded_sets_hold_all_candidates(text: str) -> None:
    members = members_of(text)
    everything = full_expansion(members, BASES)
    assert all(is_within(flat, everything) for flat in ckl_candidates(members, BASES).values())
