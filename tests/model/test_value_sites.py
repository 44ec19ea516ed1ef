"""Likelihoods of GPflow in the model: against `VGP`, quadrature, and from one optimiser."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.kernels import Kernel, Linear, SquaredExponential, Sum, White
from gpflow.likelihoods import Bernoulli, Likelihood, Poisson, StudentT
from numpy.typing import NDArray
from scipy import stats
from scipy.special import logsumexp

from lkm_gpflow.model.lkm import LKM

Array = NDArray[np.float64]

X = np.linspace(0.0, 4.0, 16)[:, None]
XNEW = np.linspace(-0.5, 4.5, 4)[:, None]
RATE = np.exp(1.0 + np.sin(2.0 * X))
NOISE, WHOLE = 0.05, np.ones((1, 2))


def kernels() -> list[Kernel]:
    return [SquaredExponential(1.3, 0.7), Linear(0.2)]


def values(likelihood: Likelihood) -> Array:
    rng = np.random.default_rng(0)
    drawn = {
        Poisson: rng.poisson(RATE),
        Bernoulli: rng.random(X.shape) < RATE / 8.0,
        StudentT: np.log(RATE) + 0.3 * rng.standard_t(4, X.shape),
    }
    return np.asarray(drawn[type(likelihood)], np.float64)


@pytest.mark.parametrize(
    ("likelihood", "tolerance"),
    [(Poisson(), 1e-3), (Bernoulli(), 1e-3), (StudentT(scale=0.3), 0.02)],
    ids=["Poisson", "Bernoulli", "StudentT"],
)
def test_given_z_it_is_gpflows_variational_process(
    likelihood: Likelihood, tolerance: float
) -> None:
    """Of a Student-t, `VGP` may also use sites of negative precision."""
    Y = values(likelihood)
    whole = Sum([*kernels(), White(NOISE)])
    theirs = gpflow.models.VGP((X, Y), whole, likelihood)
    gpflow.set_trainable(theirs.kernel, False)
    gpflow.set_trainable(theirs.likelihood, False)
    gpflow.optimizers.Scipy().minimize(
        theirs.training_loss, theirs.trainable_variables, options={"maxiter": 500}
    )
    ours = LKM((X, Y), kernels(), noise_variance=NOISE, likelihood=likelihood)
    ours.update_sites(30, Z=WHOLE)
    bound = float(ours.log_likelihood(WHOLE)[0])
    assert bound == pytest.approx(float(theirs.elbo()), abs=tolerance)
    for a, b in zip(ours.predict_y(XNEW, Z=WHOLE), theirs.predict_y(XNEW), strict=True):
        np.testing.assert_allclose(a, b, rtol=max(0.02, 5.0 * tolerance))
    new = (XNEW, np.ones((4, 1)))
    found = ours.predict_log_density(new, Z=WHOLE)[:, 0]
    np.testing.assert_allclose(found, theirs.predict_log_density(new), atol=5.0 * tolerance)


@pytest.mark.parametrize(
    ("likelihood", "law"),
    [
        (Poisson(), lambda f: stats.poisson(np.exp(f))),
        (Bernoulli(), lambda f: stats.bernoulli(stats.norm.cdf(f))),
    ],
    ids=["Poisson", "Bernoulli"],
)
def test_it_is_below_quadrature_for_every_z(likelihood: Likelihood, law: object) -> None:
    """Two values and a gap: a bound with the sites of one row of Z, and near with its own."""
    at, Y = X[[2, 5, 9]], np.array([[1.0], [np.nan], [0.0]])
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    grid = np.array(np.meshgrid(nodes, nodes)).reshape(2, -1)
    log_weights = np.log(np.outer(weights, weights).ravel() / weights.sum() ** 2)
    model = LKM((at, Y), kernels(), noise_variance=NOISE, likelihood=likelihood)
    for z in ([[1.0, 0.0]], [[1.0, 1.0]], [[0.0, 1.0]]):
        V = np.tensordot(z[0], [k(at[[0, 2]]) for k in kernels()], 1) + NOISE * np.eye(2)
        f = np.linalg.cholesky(V) @ grid
        density = law(f).logpmf(np.array([[1.0], [0.0]])).sum(axis=0)  # type: ignore[operator]
        exact = float(logsumexp(density + log_weights))
        assert float(model.log_likelihood(z)[0]) < exact
        model.update_sites(30, Z=z)
        assert exact - 0.1 < float(model.log_likelihood(z)[0]) < exact


@pytest.mark.parametrize("posterior", ["enumerated", "relaxed"])
def test_one_optimiser_learns_everything(posterior: str) -> None:
    """Four series of counts, of which two have a rhythm; one value is missing."""
    rng, t = np.random.default_rng(1), np.linspace(0.0, 1.0, 24)
    rhythm = np.outer(np.sin(2.0 * np.pi * t / 0.2), [1.0, 1.0, 0.0, 0.0])
    Y = rng.poisson(np.exp(1.5 + rhythm)).astype(np.float64)
    Y[5, 2] = np.nan
    cycle = gpflow.kernels.Periodic(SquaredExponential(), period=0.2)
    gpflow.set_trainable(cycle.period, False)
    model = LKM(
        (t[:, None], Y), [cycle, gpflow.kernels.Constant()], posterior=posterior,
        noise_variance=0.05, likelihood=Poisson(),
    )  # fmt: skip
    before = float(model.training_loss())
    result = gpflow.optimizers.Scipy().minimize(
        model.training_loss, model.trainable_variables, options={"maxiter": 60}
    )
    assert result.fun < before - 1.0
    has = model.probabilities()[:, 0].numpy()
    assert has[:2].min() > max(0.8, has[2:].max())
    if posterior == "enumerated":
        assert has[2:].max() < 0.5
    loss = float(model.training_loss())
    model.update_sites(2)
    assert float(model.training_loss()) < loss + 0.5  # sites were near their best
    mean, variance = model.predict_y(t[:, None])
    assert np.all(mean > 0.0)
    assert np.all(variance > mean - 1e-9)  # of a Poisson whose rate is uncertain
    assert np.isfinite(model.bic())
    assert np.isfinite(model.predict_f_samples(t[:, None], 3, seed=0)).all()


def test_what_has_no_density_is_refused() -> None:
    with pytest.raises(ValueError, match=r"density under Poisson, got -2 in row 3, column 0"):
        LKM((X, np.where(np.arange(16)[:, None] == 3, -2.0, 1.0)), kernels(), likelihood=Poisson())
    several = gpflow.likelihoods.Softmax(3)
    with pytest.raises(ValueError, match="single latent function"):
        LKM((X, np.ones_like(X)), kernels(), likelihood=several)
    with pytest.raises(ValueError, match=r"gpflow\.likelihoods"):
        LKM((X, np.ones_like(X)), kernels(), likelihood="poisson")  # type: ignore[arg-type]


def test_sites_of_a_normal_are_its_values() -> None:
    Y = np.sin(X)
    model = LKM((X, Y), kernels(), noise_variance=0.1, likelihood=gpflow.likelihoods.Gaussian(0.2))
    plain = LKM((X, Y), kernels(), noise_variance=0.3)
    model.update_sites(40)
    np.testing.assert_allclose(model.sites.values, Y.T, atol=1e-6)
    np.testing.assert_allclose(model.log_likelihood(WHOLE), plain.log_likelihood(WHOLE), rtol=1e-8)
    for a, b in zip(model.predict_y(X), plain.predict_y(X), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    assert isinstance(tf.function(model.elbo)(), tf.Tensor)
