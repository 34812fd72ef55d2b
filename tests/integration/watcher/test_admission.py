"""The webhook as it runs: an API server's reviews over TLS to a watcher, and over NATS to a translator."""

import asyncio
import base64
import json
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from fakes.gateway.ports import free_ports
from fakes.gateway.tls import Authority, SelfSigned
from fakes.kubernetes.admission_reviews import NAME, WebhookClient, review
from fakes.kubernetes.api import FakeKubernetes
from fakes.kubernetes.objects import endpoint_slice, ingress, secret, service
from fakes.service_process import running_service
from fakes.stores.nats import real_nats
from fakes.translator.apisix import resource, route, rule
from headgate.common.sealing import load_or_create_key_pair

RECORDED = Path(__file__).parents[2] / "fixtures" / "kubernetes"
BOUND_S = 30.0


def recorded(name: str) -> Any:
    """What an API server answered: one JSON text, or one for each line of a watch."""
    return json.loads((RECORDED / f"{name}.json").read_text())


@dataclass
class Webhook:
    """What a test talks to."""

    api: FakeKubernetes
    client: WebhookClient
    translator: asyncio.subprocess.Process
    nats_url: str

    async def authors(self) -> dict[str, str]:
        """Who changed what, by the names of objects, as `headgate events` says."""
        asked = (sys.executable, "-m", "headgate.cli", "events", "--json", f"--nats-url={self.nats_url}")
        process = await asyncio.create_subprocess_exec(*asked, stdout=asyncio.subprocess.PIPE)
        out, _ = await process.communicate()
        return {one["name"]: one["by"] for one in map(json.loads, out.splitlines())}

    async def review(self, sent: Any, query: str = "?timeout=10s") -> Any:
        return await self.client.review(sent, query)

    async def until(self, sent: Any, condition: Callable[[Any], bool]) -> Any:
        """Send a review until its answer is as it should be: changes take a moment to arrive."""
        response: Any = None
        try:
            async with asyncio.timeout(BOUND_S):
                while True:
                    try:
                        response = await self.review(sent)
                    except OSError:
                        pass  # it is still starting
                    else:
                        if condition(response):
                            return response
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"not within {BOUND_S} s; last: {response}") from None


def is_denied(response: Any) -> bool:
    return not response["allowed"]


def is_judged(response: Any) -> bool:
    return is_denied(response) and response["status"]["code"] == 422


def message(response: Any) -> str:
    return str(response["status"]["message"])


@asynccontextmanager
async def webhook(
    folder: Path, *flags: str, prepare: Callable[[FakeKubernetes], None] = lambda api: None
) -> AsyncIterator[Webhook]:
    """Run everything, with the Service `web`, one endpoint of it, and what the test applies to the API server."""
    load_or_create_key_pair(folder / "data")
    authority = Authority()
    chain, key = authority.issue(NAME, x509.DNSName(NAME)).write(folder)
    port = free_ports(1)[0]
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(FakeKubernetes())
        _, url = await stack.enter_async_context(real_nats())
        api.apply(service("web"))
        api.apply(endpoint_slice("web-1", "10.0.0.1") | {"ports": [{"port": 8080}]})
        prepare(api)
        config = api.write_kubeconfig(folder / "config")

        async def run(name: str, *own: str) -> asyncio.subprocess.Process:
            log = folder / f"{name}.log"
            return await stack.enter_async_context(
                running_service(name, f"--nats-url={url}", *own, log=log, is_ended_orderly=True)
            )

        translator = await run("translator", f"--data-dir={folder}")
        hook = (f"--admission-port={port}", f"--admission-certificate-file={chain}", f"--admission-key-file={key}")
        await run("watcher", f"--kubeconfig={config}", f"--data-dir={folder / 'data'}", *hook, *flags)
        yield Webhook(api, WebhookClient(port, authority), translator, url)


async def test_the_author_of_a_change_is_the_user_that_the_review_named(tmp_path: Path) -> None:
    async with webhook(tmp_path) as hook:
        await hook.until(review(ingress("rehearsed"), dryRun=True), lambda response: response["allowed"])
        await hook.review(review(ingress("told")))
        for name in ("told", "untold", "rehearsed"):
            hook.api.apply(ingress(name))
        async with asyncio.timeout(BOUND_S):
            while not {"told", "untold", "rehearsed"} <= (authors := await hook.authors()).keys():
                pass  # each look takes a while
        assert authors["told"] == "system:serviceaccount:ci:deployer"
        assert "system:serviceaccount:ci:deployer" not in (authors["untold"], authors["rehearsed"])


async def test_a_secret_that_an_object_would_be_the_first_to_name_is_known(tmp_path: Path) -> None:
    def guarded(name: str) -> Any:
        nginx = "nginx.ingress.kubernetes.io"
        return ingress("web", annotations={f"{nginx}/auth-type": "basic", f"{nginx}/auth-secret": name})

    def prepare(api: FakeKubernetes) -> None:
        users = base64.b64encode(b"ada:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=").decode()
        api.apply({**secret("users", "Opaque"), "data": {"auth": users}})

    async with webhook(tmp_path, "--admission-missing-references=deny", prepare=prepare) as hook:
        refused = await hook.until(review(guarded("missing")), is_judged)
        assert "Secret default/missing is not there" in message(refused)
        response = await hook.review(review(guarded("users")))
        assert (response["allowed"], response.get("warnings")) == (True, None)


async def test_objects_are_judged_as_the_translator_would_translate_them(tmp_path: Path) -> None:
    async with webhook(tmp_path) as hook:
        owner = hook.api.apply(ingress("owner", host="taken.test"))
        rival = ingress("rival", host="taken.test", namespace="shop")
        refused = await hook.until(review(rival), is_denied)
        assert refused["uid"] == review(rival)["request"]["uid"]
        assert refused["status"]["code"] == 422
        assert message(refused).startswith("Ingress shop/rival: spec.rules[0].http.paths[0].path: ")
        assert "is owned by Ingress default/owner in cluster local" in message(refused)

        assert await hook.review(review(ingress("free"))) == {"uid": refused["uid"], "allowed": True}

        two_faults = ingress("bad", host="Bad_Host")
        two_faults["spec"]["rules"].append({"host": "ok.test", "http": {"paths": [{"path": "x", "pathType": "Exact"}]}})
        lines = message(await hook.review(review(two_faults))).splitlines()
        assert lines[0] == "3 faults"
        assert [line.split(": ")[1] for line in lines[1:]] == [
            "spec.rules[0].host",
            "spec.rules[1].http.paths[0].path",
            "spec.rules[1].http.paths[0].backend",
        ]

        slip = ingress("slip", annotations={"headgate.dev/retrys": "2"})
        assert "the nearest is headgate.dev/retries" in (await hook.review(review(slip)))["warnings"][0]

        pattern = ingress("pattern", annotations={"headgate.dev/match-headers": "x-user~(?=a)"})
        assert "headgate.dev/match-headers" in message(await hook.review(review(pattern)))

        orphan = ingress("orphan", host="orphan.test")
        orphan["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]["name"] = "missing"
        response = await hook.review(review(orphan))
        assert response["allowed"]
        assert "Service default/missing not found" in response["warnings"][0]

        foreign = ingress("foreign", host="taken.test")
        foreign["spec"]["ingressClassName"] = "nginx"
        assert (await hook.review(review(foreign)))["allowed"]

        moved = ingress("owner", host="Bad_Host")
        moved["metadata"] |= {key: owner["metadata"][key] for key in ("uid", "creationTimestamp")}
        assert is_denied(await hook.review(review(moved, owner)))
        assert is_denied(await hook.review(review(moved, owner, dryRun=True)))
        assert (await hook.review(review(None, owner, operation="DELETE")))["allowed"]


async def test_resources_of_apisix_are_judged_as_they_would_be_translated(tmp_path: Path) -> None:
    wrong = [{"name": "limit-count", "enable": True, "config": {"count": -1, "time_window": 1}}]
    parameter = {"authParameter": {"keyAuth": {"value": {"key": "never-shown"}}}}
    async with webhook(tmp_path) as hook:
        refused = await hook.until(review(route(rule(plugins=wrong))), is_judged)
        assert message(refused).startswith("ApisixRoute default/route: spec.http[0].plugins[0].config.count: ")
        assert "plugin limit-count" in message(refused)
        good = route(rule())
        assert await hook.review(review(good)) == {"uid": refused["uid"], "allowed": True}
        assert is_judged(await hook.review(review(route(rule(plugins=wrong)), good)))
        assert is_judged(await hook.review(review(resource("ApisixPluginConfig", "shared", {"plugins": wrong}))))
        jack = await hook.review(review(resource("ApisixConsumer", "jack", parameter | {"plugins": wrong})))
        assert is_judged(jack)
        assert "never-shown" not in message(jack)
        missing = {
            "Service default/none": route(rule(backends=[{"serviceName": "none", "servicePort": 80}])),
            "Secret default/pair": resource("ApisixTls", "tls", {"hosts": ["a.test"], "secret": {"name": "pair"}}),
            "Secret default/keys": resource(
                "ApisixConsumer", "jill", {"authParameter": {"keyAuth": {"secretRef": {"name": "keys"}}}}
            ),
        }
        for what, manifest in missing.items():
            response = await hook.review(review(manifest))
            assert response["allowed"]
            assert what in response["warnings"][0]


async def test_an_object_that_is_wrong_already_can_be_worked_on(tmp_path: Path) -> None:
    async with webhook(tmp_path) as hook:
        await hook.until(review(ingress("new", host="Bad_Host")), is_denied)
        wrong = hook.api.apply(ingress("wrong", annotations={"headgate.dev/match-headers": "x~("}))
        same_fault = ingress("wrong", host="other.test", annotations={"headgate.dev/match-headers": "x~("})
        response = await hook.review(review(same_fault, wrong))
        assert response["allowed"]
        assert "as before: metadata.annotations[headgate.dev/match-headers]" in response["warnings"][0]
        worse = ingress("wrong", host="Bad_Host", annotations={"headgate.dev/match-headers": "x~("})
        assert is_denied(await hook.review(review(worse, wrong)))
        labelled = ingress("wrong", annotations={"headgate.dev/match-headers": "x~("}, labels={"a": "b"})
        assert await hook.review(review(labelled, wrong)) == {"uid": response["uid"], "allowed": True}


async def test_recorded_objects_pass_and_what_a_real_server_refuses_is_refused(tmp_path: Path) -> None:
    listed = json.loads(recorded("list-all")["body"])["items"]
    watched = [json.loads(line)["object"] for line in recorded("watch-added-modified-deleted")["body"].splitlines()]
    typed = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress"}
    async with webhook(tmp_path) as hook:
        await hook.until(review(ingress("new", host="Bad_Host")), is_denied)
        for manifest in (*(typed | item for item in listed), *watched):
            if "name" in manifest["metadata"]:  # a bookmark has none
                response = await hook.review(review(manifest))
                assert response == {"uid": response["uid"], "allowed": True}, manifest
        kept = json.loads(recorded("watch-added-modified-deleted")["body"].splitlines()[0])["object"]
        assert (await hook.review(review(kept | {"status": {"loadBalancer": {"ingress": []}}}, typed | listed[0])))[
            "allowed"
        ]
        invalid = recorded("invalid-object")
        causes = json.loads(invalid["body"])["details"]["causes"]
        refusal = message(await hook.review(review(invalid["request"]["body"])))
        for cause in causes:
            assert cause["field"] in refusal


async def test_a_secret_in_use_is_checked_and_never_leaves_the_watcher_readable(tmp_path: Path) -> None:
    async with webhook(tmp_path) as hook:
        good, other = SelfSigned("tls.test"), SelfSigned("tls.test")
        manifest = good.secret("default", "cert")
        user = ingress("user", host="tls.test")
        user["spec"]["tls"] = [{"hosts": ["tls.test"], "secretName": "cert"}]
        hook.api.apply(manifest)
        hook.api.apply(user)
        broken = good.secret("default", "cert")
        broken["data"]["tls.key"] = other.secret("default", "cert")["data"]["tls.key"]
        refused = await hook.until(review(broken, manifest), is_denied)
        assert "Secret default/cert: data[tls.crt]:" in message(refused)
        assert "tls.key does not belong to the certificate" in message(refused)
        unused = good.secret("default", "unused")
        unused["data"]["tls.key"] = broken["data"]["tls.key"]
        assert (await hook.review(review(unused)))["allowed"]


@pytest.mark.parametrize(("policy", "allowed"), [("ignore", True), ("fail", False)])
async def test_without_a_translator_the_setting_decides(tmp_path: Path, policy: str, allowed: bool) -> None:
    flags = (f"--admission-failure-policy={policy}", "--admission-deadline-s=0.5")
    async with webhook(tmp_path, *flags) as hook:
        before, wrong = ingress("web", host="a.test"), review(ingress("new", host="Bad_Host"))
        await hook.until(wrong, is_judged)
        hook.translator.send_signal(signal.SIGSTOP)
        response = await hook.review(review(before))
        assert response["allowed"] is allowed
        assert "no translator answered within 0.5 s" in json.dumps(response)
        assert (await hook.review(review(ingress("web", host="a.test", labels={"a": "b"}), before)))["allowed"]
        assert (await hook.review(review(service("unrelated"))))["allowed"]
        hook.translator.send_signal(signal.SIGCONT)
        await hook.until(wrong, is_judged)
        hook.translator.terminate()
        await hook.translator.wait()
        response = await hook.review(review(before))
        assert response["allowed"] is allowed
        assert "no translator listens" in json.dumps(response)


async def test_a_cluster_that_is_not_completely_listed_is_not_judged(tmp_path: Path) -> None:
    def hide_services(api: FakeKubernetes) -> None:
        api.faults.status(500, verb="list", resource="services", times=None)

    wrong = review(ingress("new", host="Bad_Host"))
    async with webhook(tmp_path, "--admission-failure-policy=fail", prepare=hide_services) as hook:
        refused = await hook.until(wrong, lambda response: "not completely known" in json.dumps(response))
        assert refused["status"]["code"] == 503
        hook.api.faults.clear()
        await hook.until(wrong, is_judged)
