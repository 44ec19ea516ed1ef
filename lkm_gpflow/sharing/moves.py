r"""Moves of the sampler, each of which leaves the posterior as it is.

A move takes a state and a random generator, changes the state or leaves it, and is corrected by
Metropolis and Hastings: with h the log of the ratio of posterior densities times that of proposal
densities, a proposal is accepted with probability min(1, e^h).  Random walks have steps whose sizes
are log-uniform over two decades, which needs no adaptation.  Weights pi are drawn fresh from
their conditional where a move is easier given them.

Which columns are in use is changed by births and deaths, splits and merges alone: a flip or a swap
that would empty a column is refused.
"""

from __future__ import annotations

import numpy as np

from ..gp.types import LOG_2PI, Booleans, Floats
from .forms import KernelProposal
from .states import ColumnState

Generator = np.random.Generator

_HEIGHT_STEP = 0.5
_SAME_SIZE = 0.5
"""How often hyperparameters move with the size of the column kept."""

_SIZE_STEP = 0.3
_HARMONICS = np.log([2.0, 3.0])


def _scales(rng: Generator, size: int | None = None) -> Floats:
    return np.asarray(3.0 * 10.0 ** rng.uniform(-2.0, 0.0, size))


def _accepted(h: Floats, rng: Generator) -> Booleans:
    return np.log(rng.uniform(size=np.shape(h))) < h


# --- who has a column, and how high ---------------------------------------------------------------


def flip(state: ColumnState, k: int, rng: Generator) -> None:
    """Each series in turn drops column k, or takes it with a height of the prior."""
    model, N = state.model, len(state.Z)
    on = state.Z[:, k]
    log_odds = model.log_odds(np.array(on.sum()), rng)
    sign = np.where(on, -1.0, 1.0)
    heights = np.where(on, state.H[:, k], model.height_sd * rng.normal(size=N))
    V = state.V + (sign * np.exp(heights))[:, None, None] * state.C[k]
    ll = model.density(V, state.r, np.arange(N))
    ok = _accepted(model.power * (ll - state.ll) + sign * log_odds, rng)
    has = on ^ ok
    if has.any():
        state.Z[:, k] = has
        state.H[ok, k] = heights[ok]
        state.take(ok, V[ok], ll[ok])


def swap(state: ColumnState, rng: Generator) -> None:
    """In each series another column takes the place, and the size, of one that it has."""
    model, used = state.model, state.used
    can = np.flatnonzero(state.Z.any(axis=1) & (used & ~state.Z).any(axis=1))
    if not len(can):
        return
    log_odds = model.log_odds(state.Z.sum(axis=0), rng)
    log_size = np.log(np.maximum(np.trace(state.C, axis1=1, axis2=2), 1e-300))
    out = np.array([rng.choice(np.flatnonzero(state.Z[n])) for n in can])
    into = np.array([rng.choice(np.flatnonzero(used & ~state.Z[n])) for n in can])
    old = state.H[can, out]
    new = old + log_size[out] - log_size[into]
    V = state.V[can] + np.exp(new)[:, None, None] * state.C[into]
    V -= np.exp(old)[:, None, None] * state.C[out]
    ll = model.density(V, state.r[can], can)
    h = model.power * (ll - state.ll[can]) + log_odds[into] - log_odds[out]
    ok = _accepted(h + model.log_height(new) - model.log_height(old), rng)
    Z = state.Z.copy()
    Z[can[ok], out[ok]], Z[can[ok], into[ok]] = False, True
    if np.array_equal(Z.any(axis=0), used):
        state.Z = Z
        state.H[can[ok], into[ok]] = new[ok]
        state.take(can[ok], V[ok], ll[ok])


def height(state: ColumnState, k: int, rng: Generator) -> None:
    """Random walks of the heights of column k."""
    model, has = state.model, np.flatnonzero(state.Z[:, k])
    old = state.H[has, k]
    new = old + _HEIGHT_STEP * _scales(rng, len(has)) * rng.normal(size=len(has))
    V = state.V[has] + (np.exp(new) - np.exp(old))[:, None, None] * state.C[k]
    ll = model.density(V, state.r[has], has)
    h = model.power * (ll - state.ll[has]) + model.log_height(new) - model.log_height(old)
    ok = _accepted(h, rng)
    state.H[has[ok], k] = new[ok]
    state.take(has[ok], V[ok], ll[ok])


def rescale(state: ColumnState, k: int, rng: Generator) -> None:
    """Heights of column k against its variance, drawn given all covariances (Gibbs)."""
    model, has = state.model, state.Z[:, k]
    prior = model.forms[int(state.number[k])].prior
    u, height_precision = state.phi[k][0], model.height_sd**-2.0
    precision = prior.sd[0] ** -2.0 + has.sum() * height_precision
    pull = (prior.mean[0] - u) / prior.sd[0] ** 2 + state.H[has, k].sum() * height_precision
    d = (pull / precision) + rng.normal() / np.sqrt(precision)
    if prior.lower[0] < u + d < prior.upper[0]:
        state.phi[k] = np.append(u + d, state.phi[k][1:])
        state.C[k] *= np.exp(d)
        state.H[has, k] -= d


def noise(state: ColumnState, rng: Generator) -> None:
    """Random walks of the noise variances."""
    model, N = state.model, len(state.r)
    new = state.r + _HEIGHT_STEP * _scales(rng, N) * rng.normal(size=N)
    ll = model.density(state.V, new, np.arange(N))
    prior = model.noise_prior
    h = model.power * (ll - state.ll) + prior.log_densities(new) - prior.log_densities(state.r)
    ok = _accepted(h, rng)
    state.r[ok], state.ll[ok] = new[ok], ll[ok]


# --- the kernel of a column, in all series that have it -------------------------------------------


def _try_kernel(
    state: ColumnState,
    k: int,
    number: int,
    phi: Floats,
    log_ratio: float,
    rng: Generator,
    *,
    keeps_size: bool = False,
) -> None:
    """Give column k another kernel; `log_ratio` is that of the proposal densities.

    To keep the size of the column the log variance is moved, which is a shift.
    """
    model, has = state.model, np.flatnonzero(state.Z[:, k])
    inside = model.forms[number].prior.log_densities(phi) > -np.inf
    if not inside[1:].all():
        return
    C = model.covariance(number, phi)
    if keeps_size:
        shift = np.log(np.trace(state.C[k])) - state.phi[k][0]
        shift -= np.log(max(float(np.trace(C)), 1e-300)) - phi[0]
        phi, C = np.append(phi[0] + shift, phi[1:]), C * np.exp(shift)
    if not model.forms[number].prior.allows(phi) or not state.is_free(k, C):
        return
    V = state.V[has] + np.exp(state.H[has, k])[:, None, None] * (C - state.C[k])
    ll = model.density(V, state.r[has], has)
    h = model.power * (ll - state.ll[has]).sum() + log_ratio
    h += model.forms.log_prior(number, phi)
    h -= model.forms.log_prior(int(state.number[k]), state.phi[k])
    if _accepted(h, rng):
        state.set_column(k, number, phi, C)
        state.take(has, V, ll)


def hyperparameters(state: ColumnState, k: int, rng: Generator) -> None:
    """Random walk of one or all numbers of column k; periods walk in frequency.

    Half of the time the column keeps its size, so that only its shape changes.
    """
    number, old = int(state.number[k]), state.phi[k]
    form = state.model.forms[number]
    steps = float(_scales(rng)) * form.steps
    if rng.uniform() < 0.5:
        steps = steps * (np.arange(len(steps)) == rng.integers(len(steps)))
    new = old + steps * rng.normal(size=len(steps))
    log_ratio = 0.0
    for j in form.periods:
        frequency = np.exp(-old[j]) + (new[j] - old[j])
        if frequency <= 0.0:
            return
        # The walk is symmetric in 1 / p; in log p its density has the Jacobian 1 / p.
        new[j] = -np.log(frequency)
        log_ratio += new[j] - old[j]
    keeps_size = bool(rng.uniform() < _SAME_SIZE)
    _try_kernel(state, k, number, new, log_ratio, rng, keeps_size=keeps_size)


def jump(state: ColumnState, k: int, rng: Generator) -> None:
    """A period of column k jumps to a harmonic, or to a neighbouring peak of the likelihood."""
    number, new = int(state.number[k]), state.phi[k].copy()
    periods = state.model.forms[number].periods
    if not len(periods):
        return
    j = rng.choice(periods)
    old = new[j]
    log_ratio = 0.0
    if rng.uniform() < 0.5:
        new[j] += rng.choice((-1.0, 1.0)) * rng.choice(_HARMONICS)
    else:
        frequency = np.exp(-old) + rng.normal()
        if frequency <= 0.0:
            return
        new[j] = -np.log(frequency)
        log_ratio = new[j] - old
    _try_kernel(state, k, number, new, log_ratio, rng, keeps_size=True)


def replace(state: ColumnState, k: int, proposal: KernelProposal, rng: Generator) -> None:
    """Another kernel of nearly the same size takes the place of that of column k."""
    number, phi = proposal.draw(rng)
    phi = np.append(state.phi[k][0] + _SIZE_STEP * rng.normal(), phi[1:])
    if not np.all(np.isfinite(state.model.forms[number].prior.log_densities(phi)[1:])):
        return
    old = proposal.log_density(int(state.number[k]), state.phi[k], shape_only=True)
    new = proposal.log_density(number, phi, shape_only=True)
    _try_kernel(state, k, number, phi, old - new, rng, keeps_size=True)


# --- which columns are in use ---------------------------------------------------------------------


def birth_or_death(state: ColumnState, proposal: KernelProposal, rng: Generator) -> None:
    """A column begins, each series choosing by its own likelihood whether to have it, or ends.

    Heights of series without the column are drawn of the prior: they belong to the proposal.
    """
    model, used, N = state.model, state.used, len(state.Z)
    every = np.arange(N)
    is_birth = bool(rng.uniform() < 0.5)
    candidates = np.flatnonzero(used != is_birth)
    if not len(candidates):
        return
    k = int(rng.choice(candidates))
    heights = model.height_sd * rng.normal(size=N)
    if is_birth:
        number, phi = proposal.draw(rng)
        if not model.forms[number].prior.allows(phi):
            return
        C = model.covariance(number, phi)
        if not state.is_free(k, C):
            return
        without, off = state.V, state.ll
    else:
        number, phi, C = int(state.number[k]), state.phi[k], state.C[k]
        had = state.Z[:, k]
        heights = np.where(had, state.H[:, k], heights)
        without = state.V - (had * np.exp(heights))[:, None, None] * C
        off = model.density(without, state.r, every)
    V = without + np.exp(heights)[:, None, None] * C
    on = model.density(V, state.r, every)
    gain = model.power * (on - off)
    log_on, log_off = -np.logaddexp(0.0, -gain), -np.logaddexp(0.0, gain)
    has = rng.uniform(size=N) < np.exp(log_on) if is_birth else state.Z[:, k].copy()
    if not has.any():
        return
    larger = used.sum() + is_birth  # columns in use in the state with the column
    h = gain[has].sum() + model.log_count(int(has.sum())) - model.log_count(0)
    h += model.forms.log_prior(number, phi) - proposal.log_density(number, phi)
    h += np.log((model.num_columns - larger + 1) / larger)
    h -= np.where(has, log_on, log_off).sum()
    if is_birth and _accepted(h, rng):
        state.set_column(k, number, phi, C)
        state.Z[:, k], state.H[:, k] = has, heights
        state.take(has, V[has], on[has])
    elif not is_birth and _accepted(-h, rng):
        state.Z[:, k] = False
        state.take(has, without[has], off[has])


def split_or_merge(state: ColumnState, rng: Generator) -> None:
    """A column gives some of its series to a new one of its form, or takes all those of another."""
    model, used = state.model, state.used
    u, K = int(used.sum()), model.num_columns
    is_split = bool(rng.uniform() < 0.5)
    if u < (1 if is_split else 2) or (is_split and u == K):
        return
    k = int(rng.choice(np.flatnonzero(used)))
    number, phi_k = int(state.number[k]), state.phi[k]
    form = model.forms[number]
    sd = form.step_sizes(phi_k, 1.0)
    if is_split:
        j = int(rng.choice(np.flatnonzero(~used)))
        phi = rng.normal(phi_k, sd)
        owners = np.flatnonzero(state.Z[:, k])
        moved = owners[rng.uniform(size=len(owners)) < 0.5]
        m, m_j, smaller = len(owners), len(moved), u
        if m_j in (0, m) or not form.prior.allows(phi):
            return
        C = model.covariance(number, phi)
        if not state.is_free(j, C):
            return
    else:
        j = int(rng.choice(np.flatnonzero(used & (np.arange(K) != k))))
        if state.number[j] != number or (state.Z[:, k] & state.Z[:, j]).any():
            return
        phi, C = state.phi[j], state.C[j]
        moved = np.flatnonzero(state.Z[:, j])
        m_j, smaller = len(moved), u - 1
        m = m_j + int(state.Z[:, k].sum())
    size = np.log(np.trace(state.C[k]) / np.trace(C))
    of_k = state.H[moved, k] if is_split else state.H[moved, j] - size
    of_j = of_k + size
    change = np.exp(of_j)[:, None, None] * C - np.exp(of_k)[:, None, None] * state.C[k]
    V = state.V[moved] + (change if is_split else -change)
    ll = model.density(V, state.r[moved], moved)
    gain = model.power * (ll - state.ll[moved]).sum()
    h = gain if is_split else -gain
    h += model.log_count(m_j) + model.log_count(m - m_j) - model.log_count(m) - model.log_count(0)
    h += model.forms.log_prior(number, phi)
    h += (0.5 * np.square((phi - phi_k) / sd) + np.log(sd) + 0.5 * LOG_2PI).sum()
    h += (model.log_height(of_j) - model.log_height(of_k)).sum()
    h += m * np.log(2.0) + np.log((K - smaller) / (smaller + 1))
    if is_split and _accepted(h, rng):
        state.set_column(j, number, phi, C)
        state.Z[moved, k], state.Z[moved, j] = False, True
        state.H[moved, j] = of_j
        state.take(moved, V, ll)
    elif not is_split and _accepted(-h, rng):
        state.Z[moved, j], state.Z[moved, k] = False, True
        state.H[moved, k] = of_k
        state.take(moved, V, ll)
