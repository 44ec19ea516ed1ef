"""Base kernels of one's own, in learning; `test_arrays` compares values and gradients."""

from __future__ import annotations

import numpy as np
import pytest

from lkm_gpflow.gp.lags import LagGrid
from lkm_gpflow.kernels.arrays import evaluate
from lkm_gpflow.kernels.grammar import BaseKernel, UnknownBaseError


def test_a_worker_that_lacks_the_module_says_so() -> None:
    """A product travels to a worker, the class that was registered in a cell does not."""
    unknown = BaseKernel("NEVER")
    with pytest.raises(UnknownBaseError, match=r"NEVER to be registered in every process.*module"):
        evaluate(unknown, LagGrid(np.linspace(0.0, 1.0, 5)), ())
