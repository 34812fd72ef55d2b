import pytest

from headgate.common.plugins.expressions import parse_expressions
from headgate.gateway.plugins.interface import Response
from headgate.gateway.plugins.interface.errors import PluginRefused
from headgate.gateway.plugins.kit.conditions import compile_expressions
from unit.gateway.plugins.running import chain, request

ASKED = request("/p?n=18&e=", [("X-Name", "Jack"), ("Accept", "a, b"), ("Cookie", "s=1; t=2")])


def holds(*expressions) -> bool:
    takes = compile_expressions(expressions)
    assert takes is not None
    return takes(ASKED, Response(404))


@pytest.mark.parametrize(
    "expression",
    [
        ["arg_n", "==", "18"],
        ["arg_n", "==", 18],
        ["arg_n", ">", 17],
        ["arg_n", ">=", "18"],
        ["arg_n", "<", 19.5],
        ["arg_n", "<=", 18],
        ["arg_none", "~=", "x"],
        ["arg_none", "!", "in", ["x"]],
        ["http_x_name", "~~", "^J"],
        ["http_x_name", "~*", "^j"],
        ["http_x_name", "in", ["Jill", "Jack"]],
        ["http_accept", "has", "b"],
        ["cookie_t", "==", "2"],
        ["remote_addr", "ipmatch", ["192.0.2.0/24", "::1"]],
        ["status", "==", 404],
        ["OR", ["arg_n", "==", "1"], ["arg_n", "==", "18"]],
        ["!OR", ["arg_n", "==", "1"], ["arg_n", "==", "2"]],
        ["!AND", ["arg_n", "==", "18"], ["arg_n", "==", "2"]],
    ],
)
def test_condition_holds(expression) -> None:
    assert holds(expression)


@pytest.mark.parametrize(
    "expression",
    [
        ["arg_none", "==", "x"],
        ["arg_none", "<", 1],
        ["http_x_name", "<", 1],
        ["http_x_name", "~~", "^j"],
        ["http_x_name", "!", "~~", "^J"],
        ["http_accept", "has", "c"],
        ["remote_addr", "ipmatch", "10.0.0.0/8"],
        ["AND", ["arg_n", "==", "18"], ["arg_n", "==", "1"]],
    ],
)
def test_condition_does_not_hold(expression) -> None:
    assert not holds(expression)


def test_all_of_several_have_to_hold() -> None:
    assert holds(["arg_n", "==", "18"], ["status", "==", 404])
    assert not holds(["arg_n", "==", "18"], ["status", "==", 200])


@pytest.mark.parametrize(
    "expression",
    ["x", [], ["a", "=="], ["a", "??", "b"], ["a", "in", "b"], ["a", "~~", "("], ["a", ">", "x"], [1, "==", 2]],
)
def test_what_is_no_condition_is_refused(expression) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        compile_expressions((expression,))


@pytest.mark.parametrize("name", ["post_arg.a[?(@.b)]", "post_arg.a..b", "post_arg.a*"])
def test_a_path_that_is_more_than_names_and_indexes_is_refused(name) -> None:
    with pytest.raises(ValueError, match="must be a path of names and indexes"):
        compile_expressions(([name, "==", "1"],))


def test_fields_of_the_body_are_read_again_when_a_plugin_has_replaced_it() -> None:
    asked = request("/", [("Content-Type", "application/json")], method="POST", body=b'{"a": 1}')
    takes = compile_expressions((["post_arg.a", "==", "1"],))
    assert takes is not None
    assert [takes(asked, None), takes(asked, None)] == [True, True]
    asked.replace_body(b'{"a": 2}')
    assert not takes(asked, None)


def test_where_no_body_is_waited_for_its_fields_are_refused() -> None:
    with pytest.raises(PluginRefused, match=r"vars: fields of the body \(post_arg\) are not looked at here"):
        chain(("response-rewrite", {"status_code": 200, "vars": [["post_arg.a", "==", "1"]]}))


def test_a_second_content_type_hides_no_fields() -> None:
    types = [("Content-Type", "text/plain"), ("Content-Type", "application/json")]
    takes = compile_expressions((["post_arg.a", "==", "1"],))
    assert takes is not None
    assert takes(request("/", types, method="POST", body=b'{"a": 1}'), None)


def nested(depth: int) -> list:
    conditions: list = ["arg_a", "==", "b"]
    for _ in range(depth):
        conditions = ["OR", conditions]
    return conditions


@pytest.mark.parametrize(
    ("conditions", "words"),
    [
        ([["arg_a", "==", "b"]] * 1001, "must have at most 1000 comparisons"),
        ([["remote_addr", "ipmatch", ["10.0.0.0/8"] * 90_000], *[["arg_a", "==", "b"]] * 200], "at most 1000"),
        (nested(33), "must be nested at most 32 deep"),
    ],
)
def test_conditions_are_bounded(conditions, words) -> None:
    with pytest.raises(ValueError, match=words):
        parse_expressions(tuple(conditions))


def test_conditions_within_the_bounds_are_taken() -> None:
    assert parse_expressions(tuple(nested(30))) is not None
    assert parse_expressions(tuple([["arg_a", "==", "b"]] * 1000)) is not None
