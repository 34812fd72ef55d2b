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
from typing import Self

import yaml
from aiohttp import web

from fakes.gateway.ports import free_port
from fakes.kubernetes.faults import Faults, SeenRequest, reset_connection
from fakes.kubernetes.forms import BUILT_IN, discovery, merge, selector, typed, untyped, validate
from fakes.kubernetes.rights import RoleHolder
from fakes.kubernetes.store import (
    ApiFault,
    Backup,
    JsonObject,
    Resource,
    Store,
    conflict,
    expired,
    too_large,
)
from fakes.kubernetes.watch import OpenWatch, error_line

__all__ = ["ApiFault", "Backup", "FakeKubernetes", "Resource", "SeenRequest"]


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
        self.store = Store(self._wake)
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
        validate(wanted, allows_loopback=self.allows_loopback)
        return self.store.put(self._resource_of(wanted), wanted)

    def delete(self, resource: str, name: str, namespace: str = "default") -> JsonObject:
        """Delete an object by plural and name; returns its last state."""
        found = self.find(resource)
        return self.store.delete(found, namespace if found.namespaced else "", name)

    def get(self, resource: str, name: str, namespace: str = "default", group: str | None = None) -> JsonObject:
        """Return an object; raises `ApiFault` (404). The group is for plurals that several have."""
        found = self.find(resource, group)
        return self.store.get(found, namespace if found.namespaced else "", name)

    def all(self, resource: str, namespace: str = "") -> list[JsonObject]:
        """Return the objects of a kind in order."""
        return self.store.select(self.find(resource), namespace)

    def set_status(
        self, resource: str, name: str, status: JsonObject, namespace: str = "default", manager: str = "other"
    ) -> JsonObject:
        """Write the status subresource, as another controller would."""
        return self.store.put_status(self.find(resource), namespace, name, {"status": status}, manager)

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
        self.store.compact()

    def backup(self) -> Backup:
        """Return the present state."""
        return self.store.backup()

    def restore(self, backup: Backup) -> None:
        """Become an earlier state, revision included; open connections break."""
        self.store.restore(backup)
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
            return await self.serve(request, seen)
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

    async def serve(self, request: web.Request, seen: SeenRequest) -> web.StreamResponse:
        """Answer a request that may be made, as hooks of tests do at their end."""
        parts = request.path.strip("/").split("/")
        version = parts[1] if parts[0] == "api" else "/".join(parts[1:3])
        resources = {one.resource: one for one in self._served.get(version, ())}
        if seen.verb == "probe":
            return web.Response(text="ok")
        if seen.verb == "discover" and resources:
            return web.json_response(discovery(version, list(resources.values())))
        plural, _, subresource = seen.resource.partition("/")
        resource = resources.get(plural)
        if resource is None or (subresource and not (subresource == "status" and resource.has_status)):
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
                found = self.store.get(resource, *key)
            case "create":
                wanted = await request.json()
                wanted.setdefault("metadata", {})
                if resource.namespaced:
                    wanted["metadata"].setdefault("namespace", seen.namespace)
                validate(wanted, allows_loopback=self.allows_loopback)
                return web.json_response(typed(self.store.create(resource, wanted), resource, version), status=201)
            case "delete":
                found = self.store.delete(resource, *key)
            case _:
                found = self._write(seen, resource, await request.json(), request.content_type)
        return web.json_response(typed(found, resource, version))

    def _write(self, seen: SeenRequest, resource: Resource, body: JsonObject, content_type: str) -> JsonObject:
        key = (seen.namespace, seen.name)
        before = self.store.get(resource, *key)
        by_name = content_type == "application/strategic-merge-patch+json"
        wanted = merge(before, body, by_name=by_name) if seen.verb == "patch" else body
        for name in ("resourceVersion", "uid"):
            given = body.get("metadata", {}).get(name)
            if given and given != before["metadata"][name]:
                raise conflict(resource, seen.name)
        if seen.resource.endswith("/status"):
            return self.store.put_status(resource, *key, wanted, seen.query.get("fieldManager", "unknown"))
        validate(wanted, allows_loopback=self.allows_loopback)
        return self.store.put(resource, wanted)

    def _list(self, seen: SeenRequest, resource: Resource, version: str) -> JsonObject:
        revision, items = self._listed(seen, resource)
        limit = int(seen.query.get("limit") or 0) or len(items)
        metadata: JsonObject = {"resourceVersion": str(revision)}
        if rest := items[limit:]:
            token = base64.b64encode(f'{{"rv":{revision},"start":{len(self._pages)}}}'.encode()).decode()
            self._pages[token] = (revision, rest)
            metadata |= {"continue": token, "remainingItemCount": len(rest)}
        page = [typed(item, resource, version) if resource.is_custom else untyped(item) for item in items[:limit]]
        return {"kind": f"{resource.kind}List", "apiVersion": version, "metadata": metadata, "items": page}

    def _listed(self, seen: SeenRequest, resource: Resource) -> tuple[int, list[JsonObject]]:
        if token := seen.query.get("continue"):
            revision, items = self._pages[token]
            if self.expires_continue and revision < self.store.compacted:
                raise expired("The provided continue parameter is too old to display a consistent list result.")
            return revision, items
        asked = int(seen.query.get("resourceVersion") or 0)
        if asked > self.store.revision:
            raise too_large(asked, self.store.revision)
        if seen.query.get("resourceVersionMatch") == "Exact" and asked < self.store.compacted:
            raise expired("The resourceVersion for the provided list is too old.")
        matches = selector(seen)
        return self.store.revision, [item for item in self.store.select(resource, seen.namespace) if matches(item)]

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
        if not from_now and int(given) < self.store.compacted:
            text = f"too old resource version: {given} ({self.store.revision})"
            return await _refuse(request, expired(text))
        matches = selector(seen)
        initial = [item for item in self.store.select(resource, seen.namespace) if matches(item)] if from_now else []
        watch = OpenWatch(
            self.store,
            resource,
            version,
            matches,
            self.store.revision if from_now else int(given),
            seen.query.get("allowWatchBookmarks") == "true"
            and (self.bookmarks_quiet_kinds or any(self.store.since(0, resource))),
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

    def find(self, plural: str, group: str | None = None) -> Resource:
        """The kind that has a name in paths, in any group or in one."""
        found = (one for _, one in self._resources() if one.resource == plural)
        return next(one for one in found if group is None or one.group == group)

    def _resource_of(self, wanted: JsonObject) -> Resource:
        for version, one in self._resources():
            if (version, one.kind) == (wanted.get("apiVersion"), wanted.get("kind")):
                return one
        raise ApiFault(404, "NotFound", f"the server has no {wanted.get('kind')} in {wanted.get('apiVersion')}")


async def _refuse(request: web.Request, fault: ApiFault) -> web.StreamResponse:
    """Refuse a watch as real servers do: inside a stream that began well."""
    answer = web.StreamResponse(headers={"Content-Type": "application/json"})
    answer.enable_chunked_encoding()
    await answer.prepare(request)
    await answer.write(error_line(fault))
    return answer
