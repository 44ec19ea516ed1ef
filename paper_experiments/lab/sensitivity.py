"""What `lkm-paper` owes to settings that the paper leaves open: one of them changed at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pandas as pd

from lkm_gpflow.comparators.latent import DiscoveryForecast
from lkm_gpflow.comparators.protocol import Fitted
from lkm_gpflow.data.tables import Table
from lkm_gpflow.discovery.result import Discovery
from lkm_gpflow.fit.fits import PUBLISHED_ANNEALING, FitSettings
from lkm_gpflow.forecast.by_model import to_model
from lkm_gpflow.kernels.grammar import PAPER_BASES
from lkm_gpflow.model.subclasses import name_of
from lkm_gpflow.search.ledger import Ledger
from lkm_gpflow.search.settings import SearchSettings
from lkm_gpflow.search.structure_search import search_steps

from .authors import AuthorsLKM
from .published import at_assignment, climb

DATASET = "houses"

_LEARNING = FitSettings(learner="relaxed", priors=False)


@dataclass(frozen=True)
class PaperVariant:
    """The method `lkm-paper` with settings that its comparator does not offer.

    Parameters
    ----------
    restarts, depth
        As of `discover`.
    learning
        How one structure is learnt.
    hard_steps
        Iterations of L-BFGS on kernels and noise, at the thresholded Z, after the search; the
        forecast is then that of this Z alone.
    """

    restarts: int = 6
    depth: int = 2
    learning: FitSettings = _LEARNING
    hard_steps: int = 0

    def search(self, seed: int) -> SearchSettings:
        """Return what is searched."""
        return SearchSettings(
            bases=PAPER_BASES, depth=self.depth, restarts=self.restarts, seed=seed,
            fit=self.learning,
        )  # fmt: skip

    def fit(self, train: pd.DataFrame, *, seed: int) -> Fitted:
        """Search, and forecast by the best fit alone."""
        table, search = Table.of(train), self.search(seed)
        ledger = Ledger({})
        deque(search_steps(table.observations, search, ledger, progress=False), maxlen=0)
        found = Discovery(table, search, "none", tuple(ledger.rows))
        if not self.hard_steps:
            return DiscoveryForecast(found)
        model = to_model(found.fit, table.observations, search.fit)
        climb(model, found.fit.Z, self.hard_steps)
        return at_assignment(table, model, found.fit.Z)


VARIANTS: Mapping[str, PaperVariant] = {
    "lkm-paper 1 start": PaperVariant(restarts=1),
    "lkm-paper 12 starts": PaperVariant(restarts=12),
    "lkm-paper 1 sample": PaperVariant(learning=replace(_LEARNING, num_samples=1)),
    "lkm-paper 10 samples": PaperVariant(learning=replace(_LEARNING, num_samples=10)),
    "lkm-paper temperature 0.1": PaperVariant(
        learning=replace(_LEARNING, annealing=replace(PUBLISHED_ANNEALING, last_temperature=0.1))
    ),
    "lkm-paper hard Z": PaperVariant(hard_steps=300),
    "lkm-paper depth 1": PaperVariant(depth=1),
    "lkm-paper depth 3": PaperVariant(depth=3),
    "lkm-paper alpha 0.3": PaperVariant(learning=replace(_LEARNING, alpha=0.3)),
    "lkm-paper alpha 3": PaperVariant(learning=replace(_LEARNING, alpha=3.0)),
    "lkm-paper authors' bound": PaperVariant(
        learning=replace(_LEARNING, model=name_of(AuthorsLKM))
    ),
}
"""By default: 6 starts, 5 samples, a last temperature of 0.3, depth 2, alpha 1."""


def sensitivity(runs: pd.DataFrame, dataset: str = DATASET) -> pd.DataFrame:
    """Scores of `lkm-paper` and its variants on one data set.

    Returns
    -------
    Index setting ("as it is" first, then those that were run); columns rmse, mnlp, bic, of seed 0.
    """
    own = runs[(runs["dataset"] == dataset) & (runs["seed"] == 0)].set_index("method")
    names = {"lkm-paper": "as it is"} | {name: name.removeprefix("lkm-paper ") for name in VARIANTS}
    shown = own.reindex(list(names))[["rmse", "mnlp", "bic"]].rename(index=names)
    return shown.rename_axis("setting").dropna(how="all")
