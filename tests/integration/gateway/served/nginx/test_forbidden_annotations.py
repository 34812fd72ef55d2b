"""Annotations that an operator forbids: by words in them, by their risk, or because they are snippets.

Files there: `test/e2e/settings/badannotationvalues.go`, `server_snippet.go` and `validations/validations.go`.
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from fakes.gateway.served import HOST
from fakes.translator.applied import World, world
from fakes.translator.nginx import nginx_ingress, options
from headgate.translator.world.settings import TranslationSettings

LUA = 'default_type text/plain;\n content_by_lua_block {\n   ngx.say("Hello World")\n }'
SNIPPETS_ALLOWED = {"allow_snippet_annotations": "true", "annotations_risk_level": "Critical"}


def of_class(name: str, host: str = HOST, **annotations: str) -> Any:
    """Return an Ingress of the class of ingress-nginx."""
    return nginx_ingress(name, host=host, class_name="nginx", **annotations)


@pytest.fixture
async def one() -> AsyncIterator[World]:
    """A proxy before a Service `one`, which serves the class `nginx`."""
    async with world("one", settings=TranslationSettings(class_names=frozenset({"headgate", "nginx"}))) as made:
        yield made


# annotation-value-word-blocklist


@pytest.mark.parametrize(
    ("blocked", "snippet"),
    [
        ("something_forbidden,otherthing_forbidden,{", "\n# abc { }"),
        ("something_forbidden,otherthing_forbidden,content_by_lua_block", LUA),
        ("something_forbidden,otherthing_forbidden", "\n# something_forbidden"),
        (" something_forbidden , otherthing_forbidden ", "# otherthing_forbidden"),
    ],
)
async def test_word_that_is_blocked_drops_its_ingress_and_no_other(one: World, blocked: str, snippet: str) -> None:
    bad = nginx_ingress("bad", host="bad.example", configuration_snippet=snippet)
    good = nginx_ingress("good", host="good.example", configuration_snippet="# bla_by_lua")
    one.proxy.apply(options(annotation_value_word_blocklist=blocked, **SNIPPETS_ALLOWED), bad, good)
    assert [await one.proxy.status(host=host) for host in ("bad.example", "good.example")] == [404, 200]
    assert "which annotation-value-word-blocklist names" in one.proxy.messages(bad)


async def test_snippet_with_a_comment_alone_is_served_as_long_as_no_word_is_blocked(one: World) -> None:
    one.proxy.apply(options(**SNIPPETS_ALLOWED), nginx_ingress(configuration_snippet="\n  # bla_by_lua"))
    assert await one.proxy.status() == 200


async def test_words_are_looked_for_in_every_annotation_of_the_prefix_and_in_no_other(one: World) -> None:
    manifest = nginx_ingress(unknown_name="x load_module y")
    one.proxy.apply(options(annotation_value_word_blocklist="load_module"), manifest)
    assert await one.proxy.status() == 404
    elsewhere = nginx_ingress()
    elsewhere["metadata"]["annotations"] = {"example.com/note": "load_module"}
    one.proxy.apply(elsewhere)
    assert await one.proxy.status() == 200


async def test_list_of_words_that_changes_holds_for_ingresses_that_are_there(one: World) -> None:
    one.proxy.apply(nginx_ingress("a", host="a.example", upstream_vhost="forbidden.example"))
    assert await one.proxy.status() == 200
    one.proxy.apply(options(annotation_value_word_blocklist="forbidden"))
    one.proxy.apply(nginx_ingress("b", host="b.example", upstream_vhost="forbidden.example"))
    assert await one.proxy.status(host="b.example") == 404
    one.proxy.apply(options(annotation_value_word_blocklist="other"))
    assert [await one.proxy.status(host=f"{name}.example") for name in "ab"] == [200, 200]


# annotations-risk-level

MEDIUM = {"default_backend": "bla", "denylist_source_range": "1.1.1.1/32"}
RISKY = {"modsecurity_transaction_id": "bla123", "modsecurity_snippet": "some random stuff;"}


async def test_annotations_up_to_the_level_are_served_and_those_above_it_are_errors(one: World) -> None:
    one.proxy.apply(options(allow_snippet_annotations="true", annotations_risk_level="Medium"))
    one.proxy.apply(nginx_ingress(**MEDIUM))
    assert (await one.proxy.status(), one.proxy.errors(nginx_ingress())) == (200, [])
    risky = nginx_ingress(**MEDIUM, **RISKY)
    one.proxy.apply(risky)
    assert "InvalidAnnotation" in one.proxy.errors(risky)
    assert await one.proxy.status() == 200  # the last good version
    one.proxy.delete(risky)
    one.proxy.apply(risky)
    assert await one.proxy.status() == 404
    for risk in ("High", "Critical"):
        assert f"is of risk {risk}" in one.proxy.messages(risky)


@pytest.mark.parametrize(
    ("level", "annotation", "status"),
    [
        ("Low", {"default_backend": "bla"}, 200),
        ("Low", {"denylist_source_range": "1.1.1.1/32"}, 404),
        ("Medium", {"server_alias": "other.example"}, 404),
        ("medium", {"denylist_source_range": "1.1.1.1/32"}, 200),
        ("High", {"server_alias": "other.example"}, 200),
        ("High", {"configuration_snippet": "# nothing"}, 404),
        ("Critical", {"configuration_snippet": "# nothing"}, 200),
    ],
)
async def test_level_bounds_the_risk_of_annotations(
    one: World, level: str, annotation: dict[str, str], status: int
) -> None:
    one.proxy.apply(options(allow_snippet_annotations="true", annotations_risk_level=level))
    one.proxy.apply(nginx_ingress(**annotation))
    assert await one.proxy.status() == status


# server-snippet of the ConfigMap, and of Ingresses

OF_ALL = '\n more_set_headers "Globalfoo: Foooo";'
OF_ONE = '\n more_set_headers "Foo: Bar";\n more_set_headers "Xpto: Lalala";'


async def headers(made: World, host: str) -> tuple[int, str, str, str]:
    got = await made.proxy.get(host=host)
    return got.status, got["globalfoo"], got["foo"], got["xpto"]


async def test_snippet_of_all_servers_stands_beside_that_of_an_ingress(one: World) -> None:
    one.proxy.apply(options(server_snippet=OF_ALL, **SNIPPETS_ALLOWED))
    one.proxy.apply(of_class("plain", host="plain.example"))
    one.proxy.apply(of_class("own", host="own.example", server_snippet=OF_ONE))
    assert await headers(one, "plain.example") == (200, "Foooo", "", "")
    assert await headers(one, "own.example") == (200, "Foooo", "Bar", "Lalala")


async def test_operator_who_takes_every_risk_and_no_snippets_has_them_left_out(one: World) -> None:
    own = of_class("own", host="own.example", server_snippet=OF_ONE)
    one.proxy.apply(options(server_snippet=OF_ALL, **SNIPPETS_ALLOWED | {"allow_snippet_annotations": "false"}))
    one.proxy.apply(of_class("plain", host="plain.example"), own)
    assert await headers(one, "plain.example") == (200, "Foooo", "", "")
    assert await headers(one, "own.example") == (200, "Foooo", "", "")
    assert "allow-snippet-annotations" in one.proxy.messages(own)


async def test_ingress_that_gets_a_snippet_is_served_with_it_if_the_config_map_allows_it(one: World) -> None:
    one.proxy.apply(options(**SNIPPETS_ALLOWED), of_class("own"))
    assert await headers(one, HOST) == (200, "", "", "")
    one.proxy.apply(of_class("own", server_snippet=OF_ONE))
    assert await headers(one, HOST) == (200, "", "Bar", "Lalala")
    one.proxy.apply(of_class("own", configuration_snippet="more_set_headers 'Foo: other';"))
    assert await headers(one, HOST) == (200, "", "other", "")
