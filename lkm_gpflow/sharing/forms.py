r"""Forms: the kernel structures that a column of the sampler may take, and priors of their numbers.

A column of the latent kernel model has a form i and numbers phi = (log variance, learnt
hyperparameters on the scale on which they are learnt),

.. math:: P(i, \phi) = P(i) \prod_j \mathcal{N}(\phi_j; m_j, s_j^2)\,[l_j < \phi_j < u_j],

with P(i) a quarter for each factor beyond the first, and the package's weak priors
(`fit.initialization`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, ndtr, ndtri

from ..fit.covariances import components_at
from ..fit.initialization import VARIANCE, Range, hyperparameter_range, typical_step, walks_begin
from ..gp.lags import LagGrid
from ..gp.types import LOG_2PI, Floats
from ..kernels.grammar import Kind, Product, with_values
from .matching import centred

PER_FACTOR = 0.25
"""Prior weight of a form for each factor beyond the first."""

_STEPS = {
    Kind.DURATION: 0.3, Kind.MEMORY: 0.5, Kind.PERIOD: 0.1, Kind.RATIO: 0.3,
    Kind.LOCATION: 0.3, Kind.CHANGE: 0.1, Kind.WIDTH: 0.5,
}  # fmt: skip
"""Typical posterior sd of a number; of a period, that of its frequency in cycles per span."""

_VARIANCE_STEP = 0.5


class TruncatedNormals:
    """Independent normals, each within bounds: the prior of a vector of numbers.

    Parameters
    ----------
    ranges
        Bounds, mean and sd of each.
    """

    def __init__(self, ranges: Sequence[Range]) -> None:
        columns = np.array([(r.lower, r.upper, r.mean, r.sd) for r in ranges]).T
        self.lower, self.upper, self.mean, self.sd = columns
        self._low = ndtr((self.lower - self.mean) / self.sd)
        self._inside = ndtr((self.upper - self.mean) / self.sd) - self._low
        self._log_scale = -np.log(self.sd * self._inside) - 0.5 * LOG_2PI

    def allows(self, value: Floats) -> bool:
        """Whether all numbers are within their bounds."""
        return bool(np.all((value > self.lower) & (value < self.upper)))

    def log_densities(self, value: Floats) -> Floats:
        """Log density of each number by itself; minus infinity out of bounds."""
        inside = (value > self.lower) & (value < self.upper)
        found = self._log_scale - 0.5 * np.square((value - self.mean) / self.sd)
        return np.where(inside, found, -np.inf)

    def log_density(self, value: Floats) -> float:
        """Log density of the vector."""
        return float(self.log_densities(value).sum())

    def draw(self, rng: np.random.Generator) -> Floats:
        """Draw a vector, by the inverse of the distribution function."""
        u = self._low + self._inside * rng.uniform(size=len(self.mean))
        drawn = self.mean + self.sd * ndtri(u)
        # A bound itself has no density.
        return np.clip(drawn, np.nextafter(self.lower, np.inf), np.nextafter(self.upper, -np.inf))


def covariance_of(product: Product, grid: LagGrid) -> Floats:
    """Covariance of a complete product about its average over time, [D, D]."""
    [component] = components_at([product], grid)
    return centred(component.matrix())


class Form:
    """One structure, as a function of its numbers phi.

    Parameters
    ----------
    structure
        A product without numbers.
    x
        Scaled times, [D].
    prior
        Of phi; by default the package's weak priors.

    Attributes
    ----------
    steps
        Step sizes of random walks over phi.
    periods
        Places of periods in phi.
    """

    def __init__(
        self, structure: Product, x: Floats, prior: TruncatedNormals | None = None
    ) -> None:
        self.structure = structure
        kinds = [kind for f in structure.factors for _, kind in f.base.parameters]
        learnt = [kind for kind in kinds if kind is not Kind.ORIGIN]
        self._is_learnt = np.array([kind is not Kind.ORIGIN for kind in kinds], bool)
        self._is_log = np.array([kind.positive for kind in learnt], bool)
        self._origin = walks_begin(x)
        step = typical_step(x)
        ranges = [VARIANCE, *(hyperparameter_range(kind, step) for kind in learnt)]
        self.prior = TruncatedNormals(ranges) if prior is None else prior
        self.steps = np.array([_VARIANCE_STEP, *(_STEPS[kind] for kind in learnt)])
        self.periods = 1 + np.flatnonzero([kind is Kind.PERIOD for kind in learnt])

    def values(self, phi: Floats) -> list[float]:
        """Hyperparameters in the order of the factors, in scaled units."""
        values = np.full(len(self._is_learnt), self._origin)
        own = phi[1:].copy()
        own[self._is_log] = np.exp(own[self._is_log])
        values[self._is_learnt] = own
        return list(values.tolist())

    def product(self, phi: Floats) -> Product:
        """The complete product."""
        return with_values(self.structure, float(np.exp(phi[0])), self.values(phi))

    def phi(self, product: Product) -> Floats:
        """The numbers of a complete product of this structure, moved inside the bounds."""
        values = np.array([v for f in product.factors for v in f.values], np.float64)
        own = values[self._is_learnt]
        own[self._is_log] = np.log(own[self._is_log])
        assert product.variance is not None
        phi = np.append(np.log(product.variance), own)
        return np.clip(phi, self.prior.lower + 1e-6, self.prior.upper - 1e-6)

    def covariance(self, phi: Floats, grid: LagGrid) -> Floats:
        """Covariance on the grid about its average over time, [D, D].

        A level of each series is integrated out (`SeriesDensity`), so that nothing else of the
        covariance matters; without the level it is well conditioned.
        """
        return covariance_of(self.product(phi), grid)

    def step_sizes(self, phi: Floats, scale: float) -> Floats:
        """Steps of a random walk at phi; steps of a period are those of its frequency."""
        steps = scale * self.steps
        steps[self.periods] *= np.exp(phi[self.periods])
        return steps


class Forms:
    """All forms that a column may take, and their prior.

    Parameters
    ----------
    forms
        Each of another structure.
    weights
        Prior weights, [I]; by default `PER_FACTOR` to the number of further factors.
    """

    def __init__(self, forms: Sequence[Form], weights: Sequence[float] | None = None) -> None:
        self.forms = tuple(forms)
        if weights is None:
            weights = [PER_FACTOR ** (len(form.structure.factors) - 1) for form in forms]
        self.log_weights = np.log(np.asarray(weights) / np.sum(weights))
        self._number = {form.structure: i for i, form in enumerate(forms)}

    def __getitem__(self, number: int) -> Form:
        return self.forms[number]

    def number(self, product: Product) -> int | None:
        """The number of the form of a product, None if there is none."""
        return self._number.get(product.structure)

    def draw_number(self, rng: np.random.Generator) -> int:
        """Draw a form of the prior."""
        return int(rng.choice(len(self.forms), p=np.exp(self.log_weights)))

    def draw(self, rng: np.random.Generator) -> tuple[int, Floats]:
        """Draw a form and its numbers of the prior."""
        number = self.draw_number(rng)
        return number, self.forms[number].prior.draw(rng)

    def log_prior(self, number: int, phi: Floats) -> float:
        """``log P(i, phi)``; minus infinity out of bounds."""
        return float(self.log_weights[number]) + self.forms[number].prior.log_density(phi)


@dataclass(frozen=True)
class _Entry:
    """A kernel that the search proposes: normals about its numbers."""

    number: int
    mean: Floats
    sd: Floats

    def log_density(self, phi: Floats, tail: slice) -> float:
        deviation = ((phi - self.mean) / self.sd)[tail]
        log_scale = np.log(self.sd[tail]).sum() + 0.5 * len(deviation) * LOG_2PI
        return float(-0.5 * deviation @ deviation - log_scale)


class KernelProposal:
    r"""A density over forms and numbers, from which columns are proposed.

    .. math:: q(i, \phi) = \rho P(i, \phi) + \frac{1 - \rho}{E} \sum_{e: i_e = i}
       \mathcal{N}(\phi; \mu_e, \mathrm{diag}\, s_e^2)

    What the search found enters here alone: it moves the chains, never the posterior, because the
    density is known and every move corrects for it.

    Parameters
    ----------
    forms
        All forms.
    library
        Complete kernels of the search, generic ones, and such with periods of the periodogram.
        Those without a form, and near copies, are passed over.
    share
        rho.
    """

    def __init__(self, forms: Forms, library: Sequence[Product], share: float = 0.3) -> None:
        self._forms = forms
        entries: dict[tuple[int, bytes], _Entry] = {}
        for product in library:
            number = forms.number(product)
            if number is None:
                continue
            form = forms[number]
            mean = form.phi(product)
            sd = 1.2 * form.steps
            sd[0] = 1.5
            sd[form.periods] = 0.15 * np.exp(mean[form.periods])
            key = number, np.round(mean[1:], 2).tobytes()
            entries.setdefault(key, _Entry(number, mean, sd))
        self._entries = list(entries.values())
        self._share = share if self._entries else 1.0

    def draw(self, rng: np.random.Generator) -> tuple[int, Floats]:
        """Draw a form and its numbers, which may be out of bounds."""
        if rng.uniform() < self._share:
            return self._forms.draw(rng)
        entry = self._entries[rng.integers(len(self._entries))]
        return entry.number, rng.normal(entry.mean, entry.sd)

    def log_density(self, number: int, phi: Floats, *, shape_only: bool = False) -> float:
        """``log q(i, phi)``; `shape_only`: of all numbers but the variance."""
        tail = slice(1, None) if shape_only else slice(None)
        form = self._forms[number]
        own = float(self._forms.log_weights[number])
        own += float(form.prior.log_densities(phi)[tail].sum())
        terms = [np.log(self._share) + own]
        if self._entries:
            log_each = np.log1p(-self._share) - np.log(len(self._entries))
            terms += [
                log_each + entry.log_density(phi, tail)
                for entry in self._entries
                if entry.number == number
            ]
        return float(logsumexp(terms))
