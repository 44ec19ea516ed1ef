"""No code is tied to the processor: it runs on a second device, and on a GPU by all we can say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import kernels as registered

import lkm_gpflow as lkm

PACKAGE = Path(lkm.__file__).parent
ON_HOST = {PACKAGE / "comparators" / "stacked.py", PACKAGE / "gp" / "tensors.py"}
"""SciPy climbs in one, formulas of a user's likelihood may be NumPy's in the other."""


def test_nothing_names_a_device() -> None:
    texts = {path: path.read_text("utf-8").lower() for path in PACKAGE.rglob("*.py")}
    assert len(texts) > 100
    for path, text in texts.items():
        for name in ("cpu:0", "gpu:0", "tf.device("):
            assert name not in text, f"{path} says {name}"
    on_host = {path for path, text in texts.items() if re.search("(py|numpy)_function", text)}
    assert on_host == ON_HOST


@pytest.mark.slow
def test_all_runs_on_a_second_device() -> None:
    environment = {
        **os.environ,
        "CUDA_VISIBLE_DEVICES": "",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    ran = subprocess.run(
        [sys.executable, Path(__file__).parents[1] / "devices.py"],
        capture_output=True, text=True, env=environment, timeout=300,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert ran.stdout == "all on /device:CPU:1\n"


# --- on a GPU ---


def nodes(graph: tf.Graph) -> list[Any]:
    """Those of a traced function and of all functions within it, such as bodies of loops."""
    definition = graph.as_graph_def()
    return [*definition.node, *(n for f in definition.library.function for n in f.node_def)]


@cache
def kernels_of(operation: str) -> list[Any]:
    """What TensorFlow has for an operation, by device and type."""
    return list(registered.get_registered_kernels_for_op(operation).kernel)


def without_gpu(graph: tf.Graph) -> set[str]:
    """Types of operations on float64 for which TensorFlow has no GPU implementation."""
    missing = set()
    for node in nodes(graph):
        # Shapes and indices may stay with the host.
        if any(value.type == tf.float64.as_datatype_enum for value in node.attr.values()):
            kernels = kernels_of(node.op)
            if kernels and not any(is_for_gpu(kernel, node) for kernel in kernels):
                missing.add(node.op)
    return missing


def is_for_gpu(kernel: Any, node: Any) -> bool:
    """Whether a kernel runs on a GPU with the types of this operation."""
    return kernel.device_type in ("GPU", "DEFAULT") and all(
        node.attr[constraint.name].type in constraint.allowed_values.list.type
        for constraint in kernel.constraint
        if constraint.name in node.attr
    )


needs_gpu_build = pytest.mark.skipif(
    not tf.test.is_built_with_cuda(), reason="this TensorFlow is built without GPU operations"
)


@needs_gpu_build
def test_an_operation_of_the_host_alone_is_noticed() -> None:
    def text(x: tf.Tensor) -> tf.Tensor:
        return tf.map_fn(tf.strings.as_string, x, fn_output_signature=tf.string)

    x = tf.TensorSpec([3], tf.float64)
    assert without_gpu(tf.function(text).get_concrete_function(x).graph) == {"AsString"}


@needs_gpu_build
@pytest.mark.parametrize(
    ("posterior", "prior"), [("relaxed", "finite"), ("enumerated", "infinite")]
)
def test_the_bound_has_gpu_implementations(posterior: str, prior: str) -> None:
    X = np.linspace(0.0, 1.0, 8)[:, None]
    Y = np.random.default_rng(0).normal(size=(8, 2))
    kernels = [lkm.kernels.to_kernel(lkm.parse("1 x SE(lengthscale=0.2)"))]
    model = lkm.LKM((X, Y), kernels, prior=prior, posterior=posterior)

    @tf.function(autograph=False)
    def run() -> object:
        with tf.GradientTape() as tape:
            value = model.elbo(seed=1)
        return value, tape.gradient(value, model.trainable_variables)

    graph = run.get_concrete_function().graph
    assert any("Cholesky" in node.op or "SelfAdjointEig" in node.op for node in nodes(graph))
    assert without_gpu(graph) == set()
