from .extrapolation import Extrapolation as Extrapolation
from .extrapolation import extrapolate as extrapolate
from .folders import notebooks_folder as notebooks_folder
from .folders import results_folder as results_folder
from .methods import method_for as method_for
from .published import table_1 as table_1
from .scores import report_scores as report_scores
from .store import Store as Store
