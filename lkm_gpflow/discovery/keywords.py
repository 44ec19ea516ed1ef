"""The keywords of `discover`: what each does, its default, and which go together."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar, cast, get_args

from ..data.foreign import Tabular
from ..data.sites import PointChoice
from ..data.tables import Suspicious
from ..data.transforms import Transform
from ..fit.fits import PLAIN_MODEL, Criterion, FitSettings, LearnerName, PriorName
from ..gp.likelihoods import LikelihoodName, SeriesLikelihood, likelihood_of
from ..kernels.grammar import EXTENDED_BASES
from ..model.annealing import Annealing
from ..model.ibp import IBP
from ..model.subclasses import name_of
from ..runtime.arguments import check_switch
from ..runtime.executors import check_executor
from ..runtime.progress import Progress
from ..search.settings import SearchSettings, Strategy, base_names

if TYPE_CHECKING:
    from ..model.lkm import LKM

Averaging = Literal["stacked", "tempered", "none"]

_Keywords = ParamSpec("_Keywords")
_Settings = TypeVar("_Settings")
_Result = TypeVar("_Result")

_PLACE = "    settings\n        Given as keywords.\n"
"""Entry in the docstring of a function that `keywords_of` replaces."""


@dataclass(frozen=True, kw_only=True)
class DiscoverSettings:
    """What `discover` is asked for; a keyword that is None is chosen here.

    Parameters
    ----------
    transform
        "log": model the logarithms of the series, which must be positive; results are in the units
        of the data, and patterns are percentages.  ``{"Gold": "log"}``: only of these series.
        "auto": only of series whose swings clearly grow with their level
        (`data.transforms.log_gain`).  By default "auto", with the learner "relaxed" "none".
    suspicious
        Values that look wrong (see `data.suspicious`) are "listed" in `Discovery.suspicious`, or
        "missing": then sentinels, outliers and stuck values count as unobserved, too.
    bases
        Base kernels of the grammar; `PAPER_BASES` are those of the paper.  With "CP" among them the
        search also tries change points: patterns that end or begin at some time (`change_point`).
    depth
        How often every component may be expanded into products.
    restarts
        Fits of each structure from different random numbers; of 300 rows or more, of the first
        structure alone.
    strategy
        "partial" set expansion (the paper's algorithm 1; with the learner "scan", pairs of
        components are multiplied in the end, and products split) or "full".
    alpha
        Concentration of the Indian Buffet Process; larger means more components per series.
    priors
        Weak priors on the hyperparameters.
    learner
        "scan": components enter one by one, and the rows of Z are enumerated (see `training`).
        "relaxed": the paper's section 4 and algorithm 1, nothing else (see `relaxed`); the one of
        its `restarts` with the largest bound wins.
    prior
        Over Z: "finite", with the learner "relaxed" also "infinite" (stick breaking), or an object:
        a subclass of `FiniteIBP`, with the learner "relaxed" of `IBP`.  Its number of components
        does not matter, and its alpha replaces `alpha`.
    model
        A subclass of `LKM` that overrides `component_covariances`; its trainable parameters are
        learnt with the others.  It is built with the arguments of `LKM`.  None: `LKM`.
    annealing
        How the learner "relaxed" climbs its bound; None: 300 steps of Adam while the temperature
        falls from 1 to 0.3, then blocks of 50, at most ten, until one gains less than half a nat.
    likelihood
        How values scatter.  "scaled": normally, with a scale of each series that is integrated out,
        so that series may show a pattern at different heights; "gaussian": normally (the paper); or
        an object for whole series (see `gp.likelihoods`).  "student" (outliers count less),
        "poisson", "negative-binomial", "binomial" (yes or no, 1 or 0), "share" (from 0 to 1, or to
        100): a latent function of each series is "scaled", and its values scatter so; also an
        object (see `gp.likelihoods`) or one of ``gpflow.likelihoods``, or for some series
        ``{"visits": "poisson"}``.  "auto": the values of up to 50 series say which (see
        `data.sites.rules`).  By default "auto", with a subset or a `model` "scaled", with the
        learner "relaxed" "gaussian".
    criterion
        The score that compares structures: "bic" (the paper) or "bic+prior" (with the prior of Z).
        By default "bic+prior", with the learner "relaxed" "bic".
    averaging
        "stacked": forecasts average over draws of the posterior or the best fits, and over walks,
        weighted by how they forecast windows of the past (see `stacking`); "tempered": over the
        best fits, weighted by BIC; "none": the best fit alone (the paper).  Components are those of
        the best fit.  By default "stacked", with a subset "tempered", with the learner "relaxed"
        "none".
    subset
        For thousands of series: search on this many, drawn at random, then learn the best fits
        again on all series; of more than 1,000 series, learn the best fits on 1,000 first, and the
        best of these on all (see `search.many_series`).
        The subset decides which structures are tried and where learning on all series begins;
        bound, probabilities and BIC of the result are exact, for all series.
    seed
        The same seed gives the same result, whatever the executor.
    ledger
        File to which every fit is written when it is done.  A search that was stopped continues
        from it.
    executor
        Runs the fits, for example `lkm_gpflow.process_pool()` or that of a Dask client; None:
        this process.
    time_budget
        Seconds, or a text such as "10m", after which search and averaging end with the best result
        so far, and `Discovery.stopped` says so.  If averaging follows, the search ends after three
        quarters of the time.  The first fit, and a fit under way in this process, are always
        finished; fits of an executor are not waited for.  A later call with the same ledger
        continues.
    memory_budget
        The same for bytes, or a text such as "4GB"; see `budget.resident_memory`.
    progress
        Whether to show a progress bar; or one that is open.

    Raises
    ------
    ValueError
        If a value is not known, or does not go with another.
    """

    transform: Transform | None = None
    suspicious: Suspicious = "listed"
    bases: Sequence[str] = EXTENDED_BASES
    depth: int = 2
    restarts: int = 3
    strategy: Strategy = "partial"
    alpha: float = 1.0
    priors: bool = True
    learner: LearnerName = "scan"
    prior: PriorName | IBP = "finite"
    model: type[LKM] | None = None
    annealing: Annealing | None = None
    likelihood: LikelihoodName | SeriesLikelihood | PointChoice | None = None
    criterion: Criterion | None = None
    averaging: Averaging | None = None
    subset: int | None = None
    seed: int = 0
    ledger: str | Path | None = None
    executor: Executor | None = None
    time_budget: float | str | None = None
    memory_budget: float | str | None = None
    progress: bool | Progress = True

    def __post_init__(self) -> None:
        _check_name("learner", self.learner, LearnerName)
        _check_name("suspicious", self.suspicious, Suspicious)
        check_switch(self.priors, "priors")
        check_executor(self.executor)
        _ = (
            self.search,
            self.weighting,
            self.transforms,
            self.points,
        )  # or say what does not go together

    @property
    def transforms(self) -> Transform:
        """Which series are modelled by their logarithms."""
        chosen: Transform = "auto" if self.learner == "scan" else "none"
        return chosen if self.transform is None else self.transform

    @property
    def points(self) -> PointChoice:
        """Which series are counts, shares or have outliers."""
        takes_them = self.learner == "scan" and self.model is None
        if self.likelihood is None:
            return "auto" if takes_them and self.subset is None else "none"
        if _is_of_series(self.likelihood):
            return "none"
        if not takes_them:
            raise ValueError(
                "expected likelihood 'gaussian', 'scaled' or a SeriesLikelihood with the learner "
                f"'relaxed' or a model of your own, got {self.likelihood!r}"
            )
        return cast(PointChoice, self.likelihood)

    @property
    def weighting(self) -> Averaging:
        """Which fits forecasts average over."""
        chosen: Averaging = "stacked" if self.subset is None else "tempered"
        if self.learner == "relaxed":
            chosen = "none"
        if self.averaging is not None:
            _check_name("averaging", self.averaging, Averaging)
            chosen = self.averaging
        if self.learner == "relaxed" and (chosen == "stacked" or self.subset is not None):
            raise ValueError(
                "expected averaging 'none' or 'tempered' and no subset with the learner "
                f"'relaxed', got {chosen!r} and {self.subset!r}"
            )
        if self.subset is not None and chosen == "stacked":
            raise ValueError("expected averaging 'tempered' or 'none' with a subset, got 'stacked'")
        return chosen

    @cached_property
    def search(self) -> SearchSettings:
        """What the search depends on."""
        names = base_names(self.bases)
        return SearchSettings(
            names, self.depth, self.restarts, self.strategy, self.seed, self._fit()
        )

    def _fit(self) -> FitSettings:
        ours = self.learner == "scan"
        likelihood: Any = self.likelihood
        if not _is_of_series(likelihood):
            likelihood = "scaled" if ours else "gaussian"
        criterion = self.criterion or ("bic+prior" if ours else "bic")
        _check_name("criterion", criterion, Criterion)
        if self.annealing is not None and not isinstance(self.annealing, Annealing):
            raise ValueError(f"expected annealing as an Annealing or None, got {self.annealing!r}")
        model = PLAIN_MODEL if self.model is None else name_of(self.model)
        if ours and self.annealing is not None:
            raise ValueError(
                f"expected no annealing without the learner 'relaxed', got {self.annealing!r}"
            )
        if not ours and criterion != "bic":
            raise ValueError(
                "expected the criterion 'bic' with the learner 'relaxed', which compares starts by "
                f"their bound, got {criterion!r}"
            )
        settings = FitSettings(
            alpha=self.alpha, priors=bool(self.priors), learner=self.learner, prior=self.prior,
            model=model, likelihood=likelihood_of(likelihood), criterion=criterion,
        )  # fmt: skip
        return settings if self.annealing is None else replace(settings, annealing=self.annealing)


def keywords_of(
    settings: Callable[_Keywords, _Settings],
) -> Callable[
    [Callable[[Tabular, _Settings], _Result]], Callable[Concatenate[Tabular, _Keywords], _Result]
]:
    """Let a function of a table and settings take the fields of the settings as its keywords.

    Signature and docstring of the function name and describe each keyword.
    """

    def decorate(
        run: Callable[[Tabular, _Settings], _Result],
    ) -> Callable[Concatenate[Tabular, _Keywords], _Result]:
        (first, *_), own = inspect.signature(run).parameters.values(), inspect.signature(settings)
        signature = own.replace(
            parameters=[first, *own.parameters.values()],
            return_annotation=inspect.signature(run).return_annotation,
        )

        @wraps(run)
        def call(*args: Any, **keywords: Any) -> _Result:
            given = signature.bind(*args, **keywords).arguments
            return run(given.pop(first.name), cast(Any, settings)(**given))

        call.__signature__ = signature  # type: ignore[attr-defined]
        described = (settings.__doc__ or "").partition("    ----------\n")[2].partition("\n\n")[0]
        call.__doc__ = (run.__doc__ or "").replace(_PLACE, f"{described}\n")
        return cast("Callable[Concatenate[Tabular, _Keywords], _Result]", call)

    return decorate


def _is_of_series(likelihood: object) -> bool:
    """Whether a likelihood is one of whole series."""
    named = isinstance(likelihood, str) and likelihood in get_args(LikelihoodName)
    return named or isinstance(likelihood, SeriesLikelihood)


def _check_name(option: str, given: str, known: object) -> None:
    """Refuse a value that is not among the names of a Literal."""
    if given not in get_args(known):
        raise ValueError(f"expected {option} among {get_args(known)}, got {given!r}")
