"""The webhook over real TLS, with a translator that answers what the test wants."""

import asyncio
import json
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from cryptography import x509

from fakes.gateway.tls import Authority, Issued
from fakes.kubernetes.admission_reviews import NAME, WebhookClient, review
from fakes.kubernetes.objects import ingress
from fakes.waiting import until
from headgate.common.admission import Opinion, Outcome, Proposal
from headgate.common.errors import NoAnswer, SettingsError
from headgate.common.sealing import Sealer
from headgate.watcher.admission.admit import Admission, Ask
from headgate.watcher.admission.certificate import FileCertificate
from headgate.watcher.admission.question import Scope
from headgate.watcher.admission.selector import parse_selector
from headgate.watcher.admission.server import MAX_BODY, PATH, AdmissionServer, read_timeout
from headgate.watcher.admission.verdict import AdmissionPolicy
from headgate.watcher.objects.secrets import throwaway_recipients


async def content(proposal: Proposal, within_s: float) -> Opinion:
    return Opinion(outcome=Outcome.JUDGED)


@asynccontextmanager
async def serving(
    certificate: FileCertificate, ask: Ask = content, *, on_failure: Any = "ignore", deadline_s: float = 2.0
) -> AsyncIterator[AdmissionServer]:
    scope = Scope("paris", frozenset(), parse_selector(""), Sealer("paris", throwaway_recipients()))
    admission = Admission(scope, AdmissionPolicy(on_failure, "warn"), {"default": ask})
    server = AdmissionServer(admission, certificate, "127.0.0.1", 0, deadline_s)
    task = asyncio.create_task(server.run())
    try:
        await until(lambda: server.readiness() is None or task.done())
        yield server
    finally:
        task.cancel()
        await asyncio.wait([task])


def issue(authority: Authority) -> Issued:
    return authority.issue(NAME, x509.DNSName(NAME))


def put(issued: Issued, folder: Path) -> tuple[Path, Path]:
    """Write the files as Kubernetes does in a volume: a folder of its own for each version, and a link that moves."""
    version = folder / f"..{issued.certificate.serial_number}"
    version.mkdir()
    issued.write(version)
    draft = folder / "..draft"
    draft.symlink_to(version.name)
    os.replace(draft, folder / "..data")
    for name in ("chain.pem", "key.pem"):
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"..data/{name}")
    return folder / "chain.pem", folder / "key.pem"


async def serial(server: AdmissionServer) -> int:
    """Serial number of the certificate that is presented to a new connection."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    _, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=context)
    der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    await writer.wait_closed()
    return x509.load_der_x509_certificate(der).serial_number


async def presents(server: AdmissionServer, issued: Issued) -> None:
    """Wait until new connections see a certificate."""
    async with asyncio.timeout(10):
        while await serial(server) != issued.certificate.serial_number:  # noqa: ASYNC110 - files have no event
            await asyncio.sleep(0.05)


async def test_a_review_is_answered_with_its_uid(tmp_path: Path) -> None:
    authority = Authority()
    async with serving(FileCertificate(*issue(authority).write(tmp_path))) as server:
        response = await WebhookClient(server.port, authority).review(review(ingress("web"), uid="abc"))
    assert response == {"uid": "abc", "allowed": True}


async def test_a_renewed_certificate_is_presented_without_losing_a_connection(tmp_path: Path) -> None:
    authority = Authority()
    first, second = issue(authority), issue(authority)
    async with serving(FileCertificate(*put(first, tmp_path))) as server:
        assert await serial(server) == first.certificate.serial_number
        client = WebhookClient(server.port, authority)
        async with aiohttp.ClientSession() as session:

            async def ask() -> int:
                url = f"https://127.0.0.1:{server.port}{PATH}"
                sent = review(ingress("web"))
                async with session.post(url, json=sent, ssl=client.context, server_hostname=NAME) as answer:
                    return answer.status

            assert await ask() == 200
            put(second, tmp_path)
            await presents(server, second)
            assert await ask() == 200


async def test_files_that_do_not_fit_each_other_change_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority = Authority()
    first, second = issue(authority), issue(authority)
    chain, key = first.write(tmp_path)
    certificate = FileCertificate(chain, key)
    async with serving(certificate) as server:
        chain.write_bytes(second.chain_pem)  # its key is not there yet
        await until(lambda: caplog.records)
        assert await serial(server) == first.certificate.serial_number
        key.write_bytes(second.key_pem)
        await presents(server, second)


async def test_a_certificate_that_comes_late_is_waited_for(tmp_path: Path) -> None:
    authority = Authority()
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    scope = Scope("paris", frozenset(), parse_selector(""), Sealer("paris", ()))
    admission = Admission(scope, AdmissionPolicy("ignore", "warn"), {"default": content})
    server = AdmissionServer(admission, FileCertificate(chain, key), "127.0.0.1", 0, 1.0)
    task = asyncio.create_task(server.run())
    try:
        await until(lambda: "cannot be used" in (server.readiness() or ""))
        issue(authority).write(tmp_path)
        await until(lambda: server.readiness() is None)
        assert (await WebhookClient(server.port, authority).review(review(ingress("web"))))["allowed"]
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_with_client_authorities_nobody_else_is_heard(tmp_path: Path) -> None:
    authority, clients = Authority("servers"), Authority("clients")
    (tmp_path / "ca.pem").write_bytes(clients.pem)
    for name in ("server", "client"):
        (tmp_path / name).mkdir()
    files = issue(authority).write(tmp_path / "server")
    own = clients.issue("kube-apiserver").write(tmp_path / "client")
    async with serving(FileCertificate(*files, tmp_path / "ca.pem")) as server:
        assert (await WebhookClient(server.port, authority, own).review(review(ingress("web"))))["allowed"]
        with pytest.raises((aiohttp.ClientError, ssl.SSLError, ConnectionError)):
            await WebhookClient(server.port, authority).review(review(ingress("web")))


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (b"", "Invalid JSON"),
        (b"{}", "not an AdmissionReview: apiVersion"),
        (b"[" * 100_000, "Invalid JSON"),
        (json.dumps(review(ingress("web")) | {"apiVersion": "admission.k8s.io/v1beta1"}).encode(), "must be admission"),
    ],
    ids=["empty", "no review", "deep", "other version"],
)
async def test_what_is_no_review_is_refused_with_a_reason(tmp_path: Path, body: bytes, complaint: str) -> None:
    authority = Authority()
    async with serving(FileCertificate(*issue(authority).write(tmp_path))) as server:
        status, text = await WebhookClient(server.port, authority).post(body)
        assert status == 400
        assert complaint in text.decode()
        assert (await WebhookClient(server.port, authority).review(review(ingress("web"))))["allowed"]


async def test_a_body_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    authority = Authority()
    async with serving(FileCertificate(*issue(authority).write(tmp_path))) as server:
        status, _ = await WebhookClient(server.port, authority).post(b"x" * (MAX_BODY + 1))
    assert status == 413


async def unanswered(proposal: Proposal, within_s: float) -> Opinion:
    raise NoAnswer("no translator listens")


async def test_without_an_answer_the_failure_policy_decides(tmp_path: Path) -> None:
    authority = Authority()
    files = issue(authority).write(tmp_path)
    async with serving(FileCertificate(*files), unanswered) as server:
        response = await WebhookClient(server.port, authority).review(review(ingress("web")))
        assert response["allowed"]
        assert "no translator listens" in response["warnings"][0]
    async with serving(FileCertificate(*files), unanswered, on_failure="fail") as server:
        response = await WebhookClient(server.port, authority).review(review(ingress("web")))
        assert (response["allowed"], response["status"]["code"]) == (False, 503)


async def test_a_translator_that_cannot_judge_yet_is_no_answer(tmp_path: Path) -> None:
    async def unsynced(proposal: Proposal, within_s: float) -> Opinion:
        return Opinion(outcome=Outcome.NOT_SYNCED, detail="cluster paris is not completely known yet")

    authority = Authority()
    async with serving(FileCertificate(*issue(authority).write(tmp_path)), unsynced, on_failure="fail") as server:
        response = await WebhookClient(server.port, authority).review(review(ingress("web")))
    assert not response["allowed"]
    assert "not completely known" in response["status"]["message"]


async def test_the_api_servers_patience_bounds_the_question(tmp_path: Path) -> None:
    given: list[float] = []

    async def note(proposal: Proposal, within_s: float) -> Opinion:
        given.append(within_s)
        return Opinion(outcome=Outcome.JUDGED)

    authority = Authority()
    async with serving(FileCertificate(*issue(authority).write(tmp_path)), note, deadline_s=5.0) as server:
        client = WebhookClient(server.port, authority)
        for query in ("?timeout=1s", "?timeout=10s", ""):
            await client.review(review(ingress("web")), query)
    assert given == [0.9, 5.0, 5.0]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10s", 10.0), ("1m30s", 90.0), ("500ms", 0.5), ("1.5s", 1.5), ("", float("inf")), ("soon", float("inf"))],
)
def test_timeouts_are_read_as_api_servers_write_them(text: str, seconds: float) -> None:
    assert read_timeout(text) == seconds


async def test_a_port_in_use_is_a_mistake_in_the_settings(tmp_path: Path) -> None:
    files = issue(Authority()).write(tmp_path)
    async with serving(FileCertificate(*files)) as server:
        scope = Scope("paris", frozenset(), parse_selector(""), Sealer("paris", ()))
        admission = Admission(scope, AdmissionPolicy("ignore", "warn"), {"default": content})
        second = AdmissionServer(admission, FileCertificate(*files), "127.0.0.1", server.port, 1.0)
        with pytest.raises(SettingsError, match="admission_port"):
            await second.run()
