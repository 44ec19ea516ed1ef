"""TensorFlow takes seconds to load: only what needs it loads it, and workers least of all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys
import matplotlib
matplotlib.use("Agg")
import numpy as np
import lkm_gpflow as lkm

LOADED = "{'tensorflow', 'gpflow'} & __import__('sys').modules.keys()"

if __name__ == "__main__":
    frame = lkm.datasets.load("demo").frame.iloc[:40, :2]
    with lkm.process_pool(1) as pool:
        found = lkm.discover(frame, depth=0, restarts=1, executor=pool, progress=False)
        print("worker", pool.submit(eval, LOADED).result())
    found.forecast(3)
    found.report().to_html("report.html")
    found.compare(*frame.columns)
    found.plot.components()
    found.save("found.lkm")
    found = lkm.load("found.lkm")
    print("parent", eval(LOADED))
    np.testing.assert_allclose(found.model.elbo(), found.fit.elbo, rtol=1e-6)
    print("model", sorted(eval(LOADED)))
"""


def test_discover_forecast_and_report_load_no_tensorflow(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    ran = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == [
        "worker set()", "parent set()", "model ['gpflow', 'tensorflow']",
    ]  # fmt: skip
