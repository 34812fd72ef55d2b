"""Origins that answer by the path that they are asked for."""

from fakes.gateway.proxied import Conversation, Script


def answer(status: str = "200 OK", body: bytes = b"ok", *lines: str) -> bytes:
    """An answer; lines are those of its head."""
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *lines]
    return "\r\n".join([*head, "", ""]).encode() + body


def by_path(**answers: bytes | list[bytes]) -> Script:
    """Script: answer by the first part of the path; of several answers each request takes the next."""

    async def script(conversation: Conversation) -> None:
        while True:
            head, _ = await conversation.request()
            found = answers[head.split(b" ")[1].decode().strip("/").partition("?")[0] or "index"]
            await conversation.send(found if isinstance(found, bytes) else found.pop(0))

    return script
