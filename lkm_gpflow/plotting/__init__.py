"""Pictures of data, forecasts, components and searches.

Every function draws on the Axes it is given, or on a new figure, and returns the Axes.  Component k
has the same colour in every picture.  Names may hold any character: none is read as a formula.
"""

from .backtests import plot_coverage, plot_scores
from .decompositions import plot_decompositions
from .expansion import plot_expansion
from .forecasts import plot_components, plot_forecast, plot_forecasts, plot_methods
from .kernels import plot_kernel
from .ledger import plot_ledger
from .plates import Plate, Variable, plot_plates
from .structure import (
    plot_probabilities_over_time,
    plot_probability_snapshots,
    plot_structure,
)
from .style import COMPONENT_COLOURS, FORECAST_COLOUR, HISTORY_COLOUR, component_colour

__all__ = [
    "COMPONENT_COLOURS",
    "FORECAST_COLOUR",
    "HISTORY_COLOUR",
    "Plate",
    "Variable",
    "component_colour",
    "plot_components",
    "plot_coverage",
    "plot_decompositions",
    "plot_expansion",
    "plot_forecast",
    "plot_forecasts",
    "plot_kernel",
    "plot_ledger",
    "plot_methods",
    "plot_plates",
    "plot_probabilities_over_time",
    "plot_probability_snapshots",
    "plot_scores",
    "plot_structure",
]
