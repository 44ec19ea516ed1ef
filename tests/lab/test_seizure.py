"""Claims of the paper, figure 5: what Z says about seizures, tumours and eyes.

The fits are the committed ones of the notebook, so these tests check what the paper claims on what
was learnt; the slow test learns anew.  That seizures lack the component of the longest period does
NOT hold on our fits, and that the tumour areas have the same sparsity holds on two samples of
three; tests say where.
"""

from __future__ import annotations

from math import comb
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from paper_experiments.lab import seizure as claims
from paper_experiments.lab.seizure import SAMPLES, SeizureResult, learn_seizure, load_sample


@pytest.fixture(scope="session")
def samples(tables: Path) -> list[SeizureResult]:
    return [learn_seizure(name) for name in SAMPLES]


@pytest.fixture(params=range(len(SAMPLES)), ids=SAMPLES)
def seizure(request: pytest.FixtureRequest, samples: list[SeizureResult]) -> SeizureResult:
    return samples[request.param]


def test_areas_of_tumour_patients_are_alike_on_two_samples(samples: list[SeizureResult]) -> None:
    found = [claims.tumour_patients(each.assignment(), each.activities) for each in samples]
    assert [each.holds for each in found] == [True, True, False]


def test_seizures_do_not_lack_the_longest_period(seizure: SeizureResult) -> None:
    """The paper's third observation, which is missed: a change that mends it should be noticed."""
    assert not claims.slow_period(seizure.profiles(), seizure.kernels()).holds


def test_eyes_share_rapid_components(seizure: SeizureResult) -> None:
    assert claims.rapid_components(seizure.profiles(), seizure.kernels()).holds


def test_where_seizures_lack_a_periodic_component_it_follows_the_mains(
    samples: list[SeizureResult],
) -> None:
    """Not the claim of the paper (a low frequency), but what there is: see the notebook."""
    found = [claims.lacking_in_seizures(each.profiles(), each.kernels()) for each in samples]
    assert [each.holds for each in found] == [False, True, True]
    for each, lacking in zip(samples, found, strict=True):
        cycles = lacking.shares["period"] * claims.MAINS
        assert ((cycles - cycles.round()).abs() < 0.05).all()
        _, parts = each.decompose()
        columns = list(each.profiles().columns)
        for name in lacking.shares.index:
            assert claims.mains_share(parts[columns.index(name)]) > 0.2  # 3 of 89 frequencies


def test_seizures_have_no_hum_of_the_mains(seizure: SeizureResult) -> None:
    excess = pd.Series(
        claims.mains_excess(seizure.table.observations.Y), seizure.activities.to_numpy()
    )
    medians = excess.groupby(level=0).median()
    assert medians[claims.SEIZURE] < 1.2
    assert (medians[[4, 5]] > 2.0).all()


def test_the_third_observation_accepts_the_authors_z_and_rejects_shuffled_ones() -> None:
    Z, activities = claims.authors_assignment()
    assert claims.tumour_patients(Z, activities).holds
    found = claims.pure_periodic(Z, activities)
    assert (found.seizures, found.eyes) == (0.0, 0.4)
    assert found.p_value == pytest.approx(comb(22, 10) / comb(30, 10))
    assert found.holds
    rng = np.random.default_rng(0)
    shuffled = [Z.iloc[rng.permutation(50)].set_axis(Z.index) for _ in range(200)]
    assert sum(claims.pure_periodic(each, activities).holds for each in shuffled) <= 0.05 * 200


def test_the_authors_z_in_another_order_of_columns_agrees_in_every_cell() -> None:
    Z, _ = claims.authors_assignment()
    names = [f"{kind} ({i})" for kind in ("PER x SE", "SE", "PER") for i in (2, 1)]
    renamed = Z[names].set_axis(
        [f"{kind} ({i})" for kind in ("PER x SE", "SE", "PER") for i in (1, 2)], axis=1
    )
    pd.testing.assert_frame_equal(claims.matched(renamed, Z), Z)
    found = claims.agreement_by_cell(renamed, Z, permutations=5)
    assert (found["agreement"] == 1.0).all()
    assert found.at["all", "by chance"] < 0.9


# The measures, by hand


def planted(blocks: dict[int, list[list[int]]]) -> tuple[pd.DataFrame, pd.Series]:
    rows = [row for block in blocks.values() for row in block * 5]
    labels = [activity for activity, block in blocks.items() for _ in block * 5]
    return pd.DataFrame(rows, columns=["a", "b", "c"]), pd.Series(labels)


def test_tumour_patients_by_hand() -> None:
    same = {1: [[1, 1, 1]], 2: [[1, 0, 0]], 3: [[1, 0, 0]], 4: [[0, 1, 0]], 5: [[0, 1, 1]]}
    found = claims.tumour_patients(*planted(same))
    assert found.holds
    assert found.p_value == 1.0
    assert found.distances.loc[1, 2] == pytest.approx(2 / 3)
    apart = claims.tumour_patients(*planted({**same, 3: [[0, 1, 0]]}))
    assert not apart.are_nearest
    assert apart.p_value < 0.05
    assert not apart.holds


def test_samples_are_those_of_the_authors(tables: Path) -> None:
    drawn = pd.read_csv(tables / "seizure_samples.csv").sort_values(["sample", "row"])
    for sample in SAMPLES:
        rows = drawn[drawn["sample"] == sample.replace("get_", "sample")]
        frame, activities = load_sample(sample)
        assert list(frame.columns) == list(rows["id"])
        assert activities.tolist() == rows["y"].tolist()
