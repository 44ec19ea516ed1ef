"""The main job: a table in; components, probabilities and a forecast out; saved and loaded."""

from __future__ import annotations

import contextlib
import datetime
import json
import pickle
import warnings
import zipfile
import zoneinfo
from dataclasses import replace
from pathlib import Path

import dateutil.tz
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from small import made_by_hand, numbers, small_table, without_seconds

import lkm_gpflow as lkm
from lkm_gpflow.data.transforms import Transform
from lkm_gpflow.forecast.by_model import to_model
from lkm_gpflow.gp.likelihoods import ScaledNoise


@pytest.fixture(scope="module")
def found() -> lkm.Discovery:
    return lkm.discover(
        small_table(), bases=("LIN", "SE", "PER"), depth=1, restarts=2, progress=False
    )


def test_tables_fit_together(found: lkm.Discovery) -> None:
    names = found.names
    assert len(set(names)) == len(names) == len(found.kernels)
    for frame in (found.probabilities, found.structure):
        assert list(frame.index) == ["a", "b", "c"]
        assert list(frame.columns) == names
    assert found.probabilities.to_numpy().min() >= 0.0
    assert found.probabilities.to_numpy().max() <= 1.0
    assert set(np.unique(found.structure)) <= {0, 1}
    assert found.fit.criterion == found.ledger["criterion"].min()
    assert found.bic == found.ledger.loc[found.ledger["criterion"].idxmin(), "bic"]
    best = found.best
    assert (best.bic, best.kernels, best.best) == (found.bic, found.kernels, best)


def test_kernels_are_in_the_units_of_the_data(found: lkm.Discovery) -> None:
    """The wave of the table has a period of 2 pi / 20 of the span of 39 weeks."""
    periods = [
        factor.values[0]
        for kernel in found.kernels
        for factor in kernel.factors
        if factor.base.name == "PER"
    ]
    assert any(p is not None and p == pytest.approx(39 * 7 * np.pi / 10, rel=0.1) for p in periods)


def test_forecast_goes_on_by_weeks(found: lkm.Discovery) -> None:
    forecast = found.forecast(4)
    times = forecast.loc["a"].index
    assert list(times) == list(pd.date_range("2021-10-10", periods=4, freq="W"))
    assert (forecast["lower"] < forecast["mean"]).all()
    assert (forecast["mean"] < forecast["upper"]).all()
    half = (forecast["upper"] - forecast["mean"]) / forecast["sd"]
    np.testing.assert_allclose(half, stats.t.ppf(0.95, 6.0) / stats.t.std(6.0), rtol=1e-6)
    given = found.forecast(times, level=0.5)
    pd.testing.assert_series_equal(given["mean"], forecast["mean"], check_freq=False)


def test_intervals_widen_for_a_walk_and_not_for_a_wave() -> None:
    sds = [
        made_by_hand(small_table(), [kernel], [[1]] * 3).forecast(30)["sd"].loc["a"]
        for kernel in ("1 x RW(start=-7)", "1 x PER(period=84, lengthscale=1)")
    ]
    assert sds[0].is_monotonic_increasing
    assert sds[0].iloc[-1] > 2.0 * sds[0].iloc[0]
    assert sds[1].max() < 1.1 * sds[1].min()


def test_forecast_in_units_of_the_series() -> None:
    """Another unit of a series changes its forecast by that unit and nothing else."""
    options = {"bases": ("LIN", "SE"), "depth": 0, "restarts": 1, "progress": False}
    table = small_table()
    changed = table * [1.0, 1000.0, 1.0] + [0.0, 5.0, 0.0]
    one = lkm.discover(table, **options).forecast(3)
    other = lkm.discover(changed, **options).forecast(3)
    np.testing.assert_allclose(other.loc["b", "mean"], one.loc["b", "mean"] * 1000 + 5, rtol=1e-4)
    np.testing.assert_allclose(other.loc["b", "sd"], one.loc["b", "sd"] * 1000, rtol=1e-4)


def test_components_add_up(found: lkm.Discovery) -> None:
    """To what the best fit says."""
    parts = found.components("b", horizon=3)
    assert len(parts) == 43
    n = 1
    x = found.table.scaled_times(parts.index)
    mean, _ = found.model.predict_f(x[:, None])
    whole = np.asarray(mean)[:, n] * found.table.scale[n]
    total = parts.xs("mean", axis=1, level="moment").sum(axis=1)
    np.testing.assert_allclose(total, whole, atol=1e-8)
    with pytest.raises(ValueError, match="one of the series 'a', 'b' and 'c', got 'd'"):
        found.components("d")


def test_without_averaging_the_best_fit_counts_alone(found: lkm.Discovery) -> None:
    alone = replace(found, averaging="none")
    best = alone.model.predict_y(
        found.table.scaled_times(found.forecast(3).loc["a"].index)[:, None]
    )
    expected = np.asarray(best[0])[:, 1] * found.table.scale[1] + found.table.location[1]
    np.testing.assert_allclose(alone.forecast(3).loc["b", "mean"], expected)
    assert [(m.fit.bic, m.weight) for m in alone.members] == [(found.bic, 1.0)]
    assert sum(member.weight for member in found.members) == pytest.approx(1.0)


def test_model_is_the_fit(found: lkm.Discovery) -> None:
    again = to_model(found.fit, found.table.observations, found.settings.fit)
    assert float(found.model.elbo()) == pytest.approx(float(again.elbo()))
    np.testing.assert_allclose(found.model.probabilities(), found.best.probabilities, atol=1e-6)


@pytest.mark.parametrize("horizon", [0, -2, 1.5, True])
def test_wrong_horizons(found: lkm.Discovery, horizon: object) -> None:
    with pytest.raises(ValueError, match="horizon of 1 to 1000000 steps, got"):
        found.forecast(horizon)  # type: ignore[arg-type]


# --- files ---


def test_saved_and_loaded(found: lkm.Discovery, tmp_path: Path) -> None:
    path = tmp_path / "small.lkm"
    found.save(path)
    back = lkm.load(path)
    pd.testing.assert_frame_equal(back.forecast(3), found.forecast(3), check_freq=False)
    pd.testing.assert_frame_equal(back.probabilities, found.probabilities)
    assert back.kernels == found.kernels
    assert back.settings == found.settings
    assert [(m.weight, m.kind) for m in back.stacked] == [(m.weight, m.kind) for m in found.stacked]
    assert [numbers(m.fit) for m in back.ensemble.members] == [
        numbers(m.fit) for m in found.ensemble.members
    ]
    assert [without_seconds(e) for e in back.entries] == [without_seconds(e) for e in found.entries]


def test_nothing_is_overwritten(found: lkm.Discovery, tmp_path: Path) -> None:
    path = tmp_path / "small.lkm"
    found.save(path)
    with pytest.raises(FileExistsError, match="force"):
        found.save(path)
    found.save(path, force=True)
    assert [p.name for p in tmp_path.iterdir()] == ["small.lkm"]


def saved_and_loaded(frame: pd.DataFrame, path: Path) -> lkm.Discovery:
    """A discovery that nobody discovered, by way of a file."""
    made_by_hand(frame, ["0.6 x SE(lengthscale=60)"], [[1]] * frame.shape[1]).save(path)
    return lkm.load(path)


@pytest.mark.parametrize(
    "names", [[1, 2, 3], [1.5, "b", 2], list(np.arange(3)), ["a", ("b", 1), ("b", ("c", 2.0))]],
    ids=str,
)  # fmt: skip
def test_names_keep_their_kind(names: list[object], tmp_path: Path) -> None:
    frame = small_table().set_axis(pd.Index(names, tupleize_cols=False), axis=1)
    back = saved_and_loaded(frame, tmp_path / "names.lkm")
    assert list(back.table.frame.columns) == names
    assert [type(name) for name in back.table.frame.columns] == [type(n) for n in frame.columns]
    assert len(back.forecast(2).loc[names[0]]) == 2


def test_the_name_of_the_columns_survives(tmp_path: Path) -> None:
    frame = small_table().rename_axis(columns="metal")
    assert saved_and_loaded(frame, tmp_path / "named.lkm").table.frame.columns.name == "metal"
    for axis, cure in (("columns", 'columns="series"'), ("index", 'index="time"')):
        bad = small_table().rename_axis(**{axis: pd.Timestamp("2020")})
        with pytest.raises(ValueError, match=rf"rename it .* frame.rename_axis\({cure}\)"):
            saved_and_loaded(bad, tmp_path / "bad.lkm")


def test_discoveries_are_told_apart_by_identity() -> None:
    one, other = (
        made_by_hand(small_table(), ["1 x SE(lengthscale=30)"], [[1]] * 3) for _ in range(2)
    )
    assert one == one
    assert one != other
    assert len({one, other, one.couple(), one.couple()}) == 4


def test_times_before_the_table_are_too_certain_for_walks() -> None:
    early = pd.date_range("2019-01-06", periods=3, freq="W")
    walk = made_by_hand(small_table(), ["1 x RW(start=-7)"], [[1]] * 3)
    with pytest.warns(UserWarning, match="before .* first time, 2021-01-03.* too narrow"):
        walk.predict(early)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        walk.predict(walk.table.frame.index)
        made_by_hand(small_table(), ["1 x SE(lengthscale=30)"], [[1]] * 3).predict(early)


def test_gaps_at_the_beginning_are_too_certain_for_walks() -> None:
    late, holed = small_table(), small_table()
    late.iloc[:4, late.columns.get_loc("b")] = np.nan
    holed.iloc[4:8, holed.columns.get_loc("b")] = np.nan
    walk, smooth = "1 x RW(start=-7)", "1 x SE(lengthscale=30)"
    with pytest.warns(UserWarning, match="intervals of 'b' before .* are too narrow"):
        made_by_hand(late, [walk], [[1]] * 3).fill()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made_by_hand(late, [smooth], [[1]] * 3).fill()
        made_by_hand(holed, [walk], [[1]] * 3).fill()
        made_by_hand(late, [walk, "1 x C"], [[1, 1]] * 3).fill()


@pytest.mark.parametrize("weight", [1.0, -2.0])
@pytest.mark.parametrize("transform", ["none", "log"])
def test_the_sum_of_one_series_is_its_forecast(weight: float, transform: Transform) -> None:
    """Also where scales are integrated out and intervals are those of Student's t."""
    found = made_by_hand(
        np.exp(small_table()), ["1 x SE(lengthscale=30)"], [[1]] * 3, transform=transform
    )
    settings = replace(found.settings, fit=replace(found.settings.fit, likelihood=ScaledNoise()))
    found = replace(found, settings=settings)
    told, own = found.aggregate(3, {"b": weight, "a": 0.0}), found.forecast(3).loc["b"]
    ends = ("lower", "upper") if weight > 0.0 else ("upper", "lower")
    for column, expected in zip(told, ("mean", "sd", *ends), strict=True):
        factor = abs(weight) if column == "sd" else weight
        np.testing.assert_allclose(told[column], factor * own[expected])
    assert list(told.index) == list(own.index)
    assert np.all(told["lower"] < told["upper"])


def test_names_that_no_file_can_keep_are_refused_before_it_is_written(tmp_path: Path) -> None:
    frame = small_table().set_axis(pd.date_range("2020", periods=3), axis=1)
    with pytest.raises(ValueError, match=r"texts, numbers or tuples of them, got Timestamp"):
        saved_and_loaded(frame, tmp_path / "names.lkm")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "index",
    [
        pd.Index(np.arange(40), name=5),
        pd.Index(np.arange(40, dtype=np.uint8), name=("t", 1)),
        pd.Index(np.arange(40), dtype="Int64"),
        pd.Index(np.arange(40) * 0.5),
    ],
    ids=lambda index: str(index.dtype),
)
def test_numeric_indices_keep_their_kind(index: pd.Index, tmp_path: Path) -> None:
    back = saved_and_loaded(small_table().set_axis(index), tmp_path / "numbers.lkm")
    assert back.table.frame.index.equals(index.astype(np.dtype(f"{index.dtype.kind}8")))
    assert back.table.frame.index.dtype.kind == index.dtype.kind
    assert back.table.frame.index.name == index.name


@pytest.mark.parametrize(
    "zone",
    [
        "Asia/Seoul",
        zoneinfo.ZoneInfo("Europe/Berlin"),
        dateutil.tz.tzutc(),
        dateutil.tz.tzoffset(None, 3600),
        datetime.timezone(datetime.timedelta(minutes=90)),
        datetime.timezone(datetime.timedelta(hours=1), "XYZ"),
        datetime.timezone(datetime.timedelta(hours=1), "EST"),  # which pandas takes for New York's
        datetime.timezone(datetime.timedelta(hours=1), "CET"),  # which has a summer time
    ],
    ids=repr,
)
def test_time_zones_survive(zone: datetime.tzinfo | str, tmp_path: Path) -> None:
    frame = small_table().tz_localize(zone)
    back = saved_and_loaded(frame, tmp_path / "zoned.lkm").table
    assert list(back.frame.index) == list(frame.index)
    told, expected = back.after(40), made_by_hand(frame, [], [[]] * 3).table.after(40)
    assert list(told.tz_localize(None)) == list(expected.tz_localize(None))


@pytest.mark.skipif(pd.__version__ >= "3", reason="pandas 3 has no such times")
def test_time_zones_without_a_name_are_refused_before_a_file_is_written(tmp_path: Path) -> None:
    frame = small_table().tz_localize(dateutil.tz.gettz("Europe/Berlin"))
    with pytest.raises(ValueError, match=r"time zone with a name .*got tzfile.*tz_convert"):
        saved_and_loaded(frame, tmp_path / "zoned.lkm")
    assert not list(tmp_path.iterdir())


def test_what_was_selected_survives(found: lkm.Discovery, tmp_path: Path) -> None:
    path = tmp_path / "some.lkm"
    for some in (found.select(["c", "a"]), found.select(["b", "a"]).select(["a"])):
        for one in (some, some.best):
            one.save(path, force=True)
            back = lkm.load(path)
            assert back.names == one.names
            assert back.kernels == one.kernels
            pd.testing.assert_frame_equal(back.probabilities, one.probabilities)
            pd.testing.assert_frame_equal(back.structure, one.structure)
            pd.testing.assert_frame_equal(back.hyperparameters(), one.hyperparameters())
            pd.testing.assert_frame_equal(back.forecast(3), one.forecast(3), check_freq=False)
            pd.testing.assert_frame_equal(
                back.components("a"), one.components("a"), check_freq=False
            )


class _Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (print, ("code ran",))


def test_damaged_and_foreign_files(
    found: lkm.Discovery, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = tmp_path / "good.lkm"
    found.save(good)
    whole = good.read_bytes()
    cases = {"half": whole[: len(whole) // 2], "empty": b"", "text": b"date,a\n1,2\n"}
    cases["pickle"] = pickle.dumps(_Evil())
    for place in range(0, len(whole), len(whole) // 20):  # some of them are those of zlib
        changed = whole[:place] + bytes(8) + whole[place + 8 :]
        (tmp_path / "changed.lkm").write_bytes(changed)
        with contextlib.suppress(ValueError):
            lkm.load(tmp_path / "changed.lkm")
    for name, content in cases.items():
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(ValueError, match="damaged or another sort of file"):
            lkm.load(path)
    with pytest.raises(FileNotFoundError):
        lkm.load(tmp_path / "absent")
    assert "code ran" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 99}, "version 1 of the format, got 99"),
        ({"format": "other"}, "expected the format"),
        ({"series": ["a"]}, "do not fit together"),
        ({"entries": [{}]}, "do not fit together"),
    ],
)
def test_changed_contents(
    found: lkm.Discovery, tmp_path: Path, change: dict[str, object], message: str
) -> None:
    good, bad = tmp_path / "good.lkm", tmp_path / "bad.lkm"
    found.save(good)
    with zipfile.ZipFile(good) as source, zipfile.ZipFile(bad, "w") as target:
        document = json.loads(source.read("discovery.json"))
        target.writestr("discovery.json", json.dumps({**document, **change}))
        target.writestr("data.npz", source.read("data.npz"))
    with pytest.raises(ValueError, match=message):
        lkm.load(bad)
