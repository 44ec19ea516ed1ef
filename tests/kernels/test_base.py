"""Base kernels against their formulas; what every registered kernel must pass."""

from __future__ import annotations

from typing import ClassVar

import gpflow
import mpmath
import numpy as np
import pytest
import tensorflow as tf
from gpflow.utilities import deepcopy, parameter_dict
from numpy.typing import NDArray

from lkm_gpflow.fit.engine import components
from lkm_gpflow.gp.types import FloatTensor
from lkm_gpflow.kernels import base as kernels
from lkm_gpflow.kernels import grammar
from lkm_gpflow.kernels import grammar as expressions
from lkm_gpflow.kernels.base import KERNELS, UnitKernel, ZeroMeanPeriodic, register_kernel
from lkm_gpflow.kernels.component import ComponentKernel, to_kernel
from lkm_gpflow.kernels.grammar import BaseKernel, Kind, Product, parse

Array = NDArray[np.float64]
SEEDS = range(3)
DRAWS = {
    Kind.DURATION: lambda rng: np.exp(rng.uniform(-3.0, 2.0)),
    Kind.MEMORY: lambda rng: np.exp(rng.uniform(-3.0, 2.0)),
    Kind.PERIOD: lambda rng: np.exp(rng.uniform(-2.0, 1.0)),
    Kind.RATIO: lambda rng: np.exp(rng.uniform(-3.0, 4.0)),
    Kind.LOCATION: lambda rng: rng.normal(scale=3.0),
    Kind.ORIGIN: lambda rng: rng.uniform(-2.0, 1.0),
    Kind.CHANGE: lambda rng: rng.uniform(0.0, 5.0),
    Kind.WIDTH: lambda rng: np.exp(rng.uniform(-3.0, 1.0)),
}


def draw_values(base: BaseKernel, seed: int) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    return {name: float(DRAWS[kind](rng)) for name, kind in base.parameters}


def make(name: str, seed: int = 0) -> UnitKernel:
    return KERNELS[name](**draw_values(KERNELS[name].base, seed))


def times(seed: int, size: int = 14) -> Array:
    """Uneven times in any order, one of them twice, [D, 1]."""
    X = np.random.default_rng(seed + 100).uniform(0.0, 5.0, size=(size, 1))
    X[3] = X[7]
    return X


@pytest.mark.parametrize("name", list(KERNELS))
class TestEveryKernel:
    @pytest.mark.parametrize("seed", SEEDS)
    def test_symmetric_and_positive_semi_definite(self, name: str, seed: int) -> None:
        full = make(name, seed)(times(seed)).numpy()
        np.testing.assert_array_equal(full, full.T)
        eigenvalues = np.linalg.eigvalsh(full)
        assert eigenvalues[0] >= -1e-12 * max(eigenvalues[-1], 1.0)
        assert eigenvalues[-1] > 1e-3

    @pytest.mark.parametrize("seed", SEEDS)
    def test_two_sets_of_times_and_the_diagonal(self, name: str, seed: int) -> None:
        kernel, X = make(name, seed), times(seed)
        full = kernel(X).numpy()
        np.testing.assert_array_equal(kernel(X, X), full)
        np.testing.assert_allclose(kernel(X[:6], X[4:]), full[:6, 4:], atol=1e-14)
        np.testing.assert_allclose(kernel(X, full_cov=False), np.diag(full), rtol=1e-12, atol=1e-12)

    def test_batch_is_a_loop(self, name: str) -> None:
        x = times(0)[:, 0]
        draws = [tuple(draw_values(KERNELS[name].base, seed).values()) for seed in SEEDS]
        stacked = [np.array(column)[:, None, None] for column in zip(*draws, strict=True)]
        batch = KERNELS[name].covariance(x[:, None], x[None, :], *stacked)
        shape = (len(draws), len(x), len(x))
        loop = [make(name, seed)(times(0)) for seed in SEEDS]
        np.testing.assert_allclose(np.broadcast_to(batch, shape), loop, rtol=1e-14, atol=1e-15)

    def test_a_copy_lives_its_own_life(self, name: str) -> None:
        kernel, X = make(name), times(0)
        before, copy = kernel(X).numpy(), deepcopy(kernel)
        assert type(copy) is type(kernel)
        np.testing.assert_array_equal(copy(X), before)
        for value in copy.values:
            value.assign(1.3 * value + 0.1)
        np.testing.assert_array_equal(kernel(X), before)
        if kernel.values:
            assert np.abs(copy(X) - before).max() > 1e-3

    @pytest.mark.parametrize("seed", SEEDS)
    def test_gradients_are_finite(self, name: str, seed: int) -> None:
        kernel, X = ComponentKernel([make(name, seed)], variance=0.7), times(seed)
        weights = np.random.default_rng(seed).normal(size=(len(X), len(X)))
        with tf.GradientTape() as tape:
            value = tf.reduce_sum(weights * kernel(X))
        gradients = tape.gradient(value, kernel.trainable_variables)
        learnt = [kind for _, kind in KERNELS[name].base.parameters if kind is not Kind.ORIGIN]
        assert len(gradients) == 1 + len(learnt)
        assert np.all(np.isfinite(gradients))

    def test_stationary_kernels_alone_may_be_shifted(self, name: str) -> None:
        kernel, X = make(name), np.round(times(0), 6)
        shifted = np.allclose(kernel(X + 8.0), kernel(X), atol=1e-9)
        assert shifted is KERNELS[name].base.stationary

    def test_a_change_of_units(self, name: str) -> None:
        product = ComponentKernel([make(name)], variance=0.7).to_expression()
        changed, X = to_kernel(product.change_units(8.0, 16.0)), times(0)
        np.testing.assert_allclose(changed(8.0 * X + 16.0), to_kernel(product)(X), atol=1e-9)

    def test_it_looks_at_its_column(self, name: str) -> None:
        values = draw_values(KERNELS[name].base, 0)
        X = np.hstack([times(1), times(2)])
        other = KERNELS[name](active_dims=[1], **values)
        np.testing.assert_array_equal(other(X), make(name)(X[:, 1:]))
        np.testing.assert_array_equal(
            other(X, full_cov=False), other(X[:, 1:][:, [0, 0]], full_cov=False)
        )

    def test_missing_or_foreign_values_are_refused(self, name: str) -> None:
        with pytest.raises(ValueError, match=rf"{name}: expected values for \[.*'nothing'\]"):
            KERNELS[name](**draw_values(KERNELS[name].base, 0), nothing=1.0)


# --- formulas ------------------------------------------------------------------------------------


X0 = times(0)
R = X0 - X0.T


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.7 x WN", 0.7 * (R == 0.0)),
        ("0.7 x C", 0.7 * np.ones_like(R)),
        ("0.7 x LIN(location=1.2)", 0.7 * (X0 - 1.2) * (X0.T - 1.2)),
        (
            "0.7 x UNTIL(at=2.1, width=0.4)",
            0.7 / np.outer(1.0 + np.exp((X0 - 2.1) / 0.4), 1.0 + np.exp((X0 - 2.1) / 0.4)),
        ),
        (
            "0.7 x FROM(at=2.1, width=0.4)",
            0.7 / np.outer(1.0 + np.exp((2.1 - X0) / 0.4), 1.0 + np.exp((2.1 - X0) / 0.4)),
        ),
        ("0.7 x SE(lengthscale=0.9)", 0.7 * np.exp(-(R**2) / (2.0 * 0.9**2))),
        ("0.7 x OU(lengthscale=0.9)", 0.7 * np.exp(-np.abs(R) / 0.9)),
        ("0.7 x RW(start=-0.4)", 0.7 * (np.minimum(X0, X0.T) + 0.4)),
        ("0.7 x RW(start=2)", 0.7 * np.maximum(np.minimum(X0, X0.T) - 2.0, 0.0)),
        (
            "0.7 x LIN(location=1.2) x LIN(location=4) x SE(lengthscale=0.9)",
            0.7 * (X0 - 1.2) * (X0.T - 1.2) * (X0 - 4.0) * (X0.T - 4.0) * np.exp(-(R**2) / 1.62),
        ),
    ],
)
def test_formulas(text: str, expected: Array) -> None:
    np.testing.assert_allclose(to_kernel(parse(text))(X0), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("lengthscale", [0.05, 0.7, 30.0])
def test_integrated_ornstein_uhlenbeck_is_the_integral_of_its_velocity(lengthscale: float) -> None:
    """k(s, t) is the double integral of the covariance exp(-|u - v| / l) / 2 l of the velocity."""
    kernel = to_kernel(parse(f"0.3 x IOU(lengthscale={lengthscale}, start=-0.5)"))
    for s, t in [(0.2, 0.2), (0.2, 1.4), (1.4, 0.9)]:

        def inner(u: float, upper: float = t + 0.5) -> float:
            points = sorted({0.0, min(u, upper), upper})
            return mpmath.quad(lambda v: mpmath.exp(-abs(u - v) / lengthscale), points)

        upper = s + 0.5
        expected = mpmath.quad(inner, sorted({0.0, min(upper, t + 0.5), upper})) / (2 * lengthscale)
        found = kernel(np.array([[s]]), np.array([[t]])).numpy().item()
        assert found == pytest.approx(0.3 * float(expected), rel=1e-9)


# --- the periodic kernel -------------------------------------------------------------------------

LENGTHSCALES = np.logspace(-3.0, 6.0, 19)
PERIOD = 0.7


def lags(lengthscale: float) -> Array:
    """Zero, multiples, long ones, and those where the kernel falls steepest."""
    turns = [0.0, 1.0, 2.0, 0.25, 1.0 / 3.0, 0.5, 0.14, 12.3, 137.0, 1234.567]
    steep = [m + factor * lengthscale for m in (0, 3, 211) for factor in (0.05, 0.16, 0.4)]
    return PERIOD * np.array(turns + steep)


def exact(r: mpmath.mpf, period: mpmath.mpf, lengthscale: mpmath.mpf) -> mpmath.mpf:
    """The formula of the paper's appendix A, with 40 digits."""
    precision = 1 / lengthscale**2
    mean = mpmath.besseli(0, precision)
    value = mpmath.exp(mpmath.cos(2 * mpmath.pi * r / period) * precision)
    return (value - mean) / (mpmath.exp(precision) - mean)


def exact_slopes(r: mpmath.mpf, p: mpmath.mpf, l: mpmath.mpf) -> tuple[mpmath.mpf, mpmath.mpf]:
    """Derivatives of `exact` with respect to log period and log lengthscale, by hand."""
    x, angle = 1 / l**2, 2 * mpmath.pi * r / p
    c, top = mpmath.cos(angle), mpmath.exp(1 / l**2)
    mean, slope = mpmath.besseli(0, x), mpmath.besseli(1, x)
    value = mpmath.exp(c * x)
    by_period = value * x * mpmath.sin(angle) * angle / (top - mean)
    by_precision = (c * value - slope) / (top - mean)
    by_precision -= (value - mean) * (top - slope) / (top - mean) ** 2
    return by_period, -2 * x * by_precision


@pytest.mark.parametrize("lengthscale", LENGTHSCALES)
def test_periodic_kernel_and_its_gradient(lengthscale: float) -> None:
    r = lags(lengthscale)
    values = [tf.fill([len(r), 1, 1], tf.constant(v, tf.float64)) for v in (PERIOD, lengthscale)]
    with tf.GradientTape() as tape:
        tape.watch(values)
        found = ZeroMeanPeriodic.covariance(r[:, None, None], np.zeros((1, 1)), *values)
    by_period, by_lengthscale = tape.gradient(found, values)
    with mpmath.workdps(60):
        p, l = mpmath.mpf(PERIOD), mpmath.mpf(lengthscale)
        expected = [float(exact(mpmath.mpf(one), p, l)) for one in r]
        slopes = np.array([exact_slopes(mpmath.mpf(one), p, l) for one in r], np.float64)
    np.testing.assert_allclose(found[:, 0, 0], expected, rtol=0.0, atol=1e-12)
    # With respect to the logarithms, on which they are learnt: all of order one, or r / p.
    scale = np.maximum(1.0, r / PERIOD)
    error = (by_period[:, 0, 0] * PERIOD - slopes[:, 0]) / scale
    np.testing.assert_allclose(error, 0.0, atol=1e-11 * max(1.0, 1.0 / lengthscale))
    np.testing.assert_allclose(by_lengthscale[:, 0, 0] * lengthscale, slopes[:, 1], atol=1e-11)


@pytest.mark.parametrize("lengthscale", [0.05, 0.3, 1.0, 1.41, 1.42, 5.0, 1e6])
def test_periodic_kernel_has_zero_mean(lengthscale: float) -> None:
    kernel = KERNELS["PER"](period=PERIOD, lengthscale=lengthscale)
    X = np.linspace(0.0, PERIOD, 4000, endpoint=False)[:, None]
    row = kernel(X, X[:1]).numpy()
    assert abs(row.mean()) < 1e-12
    assert row[0, 0] == pytest.approx(1.0, abs=1e-14)
    np.testing.assert_allclose(kernel(X + PERIOD, X[:1]), row, atol=1e-10)


# --- components ----------------------------------------------------------------------------------

COMPLETE = [
    "0.5 x C",
    "0.5 x WN",
    "2 x RW(start=-1) x SE(lengthscale=2)",
    "0.1 x LIN(location=0.5) x LIN(location=-2)",
    "0.3 x PER(period=1.5, lengthscale=0.7) x PER(period=0.4, lengthscale=2) x SE(lengthscale=3)",
]


@pytest.mark.parametrize("text", COMPLETE)
def test_component_is_a_product_with_one_variance(text: str) -> None:
    product = parse(text)
    kernel = to_kernel(product)
    paths = [path for path in parameter_dict(kernel) if path.endswith("variance")]
    assert paths == [".variance"]
    learnt = sum(int(tf.size(one)) for one in kernel.trainable_parameters)
    assert learnt == product.num_parameters
    expected = product.variance * np.prod(
        [to_kernel(Product((factor,), 1.0))(X0) for factor in product.factors], axis=0
    )
    np.testing.assert_allclose(kernel(X0), expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel(X0, X0[:3]), expected[:, :3], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel(X0, full_cov=False), np.diag(expected), rtol=1e-12)


@pytest.mark.parametrize("text", COMPLETE)
def test_expression_round_trip(text: str) -> None:
    kernel = to_kernel(parse(text))
    assert format(kernel.to_expression(), ".12g") == format(parse(text), ".12g")
    kernel.variance.assign(0.125)
    assert kernel.to_expression().variance == pytest.approx(0.125)


@pytest.mark.parametrize("text", ["SE(lengthscale=1)", "2 x SE", "1 x PER(period=1)"])
def test_numbers_must_be_there(text: str) -> None:
    with pytest.raises(ValueError, match=r"expression with all its numbers, got .*(SE|PER)"):
        to_kernel(parse(text))


# --- a kernel of one's own -----------------------------------------------------------------------


class Matern12(UnitKernel):
    base: ClassVar[BaseKernel] = BaseKernel("MA12", (("lengthscale", Kind.DURATION),))

    @staticmethod
    def covariance(x: FloatTensor, x2: FloatTensor, *parameters: FloatTensor) -> FloatTensor:
        return tf.exp(-tf.abs(x - x2) / parameters[0])


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Registries that forget what a test adds: set and deleted, so that undoing deletes."""
    for known in (KERNELS, grammar._REGISTRY, grammar._WORDS):
        monkeypatch.setitem(known, "MA12", None)
        monkeypatch.delitem(known, "MA12")
    return monkeypatch


@pytest.mark.usefixtures("registry")
def test_a_registered_kernel_works_everywhere() -> None:
    with pytest.raises(ValueError, match=r"expected a base kernel among .*got 'MA12'"):
        parse("MA12")
    assert register_kernel(Matern12) is Matern12
    assert register_kernel(Matern12) is Matern12  # a notebook's cell that runs again
    product = parse("0.4 x MA12(lengthscale=1.3) x PER(period=0.6, lengthscale=1)")
    derived = expressions.expand(parse("SE"), ("SE", "MA12"))
    assert [str(one) for one in derived] == ["SE", "MA12 x SE", "MA12"]
    gpflows = gpflow.kernels.Matern12(variance=0.4, lengthscales=1.3)
    periodic = to_kernel(parse("1 x PER(period=0.6, lengthscale=1)"))
    expected = gpflows(X0).numpy() * periodic(X0).numpy()
    np.testing.assert_allclose(to_kernel(product)(X0), expected, rtol=1e-10, atol=1e-14)
    found = components([product], np.sort(X0[:, 0]))[0]
    order = np.argsort(X0[:, 0])
    np.testing.assert_allclose(found, expected[np.ix_(order, order)], rtol=1e-10, atol=1e-14)


@pytest.mark.usefixtures("registry")
def test_another_kernel_of_the_same_name_is_refused() -> None:
    class Other(Matern12):
        base = BaseKernel("MA12", (("period", Kind.PERIOD),))

    register_kernel(Matern12)

    class Copy(Matern12):
        """The same base, but not the same class."""

    class Better(kernels.SquaredExponential):
        """Would be every SE from here on."""

    for other, name in ((Other, "MA12"), (Copy, "MA12"), (Better, "SE")):
        with pytest.raises(ValueError, match=f"there is another base kernel named {name}"):
            register_kernel(other)
    assert kernels.KERNELS["MA12"] is Matern12
    assert kernels.KERNELS["SE"] is kernels.SquaredExponential


@pytest.mark.usefixtures("registry")
def test_a_cell_that_was_edited_replaces_its_kernel() -> None:
    """Also with other hyperparameters, because it is the same class, defined again."""

    def cell(base: BaseKernel, factor: float) -> type[UnitKernel]:
        class Mine(UnitKernel):
            @staticmethod
            def covariance(x: FloatTensor, x2: FloatTensor, *values: FloatTensor) -> FloatTensor:
                return factor * tf.exp(-tf.abs(x - x2) / values[0])

        Mine.base = base
        return register_kernel(Mine)

    x = np.linspace(0.0, 1.0, 4)
    cell(BaseKernel("MINE", (("lengthscale", Kind.DURATION),)), 1.0)
    before = components([parse("1 x MINE(lengthscale=0.5)")], x)
    again = cell(BaseKernel("MINE", (("memory", Kind.MEMORY), ("shape", Kind.RATIO))), 2.0)
    after = components([parse("1 x MINE(memory=0.5, shape=1)")], x)
    np.testing.assert_allclose(after, 2.0 * before)
    assert kernels.KERNELS["MINE"] is again


BASE = BaseKernel("ODD", (("lengthscale", Kind.DURATION),))


class NoCovariance(UnitKernel):
    base = BASE


class NoBase(UnitKernel):
    @staticmethod
    def covariance(x: FloatTensor, x2: FloatTensor, *parameters: FloatTensor) -> FloatTensor:
        return tf.ones_like(x - x2)


class OnTheDiagonal(UnitKernel):
    base = BASE

    @staticmethod
    def covariance(x: FloatTensor, x2: FloatTensor, *parameters: FloatTensor) -> FloatTensor:
        return tf.reduce_sum(tf.abs(x - x2) / parameters[0], axis=-1)


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize(
    ("kernel", "complaint"),
    [
        (NoCovariance, "NoCovariance: expected a static method covariance"),
        (NoBase, r"NoBase: expected base = BaseKernel\(\.\.\.\), got None"),
        (OnTheDiagonal, r"OnTheDiagonal.covariance: .*broadcasts to \[3, 4, 5\], got .*3, 4"),
        (gpflow.kernels.SquaredExponential, "expected a subclass of UnitKernel"),
    ],
)
def test_what_is_no_base_kernel_is_refused(kernel: type[UnitKernel], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        register_kernel(kernel)
    assert "ODD" not in KERNELS
    with pytest.raises(ValueError, match="got 'ODD'"):
        parse("ODD")


def test_what_is_no_expression_is_refused() -> None:
    with pytest.raises(ValueError, match=r"expected a kernel expression such as .*, got None"):
        parse(None)
    with pytest.raises(ValueError, match="expected an expression, as `parse` returns it, got 'SE'"):
        to_kernel("SE")
    for factors in ([], ["SE"]):
        with pytest.raises(ValueError, match="factors: expected at least one kernel, got"):
            ComponentKernel(factors)
