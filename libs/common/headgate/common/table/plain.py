"""Upstreams of the usual sort, written without their models: endpoints, and nothing said of how they are chosen.

Nine in ten upstreams of a table are so. Models of their endpoints would be made only to be encoded, which takes ten
times as long. The encoding is that of `encode_entry`, to the byte; tests compare the two.
"""

from collections.abc import Sequence

import msgspec


class PlainEndpoint(msgspec.Struct, omit_defaults=True, frozen=True, gc=False):
    """The fields of an `Endpoint` that an address of a Service has, in the same order and with the same defaults."""

    address: str
    port: int
    zone: str = ""
    cluster: str = ""
    ready: bool = True
    serving: bool = True
    terminating: bool = False


class _Provenance(msgspec.Struct, frozen=True, gc=False):
    cluster: str
    kind: str
    namespace: str
    name: str


class _Upstream(msgspec.Struct, frozen=True, gc=False):
    key: str
    endpoints: Sequence[PlainEndpoint]
    provenance: _Provenance


_encode = msgspec.json.Encoder().encode


def encode_plain_upstream(
    key: str, endpoints: Sequence[PlainEndpoint], cluster: str, namespace: str, service: str
) -> bytes:
    """Return the encoded entry of a port of a Service that has endpoints, and of which nothing else is said."""
    return _encode(_Upstream(key, endpoints, _Provenance(cluster, "Service", namespace, service)))
