"""Which tables of the benchmark choose defaults, and which are held back to judge them.

The tables were drawn by chance, domain by domain, before any method was run on them by the
benchmark; `split.csv` beside this module keeps the draw.  The tables that are held judge: they
are meant to be looked at once a release.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, cast

Part = Literal["choosing", "held"]

SEED = 19
"""Of the draw in `split.csv`."""

HELD = 2
"""Tables of a domain that are held back."""

_FILE = Path(__file__).with_name("split.csv")


def draw(domains: Mapping[str, str], seed: int = SEED) -> dict[str, Part]:
    """Draw `HELD` tables of every domain.

    Parameters
    ----------
    domains
        The domain of every table.
    seed
        Everything random follows from it.

    Returns
    -------
    The part of every table, in the order in which they are given.
    """
    rng = random.Random(seed)
    held: set[str] = set()
    for domain in sorted(set(domains.values())):
        tables = sorted(table for table, of in domains.items() if of == domain)
        held.update(rng.sample(tables, HELD))
    return {table: "held" if table in held else "choosing" for table in domains}


def parts() -> dict[str, Part]:
    """Return the part of every table, as `split.csv` has it."""
    with _FILE.open(encoding="utf-8", newline="") as file:
        return {row["table"]: cast(Part, row["part"]) for row in csv.DictReader(file)}


def tables(part: Part) -> list[str]:
    """Return the tables of a part, in the order of the registry."""
    return [table for table, of in parts().items() if of == part]
