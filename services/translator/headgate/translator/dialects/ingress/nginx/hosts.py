"""What the Ingresses of a namespace say of a host together: whether its paths are patterns, which names it has besides.

With ingress-nginx one Ingress with `use-regex` or `rewrite-target` makes patterns of all paths of its hosts, and those
of other Ingresses too. Here it does so within its namespace: a host may be shared with others, and their routes stay
as they wrote them.
"""

from collections.abc import Iterator
from typing import Final

from headgate.common.resources import JsonObject
from headgate.common.table import ANY_HOST
from headgate.translator.annotations.nginx import NGINX_PREFIX
from headgate.translator.annotations.nginx.values import boolean, server_names, target
from headgate.translator.manifests.reading import as_list, as_object, as_text, metadata
from headgate.translator.world.documents import Document
from headgate.translator.world.world import Index

_REWRITES: Final = f"{NGINX_PREFIX}rewrite-target"
_USES_REGEX: Final = f"{NGINX_PREFIX}use-regex"
_ALIAS: Final = f"{NGINX_PREFIX}server-alias"
_SERVER_SNIPPET: Final = f"{NGINX_PREFIX}server-snippet"
_PREFIX_MARK: Final = NGINX_PREFIX.encode()
_MARKS: Final = (_REWRITES.encode(), _USES_REGEX.encode())
_ALIAS_MARK: Final = _ALIAS.encode()
_SNIPPET_MARK: Final = _SERVER_SNIPPET.encode()
_HOST_MARKS: Final = (*_MARKS, _ALIAS_MARK, _SNIPPET_MARK)
_OF_UPSTREAMS: Final = ("backend-protocol", "upstream-vhost", "proxy-ssl-secret", "connection-proxy-header", "snippet")
_UPSTREAM_MARKS: Final = tuple(name.encode() for name in _OF_UPSTREAMS)


def rule_hosts(manifest: JsonObject) -> Iterator[str]:
    """Yield the hosts of an Ingress' rules; that of a rule without one is `*`."""
    for rule in map(as_object, as_list(as_object(manifest.get("spec")).get("rules"))):
        yield as_text(rule.get("host")) or ANY_HOST


def makes_patterns(manifest: JsonObject) -> bool:
    """Whether an Ingress makes patterns of its hosts' paths."""
    annotations = as_object(metadata(manifest).get("annotations"))
    if _USES_REGEX not in annotations and _REWRITES not in annotations:
        return False
    try:
        if boolean(as_text(annotations.get(_USES_REGEX)).strip()):
            return True
    except ValueError:
        pass
    rewritten = as_text(annotations.get(_REWRITES)).strip()
    if not rewritten:
        return False
    try:
        target(rewritten)
    except ValueError:
        return False
    return any(path != rewritten for path in rule_paths(manifest))


def has_tls(manifest: JsonObject) -> bool:
    """Whether an Ingress has TLS. ingress-nginx then secures all hosts of its rules, at need by its own certificate."""
    return bool(as_list(as_object(manifest.get("spec")).get("tls")))


def rule_paths(manifest: JsonObject) -> frozenset[str]:
    """Return the paths of an Ingress' rules."""
    return frozenset(
        as_text(as_object(path).get("path")) or "/"
        for rule in map(as_object, as_list(as_object(manifest.get("spec")).get("rules")))
        for path in as_list(as_object(rule.get("http")).get("paths"))
    )


def _mentions(document: Document, marks: tuple[bytes, ...]) -> bool:
    """Whether an Ingress may have one of some annotations of ingress-nginx; most have none of any."""
    content = document.content
    return _PREFIX_MARK in content and _has_any(content, marks)


def _has_any(content: bytes, marks: tuple[bytes, ...]) -> bool:
    for mark in marks:  # noqa: SIM110 - `any` takes thrice as long, for every Ingress that comes
        if mark in content:
            return True
    return False


def _pattern_hosts(document: Document) -> tuple[str, ...]:
    if not _mentions(document, _MARKS):
        return ()
    manifest = document.decode()
    return tuple(dict.fromkeys(rule_hosts(manifest))) if makes_patterns(manifest) else ()


def _aliased_hosts(document: Document) -> tuple[str, ...]:
    if _ALIAS_MARK not in document.content:
        return ()
    manifest = document.decode()
    return tuple(dict.fromkeys(rule_hosts(manifest))) if aliases_of(manifest) else ()


def aliases_of(manifest: JsonObject) -> tuple[str, ...]:
    """Return the further hosts that an Ingress wants for the routes of its own."""
    try:
        return server_names(as_text(as_object(metadata(manifest).get("annotations")).get(_ALIAS)).strip())
    except ValueError:
        return ()


def _snippet_hosts(document: Document) -> tuple[str, ...]:
    if _SNIPPET_MARK not in document.content:
        return ()
    manifest = document.decode()
    return tuple(dict.fromkeys(rule_hosts(manifest))) if server_snippet_of(manifest) else ()


def server_snippet_of(manifest: JsonObject) -> str:
    """Return what an Ingress wants said in the servers of its hosts."""
    return as_text(as_object(metadata(manifest).get("annotations")).get(_SERVER_SNIPPET)).strip()


def _upstream_hosts(document: Document) -> tuple[str, ...]:
    if not _has_any(document.content, _UPSTREAM_MARKS):
        return ()
    return tuple(dict.fromkeys(rule_hosts(document.decode()))) or (ANY_HOST,)


def _concerns_hosts(document: Document) -> tuple[str, ...]:
    return ("",) if _mentions(document, _HOST_MARKS) else ()


CONCERNS_HOSTS: Final[Index[Document]] = Index("concerns hosts", _concerns_hosts)
"""Those of which other Ingresses of their hosts have to know. The other indexes are by host."""
UPSTREAM_HOSTS: Final[Index[Document]] = Index("hosts with upstreams", _upstream_hosts)
"""Of Ingresses that may say how their upstreams are spoken to, which holds for canaries of theirs too."""
ALIASED_HOSTS: Final[Index[Document]] = Index("hosts with aliases", _aliased_hosts)
SNIPPET_HOSTS: Final[Index[Document]] = Index("hosts with snippets", _snippet_hosts)
PATTERN_HOSTS: Final[Index[Document]] = Index("hosts with patterns", _pattern_hosts)
