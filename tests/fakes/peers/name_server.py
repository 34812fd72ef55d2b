"""A DNS server on loopback, over UDP, that answers from a dictionary."""

import asyncio
from types import TracebackType
from typing import Self

import dns.asyncresolver
import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdatatype
import dns.rrset


class NameServer:
    """`async with NameServer({("web.example.", "A"): (60, ["10.0.0.1"])}) as server: ...`; records may be changed.

    A name of which no record is known is an NXDOMAIN, a CNAME is followed within the records.
    """

    def __init__(self, records: dict[tuple[str, str], tuple[int, list[str]]]) -> None:
        self.records = records
        self.asked: list[tuple[str, str]] = []
        self.fails = False
        self.is_silent = False
        self._transport: asyncio.DatagramTransport | None = None

    @property
    def port(self) -> int:
        assert self._transport is not None
        return int(self._transport.get_extra_info("sockname")[1])

    def resolver(self, *search: str) -> dns.asyncresolver.Resolver:
        """A resolver that asks this server alone."""
        resolver = dns.asyncresolver.Resolver(configure=False)
        resolver.nameservers = ["127.0.0.1"]
        resolver.port = self.port
        resolver.search = [dns.name.from_text(domain) for domain in search]
        return resolver

    async def __aenter__(self) -> Self:
        server = self

        class Receiving(asyncio.DatagramProtocol):
            def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
                assert server._transport is not None
                if not server.is_silent:
                    server._transport.sendto(server.answer(data), address)

        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_datagram_endpoint(Receiving, local_addr=("127.0.0.1", 0))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._transport is not None
        self._transport.close()

    def answer(self, data: bytes) -> bytes:
        """Answer one question."""
        query = dns.message.from_wire(data)
        response = dns.message.make_response(query)
        response.flags |= dns.flags.RA
        question = query.question[0]
        name, kind = question.name.to_text(), dns.rdatatype.to_text(question.rdtype)
        self.asked.append((name, kind))
        if self.fails:
            response.set_rcode(dns.rcode.SERVFAIL)
            return response.to_wire()
        if not any(known == name for known, _ in self.records):
            response.set_rcode(dns.rcode.NXDOMAIN)
        while alias := self.records.get((name, "CNAME")):
            response.answer.append(dns.rrset.from_text(name, alias[0], "IN", "CNAME", *alias[1]))
            name = alias[1][0]
        if found := self.records.get((name, kind)):
            response.answer.append(dns.rrset.from_text(name, found[0], "IN", kind, *found[1]))
        return response.to_wire()
