"""A Kafka broker that speaks the protocol as far as producers need it, with one topic of two partitions.

It answers ApiVersions, Metadata (version 1), Produce (version 3) and SASL PLAIN over real sockets, and reads the
messages out of the records that producers send.
"""

import asyncio
import contextlib
import io
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import NamedTuple

from aiokafka.protocol.admin import (
    ApiVersionResponse_v0,
    SaslAuthenticateRequest_v0,
    SaslAuthenticateResponse_v0,
    SaslHandShakeRequest_v1,
    SaslHandShakeResponse_v1,
)
from aiokafka.protocol.api import RequestHeader_v1, Response
from aiokafka.protocol.metadata import MetadataRequest_v1, MetadataResponse_v1
from aiokafka.protocol.produce import ProduceRequest_v3, ProduceResponse_v3
from aiokafka.record.memory_records import MemoryRecords

PRODUCE, METADATA, SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE = 0, 3, 17, 18, 36
_SPOKEN = [(PRODUCE, 3, 3), (METADATA, 1, 1), (SASL_HANDSHAKE, 1, 1), (API_VERSIONS, 0, 0), (SASL_AUTHENTICATE, 0, 0)]
_UNKNOWN_TOPIC, _NOT_ENOUGH_REPLICAS, _WRONG_PASSWORD = 3, 19, 58


class Message(NamedTuple):
    """A message that a producer sent."""

    partition: int
    key: bytes | None
    value: bytes
    acks: int


@dataclass
class KafkaBroker:
    """What it was sent, and how it behaves."""

    topic: str = "logs"
    password: bytes = b""
    """Of `logger`, who is asked for it; empty: nobody is."""
    messages: list[Message] = field(default_factory=list)
    connections: int = 0
    """That are open."""
    accepted: int = 0
    refused: int = 0
    """Produce requests that are still to be refused."""
    port: int = 0
    advertised: tuple[str, int] | None = None
    """Where it says that the only broker is; None: here."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        self.connections += 1
        self.accepted += 1
        try:
            while True:
                request = io.BytesIO(await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big")))
                header = RequestHeader_v1.SCHEMA.decode(request)
                answer = self._answer(header[0], request)
                if answer is not None:
                    data = header[2].to_bytes(4, "big") + answer.encode()
                    writer.write(len(data).to_bytes(4, "big") + data)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.connections -= 1
            writer.close()

    def _answer(self, key: int, request: io.BytesIO) -> Response | None:
        match key:
            case 18:
                return ApiVersionResponse_v0(0, _SPOKEN)
            case 3:
                return self._metadata(MetadataRequest_v1.decode(request).topics)
            case 17:
                SaslHandShakeRequest_v1.decode(request)
                return SaslHandShakeResponse_v1(0, ["PLAIN"])
            case 36:
                given = SaslAuthenticateRequest_v0.decode(request).sasl_auth_bytes
                is_right = given.split(b"\0")[1:] == [b"logger", self.password]
                return SaslAuthenticateResponse_v0(0 if is_right else _WRONG_PASSWORD, "" if is_right else "no", b"")
            case 0:
                return self._produce(ProduceRequest_v3.decode(request))
        raise ConnectionError(f"a broker is asked with {key}")

    def _metadata(self, topics: list[str] | None) -> Response:
        partitions = [(0, number, 1, [1], [1]) for number in range(2)]
        known = [(0, self.topic, False, partitions)]
        unknown = [(_UNKNOWN_TOPIC, name, False, []) for name in topics or () if name != self.topic]
        host, port = self.advertised or ("127.0.0.1", self.port)
        return MetadataResponse_v1([(1, host, port, None)], 1, known + unknown)

    def _produce(self, request: ProduceRequest_v3) -> Response | None:
        error = _NOT_ENOUGH_REPLICAS if self.refused else 0
        self.refused = max(0, self.refused - 1)
        told = []
        for topic, partitions in request.topics:
            told.append((topic, [(partition, error, len(self.messages), -1) for partition, _ in partitions]))
            for partition, data in partitions if not error else ():
                records = MemoryRecords(data)
                while (batch := records.next_batch()) is not None:
                    for record in batch:
                        self.messages.append(Message(partition, record.key, record.value, request.required_acks))
        return ProduceResponse_v3(told, 0) if request.required_acks else None


@contextlib.asynccontextmanager
async def kafka_broker(tls: ssl.SSLContext | None = None, **given: object) -> AsyncIterator[KafkaBroker]:
    """Run a broker for a while."""
    broker = KafkaBroker(**given)
    server = await asyncio.start_server(broker.serve, "127.0.0.1", 0, ssl=tls)
    broker.port = server.sockets[0].getsockname()[1]
    try:
        yield broker
    finally:
        server.close()
        while broker.connections:  # noqa: ASYNC110 - conversations end with the clients'
            await asyncio.sleep(0.005)
