"""`Cache-Control` of requests and answers (RFC 9111 section 5.2), as far as a cache without revalidation needs it."""

from email.utils import parsedate_to_datetime
from functools import lru_cache

from headgate.gateway.plugins.interface.headers import Headers


@lru_cache(1024)
def directives(text: str) -> dict[str, str]:
    """Return names in lower case, with their values without quotes."""
    found = {}
    for member in text.split(","):
        name, _, value = member.strip().partition("=")
        if name:
            found[name.strip().lower()] = value.strip().strip('"')
    return found


def control_of(headers: Headers) -> dict[str, str]:
    """Return the directives of a message."""
    return directives(headers.get("Cache-Control") or "")


def seconds_in(control: dict[str, str], name: str) -> int | None:
    """Return a directive's number; None if there is none that can be read."""
    value = control.get(name, "")
    return int(value[:9]) if value.isascii() and value.isdigit() else None


def lifetime_s(headers: Headers, now: float) -> float | None:
    """Return for how long an answer is fresh by its own account, at Unix time `now`; None: it does not say."""
    control = control_of(headers)
    for name in ("s-maxage", "max-age"):
        seconds = seconds_in(control, name)
        if seconds is not None:
            return seconds
    expires = headers.get("Expires")
    if expires is None:
        return None
    try:
        return parsedate_to_datetime(expires).timestamp() - now
    except (ValueError, OverflowError):
        return 0.0
