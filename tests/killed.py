"""A script: run ``lkm-gpflow discover`` again and again, each time ended while it writes a file.

It takes the arguments of the command, and a JSON list of moments [signal, suffix, count] as the
last one: that run gets the signal just before the count-th file or line of this suffix is on the
disk, with its last bytes missing if it is to be killed.  Prints how each run ended.  The package is
imported once, and TensorFlow does nothing before the fork.
"""

from __future__ import annotations

import json
import os
import signal
import sys

from small import learn_in_a_hurry, with_one_picture

from lkm_gpflow.cli import main

real_fsync = os.fsync


def arrange(number: int, suffix: str, count: int) -> None:
    """Send this process the signal within a write."""
    left = [count]

    def fsync(descriptor: int) -> None:
        if os.readlink(f"/proc/self/fd/{descriptor}").endswith(suffix):
            left[0] -= 1
            if left[0] == 0:
                if number == signal.SIGKILL:
                    os.ftruncate(descriptor, max(os.fstat(descriptor).st_size - 9, 0))
                os.kill(os.getpid(), number)
        real_fsync(descriptor)

    os.fsync = fsync


learn_in_a_hurry(setattr)
with_one_picture(setattr)
for moment in [*json.loads(sys.argv[-1]), None]:
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if moment is not None:
            arrange(*moment)
        main(["discover", *sys.argv[1:-1]])
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
