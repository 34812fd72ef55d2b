"""The consumers of a table as plugins find them: by what a request brings, or by name.

Credentials are found by a keyed digest, so neither the time that a look-up takes nor the memory of the index tells
anything of a key. Of several that claim the same the oldest has it (`headgate.common.table.Consumer`); who comes after
it moves up when it goes.
"""

import bisect
import hashlib
import logging
import secrets
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

from headgate.common.plugins.authentication.authenticator import CredentialConfig
from headgate.common.plugins.checking import read_config
from headgate.common.plugins.credentials import CREDENTIALS
from headgate.common.plugins.errors import PluginFault
from headgate.common.plugins.fields import BadHeader, configured_value
from headgate.common.sealing import Purpose, Unseal
from headgate.common.secret import Secret
from headgate.common.table import Consumer, ConsumerGroup, Credential, PluginUse
from headgate.gateway.model.steps import Steps
from headgate.gateway.plugins.interface.errors import PluginRefused
from headgate.gateway.plugins.interface.headers import Headers
from headgate.gateway.plugins.interface.messages import Request
from headgate.gateway.plugins.interface.opening import opened_secrets

_log = logging.getLogger(__name__)

USERNAME: Final = "X-Consumer-Username"
GROUP: Final = "X-Consumer-Group-Id"
CUSTOM_ID: Final = "X-Consumer-Custom-Id"
CREDENTIAL: Final = "X-Credential-Identifier"
_CLAIMS_BEGIN: Final = b"x-c"
_AT_ONCE: Final = 500
"""Consumers that come into force between two turns of the event loop: less than a millisecond."""

Seniority = tuple[str, str, str, str]
"""The least is the oldest: creation time, namespace, name, cluster."""


class KnownGroup:
    """A group of consumers that has plugins."""

    __slots__ = ("name", "owner", "parts", "plugins", "refused", "seniority", "title")

    def __init__(self, entry: ConsumerGroup) -> None:
        self.name = entry.name
        self.title = f"consumer group {entry.name}"
        self.owner = entry.provenance.owner
        self.plugins = entry.plugins
        self.seniority = _seniority(entry)
        self.parts: Any = None
        """Its plugins with their orders, once they were made."""
        self.refused: PluginRefused | None = None
        """Why they cannot be made."""


class KnownConsumer:
    """A consumer."""

    __slots__ = (
        "credentials",
        "gateway",
        "group",
        "labels",
        "lines",
        "name",
        "owner",
        "parts",
        "plugins",
        "problems",
        "refused",
        "scope",
        "seniority",
        "title",
    )

    def __init__(self, entry: Consumer) -> None:
        self.name = entry.name
        self.title = f"consumer {entry.name}"
        self.owner = entry.provenance.owner
        self.scope = entry.provenance.owner if entry.is_scoped else ""
        """Owner of the routes that recognise it; empty: all do."""
        self.gateway = entry.gateway
        """Routes of other Gateways do not recognise it; empty: those of all do."""
        self.group = entry.group
        """Empty for none."""
        self.labels: Mapping[str, str] = entry.labels
        self.plugins: tuple[PluginUse, ...] = entry.plugins
        self.seniority = _seniority(entry)
        self.credentials: tuple[KnownCredential, ...] = ()
        self.lines = b""
        """Header lines that tell upstreams who it is."""
        self.problems: tuple[str, ...] = ()
        """What of it cannot be used."""
        self.parts: Any = None
        """Its plugins with their orders, once they were made."""
        self.refused: PluginRefused | None = None
        """Why they cannot be made."""


class KnownCredential:
    """By what a consumer is recognised."""

    __slots__ = ("config", "consumer", "digest", "lines", "plugin", "prepared")

    def __init__(
        self, consumer: KnownConsumer, plugin: str, config: CredentialConfig, digest: bytes, lines: bytes
    ) -> None:
        self.consumer = consumer
        self.plugin = plugin
        self.config: Any = config
        """What the plugin has to know, its own model."""
        self.digest = digest
        self.lines = lines
        """Header line that tells upstreams its name, if it has one."""
        self.prepared: Any = None
        """What the plugin made of it, for the next time."""

    @property
    def place(self) -> tuple[str, bytes]:
        """Scope and digest that it is found by."""
        return self.consumer.scope, self.digest

    @property
    def gateway(self) -> str:
        """That of its consumer."""
        return self.consumer.gateway

    @property
    def seniority(self) -> Seniority:
        """That of its consumer."""
        return self.consumer.seniority


class _Claimant(Protocol):
    @property
    def seniority(self) -> Seniority: ...


class _OfGateway(_Claimant, Protocol):
    @property
    def gateway(self) -> str: ...


K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=_Claimant)
W = TypeVar("W", bound=_OfGateway)


class Awards(Generic[K, V]):
    """Who has what: of several that claim the same the oldest."""

    __slots__ = ("_rivals", "owners")

    def __init__(self) -> None:
        self.owners: dict[K, V] = {}
        self._rivals: dict[K, list[V]] = {}
        """Of what several claim, all who do, the oldest first."""

    def add(self, key: K, claimant: V) -> bool:
        """Take a claim; tell whether it is the only one."""
        owner = self.owners.setdefault(key, claimant)
        if owner is claimant:
            return True
        rivals = self._rivals.setdefault(key, [owner])
        bisect.insort(rivals, claimant, key=lambda each: each.seniority)
        self.owners[key] = rivals[0]
        return False

    def claimants(self, key: K) -> Sequence[V]:
        """Return those who claim something, the oldest first, if they are several."""
        return self._rivals.get(key, ())

    def drop(self, key: K, claimant: V) -> None:
        """Take a claim back."""
        rivals = self._rivals.get(key)
        if rivals is None:
            del self.owners[key]
            return
        rivals.remove(claimant)
        self.owners[key] = rivals[0]
        if len(rivals) == 1:
            del self._rivals[key]


class ConsumerDirectory:
    """All consumers and groups of the table that is served."""

    def __init__(self) -> None:
        self._digest_key = secrets.token_bytes(32)
        self._consumers: dict[str, KnownConsumer] = {}
        self._groups: dict[str, KnownGroup] = {}
        self._names: Awards[tuple[str, str], KnownConsumer] = Awards()
        """By scope and name; credentials by scope and digest."""
        self._group_names: Awards[str, KnownGroup] = Awards()
        self._credentials: dict[str, Awards[tuple[str, bytes], KnownCredential]] = {
            name: Awards() for name in CREDENTIALS
        }

    @property
    def count(self) -> int:
        """How many consumers there are."""
        return len(self._consumers)

    def find(
        self, plugin: str, value: bytes, owner: str = "", gateways: Collection[str] = ()
    ) -> KnownCredential | None:
        """Return the credential of a plugin that is found by this value: a key, a user's name.

        Consumers that are held to their namespace are found for routes of this `owner` only, and before others; those
        of a Gateway for routes that are of it or of no Gateway.
        """
        digest, awards = self._digest(value), self._credentials[plugin]
        return _known(awards, (owner, digest), gateways) or _known(awards, ("", digest), gateways)

    def named(self, name: str, owner: str = "", gateways: Collection[str] = ()) -> KnownConsumer | None:
        """Return a consumer by its name, for routes of this `owner` and these Gateways."""
        return _known(self._names, (owner, name), gateways) or _known(self._names, ("", name), gateways)

    def group(self, name: str) -> KnownGroup | None:
        """Return a group by its name; None too for one that is nothing but a name."""
        return self._group_names.owners.get(name) if name else None

    def _digest(self, value: bytes) -> bytes:
        return hashlib.blake2b(value, key=self._digest_key, digest_size=16).digest()

    # Changes

    def read(self, entry: Consumer, unseal: Unseal) -> KnownConsumer:
        """Make a consumer of its entry, with its secrets opened; it is not found before `replace` has taken it."""
        consumer = KnownConsumer(entry)
        problems: list[str] = []
        try:
            consumer.lines = Headers(_headers(entry)).to_lines()
        except BadHeader as error:
            consumer.problems = (f"upstreams cannot be told of it: {error}",)
            return consumer
        credentials = []
        for index, credential in enumerate(entry.credentials):
            try:
                credentials.append(self._read_credential(consumer, credential, unseal))
            except (PluginFault, PluginRefused) as fault:
                problems.append(f"credentials[{index}]: {fault}")
        consumer.credentials, consumer.problems = tuple(credentials), tuple(problems)
        return consumer

    def _read_credential(self, consumer: KnownConsumer, credential: Credential, unseal: Unseal) -> KnownCredential:
        use = credential.use
        model = CREDENTIALS.get(use.name)
        if model is None:
            raise PluginRefused(use.name, "", f"recognises no consumers; {', '.join(CREDENTIALS)} do")
        config = read_config(model, use, opened_secrets(use, unseal, Purpose.CREDENTIAL))
        value = getattr(config, model.identified_by)
        text = value.reveal() if isinstance(value, Secret) else value
        named = [(CREDENTIAL, configured_value(credential.name))] if credential.name else []
        return KnownCredential(consumer, use.name, config, self._digest(text.encode()), Headers(named).to_lines())

    def replace(self, arrived: Mapping[str, KnownConsumer], gone: Collection[str]) -> Steps[None]:
        """Take consumers that are new or changed, by their keys, and drop those that are gone, in steps.

        The first step does for nearly all changes. What is new holds before what is old goes, so that a key which goes
        from one to another recognises one of the two all the time.
        """
        contended: list[KnownCredential] = []
        outdated: list[KnownConsumer] = []
        for count, (key, consumer) in enumerate(arrived.items(), 1):
            outdated += [self._consumers[key]] if key in self._consumers else []
            contended += self._add(key, consumer)
            if count % _AT_ONCE == 0:
                yield
        outdated += [self._consumers.pop(key) for key in gone if key in self._consumers]
        for count, before in enumerate(outdated, 1):
            self._names.drop((before.scope, before.name), before)
            for credential in before.credentials:
                self._credentials[credential.plugin].drop(credential.place, credential)
            if count % _AT_ONCE == 0:
                yield
        for credential in contended:
            _note_rivals(self._credentials[credential.plugin].claimants(credential.place))

    def _add(self, key: str, consumer: KnownConsumer) -> Iterator[KnownCredential]:
        """Take a consumer; yields its credentials that others have too."""
        self._consumers[key] = consumer
        self._names.add((consumer.scope, consumer.name), consumer)
        for credential in consumer.credentials:
            if not self._credentials[credential.plugin].add(credential.place, credential):
                yield credential
        for problem in consumer.problems:
            _log.error("a consumer cannot be recognised", extra={"consumer": key, "problem": problem})

    def replace_groups(self, arrived: Mapping[str, KnownGroup], gone: Collection[str]) -> None:
        """Take groups that are new or changed, by their keys, and drop those that are gone; at once."""
        for key in (*gone, *arrived):
            before = self._groups.pop(key, None)
            if before is not None:
                self._group_names.drop(before.name, before)
        for key, group in arrived.items():
            self._groups[key] = group
            self._group_names.add(group.name, group)


def _known(awards: Awards[K, W], key: K, gateways: Collection[str]) -> W | None:
    """Return the oldest of those who claim something that routes of these Gateways recognise; without any all are."""
    oldest = awards.owners.get(key)
    if oldest is None or not gateways or not oldest.gateway or oldest.gateway in gateways:
        return oldest
    return next((each for each in awards.claimants(key) if not each.gateway or each.gateway in gateways), None)


def _seniority(entry: Consumer | ConsumerGroup) -> Seniority:
    source = entry.provenance
    return entry.created_at, source.namespace, source.name, source.cluster


def _headers(entry: Consumer) -> Iterator[tuple[str, str]]:
    yield USERNAME, configured_value(entry.name)
    if entry.group:
        yield GROUP, configured_value(entry.group)
    if "custom_id" in entry.labels:
        yield CUSTOM_ID, configured_value(entry.labels["custom_id"])


def _note_rivals(claimants: Sequence[KnownCredential]) -> None:
    for loser in claimants[1:]:
        winner = claimants[0]
        if winner.consumer.name == loser.consumer.name and winner.config == loser.config:
            continue  # one consumer in several clusters
        if winner.gateway and loser.gateway and winner.gateway != loser.gateway:
            continue  # no route of a Gateway recognises both
        _log.error(
            "two consumers have the same credential, which the older one keeps",
            extra={"plugin": loser.plugin, "kept_by": winner.consumer.name, "refused": loser.consumer.name},
        )


def drop_claims(headers: Headers) -> None:
    """Take away what says whose request it is: nobody but the gateway tells upstreams."""
    if headers.has_any(_CLAIMS_BEGIN):
        for name in (USERNAME, GROUP, CUSTOM_ID, CREDENTIAL):
            headers.remove(name)


def attach(request: Request, consumer: KnownConsumer, credential: KnownCredential | None = None) -> None:
    """Let a request be a consumer's from here on, recognised by a credential if it was by any."""
    variables, headers = request.variables, request.headers
    if request.consumer is not None:
        drop_claims(headers)
        variables.pop("consumer_group_id", None)
    request.consumer = consumer
    variables["consumer_name"] = variables["remote_user"] = consumer.name
    if consumer.group:
        variables["consumer_group_id"] = consumer.group
    headers.extend(consumer.lines if credential is None else consumer.lines + credential.lines)
