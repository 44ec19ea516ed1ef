"""What learning one structure is given and gives: settings, states on the way, the fit."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from ..kernels.grammar import Product
from ..numerics.types import Floats, Integers

LearnerName = Literal["scan", "relaxed"]

MOST_ROUNDS = 6
"""Of learning hyperparameters and the posterior over Z in turn, at the end of a fit."""


@dataclass(frozen=True)
class FitSettings:
    """How one structure is learnt.

    Parameters
    ----------
    alpha
        Concentration of the Indian Buffet Process.
    priors
        Whether the weak priors of `initialization` count.
    num_candidates
        Hyperparameter draws that are scanned for a new component.
    num_starts
        How often step 1 is done from nothing; the best is gone on with.
    num_reseeds
        Rounds over all components in step 3.
    learner
        What finds Z first: "scan" is step 1; "relaxed" replaces it by the paper's relaxed
        posterior, learnt by `models.relaxation.anneal` from random starting values.
    prune
        Whether components that do not pay in BIC are dropped.
    exact
        Whether the series are thought to be seen almost without noise (a prior; see
        `initialization`).
    """

    alpha: float = 1.0
    priors: bool = True
    num_candidates: int = 32
    num_starts: int = 2
    num_reseeds: int = 2
    learner: LearnerName = "scan"
    prune: bool = True
    exact: bool = False


@dataclass(frozen=True)
class Fit:
    """A learnt structure, in scaled units.

    Parameters
    ----------
    kernels
        The components that are used, complete products.
    Z
        The most probable rows, [N, K], 0 or 1.
    probabilities
        P(z_nk = 1), [N, K].
    tau
        Beta parameters of q(pi), [K, 2].
    noise_variance
        One a series, [N].
    log_likelihood
        ``sum_n log p(x_n | z_n)`` at Z.
    bic
        Of Z; smaller is better.
    elbo
        The enumerated evidence lower bound, larger is better.
    seconds
        How long the fit took.
    history
        The bound after every round of the last step, in which kernels, noise and posterior are
        learnt together.
    """

    kernels: tuple[Product, ...]
    Z: Floats
    probabilities: Floats
    tau: Floats
    noise_variance: Floats
    log_likelihood: float
    bic: float
    elbo: float
    seconds: float
    history: Floats = field(default_factory=lambda: np.empty(0))

    def of_series(self, places: Integers) -> Fit:
        """Return the fit's part about some series; its scores stay those of all."""
        return replace(
            self,
            Z=self.Z[places],
            probabilities=self.probabilities[places],
            noise_variance=self.noise_variance[places],
        )


@dataclass(frozen=True)
class State:
    """A point of the search within one structure: kernels [K], Z [N, K], noise [N], its score."""

    kernels: tuple[Product, ...]
    Z: Floats
    noise_variance: Floats
    score: float = -np.inf

    @classmethod
    def empty(cls, num_series: int) -> State:
        """Return the state in which every series is noise."""
        return cls((), np.zeros((num_series, 0)), np.ones(num_series))

    def without(self, k: int) -> State:
        """Return the state with component k taken out."""
        kernels = self.kernels[:k] + self.kernels[k + 1 :]
        return replace(self, kernels=kernels, Z=np.delete(self.Z, k, axis=1))

    def exchanges(self) -> Iterator[State]:
        """States in which two components keep one base kernel each and exchange all beside it.

        Of LIN x SE and SE, say: is it the slow one that grows, or the other?
        """
        for i, j in itertools.combinations(range(len(self.kernels)), 2):
            a, b = self.kernels[i], self.kernels[j]
            if a.structure == b.structure:
                continue
            for p, q in itertools.product(range(len(a.factors)), range(len(b.factors))):
                kept, other = a.factors[p], b.factors[q]
                if kept.base == other.base and kept != other:
                    kernels = list(self.kernels)
                    kernels[i] = Product((*b.factors[:q], kept, *b.factors[q + 1 :]), a.variance)
                    kernels[j] = Product((*a.factors[:p], other, *a.factors[p + 1 :]), b.variance)
                    yield replace(self, kernels=tuple(kernels))

    def used(self) -> State:
        """Return the state without components that no series uses."""
        keep = np.flatnonzero(self.Z.sum(axis=0) > 0)
        return replace(self, kernels=tuple(self.kernels[k] for k in keep), Z=self.Z[:, keep])
