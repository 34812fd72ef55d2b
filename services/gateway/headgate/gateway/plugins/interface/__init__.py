"""What a plugin is, and what it is given. `docs/plugins.md` teaches it; third-party plugins import from here only.

A plugin is made once for each use in a route, when the table is compiled, and serves many requests at once; shareable
ones once for all routes whose plugins are the same. Its hooks are called on the event loop: they must not block. A hook
that returns a value costs no task; one that returns an awaitable (an `async def`) makes that request, and no other,
wait for it.

Request hooks run by `order`, greater first; response hooks and filters run the other way round, so that a plugin wraps
those behind it. Response hooks see every answer, those of other plugins and of the gateway itself too, also where an
earlier plugin answered before their own request hook was reached.
"""

from headgate.common.plugins.config import PluginConfig, SecretText
from headgate.common.plugins.fields import BadHeader, HeaderName, HeaderValue, is_reserved
from headgate.common.secret import Secret
from headgate.common.table import PathMatch
from headgate.gateway.plugins.interface.consumers import ConsumerDirectory, KnownConsumer, KnownCredential, attach
from headgate.gateway.plugins.interface.errors import Unforeseeable
from headgate.gateway.plugins.interface.headers import Headers
from headgate.gateway.plugins.interface.messages import Request, Response
from headgate.gateway.plugins.interface.pacing import Pacing
from headgate.gateway.plugins.interface.plugin import BodyFilter, Foreseen, Passes, Plugin
from headgate.gateway.plugins.interface.services import (
    AnswersFolder,
    Closing,
    PluginServices,
    SendTo,
    SharedState,
    no_client,
    no_closing,
    no_counters,
    no_metrics,
    no_sessions,
    no_upstreams,
)
from headgate.gateway.plugins.interface.sources import Asked, BodySource, BodyStream
from headgate.gateway.plugins.interface.targets import Endpoints, NoEndpoints
from headgate.gateway.proxy.errors import BodyTooLarge, BuffersFull

__all__ = [
    "AnswersFolder",
    "Asked",
    "BadHeader",
    "BodyFilter",
    "BodySource",
    "BodyStream",
    "BodyTooLarge",
    "BuffersFull",
    "Closing",
    "ConsumerDirectory",
    "Endpoints",
    "Foreseen",
    "HeaderName",
    "HeaderValue",
    "Headers",
    "KnownConsumer",
    "KnownCredential",
    "NoEndpoints",
    "Pacing",
    "Passes",
    "PathMatch",
    "Plugin",
    "PluginConfig",
    "PluginServices",
    "Request",
    "Response",
    "Secret",
    "SecretText",
    "SendTo",
    "SharedState",
    "Unforeseeable",
    "attach",
    "is_reserved",
    "no_client",
    "no_closing",
    "no_counters",
    "no_metrics",
    "no_sessions",
    "no_upstreams",
]
