"""The Indian Buffet Process prior over Z: which series has which component.

Both forms of the prior give every component a Beta weight; they differ in how weights become
probabilities. The posterior of the weights is a product of Beta distributions with parameters
``tau`` [K, 2]; this module has every expectation under it that the evidence lower bound needs.

Arrays in, arrays out: learning by NumPy asks the finite prior after every move, and loads no
TensorFlow for it. Tensors in, tensors out, differentiable: the relaxed learner and the model.

References
----------
Tong and Choi 2019, *Discovering Latent Covariance Structures for Multiple Time Series*, appendix B.
Griffiths and Ghahramani 2005, *Infinite Latent Feature Models and the Indian Buffet Process*.
Teh, Görür and Ghahramani 2007, *Stick-breaking Construction for the Indian Buffet Process*.
Doshi-Velez, Miller, Van Gael and Teh 2009, *Variational Inference for the Indian Buffet Process*.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from scipy.special import betaln

from ..gp.elementary import digamma, exp, is_tensor, log, log1p, log_beta, stack_arrays, total
from ..gp.types import Floats
from ..runtime.arguments import seed_pair
from ..runtime.text import whole_number

if TYPE_CHECKING:
    import tensorflow as tf

OffBound = Literal["multinomial", "taylor"]


@dataclass(frozen=True)
class IBP(ABC):
    r"""Indian Buffet Process truncated to K components.

    .. math::
        w_k \sim \mathrm{Beta}(c, 1), \qquad
        \pi = \pi(w), \qquad
        z_{nk} \mid \pi \sim \mathrm{Bernoulli}(\pi_k),
        \qquad q(w_k) = \mathrm{Beta}(\tau_{k1}, \tau_{k2}).

    Subclasses choose the concentration ``c`` and the map from weights to probabilities.
    Source: Tong and Choi 2019, appendix B.

    Throughout, ``tau`` [K, 2] holds the positive parameters of q and ``nu`` [N, K] the
    probabilities q(z_nk = 1), arrays or tensors. Every expectation of tensors is differentiable
    and works inside ``tf.function``; an argument with another number of components than K raises a
    ValueError.

    Parameters
    ----------
    alpha
        Concentration of the process, positive. The larger it is, the more components a series has.
    num_components
        K, at least 1.

    Raises
    ------
    ValueError
        If ``alpha`` is not a positive finite number or ``num_components`` not a positive integer.
    """

    alpha: float
    num_components: int

    def __post_init__(self) -> None:
        if not (isinstance(self.alpha, Real) and 0 < self.alpha < math.inf):
            raise ValueError(f"alpha: expected a positive finite number, got {self.alpha!r}")
        whole_number(self.num_components, "num_components", 1)

    @property
    @abstractmethod
    def concentration(self) -> float:
        """First parameter ``c`` of the Beta(c, 1) prior of every weight."""

    @abstractmethod
    def inclusion_probabilities(self, weights: Any) -> Any:
        """Probabilities ``pi`` [K] that a series has each component, given the ``weights`` [K]."""

    @abstractmethod
    def expected_log_on(self, tau: Any) -> Any:
        r"""Expected log probability of each component, :math:`a_k = E_q[\log \pi_k]`, [K]."""

    @abstractmethod
    def expected_log_off(self, tau: Any) -> Any:
        r"""Expected log probability of its absence, :math:`b_k = E_q[\log(1 - \pi_k)]`, [K]."""

    @property
    def has_best_tau(self) -> bool:
        """Whether `best_tau` has a closed form; otherwise tau is learnt by gradient."""
        return True

    @abstractmethod
    def best_tau(self, nu: Any) -> Any:
        """Beta parameters [K, 2] that maximise the bound, given q(z_nk = 1) = ``nu`` [N, K]."""

    @abstractmethod
    def log_prob(self, Z: Any) -> Any:
        """Log probability [...] of binary matrices ``Z`` [..., N, K], weights integrated out."""

    def expected_logs(self, tau: Any) -> tuple[Any, Any]:
        """``E log pi`` and ``E log(1 - pi)``, [K] each."""
        return self.expected_log_on(tau), self.expected_log_off(tau)

    def expected_log_weights(self, tau: Any) -> Any:
        r"""Expected log prior density of the weights, a scalar.

        .. math::
            E_q[\log p(w)] =
                \sum_k \log c + (c - 1)(\psi(\tau_{k1}) - \psi(\tau_{k1} + \tau_{k2}))
        """
        return total(self._log_weights(tau))

    def entropy(self, tau: Any) -> Any:
        r"""Entropy of the posterior of the weights, a scalar.

        .. math::
            H[q] = \sum_k \log B(\tau_{k1}, \tau_{k2})
                - (\tau_{k1} - 1) E_q[\log w_k] - (\tau_{k2} - 1) E_q[\log(1 - w_k)]
        """
        log_volume, cross = self._entropies(tau)
        return total(log_volume - cross)

    def weights_term(self, tau: Any) -> Any:
        """``E log p(w) + H[q(w)]``: what the bound has beside the rows of Z."""
        log_volume, cross = self._entropies(tau)
        return total(self._log_weights(tau) + log_volume - cross)

    def expected_log_assignments(self, tau: Any, nu: Any) -> Any:
        r"""Expected log probability of the assignments, a scalar.

        .. math::
            E_q[\log p(Z \mid \pi)] = \sum_{nk} \nu_{nk} a_k + (1 - \nu_{nk}) b_k
        """
        nu = self._with_components("nu", nu, axis=-1)
        a, b = self.expected_logs(tau)
        return total(nu * a + (1.0 - nu) * b)

    def _log_weights(self, tau: Any) -> Any:
        """``E log p(w_k)``, [K]."""
        log_weights, _ = self._expected_log_beta(tau)
        c = self.concentration
        return log(c) + (c - 1.0) * log_weights

    def _entropies(self, tau: Any) -> tuple[Any, Any]:
        """Log of the Beta function, and the sum of exponents times expected logs, [K] each."""
        tau = self._with_components("tau", tau, axis=0)
        on, off = self._expected_log_beta(tau)
        cross = (tau[:, 0] - 1.0) * on + (tau[:, 1] - 1.0) * off
        return log_beta(tau[:, 0], tau[:, 1]), cross

    def sample(self, num_series: int, seed: int | tf.Tensor) -> Any:
        """Draw a binary matrix from the prior.

        Parameters
        ----------
        num_series
            N, at least 1.
        seed
            An integer (a small one stands for the pair ``[seed, 0]``), or a stateless seed: an
            integer tensor of shape [2].

        Returns
        -------
        tf.Tensor
            Z, [N, K], of zeros and ones. The same seed gives the same matrix.

        Raises
        ------
        ValueError
            If ``num_series`` is not a positive integer.
        """
        import tensorflow as tf
        import tensorflow_probability as tfp
        from gpflow.config import default_float
        from gpflow.utilities import to_default_float

        whole_number(num_series, "num_series", 1)
        pair = tf.constant(seed_pair(int(seed))) if isinstance(seed, Integral) else seed
        weight_seed, assignment_seed = tfp.random.split_seed(pair)
        K, dtype = self.num_components, default_float()
        # The distribution function of Beta(c, 1) is w^c.
        weights = tf.random.stateless_uniform([K], weight_seed, dtype=dtype) ** (
            1.0 / self.concentration
        )
        uniform = tf.random.stateless_uniform([num_series, K], assignment_seed, dtype=dtype)
        return to_default_float(uniform < self.inclusion_probabilities(weights))

    def _expected_log_beta(self, tau: Any) -> tuple[Any, Any]:
        """E log w and E log(1 - w), [K] each, under w_k ~ Beta(tau_k1, tau_k2)."""
        tau = self._with_components("tau", tau, axis=0)
        psi, psi_total = digamma(tau), digamma(total(tau, -1))
        return psi[:, 0] - psi_total, psi[:, 1] - psi_total

    def _with_components(self, name: str, value: Any, axis: int) -> Any:
        """``value`` as an array or a tensor; ValueError if its size along ``axis`` is not K."""
        if is_tensor(value):
            found = sys.modules["tensorflow"].cast(value, np.float64)
        else:
            found = np.asarray(value, np.float64)
        if found.shape[axis] not in (None, self.num_components):
            raise ValueError(
                f"{name}: expected {self.num_components} components along axis {axis}, "
                f"got shape {tuple(found.shape)}."
            )
        return found


@dataclass(frozen=True)
class FiniteIBP(IBP):
    r"""Finite Beta-Bernoulli model, which tends to the Indian Buffet Process as K grows.

    .. math::
        \pi_k \sim \mathrm{Beta}(\alpha / K, 1), \qquad
        z_{nk} \mid \pi_k \sim \mathrm{Bernoulli}(\pi_k).

    Sources: Griffiths and Ghahramani 2005; Tong and Choi 2019, appendix B, "finite".

    Parameters are those of `IBP`.
    """

    @property
    def concentration(self) -> float:
        """First parameter of the Beta prior, alpha / K."""
        return self.alpha / self.num_components

    def inclusion_probabilities(self, weights: Any) -> Any:
        """The weights themselves, [K]."""
        return self._with_components("weights", weights, axis=0)

    def expected_log_on(self, tau: Any) -> Any:
        r""":math:`a_k = \psi(\tau_{k1}) - \psi(\tau_{k1} + \tau_{k2})`, [K]; see :class:`IBP`."""
        return self._expected_log_beta(tau)[0]

    def expected_log_off(self, tau: Any) -> Any:
        r""":math:`b_k = \psi(\tau_{k2}) - \psi(\tau_{k1} + \tau_{k2})`, [K]; see :class:`IBP`."""
        return self._expected_log_beta(tau)[1]

    def best_tau(self, nu: Any) -> Any:
        r"""Beta parameters that maximise the bound given the assignments, [K, 2].

        .. math::
            \tau_{k1} = \alpha / K + \sum_n \nu_{nk}, \qquad
            \tau_{k2} = 1 + \sum_n (1 - \nu_{nk})
        """
        nu = self._with_components("nu", nu, axis=-1)
        on = total(nu, 0)
        return stack_arrays([self.concentration + on, 1.0 + _count(nu) - on])

    def log_prob(self, Z: Any) -> Any:
        r"""Log probability [...] of binary matrices [..., N, K], weights integrated out.

        .. math::
            \log p(Z) = \sum_k \log \frac{\alpha}{K}
                + \log B\left(m_k + \frac{\alpha}{K}, N - m_k + 1\right),
            \qquad m_k = \sum_n z_{nk}
        """
        Z = self._with_components("Z", Z, axis=-1)
        on, c = total(Z, -2), self.concentration  # [..., K]
        terms = log_beta(c + on, 1.0 + _count(Z) - on) - betaln(c, 1.0)
        return total(terms, -1)

    def conditional_logs(self, others: Floats) -> tuple[Floats, Floats]:
        r"""Log probabilities that one more series has each component, and that it has not.

        .. math::
            P(z_{nk} = 1 \mid Z_{-n}) = \frac{m_k + \alpha / K}{N + \alpha / K}

        Parameters
        ----------
        others
            Rows of Z of the N - 1 other series, [N - 1, K].

        Returns
        -------
        tuple
            Both [K], up to the common ``log(N + alpha / K)``.
        """
        on = total(self._with_components("others", others, axis=-1), 0)
        return np.log(on + self.concentration), np.log(len(others) + 1.0 - on)


def _count(Z: Any) -> Any:
    """N of rows [..., N, K]; a tensor where it is not known yet."""
    if Z.shape[-2] is not None:
        return float(Z.shape[-2])
    tf = sys.modules["tensorflow"]
    return tf.cast(tf.shape(Z)[-2], Z.dtype)


@dataclass(frozen=True)
class InfiniteIBP(IBP):
    r"""Stick-breaking construction of the Indian Buffet Process, truncated to K sticks.

    .. math::
        v_k \sim \mathrm{Beta}(\alpha, 1), \qquad
        \pi_k = \prod_{m \le k} v_m, \qquad
        z_{nk} \mid \pi_k \sim \mathrm{Bernoulli}(\pi_k).

    The probabilities decrease with k. :math:`E_q[\log(1 - \pi_k)]` has no closed form for k > 1;
    there are two approximations, see :meth:`expected_log_off`.
    Sources: Teh et al. 2007; Doshi-Velez et al. 2009; Tong and Choi 2019, appendix B, "infinite".

    Parameters
    ----------
    alpha, num_components
        As of `IBP`.
    bound
        "multinomial", a lower bound, or "taylor", the paper's truncated series, an upper bound.
    taylor_terms
        Terms of the series, at least 1; without effect on the multinomial bound.

    Raises
    ------
    ValueError
        If an argument is not as described.
    """

    bound: OffBound = "multinomial"
    taylor_terms: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bound not in get_args(OffBound):
            raise ValueError(f"bound: expected one of {get_args(OffBound)}, got {self.bound!r}.")
        whole_number(self.taylor_terms, "taylor_terms", 1)

    @property
    def concentration(self) -> float:
        """First parameter of the Beta prior of every stick, alpha."""
        return self.alpha

    def inclusion_probabilities(self, weights: Any) -> Any:
        """Products of the sticks up to each component, [K]."""
        weights = self._with_components("weights", weights, axis=0)
        if is_tensor(weights):
            return sys.modules["tensorflow"].math.cumprod(weights)
        return np.cumprod(weights)

    def expected_log_on(self, tau: Any) -> Any:
        r""":math:`a_k = \sum_{m \le k} \psi(\tau_{m1}) - \psi(\tau_{m1} + \tau_{m2})`, [K]."""
        return _cumsum(self._expected_log_beta(tau)[0])

    def expected_log_off(self, tau: Any) -> Any:
        r"""Approximation of :math:`b_k = E_q[\log(1 - \prod_{m \le k} v_m)]`, [K].

        **Multinomial.** Toss coins of probabilities v_1, ..., v_k in turn: if not all succeed, some
        y is the first to fail, so
        :math:`1 - \prod_{m \le k} v_m = \sum_{y \le k} (1 - v_y) \prod_{m < y} v_m`. With any
        distribution q_k over y <= k, Jensen's inequality gives

        .. math::
            b_k \ge \sum_{y \le k} q_{ky} e_y + H[q_k], \qquad
            e_y = E_q[\log(1 - v_y)] + \sum_{m < y} E_q[\log v_m].

        The best choice, :math:`q_{ky} \propto \exp(e_y)`, turns the right side into
        :math:`\log \sum_{y \le k} \exp(e_y)`. It is exact for k = 1, and never above b_k, so
        that the evidence lower bound stays one (Doshi-Velez et al. 2009).

        **Taylor.** The series of log(1 - x) with the moments of independent Beta variables:

        .. math::
            b_k = -\sum_{r \ge 1} \frac{1}{r} \prod_{m \le k} E_q[v_m^r], \qquad
            E_q[v_m^r] = \prod_{i < r} \frac{\tau_{m1} + i}{\tau_{m1} + \tau_{m2} + i}.

        Every term is negative, so stopping after R of them **overestimates** b_k, by a quantity
        that falls like :math:`R^{-\sum_{m \le k} \tau_{m2}}`; the objective is then no bound
        (Tong and Choi 2019, appendix B).
        """
        if self.bound == "multinomial":
            log_stays, log_breaks = self._expected_log_beta(tau)
            e = log_breaks + _cumsum(log_stays) - log_stays
            if is_tensor(e):
                return sys.modules["tensorflow"].math.cumulative_logsumexp(e)
            return np.logaddexp.accumulate(e)
        tau = self._with_components("tau", tau, axis=0)
        i = np.arange(float(self.taylor_terms))[:, None]  # [R, 1]
        log_moments = -_cumsum(log1p(tau[:, 1] / (tau[:, 0] + i)), axis=0)  # [R, K]
        return -total(exp(_cumsum(log_moments, axis=1)) / (i + 1.0), 0)

    @property
    def has_best_tau(self) -> bool:
        """False: the sticks are coupled."""
        return False

    def best_tau(self, nu: Any) -> Any:
        """Raise NotImplementedError: the sticks are coupled and have no closed-form optimum."""
        raise NotImplementedError(
            "InfiniteIBP has no closed form for the best tau: "
            "optimise tau by gradient, or use FiniteIBP."
        )

    def log_prob(self, Z: Any) -> Any:
        """Raise NotImplementedError: the sticks do not integrate out in closed form."""
        raise NotImplementedError(
            "InfiniteIBP has no closed form for log p(Z): "
            "use its evidence lower bound, or FiniteIBP."
        )


def _cumsum(x: Any, axis: int = 0) -> Any:
    return sys.modules["tensorflow"].cumsum(x, axis) if is_tensor(x) else np.cumsum(x, axis)
