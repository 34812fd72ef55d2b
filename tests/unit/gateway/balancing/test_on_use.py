"""Plain upstreams have no slots before their first request, and are like all others from then on."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.gateway.requests import PLAIN
from fakes.gateway.table import compiled, endpoint, host, load, new_compiler, route, upstream
from headgate.common.errors import DecodeError
from headgate.common.table import Endpoint, Provenance, Upstream
from headgate.common.table_image import TableImage, encode_entry
from headgate.gateway.balancing.upstream import UpstreamBalancer
from headgate.gateway.model.connection import PLAIN as PLAIN_SPEC
from headgate.gateway.table.compiler import TableCompiler
from headgate.gateway.table.encoded.upstream import read_plain
from headgate.gateway.table.names import is_name

KEY = "c1/default/web:80"
HOST = host("foo.com", route("/", "prefix", KEY))


def balancer(compiler: TableCompiler) -> UpstreamBalancer:
    holder = compiler.find_endpoints(KEY)
    assert holder is not None
    return holder.balancer


def ask(compiler: TableCompiler, count: int) -> Counter[str]:
    return Counter(str(balancer(compiler).choose((), PLAIN)) for _ in range(count))


def table(*endpoints: Endpoint) -> TableImage:
    return TableImage([HOST, upstream(KEY, *endpoints)])


def test_nothing_is_made_before_the_first_request_and_all_of_it_with_that() -> None:
    compiler = compiled([HOST, upstream(KEY, endpoint(1), endpoint(2))])
    assert balancer(compiler).is_at_rest
    assert len(compiler.directory) == 0
    assert ask(compiler, 10) == {"10.0.0.1:80": 5, "10.0.0.2:80": 5}
    assert not balancer(compiler).is_at_rest
    assert len(compiler.directory) == 2


def test_another_attempt_goes_to_another_endpoint() -> None:
    compiler = compiled([HOST, upstream(KEY, endpoint(1), endpoint(2))])
    first = balancer(compiler).choose((), PLAIN)
    assert first is not None
    assert balancer(compiler).choose({first}, PLAIN) is not first


def test_endpoints_of_ipv6_are_found_by_their_last_colon() -> None:
    one = Endpoint(address="2001:db8::1", port=8080)
    compiler = compiled([HOST, upstream(KEY, one)])
    assert balancer(compiler).is_at_rest
    [slot] = balancer(compiler).slots
    assert slot.key[:2] == ("2001:db8::1", 8080)


def test_what_others_know_of_an_endpoint_counts_from_the_first_request_on() -> None:
    compiler = compiled([HOST, upstream(KEY, endpoint(1), endpoint(2))])
    known = compiler.directory.slot("10.0.0.1", 80, PLAIN_SPEC)
    known.mark(is_healthy=False)
    assert ask(compiler, 4) == {"10.0.0.2:80": 4}
    known.mark(is_healthy=True)
    assert set(ask(compiler, 4)) == {"10.0.0.1:80", "10.0.0.2:80"}


def test_without_a_healthy_endpoint_it_says_so_before_any_request() -> None:
    compiler = compiled([HOST, upstream(KEY, endpoint(1), endpoint(2))])
    slots = [compiler.directory.slot(f"10.0.0.{number}", 80, PLAIN_SPEC) for number in (1, 2)]
    for slot in slots:
        slot.mark(is_healthy=False)
    assert not balancer(compiler).has_healthy


def test_revisions_of_an_upstream_that_nobody_asks_stay_at_rest() -> None:
    compiler = new_compiler()
    for number in range(1, 4):
        load(compiler, table(*map(endpoint, range(1, number + 1))), (1, number))
        assert balancer(compiler).is_at_rest
        assert compiler.endpoint_count == number
    assert set(ask(compiler, 6)) == {"10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"}


def test_an_upstream_that_was_asked_keeps_its_slots_over_revisions() -> None:
    compiler = new_compiler()
    load(compiler, table(endpoint(1), endpoint(2)), (1, 1))
    kept = {slot.key: slot for slot in balancer(compiler).slots}
    load(compiler, table(endpoint(1), endpoint(2), endpoint(3)), (1, 2))
    assert not balancer(compiler).is_at_rest
    assert all(slot is kept.get(slot.key, slot) for slot in balancer(compiler).slots)
    assert compiler.endpoint_count == 3


def test_a_first_request_while_a_revision_is_compiled_is_not_forgotten() -> None:
    compiler = new_compiler()
    load(compiler, table(endpoint(1), endpoint(2)), (1, 1))
    before = balancer(compiler)
    chosen = []

    def request() -> None:
        chosen.append(before.slots[0])

    load(compiler, table(endpoint(1), endpoint(2), endpoint(3)), (1, 2), before_commit=request)
    assert not balancer(compiler).is_at_rest
    assert balancer(compiler).slots[0] is chosen[0]


def test_an_upstream_that_is_no_longer_plain_begins_with_all_that_it_has() -> None:
    compiler = new_compiler()
    load(compiler, table(endpoint(1), endpoint(2)), (1, 1))
    load(compiler, table(endpoint(1, weight=3), endpoint(2)), (1, 2))
    assert ask(compiler, 8) == {"10.0.0.1:80": 6, "10.0.0.2:80": 2}


def test_what_is_gone_counts_no_more() -> None:
    compiler = new_compiler()
    load(compiler, table(endpoint(1), endpoint(2)), (1, 1))
    load(compiler, TableImage([HOST]), (1, 2))
    assert compiler.endpoint_count == 0
    assert balancer(compiler).unavailable == f"{KEY} is not in the table"


@pytest.mark.parametrize(
    "item",
    [
        upstream(KEY),
        upstream(KEY, endpoint(1, weight=2)),
        upstream(KEY, endpoint(1, ready=False)),
        upstream(KEY, Endpoint(address="web.example", port=80)),
        upstream(KEY, Endpoint(address="10.0.0.1 10.0.0.2", port=80)),
        upstream(KEY, endpoint(1)).model_copy(update={"host": "other.example"}),
    ],
)
def test_whatever_is_not_plain_is_left_to_those_who_read_all_of_it(item: Upstream) -> None:
    assert read_plain(encode_entry(item)) is None


def test_all_that_a_provenance_can_say_is_plain() -> None:
    everything = Provenance(**dict.fromkeys(Provenance.model_fields, "x"))
    assert read_plain(encode_entry(upstream(KEY, endpoint(1)).model_copy(update={"provenance": everything})))


def test_what_does_not_follow_the_contract_is_refused_as_ever() -> None:
    image = TableImage([HOST])
    image.put_encoded("upstreams", KEY, b'{"key":"%b","endpoints":[{"address":"10.0.0.1","port":0}]}' % KEY.encode())
    with pytest.raises(DecodeError, match="entry of type Upstream"):
        load(new_compiler(), image, (1, 1))


addresses = st.ip_addresses().map(str)


@given(st.lists(st.tuples(addresses, st.integers(1, 65535)), min_size=1, max_size=20, unique=True))
def test_the_slots_are_those_of_the_entry_in_its_order(endpoints: list[tuple[str, int]]) -> None:
    made = [Endpoint(address=address, port=port, cluster="c1", zone="z") for address, port in endpoints]
    compiler = compiled([HOST, upstream(KEY, *made)])
    assert balancer(compiler).is_at_rest
    assert balancer(compiler).size == len(endpoints)
    assert [slot.key[:2] for slot in balancer(compiler).slots] == endpoints


@given(st.lists(st.text(alphabet="01.: a²", max_size=6), min_size=1, max_size=4))
def test_names_are_told_from_addresses_one_by_one_and_all_at_once(addresses: list[str]) -> None:
    item = upstream(KEY, *(Endpoint(address=address, port=80) for address in addresses))
    has_others = any(" " in address or is_name(address) for address in addresses)
    assert (read_plain(encode_entry(item)) is None) == has_others


def test_upstreams_that_never_came_are_named_each() -> None:
    compiler = compiled([host("a.com", route("/", "prefix", "up1")), host("b.com", route("/", "prefix", "up2"))])
    assert compiler.table is not None
    for name, key in ((b"a.com", "up1"), (b"b.com", "up2")):
        found = compiler.table.match(name, b"/", PLAIN)
        assert found is not None
        assert found.choose((), PLAIN) is None
        assert found.unavailable == f"{key} is not in the table"
        holder = compiler.find_endpoints(key)
        assert holder is not None
        assert holder.unavailable == f"{key} is not in the table"


def test_an_upstream_that_is_no_utf_8_is_refused_as_the_contract_has_it() -> None:
    raw = encode_entry(upstream(KEY, endpoint(1))).replace(b"default", b"\xff", 1)
    assert read_plain(raw) is None
    image = TableImage()
    image.put_encoded("upstreams", KEY, raw)
    with pytest.raises(DecodeError):
        load(new_compiler(), image)
