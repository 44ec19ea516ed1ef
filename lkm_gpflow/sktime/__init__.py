"""The latent kernel model as a forecaster of sktime; needs the extra ``sktime``.

May import: comparators and what lies below.
"""

from importlib.util import find_spec

if find_spec("sktime") is None:
    raise ModuleNotFoundError(
        "lkm_gpflow.sktime needs the library sktime: pip install '.[sktime]' in a clone of "
        "lkm_gpflow"
    )

from .forecaster import LKMForecaster

__all__ = ["LKMForecaster"]
