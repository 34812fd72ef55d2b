"""An update with errors of its own leaves the last good version in force, for whoever reads the log, whenever."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fakes.translator.deltas import (
    applied,
    deleted,
    endpoint_slice,
    ingress,
    ingress_class,
    ref_of,
    service,
    tls_secret,
)
from fakes.translator.failing_dialect import failing_on
from fakes.translator.translating import Follower, ListedLog
from headgate.common.snapshot import decode_chunk
from headgate.common.table import Certificate, StreamRoute, TableEntry, Upstream, VirtualHost
from headgate.translator.assembly.conditions import ObjectStatus
from headgate.translator.composition import DIALECTS
from headgate.translator.dialects.ingress.document import STORED as INGRESSES
from headgate.translator.objects.dialect import Dialect
from headgate.translator.sources.certificates import SECRETS
from headgate.translator.sources.services import SERVICES
from headgate.translator.world.world import StoredKind

GUARD = "headgate.dev/client-networks"
OFFICE, TYPO = {GUARD: "10.0.0.0/8"}, {GUARD: "10.0.0.0/88"}


def web(path: str = "/", **extra: Any) -> Any:
    return ingress("web", host="a.example", path=path, **extra)


def with_tls(manifest: Any, secret: str = "tls") -> Any:
    spec = {**manifest["spec"], "tls": [{"hosts": ["a.example"], "secretName": secret}]}
    return {**manifest, "spec": spec}


def annotated(manifest: Any, annotations: dict[str, str]) -> Any:
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": annotations}}


def made_anew(manifest: Any) -> Any:
    return {**manifest, "metadata": {**manifest["metadata"], "uid": "another"}}


class Story(Follower):
    """A follower and the log that it follows."""

    def __init__(self, *manifests: Any, dialects: Sequence[Dialect] = DIALECTS) -> None:
        super().__init__(ListedLog(), clusters=("a",), dialects=dialects)
        self.tell(*manifests)

    def tell(self, *manifests: Any) -> None:
        for manifest in manifests:
            self.take(self.log.append(applied(manifest)))
        self.settle()

    def delete(self, manifest: Any) -> None:
        self.take(self.log.append(deleted(manifest)))
        self.settle()

    def entries(self) -> list[TableEntry]:
        chunks = self.translation.assembly.image.chunks()
        return [entry for chunk in chunks for entry in decode_chunk(chunk.kind, chunk.content)]

    def paths(self) -> list[str]:
        return [route.path.value for each in self.entries() if isinstance(each, VirtualHost) for route in each.routes]

    def upstream(self) -> Upstream:
        return next(entry for entry in self.entries() if isinstance(entry, Upstream))

    def certificate(self) -> Certificate | None:
        return next((entry for entry in self.entries() if isinstance(entry, Certificate)), None)

    def condition(self, manifest: Any) -> ObjectStatus:
        found = self.translation.condition(ref_of(manifest))
        assert found is not None
        return found

    def reasons(self, manifest: Any) -> list[str]:
        return [problem.reason for problem in self.condition(manifest).problems]


# Ingresses


def test_an_update_with_an_error_leaves_the_version_before_in_force() -> None:
    story = Story(web("/old"), web("wrong"))
    assert story.paths() == ["/old"]


def test_the_condition_names_the_error_and_the_version_that_is_served() -> None:
    story = Story(web("/old"), web("wrong"))
    error, kept = (problem for problem in story.condition(web()).problems if problem.reason != "ServiceNotFound")
    assert (error.reason, error.field) == ("InvalidPath", "spec.rules[0].http.paths[0].path")
    assert kept.reason == "LastGoodServed"
    assert f"resourceVersion {story.log.history(ref_of(web()))[0].resource_version} goes on" in kept.message


def test_a_mended_object_is_served_as_it_is_and_has_nothing_left_to_tell() -> None:
    story = Story(service(), endpoint_slice("web", "10.0.0.1"), web("/old"), web("wrong"), web("/new"))
    assert story.paths() == ["/new"]
    assert story.reasons(web()) == []


def test_of_several_errors_in_a_row_none_takes_the_good_version_along() -> None:
    story = Story(web("/old"), *(web(f"wrong{number}") for number in range(20)))
    assert story.paths() == ["/old"]


def test_an_object_that_never_was_good_is_served_as_far_as_it_can_be() -> None:
    broken = web("/fine")
    broken["spec"]["rules"].append({"host": "Not A Host"})
    story = Story(broken)
    assert story.paths() == ["/fine"]
    assert "LastGoodServed" not in story.reasons(web())


def test_a_restriction_that_becomes_unreadable_stays_as_it_was() -> None:
    restricted = Story(web(annotations=OFFICE))
    story = Story(web(annotations=OFFICE), web(annotations=TYPO))
    assert story.image == restricted.image


def test_a_restriction_that_never_was_readable_lets_nobody_in() -> None:
    story = Story(service(), endpoint_slice("web", "10.0.0.1"), web(annotations=TYPO))
    served = [entry for entry in story.entries() if isinstance(entry, VirtualHost)]
    assert [backend.upstream for backend in served[0].routes[0].backends] == ["a/default/Ingress/web/refused"]


@pytest.mark.parametrize("name", ["client-network", "client-netwroks", "client-netvorks"])
def test_a_restriction_that_an_update_misspells_stays_as_it_was(name: str) -> None:
    restricted = Story(web(annotations=OFFICE))
    story = Story(web(annotations=OFFICE), web(annotations={f"headgate.dev/{name}": "10.0.0.0/8"}))
    assert story.image == restricted.image
    assert story.reasons(web())[:2] == ["UnknownAnnotation", "LastGoodServed"]


def test_a_restriction_that_was_never_spelt_rightly_lets_nobody_in() -> None:
    story = Story(service(), endpoint_slice("web", "10.0.0.1"), web(annotations={"headgate.dev/client-network": "x"}))
    served = [entry for entry in story.entries() if isinstance(entry, VirtualHost)]
    assert [backend.upstream for backend in served[0].routes[0].backends] == ["a/default/Ingress/web/refused"]


@pytest.mark.parametrize("name", ["owner", "client", "networks", "connect-timeouts"])
def test_a_name_that_is_no_restriction_misspelt_is_ignored(name: str) -> None:
    story = Story(service(), endpoint_slice("web", "10.0.0.1"), web(annotations={f"headgate.dev/{name}": "x"}))
    assert story.reasons(web()) == ["UnknownAnnotation"]
    assert story.upstream().unavailable is None


@pytest.mark.parametrize("name", ["allow-source-range", "whitelist-source-range", "denylist", "auth-url", "key-auth"])
def test_a_restriction_under_its_name_elsewhere_lets_nobody_in(name: str) -> None:
    story = Story(service(), endpoint_slice("web", "10.0.0.1"), web(annotations={f"headgate.dev/{name}": "10.0.0.0/8"}))
    served = [entry for entry in story.entries() if isinstance(entry, VirtualHost)]
    assert [backend.upstream for backend in served[0].routes[0].backends] == ["a/default/Ingress/web/refused"]


def test_a_restriction_under_its_name_elsewhere_names_the_right_one() -> None:
    story = Story(web(annotations={"headgate.dev/allow-source-range": "10.0.0.0/8"}))
    assert any("is headgate.dev/client-networks" in one.message for one in story.condition(web()).problems)


def test_a_restriction_that_is_there_as_well_is_not_doubted() -> None:
    story = Story(web(annotations=OFFICE | {"headgate.dev/client-network": "10.0.0.0/8"}))
    assert "UnknownAnnotation" in story.reasons(web())
    restricted = [route.when for each in story.entries() if isinstance(each, VirtualHost) for route in each.routes]
    assert all(restricted)


def test_a_deleted_object_is_gone_whatever_it_was_before() -> None:
    story = Story(web("/old"), web("wrong"))
    story.delete(web())
    assert story.entries() == []
    story.tell(web("wrong"))
    assert story.paths() == []


def test_an_object_that_was_made_anew_has_no_past() -> None:
    story = Story(web("/old"), made_anew(web("wrong")))
    assert story.paths() == []
    assert story.reasons(web()) == ["InvalidPath"]


def test_what_is_missing_around_an_object_is_no_error_of_its_own() -> None:
    story = Story(web("/old"), with_tls(ingress("web", host="a.example", path="/new", service="gone")))
    assert story.paths() == ["/new"]
    assert story.reasons(web()) == ["SecretNotFound", "ServiceNotFound"]


def test_warnings_hold_no_update_back() -> None:
    story = Story(web("/old"), web("/new", annotations={"headgate.dev/connect-timeout": "soon"}))
    assert story.paths() == ["/new"]


def test_an_update_that_gives_the_object_to_another_class_is_not_held_back_by_its_errors() -> None:
    classes = (ingress_class("ours"), ingress_class("theirs", "example.com/other"))
    story = Story(*classes, web("/old", class_name="ours"), web("wrong", class_name="theirs"))
    assert story.entries() == []


def test_a_version_that_was_of_another_class_does_not_stand_in() -> None:
    classes = (ingress_class("ours"), ingress_class("theirs", "example.com/other"))
    story = Story(*classes, web("/old", class_name="theirs"), web("wrong", class_name="ours"))
    assert story.paths() == []
    assert story.reasons(web()) == ["InvalidPath"]


def test_the_held_version_follows_its_service_and_its_secret() -> None:
    story = Story(service(), with_tls(web("/old")), with_tls(web("wrong")))
    story.tell(endpoint_slice("web", "10.0.0.9"), tls_secret("tls", "a.example"))
    assert [endpoint.address for endpoint in story.upstream().endpoints] == ["10.0.0.9"]
    assert story.certificate() is not None


def test_a_version_on_which_we_fail_ourselves_leaves_the_one_before_in_force() -> None:
    story = Story(web("/old"), web("/poison"), dialects=[failing_on("poison")])
    assert story.paths() == ["/old"]
    assert story.reasons(web())[:2] == ["InternalError", "LastGoodServed"]


def test_the_generation_of_the_present_version_is_told_though_another_is_served() -> None:
    old, new = web("/old"), web("wrong")
    old["metadata"]["generation"], new["metadata"]["generation"] = 3, 4
    story = Story(old, new)
    fragment = story.translation.assembly.fragments[ref_of(web())]
    assert fragment.identity.generation == 4
    assert fragment.stand_in is not None
    assert fragment.stand_in.generation == 3


# Services


def test_a_service_that_becomes_invalid_is_used_as_it_was() -> None:
    story = Story(service(), endpoint_slice("web", "10.0.0.1"), web(), service(port=0))
    assert [endpoint.address for endpoint in story.upstream().endpoints] == ["10.0.0.1"]
    assert story.upstream().unavailable is None
    assert story.reasons(web()) == ["InvalidService"]
    assert story.reasons(service())[:2] == ["InvalidPort", "LastGoodServed"]


def test_verification_that_becomes_unreadable_stays_on() -> None:
    verified = {"headgate.dev/backend-protocol": "https", "headgate.dev/backend-tls-verify": "true"}
    unreadable = verified | {"headgate.dev/backend-tls-verify": "perhaps"}
    story = Story(web(), annotated(service(), verified), annotated(service(), unreadable))
    tls = story.upstream().tls
    assert tls is not None
    assert tls.verify


def test_a_stream_port_stays_open_under_its_old_restriction() -> None:
    port = {"headgate.dev/stream-port": "5432", "headgate.dev/stream-client-networks": "10.0.0.0/8"}
    story = Story(annotated(service(), port))
    before = [entry for entry in story.entries() if isinstance(entry, StreamRoute)]
    story.tell(annotated(service(), port | {"headgate.dev/stream-client-networks": "everybody"}))
    assert [entry for entry in story.entries() if isinstance(entry, StreamRoute)] == before != []


def test_a_deleted_service_is_a_503_though_it_was_good_once() -> None:
    story = Story(service(), endpoint_slice("web", "10.0.0.1"), web(), service(port=0))
    story.delete(service())
    assert "not found" in (story.upstream().unavailable or "")


# Secrets


def test_a_certificate_that_becomes_unusable_is_presented_as_it_was() -> None:
    story = Story(with_tls(web()), tls_secret("tls", "a.example"))
    good = story.certificate()
    story.tell(tls_secret("tls", "a.example", problem="tls.key does not belong to it"))
    assert story.certificate() == good is not None
    assert story.reasons(web()) == ["InvalidCertificate", "ServiceNotFound"]
    assert "is used instead" in story.condition(web()).problems[0].message


def test_a_deleted_secret_leaves_its_hosts_with_the_fallback_certificate() -> None:
    story = Story(with_tls(web()), tls_secret("tls", "a.example"), tls_secret("tls", "a.example", problem="broken"))
    story.delete(tls_secret("tls", "a.example"))
    assert story.certificate() is None


def test_authorities_that_become_unreadable_hold_back_no_new_certificate() -> None:
    story = Story(with_tls(web()), tls_secret("tls", "a.example", authorities_pem="authorities"))
    renewed = tls_secret("tls", "a.example", authorities_pem="")
    renewed["sealed"]["certificate"]["fingerprint"] = "renewed"
    story.tell(renewed)
    certificate = story.certificate()
    assert certificate is not None
    assert certificate.fingerprint == "renewed"
    assert story.reasons(web()) == ["ServiceNotFound"]


def test_clients_are_verified_by_the_authorities_that_were_last_readable() -> None:
    asking = {"headgate.dev/client-auth": "required", "headgate.dev/client-auth-secret": "authorities"}
    story = Story(web(annotations=asking), tls_secret("authorities", authorities_pem="known"))
    before = [entry for entry in story.entries() if isinstance(entry, VirtualHost)]
    story.tell(tls_secret("authorities", authorities_pem=""))
    assert [entry for entry in story.entries() if isinstance(entry, VirtualHost)] == before
    assert "InvalidCertificate" in story.reasons(web())
    story.delete(tls_secret("authorities"))
    assert story.reasons(web())[0] == "InvalidAnnotation"


# What is written down


def with_ports(*ports: dict[str, Any], **spec: Any) -> Any:
    made = service(**spec)
    made["spec"]["ports"] = [*ports]
    return made


@pytest.mark.parametrize(
    "manifest",
    [
        service(clusterIP="None", ipFamilies=["IPv6", "IPv4"]),
        service(type="ExternalName", externalName="x.example"),
        annotated(service(), {"headgate.dev/load-balance": "random", "other": "x"}),
        with_ports({"port": 80}, {"port": 81, "targetPort": "web", "name": "b"}),
        with_ports(
            {"port": 53, "protocol": "UDP", "name": "dns"},
            {"port": 9, "protocol": "SCTP", "name": "s"},
            {"port": 53, "protocol": "TCP", "name": "dns-tcp"},
            {"port": 54, "protocol": "UDP", "targetPort": 1054, "name": "more"},
        ),
        with_ports({"port": 53, "protocol": "UDP"}),
        tls_secret("tls", "a.example", authorities_pem="known"),
        with_tls(web(annotations=OFFICE, created="2024-01-01T00:00:00Z", class_name="ours")),
    ],
)
def test_what_is_written_down_of_a_version_reads_as_the_version(manifest: Any) -> None:
    kinds = {stored.kind.kind: stored for stored in (SERVICES, SECRETS, INGRESSES)}
    stored: StoredKind[Any] = kinds[manifest["kind"]]
    assert stored.restore is not None
    form = stored.read(manifest)
    assert stored.read(stored.restore(form)) == form


# Whoever reads the log


def versions(choices: list[Any]) -> st.SearchStrategy[Any]:
    return st.sampled_from([("apply", manifest) for manifest in choices] + [("delete", choices[0])])


WEB = [web("/one"), web("/two"), web("wrong"), web("worse"), made_anew(web("/three")), made_anew(web("wrong"))]
SERVICE = [service(), service(port=0), annotated(service(), {"headgate.dev/load-balance": "random"})]
SECRET = [
    tls_secret("tls", "a.example"),
    tls_secret("tls", "a.example", authorities_pem="known"),
    tls_secret("tls", "a.example", problem="broken"),
    tls_secret("tls", "a.example", authorities_pem=""),
]
USERS = (
    with_tls(ingress("user", host="a.example", path="/user")),
    ingress(
        "sure",
        host="a.example",
        path="/sure",
        annotations={"headgate.dev/client-auth": "required", "headgate.dev/client-auth-secret": "tls"},
    ),
)
HISTORIES = st.lists(st.one_of(versions(WEB), versions(SERVICE), versions(SECRET)), max_size=40)
MANY = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def told(history: list[Any], log: ListedLog) -> Follower:
    follower = Follower(log)
    for manifest in USERS:
        follower.take(log.append(applied(manifest)))
    for operation, manifest in history:
        follower.take(log.append(applied(manifest) if operation == "apply" else deleted(manifest)))
    follower.settle()
    return follower


def test_the_histories_tell_good_versions_from_others() -> None:
    log = ListedLog()
    follower = told([("apply", manifest) for manifest in (WEB[0], WEB[2], SERVICE[0], SERVICE[1])], log)
    stood_in_for = [ref.resource for ref, each in follower.translation.assembly.fragments.items() if each.stand_in]
    assert sorted(stood_in_for) == ["ingresses", "services"]


def test_an_object_whose_uid_comes_back_has_no_past_from_before_the_other_one() -> None:
    log = ListedLog(history=50)
    first, second = told([], log), Follower(log)
    another, wrong = made_anew(web("/three")), made_anew(web("wrong"))
    for manifest in (another, wrong):
        first.take(log.append(applied(manifest)))
    first.settle()
    first.write_records()
    for manifest in (web("/one"), wrong):  # as after a backup of the cluster was restored
        first.take(log.append(applied(manifest)))
    first.settle()
    second.replay()
    assert (second.image, second.conditions) == (first.image, first.conditions)


@MANY
@given(HISTORIES, st.data())
def test_a_second_translator_finds_the_good_versions_in_the_history(history: list[Any], data: st.DataObject) -> None:
    log = ListedLog(history=50)
    first, second = told([], log), Follower(log)
    for operation, manifest in history:
        first.take(log.append(applied(manifest) if operation == "apply" else deleted(manifest)))
        if data.draw(st.booleans(), label="settles"):
            first.settle()
        if data.draw(st.booleans(), label="writes records"):
            first.settle()
            first.write_records()
    first.settle()
    second.replay()
    assert (second.image, second.conditions) == (first.image, first.conditions)


@MANY
@given(HISTORIES, st.integers(1, 4))
def test_a_second_translator_finds_them_in_records_when_the_history_is_short(history: list[Any], kept: int) -> None:
    log = ListedLog(history=kept)
    first, second = told([], log), Follower(log)
    for operation, manifest in history:
        first.take(log.append(applied(manifest) if operation == "apply" else deleted(manifest)))
        first.settle()
        first.write_records()
    second.replay()
    assert (second.image, second.conditions) == (first.image, first.conditions)
