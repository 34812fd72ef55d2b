"""Sealing of secrets: what crosses the bus can be read by gateways only.

A watcher seals each value to the gateways' public keys (libsodium's sealed box: X25519, XSalsa20-Poly1305, an ephemeral
sender); only gateways hold the private halves. Several recipients at once let keys be rotated: seal to both, move
the gateways, drop the old one. The translator passes sealed values on and can open none.

With the value a box holds what it was sealed for and by the watcher of which cluster: no one can change that without
opening it, so that who copies a box cannot have it opened as something else (docs/decisions/0029).

Rejected: encrypting the bus alone (TLS does that besides): the log and the store would keep keys readable at rest,
and every translator and console could read them.
"""

import base64
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from nacl.exceptions import CryptoError
from nacl.public import PrivateKey, PublicKey, SealedBox
from pydantic import BaseModel, ConfigDict

from headgate.common.errors import SealingError
from headgate.common.secret import Secret

PRIVATE_KEY_FILE = "gateway.key"
PUBLIC_KEY_FILE = "gateway.pub"
_BOUND = b"\0headgate 1\0"
"""Begins what is in a box; then purpose, cluster and value, with a NUL after each but the last. Earlier releases sealed
the value alone."""


class Purpose(StrEnum):
    """What a value may be opened for."""

    PRIVATE_KEY = "private-key"
    """A certificate's: for TLS, and never for what a plugin sends."""
    CREDENTIAL = "credential"
    """By which consumers are recognised: compared, and not sent."""
    ACCOUNT = "acme-account"
    """Key of an account with an authority: for translators, and no gateway."""
    VALUE = "value"
    """Of a Secret of no particular use: for plugins, and as a credential."""


_OPENED_FOR: Mapping[Purpose, frozenset[Purpose]] = {
    Purpose.PRIVATE_KEY: frozenset({Purpose.PRIVATE_KEY}),
    Purpose.CREDENTIAL: frozenset({Purpose.CREDENTIAL, Purpose.VALUE}),
    Purpose.ACCOUNT: frozenset({Purpose.ACCOUNT}),
    Purpose.VALUE: frozenset({Purpose.VALUE}),
}
"""Purposes that a value may have been sealed for, by the one that it is opened for."""


class SealedValue(BaseModel):
    """One value, sealed once for each recipient."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    boxes: dict[str, str]
    """Recipient (`recipient_id`) to sealed box in base64."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(***, recipients={sorted(self.boxes)})"

    __str__ = __repr__

    def of(self, cluster: str) -> "ClusterValue":
        """Return the value as a table has it, with the cluster of whose object it is."""
        return ClusterValue(boxes=self.boxes, cluster=cluster)


class ClusterValue(SealedValue):
    """A sealed value in a table. The translator says by whom the log has it; watchers are not believed there."""

    cluster: str = ""
    """Empty in tables of earlier releases."""


Unseal = Callable[[ClusterValue, Purpose], Secret[bytes]]
"""Opens a value for a purpose; raises SealingError."""


class CertificateFacts(BaseModel):
    """What is public about a TLS certificate, and what only the holder of its key could check."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    chain_pem: str
    names: tuple[str, ...] = ()
    """DNS names (and addresses) that the leaf is valid for."""
    not_before: datetime | None = None
    not_after: datetime | None = None
    fingerprint: str = ""
    """SHA-256 of the leaf in DER, hex."""
    problem: str | None = None
    """Why the pair cannot be used: unreadable certificate or key, or a key that belongs to another certificate."""


class SealedSecret(BaseModel):
    """What a delta carries under `sealed` in place of a Secret's `data`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    values: dict[str, SealedValue]
    certificate: CertificateFacts | None = None
    """Set for secrets of type kubernetes.io/tls."""
    authorities_pem: str | None = None
    """Certificates under `ca.crt`, or else `tls.ca`, which are public; None where there is none, empty where it is
    unreadable."""
    revocations_pem: str | None = None
    """Revocation list under `ca.crl` or `crl.pem`, likewise."""


def recipient_id(public_key: PublicKey) -> str:
    """Short name of a recipient: the first 16 hex digits of its public key's SHA-256."""
    return hashlib.sha256(bytes(public_key)).hexdigest()[:16]


class Sealer:
    """Seals values for the gateways, in the name of a cluster."""

    def __init__(self, cluster: str, recipients: Sequence[PublicKey]) -> None:
        """Take the cluster that the values are of, and the gateways' public keys."""
        self._cluster = cluster.encode()
        self._boxes = {recipient_id(key): SealedBox(key) for key in recipients}
        named = ",".join((_BOUND.decode(), *sorted(self._boxes)))
        self.id = hashlib.sha256(named.encode()).hexdigest()[:8]
        """Changes when what was sealed before has to be sealed again: for other recipients, in another form."""

    def seal(self, value: bytes, purpose: Purpose) -> SealedValue:
        """Seal a value for every recipient. Raises SealingError where there is none."""
        if not self._boxes:
            raise SealingError("there is no recipient to seal for: set HEADGATE_SEALING_PUBLIC_KEYS")
        content = _BOUND + b"\0".join((purpose.encode(), self._cluster, value))
        return SealedValue(
            boxes={name: base64.b64encode(box.encrypt(content)).decode() for name, box in self._boxes.items()}
        )


class Unsealer:
    """Opens what was sealed for any of a gateway's private keys."""

    def __init__(self, private_keys: Sequence[PrivateKey]) -> None:
        self._boxes: Mapping[str, SealedBox[PrivateKey]] = {
            recipient_id(key.public_key): SealedBox(key) for key in private_keys
        }

    def open(self, sealed: ClusterValue, purpose: Purpose) -> Secret[bytes]:
        """Return the value.

        Raises:
            SealingError: it was sealed for other keys, for another purpose or of another cluster, or is damaged.
        """
        for recipient, box in self._boxes.items():
            if recipient in sealed.boxes:
                try:
                    content = box.decrypt(base64.b64decode(sealed.boxes[recipient], validate=True))
                except (CryptoError, ValueError) as error:
                    raise SealingError(f"the value sealed for {recipient} is damaged") from error
                return Secret(_bound_value(content, sealed.cluster, purpose))
        raise SealingError(
            f"sealed for {', '.join(sorted(sealed.boxes))}, but this gateway holds {', '.join(self._boxes) or 'no key'}"
        )


def _bound_value(content: bytes, cluster: str, purpose: Purpose) -> bytes:
    """Return the value in an opened box, if that is for this purpose and of this cluster."""
    if not content.startswith(_BOUND):
        return content  # sealed by an earlier release: as good as any until the keys are exchanged
    # Everyone with the public key can make a box: what stands in it may be anything.
    sealed_for, *named = content.removeprefix(_BOUND).split(b"\0", 2)
    if len(named) != 2:
        raise SealingError("in the box is no value in the form of this release")
    owner, value = named
    # A table of an earlier release names no cluster. A writer of tables could name any: nothing is lost by that.
    if cluster and owner != cluster.encode():
        raise SealingError(f"sealed by cluster {_shown(owner)}, but the table has it from an object of {cluster!r}")
    if sealed_for not in {one.encode() for one in _OPENED_FOR[purpose]}:
        raise SealingError(f"sealed as {_shown(sealed_for)}, and not for use as {purpose}")
    return value


def _shown(name: bytes) -> str:
    return repr(name.decode(errors="replace"))


def load_or_create_key_pair(folder: Path) -> PrivateKey:
    """Return the key pair kept in a data directory, making it on first use.

    Two files: `gateway.key` (private half in base64, mode 0600; gateways only) and `gateway.pub` (public half).
    """
    key = load_or_create_key(folder / PRIVATE_KEY_FILE)
    (folder / PUBLIC_KEY_FILE).write_bytes(key_pair_files(key)[PUBLIC_KEY_FILE])
    return key


def load_or_create_key(path: Path) -> PrivateKey:
    """Return the private key in a file, making it on first use, with mode 0600."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        key = read_private_key(path)
    else:
        key = PrivateKey.generate()
        with os.fdopen(descriptor, "wb") as file:
            file.write(key_pair_files(key)[PRIVATE_KEY_FILE])
    return key


def key_pair_files(key: PrivateKey) -> dict[str, bytes]:
    """Return what the two files of a key pair hold, by their names."""
    halves = {PRIVATE_KEY_FILE: bytes(key), PUBLIC_KEY_FILE: bytes(key.public_key)}
    return {name: base64.b64encode(half) + b"\n" for name, half in halves.items()}


def read_private_key(path: Path) -> PrivateKey:
    """Read a private key that `load_or_create_key_pair` wrote."""
    try:
        return PrivateKey(base64.b64decode(path.read_bytes(), validate=False))
    except (OSError, ValueError, CryptoError, TypeError) as error:
        raise SealingError(f"{path} does not hold a private key (32 bytes in base64)") from error


def parse_public_key(text: str) -> PublicKey:
    """Read a public key: 32 bytes in base64, as in `gateway.pub`."""
    try:
        return PublicKey(base64.b64decode(text.strip(), validate=True))
    except (ValueError, CryptoError, TypeError) as error:
        raise SealingError(f"{text[:60]!r} is not a public key (32 bytes in base64)") from error
