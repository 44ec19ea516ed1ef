"""Pictures of data, forecasts, components and searches.

Every function draws on the Axes it is given (`ax`, or `axes`: one per panel), or on a new figure,
and returns the Axes.  The first argument is what is drawn, often a `Discovery`.  Others mean the
same everywhere: `horizon` is the number of steps after the last row, or the times themselves;
`level` the probability of bands; `unit` that of the values, for the label of their axis; `units`
such by series; `truth` what happened after the history, drawn as open circles.

Pattern p has the same colour in every picture, and component k.  Names may hold any character:
none is read as a formula.
May import: explain and what lies below.
"""

from .all_patterns import plot_decomposition
from .backtests import plot_coverage, plot_scores
from .coupled import plot_filled, plot_narrowing, plot_what_if
from .explorer import Explorer
from .forecasts import plot_components, plot_forecast, plot_forecasts, plot_methods
from .search_tree import plot_ledger
from .side_by_side import plot_comparison, plot_likeness
from .structure import plot_probabilities_over_time, plot_structure
from .style import COMPONENT_COLOURS, FORECAST_COLOUR, HISTORY_COLOUR, component_colour

__all__ = [
    "COMPONENT_COLOURS",
    "FORECAST_COLOUR",
    "HISTORY_COLOUR",
    "Explorer",
    "component_colour",
    "plot_comparison",
    "plot_components",
    "plot_coverage",
    "plot_decomposition",
    "plot_filled",
    "plot_forecast",
    "plot_forecasts",
    "plot_ledger",
    "plot_likeness",
    "plot_methods",
    "plot_narrowing",
    "plot_probabilities_over_time",
    "plot_scores",
    "plot_structure",
    "plot_what_if",
]
