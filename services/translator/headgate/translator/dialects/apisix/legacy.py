"""Older versions in the shape of v2: ApisixRoute v1, and the spellings of v2beta3.

All other kinds had today's shape already. Problems are said at the fields as they were written.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from headgate.common.resources import APISIX_ROUTE, JsonObject
from headgate.translator.fragment import Fragment
from headgate.translator.manifest import as_list, as_object

_RULE = re.compile(r"^spec\.http\[(\d+)\]")
_PARTS = (
    (".match.paths[0]", ".path"),
    (".match.paths", ".path"),
    (".backends[0]", ".backend"),
    (".backends", ".backend"),
    (".match", ""),
    (".name", ""),
)


class _Path(NamedTuple):
    """One path of a v1 route."""

    host: Any
    path: JsonObject
    rule: str
    field: str


def upgrade(manifest: JsonObject) -> JsonObject:
    """Return a resource in the shape of v2; the same object where it has that shape."""
    if manifest.get("kind") != APISIX_ROUTE.kind:
        return manifest
    spec = manifest.get("spec")
    if not isinstance(spec, dict):
        return manifest
    if is_legacy(spec):
        kept = {name: value for name, value in spec.items() if name != "rules"}
        return {**manifest, "spec": {**kept, "http": [_upgrade_path(path) for path in _paths(spec)]}}
    http = spec.get("http")
    if isinstance(http, list) and any(_has_old_spelling(rule) for rule in http):
        return {**manifest, "spec": {**spec, "http": [_respell(rule) for rule in http]}}
    return manifest


def is_legacy(spec: JsonObject) -> bool:
    """Whether a route is written as in v1; it may come in any version, as API servers convert by name alone."""
    return "rules" in spec and "http" not in spec


def _paths(spec: JsonObject) -> Iterator[_Path]:
    for i, rule in enumerate(as_list(spec.get("rules"))):
        http = as_object(as_object(rule).get("http"))
        for j, path in enumerate(as_list(http.get("paths"))):
            at = f"spec.rules[{i}]"
            yield _Path(as_object(rule).get("host"), as_object(path), at, f"{at}.http.paths[{j}]")


def _upgrade_path(found: _Path) -> JsonObject:
    path = found.path
    match: JsonObject = {"paths": [path.get("path") or "/*"]}
    if found.host:
        match["hosts"] = [found.host]
    rest = {name: value for name, value in path.items() if name not in ("path", "backend", "plugins")}
    backend = path.get("backend")
    plugins = [_upgrade_plugin(plugin) for plugin in as_list(path.get("plugins"))]
    return {
        **rest,
        "name": found.field,
        "match": match,
        "backends": [backend] if backend is not None else [],
        "plugins": plugins,
    }


def _upgrade_plugin(plugin: Any) -> Any:
    if not isinstance(plugin, dict) or "config_set" not in plugin:
        return plugin
    kept = {name: value for name, value in plugin.items() if name != "config_set"}
    return (
        kept if kept.get("config") else {**kept, "config": as_object(next(iter(as_list(plugin["config_set"])), None))}
    )


def _has_old_spelling(rule: Any) -> bool:
    return "keyauth" in as_object(as_object(rule).get("authentication"))


def _respell(rule: Any) -> Any:
    if not _has_old_spelling(rule):
        return rule
    block = {"keyAuth" if name == "keyauth" else name: value for name, value in rule["authentication"].items()}
    return {**rule, "authentication": block}


def restore_problems(fragment: Fragment, manifest: JsonObject) -> Fragment:
    """Say everything at the fields as they were written in an older version."""
    restore = _restorer(manifest)
    return replace(
        fragment,
        problems=tuple(one.model_copy(update={"field": restore(one.field)}) for one in fragment.problems),
        routes=tuple(
            claim._replace(
                field=restore(claim.field),
                route=claim.route.model_copy(
                    update={
                        "provenance": claim.route.provenance.model_copy(
                            update={"rule": restore(claim.route.provenance.rule)}
                        )
                    }
                ),
            )
            for claim in fragment.routes
        ),
        backends=tuple(
            use._replace(name_field=restore(use.name_field), port_field=restore(use.port_field))
            for use in fragment.backends
        ),
    )


def _restorer(manifest: JsonObject) -> Callable[[str], str]:
    if not is_legacy(as_object(manifest.get("spec"))):
        return lambda field: field.replace(".authentication.keyAuth", ".authentication.keyauth")
    paths = list(_paths(as_object(manifest.get("spec"))))

    def restore(field: str) -> str:
        found = _RULE.match(field)
        if found is None:
            return field
        path, rest = paths[int(found[1])], field[found.end() :]
        if rest.startswith(".match.hosts"):
            return f"{path.rule}.host"
        for upgraded, original in _PARTS:
            if rest.startswith(upgraded):
                rest = original + rest.removeprefix(upgraded)
                break
        return path.field + rest

    return restore
