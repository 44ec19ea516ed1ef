"""L-BFGS from several starts: of a loss in NumPy, or of a GPflow model through one trace."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import gpflow
import numpy as np
from gpflow.optimizers import Scipy
from scipy.optimize import minimize

from ..gp.types import Floats, FloatTensor
from ..runtime.threads import single_threaded

_FAILED = 1e30  # loss where the true one is not a number: the line search goes back


@dataclass(frozen=True)
class Optimum:
    """Where a run ended: the loss, and what it was minimised by."""

    loss: float
    values: Floats


@single_threaded()  # SciPy's steps are linear algebra with some ten numbers
def minimise(
    loss: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    max_iterations: int,
    bounds: Floats | None = None,
) -> Optimum:
    """Run L-BFGS-B once.

    `loss` returns the loss and its gradient at values [P]; either may be no number somewhere.
    `bounds` are the lower and upper bounds of the values, [P, 2]; None: there are none.
    """

    def guarded(values: Floats) -> tuple[float, Floats]:
        value, gradient = loss(values)
        if not (np.isfinite(value) and np.all(np.isfinite(gradient))):
            return _FAILED, np.zeros_like(values)
        return float(value), gradient

    found = minimize(
        guarded,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": max_iterations, "maxfun": 2 * max_iterations},
    )
    return Optimum(float(found.fun), found.x)


class MultiStart:
    """L-BFGS on the trainable variables of a GPflow model.

    The loss (by default `model.training_loss`: minus the log likelihood or bound, and log priors)
    is traced once and serves all starts, and, where the model's data are `tf.Variable`, all data.
    """

    def __init__(self, model: gpflow.Module, loss: Callable[[], FloatTensor] | None = None) -> None:
        self._variables = model.trainable_variables
        self._evaluate = Scipy().eval_func(
            model.training_loss if loss is None else loss,
            self._variables,
            {"autograph": False},
            allow_unused_variables=True,
        )

    @property
    def values(self) -> Floats:
        """The unconstrained values of the trainable variables, in one vector."""
        return np.asarray(Scipy.initial_parameters(self._variables))

    @values.setter
    def values(self, values: Floats) -> None:
        Scipy.assign_tensors(self._variables, Scipy.unpack_tensors(self._variables, values))

    def run(self, max_iterations: int = 200) -> Optimum:
        """Minimise from where the model is, leave it at the optimum, and return that."""
        with warnings.catch_warnings():  # one node of a network begins anew in every sweep
            warnings.filterwarnings("ignore", message="Some variables does not have a gradient")
            optimum = minimise(self._evaluate, self.values, max_iterations)
        self.values = optimum.values
        return optimum

    def best_of(
        self,
        starts: Iterable[Callable[[], object]],
        *,
        short: int = 15,
        keep: int = 1,
        max_iterations: int = 200,
    ) -> Optimum:
        """Run shortly from every start, continue from the best few, leave the model at the best.

        Each of the `starts` assigns starting values to the model when it is called.  `short`
        iterations follow every start; the best `keep` results continue for `max_iterations`.  A
        RuntimeError says that the loss is NaN at every start.
        """
        first = []
        for start in starts:
            start()
            first.append(self.run(short))
        promising = sorted((o for o in first if o.loss < _FAILED), key=lambda o: o.loss)[:keep]
        if not promising:
            raise RuntimeError(f"the loss is not a number at any of {len(first)} starts")
        finished = []
        for optimum in promising:
            self.values = optimum.values
            finished.append(self.run(max_iterations))
        best = min(finished, key=lambda o: o.loss)
        self.values = best.values
        return best
