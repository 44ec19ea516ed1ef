"""Execute one notebook, in a process that ends when whoever started it does.

A script, started by `execution` by its path and not as a module of the package, which would load
TensorFlow a second time.  It takes the path of a JSON file: notebook, output, parameters.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

_PATIENCE = 10.0
"""Seconds in which a kernel must have stopped."""

_STARTS = 3
"""How often a kernel is started that does not come up."""

_NOT_STARTED = ("Kernel died before replying to kernel_info", "Kernel didn't respond in")
"""What Jupyter says of such a kernel."""


def _stop(*_: object) -> None:
    """Raise in the main thread: papermill shuts its kernel down on the way out."""
    sys.exit(128 + signal.SIGTERM)


def _end_with_parent() -> None:
    """Wait until the other end of the pipe is closed, as it is when the parent dies."""
    os.read(0, 1)  # not sys.stdin, whose lock would be in the way of an orderly end
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_PATIENCE)
    os._exit(1)  # the kernel watches this process and follows


def main() -> None:
    """Read what to do and do it."""
    signal.signal(signal.SIGTERM, _stop)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    del sys.path[0]  # this folder: its modules may have the names of papermill's
    for start in range(1, _STARTS + 1):
        try:
            _execute(job)
            return
        except RuntimeError as error:
            if not str(error).startswith(_NOT_STARTED) or start == _STARTS:
                raise


def _execute(job: dict[str, Any]) -> None:
    import papermill
    from traitlets.config import Config

    with tempfile.TemporaryDirectory(prefix="kernel-") as folder:
        papermill.execute_notebook(
            job["notebook"],
            job["output"],
            parameters=job["parameters"],
            cwd=job["folder"],
            kernel_name="python3",
            language="python",
            progress_bar=False,
            shutdown_kernel="immediate",
            config=Config(KernelManager=_connection(folder)),
        )


def _connection(folder: str) -> dict[str, str]:
    """Sockets in a folder of the kernel's own: two kernels can choose the same port of TCP."""
    return {} if os.name == "nt" else {"transport": "ipc", "ip": f"{folder}/socket"}


main()
