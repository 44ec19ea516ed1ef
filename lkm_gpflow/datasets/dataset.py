"""What a data set is: a table, and what one has to know to use and to cite it."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

TRAIN_SHARE = 0.9


class Split(NamedTuple):
    """The first rows of a table to learn from, the last ones to be forecast."""

    train: pd.DataFrame
    test: pd.DataFrame


@dataclass(frozen=True, eq=False)
class Truth:
    """The Latent Kernel Model that a generated data set was drawn from.

    A column of the table is ``offset + scale * (f + noise)``, with ``f`` the sum of one draw from
    each component that the series has, and noise of variance ``noise_variance``.
    """

    Z: pd.DataFrame  # 1 where a series (row) has a component (column), otherwise 0
    # One expression a component, such as ``"1.0 x SE(lengthscale=0.25)"``, in units in which the
    # table's index runs from 0 to 1.
    kernels: tuple[str, ...]
    noise_variance: NDArray[np.float64]  # [N], as the next two
    scale: NDArray[np.float64]
    offset: NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Several time series over one index."""

    #: The short name that `load` takes, and a line that says what the data are.
    name: str
    title: str
    #: [D, N]: rows are times, columns are series, NaN is a missing observation. The index is a
    #: ``DatetimeIndex`` called ``date`` or, where there are no dates, numbers called ``time``.
    frame: pd.DataFrame
    units: Mapping[str, str]  #: The unit of each series
    #: Where the numbers come from and what one may do with them.
    source: str
    licence: str
    labels: pd.Series[int] | None = None  #: The class of each series, [N]
    #: Columns ``location`` and ``scale``, for data sets whose forecasts the paper scores in
    #: z-scores: ``(frame - score_scale["location"]) / score_scale["scale"]``.
    score_scale: pd.DataFrame | None = None
    truth: Truth | None = None  #: What the data were generated from

    @property
    def test_size(self) -> int:
        """Number of rows at the end that experiments forecast: a tenth."""
        return len(self.frame) - round(TRAIN_SHARE * len(self.frame))

    def split(self) -> Split:
        """Cut the table: the first round(0.9 D) rows are for training, as in the paper."""
        cut = len(self.frame) - self.test_size
        return Split(self.frame.iloc[:cut], self.frame.iloc[cut:])

    def _facts(self) -> dict[str, str]:
        """What both displays say, in their order."""
        D, N = self.frame.shape
        first, last = self.frame.index[0], self.frame.index[-1]
        return {
            "size": f"{N} series x {D} time points",
            "span": f"{_moment(first)} to {_moment(last)}",
            "missing": f"{int(self.frame.isna().to_numpy().sum())} of {N * D} cells",
            "source": self.source,
            "licence": self.licence,
        }

    def __repr__(self) -> str:
        """Describe the data set in a few lines of text."""
        facts = "".join(f"\n  {key:<8} {value}" for key, value in self._facts().items())
        return f"Dataset {self.name!r}: {self.title}{facts}"

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th style="text-align:left">{key}</th>'
            f'<td style="text-align:left">{html.escape(value)}</td></tr>'
            for key, value in self._facts().items()
        )
        title = f"<strong>{html.escape(self.name)}</strong>: {html.escape(self.title)}"
        return f"<div><p>{title}</p><table>{rows}</table></div>"


def _moment(label: Any) -> str:
    """Write one entry of an index, which is a date or a number."""
    return f"{label:%Y-%m-%d}" if isinstance(label, pd.Timestamp) else f"{label:.4g}"
