"""Stability: what the ledger says of each component, and leaving series out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from small import made_by_hand, small_table

import lkm_gpflow as lkm
from lkm_gpflow.explain import stability as module
from lkm_gpflow.explain.stability import leave_one_out, stability
from lkm_gpflow.kernels.grammar import parse
from lkm_gpflow.search.ledger import Entry


def with_more_fits(found: lkm.Discovery, *kernels: tuple[str, ...]) -> lkm.Discovery:
    """Add fits of other restarts, worse in BIC, that found these kernels."""
    (first,) = found.entries
    span = found.table.span
    entries = [first]
    for restart, found_there in enumerate(kernels, start=1):
        products = tuple(parse(kernel).change_units(1.0 / span) for kernel in found_there)
        fit = replace(first.fit, kernels=products, bic=float(restart))
        entries.append(Entry(0, restart, 0, "start", -1, first.structure, fit))
    return replace(found, entries=tuple(entries))


def test_components_are_looked_up_in_the_other_fits() -> None:
    found = made_by_hand(
        small_table(), ["1 x SE(lengthscale=20)", "1 x PER(period=85,lengthscale=1)"], [[1, 1]] * 3
    )
    found = with_more_fits(
        found,
        ("2 x SE(lengthscale=21)", "1 x PER(period=85,lengthscale=1)"),
        ("1 x SE(lengthscale=250)", "1 x PER(period=85.1,lengthscale=1.01)"),
        ("1 x SE(lengthscale=19)",),
    )
    by_name = dict(zip(found.names, stability(found), strict=True))
    se, per = by_name["SE"], by_name["PER"]
    assert (se.tried, se.found) == (3, 2)
    assert (per.tried, per.found) == (3, 2)


def test_fits_that_begin_where_others_ended_do_not_count() -> None:
    """Further restarts of a scan begin from nothing; those of other learners, and of a full
    expansion, do not."""
    found = made_by_hand(small_table(), ["1 x SE(lengthscale=20)"], [[1]] * 3)
    (first,) = found.entries
    again = replace(first, step=1, restart=1, depth=1, parent=0, fit=replace(first.fit, bic=1.0))
    for expanded, learner, tried in (
        ("SE", "scan", 1), ("SE", "relaxed", 0),
        ("every member", "scan", 0), ("pairs and products", "scan", 0),
    ):  # fmt: skip
        settings = replace(found.settings, fit=replace(found.settings.fit, learner=learner))
        entries = (first, replace(again, expanded=expanded))
        (told,) = stability(replace(found, settings=settings, entries=entries))
        assert told.tried == tried


def test_only_those_who_have_a_component_can_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it is found without another series says nothing."""
    kernels = ["1 x SE(lengthscale=20)", "1 x PER(period=85,lengthscale=1)"]
    found = made_by_hand(small_table(), kernels, [[1, 0], [1, 1], [0, 1]])
    both = found.fit.of_components(np.array([found.names.index("SE"), found.names.index("PER")]))
    se = both.of_components(np.array([0]))
    monkeypatch.setattr(module, "_without", lambda found, n: se if n == 1 else both)
    told = dict(zip(found.names, leave_one_out(found, progress=False), strict=True))
    assert (told["SE"].left_out, told["SE"].survived) == (2, 2)
    assert (told["PER"].left_out, told["PER"].survived) == (2, 1)


@pytest.mark.slow
def test_planted_components_survive_without_a_series(small_found: lkm.Discovery) -> None:
    results = leave_one_out(small_found, progress=False)
    owners = small_found.consensus.Z.sum(axis=0)
    assert [each.left_out for each in results] == owners.tolist()
    assert sum(each.survived for each in results) >= 0.5 * owners.sum()


def test_one_series_cannot_be_left_out() -> None:
    found = made_by_hand(small_table()[["a"]], ["1 x SE(lengthscale=20)"], [[1]])
    with pytest.raises(ValueError, match="at least 2 series to leave one out, got 1"):
        leave_one_out(found)
