"""The linear model of coregionalisation: exact, masked, chosen by BIC, and useful across series."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from scipy.stats import multivariate_normal, norm

from lkm_gpflow.comparators.independent import IndependentGP
from lkm_gpflow.comparators.lmc import LMC, CoregionalisedGPR, CoregionalisedTerm
from lkm_gpflow.comparators.naive import LastValue
from lkm_gpflow.comparators.stacked import stacked_log_density
from lkm_gpflow.data.observations import Observations
from lkm_gpflow.kernels.component import to_kernel
from lkm_gpflow.kernels.grammar import parse

SE, WALK = "1 x SE(lengthscale=0.3)", "1 x RW(start=-1)"
NOISE = np.array([0.1, 0.2, 0.05])


def term(expression: str, W: np.ndarray, kappa: np.ndarray) -> CoregionalisedTerm:
    return CoregionalisedTerm(to_kernel(parse(expression)), W, kappa)


def random_terms(
    expressions: Sequence[str], num_series: int, rank: int, seed: int = 0
) -> list[CoregionalisedTerm]:
    rng = np.random.default_rng(seed)
    return [
        term(e, rng.normal(size=(num_series, rank)), rng.uniform(0.1, 1.0, num_series))
        for e in expressions
    ]


def model_of(observations: Observations, terms: Sequence[CoregionalisedTerm]) -> CoregionalisedGPR:
    model = CoregionalisedGPR(observations, terms)
    model.likelihood.variance.variance.assign(NOISE[: observations.num_series])
    return model


def random_observations(num_series: int, num_times: int, missing: float = 0.0) -> Observations:
    rng = np.random.default_rng(1)
    mask = (rng.uniform(size=(num_series, num_times)) >= missing).astype(float)
    x = np.sort(rng.uniform(size=num_times))
    return Observations(x, mask * rng.normal(size=mask.shape), mask)


def B_of(one: CoregionalisedTerm) -> np.ndarray:
    W = one.coregion.W.numpy()
    return W @ W.T + np.diag(one.coregion.kappa.numpy())


def se(x: np.ndarray, x2: np.ndarray) -> np.ndarray:
    return np.exp(-0.5 * (x[:, None] - x2[None, :]) ** 2 / 0.3**2)


def walk(x: np.ndarray, x2: np.ndarray) -> np.ndarray:
    return np.minimum.outer(x, x2) + 1.0


def test_unequal_times_and_gaps_leave_rows_out() -> None:
    observations = random_observations(3, 14, missing=0.4)
    terms = random_terms([SE, WALK], 3, rank=1)
    model = model_of(observations, terms)
    B_se, B_walk = map(B_of, terms)
    series, row = np.nonzero(observations.mask)
    x, y = observations.x[row], observations.Y[series, row]

    def covariance(x: np.ndarray, i: np.ndarray, x2: np.ndarray, j: np.ndarray) -> np.ndarray:
        both = np.ix_(i, j)
        return B_se[both] * se(x, x2) + B_walk[both] * walk(x, x2)

    V = covariance(x, series, x, series) + np.diag(NOISE[series])
    expected = multivariate_normal.logpdf(y, cov=V)
    assert float(model.log_marginal_likelihood()) == pytest.approx(expected, rel=1e-10)

    new, which = np.array([1.2]), np.array([2])
    cross = covariance(new, which, x, series)
    own = covariance(new, which, new, which) - cross @ np.linalg.solve(V, cross.T)
    mean, variance = model.predict_series(new)
    np.testing.assert_allclose(mean[0, 2], cross @ np.linalg.solve(V, y), rtol=1e-8)
    np.testing.assert_allclose(variance[0, 2], own + NOISE[2], rtol=1e-8)


def test_a_covariance_that_is_not_positive_definite_has_no_density() -> None:
    V = tf.Variable([[1.0, 2.0], [2.0, 1.0]], dtype=tf.float64)
    with tf.GradientTape() as tape:
        value = stacked_log_density(V, tf.zeros(2, tf.float64), tf.zeros(2, tf.float64))
    assert np.isnan(value)
    assert np.isnan(tape.gradient(value, V)).all()


@pytest.mark.parametrize(
    ("num_series", "rank"), [(3, 0), (1, 1), (2, 1), (3, 1), (3, 3), (4, 2), (5, 2), (6, 1), (6, 3)]
)
def test_free_numbers_are_the_directions_in_which_the_coregionalisation_moves(
    num_series: int, rank: int
) -> None:
    (one,) = random_terms(["1 x PER(period=0.3, lengthscale=1)"], num_series, rank)
    variables = one.coregion.trainable_variables
    with tf.GradientTape() as tape:
        B = tf.reshape(one.coregion.output_covariance(), [-1])
    jacobian = np.hstack(
        [
            np.reshape(part, (num_series**2, int(np.prod(variable.shape))))
            for part, variable in zip(tape.jacobian(B, variables), variables, strict=True)
        ]
    )
    assert one.num_free == np.linalg.matrix_rank(jacobian, tol=1e-8) + 2  # period, lengthscale


def test_bic() -> None:
    observations = random_observations(3, 14, missing=0.4)
    model = model_of(observations, random_terms([SE, WALK], 3, rank=1))
    # Both B are full symmetric matrices of 3 x 3; a lengthscale; three noise variances.
    expected = -2.0 * model.log_marginal_likelihood() + (6 + 6 + 1 + 3) * np.log(
        observations.mask.sum()
    )
    assert model.bic() == pytest.approx(float(expected))


def planted(W: np.ndarray, num_times: int, lengthscale: float, seed: int) -> np.ndarray:
    """Draw series, [num_times, N], from the model with one smooth kernel, and small noise."""
    rng = np.random.default_rng(seed)
    x = np.linspace(0.0, 1.0, num_times)
    K = np.exp(-0.5 * np.subtract.outer(x, x) ** 2 / lengthscale**2) + 1e-8 * np.eye(num_times)
    latent = np.linalg.cholesky(K) @ rng.normal(size=(num_times, W.shape[1]))
    return latent @ W.T + 0.05 * rng.normal(size=(num_times, len(W)))


ONE_FACTOR = np.array([[1.0], [-0.8], [1.2], [0.9], [1.1]])
TWO_FACTORS = np.array([[1.0, 0.1], [-0.2, 1.0], [0.8, -0.7], [0.5, 0.9], [-0.9, 0.6]])
SMOOTH = LMC(kernels=(("SE",),), restarts=2, max_iterations=60)


@pytest.mark.parametrize("W", [ONE_FACTOR, TWO_FACTORS])
def test_the_planted_rank_is_chosen(W: np.ndarray) -> None:
    Y = planted(W, 50, 0.06, seed=3)
    Y = (Y - Y.mean(axis=0)) / Y.std(axis=0)
    observations = Observations(np.linspace(0.0, 1.0, 50), Y.T.copy(), np.ones(Y.T.shape))
    model = SMOOTH.learn(observations, seed=0)
    one, _ = model.terms
    assert one.coregion.W.shape[1] == W.shape[1]
    assert one.base.factors[0].values[0].numpy() == pytest.approx(0.06, rel=0.2)


@pytest.mark.slow
def test_a_series_is_filled_from_its_companions() -> None:
    """The last third of one series is missing: what others know tells it."""
    values = planted(ONE_FACTOR[:3], 60, 0.08, seed=0)
    truth = values[40:, 0].copy()
    values[40:, 0] = np.nan
    frame = pd.DataFrame(values, columns=["a", "b", "c"])
    missing = pd.Index(np.arange(40, 60))

    def scores(forecast: pd.DataFrame) -> tuple[float, float]:
        own = forecast.loc["a"]
        log_density = norm.logpdf(truth, own["mean"], own["sd"])
        return float(np.sqrt(np.mean((truth - own["mean"]) ** 2))), -float(log_density.mean())

    rmse, mnlp = scores(SMOOTH.fit(frame, seed=0).forecast(missing))
    alone = IndependentGP(components=("SE",), restarts=3).fit(frame, seed=0).forecast(missing)
    last = LastValue().fit(frame[:40], seed=0).forecast(missing)
    for other_rmse, other_mnlp in (scores(alone), scores(last)):
        assert rmse < 0.2 * other_rmse
        assert mnlp < other_mnlp - 1.0
