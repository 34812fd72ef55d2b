"""`elasticsearch-logger`: what requests were, posted to Elasticsearch in bulk.

https://www.elastic.co/docs/api/doc/elasticsearch/operation/operation-bulk
"""

import base64
import re
import time
from collections.abc import Sequence
from typing import Any

import msgspec

from headgate.common.plugins.observability.loggers import ElasticsearchLoggerConfig
from headgate.gateway.plugins.built_in.observability.posted_logger import PostedLogger
from headgate.gateway.plugins.interface import Headers, PluginServices, Request
from headgate.gateway.plugins.kit.patterns import Template

_DATE = re.compile(r"\{(%[^{}]*)\}")


class ElasticsearchLogger(PostedLogger[ElasticsearchLoggerConfig]):
    """Posts entries as documents."""

    name = "elasticsearch-logger"
    order = 413
    Config = ElasticsearchLoggerConfig
    path = "/_bulk"
    content_type = "application/x-ndjson"

    def __init__(self, config: ElasticsearchLoggerConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self.timeout_s = config.timeout
        self._index = Template(config.field.index)

    def headers(self) -> Headers:
        """Return the headers, with the login."""
        headers, auth = super().headers(), self.config.auth
        if auth is not None:
            told = base64.b64encode(f"{auth.username}:{auth.password.reveal()}".encode()).decode()
            headers.set("Authorization", f"Basic {told}")
        return headers

    def write(self, entry: bytes, request: Request) -> None:
        """Take an entry, with its index."""
        now = time.gmtime()
        index = _DATE.sub(lambda found: time.strftime(found[1], now), self._index.render(request))
        place: dict[str, Any] = {"_index": index.lower()}
        if self.config.field.type is not None:
            place["_type"] = self.config.field.type
        super().write(msgspec.json.encode({"create": place}) + b"\n" + entry, request)

    def body(self, entries: Sequence[bytes]) -> bytes:
        """Return entries, each behind the line that says what is done with it."""
        return b"\n".join(entries) + b"\n"

    def check_answer(self, answer: bytes) -> None:
        """Raise OSError if a document was refused: the answer is 200 then, too."""
        try:
            said = msgspec.json.decode(answer)
        except msgspec.MsgspecError as error:
            raise OSError("it answered no JSON") from error
        if isinstance(said, dict) and said.get("errors"):
            raise OSError(f"it refused documents: {_first_error(said)}")


def _first_error(said: dict[str, Any]) -> str:
    for item in said.get("items", ()):
        for done in item.values():
            if error := done.get("error"):
                reason = error.get("reason") if isinstance(error, dict) else error
                return str(reason)[:200]
    return "it does not say why"
