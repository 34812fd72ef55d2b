"""`docs/nginx-annotations.md`, written from the table.

`python -m headgate.translator.annotations.nginx.page > docs/nginx-annotations.md` brings it up to date.
"""

import sys
from collections.abc import Iterator

from headgate.translator.annotations.nginx import NGINX_PREFIX, NGINX_TABLE, SECTIONS, NginxAnnotation
from headgate.translator.annotations.nginx.flags import FLAGS
from headgate.translator.annotations.nginx.options import OPTION_ROWS
from headgate.translator.manifests.verdicts import Verdict

_HEAD = f"""\
# Annotations of ingress-nginx

To move an Ingress from ingress-nginx, leave its annotations as they are and ask what becomes of them:

    headgate audit ingress.yaml

The annotations `{NGINX_PREFIX}*` are read on every Ingress that Headgate serves. An Ingress that has one of them, or
whose class is of the controller `k8s.io/ingress-nginx` or has `nginx` in its name, is treated as ingress-nginx treats
it: plain HTTP is redirected to HTTPS where an Ingress has TLS for the host, `/x` is redirected to `/x/` where only that
is a path, bodies of requests have 1 MiB at most. If the paths of one Ingress are patterns, all paths of its hosts are,
in other Ingresses of its namespace too. What the oldest Ingress of a host says of authentication, addresses, redirects,
limits and cross-origin requests holds for paths of the host that no Ingress has; what comes through there is a 404.

Another prefix, as `--annotations-prefix` gives ingress-nginx, is the setting `nginx_annotations_prefix` of translator
and watchers (`HEADGATE_NGINX_ANNOTATIONS_PREFIX`). Then only annotations with that prefix are read.

An annotation of Headgate's own goes before one of Apache APISIX, and that before one of ingress-nginx.

| mark | what it means |
|---|---|
| **guard** | it keeps requests out: when its value cannot be read, all requests are refused with 503 |
| **drops** | when its value cannot be read, nothing of the Ingress is served, as with ingress-nginx |
| ~ | it is followed with a difference, which is named |
| – | it is ignored: requests are served without it |
| ✗ | it is refused: requests are answered with 503 if it is a guard, and served without it otherwise |

Other values that cannot be read are ignored with a warning, and an update with a bad value of a guard, or of one that
drops, leaves the last good version in force. The column *risk* is the risk that ingress-nginx gives an annotation.

"""


_OPTIONS = """
# Keys of the ConfigMap

The ConfigMap `ingress-nginx/ingress-nginx-controller`, or the one that the setting `nginx_configmap` names, says what
holds for all Ingresses that are treated as those of ingress-nginx. An annotation goes before it, and it is read live. A
key that is an annotation, too, is read as the annotation is: {shared}.

`nginx_tcp_services` and `nginx_udp_services` name the ConfigMaps with TCP and UDP services; each key is a port of the
gateways, each value `namespace/service:port`, with `:PROXY` behind it where connections begin with the PROXY protocol.

"""


def write_page() -> str:
    """Return the page."""
    shared = ", ".join(f"`{row.name}`" for row in OPTION_ROWS if row.name in NGINX_TABLE.rows and not row.refused)
    own = tuple(row for row in OPTION_ROWS if row.name not in NGINX_TABLE.rows or row.refused)
    options = (
        ("Followed", tuple(row for row in own if row.does)),
        ("Refused", tuple(row for row in own if row.refused)),
        ("Ignored", tuple(row for row in own if row.ignored)),
    )
    annotations = "\n".join("".join(_section(title, rows)) for title, rows in SECTIONS.items())
    return (
        _HEAD
        + annotations
        + _OPTIONS.format(shared=shared)
        + "\n".join("".join(_keys(*each)) for each in options)
        + "".join(_flags())
    )


def _flags() -> Iterator[str]:
    yield "\n# Flags of the controller\n\n| flag | setting | |\n|---|---|---|\n"
    for flag in FLAGS:
        if flag.verdict is not Verdict.IGNORED:
            setting = f"`HEADGATE_{flag.setting.upper()}` of the {flag.reader}" if flag.setting else ""
            yield f"| `--{flag.name}` | {setting} | {'✗ ' if flag.verdict is Verdict.REFUSED else ''}{flag.note} |\n"
    reasons: dict[str, list[str]] = {}
    for flag in FLAGS:
        if flag.verdict is Verdict.IGNORED:
            reasons.setdefault(flag.note, []).append(f"`--{flag.name}`")
    yield "\n## Ignored flags\n\n| flags | |\n|---|---|\n"
    for reason, names in reasons.items():
        yield f"| {', '.join(names)} | – {reason} |\n"


def _keys(title: str, rows: tuple[NginxAnnotation, ...]) -> Iterator[str]:
    if rows and rows[0].does:
        yield f"## {title}\n\n| key | value | default | what it does | example |\n|---|---|---|---|---|\n"
        for row in rows:
            yield f"| `{row.name}` | {row.value} | {row.default} | {_told(row)} | `{row.example}` |\n"
        return
    yield f"## {title}\n\n| keys | |\n|---|---|\n"
    reasons: dict[str, list[str]] = {}
    for row in rows:
        reasons.setdefault(_told(row), []).append(f"`{row.name}`")
    for reason, names in reasons.items():
        yield f"| {', '.join(names)} | {reason} |\n"


def _section(title: str, rows: tuple[NginxAnnotation, ...]) -> Iterator[str]:
    yield f"## {title}\n\n| annotation | value | default | what it does | example | risk |\n|---|---|---|---|---|---|\n"
    for row in rows:
        cells = (f"`{row.name}`", row.value, row.default, _told(row), f"`{row.example}`", row.risk.name.lower())
        yield f"| {' | '.join(cells)} |\n"


def _told(row: NginxAnnotation) -> str:
    mark = "**guard** " if row.guards else "**drops** " if row.drops else ""
    if row.refused:
        return f"✗ {mark}{row.refused}"
    if row.ignored:
        return f"– {row.ignored}"
    return f"{mark}{row.does}{f' ~ {row.approximation}.' if row.approximation else ''}"


if __name__ == "__main__":
    sys.stdout.write(write_page())
