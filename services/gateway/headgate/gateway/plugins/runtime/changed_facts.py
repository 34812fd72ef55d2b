"""What conditions see of a request once plugins have changed it."""

from headgate.gateway.plugins.interface.messages import Request
from headgate.gateway.proxy.heads.facts import RequestFacts
from headgate.gateway.proxy.heads.paths import is_plain, normalize
from headgate.gateway.proxy.request_source import RequestSource


def facts_of(request: Request, source: RequestSource) -> RequestFacts:
    """Return what is known of a request as plugins have made it; of the host what the client sent."""
    came = source.facts()
    parts = (request.method.encode("latin-1"), came.scheme, came.host, request.target.encode("latin-1"))
    facts = RequestFacts(*parts, request.headers.to_lines(), request.client.encode("latin-1"))
    facts.peer, facts.transport, facts.came = came.peer, came.transport, came.came
    facts.body = came.body if request.body is None else request.body
    facts.consumer = came.consumer if request.consumer is None else request.consumer.name.encode()
    if not request.is_target_changed:
        facts.path = came.path
    elif not is_plain(facts.path):
        read = normalize(facts.path, "match")
        facts.path = facts.path if read is None else read[0]
    return facts
