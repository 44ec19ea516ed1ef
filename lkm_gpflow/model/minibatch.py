"""The Latent Kernel Model for more series than fit into memory: a bound from minibatches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, get_args

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import RegressionData, TensorType
from gpflow.kernels import Kernel
from gpflow.utilities import to_default_float

from ..gp.types import FloatTensor
from ..runtime.text import whole_number
from . import model_data
from .configurations import all_configurations
from .ibp import FiniteIBP
from .lkm import LKM
from .local_steps import NOISE_GRID, LocalTerms, best_enumerated, best_mean_field, local_terms
from .posteriors import EnumeratedPosterior, RelaxedPosterior

PosteriorName = Literal["enumerated", "relaxed"]

_LOCAL_STEPS = {"enumerated": best_enumerated, "relaxed": best_mean_field}


class MinibatchLKM(gpflow.models.BayesianModel, gpflow.models.ExternalDataTrainingLossMixin):
    r"""Latent Kernel Model that sees B of its N series at a time, at a cost independent of N.

    The model is that of `LKM` with the finite prior.  Its bound is a sum over series plus a term of
    the component weights, so a batch b of B series, drawn uniformly, estimates it without bias:

    .. math::
        \widehat{\mathrm{ELBO}} = \frac{N}{B} \sum_{n \in b} \max_{q(z_n), \sigma_n^2}
            \ell_n(q(z_n), \sigma_n^2) + E_q[\log p(\pi)] + H[q(\pi)]

    The kernels and ``tau`` are shared.  q(z_n) and the noise sigma_n^2 are local: both are set to
    their optimum inside the batch (`local_steps`) and forgotten after it, so nothing of size N is
    stored.  Every series has its own noise, as in `LKM`: a search over one
    number per series is cheap once the covariances are decomposed, and makes this
    bound and that of `LKM` the same.  Sources: Tong and Choi 2019, section "Latent Kernel Model";
    Hoffman et al. 2013, *Stochastic Variational Inference*.

    A step decomposes 2^K covariances for each pattern of gaps in the batch, whatever B: it takes
    time of order ``2^K (D^3 + B D^2)`` and memory of order ``2^K (D^2 + B D)``; the numbers are in
    `minibatch_learning`.

    Parameters
    ----------
    kernels
        The K components, any GPflow kernels of one output, at most 12.
    num_series
        N, the number of all series; at least 1.
    alpha
        Concentration of the Indian buffet process, positive.
    posterior
        "enumerated" for q(z_n) of any form, "relaxed" for independent components, the posterior
        that `RelaxedPosterior` reaches by a relaxation; here its exact bound is climbed by
        coordinate steps.

    Attributes
    ----------
    tau
        Beta parameters of the posterior of the component weights, a parameter [K, 2].
    lkm_class
        The class of `to_lkm`: of a subclass with other covariances one that has them too.

    Raises
    ------
    ValueError
        If an argument is not as described: the message says what was expected, what was given, and
        where.

    Notes
    -----
    Amplitudes of series (`LKM`) are not offered: the local steps are those of Gaussians.

    Methods take ``data``, a pair of X [D, 1] and Y [D, B], one column per series and NaN a missing
    observation, scaled to about unit variance.  Probabilities, predictions and the rest are those
    of `to_lkm`, for one batch at a time.

    Examples
    --------
    >>> import gpflow, numpy as np, lkm_gpflow as lkm
    >>> X = np.linspace(0.0, 1.0, 30)[:, None]
    >>> Y = np.random.default_rng(0).normal(size=(30, 500))  # or np.load(..., mmap_mode="r").T
    >>> kernels = [gpflow.kernels.SquaredExponential(), gpflow.kernels.Linear()]
    >>> model = lkm.MinibatchLKM(kernels, num_series=500)
    >>> settings = lkm.MinibatchSettings(batch_size=50, num_steps=20)
    >>> trace = lkm.learn_by_minibatches(model, (X, Y), settings, seed=0)
    >>> first = (X, Y[:, :5])
    >>> model.probabilities(first).shape
    TensorShape([5, 2])
    >>> mean, variance = model.to_lkm(first).predict_y(X)
    """

    lkm_class: ClassVar[type[LKM]] = LKM

    def __init__(
        self,
        kernels: Sequence[Kernel],
        num_series: int,
        alpha: float = 1.0,
        posterior: PosteriorName = "enumerated",
    ) -> None:
        super().__init__()
        if posterior not in get_args(PosteriorName):
            raise ValueError(
                f"posterior: expected one of {sorted(get_args(PosteriorName))}, got {posterior!r}"
            )
        self.kernels = model_data.checked_kernels(kernels, num_inputs=1)
        self.num_series = whole_number(num_series, "num_series", 1)
        self.posterior = posterior
        self.prior = FiniteIBP(alpha, len(self.kernels))
        self._configurations = all_configurations(len(self.kernels))
        self.tau = model_data.initial_tau(self.prior, num_series)

    @property
    def num_components(self) -> int:
        """K."""
        return len(self.kernels)

    # --- learning -------------------------------------------------------------------------------

    @inherit_check_shapes
    def maximum_log_likelihood_objective(self, data: RegressionData) -> FloatTensor:
        """The estimate of the evidence lower bound of all N series, `elbo`."""
        return self.elbo(data)

    @check_shapes("return: []")
    def elbo(self, data: RegressionData) -> FloatTensor:
        """Unbiased estimate, from a batch, of the evidence lower bound of all N series.

        If B = N it is the bound itself: that of `LKM` with the best noise and the best q(Z).
        """
        return self.elbo_from(self.local_terms(data))

    def elbo_from(self, terms: LocalTerms) -> FloatTensor:
        """The estimate, if the terms of the batch are known already."""
        return self._scale(terms) * tf.reduce_sum(terms.bounds) + self.global_bound()

    @check_shapes("return: []")
    def global_bound(self) -> FloatTensor:
        """The part of the bound that no series contributes to: ``E_q[log p(pi)] + H[q(pi)]``."""
        return self.prior.expected_log_weights(self.tau) + self.prior.entropy(self.tau)

    def update_tau(self, data: RegressionData, rate: float = 1.0) -> None:
        r"""Move tau by a natural gradient step of size `rate` on a batch.

        .. math::
            \tau \leftarrow (1 - \rho) \tau + \rho \Big[ (\alpha / K, 1)
                + \frac{N}{B} \sum_{n \in b} (\nu_n, 1 - \nu_n) \Big]

        With rate 1 and all series it is `LKM.update_tau`.  Source: Hoffman et al. 2013.

        Raises
        ------
        ValueError
            If the rate is not above 0 and at most 1, or the data are not as described.
        """
        if not 0.0 < rate <= 1.0:
            raise ValueError(f"rate: expected a number above 0 and at most 1, got {rate!r}")
        self.update_tau_from(self.local_terms(data), rate)

    def update_tau_from(self, terms: LocalTerms, rate: TensorType) -> None:
        """`update_tau`, if the terms of the batch are known already."""
        # The best tau is a sum over series plus the prior's own.
        alone = self.prior.best_tau(np.zeros((0, self.num_components)))
        of_batch = self.prior.best_tau(self._marginals(terms)) - alone
        target = alone + self._scale(terms) * of_batch
        self.tau.assign(self.tau + rate * (target - self.tau))

    def _scale(self, terms: LocalTerms) -> FloatTensor:
        """N / B."""
        return self.num_series / tf.cast(tf.shape(terms.bounds)[0], terms.bounds.dtype)

    @check_shapes("X: [D, 1]", "return: [K, D, D]")
    def component_covariances(self, X: TensorType) -> FloatTensor:
        """Covariance matrices of all components, [K, D, D].

        A subclass that overrides it to change them also names, as ``lkm_class``, a subclass of
        `LKM` with the same covariances.
        """
        return tf.stack([kernel(X) for kernel in self.kernels])

    def local_terms(self, data: RegressionData) -> LocalTerms:
        """Bound, noise and q(z_n) of every series of a batch, the last two at their optimum.

        Series that lack the same points share their eigendecompositions: the cost of a batch is
        proportional to its number of different patterns of gaps.

        Raises
        ------
        ValueError
            If X or Y have other shapes than [D, 1] and [D, B], or numbers that are not finite (NaN
            in Y is a missing observation), or mean squares beyond those of scaled series.
        """
        X, Y = checked_batch(data)
        observed = tf.transpose(tf.math.is_finite(Y))
        rows = tf.where(observed, tf.transpose(Y), tf.zeros([], Y.dtype))
        t = self._configurations
        covariance = tf.tensordot(t, self.component_covariances(X), axes=1)
        on, off = self.prior.expected_log_on(self.tau), self.prior.expected_log_off(self.tau)
        log_prior = tf.linalg.matvec(t, on) + tf.linalg.matvec(1.0 - t, off)
        patterns, pattern_of = tf.raw_ops.UniqueV2(x=tf.cast(observed, tf.int32), axis=[0])[:2]
        step = _LOCAL_STEPS[self.posterior]

        @tf.autograph.experimental.do_not_convert
        def of_pattern(number: tf.Tensor) -> LocalTerms:
            """The terms of the series with this pattern, zero for all others."""
            series = tf.cast(tf.where(tf.equal(pattern_of, number)), tf.int32)
            mask = tf.cast(patterns[number], Y.dtype)
            terms = local_terms(covariance, tf.gather_nd(rows, series), mask, log_prior, t, step)
            sizes = [tf.concat([tf.shape(rows)[:1], tf.shape(term)[1:]], 0) for term in terms]
            return LocalTerms(*map(tf.scatter_nd, [series] * len(terms), terms, sizes))

        numbers = tf.range(tf.shape(patterns)[0])
        like = tf.TensorSpec([None], Y.dtype)
        parts = tf.map_fn(
            of_pattern,
            numbers,
            fn_output_signature=LocalTerms(like, like, tf.TensorSpec([None, len(t)], Y.dtype)),
            parallel_iterations=1,
        )
        return LocalTerms(*(tf.reduce_sum(part, axis=0) for part in parts))

    # --- what was found -------------------------------------------------------------------------

    @check_shapes("return: [B, K]")
    def probabilities(self, data: RegressionData) -> FloatTensor:
        """Posterior probabilities that the series of a batch have the components, [B, K]."""
        return self._marginals(self.local_terms(data))

    @check_shapes("return: [B, K]")
    def assignment(self, data: RegressionData) -> FloatTensor:
        """The most probable configuration of each series of a batch, zeros and ones, [B, K]."""
        most_probable = tf.argmax(self.local_terms(data).log_weights, axis=1)
        return tf.gather(self._configurations, most_probable)

    def _marginals(self, terms: LocalTerms) -> FloatTensor:
        # Sums of probabilities may pass one by a rounding error.
        return tf.minimum(tf.matmul(tf.exp(terms.log_weights), self._configurations), 1.0)

    def to_lkm(self, data: RegressionData) -> LKM:
        """An `LKM` of one batch with what was learnt: for predictions, components and the rest.

        It has copies of the kernels, the noise and q(Z) of the batch, tau of all series, and of
        other parameters those that it has by the same path.

        Raises
        ------
        ValueError
            As `local_terms`, or if covariances were changed here and not in ``lkm_class``.
        """
        is_changed = type(self).component_covariances is not MinibatchLKM.component_covariances
        if is_changed and self.lkm_class is LKM:
            raise ValueError(
                f"{type(self).__name__}: expected lkm_class = a subclass of LKM with the "
                "covariances of component_covariances, which is overridden here, got LKM"
            )
        X, Y = (np.asarray(part, dtype=np.float64) for part in data)
        terms = self.local_terms((X, Y))
        relaxed = RelaxedPosterior() if self.posterior == "relaxed" else None
        model = self.lkm_class(
            (X, Y),
            gpflow.utilities.deepcopy(self.kernels),
            posterior=relaxed or EnumeratedPosterior(),
            noise_variance=terms.noise_variance.numpy(),
            prior=self.prior,
        )
        known = gpflow.utilities.parameter_dict(model)
        learnt = gpflow.utilities.read_values(self).items()
        gpflow.utilities.multiple_assign(
            model, {path: v for path, v in learnt if path in known and ".kernels" not in path}
        )
        if relaxed is not None:
            on = self._configurations[None] > 0.5  # [1, T, K]
            log_weights = terms.log_weights[:, :, None]
            odds = [
                tf.reduce_logsumexp(tf.where(chosen, log_weights, -np.inf), axis=1)
                for chosen in (on, ~on)
            ]
            relaxed.logits.assign(odds[0] - odds[1])
        return model


def checked_batch(data: RegressionData) -> tuple[FloatTensor, FloatTensor]:
    """X [D, 1] and Y [D, B] as float64 tensors, checked as far as the graph knows them.

    Raises
    ------
    ValueError
        If shapes or numbers are not as `MinibatchLKM.local_terms` wants them.
    """
    X, Y = (to_default_float(part) for part in data)
    fits = X.shape.is_compatible_with([None, 1]) and Y.shape.is_compatible_with([None, None])
    if not fits or 0 in Y.shape.as_list():
        raise ValueError(
            "data: expected X [D, 1] and Y [D, B] with at least one row and one series, "
            f"got shapes {tuple(X.shape)} and {tuple(Y.shape)}"
        )
    if not X.shape[:1].is_compatible_with(Y.shape[:1]):
        raise ValueError(
            "data: expected as many rows in Y [D, B] as in X [D, 1] (series are columns), "
            f"got shapes {tuple(X.shape)} and {tuple(Y.shape)}"
        )
    if tf.executing_eagerly():
        model_data.checked_data((X.numpy(), Y.numpy()))
        largest = np.nanmean(np.square(Y.numpy()), axis=0)
        if largest.max() > NOISE_GRID[-1]:
            raise ValueError(
                f"data: expected series scaled to about unit variance, got a mean square of "
                f"{largest.max():g} in column {largest.argmax()} of Y"
            )
        return X, Y
    # Inside a graph there are no numbers to look at yet: these checks run with it.
    finite = tf.debugging.Assert(
        tf.reduce_all(tf.math.is_finite(X)) & ~tf.reduce_any(tf.math.is_inf(Y)),
        ["data: expected finite numbers (or NaN for a missing one in Y), got others"],
    )
    with tf.control_dependencies([finite]):
        return tf.identity(X), tf.identity(Y)
