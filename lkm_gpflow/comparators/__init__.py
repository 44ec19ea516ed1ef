"""Other ways to forecast the same tables, behind one protocol."""

from .naive import Drift, LastValue, SeasonalNaive
from .protocol import Comparator, Fitted, comparator, comparator_names, register

__all__ = [
    "Comparator",
    "Drift",
    "Fitted",
    "LastValue",
    "SeasonalNaive",
    "comparator",
    "comparator_names",
    "register",
]
