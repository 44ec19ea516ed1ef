"""Which rows of a long table a search is given."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from ..data.foreign import Tabular, as_frame
from ..runtime.text import whole_number


def thin(frame: Tabular, count: int = 300, *, seed: int = 0) -> pd.DataFrame:
    """Keep at most `count` rows of a table, at random distances of all sizes.

    >>> found = lkm.discover(lkm.thin(frame)).update(frame)    # doctest: +SKIP

    searches on these rows, and learns what was found on all.

    The distances are log-uniform from one row up.  Near rows show fast patterns and the noise, far
    rows slow patterns, and uneven distances distinguish periods from their aliases, which evenly
    spaced rows cannot.  A search can miss patterns faster than the typical distance, about the
    square root of D / count rows.

    Parameters
    ----------
    frame
        Rows are times in order; of pandas, polars, PyArrow or xarray.
    count
        Rows to keep, at least 3; the table itself is returned if it has no more.  The first and
        the last row are kept.
    seed
        The distances follow from it.
    """
    count, frame = whole_number(count, "rows to keep", 3), as_frame(frame)
    if len(frame) <= count:
        return frame
    mean = (len(frame) - 1) / (count - 1)
    # Distances exp(u log g), u uniform, are (g - 1) / log(g) rows in the mean.
    log_g = brentq(lambda log_g: np.expm1(log_g) - mean * log_g, 1e-9, 2.0 * np.log(mean) + 4.0)
    distances = np.exp(log_g * np.random.default_rng(seed).uniform(size=count - 1))
    places = np.concatenate([[0.0], np.cumsum(distances)]) / distances.sum() * (len(frame) - 1)
    rows = np.unique(places.round().astype(int))
    others = np.setdiff1d(np.arange(len(frame)), rows)  # two places may round to one row
    more = others[np.linspace(0, len(others) - 1, count - len(rows)).round().astype(int)]
    return frame.iloc[np.sort(np.concatenate([rows, more]))]
