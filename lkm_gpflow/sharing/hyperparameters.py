"""What is known of the periods, lengthscales and locations of the components of a consensus."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..gp.types import Floats
from ..kernels.grammar import Kind, Product
from ..runtime.text import numbered


@dataclass(frozen=True)
class Marginal:
    """The posterior of one hyperparameter of a component: its values in the draws that have it.

    Parameters
    ----------
    name
        Such as "SE lengthscale".
    kind
        What it measures.
    values
        In scaled time, of columns that stand for the component and have its structure, [T].
    """

    name: str
    kind: Kind
    values: Floats

    def quantile(self, p: float) -> float:
        """Return the value, in scaled time, that it is below with probability p; NaN if unknown."""
        return float(np.quantile(self.values, p)) if len(self.values) else float("nan")


def learnt(kernel: Product) -> list[tuple[int, str, Kind]]:
    """Places among the values of all factors, names and kinds of what is learnt."""
    every = [(factor.base, *own) for factor in kernel.factors for own in factor.base.parameters]
    names = numbered([f"{base.name} {name}" for base, name, _ in every])
    return [(i, names[i], kind) for i, (_, _, kind) in enumerate(every) if kind is not Kind.ORIGIN]
