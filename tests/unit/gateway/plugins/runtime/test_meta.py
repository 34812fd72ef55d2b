"""What every plugin can be told under `_meta`."""

import json

import pytest

from headgate.common.plugins.checking import check_use
from headgate.common.plugins.errors import PluginFault
from headgate.common.table import PluginUse
from headgate.gateway.plugins.interface import PluginServices
from headgate.gateway.plugins.interface.errors import PluginRefused
from unit.gateway.plugins.running import REGISTRY, asked, chain, exchanged, request, unsealed


def refusing(**meta):
    return ("ip-restriction", {"whitelist": ["10.0.0.1"], "_meta": meta})


async def test_plugin_that_is_disabled_is_not_run() -> None:
    plugins = chain(refusing(disable=True), ("echo", {"after_body": "!"}))
    assert plugins.names == ("echo",)


def test_route_whose_plugins_have_nothing_to_do_has_no_chain() -> None:
    uses = [PluginUse(name="prometheus"), PluginUse(name="cors", config={"_meta": {"disable": True}})]
    assert REGISTRY.chain(uses, PluginServices(), unsealed) is None


async def test_priority_is_another_order() -> None:
    late = ("ip-restriction", {"whitelist": ["10.0.0.1"], "_meta": {"priority": 1}})
    assert chain(late, ("uri-blocker", {"block_rules": ["x"]})).names == ("uri-blocker", "ip-restriction")


async def test_filter_says_for_which_requests_the_plugin_is() -> None:
    plugins = chain(refusing(filter=[["arg_a", "==", "1"]]))
    assert await asked(plugins, request("/?a=2")) is None
    refused = await asked(plugins, request("/?a=1"))
    assert refused is not None
    assert refused.status == 403


async def test_filter_is_decided_before_the_plugin_changes_anything() -> None:
    rewrite = {"uri": "/new", "_meta": {"filter": [["uri", "==", "/old"]]}}
    echo = {"after_body": "!", "_meta": {"filter": [["uri", "==", "/new"]]}}
    given = request("/old")
    response = await exchanged(chain(("proxy-rewrite", rewrite), ("echo", echo)), given)
    assert given.path == "/new"
    assert response.body == b"fine!"


@pytest.mark.parametrize(
    ("told", "body", "kind"),
    [("no", b"no", "text/plain; charset=utf-8"), ({"a": 1}, b'{"a": 1}\n', "application/json; charset=utf-8")],
)
async def test_refusals_may_have_another_body(told, body, kind) -> None:
    response = await asked(chain(refusing(error_response=told)), request())
    assert response is not None
    assert (response.status, response.body, response.headers.get("Content-Type")) == (403, body, kind)


async def test_refusals_of_plugins_that_wait_may_too() -> None:
    schema = {"body_schema": {"type": "object"}, "_meta": {"error_response": "no"}}
    plugins = chain(("request-validation", schema))
    response = await asked(plugins, request(method="POST", body=b"1", content_length=1))
    assert response is not None
    assert response.body == b"no"
    assert await asked(plugins, request(method="POST", body=b"{}", content_length=2)) is None


async def test_answers_that_are_no_errors_stay() -> None:
    plugins = chain(("mocking", {"response_example": "a", "_meta": {"error_response": "no"}}))
    response = await asked(plugins, request())
    assert response is not None
    assert response.body == b"a"


@pytest.mark.parametrize(
    ("meta", "told"),
    [
        ({"filter": [["a", "=", "b"]]}, r"plugin cors, config\._meta\.filter: there is no operator '='"),
        ({"disabled": True}, r"config\._meta\.disabled: there is no such field; the nearest is disable"),
        ({"priority": "high"}, r"config\._meta\.priority"),
        ({"pre_function": "return function() end"}, "Lua is not run"),
        ([], r"config\._meta"),
    ],
)
def test_bad_meta_is_refused_where_it_was_written_and_by_gateways(meta, told) -> None:
    use = PluginUse(name="cors", config={"_meta": meta})
    with pytest.raises(PluginFault, match=told):
        check_use(use)
    with pytest.raises(PluginRefused, match=told):
        REGISTRY.make(use, PluginServices(), unsealed)


def test_meta_of_a_third_partys_plugin_is_checked_too() -> None:
    with pytest.raises(PluginFault, match="_meta"):
        check_use(PluginUse(name="mine", config={"_meta": json.loads("3")}), ["mine"])
