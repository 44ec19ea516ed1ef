"""Other packages are loaded without what they say, and do for nothing, at start-up.

TensorFlow 2.21 writes some of them from C++ before it reads the environment variables that would
silence it, so they are caught where they come out, at file descriptor 2, and only while TensorFlow
is being imported and its devices are listed.  What is no such message is handed on, and everything
is if the import fails (not if it is stopped).

check_shapes, which decorates GPflow's functions and ours, parses their docstrings for nobody.

tqdm warns in a notebook that has no ipywidgets, whoever imports it; its bar of text will do.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import ModuleType

from .loading import LoadedWithin

VERBOSE_VARIABLE = "LKM_GPFLOW_VERBOSE"  # set it to 1 to see what TensorFlow writes

_START_UP = re.compile(
    rb"[IWE]\d{4} \d\d:\d\d:\d\d.*"  # absl: I0000 00:00:1795328149.749554 2245 port.cc:153] ...
    rb"|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [IWE] .*"  # TensorFlow before 2.20
    rb"|WARNING: All log messages before absl::InitializeLog.*"
    rb"|To enable the following instructions: .*"
    rb"|Skipping registering GPU devices.*"
)
"""Lines below the level "fatal"."""


def load_tensorflow_quietly() -> None:
    """Let the first import of TensorFlow in this process, whoever asks for it, be quiet."""
    if os.environ.get(VERBOSE_VARIABLE, "") in ("", "0"):
        _load_within("tensorflow", _without_start_up_messages)


def load_gpflow_quickly() -> None:
    """Let check_shapes leave docstrings as they are written, from the first import of GPflow on.

    To add shapes it would parse each of them, which takes most of the time of that import.
    """
    _load_within("gpflow", _with_docstrings_as_written)


def load_progress_bars_quietly() -> None:
    """Let no import of tqdm advise the user to install widgets."""
    warnings.filterwarnings("ignore", message="IProgress not found")


def _load_within(
    package: str, context: Callable[[ModuleType], AbstractContextManager[None]]
) -> None:
    if package not in sys.modules:
        sys.meta_path.insert(0, LoadedWithin(package.__eq__, context))


@contextmanager
def _without_start_up_messages(tensorflow: ModuleType) -> Iterator[None]:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")  # what it tells of GPUs later on
    with start_up_messages_dropped():
        yield
        # The driver is looked for now, not when the first tensor is made; this does not
        # initialise the devices, which can still be configured.
        tensorflow.config.list_physical_devices()


@contextmanager
def _with_docstrings_as_written(gpflow: ModuleType) -> Iterator[None]:
    from check_shapes import config  # it imports TensorFlow

    config.set_rewrite_docstrings(config.DocstringFormat.NONE)
    yield


@contextmanager
def start_up_messages_dropped() -> Iterator[None]:
    """Keep TensorFlow's messages off file descriptor 2; hand on everything else at the end."""
    sys.stderr.flush()
    try:
        terminal = os.dup(2)
    except OSError:  # a process without standard error
        yield
        return
    with tempfile.TemporaryFile() as written:
        os.dup2(written.fileno(), 2)
        failed = False
        try:
            yield
        except Exception:
            failed = True
            raise
        finally:
            sys.stderr.flush()
            os.dup2(terminal, 2)
            os.close(terminal)
            written.seek(0)
            for line in written:
                if failed or not _START_UP.fullmatch(line.rstrip(b"\r\n")):
                    os.write(2, line)
