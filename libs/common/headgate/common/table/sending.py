"""How requests are sent to a backend: how long that may take, when it is tried again, and how clients keep to it."""

from typing import Final, Literal

from pydantic import Field

from headgate.common.table.base import Entry


class Timeouts(Entry):
    """Seconds; None leaves the gateway's own setting in force."""

    connect_s: float | None = Field(default=None, gt=0)
    send_s: float | None = Field(default=None, gt=0)
    """Between two successful writes to the upstream."""
    read_s: float | None = Field(default=None, gt=0)
    """Between two successful reads from the upstream."""
    request_s: float | None = Field(default=None, gt=0)
    """From the request's head to the answer's last byte, retries included. Not for tunnels once they are open."""
    idle_s: float | None = Field(default=None, gt=0)
    """A tunnel (WebSocket) over which nothing passes for so long is closed."""


MAX_ATTEMPTS: Final = 100
"""Besides the first, of one request."""
RetryCondition = Literal["connect", "reset", "timeout", "refused-stream", "gateway-error", "status"]


LEAST_OF_BACKOFF: Final = 0.5
"""Share of `backoff_s` that is waited in any case."""


class Retries(Entry):
    """When a request is sent again, to another endpoint if there is one.

    Only while nothing of the answer went to the client and the body can be sent again. A request that an endpoint may
    have acted on is repeated only if its method is idempotent or `unsafe` is set; one that never got through always
    may.
    """

    attempts: int = Field(default=1, ge=0, le=MAX_ATTEMPTS)
    """Besides the first."""
    on: tuple[RetryCondition, ...] = ("connect", "reset")
    """`connect`: no connection, or a stream that HTTP/2 refused; the latter alone is `refused-stream`. `gateway-error`:
    502, 503 and 504. `status`: one of `statuses`."""
    statuses: tuple[int, ...] = ()
    unsafe: bool = False
    per_try_s: float | None = Field(default=None, gt=0)
    """Seconds for one attempt to bring the head of an answer."""
    total_s: float | None = Field(default=None, gt=0)
    """Seconds after the first attempt in which others may begin."""
    backoff_s: float = Field(default=0.0, ge=0)
    """Seconds before the second attempt, half more or less by chance, and twice as many before the last. Then the same
    endpoint may be asked again."""
    budget: float | None = Field(default=0.2, ge=0, le=1)
    """Retries under way as a share of the upstream's requests under way, above a floor of 3; None is no limit."""


class Stickiness(Entry):
    """Keeps a client with the endpoint that served it first, by a cookie of ours or a header."""

    cookie: str = ""
    """Its name."""
    header: str = ""
    """Name of a header instead: answers have it, and requests that repeat it are of the session."""
    lifetime_s: int | None = Field(default=None, ge=1)
    """A session ends so long after it began, whatever becomes of the cookie or header. None: it does not."""
    names: Literal["keyed", "url", "backend"] = "keyed"
    """What the cookie says. `keyed`: hashes of backend and endpoint, keyed with the upstream. `url`, where there is one
    backend: the hash of the endpoint's URL that Traefik makes. `backend`: the hash of the backend's `session_name` that
    Traefik makes, and nothing of its endpoints. With the latter two Traefik's sessions go on here and ours there."""
    mode: Literal["balanced", "persistent"] = "balanced"
    """`balanced`: an endpoint that is unhealthy, or neither ready nor draining, is left for another. `persistent`: for
    as long as it exists."""
    path: str = "/"
    domain: str = ""
    max_age_s: int | None = Field(default=None, ge=0)
    """None is a session cookie."""
    expires_s: int | None = Field(default=None, ge=0)
    """The same as a date, for browsers that do not know `Max-Age`."""
    secure: bool | None = None
    """None: as the request's scheme."""
    http_only: bool = True
    same_site: Literal["", "Strict", "Lax", "None"] = ""
    conditional_same_site: bool = False
    """Leave `SameSite=None` out for browsers that reject it or take it for `Strict`."""
    change_on_failure: bool | None = None
    """Whether a client whose endpoint failed keeps to the one that answered instead, though the first may serve it
    again. None: in the mode `balanced`."""
