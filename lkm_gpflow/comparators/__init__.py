"""Other ways to forecast the same tables, behind one protocol."""

from .abcd import ABCD
from .gprn import GPRN, GPRegressionNetwork
from .independent import IndependentGP, SpectralMixtureGP
from .latent import LatentKernelModel, PaperLatentKernelModel
from .mosm import MOSM, MultiOutputSpectralMixture
from .naive import Drift, LastValue, SeasonalNaive
from .protocol import Comparator, Fitted, comparator, comparator_names, register
from .statistical import AutoARIMA, AutoETS, AutoTheta

__all__ = [
    "ABCD",
    "GPRN",
    "MOSM",
    "AutoARIMA",
    "AutoETS",
    "AutoTheta",
    "Comparator",
    "Drift",
    "Fitted",
    "GPRegressionNetwork",
    "IndependentGP",
    "LastValue",
    "LatentKernelModel",
    "MultiOutputSpectralMixture",
    "PaperLatentKernelModel",
    "SeasonalNaive",
    "SpectralMixtureGP",
    "comparator",
    "comparator_names",
    "register",
]
