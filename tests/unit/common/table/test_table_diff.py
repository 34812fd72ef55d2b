"""What differs between two tables."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.common.sealing import ClusterValue
from headgate.common.table import (
    Backend,
    BackendGroup,
    Certificate,
    Compare,
    Consumer,
    ConsumerGroup,
    Credential,
    Endpoint,
    Listener,
    ListenerDefaults,
    PathMatch,
    PathType,
    PluginUse,
    Provenance,
    Rank,
    Route,
    Stickiness,
    StreamRoute,
    Subject,
    TableEntry,
    Timeouts,
    TlsPolicy,
    Upstream,
    VirtualHost,
    Weighted,
    WeightedUpstream,
)
from headgate.common.table_diff import FieldChange, ItemChange, TableDiff, diff_tables

WEB = Provenance(cluster="a", kind="Ingress", namespace="default", name="web", rule="spec.rules[0]")
SERVICE = Provenance(cluster="a", kind="Service", namespace="default", name="web")


def route(path: str = "/", *backends: tuple[str, int], type: PathType = PathType.PREFIX, **fields: Any) -> Route:
    fields.setdefault("name", f"web {path}")
    fields.setdefault("provenance", WEB)
    chosen = tuple(Backend(upstream=key, weight=weight) for key, weight in backends or [("web", 1)])
    return Route(path=PathMatch(type=type, value=path), backends=chosen, **fields)


def host(*routes: Route, name: str = "a.example", **fields: Any) -> VirtualHost:
    return VirtualHost(host=name, routes=routes, **fields)


def upstream(*endpoints: Endpoint, key: str = "web", **fields: Any) -> Upstream:
    return Upstream(key=key, endpoints=endpoints, provenance=SERVICE, **fields)


def endpoint(address: str, **fields: Any) -> Endpoint:
    return Endpoint(address=address, port=80, **fields)


def sealed(text: str) -> ClusterValue:
    return ClusterValue(boxes={"r": text})


def certificate(key: str = "sealed", chain: str = "chain", fingerprint: str = "f", **fields: Any) -> Certificate:
    return Certificate(
        key="a/default/tls",
        server_names=("a.example",),
        chain_pem=chain,
        private_key=sealed(key),
        fingerprint=fingerprint,
        provenance=Provenance(cluster="a", kind="Secret", namespace="default", name="tls"),
        **fields,
    )


def only(before: TableEntry | None, after: TableEntry | None, **options: Any) -> ItemChange:
    [change] = diff([before], [after], **options).changes
    return change


def diff(before: list[Any], after: list[Any], **options: Any) -> TableDiff:
    return diff_tables([one for one in before if one], [one for one in after if one], **options)


def shown(changes: TableDiff) -> list[str]:
    return [f"{change.operation} {change.kind} {change.name}" for change in changes.changes]


def test_equal_tables_do_not_differ() -> None:
    entries: list[Any] = [host(route()), upstream(endpoint("10.0.0.1")), certificate()]
    assert diff(entries, list(entries)) == TableDiff()


def test_a_new_host_comes_with_its_routes() -> None:
    found = diff([], [host(route("/"), route("/red"))])
    assert shown(found) == ["added host a.example", "added route / prefix", "added route /red prefix"]
    assert found.changes[1].within == "a.example"
    assert found.changes[1].content["backends"] == [{"upstream": "web"}]
    assert found.changes[1].source == "Ingress a/default/web"


def test_a_host_that_is_gone_takes_its_routes_with_it() -> None:
    assert shown(diff([host(route())], [])) == ["removed host a.example", "removed route / prefix"]


def test_a_weight_is_a_change_of_the_routes_backends() -> None:
    change = only(host(route("/", ("red", 9), ("blue", 1))), host(route("/", ("red", 5), ("blue", 5))))
    assert (change.kind, change.within, change.name) == ("route", "a.example", "/ prefix")
    [field] = change.fields
    assert field.field == "backends"
    assert [one["weight"] for one in field.after] == [5, 5]  # type: ignore[union-attr, index, call-overload]


def test_policies_differ_field_by_field() -> None:
    before, after = (host(route(timeouts=Timeouts(connect_s=5, read_s=read_s))) for read_s in (60, 30))
    assert only(before, after).fields == (FieldChange(field="timeouts.read_s", before=60, after=30),)


def test_a_plugins_setting_is_named_with_its_plugin() -> None:
    before, after = (host(route(plugins=(PluginUse(name="cors", config={"max_age": age}),))) for age in (1, 2))
    assert only(before, after).fields == (FieldChange(field="plugins.cors.max_age", before=1, after=2),)


def test_a_new_plugin_is_shown_whole() -> None:
    change = only(host(route()), host(route(plugins=(PluginUse(name="cors", config={"max_age": 1}, order=7),))))
    assert change.fields == (FieldChange(field="plugins.cors", after={"max_age": 1, "order": 7}),)


def test_two_uses_of_one_plugin_are_told_apart() -> None:
    uses = [PluginUse(name="headers", config={"set": value}) for value in ("a", "b", "c")]
    change = only(host(route(plugins=(uses[0], uses[1]))), host(route(plugins=(uses[0], uses[2]))))
    assert change.fields == (FieldChange(field="plugins.headers#2.set", before="b", after="c"),)


def test_a_secret_of_a_plugin_is_a_mark_and_nothing_more() -> None:
    before, after = (host(route(plugins=(PluginUse(name="auth", secrets={"key": sealed(text)}),))) for text in "ab")
    [field] = only(before, after).fields
    assert field.field == "plugins.auth.key (secret)"
    assert str(field.before).startswith("*** (")
    assert field.before != field.after
    assert not diff([before], [after], heeds_seals=False).changes


def test_a_route_is_known_by_what_it_matches() -> None:
    moved = WEB.model_copy(update={"rule": "spec.rules[7]"})
    assert not diff([host(route(name="old"))], [host(route(name="new", provenance=moved))]).changes


def test_a_route_that_goes_to_another_object_says_so() -> None:
    other = WEB.model_copy(update={"name": "other"})
    [field] = only(host(route()), host(route(provenance=other))).fields
    assert (field.field, field.before, field.after) == ("source", "Ingress a/default/web", "Ingress a/default/other")


@pytest.mark.parametrize(
    "changed",
    [
        route("/", type=PathType.EXACT),
        route("/", rank=Rank(priority=1)),
        route("/", when=Compare(subject=Subject.METHOD, values=("GET",))),
    ],
)
def test_what_a_route_matches_is_no_field_of_it(changed: Route) -> None:
    found = diff([host(route("/"))], [host(changed)])
    assert [change.operation for change in found.changes] == ["added", "removed"]


def test_the_rest_of_a_rank_is_a_field_of_the_route() -> None:
    before, after = (host(route("/", rank=Rank(priority=1, path_priority=number))) for number in (5, 6))
    change = only(before, after)
    assert change.name == "/ prefix, priority 1"
    assert change.fields == (FieldChange(field="rank.path_priority", before=5, after=6),)


def test_routes_with_equal_paths_are_told_apart_by_their_conditions() -> None:
    get, post = (Compare(subject=Subject.METHOD, values=(method,)) for method in ("GET", "POST"))
    before = host(route("/", ("a", 1), when=get), route("/", ("b", 1), when=post))
    after = host(route("/", ("a", 1), when=get), route("/", ("c", 1), when=post))
    change = only(before, after)
    assert change.when == {"subject": "method", "values": ["POST"]}
    assert change.fields[0].field == "backends"


def test_order_counts_among_routes_that_nothing_else_decides_between() -> None:
    get = Compare(subject=Subject.METHOD, values=("GET",))
    one, other = route("/", name="one"), route("/", name="other", when=get)
    change = only(host(one, other), host(other, one))
    assert (change.kind, change.fields[0].field) == ("host", "order")
    assert not diff([host(one, route("/longer"))], [host(route("/longer"), one)]).changes
    assert not diff([host(route("/a"), route("/b"))], [host(route("/b"), route("/a"))]).changes
    patterns = [route(path, type=PathType.REGEX) for path in ("/a.", "/.b")]
    assert only(host(*patterns), host(*reversed(patterns))).fields[0].after == ["/.b regex", "/a. regex"]


def test_what_becomes_of_unmatched_requests_is_a_field_of_the_host() -> None:
    change = only(host(route()), host(route(), unmatched="next-host"))
    assert change.fields == (FieldChange(field="unmatched", before="404", after="next-host"),)


def test_tls_of_a_host_is_compared_field_by_field() -> None:
    before, after = (host(tls=TlsPolicy(min_version=version)) for version in ("1.2", "1.3"))
    assert only(before, after).fields == (FieldChange(field="tls.min_version", before="1.2", after="1.3"),)
    assert only(host(), after).fields[0].before is None


def test_endpoints_come_and_go_and_change() -> None:
    before = upstream(endpoint("10.0.0.1"), endpoint("10.0.0.2"))
    after = upstream(endpoint("10.0.0.2", ready=False), endpoint("fd00::3"))
    found = diff([before], [after])
    assert shown(found) == [
        "removed endpoint 10.0.0.1:80",
        "changed endpoint 10.0.0.2:80",
        "added endpoint [fd00::3]:80",
    ]
    assert found.changes[1].fields == (FieldChange(field="ready", before=True, after=False),)
    assert {change.within for change in found.changes} == {"web"}


def test_an_upstreams_policy_is_apart_from_its_endpoints() -> None:
    found = diff([upstream(host="x")], [upstream(endpoint("10.0.0.1"), host="y")])
    assert shown(found) == ["changed upstream web", "added endpoint 10.0.0.1:80"]
    assert [field.field for field in found.changes[0].fields] == ["host"]


def test_a_new_upstream_is_one_change() -> None:
    change = only(None, upstream(endpoint("10.0.0.1"), endpoint("10.0.0.2")))
    assert (change.kind, change.operation) == ("upstream", "added")
    assert len(change.content["endpoints"]) == 2  # type: ignore[arg-type]


def test_a_renewed_certificate_shows_its_fingerprint_and_neither_chain_nor_key() -> None:
    change = only(certificate(not_after="2026"), certificate("new", "new chain", "g", not_after="2027"))
    assert [field.field for field in change.fields] == ["chain_pem", "private_key", "fingerprint", "not_after"]
    assert "new chain" not in change.model_dump_json()
    assert "sealed" not in change.model_dump_json()


def test_streams_are_compared_too() -> None:
    def stream(**fields: Any) -> StreamRoute:
        return StreamRoute(
            key="tcp/9000", port=9000, backends=(WeightedUpstream(upstream="db"),), provenance=WEB, **fields
        )

    assert only(stream(), stream(max_connections=3)).fields == (FieldChange(field="max_connections", after=3),)
    assert only(stream(), None).operation == "removed"


def test_changes_are_counted_by_kind_and_operation() -> None:
    found = diff([upstream(endpoint("10.0.0.1"))], [upstream(endpoint("10.0.0.2")), host(route())])
    assert found.counts == {"host": {"added": 1}, "route": {"added": 1}, "endpoint": {"added": 1, "removed": 1}}


ROUTES = st.lists(st.tuples(st.sampled_from(["/", "/a", "/b"]), st.integers(1, 2), st.booleans()), max_size=6)


@given(ROUTES, ROUTES)
def test_there_is_a_difference_in_one_direction_as_in_the_other(one: list[Any], other: list[Any]) -> None:
    tables = [
        [
            host(
                *(
                    route(path, ("web", weight), name=f"{at}", retries={"attempts": int(on)})
                    for at, (path, weight, on) in enumerate(items)
                )
            )
        ]
        for items in (one, other)
    ]
    there, back = diff(tables[0], tables[1]), diff(tables[1], tables[0])
    turned = {"added": "removed", "removed": "added", "changed": "changed"}
    assert sorted((turned[change.operation], change.name) for change in there.changes) == sorted(
        (change.operation.value, change.name) for change in back.changes
    )
    assert not diff(tables[0], list(tables[0])).changes


JACK = Provenance(cluster="a", kind="ApisixConsumer", namespace="shop", name="jack")


def consumer(*credentials: PluginUse, **fields: Any) -> Consumer:
    held = tuple(Credential(use=use) for use in credentials)
    return Consumer(key="a/shop/jack", name="shop_jack", credentials=held, provenance=JACK, **fields)


def key_auth(key: str) -> PluginUse:
    return PluginUse(name="key-auth", config={"key": key})


def test_a_consumer_comes_with_its_name_and_without_its_keys() -> None:
    change = only(None, consumer(key_auth("sesame"), group="gold"))
    assert (change.kind, change.name, change.source) == ("consumer", "shop_jack", "ApisixConsumer a/shop/jack")
    assert change.content["group"] == "gold"
    assert "key-auth" in str(change.content)
    assert "sesame" not in change.model_dump_json()


def test_another_key_of_a_consumer_is_a_change_that_shows_neither() -> None:
    change = only(consumer(key_auth("sesame")), consumer(key_auth("open")))
    [field] = change.fields
    assert field.field == "credentials.key-auth.key"
    assert str(field.before).startswith("*** (")
    assert field.before != field.after


def test_another_sealed_key_of_a_consumer_is_a_change() -> None:
    before, after = (consumer(PluginUse(name="key-auth", secrets={"key": sealed(text)})) for text in "ab")
    assert [field.field for field in only(before, after).fields] == ["credentials.key-auth.key (secret)"]


def test_plugins_of_consumers_and_groups_differ_field_by_field() -> None:
    uses = [(PluginUse(name="limit-count", config={"count": count, "time_window": 60}),) for count in (1, 2)]
    expected = (FieldChange(field="plugins.limit-count.count", before=1, after=2),)
    assert only(*(consumer(plugins=use) for use in uses)).fields == expected
    groups = [ConsumerGroup(key="a/shop/gold", name="gold", plugins=use, provenance=JACK) for use in uses]
    change = only(*groups)
    assert (change.kind, change.name, change.fields) == ("consumer group", "gold", expected)


def test_a_password_in_a_routes_plugin_is_not_shown() -> None:
    config = {"users": [{"username": "jack", "password": "sesame"}]}
    change = only(host(route()), host(route(plugins=(PluginUse(name="basic-auth", config=config),))))
    assert "jack" in change.model_dump_json()
    assert "sesame" not in change.model_dump_json()


def listener(**fields: Any) -> Listener:
    return Listener.model_validate({"key": "gw/web", "port": 8000, "protocol": "http", "provenance": WEB, **fields})


def test_listeners_differ_field_by_field() -> None:
    secret = PluginUse(name="basic-auth", config={"password": "hunter2"})
    change = only(listener(), listener(host="*.example", defaults=ListenerDefaults(plugins=(secret,))))
    assert (change.kind, change.name, change.operation) == ("listener", "gw/web", "changed")
    assert FieldChange(field="host", before="*", after="*.example") in change.fields
    assert "defaults.plugins" in {field.field for field in change.fields}
    assert "hunter2" not in change.model_dump_json()
    assert shown(diff([listener()], [])) == ["removed listener gw/web"]


def test_one_host_on_other_listeners_is_another_host() -> None:
    found = diff([host(route())], [host(route()), host(route("/b"), listeners=("gw/web",))])
    assert shown(found) == ["added host a.example@gw/web", "added route /b prefix"]
    assert found.changes[1].within == "a.example@gw/web"


def test_what_a_backend_has_of_its_own_is_compared_without_its_secrets() -> None:
    def routed(key: str) -> VirtualHost:
        use = PluginUse(name="key-auth", config={"key": key})
        backend = Backend(upstream="web", plugins=(PluginUse(name="cors"), use))
        return VirtualHost(host="a.com", routes=(route("/").model_copy(update={"backends": (backend,)}),))

    change = only(routed("hidden-one"), routed("hidden-two"))
    assert [field.field for field in change.fields] == ["backends"]
    assert "hidden" not in change.model_dump_json()


def test_groups_of_backends_are_compared_field_by_field() -> None:
    def grouped(weight: int, **fields: Any) -> BackendGroup:
        backends = (Backend(upstream="web", weight=weight),)
        return BackendGroup(key="g", weighted=Weighted(backends=backends), provenance=WEB, **fields)

    change = only(grouped(1), grouped(2, stickiness=Stickiness(cookie="S")))
    assert (change.kind, change.name) == ("backend group", "g")
    assert [field.field for field in change.fields] == ["weighted.backends", "stickiness"]
