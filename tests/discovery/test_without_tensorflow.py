"""TensorFlow takes seconds to load, and from Python 3.13 on it is no part of an installation.

Only what needs it loads it, and workers least of all; where it is absent that says how to get it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ABSENT = """
import sys
for name in ("check_shapes", "gpflow", "tensorflow", "tensorflow_probability", "tf_keras"):
    sys.modules[name] = None  # refuses its import
"""

SCRIPT = """
import sys
import matplotlib
matplotlib.use("Agg")
import numpy as np
import lkm_gpflow as lkm

LOADED = "{name for name in ('tensorflow', 'gpflow') if __import__('sys').modules.get(name)}"

if __name__ == "__main__":
    frame = lkm.datasets.load("demo").frame.iloc[:40, :2]
    with lkm.process_pool(1) as pool:
        found = lkm.discover(frame, depth=0, restarts=1, executor=pool, progress=False)
        print("worker", pool.submit(eval, LOADED).result())
    found.forecast(3)
    found.report().to_html("report.html")
    found.compare(*frame.columns)
    found.plot.components()
    found.couple().forecast(3)
    found.save("found.lkm")
    found = lkm.load("found.lkm")
    print("parent", eval(LOADED))
"""

MODEL = """
    np.testing.assert_allclose(found.model.elbo(), found.fit.elbo, rtol=1e-6)
    print("model", sorted(eval(LOADED)))
"""

NO_MODEL = """
    try:
        found.model
    except ImportError as error:
        print(error)
"""

COMMAND = """
from lkm_gpflow.cli import main
main("discover demo --depth 0 --restarts 1 --bases SE --averaging none".split())
"""

WALK = """
import lkm_gpflow as lkm
for room in (lkm, lkm.comparators, lkm.datasets, lkm.kernels, lkm.plotting, lkm.report):
    for name in sorted(room.__all__):
        try:
            getattr(room, name)
        except ImportError as error:
            print(room.__name__.partition(".")[2], name, type(error).__name__, error, sep="|")
"""

CURE = "pip install '.[tensorflow]', then pip install --no-deps 'gpflow>=2.11.2,<2.12'"


def python(script: str, folder: Path) -> list[str]:
    """Run a script, which may start processes of its own, and return the lines that it prints."""
    (folder / "script.py").write_text(script)
    ran = subprocess.run(
        [sys.executable, "script.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


@pytest.mark.tensorflow
def test_discover_forecast_and_report_load_no_tensorflow(tmp_path: Path) -> None:
    assert python(SCRIPT + MODEL, tmp_path) == [
        "worker set()", "parent set()", "model ['gpflow', 'tensorflow']",
    ]  # fmt: skip


def test_discover_forecast_and_report_without_tensorflow(tmp_path: Path) -> None:
    worker, parent, said = python(ABSENT + SCRIPT + NO_MODEL, tmp_path)
    assert (worker, parent) == ("worker set()", "parent set()")
    assert said.startswith("lkm_gpflow.")
    assert CURE in said


def test_the_command_without_tensorflow(tmp_path: Path) -> None:
    assert "demo-lkm holds report.html" in python(ABSENT + COMMAND, tmp_path)[-1]


def test_every_public_name_is_there_or_says_how_to_get_it(tmp_path: Path) -> None:
    said = [line.split("|") for line in python(ABSENT + WALK, tmp_path)]
    assert all(error == "TensorFlowNeededError" and CURE in text for _, _, error, text in said)
    absent = {name for room, name, _, _ in said if not room}
    assert {"LKM", "RelaxedPosterior"} <= absent
    there = {"Discovery", "discover", "learn", "load", "thin", "to_long", "process_pool", "parse"}
    assert not absent & there


def test_another_module_that_is_missing_is_named_as_it_is(tmp_path: Path) -> None:
    script = "import sys\nsys.modules['tqdm'] = sys.modules['tqdm.auto'] = None\n"
    script += (
        "import lkm_gpflow\ntry: lkm_gpflow.discover\nexcept ImportError as error: print(error)"
    )
    (said,) = python(ABSENT + script, tmp_path)
    assert "tqdm" in said
    assert "TensorFlow" not in said
