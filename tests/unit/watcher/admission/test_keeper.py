"""The watcher that leads and the webhook's certificate, against an API server, on a clock that the tests turn."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from fakes.kubernetes.api import FakeKubernetes
from fakes.kubernetes.kept_certificate import (
    CONFIGURATION,
    NAMESPACE,
    SECRET,
    authorities,
    configuration,
    kept,
    secret,
    trusted,
)
from fakes.translator.leadership import Seat
from fakes.virtual_time import in_virtual_time
from fakes.waiting import until as until_within
from headgate.common.service.tasks import cancel
from headgate.watcher.admission.certificate import SecretCertificate
from headgate.watcher.admission.keeper import CertificateKeeper
from headgate.watcher.admission.kept_secret import KeptSecret
from headgate.watcher.admission.rotation import DesiredCertificate
from headgate.watcher.admission.trusted_bundle import TrustedBundle
from headgate.watcher.api.transport import KubernetesTransport
from headgate.watcher.errors import CertificateUnusable

NOW = datetime(2026, 3, 1, tzinfo=UTC)
BOUND_S = 600.0
"""Of virtual time: some looks of ten seconds each."""
WANTED = DesiredCertificate(("headgate-admission.headgate.svc",), timedelta(days=90))


async def until(condition: Callable[[], bool]) -> None:
    await until_within(condition, BOUND_S)


@dataclass
class Pair:
    """Two watchers of a cluster, with one clock."""

    api: FakeKubernetes
    transport: KubernetesTransport
    seats: tuple[Seat, Seat]
    keepers: tuple[CertificateKeeper, ...] = ()
    now: datetime = NOW

    def kept_secret(self) -> KeptSecret:
        return KeptSecret(self.transport, NAMESPACE, SECRET)

    def keeper(self, seat: Seat) -> CertificateKeeper:
        bundle = TrustedBundle(self.transport, CONFIGURATION)
        return CertificateKeeper(self.kept_secret(), bundle, WANTED, seat, now=lambda: self.now)

    def is_settled(self) -> bool:
        """Whether API servers trust what is kept, and nothing is on its way."""
        content = kept(self.api)
        return "tls.crt" in content and "next.crt" not in content and trusted(self.api) == content["ca.crt"]

    async def rest(self) -> None:
        """Let some looks pass."""
        await asyncio.sleep(60)


@asynccontextmanager
async def running(folder: Path, *objects: dict[str, object], leaders: int = 1) -> AsyncIterator[Pair]:
    """Two watchers, of which so many believe that they lead."""
    async with FakeKubernetes() as api:
        for wanted in objects or (secret(), configuration()):
            api.apply(wanted)
        transport = KubernetesTransport(api.write_kubeconfig(folder / "config"))
        pair = Pair(api, transport, (Seat(is_leader=leaders > 0), Seat(is_leader=leaders > 1)))
        pair.keepers = tuple(map(pair.keeper, pair.seats))
        tasks = [asyncio.create_task(keeper.run()) for keeper in pair.keepers]
        try:
            yield pair
        finally:
            await cancel(*tasks)
            await transport.close()


def leaf(api: FakeKubernetes) -> x509.Certificate:
    return x509.load_pem_x509_certificate(kept(api)["tls.crt"])


@in_virtual_time
async def test_an_empty_secret_is_filled_and_all_webhooks_are_told_the_authority(tmp_path: Path) -> None:
    async with running(tmp_path) as pair:
        await until(pair.is_settled)
        assert kept(pair.api).keys() == {"tls.crt", "tls.key", "ca.crt"}
        found = pair.api.get("validatingwebhookconfigurations", CONFIGURATION)
        for webhook, before in zip(found["webhooks"], configuration()["webhooks"], strict=True):
            before["clientConfig"]["caBundle"] = webhook["clientConfig"]["caBundle"]
            assert webhook == before
        version = found["metadata"]["resourceVersion"]
        await pair.rest()
        assert pair.api.get("validatingwebhookconfigurations", CONFIGURATION)["metadata"]["resourceVersion"] == version
        assert pair.keepers[0].troubles == ()


@in_virtual_time
async def test_only_two_objects_are_asked_for_and_nothing_is_made(tmp_path: Path) -> None:
    async with running(tmp_path) as pair:
        await until(pair.is_settled)
        asked = {(seen.verb, seen.resource, seen.namespace, seen.name) for seen in pair.api.requests}
        assert asked == {
            (verb, *which)
            for verb in ("get", "patch")
            for which in (("secrets", NAMESPACE, SECRET), ("validatingwebhookconfigurations", "", CONFIGURATION))
        }


@in_virtual_time
async def test_a_certificate_is_renewed_with_both_authorities_trusted_first(tmp_path: Path) -> None:
    async with running(tmp_path) as pair:
        await until(pair.is_settled)
        first, old = leaf(pair.api), trusted(pair.api)
        pair.now += timedelta(days=60)
        await until(lambda: "next.crt" in kept(pair.api))
        await until(lambda: len(authorities(trusted(pair.api))) == 2)
        assert leaf(pair.api) == first
        assert trusted(pair.api).endswith(old)
        await until(lambda: leaf(pair.api) != first)
        assert len(authorities(trusted(pair.api))) == 2
        pair.now += timedelta(days=30)
        await until(lambda: len(authorities(trusted(pair.api))) == 1)
        assert not trusted(pair.api).endswith(old)


@in_virtual_time
async def test_what_is_not_trusted_is_not_presented(tmp_path: Path) -> None:
    async with running(tmp_path) as pair:
        await until(pair.is_settled)
        first = leaf(pair.api)
        pair.api.forbid("validatingwebhookconfigurations")
        pair.now += timedelta(days=60)
        await until(lambda: "next.crt" in kept(pair.api))
        await pair.rest()
        assert leaf(pair.api) == first
        assert "validatingwebhookconfigurations is forbidden" in pair.keepers[0].troubles[0]
        pair.api.allow("validatingwebhookconfigurations")
        await until(lambda: leaf(pair.api) != first)
        await pair.rest()
        assert pair.keepers[0].troubles == ()


@in_virtual_time
async def test_a_change_of_leader_in_the_midst_of_it_loses_nothing(tmp_path: Path) -> None:
    async with running(tmp_path) as pair:
        await until(pair.is_settled)
        pair.now += timedelta(days=60)
        await until(lambda: "next.crt" in kept(pair.api))
        upcoming = kept(pair.api)["next.crt"]
        pair.seats[0].lose()
        pair.seats[1].take()
        await until(pair.is_settled)
        assert kept(pair.api)["tls.crt"] == upcoming
        assert len(authorities(trusted(pair.api))) == 2


@in_virtual_time
async def test_two_that_believe_they_lead_agree(tmp_path: Path) -> None:
    async with running(tmp_path, leaders=2) as pair:
        await until(pair.is_settled)
        await pair.rest()
        assert pair.is_settled()
        assert len(authorities(trusted(pair.api))) == 1
        writes = [seen for seen in pair.api.seen("patch", "secrets")]
        assert 1 <= len(writes) <= 2  # one of them in vain


@in_virtual_time
async def test_who_noticed_nothing_of_its_end_writes_nothing(tmp_path: Path) -> None:
    async with running(tmp_path) as pair:
        await until(pair.is_settled)
        written = pair.api.seen("patch")
        pair.seats[0].expire()
        pair.now += timedelta(days=60)
        await pair.rest()
        assert pair.api.seen("patch") == written


@in_virtual_time
async def test_the_first_is_made_by_whoever_comes_as_the_one_that_leads_may_know_of_no_webhook(tmp_path: Path) -> None:
    async with running(tmp_path, leaders=0) as pair:
        await until(lambda: "tls.crt" in kept(pair.api))
        await pair.rest()
        first = leaf(pair.api)
        assert trusted(pair.api) == b""
        pair.seats[1].take()
        await until(pair.is_settled)
        assert leaf(pair.api) == first


@in_virtual_time
async def test_the_first_is_made_when_its_secret_comes(tmp_path: Path) -> None:
    async with running(tmp_path, configuration(), leaders=0) as pair:
        await until(lambda: bool(pair.keepers[0].troubles))
        pair.api.apply(secret())
        await until(lambda: "tls.crt" in kept(pair.api))
        await until(lambda: not (pair.keepers[0].troubles or pair.keepers[1].troubles))


@in_virtual_time
async def test_a_missing_secret_is_said_and_taken_up_when_it_comes(tmp_path: Path) -> None:
    async with running(tmp_path, configuration()) as pair:
        await until(lambda: bool(pair.keepers[0].troubles))
        assert "Secret headgate/headgate-admission is not there: make it, without data" in pair.keepers[0].troubles[0]
        pair.api.apply(secret())
        await until(pair.is_settled)


@in_virtual_time
async def test_somebody_elses_secret_is_left_alone(tmp_path: Path) -> None:
    foreign = secret("kubernetes.io/tls", {"tls.crt": b"a", "tls.key": b"b"})
    async with running(tmp_path, foreign, configuration()) as pair:
        await until(lambda: bool(pair.keepers[0].troubles))
        assert "is of type kubernetes.io/tls, so somebody else's" in pair.keepers[0].troubles[0]
        await pair.rest()
        assert kept(pair.api) == {"tls.crt": b"a", "tls.key": b"b"}
        assert trusted(pair.api) == b""


@pytest.mark.parametrize(
    "broken", [b"", b"\xff\x00", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
)
def test_broken_content_is_replaced(tmp_path: Path, broken: bytes) -> None:
    @in_virtual_time
    async def run() -> None:
        content = {"tls.crt": broken, "tls.key": broken, "next.crt": broken, "ca.crt": broken, "mine": b"stays"}
        async with running(tmp_path, secret(data=content), configuration()) as pair:
            await until(pair.is_settled)
            assert kept(pair.api)["mine"] == b"stays"

    run()


@in_virtual_time
async def test_an_emptied_secret_is_filled_anew_and_what_was_before_is_trusted_no_more(tmp_path: Path) -> None:
    async with running(tmp_path) as pair:
        await until(pair.is_settled)
        old = trusted(pair.api)
        pair.api.delete("secrets", SECRET, NAMESPACE)
        await pair.rest()
        pair.api.apply(secret())
        await until(lambda: pair.is_settled() and trusted(pair.api) != old)
        assert len(authorities(trusted(pair.api))) == 1


@in_virtual_time
async def test_a_bundle_that_somebody_changed_is_put_right(tmp_path: Path) -> None:
    async with running(tmp_path) as pair:
        await until(pair.is_settled)
        pair.api.apply(configuration(labels={"applied": "anew"}))
        await until(pair.is_settled)
        found = pair.api.get("validatingwebhookconfigurations", CONFIGURATION)
        assert found["metadata"]["labels"] == {"applied": "anew"}


@in_virtual_time
async def test_a_configuration_of_cert_manager_is_left_alone(tmp_path: Path) -> None:
    annotations = {"cert-manager.io/inject-ca-from": "headgate/headgate-admission"}
    async with running(tmp_path, secret(), configuration(annotations=annotations)) as pair:
        await until(lambda: bool(pair.keepers[0].troubles))
        assert "cert-manager writes its caBundle: take it away" in pair.keepers[0].troubles[0]
        await pair.rest()
        assert trusted(pair.api) == b""


@in_virtual_time
async def test_an_api_server_that_fails_now_and_then_is_outwaited(tmp_path: Path) -> None:
    async with running(tmp_path, leaders=0) as pair:
        pair.api.faults.status(500, verb="get", resource="secrets")
        pair.api.faults.reset(verb="patch", resource="secrets")
        pair.api.faults.status(409, verb="patch", resource="validatingwebhookconfigurations")
        pair.api.faults.body(b"", verb="get", resource="validatingwebhookconfigurations")
        pair.seats[0].take()
        await until(pair.is_settled)
        await pair.rest()
        assert pair.keepers[0].troubles == ()


@in_virtual_time
async def test_replicas_present_what_is_kept_and_go_on_with_it_when_it_goes_bad(tmp_path: Path) -> None:
    async with running(tmp_path) as pair:
        await until(pair.is_settled)
        certificate = SecretCertificate(pair.kept_secret())
        assert await certificate.refresh()
        assert not await certificate.refresh()
        pair.seats[0].lose()
        for wrong, complaint in (
            (secret(data={"tls.crt": b"a", "tls.key": b"b"}), "cannot be used"),
            (secret("Opaque"), "somebody else's"),
            (secret(), "holds no certificate yet"),
        ):
            pair.api.apply(wrong)
            with pytest.raises(CertificateUnusable, match=complaint):
                await certificate.refresh()
        pair.api.forbid("secrets")
        with pytest.raises(CertificateUnusable, match="cannot be read: 403"):
            await certificate.refresh()
