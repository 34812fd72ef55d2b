"""Upstream entries taken apart, so that of ten thousand endpoints only those are decoded that changed."""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import msgspec
from pydantic import TypeAdapter

from headgate.common.errors import DecodeError
from headgate.common.table import Endpoint, Upstream
from headgate.gateway.model.steps import Steps
from headgate.gateway.table.names import is_name

SMALL = 16 * 1024
"""Bytes of an encoded upstream below which it is not worth while to take it apart: about 256 endpoints."""
_SPLIT_AT_ONCE = 8192
"""Endpoints cut out between two turns of the event loop: about a millisecond."""
_ENDPOINTS = TypeAdapter(list[Endpoint])


class EncodedProvenance(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A `Provenance`, of which compiled entries keep nothing."""

    cluster: str
    kind: str
    namespace: str
    name: str
    rule: str = ""
    resource_version: str = ""


class _PlainEndpoint(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    address: str
    port: Annotated[int, msgspec.Meta(ge=1, le=65535)]
    zone: str = ""
    cluster: str = ""


class _PlainUpstream(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    key: str
    endpoints: list[_PlainEndpoint]
    provenance: EncodedProvenance


_decode_plain = msgspec.json.Decoder(_PlainUpstream).decode


class PlainUpstream(NamedTuple):
    """An upstream that says nothing but where its endpoints are: all of them ready, with equal weights."""

    key: str
    addresses: str
    """`address:port address:port`"""
    size: int


def read_plain(raw: bytes) -> PlainUpstream | None:
    """Return what there is of a plain upstream; None where it has more to it, a name among its addresses, or none.

    It says of nothing that it is wrong: what cannot be read as this is left to whoever reads all of it.
    """
    try:
        found = _decode_plain(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    addresses = " ".join([f"{each.address}:{each.port}" for each in found.endpoints])
    if addresses.count(" ") != len(found.endpoints) - 1:
        return None
    if not _are_digits(addresses) and any(is_name(each.address) for each in found.endpoints):
        return None
    return PlainUpstream(found.key, addresses, len(found.endpoints))


def _are_digits(addresses: str) -> bool:
    """Tell whether all addresses are digits and dots for certain: all of them at once, as nearly all are so."""
    has_empty = addresses.startswith(":") or " :" in addresses or ".:" in addresses
    return not has_empty and addresses.replace(".", "").replace(":", "").replace(" ", "").isdigit()


class EncodedUpstream(NamedTuple):
    """An upstream as the chunk has it, its endpoints apart."""

    header: bytes
    """Without the endpoints."""
    endpoints: Sequence[bytes]

    def decode(self) -> Upstream:
        """Validate what there is but the endpoints.

        Raises:
            DecodeError: it does not follow the contract.
        """
        try:
            return Upstream.model_validate_json(self.header)
        except ValueError as error:
            raise DecodeError(f"an entry of upstreams cannot be read: {error}") from error


def split_upstream(raw: bytes) -> Steps[EncodedUpstream]:
    """Take an encoded upstream apart.

    Raises:
        DecodeError: it is no JSON object, or its endpoints are no array.
    """
    try:
        fields = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        found = msgspec.json.decode(fields.pop("endpoints", b"[]"), type=list[msgspec.Raw])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise DecodeError(f"an entry of upstreams cannot be read: {error}") from error
    endpoints: list[bytes] = []
    for start in range(0, len(found), _SPLIT_AT_ONCE):
        endpoints += map(bytes, found[start : start + _SPLIT_AT_ONCE])
        yield
    return EncodedUpstream(msgspec.json.encode(fields), endpoints)


def decode_endpoints(encoded: Sequence[bytes]) -> list[Endpoint]:
    """Decode and validate endpoints.

    Raises:
        DecodeError: one does not follow the contract.
    """
    try:
        return _ENDPOINTS.validate_json(b"[%b]" % b",".join(encoded))
    except ValueError as error:
        raise DecodeError(f"endpoints of an upstream cannot be read: {error}") from error
