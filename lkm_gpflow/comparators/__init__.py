"""Other ways to forecast the same tables, behind one protocol.

May import: report and what lies below.
"""

from .abcd import ABCD
from .by_library import SktimeForecaster, StatsforecastModel
from .fixed_gp import FixedKernelGP
from .gprn import GPRegressionNetwork
from .gprn_model import GPRN
from .independent import IndependentGP, SpectralMixtureGP
from .latent import (
    DiscoveryForecast,
    LatentKernelModel,
    LogLatentKernelModel,
    PaperLatentKernelModel,
)
from .lmc import LMC, CoregionalisedGPR
from .mosm import MOSM, MultiOutputSpectralMixture
from .mstl import MSTL
from .naive import Drift, LastValue, SeasonalNaive
from .own_units import OwnUnits
from .prophet import Prophet
from .protocol import Comparator, Fitted, comparator, comparator_names, register
from .r_abcd import RelationalABCD
from .spike_slab import SpikeSlab
from .spike_slab_model import SpikeSlabGP
from .state_space import ARIMA110, DynamicFactor, UnobservedComponents
from .statistical import AutoARIMA, AutoETS, AutoTheta
from .vector import VECM, DifferencedVAR, RidgeVAR

__all__ = [
    "ABCD",
    "ARIMA110",
    "GPRN",
    "LMC",
    "MOSM",
    "MSTL",
    "VECM",
    "AutoARIMA",
    "AutoETS",
    "AutoTheta",
    "Comparator",
    "CoregionalisedGPR",
    "DifferencedVAR",
    "DiscoveryForecast",
    "Drift",
    "DynamicFactor",
    "Fitted",
    "FixedKernelGP",
    "GPRegressionNetwork",
    "IndependentGP",
    "LastValue",
    "LatentKernelModel",
    "LogLatentKernelModel",
    "MultiOutputSpectralMixture",
    "OwnUnits",
    "PaperLatentKernelModel",
    "Prophet",
    "RelationalABCD",
    "RidgeVAR",
    "SeasonalNaive",
    "SktimeForecaster",
    "SpectralMixtureGP",
    "SpikeSlab",
    "SpikeSlabGP",
    "StatsforecastModel",
    "UnobservedComponents",
    "comparator",
    "comparator_names",
    "register",
]
