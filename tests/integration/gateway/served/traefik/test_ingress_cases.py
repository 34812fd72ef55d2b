"""Cases that Traefik's own tests of its provider of Ingresses have, from manifests to the wire."""

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from fakes.gateway.served import asking, read_answer
from fakes.translator.applied import World, world
from fakes.translator.deltas import endpoint_slice, ingress, ingress_class, service
from fakes.translator.traefik_cases import listed
from headgate.translator.world.settings import DEFAULT_SETTINGS, TraefikSettings, TranslationSettings

_CASES = Path(__file__).parent / "cases/ingresses.yaml"
_CONTROLLER = "traefik.io/ingress-controller"
_ROUTER, _SERVICE = "traefik.ingress.kubernetes.io/router.", "traefik.ingress.kubernetes.io/service."
_SERVERS = ("one", "two")


class Case(NamedTuple):
    """Ingresses, and where requests go; the YAML file says more."""

    ingresses: Any
    takes: Any
    services: Any = None
    settings: Any = None
    says: tuple[str, ...] = ()


def _settings(said: dict[str, Any]) -> TranslationSettings:
    controllers = DEFAULT_SETTINGS.controller_names | {_CONTROLLER}
    return replace(DEFAULT_SETTINGS, controller_names=frozenset(controllers), traefik=TraefikSettings(**said))


def _ingress(written: Any, number: int) -> Any:
    """Return an Ingress of the class `traefik`, unless another one or none is said."""
    annotations = {(_ROUTER if "/" not in key else "") + key: value for key, value in written.get("says", {}).items()}
    made = ingress(f"case-{number}", annotations=annotations, class_name=written.get("class", "traefik"))
    if not made["spec"]["ingressClassName"]:
        del made["spec"]["ingressClassName"]
    made["spec"]["rules"] = [
        {**({"host": host} if host else {}), "http": {"paths": [_path(*each) for each in paths]}}
        for host, paths in written.get("rules", {}).items()
    ]
    if "default" in written:
        made["spec"]["defaultBackend"] = _backend(written["default"])
    return made


def _path(path: str, kind: str, to: Any) -> Any:
    return {"path": path, "pathType": kind, "backend": _backend(to)}


def _backend(to: Any) -> Any:
    if isinstance(to, dict):
        return to
    name, _, port = to.partition(":")
    number = {"number": int(port)} if port.isdecimal() else {"name": port}
    return {"service": {"name": name, "port": number if port else {"number": 80}}}


def _service(name: str, written: Any, made: World) -> tuple[Any, ...]:
    """Return a Service, and its slices unless it has none."""
    one = service(name)
    one["metadata"]["annotations"] = {_SERVICE + key: value for key, value in written.get("says", {}).items()}
    one["spec"] |= written.get("spec", {})
    servers = written.get("servers", [name] if name in _SERVERS else [])
    if not servers:
        return (one,)
    port_name = written.get("port_name", "")
    slices = [endpoint_slice(name, "127.0.0.1", port=made.port(to), name=f"{name}-{to}") for to in servers]
    for each in slices:
        each["ports"][0]["name"] = port_name
    return one, *slices


@pytest.mark.parametrize("case", listed(_CASES, Case))
async def test_an_ingress_is_served_as_by_traefik(case: Case) -> None:
    async with world(*_SERVERS, proxy_protocol=True, settings=_settings(case.settings or {})) as made:
        made.proxy.apply(ingress_class("traefik", _CONTROLLER), ingress_class("other", "example.com/other"))
        for name, written in (case.services or {}).items():
            made.proxy.apply(*_service(name, written, made))
        applied = [_ingress(written, number) for number, written in enumerate(case.ingresses)]
        made.proxy.apply(*applied)
        assert {url: await _winner(made, url) for url in case.takes} == case.takes
        said = {reason for each in applied for reason in made.proxy.problems(each)}
        assert said == set(case.says)


async def _winner(made: World, url: str) -> Any:
    """Return which server answers, or the status if none does."""
    host, _, path = url.partition("/")
    client = await made.proxy.proxy.connect()
    await client.send(b"PROXY TCP4 203.0.113.9 203.0.113.1 5555 80\r\n" + asking(f"/{path}", host=host))
    got = await read_answer(client)
    client.close()
    return got.body.decode() if got.status == 200 else got.status
