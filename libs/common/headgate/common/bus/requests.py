"""Requests under way on one NATS client, each a future.

Rejected: nats-py's own `request`. It waits with `asyncio.wait_for`, which before Python 3.12 forgets a cancellation
that comes in the same turn of the loop as the answer, so that the caller goes on as if nothing had been said; and
it sits out its timeout when the connection breaks.
"""

import asyncio
from collections.abc import Mapping

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from headgate.common.errors import NotPermitted
from headgate.common.service.tasks import heed_cancellation

_NO_RESPONDERS = "503"


class Requests:
    """What was asked through a client and is not answered yet."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._inbox = ""
        self._count = 0
        self._waiting: dict[str, tuple[str, asyncio.Future[Msg]]] = {}
        """By the last token of the reply subject: what was asked, and the answer to come."""

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
        self._count += 1
        token = str(self._count)
        future: asyncio.Future[Msg] = asyncio.get_running_loop().create_future()
        self._waiting[token] = subject, future
        try:
            options = dict(headers) if headers else None
            await heed_cancellation(
                self._client.publish(subject, payload, reply=f"{self._inbox}.{token}", headers=options)
            )
            answer = await future
        finally:
            del self._waiting[token]
        if answer.headers and answer.headers.get("Status") == _NO_RESPONDERS and not answer.data:
            raise nats.errors.NoRespondersError
        return answer

    async def _receive(self, message: Msg) -> None:
        entry = self._waiting.get(message.subject.rsplit(".", 1)[-1])
        if entry and not entry[1].done():
            entry[1].set_result(message)

    def refuse(self, subject: str) -> str:
        """Fail what was asked on a subject, as the server does not permit it to our user.

        Args:
            subject: as nats-py gives it: in lower case.

        Returns:
            The subject as it was asked; the one given if nothing is under way on it.
        """
        for asked, future in self._waiting.values():
            if asked.lower() == subject:
                if not future.done():
                    future.set_exception(NotPermitted(f"NATS does not permit our user to publish to {asked}"))
                subject = asked
        return subject

    def end(self) -> None:
        """Fail everything under way: the connection is lost."""
        for _, future in self._waiting.values():
            if not future.done():
                future.set_exception(TimeoutError("the connection broke before the answer"))
