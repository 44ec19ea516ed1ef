"""Small tables that several tests learn from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from click.testing import CliRunner

from lkm_gpflow import cli
from lkm_gpflow.cli import output
from lkm_gpflow.cli.folder import OutputFolder
from lkm_gpflow.data.tables import Table
from lkm_gpflow.data.transforms import Transform
from lkm_gpflow.discovery import given_kernels, keywords
from lkm_gpflow.discovery.result import Discovery
from lkm_gpflow.fit.fits import Fit, FitSettings
from lkm_gpflow.forecast import stacking
from lkm_gpflow.forecast.forecasters import Member
from lkm_gpflow.kernels.grammar import parse
from lkm_gpflow.report import GroupReport
from lkm_gpflow.search.ledger import Entry
from lkm_gpflow.search.settings import SearchSettings


def small_table(seed: int = 0, num_times: int = 40) -> pd.DataFrame:
    """Three weekly series: a and b wave with one period, b and c rise; c has a gap."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0.0, 1.0, num_times)
    values = np.column_stack([np.sin(20.0 * t), 2.0 * np.cos(20.0 * t) + 5.0 * t, 3.0 * t])
    values += 0.2 * rng.normal(size=values.shape)
    values[5:8, 2] = np.nan
    index = pd.date_range("2021-01-03", periods=num_times, freq="W", name="date")
    return pd.DataFrame(values, index=index, columns=["a", "b", "c"])


def without_seconds(entry: Entry) -> tuple[object, ...]:
    """Everything of an entry but how long it took, in a form that can be compared."""
    return (
        entry.step, entry.restart, entry.depth, entry.expanded, entry.parent, entry.structure,
        entry.decision, *numbers(entry.fit),
    )  # fmt: skip


def numbers(fit: Fit) -> tuple[object, ...]:
    """Everything of a fit but how long it took, in a form that can be compared."""
    return (
        fit.kernels, fit.Z.tolist(), fit.probabilities.tolist(), fit.tau.tolist(),
        fit.noise_variance.tolist(), fit.log_likelihood, fit.bic, fit.elbo,
    )  # fmt: skip


QUICK_SEARCH: dict[str, Any] = {
    "bases": ("C", "SE", "RW"), "depth": 1, "restarts": 2, "progress": False,
}  # fmt: skip
"""Settings of a search that is stopped, or done elsewhere, and must find the same."""


def two_series() -> pd.DataFrame:
    """Return a short table of two series, for a search of seconds."""
    return small_table(num_times=20)[["a", "c"]]


def assert_same(one: Discovery, other: Discovery) -> None:
    """Compare bit for bit all but the seconds that fits took."""
    assert [without_seconds(e) for e in one.entries] == [without_seconds(e) for e in other.entries]
    pd.testing.assert_frame_equal(one.forecast(4), other.forecast(4), check_exact=True)


def learn_in_a_hurry(set_attribute: Callable[[object, str, object], object]) -> None:
    """Let `discover` and `learn` do little, for tests of what happens around the fits."""
    quick = partial(FitSettings, num_candidates=8, num_starts=1, num_reseeds=0)
    for module in (keywords, given_kernels):
        set_attribute(module, "FitSettings", quick)
    set_attribute(stacking, "NUM_STARTS", 1)


def with_one_picture(set_attribute: Callable[[object, str, object], object]) -> None:
    """Let folders of results have one empty picture and reports none: they cost seconds."""

    def draw(folder: OutputFolder, *_: object) -> None:
        folder.figures.mkdir(exist_ok=True)
        output._save(folder, plt.subplots(figsize=(1, 1))[1], "search")

    set_attribute(output, "_draw", draw)
    set_attribute(GroupReport, "pictures", lambda report: [])


def command(*arguments: object) -> tuple[int, str]:
    """Exit code of ``lkm-gpflow`` with these arguments, and what it says, on one line."""
    result = CliRunner().invoke(cli.main, list(map(str, arguments)))
    assert "Traceback" not in result.output
    return result.exit_code, " ".join(result.output.replace("│", " ").split())


def made_by_hand(
    frame: pd.DataFrame,
    kernels: Sequence[str],
    Z: Sequence[Sequence[int]],
    noise: float = 0.05,
    transform: Transform = "none",
) -> Discovery:
    """A discovery that nobody discovered: these components (in days or numbers), surely this Z."""
    table = Table.of(frame, transform)
    products = [parse(kernel).change_units(1.0 / table.span) for kernel in kernels]
    rows = np.array(Z, np.float64).reshape(frame.shape[1], len(kernels))
    # Components that all series have are certain: only rows of ones are left.
    tau = np.where(rows.all(axis=0)[:, None], [1e6, 1e-6], [1.0, 1.0])
    fit = Fit(
        kernels=tuple(products),
        Z=rows,
        probabilities=rows,
        tau=tau,
        noise_variance=np.full(frame.shape[1], noise),
        log_likelihood=0.0,
        bic=0.0,
        elbo=0.0,
        seconds=0.0,
    )
    settings = SearchSettings(restarts=1, depth=0)
    return Discovery(table, settings, "none", (Entry.alone(fit),))


def agreed(
    frame: pd.DataFrame, fits: Sequence[tuple[float, Sequence[str], Sequence[Sequence[int]]]]
) -> Discovery:
    """Several fits by hand with the probabilities of their models; the heaviest is the best."""

    members = []
    for weight, kernels, Z in fits:
        found = made_by_hand(frame, kernels, Z)
        fit = replace(found.entries[0].fit, tau=np.ones((len(kernels), 2)))
        from lkm_gpflow.forecast.by_model import to_model  # absent without TensorFlow

        model = to_model(fit, found.table.observations, FitSettings())
        model.update_tau()
        nu = np.asarray(model.probabilities())
        fit = replace(fit, probabilities=nu, tau=model.tau.numpy(), bic=-weight)
        members.append(Member(fit, weight))
    entries = tuple(Entry.alone(member.fit) for member in members)
    return replace(found, averaging="stacked", entries=entries, stacked=tuple(members))
