"""Expressions: canonical form, text and back, the grammar, changes of units."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product as product_of

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lkm_gpflow.kernels import grammar as expressions
from lkm_gpflow.kernels.component import to_kernel
from lkm_gpflow.kernels.grammar import (
    EXTENDED_BASES,
    PAPER_BASES,
    BaseKernel,
    Factor,
    Kind,
    Product,
    base_kernel,
    expand,
    multiplied,
    parse,
    register_base,
    split,
)

TIMES = np.array([0.3, 0.5, 0.5, 1.1, 2.7, 4.0])[:, None]


def matrix(product: Product, times: np.ndarray = TIMES) -> np.ndarray:
    return to_kernel(product)(times).numpy()


def number(kind: Kind, *, moderate: bool) -> st.SearchStrategy[float]:
    largest = 1e2 if moderate else 1e300
    if kind.positive:
        return st.floats(1.0 / largest, largest)
    return st.floats(-largest, largest)


@st.composite
def factors(draw: st.DrawFn, *, names: tuple[str, ...], complete: bool) -> Factor:
    base = base_kernel(draw(st.sampled_from(names)))
    wide = [number(kind, moderate=complete) for _, kind in base.parameters]
    values = [draw(some if complete else st.none() | some) for some in wide]
    return Factor(base, tuple(values))


@st.composite
def products(draw: st.DrawFn, *, complete: bool = False) -> Product:
    """Random products, with all numbers (moderate ones) or any of them."""
    bases = PAPER_BASES if draw(st.booleans()) else ("WN", "C", "SE", "PER")
    chosen = draw(st.lists(factors(names=bases, complete=complete), min_size=1, max_size=4))
    if bases != PAPER_BASES and draw(st.booleans()):
        chosen.append(draw(factors(names=("RW", "IOU"), complete=complete)))
    variance = number(Kind.RATIO, moderate=complete)
    return Product(tuple(chosen), draw(variance if complete else st.none() | variance))


# --- canonical form ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        ("SE x PER", "PER x SE"),
        ("SE x SE", "SE"),
        ("PER x PER", "PER x PER"),
        ("LIN x LIN", "LIN x LIN"),
        ("C x PER", "PER"),
        ("WN x SE", "WN"),
        ("WN x LIN x SE", "LIN x WN"),
        ("SE x RW x PER", "PER x RW x SE"),
        ("UNTIL x IOU x FROM x C", "FROM x IOU x UNTIL"),
        ("WN x FROM x SE", "FROM x WN"),
        ("2 * SE(lengthscale=3) × C", "2.0 x SE(lengthscale=3.0)"),
        ("SE x SE(lengthscale=3)", "SE(lengthscale=3.0)"),
        (
            "LIN(location=2) x LIN x LIN(location=-1)",
            "LIN(location=-1.0) x LIN(location=2.0) x LIN",
        ),
    ],
)
def test_canonical_form(given: str, canonical: str) -> None:
    assert str(parse(given)) == canonical


@pytest.mark.parametrize("text", ["RW x RW", "LIN x RW", "RW x SE x LIN", "WN x RW x LIN"])
def test_a_random_walk_moves_alone(text: str) -> None:
    with pytest.raises(ValueError, match=r"IOU can only be multiplied by stationary"):
        parse(text.replace("RW", "IOU"))
    with pytest.raises(ValueError, match=r"RW can only be multiplied by stationary.*, got .*RW"):
        parse(text)
    with pytest.raises(ValueError, match="RW can only be multiplied"):
        parse("RW") * parse(text.replace("RW", "LIN", 1))


@settings(deadline=None, max_examples=60)
@given(products(complete=True))
def test_canonical_form_changes_no_value(product: Product) -> None:
    """The one variance times all factors, also those that the canonical form merges."""
    moving = any(not factor.base.stationary for factor in product.factors)
    extra = [parse("C"), parse("SE(lengthscale=0.7)"), parse("SE(lengthscale=1.9)")]
    extra.append(parse("WN") if moving else parse("PER(period=0.8, lengthscale=1.2)"))
    whole, expected = product, matrix(product)
    for one in extra:
        whole = whole * one
        expected = expected * matrix(Product(one.factors, 1.0))
    np.testing.assert_allclose(matrix(whole), expected, rtol=1e-9, atol=1e-9 * product.variance)


# --- text ----------------------------------------------------------------------------------------


@settings(deadline=None)
@given(products())
def test_text_round_trip(product: Product) -> None:
    assert parse(str(product)) == product
    assert parse(str(product).replace(" x ", "*")) == product
    assert parse(str(product.structure)) == product.structure
    assert format(product) == str(product)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"cannot read '' in the kernel expression ''"),
        ("SE x", r"cannot read '' in the kernel expression 'SE x': expected NAME"),
        ("SExPER", "cannot read 'SExPER'"),
        ("SE + PER", r"cannot read 'SE \+ PER'"),
        ("SE(1.0)", "cannot read"),
        ("2.5", "expected at least one factor"),
        ("MATERN x SE", "expected a base kernel among WN, C, LIN, SE, PER, RW, IOU.*got 'MATERN'"),
        ("SE(period=1)", r"SE: expected hyperparameters among \['lengthscale'\], got \{'period'\}"),
        ("PER(period=1, lengthscale=long)", "expected a number for 'lengthscale'.*got 'long'"),
        ("PER(period=1, period=2)", "'period' twice"),
        ("SE(lengthscale=0)", "SE: expected a positive number as lengthscale, got 0.0"),
        ("-1 x SE", "expected a positive variance, got -1.0"),
    ],
)
def test_what_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse(text)


def test_factors_check_their_values() -> None:
    with pytest.raises(ValueError, match="PER has 2 hyperparameters, got 1 values"):
        Factor(expressions.PER, (1.0,))
    with pytest.raises(ValueError, match="at least one factor"):
        Product(())


@pytest.mark.parametrize("name", ["se", "X", "1A", "A B", ""])
def test_names_that_expressions_could_not_read_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="base kernel name of capitals and digits"):
        register_base(BaseKernel(name))


# --- what a product says -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "count"),
    [("C", 1), ("WN", 1), ("LIN", 2), ("PER x SE", 4), ("RW", 1), ("RW x SE", 2), ("IOU", 2)],
)
def test_number_of_parameters(text: str, count: int) -> None:
    assert parse(text).num_parameters == count


# --- the grammar ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("member", "bases", "derived"),
    [
        ("SE", PAPER_BASES, "C, LIN, PER, LIN x SE, PER x SE"),
        ("2 x SE(lengthscale=1)", PAPER_BASES, "C, LIN, PER, SE, LIN x SE, PER x SE"),
        ("C", PAPER_BASES, "LIN, PER, SE"),
        ("WN", PAPER_BASES, "C, LIN, PER, SE, LIN x WN"),
        (
            "PER(period=1, lengthscale=1) x SE(lengthscale=1)",
            PAPER_BASES,
            "C, LIN, PER, SE, LIN x PER, LIN x SE, PER x PER, PER x SE, "
            "LIN x PER x SE, PER x PER x SE",
        ),
        (
            "LIN(location=0)",
            EXTENDED_BASES,
            "C, IOU, LIN, PER, RW, SE, LIN x LIN, LIN x PER, LIN x SE, LIN x WN",
        ),
        ("RW", EXTENDED_BASES, "C, IOU, LIN, PER, SE, PER x RW, RW x SE, RW x WN"),
        ("RW x SE", ("LIN", "SE"), "LIN, SE, LIN x SE"),
        ("SE", ("SE", "CP"), "SE x UNTIL, UNTIL, FROM x SE, FROM"),
        ("C", ("CP",), "UNTIL, FROM"),
        ("RW", ("CP",), "RW x UNTIL, UNTIL, FROM x RW, FROM"),
        (
            "SE(lengthscale=1) x UNTIL(at=2, width=1)",
            ("PER", "CP"),
            "PER x SE x UNTIL, PER x UNTIL, PER x SE, PER, "
            "FROM x SE x UNTIL, FROM x UNTIL, FROM x SE, FROM, UNTIL, SE x UNTIL",
        ),
    ],
)
def test_expansion(member: str, bases: tuple[str, ...], derived: str) -> None:
    first, *others = expand(parse(member), bases)
    assert first == parse(member)
    assert sorted(str(one.structure) for one in others) == sorted(derived.split(", "))


def names_of(product: Product) -> tuple[str, ...]:
    return tuple(factor.base.name for factor in product.factors)


def canonical_names(names: list[str]) -> tuple[str, ...] | None:
    """The rules once more, on names alone; None for a product that is not allowed."""
    moving = [name for name in names if name in ("LIN", "RW", "IOU")]
    if len(moving) > 1 and {"RW", "IOU"} & set(moving):
        return None
    if "WN" in names:
        return tuple(sorted([*moving, "WN"]))
    rest = [name for name in names if name not in ("C", "SE")]
    rest += ["SE"] * ("SE" in names)
    return tuple(sorted(rest)) or ("C",)


# The paper's rules on expressions, apart from `expand`: a product is a tuple of names, a sum a list
# of products.


def rewrites(product: tuple[str, ...], base: str) -> Iterator[list[tuple[str, ...]]]:
    """What becomes of a product if a subexpression T of it becomes T + B, T x B or B."""
    for mask in range(1, 2 ** len(product)):
        inside = tuple(name for i, name in enumerate(product) if mask >> i & 1)
        outside = tuple(name for i, name in enumerate(product) if not mask >> i & 1)
        for replaced in ([inside, (base,)], [(*inside, base)], [(base,)]):
            yield [(*outside, *term) for term in replaced]


@pytest.mark.parametrize("count", [2, 3])
def test_expansion_is_what_the_papers_rules_give(count: int) -> None:
    """For every product of so many different base kernels of the paper, and of repeated ones."""
    products = {parse(" x ".join(names)) for names in product_of(PAPER_BASES, repeat=count)}
    assert len(products) > 5
    for member in products:
        terms = {
            canonical_names(list(term))
            for base in PAPER_BASES
            for rewritten in rewrites(names_of(member), base)
            for term in rewritten
        }
        found = {names_of(one) for one in expand(member, PAPER_BASES)}
        assert found | {("WN",)} == terms | {("WN",), names_of(member)}


@pytest.mark.parametrize(
    ("a", "b", "product"),
    [
        ("2.0 x SE(lengthscale=0.1)", "IOU", "IOU x SE"),
        ("PER", "PER", "PER x PER"),
        ("LIN", "PER x SE", "LIN x PER x SE"),
        ("SE", "PER x SE", None),
        ("C", "SE", None),
        ("RW", "LIN", None),
        ("UNTIL", "RW", "RW x UNTIL"),
        ("SE x UNTIL", "RW x UNTIL", None),
        ("RW x WN", "SE", None),
    ],
)
def test_two_members_multiplied(a: str, b: str, product: str | None) -> None:
    for one, other in ((a, b), (b, a)):
        found = multiplied(parse(one), parse(other))
        assert found == (None if product is None else parse(product))


@pytest.mark.parametrize(
    ("member", "sums"),
    [
        ("SE", []),
        ("2.0 x IOU x SE(lengthscale=0.1)", ["SE + IOU"]),
        ("PER x PER", ["PER + PER"]),
        ("LIN x PER x SE", ["LIN + PER x SE", "PER + LIN x SE", "SE + LIN x PER"]),
        ("RW x WN", ["RW"]),
    ],
)
def test_products_split(member: str, sums: list[str]) -> None:
    found = [{*terms} for terms in split(parse(member))]
    assert len(found) == len(sums)
    assert all({parse(term) for term in one.split(" + ")} in found for one in sums)


def test_expansion_keeps_the_numbers_of_kept_factors() -> None:
    found = {one.structure: one for one in expand(parse("3 x SE(lengthscale=2)"), PAPER_BASES)[1:]}
    assert found[parse("PER x SE")] == parse("PER x SE(lengthscale=2)")
    assert found[parse("SE")] == parse("SE")  # a second one, to be learnt from nothing
    assert found[parse("PER")] == parse("PER")


# --- units ---------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(products(complete=True), st.floats(0.5, 400.0), st.floats(-50.0, 50.0))
def test_the_kernel_is_the_same_in_other_units(
    product: Product, time_scale: float, time_shift: float
) -> None:
    expected = matrix(product)
    found = matrix(product.change_units(time_scale, time_shift), time_shift + time_scale * TIMES)
    # Adding the shift rounds the times, which short periods magnify.
    np.testing.assert_allclose(found, expected, atol=1e-7 * np.abs(expected).max())
