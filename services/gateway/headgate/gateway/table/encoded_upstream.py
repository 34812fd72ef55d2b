"""Upstream entries taken apart, so that of ten thousand endpoints only those are decoded that changed."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from pydantic import TypeAdapter

from headgate.common.errors import DecodeError
from headgate.common.table import Endpoint, Upstream
from headgate.gateway.model.steps import Steps

SMALL = 16 * 1024
"""Bytes of an encoded upstream below which it is not worth while to take it apart: about 256 endpoints."""
_SPLIT_AT_ONCE = 8192
"""Endpoints cut out between two turns of the event loop: about a millisecond."""
_ENDPOINTS = TypeAdapter(list[Endpoint])


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
