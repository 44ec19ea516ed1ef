"""Pictures of data, forecasts, components and searches.

Every function draws on the Axes it is given, or on a new figure, and returns the Axes.  Component k
has the same colour in every picture.  Names may hold any character: none is read as a formula.
"""

from .backtests import plot_coverage, plot_scores
from .forecasts import plot_components, plot_forecast, plot_forecasts, plot_methods
from .ledger import plot_ledger
from .published import plot_beside_published
from .structure import plot_probabilities_over_time, plot_structure
from .style import COMPONENT_COLOURS, FORECAST_COLOUR, HISTORY_COLOUR, component_colour

__all__ = [
    "COMPONENT_COLOURS",
    "FORECAST_COLOUR",
    "HISTORY_COLOUR",
    "component_colour",
    "plot_beside_published",
    "plot_components",
    "plot_coverage",
    "plot_forecast",
    "plot_forecasts",
    "plot_ledger",
    "plot_methods",
    "plot_probabilities_over_time",
    "plot_scores",
    "plot_structure",
]
