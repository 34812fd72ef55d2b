"""Texts in an Ingress that try to get out of nginx's configuration: ingress-nginx serves nothing of such an object.

Nothing here would run them. An object that ingress-nginx leaves out is left out all the same, as whoever wrote it did
not mean what its other paths say. `--deep-inspect` of ingress-nginx, which is on by default, lists these texts.
"""

import re
from collections.abc import Iterator
from typing import Final

from headgate.common.problems import Problem, Severity
from headgate.common.resources import JsonObject
from headgate.translator.manifests.reading import as_list, as_object, as_text, shown

_FORBIDDEN: Final = re.compile(
    r"alias.*;|root.*;|/etc/(?:passwd|shadow|group|nginx|ingress-controller)|/var/run/secrets|_by_lua", re.DOTALL
)

_PLAIN_PATH: Final = re.compile(r"/[A-Za-z0-9._\-/]*")


def forbidden_texts(manifest: JsonObject) -> tuple[Problem, ...]:
    """Return what of an Ingress' hosts, paths and TLS entries has such a text."""
    spec = as_object(manifest.get("spec"))
    if _FORBIDDEN.search("\n".join(_bare_texts(spec))) is None:
        return ()
    return tuple(
        Problem(
            reason="ForbiddenText",
            field=field,
            value=shown(text),
            message=f"must not contain {found[0]!r}, which ingress-nginx forbids; nothing of the object is served",
        )
        for field, text in _texts(spec)
        if (found := _FORBIDDEN.search(text)) is not None
    )


def mistyped_paths(manifest: JsonObject) -> tuple[Problem, ...]:
    """Return the paths that are written as patterns and have a type that takes none."""
    return tuple(_mistyped(as_object(manifest.get("spec"))))


def _mistyped(spec: JsonObject) -> Iterator[Problem]:
    for position, rule in enumerate(map(as_object, as_list(spec.get("rules")))):
        for number, path in enumerate(map(as_object, as_list(as_object(rule.get("http")).get("paths")))):
            text = as_text(path.get("path"))
            if path.get("pathType") in ("Exact", "Prefix") and text and not _PLAIN_PATH.fullmatch(text):
                yield Problem(
                    severity=Severity.WARNING,
                    reason="PathTypeMismatch",
                    field=f"spec.rules[{position}].http.paths[{number}].path",
                    value=shown(text),
                    message=f"with pathType {path['pathType']} a path has letters, digits and ._-/ only; a pattern "
                    "needs ImplementationSpecific (strict-validate-path-type of ingress-nginx)",
                )


def _bare_texts(spec: JsonObject) -> Iterator[str]:
    """Yield those texts alone."""
    for rule in map(as_object, as_list(spec.get("rules"))):
        yield as_text(rule.get("host"))
        for path in as_list(as_object(rule.get("http")).get("paths")):
            yield as_text(as_object(path).get("path"))
    for entry in map(as_object, as_list(spec.get("tls"))):
        yield as_text(entry.get("secretName"))
        yield from map(as_text, as_list(entry.get("hosts")))


def _texts(spec: JsonObject) -> Iterator[tuple[str, str]]:
    """Yield the texts that ingress-nginx would write into its configuration, with their fields."""
    for position, rule in enumerate(map(as_object, as_list(spec.get("rules")))):
        field = f"spec.rules[{position}]"
        yield f"{field}.host", as_text(rule.get("host"))
        for number, path in enumerate(as_list(as_object(rule.get("http")).get("paths"))):
            yield f"{field}.http.paths[{number}].path", as_text(as_object(path).get("path"))
    for position, entry in enumerate(map(as_object, as_list(spec.get("tls")))):
        field = f"spec.tls[{position}]"
        yield f"{field}.secretName", as_text(entry.get("secretName"))
        yield from (
            (f"{field}.hosts[{number}]", as_text(host)) for number, host in enumerate(as_list(entry.get("hosts")))
        )
