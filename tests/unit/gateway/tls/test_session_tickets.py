"""Sessions that are resumed by another process, and those that are not."""

import asyncio
import os
import ssl
from pathlib import Path

import pytest

from fakes.gateway.tls import Authority
from fakes.gateway.tls_listener import asking, client_context, entry, resume, tls_listener
from headgate.common.errors import SettingsError
from headgate.common.table import TlsPolicy
from headgate.gateway.tls import CertificateStore
from headgate.gateway.tls import tickets as tickets_module
from headgate.gateway.tls.server import CertificateEntry
from headgate.gateway.tls.tickets import PERIOD_S, RatchetFile, SecretFile, Seed, TicketKeys

VERSIONS = pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])


class Clock:
    now = 5.0 * PERIOD_S

    def __call__(self) -> float:
        return self.now


class Replica:
    """A replica's workers, with the file of their seed."""

    def __init__(self, folder: Path) -> None:
        self.clock = Clock()
        self.path = folder / "seed"
        self.parent = RatchetFile.begin(self.path, self.clock())

    def worker(self) -> CertificateStore:
        return CertificateStore(tickets=TicketKeys(RatchetFile(self.path), self.clock))


@pytest.fixture
def replica(tmp_path: Path) -> Replica:
    return Replica(tmp_path)


async def is_resumed(
    one: CertificateStore,
    two: CertificateStore,
    client: ssl.SSLContext,
    names: tuple[str, str] = ("foo.com", "foo.com"),
    policies: tuple[TlsPolicy | None, TlsPolicy | None] = (None, None),
) -> bool:
    """Whether a session that one began is resumed by the other."""
    async with tls_listener(one) as first, tls_listener(two) as second:
        for listener, name, policy in zip((first, second), names, policies, strict=True):
            if policy is not None:
                listener.set_policies({name: policy})
        _, session = await asyncio.to_thread(resume, first.port, client, names[0])
        return bool((await asyncio.to_thread(resume, second.port, client, names[1], session))[0])


def stores(replica: Replica, certificate: CertificateEntry) -> tuple[CertificateStore, CertificateStore]:
    made = replica.worker(), replica.worker()
    for store in made:
        store.set_certificates([certificate])
    return made


@VERSIONS
async def test_a_session_of_one_worker_is_resumed_by_another(replica: Replica, version: ssl.TLSVersion) -> None:
    client = client_context(minimum_version=version, maximum_version=version)
    assert await is_resumed(*stores(replica, entry("foo.com")), client)


@VERSIONS
async def test_a_worker_that_starts_in_a_later_period_has_the_same_keys(
    replica: Replica, version: ssl.TLSVersion
) -> None:
    client = client_context(minimum_version=version, maximum_version=version)
    one, two = stores(replica, entry("foo.com"))
    async with tls_listener(one) as listener:
        await asyncio.to_thread(resume, listener.port, client, "foo.com")
    replica.clock.now += 2 * PERIOD_S
    replica.parent.advance(replica.clock())
    three = replica.worker()
    three.set_certificates([one.certificate_for("foo.com")])
    assert await is_resumed(one, three, client)
    assert await is_resumed(two, one, client)


@VERSIONS
async def test_a_ticket_of_an_earlier_period_leads_to_a_whole_handshake(
    replica: Replica, version: ssl.TLSVersion
) -> None:
    client = client_context(minimum_version=version, maximum_version=version)
    one, _ = stores(replica, entry("foo.com"))
    async with tls_listener(one) as listener:
        _, session = await asyncio.to_thread(resume, listener.port, client, "foo.com")
        replica.clock.now += PERIOD_S
        # Another connection moves the context on; TLS 1.2 has sessions in memory besides, which know no periods.
        assert not (await asyncio.to_thread(resume, listener.port, client, "foo.com", session))[0]


@VERSIONS
async def test_a_ticket_is_of_no_use_where_a_certificate_is_asked_for(
    replica: Replica, version: ssl.TLSVersion
) -> None:
    """The host that asks for none must not vouch for clients of the host that does."""
    client = client_context(minimum_version=version, maximum_version=version)
    asks = asking(Authority().pem, mode="optional")
    certificate = entry("foo.com", "bar.com")
    assert not await is_resumed(*stores(replica, certificate), client, policies=(None, asks))
    assert not await is_resumed(*stores(replica, certificate), client, ("foo.com", "bar.com"), (asks, None))
    assert await is_resumed(*stores(replica, certificate), client, policies=(asks, asks))


@VERSIONS
async def test_a_ticket_is_of_no_use_for_another_certificate(replica: Replica, version: ssl.TLSVersion) -> None:
    client = client_context(minimum_version=version, maximum_version=version)
    one, two = stores(replica, entry("foo.com"))
    two.set_certificates([entry("foo.com")])
    assert not await is_resumed(one, two, client)


async def test_replicas_with_one_file_resume_each_others_sessions(tmp_path: Path) -> None:
    file, clock, certificate = tmp_path / "secret", Clock(), entry("foo.com")
    file.write_text("0123456789abcdef" * 4 + "\n")
    client = client_context()

    def replica() -> CertificateStore:
        made = CertificateStore(tickets=TicketKeys(SecretFile(file), clock))
        made.set_certificates([certificate])
        return made

    one, two = replica(), replica()
    assert await is_resumed(one, two, client)
    file.write_text("fedcba9876543210" * 4)
    assert await is_resumed(one, two, client)  # until the next period, as not all replicas see the file at once
    clock.now += PERIOD_S
    assert await is_resumed(one, two, client)
    file.unlink()
    clock.now += PERIOD_S
    assert await is_resumed(one, two, client)  # a file that is away leaves what was read


async def test_without_the_library_contexts_have_keys_of_their_own(
    replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tickets_module, "usable_library", lambda: None)
    one, two = stores(replica, entry("foo.com"))
    client = client_context()
    assert await is_resumed(one, one, client)
    assert not await is_resumed(one, two, client)


def test_no_earlier_secret_can_be_found(replica: Replica) -> None:
    before = replica.path.read_text()
    replica.clock.now += 3 * PERIOD_S
    replica.parent.advance(replica.clock())
    after = replica.path.read_text()
    assert before.split()[1] not in after
    seed = Seed(int(after.split()[0]), bytes.fromhex(after.split()[1]))
    assert seed == Seed(int(before.split()[0]), bytes.fromhex(before.split()[1])).at(seed.period)
    assert os.stat(replica.path).st_mode & 0o777 == 0o600
    assert [*replica.path.parent.iterdir()] == [replica.path]


@pytest.mark.parametrize("content", [None, b"", b"short", b" " * 64])
def test_a_file_that_holds_no_secret_is_refused(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SettingsError, match=r"tls_ticket_key_file: .*secret cannot be used"):
        SecretFile(file)
