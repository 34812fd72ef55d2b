"""The listeners of entry points: on each port one for plain connections and one for those over TLS.

What is said of the gateways' own ports becomes their own listeners' entries.
"""

from collections.abc import Iterable, Iterator

from headgate.common.table import OWN_LISTENERS, HttpsRedirect, Listener, Provenance, own_listener
from headgate.translator.world.entry_points import EntryPoint


def listeners_of(points: Iterable[EntryPoint]) -> Iterator[Listener]:
    """Yield the listeners of all entry points of TCP; of the gateways' own ports those of which something is said."""
    for point in points:
        said_by = Provenance(cluster="", kind="Setting", namespace="", name="entrypoints", rule=point.name)
        if point.protocol in OWN_LISTENERS:
            said = point.options.of_port | _redirect(point, is_tls=point.protocol == "https")
            if said:
                yield own_listener(point.protocol).model_copy(update={**said, "provenance": said_by})
        elif point.protocol == "tcp":
            for is_tls in (False, True):
                yield Listener(
                    key=point.listener(is_tls=is_tls),
                    address=point.address,
                    port=point.port,
                    protocol="https" if is_tls else "http",
                    host_order="rank-first",
                    provenance=said_by,
                    **point.options.of_port,
                    **_redirect(point, is_tls=is_tls),
                )


def _redirect(point: EntryPoint, *, is_tls: bool) -> dict[str, HttpsRedirect]:
    redirect = point.options.redirect
    return {"https_redirect": redirect} if redirect is not None and not is_tls else {}
