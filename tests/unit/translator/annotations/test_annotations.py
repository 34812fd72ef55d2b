"""Annotations: how values are read, what is said of those that cannot be, and that the page is current."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.translator.deltas import applied, deleted, ingress, service, tls_secret
from headgate.common.resources import ObjectRef
from headgate.common.snapshot import decode_chunk
from headgate.common.table import ClientAuth, Operator, StreamRoute, TableEntry, TlsPolicy, Upstream, VirtualHost
from headgate.translator.annotations import INGRESS_ANNOTATIONS, SERVICE_ANNOTATIONS, Annotation
from headgate.translator.annotations.page import write_page
from headgate.translator.composition import DIALECTS
from headgate.translator.manifests import texts
from headgate.translator.offline import Offline, translate_all
from headgate.translator.translation import Translation
from headgate.translator.world.settings import TranslationSettings

PAGE = Path(__file__).parents[4] / "docs" / "annotations.md"
ALL = (*INGRESS_ANNOTATIONS, *SERVICE_ANNOTATIONS)
IN_PEM = {"client-auth-ca", "client-auth-crl", "backend-tls-ca"}


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == write_page(), "python -m headgate.translator.annotations.page > docs/annotations.md"


def test_names_are_told_apart() -> None:
    assert len({annotation.name for annotation in ALL}) == len(ALL)


@pytest.mark.parametrize("annotation", ALL, ids=lambda each: each.name)
def test_the_example_can_be_read(annotation: Annotation) -> None:
    if annotation.name not in IN_PEM:
        annotation.read(annotation.example)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("500ms", 0.5), ("5s", 5), ("1.5s", 1.5), ("1m30s", 90), ("2h", 7200), ("1h1m1s1ms", 3661.001), ("30", 30)],
)
def test_a_time_is_read_as_seconds(text: str, seconds: float) -> None:
    assert texts.duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "0", "0s", "-1s", "5 s", "s", "1d", "inf", "nan", "1e9", "9000h", "٣s"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be a time"):
        texts.duration(text)


@pytest.mark.parametrize(("text", "size"), [("0", 0), ("100", 100), ("8m", 8 << 20), ("1Gi", 1 << 30), ("2K", 2048)])
def test_a_size_is_read_as_bytes(text: str, size: int) -> None:
    assert texts.size(text) == size


@pytest.mark.parametrize("text", ["", "m", "-1", "8mb", "1.5m", "8 m", "9999999999g"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be a size"):
        texts.size(text)


def test_a_value_may_contain_what_separates_it_from_the_name() -> None:
    (compared,) = texts.lines_about(texts.Subject.HEADER)("x-a=b=c~d")
    assert isinstance(compared, texts.Compare)
    assert (compared.name, compared.operator, compared.values) == ("x-a", Operator.EQUALS, ("b=c~d",))


@pytest.mark.parametrize("text", ["", "=x", "a b=c", "!", "x~(", "!!x"])
def test_what_is_no_comparison_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        print(texts.lines_about(texts.Subject.HEADER)(text))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cors",
        "[]",
        "[cors]",
        "[{name: Cors}]",
        "[{name: cors, configs: {}}]",
        "[{name: cors, config: []}]",
        "[{name: cors, config: {a: .inf}}]",
        "[{name: cors, config: {a: 2024-01-01}}]",
        "[{name: cors, config: {1: a}}]",
        "[{name: cors, order: high}]",
        "[{name: cors, config: &a {}}, {name: cors, config: *a}]",
        "[{name: !!python/name:os.system cors}]",
        "[" * 5000,
        "[{name: cors, config: {a: " + "[" * 40 + "]" * 40 + "}}]",
        "[{name: cors, config: {a: " + "x" * texts.MAX_TEXT + "}}]",
    ],
    ids=lambda text: text[:40],
)
def test_what_is_no_list_of_plugins_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        texts.plugins(text)


READERS = [annotation.read for annotation in ALL if annotation.name not in IN_PEM]
NOTATION = st.text(alphabet="0123456789smhkGi.,:=~!/*[]{}- \nabcxé#\"'&", max_size=30)


@given(st.sampled_from(READERS), NOTATION)
def test_whatever_is_written_is_read_or_refused_with_what_would_be_right(read: Any, text: str) -> None:
    refusal = "must"
    try:
        read(text)
    except ValueError as error:
        refusal = str(error)
    assert refusal.startswith("must")


def annotated(**annotations: str) -> Any:
    return ingress(
        "web",
        host="a.example",
        annotations={f"headgate.dev/{key.replace('_', '-')}": text for key, text in annotations.items()},
    )


def test_the_value_of_a_plugin_is_never_shown() -> None:
    offline = translate_all([applied(annotated(plugins="password: hunter2", plugin="hunter2"))])
    (problems,) = offline.problems.values()
    assert "headgate.dev/plugins" in problems[0].field
    assert "hunter2" not in str([problem.model_dump() for problem in problems])


def test_what_a_plugin_does_not_take_is_named_with_its_field_and_closes_the_route() -> None:
    offline = translate_all([applied(annotated(plugins="[{name: limit-req, config: {rate: 5, burst: -1}}]"))])
    ((problem, *_),) = offline.problems.values()
    assert problem.field == "metadata.annotations[headgate.dev/plugins]"
    assert problem.message.startswith(
        "must be plugins that gateways have, with what they take; plugin limit-req, config.burst: "
        "must be greater than or equal to 0, but is -1; until then "
    )


def test_a_plugin_that_gateways_do_not_have_is_refused_unless_the_settings_name_it() -> None:
    asked = applied(annotated(plugins="[{name: maintenance, config: {retry: 5}}]"))
    ((problem, *_),) = translate_all([asked]).problems.values()
    assert "plugin maintenance: there is no plugin of this name" in problem.message
    offline = translate_all([asked], TranslationSettings(plugin_names=frozenset({"maintenance"})))
    (host,) = (each for each in offline.entries if isinstance(each, VirtualHost))
    assert [use.name for use in host.routes[0].plugins] == ["maintenance"]


def test_a_route_that_must_refuse_has_no_canary() -> None:
    main = annotated(client_networks="nowhere")
    canary = ingress(
        "next",
        host="a.example",
        created="2024-01-01T00:00:00Z",
        annotations={"headgate.dev/canary": "true", "headgate.dev/canary-weight": "100"},
    )
    offline = translate_all([applied(main), applied(canary)])
    (host,) = (each for each in offline.entries if isinstance(each, VirtualHost))
    assert [route.canaries for route in host.routes] == [()]
    assert [backend.upstream for route in host.routes for backend in route.backends] == [
        "a/default/Ingress/web/refused"
    ]


def test_a_canary_makes_no_host_of_its_own() -> None:
    offline = translate_all([applied(annotated(canary="true", canary_weight="5"))])
    assert not [each for each in offline.entries if isinstance(each, VirtualHost)]
    assert not offline.accepted


def test_client_authorities_come_from_a_secret_and_requests_are_refused_without_it() -> None:
    translation = fresh()
    translation.apply(applied(annotated(client_auth_secret="other/clients")))
    settle(translation)
    (host,) = hosts(translation)
    assert host.tls is None
    assert [backend.upstream for backend in host.routes[0].backends] == ["a/default/Ingress/web/refused"]
    translation.apply(applied(tls_secret("clients", namespace="other", authorities_pem="ca", revocations_pem="crl")))
    settle(translation)
    (host,) = hosts(translation)
    assert host.tls == TlsPolicy(client_auth=ClientAuth(ca_pem="ca", crl_pem="crl"))
    assert [backend.upstream for backend in host.routes[0].backends] == ["a/default/web:80"]


@pytest.mark.parametrize(
    "public", [{}, {"authorities_pem": ""}, {"authorities_pem": "ca", "revocations_pem": ""}], ids=str
)
def test_a_secret_without_readable_authorities_lets_nobody_in(public: dict[str, str]) -> None:
    secret = tls_secret("clients", **public)
    offline = translate_all([applied(annotated(client_auth_secret="clients")), applied(secret)])
    (problems,) = offline.problems.values()
    assert problems[0].field == "metadata.annotations[headgate.dev/client-auth-secret]"
    assert [each.tls for each in offline.entries if isinstance(each, VirtualHost)] == [None]


def udp_with_proxy_protocol(version: str) -> Offline:
    one = service()
    one["spec"]["ports"] = [{"name": "dns", "port": 53, "protocol": "UDP"}]
    keys = {
        "stream-port": "53",
        "stream-protocol": "udp",
        "stream-accept-proxy-protocol": "true",
        "proxy-protocol": version,
    }
    one["metadata"]["annotations"] = {f"headgate.dev/{key}": text for key, text in keys.items()}
    return translate_all([applied(one)])


def test_a_udp_port_and_version_1_of_the_proxy_protocol_exclude_each_other() -> None:
    offline = udp_with_proxy_protocol("1")
    ((problem,),) = offline.problems.values()
    assert problem.field == "metadata.annotations[headgate.dev/stream-protocol]"
    assert problem.message == (
        "must be together with proxy-protocol 2 if it is udp, as 1 is for TCP; "
        "until then the last good version stays in force, or its port stays closed"
    )
    assert not [entry for entry in offline.entries if isinstance(entry, StreamRoute)]


def test_a_udp_port_has_the_proxy_protocol_in_and_out() -> None:
    offline = udp_with_proxy_protocol("2")
    assert "InvalidAnnotation" not in {problem.reason for several in offline.problems.values() for problem in several}
    [route] = [entry for entry in offline.entries if isinstance(entry, StreamRoute)]
    assert (route.protocol, route.accept_proxy_protocol) == ("udp", True)
    [upstream] = [entry for entry in offline.entries if isinstance(entry, Upstream)]
    assert (upstream.protocol, upstream.proxy_protocol) == ("udp", 2)


@pytest.mark.parametrize(
    "annotation",
    [one for one in SERVICE_ANNOTATIONS if one.sets.startswith("stream.") and one.name != "stream-port"],
    ids=lambda annotation: annotation.name,
)
def test_what_is_about_a_stream_port_needs_one(annotation: Annotation) -> None:
    one = service()
    one["metadata"]["annotations"] = {f"headgate.dev/{annotation.name}": annotation.example}
    (problems,) = translate_all([applied(one)]).problems.values()
    assert [problem.reason for problem in problems] == ["InvalidAnnotation"]


WORDS = st.sampled_from(["", "0", "-1", "1", "true", "udp", "tls-passthrough", "5s", "a.example", "client", "[", "é"])


def some_of(table: tuple[Annotation, ...]) -> st.SearchStrategy[dict[str, str]]:
    """A few annotations of a table, with their examples or with anything."""
    written = st.sampled_from(table).flatmap(
        lambda one: st.tuples(st.just(f"headgate.dev/{one.name}"), st.just(one.example) | WORDS)
    )
    return st.lists(written, max_size=6).map(dict)


@settings(max_examples=150)
@given(some_of(INGRESS_ANNOTATIONS), some_of(SERVICE_ANNOTATIONS))
def test_no_combination_of_annotations_is_an_error_of_ours(on_ingress: Any, on_service: Any) -> None:
    one = service()
    one["metadata"]["annotations"] = on_service
    offline = translate_all([applied(one), applied(ingress("web", host="a.example", annotations=on_ingress))])
    reasons = {problem.reason for several in offline.problems.values() for problem in several}
    assert "InternalError" not in reasons


def test_hashing_by_a_policy_that_does_not_hash_names_the_policy() -> None:
    one = service()
    one["metadata"]["annotations"] = {"headgate.dev/load-balance": "random", "headgate.dev/hash-by": "client"}
    ((problem,),) = translate_all([applied(one)]).problems.values()
    assert problem.field == "metadata.annotations[headgate.dev/hash-by]"
    told = "must be together with load-balance ring-hash, rendezvous or maglev, but that is random; it is ignored"
    assert problem.message == told


def test_the_next_smaller_prime_is_offered_for_a_number_that_is_none() -> None:
    assert texts.prime(101, 655_373)("65537") == 65537
    with pytest.raises(ValueError, match=r"must be a prime, such as 65521$"):
        texts.prime(101, 655_373)("65536")
    with pytest.raises(ValueError, match="must be a whole number from 101 to 655373"):
        texts.prime(101, 655_373)("97")


def test_ciphers_that_openssl_does_not_know_are_refused() -> None:
    assert texts.ciphers("ECDHE+AESGCM:@STRENGTH") == "ECDHE+AESGCM:@STRENGTH"
    with pytest.raises(ValueError, match="OpenSSL finds no cipher by this one"):
        texts.ciphers("NO-SUCH-CIPHER")


def stream(name: str, port: str, created: str) -> Any:
    made = service(name)
    made["metadata"] |= {"creationTimestamp": created, "annotations": {"headgate.dev/stream-port": port}}
    return made


def fresh() -> Translation:
    translation = Translation(DIALECTS)
    translation.activate("a")
    return translation


def settle(translation: Translation) -> None:
    for _ in translation.settle():
        pass


def entries(translation: Translation) -> list[TableEntry]:
    chunks = translation.assembly.image.chunks()
    return [entry for chunk in chunks for entry in decode_chunk(chunk.kind, chunk.content)]


def hosts(translation: Translation) -> list[VirtualHost]:
    return [entry for entry in entries(translation) if isinstance(entry, VirtualHost)]


def streams(translation: Translation) -> list[tuple[str, int]]:
    found = (entry for entry in entries(translation) if isinstance(entry, StreamRoute))
    return sorted((entry.provenance.name, entry.port) for entry in found)


def test_a_port_goes_to_the_next_when_its_owner_goes() -> None:
    translation = fresh()
    old, young = (stream(name, "5432", f"2024-01-0{day}T00:00:00Z") for name, day in (("old", 1), ("young", 2)))
    for manifest in (young, old):
        translation.apply(applied(manifest))
    settle(translation)
    assert streams(translation) == [("old", 5432)]
    translation.apply(applied(stream("old", "5433", "2024-01-01T00:00:00Z")))
    settle(translation)
    assert streams(translation) == [("old", 5433), ("young", 5432)]
    translation.apply(deleted(old))
    translation.apply(applied(service("young")))
    settle(translation)
    assert streams(translation) == []
    assert translation.assembly.image.chunks() == []


def test_a_service_without_annotations_is_no_work() -> None:
    translation = fresh()
    translation.apply(applied(service()))
    assert translation.pending == 0


def test_a_services_annotation_changes_its_upstream_and_no_ingress() -> None:
    translation = fresh()
    translation.apply(applied(ingress("web", host="a.example")))
    translation.apply(applied(service()))
    settle(translation)
    before, made = translation.graph.runs, service()
    made["metadata"]["annotations"] = {"headgate.dev/load-balance": "random"}
    translation.apply(applied(made))
    settle(translation)
    assert translation.graph.runs - before == 2
    ref = ObjectRef("a", "", "services", "default", "web")
    assert ref in translation.assembly.fragments
