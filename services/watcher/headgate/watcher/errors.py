"""The errors of the watcher.

WatcherError                     anything that the watcher raises on purpose
├── CertificateUnusable          the webhook's certificate, or where it is kept, cannot be used
├── ClusterConfigError           a kubeconfig or service account that cannot be used; says which and what would be right
└── ApiError                     a request to the API server did not do what was asked
    ├── ApiUnreachable           no complete answer: refused, reset, timed out, or not what an API server sends
    │   └── WatchCut             the connection of a watch broke
    └── ApiStatusError           the API server answered with an error
        ├── Unauthorized         401: it does not know us
        ├── Forbidden            403: it knows us, and we may not
        ├── Absent               404: no such object, or no such kind
        ├── WriteConflict        409: the object changed meanwhile, or exists already
        ├── Expired              410: the resourceVersion or continue token is too old
        └── Throttled            429: later, please

Errors of third-party libraries are wrapped where they enter and stay chained as `__cause__`.
"""

from headgate.common.errors import HeadgateError


class WatcherError(HeadgateError):
    """Base of the watcher's errors."""


class CertificateUnusable(WatcherError):
    """The webhook's certificate, or where it is kept, cannot be used; says which and why."""


class ClusterConfigError(WatcherError):
    """A kubeconfig or service account that cannot be used."""


class ApiError(WatcherError):
    """A request to the API server did not do what was asked."""


class ApiUnreachable(ApiError):
    """There is no complete answer; the request may or may not have taken effect."""


class WatchCut(ApiUnreachable):
    """The connection of a watch broke, or says nothing any more."""


class ApiUntrusted(ApiUnreachable):
    """The server's certificate is not one that we trust: by its issuer, its name or its time."""


class ApiStatusError(ApiError):
    """The API server answered with an error, as an HTTP status or as an ERROR event in a watch."""

    def __init__(self, status: int, reason: str, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(f"{status} {reason}: {message}" if reason else f"{status}: {message}")
        self.status = status
        self.reason = reason
        """`reason` of the Status object, such as `Expired`; empty if the answer was not one."""
        self.message = message
        self.retry_after_s = retry_after_s
        """Seconds that the server asks us to wait, if it says so."""


class Unauthorized(ApiStatusError):
    """401: the credentials are not known, or not any more."""


class Forbidden(ApiStatusError):
    """403: the credentials have no right to this."""


class Absent(ApiStatusError):
    """404: no such object, or no such kind."""


class WriteConflict(ApiStatusError):
    """409: the object changed meanwhile, or exists already."""


class Expired(ApiStatusError):
    """410: the resourceVersion or continue token is too old."""


class Throttled(ApiStatusError):
    """429: the server asks for patience."""
