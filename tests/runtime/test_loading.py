"""Loading without looking for garbage: what it leaves as it was, and what it is for."""

from __future__ import annotations

import gc
import subprocess
import sys
from importlib import import_module

import pytest

from lkm_gpflow.runtime.loading import loading


@pytest.mark.parametrize("enabled", [True, False])
def test_the_search_for_garbage_is_as_it_was(enabled: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with loading():
            assert not gc.isenabled()
        assert gc.isenabled() == enabled
        with pytest.raises(ImportError), loading():
            import_module("lkm_gpflow.nothing")
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if before else gc.disable)()
        gc.unfreeze()


def test_what_was_loaded_is_not_looked_through_again() -> None:
    code = """
import gc
from lkm_gpflow.runtime.loading import loading
with loading():
    import pandas
assert gc.isenabled()
assert gc.get_freeze_count() > 50_000 > len(gc.get_objects())
"""
    subprocess.run([sys.executable, "-c", code], check=True)
