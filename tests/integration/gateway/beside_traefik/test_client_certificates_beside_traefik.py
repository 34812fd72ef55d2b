"""What servers hear of a client's certificates: the same `passTLSClientCert` in Traefik and in a gateway of ours."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import pytest_asyncio
from cryptography import x509
from cryptography.x509.oid import NameOID

from fakes.gateway.proxied import Client, Conversation, Origin
from fakes.gateway.served import asking, origins, read_answer
from fakes.gateway.tls import Authority, Issued, unverified
from fakes.peers.traefik import ENTRY_POINT, needs_traefik, traefik
from fakes.translator.applied import world
from fakes.translator.traefik import middleware, resource, route, rule

pytestmark = [needs_traefik, pytest.mark.asyncio(loop_scope="module")]

_NAMES = (
    "commonName",
    "country",
    "domainComponent",
    "locality",
    "organization",
    "organizationalUnit",
    "province",
    "serialNumber",
)
_SUBJECT = dict.fromkeys(_NAMES, True)
_ISSUER = {name: True for name in _NAMES if name != "organizationalUnit"}
_ALL = {
    **dict.fromkeys(("notAfter", "notBefore", "sans", "serialNumber"), True),
    "subject": _SUBJECT,
    "issuer": _ISSUER,
}
SPECS: dict[str, Any] = {
    "nothing": {"pem": False},
    "pem": {"pem": True},
    "all": {"info": _ALL},
    "some": {
        "info": {"notAfter": True, "sans": True, "subject": {"organization": True}, "issuer": {"country": True}},
    },
    "absent": {"info": {"subject": {"organization": True, "serialNumber": True}, "issuer": {"locality": True}}},
    "empty": {"info": {"subject": {"locality": True}}},
    "both": {"pem": True, "info": {"notBefore": True}},
}
SHOWN = ("bare", "minimal", "complete", "chain", "none")


def _name(*parts: tuple[x509.ObjectIdentifier, str]) -> x509.Name:
    return x509.Name([x509.NameAttribute(oid, value) for oid, value in parts])


def _rich(name: str) -> x509.Name:
    """Return a name with several parts of nearly all kinds, out of the order in which they are told."""
    return _name(
        (NameOID.DOMAIN_COMPONENT, "org"),
        (NameOID.DOMAIN_COMPONENT, "cheese"),
        (NameOID.ORGANIZATION_NAME, "Cheese"),
        (NameOID.ORGANIZATION_NAME, 'Che,e"se; 2'),
        (NameOID.ORGANIZATIONAL_UNIT_NAME, "Section"),
        (NameOID.ORGANIZATIONAL_UNIT_NAME, "Section 2"),
        (NameOID.COMMON_NAME, "first"),
        (NameOID.COMMON_NAME, name),
        (NameOID.COUNTRY_NAME, "FR"),
        (NameOID.COUNTRY_NAME, "US"),
        (NameOID.LOCALITY_NAME, "LYON"),
        (NameOID.STATE_OR_PROVINCE_NAME, "Some é State"),
        (NameOID.SERIAL_NUMBER, "17"),
        (NameOID.EMAIL_ADDRESS, "a@b.test"),
    )


def _certificates() -> dict[str, Issued]:
    simple, rich = Authority("Simple CA"), Authority(_rich("Signing CA"))
    between = Authority(_name((NameOID.COUNTRY_NAME, "FR"), (NameOID.COMMON_NAME, "Between")), parent=rich)
    several = (
        x509.DNSName("*.cheese.org"),
        x509.RFC822Name("test@cheese.org"),
        x509.DNSName("cheese.net"),
        x509.IPAddress(ip_address("10.0.1.2")),
        x509.IPAddress(ip_address("2001:db8::1")),
        x509.UniformResourceIdentifier("spiffe://cheese/a"),
    )
    return {
        "bare": simple.issue("client.test"),
        "minimal": rich.issue("client.test", organization="Cheese"),
        "complete": rich.issue("*.cheese.com", *several, organization="Cheese"),
        "chain": between.issue("client.test", x509.DNSName("client.test")),
    }


class Both(NamedTuple):
    """Ports of Traefik and of ours, the servers behind them, and contexts of clients by what they show."""

    sides: Sequence[tuple[int, Origin]]
    contexts: dict[str, ssl.SSLContext]


async def _serve(conversation: Conversation) -> None:
    while True:
        await conversation.request()
        await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


def _contexts(folder: Path) -> dict[str, ssl.SSLContext]:
    contexts = {"none": unverified()}
    for name, issued in _certificates().items():
        (folder / name).mkdir()
        contexts[name] = unverified()
        contexts[name].load_cert_chain(*issued.write(folder / name))
    return contexts


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def both(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Both]:
    """Both running, with a route for each middleware."""
    folder = tmp_path_factory.mktemp("traefik")
    dynamic = {
        "http": {
            "routers": {
                name: {
                    "rule": f"Host(`{name}.test`)",
                    "entryPoints": [ENTRY_POINT],
                    "service": "up",
                    "middlewares": [name],
                    "tls": {"options": "certs"},
                }
                for name in SPECS
            },
            "middlewares": {name: {"passTLSClientCert": spec} for name, spec in SPECS.items()},
        },
        "tls": {"options": {"certs": {"clientAuth": {"clientAuthType": "RequestClientCert"}}}},
    }
    async with contextlib.AsyncExitStack() as stack:
        (origin,) = await stack.enter_async_context(origins(_serve))
        dynamic["http"]["services"] = {
            "up": {"loadBalancer": {"servers": [{"url": f"http://127.0.0.1:{origin.port}"}]}}
        }
        theirs = await stack.enter_async_context(traefik(folder, dynamic))
        made = await stack.enter_async_context(world(web=_serve))
        made.proxy.apply(resource("TLSOption", "certs", {"clientAuth": {"clientAuthType": "RequestClientCert"}}))
        for name, spec in SPECS.items():
            made.proxy.proxy.present(f"{name}.test", Authority().issue(f"{name}.test"))
            secured = rule(f"Host(`{name}.test`)", middlewares=[name])
            made.proxy.apply(
                middleware(name, passTLSClientCert=spec),
                route(secured, name=name, spec={"tls": {"options": {"name": "certs"}}}),
            )
        ours = made.proxy.proxy.https_port, made.servers["web"]
        yield Both(((theirs.port, origin), ours), _contexts(folder))


async def _told(port: int, server: Origin, host: str, context: ssl.SSLContext) -> tuple[int, list[str]]:
    """Return the status, and the lines about certificates that the server got."""
    client = Client(*await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=host))
    await client.send(asking("/", host=host, X_Forwarded_Tls_Client_Cert="forged"))
    got = await read_answer(client)
    client.close()
    lines = server.heads[-1].decode().split("\r\n")
    return got.status, sorted(line for line in lines if line.startswith("X-Forwarded-Tls"))


@pytest.mark.parametrize("shown", SHOWN)
@pytest.mark.parametrize("name", SPECS)
async def test_servers_hear_the_same_of_a_client(name: str, shown: str, both: Both) -> None:
    theirs, ours = [await _told(*side, f"{name}.test", both.contexts[shown]) for side in both.sides]
    assert ours == theirs
