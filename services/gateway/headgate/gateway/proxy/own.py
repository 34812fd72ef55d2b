"""Answers that the proxy gives by itself."""

from headgate.gateway.proxy.errors import phrase
from headgate.gateway.proxy.head import AnswerHead


def own_answer(status: int, reason: str, lines: bytes = b"") -> tuple[AnswerHead, bytes]:
    """Build an answer of our own: plain text that names the reason, the same in `x-headgate-reason`; head and body.

    `reason` may hold names that users chose; what is not printable ASCII is replaced. `lines` are further whole header
    lines.
    """
    text = "".join(char if " " <= char <= "~" else "?" for char in reason)
    body = f"{status} {phrase(status)}: {text}\n".encode("ascii")
    answer = AnswerHead(status, 1)
    answer.lines = (
        f"HTTP/1.1 {status} {phrase(status)}\r\nServer: headgate\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"x-headgate-reason: {text}\r\n"
    ).encode("ascii") + lines
    answer.has_server = True
    answer.content_length = len(body)
    return answer, body
