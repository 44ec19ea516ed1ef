"""Other ways to forecast the same tables, behind one protocol.

May import: report and what lies below.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
