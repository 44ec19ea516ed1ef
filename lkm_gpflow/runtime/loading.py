"""Loading large libraries, which takes seconds, and saying how to get one that is absent."""

from __future__ import annotations

import gc
import importlib.machinery
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib.abc import MetaPathFinder
from importlib.util import find_spec
from types import ModuleType

_WITH_GPFLOW = frozenset(
    {"check_shapes", "gpflow", "tensorflow", "tensorflow_probability", "tf_keras"}
)
"""Packages that are installed together or not at all."""


class TensorFlowNeededError(ModuleNotFoundError):
    """A part of the package needs GPflow and TensorFlow, which are not installed."""


class LoadedWithin(MetaPathFinder):
    """Finds modules where they are; loads those that are meant, by full name, in a context."""

    def __init__(
        self,
        is_meant: Callable[[str], bool],
        context: Callable[[ModuleType], AbstractContextManager[None]],
    ) -> None:
        self.is_meant, self.context = is_meant, context

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return where the module is; None if it is not meant or nowhere."""
        if not self.is_meant(fullname):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def load_within(module: ModuleType) -> None:
            with self.context(module):
                load(module)

        spec.loader.exec_module = load_within  # type: ignore[method-assign]
        return spec


def explain_absent_tensorflow(package: str) -> None:
    """Let the modules of a package that need TensorFlow raise an error that says how to get it."""
    if find_spec("gpflow") is None:
        ours = LoadedWithin(lambda name: name.startswith(f"{package}."), _explained)
        sys.meta_path.insert(0, ours)


@contextmanager
def _explained(module: ModuleType) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in _WITH_GPFLOW:
            raise
        raise TensorFlowNeededError(
            f"{module.__name__} needs GPflow and TensorFlow, and {error.name} is not installed.  "
            "On Python 3.10 to 3.12 they are installed with lkm_gpflow.  On a later Python, in a "
            "clone of lkm_gpflow: pip install '.[tensorflow]', then pip install --no-deps "
            "'gpflow>=2.11.2,<2.12', which runs on NumPy 2 though it asks for an older one",
            name=error.name,
        ) from error


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
