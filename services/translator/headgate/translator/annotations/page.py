"""`docs/annotations.md`, written from the tables.

`python -m headgate.translator.annotations.page > docs/annotations.md` brings it up to date.
"""

import sys
from collections.abc import Iterable

from headgate.translator.annotations.annotation import PREFIX, Annotation
from headgate.translator.annotations.on_ingress import INGRESS_ANNOTATIONS
from headgate.translator.annotations.on_service import SERVICE_ANNOTATIONS

_HEAD = """\
# Annotations

Annotations with the prefix `{prefix}` on an Ingress say what happens to the requests of its paths; those on a Service
say how its endpoints are chosen, watched and spoken to, for every object that refers to it. Values are strings:
numbers and booleans need quotes.

| notation | examples |
|---|---|
| time | `500ms`, `5s`, `1m30s`, `2h`; a number alone is seconds |
| size | `1048576`, `512k`, `8m`, `1Gi`; the units are powers of 1024 |
| list | `GET, POST`; separated by commas or line ends |

## What cannot be read

`headgate check`, an Event at the object and `headgate status` name the annotation, its value and what would be right:

    metadata.annotations[headgate.dev/connect-timeout]: must be a time such as 500ms, 5s or 1m30s; it is ignored

- An annotation that keeps requests out (marked **guard** below) is never ignored. An update that makes one unreadable
  is not served: the object's last good version stays in force, with the restriction that it had. Where there is none,
  the requests of an Ingress are answered with 503 until it is mended; of a Service those of all its ports; a stream
  port is not opened.
- Another one is ignored, with a warning (`InvalidAnnotation`).
- One that does not exist, or belongs on the other kind of object, is ignored with a warning that names the nearest one
  (`UnknownAnnotation`). If it differs from a guard by a letter or two, and that one is not there, it is taken for that
  guard, unreadable.

A path that asks for something that cannot be read gives way to other objects' rules for the same path.

Annotations of other controllers: [what becomes of them](audit.md).

"""

_INGRESS = """\
## On an Ingress

They hold for all paths of the object. Objects of a namespace with the same host and path but different conditions are
no conflict: of equal paths the one with more conditions goes first. At hosts of other namespaces a priority, a
pattern, a canary or a TLS setting takes nothing away from the [owner](hosts.md), as ingress-nginx allowed
(`HostNotOwned`).

TLS settings are a host's: those of the oldest object of its owner that has any count, another one hears of it
(`TlsConflict`). An object that asks for client certificates and does not get them, because another one decides
otherwise, has its requests refused.

"""

_CANARIES = """
### Canaries

An Ingress with `headgate.dev/canary: "true"` takes a part of the requests of another one, the main one: of every route
with the same host, path and path type. The header decides first, then the cookie, then the weight, as in ingress-nginx.
Unlike there a route may have several canaries; the oldest is asked first. Paths that no other Ingress has get nothing
(`CanaryWithoutMain`). `match-*` and `client-networks` narrow what a canary takes; everything else is the main one's.

    metadata:
      annotations:
        headgate.dev/canary: "true"
        headgate.dev/canary-by-header: x-canary
        headgate.dev/canary-weight: "5"

"""

_SERVICE = """\
## On a Service

"""

_STREAMS = """
### Stream ports

A Service with `headgate.dev/stream-port` is reached by a TCP or UDP port of the gateways, which opens and closes with
the table. TLS Services may share a port, told apart by their server names; with `stream-server-names` and no
`stream-port` they share the HTTPS port with the Ingresses. Two Services that want the same: the oldest has it
(`StreamConflict`).

    metadata:
      annotations:
        headgate.dev/stream-port: "5432"
        headgate.dev/stream-client-networks: 10.0.0.0/8
"""


def write_page() -> str:
    """Return the page."""
    ingress, service = _table(INGRESS_ANNOTATIONS), _table(SERVICE_ANNOTATIONS)
    return "".join((_HEAD.format(prefix=PREFIX), _INGRESS, ingress, _CANARIES, _SERVICE, service, _STREAMS))


def _table(annotations: Iterable[Annotation]) -> str:
    rows = (
        f"| `{each.name}` | {each.value} | {each.default} | {'**guard** ' if each.guards else ''}{each.does} | "
        f"`{each.example}` |\n"
        for each in annotations
    )
    return "| annotation | value | default | what it does | example |\n|---|---|---|---|---|\n" + "".join(rows)


if __name__ == "__main__":
    sys.stdout.write(write_page())
