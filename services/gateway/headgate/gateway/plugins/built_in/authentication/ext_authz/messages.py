"""Messages of Envoy's external authorization, `envoy.service.auth.v3`, as far as they are written and read here.

The descriptors are made of the table below: the fields that are used, with their numbers. Others are passed over when a
message is read. Names of types do not go over the wire. The library is imported for those who need it.
"""

from functools import lru_cache
from typing import Any, Final, NamedTuple

METHOD: Final = "/envoy.service.auth.v3.Authorization/Check"
_REPEATED: Final = "*"
_MESSAGES: Final[dict[str, tuple[tuple[str, int, str], ...]]] = {
    "Entry": (("key", 1, "string"), ("value", 2, "string")),
    "Timestamp": (("seconds", 1, "int64"), ("nanos", 2, "int32")),
    "SocketAddress": (("address", 2, "string"), ("port_value", 3, "uint32")),
    "Address": (("socket_address", 1, "SocketAddress"),),
    "Peer": (("address", 1, "Address"),),
    "HttpRequest": (
        ("id", 1, "string"),
        ("method", 2, "string"),
        ("headers", 3, "*Entry"),
        ("path", 4, "string"),
        ("host", 5, "string"),
        ("scheme", 6, "string"),
        ("protocol", 10, "string"),
        ("size", 9, "int64"),
        ("body", 11, "string"),
        ("raw_body", 12, "bytes"),
    ),
    "RequestAttributes": (("time", 1, "Timestamp"), ("http", 2, "HttpRequest")),
    "TlsSession": (("sni", 1, "string"),),
    "Attributes": (
        ("source", 1, "Peer"),
        ("destination", 2, "Peer"),
        ("request", 4, "RequestAttributes"),
        ("tls_session", 12, "TlsSession"),
    ),
    "CheckRequest": (("attributes", 1, "Attributes"),),
    "BoolValue": (("value", 1, "bool"),),
    "HeaderValue": (("key", 1, "string"), ("value", 2, "string"), ("raw_value", 3, "bytes")),
    "HeaderValueOption": (("header", 1, "HeaderValue"), ("append", 2, "BoolValue"), ("append_action", 3, "int32")),
    "Status": (("code", 1, "int32"), ("message", 2, "string")),
    "HttpStatus": (("code", 1, "int32"),),
    "DeniedResponse": (("status", 1, "HttpStatus"), ("headers", 2, "*HeaderValueOption"), ("body", 3, "string")),
    "OkResponse": (
        ("headers", 2, "*HeaderValueOption"),
        ("headers_to_remove", 5, "*string"),
        ("response_headers_to_add", 6, "*HeaderValueOption"),
        ("query_parameters_to_set", 7, "*Entry"),
        ("query_parameters_to_remove", 8, "*string"),
    ),
    "CheckResponse": (
        ("status", 1, "Status"),
        ("denied_response", 2, "DeniedResponse"),
        ("ok_response", 3, "OkResponse"),
    ),
}
"""Fields with their numbers and types, a star for several values. Maps are entries, as they are on the wire."""


class Messages(NamedTuple):
    """Classes of the messages of a call."""

    request: Any
    reply: Any


@lru_cache(1)
def messages() -> Messages:
    """Return the classes."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="ext_authz.proto", package="ext_authz", syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind in fields:
            plain = kind.removeprefix(_REPEATED)
            label = kinds.LABEL_REPEATED if kind.startswith(_REPEATED) else kinds.LABEL_OPTIONAL
            if plain in _MESSAGES:
                type_, type_name = kinds.TYPE_MESSAGE, f".ext_authz.{plain}"
                message.field.add(name=field, number=number, label=label, type=type_, type_name=type_name)
            else:
                type_ = getattr(kinds, f"TYPE_{plain.upper()}")
                message.field.add(name=field, number=number, label=label, type=type_)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    request, reply = (
        message_factory.GetMessageClass(pool.FindMessageTypeByName(f"ext_authz.{name}"))
        for name in ("CheckRequest", "CheckResponse")
    )
    return Messages(request, reply)
