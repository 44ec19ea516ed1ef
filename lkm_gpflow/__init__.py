"""Latent Kernel Models for several time series, on GPflow.

Discovers which patterns several time series share and which are their own, with probabilities,
and forecasts (Tong and Choi, ICML 2019).
"""

from importlib.metadata import version

from . import comparators, datasets, expressions, ibp, kernels, metrics
from .backtesting import Backtest, backtest
from .discovering import discover
from .discovery import Discovery
from .executors import WorkersLost, process_pool
from .expressions import EXTENDED_BASES, PAPER_BASES, Product, parse
from .given_kernels import learn
from .long_series import refit_sparse, thin
from .minibatch import MinibatchLKM
from .minibatch_learning import MinibatchSettings, elbo_in_batches, learn_by_minibatches
from .model import LKM
from .posteriors import EnumeratedPosterior, RelaxedPosterior
from .relaxation import Annealing, anneal
from .sparse import SparseLKM
from .storage import load

__version__ = version("lkm_gpflow")

__all__ = [
    "EXTENDED_BASES",
    "LKM",
    "PAPER_BASES",
    "Annealing",
    "Backtest",
    "Discovery",
    "EnumeratedPosterior",
    "MinibatchLKM",
    "MinibatchSettings",
    "Product",
    "RelaxedPosterior",
    "SparseLKM",
    "WorkersLost",
    "anneal",
    "backtest",
    "comparators",
    "datasets",
    "discover",
    "elbo_in_batches",
    "expressions",
    "ibp",
    "kernels",
    "learn",
    "learn_by_minibatches",
    "load",
    "metrics",
    "parse",
    "process_pool",
    "refit_sparse",
    "thin",
]
