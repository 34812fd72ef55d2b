"""A service of Envoy's external authorization: a real gRPC server that notes what it is asked."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio

from fakes.gateway.tls import Issued
from headgate.gateway.plugins.built_in.authentication.ext_authz.messages import METHOD, messages


class Authorization(grpc.GenericRpcHandler):
    """Says `answer` to all that it is asked; a status fails the call instead."""

    def __init__(self, answer: bytes | grpc.StatusCode) -> None:
        self.answer = answer
        self.asked: list[Any] = []
        self.metadata: list[dict[str, str | bytes]] = []

    def service(self, call: Any) -> Any:
        """Give the handler of a call."""
        self.metadata.append({each.key: each.value for each in call.invocation_metadata})
        return grpc.unary_unary_rpc_method_handler(self._check) if call.method == METHOD else None

    async def _check(self, request: bytes, context: Any) -> bytes:
        self.asked.append(messages().request.FromString(request).attributes)
        if isinstance(self.answer, grpc.StatusCode):
            await context.abort(self.answer, "told to fail")
        return self.answer  # type: ignore[return-value]

    @property
    def http(self) -> Any:
        """The request that was asked about last."""
        return self.asked[-1].request.http

    def headers(self) -> dict[str, str]:
        """Its headers."""
        return {each.key: each.value for each in self.http.headers}


def header(name: str, value: str, **more: Any) -> dict[str, Any]:
    """Return a `HeaderValueOption`."""
    return {"header": {"key": name, "value": value}, **more}


def allowed(**said: Any) -> bytes:
    """Return a `CheckResponse` that lets in, with the fields of its `OkResponse`."""
    found: bytes = messages().reply(status={"code": 0}, ok_response=said).SerializeToString()
    return found


def denied(code: int = 7, **said: Any) -> bytes:
    """Return a `CheckResponse` that does not, with the fields of its `DeniedResponse`, if there are any."""
    answer = messages().reply(status={"code": code}, **({"denied_response": said} if said else {}))
    found: bytes = answer.SerializeToString()
    return found


@contextlib.asynccontextmanager
async def authorization(
    answer: bytes | grpc.StatusCode, issued: Issued | None = None
) -> AsyncIterator[tuple[Authorization, int]]:
    """Serve on a free port of 127.0.0.1, over TLS if there is a certificate."""
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    service = Authorization(answer)
    server.add_generic_rpc_handlers((service,))
    if issued is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(issued.key_pem, issued.chain_pem)]))
    await server.start()
    try:
        yield service, port
    finally:
        await server.stop(None)
