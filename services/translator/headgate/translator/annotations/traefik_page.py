"""`docs/traefik-annotations.md`, written from the table.

`python -m headgate.translator.annotations.traefik_page > docs/traefik-annotations.md` brings it up to date.
"""

import sys
from collections.abc import Iterator

from headgate.translator.annotations.traefik import TRAEFIK_PREFIX, TRAEFIK_ROWS, TraefikAnnotation

_HEAD = f"""\
# Annotations of Traefik

To move an Ingress from Traefik, leave its annotations as they are and ask what becomes of them:

    headgate audit ingress.yaml

An Ingress with annotations `{TRAEFIK_PREFIX}*`, or whose class is of the controller `traefik.io/ingress-controller`
(adopted by `HEADGATE_CONTROLLER_NAMES`), is read as Traefik reads it: each of its paths is a rule such as
``Host("a.com") && PathPrefix("/b")``, whose length is its priority; paths of type `Prefix` are compared by characters,
unless `HEADGATE_TRAEFIK_STRICT_PREFIX_MATCHING` is on.
Without `router.entrypoints` and `router.tls` it is served on both of the gateways' own ports, and on the other default
[entry points](traefik.md#entry-points). One with annotations of ingress-nginx, or of its class, is read as that does.

A **guard** keeps requests out: when it cannot be followed, requests are refused with 503. Other values that cannot be
read are ignored with a warning. Names are read whatever the case of letters. Annotations of Headgate's own go before
these.
"""


def _rows(kind: str) -> Iterator[str]:
    yield "| annotation | value | what it does | example |"
    yield "|---|---|---|---|"
    for row in TRAEFIK_ROWS:
        if kind in row.kinds:
            yield f"| `{row.name}` | {row.value} | {_does(row)} | `{row.example}` |"


def _does(row: TraefikAnnotation) -> str:
    if row.ignored:
        return f"ignored: {row.ignored}"
    return f"{row.does} **guard**" if row.guards else row.does


def write_page() -> str:
    """Return the page."""
    parts = [_HEAD, "## On an Ingress\n", *_rows("Ingress"), "", "## On a Service\n"]
    parts += ["They hold for requests of Ingresses that are read as Traefik's.\n", *_rows("Service")]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    sys.stdout.write(write_page())
