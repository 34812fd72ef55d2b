"""The objects of Kubernetes on the pages of Traefik's documentation: all fields are known, and few are not followed.

Set TRAEFIK_SOURCES to a checkout of Traefik 3.7.
"""

import os
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from headgate.cli.offline.tables import translate_paths

SOURCES = os.environ.get("TRAEFIK_SOURCES", "")
PAGES = Path(SOURCES) / "docs/content"
NAMES = ("foo", "bar", "tcpep", "udpep", "footcp", "fooudp", "entryPoint1", "entryPoint2")
FLAGS = [
    "--traefik-allow-cross-namespace",
    "--traefik-allow-external-name-services",
    "--entrypoints=" + ",".join(f"{name}={9001 + index}/tcp" for index, name in enumerate(NAMES)),
]
ABSENT = re.compile(
    "NotFound$|^NoReadyEndpoints$|^NoBackends$|^InvalidMiddleware$|^InvalidAuthorities$|^UnknownPlugin$"
)
"""What an example names is not in it, or is a plugin of Traefik's paid edition."""
KNOWN = {
    ("IngressRoute", "InvalidRule", "spec.routes[].match"): "matchers of the older syntax, in pages of migrations",
    ("IngressRoute", "RefNotPermitted", "spec.routes[].middlewares[].name"): "of the provider of files",
    ("IngressRoute", "Required", "spec.routes[].services[].port"): "the page leaves the port out",
    ("IngressRoute", "UnsupportedBackend", "spec.routes[].services[].name"): "api@internal",
    ("IngressRouteTCP", "InvalidRule", "spec.routes[].match"): "the page has a matcher of HTTP",
    ("IngressRouteTCP", "Required", "spec.routes[].services[].port"): "the page leaves the port out",
    ("IngressRouteTCP", "UnknownField", "spec.routes[].kind"): "of IngressRoutes",
    ("IngressRouteTCP", "WrongType", "spec.routes"): "the page has an object for a list",
    ("IngressRouteUDP", "Required", "spec.routes[].services[].port"): "the page leaves the port out",
    ("Middleware", "InvalidPlugin", "spec.plugin.opa"): "of Traefik's paid edition",
    ("Middleware", "Required", "spec.basicAuth.secret"): "the page has users, which the kind does not have",
    ("Middleware", "UnknownField", "spec.basicAuth.users"): "the page has users, which the kind does not have",
    ("Secret", "InvalidBase64", "data[tls.ca]"): "the page has no certificate",
    ("Secret", "InvalidBase64", "data[tls.crt]"): "the page has no certificate",
    ("ServersTransportTCP", "UnknownField", "spec.rootCAs"): "it is below `tls`",
    ("ServersTransportTCP", "UnknownField", "spec.spiffe"): "it is below `tls`",
    ("TraefikService", "UnknownField", "spec.sticky"): "it is below `weighted`",
    ("TraefikService", "UnknownField", "spec.weighted.services[].sticky.name"): "it is below `cookie`",
}


def _examples(page: Path) -> Iterator[list[Any]]:
    for found in re.finditer(r"```ya?ml[^\n]*\n(.*?)```", page.read_text(), re.DOTALL):
        if "traefik.io/v1alpha1" not in found[1]:
            continue
        try:
            objects = list(yaml.safe_load_all(textwrap.dedent(found[1])))
        except yaml.YAMLError:
            continue  # with lines left out
        made = [each for each in objects if isinstance(each, dict) and {"kind", "apiVersion"} <= each.keys()]
        for each in made:
            each["metadata"] = {"name": "x", "namespace": "default", **each.get("metadata", {})}
        yield made


@pytest.mark.skipif(not SOURCES, reason="TRAEFIK_SOURCES names no checkout of Traefik")
def test_the_examples_of_the_documentation_are_followed(tmp_path: Path) -> None:
    said, count = set(), 0
    for example in (one for page in sorted(PAGES.rglob("*.md")) for one in _examples(page)):
        file = tmp_path / f"{count}.yaml"
        file.write_text(yaml.safe_dump_all(example))
        count += len(example)
        for each in translate_paths([file], FLAGS).findings:
            if not ABSENT.search(each.problem.reason):
                field = re.sub(r"\[\d+\]", "[]", each.problem.field or "")
                said.add((str(each.object).split()[0], each.problem.reason, field))
        file.unlink()
    assert count > 150
    assert said <= set(KNOWN)
