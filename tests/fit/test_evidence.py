"""What structures are compared by: the evidence against quadrature, the prior of Z by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import beta as beta_function
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

from lkm_gpflow.data.observations import Observations
from lkm_gpflow.fit.engine import components
from lkm_gpflow.fit.fits import Fit, FitSettings, State
from lkm_gpflow.fit.initialization import NOISE_VARIANCE, VARIANCE
from lkm_gpflow.fit.learner import Learner
from lkm_gpflow.kernels.grammar import parse
from lkm_gpflow.model.amplitudes import HEIGHT_SD

TIMES = np.linspace(0.0, 1.0, 40)
RW = parse("1.5 x RW(start=-0.025)")


def observations(variance: float = 1.0) -> Observations:
    """Draw a walk, or next to nothing, with noise."""
    rng = np.random.default_rng(2)
    V = variance * components([RW], TIMES)[0] + 0.1 * np.eye(40)
    Y = np.linalg.cholesky(V) @ rng.normal(size=(40, 1))
    return Observations(TIMES, Y.T, np.ones((1, 40)))


@pytest.mark.parametrize("variance", [0.3, 2.5])
def test_the_evidence_is_near_the_integral_over_hyperparameters(variance: float) -> None:
    """One series, a variance and a noise: both integrated on a grid, Z summed over by hand."""
    data = observations(variance)
    settings = FitSettings(criterion="laplace", alpha=1.0)
    learner = Learner(data, settings, np.random.default_rng(0))
    fit = learner.finish(State((RW,), np.ones((1, 1)), np.array([0.1])), 0.0)
    C = components([parse("1 x RW(start=-0.025)")], TIMES)[0]
    log_variances = np.linspace(-4.0, 5.0, 61)
    log_noises = np.linspace(-7.0, 1.0, 61)
    cell = (log_variances[1] - log_variances[0]) * (log_noises[1] - log_noises[0])
    # p(Z = 1) = alpha / (1 + alpha) with pi integrated out, for one series and one component.
    joint = [
        logsumexp(
            [
                np.log(0.5) + multivariate_normal.logpdf(data.Y[0], cov=z * np.exp(a) * C + noise)
                for z in (0.0, 1.0)
            ]
        )
        + norm(VARIANCE.mean, VARIANCE.sd).logpdf(a)
        + norm(NOISE_VARIANCE.mean, NOISE_VARIANCE.sd).logpdf(b)
        for a in log_variances
        for b in log_noises
        for noise in [np.exp(b) * np.eye(40)]
    ]
    expected = logsumexp(joint) + np.log(cell)
    assert fit.cost is not None
    # The bound over Z and pi is a little lower than their sum, the Laplace approximation near.
    assert -0.5 * fit.cost == pytest.approx(expected, abs=0.6)
    assert -0.5 * fit.cost < expected + 0.3


def test_heights_are_integrated_out_of_the_evidence_once() -> None:
    """Three walks of different heights: noise, height and variance summed over, one by one."""
    rng, C = np.random.default_rng(5), components([parse("1 x RW(start=-0.025)")], TIMES)[0]
    V = np.array([12.0, 30.0, 8.0])[:, None, None] * C + 0.1 * np.eye(40)
    Y = np.einsum("nde,ne->nd", np.linalg.cholesky(V), rng.normal(size=(3, 40)))
    settings = FitSettings(criterion="laplace", amplitudes="component")
    learner = Learner(Observations(TIMES, Y, np.ones_like(Y)), settings, rng)
    fit = learner.finish(State((RW,), np.ones((3, 1)), np.full(3, 0.1)), 0.0)
    sizes, noises = np.linspace(-7.0, 11.0, 181), np.linspace(-7.0, 1.0, 81)
    eigenvalues, U = np.linalg.eigh(C)
    v = np.exp(sizes)[:, None, None] * eigenvalues + np.exp(noises)[:, None]
    prior = norm(NOISE_VARIANCE.mean, NOISE_VARIANCE.sd).logpdf(noises) + np.log(0.1)
    given_size = [logsumexp(norm.logpdf(y @ U, scale=v**0.5).sum(-1) + prior, 1) for y in Y]
    of_height = norm.logpdf(sizes - sizes[:, None], scale=HEIGHT_SD) + np.log(0.1)
    given_variance = logsumexp(np.array(given_size)[:, None] + of_height, axis=2).sum(axis=0)
    of_variance = norm(VARIANCE.mean, VARIANCE.sd).logpdf(sizes) + np.log(0.1)
    # All have the walk: p(Z) is the integral of pi^3.
    expected = logsumexp(given_variance + of_variance) + np.log(1.0 / 4.0)
    assert fit.cost is not None
    assert -0.5 * fit.cost == pytest.approx(expected, abs=0.3)


def test_the_prior_of_Z_is_an_integral_over_weights() -> None:
    data = Observations(TIMES, np.tile(observations().Y, (3, 1)), np.ones((3, 40)))
    kernels = (RW, parse("0.3 x SE(lengthscale=0.1)"))
    Z = np.array([[1.0, 0], [1, 1], [1, 0]])
    state = State(kernels, Z, np.full(3, 0.1))
    rng = np.random.default_rng(0)
    plain = Learner(data, FitSettings(alpha=1.4), rng)
    with_prior = Learner(data, FitSettings(alpha=1.4, criterion="bic+prior"), rng)
    assert plain.cost(state) == plain.bic(state)
    log_prior = 0.0
    for on in Z.sum(axis=0):
        integral, _ = quad(
            lambda pi, on=on: pi**on * (1.0 - pi) ** (3.0 - on) * pi ** (0.7 - 1.0), 0.0, 1.0
        )
        log_prior += np.log(integral / beta_function(0.7, 1.0))
    expected = plain.bic(state) - 2.0 * log_prior
    assert with_prior.cost(state) == pytest.approx(expected, rel=1e-8)


def test_fits_are_compared_by_what_was_asked_for() -> None:
    none = np.empty((0, 0))
    fit = Fit((), none, none, none, np.empty(0), 0.0, 5.0, 0.0, 0.0)
    assert fit.criterion == 5.0
    assert Fit(**{**vars(fit), "cost": 3.0}).criterion == 3.0


def test_settings_of_the_paper_are_written_as_before() -> None:
    """Ledgers that were kept go on being found; others say what differs."""
    plain = FitSettings().to_json()
    assert {"amplitudes", "criterion"}.isdisjoint(plain)
    assert FitSettings.from_json(plain) == FitSettings()
    for settings in (
        FitSettings(amplitudes="series"),
        FitSettings(amplitudes="component", criterion="laplace"),
        FitSettings(learner="relaxed", amplitudes="series"),
    ):
        assert FitSettings.from_json(settings.to_json()) == settings
        assert settings.to_json() != plain
