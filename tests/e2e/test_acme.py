"""Certificates are ordered of a real authority, and every worker and replica of the gateway answers it."""

import asyncio
import contextlib
import json
import os
import ssl
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes

from fakes.gateway.ports import free_ports
from fakes.peers.echo import EchoServer
from fakes.peers.pebble import Pebble, needs_go, pebble
from fakes.stack import Stack
from fakes.translator.manifests import service, write
from fakes.waiting import until

pytestmark = [needs_go]
HOST = "shop.example.com"
BOUND_S = 60.0
KEY = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W"
HOOK = """\
import pathlib, sys, time

with open({asked!r}, "a") as file:
    file.write(" ".join(sys.argv[1:]) + "\\n")
while not pathlib.Path({published!r}).exists():
    time.sleep(0.05)
"""
INGRESS = """\
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: shop
  annotations: {{headgate.dev/acme: "{resolver}"}}
spec:
  tls: [{{hosts: [{hosts}]}}]
  rules:
    - host: {host}
      http: {{paths: [{{path: /, pathType: Prefix, backend: {{service: {{name: web, port: {{name: http}}}}}}}}]}}
"""
INGRESS_ROUTE = """\
apiVersion: traefik.io/v1alpha1
kind: IngressRoute
metadata: {name: shop, namespace: default}
spec:
  entryPoints: [websecure]
  routes: [{kind: Rule, match: "Host(`shop.example.com`)", services: [{name: web, port: 80}]}]
  tls: {certResolver: default}
"""


def ingress(hosts: str = HOST, resolver: str = "true") -> str:
    return INGRESS.format(hosts=hosts, host=hosts.split(",")[0], resolver=resolver)


class Site:
    """A stack with an authority, and perhaps a further replica of the gateway."""

    def __init__(self, stack: Stack, authority: Pebble, folder: Path) -> None:
        self.stack, self.authority, self.folder = stack, authority, folder

    async def certificate(self, host: str = HOST, port: int | None = None) -> x509.Certificate:
        """Return the certificate that a new connection is shown."""
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        port = port or self.stack.https_port
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=host)
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        return x509.load_der_x509_certificate(shown)

    async def issued(self, host: str = HOST, port: int | None = None, *, after: bytes = b"") -> bytes:
        """Wait until a connection is shown a certificate of the authority; return its fingerprint."""

        async def look() -> bytes | None:
            found = await self.certificate(host, port)
            fingerprint = found.fingerprint(hashes.SHA256())
            return fingerprint if "Pebble" in found.issuer.rfc4514_string() and fingerprint != after else None

        try:
            found: bytes = await until(look, BOUND_S, despite=(OSError,))
        except BaseException:
            print(self.authority.log.read_text()[-4000:])
            raise
        return found


@contextlib.asynccontextmanager
async def site(
    tmp_path: Path,
    *documents: str,
    life_s: int = 3600,
    pebble_set: dict[str, str] | None = None,
    account_keys: dict[str, str] | None = None,
    addresses: dict[str, list[str]] | None = None,
    **settings: str,
) -> AsyncIterator[Site]:
    """Run an authority, and two workers of a gateway on a folder of manifests."""
    folder = tmp_path / "manifests"
    folder.mkdir()
    (tmp_path / "pebble").mkdir()
    async with EchoServer("web") as web:
        stack = Stack(manifests=folder, data_dir=tmp_path / "data", workers=2)
        asked = {"http_port": stack.http_port, "https_port": stack.https_port}
        told_pebble = {"life_s": life_s, "environment": pebble_set, "account_keys": account_keys}
        async with pebble(tmp_path / "pebble", **asked, **told_pebble) as authority:
            for host, found in (addresses or {}).items():
                authority.names.records[(f"{host}.", "A")] = (1, found)
            write(folder, "web.yaml", *documents, service("web", web.port))
            told = {
                "directory": authority.directory,
                "ca_file": str(authority.ca_file),
                "email": "admin@example.com",
                **settings,
            }
            stack.set_environment({f"HEADGATE_ACME_{name.upper()}": value for name, value in told.items()})
            async with stack:
                yield Site(stack, authority, folder)


@pytest.mark.parametrize(
    ("challenge", "document"),
    [
        ("http-01", ingress()),
        ("tls-alpn-01", ingress()),
        ("http-01", INGRESS_ROUTE),
        ("http-01", ingress("shop.example.com,www.example.com")),
    ],
)
async def test_a_certificate_is_ordered_once_and_outlives_a_restart(
    tmp_path: Path, challenge: str, document: str
) -> None:
    async with site(tmp_path, document, challenge=challenge) as made:
        first = await made.issued()
        assert made.authority.orders() == 1
        await made.stack.stop()
        await made.stack.start()
        assert await made.issued() == first
        assert made.authority.orders() == 1


@pytest.mark.parametrize("challenge", ["http-01", "tls-alpn-01"])
async def test_a_certificate_is_renewed_before_it_ends(tmp_path: Path, challenge: str) -> None:
    async with site(tmp_path, ingress(), challenge=challenge, life_s=12, pebble_set={"PEBBLE_AUTHZREUSE": "0"}) as made:
        first = await made.issued()
        assert await made.issued(after=first) != first
        assert made.authority.orders() >= 2


async def conditions(stack: Stack) -> str:
    """Return what `headgate status` says of the Ingress."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "headgate.cli", "status", "ingress/default/shop", f"--data-dir={stack.data_dir}"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    async with asyncio.timeout(30):
        printed, _ = await process.communicate()
    return printed.decode()


async def test_an_order_that_fails_is_said_and_made_again(tmp_path: Path) -> None:
    async with site(tmp_path, ingress(), addresses={HOST: []}, retry_s="2") as made:

        async def has_failed() -> bool:
            return "CertificateFailed" in await conditions(made.stack)

        await until(has_failed, BOUND_S)
        assert "Pebble" not in (await made.certificate()).issuer.rfc4514_string()
        failed = made.authority.orders()
        assert failed >= 1
        made.authority.names.records[(f"{HOST}.", "A")] = (1, ["127.0.0.1"])
        await made.issued()
        assert made.authority.orders() > failed
        await made.stack.wait_for_log("Ingress default/shop: nothing is wrong any more")


async def test_the_authority_may_want_a_certificate_renewed_early(tmp_path: Path) -> None:
    async with site(tmp_path, ingress(), life_s=90 * 86400) as made:
        first = await made.issued()
        await made.authority.suggest(await made.certificate(), "2020-01-01T00:00:00Z", "2020-01-02T00:00:00Z")
        await made.stack.stop()
        await made.stack.start()
        await made.issued(after=first)
        assert made.authority.orders() == 2


async def test_an_account_is_bound_to_one_that_the_authority_knows(tmp_path: Path) -> None:
    key_file = tmp_path / "eab.key"
    key_file.write_text(f"{KEY}\n")
    async with site(
        tmp_path, ingress(), account_keys={"kid-1": KEY}, eab_key_id="kid-1", eab_key_file=str(key_file)
    ) as made:
        await made.issued()
        assert made.authority.orders() == 1


async def test_every_replica_presents_the_certificate(tmp_path: Path) -> None:
    async with site(tmp_path, ingress()) as made, another_gateway(made.stack, tmp_path) as port:
        first = await made.issued()
        assert await made.issued(port=port) == first


async def test_a_wildcard_is_ordered_by_a_command_for_dns(tmp_path: Path) -> None:
    hook = tmp_path / "hook.py"
    asked, published = tmp_path / "asked", tmp_path / "published"
    hook.write_text(HOOK.format(asked=str(asked), published=str(published)))
    command = f"{sys.executable},{hook}"
    async with site(tmp_path, ingress("'*.example.com'"), challenge="dns-01", dns_command=command) as made:

        async def publish() -> bool:
            for line in asked.read_text().splitlines() if asked.exists() else ():
                action, name, value = line.split()
                if action == "present":
                    made.authority.names.records[(f"{name}.", "TXT")] = (1, [json.dumps(value)])
                    published.touch()
                    return True
            return False

        publishing = asyncio.create_task(until(publish, BOUND_S))
        await made.issued("a.example.com")
        await publishing
        assert [line.split()[0] for line in asked.read_text().splitlines()] == ["present", "cleanup"]


@contextlib.asynccontextmanager
async def another_gateway(stack: Stack, tmp_path: Path) -> AsyncIterator[int]:
    """Run a further gateway with the same key; yields its HTTPS port."""
    state = json.loads((stack.data_dir / "up.json").read_text())
    http_port, https_port = free_ports(2)
    log = (tmp_path / "another.log").open("wb")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "headgate.gateway", "--instance=another"),
        *(f"--nats-url={state['nats_url']}", f"--http-port={http_port}", f"--https-port={https_port}"),
        f"--sealing-private-keys={stack.data_dir / 'gateway.key'}",
        f"--data-dir={tmp_path / 'another'}",
        stdout=log,
        stderr=log,
        env={**os.environ, "HEADGATE_ALLOWED_DESTINATIONS": "127.0.0.0/8"},
    )
    try:
        yield https_port
    finally:
        log.close()
        process.terminate()
        await process.wait()
