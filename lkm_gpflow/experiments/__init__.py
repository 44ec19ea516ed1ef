"""The paper's experiments: their protocol, as functions."""

from .extrapolation import Extrapolation, extrapolate
from .published import table_1

__all__ = ["Extrapolation", "extrapolate", "table_1"]
