"""Annotations of ingress-nginx under another prefix, by `nginx_annotations_prefix`."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from fakes.gateway.served import HOST
from fakes.translator.applied import World, secret, world
from fakes.translator.deltas import ingress, ref_of
from fakes.translator.nginx import nginx_ingress, request_line
from headgate.common.admission import Opinion, Proposal
from headgate.translator.admission.examine import examine
from headgate.translator.composition import DIALECTS
from headgate.translator.dialects.ingress.document import STORED
from headgate.translator.objects.nginx_prefix import with_prefix
from headgate.translator.translation import Translation
from headgate.translator.world.settings import NginxSettings, TranslationSettings

PREFIX = "team.example"
SETTINGS = TranslationSettings(nginx=NginxSettings(annotations_prefix=PREFIX))


def written(path: str = "/", name: str = "web", host: str = HOST, **annotations: str) -> Any:
    """Return an Ingress whose annotations have that prefix."""
    named = {f"{PREFIX}/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return ingress(name, host=host, path=path, service="one", annotations=named)


@pytest.fixture
async def one() -> AsyncIterator[World]:
    """A proxy before a Service `one`, with that prefix."""
    async with world("one", settings=SETTINGS) as made:
        yield made


async def test_annotations_with_the_prefix_count(one: World) -> None:
    one.proxy.apply(written("/app(/|$)(.*)", rewrite_target="/$2"))
    assert await one.proxy.status("/app/x") == 200
    assert request_line(one) == "GET /x HTTP/1.1"


async def test_those_with_the_default_prefix_do_not(one: World) -> None:
    one.proxy.apply(nginx_ingress(rewrite_target="/elsewhere"))
    assert await one.proxy.status("/a") == 200
    assert request_line(one) == "GET /a HTTP/1.1"


async def test_what_an_ingress_says_of_its_host_counts_for_others(one: World) -> None:
    one.proxy.apply(written("/a[0-9]+", name="old", use_regex="true"), written("/b[0-9]+", name="new", app_root="/x"))
    assert await one.proxy.status("/b12") == 200


async def test_problems_name_annotations_as_they_are_written(one: World) -> None:
    manifest = written(auth_type="nonsense", proxy_body_sise="8m")
    one.proxy.apply(manifest, secret("users", auth="ada:x"))
    fields = set(one.proxy.fields(manifest))
    assert fields == {f"metadata.annotations[{PREFIX}/{name}]" for name in ("auth-type", "proxy-body-sise")}
    assert f"the nearest is {PREFIX}/proxy-body-size" in one.proxy.messages(manifest)
    assert "nginx.ingress" not in one.proxy.messages(manifest)


async def test_the_last_good_version_stays_in_force(one: World) -> None:
    one.proxy.apply(written("/app(/|$)(.*)", rewrite_target="/$2", auth_type="basic", auth_secret="users"))
    one.proxy.apply(secret("users", auth="ada:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M="))
    assert await one.proxy.status("/app/x") == 401
    one.proxy.apply(written("/app(/|$)(.*)", rewrite_target="/$2", auth_type="nonsense", auth_secret="users"))
    assert await one.proxy.status("/app/x") == 401


def test_the_webhook_is_told_of_annotations_as_they_are_written() -> None:
    def judged(manifest: Any) -> Opinion:
        translation = Translation(DIALECTS, SETTINGS)
        translation.activate("a")
        return examine(translation, Proposal(ref=ref_of(manifest), object=manifest))

    fields = [finding.problem.field for finding in judged(written(auth_type="nonsense")).findings]
    assert f"metadata.annotations[{PREFIX}/auth-type]" in fields


def test_a_version_that_is_written_down_is_read_as_it_was() -> None:
    stored = with_prefix(STORED, PREFIX)
    form = stored.read(written(rewrite_target="/x"))
    assert stored.restore is not None
    assert stored.read(stored.restore(form)) == form
    assert b"rewrite-target" in form.content
