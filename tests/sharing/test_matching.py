"""Shapes of components, and how alike they are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import sqrtm

from lkm_gpflow.kernels.component import to_kernel
from lkm_gpflow.kernels.grammar import parse
from lkm_gpflow.sharing.matching import MUCH_LIKE, correlation, shapes_of

X = np.linspace(0.0, 1.0, 40)


def shapes(*kernels: str) -> NDArray[np.float64]:
    return shapes_of([parse(kernel) for kernel in kernels], X)


def test_shapes_are_roots_of_centred_covariances() -> None:
    kernels = ("0.3 x SE(lengthscale=0.1)", "5 x RW(start=-0.02)", "1 x LIN(location=0.2)")
    H = np.eye(40) - 1.0 / 40
    for text, shape in zip(kernels, shapes(*kernels), strict=True):
        C = H @ to_kernel(parse(text))(X[:, None]).numpy() @ H
        root = np.real(sqrtm(C + 1e-12 * np.eye(40)))
        np.testing.assert_allclose(shape.reshape(40, 40), root / np.linalg.norm(root), atol=2e-4)


def test_what_is_alike_and_what_is_not() -> None:
    def alike(a: str, b: str) -> bool:
        return bool(correlation(shapes(a), shapes(b))[0, 0] >= MUCH_LIKE)

    assert alike("1 x SE(lengthscale=0.2)", "9 x SE(lengthscale=0.45)")
    assert not alike("1 x SE(lengthscale=0.1)", "1 x SE(lengthscale=0.4)")
    assert alike("1 x RW(start=-0.02)", "1 x IOU(lengthscale=0.005,start=-0.02)")
    assert not alike("1 x RW(start=-0.02)", "1 x SE(lengthscale=0.05)")
    wave = "1 x PER(period=0.2,lengthscale=0.8)"
    assert alike(wave, "1 x PER(period=0.202,lengthscale=0.8)")
    assert not alike(wave, "1 x PER(period=0.22,lengthscale=0.8)")


def test_a_constant_is_like_a_constant_alone() -> None:
    told = correlation(shapes("1 x C", "2 x LIN(location=0)"), shapes("3 x C", "1 x WN"))
    assert told[0, 0] == 1.0
    assert told[0, 1] == 0.0
    assert abs(told[1, 0]) < 1e-12
