"""`proxy-cache`: keep answers, and give them again.

A worker keeps 64 MiB of answers of up to 4 MiB each, in memory; several workers share theirs, in files. Routes of one
namespace share them by `cache_key`; those of another namespace or cluster neither see nor purge them, and leave them an
equal share of room. What is kept is the upstream's answer, so that plugins see it each time as if it came from there.
`Apisix-Cache-Status` tells the client `MISS`, `HIT`, `EXPIRED` or `BYPASS`; `PURGE` instead of the method forgets what
is kept.

Never kept are answers with `no-store`, `no-cache` or `private`, with `Vary: *`, to requests with `Authorization` unless
`public` or `s-maxage` allow it, and those that are cut off. Answers that vary are kept for each variant (RFC 9111).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from headgate.common.plugins.traffic.proxy_cache import ProxyCacheConfig
from headgate.gateway.plugins.interface import BodyFilter, Headers, Plugin, PluginServices, Request, Response
from headgate.gateway.plugins.interface.variables import variable
from headgate.gateway.plugins.kit.cache_control import control_of, lifetime_s, seconds_in
from headgate.gateway.plugins.kit.kept_answers import (
    MAX_ANSWER,
    KeptAnswer,
    KeptAnswers,
    joined,
)
from headgate.gateway.plugins.kit.memory import Allocation, plugin_memory
from headgate.gateway.plugins.kit.patterns import Template
from headgate.gateway.plugins.kit.shared_answers import SharedAnswers

_DISK_TTL_S = 10
"""What Apache APISIX has in its configuration file for a cache on disk."""
_STATUS = "Apisix-Cache-Status"
_REFUSING = ("no-store", "no-cache", "private")


@dataclass(slots=True)
class _State:
    """What is known of one request."""

    key: str
    headers: Headers
    """As the request came, for answers that vary."""
    status: str = "MISS"
    age_s: int = 0
    may_keep: bool = True
    answer: Response | None = None
    """What may be kept, as the upstream gave it."""
    lifetime_s: float = 0.0


class ProxyCache(Plugin[ProxyCacheConfig]):
    """Keeps answers."""

    name = "proxy-cache"
    order = 1085
    unforeseen = "depends on what the cache holds"
    answer_order = -10000
    Config = ProxyCacheConfig

    def __init__(self, config: ProxyCacheConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._memory = plugin_memory(services)
        self._kept = _answers(services)
        self._key = [Template(text) for text in config.cache_key]
        self._bypass = [Template(text) for text in config.cache_bypass]
        self._no_cache = [Template(text) for text in config.no_cache]
        self._place = f"proxy-cache.{id(self)}"
        is_disk = config.cache_strategy == "disk"
        self._heeds_upstream = is_disk or config.cache_control
        self._ttl_s = _DISK_TTL_S if is_disk and "cache_ttl" not in config.model_fields_set else config.cache_ttl

    def on_request(self, request: Request) -> Response | None:
        """Answer with what is kept."""
        config = self.config
        if request.method == "PURGE":
            is_known = self._kept.drop(self.services.owner, self._key_of(request))
            return Response(200 if is_known else 404, reason="purged")
        if request.method not in config.cache_method or "Range" in request.headers:
            return None
        state = _State(self._key_of(request), request.headers.copy())
        request.variables[self._place] = state
        if _any_set(self._bypass, request):
            state.status, state.may_keep = "BYPASS", False
            return None
        found = self._find(request, state)
        if found is not None:
            state.status, state.may_keep = "HIT", False
            state.age_s = int(self.services.clock() - found.kept_at)
            return Response(found.status, found.headers.copy(), found.body)
        if config.cache_control and "only-if-cached" in control_of(request.headers):
            state.may_keep = False
            return Response.refusal(504, "nothing is kept, and nothing else was asked for")
        return None

    def _find(self, request: Request, state: _State) -> KeptAnswer | None:
        now = self.services.clock()
        found = self._kept.get(self.services.owner, state.key, state.headers)
        if found is None:
            return None
        if now >= found.expires:
            state.status = "EXPIRED"
            return None
        if not self.config.cache_control:
            return found
        control = control_of(request.headers)
        state.may_keep = "no-store" not in control
        most = seconds_in(control, "max-age")
        if "no-cache" in control or "no-store" in control or (most is not None and now - found.kept_at > most):
            return None
        return found

    def on_response(self, request: Request, response: Response) -> None:
        """Say where the answer is from, and see whether it may be kept."""
        state = request.variables.get(self._place)
        if not isinstance(state, _State):
            return
        headers = response.headers
        if state.may_keep and self._may_keep(request, state, response):
            # Before anything is changed: this is the answer that will be given again.
            state.answer = Response(response.status, headers.copy())
            state.lifetime_s = self._lifetime_s(response)
        if self.config.hide_cache_headers:
            headers.remove("Cache-Control")
            headers.remove("Expires")
        headers.set(_STATUS, state.status)
        if state.status == "HIT":
            headers.set("Age", str(state.age_s))

    def _may_keep(self, request: Request, state: _State, response: Response) -> bool:
        config, headers = self.config, response.headers
        if not response.from_upstream or request.method == "HEAD" or response.is_bodiless:
            return False
        if response.status not in config.cache_http_status or _any_set(self._no_cache, request):
            return False
        control = control_of(headers)
        if any(name in control for name in _REFUSING) or "*" in (headers.get("Vary") or ""):
            return False
        if "Set-Cookie" in headers and not config.cache_set_cookie:
            return False
        if "Authorization" in state.headers and not ("public" in control or "s-maxage" in control):
            return False
        return self._lifetime_s(response) > 0

    def _lifetime_s(self, response: Response) -> float:
        told = lifetime_s(response.headers, time.time()) if self._heeds_upstream else None
        return self._ttl_s if told is None else told

    def body_filter(self, request: Request, response: Response) -> BodyFilter | None:
        """Keep the body as it passes."""
        state = request.variables.get(self._place)
        if not isinstance(state, _State) or state.answer is None:
            return None
        answer, lifetime_s = state.answer, state.lifetime_s
        return _Keeping(lambda body: self._keep(state, answer, body, lifetime_s), Allocation(self._memory, self.name))

    def _keep(self, state: _State, answer: Response, body: bytes, lifetime_s: float) -> None:
        """Keep an answer that is whole."""
        now, headers = self.services.clock(), answer.headers
        vary = (name.strip().lower() for name in (headers.get("Vary") or "").split(",") if name.strip())
        kept = KeptAnswer(answer.status, headers, body, now, now + lifetime_s)
        self._kept.put(self.services.owner, state.key, state.headers, vary, kept)

    def _key_of(self, request: Request) -> str:
        """Return what an answer of this owner is kept under; no object can make two parts out of one."""
        whose = [""]
        if self.config.consumer_isolation:
            whose = [variable(request, name) or "" for name in ("consumer_name", "remote_user")]
        written = (part.render(request) for part in self._key)
        return joined((self.config.cache_zone, *whose, *written))


def _answers(services: PluginServices) -> KeptAnswers[KeptAnswer] | SharedAnswers:
    """Return what this worker, or all together, have kept."""
    folder = services.answers

    def make() -> KeptAnswers[KeptAnswer] | SharedAnswers:
        return KeptAnswers() if folder is None else SharedAnswers(folder)

    return services.shared.get(("proxy-cache",), make)


class _Keeping(BodyFilter):
    """Lets the body pass and collects it."""

    keeps_length = True

    def __init__(self, keep: Callable[[bytes], None], memory: Allocation) -> None:
        self._keep = keep
        self._memory = memory
        self._parts: list[bytes] | None = []
        self._size = 0

    def feed(self, data: bytes) -> bytes:
        if self._parts is not None:
            self._parts.append(bytes(data))
            self._size += len(data)
            if self._size > MAX_ANSWER or not self._memory.grow(len(data)):
                self._parts = None
                self._memory.release()
        return data

    def finish(self) -> bytes:
        if self._parts is not None:
            self._keep(b"".join(self._parts))
            self._memory.release()
        return b""


def _any_set(templates: list[Template], request: Request) -> bool:
    return any(template.render(request) not in ("", "0") for template in templates)
