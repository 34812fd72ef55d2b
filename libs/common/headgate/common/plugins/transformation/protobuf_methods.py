"""Methods of gRPC services, found in a set of descriptors of Protocol Buffers.

The library is imported for those who need it: it takes 23 MB.
"""

import base64
import binascii
from functools import lru_cache
from typing import Any, Final, NamedTuple

from headgate.common.effort import spend

_BYTES_A_MICROSECOND: Final = 4
_KEPT: Final = 64


class Method(NamedTuple):
    """A method of a service."""

    request: Any
    """Class of the messages that it takes."""
    reply: Any
    pool: Any
    """Descriptors of all types of the set."""

    def message_of(self, name: str) -> Any:
        """Return the class of a type of the set. Raises ValueError."""
        from google.protobuf import message_factory

        try:
            return message_factory.GetMessageClass(self.pool.FindMessageTypeByName(name))
        except KeyError:
            raise ValueError(f"there is no message {name[:80]} in proto") from None


@lru_cache(_KEPT)
def find_method(proto: str, service: str, method: str) -> Method:
    """Return a method.

    Args:
        proto: a `FileDescriptorSet` in base64, each file behind those that it imports.
        service: with its package: `helloworld.Greeter`.
        method: of the service.

    Raises:
        ValueError: there is none, or the set cannot be read.
    """
    from google.protobuf import message_factory

    pool = _pool(proto)
    try:
        methods = pool.FindServiceByName(service).methods_by_name
    except KeyError:
        raise ValueError(f"there is no service {service[:80]} in proto") from None
    found = methods.get(method)
    if found is None:
        raise ValueError(f"service {service[:80]} of proto has no method {method[:80]}")
    if found.client_streaming or found.server_streaming:
        raise ValueError(f"method {method[:80]} is one with a stream of messages; those with one are followed")
    request, reply = (message_factory.GetMessageClass(each) for each in (found.input_type, found.output_type))
    return Method(request, reply, pool)


def decode(kind: Any, raw: bytes) -> Any:
    """Return a message of a class. Raises ValueError."""
    from google.protobuf.message import DecodeError

    try:
        return kind.FromString(raw)
    except DecodeError:
        raise ValueError("no message of its type") from None


def field_kinds() -> dict[int, str]:
    """Return the names of the kinds of fields, by `cpp_type`."""
    from google.protobuf.descriptor import FieldDescriptor

    names = ("INT32", "INT64", "UINT32", "UINT64", "DOUBLE", "FLOAT", "BOOL", "ENUM", "STRING", "MESSAGE")
    return {getattr(FieldDescriptor, f"CPPTYPE_{name}"): name for name in names}


@lru_cache(1)
def status_message() -> Any:
    """Return the class of `google.rpc.Status`, which `grpc-status-details-bin` has."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="status.proto", package="status", syntax="proto3")
    any_, status = file.message_type.add(name="Any"), file.message_type.add(name="Status")
    any_.field.add(name="type_url", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    any_.field.add(name="value", number=2, type=field.TYPE_BYTES, label=field.LABEL_OPTIONAL)
    status.field.add(name="code", number=1, type=field.TYPE_INT32, label=field.LABEL_OPTIONAL)
    status.field.add(name="message", number=2, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    status.field.add(
        name="details", number=3, type=field.TYPE_MESSAGE, label=field.LABEL_REPEATED, type_name=".status.Any"
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("status.Status"))


@lru_cache(_KEPT)
def _pool(proto: str) -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool
    from google.protobuf.message import DecodeError

    remedy = "protoc --include_imports --descriptor_set_out writes it"
    try:
        raw = base64.b64decode(proto, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"proto is not in base64: a descriptor set, as {remedy}") from None
    spend(len(raw) // _BYTES_A_MICROSECOND)
    pool = descriptor_pool.DescriptorPool()
    try:
        for file in descriptor_pb2.FileDescriptorSet.FromString(raw).file:
            pool.Add(file)
    except (DecodeError, TypeError, ValueError, KeyError):
        raise ValueError(f"proto is no descriptor set that is complete: {remedy}") from None
    return pool
