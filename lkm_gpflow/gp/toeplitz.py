r"""Series at regular times whose covariances are Toeplitz plus a few columns, in O(D log^2 D).

.. math:: V = T + U^\top W U, \qquad T_{ij} = r_{|i - j|}

How T predicts a value from those before it says its determinant and its inverse: a difference of
products of triangular Toeplitz matrices (Gohberg and Semencul 1972), applied by fast Fourier
transforms.  Woodbury's identity adds the columns.  A value that is missing is a column of its own,
with a weight that tends to infinity.  Nothing is approximated; `series` has the same for any
covariance, in O(D^3).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from .likelihoods import GAUSSIAN, SeriesLikelihood
from .types import Floats, Integers

try:  # not public: without it short series take longer
    from scipy.linalg._solve_toeplitz import levinson
except ImportError:
    levinson = None

_EVEN = 1e-9
"""Times are regular if they are off by a smaller share of a step."""

_SHORT, _FEW = 300, 6000
"""Up to so many times, and so many more shared by the series, Levinson's recursion is faster."""

_LEAF = 50
"""So many steps of Schur's recursion are taken one by one."""


def are_regular(x: Floats) -> bool:
    """Whether times, [D], are evenly spaced."""
    off = np.abs(x - np.linspace(x[0], x[-1], len(x))).max()
    return bool(off * (len(x) - 1) <= _EVEN * (x[-1] - x[0]))


# --- prediction -----------------------------------------------------------------------------------


def predictors(R: Floats) -> tuple[Floats, Floats]:
    """Best predictions from all values before, for P covariances by lag, [P, D].

    Returns
    -------
    Errors of prediction as combinations of the value and those before it, the latest first,
    [P, D]; and partial correlations, up to their sign, [P, D - 1].  Where T is not positive
    definite, one of these is not below one, or NaN.
    """
    count, D = R.shape
    is_long = _SHORT + _FEW / count < D
    if levinson is None or is_long:
        with np.errstate(all="ignore"):
            partial, polynomials = _schur(R[:, :-1], R[:, 1:])
        return polynomials.sum(axis=0), partial
    errors, partial = np.ones((count, D)), np.full((count, D - 1), np.nan)
    for r, error, own in zip(R, errors, partial, strict=True):
        try:
            coefficients, found = levinson(np.concatenate([r[-2:0:-1], r[:-1]]), r[1:].copy())
        except np.linalg.LinAlgError:
            continue
        error[1:], own[:] = -np.asarray(coefficients), np.asarray(found)[1:]
    return errors, partial


def _schur(alpha: Floats, beta: Floats) -> tuple[Floats, Floats]:
    r"""Schur's recursion over n steps, halves at a time (Ammar and Gragg 1988).

    A step is :math:`(u, v) \leftarrow (u + k z v,\; z v + k u)` with the k that makes the next
    coefficient of u zero; u begins as z beta(z), v as alpha(z).

    Parameters
    ----------
    alpha, beta
        Coefficients, [P, n].

    Returns
    -------
    The k, [P, n]; and the polynomials p and q of u = p u_0 + q v_0 after all steps,
    [2, P, n + 1].  Those of v are theirs in reverse, q's first.
    """
    n = alpha.shape[1]
    if n <= _LEAF:
        return _schur_step_by_step(alpha, beta)
    m = n // 2
    k, first = _schur(alpha[:, :m], beta[:, :m])
    length = fft.next_fast_len(n + 2, real=True)
    p, q = fft.rfft(first, length)
    p_back, q_back = fft.rfft(first[:, :, ::-1], length)
    v_0 = fft.rfft(alpha, length)
    u_0 = fft.rfft(np.concatenate([np.zeros_like(beta[:, :1]), beta], axis=1), length)
    # What wraps around lies below the coefficients that are read.
    u = fft.irfft(p * u_0 + q * v_0, length)[:, m + 1 : n + 1]
    v = fft.irfft(q_back * u_0 + p_back * v_0, length)[:, m:n]
    others, second = _schur(v, u)
    r, s = fft.rfft(second, length)
    both = fft.irfft(np.array([r * p + s * q_back, r * q + s * p_back]), length)
    return np.concatenate([k, others], axis=1), both[:, :, : n + 1]


def _schur_step_by_step(alpha: Floats, beta: Floats) -> tuple[Floats, Floats]:
    """`_schur`, one step after the other."""
    count, n = alpha.shape
    # p and q; what is left of the series stands behind p, which is shorter.  Instead of times z,
    # v moves on by a place a step.
    u, v = np.zeros((2, count, n + 1)), np.zeros((2, count, 2 * n + 1))
    u[0, :, 1:], v[0, :, n : 2 * n] = beta, alpha
    u[0, :, 0] = v[1, :, n] = 1.0
    k = np.empty((n, count, 1))
    by_u, by_v = np.empty((2, *u.shape))
    for j, own in enumerate(k, start=1):
        window = v[:, :, n - j : 2 * n - j + 1]
        np.divide(u[0, :, j : j + 1], v[0, :, n : n + 1], out=own)
        np.multiply(u, own, out=by_u)
        np.multiply(window, own, out=by_v)
        u -= by_v
        window -= by_u
    return -k[:, :, 0].T, u


# --- series ---------------------------------------------------------------------------------------


class RowTransforms:
    """Fourier transforms of rows of D numbers, long enough that products do not wrap around.

    Parameters
    ----------
    D
        Length of the rows.
    """

    def __init__(self, D: int) -> None:
        self.D = D
        self._length = fft.next_fast_len(2 * D, real=True)

    def forward(self, rows: Floats) -> NDArray[np.complex128]:
        """Transforms of rows [..., D]."""
        return np.asarray(fft.rfft(rows, self._length))

    def back(self, transformed: NDArray[np.complex128]) -> Floats:
        """The first D entries of what was transformed, [..., D]."""
        return np.asarray(fft.irfft(transformed, self._length)[..., : self.D])


class ToeplitzSeries:
    r"""P series of observed values y with covariances T + U' W U, noise included.

    As `GaussianSeries`, of many that have as many columns and as many gaps.

    Parameters
    ----------
    prediction
        Of T, see `predictors`: of each a row.
    variances
        The diagonals of T, [P].
    transforms
        Of rows of D numbers.
    rows
        Transforms of y, zero where it is missing, and of the m columns U, [P, 1 + m, F].
    W
        Weights of the columns, [P, m, m], symmetric; they may be singular or indefinite.
    gaps
        Where y is missing, [P, g].
    likelihood
        Gaussian, or another.

    Attributes
    ----------
    log_densities
        [P]; NaN where a covariance, or T, is not positive definite.
    scales
        Factors of predictive variances, [P].
    """

    def __init__(
        self,
        prediction: tuple[Floats, Floats],
        variances: Floats,
        transforms: RowTransforms,
        rows: NDArray[np.complex128],
        W: Floats,
        gaps: Integers,
        likelihood: SeriesLikelihood = GAUSSIAN,
    ) -> None:
        self._transforms, self._m, self._gaps = transforms, W.shape[1], gaps
        errors, partial = prediction
        is_definite = (variances > 0.0) & (np.abs(partial) < 1.0).all(axis=1)
        errors = np.where(is_definite[:, None], errors, np.nan)
        with np.errstate(all="ignore"):
            logs = np.log(variances)[:, None] + np.cumsum(np.log1p(-np.square(partial)), axis=1)
            log_determinant = np.log(variances) + logs.sum(axis=1)
        self._error = np.exp(logs[:, -1])[:, None, None]
        # T^-1 = (L(a) L(a)' - L(b) L(b)') / error, lower triangular and Toeplitz.
        self._ab = np.zeros((len(errors), 2, transforms.D))
        self._ab[:, 0], self._ab[:, 1, 1:] = errors, errors[:, :0:-1]
        self._AB = transforms.forward(self._ab)[:, :, None]  # [P, 2, 1, F]
        self._La, self._Lb = (
            self._applied(rows, gaps, *one) for one in zip(
                self._ab.swapaxes(0, 1), self._AB.swapaxes(0, 1), strict=True
            )
        )  # fmt: skip
        reach = int(gaps.max(initial=-1)) + 1  # what belongs to gaps is zero from here on
        G = np.empty((len(rows), *2 * (self._La.shape[1],)))
        for own, some in (
            (slice(1 + self._m), slice(None)),
            (slice(1 + self._m, None), slice(reach)),
        ):
            G[:, own] = self._La[:, own, some] @ self._La[:, :, some].swapaxes(1, 2)
            G[:, own] -= self._Lb[:, own, some] @ self._Lb[:, :, some].swapaxes(1, 2)
        G /= self._error  # X T^-1 X', X the rows, and units at the gaps
        log_determinant += self._condition(G, W)
        self._q = np.einsum("pc,pc->p", G[:, 0], self._v)
        self._h = np.einsum("pmc,pc->pm", G[:, 1 : 1 + self._m], self._v)
        count = transforms.D - gaps.shape[1]
        q = np.where(self._q > 0.0, self._q, np.nan)
        self._weight = np.asarray(likelihood.weight(q, count) + 0.0 * q)
        self.log_densities: Floats = np.asarray(likelihood.log_density(q, log_determinant, count))
        self.scales: Floats = np.asarray(likelihood.predictive_scale(q, count) + 0.0 * q)

    @property
    def num_times(self) -> int:
        """D."""
        return self._transforms.D

    def _applied(
        self, rows: NDArray[np.complex128], gaps: Integers, c: Floats, C: NDArray[np.complex128]
    ) -> Floats:
        """``L(c)'`` times the rows and units at the gaps, [P, 1 + m + g, D]."""
        found = np.zeros((len(rows), rows.shape[1] + gaps.shape[1], self._transforms.D))
        found[:, : rows.shape[1]] = self._transforms.back(C.conj() * rows)
        if gaps.size:
            lags = gaps[:, :, None] - np.arange(gaps.max() + 1)
            turned = np.take_along_axis(c[:, None], np.maximum(lags, 0), axis=2)
            found[:, rows.shape[1] :, : gaps.max() + 1] = np.where(lags >= 0, turned, 0.0)
        return found

    def within(self, Y: Floats, noise: Floats) -> tuple[Floats, Floats]:
        r"""Means and variances of the values without their noise, [P, D] each.

        Of what was observed, and of what is missing,

        .. math:: y - \sigma^2 V^{-1} y, \quad s\,(\sigma^2 - \sigma^4 (V^{-1})_{ii});
           \qquad v, \quad s\,(S_{ii} - \sigma^2).

        Parameters
        ----------
        Y
            The series, zero where they are missing, [P, D].
        noise
            Their noise variances, sigma squared, [P].
        """
        noise, Z = noise[:, None], self._solved()
        squares = np.square(self._ab[:, 0]) - np.square(self._ab[:, 1])
        inverse = np.cumsum(squares, axis=1) / self._error[:, 0]
        inverse -= np.einsum("pci,pcd,pdi->pi", Z[:, 1:], self._S, Z[:, 1:], optimize=True)
        mean = Y - noise * np.einsum("pc,pci->pi", self._v, Z)
        variance = noise - np.square(noise) * inverse
        if self._gaps.size:
            first = self._m
            missing = np.einsum("pgg->pg", self._S[:, first:, first:])
            np.put_along_axis(mean, self._gaps, self._v[:, 1 + first :], axis=1)
            np.put_along_axis(variance, self._gaps, missing - noise, axis=1)
        return mean, self.scales[:, None] * variance

    def ahead(self, R: Floats, U: Floats) -> tuple[Floats, Floats]:
        r"""Means and variances of the H values that come next, with noise, [P, H] each.

        Given all D values T leaves

        .. math:: S_{hh} = \sum_{i \le h} (\alpha_i^2 - \beta_i^2) / e, \qquad
           \alpha_i = \sum_k a_k r_{i + k}, \quad \beta_i = \sum_k a_k r_{D + i - k}

        with a the predictor from D values and e its error.  What T does not foresee of the columns
        is added as for the values themselves.

        Parameters
        ----------
        R
            T by lag, noise included, [P, D + H].
        U
            The columns at these times, [P, m, H].
        """
        D, H, last = self._transforms.D, U.shape[2], self._ab[:, 0]
        length = fft.next_fast_len(D + H + 1, real=True)
        k = -np.einsum("pi,pi->p", last, R[:, D:0:-1])[:, None] / self._error[:, 0]
        a = np.pad(last, ((0, 0), (0, 1))) + k * np.pad(last[:, ::-1], ((0, 0), (1, 0)))
        A, F = fft.rfft(a, length), fft.rfft(R, length)
        alpha, beta = fft.irfft(A.conj() * F, length)[:, :H], fft.irfft(A * F, length)[:, D : D + H]
        squares = np.square(alpha) - np.square(beta)
        variance = np.cumsum(squares, axis=1) / (self._error[:, 0] * (1.0 - np.square(k)))
        # What T foresees of y, columns and units at the gaps, less what they are.
        foreseen = fft.irfft(fft.rfft(self._solved(), length) * F[:, None], length)
        rest = foreseen[:, :, D : D + H]
        rest[:, 1 : 1 + self._m] -= U
        variance += np.einsum("pch,pcd,pdh->ph", rest[:, 1:], self._S, rest[:, 1:], optimize=True)
        return np.einsum("pc,pch->ph", self._v, rest), self.scales[:, None] * variance

    def _solved(self) -> Floats:
        """``X T^-1``, X the rows and units at the gaps, [P, 1 + m + g, D]."""
        A, B = self._AB.swapaxes(0, 1)
        forward, back = self._transforms.forward, self._transforms.back
        return back(A * forward(self._La) - B * forward(self._Lb)) / self._error

    def _condition(self, G: Floats, W: Floats) -> Floats:
        """Add the columns and leave missing values out; by what log determinants change, [P]."""
        m, count = self._m, G.shape[1] - 1
        self._G = G[:, 1:, 1:]
        # W with the limit of infinite weights for missing values, both sides divided by these.
        weights, identity = np.zeros((2, len(G), count, count))
        weights[:, :m, :m] = W
        weights[:, range(m, count), range(m, count)] = 1.0
        identity[:, range(m), range(m)] = 1.0
        self._K = identity + weights @ self._G
        with np.errstate(invalid="ignore"):  # NaN of what is not positive definite
            sign, log_determinant = np.linalg.slogdet(self._K)
        fails = ~(sign > 0.0)
        self._K[fails] = np.eye(count)
        S = np.linalg.solve(self._K, weights)
        self._S = 0.5 * (S + S.swapaxes(1, 2))
        others = np.einsum("pcd,pd->pc", self._S, G[:, 1:, 0])
        self._v = np.concatenate([np.ones((len(G), 1)), -others], axis=1)
        self._v[fails] = np.nan
        return np.asarray(log_determinant)

    def explained(self, p: int, cross: Floats, *, full: bool) -> tuple[Floats, Floats]:
        """Means of M other values given series p, and by how much their covariance shrinks.

        Parameters
        ----------
        p
            Which series.
        cross
            Covariances of the others with all D values, [M, D].
        full
            Whether all covariances are asked for, or variances.

        Returns
        -------
        Means [M], and ``C V^-1 C'``, [M, M], or its diagonal, [M].
        """
        A, B = self._AB[p]
        transformed = self._transforms.forward(cross)
        La = self._transforms.back(A.conj() * transformed)
        Lb = self._transforms.back(B.conj() * transformed)
        H = (La @ self._La[p].T - Lb @ self._Lb[p].T) / self._error[p]
        inner = H[:, 1:] @ self._S[p]
        if full:
            known = (La @ La.T - Lb @ Lb.T) / self._error[p] - inner @ H[:, 1:].T
        else:
            squares = np.einsum("md,md->m", La, La) - np.einsum("md,md->m", Lb, Lb)
            known = squares / self._error[p, 0] - np.einsum("mc,mc->m", inner, H[:, 1:])
        return H @ self._v[p], known

    def gradient(self) -> tuple[Floats, Floats, Floats]:
        """Gradients by r [P, D], by columns [P, m, D] and by their weights [P, m, m]."""
        forward, back = self._transforms.forward, self._transforms.back
        A, B = self._AB[:, :, 0].swapaxes(0, 1)
        Z = self._solved()
        # Of X T^-1, the gradient by V without that of T alone.
        weight = self._weight[:, None, None]
        M = 0.5 * weight * self._v[:, :, None] * self._v[:, None, :]
        M[:, 1:, 1:] += 0.5 * self._S
        MZ = M @ Z
        both = np.einsum("pcf,pcf->pf", forward(MZ).conj(), forward(Z))
        k = np.arange(self._transforms.D)
        a, b = forward(self._ab * k).swapaxes(0, 1)
        ones, moments = np.abs(A) ** 2 - np.abs(B) ** 2, a.conj() * A - b.conj() * B
        by_lag, ones, moments = back(np.array([both, ones, moments]))
        by_lag -= 0.5 * ((k[::-1] + 1) * ones - moments) / self._error[:, 0]
        by_lag[:, 1:] *= 2.0
        m = self._m
        inverse = np.linalg.solve(self._K.swapaxes(1, 2), self._G[:, :, :m])[:, :m]
        weights = 0.5 * weight * self._h[:, :, None] * self._h[:, None, :]
        weights -= 0.25 * (inverse + inverse.swapaxes(1, 2))
        return by_lag, -2.0 * MZ[:, 1 : 1 + m], weights
