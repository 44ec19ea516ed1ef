"""Predictions of fits by NumPy: the same as those of the model in TensorFlow."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lkm_gpflow.data.observations import Observations
from lkm_gpflow.fit.fits import Fit, FitSettings, Relaxed
from lkm_gpflow.forecast import by_arrays, predictor
from lkm_gpflow.forecast.by_arrays import ByArrays
from lkm_gpflow.forecast.by_model import ByModel, to_model
from lkm_gpflow.forecast.predictor import Predictor
from lkm_gpflow.forecast.predictors import Predictors
from lkm_gpflow.gp.likelihoods import GaussianNoise, ScaledNoise, SeriesLikelihood
from lkm_gpflow.kernels.grammar import parse

KERNELS = (
    "0.8 x SE(lengthscale=0.1)",
    "0.5 x PER(period=0.25,lengthscale=0.8)",
    "0.3 x WN",
    "0.4 x RW(start=-0.05)",
    "0.6 x LIN(location=0.4) x SE(lengthscale=0.6)",
)
SUMS = np.array([[1, 1, 1, 1, 1], [1, 0, 0, 0, 0], [0, 1, 0, 1, 0], [0, 0, 0, 0, 0.0]])
LIKELIHOODS = (GaussianNoise(), ScaledNoise())


def data(num_series: int = 4, num_times: int = 25, gaps: bool = True) -> Observations:
    """Series of different gaps, on times that are not regular."""
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(size=num_times))
    Y = np.sin(25.0 * x) * rng.normal(size=(num_series, 1)) + 0.5 * rng.normal(size=(num_series, 1))
    Y += 0.4 * rng.normal(size=Y.shape)
    mask = np.ones_like(Y)
    if gaps:
        mask[0, 3:7] = mask[2, ::4] = 0.0
    return Observations(x, Y * mask, mask)


def a_fit(num_series: int = 4) -> Fit:
    """A fit by hand: rows of Z that the data do not agree with, so that several weigh something."""
    rng = np.random.default_rng(5)
    K = len(KERNELS)
    Z = (rng.uniform(size=(num_series, K)) < 0.5).astype(np.float64)
    tau = rng.uniform(0.5, 4.0, size=(K, 2))
    noise = rng.uniform(0.02, 0.6, size=num_series)
    products = tuple(parse(name) for name in KERNELS)
    return Fit(products, Z, Z, tau, noise, 0.0, 0.0, 0.0, 0.0)


def settings(likelihood: SeriesLikelihood) -> FitSettings:
    return FitSettings(likelihood=likelihood)


def close(found: NDArray[np.float64], expected: Any) -> None:
    np.testing.assert_allclose(found, np.asarray(expected), rtol=0.0, atol=1e-9)


def times(observations: Observations) -> NDArray[np.float64]:
    """Times after the data, between them, and of them, in no order."""
    return np.concatenate([[1.2, 1.1], observations.x[::3], [0.333, 1.4]])


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("given", [False, True])
def test_sums_are_those_of_the_model(likelihood: SeriesLikelihood, given: bool) -> None:
    o, fit = data(), a_fit()
    model, found = to_model(fit, o, settings(likelihood)), ByArrays(fit, o, settings(likelihood))
    Z, x = fit.Z if given else None, times(o)
    for full_cov in (False, True):
        mean, variance = found.sums(x, SUMS, full_cov=full_cov, Z=Z)
        expected = model.predict_sums(x[:, None], SUMS, full_cov, Z)
        close(mean, expected[0])
        close(variance, expected[1])
    close(found.noise(Z), model.predict_noise(Z))
    close(found.covariances(x), model.component_covariances(x[:, None]))
    assert np.abs(mean).max() > 0.1


def test_no_times_and_no_components() -> None:
    o, fit = data(), a_fit()
    found = ByArrays(fit, o, settings(ScaledNoise()))
    assert found.sums(np.empty(0), SUMS)[0].shape == (4, len(SUMS), 0)
    assert not any(moment.any() for moment in found.sums(o.x, SUMS, Z=np.zeros_like(fit.Z)))


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_new_observations_are_those_of_the_model(likelihood: SeriesLikelihood) -> None:
    o, fit = data(), a_fit()
    x = times(o)
    found = ByArrays(fit, o, settings(likelihood)).observed(x)
    expected = to_model(fit, o, settings(likelihood)).predict_y(x[:, None])
    close(found[0], expected[0])
    close(found[1], expected[1])


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_posterior_is_that_of_the_model(likelihood: SeriesLikelihood) -> None:
    o, fit = data(), a_fit()
    pairs, weights = ByArrays(fit, o, settings(likelihood)).posterior
    model = to_model(fit, o, settings(likelihood))
    rows = model.posterior.configurations(model)
    # The model counts configurations from the other end.
    places = np.lexsort((*np.asarray(rows.rows).T[::-1], np.asarray(rows.series)))
    assert len(weights) > len(fit.Z)
    np.testing.assert_array_equal(pairs.series, np.asarray(rows.series)[places])
    np.testing.assert_array_equal(pairs.configurations, np.asarray(rows.rows)[places])
    close(weights, np.asarray(rows.weights)[places])


def test_many_times_go_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    o, fit, x = data(), a_fit(), np.linspace(0.0, 1.5, 40)
    whole = ByArrays(fit, o, settings(ScaledNoise())).sums(x, SUMS)
    monkeypatch.setattr(by_arrays, "_AT_A_TIME", 7)
    parts = ByArrays(fit, o, settings(ScaledNoise())).sums(x, SUMS)
    close(parts[0], whole[0])
    close(parts[1], whole[1])


@pytest.mark.parametrize("kind", [ByArrays, ByModel])
def test_many_series_go_in_parts(kind: type[Predictor], monkeypatch: pytest.MonkeyPatch) -> None:
    o, fit = data(7), a_fit(7)
    x = times(o)
    whole = kind(fit, o, settings(ScaledNoise())).observed(x)
    monkeypatch.setattr(predictor, "_AT_A_TIME", 3)
    parts = kind(fit, o, settings(ScaledNoise()))
    close(parts.observed(x)[0], whole[0])
    close(parts.observed(x)[1], whole[1])
    assert [len(part.fit.Z) for part in parts._in_parts()] == [3, 3, 1]


def test_components_explain_as_in_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    o, fit = data(6), a_fit(6)
    mean, _ = to_model(fit, o, settings(GaussianNoise())).predict_components(o.x[:, None])
    by_series = np.asarray(mean).var(axis=1)  # [K, N]
    close(ByArrays(fit, o, settings(GaussianNoise())).explained(), by_series.mean(axis=1))
    monkeypatch.setattr(predictor, "_JUDGES", 3)
    close(ByArrays(fit, o, settings(GaussianNoise())).explained(), by_series[:, ::2].mean(axis=1))
    ordered = Predictors(o, settings(GaussianNoise())).best_first(fit)
    explained = ByArrays(ordered, o, settings(GaussianNoise())).explained()
    assert np.all(np.diff(explained) <= 0.0)
    assert set(ordered.kernels) == set(fit.kernels)


def test_relaxed_fits_are_asked_by_their_model() -> None:
    o = data()
    fit = a_fit()
    relaxed = replace(fit, relaxed=Relaxed(np.where(fit.Z > 0.0, 3.0, -3.0), 0.5, 3))
    known = Predictors(o, settings(GaussianNoise()))
    found = known.of(relaxed)
    assert isinstance(found, ByModel)
    assert known.of(relaxed) is found
    model = to_model(relaxed, o, settings(GaussianNoise()))
    x = times(o)
    close(found.observed(x)[0], model.predict_y(x[:, None])[0])
    close(found.sums(x, SUMS)[1], model.predict_sums(x[:, None], SUMS, False, None)[1])
    again = pickle.loads(pickle.dumps(known)).of(relaxed)
    close(again.observed(x)[0], found.observed(x)[0])
    assert len(found.posterior[1]) == len(np.asarray(model.posterior.configurations(model).weights))


def test_covariance_that_is_not_positive_definite_has_no_numbers() -> None:
    o, fit = data(gaps=False), a_fit()
    broken = replace(fit, noise_variance=np.array([-5.0, 0.1, 0.1, 0.1]))
    mean, variance = ByArrays(broken, o, settings(GaussianNoise())).sums(
        times(o), SUMS[:1], Z=fit.Z
    )
    assert np.all(np.isnan(mean[0]))
    assert np.all(np.isfinite(mean[1:]))
    assert np.all(np.isfinite(variance[1:]))
