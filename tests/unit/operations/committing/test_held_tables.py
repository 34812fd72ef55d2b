"""Tables that are held: routes and policies as they were, endpoints of today."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headgate.common.table import (
    Balancing,
    Challenge,
    Endpoint,
    HostKey,
    Listener,
    Provenance,
    TableEntry,
    Upstream,
    VirtualHost,
    entry_kind,
)
from headgate.common.table.upstream_key import UpstreamKey
from headgate.common.table_image import TableImage, encode_entry
from headgate.operations.committing.held_table import HeldTable, with_endpoints_of

FROM = Provenance(cluster="a", kind="Service", namespace="default", name="web")
WEB = UpstreamKey("a", "default", "web", port=80)
WEB_KEY = "a/default/web:80"
REFUSED = "Service default/web refuses requests: its annotation headgate.dev/backend-tls-verify cannot be followed"


def upstream(*addresses: str, key: str = WEB_KEY, **fields: Any) -> Upstream:
    endpoints = tuple(Endpoint(address=address, port=80) for address in addresses)
    return Upstream(key=key, endpoints=endpoints, provenance=FROM, **fields)


ADDRESSES = st.lists(st.ip_addresses(v=4).map(str), max_size=3)
UPSTREAMS = st.builds(
    lambda addresses, fields: upstream(*addresses, **fields),
    ADDRESSES,
    st.fixed_dictionaries(
        {},
        optional={
            "unavailable": st.sampled_from(["no endpoints", 'with "quotes" and ü']),
            "host": st.text(max_size=5),
            "max_idle": st.integers(0, 9),
            "balancing": st.just(Balancing.model_validate({"policy": "random"})),
        },
    ),
)


@given(UPSTREAMS, UPSTREAMS)
def test_taking_endpoints_is_what_it_is_of_decoded_entries(held: Upstream, current: Upstream) -> None:
    taken = {"endpoints": current.endpoints, "unavailable": current.unavailable}
    expected = encode_entry(held.model_copy(update=taken))
    assert with_endpoints_of(encode_entry(held), encode_entry(current)) == expected


def table_of(*entries: Upstream) -> HeldTable:
    return HeldTable(TableImage(entries))


def shown(table: HeldTable, key: str = WEB_KEY) -> Upstream:
    return Upstream.model_validate_json(table.image.get("upstreams", key) or b"")


def test_what_the_live_table_has_not_or_refuses_comes_from_elsewhere() -> None:
    for current in (None, encode_entry(upstream(unavailable=REFUSED))):
        table = table_of(upstream("10.0.0.1"))
        table.refresh(WEB_KEY, current)
        assert table.apart == {WEB}
        assert shown(table).unavailable is None
        table.supply(WEB, encode_entry(upstream("10.0.0.2")))
        assert [endpoint.address for endpoint in shown(table).endpoints] == ["10.0.0.2"]


def test_what_the_live_table_has_again_comes_from_there() -> None:
    table = table_of(upstream("10.0.0.1"))
    table.refresh(WEB_KEY, None)
    table.refresh(WEB_KEY, encode_entry(upstream("10.0.0.3")))
    table.supply(WEB, encode_entry(upstream("10.0.0.2")))
    assert table.apart == set()
    assert [endpoint.address for endpoint in shown(table).endpoints] == ["10.0.0.3"]


def test_an_upstream_that_refuses_requests_in_the_held_table_goes_on_with_that() -> None:
    table = table_of(upstream(unavailable=REFUSED))
    table.refresh(WEB_KEY, encode_entry(upstream("10.0.0.3")))
    table.refresh(WEB_KEY, None)
    assert (shown(table).unavailable, table.apart) == (REFUSED, set())


def test_what_a_held_table_does_not_name_does_not_come_into_it() -> None:
    table = table_of()
    table.refresh(WEB_KEY, encode_entry(upstream("10.0.0.3")))
    table.supply(WEB, encode_entry(upstream("10.0.0.3")))
    assert table.image.chunks() == []


def test_upstreams_that_are_no_services_are_followed_where_the_live_table_has_them() -> None:
    key = "a/default/ServiceImport.multicluster.x-k8s.io/web"
    table = table_of(upstream("10.0.0.1", key=key))
    table.refresh(key, encode_entry(upstream("10.0.0.3", key=key)))
    assert [endpoint.address for endpoint in shown(table, key).endpoints] == ["10.0.0.3"]
    table.refresh(key, None)
    assert {str(each) for each in table.apart} == {key}


def test_entries_of_one_host_are_kept_apart() -> None:
    on = [VirtualHost(host="a.example", listeners=listeners, routes=()) for listeners in ((), ("gw/a",), ("gw/b",))]
    ports = [Listener(key=key, protocol="http", host="a.example", provenance=FROM) for key in ("gw/a", "gw/b")]
    asked = [
        Challenge(key=f"a.example/{token}", host="a.example", token=token, answer=token) for token in ("one", "two")
    ]
    entries: list[TableEntry] = [*on, *ports, *asked]
    image = HeldTable.of(TableImage(entries).chunks()).image
    assert image.chunks() == TableImage(entries).chunks()
    assert image.get(entry_kind(on[1]), str(HostKey("a.example", ("gw/a",)))) == encode_entry(on[1])


def test_a_table_for_shards_is_held_as_one() -> None:
    entries = [VirtualHost(host=host, routes=()) for host in ("a.example", "*.a.example")]
    for is_for_shards in (True, False):
        chunks = TableImage(entries, is_for_shards=is_for_shards).chunks()
        assert HeldTable.of(chunks).image.chunks() == chunks
