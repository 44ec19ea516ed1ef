"""One structure from data: the settings, states on the way, and the fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from numbers import Real
from typing import Any, Literal, get_args

import numpy as np

from ..gp.likelihoods import GAUSSIAN, SeriesLikelihood
from ..gp.types import Floats, Integers
from ..kernels.grammar import Product
from ..model.annealing import Annealing
from ..model.ibp import IBP, FiniteIBP, InfiniteIBP
from ..model.subclasses import object_from_json, object_to_json

LearnerName = Literal["scan", "relaxed"]
PriorName = Literal["finite", "infinite"]
Criterion = Literal["bic", "bic+prior"]

CRITERIA: Mapping[Criterion, str] = {"bic": "BIC", "bic+prior": "BIC with the prior of Z"}
"""What the criteria are called where they are shown."""

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
"""How the paper's learner climbs: the paper does not say, `experiments.recovery` chose it."""

LEAST_NOISE = 1.1e-6
"""Smallest noise variance, relative to the variance of a series; models take no less either."""

MOST_ROUNDS = 6
"""Rounds of hyperparameters and posterior over Z, in turn, at the end of a fit."""


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
        Starts from nothing in step 1; the best one continues.
    num_reseeds
        Rounds over all components in step 3.
    learner
        "scan" (see `training`) or "relaxed", the paper's (see `relaxed`).
    prune
        Whether components that do not pay for their parameters are dropped.
    exact
        Whether the prior of the noise expects series that are seen almost without noise.
    prior
        Prior over Z: "finite", "infinite" (with the learner "relaxed"), or an `IBP` (with the
        learner "scan" a `FiniteIBP`), whose alpha counts then; its number of components does not.
    annealing
        How the learner "relaxed" climbs.
    num_samples
        S, draws of Z in every step of the learner "relaxed".
    model
        Name of the model class, see `model.subclasses`.
    likelihood
        How a series scatters around its covariance, see `gp.likelihoods`.
    criterion
        Score that compares structures, see `Learner.cost`.
    """

    alpha: float = 1.0
    priors: bool = True
    num_candidates: int = 32
    num_starts: int = 2
    num_reseeds: int = 2
    learner: LearnerName = "scan"
    prune: bool = True
    exact: bool = False
    prior: PriorName | IBP = "finite"
    annealing: Annealing = PUBLISHED_ANNEALING
    num_samples: int = 5
    model: str = PLAIN_MODEL
    likelihood: SeriesLikelihood = GAUSSIAN
    criterion: Criterion = "bic"

    def __post_init__(self) -> None:
        if not (isinstance(self.alpha, Real) and 0.0 < self.alpha < np.inf):
            raise ValueError(f"expected a positive number alpha, got {self.alpha!r}")
        object.__setattr__(self, "alpha", float(self.alpha))
        if not isinstance(self.prior, IBP) and self.prior not in get_args(PriorName):
            raise ValueError(
                f"prior: expected one of {get_args(PriorName)} or an IBP, got {self.prior!r}"
            )
        if self.learner == "scan" and not isinstance(self.ibp(1), FiniteIBP):
            raise ValueError(
                "prior: expected 'finite' or a FiniteIBP with the learner 'scan', which needs "
                f"log p(Z) in closed form, got {self.prior!r}: the learner 'relaxed' takes any"
            )

    def ibp(self, num_components: int) -> IBP:
        """Return the prior over Z of so many components; where there is none, of one."""
        num_components = max(num_components, 1)
        if isinstance(self.prior, IBP):
            return replace(self.prior, num_components=num_components)
        kind = FiniteIBP if self.prior == "finite" else InfiniteIBP
        return kind(self.alpha, num_components)

    def to_json(self) -> dict[str, Any]:
        """Return the settings in JSON's types."""
        prior = object_to_json(self.prior) if isinstance(self.prior, IBP) else self.prior
        return {**asdict(self), "likelihood": object_to_json(self.likelihood), "prior": prior}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> FitSettings:
        """Read what `to_json` wrote."""
        annealing = dict(values["annealing"])
        annealing["settling_rates"] = tuple(annealing["settling_rates"])
        prior = values["prior"]
        objects = {
            "annealing": Annealing(**annealing),
            "likelihood": object_from_json(values["likelihood"], SeriesLikelihood),
            "prior": prior if isinstance(prior, str) else object_from_json(prior, IBP),
        }
        return cls(**{**values, **objects})


@dataclass(frozen=True)
class Relaxed:
    """The relaxed posterior over Z of a fit.

    Parameters
    ----------
    logits
        Logits of nu, [N, K].
    temperature
        Temperature at which learning ended.
    num_samples
        S.
    is_ordered
        Whether the prior breaks sticks: then a component's probability depends on all before it.
    """

    logits: Floats
    temperature: float
    num_samples: int
    is_ordered: bool = False


@dataclass(frozen=True)
class Fit:
    """A learnt structure, in scaled units.

    Parameters
    ----------
    kernels
        The K components that are used, complete products.
    Z
        The most probable rows, [N, K], 0 or 1.
    probabilities
        P(z_nk = 1), [N, K].
    tau
        Beta parameters of q(pi), [K, 2]; of a draw none, [0, 2].
    noise_variance
        One per series, [N].
    log_likelihood
        ``sum_n log p(x_n | z_n)`` at Z.
    bic
        BIC of Z; smaller is better.
    elbo
        The evidence lower bound, larger is better: enumerated, or relaxed by the learner "relaxed".
    seconds
        How long the fit took.
    history
        The bound after every round of the last step; by the learner "relaxed" the objective before
        every step of Adam.
    relaxed
        The posterior that the learner "relaxed" has learnt; None if rows were enumerated.
    cost
        The criterion, where it is not BIC.
    model
        Name of the model class.
    parameters
        Values by path of the parameters that a subclass of `LKM` adds.
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
    cost: float | None = None
    model: str = PLAIN_MODEL
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def criterion(self) -> float:
        """The score that compares fits, smaller is better: BIC unless it is another."""
        return self.bic if self.cost is None else self.cost

    @property
    def is_drawn(self) -> bool:
        """Whether it is a draw of a posterior, of which Z has the heights."""
        return not len(self.tau)

    def of_series(self, places: Integers) -> Fit:
        """Return the fit of some series; its scores stay those of all."""
        relaxed = self.relaxed
        return replace(
            self,
            relaxed=relaxed and replace(relaxed, logits=relaxed.logits[places]),
            Z=self.Z[places],
            probabilities=self.probabilities[places],
            noise_variance=self.noise_variance[places],
        )

    def of_components(self, order: Integers) -> Fit:
        """Return the fit with some of its components, in this order; its scores stay.

        Under a prior that breaks sticks, all components up to the last of these stay in place.
        """
        relaxed = self.relaxed
        if relaxed is not None and relaxed.is_ordered:
            order = np.arange(max(order) + 1, dtype=np.int32)
        return replace(
            self,
            kernels=tuple(self.kernels[k] for k in order),
            Z=self.Z[:, order],
            probabilities=self.probabilities[:, order],
            tau=self.tau[order],
            relaxed=relaxed and replace(relaxed, logits=relaxed.logits[:, order]),
        )


@dataclass(frozen=True)
class State:
    """A point on the way to a fit.

    Parameters
    ----------
    kernels
        K complete products.
    Z
        [N, K], 0 or 1.
    noise_variance
        [N].
    score
        Log joint density with the data, up to a constant.
    parameters
        As of `Fit`.
    """

    kernels: tuple[Product, ...]
    Z: Floats
    noise_variance: Floats
    score: float = -np.inf
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, fit: Fit) -> State:
        """Return where a fit ended."""
        return cls(fit.kernels, fit.Z, fit.noise_variance, parameters=fit.parameters)

    def without(self, k: int) -> State:
        """Return the state with component k taken out."""
        kernels = self.kernels[:k] + self.kernels[k + 1 :]
        return replace(self, kernels=kernels, Z=np.delete(self.Z, k, axis=1))

    def used(self) -> State:
        """Return the state without components that no series uses."""
        keep = np.flatnonzero(self.Z.sum(axis=0) > 0)
        kernels = tuple(self.kernels[k] for k in keep)
        return replace(self, kernels=kernels, Z=self.Z[:, keep])
