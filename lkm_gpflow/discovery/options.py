"""Options of `discover`: defaults that depend on each other, and what does not go together."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, get_args

from ..fit.fits import PLAIN_MODEL, Criterion, FitSettings, LearnerName, PriorName
from ..gp.likelihoods import LikelihoodName, SeriesLikelihood, likelihood_of
from ..model.annealing import Annealing
from ..model.subclasses import name_of
from ..runtime.arguments import check_switch
from .forecaster import Averaging

if TYPE_CHECKING:
    from ..model.lkm import LKM


def fit_settings(
    learner: LearnerName,
    prior: PriorName,
    model: type[LKM] | None,
    annealing: Annealing | None,
    likelihood: LikelihoodName | SeriesLikelihood | None,
    criterion: Criterion | None,
    *,
    alpha: float,
    priors: bool,
) -> FitSettings:
    """Return how fits are learnt.  The learner chooses what is None.

    Raises
    ------
    ValueError
        If a name is not known, or the learner has no such option.
    """
    ours = learner == "scan"
    if likelihood is None:
        likelihood = "scaled" if ours else "gaussian"
    if criterion is None:
        criterion = "bic+prior" if ours else "bic"
    _check_name("learner", learner, LearnerName)
    _check_name("prior", prior, PriorName)
    _check_name("criterion", criterion, Criterion)
    if annealing is not None and not isinstance(annealing, Annealing):
        raise ValueError(f"expected annealing as an Annealing or None, got {annealing!r}")
    named = PLAIN_MODEL if model is None else name_of(model)
    if learner != "relaxed" and (prior != "finite" or annealing is not None):
        raise ValueError(
            "expected the finite prior and no annealing without the learner 'relaxed', "
            f"got {prior!r} and {annealing!r}"
        )
    if learner == "relaxed" and criterion != "bic":
        raise ValueError(
            "expected the criterion 'bic' with the learner 'relaxed', which compares starts by "
            f"their bound, got {criterion!r}"
        )
    settings = FitSettings(
        alpha=alpha,
        priors=check_switch(priors, "priors"),
        learner=learner,
        prior=prior,
        model=named,
        likelihood=likelihood_of(likelihood),
        criterion=criterion,
    )
    return settings if annealing is None else replace(settings, annealing=annealing)


def choose_averaging(
    asked: Averaging | None, learner: LearnerName, subset: int | None
) -> Averaging:
    """Return over which fits forecasts average.  Learner and subset choose it if it is None.

    Raises
    ------
    ValueError
        If there is no such average, or it does not go with the learner or a subset.
    """
    chosen: Averaging = "stacked" if subset is None else "tempered"
    if learner == "relaxed":
        chosen = "none"
    if asked is not None:
        _check_name("averaging", asked, Averaging)
        chosen = asked
    if learner == "relaxed" and (chosen == "stacked" or subset is not None):
        raise ValueError(
            "expected averaging 'none' or 'tempered' and no subset with the learner 'relaxed', "
            f"got {chosen!r} and {subset!r}"
        )
    if subset is not None and chosen == "stacked":
        raise ValueError("expected averaging 'tempered' or 'none' with a subset, got 'stacked'")
    return chosen


def _check_name(option: str, given: str, known: object) -> None:
    """Refuse what is not among the names of a Literal."""
    if given not in get_args(known):
        raise ValueError(f"expected {option} among {get_args(known)}, got {given!r}")
