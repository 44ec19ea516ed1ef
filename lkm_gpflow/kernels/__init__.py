"""Kernels: the grammar of products (`grammar`, pure Python) and base kernels (`base`, GPflow's).

A new base kernel is a class and one line, `register_kernel`.
May import: gp, runtime.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
