"""The learner that the paper's authors published, of kernels that are given.

Their repository (GitHub LKMGP/LKM, commit 97eb542) learns the seizure data (``lkm/run_seizure.py``,
``lkm/lkm_slim.py``); the code of the search is not there.  Starts and schedule are theirs, written
anew; so is the bound, if asked for, with its two defects: ``E[log p(pi)]`` is missing, and the
entropy of q stands in its place, a second time.  We predict with noise, which their code does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import tensorflow as tf
from gpflow.keras import tf_keras
from gpflow.utilities import set_trainable

from lkm_gpflow.comparators.lbfgs import MultiStart
from lkm_gpflow.comparators.protocol import ScaledForecast
from lkm_gpflow.data.observations import Observations
from lkm_gpflow.data.tables import Table
from lkm_gpflow.fit.initialization import typical_step
from lkm_gpflow.gp.types import Floats, FloatTensor
from lkm_gpflow.kernels.component import to_kernel
from lkm_gpflow.kernels.grammar import Kind, Product, parse, with_values
from lkm_gpflow.model.bound import bernoulli_entropy
from lkm_gpflow.model.lkm import LKM
from lkm_gpflow.model.posteriors import Seed
from lkm_gpflow.model.relaxation import RelaxedPosterior

from .published import at_assignment, climb, structure_of
from .seizure import STRUCTURE

ROUNDS = 300


class AuthorsLKM(LKM):
    r"""The model with the objective of the authors' code.

    .. math:: E_q[\log p(X \mid \tilde Z)] + E_q[\log p(Z \mid \pi)] + 2 H[q(Z)] + 2 H[q(\pi)]
    """

    def elbo(self, seed: Seed = None) -> FloatTensor:
        """Their objective, which is no bound."""
        assert isinstance(self.posterior, RelaxedPosterior)
        entropy = bernoulli_entropy(self.posterior.logits) + self.prior.entropy(self.tau)
        return super().elbo(seed) - self.prior.expected_log_weights(self.tau) + entropy


@dataclass(frozen=True)
class AuthorsLearner:
    """The authors' learner on the kinds of kernels that they published.

    Of GONU there are none: it gets the six of the seizure data.

    Parameters
    ----------
    model
        Whose objective is climbed: `AuthorsLKM`, or `LKM` for the bound without the defects.
    rounds
        Of tau, five steps of Adam on nu, and ten iterations of L-BFGS on kernels and noise.
    """

    model: type[LKM] = AuthorsLKM
    rounds: int = ROUNDS

    def fit(self, train: pd.DataFrame, *, seed: int) -> ScaledForecast:
        """Learn nu and kernels in turn, draw Z, and learn the kernels at this Z."""
        table = Table.of(train)
        try:
            kinds: Sequence[str] = structure_of(train.columns)[0]
        except ValueError:
            kinds = STRUCTURE
        model, Z = self.learn(table.observations, [parse(kind).structure for kind in kinds], seed)
        return at_assignment(table, model, Z)

    def learn(
        self, observations: Observations, structure: Sequence[Product], seed: int
    ) -> tuple[LKM, Floats]:
        """Return the model at the end, and Z [N, K]."""
        rng, step = np.random.default_rng(seed), typical_step(observations.x)
        posterior = RelaxedPosterior(num_samples=10, temperature=0.01, seed=seed)
        kernels = [to_kernel(start(member, rng).change_units(step)) for member in structure]
        model = self.model(
            observations.table, kernels=kernels, posterior=posterior, noise_variance=0.01
        )
        nu = rng.uniform(size=posterior.logits.shape)
        posterior.logits.assign(np.log(nu) - np.log1p(-nu))
        set_trainable(model.tau, False)
        set_trainable(posterior.logits, False)
        kernels_climb = MultiStart(model, lambda: -model.elbo())
        adam = tf_keras.optimizers.Adam(1.0)  # theirs: 0.01 on logits divided by 100
        logits = posterior.logits.unconstrained_variable

        @tf.function(autograph=False)
        def step_of_nu() -> None:
            posterior.resample()
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(logits)
                loss = -model.elbo()
            adam.apply_gradients([(tape.gradient(loss, logits), logits)])

        for _ in range(self.rounds):
            model.update_tau()
            for _ in range(5):
                step_of_nu()
            posterior.resample()
            kernels_climb.run(10)
        Z = hard(posterior.distribution(model).sample(seed=posterior.seed).numpy())
        climb(model, Z, 300)
        return model, Z


def start(member: Product, rng: np.random.Generator) -> Product:
    """Draw where a component begins, in rows: lines at the first, the rest uniformly."""
    ranges = {Kind.PERIOD: (5.0, 20.0), Kind.LOCATION: (0.0, 0.0), Kind.RATIO: (1.0, 3.0)}
    values = [
        float(
            rng.uniform(*ranges.get(kind, (0.5, 1.5)))
        )  # the lengthscale of PER is twice GPflow's
        for factor in member.factors
        for _, kind in factor.base.parameters
    ]
    variances = rng.uniform(0.5, 1.5, size=len(member.factors))
    return with_values(member, float(np.prod(variances)), values)


def hard(relaxed: Floats) -> Floats:
    """Return the Z that their code makes of relaxed samples [N, K]: each row's largest are one.

    At their temperature most samples are one to the last digit, so that a row has several ones; if
    none is, it has one all the same.
    """
    return (relaxed == relaxed.max(axis=1, keepdims=True)).astype(float)


AUTHORS_LEARNERS = {
    "lkm-authors": AuthorsLearner(),
    "lkm-authors-mended": AuthorsLearner(LKM),
}
