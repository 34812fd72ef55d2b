"""The listeners of entry points: in the table while a virtual host names one of their port, so that others open none.

Both of a port are there too while all of its streams are over TLS. Those that redirect are there
in any case, as they answer without routes.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

from headgate.common.table import Listener, StreamRoute, TlsPolicy
from headgate.translator.fragments.fragment import StreamPort


def listeners_on(port: StreamPort, listeners: Iterable[Listener], *, is_tls: bool) -> frozenset[str]:
    """Return the keys of those of some listeners that have connections of a port: plain ones, or those over TLS."""
    protocol = "https" if is_tls else "http"
    return frozenset(
        each.key for each in listeners if not port.is_udp and each.port == port.port and each.protocol == protocol
    )


class EntryListeners:
    """The listeners that the operator's settings give, and which virtual hosts use them."""

    def __init__(self, listeners: Iterable[Listener] = ()) -> None:
        """Begin with none in use."""
        self._listeners: Mapping[str, Listener] = {each.key: each for each in listeners}
        plain = {(each.address, each.port): each.key for each in self._listeners.values() if each.protocol == "http"}
        self._plain = {
            each.key: plain[each.address, each.port]
            for each in self._listeners.values()
            if each.protocol == "https" and (each.address, each.port) in plain
        }
        self._users: dict[str, set[str]] = {}
        self._used: dict[str, tuple[str, ...]] = {}
        self._tls: TlsPolicy | None = None
        """Of those over TLS, at names that have no policy of their own."""

    @property
    def lasting(self) -> Iterator[Listener]:
        """Those that are in the table whether a virtual host names them or not."""
        return (each for each in self._listeners.values() if each.https_redirect is not None)

    def use(self, host: str, listeners: tuple[str, ...]) -> tuple[list[Listener], list[str]]:
        """Note which listeners a virtual host has; return those that come into use, and keys of those out of it."""
        # Plain requests to a port that is for TLS alone are answered with 404. It is not so the other way round: a
        # port where the server speaks first must not wait for a client that may begin with TLS.
        listeners = tuple(dict.fromkeys((*listeners, *(self._plain[key] for key in listeners if key in self._plain))))
        before = self._used.get(host, ())
        if before == listeners:
            return [], []
        if listeners:
            self._used[host] = listeners
        else:
            del self._used[host]
        gone = [key for key in before if key not in listeners and self._leave(key, host)]
        come = [key for key in listeners if key not in before and self._join(key, host)]
        return [self._as_is(key) for key in come if key in self._listeners], gone

    def _as_is(self, key: str) -> Listener:
        listener = self._listeners[key]
        if self._tls is None or listener.protocol != "https":
            return listener
        return listener.model_copy(update={"tls": self._tls})

    def secure(self, tls: TlsPolicy | None) -> list[Listener]:
        """Take what holds at names without a policy of their own; return the listeners in use that are others by it."""
        if tls == self._tls:
            return []
        self._tls = tls
        used = (key for key in self._users if key in self._listeners)
        return [self._as_is(key) for key in used if self._listeners[key].protocol == "https"]

    def _join(self, key: str, host: str) -> bool:
        users = self._users.setdefault(key, set())
        users.add(host)
        return len(users) == 1

    def _leave(self, key: str, host: str) -> bool:
        users = self._users[key]
        users.discard(host)
        if not users:
            del self._users[key]
        return not users and key in self._listeners and self._listeners[key].https_redirect is None

    def on_port(self, port: StreamPort, *, is_tls: bool) -> frozenset[str]:
        """Return the keys of the listeners that have connections of a port: plain ones, or those over TLS."""
        return listeners_on(port, self._listeners.values(), is_tls=is_tls)

    def beside_streams(self, port: StreamPort, routes: Collection[StreamRoute]) -> tuple[str, ...]:
        """Return the listeners for requests to a port of streams that no stream takes; if all are over TLS, they get
        404.
        """
        if not port.port or not routes or any(route.protocol != "tls" for route in routes):
            return ()
        return tuple(sorted(self.on_port(port, is_tls=False) | self.on_port(port, is_tls=True)))

    def ports_of(self, listeners: Iterable[str]) -> Iterator[StreamPort]:
        """Yield the ports of some listeners."""
        for key in listeners:
            if key in self._listeners:
                yield StreamPort(False, self._listeners[key].port)
