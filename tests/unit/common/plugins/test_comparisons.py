"""Conditions in which functions are compared with values."""

import pytest

from headgate.common.plugins.comparisons import BadComparison, Call, Function, Value, read_condition

FUNCTIONS = {
    "Ratio": Function(2, float),
    "Count": Function(0, int),
    "Is": Function(0, bool),
    "Method": Function(0, str),
}


def given(call: Call) -> Value:
    found: dict[str, Value] = {"Count": 3, "Is": True, "Method": "GET"}
    return sum(call.arguments) if call.name == "Ratio" else found[call.name]


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("Count() == 3", True),
        ("Count() != 3", False),
        ("Count() < 3 || Count() >= 3", True),
        ("Count() <= 2", False),
        ("Count() > 2 && Is()", True),
        ("Is()", True),
        ('Method() == "GET"', True),
        ("Method() != `GET`", False),
        ("Ratio(0.25, .5) > 0.7", True),
        (" ( Ratio( 1 , 2 )==3.0 ) ", True),
        ("Is() || Is() && Count() > 9", True),
        ("(Is() || Is()) && Count() > 9", False),
    ],
)
def test_a_condition_is_read_as_go_reads_it(text: str, holds: bool) -> None:
    assert read_condition(text, FUNCTIONS).holds(given) is holds


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected one of Count(), Is(), Method(), Ratio(), at column 1"),
        ("Other() > 1", "expected one of"),
        ("Count() > ", "is compared with a number, at column 10"),
        ("Count() > 1.5", "with a whole number"),
        ("Ratio(1, 2) > 1", "a number that has a point, such as 1.0"),
        ("Ratio(1) > 1.0", "takes 2 numbers, not 1"),
        ("Count()", "expected a comparison"),
        ("Is() == 1", "is true or false"),
        ('Method() < "A"', "by == and != only"),
        ("Method() == 1", "is compared with a text"),
        ("Is() & Is()", "has no meaning here"),
        ("Is() Is()", "expected &&, || or the end"),
        ("(Is()", "expected )"),
        ("Count() > 1 > 0", "expected &&"),
        ("(" * 40 + "Is()" + ")" * 40, "more than 32 parentheses"),
        (" " * 5000, "more than 4096"),
    ],
)
def test_a_mistake_is_named_with_its_column(text: str, said: str) -> None:
    with pytest.raises(BadComparison) as raised:
        read_condition(text, FUNCTIONS)
    assert said in str(raised.value)


def test_all_comparisons_can_be_looked_at() -> None:
    found = read_condition("Is() && (Count() > 1 || Ratio(1, 2) < 0.5)", FUNCTIONS).comparisons()
    assert [each.call.name for each in found] == ["Is", "Count", "Ratio"]
