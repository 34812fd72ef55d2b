"""Values of ingress-nginx' annotations, read as strictly as it validates them; all raise ValueError.

What passes is a value of the table or a text of a small set of characters. No value is ever put into a text of another
language.
"""

import ipaddress
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from headgate.common.table import HashKey
from headgate.common.table.hosts import MAX_HOST_PATTERN
from headgate.translator.manifests import texts

T = TypeVar("T")
_PLAIN: Final = r"\-._~A-Za-z0-9/:"
_BOOLEANS: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}
_BASIC: Final = re.compile(rf"[{_PLAIN}]*")
_URL: Final = re.compile(rf"[{_PLAIN},?&=]*")
_PATH_WITH_CAPTURES: Final = re.compile(rf"/?[{_PLAIN}$]*")
_SERVER_NAME: Final = re.compile(rf"[{_PLAIN}^$\[\](){{}}*+?|&=\\]*")
_SIZE: Final = re.compile(r"(\d+)([bkmg]?)", re.IGNORECASE)
_UNITS: Final = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_ALIAS: Final = re.compile(rf"~[{_PLAIN}^$\[\](){{}}*+?|&=\\]+|(\*\.)?[A-Za-z0-9_]([-A-Za-z0-9._]*[A-Za-z0-9_])?")
_LONGEST_NAME: Final = 253
_REDIRECT: Final = re.compile(rf"[{_PLAIN},?&=$#%+@!;]*")
_HEADERS: Final = re.compile(r"[A-Za-z0-9\-_, ]*")
_INTEGER: Final = re.compile(r"[+-]?\d{1,18}")
_MOST: Final = 1 << 40


_REALM: Final = re.compile(rf"[{_PLAIN} ]*")
_URL_TEMPLATE: Final = re.compile(rf"[{_PLAIN}, :?&=$]*")
_VARIABLES: Final = re.compile(r"[A-Za-z0-9\-_${} ]*")


_SERVICE: Final = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")


def boolean(text: str) -> bool:
    """Read what Go's `ParseBool` reads."""
    if text not in _BOOLEANS:
        raise ValueError('must be "true" or "false"')
    return _BOOLEANS[text]


def integer(text: str) -> int:
    """Read a whole number, without a unit."""
    if not _INTEGER.fullmatch(text):
        hint = f", without a unit: {text[:-1]}" if re.fullmatch(r"\d+[smhkKMG]", text) else ""
        raise ValueError(f"must be a whole number{hint}")
    return int(text)


def seconds(text: str) -> float | None:
    """Read a time limit in seconds; 0 sets none."""
    if (number := integer(text)) < 0:
        raise ValueError("must not be below 0")
    return float(number) or None


def whole_seconds(text: str) -> int:
    """Read a time in seconds, with or without the unit; at most an hour."""
    number = text.removesuffix("s")
    if not number.isascii() or not number.isdecimal() or int(number) > 3600:
        raise ValueError("must be a number of seconds, at most 3600")
    return int(number)


def buffers(text: str) -> int:
    """Read a number and a size, as the bytes that they are together: 1 KiB to 1 MiB."""
    number, _, each = text.partition(" ")
    if not number.isascii() or not number.isdecimal():
        raise ValueError("must be a number and a size, such as 4 32k")
    return min(1 << 20, max(1 << 10, int(number) * size(each.strip())))


def log_format(text: str) -> str:
    """Read lines of an access log: what nginx' ConfigMap has in several lines is one."""
    if len(text) > 8192:
        raise ValueError("must have at most 8192 characters")
    return " ".join(text.split("\n"))


def between(least: int, most: int, default: int) -> Callable[[str], int]:
    """Read a whole number; one beyond the bounds counts as the default."""

    def read(text: str) -> int:
        number = integer(text)
        return number if least <= number <= most else default

    return read


def count(text: str) -> int:
    """Read a number of which those below zero count as none."""
    return max(0, integer(text))


def size(text: str) -> int:
    """Read a size as nginx writes it: `8m`, `512k`."""
    found = _SIZE.fullmatch(text.replace(" ", ""))
    if found is None:
        raise ValueError("must be a size such as 8m, 512k or 0")
    return min(int(found[1]) * _UNITS[found[2].lower()], _MOST)


def on_off(text: str) -> bool:
    """Read `on` or `off`."""
    if text not in ("on", "off"):
        raise ValueError("must be on or off")
    return text == "on"


def option(choices: Mapping[str, T], *, ignores_case: bool = False) -> Callable[[str], T]:
    """Read one of a few words."""

    def read(text: str) -> T:
        key = text.upper() if ignores_case else text
        if key not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")
        return choices[key]

    return read


def _text(pattern: re.Pattern[str], what: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if not pattern.fullmatch(text):
            raise ValueError(f"must be {what}")
        return text

    return read


header_name = _text(re.compile(r"[A-Za-z0-9-]{1,128}"), "the name of a header")
basic = _text(_BASIC, "of letters, digits and -._~/: only")
url_text = _text(_URL, "of letters, digits and -._~/:,?&= only")


def service_url(text: str) -> str:
    """Read the URL of a service, perhaps with variables of nginx."""
    parts = urlsplit(text) if _URL_TEMPLATE.fullmatch(text) else None
    if parts is None or parts.scheme not in ("http", "https") or not parts.netloc or ".." in parts.netloc:
        raise ValueError("must be a URL that begins with http:// or https://, with a host")
    return text


realm = _text(_REALM, "of letters, digits, spaces and -._~/: only")
url_template = _text(_URL_TEMPLATE, "a URL of letters, digits and -._~/:,?&= with variables such as $host")
variables = _text(_VARIABLES, "variables of nginx such as $http_authorization")
target = _text(_PATH_WITH_CAPTURES, "a path of letters, digits and -._~/: with captures such as $1")
server_name = _text(_SERVER_NAME, "a host name")


file_name = _text(re.compile(r"[A-Za-z0-9._-]+"), "the name of a file, such as index.php")
service_name = _text(_SERVICE, "the name of a Service")


ciphers = _text(re.compile(r"(?:[A-Za-z0-9+:_\-!]|@STRENGTH|@SECLEVEL=[0-5])+"), "ciphers in OpenSSL's notation")


def common_name(text: str) -> str:
    """Read a pattern of a certificate's common name."""
    if not text.startswith("CN=") or re.search(r"[\r\n\"'`;]", text):
        raise ValueError("must be CN= and a pattern, without quotes and semicolons")
    return texts.regex(text)


def page(text: str) -> str:
    """Read the URL of a page."""
    if not text.startswith(("http://", "https://")) or not _URL.fullmatch(text):
        raise ValueError("must be a URL that begins with http:// or https://")
    return text


def statuses(text: str) -> tuple[int, ...]:
    """Read statuses of errors, separated by commas."""
    found = [part.strip() for part in text.split(",")]
    if wrong := [part for part in found if part and not re.fullmatch(r"[45]\d\d", part)]:
        raise ValueError(f"must be statuses from 400 to 599, separated by commas; {wrong[0][:20]!r} is none")
    return tuple(sorted({int(part) for part in found if part}))


def replacement(text: str) -> tuple[str, str] | None:
    """Read two texts, of which the second replaces the first; `off` replaces nothing."""
    if text == "off":
        return None
    parts = text.split()
    if len(parts) != 2 or not all(map(_URL.fullmatch, parts)):
        raise ValueError("must be off, or two texts of letters, digits and -._~/:,?&= only")
    return parts[0], parts[1]


def path(text: str) -> str:
    """Read an absolute path, without scheme and host."""
    if not _URL.fullmatch(text) or not text.startswith("/") or text.startswith("//"):
        raise ValueError("must be a path that begins with /, such as /login")
    return text


def server_names(text: str) -> tuple[str, ...]:
    """Read host names, separated by commas; patterns after `~`."""
    found = [name.strip() for name in text.split(",")]
    if wrong := [name for name in found if name and not _ALIAS.fullmatch(name)]:
        raise ValueError(f"must be host names, wildcards or patterns after ~; {wrong[0][:60]!r} is none")
    if long := [name for name in found if len(name) > (MAX_HOST_PATTERN if name.startswith("~") else _LONGEST_NAME)]:
        raise ValueError(f"{long[0][:60]!r}... has {len(long[0])} characters, more than a host may have")
    return tuple(dict.fromkeys(name.lower() if not name.startswith("~") else name for name in found if name))


def redirect_url(text: str) -> str:
    """Read the target of a redirect: an http or https URL."""
    try:
        scheme = urlsplit(text).scheme
    except ValueError:
        scheme = ""
    if not scheme.startswith("http") or not _REDIRECT.fullmatch(text):
        raise ValueError("must be a URL that begins with http:// or https://")
    return text


def redirect_target(text: str) -> str:
    """Read the target of a permanent redirect: a URL or a path."""
    return text if text.startswith("/") and _REDIRECT.fullmatch(text) else redirect_url(text)


def networks(text: str) -> tuple[str, ...]:
    """Read addresses and networks, separated by commas."""
    found = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        try:
            found.append(str(ipaddress.ip_network(part, strict=False)))
        except ValueError:
            raise ValueError(f"must be addresses or networks such as 10.0.0.0/8; {part[:60]!r} is none") from None
    return tuple(sorted(dict.fromkeys(found)))


def header_list(text: str) -> tuple[str, ...]:
    """Read names of headers, separated by commas."""
    if not _HEADERS.fullmatch(text):
        raise ValueError("must be names of headers, separated by commas")
    return tuple(filter(None, (name.strip() for name in text.split(","))))


pattern = _text(_SERVER_NAME, "a pattern of letters, digits and ^$[](){}*+?|&=\\-._~/: only")


def is_pattern(text: str) -> bool:
    """Tell whether a pattern can be compiled."""
    try:
        texts.regex(text)
    except ValueError:
        return False
    return True


_DURATIONS: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800, "M": 2592000, "y": 31536000}
_DURATION: Final = re.compile(r"(\d{1,9})(ms|[smhdwMy])")
_KEPT_IF_NONE_IS_NAMED: Final = ("200", "301", "302")


def cache_durations(text: str) -> dict[str, float]:
    """Read statuses and times, several separated by commas: seconds by status."""
    found: dict[str, float] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        *statuses, last = part.split()
        time = _DURATION.fullmatch(last)
        if time is None or any(not re.fullmatch(r"[1-5]\d\d|any", status) for status in statuses):
            raise ValueError("must be statuses and a time such as 200 202 401 5m, several separated by commas")
        if seconds := int(time[1]) * _DURATIONS[time[2]]:
            found |= dict.fromkeys(statuses or _KEPT_IF_NONE_IS_NAMED, seconds)
    return found


_NEXT: Final[Mapping[str, Any]] = {
    "error": ("connect", "reset"),
    "timeout": ("timeout",),
    "invalid_header": ("reset",),
    "off": (),
    "non_idempotent": (),
}


def next_upstream(text: str) -> dict[str, Any]:
    """Read when a request is sent to the next endpoint: fields of `Retries`."""
    words = text.split()
    statuses = [int(word.removeprefix("http_")) for word in words if word.startswith("http_")]
    known = {"500", "502", "503", "504", "403", "404", "429"}
    others = [word for word in words if not (word.startswith("http_") and word.removeprefix("http_") in known)]
    if not words or any(word not in _NEXT for word in others):
        raise ValueError("must be words of error, timeout, invalid_header, http_500 and the like, non_idempotent, off")
    if "off" in words:
        return {"attempts": 0}
    on = dict.fromkeys(condition for word in others for condition in _NEXT[word])
    fields: dict[str, Any] = {"on": (*on, "status") if statuses else tuple(on)}
    return (
        fields
        | ({"statuses": tuple(sorted(statuses))} if statuses else {})
        | ({"unsafe": True} if "non_idempotent" in words else {})
    )


def tls_versions(text: str) -> str:
    """Read nginx' names of TLS versions: the oldest of them, 1.2 at least."""
    names = text.split()
    if not names or any(not re.fullmatch(r"SSLv[23]|TLSv1(\.[123])?", name) for name in names):
        raise ValueError("must be names of TLS versions such as TLSv1.2 TLSv1.3")
    return "1.3" if names == ["TLSv1.3"] else "1.2"


_HASHED: Final[Mapping[str, HashKey]] = {
    "request_uri": HashKey(source="uri"),
    "uri": HashKey(source="path"),
    "document_uri": HashKey(source="path"),
    "args": HashKey(source="query-string"),
    "query_string": HashKey(source="query-string"),
    "host": HashKey(source="host"),
    "http_host": HashKey(source="host"),
    "best_http_host": HashKey(source="host"),
    "remote_addr": HashKey(source="client"),
    "binary_remote_addr": HashKey(source="client"),
    "the_real_ip": HashKey(source="client"),
}
_HASH_TEXT: Final = re.compile(r"[A-Za-z0-9\-_${}]*")
_VARIABLE: Final = re.compile(r"\$(?:\{(\w+)\}|(\w+))", re.ASCII)


def hash_by(text: str) -> tuple[HashKey, ...]:
    """Read variables of nginx as what is hashed."""
    if not _HASH_TEXT.fullmatch(text):
        raise ValueError("must be variables of nginx such as $request_uri")
    names = [braced or plain for braced, plain in _VARIABLE.findall(text)]
    keys = tuple(_hash_key(name) for name in names)
    if not keys:
        raise ValueError("must be variables of nginx such as $request_uri, but names none")
    return keys


def _hash_key(name: str) -> HashKey:
    if name in _HASHED:
        return _HASHED[name]
    for prefix, source in (("http_", "header"), ("arg_", "query"), ("cookie_", "cookie")):
        if name.startswith(prefix) and name != prefix:
            rest = name.removeprefix(prefix)
            named = rest.replace("_", "-") if source == "header" else rest
            return HashKey.model_validate({"source": source, "name": named})
    raise ValueError(f"must be variables that can be hashed; ${name[:60]} cannot be")


_EXPOSED: Final = re.compile(r"([A-Za-z0-9\-_]+|\*)((, ?| )([A-Za-z0-9\-_]+|\*))*,?")
_ORIGIN: Final = re.compile(r"null|[a-z][a-z0-9+.-]*://(\*\.)?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*(:\d{1,5})?")


def origins(text: str) -> dict[str, tuple[str, ...]]:
    """Read origins, separated by commas; `*` stands for all. `left_out` has what is none."""
    found = list(words(text))
    if "*" in found:
        return {"origins": ("*",)}
    left_out = tuple(part for part in found if not _ORIGIN.fullmatch(part))
    return {"origins": tuple(part for part in found if part not in left_out), "left_out": left_out}


def methods(text: str) -> str:
    """Read methods as they are shown to browsers."""
    if len(text) > 1024 or not re.fullmatch(r"[A-Za-z]+((,\s?|\s)[A-Za-z]+)*,?", text):
        raise ValueError("must be methods such as GET, POST")
    return text


def header_text(text: str) -> str:
    """Read names of headers as they are shown to browsers."""
    header_list(text)
    return text


def exposed_headers(text: str) -> str:
    """Read names of headers, or `*`, as they are shown to browsers."""
    if not _EXPOSED.fullmatch(text):
        raise ValueError("must be names of headers, separated by commas, or *")
    return text


_MEDIA_TYPE: Final = re.compile(r"[\w.+-]+/[\w.+*-]+|\*")
_BLOCKED: Final = 1024


def paths(text: str) -> tuple[str, ...]:
    """Read paths, separated by commas."""
    return tuple(filter(None, (part.strip() for part in text.split(","))))


def media_types(text: str) -> tuple[str, ...]:
    """Read media types, separated by spaces."""
    found = tuple(text.split())
    if wrong := [one for one in found if not _MEDIA_TYPE.fullmatch(one)]:
        raise ValueError(f"must be media types such as application/json; {wrong[0][:60]!r} is none")
    return found


def names_or_patterns(text: str) -> tuple[str, ...]:
    """Read texts and, after `~` or `~*`, patterns, separated by commas: all as patterns."""
    found = []
    for part in filter(None, (part.strip().strip("\"'") for part in text.split(","))):
        if part.startswith("~*"):
            found.append(f"(?i){texts.regex(part[2:])}")
        elif part.startswith("~"):
            found.append(texts.regex(part[1:]))
        else:
            found.append(f"(?i)^{re.escape(part[:_BLOCKED])}$")
    return tuple(found)


def client_tls_versions(text: str) -> dict[str, str]:
    """Read nginx' names of TLS versions: the oldest and the newest of them, which is 1.2 at least."""
    tls_versions(text)
    names = [name.removeprefix("TLSv") for name in text.split() if name.startswith("TLSv")]
    known = sorted("1.0" if name == "1" else name for name in names) or ["1.2"]
    return {"min_version": known[0], "max_version": max(known[-1], "1.2")}


def words(text: str) -> tuple[str, ...]:
    """Read words, separated by commas."""
    return tuple(dict.fromkeys(filter(None, (part.strip() for part in text.split(",")))))
