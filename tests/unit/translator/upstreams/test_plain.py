"""Services of the usual sort are resolved straight into their entry, which is the one of all others' way."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.translator.deltas import applied, decision, endpoint_slice, service, service_export
from headgate.common.table_image import encode_entry
from headgate.translator.composition import DIALECTS
from headgate.translator.fragments.upstream_refs import ServicePortRef
from headgate.translator.translation import Translation
from headgate.translator.upstreams.plain import PlainUpstream, resolve_plainly
from headgate.translator.upstreams.resolution import resolve_upstream
from headgate.translator.world.graph import Lookups

WEB = ServicePortRef("a", "default", "web", 80)
PORTS = [{"name": "http", "port": 80, "targetPort": 8080}, {"name": "any", "port": 81, "targetPort": "named"}]


def world(*manifests: Any) -> Lookups:
    translation = Translation(DIALECTS)
    translation.activate("a")
    for manifest in manifests:
        translation.apply(applied(manifest))
    return translation.graph.look("a")


def with_endpoints(*endpoints: Any, **fields: Any) -> Any:
    return {**endpoint_slice("web"), "endpoints": list(endpoints), **fields}


def endpoint(address: str = "10.0.0.1", zone: str | None = None, **conditions: bool) -> Any:
    return {"addresses": [address], "conditions": conditions, **({"zone": zone} if zone else {})}


SERVED = endpoint_slice("web", "10.0.0.2", "10.0.0.1")


def test_a_usual_service_is_resolved_plainly_and_as_ever() -> None:
    lookups = world(service(), SERVED)
    plain = resolve_plainly(lookups, WEB)
    assert plain == PlainUpstream(encode_entry(resolve_upstream(lookups, WEB).entry))
    assert b'"address":"10.0.0.1","port":8080' in plain.content


addresses = st.sampled_from(["10.0.0.1", "10.0.0.2", "10.0.0.10", "fd00::1"])
conditions = st.fixed_dictionaries({}, optional={name: st.booleans() for name in ("ready", "serving", "terminating")})
some_endpoints = st.lists(st.tuples(addresses, st.sampled_from([None, "z1", "z2"]), conditions), max_size=4)


@given(
    some_endpoints,
    st.sampled_from([80, 81, "http", "any", 82]),
    st.sampled_from(["IPv4", "IPv6", "FQDN"]),
    st.sampled_from([{}, {"ipFamilies": ["IPv6", "IPv4"]}, {"clusterIP": "None"}]),
    st.sampled_from([[{"name": "http", "port": 8080}], [{"name": "any"}], [], [{"name": "http", "port": 1}]]),
)
def test_where_it_is_resolved_plainly_nothing_is_different(
    endpoints: Any, port: Any, family: str, spec: Any, slice_ports: Any
) -> None:
    found = with_endpoints(
        *(endpoint(address, zone, **said) for address, zone, said in endpoints), addressType=family, ports=slice_ports
    )
    lookups, ref = world(service(**{"ports": PORTS, **spec}), found), WEB._replace(port=port)
    plain, resolved = resolve_plainly(lookups, ref), resolve_upstream(lookups, ref)
    assert plain is None or (plain.content, None, ()) == (encode_entry(resolved.entry), *resolved[1:])


UNUSUAL: dict[str, tuple[Any, ...]] = {
    "nothing": (),
    "no endpoints": (service(),),
    "none ready": (service(), endpoint_slice("web", "10.0.0.1", ready=False)),
    "two slices": (service(), SERVED, endpoint_slice("web", "10.0.0.3", name="web-2")),
    "an address twice": (service(), with_endpoints(endpoint(ready=False), endpoint(ready=True))),
    "exported": (service(), SERVED, service_export()),
    "name of a host": (service(type="ExternalName", externalName="a.example"), SERVED),
    "a decision": (service(), SERVED, decision("a", priority=1)),
    "https": (service(ports=[{"name": "http", "port": 80, "appProtocol": "https"}]), SERVED),
    "no such port": (service(port=90), SERVED),
    "annotated": (
        {**service(), "metadata": {**service()["metadata"], "annotations": {"headgate.dev/load-balance": "random"}}},
        SERVED,
    ),
    "as it was": (service(), SERVED, service(ports=[{"port": 0}])),
}


@pytest.mark.parametrize("manifests", UNUSUAL.values(), ids=UNUSUAL)
def test_what_has_more_to_it_is_not(manifests: tuple[Any, ...]) -> None:
    assert resolve_plainly(world(*manifests), WEB) is None


@pytest.mark.parametrize("stream", ["tcp", "udp", "tls"])
def test_streams_are_not(stream: Any) -> None:
    assert resolve_plainly(world(service(), SERVED), WEB._replace(stream=stream)) is None
