"""Other ways to forecast the same tables, behind one protocol."""

from .independent import IndependentGP, SpectralMixtureGP
from .latent import LatentKernelModel, PaperLatentKernelModel
from .naive import Drift, LastValue, SeasonalNaive
from .protocol import Comparator, Fitted, comparator, comparator_names, register

__all__ = [
    "Comparator",
    "Drift",
    "Fitted",
    "IndependentGP",
    "LastValue",
    "LatentKernelModel",
    "PaperLatentKernelModel",
    "SeasonalNaive",
    "SpectralMixtureGP",
    "comparator",
    "comparator_names",
    "register",
]
