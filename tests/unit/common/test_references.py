"""Which Secrets and ConfigMaps an object names."""

from typing import Any

import pytest

from headgate.common.resources import ALL_KINDS, APISIX_CONSUMER, APISIX_ROUTE, APISIX_TLS, APISIX_UPSTREAM, INGRESS
from headgate.common.resources.references import Referent, find_referents
from headgate.translator.annotations.nginx import NGINX_ROWS


def named(fields: Any, manifest: dict[str, Any], **more: Any) -> set[tuple[str, str, str]]:
    return set(find_referents(fields, {"metadata": {"namespace": "shop"}, **manifest}, **more))


def annotated(**annotations: str) -> dict[str, Any]:
    names = {f"nginx.ingress.kubernetes.io/{name.replace('_', '-')}": value for name, value in annotations.items()}
    return {"metadata": {"namespace": "shop", "annotations": names}}


@pytest.mark.parametrize(
    ("kind", "spec", "wanted"),
    [
        (
            INGRESS,
            {"tls": [{"secretName": "a"}, {"hosts": ["x"]}, {"secretName": "b"}]},
            {("shop", "a"), ("shop", "b")},
        ),
        (APISIX_TLS, {"secret": {"name": "a", "namespace": "other"}}, {("other", "a")}),
        (APISIX_TLS, {"secret": {"name": "a"}, "client": {"caSecret": {"name": "b"}}}, {("shop", "a"), ("shop", "b")}),
        (APISIX_UPSTREAM, {"portLevelSettings": [{"tlsSecret": {"name": "a"}}]}, {("shop", "a")}),
        (APISIX_ROUTE, {"http": [{"plugins": [{"secretRef": "a", "config": {"secretRef": "b"}}]}]}, {("shop", "a")}),
        (APISIX_CONSUMER, {"authParameter": {"keyAuth": {"secretRef": {"name": "a"}}}}, {("shop", "a")}),
    ],
)
def test_fields_of_kinds_name_secrets(kind: Any, spec: dict[str, Any], wanted: set[tuple[str, str]]) -> None:
    assert named(kind.references, {"spec": spec}) == {("secrets", *place) for place in wanted}


def test_annotations_name_secrets_and_config_maps_of_the_namespace_or_another() -> None:
    manifest = annotated(auth_secret="users", auth_tls_secret="ca/roots", custom_headers=" shop/headers ")
    wanted = {("secrets", "shop", "users"), ("secrets", "ca", "roots"), ("configmaps", "shop", "headers")}
    assert named(INGRESS.references, manifest) == wanted


def test_annotations_are_read_by_their_prefix() -> None:
    manifest = {"metadata": {"namespace": "shop", "annotations": {"team.example/auth-secret": "users"}}}
    assert not named(INGRESS.references, manifest)
    wanted = {Referent("secrets", "shop", "users")}
    assert named(INGRESS.references, manifest, nginx_prefix="team.example") == wanted


@pytest.mark.parametrize(
    "value", ["", "/", "a/b/c", "Users", "a,type!=x", "a b", "x" * 300, 7, None, ["a"], {"name": 7}]
)
def test_what_can_be_no_name_names_nothing(value: Any) -> None:
    assert not named(INGRESS.references, annotated(auth_secret=value))
    assert not named(APISIX_TLS.references, {"spec": {"secret": value}})


@pytest.mark.parametrize("kind", list(ALL_KINDS), ids=str)
@pytest.mark.parametrize("junk", [None, 7, "text", ["a"], {"a": "b"}])
def test_objects_of_any_form_are_read(kind: Any, junk: Any) -> None:
    metadata = {"namespace": "shop", "annotations": junk}
    assert not named(kind.references, {"metadata": metadata, "spec": junk, "data": junk})


def test_every_annotation_of_ingress_nginx_that_names_an_object_is_declared() -> None:
    declared = {field.path[-1].partition("/")[2] for field in INGRESS.references if len(field.path) == 3}
    naming = {row.name for row in NGINX_ROWS if row.sets and ("Secret" in row.value or "ConfigMap" in row.value)}
    assert naming == declared - {"client-auth-secret", "secretName", ""}
