"""One question to several tables: any may refuse, and one that is silent is dealt with as the settings say."""

import json
from typing import Any, Literal

from fakes.kubernetes.admission_reviews import review
from fakes.kubernetes.objects import config_map
from headgate.common.admission import Basis, Finding, Opinion, Outcome, Proposal
from headgate.common.errors import NoAnswer
from headgate.common.problems import Problem, Severity
from headgate.common.resources import CONFIG_MAP, INGRESS, JsonObject, ResourceKind
from headgate.common.sealing import Sealer
from headgate.watcher.admission.admit import Admission, Ask
from headgate.watcher.admission.question import Scope
from headgate.watcher.admission.review import parse_review
from headgate.watcher.admission.selector import parse_selector
from headgate.watcher.admission.verdict import AdmissionPolicy, AdmissionVerdict

CONTENT, FOREIGN = Opinion(outcome=Outcome.JUDGED), Opinion(outcome=Outcome.FOREIGN)


def finding(message: str, basis: Basis = Basis.CONFLICT, severity: Severity = Severity.ERROR) -> Finding:
    return Finding(problem=Problem(severity=severity, reason="Bad", field="spec", message=message), basis=basis)


def judged(*findings: Finding) -> Opinion:
    return Opinion(outcome=Outcome.JUDGED, findings=findings)


def says(opinion: Opinion | None) -> Ask:
    async def ask(proposal: Proposal, within_s: float) -> Opinion:
        if opinion is None:
            raise NoAnswer("no translator listens")
        return opinion

    return ask


async def decide(on_failure: Literal["ignore", "fail"] = "ignore", **opinions: Opinion | None) -> AdmissionVerdict:
    scope = Scope("paris", frozenset(), parse_selector(""), Sealer("paris", ()))
    asks = {table: says(opinion) for table, opinion in opinions.items()}
    request = parse_review(json.dumps(review(web())).encode())
    return await Admission(scope, AdmissionPolicy(on_failure, "warn"), asks).decide(request, 1.0)


def web() -> Any:
    metadata = {"name": "web", "namespace": "shop"}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata, "spec": {}}


def refusal(verdict: AdmissionVerdict) -> str:
    assert verdict.refusal is not None
    return verdict.refusal.message


async def test_a_table_is_told_what_the_object_would_be_the_first_to_name() -> None:
    told: list[Proposal] = []

    async def ask(proposal: Proposal, within_s: float) -> Opinion:
        told.append(proposal)
        return CONTENT

    async def find(kind: ResourceKind, manifest: JsonObject) -> list[tuple[ResourceKind, JsonObject]]:
        return [(CONFIG_MAP, config_map("headers", "shop"))] if (kind, manifest["kind"]) == (INGRESS, "Ingress") else []

    scope = Scope("paris", frozenset(), parse_selector(""), Sealer("paris", ()))
    admission = Admission(scope, AdmissionPolicy("ignore", "deny"), {"default": ask}, find)
    await admission.decide(parse_review(json.dumps(review(web())).encode()), 1.0)
    assert [one.ref.name for one in told[0].named] == ["headers"]


async def test_an_object_is_refused_if_any_table_refuses_it() -> None:
    found = judged(finding("path / is taken"))
    assert refusal(await decide(default=CONTENT, tenant=found)) == (
        "Ingress shop/web: spec: table tenant: path / is taken [Bad]"
    )
    assert refusal(await decide(default=found, tenant=CONTENT)) == "Ingress shop/web: spec: path / is taken [Bad]"


async def test_tables_that_do_not_select_an_object_have_nothing_to_say() -> None:
    assert await decide(default=FOREIGN, tenant=FOREIGN) == AdmissionVerdict()
    assert await decide("fail", default=FOREIGN, tenant=CONTENT) == AdmissionVerdict()


async def test_what_is_wrong_with_the_object_itself_is_said_once() -> None:
    found = judged(finding("must be a host", Basis.OWN))
    assert refusal(await decide(default=found, tenant=found)) == "Ingress shop/web: spec: must be a host [Bad]"


async def test_a_table_without_a_translator_is_warned_of_and_the_others_are_heard() -> None:
    odd = judged(finding("no Service x", Basis.REFERENCE, Severity.WARNING))
    assert (await decide(default=odd, tenant=None)).warnings == (
        "Ingress shop/web was not checked by Headgate: table tenant: no translator listens",
        "Ingress shop/web: spec: no Service x [Bad]",
    )
    assert "is taken" in refusal(await decide(default=judged(finding("is taken")), tenant=None))


async def test_where_nothing_is_let_in_unchecked_every_table_has_to_answer() -> None:
    verdict = await decide("fail", default=CONTENT, tenant=None)
    assert verdict.refusal is not None
    assert (verdict.refusal.code, "table tenant: no translator listens" in verdict.refusal.message) == (503, True)
