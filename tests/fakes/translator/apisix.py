"""Short ways to write resources of Apache APISIX, and to ask the table that they make."""

from collections.abc import Mapping
from typing import Any

from fakes.translator.deltas import applied, service
from headgate.common.problems import Problem, Severity
from headgate.common.resources import ObjectRef
from headgate.common.table import Route, StreamRoute, Upstream, VirtualHost
from headgate.gateway.table.explaining.explain import explain
from headgate.gateway.table.explaining.explanation import Explanation
from headgate.gateway.table.view import EntryView
from headgate.translator.offline import translate_all
from headgate.translator.world.settings import DEFAULT_SETTINGS, TranslationSettings

BACKEND = {"serviceName": "web", "servicePort": 80}


def resource(kind: str, name: str, spec: Any, version: str = "v2", **metadata: Any) -> Any:
    """Return a resource in the namespace `default`, or another one of `metadata`."""
    return {
        "apiVersion": f"apisix.apache.org/{version}",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", **metadata},
        "spec": spec,
    }


def rule(name: str = "rule", *paths: str, hosts: Any = None, **fields: Any) -> Any:
    """Return a rule of an ApisixRoute; fields of its match are given as `match_<field>`."""
    match: dict[str, Any] = {"paths": list(paths) or ["/*"]}
    if hosts:
        match["hosts"] = hosts
    match |= {key.removeprefix("match_"): value for key, value in fields.items() if key.startswith("match_")}
    rest = {key: value for key, value in fields.items() if not key.startswith("match_")}
    return {"name": name, "match": match, "backends": [BACKEND], **rest}


def one_backend(name: str = "rule", *paths: str, **fields: Any) -> Any:
    """Return a rule as `v2alpha1` to `v2beta2` had it."""
    made = rule(name, *paths, **fields)
    return {**{key: value for key, value in made.items() if key != "backends"}, "backend": made["backends"][0]}


def route(*rules: Any, name: str = "route", stream: Any = (), **metadata: Any) -> Any:
    """Return an ApisixRoute."""
    return resource("ApisixRoute", name, {"http": list(rules), "stream": list(stream)}, **metadata)


class Translated:
    """What some objects make, beside a Service `web`."""

    def __init__(self, *manifests: Any, settings: TranslationSettings = DEFAULT_SETTINGS) -> None:
        offline = translate_all([applied(one) for one in (service(), *manifests)], settings)
        self.offline = offline
        self._view = EntryView(offline.entries)

    def ask(self, method: str, url: str, headers: Mapping[str, str] | None = None, **more: Any) -> Explanation:
        """Return what becomes of a request: `host/path`."""
        host, _, path = url.partition("/")
        return explain(self._view, method, host, f"/{path}", headers or {}, **more)

    def winner(
        self, url: str, method: str = "GET", headers: Mapping[str, str] | None = None, **more: Any
    ) -> str | None:
        """Return the name of the rule that takes a request, with the object's name before it; None if none does."""
        found = self.ask(method, url, headers, **more).winner
        return None if found is None else found.partition("|")[2].partition("/default/")[2].rpartition(" ")[0]

    def route(self, rule_name: str = "rule", host: str = "*") -> Route:
        """Return the first route of a rule."""
        table = self._view.entry(VirtualHost, host)
        assert table is not None
        return next(one for one in table.routes if f" {rule_name} " in one.name)

    def host(self, host: str) -> VirtualHost | None:
        """Return a virtual host."""
        return self._view.entry(VirtualHost, host)

    def upstream(self, key: str = "a/default/web:80/apisix") -> Upstream:
        """Return an upstream."""
        found = self._view.entry(Upstream, key)
        assert found is not None, [one.key for one in self.offline.entries if isinstance(one, Upstream)]
        return found

    def streams(self) -> list[StreamRoute]:
        """Return the stream routes."""
        return list(self._view.entries(StreamRoute))

    def problems(self, name: str = "route") -> list[Problem]:
        """Return what is wrong with an object of the group, but for endpoints that are missing."""
        ref = next((ref for ref in self.offline.problems if _is(ref, name)), None)
        found = () if ref is None else self.offline.problems[ref]
        return [problem for problem in found if problem.reason != "NoReadyEndpoints"]

    def errors(self, name: str = "route") -> list[str]:
        """Return the fields of its errors."""
        return [problem.field for problem in self.problems(name) if problem.severity is Severity.ERROR]

    def is_accepted(self, name: str = "route") -> bool:
        """Whether something of an object is served."""
        return any(_is(ref, name) for ref in self.offline.accepted)


def _is(ref: ObjectRef, name: str) -> bool:
    return ref.group == "apisix.apache.org" and ref.name == name
