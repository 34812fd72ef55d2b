import json

import pytest

from headgate.gateway.plugins.interface import PluginServices
from headgate.gateway.plugins.interface.errors import PluginRefused
from unit.gateway.plugins.running import Clock, asked, chain, exchanged, request

ADMIN = ["uri", "==", "/admin"]


def flow(*rules):
    return chain(("workflow", {"rules": list(rules)}), services=PluginServices(clock=Clock()))


async def test_first_case_that_holds_is_followed() -> None:
    plugins = flow(
        {"case": [ADMIN], "actions": [["return", {"code": 403}]]},
        {"case": [["uri", "~~", "^/a"]], "actions": [["return", {"code": 410}]]},
    )
    assert [(await exchanged(plugins, request(path))).status for path in ("/admin", "/a", "/b")] == [403, 410, 200]


async def test_refusal_says_that_it_is_of_the_workflow() -> None:
    response = await asked(flow({"actions": [["return", {"code": 403}]]}), request())
    assert response is not None
    assert json.loads(response.body or b"") == {"error_msg": "rejected by workflow"}


async def test_requests_of_a_case_are_counted_by_themselves() -> None:
    limit = ["limit-count", {"count": 1, "time_window": 60, "rejected_code": 429}]
    plugins = flow({"case": [ADMIN], "actions": [limit]}, {"actions": [limit]})
    paths = ("/admin", "/admin", "/other", "/other")
    responses = [await exchanged(plugins, request(path)) for path in paths]
    assert [response.status for response in responses] == [200, 429, 200, 429]
    assert responses[0].headers.get("X-RateLimit-Remaining") == "0"


async def test_requests_under_way_are_given_back() -> None:
    plugins = flow({"actions": [["limit-conn", {"conn": 1}]]})
    first = request()
    assert await asked(plugins, first) is None
    assert await asked(plugins, request()) is not None
    plugins.on_finish(first, 200, 0)
    assert await asked(plugins, request()) is None


@pytest.mark.parametrize(
    ("actions", "told"),
    [
        ([], "at least 1 item"),
        ([["return"]], r"rules\.0\.actions\.0"),
        ([["redirect", {}]], r"rules\.0\.actions\.0"),
        ([["return", {"code": 42}]], r"actions\.0\.return\.config\.code: .*but is 42"),
        ([["limit-count", {"count": 1}]], "needs either count and time_window, or rules"),
        ([["limit-count", {"count": 1, "time_window": 1, "group": "g"}]], "takes no group within a workflow"),
    ],
)
def test_bad_action_is_refused(actions, told) -> None:
    with pytest.raises(PluginRefused, match=told):
        flow({"actions": actions})
