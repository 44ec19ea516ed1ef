"""Loading large libraries, which takes seconds."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """Load modules without looking for garbage, now or later among what they are made of.

    Libraries are many objects that stay.  To look through them again and again takes a quarter of
    the time in which TensorFlow and GPflow load, and more than a second when the process ends.  For
    processes that are our own: what is garbage at this moment stays, too.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
