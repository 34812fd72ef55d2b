"""`headgate audit` of Traefik's static configuration: as a file, as a workload, as values of its chart."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from headgate.cli.offline.auditing import audit_paths
from headgate.translator.manifests.verdicts import Verdict
from headgate.translator.settings import TranslatorSettings

FILE = """
entryPoints:
  web:
    address: ":80"
    http: {redirections: {entryPoint: {to: websecure}}}
  websecure:
    address: ":443"
    http: {tls: {}, middlewares: ["default-auth@kubernetescrd"]}
    forwardedHeaders: {trustedIPs: [10.0.0.0/8]}
    transport: {lifeCycle: {graceTimeOut: 10s}}
  traefik: {address: ":8080"}
providers:
  kubernetesCRD: {allowCrossNamespace: true, namespaces: [shop, team]}
  docker: {}
certificatesResolvers:
  myLE:
    acme: {email: a@example.com, storage: /acme.json, httpChallenge: {entryPoint: web}}
  staging:
    acme:
      caServer: https://acme-staging-v02.api.letsencrypt.org/directory
      tlsChallenge: {}
  wild: {acme: {caServer: "https://ca.example.com/dir", dnsChallenge: {provider: route53}, keyType: RSA4096}}
  net: {tailscale: {}}
"""
TOML = """
[entryPoints.db]
address = ":5432"
[entryPoints.dns]
address = ":53/udp"
[core]
defaultRuleSyntax = "v2"
[providers.kubernetesCRD]
"""
ARGUMENTS = [
    "--entryPoints.web.address=:8000/tcp",
    "--entrypoints.admin.address=:9000",
    "--entrypoints.admin.asDefault=true",
    "--entrypoints.admin.proxyProtocol.trustedIPs=10.0.0.1,10.0.0.2",
    "--providers.kubernetescrd.allowExternalNameServices=true",
    "--providers.kubernetesingress",
    "--api.dashboard=true",
]
WORKLOAD = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "traefik"},
    "spec": {
        "template": {
            "spec": {
                "containers": [
                    {
                        "name": "traefik",
                        "image": "docker.io/traefik:v3.7",
                        "args": ARGUMENTS,
                        "env": [{"name": "TRAEFIK_PROVIDERS_KUBERNETESCRD_INGRESSCLASS", "value": "edge"}],
                    }
                ]
            }
        }
    },
}
VALUES = """
ports:
  web: {port: 8000, exposedPort: 80, http: {redirections: {entryPoint: {to: websecure, permanent: true}}}}
  websecure: {port: 8443, exposedPort: 443, http: {tls: {enabled: true}}}
  dns: {port: 5353, exposedPort: 53, protocol: UDP}
  traefik: {port: 8080}
providers: {kubernetesCRD: {enabled: true, allowEmptyServices: true, nativeLBByDefault: true}}
additionalArguments: ["--core.defaultRuleSyntax=v2"]
"""
REDIRECT = {"redirections": {"entryPoint": {"to": "websecure"}}}


def said(tmp_path: Path, text: str, name: str = "traefik.yaml") -> dict[str, Any]:
    """Return what is said of each part: its verdict and note."""
    path = tmp_path / name
    path.write_text(text)
    report = audit_paths([path])
    assert report.unreadable == []
    (audited,) = report.found
    return {one.name: (one.verdict, one.note) for one in audited.said}


def entry_points(found: dict[str, Any]) -> Any:
    """Return the setting of entry points, which the translator takes."""
    verdict, note = found["entrypoints"]
    assert verdict is Verdict.HONOURED, note
    written = note.removeprefix("HEADGATE_ENTRYPOINTS=").removesuffix(" for the translator")
    read = json.loads(written) if written.startswith("{") else written.split(",")
    assert TranslatorSettings(entrypoints=read).translation.entry_points
    return read


def test_a_file_says_its_entry_points_in_one_setting(tmp_path: Path) -> None:
    found = said(tmp_path, FILE)
    assert entry_points(found) == {
        "web": {"http": REDIRECT},
        "websecure": {
            "http": {"tls": {}, "middlewares": ["default-auth@kubernetescrd"]},
            "forwardedHeaders": {"trustedIPs": ["10.0.0.0/8"]},
        },
    }


@pytest.mark.parametrize(
    ("name", "verdict", "note"),
    [
        (
            "providers.kubernetescrd.allowcrossnamespace",
            Verdict.HONOURED,
            "HEADGATE_TRAEFIK_ALLOW_CROSS_NAMESPACE=true for the translator",
        ),
        (
            "providers.kubernetescrd.namespaces",
            Verdict.HONOURED,
            "HEADGATE_TRAEFIK_NAMESPACES=shop,team for the translator",
        ),
        ("providers.docker", Verdict.IGNORED, "objects of this provider are not read"),
        ("certificatesresolvers.myle.acme.storage", Verdict.IGNORED, "in the log"),
        ("certificatesresolvers.myle.acme.httpchallenge.entrypoint", Verdict.IGNORED, "its own port"),
        ("certificatesresolvers.wild.acme.dnschallenge.provider", Verdict.IGNORED, "a command of yours"),
        ("certificatesresolvers.wild.acme.keytype", Verdict.IGNORED, "P-256"),
        ("certificatesresolvers.net.tailscale", Verdict.IGNORED, "ACME alone"),
        ("entrypoints.websecure.transport.lifecycle.gracetimeout", Verdict.IGNORED, "it has no effect here"),
        ("entrypoints.traefik.address", Verdict.IGNORED, "admin site"),
    ],
)
def test_every_part_of_a_file_has_a_verdict(tmp_path: Path, name: str, verdict: Verdict, note: str) -> None:
    found = said(tmp_path, FILE)[name]
    assert found[0] is verdict
    assert note in found[1]


def test_resolvers_are_said_in_one_setting(tmp_path: Path) -> None:
    verdict, note = said(tmp_path, FILE)["certificatesresolvers"]
    assert verdict is Verdict.HONOURED
    written = json.loads(note.removeprefix("HEADGATE_ACME=").removesuffix(" for the translator"))
    assert written == {
        "myLE": {"email": "a@example.com", "challenge": "http-01"},
        "staging": {"directory": "letsencrypt-staging", "challenge": "tls-alpn-01"},
        "wild": {"directory": "https://ca.example.com/dir", "challenge": "dns-01", "dns_command": ["COMMAND"]},
    }
    assert set(TranslatorSettings(acme=written).resolvers) == set(written)


def test_resolvers_of_arguments_have_names_in_lower_case(tmp_path: Path) -> None:
    container = WORKLOAD["spec"]["template"]["spec"]["containers"][0]  # type: ignore[index]
    arguments = ["--certificatesResolvers.myLE.acme.email=a@b.c", "--certificatesresolvers.myle.acme.tlschallenge"]
    manifest = {**WORKLOAD, "spec": {"template": {"spec": {"containers": [{**container, "args": arguments}]}}}}
    note = said(tmp_path, yaml.safe_dump(manifest))["certificatesresolvers"][1]
    assert 'HEADGATE_ACME={"myle":{"email":"a@b.c","challenge":"tls-alpn-01"}}' in note


def test_a_file_may_be_toml(tmp_path: Path) -> None:
    found = said(tmp_path, TOML, "traefik.toml")
    assert entry_points(found) == ["db=5432", "dns=53/udp"]
    assert found["core.defaultrulesyntax"][1] == "HEADGATE_TRAEFIK_DEFAULT_RULE_SYNTAX=v2 for the translator"


def test_a_workload_says_it_by_arguments_and_variables(tmp_path: Path) -> None:
    found = said(tmp_path, yaml.safe_dump(WORKLOAD))
    assert entry_points(found) == {
        "admin": {"address": ":9000", "asDefault": "true", "proxyProtocol": {"trustedIPs": ["10.0.0.1", "10.0.0.2"]}}
    }
    assert found["providers.kubernetescrd.ingressclass"][1] == "HEADGATE_TRAEFIK_INGRESS_CLASS=edge for the translator"
    assert "traefik.io/ingress-controller" in found["providers.kubernetesingress"][1]
    assert found["api.dashboard"][0] is Verdict.IGNORED


def test_values_of_the_chart_are_read(tmp_path: Path) -> None:
    found = said(tmp_path, VALUES)
    redirect = {"redirections": {"entryPoint": {"to": "websecure", "permanent": True}}}
    expected = {"web": {"http": redirect}, "websecure": {"http": {"tls": {}}}, "dns": {"address": ":5353/udp"}}
    assert entry_points(found) == expected
    assert found["core.defaultrulesyntax"][0] is Verdict.HONOURED
    assert found["providers.kubernetescrd.nativelbbydefault"][0] is Verdict.HONOURED


def test_entry_points_that_cannot_be_had_are_named(tmp_path: Path) -> None:
    found = said(tmp_path, "entryPoints: {a: {address: ':1'}, b: {address: ':1'}}")
    assert found["entrypoints"] == (Verdict.REFUSED, "b has the port of a: give each a port of its own")


def test_a_workload_of_something_else_says_nothing(tmp_path: Path) -> None:
    other = yaml.safe_dump(WORKLOAD).replace("docker.io/traefik:v3.7", "docker.io/whoami")
    (tmp_path / "other.yaml").write_text(other)
    assert audit_paths([tmp_path / "other.yaml"]).found == []
