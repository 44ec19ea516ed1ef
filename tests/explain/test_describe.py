"""Words for kernels: every rule on a kernel made by hand, and the paper's own sentences."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lkm_gpflow.explain.describe import RULES, describe
from lkm_gpflow.explain.facts import Facts
from lkm_gpflow.explain.wording import Timeline
from lkm_gpflow.kernels.component import to_kernel
from lkm_gpflow.kernels.grammar import BaseKernel, Kind, Words, parse, register_base

WEEKS = Timeline(pd.Timestamp("2015-01-04"), 0.0, 7.0 * 140, 7.0)
DAYS = Timeline(pd.Timestamp("2020-01-01"), 0.0, 999.0, 1.0)
NUMBERS = Timeline(None, 0.0, 100.0, 1.0)

LIN = "1 x LIN(location=400)"
PER = "1 x PER(period=100,lengthscale=0.5)"
SE = "1 x SE(lengthscale=70)"
MAT = "1 x RQ1(lengthscale=70)"
OWN = "1 x GROW(rate=0.1)"

# For every rule (slot, its number): kernel, timeline, and what must then be said.
CASES: dict[tuple[str, int], tuple[str, Timeline, str]] = {
    ("smooth", 0): ("1 x SE(lengthscale=500)", WEEKS, "a very smooth function"),
    ("smooth", 1): ("1 x SE(lengthscale=4.5)", DAYS, "a rapidly varying but smooth function"),
    ("smooth", 2): (SE, DAYS, "is a smooth function"),
    ("varying", 0): (f"{LIN} x PER(period=100,lengthscale=1)", DAYS, "varying amplitude"),
    ("varying", 1): ("1 x PER(period=100,lengthscale=1) x RW(start=-1)", DAYS, "with a period of 3.3 months but rough, like a random walk."),
    ("varying", 2): (PER, DAYS, "with a period of 3.3 months."),
    ("polynomial", 0): (f"{LIN} x LIN(location=0)", WEEKS, "a quadratic function"),
    ("polynomial", 1): (" x ".join(["1", *["LIN(location=0)"] * 3]), WEEKS, "a cubic function"),
    ("polynomial", 2): (" x ".join(["1", *["LIN(location=0)"] * 4]), WEEKS, "polynomial func"),
    ("first", 0): (OWN, WEEKS, "It grows ever more slowly. It levels off beyond the data."),
    ("first", 1): ("1 x C", WEEKS, "This component is constant."),
    ("times", 0): (f"{OWN} x PER(period=7,lengthscale=1)", DAYS, "It grows ever more slowly. It is multiplied by a 1-week cycle."),
    ("is", 0): (MAT, WEEKS, "a function with the kernel 1 x RQ1(lengthscale=70)"),
    ("is", 1): ("1 x WN", WEEKS, "uncorrelated noise"),
    ("is", 2): ("1 x OU(lengthscale=20)", DAYS, "is a random walk that returns to its mean: half of any deviation is gone after 2 weeks."),
    ("is", 3): (f"{PER} x SE(lengthscale=20)", DAYS, "would repeat itself after 3.3 months if it did not change sooner."),
    ("is", 4): (f"{PER} x SE(lengthscale=300)", DAYS, "is approximately periodic with a period"),
    ("is", 5): (PER, NUMBERS, "is periodic with a period of 100."),
    ("is", 6): ("1 x RW(start=-7) x SE(lengthscale=50)", WEEKS, "is a rough function, like a random walk that forgets its past within about 3.3 months."),
    ("is", 7): ("1 x SE(lengthscale=18.9)", WEEKS, "with a typical lengthscale of 2.7 weeks"),
    ("is", 8): ("0.0007 x RW(start=-7)", WEEKS, "This component is a random walk. Beyond"),
    ("is", 9): ("0.0007 x IOU(lengthscale=2,start=-7)", WEEKS, "is a random walk with next to no"),
    ("is", 10): ("0.0007 x IOU(lengthscale=14,start=-7)", WEEKS, "its direction for about 2 weeks"),
    ("is", 11): (LIN, WEEKS, "is a linear function"),
    ("is", 12): (f"{LIN} x LIN(location=0)", WEEKS, "This component is a quadratic function."),
    ("is", 16): ("1 x C", WEEKS, "is constant"),
    ("is", 13): ("1 x FROM(at=210,width=1) x UNTIL(at=700,width=1)", WEEKS, "is a level of its own. It"),
    ("is", 14): ("1 x FROM(at=210,width=20)", WEEKS, "is a shift of level around Aug 2015, within 2.9 months."),
    ("is", 15): ("1 x UNTIL(at=210,width=1)", WEEKS, "is a shift of level around Aug 2015. Beyond"),
    ("during", 0): (f"{SE} x FROM(at=210,width=1) x UNTIL(at=700,width=1)", WEEKS, "smooth changes over 2.3 months from Aug 2015 until Dec 2016"),
    ("during", 1): ("1 x FROM(at=210,width=1)", WEEKS, "a shift of level around Aug 2015"),
    ("during", 2): (f"{SE} x UNTIL(at=210,width=1)", WEEKS, "smooth changes over 2.3 months until Aug 2015"),
    ("during", 3): (f"{SE} x FROM(at=48,width=1)", NUMBERS, "a slow drift over 70 from 48 on"),
    ("during", 4): (SE, WEEKS, "smooth changes over 2.3 months"),
    ("window", 0): (f"{SE} x FROM(at=210,width=1) x UNTIL(at=700,width=1)", WEEKS, "It is present from about Aug 2015 until about Dec 2016. Beyond"),
    ("window", 1): ("1 x FROM(at=210,width=1)", WEEKS, "around Aug 2015. Beyond"),
    ("window", 2): (f"{PER} x UNTIL(at=210,width=1)", WEEKS, "It is present until about Aug 2015. The shape"),
    ("window", 3): ("1 x RW(start=-7) x FROM(at=210,width=1)", WEEKS, "It is present from about Aug 2015 on. Beyond"),
    ("gradual", 0): (f"{SE} x FROM(at=210,width=10) x UNTIL(at=700,width=20)", WEEKS, "until about Dec 2016, fading in within 6.3 weeks and out within 2.9 months."),
    ("gradual", 1): (f"{SE} x FROM(at=210,width=10)", WEEKS, "from about Aug 2015 on, fading in within 6.3 weeks."),
    ("gradual", 2): (f"{SE} x UNTIL(at=210,width=10)", WEEKS, "until about Aug 2015, fading out within 6.3 weeks."),
    ("gradual", 3): (f"{SE} x UNTIL(at=210,width=1)", WEEKS, "until about Aug 2015."),
    ("modulation", 0): (
        f"{PER} x PER(period=30,lengthscale=1)", NUMBERS, "periodic function with a period of 30"
    ),
    ("amplitude", 0): (LIN, WEEKS, "This component is a linear function. Beyond"),
    ("amplitude", 1): (
        f"{LIN} x LIN(location=1) x SE(lengthscale=50)", WEEKS, "like a quadratic function of time"
    ),
    ("amplitude", 2): ("1 x LIN(location=0) x SE(lengthscale=50)", WEEKS, "increases linearly."),
    ("amplitude", 3): ("1 x LIN(location=980) x SE(lengthscale=50)", WEEKS, "function decreases"),
    ("amplitude", 4): (
        "1 x LIN(location=840) x SE(lengthscale=50)", WEEKS, "linearly away from Apr 2017."
    ),
    ("amplitude", 5): ("1 x RW(start=-7) x SE(lengthscale=50)", WEEKS, "drifts like a random walk."),
    ("amplitude", 6): (
        "1 x IOU(lengthscale=20,start=-7) x SE(lengthscale=50)", WEEKS, "drifts like a random walk with momentum."
    ),
    ("amplitude", 7): (f"{PER} x OU(lengthscale=300)", DAYS, "The amplitude of the function wanders, and returns to its mean"),
    ("what", 0): ("1 x LIN(location=0) x WN", WEEKS, "The standard deviation of the noise incr"),
    ("what", 1): (f"{LIN} x SE(lengthscale=50)", WEEKS, "The amplitude of the function"),
    ("shape", 0): (SE, WEEKS, "a typical lengthscale of 2.3 months. Beyond"),
    ("shape", 1): ("1 x PER(period=100,lengthscale=2)", DAYS, "period resembles a sinusoid."),
    ("shape", 2): ("1 x PER(period=20,lengthscale=0.2)", DAYS, "of 15 hours, which is below"),
    ("shape", 3): (PER, DAYS, "within each period has a typical lengthscale of 8 days."),
    ("change", 0): (PER, DAYS, "lengthscale of 8 days. Beyond"),
    ("change", 1): (f"{PER} x SE(lengthscale=2000)", DAYS, "Its shape hardly changes"),
    ("change", 2): (f"{PER} x SE(lengthscale=50)", DAYS, "within less than a period"),
    ("change", 3): (f"{PER} x SE(lengthscale=300)", DAYS, "from period to period, with a typical"),
    ("unseen", 0): ("1 x PER(period=1100,lengthscale=1)", DAYS, "no repetition has been seen"),
    ("unseen", 1): ("1 x PER(period=600,lengthscale=1)", DAYS, "it was seen less than twice, and may be a single event"),
    ("unseen", 2): ("1 x PER(period=10,lengthscale=3)", WEEKS, "two steps of the data (1 week"),
    ("unseen", 3): ("1 x SE(lengthscale=3)", WEEKS, "below the step of the data (1 week)"),
    ("beyond", 0): (f"{OWN} x UNTIL(at=210,width=1)", WEEKS, "until about Aug 2015. Beyond the data it is no longer there."),
    ("beyond", 1): (OWN, WEEKS, "It levels off beyond the data."),
    ("beyond", 2): (MAT, WEEKS, "lengthscale=70)."),
    ("beyond", 3): ("1 x UNTIL(at=210,width=1)", WEEKS, "Beyond the data the level stays."),
    ("beyond", 4): (f"{SE} x UNTIL(at=210,width=1)", WEEKS, "Beyond the data it is no longer there."),
    ("beyond", 5): ("1 x WN", WEEKS, "it cannot be predicted."),
    ("beyond", 6): (f"{PER} x SE(lengthscale=20)", DAYS, "so that it does not look periodic for long. Beyond the data it fades to the average after about 5.7 weeks."),
    ("beyond", 7): ("1 x PER(period=1100,lengthscale=1)", DAYS, "no repetition has been seen. If the period is right, it repeats beyond the data."),
    ("beyond", 8): (f"{PER} x OU(lengthscale=300)", DAYS, "keeps repeating, and fades: its size halves in 6.8 months."),
    ("beyond", 9): (f"{PER} x SE(lengthscale=300)", DAYS, "the average after about 1.6 years."),
    ("beyond", 10): (f"{LIN} x PER(period=100,lengthscale=1)", DAYS, "amplitude changes as before"),
    ("beyond", 11): (PER, DAYS, "Beyond the data it keeps repeating."),
    ("beyond", 12): ("1 x OU(lengthscale=20) x SE(lengthscale=30)", DAYS, "half of any deviation is gone after 12 days. Beyond the data it returns to the average."),
    ("beyond", 13): (SE, WEEKS, "it fades to the average after about 4.6 months."),
    ("beyond", 14): ("1 x RW(start=-7)", WEEKS, "stays at its last value, with growing uncertainty"),
    ("beyond", 15): ("1 x IOU(lengthscale=14,start=-7)", WEEKS, "last direction for about 2 weeks"),
    ("beyond", 16): (LIN, WEEKS, "continues in a straight line."),
    ("beyond", 17): (f"{LIN} x LIN(location=0)", WEEKS, "continues along its curve."),
    ("beyond", 18): ("1 x C", WEEKS, "it keeps its value."),
    ("cycle", 0): ("1 x PER(period=12,lengthscale=1)", NUMBERS, "a cycle of 12"),
    ("cycle", 1): ("1 x PER(period=511,lengthscale=1)", WEEKS, "a 1.4-year cycle"),
    ("seen", 0): ("1 x PER(period=600,lengthscale=1)", DAYS, "a 1.6-year cycle seen less than twice"),
    ("seen", 1): ("1 x PER(period=490,lengthscale=1)", DAYS, "a 1.3-year cycle"),
    ("title", 0): (f"{OWN} x SE(lengthscale=70)", WEEKS, "slowing growth, multiplied by smooth changes over 2.3 months"),
    ("title", 1): (OWN, WEEKS, "slowing growth"),
    ("title", 2): (MAT, WEEKS, "pattern of the kernel RQ1"),
    ("title", 3): ("1 x LIN(location=0) x WN", WEEKS, "noise of changing size"),
    ("title", 4): ("1 x WN", WEEKS, "uncorrelated noise"),
    ("title", 5): (f"{PER} x SE(lengthscale=20)", DAYS, "short-lived 3.3-month cycle"),
    ("title", 6): (f"{LIN} x PER(period=7,lengthscale=1)", DAYS, "1-week cycle of changing height"),
    ("title", 7): (f"{PER} x SE(lengthscale=300)", DAYS, "approximate 3.3-month cycle"),
    ("title", 8): ("1 x PER(period=7,lengthscale=1)", DAYS, "1-week cycle"),
    ("title", 9): ("1 x OU(lengthscale=20)", DAYS, "walk that returns to its mean"),
    ("title", 10): ("1 x RW(start=-7) x SE(lengthscale=50)", WEEKS, "rough changes over 7.1 weeks"),
    ("title", 11): (SE, WEEKS, "smooth changes over 2.3 months"),
    ("title", 12): ("1 x SE(lengthscale=257)", WEEKS, "slow drift over 8.4 months"),
    ("title", 13): ("1 x RW(start=-7)", WEEKS, "random walk"),
    ("title", 14): ("1 x IOU(lengthscale=14,start=-7)", WEEKS, "random walk with momentum"),
    ("title", 15): (LIN, WEEKS, "straight line"),
    ("title", 16): (f"{LIN} x LIN(location=0)", WEEKS, "quadratic curve"),
    ("title", 17): ("1 x FROM(at=210,width=1) x UNTIL(at=700,width=1)", WEEKS, "level from Aug 2015 until Dec 2016"),
    ("title", 18): ("1 x UNTIL(at=210,width=1)", WEEKS, "shift of level around Aug 2015"),
    ("title", 19): ("1 x C", WEEKS, "constant level"),
    ("short", 0): (f"{OWN} x PER(period=7,lengthscale=1) x FROM(at=210,width=1)", DAYS, "a slowing growth, multiplied by a 1-week cycle from Jul 2020 on"),
    ("short", 1): (OWN, WEEKS, "a slowing growth"),
    ("short", 2): (MAT, WEEKS, "a pattern of the kernel RQ1"),
    ("short", 3): (SE, WEEKS, "smooth changes over 2.3 months"),
    ("short", 4): ("1 x PER(period=7,lengthscale=1)", DAYS, "a 1-week cycle"),
}  # fmt: skip

EVERY_RULE = [(slot, i) for slot, rules in RULES.items() for i in range(len(rules))]


@pytest.fixture(autouse=True, scope="module")
def foreign_kernels() -> None:
    """Make base kernels known that no rule speaks of: one without words, and one with its own."""
    register_base(BaseKernel("RQ1", (("lengthscale", Kind.DURATION),)))
    words = Words(
        "a slowing growth", "It grows ever more slowly.", "It levels off beyond the data."
    )
    register_base(BaseKernel("GROW", (("rate", Kind.RATIO),)), words)


@pytest.mark.parametrize(("slot", "i"), EVERY_RULE)
def test_every_rule_applies_to_its_kernel_and_says_its_words(slot: str, i: int) -> None:
    kernel, timeline, expected = CASES[slot, i]
    facts = Facts(parse(kernel), timeline)
    first = next(j for j, rule in enumerate(RULES[slot]) if rule.applies(facts))
    assert first == i
    said = describe(parse(kernel), timeline)
    if slot in ("title", "short"):
        assert expected == (said.title if slot == "title" else said.short)
    else:
        assert expected in (said.short if slot in ("cycle", "during", "seen") else said.text)


def test_no_case_is_of_a_rule_that_is_gone() -> None:
    assert set(CASES) == set(EVERY_RULE)


@pytest.mark.parametrize(
    "more", ["", " x SE(lengthscale=30)", " x OU(lengthscale=7) x SE(lengthscale=3)"]
)
def test_the_half_life_halves_the_correlation(more: str) -> None:
    kernel = parse(f"1 x OU(lengthscale=20){more}")
    halfway = Facts(kernel, NUMBERS).half_life
    assert to_kernel(kernel)(np.array([[0.0], [halfway]])).numpy()[0, 1] == pytest.approx(0.5)


def test_the_papers_sentences_about_gonu() -> None:
    shared = parse("0.5 x LIN(location=840) x PER(period=511,lengthscale=0.06)")
    said = " ".join(describe(shared, WEEKS).sentences)
    assert said.startswith(
        "This component is periodic with a period of 1.4 years but with varying amplitude. "
        "The amplitude of the function increases linearly away from Apr 2017. "
        "The shape of this function within each period has a typical lengthscale of 4.9 days"
    )
    # What the paper does not say: the data come once a week.
    assert "below the step of the data (1 week)" in said
    smooth = describe(parse("0.3 x SE(lengthscale=18.9)"), WEEKS)
    assert smooth.sentences == (
        "This component is a smooth function with a typical lengthscale of 2.7 weeks.",
    )
    line = describe(parse("1 x LIN(location=0)"), WEEKS)
    assert line.sentences == ("This component is a linear function.",)


@pytest.mark.parametrize("more", [(), ("CP",)])
def test_every_kernel_of_the_grammar_is_described(more: tuple[str, ...]) -> None:
    from lkm_gpflow.kernels.grammar import EXTENDED_BASES, expand, with_values

    bases = (*EXTENDED_BASES, *more)
    seen = {parse(name) for name in EXTENDED_BASES}
    for _ in range(2):
        seen |= {each.structure for member in seen for each in expand(member, bases)}
    assert len(seen) > 30
    for structure in seen:
        count = sum(len(factor.values) for factor in structure.factors)
        said = describe(with_values(structure, 0.5, [30.0] * count), DAYS)
        assert said.short
        assert said.text.startswith("This component is ")
        assert "{" not in said.text + said.short
        assert "nan" not in said.text + said.short
        assert "  " not in said.text


def test_numbers_must_be_there() -> None:
    with pytest.raises(ValueError, match="expected a kernel with all its numbers, got SE"):
        describe(parse("SE"), WEEKS)


def test_sinusoid_means_nine_tenths_of_the_variance_in_the_first_harmonic() -> None:
    import mpmath

    def first_harmonic(lengthscale: float) -> float:
        x = 1.0 / lengthscale**2
        return float(2 * mpmath.besseli(1, x) / (mpmath.exp(x) - mpmath.besseli(0, x)))

    assert first_harmonic(1.5) == pytest.approx(0.9, abs=0.01)
