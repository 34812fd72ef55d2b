"""What is taken of a request's body: how much of it, and whether it is held until all of it is there."""

from typing import Final

from headgate.gateway.proxy.context import ProxyContext
from headgate.gateway.proxy.errors import BodyTooLarge, BuffersFull
from headgate.gateway.proxy.exchange.active_request import ActiveRequest
from headgate.gateway.proxy.exchange.buffers import BUFFERS_FULL, RETRY_AFTER
from headgate.gateway.proxy.exchange.deadlines import Deadlines
from headgate.gateway.proxy.heads.forward import forwarded_trailers

_UNBOUNDED: Final = -1


class BodyIntake:
    """Bounds and holds the body of one exchange's requests, which `RequestBody` keeps."""

    __slots__ = ("_buffers", "_deadlines", "_exchange")

    def __init__(self, exchange: ActiveRequest, context: ProxyContext, deadlines: Deadlines) -> None:
        self._exchange = exchange
        self._buffers = context.buffers
        self._deadlines = deadlines

    def limit(self, limit: int) -> bool:
        """Take no more than so many bytes; False: there are more, and the request was refused."""
        exchange = self._exchange
        body = exchange.body
        body.limit = limit if body.limit == _UNBOUNDED else min(limit, body.limit)
        if max(exchange.fields.content_length, body.received) <= limit:
            return True
        exchange.refuse(413, f"body longer than {limit} bytes")
        return False

    def hold(self, limit: int, passes_on: bool = False) -> None:
        """Keep what comes until all of it is there, at most so many bytes. A longer body is refused, or passed on as it
        comes.
        """
        self._exchange.body.hold(limit, passes_on)
        if not self.count() and not passes_on:
            return
        self.ask()
        self._deadlines.restart_pace()
        self._deadlines.set()
        self._exchange.client.update_reading()

    def ask(self) -> None:
        """Send a 100 to a client that waits for one."""
        exchange = self._exchange
        if exchange.fields.expects_continue and not exchange.body.is_asked_for and not exchange.body.received:
            exchange.body.is_asked_for = True
            exchange.client.send_continue()

    def keep(self, payload: bytes, done: bool, trailers: bytes) -> bool:
        """Keep more of a body that is held, as long as there is room for it; True: it goes on, as it is whole now."""
        body = self._exchange.body
        body.keep(payload)
        body.trailers = trailers
        if body.passes_on and (body.size > body.held_limit or not body.count(self._exchange.route_name)):
            return True
        if not self.count():
            return False
        if not done:
            self._deadlines.set()
        return done

    def is_too_long(self, payload: bytes) -> bool:
        """Refuse a body with which more came than is taken, or than can be held back."""
        body = self._exchange.body
        if body.limit >= 0 and body.received > body.limit:
            self._exchange.refuse(413, f"body longer than {body.limit} bytes")
            return True
        limit = body.held_limit
        if not body.is_held or body.received <= limit or body.passes_on:
            return False
        body.keep(payload)
        self._hold_no_longer(BodyTooLarge(f"body longer than the {limit} bytes that can be held back"))
        return True

    def count(self) -> bool:
        """Count what is at hand among all bodies that are held; False: there is no room for it."""
        body = self._exchange.body
        if body.count(self._exchange.route_name):
            return True
        if body.passes_on:
            return False
        limit = self._buffers.longest
        if body.size > limit:
            self._hold_no_longer(BodyTooLarge(f"body longer than {limit} bytes, half of max_buffered_bytes"))
        else:
            self._hold_no_longer(BuffersFull(BUFFERS_FULL))
        return False

    def _hold_no_longer(self, fault: BodyTooLarge) -> None:
        """Refuse a request whose body cannot be held, unless it is held for a hook that can do without."""
        exchange = self._exchange
        exchange.body.is_held = False
        if exchange.run is not None and exchange.run.body_refused(fault):
            return
        if isinstance(fault, BuffersFull):
            exchange.refuse(503, str(fault), RETRY_AFTER)
        else:
            exchange.refuse(413, str(fault))

    def replace(self, payload: bytes) -> None:
        """Send this body, as a whole, instead of what the client sends."""
        exchange = self._exchange
        exchange.body.replace(payload)
        exchange.body.is_replaced = not exchange.request_done
        fields = exchange.fields
        if exchange.body.trailers:
            return
        if payload or fields.chunked or fields.content_length >= 0:
            fields.chunked = False
            fields.content_length = len(payload)

    def passed_trailers(self, trailers: bytes) -> bytes:
        """Return the client's trailers that the upstream gets.

        Only a route that asks for them has them passed on, and gRPC where neither plugins nor client certificates say
        who the client is: an upstream that merges trailers into its headers would believe the client instead.
        """
        exchange = self._exchange
        policies = exchange.route.policies if exchange.route is not None else None
        if policies is None:
            is_passed = exchange.client.is_grpc
        else:
            is_plain = policies.hooks is None and policies.guard is None
            is_passed = policies.request_trailers or (exchange.client.is_grpc and is_plain)
        return forwarded_trailers(trailers, exchange.lines) if is_passed else b""
