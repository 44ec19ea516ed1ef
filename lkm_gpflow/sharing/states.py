r"""The model that the sampler draws from, and a state of it.

.. math::
    \pi_k &\sim \mathrm{Beta}(\alpha / K, 1), \qquad z_{nk} \sim \mathrm{Bernoulli}(\pi_k) \\
    (i_k, \phi_k) &\sim P(i, \phi), \qquad a_{nk} \sim \mathcal{N}(0, h^2), \qquad r_n \sim P(r) \\
    V_n &= \textstyle\sum_k z_{nk} e^{a_{nk}} C(i_k, \phi_k) + e^{r_n} I, \qquad
    x_n \sim \mathcal{N}(\mu_n 1, s_n V_n)

The weights pi are integrated out, and so are a level mu_n (flat prior) and a scale s_n (inverse
gamma) of every series: what remains is a density of contrasts (`SeriesDensity`).  Columns are
*distinct*: no two in use have covariances of nearly the same shape, or one pattern would be told as
several.  A column that no series has counts for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf
from scipy.special import betaln

from ..data.observations import Observations
from ..gp.lags import lag_grid
from ..gp.likelihoods import ScaledNoise, SeriesLikelihood
from ..gp.types import LOG_2PI, Booleans, Floats, Integers
from ..kernels.grammar import Product
from .forms import Forms, TruncatedNormals
from .matching import centred

_COARSE = 24
"""Times on which shapes of covariances are compared."""

_SCALED = ScaledNoise()

_IMPOSSIBLE = -1e30
"""Log density where a covariance is not positive definite."""


class SeriesDensity:
    r"""Log density of series whose level is integrated out, under any likelihood of series.

    With d values observed, and the d - 1 orthonormal contrasts of these,

    .. math:: \log p = \log p_{\text{likelihood}}(q, \log |V| + \log \tfrac{1^\top V^{-1} 1}{d}),
        \qquad q = x^\top V^{-1} x - \frac{(1^\top V^{-1} x)^2}{1^\top V^{-1} 1}

    (Patterson and Thompson 1971): of a Student-t process a multivariate t.

    Parameters
    ----------
    observations
        Scaled data.
    likelihood
        How a series scatters around its covariance.
    """

    def __init__(self, observations: Observations, likelihood: SeriesLikelihood) -> None:
        self._Y = observations.Y
        self._ones = observations.mask
        self._known = observations.known
        self._is_complete = observations.is_complete
        self._likelihood = likelihood
        self._seen = observations.mask.sum(axis=1)  # [N]
        N, D = observations.Y.shape
        self._workspace = np.empty((N, D + 2, D + 2))

    def __call__(self, V: Floats, log_noise: Floats, series: Integers) -> Floats:
        """Log densities [B] of series [B] with covariances [B, D, D] and log noise variances."""
        B, D = V.shape[:2]
        W = self._workspace[:B]
        W[:, :D, :D] = V
        i = np.arange(D)
        W[:, i, i] += np.exp(log_noise)[:, None]
        if self._known is not None:
            W[:, i, i] += self._known[series]
        if not self._is_complete:
            mask = self._ones[series]
            W[:, :D, :D] *= mask[:, :, None] * mask[:, None, :]
            W[:, i, i] += 1.0 - mask
        # Two more rows, x and ones, become L^-1 x and L^-1 1; nothing reads their own diagonal.
        W[:, :D, D] = self._Y[series]
        W[:, :D, D + 1] = self._ones[series]
        W[:, D:, :D] = W[:, :D, D:].transpose(0, 2, 1)
        W[:, D:, D:] = np.diag([1e60, 1e60])
        failed = np.zeros(B, bool)
        for b in range(B):
            failed[b] = dpotrf(W[b].T, lower=1, clean=0, overwrite_a=1)[1] != 0
        diagonal = np.where(failed[:, None], 1.0, W[:, i, i])
        x, ones = W[:, :D, D], W[:, :D, D + 1]
        xx, x1, oo = ((a * b).sum(axis=1) for a, b in ((x, x), (x, ones), (ones, ones)))
        seen = self._seen[series]
        with np.errstate(invalid="ignore", divide="ignore"):
            log_determinant = 2.0 * np.log(diagonal).sum(axis=1) + np.log(oo / seen)
            value = self._likelihood.log_density(xx - x1**2 / oo, log_determinant, seen - 1.0)
        return np.where(failed | ~np.isfinite(value), _IMPOSSIBLE, value)


class ColumnModel:
    """The joint density of data and everything that is not integrated out.

    Parameters
    ----------
    observations
        Scaled data.
    forms
        What columns may be.
    noise_prior
        P(r), of one number.
    alpha
        Concentration of the Indian buffet process.
    num_columns
        K.
    height_sd
        h.
    likelihood
        How a series scatters around its covariance.
    distinct
        Largest correlation of the shapes of two columns in use; one: any.
    power
        To which the density of the data is raised; zero: the prior alone.
    """

    def __init__(
        self,
        observations: Observations,
        forms: Forms,
        noise_prior: TruncatedNormals,
        *,
        alpha: float = 1.0,
        num_columns: int = 8,
        height_sd: float = 1.0,
        likelihood: SeriesLikelihood = _SCALED,
        distinct: float = 0.95,
        power: float = 1.0,
    ) -> None:
        self.observations = observations
        self.forms = forms
        self.noise_prior = noise_prior
        self.num_columns = num_columns
        self.height_sd = height_sd
        self.power = power
        self.density = SeriesDensity(observations, likelihood)
        self.grid = lag_grid(observations.x)
        self._share = alpha / num_columns
        self._distinct = distinct
        self._coarse = slice(None, None, max(1, len(observations.x) // _COARSE))

    @property
    def num_series(self) -> int:
        """N."""
        return self.observations.num_series

    def covariance(self, number: int, phi: Floats) -> Floats:
        """Covariance of a column about its average, [D, D]."""
        return self.forms[number].covariance(phi, self.grid)

    def log_count(self, m: Integers | int) -> Floats:
        """Log probability of a column that certain m series have, its weight integrated out."""
        a, N = self._share, self.num_series
        return np.asarray(betaln(a + m, 1 + N - m) - betaln(a, 1))

    def log_odds(self, m: Integers, rng: np.random.Generator) -> Floats:
        """Draw log odds of the weights of columns that m series have, given these."""
        weight = rng.beta(self._share + m, 1 + self.num_series - m)
        weight = np.clip(weight, 1e-12, 1.0 - 1e-9)
        return np.asarray(np.log(weight) - np.log1p(-weight))

    def log_height(self, heights: Floats) -> Floats:
        """Log prior density of log heights."""
        scaled = np.square(heights / self.height_sd)
        return np.asarray(-0.5 * scaled - np.log(self.height_sd) - 0.5 * LOG_2PI)

    def shape(self, C: Floats) -> Floats | None:
        """Root of a covariance on a coarse grid, of unit length; None if any column may be used."""
        if self._distinct >= 1.0:
            return None
        values, vectors = np.linalg.eigh(centred(C[self._coarse, self._coarse]))
        root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        return np.asarray(root.ravel() / max(float(np.linalg.norm(root)), 1e-300))

    def is_distinct(self, shape: Floats | None, others: list[Floats | None]) -> bool:
        """Whether a shape is unlike all others."""
        if shape is None:
            return True
        return all(other is None or shape @ other <= self._distinct for other in others)


@dataclass(frozen=True)
class Draw:
    """A draw of the posterior.

    Parameters
    ----------
    kernels
        Of the columns in use, complete products in scaled units, [J].
    Z
        Who has them, [N, J].
    log_heights
        [N, J]; zero where a series has not the column.
    log_noise
        [N].
    log_likelihood
        Of all series.
    """

    kernels: tuple[Product, ...]
    Z: Booleans
    log_heights: Floats
    log_noise: Floats
    log_likelihood: float


class ColumnState:
    """A point of a chain: columns, who has them and how high, noise; and what follows from these.

    Parameters
    ----------
    model
        The joint density.

    Attributes
    ----------
    number, phi, C, shape
        Form, numbers, covariance and shape of each column, lists of length K; None if not in use.
    Z, H
        Who has what, and log heights, [N, K].
    r
        Log noise variances, [N].
    V, ll
        Covariances without noise [N, D, D] and log densities [N] of the series.
    """

    def __init__(self, model: ColumnModel) -> None:
        N, K, D = model.num_series, model.num_columns, len(model.observations.x)
        self.model = model
        self.number = np.zeros(K, int)
        self.phi: list[Floats] = [np.empty(0)] * K
        self.C = np.zeros((K, D, D))
        self.shape: list[Floats | None] = [None] * K
        self.Z = np.zeros((N, K), bool)
        self.H = np.zeros((N, K))
        self.r: Floats = np.full(N, float(model.noise_prior.mean[0]))
        self.V = np.zeros((N, D, D))
        self.ll = np.zeros(N)
        self.refresh()

    @property
    def used(self) -> Booleans:
        """Which columns any series has, [K]."""
        return np.asarray(self.Z.any(axis=0))

    def refresh(self) -> None:
        """Compute V and ll afresh, without the rounding errors of many moves."""
        weights = self.Z * np.exp(self.H)
        self.V = np.tensordot(weights, self.C, axes=1)
        self.ll = self.model.density(self.V, self.r, np.arange(len(self.Z)))

    def set_column(self, k: int, number: int, phi: Floats, C: Floats) -> None:
        """Give a column another kernel."""
        self.number[k], self.phi[k], self.C[k] = number, phi, C
        self.shape[k] = self.model.shape(C)

    def is_free(self, k: int, C: Floats) -> bool:
        """Whether column k may have this covariance beside the others in use."""
        others = [self.shape[j] for j in np.flatnonzero(self.used) if j != k]
        return self.model.is_distinct(self.model.shape(C), others)

    def take(self, series: Integers | Booleans, V: Floats, ll: Floats) -> None:
        """Give some series other covariances."""
        self.V[series], self.ll[series] = V, ll

    def start(self, kernels: tuple[Product, ...], Z: Floats, noise_variance: Floats) -> None:
        """Begin at a fit of the search: as many of its components as there are columns for."""
        model, k = self.model, 0
        self.Z[:] = False
        for product, z in zip(kernels, Z.T, strict=True):
            number = model.forms.number(product)
            if number is None or not z.any() or k == model.num_columns:
                continue
            phi = model.forms[number].phi(product)
            C = model.covariance(number, phi)
            if self.is_free(k, C):
                self.set_column(k, number, phi, C)
                self.Z[:, k], self.H[:, k] = z > 0.0, 0.0
                k += 1
        prior = model.noise_prior
        self.r = np.clip(np.log(noise_variance), prior.lower[0] + 0.01, prior.upper[0] - 0.01)
        self.refresh()

    def draw(self) -> Draw:
        """What the state says."""
        used = np.flatnonzero(self.used)
        forms = self.model.forms
        return Draw(
            tuple(forms[int(self.number[k])].product(self.phi[k]) for k in used),
            self.Z[:, used].copy(),
            np.where(self.Z, self.H, 0.0)[:, used],
            self.r.copy(),
            float(self.ll.sum()),
        )
