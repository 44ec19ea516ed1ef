"""Words for kernels: made by hand, so that every rule speaks, and the paper's own sentences."""

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

# Kernel and timeline, and what must then be said of it.
SAID: dict[tuple[str, Timeline], tuple[str, ...]] = {
    ("1 x SE(lengthscale=500)", WEEKS): ("a very smooth function",),
    ("1 x SE(lengthscale=4.5)", DAYS): ("a rapidly varying but smooth function",),
    (SE, DAYS): ("is a smooth function",),
    (f"{LIN} x PER(period=100,lengthscale=1)", DAYS): ("varying amplitude", "amplitude changes as before"),
    ("1 x PER(period=100,lengthscale=1) x RW(start=-1)", DAYS): ("with a period of 3.3 months but rough, like a random walk.",),
    (PER, DAYS): ("with a period of 3.3 months.", "within each period has a typical lengthscale of 8 days.", "lengthscale of 8 days. Beyond", "Beyond the data it keeps repeating."),
    (f"{LIN} x LIN(location=0)", WEEKS): ("a quadratic function", "This component is a quadratic function.", "continues along its curve.", "quadratic curve"),
    (" x ".join(["1", *["LIN(location=0)"] * 3]), WEEKS): ("a cubic function",),
    (" x ".join(["1", *["LIN(location=0)"] * 4]), WEEKS): ("polynomial func",),
    (OWN, WEEKS): ("It grows ever more slowly. It levels off beyond the data.", "It levels off beyond the data.", "slowing growth", "a slowing growth"),
    ("1 x C", WEEKS): ("This component is constant.", "is constant", "it keeps its value.", "constant level"),
    (f"{OWN} x PER(period=7,lengthscale=1)", DAYS): ("It grows ever more slowly. It is multiplied by a 1-week cycle.",),
    (MAT, WEEKS): ("a function with the kernel 1 x RQ1(lengthscale=70)", "lengthscale=70).", "pattern of the kernel RQ1", "a pattern of the kernel RQ1"),
    ("1 x WN", WEEKS): ("uncorrelated noise", "it cannot be predicted."),
    ("1 x OU(lengthscale=20)", DAYS): ("is a random walk that returns to its mean: half of any deviation is gone after 2 weeks.", "walk that returns to its mean"),
    (f"{PER} x SE(lengthscale=20)", DAYS): ("would repeat itself after 3.3 months if it did not change sooner.", "so that it does not look periodic for long. Beyond the data it fades to the average after about 5.7 weeks.", "short-lived 3.3-month cycle"),
    (f"{PER} x SE(lengthscale=300)", DAYS): ("is approximately periodic with a period", "from period to period, with a typical", "the average after about 1.6 years.", "approximate 3.3-month cycle"),
    (PER, NUMBERS): ("is periodic with a period of 100.",),
    ("1 x RW(start=-7) x SE(lengthscale=50)", WEEKS): ("is a rough function, like a random walk that forgets its past within about 3.3 months.", "drifts like a random walk.", "rough changes over 7.1 weeks"),
    ("1 x SE(lengthscale=18.9)", WEEKS): ("with a typical lengthscale of 2.7 weeks",),
    ("0.0007 x RW(start=-7)", WEEKS): ("This component is a random walk. Beyond",),
    ("0.0007 x IOU(lengthscale=2,start=-7)", WEEKS): ("is a random walk with next to no",),
    ("0.0007 x IOU(lengthscale=14,start=-7)", WEEKS): ("its direction for about 2 weeks",),
    (LIN, WEEKS): ("is a linear function", "This component is a linear function. Beyond", "continues in a straight line.", "straight line"),
    ("1 x FROM(at=210,width=1) x UNTIL(at=700,width=1)", WEEKS): ("is a level of its own. It", "level from Aug 2015 until Dec 2016"),
    ("1 x FROM(at=210,width=20)", WEEKS): ("is a shift of level around Aug 2015, within 2.9 months.",),
    ("1 x UNTIL(at=210,width=1)", WEEKS): ("is a shift of level around Aug 2015. Beyond", "Beyond the data the level stays.", "shift of level around Aug 2015"),
    (f"{SE} x FROM(at=210,width=1) x UNTIL(at=700,width=1)", WEEKS): ("smooth changes over 2.3 months from Aug 2015 until Dec 2016", "It is present from about Aug 2015 until about Dec 2016. Beyond"),
    ("1 x FROM(at=210,width=1)", WEEKS): ("a shift of level around Aug 2015", "around Aug 2015. Beyond"),
    (f"{SE} x UNTIL(at=210,width=1)", WEEKS): ("smooth changes over 2.3 months until Aug 2015", "until about Aug 2015.", "Beyond the data it is no longer there."),
    (f"{SE} x FROM(at=48,width=1)", NUMBERS): ("a slow drift over 70 from 48 on",),
    (SE, WEEKS): ("smooth changes over 2.3 months", "a typical lengthscale of 2.3 months. Beyond", "it fades to the average after about 4.6 months."),
    (f"{PER} x UNTIL(at=210,width=1)", WEEKS): ("It is present until about Aug 2015. The shape",),
    ("1 x RW(start=-7) x FROM(at=210,width=1)", WEEKS): ("It is present from about Aug 2015 on. Beyond",),
    (f"{SE} x FROM(at=210,width=10) x UNTIL(at=700,width=20)", WEEKS): ("until about Dec 2016, fading in within 6.3 weeks and out within 2.9 months.",),
    (f"{SE} x FROM(at=210,width=10)", WEEKS): ("from about Aug 2015 on, fading in within 6.3 weeks.",),
    (f"{SE} x UNTIL(at=210,width=10)", WEEKS): ("until about Aug 2015, fading out within 6.3 weeks.",),
    (f"{PER} x PER(period=30,lengthscale=1)", NUMBERS): ("periodic function with a period of 30",),
    (f"{LIN} x LIN(location=1) x SE(lengthscale=50)", WEEKS): ("like a quadratic function of time",),
    ("1 x LIN(location=0) x SE(lengthscale=50)", WEEKS): ("increases linearly.",),
    ("1 x LIN(location=980) x SE(lengthscale=50)", WEEKS): ("function decreases",),
    ("1 x LIN(location=840) x SE(lengthscale=50)", WEEKS): ("linearly away from Apr 2017.",),
    ("1 x IOU(lengthscale=20,start=-7) x SE(lengthscale=50)", WEEKS): ("drifts like a random walk with momentum.",),
    (f"{PER} x OU(lengthscale=300)", DAYS): ("The amplitude of the function wanders, and returns to its mean", "keeps repeating, and fades: its size halves in 6.8 months."),
    ("1 x LIN(location=0) x WN", WEEKS): ("The standard deviation of the noise incr", "noise of changing size"),
    (f"{LIN} x SE(lengthscale=50)", WEEKS): ("The amplitude of the function",),
    ("1 x PER(period=100,lengthscale=2)", DAYS): ("period resembles a sinusoid.",),
    ("1 x PER(period=20,lengthscale=0.2)", DAYS): ("of 15 hours, which is below",),
    (f"{PER} x SE(lengthscale=2000)", DAYS): ("Its shape hardly changes",),
    (f"{PER} x SE(lengthscale=50)", DAYS): ("within less than a period",),
    ("1 x PER(period=1100,lengthscale=1)", DAYS): ("no repetition has been seen", "no repetition has been seen. If the period is right, it repeats beyond the data."),
    ("1 x PER(period=600,lengthscale=1)", DAYS): ("it was seen less than twice, and may be a single event", "a 1.6-year cycle seen less than twice"),
    ("1 x PER(period=10,lengthscale=3)", WEEKS): ("two steps of the data (1 week",),
    ("1 x SE(lengthscale=3)", WEEKS): ("below the step of the data (1 week)",),
    (f"{OWN} x UNTIL(at=210,width=1)", WEEKS): ("until about Aug 2015. Beyond the data it is no longer there.",),
    ("1 x OU(lengthscale=20) x SE(lengthscale=30)", DAYS): ("half of any deviation is gone after 12 days. Beyond the data it returns to the average.",),
    ("1 x RW(start=-7)", WEEKS): ("stays at its last value, with growing uncertainty", "random walk"),
    ("1 x IOU(lengthscale=14,start=-7)", WEEKS): ("last direction for about 2 weeks", "random walk with momentum"),
    ("1 x PER(period=12,lengthscale=1)", NUMBERS): ("a cycle of 12",),
    ("1 x PER(period=511,lengthscale=1)", WEEKS): ("a 1.4-year cycle",),
    ("1 x PER(period=490,lengthscale=1)", DAYS): ("a 1.3-year cycle",),
    (f"{OWN} x SE(lengthscale=70)", WEEKS): ("slowing growth, multiplied by smooth changes over 2.3 months",),
    (f"{LIN} x PER(period=7,lengthscale=1)", DAYS): ("1-week cycle of changing height",),
    ("1 x PER(period=7,lengthscale=1)", DAYS): ("1-week cycle", "a 1-week cycle"),
    ("1 x SE(lengthscale=257)", WEEKS): ("slow drift over 8.4 months",),
    (f"{OWN} x PER(period=7,lengthscale=1) x FROM(at=210,width=1)", DAYS): ("a slowing growth, multiplied by a 1-week cycle from Jul 2020 on",),
}  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def foreign_kernels() -> None:
    """Make base kernels known that no rule speaks of: one without words, and one with its own."""
    register_base(BaseKernel("RQ1", (("lengthscale", Kind.DURATION),)))
    words = Words(
        "a slowing growth", "It grows ever more slowly.", "It levels off beyond the data."
    )
    register_base(BaseKernel("GROW", (("rate", Kind.RATIO),)), words)


@pytest.mark.parametrize(("kernel", "timeline"), SAID)
def test_kernels_in_words(kernel: str, timeline: Timeline) -> None:
    told = describe(parse(kernel), timeline)
    for expected in SAID[kernel, timeline]:
        assert expected in (told.title, told.short) or expected in f"{told.short}. {told.text}"


def test_every_rule_speaks_of_one_of_these_kernels() -> None:
    facts = [Facts(parse(kernel), timeline) for kernel, timeline in SAID]
    for rules in RULES.values():
        applied = [[rule.applies(each) for rule in rules] for each in facts]
        assert {each.index(True) for each in applied if any(each)} == set(range(len(rules)))


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
