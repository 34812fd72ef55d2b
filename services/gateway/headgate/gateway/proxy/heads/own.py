"""Answers that the proxy gives by itself.

What went wrong behind the gateway, such as an endpoint's address or a Service's name, is for the log and for traces. A
client reads what is wrong with its own request, or the status alone, and the id under which the log has the rest.
"""

from headgate.gateway.proxy.errors import phrase, status_line
from headgate.gateway.proxy.heads.head import AnswerHead


def own_answer(
    status: int, reason: str, request_id: bytes, lines: bytes = b"", *, detailed: bool = False
) -> tuple[AnswerHead, bytes]:
    """Build an answer of our own, head and body: plain text, with the request's id as `x-request-id`.

    Args:
        status: of the answer.
        reason: why the request is not served; it may hold names that users chose.
        request_id: as the log has it.
        lines: further whole header lines.
        detailed: say the reason of any status, in `x-headgate-reason` too.
    """
    body = error_text(status, reason, detailed=detailed).encode("ascii")
    answer = AnswerHead(status, status_line(status))
    answer.lines = b"Server: headgate\r\nContent-Type: text/plain; charset=utf-8\r\n%b%b" % (id_line(request_id), lines)
    if detailed:
        answer.lines += b"x-headgate-reason: %b\r\n" % printable(reason).encode("ascii")
    answer.has_server = True
    answer.content_length = len(body)
    return answer, body


def error_text(status: int, reason: str, *, detailed: bool) -> str:
    """Return the body of an answer of our own, ASCII."""
    shown = shown_reason(status, reason, detailed=detailed)
    return f"{status} {phrase(status)}: {printable(shown)}\n" if shown else f"{status} {phrase(status)}\n"


def shown_reason(status: int, reason: str, *, detailed: bool) -> str:
    """Return what a client may know of a reason: nothing, where the failure is the gateway's or an upstream's."""
    return reason if detailed or status < 500 else ""


def id_line(request_id: bytes) -> bytes:
    """Return the header line by which a client can name its request to whoever reads the log."""
    return b"x-request-id: %b\r\n" % request_id


def printable(text: str) -> str:
    """Replace whatever is not printable ASCII."""
    if text.isascii() and text.isprintable():
        return text
    return "".join([char if " " <= char <= "~" else "?" for char in text])
