"""Other ways to forecast the same tables, behind one protocol.

May import: report and what lies below.
"""

from .abcd import ABCD
from .by_library import SktimeForecaster, StatsforecastModel
from .gprn import GPRegressionNetwork
from .gprn_model import GPRN
from .independent import IndependentGP, SpectralMixtureGP
from .latent import DiscoveryForecast, LatentKernelModel, PaperLatentKernelModel
from .lmc import LMC, CoregionalisedGPR
from .mosm import MOSM, MultiOutputSpectralMixture
from .naive import Drift, LastValue, SeasonalNaive
from .protocol import Comparator, Fitted, comparator, comparator_names, register
from .r_abcd import RelationalABCD
from .spike_slab import SpikeSlab
from .spike_slab_model import SpikeSlabGP
from .statistical import AutoARIMA, AutoETS, AutoTheta

__all__ = [
    "ABCD",
    "GPRN",
    "LMC",
    "MOSM",
    "AutoARIMA",
    "AutoETS",
    "AutoTheta",
    "Comparator",
    "CoregionalisedGPR",
    "DiscoveryForecast",
    "Drift",
    "Fitted",
    "GPRegressionNetwork",
    "IndependentGP",
    "LastValue",
    "LatentKernelModel",
    "MultiOutputSpectralMixture",
    "PaperLatentKernelModel",
    "RelationalABCD",
    "SeasonalNaive",
    "SktimeForecaster",
    "SpectralMixtureGP",
    "SpikeSlab",
    "SpikeSlabGP",
    "StatsforecastModel",
    "comparator",
    "comparator_names",
    "register",
]
