"""The prior over Z against sampling, quadrature, enumeration and enclosures."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf
from numpy.typing import ArrayLike, NDArray
from scipy import integrate, stats
from scipy.special import betaln, digamma

from lkm_gpflow.model.ibp import IBP, FiniteIBP, InfiniteIBP

ALPHA = 1.7
TAU = np.array([[2.5, 1.2], [0.8, 3.0], [4.0, 2.0]])
NU = np.array([[0.9, 0.1, 0.5], [0.3, 0.0, 1.0]])
FINITE = FiniteIBP(ALPHA, 3)
INFINITE = InfiniteIBP(ALPHA, 3)
# Enough terms that the truncation is far below a Monte Carlo error: at TAU, 1000^-1.2 for k = 1.
TAYLOR = InfiniteIBP(ALPHA, 3, bound="taylor", taylor_terms=1000)
PRIORS = [FINITE, INFINITE, TAYLOR]


def assert_mean(samples: NDArray[np.float64], expected: ArrayLike) -> None:
    """The mean of independent samples (rows) is within five standard errors of ``expected``."""
    error = samples.std(axis=0) / np.sqrt(len(samples))
    assert np.all(np.abs(samples.mean(axis=0) - np.asarray(expected)) < 5 * error)


def random_tau(num_draws: int, num_components: int, seed: int) -> NDArray[np.float64]:
    """Beta parameters, [num_draws, K, 2], log-uniform over the range that learning visits."""
    rng = np.random.default_rng(seed)
    low, high = np.log([0.3, 0.5]), np.log([20.0, 20.0])
    return np.exp(rng.uniform(low, high, size=(num_draws, num_components, 2)))


def enclose_expected_log_off(
    tau: NDArray[np.float64], num_terms: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Numbers below and above E log(1 - prod_{m<=k} v_m), each [B, K], for tau [B, K, 2].

    Above: R terms of the Taylor series. Below: less a bound on the rest. With T = sum_m tau_m2
    and c = max_m (tau_m1 + tau_m2), the product of moments M_r falls at least like
    M_r <= M_R ((c + R) / (c + r))^T, because 1 - x <= exp(-x) and a sum of 1 / (c + i) is at
    least an integral; so the rest, sum_{r>R} M_r / r, is at most M_R (c + R) / (R T).
    """
    R, (first, second) = num_terms, np.moveaxis(tau, -1, 0)
    r = np.arange(1, R + 1)
    log_moments = betaln(first[..., None] + r, second[..., None]) - betaln(first, second)[..., None]
    products = np.exp(np.cumsum(log_moments, axis=1))  # [B, K, R]
    above = -np.sum(products / r, axis=-1)
    c, T = np.maximum.accumulate(first + second, axis=1), np.cumsum(second, axis=1)
    return above - products[..., -1] * (c + R) / (R * T), above


# Expectations under q


@pytest.fixture(scope="module")
def weights() -> NDArray[np.float64]:
    """Draws of the weights from q, [400000, 3]."""
    return np.random.default_rng(0).beta(TAU[:, 0], TAU[:, 1], size=(400_000, 3))


def probabilities(prior: IBP, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    return weights if prior is FINITE else np.cumprod(weights, axis=1)


@pytest.mark.parametrize("prior", PRIORS)
def test_expected_log_on_is_its_average(prior: IBP, weights: NDArray[np.float64]) -> None:
    assert_mean(np.log(probabilities(prior, weights)), prior.expected_log_on(TAU))


@pytest.mark.parametrize("prior", [FINITE, TAYLOR])
def test_expected_log_off_is_its_average(prior: IBP, weights: NDArray[np.float64]) -> None:
    assert_mean(np.log1p(-probabilities(prior, weights)), prior.expected_log_off(TAU))


@pytest.mark.parametrize("prior", PRIORS)
def test_expected_log_weights_is_its_average(prior: IBP, weights: NDArray[np.float64]) -> None:
    c = ALPHA / 3 if prior is FINITE else ALPHA
    log_density = stats.beta(c, 1).logpdf(weights).sum(axis=1)
    assert_mean(log_density, prior.expected_log_weights(TAU))


@pytest.mark.parametrize("prior", [FINITE, TAYLOR])
def test_expected_log_assignments_is_its_average(prior: IBP, weights: NDArray[np.float64]) -> None:
    pi = probabilities(prior, weights)[:, None, :]
    Z = np.random.default_rng(1).random((len(pi), *NU.shape)) < NU
    log_mass = np.where(Z, np.log(pi), np.log1p(-pi)).sum(axis=(1, 2))
    assert_mean(log_mass, prior.expected_log_assignments(TAU, NU))


@pytest.mark.parametrize("prior", PRIORS)
def test_entropy_is_scipys(prior: IBP) -> None:
    expected = sum(stats.beta(a, b).entropy() for a, b in TAU)
    np.testing.assert_allclose(prior.entropy(TAU), expected, rtol=1e-12)


@pytest.mark.parametrize("prior", PRIORS)
def test_weights_terms_vanish_where_q_is_the_prior(prior: IBP) -> None:
    """E_q log p + H[q] is minus a Kullback-Leibler divergence."""
    tau = np.tile([prior.concentration, 1.0], (3, 1))
    np.testing.assert_allclose(prior.expected_log_weights(tau) + prior.entropy(tau), 0, atol=1e-12)
    assert prior.expected_log_weights(TAU) + prior.entropy(TAU) < 0


# The finite prior: best tau and log p(Z)


def bound(prior: IBP, tau: tf.Tensor, nu: ArrayLike) -> tf.Tensor:
    """The terms of the evidence lower bound that depend on tau."""
    return (
        prior.expected_log_assignments(tau, nu)
        + prior.expected_log_weights(tau)
        + prior.entropy(tau)
    )


def test_bound_with_known_assignments_is_tight_at_best_tau() -> None:
    """For binary Z the posterior of the weights is in the family of q."""
    Z = np.random.default_rng(3).integers(0, 2, size=(5, 3)).astype(float)
    np.testing.assert_allclose(bound(FINITE, FINITE.best_tau(Z), Z), FINITE.log_prob(Z), rtol=1e-12)
    assert bound(FINITE, TAU, Z) < FINITE.log_prob(Z)


@pytest.mark.parametrize("alpha", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("on", range(5))
def test_log_prob_is_its_integral(on: int, alpha: float) -> None:
    N = 4
    Z = (np.arange(N) < on).astype(float)[:, None]

    def likelihood(pi: float) -> float:
        return pi**on * (1 - pi) ** (N - on)

    # The prior density alpha pi^(alpha - 1) can be singular at zero: quad takes it as a weight.
    integral, _ = integrate.quad(likelihood, 0, 1, weight="alg", wvar=(alpha - 1, 0))
    log_prob = FiniteIBP(alpha, 1).log_prob(Z)
    np.testing.assert_allclose(log_prob, np.log(alpha * integral), rtol=1e-8)


# The infinite prior: E log(1 - pi_k)


def test_multinomial_bound_is_jensens_at_its_best_distribution() -> None:
    """Against the formula of Doshi-Velez et al. 2009, entropy and all, and other distributions."""
    first, second, total = digamma(TAU[:, 0]), digamma(TAU[:, 1]), digamma(TAU.sum(axis=1))
    terms = [second[y] + first[:y].sum() - total[: y + 1].sum() for y in range(3)]

    def jensen(q: NDArray[np.float64]) -> float:
        return float(q @ terms + stats.entropy(q))

    optimum = np.exp(terms)
    b = INFINITE.expected_log_off(TAU)[2]
    np.testing.assert_allclose(b, jensen(optimum / optimum.sum()), rtol=1e-12)
    for q in np.random.default_rng(5).dirichlet(np.ones(3), size=50):
        assert jensen(q) < b


def test_enclosure_holds_the_truth(weights: NDArray[np.float64]) -> None:
    """The yardstick of the next two tests, against the exact value and against sampling."""
    tau = random_tau(200, 1, seed=6)
    low, high = enclose_expected_log_off(tau, num_terms=500)
    exact = digamma(tau[..., 1]) - digamma(tau.sum(axis=-1))
    assert np.all(low <= exact + 1e-12)
    assert np.all(exact <= high + 1e-12)
    low, high = enclose_expected_log_off(TAU[None], num_terms=5000)
    np.testing.assert_allclose(low, high, atol=1e-4)
    assert_mean(np.log1p(-np.cumprod(weights, axis=1)), low[0])


def test_multinomial_bound_lies_below_the_truth() -> None:
    tau = random_tau(1000, 4, seed=7)
    bounds = np.stack([InfiniteIBP(ALPHA, 4).expected_log_off(t) for t in tau])
    low, high = enclose_expected_log_off(tau, num_terms=2000)
    gap = (low - bounds)[:, 1:]  # exact for the first stick, tested above
    assert np.all(gap > 0)
    # The yardstick is finer than what it measures, and the bound is not a vacuous one.
    assert np.max((high - low)[:, 1:] / gap) < 0.05
    assert np.median(gap) < 0.2


def test_taylor_series_falls_to_the_truth() -> None:
    low, high = enclose_expected_log_off(TAU[None], num_terms=20_000)
    terms = [1, 10, 100, 1000, 10_000]
    b = np.stack([InfiniteIBP(ALPHA, 3, "taylor", R).expected_log_off(TAU) for R in terms])
    assert np.all(np.diff(b, axis=0) <= 0)
    assert np.all(b >= low - 1e-12)
    np.testing.assert_allclose(b[-1], high[0], atol=1e-4)
    # The excess falls like R^-T; for the first stick T is tau_12.
    exact = digamma(TAU[0, 1]) - digamma(TAU[0].sum())
    excess = b[2:, 0] - exact
    np.testing.assert_allclose(np.log10(excess[:-1] / excess[1:]), TAU[0, 1], atol=0.02)


# Gradients and graphs


@pytest.mark.parametrize("prior", PRIORS)
def test_gradient_is_its_finite_difference(prior: IBP) -> None:
    tau = tf.Variable(TAU)
    with tf.GradientTape() as tape:
        value = tf.function(lambda: bound(prior, tau, NU))()
    gradient = tape.gradient(value, tau).numpy()
    np.testing.assert_allclose(value, bound(prior, TAU, NU), rtol=1e-12)
    for k, i in np.ndindex(TAU.shape):
        shift = np.zeros_like(TAU)
        shift[k, i] = 1e-5
        slope = (bound(prior, TAU + shift, NU) - bound(prior, TAU - shift, NU)) / 2e-5
        np.testing.assert_allclose(gradient[k, i], slope, rtol=1e-6, atol=1e-8)


# Samples


def test_finite_samples_have_the_probabilities_of_log_prob() -> None:
    c, K, N = 0.6, 50_000, 2
    Z = FiniteIBP(c * K, K).sample(N, seed=8).numpy()
    patterns = np.array(list(itertools.product([0.0, 1.0], repeat=N)))
    expected = K * np.exp([FiniteIBP(c, 1).log_prob(p[:, None]) for p in patterns])
    observed = [np.sum(np.all(p == Z.T, axis=1)) for p in patterns]
    assert stats.chisquare(observed, expected).pvalue > 1e-3


def test_infinite_samples_have_the_moments_of_stick_breaking() -> None:
    prior = InfiniteIBP(ALPHA, 4)
    seeds = tf.stack([tf.range(4000), tf.zeros(4000, tf.int32)], axis=1)
    draw = tf.function(lambda seed: prior.sample(2, seed))
    Z = tf.map_fn(draw, seeds, fn_output_signature=tf.float64).numpy()
    k = np.arange(1, 5)
    assert_mean(Z[:, 0], (ALPHA / (ALPHA + 1)) ** k)
    assert_mean(Z[:, 0] * Z[:, 1], (ALPHA / (ALPHA + 2)) ** k)


# Errors


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: FiniteIBP(0.0, 3), "alpha: expected a positive finite number, got 0.0"),
        (lambda: FiniteIBP(math.nan, 3), "alpha: expected a positive finite number, got nan"),
        (
            lambda: InfiniteIBP(1.0, 2.5),
            "expected num_components as a whole number of 1 or more, got 2.5",
        ),
        (lambda: InfiniteIBP(1.0, 2, "exact"), r"bound: expected one of \(.*\), got 'exact'"),
        (
            lambda: InfiniteIBP(1.0, 2, "taylor", 0),
            "expected taylor_terms as a whole number of 1 or more",
        ),
        (lambda: FINITE.entropy(TAU[:2]), r"tau: expected 3 components .* got shape \(2, 2\)"),
        (lambda: FINITE.best_tau(NU[:, :2]), "nu: expected 3 components"),
        (lambda: FINITE.log_prob(NU[:, :2]), r"Z: expected 3 components along axis -1"),
    ],
)
def test_errors(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_infinite_prior_says_what_it_cannot_do() -> None:
    with pytest.raises(NotImplementedError, match="optimise tau by gradient"):
        INFINITE.best_tau(NU)
    with pytest.raises(NotImplementedError, match="no closed form for log p"):
        INFINITE.log_prob(NU)


# NumPy and TensorFlow


@pytest.mark.parametrize("prior", PRIORS)
def test_tensors_have_the_values_of_arrays(prior: IBP) -> None:
    for formula in (
        prior.expected_log_on, prior.expected_log_off, prior.expected_log_weights, prior.entropy,
        prior.weights_term,
    ):  # fmt: skip
        by_arrays, by_tensors = formula(TAU), tf.function(formula)(tf.constant(TAU))
        assert isinstance(by_arrays, np.ndarray | np.float64)
        assert tf.is_tensor(by_tensors)
        np.testing.assert_allclose(by_tensors, by_arrays, rtol=1e-12)
    whole = prior.expected_log_weights(TAU) + prior.entropy(TAU)
    assert prior.weights_term(TAU) == pytest.approx(whole, rel=1e-12)


class FewerOfTheLast(FiniteIBP):
    """A user's: the k-th component is half as common as the one before it."""

    @property
    def concentration(self) -> NDArray[np.float64]:  # type: ignore[override]
        return self.alpha * 0.5 ** np.arange(self.num_components)


@pytest.mark.parametrize("prior", [FINITE, FewerOfTheLast(ALPHA, 3)])
def test_conditional_logs_are_those_of_the_joint(prior: FiniteIBP) -> None:
    """Of every row given the others: by enumerating the row in `log_prob`."""
    others = np.array([[1.0, 0, 1], [1, 0, 0], [0, 0, 1], [1, 1, 0]])
    rows = np.array(list(itertools.product([0.0, 1.0], repeat=3)))
    joint = np.array([prior.log_prob(np.vstack([others, row])) for row in rows])
    on, off = prior.conditional_logs(others)
    found = rows @ on + (1.0 - rows) @ off
    np.testing.assert_allclose(found - found[0], joint - joint[0], rtol=1e-10)


@pytest.mark.parametrize("prior", [FINITE, FewerOfTheLast(ALPHA, 3)])
def test_another_concentration_is_all_that_another_prior_needs(prior: FiniteIBP) -> None:
    """Its tau is best, and the probabilities of all matrices add up to one."""
    tau, step = prior.best_tau(NU), 1e-5
    for change in step * np.eye(tau.size).reshape(-1, *tau.shape):
        assert abs(bound(prior, tau + change, NU) - bound(prior, tau - change, NU)) < 1e-8
    Z = np.array(list(itertools.product([0.0, 1.0], repeat=6))).reshape(8, 8, 2, 3)
    log_prob = prior.log_prob(Z)
    assert log_prob.shape == (8, 8)
    assert np.exp(log_prob).sum() == pytest.approx(1.0)
