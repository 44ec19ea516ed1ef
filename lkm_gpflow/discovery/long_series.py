"""Long series: discover components on some of the times, then learn them on all.

A search fits hundreds of structures at O(D^3) each.  Its components are found as well on a few
hundred times; what all times add is the precision of hyperparameters, probabilities and forecasts,
and `refit_sparse` learns these with `SparseLKM`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import gpflow
import numpy as np
import tensorflow as tf
from scipy.optimize import minimize

from ..data.foreign import Tabular, as_frame
from ..data.tables import Table
from ..fit.fits import Fit
from ..fit.initialization import typical_step, walks_begin
from ..fit.parameter_priors import add_priors
from ..gp.types import Floats
from ..kernels.component import ComponentKernel, to_kernel
from ..kernels.grammar import Product
from ..model.posteriors import EnumeratedPosterior
from ..model.sparse import NUM_INDUCING, SparseLKM
from ..runtime.text import whole_number
from ..runtime.threads import single_threaded
from ..runtime.warn import warn
from ..search.ledger import Entry
from .result import Discovery

_MAX_ITERATIONS = 60
"""Of L-BFGS, after which inducing variables are placed anew."""

_WORTH_A_ROUND = 0.1
"""Nats by which a round must raise the bound for another one."""

_TRACE_PER_VALUE = 0.01
"""Nats an observed value that inducing variables may cost without a warning."""


def refit_sparse(
    found: Discovery,
    frame: Tabular,
    *,
    inducing: int = NUM_INDUCING,
    max_rounds: int = 5,
) -> Discovery:
    """Learn the components of a discovery on a longer table, with `SparseLKM`.

    >>> found = lkm.discover(lkm.thin(frame), depth=1)
    >>> found = lkm.refit_sparse(found, frame)

    Hyperparameters, noise and the enumerated posterior over Z are learnt by L-BFGS on the sparse
    bound, in rounds; before each, inducing variables are placed anew.  The kernels keep their
    structures; those that no series has at the end are dropped.

    Parameters
    ----------
    found
        Discovered on some rows of the table, see `thin`.
    frame
        All rows; the same columns.
    inducing
        Inducing variables at most, of all components together.
    max_rounds
        Rounds at most; less if the bound stops rising.

    Returns
    -------
    Discovery
        With one fit, whose likelihoods are sparse bounds; forecasts and components are sparse,
        too, where the table is longer than ``LKM.LONGEST``, and `model` is a `SparseLKM`.  On
        shorter ones they are exact, and `model` is an `LKM`, without `trace_term`.

    Raises
    ------
    ValueError
        If the table is wrong, or has other columns or times of another sort, or a setting is no
        whole number of at least one.

    Warns
    -----
    UserWarning
        If the inducing variables were too few: what they cost is said.
    """
    began = time.perf_counter()
    inducing = whole_number(inducing, "inducing", 1)
    max_rounds = whole_number(max_rounds, "max_rounds", 1)
    frame = as_frame(frame)
    if list(frame.columns) != list(found.table.frame.columns):
        raise ValueError(
            f"expected the columns {list(found.table.frame.columns)}, got {list(frame.columns)}"
        )
    found.table.observations.check_alike("learning on all times")
    table = Table.of(frame, found.table.transform)
    found.table.axis.to_numbers(table.frame.index[:1])  # or say that its times are of another sort
    kernels = _in_time_of(table, found)
    noise = np.array(found.fit.noise_variance)
    Z, costs = found.fit.Z, []
    while True:
        model = _model(kernels, noise, table, found, inducing)
        costs.append(_trace_cost(model, Z))
        _learn(model, inducing, max_rounds)
        Z = np.asarray(model.assignment())
        kernels = [kernel.to_expression() for kernel in _components(model)]
        noise = model.noise_variance.numpy()
        used = Z.any(axis=0)
        if used.all() or not used.any():
            break
        kernels = [kernel for kernel, on in zip(kernels, used, strict=True) if on]
        Z = Z[:, used]
    # Learning hides in the noise what it cannot represent: the start tells, too.
    _warn_of_the_trace(max(*costs, _trace_cost(model, Z)), inducing)
    fit = Fit(
        kernels=tuple(kernels),
        Z=Z,
        probabilities=np.asarray(model.probabilities()),
        tau=model.tau.numpy(),
        noise_variance=noise,
        log_likelihood=float(tf.reduce_sum(model.log_likelihood(Z))),
        bic=float(model.bic(Z)),
        elbo=float(model.elbo()),
        seconds=time.perf_counter() - began,
    )
    return replace(
        found, table=table, averaging="none", entries=(Entry.alone(fit),), stacked=(),
    )  # fmt: skip


def _in_time_of(table: Table, found: Discovery) -> list[Product]:
    """Kernels of the best fit in the scaled time of a table, where walks begin for its rows."""
    stretch = found.table.span / table.span
    (began,) = table.scaled_times(found.table.frame.index[:1])
    start = walks_begin(table.observations.x)
    kernels = (kernel.change_units(stretch, float(began)) for kernel in found.fit.kernels)
    return [kernel.beginning_at(start) for kernel in kernels]


def _model(
    kernels: Sequence[Product], noise: Floats, table: Table, found: Discovery, inducing: int
) -> SparseLKM:
    components = [to_kernel(kernel) for kernel in kernels]
    if found.settings.fit.priors:
        for component in components:
            add_priors(component, typical_step(table.observations.x))
    return SparseLKM(
        table.observations.table,
        components,
        found.settings.fit.alpha,
        EnumeratedPosterior(),
        inducing=inducing,
        noise_variance=noise,
        likelihood=found.settings.fit.likelihood,
    )


def _components(model: SparseLKM) -> list[ComponentKernel]:
    return [kernel for kernel in model.kernels if isinstance(kernel, ComponentKernel)]


def _learn(model: SparseLKM, inducing: int, max_rounds: int) -> None:
    """L-BFGS on all parameters, with new inducing inputs for each round."""
    reached = -np.inf
    for _ in range(max_rounds):
        model.place_inducing(inducing)
        model.posterior.refresh(model)
        model.update_tau()
        before, reached = reached, -_climb(model)
        if reached < before + _WORTH_A_ROUND:
            break
    model.posterior.refresh(model)


def _climb(model: SparseLKM) -> float:
    """Minimise the training loss from where the model is, and return it."""
    variables, scipy = model.trainable_variables, gpflow.optimizers.Scipy

    @partial(tf.function, autograph=False)
    def loss_and_gradient() -> tuple[tf.Tensor, tf.Tensor]:
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(variables)
            loss = model.training_loss()
        return loss, scipy.pack_tensors(tape.gradient(loss, variables))

    def at(flat: Floats) -> tuple[float, Floats]:
        scipy.assign_tensors(variables, scipy.unpack_tensors(variables, flat))
        loss, gradient = (part.numpy() for part in loss_and_gradient())
        if not (np.isfinite(loss) and np.all(np.isfinite(gradient))):
            # Not positive definite: send the line search back.
            return 1e15, np.zeros_like(flat)
        return float(loss), gradient

    with single_threaded():  # SciPy's own steps; the bound is TensorFlow's
        found = minimize(
            at, scipy.initial_parameters(variables), jac=True, method="L-BFGS-B",
            options={"maxiter": _MAX_ITERATIONS, "maxfun": 2 * _MAX_ITERATIONS, "ftol": 1e-9},
        )  # fmt: skip
    scipy.assign_tensors(variables, scipy.unpack_tensors(variables, found.x))
    return float(found.fun)


def _trace_cost(model: SparseLKM, Z: Floats) -> float:
    """Nats that inducing variables cost, for each observed value."""
    return float(tf.reduce_sum(model.trace_term(Z))) / model.observations.num_observed


def _warn_of_the_trace(cost: float, inducing: int) -> None:
    if cost > _TRACE_PER_VALUE:
        warn(
            f"inducing: expected at most {_TRACE_PER_VALUE} nats of trace an observed value, but "
            f"{inducing} inducing variables cost up to {cost:.2g}: fast components may have been "
            "learnt as noise. Give more inducing variables",
        )
