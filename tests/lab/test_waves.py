"""The waves that a season is taken off as."""

from __future__ import annotations

import numpy as np
import pytest
from walks import walks

from paper_experiments.lab.waves import Waves


@pytest.mark.parametrize("season", [4, 7, 12])
def test_waves_find_a_season_below_a_trend_and_over_gaps(season: int) -> None:
    t = np.arange(90)
    pattern = np.random.default_rng(season).normal(size=season)
    pattern -= pattern.mean()
    y = (pattern[t % season] + 0.3 * t)[:, None]
    y[[10, 11, 40]] = np.nan
    found = Waves.of(y, [season]).at(90 + np.arange(2 * season))[:, 0]
    np.testing.assert_allclose(found, pattern[np.arange(90, 90 + 2 * season) % season], atol=1e-9)


def test_no_season_has_no_waves() -> None:
    assert np.all(Waves.of(walks(40, 2), [1, 1]).at(40 + np.arange(5)) == 0.0)
