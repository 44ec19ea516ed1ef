"""Pictures of series that know of each other: what stands on them."""

from __future__ import annotations

import numpy as np
import pytest
from small import made_by_hand, small_table

import lkm_gpflow as lkm
from lkm_gpflow import plotting
from lkm_gpflow.coupling.coupled_discovery import CoupledDiscovery
from lkm_gpflow.coupling.learn_coupling import Coupling
from lkm_gpflow.coupling.patterns import Patterns
from lkm_gpflow.forecast.forecasters import Member


@pytest.fixture(scope="module")
def coupled() -> lkm.CoupledDiscovery:
    """Series a and b walk together; c has a gap."""
    found = made_by_hand(small_table(), ["0.4 x RW(start=-7)"], [[1], [1], [1]])
    w = np.zeros((2, 3, 1))
    w[0, :2] = 0.9
    patterns = Patterns.of(found.fit, found.table.observations.x)
    coupling = Coupling(patterns, w, np.array([5.0, 0.0]), 0.0, 0.0, np.zeros(3, np.int32))
    return CoupledDiscovery(found.table, (Member(found.fit, 1.0),), (coupling,))


def test_pairs_that_narrow_nothing_are_blank(coupled: lkm.CoupledDiscovery) -> None:
    ax = plotting.plot_narrowing(coupled)
    shown = np.ma.masked_invalid(ax.images[0].get_array())
    now = coupled.narrowing()["now"]
    assert shown.count() == 2
    assert shown[0, 1] == pytest.approx(1.0 - now["a", "b"])
    assert [text.get_text() for text in ax.texts] == [
        f"{1.0 - now[pair]:.0%}" for pair in (("a", "b"), ("b", "a"))
    ]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b", "c"]


def test_filled_gaps_are_what_was_told(coupled: lkm.CoupledDiscovery) -> None:
    history = coupled.table.frame["c"]
    told = coupled.fill().loc["c"]
    truth = told["mean"] + 1.0
    ax = plotting.plot_filled(history, {"$filled$": told}, truth=truth, unit="$")
    observed, filled, happened = ax.lines
    np.testing.assert_array_equal(observed.get_ydata(), history)
    np.testing.assert_allclose(filled.get_ydata(), told["mean"])
    np.testing.assert_allclose(happened.get_ydata(), truth)
    assert ax.get_legend().texts[1].get_text() == r"\$filled\$"
    band = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert band.max() == pytest.approx(told["upper"].max())


def test_what_if_shows_both_forecasts(coupled: lkm.CoupledDiscovery) -> None:
    given = {"b": 9.0}
    ax = plotting.plot_what_if(coupled, "a", 4, given, last=10)
    history, plain, scenario, _ = ax.lines
    assert len(history.get_ydata()) == 10
    np.testing.assert_allclose(plain.get_ydata(), coupled.forecast(4).loc["a", "mean"])
    told = coupled.forecast(4, given=given).loc["a", "mean"]
    np.testing.assert_allclose(scenario.get_ydata(), told)
    assert ax.get_xlabel().replace("\n", " ") == coupled.what_follows(4, given)
    assert "given b" in [text.get_text() for text in ax.get_legend().texts]
