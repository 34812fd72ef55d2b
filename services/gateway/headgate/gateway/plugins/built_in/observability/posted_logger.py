"""What `http-logger`, `loki-logger` and `elasticsearch-logger` have in common: batches are posted over HTTP."""

import random
from abc import abstractmethod
from collections.abc import Sequence
from typing import TypeVar

from headgate.common.plugins.fields import configured_value
from headgate.common.plugins.observability.loggers import PostedConfig
from headgate.gateway.plugins.built_in.observability.batched_logger import BatchedLogger
from headgate.gateway.plugins.interface import Headers, PluginServices, Request
from headgate.gateway.plugins.kit.calls import AnswerTooLong, CallFailed, call_url

_MAX_ANSWER = 1 << 20

P = TypeVar("P", bound=PostedConfig)


async def post(
    services: PluginServices, url: str, headers: Headers, body: bytes, *, timeout_s: float, verify: bool
) -> bytes:
    """Post a batch; return what is answered, or nothing if that is long. Raises OSError unless the batch was taken."""
    request = Request(method="POST", headers=headers, body=body)
    try:
        answer = await call_url(services, url, request, timeout_s=timeout_s, max_body=_MAX_ANSWER, verify=verify)
    except AnswerTooLong:
        return b""  # whoever says so much has taken it: sent again, it would be there twice
    except CallFailed as error:
        raise OSError(str(error)) from error
    if answer.status >= 300:
        raise OSError(f"it answered {answer.status}")
    return answer.body or b""


class PostedLogger(BatchedLogger[P]):
    """Base of those that post to one of several servers of a product."""

    path: str
    """Of the interface, behind the address of a server."""
    content_type: str
    timeout_s: float

    @property
    def target(self) -> str:
        """The servers' URLs."""
        return ", ".join(self.config.addresses)

    @abstractmethod
    def body(self, entries: Sequence[bytes]) -> bytes:
        """Return a batch as the product takes it."""

    def headers(self) -> Headers:
        """Return the headers of a request."""
        headers = Headers([("Content-Type", self.content_type)])
        for name, value in self.config.headers.items():
            headers.set(name, configured_value(value.reveal()))
        return headers

    def note_answer(self, answer: bytes) -> None:
        """Look at what a server says of a batch that it took."""

    async def send(self, entries: Sequence[bytes]) -> None:
        """Post a batch to a server that is drawn."""
        address = random.choice(self.config.addresses)  # noqa: S311 - spreads load, guards nothing
        url = address.rstrip("/") + self.path
        verify = self.config.ssl_verify
        body = self.body(entries)
        self.note_answer(await post(self.services, url, self.headers(), body, timeout_s=self.timeout_s, verify=verify))
