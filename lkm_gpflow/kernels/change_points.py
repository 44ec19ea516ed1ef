"""Change points: one pattern until a point in time, another from then on."""

from __future__ import annotations

from .grammar import FROM, UNTIL, Factor, Product


def change_point(
    before: Product, after: Product, at: float | None = None, width: float | None = None
) -> tuple[Product, Product]:
    r"""Return the two terms of CP(before, after, at, width), see Lloyd et al. (2014).

    .. math:: k(x, x') = (1 - s(x))\,(1 - s(x'))\,k_1(x, x') + s(x)\,s(x')\,k_2(x, x'),
       \qquad s(x) = \sigma\big((x - \mathtt{at}) / \mathtt{width}\big).

    A sum is never formed (see `grammar`): its terms are ``before x UNTIL`` and ``after x FROM``,
    two components.  So each learns a date and a width of its own, and a series may have one of
    them alone: what ends in all need not give way to the same in all.

    Parameters
    ----------
    before, after
        What is there before and after the change.
    at
        When, in the unit of time of the other numbers; None: not known.
    width
        Positive: over how long.  The sigmoid goes from 12% to 88% within four widths.
    """
    values = (at, width)
    return (
        Product((*before.factors, Factor(UNTIL, values)), before.variance),
        Product((*after.factors, Factor(FROM, values)), after.variance),
    )
