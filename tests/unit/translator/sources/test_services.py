"""Services in stored form, what is wrong with them, and their manifests made again."""

from typing import Any

import pytest

from headgate.translator.sources.services import check_service, read_service, restore_service

PREFIX = "traefik.ingress.kubernetes.io/"


def manifest(spec: Any, **further: Any) -> Any:
    return {"metadata": {"name": "web"}, "spec": spec, **further}


@pytest.mark.parametrize(
    ("spec", "field", "reason"),
    [
        (None, "spec", "Required"),
        ([], "spec", "WrongType"),
        ({"ports": {}}, "spec.ports", "WrongType"),
        ({"ports": ["80"]}, "spec.ports[0]", "WrongType"),
        ({"ports": [{"port": 0}]}, "spec.ports[0].port", "InvalidPort"),
        ({"ports": [{"port": True}]}, "spec.ports[0].port", "InvalidPort"),
        ({"ports": [{"port": 80, "protocol": "QUIC"}]}, "spec.ports[0].protocol", "InvalidPort"),
        ({"type": "ExternalName"}, "spec.externalName", "Required"),
    ],
)
def test_what_an_api_server_refuses_is_reported(spec: Any, field: str, reason: str) -> None:
    written = manifest(spec)
    assert [(one.field, one.reason) for one in check_service(written, read_service(written))] == [(field, reason)]


@pytest.mark.parametrize(
    "further",
    [
        {},
        {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}, {"hostname": "lb.test"}]}}},
        {"metadata": {"name": "web", "annotations": {f"{PREFIX}service.nativelb": "true"}}},
    ],
)
def test_a_manifest_made_again_is_read_as_the_same(further: Any) -> None:
    ports = [
        {"name": "http", "port": 80, "targetPort": "web", "appProtocol": "http"},
        {"name": "dns", "port": 53, "targetPort": 5353, "protocol": "UDP"},
        {"name": "call", "port": 9, "protocol": "SCTP"},
    ]
    read = read_service(manifest({"ports": ports, "clusterIP": "10.96.0.1", "ipFamilies": ["IPv4"]}, **further))
    assert read_service(restore_service(read)) == read


def test_a_headless_service_without_ports_has_any_port_by_number() -> None:
    read = read_service(manifest({"clusterIP": "None"}))
    found = read.find_port(8080)
    assert found is not None
    assert (found.target, read.find_port("http")) == (8080, None)
