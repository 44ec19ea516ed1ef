"""``python -m lkm_gpflow.cli`` is ``lkm-gpflow``."""

from . import main

main()
