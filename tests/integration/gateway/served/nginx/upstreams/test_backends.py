"""Backends that are there, are missing or are no Services (`test/e2e/servicebackend/*.go`, `endpointslices/*.go`)."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from fakes.peers.name_server import NameServer
from fakes.translator.applied import World, world
from fakes.translator.deltas import endpoint_slice, service, service_export
from fakes.translator.nginx import ADOPTED, NGINX_CLASS, classed, headers, options
from fakes.waiting import until
from headgate.gateway.health.resolve import SystemDns

ANYTHING = {"resource": {"apiGroup": "otherobj.example.com", "kind": "Anything", "name": "mytest"}}


@pytest.fixture
async def one() -> AsyncIterator[World]:
    """A proxy before a Service `one`, which has adopted the class of ingress-nginx."""
    async with world("one", settings=ADOPTED) as made:
        made.proxy.apply(NGINX_CLASS)
        yield made


def to_anything(path: str = "/") -> Any:
    made = classed("anything", host="nil.example", path=path)
    made["spec"]["rules"][0]["http"]["paths"][0]["backend"] = ANYTHING
    return made


async def test_a_backend_that_is_no_service_is_a_404_and_named(one: World) -> None:
    manifest = to_anything()
    one.proxy.apply(manifest)
    one.proxy.apply(classed("valid", host="valid.example"), classed("all", host=""))
    assert await one.proxy.status(host="valid.example") == 200
    assert [await one.proxy.status(path, host="nil.example") for path in ("/", "/any")] == [404, 404]
    assert "Anything default/mytest cannot be a backend" in one.proxy.messages(manifest)


async def test_a_path_to_no_service_is_left_to_the_paths_around_it(one: World) -> None:
    one.proxy.apply(to_anything("/sub"), classed("around", host="nil.example"))
    assert await one.proxy.bodies(1, "/sub/x", host="nil.example") == ["one"]


async def test_a_default_backend_that_is_no_service_is_a_404(one: World) -> None:
    spec = {"defaultBackend": ANYTHING, "rules": [{"host": "nil.example"}]}
    one.proxy.apply(classed(spec=spec), classed("all", host=""))
    assert await one.proxy.status(host="nil.example") == 404


async def test_a_service_that_is_missing_is_a_503_until_it_is_there(one: World) -> None:
    one.proxy.apply(classed(to="later"))
    assert await one.proxy.status() == 503
    one.proxy.apply(service("later"), endpoint_slice("later", "127.0.0.1", port=one.port("one")))
    assert await one.proxy.bodies(1) == ["one"]


async def test_a_service_without_ready_endpoints_is_a_503(one: World) -> None:
    one.proxy.apply(service("unavailable", selector={"app": "unavailable"}), classed(to="unavailable"))
    assert await one.proxy.status() == 503
    at_one = {"port": one.port("one")}
    one.proxy.apply(endpoint_slice("unavailable", "127.0.0.1", ready=False, **at_one))
    assert await one.proxy.status() == 503
    one.proxy.apply(endpoint_slice("unavailable", "127.0.0.1", **at_one))
    assert await one.proxy.bodies(1) == ["one"]


async def test_a_name_of_63_characters(one: World) -> None:
    name = "long-name-foobar-foobar-foobar-foobar-foobar-bar-foo-bar-foobuz"
    one.proxy.apply(service(name), endpoint_slice(name, "127.0.0.1", port=one.port("one")), classed(to=name))
    assert await one.proxy.bodies(1) == ["one"]


async def test_endpoints_with_hints_for_zones_are_all_served() -> None:
    async with world("east", "west", settings=ADOPTED) as made:
        slices = [endpoint_slice("both", "127.0.0.1", name=zone, port=made.port(zone)) for zone in ("east", "west")]
        for each in slices:
            each["endpoints"][0] |= {"zone": each["metadata"]["name"], "hints": {"forZones": [{"name": "east"}]}}
        made.proxy.apply(NGINX_CLASS, service("both"), *slices, classed(to="both"))
        assert set(await made.proxy.bodies(6)) == {"east", "west"}


# Services of type ExternalName


class Named:
    """Names that a name server knows, and a Service that is one of them."""

    def __init__(self, made: World, names: NameServer) -> None:
        self.made, self.names = made, names

    def external(self, name: str, **more: Any) -> Any:
        made = service("ext", port=80, type="ExternalName", externalName=name)
        made["spec"]["ports"] = more.get("ports", [])
        return made

    def port(self, name: str = "one", label: str = "echo") -> dict[str, Any]:
        return {"name": label, "port": 80, "targetPort": self.made.port(name), "protocol": "TCP"}

    async def reaches(self, body: str) -> None:
        async def is_there() -> bool:
            return (await self.made.proxy.get("/get")).body.decode() == body

        await until(is_there, within_s=5)


@pytest.fixture
async def named() -> AsyncIterator[Named]:
    """A proxy before Services `one` and `two`, whose addresses have names."""
    records = {(f"{name}.example.", "A"): (60, ["127.0.0.1"]) for name in ("one", "two")}
    records[("one.", "A")] = (60, ["127.0.0.1"])
    async with (
        NameServer(records) as names,
        world("one", "two", settings=ADOPTED, query=SystemDns(names.resolver())) as made,
    ):
        made.proxy.apply(NGINX_CLASS)
        yield Named(made, names)


@pytest.mark.parametrize("name", ["one", "one.example", "one.example.", "ONE.example"])
async def test_an_external_name_without_ports_has_the_port_that_is_asked_for(named: Named, name: str) -> None:
    port = named.made.port("one")
    named.made.proxy.apply(named.external(name), classed(to="ext", port=port, upstream_vhost="one.example"))
    await named.reaches("one")
    assert headers(named.made)["host"] == "one.example"


@pytest.mark.parametrize("port", [80, "echo"])
async def test_an_external_name_with_a_port_has_its_target(named: Named, port: int | str) -> None:
    named.made.proxy.apply(named.external("one.example", ports=[named.port()]), classed(to="ext", port=port))
    await named.reaches("one")
    assert headers(named.made)["x-forwarded-host"] == "a.example"


async def test_an_external_name_that_nobody_knows_is_an_error(named: Named) -> None:
    named.made.proxy.apply(named.external("invalid.hostname"), classed(to="ext"))
    await until(lambda: bool(named.names.asked))
    assert await named.made.proxy.status("/get") in (502, 503)


async def test_an_external_name_that_changes_is_followed(named: Named) -> None:
    named.made.proxy.apply(
        named.external("one.example", ports=[named.port()]),
        classed(to="ext", port="echo", upstream_vhost="one.example"),
    )
    await named.reaches("one")
    named.made.proxy.apply(named.external("two.example", ports=[named.port("two")]))
    await named.reaches("two")
    assert headers(named.made, "two")["x-forwarded-host"] == "a.example"


async def test_an_external_name_comes_and_goes_behind_its_ingress(named: Named) -> None:
    there = named.external("one.example", ports=[named.port()])
    named.made.proxy.apply(classed(to="ext"))
    assert await named.made.proxy.status("/get") == 503
    named.made.proxy.apply(there)
    await named.reaches("one")
    named.made.proxy.delete(there)
    assert await named.made.proxy.status("/get") == 503


async def test_a_service_import_is_a_backend(one: World) -> None:
    made = classed()
    imported = {"apiGroup": "multicluster.x-k8s.io", "kind": "ServiceImport", "name": "one"}
    made["spec"]["rules"][0]["http"]["paths"][0]["backend"] = {"resource": imported}
    one.proxy.apply(service_export("one"), made)
    assert await one.proxy.bodies(1) == ["one"]


# service-upstream

ADDRESS = "127.0.0.9"


@pytest.fixture
async def addressed() -> AsyncIterator[World]:
    """A proxy before a Service `pair` with an address of its own, which no request reaches, and one endpoint."""
    async with world("one", settings=ADOPTED) as made:
        at_one = endpoint_slice("pair", "127.0.0.1", port=made.port("one"))
        made.proxy.apply(NGINX_CLASS, service("pair", clusterIP=ADDRESS), at_one)
        yield made


def reached(made: World) -> set[str]:
    """Return the addresses that requests may go to."""
    return {slot.key[0] for slot in made.proxy.proxy.slots()}


@pytest.mark.parametrize(
    ("annotations", "for_all", "address"),
    [
        ({"service_upstream": "true"}, {}, ADDRESS),
        ({}, {"service_upstream": "true"}, ADDRESS),
        ({"service_upstream": "false"}, {"service_upstream": "true"}, "127.0.0.1"),
        ({}, {}, "127.0.0.1"),
        ({"service_upstream": "true", "backend_protocol": "GRPC", "upstream_vhost": "x"}, {}, ADDRESS),
    ],
)
async def test_requests_may_go_to_the_services_own_address(
    addressed: World, annotations: dict[str, str], for_all: dict[str, str], address: str
) -> None:
    addressed.proxy.apply(options(**for_all), classed(to="pair", **annotations))
    assert reached(addressed) == {address}
    addressed.proxy.delete(options())
    addressed.proxy.apply(classed(to="pair"))
    assert reached(addressed) == {"127.0.0.1"}


async def test_a_request_reaches_the_services_own_address() -> None:
    async with world("one", settings=ADOPTED) as made:
        there = service("there", port=made.port("one"), clusterIP="127.0.0.1")
        made.proxy.apply(NGINX_CLASS, there, classed(to="there", port=made.port("one")))
        assert await made.proxy.status() == 503
        made.proxy.apply(classed(to="there", port=made.port("one"), service_upstream="true"))
        assert await made.proxy.bodies(1) == ["one"]


@pytest.mark.parametrize("address", ["None", ""])
async def test_a_service_without_an_address_has_its_endpoints(addressed: World, address: str) -> None:
    addressed.proxy.apply(service("pair", clusterIP=address), classed(to="pair", service_upstream="true"))
    assert await addressed.proxy.bodies(1) == ["one"]


@pytest.mark.parametrize(
    ("target", "written", "status"), [("web", "web", 200), (8080, 8080, 200), ("web", "other", 503), (8080, 80, 200)]
)
async def test_a_port_may_be_the_target_of_a_port_of_the_service(
    one: World, target: int | str, written: int | str, status: int
) -> None:
    made = service("targets")
    made["spec"]["ports"] = [{"port": 80, "targetPort": target, "protocol": "TCP"}]
    slices = endpoint_slice("targets", "127.0.0.1", port=one.port("one"))
    slices["ports"][0]["name"] = ""
    one.proxy.apply(classed(to="targets", port=written), slices)
    assert await one.proxy.status() == 503
    one.proxy.apply(made)
    assert await one.proxy.status() == status
