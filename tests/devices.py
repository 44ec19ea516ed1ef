"""A script: everything that learns, on a second device, with nothing placed for it elsewhere.

Two logical devices of the processor stand for a processor and a GPU: what were tied to the first
one would be an error, because TensorFlow may not move it.  It runs alone, because devices can be
made only before TensorFlow has done anything.  Prints "all on" and the device.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

import lkm_gpflow as lkm
from lkm_gpflow.data.tables import Table
from lkm_gpflow.fit.fits import FitSettings
from lkm_gpflow.fit.training import fit
from lkm_gpflow.forecast.held_out import held_out_score, windows

SECOND = "/device:CPU:1"

logical = tf.config.LogicalDeviceConfiguration()
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [logical, logical]
)
tf.config.set_soft_device_placement(False)


def check(tensor: tf.Tensor) -> None:
    assert tensor.device.endswith(SECOND), tensor.device
    assert np.all(np.isfinite(tensor)), tensor


with tf.device(SECOND):
    rng = np.random.default_rng(0)
    X = np.linspace(0.0, 1.0, 12)[:, None]
    Y = rng.normal(size=(12, 3))
    Y[4, 1] = np.nan
    for posterior, prior in (("relaxed", "finite"), ("enumerated", "infinite")):
        names = ("1 x SE(lengthscale=0.2)", "1 x PER(period=0.3, lengthscale=1.0)", "1 x RW")
        kernels = [lkm.kernels.to_kernel(lkm.parse(name.replace("RW", "RW(start=-0.1)")))
                   for name in names]  # fmt: skip
        model = lkm.LKM((X, Y), kernels, prior=prior, posterior=posterior)
        for variable in model.trainable_variables:
            assert variable.device.endswith(SECOND), variable

        @tf.function(autograph=False)
        def run(model: lkm.LKM = model) -> object:
            with tf.GradientTape() as tape:
                value = model.elbo(seed=1)
            return value, tape.gradient(value, model.trainable_variables)

        value, gradient = run()
        check(value)
        for each in gradient:
            check(tf.convert_to_tensor(each))
        for each in (*model.predict_y(X), *model.predict_components(X)):
            check(each)
    observations = Table.of(lkm.datasets.load("demo").frame.iloc[:20, :2]).observations
    quick = FitSettings(num_candidates=4, num_starts=1, num_reseeds=0)
    members = [lkm.parse("SE"), lkm.parse("PER"), lkm.parse("LIN")]
    found = fit(observations, members, seed=0, settings=quick)
    score = held_out_score(found, observations, windows(20)[0], quick)
    assert np.all(np.isfinite([found.bic, found.elbo, score]))
print("all on", SECOND)
