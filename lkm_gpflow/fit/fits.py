"""What learning one structure is given and gives: settings, states on the way, the fit."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from numbers import Real
from typing import Any, Literal

import numpy as np

from ..gp.types import Floats, Integers
from ..kernels.grammar import Product
from ..model.amplitudes import Amplitudes
from ..model.annealing import Annealing, Climb

LearnerName = Literal["scan", "relaxed", "relaxed+scan"]
PriorName = Literal["finite", "infinite"]
Criterion = Literal["bic", "bic+prior", "laplace"]

CRITERIA: Mapping[Criterion, str] = {
    "bic": "BIC",
    "bic+prior": "BIC with the prior of Z",
    "laplace": "minus twice the log evidence",
}
"""What they are called where they are shown."""

PLAIN_MODEL = "lkm_gpflow.model.lkm:LKM"
"""Name of the model class that is learnt if no other is asked for."""

PUBLISHED_ANNEALING = Annealing(
    num_steps=300,
    learning_rate=0.05,
    logits_rate=0.15,
    first_temperature=1.0,
    last_temperature=0.3,
    most_blocks=10,
    settling_rates=(0.15, 0.02),
)
"""How the paper's learner climbs; the paper does not say.

Tried on planted tables (6 series, SE and PER, 120 times): with logits at the rate of all else nu
stops on its way to zero or one, and starts that found the same differ by ten nats and more; so they
do by a nat or two with a last temperature of 0.1.  With these values they differ by a few tenths.
"""

LEAST_NOISE = 1.1e-6
"""Noise variance, in that of the series; models take no less either."""

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
        How often step 1 is done from nothing; the best result continues.
    num_reseeds
        Rounds over all components in step 3.
    learner
        "relaxed": the paper's, see `relaxed`.  "scan": that of `training`.  "relaxed+scan": the
        same with step 1 replaced by `models.relaxation.anneal`, from random starting values.
    prune
        Whether components that do not pay in BIC are dropped.
    exact
        Whether the series are thought to be seen almost without noise (a prior; see
        `initialization`).
    prior
        Over Z: "finite", or (learner "relaxed") "infinite".
    annealing
        How the learner "relaxed" climbs.
    num_samples
        S, draws of Z in every step of the learner "relaxed".
    model
        Name of the model class that the learner "relaxed" learns; see `models.subclasses`.
    amplitudes
        What series of one component differ in, see `models.amplitudes`.
    criterion
        What structures are compared by, see `Learner.cost`.
    """

    alpha: float = 1.0
    priors: bool = True
    num_candidates: int = 32
    num_starts: int = 2
    num_reseeds: int = 2
    learner: LearnerName = "scan"
    prune: bool = True
    exact: bool = False
    prior: PriorName = "finite"
    annealing: Annealing = PUBLISHED_ANNEALING
    num_samples: int = 5
    model: str = PLAIN_MODEL
    amplitudes: Amplitudes = "none"
    criterion: Criterion = "bic"

    def __post_init__(self) -> None:
        if not (isinstance(self.alpha, Real) and 0.0 < self.alpha < np.inf):
            raise ValueError(f"expected a positive number alpha, got {self.alpha!r}")
        object.__setattr__(self, "alpha", float(self.alpha))

    def to_json(self) -> dict[str, Any]:
        """Return the settings in JSON's types, those of older versions as these wrote them.

        Amplitudes and criterion are there where they are not the paper's.  Version 0.1's "relaxed"
        is what is "relaxed+scan" now; today's "relaxed" comes with an ``annealing``.
        """
        values = asdict(self)
        for key, papers in (("amplitudes", "none"), ("criterion", "bic")):
            if values[key] == papers:
                del values[key]
        if self.learner == "relaxed":
            return values
        for key in ("prior", "annealing", "num_samples", "model"):
            del values[key]
        return {**values, "learner": "relaxed" if self.learner == "relaxed+scan" else self.learner}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> FitSettings:
        """Read what `to_json` wrote, now or in version 0.1."""
        if "annealing" not in values:
            is_mixed = values.get("learner") == "relaxed"
            return cls(**{**values, "learner": "relaxed+scan"} if is_mixed else values)
        annealing = dict(values["annealing"])
        annealing["settling_rates"] = tuple(annealing["settling_rates"])
        return cls(**{**values, "annealing": Annealing(**annealing)})


@dataclass(frozen=True)
class Relaxed:
    """The relaxed posterior of a fit, and the model that it is of.

    Parameters
    ----------
    logits
        Of nu, [N, K].
    temperature
        At which learning ended.
    num_samples
        S.
    prior
        Over Z.
    model
        Name of the model class.
    parameters
        What a subclass of `LKM` has learnt beside what `LKM` has, by path.
    """

    logits: Floats
    temperature: float
    num_samples: int
    prior: PriorName = "finite"
    model: str = PLAIN_MODEL
    parameters: Mapping[str, Any] = field(default_factory=dict)


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
        One per series, [N].
    log_likelihood
        ``sum_n log p(x_n | z_n)`` at Z.
    bic
        Of Z; smaller is better.
    elbo
        The enumerated evidence lower bound, larger is better; of the learner "relaxed" the relaxed
        one.
    seconds
        How long the fit took.
    history
        The bound after every round of the last step, in which kernels, noise and posterior are
        learnt together; of the learner "relaxed", the objective before every step.
    relaxed
        The posterior that the learner "relaxed" has learnt; None if rows were enumerated.
    heights
        By which factor the variance of a component differs in each series, [N, K] (see `heights`),
        also where the series may not have it; None if in none.
    cost
        What structures were compared by, if not by BIC.
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
    relaxed: Relaxed | None = None
    heights: Floats | None = None
    cost: float | None = None

    @property
    def criterion(self) -> float:
        """What fits are compared by, smaller is better: BIC if it is no other."""
        return self.bic if self.cost is None else self.cost

    @property
    def loadings(self) -> Floats:
        """Z times heights, [N, K]: with which weights covariances of components add up."""
        return self.Z if self.heights is None else self.Z * self.heights

    def of_series(self, places: Integers) -> Fit:
        """Return the fit's part about some series; its scores stay those of all."""
        relaxed = self.relaxed
        return replace(
            self,
            relaxed=relaxed and replace(relaxed, logits=relaxed.logits[places]),
            heights=None if self.heights is None else self.heights[places],
            Z=self.Z[places],
            probabilities=self.probabilities[places],
            noise_variance=self.noise_variance[places],
        )

    def of_components(self, order: Integers) -> Fit:
        """Return the fit with some of its components, in this order; its scores stay.

        Under the infinite prior how probable a component is depends on all sticks up to its own:
        there all components up to the last of these stay, where they are.
        """
        relaxed = self.relaxed
        if relaxed is not None and relaxed.prior == "infinite":
            order = np.arange(max(order) + 1, dtype=np.int32)
        return replace(
            self,
            kernels=tuple(self.kernels[k] for k in order),
            Z=self.Z[:, order],
            probabilities=self.probabilities[:, order],
            tau=self.tau[order],
            relaxed=relaxed and replace(relaxed, logits=relaxed.logits[:, order]),
            heights=None if self.heights is None else self.heights[:, order],
        )


@dataclass(frozen=True)
class Trial:
    """The first steps of a start of the learner "relaxed".

    Parameters
    ----------
    climb
        From where learning goes on.
    seconds
        How long they took.
    """

    climb: Climb
    seconds: float


class OtherModelError(ValueError):
    """A fit is one of a subclass of `LKM`, where its kernels alone have to say how it covaries."""


def check_is_plain(fit: Fit, purpose: str) -> None:
    """Refuse a fit of a subclass of `LKM`, whose covariances may be others.

    Parameters
    ----------
    fit
        Any.
    purpose
        What plain covariances are wanted for; said in the error.

    Raises
    ------
    OtherModelError
        If it is one.
    """
    if fit.relaxed is not None and fit.relaxed.model != PLAIN_MODEL:
        raise OtherModelError(
            f"expected a fit of LKM itself {purpose}, got one of {fit.relaxed.model}, whose "
            "covariances may be others: learn LKM (model=lkm.LKM)"
        )


@dataclass(frozen=True)
class State:
    """A point of the search within one structure: kernels [K], Z [N, K], noise [N], its score.

    And log heights [N, K], where series differ in them.
    """

    kernels: tuple[Product, ...]
    Z: Floats
    noise_variance: Floats
    score: float = -np.inf
    log_heights: Floats | None = None

    @classmethod
    def empty(cls, num_series: int, noise_variance: float = 1.0) -> State:
        """Return the state in which every series is noise."""
        return cls((), np.zeros((num_series, 0)), np.full(num_series, noise_variance))

    def without(self, k: int) -> State:
        """Return the state with component k taken out."""
        kernels = self.kernels[:k] + self.kernels[k + 1 :]
        log_heights = self.log_heights
        if log_heights is not None:
            log_heights = np.delete(log_heights, k, axis=1)
        Z = np.delete(self.Z, k, axis=1)
        return replace(self, kernels=kernels, Z=Z, log_heights=log_heights)

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
        log_heights = None if self.log_heights is None else self.log_heights[:, keep]
        kernels = tuple(self.kernels[k] for k in keep)
        return replace(self, kernels=kernels, Z=self.Z[:, keep], log_heights=log_heights)

    @property
    def loadings(self) -> Floats:
        """Z times heights, [N, K]: with which weights covariances of components add up."""
        return self.Z if self.log_heights is None else self.Z * np.exp(self.log_heights)
