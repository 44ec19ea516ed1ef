"""What coupled fits say of two series together: an average over those that have the pattern."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import lkm_gpflow as lkm
from lkm_gpflow.coupling.learn_coupling import Coupling, independent
from lkm_gpflow.explain.ties import Ties
from lkm_gpflow.fit.fits import Fit


def tied(found: lkm.Discovery, fit: Fit, correlation: float, evidence: float) -> Coupling:
    """A coupling in which the first two series have this correlation in their first component."""
    alone = independent(fit, found.table.observations)
    (p,) = (i for i, own in enumerate(alone.patterns.components) if own == (0,))
    w, pairs = alone.loadings.copy(), alone.pair_evidence.copy()
    w[p, :2, 0] = np.sqrt(abs(correlation)) * np.array([np.sign(correlation), 1.0])
    pairs[p, 0, 1] = pairs[p, 1, 0] = evidence
    return replace(alone, loadings=w, pair_evidence=pairs)


def test_fits_that_have_the_pattern_count_by_their_weights(disagreeing: lkm.Discovery) -> None:
    """Of weights 0.6 and 0.3; the third has nothing but a walk, and says nothing."""
    members, wave = disagreeing.searched, disagreeing.names.index("SE")
    said = zip(members, (-0.9, 0.3, 0.8), (8.0, 2.0, 50.0), strict=True)
    couplings = tuple(tied(disagreeing, member.fit, r, e) for member, r, e in said)
    coupled = lkm.CoupledDiscovery(disagreeing.table, tuple(members), couplings)
    tie = Ties(disagreeing, coupled).of(wave, 0, 1)
    assert tie is not None
    assert tie.correlation == pytest.approx((0.6 * -0.9 + 0.3 * 0.3) / 0.9)
    assert tie.evidence == pytest.approx((0.6 * 8.0 + 0.3 * 2.0) / 0.9)
    # The wave is the smaller pattern of the first fit, and the only one of the second.
    ends = np.array([[end[p, 0, 1] for end in coupled.intervals(i)] for i, p in ((0, 1), (1, 0))])
    assert [tie.lower, tie.upper] == pytest.approx([2.0 / 3.0, 1.0 / 3.0] @ ends)
