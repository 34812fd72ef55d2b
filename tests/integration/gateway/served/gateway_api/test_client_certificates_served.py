"""Certificates that Gateways ask of clients (`tls.frontend`), from manifests to the wire."""

import ssl
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from fakes.gateway.ports import free_port
from fakes.gateway.served import asking, read_answer
from fakes.gateway.tls import Authority, Issued, unverified
from fakes.translator.applied import World, pair, world
from fakes.translator.gateway_api import (
    Cluster,
    allowing,
    gateway,
    gateway_class,
    grant,
    https,
    listener_set,
    of_set,
    route,
    to,
)
from headgate.translator.world.address_pool import read_pool
from headgate.translator.world.settings import TranslationSettings

POOL = TranslationSettings(gateway_addresses=read_pool(["127.10.0.0/28"]))
ONE, HOST = "127.10.0.1", "a.com"
SERVERS, CLIENTS, OTHERS = Authority(), Authority(), Authority()
REFUSED = (ConnectionError, EOFError, ssl.SSLError)


def config_map(name: str, authority: Authority, namespace: str = "default") -> Any:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"ca.crt": authority.pem.decode()}}


def validation(*names: str, **fields: Any) -> Any:
    refs = [{"group": "", "kind": "ConfigMap", "name": name, **fields.pop("ref", {})} for name in names]
    return {"validation": {"caCertificateRefs": refs, **fields}}


def asking_clients(default: Any, *listeners: Any, ports: Any = (), **spec: Any) -> Any:
    frontend = {"default": default, "perPort": [{"port": port, "tls": tls} for port, tls in ports]}
    addresses = [{"type": "IPAddress", "value": ONE}]
    return gateway(*listeners, spec={"tls": {"frontend": frontend}, "addresses": addresses, **spec})


def certificate() -> Any:
    return pair("cert", SERVERS.issue(HOST, x509.DNSName(HOST)), HOST)


def showing(issued: Issued | None, folder: Path) -> ssl.SSLContext:
    context = unverified()
    if issued is not None:
        (folder / "chain.pem").write_bytes(issued.chain_pem)
        (folder / "key.pem").write_bytes(issued.key_pem)
        context.load_cert_chain(folder / "chain.pem", folder / "key.pem")
    return context


async def ask(made: World, port: int, context: ssl.SSLContext, name: str = HOST) -> int:
    client = await made.proxy.proxy.connect(context, name, port, to=ONE)
    await client.send(asking(host=HOST))
    return (await read_answer(client)).status


async def test_ports_ask_for_certificates_of_their_authorities_and_of_the_default(tmp_path: Path) -> None:
    first, second = free_port(), free_port()
    async with world("one", settings=POOL) as made:
        made.proxy.apply(gateway_class(), certificate(), config_map("cas", CLIENTS), config_map("others", OTHERS))
        listeners = [https("a", "cert", port=first, hostname=HOST), https("b", "cert", port=second, hostname=HOST)]
        made.proxy.apply(asking_clients(validation("cas"), *listeners, ports=[(second, validation("others"))]))
        made.proxy.apply(route(to("one")))
        theirs = showing(CLIENTS.issue("client"), tmp_path)
        others = showing(OTHERS.issue("client"), tmp_path)
        assert await ask(made, first, theirs) == 200
        assert await ask(made, second, others) == 200
        for port, context in ((first, others), (second, theirs), (first, unverified())):
            with pytest.raises(REFUSED):
                await ask(made, port, context)


async def test_a_server_name_of_no_listener_is_no_way_around_a_certificate(tmp_path: Path) -> None:
    port = free_port()
    async with world("one", settings=POOL) as made:
        made.proxy.apply(gateway_class(), certificate(), config_map("cas", CLIENTS))
        made.proxy.apply(asking_clients(validation("cas"), https("a", "cert", port=port, hostname=HOST)))
        made.proxy.apply(route(to("one")))
        try:
            status = await ask(made, port, unverified(), "other.com")
        except REFUSED:
            status = 0
        assert status != 200


async def test_with_insecure_fallback_any_client_is_let_in(tmp_path: Path) -> None:
    port = free_port()
    async with world("one", settings=POOL) as made:
        made.proxy.apply(gateway_class(), certificate(), config_map("cas", CLIENTS))
        lax = validation("cas", mode="AllowInsecureFallback")
        made.proxy.apply(asking_clients(lax, https("a", "cert", port=port)), route(to("one")))
        for issued in (None, CLIENTS.issue("client"), OTHERS.issue("client")):
            assert await ask(made, port, showing(issued, tmp_path)) == 200


async def test_without_any_authority_nobody_is_let_in_and_a_set_is_asked_like_its_gateway() -> None:
    port, other = free_port(), free_port()
    async with world("one", settings=POOL) as made:
        made.proxy.apply(gateway_class(), certificate(), config_map("cas", CLIENTS))
        missing = [(port, validation("missing"))]
        of_gateway = asking_clients(validation("cas"), https("a", "cert", port=port), ports=missing, **allowing("Same"))
        made.proxy.apply(of_gateway, listener_set(https("b", "cert", port=other)))
        made.proxy.apply(route(to("one")), route(to("one"), name="more", parents=[of_set()]))
        with pytest.raises(ConnectionRefusedError):
            await ask(made, port, unverified())
        with pytest.raises(REFUSED):
            await ask(made, other, unverified())


def conditions(written: Any, *objects: Any) -> dict[str, str]:
    made = asking_clients(written, https("a", "cert", port=443))
    return Cluster(certificate(), *objects, made, settings=POOL).listeners(made)["a"]


def test_references_in_vain_have_the_reasons_of_gateway_api() -> None:
    unresolved = conditions(validation("missing"))
    assert (unresolved["ResolvedRefs"], unresolved["Accepted"]) == (
        "False InvalidCACertificateRef",
        "False NoValidCACertificate",
    )
    of_kind = {"validation": {"caCertificateRefs": [{"group": "", "kind": "Service", "name": "cas"}]}}
    assert conditions(of_kind)["ResolvedRefs"] == "False InvalidCACertificateKind"
    elsewhere = validation("cas", ref={"namespace": "other"})
    assert conditions(elsewhere, config_map("cas", CLIENTS, "other"))["ResolvedRefs"] == "False RefNotPermitted"
    granted = grant("Gateway", "default", "ConfigMap", namespace="other")
    granted["spec"]["to"][0]["group"] = ""
    found = conditions(elsewhere, config_map("cas", CLIENTS, "other"), granted)
    assert (found["ResolvedRefs"], found["Programmed"]) == ("True ResolvedRefs", "True Programmed")
    some = conditions(validation("cas", "missing"), config_map("cas", CLIENTS))
    assert (some["ResolvedRefs"], some["Accepted"]) == ("False InvalidCACertificateRef", "True Accepted")


def test_insecure_fallback_is_a_condition_as_long_as_it_holds() -> None:
    lax = asking_clients(validation("cas", mode="AllowInsecureFallback"), https("a", "cert"))
    cluster = Cluster(certificate(), config_map("cas", CLIENTS), lax, settings=POOL)
    assert cluster.conditions(lax)["InsecureFrontendValidationMode"] == "True ConfigurationChanged"
    strict = {**asking_clients(validation("cas"), https("a", "cert")), "status": cluster.status(lax)}
    cluster.apply(strict)
    assert "InsecureFrontendValidationMode" not in cluster.conditions(strict)


def test_without_a_pool_such_a_gateway_is_not_accepted() -> None:
    asks = gateway(spec={"tls": {"frontend": {"default": validation("cas")}}})
    assert Cluster(asks).conditions(asks)["Accepted"] == "False UnsupportedValue"
