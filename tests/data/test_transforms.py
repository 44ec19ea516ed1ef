"""Transformations of series: the way back, moments by quadrature and draws, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from small import small_table

from lkm_gpflow.data.tables import Table
from lkm_gpflow.data.transforms import Transforms
from lkm_gpflow.forecast.mixture import mixture_moments

BOTH = Transforms(np.array([True, False]))


def positive_table() -> pd.DataFrame:
    return small_table().assign(a=lambda frame: np.exp(frame["a"]))


def test_moments_are_those_of_the_exponential_of_a_normal() -> None:
    mean, variance = np.array([[0.3, 0.3], [-1.0, 2.0]]), np.array([[0.5, 0.5], [0.04, 1.0]])
    told = BOTH.moments(mean, variance)
    for row in range(2):
        density = norm(mean[row, 0], np.sqrt(variance[row, 0])).pdf
        first, second = (
            quad(lambda x, p=p, f=density: np.exp(p * x) * f(x), -15.0, 15.0, limit=200)[0]
            for p in (1, 2)
        )
        assert told[0][row, 0] == pytest.approx(first)
        assert told[1][row, 0] == pytest.approx(second - first**2)
    np.testing.assert_array_equal(told[0][:, 1], mean[:, 1])
    np.testing.assert_array_equal(told[1][:, 1], variance[:, 1])


def test_moments_beyond_all_numbers_are_infinite() -> None:
    mean, variance = BOTH.moments(np.array([[700.0, 1.0]]), np.array([[300.0, 2.0]]))
    np.testing.assert_array_equal(mean, [[np.inf, 1.0]])
    np.testing.assert_array_equal(variance, [[np.inf, 2.0]])
    small, _ = BOTH.moments(np.array([[-900.0, 1.0]]), np.array([[1.0, 2.0]]))
    np.testing.assert_array_equal(small, [[0.0, 1.0]])
    of_two = mixture_moments([(0.5, mean, variance), (0.5, np.zeros((1, 2)), np.ones((1, 2)))])
    np.testing.assert_array_equal(of_two[0], [[np.inf, 0.5]])
    np.testing.assert_array_equal(of_two[1], [[np.inf, 1.75]])


def test_joint_moments_by_draws() -> None:
    """Two logarithms and one series as it is, all correlated."""
    transforms = Transforms(np.array([True, False, True]))
    root = np.array([[0.4, 0.0, 0.0], [0.5, 0.8, 0.0], [-0.2, 0.1, 0.3]])
    mean, count = np.array([0.2, 1.0, -0.5]), 400_000
    draws = transforms.back(mean + np.random.default_rng(0).standard_normal((count, 3)) @ root.T)
    centre, covariance = transforms.joint_moments(mean, root @ root.T)
    error = draws.std(axis=0) / np.sqrt(count)
    assert np.all(np.abs(draws.mean(axis=0) - centre) < 4.0 * error)
    apart = draws - draws.mean(axis=0)
    for i in range(3):
        for j in range(3):
            product = apart[:, i] * apart[:, j]
            tolerance = 4.0 * product.std() / np.sqrt(count)
            assert abs(product.mean() - covariance[i, j]) < tolerance
    marginal = transforms.moments(mean, (root @ root.T).diagonal())
    np.testing.assert_allclose(marginal[0], centre)
    np.testing.assert_allclose(marginal[1], covariance.diagonal())


def test_there_and_back() -> None:
    values = np.array([[1.0, -2.0], [np.nan, 3.0], [1e-300, 0.0]])
    np.testing.assert_allclose(BOTH.back(BOTH.forward(values)), values)
    assert np.isnan(BOTH.forward(np.array([[0.0, 0.0], [-1.0, -1.0]]))[:, 0]).all()


def test_a_table_is_scaled_on_the_modelled_scale() -> None:
    frame = positive_table()
    table, logs = Table.of(frame, {"a": "log"}), frame.assign(a=np.log(frame["a"]))
    np.testing.assert_array_equal(table.observations.Y, Table.of(logs).observations.Y)
    pd.testing.assert_frame_equal(table.frame, frame, check_freq=False, check_index_type=False)
    assert table.transforms.names == ["log", "none", "none"]
    assert table.of_series(np.array([2, 0])).transforms.names == ["none", "log"]
    assert table.transform == {"a": "log", "b": "none", "c": "none"}


def test_logarithms_do_not_depend_on_units() -> None:
    frame = np.exp(small_table())
    scaled = frame * [1e6, 1e-6, 3.0]
    one, other = (Table.of(each, "log").observations for each in (frame, scaled))
    np.testing.assert_allclose(one.Y, other.Y, atol=2e-9)


def test_what_is_not_positive_is_refused_with_its_place() -> None:
    frame = np.exp(small_table())
    frame.iloc[3, 1], frame.iloc[7, 1], frame.iloc[1, 2] = 0.0, -2.5, -1.0
    message = (
        r"transform: series 'b': expected positive numbers for 'log', got 0 at 2021-01-24 00:00:00"
        r", and 1 more of its values are not positive"
    )
    with pytest.raises(ValueError, match=message):
        Table.of(frame, "log")
    with pytest.raises(ValueError, match=r"series 'c': .* got -1 at 2021-01-10 00:00:00: model"):
        Table.of(frame, {"a": "log", "c": "log"})
    assert Table.of(frame, {"a": "log"}).transforms.any


def test_wrong_transforms_are_refused() -> None:
    with pytest.raises(ValueError, match=r"among \('auto', 'none', 'log'\), .*'sqrt'"):
        Table.of(small_table(), "sqrt")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"'none' or 'log' for the series 'a', got 'auto'"):
        Table.of(small_table(), {"a": "auto"})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match=r"expected one of the series 'a', 'b' and 'c', got 'd'"):
        Table.of(small_table(), {"d": "log"})
