"""A finished request as variables of access log formats look at it."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from headgate.gateway.proxy.heads.head import RequestFields
    from headgate.gateway.proxy.reports import LogRecord

Value = str | int | float | None


def decoded(text: bytes) -> str:
    """Read UTF-8; bytes that are none are kept."""
    return text.decode("utf-8", "surrogateescape")


def encoded(text: str) -> bytes:
    """Undo `decoded`."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        # A surrogate that stands for no byte can only be in a text of the table.
        return text.encode("utf-8", "backslashreplace")


_TAKEN: Final[Mapping[str, Callable[["RequestFields"], bytes]]] = {
    "connection": lambda fields: b", ".join(sorted(fields.options)),
    "content-length": lambda fields: b"%d" % fields.content_length if fields.content_length >= 0 else b"",
    "expect": lambda fields: b"100-continue" if fields.expects_continue else b"",
    "host": lambda fields: fields.host_line,
    "referer": lambda fields: fields.referer,
    "transfer-encoding": lambda fields: b"chunked" if fields.chunked else b"",
    "upgrade": lambda fields: fields.upgrade,
    "user-agent": lambda fields: fields.agent,
    "x-request-id": lambda fields: fields.request_id,
}
"""Headers that are kept apart from the lines that are passed on."""


class Entry:
    """A finished request, as variables look at it."""

    __slots__ = ("_details", "record")

    def __init__(self, record: "LogRecord") -> None:
        self.record = record
        self._details: Mapping[str, object] | None = None

    def text(self, index: int) -> str:
        """Return a part of the record that is bytes."""
        part: Any = self.record[index]
        return decoded(part)

    def detail(self, name: str) -> Value:
        """Return what `Books.details` has under a name."""
        if self._details is None:
            self._details = self.record[13].details()
        found: Any = self._details.get(name)
        return found  # type: ignore[no-any-return]

    def header(self, name: str) -> str | None:
        """Return a header of the request as the client sent it; several lines are joined."""
        fields = self.record[8]
        taken = _TAKEN.get(name)
        if taken is not None:
            return decoded(taken(fields)) or None
        written = name.encode()
        claimed = fields.forwarded.get(written)
        if claimed is not None:
            return decoded(claimed)
        prefix = written + b":"
        found = [line[len(prefix) :].strip() for line in fields.lines.splitlines() if line.lower().startswith(prefix)]
        return decoded(b", ".join(found)) if found else None

    @property
    def target(self) -> tuple[str, str]:
        """Path and query as the client sent them."""
        path, _, query = self.text(3).partition("?")
        return path, query
