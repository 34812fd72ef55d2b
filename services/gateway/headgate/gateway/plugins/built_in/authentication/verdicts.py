"""Answers of an authentication service that are kept: `cache` of `forward-auth`.

All routes of a worker share the room, each with an equal share of it. What is kept belongs to a route and to all that
the plugin is told, so no other route goes by it, and nor does the same one once its service is another. It outlives the
table. Times are those of nginx's `proxy_cache_valid`: what the service says itself counts first.
"""

import hashlib
import time
from typing import Final

from headgate.common.plugins.authentication.forward_auth import ForwardAuthConfig, VerdictCache
from headgate.gateway.plugins.interface import Headers, PluginServices, Request, Response
from headgate.gateway.plugins.kit.cache_control import control_of, lifetime_s
from headgate.gateway.plugins.kit.kept_answers import KeptAnswer, KeptAnswers
from headgate.gateway.plugins.kit.patterns import Template

MAX_BYTES: Final = 16 << 20
"""Of all answers of authentication services that a worker keeps."""
_MAX_ANSWER: Final = 64 << 10
_NOT_KEPT: Final = ("no-cache", "no-store", "private")


def _room() -> KeptAnswers[KeptAnswer]:
    return KeptAnswers(MAX_BYTES)


class Verdicts:
    """What one use of the plugin keeps."""

    def __init__(self, config: ForwardAuthConfig, cache: VerdictCache, services: PluginServices) -> None:
        self._durations = cache.durations
        self._template = Template(cache.key)
        self._config = hashlib.sha256(config.model_dump_json().encode()).hexdigest()
        self._kept: KeptAnswers[KeptAnswer] = services.shared.get(("forward-auth verdicts",), _room)
        self._clock = services.clock

    def find(self, request: Request) -> Response | None:
        """Return the answer that is kept for a request."""
        kept = self._kept.get(request.route, self._key(request), Headers())
        if kept is None or kept.expires <= self._clock():
            return None
        return Response(kept.status, kept.headers.copy(), kept.body)

    def keep(self, request: Request, verdict: Response) -> None:
        """Keep an answer for its time, if it has one."""
        seconds = self._lifetime_s(verdict)
        body = verdict.body or b""
        now = self._clock()
        kept = KeptAnswer(verdict.status, verdict.headers.copy(), body, now, now + seconds)
        if seconds > 0 and kept.size <= _MAX_ANSWER:
            self._kept.put(request.route, self._key(request), Headers(), (), kept)

    def _lifetime_s(self, verdict: Response) -> float:
        control = control_of(verdict.headers)
        if "Set-Cookie" in verdict.headers or verdict.headers.get("Vary") == "*":
            return 0
        if any(name in control for name in _NOT_KEPT):
            return 0
        own = lifetime_s(verdict.headers, time.time())
        if own is not None:
            return own
        return self._durations.get(str(verdict.status), self._durations.get("any", 0))

    def _key(self, request: Request) -> str:
        return f"{self._config} {self._template.render(request)}"
