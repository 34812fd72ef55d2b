"""Orders of a leading translator over stores in memory, of an authority that is simulated."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from nacl.encoding import Base64Encoder
from nacl.public import PrivateKey

from fakes.translator.deltas import applied, deleted, ingress
from fakes.translator.loop import fill, heartbeat, running, settings, table_of, version_of
from fakes.waiting import until, until_still
from headgate.common.acme import ACME_CLUSTER
from headgate.common.errors import StoreUnavailable
from headgate.common.stores.memory.stores import MemoryStores
from headgate.common.table import Certificate, Challenge, TableEntry
from headgate.translator.leading.acme import accounts as accounts_module
from headgate.translator.leading.acme import issuer as issuer_module
from headgate.translator.leading.acme import renewals, schedule
from headgate.translator.leading.acme.authority import Order, Proof
from headgate.translator.leading.acme.errors import OrderFailed
from headgate.translator.leading.acme.issuer import Issuer
from headgate.translator.loop import TranslatorLoop
from headgate.translator.sources.ordered import ORDERED_CERTIFICATES
from headgate.translator.world.resolver_settings import ResolverSettings
from headgate.translator.world.world import EVERY


class SimulatedAuthority:
    """Signs what it is asked for, unless a name is among those that fail."""

    def __init__(self) -> None:
        self.orders: list[tuple[str, ...]] = []
        self.fails: dict[str, str] = {}
        self.retry_after: timedelta | None = None
        self.life = timedelta(days=90)
        self.looks_at: Any = None
        """Called with the proofs of an order, when the issuer asks the authority to validate them."""
        self.registered = 0
        self.renew_at: datetime | None = None
        """That it says of every certificate."""
        self.asked = 0

    def account(self, settings: ResolverSettings, _key: object, uri: str = "") -> "SimulatedAccount":
        return SimulatedAccount(self, settings, uri)

    def sign(self, request: x509.CertificateSigningRequest) -> str:
        now = datetime.now(UTC)
        issuer = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Simulated CA")])
        names = request.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(request.subject)
            .issuer_name(issuer)
            .public_key(request.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + self.life)
            .add_extension(names.value, critical=True)
            .sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
        )
        return certificate.public_bytes(serialization.Encoding.PEM).decode()


class SimulatedAccount:
    """What the issuer speaks with."""

    def __init__(self, authority: SimulatedAuthority, settings: ResolverSettings, uri: str) -> None:
        self.authority, self.settings, self.uri = authority, settings, uri

    def open(self) -> None:
        if not self.uri:
            self.authority.registered += 1
            self.uri = f"account/{self.authority.registered}"

    def begin(self, request_pem: bytes) -> Order:
        request = x509.load_pem_x509_csr(request_pem)
        alternatives = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        names = tuple(alternatives.get_values_for_type(x509.DNSName))
        self.authority.orders.append(names)
        proofs = (Proof(name.removeprefix("*."), "token", "token.thumb", "record", None) for name in names)  # type: ignore[arg-type]
        return Order(request, tuple(proofs))  # type: ignore[arg-type]

    def renewal_time(self, chain_pem: str) -> tuple[datetime | None, datetime]:
        assert chain_pem.startswith("-----BEGIN")
        self.authority.asked += 1
        return self.authority.renew_at, datetime.now(UTC) + timedelta(seconds=0.05)

    def finish(self, order: Order) -> str:
        for proof in order.proofs:
            if reason := self.authority.fails.get(proof.host):
                raise OrderFailed(reason, self.authority.retry_after)
        if self.authority.looks_at is not None:
            self.authority.looks_at(order.proofs)
        request: Any = order.resource
        return self.authority.sign(request)


class Site:
    """A translator that leads, the one gateway of its table, and an authority."""

    def __init__(self, stores: MemoryStores, loop: TranslatorLoop, authority: SimulatedAuthority) -> None:
        self.stores, self.loop, self.authority = stores, loop, authority
        self.has_gateway = True
        self.served: dict[str, TableEntry] = {}

    async def follow(self) -> None:
        """Serve whatever is published."""
        while True:
            if self.has_gateway and (version := version_of(self.stores)) is not None:
                self.served = await table_of(self.stores)
                await self.stores.heartbeats.beat(heartbeat(version))
            await asyncio.sleep(0.01)

    def certificates(self) -> list[Certificate]:
        return [entry for entry in self.served.values() if isinstance(entry, Certificate)]

    async def issued(self, *names: str) -> Certificate:
        """Wait for a certificate of these server names in what is served."""
        found: Certificate = await until(
            lambda: next((one for one in self.certificates() if one.server_names == names), None)
        )
        return found

    def reasons(self, manifest: Any) -> set[str]:
        """Return what is said of an object, besides what these tests do not care about."""
        status = self.loop.translation.condition(applied(manifest).ref)
        found = {problem.reason for problem in status.problems} if status is not None else set()
        return found - {"ServiceNotFound", "PathConflict"}


@asynccontextmanager
async def site(tmp_path: Path, *manifests: Any, **values: Any) -> AsyncIterator[Site]:
    stores, authority = MemoryStores(), values.pop("authority", None) or SimulatedAuthority()
    told = {
        "data_dir": tmp_path,
        "acme_email": "ops@a.test",
        "acme_retry_s": 0.05,
        **values,
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accounts_module, "Authority", authority.account)
        patch.setattr(issuer_module, "LOOK_S", 0.02)
        patch.setattr(issuer_module, "LOOK_AFTER_S", 0.02)
        patch.setattr(issuer_module, "POLL_S", 0.01)
        await fill(stores, *manifests)
        async with running(stores, **told) as loop:
            made = Site(stores, loop, authority)
            tasks = [
                asyncio.create_task(made.follow()),
                asyncio.create_task(Issuer(settings(**told), stores.log_writer, loop).run()),
            ]
            try:
                yield made
            finally:
                for task in tasks:
                    task.cancel()
                    with suppress(asyncio.CancelledError):
                        await task


@pytest.fixture(autouse=True)
def _gateway_key(tmp_path: Path) -> None:
    (tmp_path / "gateway.pub").write_bytes(PrivateKey.generate().public_key.encode(Base64Encoder))


def wanting(name: str, *hosts: str, resolver: str = "true", **more: Any) -> Any:
    rule = ingress(name, host=hosts[0])["spec"]["rules"][0]
    spec = {"rules": [{**rule, "host": host} for host in hosts], "tls": [{"hosts": list(hosts)}]}
    return ingress(name, spec=spec, annotations={"headgate.dev/acme": resolver}, **more)


async def test_what_is_wanted_is_ordered_once_and_served(tmp_path: Path) -> None:
    shop = wanting("shop", "a.test", "b.test")
    async with site(tmp_path, shop, wanting("other", "b.test", "a.test")) as made:
        found = await made.issued("a.test", "b.test")
        assert found.not_after > datetime.now(UTC).isoformat()
        await until_still(lambda: len(made.authority.orders))
        assert made.authority.orders == [("a.test", "b.test")]
        assert not made.reasons(shop)
        assert not [entry for entry in made.served.values() if isinstance(entry, Challenge)]


@pytest.mark.parametrize("challenge", ["http-01", "tls-alpn-01"])
async def test_all_gateways_answer_before_the_authority_is_told_to_look(tmp_path: Path, challenge: str) -> None:
    seen: list[TableEntry] = []
    authority = SimulatedAuthority()
    async with site(tmp_path, wanting("shop", "a.test"), authority=authority, acme_challenge=challenge) as made:
        authority.looks_at = lambda _: seen.extend(made.served.values())
        await made.issued("a.test")
    if challenge == "http-01":
        [answer] = [entry for entry in seen if isinstance(entry, Challenge)]
        assert (answer.host, answer.token, answer.answer) == ("a.test", "token", "token.thumb")
    else:
        [answering] = [entry for entry in seen if isinstance(entry, Certificate)]
        assert answering.server_names == ("acme-tls/1 a.test",)


async def test_nothing_is_ordered_while_no_gateway_serves(tmp_path: Path) -> None:
    async with site(tmp_path, wanting("shop", "a.test")) as made:
        made.has_gateway = False
        await until(lambda: version_of(made.stores))
        await until_still(lambda: len(made.authority.orders))
        assert made.authority.orders == []
        assert made.reasons(wanting("shop", "a.test")) == {"CertificatePending"}
        made.has_gateway = True
        await made.issued("a.test")


async def test_a_gateway_that_does_not_follow_holds_an_order_up_for_a_while_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(issuer_module, "SERVED_WITHIN_S", 0.2)
    async with site(tmp_path, wanting("shop", "a.test")) as made:

        async def stuck() -> None:
            while True:
                if (version := version_of(made.stores)) is not None and not made.authority.orders:
                    beat = heartbeat(version).model_copy(update={"replica": "stuck"})
                await made.stores.heartbeats.beat(beat)
                await asyncio.sleep(0.01)

        await until(lambda: version_of(made.stores))
        task = asyncio.create_task(stuck())
        await made.issued("a.test")
        task.cancel()
    assert "not all gateways answer" in caplog.text


async def test_a_failure_is_said_and_tried_again(tmp_path: Path) -> None:
    shop, authority = wanting("shop", "a.test"), SimulatedAuthority()
    authority.fails["a.test"] = "connection refused"
    async with site(tmp_path, shop, authority=authority) as made:
        await until(lambda: len(authority.orders) == 3)

        await until(lambda: made.reasons(shop) == {"CertificateFailed"})
        authority.fails.clear()
        await made.issued("a.test")
        assert not made.reasons(shop)


async def test_an_authority_says_how_long_to_wait(tmp_path: Path) -> None:
    authority = SimulatedAuthority()
    authority.fails["a.test"], authority.retry_after = "rate limited", timedelta(hours=1)
    async with site(tmp_path, wanting("shop", "a.test"), authority=authority):
        await until(lambda: authority.orders)
        await until_still(lambda: len(authority.orders))
        assert len(authority.orders) == 1


async def test_an_account_that_is_not_known_any_more_is_replaced(tmp_path: Path) -> None:
    authority = SimulatedAuthority()
    authority.fails["a.test"] = "accountDoesNotExist: no such account"
    async with site(tmp_path, wanting("shop", "a.test"), authority=authority) as made:
        await until(lambda: authority.registered >= 2)
        authority.fails.clear()
        await made.issued("a.test")


async def test_an_error_of_ours_fails_one_order_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    authority = SimulatedAuthority()
    sign = authority.sign

    def broken(request: x509.CertificateSigningRequest) -> str:
        if "bad.test" in str(request.extensions):
            raise RuntimeError("a fault")
        return sign(request)

    monkeypatch.setattr(authority, "sign", broken)
    bad = wanting("bad", "bad.test")
    async with site(tmp_path, bad, wanting("good", "good.test"), authority=authority) as made:
        await made.issued("good.test")

        await until(lambda: made.reasons(bad) == {"CertificateFailed"})
    assert "an order failed" in caplog.text


async def test_a_certificate_is_renewed_when_two_thirds_of_its_life_are_over(tmp_path: Path) -> None:
    authority = SimulatedAuthority()
    authority.life = timedelta(minutes=20)  # of which an hour is over when it is issued
    async with site(tmp_path, wanting("shop", "a.test"), authority=authority) as made:
        first = await made.issued("a.test")
        authority.life = timedelta(days=90)
        await until(lambda: any(one.fingerprint != first.fingerprint for one in made.certificates()))
        before = len(authority.orders)
        await until_still(lambda: len(authority.orders))
        assert len(authority.orders) <= before + 1


async def test_a_certificate_that_no_object_asks_for_is_neither_served_nor_renewed(tmp_path: Path) -> None:
    shop = wanting("shop", "a.test")
    async with site(tmp_path, shop) as made:
        await made.issued("a.test")
        await made.stores.log_writer.append(deleted(shop))
        await until(lambda: not made.certificates())
        assert not made.loop.translation.wanted


async def test_nothing_is_ordered_for_the_host_of_another_namespace(tmp_path: Path) -> None:
    owner = ingress("web", host="a.test", namespace="one", created="2024-01-01T00:00:00Z")
    guest = wanting("guest", "a.test", namespace="two", created="2025-01-01T00:00:00Z")
    async with site(tmp_path, owner, guest, wanting("mine", "b.test", namespace="two")) as made:
        await made.issued("b.test")
        await until_still(lambda: len(made.authority.orders))
        assert made.authority.orders == [("b.test",)]
        assert "HostNotOwned" in made.reasons(guest)
        await made.stores.log_writer.append(deleted(owner))
        await made.issued("a.test")


async def test_sets_of_names_of_one_namespace_may_overlap(tmp_path: Path) -> None:
    first = wanting("first", "a.test", created="2024-01-01T00:00:00Z")
    second = wanting("second", "a.test", "b.test", created="2025-01-01T00:00:00Z")
    async with site(tmp_path, first, second) as made:
        await made.issued("a.test")
        await made.issued("b.test")
        assert set(made.authority.orders) == {("a.test",), ("a.test", "b.test")}


async def test_failures_of_one_namespace_leave_room_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(schedule, "FAILURES", 3)
    authority = SimulatedAuthority()
    bad = [wanting(f"bad-{number}", f"bad-{number}.test", namespace="bad") for number in range(12)]
    authority.fails = {f"bad-{number}.test": "no such host" for number in range(12)}
    async with site(tmp_path, *bad, authority=authority, acme_retry_s=3600) as made:
        await until(lambda: "too many orders failed" in caplog.text)
        ordered = await until_still(lambda: len(authority.orders))
        # Those that were under way when the third failed came to their end.
        assert 3 <= ordered <= 3 + issuer_module.PARALLEL
        await made.stores.log_writer.append(applied(wanting("good", "good.test", namespace="good")))
        await made.issued("good.test")


async def test_orders_wait_for_a_log_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with site(tmp_path, wanting("shop", "a.test")) as made:
        made.has_gateway = False
        await until(lambda: version_of(made.stores))
        monkeypatch.setattr(issuer_module, "ATTEMPTS", 2)
        append = made.stores.log_writer.append

        async def refuse(*_: Any) -> None:
            raise StoreUnavailable("gone")

        monkeypatch.setattr(made.stores.log_writer, "append", refuse)
        made.has_gateway = True
        await until(lambda: "an order waits for the log" in caplog.text)
        assert made.authority.orders == []
        monkeypatch.setattr(made.stores.log_writer, "append", append)
        await made.issued("a.test")


async def test_a_wildcard_is_proved_by_the_command(tmp_path: Path) -> None:
    told = tmp_path / "told"
    command = [sys.executable, "-c", f"import sys; open({str(told)!r}, 'a').write(' '.join(sys.argv[1:]) + '\\n')"]
    async with site(tmp_path, wanting("shop", "*.a.test"), acme_challenge="dns-01", acme_dns_command=command) as made:
        await made.issued("*.a.test")
        await until(lambda: len(told.read_text().splitlines()) == 2)
    assert told.read_text().splitlines() == [f"{what} _acme-challenge.a.test record" for what in ("present", "cleanup")]


async def test_a_record_that_cannot_be_removed_is_said_only(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    command = [sys.executable, "-c", "import sys; sys.exit(sys.argv[1] == 'cleanup')"]
    async with site(tmp_path, wanting("shop", "a.test"), acme_challenge="dns-01", acme_dns_command=command) as made:
        await made.issued("a.test")
    assert "a record is left behind" in caplog.text


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        (wanting("shop", "a.test", resolver="missing"), "ResolverNotFound"),
        (wanting("shop", "*.a.test"), "WildcardNeedsDns"),
        (wanting("shop", *(f"a{number}.test" for number in range(101))), "TooManyNames"),
    ],
)
async def test_what_cannot_be_ordered_is_said(tmp_path: Path, manifest: Any, reason: str) -> None:
    async with site(tmp_path, manifest, wanting("good", "good.test")) as made:
        await made.issued("good.test")
        assert reason in made.reasons(manifest)
        assert made.authority.orders == [("good.test",)]


async def test_a_state_that_no_object_wants_is_removed_once_its_certificate_has_ended(tmp_path: Path) -> None:
    authority, shop = SimulatedAuthority(), wanting("shop", "a.test")
    authority.life = timedelta(seconds=2)
    async with site(tmp_path, shop, wanting("other", "b.test"), authority=authority) as made:
        await made.issued("a.test")
        await made.issued("b.test")
        await made.stores.log_writer.append(deleted(shop))

        def states() -> set[tuple[str, ...]]:
            key = ORDERED_CERTIFICATES.index_key(EVERY, ACME_CLUSTER, "default", "")
            return {state.names for state in made.loop.translation.world.members(key)}

        assert ("a.test",) in states()
        await until(lambda: ("a.test",) not in states())
        assert ("b.test",) in states()


async def test_an_authority_may_want_a_certificate_renewed_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renewals, "NEW", timedelta())
    authority = SimulatedAuthority()
    async with site(tmp_path, wanting("shop", "a.test"), authority=authority) as made:
        await made.issued("a.test")
        await until(lambda: authority.asked)
        assert len(authority.orders) == 1
        authority.renew_at = datetime.now(UTC) - timedelta(days=1)
        await until(lambda: len(authority.orders) >= 2)


async def test_a_certificate_that_was_just_ordered_is_not_asked_about(tmp_path: Path) -> None:
    authority = SimulatedAuthority()
    authority.renew_at = datetime.now(UTC) - timedelta(days=1)
    async with site(tmp_path, wanting("shop", "a.test"), authority=authority) as made:
        await made.issued("a.test")
        await until_still(lambda: len(authority.orders))
        assert (len(authority.orders), authority.asked) == (1, 0)


async def test_certificates_of_a_short_life_are_not_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renewals, "NEW", timedelta())
    authority = SimulatedAuthority()
    authority.life = timedelta(hours=12)
    async with site(tmp_path, wanting("shop", "a.test"), authority=authority) as made:
        await made.issued("a.test")
        await until_still(lambda: authority.asked)
        assert authority.asked == 0
