"""The linear model of coregionalisation: series that mix shared Gaussian processes.

Alvarez, Rosasco and Lawrence, *Kernels for vector-valued functions: a review*, Foundations and
Trends in Machine Learning 4(3), 2012, section 4.2; Bonilla, Chai and Williams, *Multi-task Gaussian
process prediction*, NIPS 2008, is the case of one kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import gpflow
import numpy as np
import pandas as pd
import tensorflow as tf
import tensorflow_probability as tfp
from check_shapes import inherit_check_shapes
from gpflow.base import Parameter
from gpflow.utilities import positive, set_trainable, to_default_float

from ..data.observations import Observations
from ..data.tables import Table
from ..fit.initialization import VARIANCE, Proposer, typical_step
from ..fit.parameter_priors import add_priors
from ..gp.types import Floats, FloatTensor
from ..kernels.component import ComponentKernel, to_kernel
from ..kernels.grammar import Product, parse
from ..model.criterion import bic
from .lbfgs import MultiStart
from .protocol import ScaledForecast
from .stacked import StackedGPR, stack


class CoregionalisedTerm(gpflow.kernels.Product):
    """One term of the model, k((x, i), (x', j)) = B[i, j] k(x, x') with B = W W' + diag(kappa).

    W is [N, R], kappa [N] and positive.  The variance of k is fixed, because B has it too.
    """

    def __init__(self, base: ComponentKernel, W: Floats, kappa: Floats) -> None:
        self.base = base
        set_trainable(base.variance, False)
        self.coregion = gpflow.kernels.Coregion(*W.shape, active_dims=[1])
        self.coregion.W.assign(W)
        self.coregion.kappa = Parameter(kappa, transform=positive(base="exp"))
        super().__init__([self.coregion, base])

    @property
    def num_free(self) -> int:
        """Free numbers: those of the base kernel, and of B those that rotations of W leave."""
        N, R = self.coregion.W.shape
        return min(N * R - R * (R - 1) // 2 + N, N * (N + 1) // 2) + sum(
            int(np.prod(parameter.shape)) for parameter in self.base.trainable_parameters
        )


class CoregionalisedGPR(StackedGPR):
    r"""Exact regression with the linear model of coregionalisation.

    .. math:: k((x, i), (x', j)) = \sum_q B_q[i, j] k_q(x, x'),
       \qquad B_q = W_q W_q^\top + \mathrm{diag}(\kappa_q)

    `StackedGPR` with this kernel.  For learning, scaled series stand on the union of their times:
    then the covariance is a sum of Kronecker products, from which gaps are left out, and base
    kernels are evaluated at D times, not at all N D observations.
    """

    def __init__(self, observations: Observations, terms: Sequence[CoregionalisedTerm]) -> None:
        super().__init__(
            stack(observations), gpflow.kernels.Sum(list(terms)), observations.num_series
        )
        self.terms = list(terms)
        self._X = to_default_float(observations.x[:, None])
        self._seen = np.flatnonzero(observations.mask)
        self._num_cells = observations.mask.size

    @inherit_check_shapes
    def covariance(self) -> FloatTensor:
        B = tf.stack([term.coregion.output_covariance() for term in self.terms])
        K = tf.stack([term.base(self._X) for term in self.terms])
        V = tf.reshape(tf.einsum("qij,qde->idje", B, K), [self._num_cells, self._num_cells])
        if len(self._seen) == self._num_cells:
            return V
        return tf.gather(tf.gather(V, self._seen), self._seen, axis=1)

    def bic(self) -> float:
        """BIC, with every free number of terms and noise."""
        num_series = self.likelihood.variance.variance.shape[0]
        num_free = sum(term.num_free for term in self.terms) + num_series
        return bic(float(self.log_marginal_likelihood()), num_free, len(self.data[0]))


def correlation_root(observations: Observations) -> Floats:
    """Return G with G G' the correlation matrix of the series, [N, N], largest columns first.

    Every pair of series by the times at which both were observed; what is then not positive is cut.
    """
    Y, mask = observations.Y, observations.mask
    correlation = (Y @ Y.T) / np.maximum(mask @ mask.T, 1.0)
    eigenvalues, vectors = np.linalg.eigh(correlation)
    return (vectors * np.sqrt(np.maximum(eigenvalues, 0.0)))[:, ::-1]


@dataclass(frozen=True)
class LMC:
    """The linear model of coregionalisation; kernels and rank are chosen by BIC.

    Every series has, beside the mixed processes, a level of its own (a constant kernel of rank
    zero): the mean of a series over the times at which it was observed is not that of the process.
    This level, BIC, weak priors and walks go beyond the papers, which leave kernels and rank to the
    user; `PublishedLMC` does without.
    """

    #: Sets of base kernels (expressions whose variance does not matter) to choose among.
    #: ``RW(start=-1)`` is a random walk from an uncertain level, k = 1 + min(x, x').
    kernels: tuple[tuple[str, ...], ...] = (
        ("RW(start=-1)",),
        ("SE", "SE"),
        ("SE", "RW(start=-1)"),
        ("PER", "RW(start=-1)"),
    )
    ranks: tuple[int, ...] = (1, 2)  #: Columns of every W to choose among
    restarts: int = 6  #: Starts of each choice; only the best continues
    #: Iterations from every start, and of the run that continues.
    short: int = 15
    max_iterations: int = 150
    priors: bool = True  #: Whether the weak priors count

    def __post_init__(self) -> None:
        if not self.kernels or not all(self.kernels):
            raise ValueError(f"expected sets of base kernels, none empty, got {self.kernels}")
        if not self.ranks or min(self.ranks) < 1:
            raise ValueError(f"expected ranks of at least 1, got {self.ranks}")
        if self.restarts < 1:
            raise ValueError(f"expected at least 1 start, got {self.restarts}")

    def fit(self, train: pd.DataFrame, *, seed: int) -> ScaledForecast:
        """Learn every choice by maximum a posteriori, and keep that with the least BIC."""
        table = Table.of(train)
        return ScaledForecast(table, self.learn(table.observations, seed=seed).predict_series)

    def learn(self, observations: Observations, *, seed: int) -> CoregionalisedGPR:
        """Return the learnt model of least BIC; ranks above the number of series are cut to it."""
        rng = np.random.default_rng(seed)
        ranks = sorted({min(rank, observations.num_series) for rank in self.ranks})
        models = [
            self._learn(observations, names, rank, rng) for names in self.kernels for rank in ranks
        ]
        return min(models, key=lambda model: model.bic())

    def _learn(
        self, observations: Observations, names: Sequence[str], rank: int, rng: np.random.Generator
    ) -> CoregionalisedGPR:
        """Learn the model with these base kernels and this rank."""
        draw = partial(
            _draw_terms,
            [parse(name) for name in names],
            rank,
            Proposer.of(observations),
            correlation_root(observations),
            rng,
        )
        model = CoregionalisedGPR(observations, draw())
        if self.priors:
            for term in model.terms:
                _add_priors(term, typical_step(observations.x))

        def start() -> None:
            fresh = gpflow.kernels.Sum(draw())
            gpflow.utilities.multiple_assign(model.kernel, gpflow.utilities.parameter_dict(fresh))
            model.likelihood.variance.variance.assign(np.full(observations.num_series, 0.1))

        MultiStart(model).best_of(
            [start] * self.restarts, short=self.short, max_iterations=self.max_iterations
        )
        return model


@dataclass(frozen=True)
class PublishedLMC(LMC):
    """The model as Tong and Choi compared with it: GPy's, by maximum likelihood, no walk.

    Nothing is chosen.  The paper does not name the kernels; these are Bias, Linear and RBF, those
    of GPy's example of coregionalised regression but for its Matern 3/2, of rank one.
    """

    kernels: tuple[tuple[str, ...], ...] = (("C", "LIN", "SE"),)
    ranks: tuple[int, ...] = (1,)
    priors: bool = False


def _draw_terms(
    products: Sequence[Product],
    rank: int,
    proposer: Proposer,
    root: Floats,
    rng: np.random.Generator,
) -> list[CoregionalisedTerm]:
    """Draw starting values: on average the W_q W_q' add up to the correlation matrix."""
    N = len(root)
    shares = rng.dirichlet(np.ones(len(products)))
    mixed = [
        CoregionalisedTerm(
            to_kernel(replace(proposer.propose(product, 1, rng)[0], variance=1.0)),
            np.sqrt(share / rank) * root @ rng.normal(size=(N, rank)),
            np.full(N, 0.1 * share),
        )
        for product, share in zip(products, shares, strict=True)
    ]
    level = to_kernel(parse("1 x C"))
    return [*mixed, CoregionalisedTerm(level, np.empty((N, 0)), np.full(N, 0.1))]


def _add_priors(term: CoregionalisedTerm, step: float) -> None:
    """Weak priors: the package's for the base kernel and for kappa; N(0, 1) for W."""
    add_priors(term.base, step)
    zero, one = to_default_float(0.0), to_default_float(1.0)
    term.coregion.W.prior = tfp.distributions.Normal(zero, one)
    mean, sd = to_default_float(VARIANCE.mean), to_default_float(VARIANCE.sd)
    term.coregion.kappa.prior = tfp.distributions.Normal(mean, sd)
    term.coregion.kappa.prior_on = "unconstrained"
