"""Steps of the learner: what they leave undone because nothing would come of it; the criterion."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import multivariate_normal, norm

from lkm_gpflow.data.observations import Observations
from lkm_gpflow.fit.engine import components
from lkm_gpflow.fit.fits import FitSettings, State
from lkm_gpflow.fit.training import Learner
from lkm_gpflow.gp import limits
from lkm_gpflow.kernels.grammar import Product, parse
from lkm_gpflow.model.ibp import FiniteIBP

SETTINGS = FitSettings(prune=True)


@pytest.mark.parametrize("share", [0.97, 1.03])
def test_what_gains_less_than_half_its_price_does_not_enter(share: float) -> None:
    """By BIC a variance and a lengthscale cost log 100 nats; unless nothing is pruned."""
    x = np.linspace(0.0, 1.0, 100)
    noise, wave = np.random.default_rng(0).normal(size=100), np.sin(9.0 * x)
    member = parse("0.5 x SE(lengthscale=0.2)")
    [C] = components([member], x)

    def gain(height: float) -> float:
        y = noise + height * wave
        now = norm.logpdf(y).sum()
        levels = (1.0, 0.2, 0.03)
        return max(multivariate_normal.logpdf(y, cov=C + s * np.eye(100)) - now for s in levels)

    half = 0.5 * np.log(100.0)
    height = brentq(lambda height: gain(height) - share * half, 0.2, 2.0)
    data = Observations(x, (noise + height * wave)[None], np.ones((1, 100)))
    for settings, enters in ((SETTINGS, share > 1.0), (FitSettings(prune=False), True)):
        learner = Learner(data, settings, np.random.default_rng(0))
        grown = learner.enter(learner.nothing(), member)
        assert (grown is not None) is enters


def test_of_a_long_table_the_best_member_enters_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """In whatever order they are given, members of one structure more than once; others wait."""
    rng, x = np.random.default_rng(0), np.linspace(0.0, 1.0, 60)
    waves = np.array([[2.0], [1.0]]) * np.sign(np.sin(2.0 * np.pi * 6.0 * x))
    data = Observations(x, waves + 0.3 * rng.normal(size=(2, 60)), np.ones((2, 60)))
    monkeypatch.setattr(limits, "LONG", 60)
    enter = Learner.enter
    for names in (("SE", "PER", "PER"), ("PER", "SE", "PER")):
        learner = Learner(data, SETTINGS, np.random.default_rng(1))
        asked = [list[str]()]

        def entering(own: Learner, state: State, *members: Product, to: Any = asked) -> Any:
            to.append(sorted(str(member) for member in members))
            return enter(own, state, *members)

        monkeypatch.setattr(Learner, "enter", entering)
        state = learner.grow(learner.nothing(), [parse(name) for name in names])
        assert str(state.kernels[0].structure) == "PER"
        assert asked[1:3] == [["PER", "PER", "SE"], ["PER", "SE"]]


def test_the_criterion_counts_the_prior_of_Z() -> None:
    rng, x = np.random.default_rng(0), np.linspace(0.0, 1.0, 40)
    data = Observations(x, rng.normal(size=(3, 40)), np.ones((3, 40)))
    kernels = (parse("1.5 x RW(start=-0.025)"), parse("0.3 x SE(lengthscale=0.1)"))
    state = State(kernels, np.array([[1.0, 0], [1, 1], [1, 0]]), np.full(3, 0.1))
    plain = Learner(data, FitSettings(alpha=1.4), rng)
    with_prior = Learner(data, FitSettings(alpha=1.4, criterion="bic+prior"), rng)
    assert plain.cost(state) == plain.bic(state)
    expected = plain.bic(state) - 2.0 * float(FiniteIBP(1.4, 2).log_prob(state.Z))
    assert with_prior.cost(state) == pytest.approx(expected, rel=1e-12)
