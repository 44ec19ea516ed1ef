"""The model as any GPflow user would use it: GPflow's optimisers and tools, nothing of ours."""

from __future__ import annotations

from pathlib import Path

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.keras import tf_keras

import lkm_gpflow as lkm
from lkm_gpflow.kernels.component import to_kernel
from lkm_gpflow.model.posteriors import Posterior, WeightedRows

PLANTED = {
    "a curve and a rhythm": (
        ("1.0 x SE(lengthscale=0.15)", "1.0 x PER(period=0.2, lengthscale=1.0)"),
        [[1, 0], [1, 0], [1, 1], [0, 1], [0, 1]],
        ("1.0 x SE(lengthscale=0.3)", "1.0 x PER(period=0.19, lengthscale=1.0)"),
        2,
    ),
    "a rhythm and a line": (
        ("1.0 x PER(period=0.25, lengthscale=1.0)", "8.0 x LIN(location=0.4)"),
        [[1, 0], [0, 1], [1, 1], [1, 0]],
        ("1.0 x PER(period=0.24, lengthscale=1.0)", "3.0 x LIN(location=0.2)"),
        0,
    ),
}
TABLES = pytest.mark.parametrize("name", PLANTED)


def kernels_of(texts: tuple[str, ...]) -> list[gpflow.kernels.Kernel]:
    return [to_kernel(lkm.parse(text)) for text in texts]


def table(name: str, num_times: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Series with 0.05 of noise variance, drawn with NumPy."""
    planted, Z, _, seed = PLANTED[name]
    X, rng = np.linspace(0.0, 1.0, num_times)[:, None], np.random.default_rng(seed)
    Y = np.zeros((num_times, len(Z)))
    for kernel, owners in zip(kernels_of(planted), np.transpose(Z), strict=True):
        root = np.linalg.cholesky(kernel(X).numpy() + 1e-8 * np.eye(num_times))
        Y += (root @ rng.normal(size=Y.shape)) * owners
    return X, Y + np.sqrt(0.05) * rng.normal(size=Y.shape)


@TABLES
def test_scipy_on_the_default_model_finds_what_was_planted(name: str) -> None:
    _, Z, start, _ = PLANTED[name]
    model = lkm.LKM(table(name), kernels_of(start), noise_variance=0.1)
    result = gpflow.optimizers.Scipy().minimize(model.training_loss, model.trainable_variables)
    assert result.success, result.message
    np.testing.assert_array_equal(model.assignment(), Z)
    assert np.abs(model.probabilities() - Z).max() < 0.45
    assert float(model.training_loss()) == pytest.approx(float(result.fun), rel=1e-9)


@TABLES
def test_adam_with_fresh_draws_finds_what_was_planted(name: str) -> None:
    _, Z, start, _ = PLANTED[name]
    model = lkm.LKM(table(name), kernels_of(start), noise_variance=0.1)
    optimizer = tf_keras.optimizers.Adam(0.05)

    @tf.function
    def step() -> None:
        model.posterior.resample()
        optimizer.minimize(model.training_loss, model.trainable_variables)

    for _ in range(300):
        step()
    np.testing.assert_array_equal(model.assignment(), Z)
    assert np.abs(model.probabilities() - Z).max() < 0.25


# --- small models --------------------------------------------------------------------------------

X = np.linspace(0.0, 1.0, 12)[:, None]
Y = np.hstack([np.sin(9.0 * X), 2.0 * X - 1.0])


def small(posterior: str | Posterior = "relaxed") -> lkm.LKM:
    kernels = [*kernels_of(("1.0 x SE(lengthscale=0.2)",)), gpflow.kernels.Linear()]
    mean = gpflow.functions.Constant(0.2)
    return lkm.LKM((X, Y), kernels, posterior=posterior, noise_variance=0.1, mean_function=mean)


@pytest.mark.parametrize("posterior", ["relaxed", "enumerated"])
def test_checkpoints_bring_everything_back(posterior: str, tmp_path: Path) -> None:
    model = small(posterior)
    if posterior == "relaxed":
        model.posterior.resample(seed=7)
        model.posterior.logits.assign([[1.0, -1.0], [0.5, 2.0]])
    model.noise_variance.assign([0.3, 0.4])
    model.mean_function.c.assign(-0.1)
    before = float(model.elbo())
    saved = tf.train.Checkpoint(model=model).save(str(tmp_path / "model"))
    other = small(posterior)
    assert float(other.elbo()) != before
    tf.train.Checkpoint(model=other).restore(saved).assert_consumed()
    assert float(other.elbo()) == before
    third = small(posterior)
    values = {path: p.numpy() for path, p in gpflow.utilities.parameter_dict(model).items()}
    gpflow.utilities.multiple_assign(third, values)
    assert float(third.elbo(seed=7)) == pytest.approx(float(model.elbo(seed=7)), rel=1e-12)


@pytest.mark.parametrize("posterior", ["relaxed", "enumerated"])
def test_predictions_are_exported(posterior: str, tmp_path: Path) -> None:
    """Without the package: what is loaded is TensorFlow's own object."""
    model = small(posterior)
    model.predict_compiled = tf.function(
        model.predict_f, input_signature=[tf.TensorSpec([None, 1], tf.float64)]
    )
    tf.saved_model.save(model, str(tmp_path / "model"))
    loaded = tf.saved_model.load(str(tmp_path / "model"))
    assert not isinstance(loaded, lkm.LKM)
    for ours, theirs in zip(model.predict_f(X), loaded.predict_compiled(X), strict=True):
        np.testing.assert_allclose(theirs, ours, rtol=1e-9, atol=1e-12)


def test_monitor_and_summary(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Curves of TensorBoard as GPflow's page on monitoring has them."""
    pytest.importorskip("tensorboard")
    model, seen = small(), []
    callback = gpflow.monitor.ExecuteCallback(lambda: seen.append(float(model.elbo())))
    curves = gpflow.monitor.ScalarToTensorBoard(str(tmp_path), model.training_loss, "loss")
    parameters = gpflow.monitor.ModelToTensorBoard(
        str(tmp_path), model, keywords_to_monitor=["kernel", "noise", "mean", "posterior"]
    )
    monitor = gpflow.monitor.Monitor(
        gpflow.monitor.MonitorTaskGroup([callback, curves, parameters], period=1)
    )
    result = gpflow.optimizers.Scipy().minimize(
        model.training_loss,
        model.trainable_variables,
        step_callback=monitor,
        options={"maxiter": 5},
    )
    assert len(seen) == result.nit == 5
    assert seen == sorted(seen), "with draws that are kept every step is an improvement"
    told: dict[str, list[float]] = {}
    for path in tmp_path.glob("events*"):
        for event in tf.compat.v1.train.summary_iterator(str(path)):
            for value in event.summary.value:
                told.setdefault(value.tag, []).append(float(tf.make_ndarray(value.tensor)))
    np.testing.assert_allclose(told["loss"], -np.array(seen), rtol=1e-6)
    assert told["mean_function.c"][-1] == pytest.approx(
        float(model.mean_function.c.numpy()), rel=1e-6
    )
    assert len(told["kernels[0].variance"]) == len(told["noise_variance[1]"]) == 5
    assert len([tag for tag in told if tag.startswith("posterior.logits")]) == 3  # `max_size`
    gpflow.utilities.print_summary(model)
    shown = capsys.readouterr().out
    assert "posterior.logits" in shown
    assert "seed" not in shown


# --- a posterior of one's own --------------------------------------------------------------------


class AllAlike(Posterior):
    """Every series has the same components: q(z_k), of which an exact bound is a sum over one row.

    The bound needs no relaxation, because the likelihood is averaged over the 2^K rows.
    """

    def build(self, num_series: int, num_components: int) -> None:
        super().build(num_series, num_components)
        self.logits = gpflow.Parameter(np.zeros(num_components))

    def _rows(self) -> tuple[tf.Tensor, tf.Tensor]:
        K = self.num_components
        rows = tf.constant([[t >> k & 1 for k in range(K)] for t in range(2**K)], tf.float64)
        on, off = tf.math.log_sigmoid(self.logits), tf.math.log_sigmoid(-self.logits)
        return rows, tf.exp(tf.linalg.matvec(rows, on) + tf.linalg.matvec(1.0 - rows, off))

    def elbo(self, model: lkm.LKM, seed: object = None) -> tf.Tensor:
        rows, weights = self._rows()
        fit = tf.reduce_sum(model.configuration_log_likelihood(rows), axis=0)
        entropy = -tf.reduce_sum(tf.math.xlogy(weights, weights))
        return (
            tf.reduce_sum(weights * fit)
            + entropy
            + model.prior.expected_log_weights(model.tau)
            + model.prior.expected_log_assignments(model.tau, self.probabilities(model))
            + model.prior.entropy(model.tau)
        )

    def probabilities(self, model: lkm.LKM) -> tf.Tensor:
        return tf.tile(tf.sigmoid(self.logits)[None], [self.num_series, 1])

    def assignment(self, model: lkm.LKM) -> tf.Tensor:
        return tf.round(self.probabilities(model))

    def configurations(self, model: lkm.LKM) -> WeightedRows:
        rows, weights = self._rows()
        N, T = self.num_series, len(rows)
        return WeightedRows(tf.repeat(tf.range(N), T), tf.tile(rows, [N, 1]), tf.tile(weights, [N]))


def test_a_posterior_of_ones_own_goes_through() -> None:
    model = small(AllAlike())
    gpflow.optimizers.Scipy().minimize(
        model.training_loss, model.trainable_variables, options={"maxiter": 80}
    )
    rows = model.assignment().numpy()
    np.testing.assert_array_equal(rows[0], rows[1])
    noise_variance = model.noise_variance.numpy()
    free = lkm.LKM(
        (X, Y), model.kernels, posterior="enumerated", noise_variance=noise_variance,
        mean_function=model.mean_function,
    )  # fmt: skip
    free.tau.assign(model.tau)
    assert model.elbo() < free.elbo(), "rows that are free come nearer to the evidence"
    mean, variance = model.predict_y(X)
    assert np.all(variance > 0.0)
    np.testing.assert_allclose(
        tf.reduce_sum(model.predict_components(X)[0], 0) + model.mean_function(X),
        model.predict_f(X)[0],
    )
    assert np.isfinite(float(model.bic()))
