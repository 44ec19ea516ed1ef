"""A name of before `ibp` served NumPy, kept until all rooms call it."""

from __future__ import annotations

from ..gp.types import Floats
from .ibp import FiniteIBP


class RowPrior(FiniteIBP):
    """`FiniteIBP`; expected logs of the finite prior need no object."""

    @staticmethod
    def expected_logs(tau: Floats) -> tuple[Floats, Floats]:
        """Call `FiniteIBP.expected_logs`."""
        return FiniteIBP(1.0, len(tau)).expected_logs(tau)
