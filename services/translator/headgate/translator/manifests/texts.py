"""How the values of annotations are written: one reader for each notation.

A reader takes the text and returns the value, or raises ValueError with what would be right (`must be …`).
"""

import ipaddress
import math
import re
import ssl
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import yaml
from cryptography import x509
from yaml.events import AliasEvent

from headgate.common.patterns import bounded_patterns, compile_pattern
from headgate.common.table import Compare, Condition, HashKey, Not, Operator, PluginUse, Subject, is_prime
from headgate.common.table.sending import RetryCondition

T = TypeVar("T")

MAX_SECONDS = 365 * 86400.0
MAX_TEXT = 64 * 1024
"""Characters of a list of plugins, or of certificates."""
MAX_DEPTH = 32
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_DURATION = re.compile(r"(?:([0-9]+)h)?(?:([0-9]+)m(?!s))?(?:([0-9]+(?:\.[0-9]+)?)s)?(?:([0-9]+)ms)?")
_SIZE = re.compile(r"([0-9]{1,9}|[0-9]{10,12}(?![kmg]))([kmg]i?)?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?(:[0-9]{1,5})?")
_SERVER_NAME = re.compile(r"(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAMESPACE = re.compile(r"([a-z0-9]([-a-z0-9]*[a-z0-9])?/)?[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_LINE = re.compile(r"(?P<negated>!)?(?P<name>[^!=~][^=~]*?)(?:(?P<operator>[=~])(?P<value>.*))?")
_COOKIE_PATH = re.compile(r"/[\x21-\x3a\x3c-\x7e]*")
_RESOLVER = re.compile(r"[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?")
_CIPHERS = re.compile(r"[A-Za-z0-9:+!@=,_-]+")


def duration(text: str) -> float:
    """Read a time as seconds: `500ms`, `5s`, `1m30s`, `2h`; a number alone is seconds."""
    match = _DURATION.fullmatch(text)
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,6})?", text):
        seconds = float(text)
    elif text and match:
        hours, minutes, whole, thousandths = (float(part or 0) for part in match.groups())
        seconds = hours * 3600 + minutes * 60 + whole + thousandths / 1000
    else:
        raise ValueError("must be a time such as 500ms, 5s or 1m30s")
    if not 0 < seconds <= MAX_SECONDS or not math.isfinite(seconds):
        raise ValueError("must be a time of more than 0 and at most a year")
    return seconds


def whole_seconds(text: str) -> int:
    """Read a time of full seconds; 0 is allowed."""
    seconds = 0.0 if text in ("0", "0s") else duration(text)
    if seconds != int(seconds):
        raise ValueError("must be a time of full seconds such as 30m or 86400")
    return int(seconds)


def size(text: str) -> int:
    """Read a size as bytes: `1048576`, `8m`, `1Gi`; the units are powers of 1024, as nginx has it."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError("must be a size such as 1048576, 512k, 8m or 1Gi (powers of 1024)")
    return int(match[1]) * _UNITS[(match[2] or "").lower().rstrip("i")]


def whole(least: int, most: int) -> Callable[[str], int]:
    """Return the reader of whole numbers within bounds."""

    def read(text: str) -> int:
        if not re.fullmatch(r"-?[0-9]{1,10}", text) or not least <= int(text) <= most:
            raise ValueError(f"must be a whole number from {least} to {most}")
        return int(text)

    return read


def prime(least: int, most: int) -> Callable[[str], int]:
    """Return the reader of primes within bounds."""
    read_whole = whole(least, most)

    def read(text: str) -> int:
        number = read_whole(text)
        if not is_prime(number):
            near = next(candidate for candidate in range(number, 1, -1) if is_prime(candidate))
            raise ValueError(f"must be a prime, such as {near}")
        return number

    return read


def boolean(text: str) -> bool:
    """Read `true` or `false`."""
    if text not in ("true", "false"):
        raise ValueError('must be "true" or "false"')
    return text == "true"


def log_share(text: str) -> float:
    """Read `on`, `off` or a percentage as a share."""
    if text in ("on", "off"):
        return float(text == "on")
    try:
        share = float(text.removesuffix("%")) / 100 if text.endswith("%") else -1.0
    except ValueError:
        share = -1.0
    if not 0 < share <= 1:
        raise ValueError("must be on, off, or a share above 0 such as 10%")
    return share


def percentage(text: str) -> float:
    """Read a percentage as a share."""
    if (match := re.fullmatch(r"([0-9]{1,3})%", text)) and int(match[1]) <= 100:
        return int(match[1]) / 100
    raise ValueError("must be a percentage from 0% to 100%, such as 10%")


def one_of(choices: Mapping[str, T]) -> Callable[[str], T]:
    """Return the reader of one word among several."""

    def read(text: str) -> T:
        if text not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")
        return choices[text]

    return read


def word(*choices: str) -> Callable[[str], str]:
    """Return the reader of one word that stands for itself."""
    return one_of({choice: choice for choice in choices})


def words(text: str) -> list[str]:
    """Split a list at commas and line ends; there is at least one element."""
    found = [part.strip() for part in re.split(r"[,\n]", text) if part.strip()]
    if not found:
        raise ValueError("must be a list with at least one element, separated by commas")
    return found


def token(text: str) -> str:
    """Read the name of a header or a cookie."""
    if not _TOKEN.fullmatch(text):
        raise ValueError("must be a name of letters, digits and '-' or '_', such as x-user")
    return text


def host(text: str) -> str:
    """Read a host name, perhaps with a port."""
    if not _HOST.fullmatch(text):
        raise ValueError("must be a host name in lower case such as shop.example.com")
    return text


def server_names(text: str) -> tuple[str, ...]:
    """Read TLS server names."""
    names = sorted(set(words(text)))
    if wrong := [name for name in names if not _SERVER_NAME.fullmatch(name)]:
        raise ValueError(f"must be DNS names in lower case, or such as *.example.com; {wrong[0]!r} is none")
    return tuple(names)


def networks(text: str) -> tuple[str, ...]:
    """Read addresses and networks."""
    return tuple(_network(part) for part in words(text))


def _network(text: str) -> str:
    try:
        return str(ipaddress.ip_network(text, strict=False))
    except ValueError:
        message = f"must be addresses or networks such as 10.0.0.0/8, 2001:db8::/32; {text!r} is none"
        raise ValueError(message) from None


def namespaces(text: str) -> tuple[str, ...]:
    """Read namespaces, each of the own cluster or as `cluster/namespace`."""
    found = words(text)
    if wrong := [name for name in found if not _NAMESPACE.fullmatch(name)]:
        raise ValueError(f"must be namespaces such as team-b, or west/team-b in another cluster; {wrong[0]!r} is none")
    return tuple(dict.fromkeys(found))


def from_networks(text: str) -> tuple[Condition, ...]:
    """Read networks as a condition on the client's address."""
    return (Compare(subject=Subject.CLIENT, operator=Operator.NETWORK, values=networks(text)),)


def methods(text: str) -> tuple[Condition, ...]:
    """Read methods as a condition."""
    found = words(text)
    if wrong := [method for method in found if not re.fullmatch(r"[A-Z][A-Z_-]*", method)]:
        raise ValueError(f"must be methods in capitals such as GET, POST; {wrong[0]!r} is none")
    return (Compare(subject=Subject.METHOD, values=tuple(dict.fromkeys(found))),)


def regex(text: str) -> str:
    """Read an RE2 pattern."""
    try:
        compile_pattern(text)
    except ValueError as error:
        raise ValueError(f"must be a pattern that RE2 takes; {error}") from None
    return text


def lines_about(subject: Subject) -> Callable[[str], tuple[Condition, ...]]:
    """Return the reader of one comparison a line: `name=value`, `name~regex`, `name`; `!` before it negates."""

    @bounded_patterns()
    def read(text: str) -> tuple[Condition, ...]:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if not lines:
            raise ValueError("must be lines such as name=value, name~regex or name")
        return tuple(_comparison(subject, line) for line in lines)

    return read


def _comparison(subject: Subject, line: str) -> Condition:
    match = _LINE.fullmatch(line)
    name = match["name"].strip() if match else ""
    if match is None or (not _TOKEN.fullmatch(name) if subject is not Subject.QUERY else not name):
        raise ValueError(f"must be lines such as name=value, name~regex or name; {line!r} is none")
    value = (match["value"] or "").strip()
    if match["operator"] == "~":
        compare = Compare(subject=subject, name=name, operator=Operator.REGEX, values=(regex(value),))
    elif match["operator"] == "=":
        compare = Compare(subject=subject, name=name, values=(value,))
    else:
        compare = Compare(subject=subject, name=name, operator=Operator.PRESENT)
    return Not(negated=compare) if match["negated"] else compare


_RETRY_CONDITIONS: tuple[RetryCondition, ...] = (
    "connect",
    "reset",
    "timeout",
    "refused-stream",
    "gateway-error",
)


def retry_on(text: str) -> dict[str, Any]:
    """Read conditions and status codes, as fields of `Retries`."""
    found = list(dict.fromkeys(words(text)))
    statuses = tuple(sorted(int(part) for part in found if re.fullmatch(r"[45][0-9]{2}", part)))
    named = tuple(part for part in _RETRY_CONDITIONS if part in found)
    if len(statuses) + len(named) != len(found):
        raise ValueError(f"must be of {', '.join(_RETRY_CONDITIONS)} and status codes from 400 to 599")
    return {"on": (*named, "status") if statuses else named, "statuses": statuses}


_HASH_SOURCES = ("header", "cookie", "query", "client", "host", "path", "uri")


def hash_keys(text: str) -> tuple[HashKey, ...]:
    """Read what is hashed: `header:x-user,client`."""
    return tuple(_hash_key(part) for part in words(text))


def _hash_key(text: str) -> HashKey:
    source, _, name = text.partition(":")
    if source not in _HASH_SOURCES or bool(name) != (source in ("header", "cookie", "query")):
        raise ValueError("must be of header:NAME, cookie:NAME, query:NAME, client, host, path and uri")
    return HashKey.model_validate({"source": source, "name": token(name) if name else ""})


def cookie_path(text: str) -> str:
    """Read the path of a cookie."""
    if not _COOKIE_PATH.fullmatch(text):
        raise ValueError("must be a path such as /shop")
    return text


def ciphers(text: str) -> str:
    """Read an OpenSSL cipher list, of which OpenSSL knows a cipher."""
    message = "must be an OpenSSL cipher list such as ECDHE+AESGCM:ECDHE+CHACHA20"
    if not _CIPHERS.fullmatch(text):
        raise ValueError(message)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).set_ciphers(text)
    except ssl.SSLError:
        raise ValueError(f"{message}; OpenSSL finds no cipher by this one") from None
    return text


def health_path(text: str) -> str:
    """Read the path of a health check."""
    if not re.fullmatch(r"/[\x21-\x7e]*", text):
        raise ValueError("must be a path such as /healthz, without spaces")
    return text


def certificates(text: str) -> str:
    """Read certificates in PEM."""
    try:
        if len(text) <= MAX_TEXT and x509.load_pem_x509_certificates(text.encode()):
            return text.strip() + "\n"
    except (ValueError, x509.InvalidVersion):
        pass
    raise ValueError("must be one or more certificates in PEM (-----BEGIN CERTIFICATE-----)")


def secret_name(text: str) -> tuple[str, str]:
    """Read the name of a Secret, perhaps with its namespace: `(namespace or empty, name)`."""
    namespace, _, name = text.rpartition("/")
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", name) or not re.fullmatch(r"[-a-z0-9]*", namespace):
        raise ValueError("must be the name of a Secret, or namespace/name")
    return namespace, name


def revocations(text: str) -> str:
    """Read a certificate revocation list in PEM."""
    try:
        if len(text) <= MAX_TEXT:
            x509.load_pem_x509_crl(text.encode())
            return text.strip() + "\n"
    except (ValueError, x509.InvalidVersion):
        pass
    raise ValueError("must be a certificate revocation list in PEM (-----BEGIN X509 CRL-----)")


class _PlainLoader(yaml.SafeLoader):
    """Without aliases: a few lines of them grow to gigabytes."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(AliasEvent):
            raise yaml.YAMLError("aliases are not read")
        return super().compose_node(parent, index)


_PLUGINS = "must be a YAML or JSON list of {name, config}, such as [{name: cors, config: {}}]"


def plugins(text: str) -> tuple[PluginUse, ...]:
    """Read plugins and their configuration."""
    if len(text) > MAX_TEXT:
        raise ValueError(f"must be no longer than {MAX_TEXT} characters")
    try:
        written = yaml.load(text, _PlainLoader)  # noqa: S506 - a SafeLoader
    except (yaml.YAMLError, ValueError, RecursionError):
        raise ValueError(_PLUGINS) from None
    if not isinstance(written, list) or not written:
        raise ValueError(_PLUGINS)
    return tuple(_plugin(entry) for entry in written)


def _plugin(written: Any) -> PluginUse:
    if not isinstance(written, dict) or not written.keys() <= {"name", "config", "order"}:
        raise ValueError(_PLUGINS)
    name, config, order = written.get("name"), written.get("config"), written.get("order")
    if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9]+([._-][a-z0-9]+)*", name):
        raise ValueError(f"{_PLUGINS}; each needs a name in lower case")
    if not isinstance(config, dict | None) or not _is_json(config, MAX_DEPTH):
        raise ValueError(f"{_PLUGINS}; the config of {name} is no JSON object")
    if order is not None and type(order) is not int:
        raise ValueError(f"{_PLUGINS}; the order of {name} is no whole number")
    return PluginUse(name=name, config=config or {}, order=order)


def _is_json(value: Any, depth: int) -> bool:
    if isinstance(value, dict):
        return depth > 0 and all(isinstance(key, str) and _is_json(one, depth - 1) for key, one in value.items())
    if isinstance(value, list):
        return depth > 0 and all(_is_json(one, depth - 1) for one in value)
    return value is None or isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value))


def resolver_name(text: str) -> str:
    """Read the name of a resolver of certificates."""
    if not _RESOLVER.fullmatch(text):
        raise ValueError("must be the name of a resolver, such as letsencrypt, or true")
    return text
