"""A Kubernetes API server in this process, on a real socket, that answers as a real one does.

Its behaviour follows recorded answers of a real server (tests/fixtures/kubernetes). It knows lists with pages, watches
with bookmarks, streaming lists (off unless `streams_lists`), compaction, selectors, the status subresource, Events,
bearer tokens and RBAC as far as tests need them.

    async with FakeKubernetes() as api:
        api.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {...}})
        api.write_kubeconfig(path)
        api.faults.status(429, verb="list", resource="ingresses", retry_after=3)
        api.break_watches("half")
"""

import asyncio
import base64
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import yaml
from aiohttp import web

from fakes.gateway.ports import free_port
from fakes.kubernetes.faults import Faults, SeenRequest, reset_connection
from fakes.kubernetes.rights import RoleHolder
from fakes.kubernetes.store import (
    ApiFault,
    Backup,
    JsonObject,
    Resource,
    Store,
    conflict,
    expired,
    invalid,
    too_large,
)
from fakes.kubernetes.watch import Matches, OpenWatch, error_line

__all__ = ["ApiFault", "Backup", "FakeKubernetes", "Resource", "SeenRequest"]

BUILT_IN: dict[str, tuple[Resource, ...]] = {
    "v1": (
        Resource("", "services", "Service"),
        Resource("", "endpoints", "Endpoints"),
        Resource("", "pods", "Pod"),
        Resource("", "secrets", "Secret"),
        Resource("", "configmaps", "ConfigMap"),
        Resource("", "namespaces", "Namespace", namespaced=False),
    ),
    "networking.k8s.io/v1": (
        Resource("networking.k8s.io", "ingresses", "Ingress"),
        Resource("networking.k8s.io", "ingressclasses", "IngressClass", namespaced=False),
    ),
    "discovery.k8s.io/v1": (Resource("discovery.k8s.io", "endpointslices", "EndpointSlice"),),
    "events.k8s.io/v1": (Resource("events.k8s.io", "events", "Event"),),
    "coordination.k8s.io/v1": (Resource("coordination.k8s.io", "leases", "Lease"),),
    "admissionregistration.k8s.io/v1": (
        Resource(
            "admissionregistration.k8s.io",
            "validatingwebhookconfigurations",
            "ValidatingWebhookConfiguration",
            namespaced=False,
        ),
    ),
}
_EVENT_FIELDS = ("eventTime", "reportingController", "reportingInstance", "action", "reason", "type")


class FakeKubernetes:
    """The server, and the hands of everybody else in its cluster."""

    def __init__(
        self, *, streams_lists: bool = False, allows_loopback: bool = False, tls: ssl.SSLContext | None = None
    ) -> None:
        """Prepare a server.

        Args:
            streams_lists: whether WatchList is supported; if not it is refused inside a 200 stream.
            allows_loopback: whether endpoints on 127.0.0.0/8 are accepted, which no real server does.
            tls: serve HTTPS.
        """
        self.streams_lists = streams_lists
        self.allows_loopback = allows_loopback
        self.expires_continue = False
        """Whether continue tokens from before a compaction are 410 Expired, as older servers have it."""
        self.bookmarks_quiet_kinds = True
        """Whether watches of kinds that have not changed get bookmarks; not with an etcd that tells of no progress."""
        self.token = "let-me-in"
        """The one bearer token that is known; empty: everybody may come in (that TLS lets in)."""
        self.accounts: dict[str, RoleHolder] = {}
        """By bearer token: who may do what a Role says, beside the one above, who may do everything."""
        self.faults = Faults()
        self.requests: list[SeenRequest] = []
        self.url = ""
        self._tls = tls
        self._store = Store(self._wake)
        self._served = dict(BUILT_IN)
        self._forbidden: set[tuple[str, str | None]] = set()
        self._watches: list[OpenWatch] = []
        self._pages: dict[str, tuple[int, list[JsonObject]]] = {}
        self._open: dict[int, web.Request] = {}
        self._runner: web.AppRunner | None = None
        self._port = free_port()

    # Life

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *reason: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen; a server that was stopped listens on its old port again."""
        app = web.Application(client_max_size=8 << 20)
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, ssl_context=self._tls, reuse_address=True)
        await site.start()
        self.url = f"{'https' if self._tls else 'http'}://127.0.0.1:{self._port}"

    async def stop(self) -> None:
        """Stop listening and reset what is open; the objects stay."""
        self.drop_connections()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def write_kubeconfig(
        self, path: Path, *, user: Mapping[str, object] | None = None, cluster: Mapping[str, object] | None = None
    ) -> Path:
        """Write a kubeconfig with the contexts `fake` (current) and `nowhere`; returns the path.

        `user` replaces the bearer token; `cluster` adds to what is said of the server.
        """
        gone = {"server": "http://127.0.0.1:9"}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "fake",
            "clusters": [
                {"name": "fake", "cluster": {"server": self.url, **(cluster or {})}},
                {"name": "nowhere", "cluster": gone},
            ],
            "users": [{"name": "fake", "user": dict(user or {"token": self.token})}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": "fake"}} for name in ("fake", "nowhere")],
        }
        path.write_text(yaml.safe_dump(config))
        return path

    # Hands

    def apply(self, wanted: JsonObject) -> JsonObject:
        """Create or replace an object; returns it as stored. Raises `ApiFault` (422) for what is invalid."""
        self._validate(wanted)
        return self._store.put(self._resource_of(wanted), wanted)

    def delete(self, resource: str, name: str, namespace: str = "default") -> JsonObject:
        """Delete an object by plural and name; returns its last state."""
        found = self._find(resource)
        return self._store.delete(found, namespace if found.namespaced else "", name)

    def get(self, resource: str, name: str, namespace: str = "default") -> JsonObject:
        """Return an object; raises `ApiFault` (404)."""
        found = self._find(resource)
        return self._store.get(found, namespace if found.namespaced else "", name)

    def all(self, resource: str, namespace: str = "") -> list[JsonObject]:
        """Return the objects of a kind in order."""
        return self._store.select(self._find(resource), namespace)

    def set_status(
        self, resource: str, name: str, status: JsonObject, namespace: str = "default", manager: str = "other"
    ) -> JsonObject:
        """Write the status subresource, as another controller would."""
        return self._store.put_status(self._find(resource), namespace, name, {"status": status}, manager)

    def events(self) -> list[JsonObject]:
        """Return the Events that were written."""
        return self.all("events")

    def install(self, version: str, *resources: Resource) -> None:
        """Serve more kinds, in `group/version`."""
        self._served[version] = (*self._served.get(version, ()), *resources)

    def uninstall(self, version: str) -> None:
        """Serve a group version no more; its paths are plain-text 404 from now on."""
        del self._served[version]

    def forbid(self, resource: str, namespace: str | None = None) -> None:
        """Refuse a kind: everywhere, at the cluster scope (`""`) or in one namespace."""
        self._forbidden.add((resource, namespace))

    def allow(self, resource: str) -> None:
        """Undo `forbid`."""
        self._forbidden = {rule for rule in self._forbidden if rule[0] != resource}

    def compact(self) -> None:
        """Forget the past: versions from before are expired."""
        self._store.compact()

    def backup(self) -> Backup:
        """Return the present state."""
        return self._store.backup()

    def restore(self, backup: Backup) -> None:
        """Become an earlier state, revision included; open connections break."""
        self._store.restore(backup)
        self.drop_connections()

    def break_watches(self, how: str, resource: str = "") -> int:
        """End open watches: `end`, `reset`, `half` (with the next event) or `silence`; returns how many."""
        chosen = [watch for watch in self._watches if resource in ("", watch.resource.resource)]
        for watch in chosen:
            watch.breaks = how
            if how != "half":
                watch.changed.set()
        return len(chosen)

    def drop_connections(self) -> None:
        """Reset everything that is open."""
        for request in list(self._open.values()):
            reset_connection(request)

    @property
    def open_watches(self) -> int:
        """How many watches are open."""
        return len(self._watches)

    def seen(self, verb: str = "", resource: str = "") -> list[SeenRequest]:
        """Return the requests of a verb about a kind."""
        return [one for one in self.requests if verb in ("", one.verb) and resource in ("", one.resource)]

    # Answers

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        seen = self._understand(request)
        self.requests.append(seen)
        self._open[id(request)] = request
        try:
            if act := self.faults.take(seen):
                return await act(request)
            self._authorize(request, seen)
            return await self._serve(request, seen)
        except ApiFault as fault:
            return web.json_response(fault.body, status=fault.code, headers=fault.headers)
        except ConnectionError:  # the client has gone, or was made to
            return web.Response()
        finally:
            del self._open[id(request)]

    def _understand(self, request: web.Request) -> SeenRequest:
        parts = request.path.strip("/").split("/")
        namespace = name = resource = ""
        rest = parts[2:] if parts[0] == "api" else parts[3:]
        if len(rest) >= 3 and rest[0] == "namespaces":
            namespace, rest = rest[1], rest[2:]
        if rest:
            resource, name = rest[0], rest[1] if len(rest) > 1 else ""
        if len(rest) == 3:
            resource = f"{resource}/{rest[2]}"
        verbs = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
        if parts == ["readyz"]:
            verbs["GET"] = "probe"
        reading = "get" if name else "watch" if request.query.get("watch") else "list" if resource else "discover"
        verb = verbs.get(request.method, reading)
        now = asyncio.get_running_loop().time()
        return SeenRequest(now, request.method, request.path, dict(request.query), verb, resource, namespace, name)

    def _authorize(self, request: web.Request, seen: SeenRequest) -> None:
        account = self.accounts.get(request.headers.get("Authorization", "").removeprefix("Bearer "))
        if not account and self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            raise ApiFault(401, "Unauthorized", "Unauthorized")
        if (account and not account.may(seen)) or {
            (seen.resource, None),
            (seen.resource, seen.namespace),
        } & self._forbidden:
            group = seen.path.split("/")[2] if seen.path.startswith("/apis/") else ""
            place = f'in the namespace "{seen.namespace}"' if seen.namespace else "at the cluster scope"
            text = (
                f'{seen.resource} is forbidden: User "system:serviceaccount:default:limited" cannot {seen.verb} '
                f'resource "{seen.resource}" in API group "{group}" {place}'
            )
            raise ApiFault(403, "Forbidden", text, {"kind": seen.resource})

    async def _serve(self, request: web.Request, seen: SeenRequest) -> web.StreamResponse:
        parts = request.path.strip("/").split("/")
        version = parts[1] if parts[0] == "api" else "/".join(parts[1:3])
        resources = {one.resource: one for one in self._served.get(version, ())}
        if seen.verb == "probe":
            return web.Response(text="ok")
        if seen.verb == "discover" and resources:
            return web.json_response(_discovery(version, list(resources.values())))
        plural, _, subresource = seen.resource.partition("/")
        resource = resources.get(plural)
        if resource is None or (subresource and subresource != "status"):
            return web.Response(status=404, text="404 page not found\n")
        if seen.verb == "watch":
            return await self._watch(request, seen, resource, version)
        return await self._plain(request, seen, resource, version)

    async def _plain(
        self, request: web.Request, seen: SeenRequest, resource: Resource, version: str
    ) -> web.StreamResponse:
        key = (seen.namespace, seen.name)
        match seen.verb:
            case "list":
                return web.json_response(self._list(seen, resource, version))
            case "get":
                found = self._store.get(resource, *key)
            case "create":
                wanted = await request.json()
                wanted.setdefault("metadata", {})
                if resource.namespaced:
                    wanted["metadata"].setdefault("namespace", seen.namespace)
                self._validate(wanted)
                return web.json_response(_typed(self._store.create(resource, wanted), resource, version), status=201)
            case "delete":
                found = self._store.delete(resource, *key)
            case _:
                found = self._write(seen, resource, await request.json(), request.content_type)
        return web.json_response(_typed(found, resource, version))

    def _write(self, seen: SeenRequest, resource: Resource, body: JsonObject, content_type: str) -> JsonObject:
        key = (seen.namespace, seen.name)
        before = self._store.get(resource, *key)
        by_name = content_type == "application/strategic-merge-patch+json"
        wanted = _merge(before, body, by_name=by_name) if seen.verb == "patch" else body
        for name in ("resourceVersion", "uid"):
            given = body.get("metadata", {}).get(name)
            if given and given != before["metadata"][name]:
                raise conflict(resource, seen.name)
        if seen.resource.endswith("/status"):
            return self._store.put_status(resource, *key, wanted, seen.query.get("fieldManager", "unknown"))
        self._validate(wanted)
        return self._store.put(resource, wanted)

    def _list(self, seen: SeenRequest, resource: Resource, version: str) -> JsonObject:
        revision, items = self._listed(seen, resource)
        limit = int(seen.query.get("limit") or 0) or len(items)
        metadata: JsonObject = {"resourceVersion": str(revision)}
        if rest := items[limit:]:
            token = base64.b64encode(f'{{"rv":{revision},"start":{len(self._pages)}}}'.encode()).decode()
            self._pages[token] = (revision, rest)
            metadata |= {"continue": token, "remainingItemCount": len(rest)}
        page = [_typed(item, resource, version) if resource.is_custom else _untyped(item) for item in items[:limit]]
        return {"kind": f"{resource.kind}List", "apiVersion": version, "metadata": metadata, "items": page}

    def _listed(self, seen: SeenRequest, resource: Resource) -> tuple[int, list[JsonObject]]:
        if token := seen.query.get("continue"):
            revision, items = self._pages[token]
            if self.expires_continue and revision < self._store.compacted:
                raise expired("The provided continue parameter is too old to display a consistent list result.")
            return revision, items
        asked = int(seen.query.get("resourceVersion") or 0)
        if asked > self._store.revision:
            raise too_large(asked, self._store.revision)
        if seen.query.get("resourceVersionMatch") == "Exact" and asked < self._store.compacted:
            raise expired("The resourceVersion for the provided list is too old.")
        matches = _selector(seen)
        return self._store.revision, [item for item in self._store.select(resource, seen.namespace) if matches(item)]

    async def _watch(
        self, request: web.Request, seen: SeenRequest, resource: Resource, version: str
    ) -> web.StreamResponse:
        given = seen.query.get("resourceVersion", "")
        if given and not given.isdecimal():
            text = f'resourceVersion: Invalid value: "{given}": strconv.ParseUint: parsing "{given}": invalid syntax'
            raise ApiFault(500, "", text)
        streaming = seen.query.get("sendInitialEvents") == "true"
        if streaming and not self.streams_lists:
            text = "a watch stream was requested by the client but the required storage feature "
            return await _refuse(request, ApiFault(500, "InternalError", text + "RequestWatchProgress is disabled"))
        from_now = given in ("", "0")
        if not from_now and int(given) < self._store.compacted:
            text = f"too old resource version: {given} ({self._store.revision})"
            return await _refuse(request, expired(text))
        matches = _selector(seen)
        initial = [item for item in self._store.select(resource, seen.namespace) if matches(item)] if from_now else []
        watch = OpenWatch(
            self._store,
            resource,
            version,
            matches,
            self._store.revision if from_now else int(given),
            seen.query.get("allowWatchBookmarks") == "true"
            and (self.bookmarks_quiet_kinds or any(self._store.since(0, resource))),
            asyncio.get_running_loop().time() + float(seen.query.get("timeoutSeconds") or 1800),
        )
        watch.changed.set()
        self._watches.append(watch)
        try:
            return await watch.serve(request, initial, streaming)
        finally:
            self._watches.remove(watch)

    def _wake(self) -> None:
        for watch in self._watches:
            watch.changed.set()

    # Kinds and validation

    def _resources(self) -> Iterator[tuple[str, Resource]]:
        return ((version, one) for version, resources in self._served.items() for one in resources)

    def _find(self, plural: str) -> Resource:
        return next(one for _, one in self._resources() if one.resource == plural)

    def _resource_of(self, wanted: JsonObject) -> Resource:
        for version, one in self._resources():
            if (version, one.kind) == (wanted.get("apiVersion"), wanted.get("kind")):
                return one
        raise ApiFault(404, "NotFound", f"the server has no {wanted.get('kind')} in {wanted.get('apiVersion')}")

    def _validate(self, wanted: JsonObject) -> None:
        name = wanted.get("metadata", {}).get("name", "")
        if wanted.get("kind") == "EndpointSlice" and not self.allows_loopback:
            for place, endpoint in enumerate(wanted.get("endpoints") or ()):
                for address in endpoint.get("addresses", ()):
                    if address.startswith("127.") or address == "::1":
                        raise invalid(
                            "EndpointSlice",
                            "discovery.k8s.io",
                            name,
                            f"endpoints[{place}].addresses[0]",
                            f'Invalid value: "{address}": may not be in the loopback range (127.0.0.0/8, ::1/128)',
                        )
        if wanted.get("kind") == "Event":
            _validate_event(wanted)


def _validate_event(wanted: JsonObject) -> None:
    metadata = wanted["metadata"]
    name = metadata.get("name", "")
    for field in _EVENT_FIELDS:
        if not wanted.get(field):
            raise invalid("Event", "", name, field, "Required value")
    if metadata.get("generateName", "").endswith("."):
        raise invalid("Event", "", name, "metadata.generateName", "Invalid value: a name may not start so")
    if len(wanted.get("note", "").encode()) > 1024:
        raise invalid("Event", "", name, "note", "Too long: may not be more than 1024 bytes")
    if wanted.get("regarding", {}).get("namespace", "default") != metadata.get("namespace"):
        raise invalid("Event", "", name, "regarding.namespace", "Invalid value: does not match event.namespace")


async def _refuse(request: web.Request, fault: ApiFault) -> web.StreamResponse:
    """Refuse a watch as real servers do: inside a stream that began well."""
    answer = web.StreamResponse(headers={"Content-Type": "application/json"})
    answer.enable_chunked_encoding()
    await answer.prepare(request)
    await answer.write(error_line(fault))
    return answer


def _selector(seen: SeenRequest) -> Matches:
    labels = _terms(seen.query.get("labelSelector", ""))
    fields = _terms(seen.query.get("fieldSelector", ""))

    def matches(item: JsonObject) -> bool:
        metadata = item["metadata"]
        if seen.namespace and metadata.get("namespace") != seen.namespace:
            return False
        here = {"type": item.get("type", ""), "metadata.name": metadata["name"]}
        held = metadata.get("labels") or {}
        return all((here.get(key) == value) is wanted for key, value, wanted in fields) and all(
            (held.get(key) == value) is wanted for key, value, wanted in labels
        )

    return matches


def _terms(text: str) -> list[tuple[str, str, bool]]:
    found = []
    for term in filter(None, text.split(",")):
        key, _, value = term.partition("=")
        found.append((key.rstrip("!"), value.lstrip("="), not key.endswith("!")))
    return found


def _typed(item: JsonObject, resource: Resource, version: str) -> JsonObject:
    return {"kind": resource.kind, "apiVersion": version, **_untyped(item)}


def _untyped(item: JsonObject) -> JsonObject:
    return {name: value for name, value in item.items() if name not in ("kind", "apiVersion")}


def _merge(target: Any, patch: Any, *, by_name: bool = False) -> Any:
    """RFC 7396; or a strategic merge, as far as lists go whose items are told apart by `name`."""
    if by_name and isinstance(patch, list):
        changes = {item["name"]: item for item in patch}
        return [_merge(item, changes.get(item["name"], {}), by_name=True) for item in target]
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merge(merged.get(name), value, by_name=by_name)
    return merged


def _discovery(version: str, resources: list[Resource]) -> JsonObject:
    verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
    described = [
        {
            "name": one.resource,
            "singularName": one.kind.lower(),
            "namespaced": one.namespaced,
            "kind": one.kind,
            "verbs": verbs,
        }
        for one in resources
    ]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": described}
