"""Orders the certificates that objects want, while this translator leads.

What is wanted, and how it stands, is read from the translation; every step of an order is written to the log and comes
back as an input. So nothing is known here alone but the order that is under way.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple, Protocol

from headgate.common.acme import (
    ACME_CLUSTER,
    AccountState,
    CertificateState,
    IssuedCertificate,
    OpenChallenge,
    account_ref,
    certificate_ref,
    removal_delta,
    state_delta,
)
from headgate.common.errors import StoreError
from headgate.common.recipients import wait_for_recipients
from headgate.common.sealing import Sealer, load_or_create_key
from headgate.common.stores import DeltaLogWriter
from headgate.translator.fragments.fragment import CertificateRef
from headgate.translator.leading.acme.accounts import Accounts
from headgate.translator.leading.acme.authority import Authority, Order, Proof
from headgate.translator.leading.acme.dns_hook import run_hook
from headgate.translator.leading.acme.errors import OrderFailed
from headgate.translator.leading.acme.keys import answering_certificate, issued, make_request, new_key
from headgate.translator.leading.acme.renewals import Renewals
from headgate.translator.leading.acme.schedule import FailureBudget, due_at, failed, is_over
from headgate.translator.settings import TranslatorSettings
from headgate.translator.sources.ordered import ORDERED_CERTIFICATES, ordered_ref
from headgate.translator.translation import Translation
from headgate.translator.world.resolver_settings import ResolverSettings
from headgate.translator.world.world import EVERY

_log = logging.getLogger(__name__)

LOOK_AFTER_S: Final = 60.0
"""Between two looks at what is left, and at renewals."""
LOOK_S: Final = 1.0
"""Between two looks at what is wanted."""
PARALLEL: Final = 4
"""Orders at once."""
POLL_S: Final = 0.1
SERVED_WITHIN_S: Final = 20.0
"""Gateways answer within a second; one that is stuck must not hold an order up for ever."""
ATTEMPTS: Final = 8
_KEY_FILE: Final = "translator.key"
_UNKNOWN_ACCOUNT: Final = "accountDoesNotExist"


class Surface(Protocol):
    """What the issuer sees of the translator."""

    @property
    def translation(self) -> Translation:
        """The translation of now."""
        ...

    @property
    def may_order(self) -> bool:
        """Whether we lead, all that is wanted is known, and what is committed is served."""
        ...

    async def serving_gateways(self) -> frozenset[str]:
        """Return the gateways that serve the table: without one no challenge is answered."""
        ...

    async def is_served(self) -> bool:
        """Tell whether all that was read is committed, and every live gateway serves it."""
        ...


class Issuer:
    """Orders and renews certificates."""

    def __init__(self, settings: TranslatorSettings, log: DeltaLogWriter, surface: Surface) -> None:
        """Prepare; the settings have resolvers."""
        self._settings, self._log, self._surface = settings, log, surface
        self._resolvers: Mapping[str, ResolverSettings] = settings.resolvers
        self._running: dict[CertificateRef, asyncio.Task[None]] = {}
        self._gateways: frozenset[str] = frozenset()
        self._turns = asyncio.Semaphore(PARALLEL)
        self._budget = FailureBudget()
        self._renewals = Renewals(self.state)

    async def run(self) -> None:
        """Run until cancelled."""
        settings = self._settings
        recipients = await wait_for_recipients(settings.sealing_public_keys, settings.data_dir)
        sealer = Sealer(ACME_CLUSTER, recipients)
        key = load_or_create_key(settings.acme_key_file or settings.data_dir / _KEY_FILE)
        accounts = Accounts(settings.table, key, self._log, self._find_account)
        looking_after = asyncio.create_task(self._look_after(accounts))
        try:
            while True:
                await self._look(sealer, accounts)
                await asyncio.sleep(LOOK_S)
        finally:
            tasks = (looking_after, *self._running.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._running.clear()

    async def _look_after(self, accounts: Accounts) -> None:
        """Ask about renewals, and remove what is not wanted any more, time and again."""
        while True:
            if not self._surface.may_order:
                await asyncio.sleep(LOOK_S)
                continue
            try:
                await self._remove_unwanted()
            except StoreError as error:
                _log.info("states of certificates wait to be removed", extra={"reason": str(error)})
            wanted = [ref for ref in self._surface.translation.wanted if ref.resolver in self._resolvers]
            await self._renewals.ask(wanted, lambda ref: accounts.open(ref.resolver, self._resolvers[ref.resolver]))
            await asyncio.sleep(LOOK_AFTER_S)

    async def _remove_unwanted(self) -> None:
        translation, now = self._surface.translation, datetime.now(UTC)
        table = self._settings.table
        key = ORDERED_CERTIFICATES.index_key(EVERY, ACME_CLUSTER, table, "")
        for state in translation.world.members(key):
            ref = ordered_ref(table, state.resolver, state.names)
            if ref not in translation.wanted and ref not in self._running and is_over(state, now):
                await self._log.append(removal_delta(certificate_ref(ref.namespace, ref.secret), now))
                _log.info("a certificate that no object wants is forgotten", extra={"names": ", ".join(ref.names)})

    async def _look(self, sealer: Sealer, accounts: Accounts) -> None:
        for ref, task in list(self._running.items()):
            if task.done():
                del self._running[ref]
        due = self._due() if self._surface.may_order else []
        if not due or not await self._are_gateways_settled():
            return
        for ref in due:
            attempt = _Attempt(self, ref, self._resolvers[ref.resolver], sealer, accounts)
            self._running[ref] = asyncio.create_task(self._in_turn(attempt))

    def _due(self) -> list[CertificateRef]:
        now = datetime.now(UTC)
        wanted = (ref for ref in self._surface.translation.wanted if ref.resolver in self._resolvers)
        return [ref for ref in wanted if ref not in self._running and self._is_due(ref, now) and self._may_have(ref)]

    def _is_due(self, ref: CertificateRef, now: datetime) -> bool:
        state = self.state(ref)
        first_pause = self._resolvers[ref.resolver].first_pause
        due = due_at(state, first_pause, self._renewals.renew_at(ref, state.certificate))
        return due is None or due <= now

    async def _are_gateways_settled(self) -> bool:
        """Whether gateways serve the table, and the same ones as at the last look.

        One that starts is heard of no sooner than it serves, and may then be behind: it could not answer a challenge.
        """
        before, self._gateways = self._gateways, await self._surface.serving_gateways()
        return bool(self._gateways) and self._gateways == before

    async def _in_turn(self, attempt: "_Attempt") -> None:
        async with self._turns:
            # Many orders may have ended, and badly, since this one was due.
            if not self._surface.may_order or not self._may_have(attempt.ref):
                return
            try:
                await attempt.run()
            except StoreError as error:
                _log.warning("an order waits for the log", extra={"names": attempt.shown, "reason": str(error)})
                await asyncio.sleep(attempt.resolver.retry_s)

    def _may_have(self, ref: CertificateRef) -> bool:
        """Whether the names are of objects' own hosts, and not too many orders of their namespaces failed of late."""
        translation = self._surface.translation
        if ref not in translation.wanted or not translation.assembly.may_have(ref):
            return False
        return not self._budget.is_spent(translation.assembly.namespaces_of(ref), datetime.now(UTC))

    def note_failure(self, ref: CertificateRef) -> None:
        """Count an order that came to nothing."""
        now, namespaces = datetime.now(UTC), self._surface.translation.assembly.namespaces_of(ref)
        self._budget.note(namespaces, now)
        if self._budget.is_spent(namespaces, now):
            shown = ", ".join("/".join(each) for each in sorted(namespaces))
            _log.warning("too many orders failed: those of a namespace wait", extra={"namespace": shown})

    def note_issued(self, ref: CertificateRef, certificate: IssuedCertificate) -> None:
        """Hear of a new certificate."""
        self._renewals.note_issued(ref, certificate)

    def state(self, ref: CertificateRef) -> CertificateState:
        """Return how a certificate stands."""
        found = self._surface.translation.world.get(certificate_ref(ref.namespace, ref.secret))
        if isinstance(found, CertificateState):
            return found
        return CertificateState(resolver=ref.resolver, names=ref.names)

    def _find_account(self, resolver: str) -> AccountState | None:
        found = self._surface.translation.world.get(account_ref(self._settings.table, resolver))
        return found if isinstance(found, AccountState) else None

    async def write(self, ref: CertificateRef, state: CertificateState) -> None:
        """Write how a certificate stands.

        Raises:
            StoreError: not now.
        """
        name = certificate_ref(ref.namespace, ref.secret)
        for attempt in range(ATTEMPTS):
            try:
                await self._log.append(state_delta(name, state, datetime.now(UTC)))
            except StoreError:
                if attempt == ATTEMPTS - 1:
                    raise
                await asyncio.sleep(0.2 * 2**attempt)
            else:
                return

    async def until_read(self, ref: CertificateRef, state: CertificateState) -> None:
        """Wait until a state that was written has come back from the log, or it is time to look anyway."""
        for _ in range(round(SERVED_WITHIN_S / POLL_S)):
            if self.state(ref) == state:
                return
            await asyncio.sleep(POLL_S)

    async def until_served(self, ref: CertificateRef, state: CertificateState) -> None:
        """Wait until every gateway answers by a state, for as long as that may take."""
        settings = self._settings
        within_s = SERVED_WITHIN_S + len(settings.rollout_shares) * settings.rollout_window_s
        try:
            async with asyncio.timeout(within_s):
                while True:
                    if self.state(ref) == state and await self._surface.is_served():
                        return
                    await asyncio.sleep(POLL_S)
        except TimeoutError:
            _log.warning("not all gateways answer a challenge yet", extra={"names": ", ".join(ref.names)})


class _Attempt(NamedTuple):
    """One order, from its beginning to a certificate or a failure."""

    issuer: Issuer
    ref: CertificateRef
    resolver: ResolverSettings
    sealer: Sealer
    accounts: Accounts

    @property
    def shown(self) -> str:
        return ", ".join(self.ref.names)

    async def run(self) -> None:
        """Order; what becomes of it is in the log."""
        ref, issuer = self.ref, self.issuer
        before = issuer.state(ref)
        begun = before.model_copy(update={"ordered_at": datetime.now(UTC), "challenges": ()})
        await issuer.write(ref, begun)
        try:
            state = await self._order(begun)
        except OrderFailed as error:
            if _UNKNOWN_ACCOUNT in str(error):
                self.accounts.forget(ref.resolver)
            _log.warning("no certificate", extra={"names": self.shown, "reason": str(error)})
            now = datetime.now(UTC)
            state = failed(begun, str(error), now, self.resolver.first_pause, error.retry_after)
        except StoreError as error:
            state = failed(begun, f"the log: {error}", datetime.now(UTC), self.resolver.first_pause)
        except Exception as error:
            # One name set must not end the orders of others.
            _log.exception("an order failed", extra={"names": self.shown})
            state = failed(begun, f"{type(error).__name__}: {error}", datetime.now(UTC), self.resolver.first_pause)
        else:
            _log.info("certificate issued", extra={"names": self.shown})
        if state.failure is not None:
            issuer.note_failure(ref)
        await issuer.write(ref, state)
        # By the state before it the certificate may be due again.
        await issuer.until_read(ref, state)

    async def _order(self, begun: CertificateState) -> CertificateState:
        authority = await self.accounts.open(self.ref.resolver, self.resolver)
        key = new_key()
        order = await asyncio.to_thread(authority.begin, make_request(key, self.ref.names))
        chain = await self._prove(authority, order, begun)
        certificate = issued(chain, key, self.sealer)
        self.issuer.note_issued(self.ref, certificate)
        return begun.model_copy(
            update={"certificate": certificate, "ordered_at": None, "challenges": (), "failure": None}
        )

    async def _prove(self, authority: Authority, order: Order, begun: CertificateState) -> str:
        if self.resolver.challenge == "dns-01":
            return await self._prove_by_dns(authority, order)
        if order.proofs:
            open_challenges = tuple(map(self._open, order.proofs))
            shown = begun.model_copy(update={"challenges": open_challenges})
            await self.issuer.write(self.ref, shown)
            await self.issuer.until_served(self.ref, shown)
        return await asyncio.to_thread(authority.finish, order)

    def _open(self, proof: Proof) -> OpenChallenge:
        if self.resolver.challenge == "tls-alpn-01":
            certificate = answering_certificate(proof.host, proof.key_authorization, self.sealer)
            return OpenChallenge(host=proof.host, certificate=certificate)
        return OpenChallenge(host=proof.host, token=proof.token, answer=proof.key_authorization)

    async def _prove_by_dns(self, authority: Authority, order: Order) -> str:
        done: list[Proof] = []
        try:
            for proof in order.proofs:
                done.append(proof)
                await run_hook(self.resolver.dns_command, "present", proof.host, proof.record)
            return await asyncio.to_thread(authority.finish, order)
        finally:
            await _clean_up(done, lambda one: run_hook(self.resolver.dns_command, "cleanup", one.host, one.record))


async def _clean_up(proofs: list[Proof], remove: Callable[[Proof], Awaitable[None]]) -> None:
    for proof in proofs:
        try:
            await remove(proof)
        except OrderFailed as error:
            _log.warning("a record is left behind", extra={"host": proof.host, "reason": str(error)})
