"""What the notebooks call: one module an experiment, and `runner`, which runs the notebooks.

Nothing of the package imports it.  An editable installation puts the clone on Python's path, so
``from paper_experiments.lab import toy`` works in any folder.
"""

from pathlib import Path

RESULTS = Path(__file__).parents[1] / "results"
"""The committed results, one file an experiment."""
