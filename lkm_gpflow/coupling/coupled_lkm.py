"""The Latent Kernel Model with series that know of each other, as a GPflow model."""

from __future__ import annotations

from collections.abc import Sequence

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import AnyNDArray, MeanAndVariance, RegressionData, TensorType
from gpflow.kernels import Kernel
from gpflow.utilities import positive, to_default_float

from ..gp.tensors import check_positive_definite, gaussian_log_density
from ..gp.types import FloatTensor
from ..model import model_data
from ..model.components import OfComponents
from .density import check_number_of_cells


class CoupledLKM(
    OfComponents, gpflow.models.BayesianModel, gpflow.models.InternalDataTrainingLossMixin
):
    r"""Latent Kernel Model of a given Z in which the components of different series covary.

    .. math::
        \mathrm{cov}(f_n(t), f_m(t')) = \sum_k a_{nk} a_{mk} R_k[n, m]\, k_k(t, t'), \qquad
        a_{nk} = z_{nk} \sqrt{h_{nk}}

        x_n(t) = f_n(t) + e_n(t), \qquad
        \mathrm{cov}(e_n(t), e_m(t)) = \sigma_n \sigma_m R_{K+1}[n, m]

    The correlations are low rank plus diagonal: :math:`R_k[n, m] = w_{kn}^\top w_{km}` for
    different series, one for a series and itself, with :math:`|w_{kn}| < 1`.  Every series alone is
    that of `LKM`, and with all w zero so are all together.  It is the linear model of
    coregionalisation (Alvarez, Rosasco and Lawrence 2012, section 4.2) in which a series takes part
    in the kernels that it has.

    Parameters
    ----------
    data
        ``(X, Y)``: inputs [D, Q] and observations [D, N], NaN where missing.
    kernels
        The K components, any GPflow kernels of one output.
    Z
        Who has which component, [N, K].
    heights
        h, factors of the variances, [N, K]; None for ones.
    noise_variance
        sigma_n^2, a number or [N].
    loadings
        w of components and, last, of the noise, [K + 1, N, R]; None for zeros with R = 1.

    Attributes
    ----------
    u
        Loadings as they are learnt, a parameter: ``w = u / sqrt(1 + |u|^2)``.  Where all of them
        are zero so is their gradient: a search begins elsewhere.

    Raises
    ------
    ValueError
        If an argument is not as described, or there are too many observed values (see
        `numerics.coregion.LARGEST`) for a dense covariance of all.
    """

    def __init__(
        self,
        data: RegressionData,
        kernels: Sequence[Kernel],
        Z: AnyNDArray,
        *,
        heights: AnyNDArray | None = None,
        noise_variance: float | AnyNDArray = 1.0,
        loadings: AnyNDArray | None = None,
    ) -> None:
        super().__init__()
        X, Y = model_data.checked_data(data)
        self.data = (to_default_float(X), to_default_float(Y))
        self.observations = model_data.ModelData.from_table(Y)
        check_number_of_cells(self.observations.num_observed)
        self.kernels = model_data.checked_kernels(kernels, num_inputs=X.shape[1])
        N, K = Y.shape[1], len(self.kernels)
        Z = np.asarray(Z, np.float64)
        if Z.shape != (N, K) or not np.all((Z == 0.0) | (Z == 1.0)):
            raise ValueError(f"Z: expected zeros and ones of shape {(N, K)}, given {Z!r}")
        self.Z = to_default_float(Z)
        h = np.ones((N, K)) if heights is None else np.asarray(heights, np.float64)
        if h.shape != (N, K) or not np.all((h > 0.0) & np.isfinite(h)):
            raise ValueError(f"heights: expected positive numbers of shape {(N, K)}, given {h!r}")
        self.heights = gpflow.Parameter(h, transform=positive(base="exp"))
        self.noise_variance = gpflow.Parameter(
            model_data.checked_noise(noise_variance, N),
            transform=positive(lower=model_data.MIN_NOISE_VARIANCE),
        )
        w = np.zeros((K + 1, N, 1)) if loadings is None else np.asarray(loadings, np.float64)
        length = np.square(w).sum(axis=-1, keepdims=True)
        if w.ndim != 3 or w.shape[:2] != (K + 1, N) or not np.all(length < 1.0):
            raise ValueError(
                f"loadings: expected an array of shape ({K + 1}, {N}, R), a row for each series "
                f"whose length is below one, given shape {w.shape} and lengths up to "
                f"{np.sqrt(length.max(initial=0.0)):.3g}"
            )
        self.u = gpflow.Parameter(w / np.sqrt(1.0 - length))

    # --- covariances ----------------------------------------------------------------------------

    @property
    def loadings(self) -> FloatTensor:
        """w, [K + 1, N, R]."""
        return self.u / tf.sqrt(1.0 + tf.reduce_sum(tf.square(self.u), axis=-1, keepdims=True))

    @check_shapes("return: [L, N, N]")
    def correlations(self) -> FloatTensor:
        """R of every component and, last, of the noise, [K + 1, N, N]."""
        w = self.loadings
        R = tf.matmul(w, w, transpose_b=True)
        return tf.linalg.set_diag(R, tf.ones(tf.shape(R)[:-1], R.dtype))

    def _amplitudes(self) -> FloatTensor:
        """Amplitudes of components and, last, standard deviations of the noise, [K + 1, N]."""
        a = tf.transpose(self.Z * tf.sqrt(self.heights))
        return tf.concat([a, tf.sqrt(self.noise_variance)[None]], axis=0)

    def _between_series(self) -> tuple[FloatTensor, FloatTensor]:
        """Of different cells, and what the noise of every single cell has besides.

        Returns
        -------
        B, with ``B_k[n, m] = a_nk a_mk R_k[n, m]``, [K + 1, N, N]: but of the noise of a series
        what another observation of the same series and time has in common with it,
        ``sigma_n^2 |w_n|^2``.  And what it has not, [N].
        """
        a = self._amplitudes()
        shared = self.noise_variance * tf.reduce_sum(tf.square(self.loadings[-1]), axis=-1)
        B = self.correlations() * a[:, :, None] * a[:, None, :]
        B = tf.concat([B[:-1], tf.linalg.set_diag(B[-1:], shared[None])], axis=0)
        return B, self.noise_variance - shared

    def _over_time(self, X: FloatTensor, X2: FloatTensor) -> FloatTensor:
        """Of components and noise, which is one where times are the same, [K + 1, D, D2]."""
        same = tf.reduce_all(tf.equal(X[:, None, :], X2[None, :, :]), axis=-1)
        square = None if X is X2 else X2
        C = self.component_covariances(X, square)
        return tf.concat([C, tf.cast(same, C.dtype)[None]], axis=0)

    def _observed(self) -> tuple[AnyNDArray, AnyNDArray]:
        """Series and row of every observed cell, [M] each."""
        series, rows = np.nonzero(~np.isnan(self.data[1].numpy().T))
        return series, rows

    @check_shapes("return: [M, M]")
    def covariance(self) -> FloatTensor:
        """Covariance of the observed cells with noise, series after series, [M, M]."""
        X, _ = self.data
        series, rows = self._observed()
        B, own = self._between_series()
        V = _of_cells(B, self._over_time(X, X), series, series, rows, rows)
        return V + tf.linalg.diag(tf.gather(own, series))

    # --- learning -------------------------------------------------------------------------------

    @inherit_check_shapes
    def maximum_log_likelihood_objective(self) -> FloatTensor:
        """``log p(x_1, ..., x_N)``, see `log_likelihood`."""
        return self.log_likelihood()

    @check_shapes("return: []")
    def log_likelihood(self) -> FloatTensor:
        """Log density of all series together, f integrated out; NaN where it cannot be had."""
        return gaussian_log_density(self.covariance(), self._values())

    def _values(self) -> FloatTensor:
        series, rows = self._observed()
        return to_default_float(self.data[1].numpy()[rows, series])

    # --- prediction -----------------------------------------------------------------------------

    @check_shapes(
        "series: [P]",
        "X: [P, Q]",
        "return[0]: [P]",
        "return[1]: [P, P]",
    )
    def predict_cells(
        self, series: TensorType, X: TensorType, *, noise: bool = True
    ) -> MeanAndVariance:
        """Mean and covariance of cells: of series at times of their own.

        Parameters
        ----------
        series
            Numbers of series, [P].
        X
            Their inputs, [P, Q].
        noise
            Whether of new observations; else of the functions without noise.

        Returns
        -------
        Mean [P] and covariance [P, P].  The noise of a new observation goes together with that of
        other observations at the same time, as far as the noises of their series are correlated.

        Raises
        ------
        ValueError
            If the covariance of the data is not positive definite; within a `tf.function` results
            are NaN then.
        """
        Xnew, at = tf.raw_ops.UniqueV2(x=to_default_float(X), axis=[0])[:2]
        seen, rows = self._observed()
        B, own = self._between_series()
        if not noise:
            B, own = tf.concat([B[:-1], tf.zeros_like(B[-1:])], axis=0), tf.zeros_like(own)
        new = _of_cells(B, self._over_time(Xnew, Xnew), series, series, at, at)
        new += tf.linalg.diag(tf.gather(own, series))
        cross = _of_cells(B, self._over_time(self.data[0], Xnew), seen, series, rows, at)
        L = tf.linalg.cholesky(self.covariance())
        if tf.executing_eagerly():
            check_positive_definite(tf.linalg.diag_part(L), "the series together")
        white = tf.linalg.triangular_solve(L, cross)
        white_x = tf.linalg.triangular_solve(L, self._values()[:, None])
        mean = tf.matmul(white, white_x, transpose_a=True)[:, 0]
        return mean, new - tf.matmul(white, white, transpose_a=True)

    @check_shapes(
        "Xnew: [T, Q]",
        "return[0]: [T, N]",
        "return[1]: [T, N, T, N] if full_cov and full_output_cov",
        "return[1]: [N, T, T] if full_cov and not full_output_cov",
        "return[1]: [T, N, N] if not full_cov and full_output_cov",
        "return[1]: [T, N] if not full_cov and not full_output_cov",
    )
    def predict_f(
        self, Xnew: TensorType, full_cov: bool = False, full_output_cov: bool = False
    ) -> MeanAndVariance:
        """Mean and variance of the series without noise.

        Parameters
        ----------
        Xnew
            New inputs, [T, Q].
        full_cov, full_output_cov
            Whether to return covariances over the inputs, and over the series.
        """
        return self._predict(Xnew, full_cov, full_output_cov, noise=False)

    @check_shapes(
        "Xnew: [T, Q]",
        "return[0]: [T, N]",
        "return[1]: [T, N, T, N] if full_cov and full_output_cov",
        "return[1]: [N, T, T] if full_cov and not full_output_cov",
        "return[1]: [T, N, N] if not full_cov and full_output_cov",
        "return[1]: [T, N] if not full_cov and not full_output_cov",
    )
    def predict_y(
        self, Xnew: TensorType, full_cov: bool = False, full_output_cov: bool = False
    ) -> MeanAndVariance:
        """As `predict_f`, of new observations, noise included."""
        return self._predict(Xnew, full_cov, full_output_cov, noise=True)

    def _predict(
        self, Xnew: TensorType, full_cov: bool, full_output_cov: bool, *, noise: bool
    ) -> MeanAndVariance:
        Xnew = to_default_float(Xnew)
        T, N = tf.shape(Xnew)[0], int(self.Z.shape[0])
        mean, covariance = self.predict_cells(
            tf.tile(tf.range(N), [T]), tf.repeat(Xnew, N, axis=0), noise=noise
        )
        mean, covariance = tf.reshape(mean, [T, N]), tf.reshape(covariance, [T, N, T, N])
        if full_cov and full_output_cov:
            return mean, covariance
        if full_cov:
            return mean, tf.einsum("tnsn->nts", covariance)
        if full_output_cov:
            return mean, tf.einsum("tntm->tnm", covariance)
        return mean, tf.einsum("tntn->tn", covariance)


def _of_cells(
    B: FloatTensor,
    C: FloatTensor,
    series: TensorType,
    series2: TensorType,
    rows: TensorType,
    rows2: TensorType,
) -> FloatTensor:
    """Sum over k of ``B_k[n, m] C_k[t, t']`` between cells (n, t) and (m, t'), [P, P2]."""
    total = tf.zeros([tf.size(series), tf.size(series2)], B.dtype)
    for k in range(int(B.shape[0])):
        between = tf.gather(tf.gather(B[k], series), series2, axis=1)
        total += between * tf.gather(tf.gather(C[k], rows), rows2, axis=1)
    return total
