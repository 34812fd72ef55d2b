"""Requests under way on one NATS client, each a future.

Rejected: nats-py's own `request`. It waits with `asyncio.wait_for`, which before Python 3.12 forgets a cancellation
that comes in the same turn of the loop as the answer, so that the caller goes on as if nothing had been said; and
it sits out its timeout when the connection breaks.
"""

import asyncio
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import nats.errors
from nats.aio.msg import Msg

from headgate.common.bus.client import PatientClient
from headgate.common.bus.encoded import decode_headers
from headgate.common.errors import NotPermitted
from headgate.common.service.tasks import heed_cancellation

_NO_RESPONDERS = "503"
_STATUS_BEGINS = b"NATS/1.0 "
"""Headers without a status have the end of the line there."""
_without_domain = partial(re.compile(r"^\$js\.([^.]+\.)?api\.").sub, "")

T = TypeVar("T")
TakeAnswer = Callable[[bytes, bytes], None]
"""Takes headers (for `decode_headers`) and payload of one answer of many; must be quick."""


class Requests:
    """What was asked through a client and is not answered yet."""

    def __init__(self, client: PatientClient) -> None:
        self._client = client
        self._inbox = self._inbox_of_many = ""
        self._subscribing = asyncio.Lock()
        self._count = 0
        self._waiting: dict[str, tuple[str, asyncio.Future[Any]]] = {}
        """By the last token of the reply subject: what was asked, and the answer to come."""
        self._takers: dict[str, TakeAnswer] = {}
        """By the same token, of those that are answered by many messages."""

    async def send(self, subject: str, payload: bytes, headers: Mapping[str, str] | None) -> Msg:
        """Ask, and wait for the answer for as long as it takes.

        Raises:
            TimeoutError: the connection was lost: it may or may not have been heard.
            NotPermitted: the server does not let us ask this.
            nats.errors.Error: what nats-py says; `NoRespondersError` if no service listens.
        """
        if not self._inbox:
            self._inbox = self._client.new_inbox()
            await heed_cancellation(self._client.subscribe(f"{self._inbox}.*", cb=self._receive))
        future: asyncio.Future[Msg] = asyncio.get_running_loop().create_future()
        answer = await self._ask(self._inbox, self._next_token(), subject, payload, headers, future)
        if answer.headers and answer.headers.get("Status") == _NO_RESPONDERS and not answer.data:
            raise nats.errors.NoRespondersError
        return answer

    async def send_for_many(self, subject: str, payload: bytes, take: TakeAnswer) -> Mapping[str, str]:
        """Ask what is answered by many messages, the last of which has a status; return the headers of that one.

        Raises what `send` does.
        """
        async with self._subscribing:
            if not self._inbox_of_many:
                inbox = self._client.new_inbox()
                await heed_cancellation(self._client.subscribe_directly(f"{inbox}.*", self._take))
                self._inbox_of_many = inbox
        token = self._next_token()
        future: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()
        self._takers[token] = take
        try:
            last = await self._ask(self._inbox_of_many, token, subject, payload, None, future)
        finally:
            del self._takers[token]
        if last["Status"] == _NO_RESPONDERS:
            raise nats.errors.NoRespondersError
        return last

    def _next_token(self) -> str:
        self._count += 1
        return str(self._count)

    async def _ask(
        self,
        inbox: str,
        token: str,
        subject: str,
        payload: bytes,
        headers: Mapping[str, str] | None,
        future: "asyncio.Future[T]",
    ) -> T:
        self._waiting[token] = subject, future
        try:
            options = dict(headers) if headers else None
            await heed_cancellation(self._client.publish(subject, payload, reply=f"{inbox}.{token}", headers=options))
            return await future
        finally:
            del self._waiting[token]

    async def _receive(self, message: Msg) -> None:
        entry = self._waiting.get(message.subject.rsplit(".", 1)[-1])
        if entry and not entry[1].done():
            entry[1].set_result(message)

    def _take(self, subject: str, _reply: str, headers: bytes, payload: bytes) -> None:
        token = subject.rsplit(".", 1)[-1]
        entry = self._waiting.get(token)
        if entry is None or entry[1].done():
            return
        if headers.startswith(_STATUS_BEGINS):
            entry[1].set_result(decode_headers(headers))
        else:
            self._takers[token](headers, payload)

    def refuse(self, subject: str) -> str:
        """Fail what was asked on a subject, as the server does not permit it to our user.

        Args:
            subject: as nats-py gives it: in lower case; an edge's server names the domain that it sends it to.

        Returns:
            The subject as it was asked; the one given if nothing is under way on it.
        """
        for asked, future in self._waiting.values():
            if _without_domain(asked.lower()) == _without_domain(subject):
                if not future.done():
                    future.set_exception(NotPermitted(f"NATS does not permit our user to publish to {asked}"))
                subject = asked
        return subject

    def end(self) -> None:
        """Fail everything under way: the connection is lost."""
        for _, future in self._waiting.values():
            if not future.done():
                future.set_exception(TimeoutError("the connection broke before the answer"))
