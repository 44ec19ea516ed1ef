"""What cannot be asked for: what was expected, what was given, and what to do."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from small import made_by_hand, small_table

import lkm_gpflow as lkm
from lkm_gpflow.comparators import Drift
from lkm_gpflow.search import structure_search


def discover(**options: Any) -> object:
    return lkm.discover(small_table(), progress=False, **options)


def by_hand() -> lkm.Discovery:
    return made_by_hand(small_table(), ["1 x SE(lengthscale=30)"], [[1]] * 3)


REFUSED: dict[str, tuple[str, Callable[[], object]]] = {
    "bases as a text": (
        r"bases as a list of names such as \['SE', 'PER'\], got 'foo': .*EXTENDED_BASES",
        lambda: discover(bases="foo"),
    ),
    "bases in lists of their own": (
        r"the name of a base kernel such as 'SE', got \['SE'\]",
        lambda: discover(bases=[["SE"]]),
    ),
    "a model by its name": (
        "expected LKM or a subclass of it, got 'LKM'",
        lambda: discover(learner="relaxed", priors=False, model="LKM"),
    ),
    "no steps of a report": (
        "a horizon of 1 to 1000000 steps, got 0;",
        lambda: by_hand().report(0),
    ),
    "a pair of half a step": ("steps, got 0.5;", lambda: by_hand().compare("a", "b", 0.5)),
    "units without their series": (
        r"expected units by series such as \{'a': 'm'\}, got \['m'\]",
        lambda: by_hand().report(units=["m"]),
    ),
    "half a depth": ("depth as a whole number of 0 or more, got 1.5", lambda: discover(depth=1.5)),
    "restarts as a text": (
        "restarts as a whole number of 1 .*, got '3'",
        lambda: discover(restarts="3"),
    ),
    "a seed that is a text": (
        "seed as a whole number of 0 or more, got 'x'",
        lambda: discover(seed="x"),
    ),
    "no concentration": ("a positive number alpha, got 0", lambda: discover(alpha=0)),
    "a concentration that is a text": ("number alpha, got 'x'", lambda: discover(alpha="x")),
    "an empty transform": ("expected a transform among .*, got ''", lambda: discover(transform="")),
    "times of which one is missing": (
        "a pandas Index of times without missing ones",
        lambda: made_by_hand(small_table(), ["1 x SE(lengthscale=30)"], [[1]] * 3).forecast(
            pd.DatetimeIndex(["2022-01-02", None])
        ),
    ),
    "a quantile alone": (
        r"expected a list of quantiles such as \[0.05, 0.95\], got 0.5",
        lambda: by_hand().quantiles(2, 0.5),  # type: ignore[arg-type]
    ),
    "a quantile as a text": (
        "expected quantiles between 0 and 1, got '0.5'",
        lambda: by_hand().quantiles(2, ["0.5"]),  # type: ignore[list-item]
    ),
    "a level as a text": (
        "expected a level between 0 and 1, got '0.9'",
        lambda: by_hand().forecast(2, "0.9"),  # type: ignore[arg-type]
    ),
    "a sum without weights": (
        r"expected weights by series such as .*, got \['a', 'b'\]",
        lambda: by_hand().aggregate(2, ["a", "b"]),  # type: ignore[arg-type]
    ),
    "a weight as a text": (
        "expected a finite weight of 'a', got '1'",
        lambda: by_hand().couple().aggregate(2, {"a": "1"}),  # type: ignore[dict-item]
    ),
    "what is given without a series": (
        r"expected what is known by series, \{'a': 1.0\}, got \['a'\]",
        lambda: by_hand().couple().forecast(2, given=["a"]),  # type: ignore[arg-type]
    ),
    "a text as what is given": (
        r"expected a finite number of 'a', or a list of them .*, got 'x'",
        lambda: by_hand().couple().forecast(2, given={"a": "x"}),  # type: ignore[dict-item]
    ),
    "an infinite value that is given": (
        r"expected a finite number of 'a', .*, got \[inf, 1.0\]",
        lambda: by_hand().couple().forecast(2, given={"a": [np.inf, 1.0]}),
    ),
    "a horizon for times": (
        "a pandas Index of times without missing ones, got 3",
        lambda: by_hand().predict(3),  # type: ignore[arg-type]
    ),
    "a list of times as a horizon": (
        r"a horizon of 1 to 1000000 steps, got \['2022-01-02'\]; to forecast .* a pandas Index",
        lambda: by_hand().forecast(["2022-01-02"]),  # type: ignore[arg-type]
    ),
    "a selection that is no list": (
        "a list of some of the series 'a', 'b' and 'c', got 3",
        lambda: by_hand().select(3),  # type: ignore[arg-type]
    ),
    "a wide table to make long": (
        r"an index of two levels, \(series, time\), got 1: .*frame\.unstack\(\)",
        lambda: lkm.to_long(small_table()),
    ),
    "half a subset": ("a subset of at least 1 .*, got 1.5", lambda: discover(subset=1.5)),
    "an executor that is none": (
        r"expected an executor .*, got int 4: lkm_gpflow.process_pool\(4\)",
        lambda: discover(executor=4),
    ),
    "a structure as a text": (
        r"list of components such as \['SE', 'PER x SE'\], got 'SE'",
        lambda: lkm.learn(small_table(), "SE"),
    ),
    "a horizon beyond the table": (
        "horizon of 1 to 37 steps, because the table has 40 rows .*, got 500",
        lambda: lkm.backtest(small_table(), "drift", horizon=500, progress=False),
    ),
    "half a horizon": (
        "a horizon as a whole number of 1 or more, got 2.5",
        lambda: lkm.backtest(small_table(), "drift", horizon=2.5),  # type: ignore[arg-type]
    ),
    "a comparator with a slip": (
        "expected a comparator among .*, got 'last-vale'; did you mean 'last-value'",
        lambda: lkm.backtest(small_table(), "last-vale", 3),
    ),
    "a period in the table's own time": (
        r"the period of PER as a share of the time .*, at most 1, got 84: divide it by \d+ days",
        lambda: lkm.learn(small_table(), ["PER(period=84)"]),
    ),
    "annealing in numbers": (
        "annealing as an Annealing or None, got 3",
        lambda: discover(annealing=3),
    ),
    "priors as a text": ("priors as True or False, got 'no'", lambda: discover(priors="no")),
    "a class of methods": (
        r"expected a comparator, got the class Drift: Drift\(\) makes one",
        lambda: lkm.backtest(small_table(), Drift, 3),  # type: ignore[arg-type]
    ),
    "a value of absurd size": (
        r"values of 'a' of at most 1e\+100 in size, got 1e\+200",
        lambda: by_hand().couple().forecast(2, given={"a": 1e200}),
    ),
    "a time that is given twice": (
        "one value of 'a' at a time, got several at 2021-10-10",
        lambda: (
            by_hand()
            .couple()
            .forecast(2, given={"a": pd.Series([1.0, 2.0], pd.DatetimeIndex(["2021-10-10"] * 2))})
        ),
    ),
    "a unit that is no text": (
        "the unit of 'a' as a text such as 'm', got 5",
        lambda: by_hand().report(units={"a": 5}),  # type: ignore[dict-item]
    ),
    "a unit of a series that is not there": (
        "units of the series 'a', 'b' and 'c', got one of 'A'",
        lambda: by_hand().report(units={"A": "kg"}),
    ),
    "a data set with a slip": ("did you mean 'gonu'", lambda: lkm.datasets.load("gnou")),
}


@pytest.mark.parametrize("case", REFUSED)
def test_it_is_refused(case: str) -> None:
    message, ask = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        ask()


def test_nothing_is_selected() -> None:
    found = made_by_hand(small_table(), ["1 x SE(lengthscale=30)"], [[1], [1], [1]])
    with pytest.raises(ValueError, match=r"of some of the series 'a', 'b' and 'c', got \[\]"):
        found.select([])
    with pytest.raises(ValueError, match=r"a list of some of the series .*, got 'a'"):
        found.select("a")
    named = made_by_hand(
        small_table().set_axis(["Gold", "Oil", "Gas"], axis=1),
        ["1 x SE(lengthscale=30)"],
        [[1], [1], [1]],
    )
    with pytest.raises(ValueError, match="got 'gold'; did you mean 'Gold'"):
        named.components("gold")


def test_a_level_of_components_in_percent_is_refused() -> None:
    found = made_by_hand(small_table(), ["1 x SE(lengthscale=30)"], [[1], [1], [1]])
    for level in (90, 1.0, 0.0, -0.5, np.nan):
        with pytest.raises(ValueError, match=f"a level between 0 and 1, got {level}"):
            found.components("a", level=level)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="expected the name of a file, got the folder"):
        by_hand().save(tmp_path, force=True)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    found = made_by_hand(small_table(), ["1 x SE(lengthscale=30)"], [[1], [1], [1]])
    with pytest.raises(FileNotFoundError, match=r"folder that exists, got .*absent for the file f"):
        found.save(tmp_path / "absent" / "found.lkm")
    assert list(tmp_path.iterdir()) == []


def test_numbers_of_numpy_are_written_to_ledgers(tmp_path: Path) -> None:
    options: dict[str, Any] = {"bases": ("SE",), "depth": 0, "restarts": 1, "progress": False}
    options |= {"subset": np.int64(2), "alpha": np.float32(2.0), "ledger": tmp_path / "ledger"}
    found = lkm.discover(small_table(), **options)
    assert found.settings.fit.alpha == 2.0
    assert found.fit.kernels == lkm.discover(small_table(), **options).fit.kernels


def test_ctrl_c_keeps_the_ledger_and_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"bases": ("SE",), "depth": 0, "restarts": 3, "averaging": "none", "progress": False}
    real_fit, calls = structure_search.fit, []

    def fit(*arguments: Any, **settings: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real_fit(*arguments, **settings)

    monkeypatch.setattr(structure_search, "fit", fit)
    path = tmp_path / "prices.jsonl"
    with pytest.raises(
        KeyboardInterrupt, match=r"kept in .*prices.jsonl, and the same call"
    ) as stopped:
        lkm.discover(small_table(), ledger=path, **options)  # type: ignore[arg-type]
    shown = traceback.format_exception(stopped.value)
    assert "".join(shown).count("  File ") == 3, "the caller's line, and two of ours"
    found = lkm.discover(small_table(), ledger=path, **options)  # type: ignore[arg-type]
    assert len(calls) == 3 + 1
    assert len(found.entries) == 3
