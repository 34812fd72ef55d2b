"""What conditions, hash keys and plugins may look at in a request.

Nothing is parsed before it is asked for, and nothing twice. Values are bytes as they came, but for query parameters,
which are percent-decoded.
"""

from typing import Final
from urllib.parse import unquote_to_bytes

import msgspec

MAX_PARSED_BODY: Final = 256 * 1024
"""Bytes; fields of a longer body are absent. Parsing what a client sends holds up the loop for as long as it takes."""
MAX_FORM_FIELDS: Final = 1024
"""Fields of a form behind these are absent."""

_JSON: Final = msgspec.json.Decoder(float_hook=str)
_BLANKS: Final = b" \t"


class RequestFacts:
    """One request, as far as its head and its body say.

    Args:
        method: as sent.
        scheme: `http` or `https`.
        host: lower case, without port and trailing dot.
        target: path and query as sent.
        lines: checked header lines `Name: value`, each with its CRLF; Host is not among them.
        client: address of the client, without port.
    """

    __slots__ = (
        "_body_fields",
        "_cookies",
        "_folded",
        "_json",
        "_parameters",
        "backend",
        "body",
        "client",
        "host",
        "lines",
        "method",
        "path",
        "query",
        "scheme",
        "target",
    )

    def __init__(self, method: bytes, scheme: bytes, host: bytes, target: bytes, lines: bytes, client: bytes) -> None:
        self.method = method
        self.scheme = scheme
        self.host = host
        self.target = target
        self.lines = lines
        self.client = client
        cut = target.find(b"?")
        self.path: bytes = target if cut < 0 else target[:cut]
        """As sent, without the query."""
        self.query: bytes = b"" if cut < 0 else target[cut + 1 :]
        """As sent, without `?`."""
        self.body: bytes | None = None
        """The whole body once somebody has read it, without its transfer coding."""
        self.backend: str = ""
        """Key of the upstream that the route chose; empty before, and for routes that have no choice."""
        self._folded: bytes = b""
        """The lines in lower case behind a CRLF; offsets are two more than in `lines`."""
        self._parameters: dict[bytes, bytes] | None = None
        self._cookies: dict[bytes, bytes] | None = None
        self._body_fields: dict[str, str] | None = None
        self._json: object = None

    def header(self, name: bytes) -> bytes | None:
        """Return the value of a field by its name in lower case, several joined by `, `; None if there is none.

        Cookies are joined by `; ` (RFC 9113 section 8.2.3).
        """
        if name == b"host":
            return self.host or None
        folded = self._folded
        if not folded:
            folded = self._folded = b"\r\n" + self.lines.lower()
        needle = b"\r\n" + name + b":"
        at = folded.find(needle)
        if at < 0:
            return None
        value = self._value(at + len(needle))
        at = folded.find(needle, at + 2)
        while at >= 0:
            value += (b"; " if name == b"cookie" else b", ") + self._value(at + len(needle))
            at = folded.find(needle, at + 2)
        return value

    def _value(self, start: int) -> bytes:
        """Return the value that begins at an offset of the folded lines."""
        lines = self.lines
        begin = start - 2
        end = lines.find(b"\r\n", begin)
        return lines[begin:end].strip(_BLANKS)

    def query_value(self, name: bytes) -> bytes | None:
        """Return the first value of a query parameter, percent-decoded with `+` for a space; None if there is none.

        A parameter without `=` has an empty value.
        """
        found = self._parameters
        if found is None:
            found = self._parameters = _pairs(self.query, -1)
        return found.get(name)

    def cookie(self, name: bytes) -> bytes | None:
        """Return the first value of a cookie as sent, quotes included (RFC 6265 section 5.4); None if there is none."""
        found = self._cookies
        if found is None:
            found = {}
            for part in (self.header(b"cookie") or b"").split(b";"):
                cut = part.find(b"=")
                if cut > 0:
                    found.setdefault(part[:cut].strip(_BLANKS), part[cut + 1 :].strip(_BLANKS))
            self._cookies = found
        return found.get(name)

    def body_field(self, name: str) -> str | None:
        """Return a field of a form or of a JSON body; None if it is absent or the body was not read.

        Forms are `application/x-www-form-urlencoded`; of several fields of one name the first counts. JSON bodies are
        `application/json` and `*+json` in UTF-8; the name is a path, `order.items.0.sku`. Of a string the content is
        returned, of all else its JSON text. A body that is neither, is malformed or is longer than `MAX_PARSED_BODY`
        has no fields.
        """
        found = self._body_fields
        if found is None:
            if self.body is None:
                return None
            found = self._body_fields = self._read_body(self.body)
        value = found.get(name)
        if value is None and self._json is not None:
            value = _walk(self._json, name)
            if value is not None:
                found[name] = value
        return value

    def _read_body(self, body: bytes) -> dict[str, str]:
        kind = (self.header(b"content-type") or b"").split(b";")[0].strip(_BLANKS).lower()
        fields: dict[str, str] = {}
        if len(body) > MAX_PARSED_BODY:
            return fields
        if kind == b"application/x-www-form-urlencoded":
            for key, value in _pairs(body, MAX_FORM_FIELDS).items():
                fields[key.decode("utf-8", "replace")] = value.decode("utf-8", "replace")
        elif kind == b"application/json" or (kind.startswith(b"application/") and kind.endswith(b"+json")):
            try:
                self._json = _JSON.decode(body)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                # What cannot be read has no fields; whether it may be sent on is the upstream's business.
                self._json = None
        return fields


def _pairs(text: bytes, limit: int) -> dict[bytes, bytes]:
    """Read `application/x-www-form-urlencoded` text: the first value of each name; at most `limit` pairs, -1 is all."""
    found: dict[bytes, bytes] = {}
    for part in text.split(b"&", limit)[: None if limit < 0 else limit]:
        if not part:
            continue
        cut = part.find(b"=")
        name = _decoded(part if cut < 0 else part[:cut])
        if name not in found:
            found[name] = b"" if cut < 0 else _decoded(part[cut + 1 :])
    return found


def _decoded(text: bytes) -> bytes:
    if b"+" in text:
        text = text.replace(b"+", b" ")
    return unquote_to_bytes(text) if b"%" in text else text


def _walk(value: object, path: str) -> str | None:
    """Follow a path of names and indexes with dots."""
    for step in path.split("."):
        if isinstance(value, dict):
            if step not in value:
                return None
            value = value[step]
        elif isinstance(value, list):
            if not (step.isascii() and step.isdigit()) or len(step) > 9 or int(step) >= len(value):
                return None
            value = value[int(step)]
        else:
            return None
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
