"""Older versions of ApisixRoute and ApisixConsumer in the shape of v2.

Routes of `v1` have hosts with paths, those of `v2alpha1` to `v2beta2` a single `backend` and rules for `tcp`; `keyauth`
and `wolfRbac` are older spellings. All other kinds had today's shape already. Problems are said at the fields as
they were written.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from headgate.common.resources import APISIX_CONSUMER, APISIX_ROUTE, JsonObject
from headgate.translator.fragments.fragment import Fragment
from headgate.translator.manifests.reading import as_list, as_object

_RULE = re.compile(r"^spec\.http\[(\d+)\]")
_STREAM = re.compile(r"^spec\.stream\[(\d+)\]")
_SPELLINGS = {"keyauth": "keyAuth", "wolfRbac": "wolfRBAC"}
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
    upgrade_spec, spec = _UPGRADES.get(str(manifest.get("kind"))), manifest.get("spec")
    if upgrade_spec is None or not isinstance(spec, dict):
        return manifest
    upgraded = upgrade_spec(spec)
    return manifest if upgraded is spec else {**manifest, "spec": upgraded}


def _upgrade_consumer(spec: JsonObject) -> JsonObject:
    written = spec.get("authParameter")
    if not isinstance(written, dict) or "wolfRbac" not in written:
        return spec
    return {**spec, "authParameter": {_SPELLINGS.get(name, name): value for name, value in written.items()}}


def _upgrade_route(spec: JsonObject) -> JsonObject:
    if is_legacy(spec):
        kept = {name: value for name, value in spec.items() if name != "rules"}
        return {**kept, "http": [_upgrade_path(path) for path in _paths(spec)]}
    return _upgrade_rules(spec)


_UPGRADES = {APISIX_ROUTE.kind: _upgrade_route, APISIX_CONSUMER.kind: _upgrade_consumer}


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


def _upgrade_rules(spec: JsonObject) -> JsonObject:
    http, tcp = spec.get("http"), spec.get("tcp")
    if isinstance(http, list) and any(_has_old_spelling(rule) or _has_one_backend(rule) for rule in http):
        spec = {**spec, "http": [_respell(rule) for rule in http]}
    if isinstance(tcp, list):
        rules = [{**rule, "protocol": "TCP"} if isinstance(rule, dict) else rule for rule in tcp]
        kept = {name: value for name, value in spec.items() if name != "tcp"}
        spec = {**kept, "stream": [*as_list(spec.get("stream")), *rules]}
    return spec


def _has_old_spelling(rule: Any) -> bool:
    block = as_object(as_object(rule).get("authentication"))
    return "keyauth" in block or block.get("type") == "wolfRbac"


def _has_one_backend(rule: Any) -> bool:
    """Whether there is a `backend` that counts: it does not beside `backends`."""
    return bool(as_object(rule).get("backend")) and not rule.get("backends")


def _respell(rule: Any) -> Any:
    if _has_old_spelling(rule):
        block = {_SPELLINGS.get(name, name): value for name, value in rule["authentication"].items()}
        kind = block.get("type")
        renamed = {"type": _SPELLINGS[kind]} if isinstance(kind, str) and kind in _SPELLINGS else {}
        rule = {**rule, "authentication": {**block, **renamed}}
    if _has_one_backend(rule):
        rule = {**{name: value for name, value in rule.items() if name != "backend"}, "backends": [rule["backend"]]}
    return rule


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
    spec = as_object(manifest.get("spec"))
    return _v1_restorer(list(_paths(spec))) if is_legacy(spec) else _spelling_restorer(spec)


def _spelling_restorer(spec: JsonObject) -> Callable[[str], str]:
    single = {index for index, rule in enumerate(as_list(spec.get("http"))) if _has_one_backend(rule)}
    streams = len(as_list(spec.get("stream")))

    def restore(field: str) -> str:
        rule, stream = _RULE.match(field), _STREAM.match(field)
        if rule is not None and int(rule[1]) in single:
            field = field.replace(".backends[0]", ".backend", 1)
        if stream is not None and int(stream[1]) >= streams:
            return f"spec.tcp[{int(stream[1]) - streams}]{field[stream.end() :]}"
        for old, new in _SPELLINGS.items():
            field = field.replace(f".authentication.{new}", f".authentication.{old}")
            field = field.replace(f".authParameter.{new}", f".authParameter.{old}")
        return field

    return restore


def _v1_restorer(paths: Sequence[_Path]) -> Callable[[str], str]:
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
