"""`api-breaker`: leave an upstream that fails in peace for a while.

After so many failures requests are answered by the plugin for 2 seconds, after twice as many for 4, and so on; in
between the upstream gets another chance. Counted are answers by host and path, by each worker for itself.
"""

from headgate.common.plugins.limits.api_breaker import ApiBreakerConfig
from headgate.gateway.plugins.interface import Headers, Plugin, PluginServices, Request, Response
from headgate.gateway.plugins.kit.keyed import Keyed
from headgate.gateway.plugins.kit.patterns import Template

_MAX_POWER = 30


class _Record:
    __slots__ = ("broke_at", "failures", "successes")

    def __init__(self) -> None:
        self.failures = 0
        self.successes = 0
        self.broke_at = 0.0
        """When the number of failures last was a multiple of those that open the circuit."""


class ApiBreaker(Plugin[ApiBreakerConfig]):
    """Opens and closes circuits."""

    name = "api-breaker"
    order = 1005
    unforeseen = "counts answers of the upstream"
    Config = ApiBreakerConfig

    def __init__(self, config: ApiBreakerConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._body = Template(config.break_response_body or "")
        self._headers = [(header.key, Template(header.value)) for header in config.break_response_headers]
        self._records: Keyed[_Record] = services.shared.get((self.name, services.scope), Keyed)

    def on_request(self, request: Request) -> Response | None:
        """Answer while the circuit is open."""
        record = self._records.get(_key(request))
        if record is None or not self._is_open(record):
            return None
        config, reason = self.config, "the circuit is open"
        if config.break_response_body is None:
            return Response.refusal(config.break_response_code, reason)
        headers = Headers((name, template.render(request)) for name, template in self._headers)
        body = self._body.render(request).encode("latin-1")
        return Response(config.break_response_code, headers, body, reason=reason)

    def on_finish(self, request: Request, status: int, seconds: float) -> None:
        """Count what the upstream answered."""
        answered = request.upstream_status
        if answered in self.config.unhealthy.http_statuses:
            key = _key(request)
            record = self._records.get(key) or self._records.put(key, _Record())
            record.failures += 1
            record.successes = 0
            if record.failures % self.config.unhealthy.failures == 0:
                record.broke_at = self.services.clock()
        elif answered in self.config.healthy.http_statuses:
            self._count_success(_key(request))

    def _count_success(self, key: str) -> None:
        record = self._records.get(key)
        if record is None:
            return
        record.successes += 1
        if record.successes >= self.config.healthy.successes:
            self._records.drop(key)

    def _is_open(self, record: _Record) -> bool:
        times = record.failures // self.config.unhealthy.failures
        if times == 0:
            return False
        open_s = min(1 << min(times, _MAX_POWER), self.config.max_breaker_sec)
        return self.services.clock() - record.broke_at < open_s


def _key(request: Request) -> str:
    return f"{request.host}{request.original_path}"
