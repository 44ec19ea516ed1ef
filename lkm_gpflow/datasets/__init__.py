"""Time series to learn from: those of the paper, and generated ones.

>>> from lkm_gpflow import datasets
>>> datasets.names()
['toy', 'demo', 'stocks', 'houses', 'currencies', 'gonu', 'seizure']
>>> demo = datasets.load("demo", seed=3)
>>> train, test = demo.split()

The package contains no third-party data. The first ``load`` of a real data set downloads the
publishers' files, checks them, and builds the table from them. They are looked for in, and
downloaded to, the folder in the environment variable ``LKM_GPFLOW_DATA``, by default the user's
cache folder.
May import: nothing of the package above runtime.
"""

from lkm_gpflow.datasets.catalogue import fetch, names
from lkm_gpflow.datasets.catalogue import load_dataset as load
from lkm_gpflow.datasets.dataset import Dataset

__all__ = ["Dataset", "fetch", "load", "names"]
