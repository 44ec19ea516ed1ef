"""The paper's experiments: their protocol, as functions."""

from .extrapolation import Extrapolation, extrapolate

__all__ = ["Extrapolation", "extrapolate"]
