"""The benchmark: all methods on tables of six domains, two origins each.

May import: what `experiments` may.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
