"""Sticky cookies as stickiness."""

import hashlib
import re
from typing import Final, Literal

from headgate.common.table import Stickiness
from headgate.translator.dialects.traefik.models.service import Sticky
from headgate.translator.dialects.traefik.services.upstreams import BadService

_NAME_LENGTH: Final = 6
_ODD: Final = re.compile(r"[^A-Za-z0-9!#$%&'*+.^`|~-]")
_WORDS: Final = re.compile(r"[^\W_]+")
_VALUE: Final = re.compile(r"[^\x00-\x1f\x7f;,]*")


def stickiness_of(written: Sticky | None, service: str, *, names: Literal["url", "backend"]) -> Stickiness | None:
    """Return how clients are kept with a server; `service` gives the cookie a name if none is written.

    `names`: the value that Traefik gives the cookie, `url` for that of one Service, `backend` for that of several.

    Raises:
        BadService: a cookie cannot be written so.
    """
    cookie = written.cookie if written is not None else None
    if cookie is None:
        return None
    if not (_VALUE.fullmatch(cookie.path or "") and _VALUE.fullmatch(cookie.domain)):
        raise BadService("InvalidValue", "sticky.cookie", "must have a path and a domain that a cookie can say")
    return Stickiness.model_validate(
        {
            "cookie": _ODD.sub("_", cookie.name) if cookie.name else _default_name(service),
            "names": names,
            "path": "/" if cookie.path is None else cookie.path,
            "domain": cookie.domain,
            "max_age_s": max(cookie.max_age, 0) if cookie.max_age else None,
            "secure": cookie.secure,
            "http_only": cookie.http_only,
            "same_site": cookie.same_site.capitalize(),
        }
    )


def session_name(*parts: str) -> str:
    """Return what Traefik calls a service within a weighted one: `namespace-name-port`, a TraefikService without the
    port, with one dash for anything but letters and digits.
    """
    return "-".join(_WORDS.findall("-".join(parts)))


def _default_name(service: str) -> str:
    """Return a name as Traefik makes it: a part of a digest (SHA-1)."""
    digest = hashlib.sha1(f"_TRAEFIK_BACKEND_{service}".encode(), usedforsecurity=False).hexdigest()
    return f"_{digest}"[:_NAME_LENGTH]
