"""The paper's experiments: their protocol as functions, and the runner of their notebooks."""

from .extrapolation import Extrapolation, extrapolate
from .folders import notebooks_folder, results_folder
from .methods import method_for
from .published import table_1
from .scores import report_scores
from .store import Store

__all__ = [
    "Extrapolation",
    "Store",
    "extrapolate",
    "method_for",
    "notebooks_folder",
    "report_scores",
    "results_folder",
    "table_1",
]
