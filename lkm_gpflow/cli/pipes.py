"""What a command does whose reader has gone, as in ``lkm-gpflow data | head -1``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_PIPE_CLOSED = 141  # exit status of a Unix tool that SIGPIPE ends: 128 + 13


@contextmanager
def ended_quietly() -> Iterator[None]:
    """End the command without a word where nobody reads on."""
    try:
        yield
    except BrokenPipeError:
        with open(os.devnull, "wb") as nowhere:  # takes what Python still has to write
            for stream in (sys.stdout, sys.stderr):
                os.dup2(nowhere.fileno(), stream.fileno())
        sys.exit(_PIPE_CLOSED)
