"""The progress bar: a widget in a notebook that has ipywidgets, lines of text elsewhere."""

from __future__ import annotations

import warnings

from tqdm import TqdmWarning

with warnings.catch_warnings():
    # Without ipywidgets the bar of text is good enough; a warning in the first cell is not.
    warnings.simplefilter("ignore", category=TqdmWarning)
    from tqdm.auto import tqdm

__all__ = ["tqdm"]
