"""`elasticsearch-logger`: what requests were, posted to Elasticsearch in bulk.

https://www.elastic.co/docs/api/doc/elasticsearch/operation/operation-bulk
"""

import base64
import re
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from headgate.common.plugins.observability.loggers import ElasticsearchLoggerConfig
from headgate.gateway.plugins.built_in.observability.log_entries import as_json
from headgate.gateway.plugins.built_in.observability.posted_logger import PostedLogger
from headgate.gateway.plugins.interface import Headers, PluginServices, Request
from headgate.gateway.plugins.kit.patterns import Template

_DATE = re.compile(r"(?<!\$)\{([^{}]*)\}")
_template = lru_cache(256)(Template)


class ElasticsearchLogger(PostedLogger[ElasticsearchLoggerConfig]):
    """Posts entries as documents."""

    name = "elasticsearch-logger"
    order = 413
    Config = ElasticsearchLoggerConfig
    path = "/_bulk?filter_path=errors,items.*.error"
    """Only what is wrong is answered, which is little."""
    content_type = "application/x-ndjson"

    def __init__(self, config: ElasticsearchLoggerConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self.timeout_s = config.timeout

    def headers(self) -> Headers:
        """Return the headers, with the login unless they have one."""
        headers, auth = super().headers(), self.config.auth
        if auth is not None and "Authorization" not in headers:
            told = base64.b64encode(f"{auth.username}:{auth.password.reveal()}".encode()).decode()
            headers.add("Authorization", f"Basic {told}")
        return headers

    def write(self, entry: bytes, request: Request) -> None:
        """Take an entry, with its index."""
        now, field = time.gmtime(), self.config.field
        # Dates first, as what requests say must not be read as one.
        dated = _DATE.sub(lambda found: time.strftime(found[1].removeprefix("!"), now), field.index)
        place = {"_index": _template(dated).render(request)}
        if field.type is not None:
            place["_type"] = field.type
        # Data streams take nothing but `create`, and for documents without names it is the same as `index`.
        super().write(as_json({"create": place}) + b"\n" + entry, request)

    def body(self, entries: Sequence[bytes]) -> bytes:
        """Return entries, each behind the line that says what is done with it."""
        return b"\n".join(entries) + b"\n"

    def note_answer(self, answer: bytes) -> None:
        """Give up documents that were refused, and no others: sent again, what was taken would be there twice."""
        try:
            said = msgspec.json.decode(answer, type=_Answer)
        except msgspec.MsgspecError:
            return
        faults = [done.error for item in said.items for done in item.values() if done.error]
        if said.errors or faults:
            why = _reason(faults[0]) if faults else "it does not say why"
            self.batches.drop(len(faults) or 1, f"it refused them: {why}")


class _Done(msgspec.Struct):
    error: Any = None


class _Answer(msgspec.Struct):
    errors: bool = False
    items: list[dict[str, _Done]] = []


def _reason(error: Any) -> str:
    return str(error.get("reason", error) if isinstance(error, dict) else error)[:200]
