#!/usr/bin/env python3
"""Write what follows from the kinds that are read: the rights of watchers, and what the admission webhook is asked.

python -m deploy.manifests.rights [--check]

The chart's templates range over `files/kinds.yaml`. Files that are applied or read as they are have a section between
two marks.
"""

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from deploy.manifests.render import CHART, ROOT

from headgate.common.resources import (
    ALL_KINDS,
    GATEWAY_GROUP,
    Kinds,
    Narrowing,
    OwnershipRule,
    ResourceKind,
    StatusShape,
    WatchMode,
)
from headgate.watcher.settings import WatcherSettings

BEGIN = "# `make manifests` writes what follows, from the kinds that are read."
END = "# Until here `make manifests` writes."
CHART_FILE = CHART / "files" / "kinds.yaml"
CHART_HEAD = (
    "# `make manifests` writes this file, from the kinds that are read. `when` says which watchers have a right: all\n"
    "# (always), those with that setting (watchPods, watchReferencedConfigMaps), those without the latter\n"
    "# (namedConfigMaps), all but a tenant's (shared), those with a list of namespaces (confined). With `*` a release\n"
    "# that reads one more kind of the group needs no other role.\n"
)
IN_NAMESPACES, IN_CLUSTER = "namespaces", "cluster"
_CLASS = "object.spec.ingressClassName"
NAMED_OBJECTS = tuple(place.partition("/")[2] for place in WatcherSettings().watch_config_maps)
ALWAYS, WATCH_PODS, SHARED, CONFINED = "always", "watchPods", "shared", "confined"
ALL_CONFIG_MAPS, NAMED_CONFIG_MAPS = "watchReferencedConfigMaps", "namedConfigMaps"


class Rule(NamedTuple):
    """A rule of a Role, and to whom it is given."""

    where: str
    when: str
    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()
    """Of the only objects that it is about; empty: all."""

    @property
    def lines(self) -> list[str]:
        """The rule in YAML."""
        return [
            f"- apiGroups: {_list([self.group])}",
            f"  resources: {_list(self.resources)}",
            *([f"  resourceNames: {_list(self.names)}"] if self.names else []),
            f"  verbs: {_list(self.verbs)}",
        ]


class Webhook(NamedTuple):
    """An entry of a ValidatingWebhookConfiguration: kinds that are asked about alike."""

    name: str
    group: str
    versions: tuple[str, ...]
    resources: tuple[str, ...]
    scope: str
    is_routing: bool
    """Whether all objects are about routing, so that the failure policy may be Fail."""
    names_class: bool
    """Whether other controllers have objects of this kind, which `spec.ingressClassName` tells from ours."""
    only_tls: bool
    """Whether only Secrets with certificates are asked about."""

    @property
    def rule(self) -> list[str]:
        """What is asked, in YAML."""
        return [
            f"- apiGroups: {_list([self.group])}",
            f"  apiVersions: {_list(self.versions)}",
            "  operations: [CREATE, UPDATE]",
            "  resources:",
            *(f"    - {resource}" for resource in self.resources),
            f"  scope: {_text(self.scope)}",
        ]


def rules(kinds: Kinds = ALL_KINDS) -> list[Rule]:
    """Return all that watchers may do with kinds: read them, then write how their objects stand."""
    asked = [choice[0] for choice in kinds.choices]
    found = [*(rule for kind in asked for rule in _reads(kind)), *(rule for kind in asked for rule in _writes(kind))]
    return merge(found)


def merge(found: Iterable[Rule]) -> list[Rule]:
    """Join rules that differ in nothing but the resources."""
    joined: dict[tuple[object, ...], Rule] = {}
    for rule in found:
        key = (rule.where, rule.when, rule.group, rule.verbs, rule.names)
        known = joined.get(key, rule._replace(resources=()))
        joined[key] = known._replace(resources=tuple(dict.fromkeys((*known.resources, *rule.resources))))
    return list(joined.values())


def _reads(kind: ResourceKind) -> Iterator[Rule]:
    yield from _of(kind, kind.resource, "*", kind.verbs)


def _writes(kind: ResourceKind) -> Iterator[Rule]:
    if kind.status is not StatusShape.NONE:
        yield from _of(kind, f"{kind.resource}/status", "*/status", ("patch",))


def _of(kind: ResourceKind, resource: str, all_of_group: str, verbs: tuple[str, ...]) -> Iterator[Rule]:
    """A right to all of a group is of no use to a cluster-scoped kind where it is given in namespaces."""
    when = WATCH_PODS if kind.watch is WatchMode.PODS else ALWAYS if kind.is_for_tenants else SHARED
    if kind.watch is WatchMode.NAMED:
        yield Rule(IN_NAMESPACES, ALL_CONFIG_MAPS, kind.group, (resource,), verbs)
        yield Rule(IN_NAMESPACES, NAMED_CONFIG_MAPS, kind.group, (resource,), verbs, NAMED_OBJECTS)
    elif kind.has_whole_group:
        yield Rule(IN_NAMESPACES, when, kind.group, (all_of_group,), verbs)
        if not kind.namespaced:
            yield Rule(IN_CLUSTER, CONFINED, kind.group, (resource,), verbs)
    else:
        where = IN_NAMESPACES if kind.namespaced else IN_CLUSTER
        yield Rule(where, when, kind.group, (resource,), verbs, kind.names)


def webhooks(kinds: Kinds = ALL_KINDS) -> list[Webhook]:
    """Return what the webhook is asked, routing first: an entry for each group of routing kinds and each other kind."""
    entries: dict[str, list[ResourceKind]] = {}
    for choice in kinds.choices:
        if choice[0].is_asked:
            kind = choice[0]
            is_of_several = kind.has_whole_group or kind.group == GATEWAY_GROUP
            entries.setdefault(kind.dialect.replace("_", "-") if is_of_several else kind.resource, []).append(kind)
    return sorted((_webhook(name, rows) for name, rows in entries.items()), key=lambda one: not one.is_routing)


def _webhook(name: str, rows: Sequence[ResourceKind]) -> Webhook:
    return Webhook(
        name,
        rows[0].group,
        tuple(dict.fromkeys(chain.from_iterable(row.versions for row in rows))),
        tuple(row.resource for row in rows),
        "Namespaced" if all(row.namespaced for row in rows) else "*",
        is_routing=rows[0].is_routing,
        names_class=rows[0].ownership is OwnershipRule.CLASS and not rows[0].has_whole_group,
        only_tls=rows[0].narrowed_by is Narrowing.SECRET_TYPES,
    )


# Files


def chart_file(kinds: Kinds = ALL_KINDS) -> str:
    """Return what the chart's templates range over."""
    found = rules(kinds)
    lines: list[str] = []
    for where in (IN_NAMESPACES, IN_CLUSTER):
        lines.append(f"{where}:")
        for rule in found:
            if rule.where == where:
                lines += _indented([*rule.lines, f"  when: {rule.when}"])
    lines.append("webhooks:")
    for webhook in webhooks(kinds):
        lines += _indented([f"- name: {webhook.name}", "  rules:", *_indented(webhook.rule, "    ")])
        lines += _indented(
            [f"  {name}: true" for name in ("is_routing", "names_class", "only_tls") if webhook._asdict()[name]]
        )
    return CHART_HEAD + "".join(f"{line}\n" for line in lines)


def tenant_rules(kinds: Kinds = ALL_KINDS) -> list[str]:
    """Return the rules of a tenant's Role."""
    return _role(rules(kinds), {ALWAYS, ALL_CONFIG_MAPS}, {IN_NAMESPACES})


def documented_rules(kinds: Kinds = ALL_KINDS) -> list[str]:
    """Return the rules of a ClusterRole for all namespaces."""
    return _role(rules(kinds), {ALWAYS, ALL_CONFIG_MAPS, SHARED}, {IN_NAMESPACES, IN_CLUSTER})


def _role(found: Iterable[Rule], whens: Collection[str], wheres: Collection[str]) -> list[str]:
    given = [rule._replace(where="", when="") for rule in found if rule.when in whens and rule.where in wheres]
    return [line for rule in merge(given) for line in rule.lines]


def webhook_entries(kinds: Kinds = ALL_KINDS) -> list[str]:
    """Return the entries of a ValidatingWebhookConfiguration."""
    return [line for webhook in webhooks(kinds) for line in _entry(webhook)]


def _entry(webhook: Webhook) -> Iterator[str]:
    if webhook.only_tls:
        yield "# Before Kubernetes 1.28, which has no matchConditions, leave this entry out: all Secrets would be sent."
    yield f"- name: {webhook.name}.admission.headgate.dev"
    yield "  clientConfig: {service: {namespace: headgate, name: headgate-admission, path: /validate}}"
    yield "  rules:"
    yield from _indented(webhook.rule, "    ")
    if webhook.only_tls:
        yield "  matchConditions:"
        yield "    - name: tls"
        yield "      expression: 'object.type == \"kubernetes.io/tls\"'"
    yield "  admissionReviewVersions: [v1]"
    yield "  sideEffects: None"
    yield "  matchPolicy: Equivalent"
    if webhook.names_class:
        yield "  # What happens while no watcher answers. With Fail, name your classes: all other objects would wait."
        yield "  #   matchConditions:"
        yield "  #     - name: ours"
        yield f"  #       expression: '!has({_CLASS}) || {_CLASS} == \"headgate\"'"
    elif not webhook.is_routing:
        yield "  # Never Fail: other software, NATS and Headgate themselves among it, uses this kind."
    yield "  failurePolicy: Ignore"
    yield "  timeoutSeconds: 5"


def _indented(lines: Iterable[str], by: str = "  ") -> list[str]:
    return [f"{by}{line}" for line in lines]


def _list(values: Iterable[str]) -> str:
    return f"[{', '.join(map(_text, values))}]"


def _text(value: str) -> str:
    return value if value and "*" not in value else f'"{value}"'


SECTIONS: dict[str, Callable[[], list[str]]] = {
    "deploy/tenant/watcher.yaml": tenant_rules,
    "deploy/admission/webhook.yaml": webhook_entries,
    "docs/kubernetes.md": documented_rules,
}


def with_section(text: str, lines: Iterable[str]) -> str:
    """Return a text with other lines between its marks, as far from the edge as the first mark is."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"the marks are missing: {BEGIN!r} and {END!r}")
    edge = before.rpartition("\n")[2]
    return before + BEGIN + "\n" + "".join(f"{edge}{line}\n" for line in lines) + edge + END + after


def main(arguments: list[str]) -> int:
    """Write the files, or compare them; return 1 where one differs."""
    wanted = {CHART_FILE: chart_file()}
    wanted |= {ROOT / path: with_section((ROOT / path).read_text(), lines()) for path, lines in SECTIONS.items()}
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    if arguments == ["--check"]:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is not as the kinds that are read have it: run `make manifests`")
        return int(bool(stale))
    for path in stale:
        path.write_text(wanted[path])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
