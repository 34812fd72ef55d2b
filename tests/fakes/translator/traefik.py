"""Short ways to write Traefik's resources."""

from typing import Any

from fakes.gateway.served import HOST
from fakes.translator.applied import World

ANY = f"Host(`{HOST}`)"
WEB = {"name": "web", "port": 80}


def resource(kind: str, name: str, spec: Any, group: str = "traefik.io", **metadata: Any) -> Any:
    """Return a resource in the namespace `default`, or another one of `metadata`."""
    return {
        "apiVersion": f"{group}/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", **metadata},
        "spec": spec,
    }


def rule(match: str, *services: Any, **fields: Any) -> Any:
    """Return a route of an IngressRoute; middlewares are given by their names."""
    middlewares = [{"name": name} if isinstance(name, str) else name for name in fields.pop("middlewares", ())]
    listed = {"middlewares": middlewares} if middlewares else {}
    return {"match": match, "kind": "Rule", "services": list(services) or [WEB], **listed, **fields}


def route(*rules: Any, name: str = "route", spec: Any = None, **metadata: Any) -> Any:
    """Return an IngressRoute; `spec` has its other fields."""
    return resource("IngressRoute", name, {"routes": list(rules), **(spec or {})}, **metadata)


def middleware(name: str, namespace: str = "default", **spec: Any) -> Any:
    """Return a Middleware."""
    return resource("Middleware", name, spec, namespace=namespace)


def used(made: World, *specs: Any, **spec: Any) -> None:
    """Have middlewares on the only route, in this order."""
    listed = [middleware(f"m{index}", **one) for index, one in enumerate(specs or (spec,))]
    made.proxy.apply(*listed, route(rule(ANY, middlewares=[one["metadata"]["name"] for one in listed])))


async def asked(made: World, path: str = "/", **headers: str) -> str:
    """Return the head that the server `web` got, in lower case but for its first line."""
    assert await made.proxy.status(path, **headers) == 200
    line, _, rest = made.servers["web"].heads[-1].decode().partition("\r\n")
    return f"{line}\r\n{rest.lower()}"
