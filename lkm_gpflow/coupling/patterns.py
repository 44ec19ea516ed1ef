r"""What series of a fit may share: its components, those that no series could tell apart as one.

Components that differ in variance alone are one pattern, which series have in different heights.
So are those whose shape no series of the table could tell apart (random walks of next to no
momentum and of none, say): series could not be correlated otherwise that have one each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.linalg import eigh

from ..fit.fits import LEAST_NOISE, PLAIN_MODEL, Fit
from ..fit.training import fit_covariances, model_covariances
from ..gp.types import Floats
from ..kernels.grammar import Product

_ALIKE = 1.0  # expected log Bayes factor below which two shapes count as one


@dataclass(frozen=True)
class Patterns:
    """Patterns, and how large each is in every series."""

    kernels: tuple[Product, ...]  # K kernels of unit variance
    # How large pattern k is in series n, and the standard deviation of its noise, [N, K + 1].
    amplitudes: Floats
    components: tuple[tuple[int, ...], ...]  # which components of the fit each pattern is made of
    # As of `Fit`.
    model: str = PLAIN_MODEL
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, fit: Fit, x: Floats) -> Patterns:
        """Read the patterns off a fit that was learnt at the times x [D]."""
        used = np.flatnonzero(fit.Z.any(axis=0))
        kernels = [replace(fit.kernels[k], variance=1.0) for k in used]
        variance = np.array([fit.kernels[k].variance for k in used], np.float64)
        squared = fit.Z[:, used] * variance
        noise = np.maximum(fit.noise_variance, LEAST_NOISE)
        C = fit_covariances(fit, x, kernels)
        found: dict[int, list[int]] = {}
        columns: dict[int, Floats] = {}
        for k in np.argsort(-squared.sum(axis=0), kind="stable"):
            floor = float(noise.min() / squared[:, k].max())
            for first in found:
                ratio = 1.0
                if kernels[first].factors != kernels[k].factors:
                    ratio = _ratio(C[first], C[k], floor)
                if np.isfinite(ratio):
                    found[first].append(k)
                    columns[first] = columns[first] + squared[:, k] * ratio
                    break
            else:
                found[k], columns[k] = [k], squared[:, k]
        return cls(
            tuple(kernels[k] for k in found),
            np.sqrt(np.column_stack([*columns.values(), noise])),
            tuple(tuple(int(used[k]) for k in own) for own in found.values()),
            fit.model,
            fit.parameters,
        )

    def covariances(self, x: Floats) -> Floats:
        """Of the patterns and of the noise on the times x, [K + 1, D, D]."""
        N = len(self.amplitudes)
        own = model_covariances(self.kernels, x, self.model, self.parameters, N)
        return np.concatenate([own, np.eye(len(x))[None]])


def _ratio(first: Floats, second: Floats, floor: float) -> float:
    r"""By what factor the second covariance is the first one; NaN if it is of another shape.

    With :math:`\lambda` the eigenvalues of the second relative to the first, both with a noise of
    the variance `floor`, and c their geometric mean, half of Jeffreys' divergence is
    :math:`\frac14 \sum_d (\lambda_d / c + c / \lambda_d - 2)`.
    """
    noise = (floor + 1e-10) * np.eye(len(first))
    values = np.maximum(eigh(second + noise, first + noise, eigvals_only=True), 1e-12)
    ratio = float(np.exp(np.log(values).mean()))
    relative = values / ratio
    is_alike = 0.25 * float((relative + 1.0 / relative - 2.0).sum()) < _ALIKE
    return ratio if is_alike else np.nan
