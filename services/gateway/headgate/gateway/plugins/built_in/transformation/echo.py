"""`echo`: put texts before, behind or instead of an answer's body."""

from headgate.common.plugins.transformation.echo import EchoConfig
from headgate.gateway.plugins.interface import BodyFilter, Plugin, PluginServices, Request, Response
from headgate.gateway.plugins.kit.patterns import Template


class Echo(Plugin[EchoConfig]):
    """Changes bodies."""

    name = "echo"
    order = 412
    Config = EchoConfig
    is_shareable = True

    def __init__(self, config: EchoConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._headers = [(name, Template(value)) for name, value in config.headers.items()]
        self._before = (config.before_body or "").encode()
        self._after = (config.after_body or "").encode()

    def on_response(self, request: Request, response: Response) -> None:
        """Set headers, and put the body in."""
        if self.config.body is not None and not response.is_bodiless:
            response.body = self.config.body.encode()
            for name in ("Content-Encoding", "ETag", "Last-Modified"):
                response.headers.remove(name)
        for name, template in self._headers:
            response.headers.set(name, template.render(request))

    def body_filter(self, request: Request, response: Response) -> BodyFilter | None:
        """Put the other texts around it."""
        return _Around(self._before, self._after) if self._before or self._after else None


class _Around(BodyFilter):
    def __init__(self, before: bytes, after: bytes) -> None:
        self._before = before
        self._after = after

    def feed(self, data: bytes) -> bytes:
        before, self._before = self._before, b""
        return before + data

    def finish(self) -> bytes:
        return self._before + self._after
