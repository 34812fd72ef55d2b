"""What becomes of a request in which nothing moved for too long: that depends on which side was waited for."""

from headgate.gateway.proxy.exchange.accounting import Accounting
from headgate.gateway.proxy.exchange.active_request import ActiveRequest
from headgate.gateway.proxy.exchange.attempts import Attempts
from headgate.gateway.proxy.exchange.deadlines import Deadlines


def expire(request: ActiveRequest, attempts: Attempts, deadlines: Deadlines, accounting: Accounting) -> None:
    """End a request, or go on waiting for a client that has caught up meanwhile."""
    upstream, run, client = request.upstream, request.run, request.client
    if request.tunnel:
        request.refuse(0, "nothing passed through the tunnel for too long")
    elif deadlines.is_expired:
        accounting.failed("timeout")
        request.refuse(504, "the request took longer than its route allows")
    elif run is not None and run.is_waiting and not request.body.is_held:
        request.refuse(504, "a plugin of the route took too long")
    elif attempts.is_waiting:
        request.refuse(503, "no connection to the upstream was free in time")
    elif client.write_paused and deadlines.is_client_in_time:
        deadlines.set()
    elif client.write_paused:
        request.reason = "client took too little of the answer in time"
        client.abort()
    elif not request.request_done and not (upstream is not None and upstream.write_paused):
        request.refuse(408, "the rest of the body did not come in time")
    elif upstream is not None and upstream.write_paused:
        attempts.failed("timeout", 504, "upstream took nothing of the request in time")
    else:
        attempts.failed("timeout", 504, "upstream did not answer in time")
