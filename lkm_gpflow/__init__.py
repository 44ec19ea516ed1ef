"""Latent Kernel Models for several time series, on GPflow.

Discovers which patterns several time series share and which are their own, with probabilities,
and forecasts (Tong and Choi, ICML 2019).  Names are loaded when they are used; `__init__.pyi`
lists them.
"""

import importlib
from typing import Any

import lazy_loader

from .runtime.loading import explain_absent_tensorflow
from .runtime.quiet import (
    load_gpflow_quickly,
    load_progress_bars_quietly,
    load_tensorflow_quietly,
)

load_tensorflow_quietly()
load_gpflow_quickly()
load_progress_bars_quietly()
explain_absent_tensorflow(__name__)

_MODULES = {
    "expressions": ".kernels.grammar",
    "ibp": ".model.ibp",
    "metrics": ".evaluation.metrics",
}
"""Public modules that are called otherwise than their files."""

_load, _, _names = lazy_loader.attach_stub(__name__, __file__)

__all__ = sorted([*_names, *_MODULES])


def __getattr__(name: str) -> Any:
    """Load a public name when it is used for the first time."""
    if name == "__version__":
        from importlib.metadata import version  # a twentieth of a second

        return version("lkm_gpflow")
    if name in _MODULES:
        return importlib.import_module(_MODULES[name], __name__)
    return _load(name)


def __dir__() -> list[str]:
    """List the public names only."""
    return [*__all__, "__version__"]
