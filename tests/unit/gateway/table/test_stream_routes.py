"""Stream routes in the compiled table."""

from fakes.gateway.streams import backend, stream
from fakes.gateway.table import endpoint, load, new_compiler, publish, upstream
from headgate.common.table import BackendTls, WeightedUpstream
from headgate.common.table_image import TableImage
from headgate.gateway.streams.route import CompiledStream


def the_stream(compiler: object) -> CompiledStream:
    ((_, route),) = compiler.streams.compiled()
    return route


def test_an_endpoint_change_leaves_the_compiled_route_as_it_is() -> None:
    image = TableImage([stream(1), upstream("up", endpoint(1))])
    compiler = new_compiler()
    load(compiler, image)
    route = the_stream(compiler)
    image.put(upstream("up", endpoint(2)))
    manifest, chunks = publish(image, (1, 2))
    update = compiler.stage(manifest.version, manifest.chunks)
    assert not update.changes_ports
    contents = {chunk.digest: chunk.content for chunk in chunks}
    for name in update.needed:
        list(update.add(name, contents[name.digest]))
    update.commit()
    assert the_stream(compiler) is route


def test_stream_chunks_are_stored_with_the_others() -> None:
    compiler = new_compiler()
    load(compiler, TableImage([stream(1)]))
    assert [name.kind for name, _ in compiler.stored_chunks()] == ["streams"]


def test_a_split_takes_turns_by_weight_and_none_is_left_without_weights() -> None:
    split = (WeightedUpstream(upstream="a", weight=2), WeightedUpstream(upstream="b", weight=1))
    compiler = new_compiler()
    load(compiler, TableImage([stream(1).model_copy(update={"backends": split})]))
    route = the_stream(compiler)
    assert sorted(route.choose_upstream().key for _ in range(6)) == ["a"] * 4 + ["b"] * 2
    none = tuple(backend.model_copy(update={"weight": 0}) for backend in split)
    load(compiler, TableImage([stream(1).model_copy(update={"backends": none})]), (1, 2))
    assert the_stream(compiler).choose_upstream() is None


def test_how_an_upstream_is_spoken_with_follows_the_table() -> None:
    compiler = new_compiler()
    image = TableImage([stream(1), backend(1, proxy_protocol=2)])
    load(compiler, image)
    holder = the_stream(compiler).choose_upstream()
    (slot,) = holder.balancer.slots
    assert slot.key[2].proxy_protocol == 2
    image.put(backend(1))
    load(compiler, image, (1, 2))
    (slot,) = holder.balancer.slots
    assert slot.key[2].proxy_protocol == 0


def test_an_upstream_whose_tls_cannot_be_had_says_so_and_is_not_spoken_to_without() -> None:
    compiler = new_compiler()
    load(compiler, TableImage([stream(1), backend(1, protocol="tls", tls=BackendTls(verify=True, ca_pem="x"))]))
    holder = the_stream(compiler).choose_upstream()
    assert "ca_pem" in holder.unavailable
    assert not holder.balancer.slots


def test_datagrams_are_not_sent_without_the_proxy_header_that_was_asked_for() -> None:
    compiler = new_compiler()
    load(compiler, TableImage([stream(1, protocol="udp"), backend(1, protocol="udp", proxy_protocol=1)]))
    reason = the_stream(compiler).choose_upstream().unavailable
    assert reason.endswith("proxy_protocol: version 1 is for TCP; datagrams need version 2")
