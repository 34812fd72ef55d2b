"""Reading a request that somebody pastes: a URL, or a curl command."""

import shlex
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from headgate.common.traffic import TappedRequest
from headgate.operations.errors import InvalidRequest

_WITH_VALUE: Final = frozenset(
    (
        "-o",
        "--output",
        "-w",
        "--write-out",
        "-m",
        "--max-time",
        "--connect-timeout",
        "--resolve",
        "-x",
        "--proxy",
        "--cacert",
    )
)
"""Flags of curl whose value says nothing of the request."""


class PastedRequest(NamedTuple):
    """A request."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]

    @property
    def command(self) -> str:
        """The question on the command line."""
        headers = " ".join(f"-H {shlex.quote(f'{name}: {value}')}" for name, value in self.headers)
        return f"headgate explain {self.method} {shlex.quote(self.url)} {headers}".rstrip()


def of_past(request: TappedRequest) -> PastedRequest:
    """Return what is known of a finished request."""
    return PastedRequest(request.method, f"{request.scheme}://{request.host}{request.path}", ())


def read_request(text: str) -> PastedRequest:
    """Read a URL, `METHOD URL`, or a curl command.

    Raises:
        InvalidRequest: it is none of these.
    """
    try:
        words = shlex.split(text.replace("\\\n", " "))
    except ValueError as error:
        raise InvalidRequest(f"the command cannot be read: {error}") from None
    if words and words[0] == "curl":
        return _of_curl(words[1:])
    if len(words) == 2 and words[0].isupper():
        return PastedRequest(words[0], _url(words[1]), ())
    if len(words) != 1:
        raise InvalidRequest("write a URL, METHOD URL, or a curl command")
    return PastedRequest("GET", _url(words[0]), ())


_METHOD, _HEADER, _AGENT, _COOKIE, _BODY, _HEAD, _URL = "method", "header", "agent", "cookie", "body", "head", "url"
_FLAGS: Final = {
    **dict.fromkeys(("-X", "--request"), _METHOD),
    **dict.fromkeys(("-H", "--header"), _HEADER),
    **dict.fromkeys(("-A", "--user-agent"), _AGENT),
    **dict.fromkeys(("-b", "--cookie"), _COOKIE),
    **dict.fromkeys(("-d", "--data", "--data-raw", "--data-binary", "--data-urlencode", "--json"), _BODY),
    **dict.fromkeys(("-I", "--head"), _HEAD),
    "--url": _URL,
}


def _of_curl(words: list[str]) -> PastedRequest:
    said: dict[str, list[str]] = {}
    left = iter(words)
    for word in left:
        flag, inline = _split(word)
        meaning = _FLAGS.get(flag, "")
        if meaning == _HEAD:
            said[_HEAD] = [""]
        elif meaning or flag in _WITH_VALUE:
            said.setdefault(meaning, []).append(inline if inline is not None else next(left, ""))
        elif not word.startswith("-"):
            said.setdefault(_URL, []).append(word)
    headers = [_header(text) for text in said.get(_HEADER, ())]
    headers += [("User-Agent", text) for text in said.get(_AGENT, ())]
    headers += [("Cookie", text) for text in said.get(_COOKIE, ())]
    default = "POST" if _BODY in said else "HEAD" if _HEAD in said else "GET"
    method = said.get(_METHOD, [default])[-1].upper()
    return PastedRequest(method, _url(said.get(_URL, [""])[0]), tuple(headers))


def _split(word: str) -> tuple[str, str | None]:
    """Return a flag and the value that stands in the same word, if one does."""
    if word.startswith("--"):
        flag, equals, value = word.partition("=")
        return flag, value if equals else None
    if word[:2] in _FLAGS and len(word) > 2 and _FLAGS[word[:2]] != _HEAD:
        return word[:2], word[2:]
    return word, None


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise InvalidRequest(f"-H {text!r} must be 'NAME: VALUE'")
    return name.strip(), value.strip()


def _url(text: str) -> str:
    try:
        url = urlsplit(text if "://" in text else f"http://{text}")
    except ValueError:  # brackets that are no IPv6 address
        url = urlsplit("")
    if url.scheme not in ("http", "https") or not url.netloc:
        raise InvalidRequest(f"{text!r} is not a URL: expected http://HOST/PATH")
    return url.geturl()
