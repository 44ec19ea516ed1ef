import lkm_gpflow.evaluation.metrics as _metrics
import lkm_gpflow.kernels.grammar as _grammar
import lkm_gpflow.model.ibp as _ibp

from . import comparators as comparators
from . import datasets as datasets
from . import kernels as kernels
from . import plotting as plotting
from . import report as report
from .coupling.coupled_discovery import CoupledDiscovery as CoupledDiscovery
from .data.files import read_table as read_table
from .data.shapes import from_long as from_long
from .data.shapes import to_long as to_long
from .discovery.discover import discover as discover
from .discovery.discover import discover_steps as discover_steps
from .discovery.given_kernels import learn as learn
from .discovery.result import Discovery as Discovery
from .discovery.result import load as load
from .discovery.thinning import thin as thin
from .evaluation.backtesting import Backtest as Backtest
from .evaluation.backtesting import backtest as backtest
from .gp.likelihoods import Binomial as Binomial
from .gp.likelihoods import GaussianNoise as GaussianNoise
from .gp.likelihoods import NegativeBinomial as NegativeBinomial
from .gp.likelihoods import PointLikelihood as PointLikelihood
from .gp.likelihoods import Poisson as Poisson
from .gp.likelihoods import ScaledNoise as ScaledNoise
from .gp.likelihoods import SeriesLikelihood as SeriesLikelihood
from .gp.likelihoods import Share as Share
from .gp.likelihoods import Student as Student
from .kernels.grammar import EXTENDED_BASES as EXTENDED_BASES
from .kernels.grammar import PAPER_BASES as PAPER_BASES
from .kernels.grammar import Product as Product
from .kernels.grammar import parse as parse
from .model.annealing import Annealing as Annealing
from .model.lkm import LKM as LKM
from .model.posteriors import EnumeratedPosterior as EnumeratedPosterior
from .model.posteriors import Posterior as Posterior
from .model.posteriors import WeightedRows as WeightedRows
from .model.relaxation import RelaxedPosterior as RelaxedPosterior
from .model.relaxation import anneal as anneal
from .runtime.executors import WorkersLost as WorkersLost
from .runtime.executors import process_pool as process_pool

__version__: str

expressions = _grammar
ibp = _ibp
metrics = _metrics
