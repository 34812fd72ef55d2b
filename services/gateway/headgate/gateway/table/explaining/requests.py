"""Which requests are refused before any route is looked for, and how a host is read."""

from headgate.gateway.proxy.heads.grammar import REQUEST_LINE, fault_of_request_line


def refusal_of_method(method: str) -> str | None:
    """Say how a request is refused for its method alone, before any route is looked for."""
    if method in ("CONNECT", "TRACE"):
        return f"405: the gateway takes no {method}"
    return None if method in KNOWN_METHODS else f"501: the gateway knows no method {method}"


def fault_of_target(target: str) -> str | None:
    """Say how a request is refused for bytes that no target has."""
    head = f"GET {target} HTTP/1.1\r\n".encode()
    return None if REQUEST_LINE.fullmatch(head) else f"400: {fault_of_request_line(head)}"


KNOWN_METHODS = frozenset(
    [
        "ACL",
        "BIND",
        "CHECKOUT",
        "COPY",
        "DELETE",
        "GET",
        "HEAD",
        "LINK",
        "LOCK",
        "M-SEARCH",
        "MERGE",
        "MKACTIVITY",
        "MKCALENDAR",
        "MKCOL",
        "MOVE",
        "NOTIFY",
        "OPTIONS",
        "PATCH",
        "POST",
        "PROPFIND",
        "PROPPATCH",
        "PURGE",
        "PUT",
        "QUERY",
        "REBIND",
        "REPORT",
        "SEARCH",
        "SOURCE",
        "SUBSCRIBE",
        "UNBIND",
        "UNLINK",
        "UNLOCK",
        "UNSUBSCRIBE",
    ]
)
"""Those that llhttp knows; a test compares."""


def bare_host(host: str) -> str:
    """Return a host in lower case, without port and trailing dot, as requests are matched."""
    return _split(host)[0].lower().removesuffix(".")


def port_of(host: str) -> int | None:
    """Return the port behind a host; None: there is none."""
    port = _split(host)[1]
    return int(port) if port else None


def _split(host: str) -> tuple[str, str]:
    name, colon, port = host.rpartition(":")
    if colon and (port.isdigit() or not port) and (":" not in name or name.endswith("]")):
        return name, port
    return host, ""
