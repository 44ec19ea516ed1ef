"""Forecasts divided among components: parts add up, and are what linear algebra says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from small import agreed, made_by_hand, small_table

from lkm_gpflow.discovery.keywords import Averaging
from lkm_gpflow.explain.attribution import (
    AUTOREGRESSION,
    DISAGREEMENT,
    LEVEL,
    NOISE,
    WALKS,
    attribute,
    folded,
    shares,
)
from lkm_gpflow.sharing.consensus import OTHERS


@pytest.mark.parametrize("averaging", ["stacked", "tempered", "none"])
@pytest.mark.parametrize("fixture", ["small_found", "disagreeing"])
def test_parts_add_up_to_the_forecast(
    averaging: Averaging, fixture: str, request: pytest.FixtureRequest
) -> None:
    found = replace(request.getfixturevalue(fixture), averaging=averaging)
    parts, forecast = attribute(found, 7), found.forecast(7)
    assert parts.index.equals(forecast.index)
    np.testing.assert_allclose(parts["mean"].sum(axis=1), forecast["mean"], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(
        parts["variance"].sum(axis=1), forecast["sd"] ** 2, rtol=1e-8, atol=1e-12
    )
    for moment in ("mean", "variance"):
        told = shares(parts, moment)
        np.testing.assert_allclose(told.sum(axis=1), 1.0, rtol=1e-8)
        assert told.to_numpy().min() >= 0.0
    known = {*found.names, OTHERS, WALKS, AUTOREGRESSION, NOISE, DISAGREEMENT}
    assert set(parts["variance"].columns) <= known
    assert (WALKS in parts["variance"]) == any("walk" in m.kind for m in found.ensemble.members)
    small = folded(parts)
    np.testing.assert_allclose(small["variance"].sum(axis=1), forecast["sd"] ** 2, rtol=1e-8)
    assert (DISAGREEMENT in parts["variance"]) == (len(found.ensemble.members) > 1)


def test_variance_goes_to_components_by_their_covariance_with_the_whole() -> None:
    t = np.arange(30.0)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": np.sin(t / 4) + 0.1 * t, "b": rng.normal(size=30).cumsum()}, index=t)
    found = made_by_hand(
        frame, ["0.7 x SE(lengthscale=5)", "0.002 x LIN(location=10)"], [[1, 1], [1, 1]]
    )
    x, new = t / 29.0, np.array([30.0, 33.0]) / 29.0
    scale = frame.std(ddof=0).to_numpy()

    def covariances(s: np.ndarray, u: np.ndarray) -> list[np.ndarray]:
        r, l = s[:, None] - u[None, :], 5.0 / 29.0
        line = 0.002 * 29.0**2 * np.outer(s - 10.0 / 29.0, u - 10.0 / 29.0)
        return [0.7 * np.exp(-0.5 * (r / l) ** 2), line]

    V = sum(covariances(x, x)) + 0.05 * np.eye(30)
    cross, prior = covariances(new, x), covariances(new, new)
    table = attribute(found, pd.Index([30.0, 33.0]))
    for n, series in enumerate("ab"):
        y = ((frame[series] - frame[series].mean()) / scale[n]).to_numpy()
        for k, name in enumerate(["SE", "LIN"]):
            mean = cross[k] @ np.linalg.solve(V, y)
            with_whole = np.diag(prior[k]) - np.diag(cross[k] @ np.linalg.solve(V, sum(cross).T))
            got = table.loc[series]
            np.testing.assert_allclose(got["mean", name], scale[n] * mean, rtol=1e-6)
            np.testing.assert_allclose(got["variance", name], scale[n] ** 2 * with_whole, rtol=1e-5)
        np.testing.assert_allclose(table.loc[series]["variance", NOISE], 0.05 * scale[n] ** 2)
        np.testing.assert_allclose(table.loc[series]["mean", LEVEL], frame[series].mean())


def test_constants_belong_to_the_level_where_fits_are_averaged() -> None:
    """Of one fit alone they are a component as any other."""
    frame = pd.DataFrame({"a": np.arange(30.0) ** 2})
    one = made_by_hand(frame, ["2 x C", "0.7 x SE(lengthscale=9)"], [[1, 1]])
    x = np.arange(30.0)
    V = 2.0 + 0.7 * np.exp(-0.5 * ((x[:, None] - x) / 9.0) ** 2) + 0.05 * np.eye(30)
    location, scale = frame["a"].mean(), frame["a"].std(ddof=0)
    constant = scale * 2.0 * np.linalg.solve(V, (frame["a"] - location) / scale).sum()
    assert abs(constant) > 0.1 * scale
    alone = attribute(one, 2)["mean"]
    np.testing.assert_allclose(alone["C"], constant, rtol=1e-6)
    np.testing.assert_allclose(alone[LEVEL], location)
    averaged = attribute(agreed(frame, [(1.0, ["2 x C", "0.7 x SE(lengthscale=9)"], [[1, 1]])]), 2)
    assert "C" not in averaged["mean"]
    assert "C" in averaged["variance"]


def test_parts_of_logarithms_are_in_the_units_of_the_series() -> None:
    """They add up, in the proportions of the logarithms; the level has what is no departure."""
    frame = np.exp(0.3 * small_table())
    kernels, Z = ["0.6 x SE(lengthscale=60)", "0.4 x SE(lengthscale=15)"], [[1, 0], [1, 1], [0, 1]]
    found = made_by_hand(frame, kernels, Z, transform={"a": "log", "b": "log"})
    plain = made_by_hand(np.log(frame).assign(c=frame["c"]), kernels, Z)
    parts, of_logs, forecast = attribute(found, 6), attribute(plain, 6), found.forecast(6)
    np.testing.assert_allclose(parts["mean"].sum(axis=1), forecast["mean"])
    np.testing.assert_allclose(parts["variance"].sum(axis=1), forecast["sd"] ** 2)
    pd.testing.assert_frame_equal(parts.loc["c"], of_logs.loc["c"])
    own, logs = (each.loc["b"] for each in (parts, of_logs))
    pd.testing.assert_series_equal(
        own["variance", "SE (1)"] / own["variance", "SE (2)"],
        logs["variance", "SE (1)"] / logs["variance", "SE (2)"],
    )
    departure = np.exp(logs["mean"].sum(axis=1)) - np.exp(logs["mean", LEVEL])
    np.testing.assert_allclose(own["mean"].drop(columns=LEVEL).sum(axis=1), departure)
    share = logs["mean", "SE (1)"] / logs["mean"].drop(columns=LEVEL).sum(axis=1)
    np.testing.assert_allclose(own["mean", "SE (1)"], share * departure)
    for moment in ("mean", "variance"):
        np.testing.assert_allclose(shares(parts, moment).sum(axis=1), 1.0)
