"""Sites against importance sampling, rules by tables of values, outliers by their weights."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, multivariate_t

from lkm_gpflow import datasets
from lkm_gpflow.data.sites import Sites, rules
from lkm_gpflow.data.tables import Table
from lkm_gpflow.gp.likelihoods import Binomial, NegativeBinomial, PointLikelihood, Poisson, Share

Array = NDArray[np.float64]

D = 12
X = np.linspace(0.0, 1.0, D)
LAGS = np.abs(np.subtract.outer(X, X))
NOTHING = 0.5 + 0.05 * np.eye(D)
SMOOTH, CYCLE = (
    0.6 * np.exp(-0.5 * (LAGS / 0.2) ** 2),
    0.5 * np.exp(-2.0 * np.sin(np.pi * LAGS / 0.25) ** 2),
)


def exactly(kind: PointLikelihood, y: Array, V: Array, centre: float, sites: Sites) -> float:
    """Log density of values whose f is normal, by importance sampling around the sites."""
    rng, total = np.random.default_rng(1), V + np.diag(sites.variances[:, 0])
    gain = np.linalg.solve(total, V).T
    mean, S = centre + gain @ (sites.values[:, 0] - centre), V - gain @ V + 1e-9 * np.eye(D)
    f = multivariate_t.rvs(mean, 1.2 * S, df=8, size=40_000, random_state=rng)
    log_weights = multivariate_normal.logpdf(f, np.full(D, centre), V)
    log_weights += kind.log_prob(y, f).sum(axis=1)
    log_weights -= multivariate_t.logpdf(f, mean, 1.2 * S, df=8)
    return float(logsumexp(log_weights) - np.log(len(f)))


@pytest.mark.parametrize(
    ("kind", "centre"),
    [
        (Poisson(), np.log(0.5)),
        (Poisson(), np.log(30.0)),
        (NegativeBinomial(0.3), np.log(3.0)),
        (Binomial(), 0.0),
        (Binomial(10), 0.5),
        (Share(0.0, 1.0, 30.0), 1.5),
    ],
)
def test_rows_of_z_differ_as_they_should(kind: PointLikelihood, centre: float) -> None:
    """With and without a smooth part and a cycle: root mean square errors of 0.02 to 0.2 nats."""
    errors = []
    for case in range(4):
        rng = np.random.default_rng(case)
        rows = [NOTHING, NOTHING + SMOOTH, NOTHING + CYCLE, NOTHING + SMOOTH + CYCLE]
        f = rng.multivariate_normal(np.full(D, centre), rows[case])
        y = kind.draw(f, rng)
        sites = Sites.of(X, y[:, None], (kind,), 0.25)
        noise = np.diag(sites.variances[:, 0])
        told = [
            multivariate_normal.logpdf(sites.values[:, 0], np.full(D, centre), V + noise)
            for V in rows
        ]
        true = [exactly(kind, y, V, centre, sites) for V in rows]
        gaps = np.subtract(true, true[case])
        likely = (np.abs(gaps) < 8.0) & (gaps != 0.0)
        errors += list((np.subtract(told, told[case]) - gaps)[likely])
    assert np.sqrt(np.mean(np.square(errors))) < 0.3


def test_outliers_get_variance_and_others_keep_none() -> None:
    rng = np.random.default_rng(0)
    y = 10.0 + 3.0 * np.sin(2.0 * np.pi * np.arange(140) / 7.0) + rng.normal(size=140)
    y[[30, 90]] += [200.0, -60.0]
    frame = pd.DataFrame({"a": y}, pd.date_range("2022-01-03", periods=140))
    table = Table.of(frame, suspicious="listed", points="student")
    assert table.suspicious is not None
    known = table.observations.known
    assert known is not None
    assert set(np.flatnonzero(known[0])) == {30, 90}
    assert known[0, 30] > known[0, 90] > 100.0
    assert set(table.suspicious["time"]) == set(frame.index[[30, 90]])
    assert 2.0 < table.scale[0] < 2.7
    assert abs(table.location[0] - 10.0) < 0.3


def test_counts_that_are_far_off_say_nothing() -> None:
    rng, t = np.random.default_rng(0), np.arange(140)
    y = rng.poisson(50.0 * np.exp(0.2 * np.sin(2.0 * np.pi * t / 7.0))).astype(float)
    clean = Sites.of(t / 139.0, y[:, None], (Poisson(),), 7.0 / 139.0)
    assert np.all(clean.weights == 1.0)
    y[[70, 71]], y[100] = [900.0, 700.0], 0.0
    sites = Sites.of(t / 139.0, y[:, None], (Poisson(),), 7.0 / 139.0)
    assert set(np.flatnonzero(sites.weights[:, 0] < 1.0)) == {70, 71, 100}
    assert sites.variances[[70, 71, 100], 0].min() > 50.0 * sites.scale[0] ** 2
    np.testing.assert_allclose(sites.scale, clean.scale, rtol=0.1)


def test_shares_far_from_their_neighbours_keep_a_say() -> None:
    """The log density of a beta distribution may bend upwards, where a site has no variance."""
    y = 97.0 + np.random.default_rng(0).normal(size=60)
    y[30] = 60.0
    sites = Sites.of(np.linspace(0.0, 1.0, 60), y[:, None], (Share(0.0, 100.0, 100.0),), None)
    assert sites.variances.max() < 10.0
    assert sites.values[30, 0] < 2.5 < np.median(sites.values)


def counts(rate: float, size: int = 100) -> Array:
    return np.random.default_rng(0).poisson(rate, size).astype(float)


SMOOTH_WHOLE = np.round(20.0 - 15.0 * np.cos(np.arange(100) / 9.0))
DEGREES = np.round(
    11.0 - 9.0 * np.cos(np.arange(200) / 32.0) + np.random.default_rng(2).normal(0.0, 3.0, 200)
)
SHARES = np.random.default_rng(1).beta(0.5, 0.5, 100)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (counts(2.0), Poisson()),
        (counts(14.0), Poisson()),
        (SMOOTH_WHOLE + 1.0, None),  # whole degrees, say
        (counts(900.0), None),
        (counts(2.0) - 1.0, None),
        (counts(5.0) + 0.5, None),
        (np.minimum(counts(1.0), 1.0), Binomial()),
        (SHARES, Share()),
        (np.round(100.0 * SHARES), Share(0.0, 100.0)),
        (0.3 + 0.6 * SHARES, None),
        (np.where(np.arange(100) == 7, -999.0, counts(2.0)), None),
        (120.0 * SHARES, None),
        (np.maximum(DEGREES, 0.0), None),
        (DEGREES + 20.0, None),
        (counts(2000.0), None),
        (1900.0 + np.arange(100.0), None),
        (np.cumsum(counts(0.5)), None),
    ],
)
def test_what_values_show(values: Array, kind: PointLikelihood | None) -> None:
    kinds, notes = rules(pd.DataFrame({"a": values}), None)
    assert kinds == (kind,)
    assert len(notes) == (kind is not None)


def test_whole_numbers_beside_counts_are_counts() -> None:
    frame = pd.DataFrame({"few": counts(1.0), "many": counts(60.0), "other": counts(60.0) + 0.5})
    assert rules(frame, None)[0] == (Poisson(), Poisson(), None)
    assert rules(frame, None, ["many"])[0] == (Poisson(), None, None)


@pytest.mark.parametrize("name", ["toy", "demo", "stocks", "houses", "currencies", "gonu"])
def test_ordinary_tables_stay_as_they_are(name: str) -> None:
    frame = datasets.load(name).frame
    chosen, plain = (Table.of(frame, "auto", "listed", points) for points in ("auto", "none"))
    assert chosen.sites is None
    assert chosen.observations.fingerprint == plain.observations.fingerprint
