"""Names as long as Kubernetes takes them, from manifests to the wire."""

from fakes.gateway.ports import free_port
from fakes.gateway.served import asking, read_answer
from fakes.translator.applied import world
from fakes.translator.gateway_api import (
    Cluster,
    allowing,
    gateway,
    gateway_class,
    listener,
    listener_set,
    of_set,
    route,
    stream_route,
    to,
)
from headgate.translator.world.address_pool import read_pool
from headgate.translator.world.settings import TranslationSettings

POOL = TranslationSettings(gateway_addresses=read_pool(["127.10.0.0/28"]))
LONG = ".".join(["a" * 63, "b" * 63, "c" * 63, "d" * 61])


async def test_objects_and_listeners_with_names_of_253_characters_are_served() -> None:
    assert len(LONG) == 253
    port, other, tcp = free_port(), free_port(), free_port()
    gw = gateway(listener(LONG, port), listener("tcp", tcp, "TCP"), name=LONG, spec={**allowing("Same")})
    more = listener_set(listener(LONG, other), name=LONG, parent={"name": LONG})
    requests = route(
        to("one", name=LONG), name=LONG, parents=[{"name": LONG, "sectionName": LONG}, of_set(LONG, sectionName=LONG)]
    )
    stream = stream_route("TCPRoute", "one", name=LONG, parents=[{"name": LONG}])
    cluster = Cluster(gw, more, requests, stream, settings=POOL)
    assert [one["Accepted"] for one in cluster.parents(requests)] == ["True Accepted"] * 2
    address = cluster.addresses(gw)[0]
    async with world("one", settings=POOL) as made:
        made.proxy.apply(gateway_class(), gw, more, requests, stream)
        for number in (port, other, tcp):
            client = await made.proxy.proxy.connect(port=number, to=address)
            await client.send(asking("/"))
            assert (await read_answer(client)).body == b"one"
