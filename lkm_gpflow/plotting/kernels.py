"""A kernel as a picture: its covariance, and draws from its Gaussian process."""

from __future__ import annotations

import numpy as np

from ..fit.engine import components
from ..gp.types import Floats
from ..kernels.grammar import Product
from .style import AxesArray, component_colour, panel_axes, plain

_JITTER = 1e-8  # of the largest variance, added to the diagonal: without effect that one could see


def draw_functions(product: Product, x: Floats, count: int = 3, seed: int = 0) -> Floats:
    """Draw functions from the Gaussian process of a complete kernel at times x, [count, D]."""
    [covariance] = components([product], np.asarray(x, np.float64))
    jitter = _JITTER * float(covariance.diagonal().max())
    root = np.linalg.cholesky(covariance + jitter * np.eye(len(covariance)))
    return np.asarray(np.random.default_rng(seed).standard_normal((count, len(root))) @ root.T)


def plot_kernel(
    product: Product,
    x: Floats,
    axes: AxesArray | None = None,
    *,
    count: int = 3,
    seed: int = 0,
    unit: str = "",
) -> AxesArray:
    """Draw the covariance matrix of a complete kernel as a heat map and, beside it, some draws.

    The times x [D] are regular, and `unit` is theirs.  A ValueError says if a number of the kernel
    is absent.
    """
    panels = panel_axes(axes, 2, columns=2, size=(3.2, 2.8))
    [covariance] = components([product], np.asarray(x, np.float64))
    label = f"time ({unit})" if unit else "time"
    largest = float(np.abs(covariance).max())
    image = panels[0].imshow(
        covariance, cmap="RdBu_r", vmin=-largest, vmax=largest, origin="lower",
        extent=(x[0], x[-1], x[0], x[-1]), aspect="auto", interpolation="nearest",
    )  # fmt: skip
    panels[0].figure.colorbar(image, ax=panels[0], pad=0.02).ax.tick_params(labelsize=7)
    panels[0].set(xlabel=label, ylabel=label)
    for i, function in enumerate(draw_functions(product, x, count, seed)):
        panels[1].plot(x, function, color=component_colour(i), linewidth=1.2)
    panels[1].set(xlabel=label, ylabel="value")
    panels[0].set_title(plain(f"{product:.3g}", longest=60), fontsize=9)
    panels[1].set_title(f"{count} draws", fontsize=9)
    return panels
