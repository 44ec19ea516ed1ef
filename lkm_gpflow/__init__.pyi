import lkm_gpflow.evaluation.metrics as _metrics
import lkm_gpflow.kernels.grammar as _grammar
import lkm_gpflow.models.ibp as _ibp

from . import comparators as comparators
from . import datasets as datasets
from . import kernels as kernels
from . import plotting as plotting
from . import report as report
from .data.shapes import from_long as from_long
from .data.shapes import to_long as to_long
from .discovery.coupled import CoupledDiscovery as CoupledDiscovery
from .discovery.discover import discover as discover
from .discovery.discover import discover_steps as discover_steps
from .discovery.given_kernels import learn as learn
from .discovery.long_series import refit_sparse as refit_sparse
from .discovery.long_series import thin as thin
from .discovery.result import Discovery as Discovery
from .discovery.storage import load as load
from .evaluation.backtesting import Backtest as Backtest
from .evaluation.backtesting import backtest as backtest
from .kernels.grammar import EXTENDED_BASES as EXTENDED_BASES
from .kernels.grammar import PAPER_BASES as PAPER_BASES
from .kernels.grammar import Product as Product
from .kernels.grammar import parse as parse
from .models.annealing import Annealing as Annealing
from .models.coupled import CoupledLKM as CoupledLKM
from .models.lkm import LKM as LKM
from .models.minibatch import MinibatchLKM as MinibatchLKM
from .models.minibatch_learning import MinibatchSettings as MinibatchSettings
from .models.minibatch_learning import elbo_in_batches as elbo_in_batches
from .models.minibatch_learning import learn_by_minibatches as learn_by_minibatches
from .models.posteriors import EnumeratedPosterior as EnumeratedPosterior
from .models.posteriors import RelaxedPosterior as RelaxedPosterior
from .models.relaxation import anneal as anneal
from .models.sparse import SparseLKM as SparseLKM
from .runtime.executors import WorkersLost as WorkersLost
from .runtime.executors import process_pool as process_pool

__version__: str

expressions = _grammar
ibp = _ibp
metrics = _metrics
