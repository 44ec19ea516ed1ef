"""Comparisons over tables: a table, not a window or a cell, is the unit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.stats import studentized_range, wilcoxon

from ...gp.types import Floats

ALL = "all"
"""The row of all domains."""


def by_table(scores: pd.DataFrame, score: str) -> pd.DataFrame:
    """Average a score over the origins of a table.

    Parameters
    ----------
    scores
        Rows (table, origin, method), see `scoring.scores`.
    score
        A column.

    Returns
    -------
    Rows tables, columns methods; NaN where a method lacks an origin that others have.
    """
    wide = scores[score].unstack("method")
    counts = wide.groupby("table").count()
    return wide.groupby("table").mean().where(counts.eq(counts.max(axis=1), axis=0))


def ratios(scores: pd.DataFrame, reference: str, score: str = "crps") -> pd.DataFrame:
    """Geometric means of ratios to a reference, by domain and over all tables.

    Ratios are formed window by window; tables count alike.  Windows that a method lacks, for
    example because it failed there, do not count for any: they may be the hard ones.

    Parameters
    ----------
    scores
        Rows (table, origin, method), see `scoring.scores`, of the methods to compare.
    reference
        The method that scores are divided by.
    score
        A column.

    Returns
    -------
    Rows domains and `ALL`, columns methods, and ``tables``: how many have windows that count.
    """
    wide = scores[score].unstack("method").dropna().apply(np.log)
    logs = wide.sub(wide[reference], axis=0).groupby("table").mean()
    domains = scores["domain"].groupby("table").first()
    means = logs.groupby(domains).mean()
    means.loc[ALL] = logs.mean()
    counts = logs[reference].groupby(domains).count()
    counts.loc[ALL] = logs[reference].count()
    return means.apply(np.exp).assign(tables=counts)


def ranks(table_scores: pd.DataFrame) -> pd.Series:
    """Average rank of each method over the tables that all of them have; the best first.

    Parameters
    ----------
    table_scores
        See `by_table`.
    """
    return table_scores.dropna().rank(axis=1).mean().sort_values()


def critical_difference(num_methods: int, num_tables: int, level: float = 0.05) -> float:
    r"""Difference of average ranks that chance exceeds with probability `level` (Nemenyi's test).

    .. math:: q_\alpha \sqrt{k (k + 1) / (6 n)}

    for k methods and n tables, :math:`q_\alpha` a quantile of the studentised range over
    :math:`\sqrt 2` (Demšar 2006, *Statistical comparisons of classifiers*).
    """
    quantile = float(studentized_range.ppf(1.0 - level, num_methods, np.inf)) / np.sqrt(2.0)
    return quantile * float(np.sqrt(num_methods * (num_methods + 1) / (6.0 * num_tables)))


def paired(table_scores: pd.DataFrame, method: str, others: Sequence[str] = ()) -> pd.DataFrame:
    """Compare a method with others, table by table, on logarithms of ratios.

    Parameters
    ----------
    table_scores
        Positive scores, see `by_table`.
    method
        Whose scores are divided by those of the others.
    others
        By default all.

    Returns
    -------
    Rows the others; ``ratio`` (geometric mean), ``lower`` and ``upper`` (its 95% bootstrap interval
    over tables), ``better`` (share of tables), ``p`` (Wilcoxon's signed rank test, two-sided), and
    ``tables``.  Where no table has both all but the last is missing.
    """
    rows: dict[str, dict[str, float]] = {}
    for other in others or [str(name) for name in table_scores if name != method]:
        pairs = table_scores[[method, other]].dropna()
        if pairs.empty:
            nothing = dict.fromkeys(["ratio", "lower", "upper", "better", "p"], np.nan)
            rows[other] = {**nothing, "tables": 0}
            continue
        logs: Floats = np.log((pairs[method] / pairs[other]).to_numpy(np.float64))
        lower, upper = np.exp(np.quantile(_bootstrap_means(logs), [0.025, 0.975]))
        rows[other] = {
            "ratio": float(np.exp(logs.mean())),
            "lower": lower,
            "upper": upper,
            "better": float(np.mean(logs < 0.0)),
            "p": wilcoxon(logs).pvalue if np.any(logs != 0.0) else 1.0,
            "tables": len(logs),
        }
    return pd.DataFrame(rows).T


def confidence_set(table_scores: pd.DataFrame, level: float = 0.1) -> list[str]:
    """Return the methods that may be the best, by the model confidence set of Hansen et al. 2011.

    Losses are logarithms of scores; tables are drawn with replacement.  The library arch comes
    with the extra ``notebooks``.

    Parameters
    ----------
    table_scores
        Positive scores, see `by_table`; tables that a method lacks are left out.
    level
        Probability that the best method is not in the set.

    Raises
    ------
    ValueError
        If there is no table that all methods have.
    """
    from arch.bootstrap import MCS  # optional

    losses = table_scores.dropna().apply(np.log)
    if losses.empty:
        raise ValueError(
            f"expected a table that all of {', '.join(map(str, table_scores))} have, got none "
            f"among {len(table_scores)}"
        )
    # Of methods that tie everywhere one is tested, and the others share its fate.
    first = {name: next(n for n in losses if losses[n].equals(losses[name])) for name in losses}
    different = losses[list(dict.fromkeys(first.values()))]
    if different.shape[1] == 1:
        return [str(name) for name in losses]
    chosen = MCS(different, size=level, reps=2000, block_size=1, seed=0)
    chosen.compute()
    return [str(name) for best in chosen.included for name in losses if first[name] == best]


def _bootstrap_means(values: Floats, draws: int = 2000) -> Floats:
    rng = np.random.default_rng(0)
    return values[rng.integers(0, len(values), (draws, len(values)))].mean(axis=1)
