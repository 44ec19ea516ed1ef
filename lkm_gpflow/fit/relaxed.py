"""The paper's learning of one structure: section 4.2, and nothing else.

The relaxed evidence lower bound is maximised over nu, tau, the hyperparameters and the noise
variances by Adam, with fresh draws of Z at every step, while the temperature falls (`Annealing`
says how, and when learning stops).  nu above one half is a one in Z, and BIC is that of this Z.  A
search learns every structure from several starts; the one of the largest bound counts.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import gpflow
import numpy as np

from ..data.observations import Observations
from ..gp.likelihoods import GAUSSIAN
from ..gp.types import Floats
from ..kernels.base import KERNELS
from ..kernels.component import to_kernel
from ..kernels.grammar import Product
from ..model.ibp import InfiniteIBP
from ..model.lkm import LKM
from ..model.relaxation import Annealer, RelaxedPosterior
from ..model.subclasses import model_class
from .fits import Fit, FitSettings, Relaxed, State
from .initialization import Proposer, typical_step
from .parameter_priors import add_priors
from .tensor_engine import check_zero_mean, own_parameters, values_of

_MODELS_KEPT = 24
"""Models of a thread, each with its traced step: one for each structure, for all its starts."""

_EVALUATIONS = 20
"""Sets of S draws over which the bound of a finished start is averaged, the same for all starts."""

_FRESH_NOISE = 0.5
"""Noise variance that series begin with; they have unit variance."""

_LEAST_NOISE = 2e-6

_KEPT_LOGIT = 2.0
"""A component of the parent begins with nu of 0.88 or 0.12, as its Z has it."""


def learn_relaxed(
    observations: Observations,
    structure: Sequence[Product],
    *,
    seed: int | Sequence[int],
    settings: FitSettings,
    start: State | None = None,
    kept_logit: float = _KEPT_LOGIT,
) -> Fit:
    r"""Maximise the relaxed bound of one structure, from one start; threshold nu.

    .. math:: \mathcal{L} = E_q[\log p(Z \mid \pi)] + E_q[\log p(\pi)] + H[q]
       + \frac1S \sum_s \sum_n \log p(x_n \mid \tilde z_n^{(s)}), \qquad
       \tilde z_{nk}^{(s)} \sim \mathrm{RelaxedBernoulli}(\lambda, \mathrm{logit}\,\nu_{nk})

    Parameters
    ----------
    observations
        Scaled data.
    structure
        Members; numbers that they have are where learning begins, absent ones are drawn from the
        data's own scales.
    seed
        Everything random follows from it.
    settings
        ``annealing``, ``num_samples``, ``alpha``, ``prior``, ``priors`` and ``model`` count.
    start
        What the parent had beside the member that is expanded: learning begins there.
    kept_logit
        Where nu of these components begins: at this logit where Z is one, at minus it elsewhere.

    Returns
    -------
    Fit
        With the posterior that was learnt.  Components that no series has are left out; ``elbo`` is
        that of the whole structure, averaged over draws, at the last temperature.

    Raises
    ------
    ValueError
        If a covariance is not positive definite at the end.
    """
    began, rng, N = time.perf_counter(), np.random.default_rng(seed), observations.num_series
    start = start or State((), np.zeros((N, 0)), np.full(N, _FRESH_NOISE))
    proposer = Proposer.of(observations)
    drawn = [proposer.propose(member, 1, rng)[0] for member in structure]
    products = (*start.kernels, *drawn)
    logits = np.zeros((N, len(products)))
    logits[:, : len(start.kernels)] = kept_logit * (2.0 * start.Z - 1.0)
    bench = _bench_for(observations, settings, products)
    bench.begin(products, logits, start.noise_variance)
    history = bench.annealer.run(settings.annealing, int(rng.integers(2**31 - 1)))
    return bench.describe(observations, settings, history, began)


def relaxed_model(
    fit: Fit, relaxed: Relaxed, observations: Observations, settings: FitSettings
) -> LKM:
    """Return the model that was learnt, on these observations.

    Raises
    ------
    ValueError
        If its class is not defined.
    """
    posterior = RelaxedPosterior(relaxed.num_samples, relaxed.temperature)
    model = model_class(settings.model)(
        observations.table,
        kernels=[to_kernel(kernel) for kernel in fit.kernels],
        alpha=settings.alpha,
        posterior=posterior,
        noise_variance=fit.noise_variance,
        prior=settings.ibp(len(fit.kernels)),
        **_likelihood(settings),
    )
    posterior.logits.assign(relaxed.logits)
    model.tau.assign(fit.tau)
    gpflow.utilities.multiple_assign(model, fit.parameters)
    return model


def _likelihood(settings: FitSettings) -> dict[str, Any]:
    """Return the argument of a model; subclasses of a narrower constructor stay usable without."""
    return {} if settings.likelihood == GAUSSIAN else {"likelihood": settings.likelihood}


class _Bench:
    """A model of one structure, and what climbs it from any start."""

    def __init__(
        self, observations: Observations, settings: FitSettings, products: Sequence[Product]
    ) -> None:
        self.kernels = [to_kernel(product) for product in products]
        if settings.priors:
            for kernel in self.kernels:
                add_priors(kernel, typical_step(observations.x), of_logarithms=True)
        self.posterior = RelaxedPosterior(settings.num_samples)
        self.model = model_class(settings.model)(
            observations.table,
            kernels=self.kernels,
            alpha=settings.alpha,
            posterior=self.posterior,
            noise_variance=_FRESH_NOISE,
            prior=settings.ibp(len(products)),
            **_likelihood(settings),
        )
        check_zero_mean(self.model)
        self.annealer = Annealer(self.model)
        self._tau = self.model.tau.numpy()
        self._own = values_of(own_parameters(self.model))

    def begin(self, products: Sequence[Product], logits: Floats, noise_variance: Floats) -> None:
        """Assign all variables."""
        for kernel, product in zip(self.kernels, products, strict=True):
            numbers = gpflow.utilities.parameter_dict(to_kernel(product))
            gpflow.utilities.multiple_assign(kernel, numbers)
        self.posterior.logits.assign(logits)
        self.model.noise_variance.assign(np.maximum(noise_variance, _LEAST_NOISE))
        self.model.tau.assign(self._tau)
        gpflow.utilities.multiple_assign(self.model, self._own)

    def state(self) -> State:
        """Return what the variables say, nu above one half as one."""
        return State(
            kernels=tuple(kernel.to_expression() for kernel in self.kernels),
            Z=(self.posterior.logits.numpy() > 0.0).astype(np.float64),
            noise_variance=self.model.noise_variance.numpy(),
        )

    def describe(
        self, observations: Observations, settings: FitSettings, history: Floats, began: float
    ) -> Fit:
        """Return what the variables say as a fit."""
        logits, state = self.posterior.logits.numpy(), self.state()
        relaxed = Relaxed(
            logits=logits,
            temperature=float(self.posterior.temperature.numpy()),
            num_samples=settings.num_samples,
            is_ordered=isinstance(settings.ibp(1), InfiniteIBP),
        )
        whole = Fit(
            kernels=state.kernels,
            Z=state.Z,
            probabilities=self.model.probabilities().numpy(),
            tau=self.model.tau.numpy(),
            noise_variance=state.noise_variance,
            log_likelihood=np.nan,
            bic=np.nan,
            elbo=self.annealer.objective(_EVALUATIONS),
            seconds=np.nan,
            history=history,
            relaxed=relaxed,
            model=settings.model,
            parameters=values_of(own_parameters(self.model)),
        )
        used = np.flatnonzero(whole.Z.any(axis=0))
        if not used.size:  # a model needs a component
            used = np.argmax(logits.sum(axis=0), keepdims=True)
        fit = whole.of_components(used.astype(np.int32))
        assert fit.relaxed is not None
        model = relaxed_model(fit, fit.relaxed, observations, settings)
        return replace(
            fit,
            log_likelihood=float(np.sum(model.log_likelihood(fit.Z))),
            bic=float(model.bic(fit.Z)),
            seconds=time.perf_counter() - began,
        )


_BENCHES = threading.local()
"""Of this thread, by what they are for; the last ones were used last."""


def _bench_for(
    observations: Observations, settings: FitSettings, products: Sequence[Product]
) -> _Bench:
    """Return the bench of this structure: threads learn side by side, each on its own."""
    known: dict[tuple[object, ...], _Bench] = _BENCHES.__dict__.setdefault("known", {})
    key = (
        model_class(settings.model), tuple(KERNELS.values()), observations.fingerprint,
        tuple(product.structure for product in products), settings.alpha, settings.prior,
        settings.priors, settings.num_samples, settings.likelihood,
    )  # fmt: skip
    bench = known.pop(key, None) or _Bench(observations, settings, products)
    known[key] = bench
    if len(known) > _MODELS_KEPT:
        del known[next(iter(known))]
    return bench
