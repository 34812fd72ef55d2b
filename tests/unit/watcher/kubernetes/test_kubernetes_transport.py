"""Which server is talked to, as whom, and what becomes of errors."""

import asyncio
import base64
import json
import ssl
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509

from fakes.gateway.tls import Authority, SelfSigned
from fakes.kubernetes.api import FakeKubernetes
from fakes.kubernetes.objects import service
from fakes.virtual_time import in_virtual_time
from headgate.watcher.api.transport import KubernetesTransport
from headgate.watcher.errors import Absent, ApiUnreachable, ApiUntrusted, ClusterConfigError, Unauthorized


@asynccontextmanager
async def transport(kubeconfig: Path | None, context: str | None = None) -> AsyncIterator[KubernetesTransport]:
    opened = KubernetesTransport(kubeconfig, context)
    try:
        yield opened
    finally:
        await opened.close()


async def ask(to: KubernetesTransport) -> bytes:
    return await to.request("GET", "/api/v1/services")


# Configuration


async def test_the_current_context_is_used_unless_another_is_named(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        config = api.write_kubeconfig(tmp_path / "config")
        async with transport(config) as there, transport(config, "nowhere") as nowhere:
            assert b"ServiceList" in await ask(there)
            with pytest.raises(ApiUnreachable):
                await ask(nowhere)


async def test_a_context_that_does_not_exist_is_named(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, transport(api.write_kubeconfig(tmp_path / "config"), "staging") as named:
        with pytest.raises(ClusterConfigError, match="context staging"):
            await named.prepare()


@pytest.mark.parametrize("content", ["", "{", "[]", "contexts: []\ncurrent-context: a\n", "just text"])
async def test_a_malformed_kubeconfig_is_named(content: str, tmp_path: Path) -> None:
    (tmp_path / "config").write_text(content)
    async with transport(tmp_path / "config") as broken:
        with pytest.raises(ClusterConfigError, match=str(tmp_path / "config")):
            await broken.prepare()


async def test_a_missing_kubeconfig_says_what_to_do(tmp_path: Path) -> None:
    async with transport(tmp_path / "none") as missing:
        with pytest.raises(ClusterConfigError, match="no such file; give --kubeconfig FILE or set KUBECONFIG"):
            await missing.prepare()


async def test_kubeconfig_of_the_environment_may_be_several_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with FakeKubernetes() as api:
        whole = yaml.safe_load(api.write_kubeconfig(tmp_path / "whole").read_text())
        users = {"apiVersion": "v1", "kind": "Config", "users": whole.pop("users")}
        (tmp_path / "one").write_text(yaml.safe_dump(whole))
        (tmp_path / "two").write_text(yaml.safe_dump(users))
        monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'one'}:{tmp_path / 'two'}")
        async with transport(None) as found:
            assert b"ServiceList" in await ask(found)


async def test_outside_of_a_pod_and_without_a_kubeconfig_it_is_said_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    async with transport(None) as lost:
        with pytest.raises(ClusterConfigError, match="give --kubeconfig FILE or set KUBECONFIG"):
            await lost.prepare()


# Identity


def tls_server(certificate: SelfSigned, folder: Path) -> ssl.SSLContext:
    (folder / "server.pem").write_bytes(certificate.certificate_pem + certificate.key_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    return context


def trust(certificate: SelfSigned) -> dict[str, Any]:
    data = base64.b64encode(certificate.certificate_pem).decode()
    return {"certificate-authority-data": data, "tls-server-name": "api.test"}


async def test_the_server_must_have_a_certificate_of_the_named_authority(tmp_path: Path) -> None:
    ours, other = SelfSigned("api.test"), SelfSigned("api.test")
    async with FakeKubernetes(tls=tls_server(ours, tmp_path)) as api:
        good = api.write_kubeconfig(tmp_path / "good", cluster=trust(ours))
        bad = api.write_kubeconfig(tmp_path / "bad", cluster=trust(other))
        async with transport(good) as trusting, transport(bad) as distrusting:
            assert b"ServiceList" in await ask(trusting)
            with pytest.raises(
                ApiUntrusted, match=r"not trusted: self.signed certificate; it was issued by .CN=api\.test"
            ):
                await ask(distrusting)


async def test_a_certificate_that_does_not_name_its_signer_is_trusted_on_all_versions_of_python(tmp_path: Path) -> None:
    authority = Authority()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issued = authority.issue("api.test", x509.DNSName("api.test"), names_signer=False)
    context.load_cert_chain(*issued.write(tmp_path))
    cluster = {
        "certificate-authority-data": base64.b64encode(authority.pem).decode(),
        "tls-server-name": "api.test",
    }
    async with (
        FakeKubernetes(tls=context) as api,
        transport(api.write_kubeconfig(tmp_path / "config", cluster=cluster)) as to,
    ):
        assert b"ServiceList" in await ask(to)


async def test_a_client_certificate_is_shown(tmp_path: Path) -> None:
    server, client = SelfSigned("api.test"), SelfSigned("watcher")
    context = tls_server(server, tmp_path)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=client.certificate_pem.decode())
    async with FakeKubernetes(tls=context) as api:
        api.token = ""
        user = {
            "client-certificate-data": base64.b64encode(client.certificate_pem).decode(),
            "client-key-data": base64.b64encode(client.key_pem).decode(),
        }
        known = api.write_kubeconfig(tmp_path / "known", user=user, cluster=trust(server))
        unknown = api.write_kubeconfig(tmp_path / "unknown", user={"token": "any"}, cluster=trust(server))
        async with transport(known) as shown, transport(unknown) as hidden:
            assert b"ServiceList" in await ask(shown)
            with pytest.raises(ApiUnreachable):
                await ask(hidden)


@in_virtual_time
async def test_a_rotated_token_file_is_used_within_a_minute(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        (tmp_path / "token").write_text("let-me-in\n")
        config = api.write_kubeconfig(tmp_path / "config", user={"tokenFile": str(tmp_path / "token")})
        async with transport(config) as rotating:
            await ask(rotating)
            (tmp_path / "token").write_text("the-next")
            await asyncio.sleep(61)
            api.token = "the-next"
            await ask(rotating)


@in_virtual_time
async def test_a_refused_token_is_read_again_at_once(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        (tmp_path / "token").write_text("let-me-in")
        config = api.write_kubeconfig(tmp_path / "config", user={"tokenFile": str(tmp_path / "token")})
        async with transport(config) as rotating:
            await ask(rotating)
            await asyncio.sleep(10)
            (tmp_path / "token").write_text("the-next")
            api.token = "the-next"
            with pytest.raises(Unauthorized):
                await ask(rotating)
            await ask(rotating)


@in_virtual_time
async def test_a_kubeconfig_that_breaks_while_running_leaves_the_last_good_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with FakeKubernetes() as api:
        config = api.write_kubeconfig(tmp_path / "config")
        async with transport(config) as going_on:
            await ask(going_on)
            config.write_text("{")
            await asyncio.sleep(61)
            await ask(going_on)
            assert "going on with what was read before" in caplog.text


@in_virtual_time
async def test_a_server_that_moves_is_found_when_the_kubeconfig_says_so(tmp_path: Path) -> None:
    async with FakeKubernetes() as old, FakeKubernetes() as new:
        config = old.write_kubeconfig(tmp_path / "config")
        async with transport(config) as moving:
            await ask(moving)
            new.write_kubeconfig(config)
            await asyncio.sleep(61)
            await ask(moving)
            assert len(new.requests) == 1


async def test_an_exec_plugin_that_asks_for_its_cluster_is_told(tmp_path: Path) -> None:
    plugin = tmp_path / "plugin.py"
    plugin.write_text(
        "import json, os, pathlib\n"
        f"pathlib.Path({str(tmp_path / 'told')!r}).write_text(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "kind = {'apiVersion': 'client.authentication.k8s.io/v1', 'kind': 'ExecCredential'}\n"
        "print(json.dumps({**kind, 'status': {'token': 'let-me-in'}}))\n"
    )
    run = {"apiVersion": "client.authentication.k8s.io/v1", "command": sys.executable, "args": [str(plugin)]}
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "paris"}}
    async with FakeKubernetes() as api:
        for asks in (True, False):
            config = api.write_kubeconfig(
                tmp_path / "config",
                user={"exec": {**run, "provideClusterInfo": asks}},
                cluster={"extensions": [extension]},
            )
            async with transport(config) as plugged:
                await ask(plugged)
            spec = json.loads((tmp_path / "told").read_text())["spec"]
            told = {"server": api.url, "config": {"audience": "paris"}}
            assert spec.get("cluster") == (told if asks else None)


@in_virtual_time
async def test_an_exec_plugin_runs_once_for_a_token_that_does_not_expire_soon(tmp_path: Path) -> None:
    plugin = tmp_path / "plugin.py"
    plugin.write_text(
        "import json, pathlib\n"
        f"log = pathlib.Path({str(tmp_path / 'runs')!r})\n"
        "log.write_text(log.read_text() + 'x' if log.exists() else 'x')\n"
        "status = {'token': 'let-me-in', 'expirationTimestamp': '2999-01-01T00:00:00Z'}\n"
        "kind = {'apiVersion': 'client.authentication.k8s.io/v1', 'kind': 'ExecCredential'}\n"
        "print(json.dumps({**kind, 'status': status}))\n"
    )
    run = {"apiVersion": "client.authentication.k8s.io/v1", "command": sys.executable, "args": [str(plugin)]}
    async with (
        FakeKubernetes() as api,
        transport(api.write_kubeconfig(tmp_path / "config", user={"exec": run})) as plugged,
    ):
        await ask(plugged)
        await asyncio.sleep(100)
        await ask(plugged)
        assert (tmp_path / "runs").read_text() == "x"
        api.token = "another"
        await asyncio.sleep(10)
        with pytest.raises(Unauthorized):
            await ask(plugged)
        with pytest.raises(Unauthorized):
            await ask(plugged)
        assert (tmp_path / "runs").read_text() == "xx"


async def test_a_service_account_is_used_in_a_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kubernetes_asyncio.config import incluster_config

    certificate = SelfSigned("localhost")
    (tmp_path / "token").write_text("let-me-in\n")
    (tmp_path / "ca.crt").write_bytes(certificate.certificate_pem)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    async with FakeKubernetes(tls=tls_server(certificate, tmp_path)) as api:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "localhost")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", api.url.rsplit(":", 1)[1])
        async with transport(None) as pod:
            await pod.prepare()
            assert b"ServiceList" in await ask(pod)


# Errors


async def test_errors_of_the_server_are_ours(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, transport(api.write_kubeconfig(tmp_path / "config")) as to:
        with pytest.raises(Absent, match="404 NotFound: services"):
            await to.request("GET", "/api/v1/namespaces/default/services/gone")
        with pytest.raises(Absent, match="404: 404 page not found"):
            await to.request("GET", "/apis/apisix.apache.org/v2/apisixroutes")


async def test_a_reset_in_the_middle_of_an_answer_is_no_answer(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, transport(api.write_kubeconfig(tmp_path / "config")) as to:
        api.apply(service("web"))
        api.faults.reset(b'{"kind":"Serv', verb="list")
        with pytest.raises(ApiUnreachable, match="broke off"):
            await ask(to)


@in_virtual_time
async def test_a_request_that_is_not_answered_ends(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, transport(api.write_kubeconfig(tmp_path / "config")) as to:
        api.faults.hang(verb="list")
        with pytest.raises(ApiUnreachable):
            await ask(to)
        assert asyncio.get_running_loop().time() < 80


async def test_a_key_on_disk_can_be_read_by_nobody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    client = SelfSigned("watcher")
    user = {
        "client-certificate-data": base64.b64encode(client.certificate_pem).decode(),
        "client-key-data": base64.b64encode(client.key_pem).decode(),
    }
    async with FakeKubernetes(tls=tls_server(SelfSigned("api.test"), tmp_path)) as api:
        async with transport(api.write_kubeconfig(tmp_path / "config", user=user)) as to:
            await to.prepare()
        assert all((file.stat().st_mode & 0o077) == 0 for file in (tmp_path / "tmp").iterdir())
