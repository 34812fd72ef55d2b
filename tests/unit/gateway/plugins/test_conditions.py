import pytest

from headgate.gateway.plugins.conditions import compile_expressions
from headgate.gateway.plugins.interface import Response
from unit.gateway.plugins.running import request

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
