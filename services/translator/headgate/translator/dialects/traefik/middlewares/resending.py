"""The middlewares `retry` and `buffering`: settings of the routes that use them."""

from collections.abc import Mapping
from functools import lru_cache, partial
from http import HTTPStatus
from typing import Final

from headgate.common.plugins.comparisons import BadComparison, Call, Function, Value, read_condition
from headgate.common.plugins.traffic.response_buffering import ResponseBufferingConfig
from headgate.common.table import PluginUse, Retries
from headgate.common.table.sending import MAX_ATTEMPTS, RetryCondition
from headgate.translator.dialects.traefik.middlewares.making import Made, Making, Unfollowed
from headgate.translator.dialects.traefik.models.exchanges import Buffering, Retry
from headgate.translator.manifests.patches import RoutePatch

_STATUSES: Final = range(100, 600)
_NETWORK_ERRORS: Final = (502, 504)
ANY_LENGTH: Final = 1 << 53
"""Bytes: as many as gateways can hold."""
_MOST_BY_EXPRESSION: Final = 10
"""Attempts besides the first that `retryExpression` may ask for."""
_FUNCTIONS: Final[Mapping[str, Function]] = {
    "RequestMethod": Function(0, str),
    "IsNetworkError": Function(0, bool),
    "Attempts": Function(0, int),
    "ResponseCode": Function(0, int),
}


def retry(written: Retry, making: Making) -> Made:
    """Send requests again that found no server, or got one of some statuses."""
    if written.attempts < 1:
        raise Unfollowed("InvalidValue", "attempts", "must be 1 at least, the first attempt included")
    if written.disable_retry_on_network_error and not written.status:
        message = "leaves nothing after which a request is sent again: give status, or leave it out"
        raise Unfollowed("InvalidValue", "disableRetryOnNetworkError", message)
    if written.attempts == 1:
        return Made(route=RoutePatch(retries=Retries(attempts=0)))
    statuses = tuple(dict.fromkeys(code for text in written.status for code in statuses_of(text, "status")))
    on: tuple[RetryCondition, ...] = () if written.disable_retry_on_network_error else ("connect",)
    # Statuses count that the gateway itself answers with where a server does not answer.
    if HTTPStatus.BAD_GATEWAY in statuses:
        on = ("connect", "reset")
    if HTTPStatus.GATEWAY_TIMEOUT in statuses:
        on = (*on, "timeout")
    retries = Retries(
        attempts=min(written.attempts - 1, MAX_ATTEMPTS),
        on=(*on, "status") if statuses else on,
        statuses=statuses,
        unsafe=written.retry_non_idempotent_method,
        total_s=written.timeout if written.timeout and written.timeout > 0 else None,
        backoff_s=max(written.initial_interval or 0.0, 0.0),
        budget=None,
    )
    most = written.max_request_body_bytes
    kept = ANY_LENGTH if most is None or most < 0 else most
    return Made(route=RoutePatch(retries=retries, keeps_body=kept if statuses else None))


def statuses_of(text: str, field: str) -> range:
    """Read a status or a range of them: `404`, `500-599`."""
    first, _, last = text.partition("-")
    numbers = (first, last or first)
    if not all(number.isascii() and number.isdecimal() and len(number) == 3 for number in numbers):
        raise Unfollowed("InvalidValue", field, f"must be a status such as 404, or a range as 500-599: {text[:40]!r}")
    low, high = int(numbers[0]), int(numbers[1])
    if not 100 <= low <= high <= 599:
        raise Unfollowed("InvalidValue", field, f"must be from 100 to 599, the lower one first: {text[:40]!r}")
    return range(low, high + 1)


def buffering(written: Buffering, making: Making) -> Made:
    """Read whole bodies before they are passed on."""
    longest = written.max_request_body_bytes
    retries = _retries(written.retry_expression) if written.retry_expression else None
    said = RoutePatch(keeps_body=ANY_LENGTH, max_body=longest if longest > 0 else None, retries=retries)
    config = ResponseBufferingConfig(max_body=max(written.max_response_body_bytes, 0))
    return Made((PluginUse.of(config),), said)


@lru_cache(256)
def _retries(text: str) -> Retries:
    """Return retries as an expression says them: it is asked for every status and attempt."""
    try:
        condition = read_condition(text, _FUNCTIONS)
    except BadComparison as error:
        raise Unfollowed("InvalidValue", "retryExpression", str(error)) from error
    named = (str(each.value) for each in condition.comparisons() if each.call.name == "RequestMethod")
    methods = ("GET", "POST", *named)
    found = {
        (method, attempt, status)
        for method in methods
        for attempt in range(1, _MOST_BY_EXPRESSION + 1)
        for status in _STATUSES
        if condition.holds(partial(_value, method, attempt, status))
    }
    by_method = {frozenset(each[1:] for each in found if each[0] == method) for method in methods}
    if len(by_method) > 1:
        raise Unfollowed("UnsupportedField", "retryExpression", "cannot depend on RequestMethod(): leave it out")
    by_status = {status: frozenset(attempt for _, attempt, other in found if other == status) for _, _, status in found}
    attempts = {*by_status.values()}
    if len(attempts) > 1 or any(each != frozenset(range(1, len(each) + 1)) for each in attempts):
        message = "must bound the attempts alike for all statuses, from above: ... && Attempts() <= 2"
        raise Unfollowed("UnsupportedField", "retryExpression", message)
    if not found:
        return Retries(attempts=0)
    on: tuple[RetryCondition, ...] = ("connect", "reset", "timeout") if set(_NETWORK_ERRORS) & set(by_status) else ()
    return Retries(
        attempts=len(next(iter(attempts))),
        on=(*on, "status"),
        statuses=tuple(sorted(by_status)),
        unsafe=True,
        budget=None,
    )


def _value(method: str, attempt: int, status: int, call: Call) -> Value:
    match call.name:
        case "RequestMethod":
            return method
        case "IsNetworkError":
            return status in _NETWORK_ERRORS
        case "Attempts":
            return attempt
        case _:
            return status
