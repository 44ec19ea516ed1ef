"""What all tests share: no display, slow tests on demand, full shape checks."""

from __future__ import annotations

import lkm_gpflow as lkm  # before TensorFlow, which then starts without a word

# isort: split
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from importlib.abc import MetaPathFinder
from importlib.util import find_spec
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest
from report.chromium import Browser, browser, program
from small import agreed, learn_in_a_hurry, small_table

from lkm_gpflow.datasets import downloads
from lkm_gpflow.runtime.threads import single_threaded
from lkm_gpflow.sharing import posterior
from lkm_gpflow.sharing.sampler import SamplerSettings

matplotlib.use("Agg")

HAS_TENSORFLOW = find_spec("gpflow") is not None
NEEDS_TENSORFLOW = "needs TensorFlow"


class SkipWithoutTensorFlow(MetaPathFinder):
    """Skips the file or the test that leads to an import of TensorFlow, by us, where it is absent.

    Others may try whether it is there.
    """

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: object = None) -> None:
        if fullname in {"check_shapes", "gpflow", "tensorflow", "tensorflow_probability"}:
            frame = sys._getframe(1)
            while frame.f_back and frame.f_globals["__name__"].startswith("importlib."):
                frame = frame.f_back
            file = Path(frame.f_code.co_filename)
            if file.is_relative_to(TESTS) or file.is_relative_to(PACKAGE):
                pytest.skip(NEEDS_TENSORFLOW, allow_module_level=True)


TESTS, PACKAGE = Path(__file__).parent, Path(lkm.__file__).parent
if not HAS_TENSORFLOW:
    sys.meta_path.append(SkipWithoutTensorFlow())


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--runslow", action="store_true", default=False, help="run the tests marked slow too"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not HAS_TENSORFLOW:
        for item in items:
            if "tensorflow" in item.keywords:
                item.add_marker(pytest.mark.skip(reason=NEEDS_TENSORFLOW))
    if config.getoption("--runslow"):
        # Files with slow tests first: where several processes run, none is left with them at last.
        slow = Counter(item.path for item in items if "slow" in item.keywords)
        items.sort(key=lambda item: -slow[item.path])
        return
    skip = pytest.mark.skip(reason="slow: use --runslow")
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(skip)


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """Let several processes of tests not wait for each other's BLAS threads."""
    with single_threaded():
        yield


@pytest.fixture(scope="session", autouse=True)
def short_chains() -> Iterator[None]:
    """Let discoveries be sampled in a second: tests of what draws say make their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(posterior, "SamplerSettings", partial(SamplerSettings, sweeps=60))
        yield


@pytest.fixture
def whole_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let discoveries be sampled as users' are."""
    monkeypatch.setattr(posterior, "SamplerSettings", SamplerSettings)


@pytest.fixture(scope="session", autouse=True)
def full_shape_checks(request: pytest.FixtureRequest) -> Iterator[None]:
    """Check shapes inside `tf.function` too (off by default), but not while speed is measured."""
    is_for_speed = all("benchmarks" in item.path.parts for item in request.session.items)
    if is_for_speed or not HAS_TENSORFLOW:
        yield
        return
    import check_shapes

    before = check_shapes.get_enable_check_shapes()
    check_shapes.set_enable_check_shapes(check_shapes.ShapeCheckingState.ENABLED)
    yield
    check_shapes.set_enable_check_shapes(before)


@pytest.fixture(autouse=True)
def no_open_figures() -> Iterator[None]:
    """Close what a test has drawn, so that no test sees the figures of another."""
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def quick_fits() -> Iterator[None]:
    """Let `discover` learn in a hurry, for tests of what happens around the fits."""
    with pytest.MonkeyPatch.context() as patch:
        learn_in_a_hurry(patch.setattr)
        yield


@pytest.fixture(scope="session")
def tables() -> Path:
    """The folder of the reference tables, which is the parent of that of the raw files."""
    raw = Path(os.environ.get(downloads.FOLDER_VARIABLE) or "absent")
    needed = [raw / file.name for files in downloads.RAW_FILES.values() for file in files]
    needed += [raw.parent / f"{name}.csv" for name in ("stocks", "houses", "currencies", "gonu")]
    if not all(path.exists() for path in needed):
        pytest.skip(
            f"needs data: {downloads.FOLDER_VARIABLE} does not name the folder of raw files"
        )
    return raw.parent


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Start a browser without a window."""
    if program() is None:
        pytest.skip("needs chromium (Debian: apt-get install chromium)")
    with browser(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture(scope="session")
def small_found() -> lkm.Discovery:
    """What is discovered in the small table, for tests that only look at it."""
    bases = ("C", "LIN", "SE", "RW")
    return lkm.discover(small_table(), bases=bases, depth=0, restarts=2, progress=False)


@pytest.fixture(scope="session")
def disagreeing() -> lkm.Discovery:
    """Three fits by hand of the small table: with a wave and a line, a wave alone, and neither."""
    wave_and_line = ["0.6 x SE(lengthscale=20)", "2e-5 x LIN(location=130)"]
    fits = [
        (0.6, wave_and_line, [[1, 0], [1, 1], [0, 1]]),
        (0.3, ["0.9 x SE(lengthscale=24)"], [[1]] * 3),
        (0.1, ["0.02 x RW(start=-7)"], [[1]] * 3),
    ]
    found = agreed(small_table(), fits)
    assert [len(member.fit.kernels) for member in found.searched] == [2, 1, 1]
    return found
