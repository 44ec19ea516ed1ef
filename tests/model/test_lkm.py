"""LKM as a GPflow model: GPflow's utilities, any kernels, subclassing, BIC, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow import kernels as gk
from gpflow.utilities import deepcopy, multiple_assign, parameter_dict, print_summary, read_values

from lkm_gpflow.model.ibp import FiniteIBP, InfiniteIBP
from lkm_gpflow.model.lkm import LKM

X = np.linspace(0.0, 5.0, 12)[:, None]
Y = np.hstack([np.sin(X), np.sin(X) + 0.3 * X - 0.5, np.cos(4.0 * X)])
Y[2:4, 1] = np.nan
XNEW = np.linspace(4.0, 7.0, 5)[:, None]


def make(posterior: Any = "enumerated", **options: Any) -> LKM:
    components = [
        gk.SquaredExponential(),
        gk.Linear(0.2) + gk.White(0.01),
        gk.Periodic(gk.SquaredExponential()),
    ]
    return LKM((X, Y), components, posterior=posterior, **{"noise_variance": 0.1, **options})


# --- GPflow's utilities --------------------------------------------------------------------------


def test_parameters_are_found_at_readable_paths(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(parameter_dict(make("relaxed"))) == {
        ".kernels[0].variance",
        ".kernels[0].lengthscales",
        ".kernels[1].kernels[0].variance",
        ".kernels[1].kernels[1].variance",
        ".kernels[2].base_kernel.variance",
        ".kernels[2].base_kernel.lengthscales",
        ".kernels[2].period",
        ".noise_variance",
        ".posterior.logits",
        ".tau",
    }
    print_summary(make("relaxed"))
    assert "LKM.noise_variance" in capsys.readouterr().out


@pytest.mark.parametrize("posterior", ["relaxed", "enumerated"])
def test_deepcopy_and_multiple_assign(posterior: str) -> None:
    model = make(posterior)
    twin = deepcopy(model)
    twin.kernels[0].lengthscales.assign(3.0)
    twin.noise_variance.assign([0.2, 0.3, 0.4])
    assert model.kernels[0].lengthscales.numpy() == 1.0
    assert twin.elbo(seed=0) != model.elbo(seed=0)
    multiple_assign(model, read_values(twin))
    np.testing.assert_allclose(twin.elbo(seed=0), model.elbo(seed=0), rtol=1e-12)
    np.testing.assert_allclose(twin.predict_f(XNEW)[1], model.predict_f(XNEW)[1], rtol=1e-10)


def test_set_trainable_and_scipy() -> None:
    model = make()
    gpflow.set_trainable(model.kernels[2], False)
    frozen, before = model.kernels[2].period.numpy(), model.elbo()
    result = gpflow.optimizers.Scipy().minimize(
        model.training_loss_closure(), model.trainable_variables, options={"maxiter": 30}
    )
    assert model.kernels[2].period.numpy() == frozen
    assert model.elbo() > before + 1.0
    np.testing.assert_allclose(result.fun, -model.elbo(), rtol=1e-10)


def test_priors_enter_the_training_loss() -> None:
    model = make()
    plain = model.training_loss()
    density = tfp.distributions.LogNormal(
        tf.constant(0.0, tf.float64), tf.constant(1.0, tf.float64)
    )
    model.kernels[0].lengthscales.prior = density
    np.testing.assert_allclose(plain - model.training_loss(), density.log_prob(1.0), rtol=1e-10)
    np.testing.assert_allclose(model.log_posterior_density(), -model.training_loss())
    np.testing.assert_allclose(model.maximum_log_likelihood_objective(), -plain)


# --- building ------------------------------------------------------------------------------------


@pytest.mark.parametrize("posterior", ["relaxed", "enumerated"])
def test_any_gpflow_kernel_works(posterior: str) -> None:
    kernels = [
        gk.White(0.5),
        gk.Constant(),
        gk.Matern12(active_dims=[0]),
        gk.RationalQuadratic() * gk.Linear(),
        gk.Cosine(),
        gk.Polynomial(degree=2) + gk.ArcCosine(),
        gk.ChangePoints([gk.Matern32(), gk.SquaredExponential()], locations=[2.5], steepness=5.0),
    ]
    model = LKM((X, Y), kernels, posterior=posterior)
    with tf.GradientTape() as tape:
        loss = model.training_loss()
    for kernel, gradients in zip(
        kernels, tape.gradient(loss, [k.trainable_variables for k in kernels]), strict=True
    ):
        assert all(np.isfinite(gradient).all() for gradient in gradients), kernel
    mean, variance = model.predict_f(XNEW)
    assert np.isfinite(mean).all()
    assert np.all(variance.numpy() >= 0.0)


def test_prior_objects_and_names() -> None:
    assert make(alpha=2.0).prior == FiniteIBP(2.0, 3)
    assert make(alpha=2.0, prior="infinite").prior == InfiniteIBP(2.0, 3)
    taylor = InfiniteIBP(0.7, 3, bound="taylor")
    assert make(prior=taylor).prior is taylor


@pytest.mark.parametrize("posterior", ["relaxed", "enumerated"])
def test_update_tau_is_a_maximum(posterior: str) -> None:
    model = make(posterior)
    for _ in range(60):  # with the enumerated posterior Z moves too
        model.update_tau()
    with tf.GradientTape() as tape:
        bound = model.elbo(seed=0)
    np.testing.assert_allclose(tape.gradient(bound, model.tau.unconstrained_variable), 0, atol=1e-6)
    with pytest.raises(NotImplementedError, match="optimise tau by gradient"):
        make(prior="infinite").update_tau()


def test_a_subclass_overrides_one_method() -> None:
    class Scaled(LKM):
        def component_covariances(self, X: Any, X2: Any = None) -> tf.Tensor:
            return 4.0 * super().component_covariances(X, X2)

    components = [gk.SquaredExponential(), gk.Linear()]
    scaled = Scaled((X, Y), components, posterior="enumerated")
    direct = LKM((X, Y), [gk.Constant(4.0) * k for k in components], posterior="enumerated")
    np.testing.assert_allclose(scaled.elbo(), direct.elbo(), rtol=1e-10)
    np.testing.assert_allclose(scaled.predict_y(XNEW), direct.predict_y(XNEW), rtol=1e-8)
    np.testing.assert_allclose(
        scaled.predict_components(XNEW), direct.predict_components(XNEW), rtol=1e-8
    )


# --- results -------------------------------------------------------------------------------------


def test_bic_counts_what_is_used_and_trained() -> None:
    model, observed = make(), np.log(34.0)
    Z = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    fit = -2.0 * tf.reduce_sum(model.log_likelihood(Z))
    np.testing.assert_allclose(model.bic(Z), fit + (2 + 2 + 3) * observed)
    gpflow.set_trainable(model.kernels[0].variance, False)
    np.testing.assert_allclose(model.bic(Z), fit + (1 + 2 + 3) * observed)
    np.testing.assert_allclose(model.bic(), model.bic(model.assignment()))
    model.kernels[1].kernels[0].variance.assign(1e25)  # rounding drowns the noise
    with pytest.raises(ValueError, match="covariance of the series is not positive definite"):
        model.bic(Z)


def test_a_shared_kernel_parameter_counts_once() -> None:
    one, two = gk.SquaredExponential(), gk.SquaredExponential()
    two.lengthscales = one.lengthscales
    model = LKM((X, Y), [one, two])
    Z = np.ones((3, 2))
    count = (model.bic(Z) + 2.0 * tf.reduce_sum(model.log_likelihood(Z))) / np.log(34.0)
    np.testing.assert_allclose(count, 3 + 3)


@pytest.mark.parametrize("posterior", ["relaxed", "enumerated"])
def test_predictions_also_inside_tf_function(posterior: str) -> None:
    model = make(posterior)
    for predict in (model.predict_f, model.predict_components):
        for eager, graph in zip(predict(XNEW), tf.function(predict)(XNEW), strict=True):
            np.testing.assert_allclose(eager, graph, atol=1e-10)


def test_predictions_do_not_depend_on_the_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make("relaxed")
    assert len(model.posterior.configurations(model).series) == 24
    whole = model.predict_f(XNEW, full_cov=True)
    monkeypatch.setattr("lkm_gpflow.model.lkm.PREDICTION_CHUNK", 5)
    for one, other in zip(whole, model.predict_f(XNEW, full_cov=True), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_unsupported_covariances_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="full_output_cov"):
        make().predict_f(XNEW, full_output_cov=True)
    with pytest.raises(NotImplementedError, match="full_cov"):
        make().predict_y(XNEW, full_cov=True)


# --- errors --------------------------------------------------------------------------------------


def with_value(table: np.ndarray, row: int, column: int, value: float) -> np.ndarray:
    changed = table.copy()
    changed[row, column] = value
    return changed


BAD: dict[str, tuple[str, Callable[[], LKM]]] = {
    "X flat": (
        r"expected X \[D, 1\] and Y \[D, N\].*got shapes \(12,\) and \(12, 3\)",
        lambda: LKM((X[:, 0], Y), [gk.Linear()]),
    ),
    "no series": (r"\(12, 1\) and \(12, 0\)", lambda: LKM((X, Y[:, :0]), [gk.Linear()])),
    "NaN in X": (
        "finite numbers in X, got nan in row 4, column 0",
        lambda: LKM((with_value(X, 4, 0, np.nan), Y), [gk.Linear()]),
    ),
    "infinite": (
        r"finite numbers in Y \(or NaN for a missing one\), got -inf in row 7, column 2",
        lambda: LKM((X, with_value(Y, 7, 2, -np.inf)), [gk.Linear()]),
    ),
    "all missing": (
        "at least one observation in every column of Y.* column 1",
        lambda: LKM((X, np.where([True, False, True], Y, np.nan)), [gk.Linear()]),
    ),
    "one table": (
        r"expected a pair \(X, Y\) of tables.*got a ndarray",
        lambda: LKM(Y, [gk.Linear()]),
    ),
    "None for kernels": (r"at least one kernel, got None", lambda: LKM((X, Y), None)),
    "one kernel": ("expected a list", lambda: LKM((X, Y), gk.Linear())),
    "not a kernel": (
        r"kernels\[1\]: expected a GPflow kernel of one output, got 'SE'",
        lambda: LKM((X, Y), [gk.Linear(), "SE"]),
    ),
    "several outputs": (
        r"kernels\[0\]: expected a GPflow kernel of one output",
        lambda: LKM((X, Y), [gk.SharedIndependent(gk.Linear(), 2)]),
    ),
    "active_dims": (
        r"kernels\[0\], Linear: expected active_dims among the 1 column\(s\) of X, counted "
        r"from 0, got \[1\]",
        lambda: LKM((X, Y), [gk.Linear(active_dims=[1]) + gk.White()]),
    ),
    "lengthscales": (
        r"one value of lengthscales for each of the 1 column\(s\) of X, got shape \(2,\)",
        lambda: LKM((X, Y), [gk.SquaredExponential(lengthscales=[1.0, 2.0])]),
    ),
    "posterior": (
        r"expected one of \['enumerated', 'relaxed'\] or a Posterior, got 'exact'",
        lambda: make("exact"),
    ),
    "prior": (r"expected one of \['finite', 'infinite'\]", lambda: make(prior="flat")),
    "prior size": (
        "expected 3 components, one for each kernel, got 5",
        lambda: make(prior=FiniteIBP(1.0, 5)),
    ),
    "alpha is nothing": (
        "alpha: expected a positive finite number, got None",
        lambda: make(alpha=None),
    ),
    "noise": ("noise_variance: .*at least 1e-06, got 0.0", lambda: make(noise_variance=0.0)),
    "mean of two series": (
        r"mean function of GPflow with 1 or 3 outputs at X, got .* of shape \(12, 2\)",
        lambda: make(mean_function=gpflow.functions.Linear(np.ones((1, 2)))),
    ),
    "mean is a number": (
        "mean_function: expected a mean function of GPflow.*got 0.5",
        lambda: make(mean_function=0.5),
    ),
    "noise size": (
        r"a number or 3 numbers.*got \[1.0, 2.0\]",
        lambda: make(noise_variance=[1.0, 2.0]),
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused(case: str) -> None:
    message, build = BAD[case]
    with pytest.raises(ValueError, match=message):
        build()


def test_noise_may_begin_where_learning_ended() -> None:
    """At the least: constant series are explained without noise."""
    model = make(noise_variance=0.1)
    model.noise_variance.unconstrained_variable.assign([-60.0] * 3)
    least = model.noise_variance.numpy()
    again = make(noise_variance=least)
    np.testing.assert_allclose(again.noise_variance, least, rtol=1e-12)
    assert np.isfinite(again.noise_variance.unconstrained_variable).all()


def test_an_objective_without_a_seed_is_trained() -> None:
    """As GPflow's own models have it."""

    class Own(LKM):
        def maximum_log_likelihood_objective(self) -> tf.Tensor:
            return 2.0 * self.elbo()

    model = Own((X, Y), [gk.SquaredExponential()])
    assert model.training_loss() == -2.0 * model.elbo()
    assert model.training_loss_closure(compile=False)() == model.training_loss()


@pytest.mark.parametrize("offset", [0.0, 1e7])
def test_predictions_keep_their_digits_far_from_zero(offset: float) -> None:
    """Given Z they are those of a plain Gaussian process, whatever the level."""
    Xnew, y = np.array([[0.3], [1.7]]), offset + np.sin(6.0 * X)
    plain = gpflow.models.GPR((X, y), gk.SquaredExponential(), noise_variance=0.1)
    model = LKM((X, y), [gk.SquaredExponential()], noise_variance=0.1)
    for full_cov in (False, True):
        found = model.predict_f(Xnew, full_cov=full_cov, Z=np.ones((1, 1)))
        expected = plain.predict_f(Xnew, full_cov=full_cov)
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-6)
