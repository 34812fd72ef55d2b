"""Parameters of a request (specification, section 3.4; RFC 3875 section 4.1), as nginx' `fastcgi_params` has them.

Those of an upstream replace the usual ones of the same name, or come besides. Their values are templates with variables
of nginx. Header fields become `HTTP_*`. `Proxy` does not, as programs take `HTTP_PROXY` for a setting of theirs, and
neither do names that CGI cannot tell from others: those with anything but letters, digits and hyphens.
"""

import base64
import binascii
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote_to_bytes

from headgate.gateway.proxy.errors import BadMessage
from headgate.gateway.proxy.fcgi.records import write_param
from headgate.gateway.proxy.heads.forward import as_it_came, authority
from headgate.gateway.proxy.heads.paths import resolve_dots

if TYPE_CHECKING:
    from headgate.gateway.model.connection import FastCgiSettings
    from headgate.gateway.proxy.endpoint_pool import EndpointPool
    from headgate.gateway.proxy.sides import SentRequest

_ROOT: Final = b"/usr/local/nginx/html"
"""nginx' own in the images of ingress-nginx, which has no annotation for it."""
_USUAL: Final = (
    ("QUERY_STRING", "$query_string"),
    ("REQUEST_METHOD", "$request_method"),
    ("CONTENT_TYPE", "$content_type"),
    ("CONTENT_LENGTH", "$content_length"),
    ("SCRIPT_NAME", "$fastcgi_script_name"),
    ("REQUEST_URI", "$request_uri"),
    ("DOCUMENT_URI", "$document_uri"),
    ("DOCUMENT_ROOT", "$document_root"),
    ("SERVER_PROTOCOL", "$server_protocol"),
    ("REQUEST_SCHEME", "$scheme"),
    ("HTTPS", "$https"),
    ("GATEWAY_INTERFACE", "CGI/1.1"),
    ("SERVER_SOFTWARE", "headgate"),
    ("REMOTE_ADDR", "$remote_addr"),
    ("REMOTE_PORT", "$remote_port"),
    ("REMOTE_USER", "$remote_user"),
    ("SERVER_ADDR", "$server_addr"),
    ("SERVER_PORT", "$server_port"),
    ("SERVER_NAME", "$server_name"),
    ("REDIRECT_STATUS", "200"),
)
_IF_ANY: Final = frozenset({b"HTTPS"})
"""Left out where they are empty."""
_VARIABLE: Final = re.compile(r"\$(?:(\w+)|\{(\w+)\})", re.ASCII)
_NAME: Final = re.compile(rb"[A-Za-z0-9-]++")
_SLASHES: Final = re.compile(rb"//++")
_CGI: Final = bytes.maketrans(b"abcdefghijklmnopqrstuvwxyz-", b"ABCDEFGHIJKLMNOPQRSTUVWXYZ_")
_DROPPED: Final = frozenset({b"HTTP_PROXY"})

Piece = tuple[bytes, str]
"""Text, and the variable behind it; empty: none."""


class CgiRequest:
    """What variables say of one request."""

    __slots__ = ("headers", "host", "index", "original", "path", "query", "request", "size")

    def __init__(self, request: "SentRequest", pool: "EndpointPool", index: bytes, size: int) -> None:
        self.request = request
        self.index = index
        self.size = size
        """Of the body; -1: there is none."""
        path, _, self.query = request.target.partition(b"?")
        self.path = _read_path(path)
        self.original = as_it_came(request)[1]
        self.host = authority(request, pool)
        self.headers: dict[bytes, bytes] = {b"HTTP_HOST": self.host, b"HTTP_X_REQUEST_ID": request.request_id}
        if size >= 0:
            self.headers[b"HTTP_CONTENT_LENGTH"] = b"%d" % size
        for line in request.lines.split(b"\r\n"):
            name, _, value = line.partition(b":")
            if _NAME.fullmatch(name):
                self._add(b"HTTP_" + name.translate(_CGI), value.strip(b" \t"))

    def _add(self, name: bytes, value: bytes) -> None:
        before = self.headers.get(name)
        joint = b"; " if name == b"HTTP_COOKIE" else b", "
        self.headers[name] = value if before is None else before + joint + value

    def header(self, name: bytes) -> bytes:
        """Return a field of the head as CGI names it; empty if there is none."""
        return self.headers.get(name, b"")

    @property
    def script(self) -> bytes:
        """Path with the index behind its last slash."""
        return self.path + self.index if self.path.endswith(b"/") else self.path

    def user(self) -> bytes:
        """Name of the client by basic authentication; empty: it has none."""
        kind, _, coded = self.header(b"HTTP_AUTHORIZATION").partition(b" ")
        if kind.lower() != b"basic":
            return b""
        try:
            name, colon, _ = base64.b64decode(coded.strip(b" ")).partition(b":")
        except binascii.Error:
            return b""
        return name if colon else b""

    def end(self, number: int, part: int) -> bytes:
        """Return address (0) or port (1) of the client (0), or of the gateway (1)."""
        addresses = self.request.client.peer.addresses
        return b"" if addresses is None else str(addresses[number][part]).encode()


def _read_path(path: bytes) -> bytes:
    """Decode a path, with one slash for several and without dot segments, as nginx' `$uri`; raises BadMessage."""
    decoded = _SLASHES.sub(b"/", unquote_to_bytes(path))
    if decoded.find(b"/.") >= 0 and decoded.startswith(b"/"):
        resolved = resolve_dots(decoded)
        if resolved is None:
            raise BadMessage("path that leads above the root", 400)
        return resolved
    return decoded


def _is_secured(request: CgiRequest) -> bool:
    return request.request.origin.scheme == b"https"


READERS: Final[dict[str, Callable[[CgiRequest], bytes]]] = {
    "args": lambda request: request.query,
    "best_http_host": lambda request: request.host,
    "content_length": lambda request: b"%d" % request.size if request.size >= 0 else b"",
    "content_type": lambda request: request.header(b"HTTP_CONTENT_TYPE"),
    "document_root": lambda request: _ROOT,
    "document_uri": lambda request: request.path,
    "fastcgi_path_info": lambda request: b"",
    "fastcgi_script_name": lambda request: request.script,
    "host": lambda request: request.request.fields.host,
    "https": lambda request: b"on" if _is_secured(request) else b"",
    "is_args": lambda request: b"?" if request.query else b"",
    "pass_access_scheme": lambda request: request.request.origin.scheme,
    "pass_port": lambda request: request.request.client.peer.port,
    "pass_server_port": lambda request: request.request.client.peer.port,
    "query_string": lambda request: request.query,
    "realpath_root": lambda request: _ROOT,
    "remote_addr": lambda request: request.request.origin.address,
    "remote_port": lambda request: request.end(0, 1),
    "remote_user": lambda request: request.user(),
    "req_id": lambda request: request.request.request_id,
    "request_id": lambda request: request.request.request_id,
    "request_method": lambda request: request.request.method,
    "request_uri": lambda request: request.original,
    "scheme": lambda request: request.request.origin.scheme,
    "server_addr": lambda request: request.end(1, 0),
    "server_name": lambda request: request.request.fields.host,
    "server_port": lambda request: request.request.client.peer.port,
    "server_protocol": lambda request: b"HTTP/" + request.request.client.version,
    "uri": lambda request: request.path,
}
"""What variables are, by their names: those that `headgate.common.table.fastcgi` lists."""


def _value(request: CgiRequest, name: str) -> bytes:
    read = READERS.get(name)
    if read is not None:
        return read(request)
    if name.startswith("http_"):
        return request.header(name.upper().encode())
    if name.startswith("arg_"):
        wanted = name[4:].encode()
        for part in request.query.split(b"&"):
            key, _, value = part.partition(b"=")
            if key == wanted:
                return value
    return b""


class ParamsWriter:
    """Writes the parameters of requests to the endpoints of one upstream."""

    __slots__ = ("_index", "_replaced", "_templates")

    def __init__(self, settings: "FastCgiSettings") -> None:
        self._index = settings.script.encode()
        named = dict(_USUAL) | dict(settings.params)
        self._templates = [(name.encode(), _cut(template)) for name, template in named.items()]
        self._replaced = frozenset(name for name, _ in self._templates) | _DROPPED

    def write(self, request: "SentRequest", pool: "EndpointPool", size: int) -> bytes:
        """Write all parameters of a request with a body of so many bytes, -1 for none; raises BadMessage."""
        read = CgiRequest(request, pool, self._index, size)
        found = []
        for name, pieces in self._templates:
            value = b"".join(text + (_value(read, variable) if variable else b"") for text, variable in pieces)
            if value or name not in _IF_ANY:
                found.append(write_param(name, value))
        found += [write_param(name, value) for name, value in read.headers.items() if name not in self._replaced]
        return b"".join(found)


def _cut(template: str) -> tuple[Piece, ...]:
    """Cut a template into texts, each with the variable behind it."""
    pieces: list[Piece] = []
    start = 0
    for found in _VARIABLE.finditer(template):
        pieces.append((template[start : found.start()].encode(), found[1] or found[2]))
        start = found.end()
    pieces.append((template[start:].encode(), ""))
    return tuple(pieces)
