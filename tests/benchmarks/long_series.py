"""One bound with its gradient, or one fit, in a process of its own: processor seconds and memory.

``python tests/benchmarks/long_series.py relaxed|sparse D`` prints JSON.  Four
series, four kernels; one TensorFlow thread (set by the caller), so that processor seconds are those
of the work.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

NUM_SERIES = 4
TEXTS = (
    "1.0 x SE(lengthscale=0.2)",
    "0.5 x SE(lengthscale=0.02)",
    "1.0 x PER(period=0.05, lengthscale=1.0)",
    "1.0 x LIN(location=0.5)",
)
ONE_THREAD = {
    "TF_NUM_INTRAOP_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}


def measure(what: str, num_times: int) -> dict[str, float]:
    """Run this file in a process of its own."""
    command = [sys.executable, __file__, what, str(num_times)]
    done = subprocess.run(
        command, env={**os.environ, **ONE_THREAD}, capture_output=True, text=True, check=True
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _work(what: str, num_times: int) -> Callable[[], object]:
    import numpy as np
    import tensorflow as tf

    import lkm_gpflow as lkm
    from lkm_gpflow.kernels.component import to_kernel

    x = np.linspace(0.0, 1.0, num_times)
    Y = np.random.default_rng(0).normal(size=(num_times, NUM_SERIES))
    products = [lkm.parse(text) for text in TEXTS]
    posterior: Any = lkm.RelaxedPosterior(num_samples=1) if what == "relaxed" else "enumerated"
    build: Any = lkm.SparseLKM if what == "sparse" else lkm.LKM
    kernels = [to_kernel(product) for product in products]
    model = build((x[:, None], Y), kernels, posterior=posterior, noise_variance=0.1)
    variables = model.trainable_variables

    @tf.function
    def bound_and_gradient() -> object:
        with tf.GradientTape() as tape:
            value = model.elbo(0)
        return value, tape.gradient(value, variables)

    return bound_and_gradient


def main() -> None:
    what, num_times = sys.argv[1], int(sys.argv[2])
    run = _work(what, num_times)
    run()
    seconds, rounds = 0.0, 0
    while rounds < 1 or (seconds < 2.0 and rounds < 20):
        start = time.process_time()
        run()
        seconds, rounds = seconds + time.process_time() - start, rounds + 1
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(json.dumps({"seconds": seconds / rounds, "gigabytes": peak}))


if __name__ == "__main__":
    main()
