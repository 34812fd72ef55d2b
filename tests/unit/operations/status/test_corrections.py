"""What would probably be right in the place of something wrong."""

import pytest

from headgate.common.problems import Problem
from headgate.operations.status.corrections import Correction, correct


@pytest.mark.parametrize(
    ("value", "message", "expected"),
    [
        ("Prefx", "must be one of Exact, Prefix, ImplementationSpecific", "Prefix"),
        ("HTPS", "must be one of HTTP, HTTPS, GRPC; it is ignored", "HTTPS"),
        ("fa1se", 'must be "true" or "false"; it is ignored', "false"),
        ("wr", "must be '', 'wrr', 'p2c' or 'RoundRobin', but is \"wr\"", "wrr"),
        ("wbe", "there is no such entry point; there are web, websecure", "web"),
        ("get", "must be one of GET, POST", "GET"),
        ("api", "must start with '/', such as '/api'", "/api"),
        ("nothing like it", "must be one of Exact, Prefix", None),
        ("10 megs", "must be a size such as 8m, 512k or 0; it is ignored", None),
        ("***", "must be one of **, *", None),
        ("", "must be one of a, b", None),
        ("x" * 101, "must be one of x, y", None),
        (None, "must be given", None),
        ("Prefix", "must be one of Exact, Prefix", None),
    ],
)
def test_of_what_a_problem_offers_the_nearest_is_chosen(value: str | None, message: str, expected: str | None) -> None:
    found = correct(Problem(reason="Invalid", value=value, message=message))
    assert found == (Correction(expected, is_name=False) if expected is not None else None)


@pytest.mark.parametrize(
    "message",
    [
        "there is no such field, so it is ignored; did you mean number?",
        "there is no field num8er; the nearest is number; x",
    ],
)
@pytest.mark.parametrize("field", ["spec.port.num8er", "num8er", "metadata.annotations[num8er]"])
def test_a_name_is_corrected_as_the_problem_says(message: str, field: str) -> None:
    problem = Problem(reason="Unknown", field=field, value="80", message=message)
    assert correct(problem) == Correction("number", is_name=True)


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("spec.plugins[0].name", "key-auht", Correction("key-auth", is_name=False)),
        ("spec.plugins[0].name", None, None),
        ("metadata.annotations[headgate.dev/plugins]", '[{"name": "key-auht", "config": {}}]', None),
    ],
)
def test_a_name_within_a_value_is_not_taken_for_the_fields(
    field: str, value: str | None, expected: Correction | None
) -> None:
    message = "there is no plugin of this name; the nearest is key-auth; requests are refused"
    assert correct(Problem(reason="UnknownPlugin", field=field, value=value, message=message)) == expected


@pytest.mark.parametrize(
    ("host", "expected"),
    [("Shop.Example.com", "shop.example.com"), ("*.A.example", "*.a.example"), ("a_b.example", None), ("A b", None)],
)
def test_a_host_is_written_in_lower_case(host: str, expected: str | None) -> None:
    found = correct(Problem(reason="InvalidHost", value=host, message="a DNS name in lower case"))
    assert (found and found.text) == expected
