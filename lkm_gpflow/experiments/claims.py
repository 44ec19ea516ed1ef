"""A claim on a run, so that two runners do not do it at the same time.

It is a lock of the operating system on an open file and not the file itself: when its owner dies,
however it dies, the claim is gone.  Runners on several machines need a file system that has such
locks (NFS and the usual parallel ones do).
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def claim(path: Path) -> Iterator[int | None]:
    """Claim what a file stands for.

    Yields
    ------
    The descriptor of the locked file, which a child process may inherit so that the claim lasts
    as long as either lives; None if somebody else has the claim.

    Raises
    ------
    ValueError
        If the file system has no locks.
    """
    descriptor = _open_locked(path)
    try:
        yield descriptor
    finally:
        if descriptor is not None:
            _remove(path)  # first, or one who waits could lock a file that is about to go
            os.close(descriptor)


def _open_locked(path: Path) -> int | None:
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _lock(descriptor)
            if _is_still(path, descriptor):
                return descriptor
        except OSError as error:
            os.close(descriptor)
            if error.errno in (errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK, errno.EDEADLK):
                return None
            raise ValueError(
                f"expected a folder of results on a file system with locks, got {path.parent} "
                f"({error.strerror}): name another one with --results"
            ) from error
        os.close(descriptor)  # its owner removed it between our opening and locking it


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

    def _remove(path: Path) -> None:
        """An open file cannot be removed; an empty file that stays does no harm."""

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _remove(path: Path) -> None:
        path.unlink(missing_ok=True)
