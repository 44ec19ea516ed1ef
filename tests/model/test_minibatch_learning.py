"""Learning from minibatches: it ends where the full model does, at a cost without N."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import gpflow
import numpy as np
import psutil
import pytest
import tensorflow as tf
from gpflow.kernels import Kernel, Linear, Periodic, SquaredExponential
from numpy.typing import NDArray

import lkm_gpflow as lkm

Array = NDArray[np.float64]
X = np.linspace(0.0, 1.0, 24)[:, None]


def start() -> list[Kernel]:
    return [
        SquaredExponential(0.5, 0.15),
        Periodic(SquaredExponential(0.6, 1.0), period=0.25),
        Linear(0.7),
    ]


def planted(num_series: int) -> Array:
    """Series of three kernels, each in a different part of the series; all noises differ."""
    rng = np.random.default_rng(0)
    kernels = [
        SquaredExponential(1.0, 0.08),
        Periodic(SquaredExponential(1.0, 0.7), period=0.23),
        Linear(1.5),
    ]
    C = np.stack([kernel(X).numpy() for kernel in kernels])
    Z = (rng.random((num_series, 3)) < [0.6, 0.3, 0.5]).astype(np.float64)
    V = np.tensordot(Z, C, 1) + rng.uniform(0.05, 0.4, num_series)[:, None, None] * np.eye(len(X))
    return np.einsum("nde,ne->dn", np.linalg.cholesky(V), rng.normal(size=(num_series, len(X))))


def exact_bound(model: lkm.LKM) -> tf.Tensor:
    if isinstance(model.posterior, lkm.RelaxedPosterior):
        return model.posterior.mean_field_elbo(model)
    return model.elbo()


def climb(model: lkm.LKM) -> float:
    """The bound of the full model after L-BFGS on everything: kernels, tau, noises, q(Z)."""
    loss = tf.function(lambda: -exact_bound(model))
    options = {"maxiter": 250, "maxfun": 300}
    gpflow.optimizers.Scipy().minimize(
        loss, model.trainable_variables, compile=False, options=options
    )
    return -float(loss())


SETTINGS = lkm.MinibatchSettings(batch_size=40, num_steps=200)


@pytest.mark.parametrize("posterior", ["enumerated", "relaxed"])
def test_the_bound_of_the_full_model_is_reached(posterior: str) -> None:
    """Within 0.1%: L-BFGS on the exact full bound ends no higher, from the same start or from ours.

    From the same start it may end lower, in another optimum.
    """
    Y = planted(120)
    model = lkm.MinibatchLKM(start(), 120, posterior=posterior)  # type: ignore[arg-type]
    before = lkm.elbo_in_batches(model, (X, Y), batch_size=50)
    trace = lkm.learn_by_minibatches(model, (X, Y), SETTINGS)
    found = lkm.elbo_in_batches(model, (X, Y), batch_size=50)
    assert trace.elbo.shape == (200,)
    assert trace.num_skipped == 0
    from_start = climb(lkm.LKM((X, Y), start(), posterior=posterior, noise_variance=0.2))  # type: ignore[arg-type]
    from_ours = climb(model.to_lkm((X, Y)))
    margin = 1e-3 * abs(from_ours)
    assert before < found - 20.0 * margin, "there was something to learn"
    assert found > max(from_start, from_ours) - margin
    assert model.kernels[1].period.numpy() == pytest.approx(0.23, abs=0.01)


def test_runs_repeat_by_seed_and_from_a_memory_map(tmp_path: Path) -> None:
    Y = planted(60)
    path = tmp_path / "series.npy"
    np.save(path, Y.T)  # series by series

    def learnt(Y: Array, seed: int) -> list[Array]:
        model = lkm.MinibatchLKM(start(), 60)
        settings = lkm.MinibatchSettings(batch_size=10, num_steps=6)
        trace = lkm.learn_by_minibatches(model, (X, Y), settings, seed=seed)
        return [trace.elbo, *(v.numpy() for v in model.trainable_variables)]

    first, again = learnt(Y, 1), learnt(np.load(path, mmap_mode="r").T, 1)
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, other)
    assert not np.array_equal(first[0], learnt(Y, 2)[0])


def test_what_is_not_trainable_stays() -> None:
    model = lkm.MinibatchLKM(start(), 60)
    gpflow.set_trainable(model.tau, False)
    gpflow.set_trainable(model.kernels[1], False)
    before = [model.tau.numpy(), model.kernels[1].period.numpy()]
    lkm.learn_by_minibatches(
        model, (X, planted(60)), lkm.MinibatchSettings(batch_size=10, num_steps=3)
    )
    np.testing.assert_array_equal(model.tau, before[0])
    assert model.kernels[1].period.numpy() == before[1]
    assert model.kernels[0].lengthscales.numpy() != 0.15


@pytest.mark.parametrize(("averaged", "count"), [(0.5, 3), (0.0, 1)])
def test_the_result_is_the_mean_of_the_last_iterates(averaged: float, count: int) -> None:
    """Of all that is learnt, on the unconstrained scale; without an average it is the last one."""
    model, seen = lkm.MinibatchLKM(start(), 60), []
    settings = lkm.MinibatchSettings(batch_size=10, num_steps=6, averaged=averaged)

    def note(number: int, model: lkm.MinibatchLKM) -> None:
        seen.append([v.numpy() for v in model.trainable_variables])

    lkm.learn_by_minibatches(model, (X, planted(60)), settings, callback=note)
    for variable, *values in zip(model.trainable_variables, *seen[-count:], strict=True):
        np.testing.assert_allclose(variable, np.mean(values, axis=0), rtol=1e-12, atol=1e-14)


# --- cost -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lazy:
    """Batches of series that exist only while they are looked at."""

    num_series: int
    batch_size: int

    def __iter__(self) -> Iterator[tuple[Array, Array]]:
        rng = np.random.default_rng(0)
        while True:
            chosen = rng.choice(self.num_series, self.batch_size, replace=False, shuffle=False)
            rows = [np.random.default_rng([7, n]).normal(size=len(X)) for n in chosen]
            yield X, np.stack(rows, axis=1)


def cost(num_series: int) -> tuple[float, int, float]:
    """Processor seconds of a step, peak of NumPy's memory, growth of the process's, in bytes."""
    times, before = [], psutil.Process().memory_info().rss

    def note(number: int, model: lkm.MinibatchLKM) -> None:
        times.append(time.process_time())
        if number == 10:  # from now on: tracing memory is slow
            tracemalloc.start()

    model = lkm.MinibatchLKM(start(), num_series)
    settings = lkm.MinibatchSettings(batch_size=32, num_steps=14)
    lkm.learn_by_minibatches(model, Lazy(num_series, 32), settings, callback=note)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    growth = psutil.Process().memory_info().rss - before
    return float(np.median(np.diff(times[:11]))), peak, growth


def test_cost_does_not_depend_on_the_number_of_series() -> None:
    """A thousand and two million: a copy of these would be 384 MB, a number for each 16 MB."""
    cost(1_000)  # what is loaded only once
    seconds, peak, growth = cost(1_000)
    many_seconds, many_peak, many_growth = cost(2_000_000)
    # Steps of milliseconds: the benchmark has the sharp limit, what grows with N is far beyond it.
    assert many_seconds < 3.0 * seconds
    assert many_peak < peak + 4e6
    # The memory of a process that has done other things goes up and down by tens of MB.
    assert many_growth < max(growth, 0.0) + 100e6


def test_a_memory_map_is_not_read_as_a_whole(tmp_path: Path) -> None:
    shape = (50_000, len(X))
    Y = np.lib.format.open_memmap(tmp_path / "series.npy", "w+", shape=shape)
    Y[:] = np.random.default_rng(0).normal(size=len(X))
    Y.flush()
    model = lkm.MinibatchLKM([Linear()], 50_000)
    tracemalloc.start()
    lkm.learn_by_minibatches(
        model,
        (X, np.load(tmp_path / "series.npy", mmap_mode="r").T),
        lkm.MinibatchSettings(batch_size=32, num_steps=2),
    )
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.6 * 8 * np.prod(shape)


# --- batches and errors ---------------------------------------------------------------------------


class Fussy(SquaredExponential):  # type: ignore[misc]
    """Without a gradient on a grid that begins above 5."""

    def K(self, X: tf.Tensor, X2: tf.Tensor | None = None) -> tf.Tensor:
        # There the value is fine, but the gradient of the root is infinity times zero.
        broken = tf.cast(X[0, 0] > 5.0, X.dtype)
        return super().K(X, X2) + 1e-9 * tf.sqrt(self.variance * (1.0 - broken))


def test_steps_without_a_finite_gradient_are_skipped() -> None:
    """Ready-made batches, even on different grids, start again when they end."""
    Y = planted(4)
    model = lkm.MinibatchLKM([Fussy(), Linear()], 8)
    settings = lkm.MinibatchSettings(num_steps=5)
    trace = lkm.learn_by_minibatches(model, [(X, Y), (X + 9.0, Y)], settings)
    assert trace.num_skipped == 2
    assert np.isfinite(lkm.elbo_in_batches(lkm.MinibatchLKM(model.kernels, 4), (X, Y), 2))
    with pytest.raises(ValueError, match="got none in all 5 steps"):
        lkm.learn_by_minibatches(model, [(X + 9.0, Y)], settings)


def test_errors_say_what_was_expected() -> None:
    model, Y = lkm.MinibatchLKM(start(), 6), planted(6)
    settings = lkm.MinibatchSettings(batch_size=3, num_steps=2)
    with pytest.raises(ValueError, match=r"N = 6 .* got shapes \(24, 1\) and \(24, 5\)"):
        lkm.learn_by_minibatches(model, (X, Y[:, :5]), settings)
    with pytest.raises(ValueError, match=r"N = 6 .* got shapes \(24, 1\) and \(6, 24\)"):
        lkm.elbo_in_batches(model, (X, Y.T), 3)
    with pytest.raises(ValueError, match="batch_size as a whole number of 1 or more, got 0"):
        lkm.elbo_in_batches(model, (X, Y), 0)
    with pytest.raises(ValueError, match="got one without batches"):
        lkm.learn_by_minibatches(model, [], settings)
    with pytest.raises(ValueError, match="got one without batches"):
        lkm.learn_by_minibatches(model, iter([(X, Y)]), settings)
    Y[3, 2] = np.inf
    with pytest.raises(ValueError, match="got inf in row 3"):
        lkm.learn_by_minibatches(model, (X, Y), lkm.MinibatchSettings(batch_size=6))
    for name, value in (
        ("batch_size", 0),
        ("num_steps", 0),
        ("half", 0),
        ("learning_rate", 0.0),
        ("forgetting", 0.5),
        ("averaged", 1.1),
    ):
        with pytest.raises(ValueError, match=f"{name}.* got {value}"):
            lkm.MinibatchSettings(**{name: value})


def test_fewer_series_than_a_batch_holds_are_one_batch() -> None:
    model, Y = lkm.MinibatchLKM(start(), 6), planted(6)
    trace = lkm.learn_by_minibatches(model, (X, Y), lkm.MinibatchSettings(num_steps=2))
    assert np.isfinite(trace.elbo).all()
    assert lkm.elbo_in_batches(model, (X, Y)) == pytest.approx(float(model.elbo((X, Y))))


class WithMore(lkm.MinibatchLKM):
    """A parameter that the bound does not know, and one that can take its kernels from it."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.unused = gpflow.Parameter(1.0)
        self.height = gpflow.Parameter(1.0)

    def component_covariances(self, X: tf.Tensor) -> tf.Tensor:
        return self.height * super().component_covariances(X)


def test_a_parameter_that_the_bound_does_not_use_stays() -> None:
    model = WithMore(start(), 6)
    settings = lkm.MinibatchSettings(batch_size=6, num_steps=3)
    trace = lkm.learn_by_minibatches(model, (X, planted(6)), settings)
    assert trace.num_skipped == 0
    assert model.unused.numpy() == 1.0
    assert model.height.numpy() != 1.0


def test_covariances_that_are_not_numbers_are_skipped() -> None:
    """Neither kernels nor tau move, whatever the backend says of NaN."""
    model, Y = WithMore(start(), 6), planted(6)
    settings = lkm.MinibatchSettings(batch_size=6, num_steps=3)
    tau = model.tau.numpy()
    model.height.unconstrained_variable.assign(np.nan)
    with pytest.raises(ValueError, match="got none in all 3 steps"):
        lkm.learn_by_minibatches(model, (X, Y), settings)
    np.testing.assert_array_equal(model.tau, tau)
    assert np.isnan(model.elbo((X, Y)))
