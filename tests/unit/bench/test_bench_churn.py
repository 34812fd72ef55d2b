"""What is changed while much else changes, and what is promised of it."""

import itertools
from pathlib import Path

import pytest
import yaml
from bench.parts.churn import ProbedSite
from bench.parts.churn_result import ENDPOINT, NEW_INGRESS, Churning, ChurnPart, ChurnResult, Measured
from bench.recording.churner import Changes, Churned, parse_churn
from bench.recording.log_writer import delta_of
from bench.reporting.figures import Distribution
from bench.setup.manifests import endpoint_slice, ingress, write_sites


def addresses(manifest: dict) -> list[str]:
    return [endpoint["addresses"][0] for endpoint in manifest["endpoints"]]


def test_every_endpoint_of_every_site_has_an_address_of_its_own(tmp_path: Path):
    write_sites(tmp_path, 300, [9001], 100, endpoints=10)
    documents = [each for file in tmp_path.iterdir() for each in yaml.safe_load_all(file.read_text())]
    found = [address for each in documents if each["kind"] == "EndpointSlice" for address in addresses(each)]
    assert len(found) == len(set(found)) == 3000
    assert all(address.startswith("127.") for address in found)


def test_a_change_of_endpoints_replaces_one_address_and_keeps_the_port():
    changes, before = Changes(Churned(1, 10, (9001,))), endpoint_slice("site-00000", 9001)
    slices = [delta.object for delta in (changes.next() for _ in range(40)) if delta.ref.resource == "endpointslices"]
    assert 20 < len(slices) < 40
    for old, new in itertools.pairwise(slices):
        assert len(set(addresses(old)) - set(addresses(new))) == 1
        assert new["ports"] == yaml.safe_load(before)["ports"]


def test_the_same_object_is_another_version_each_time():
    one, other = (delta_of(ingress("a", "a.example", "s")) for _ in range(2))
    assert one.ref == other.ref
    assert one.message_id != other.message_id


def test_a_probed_site_moves_all_its_endpoints_or_gets_another_host():
    site = ProbedSite([9001, 9002], 3)
    document, host = site.change(ENDPOINT)
    moved = yaml.safe_load(document)
    assert (moved["ports"][0]["port"], site.answer, host, len(addresses(moved))) == (9002, "9002", site.host, 3)
    hosts = [site.change(NEW_INGRESS)[1] for _ in range(2)]
    assert len({*hosts, site.host}) == 3


def test_what_the_churner_says_is_read_back():
    churn = parse_churn("1.500000 0.000000 ingresses")
    assert (churn.published, churn.stored, churn.kind) == (1.5, 0.0, "ingresses")


def result(ingresses: int, idle: float, busy: float, gateway_mb: float, failed: int = 0) -> ChurnResult:
    def measured(p99: float) -> dict[str, Measured]:
        took = Distribution.of([p99])
        return {kind: Measured(took, took, 0, p99) for kind in (ENDPOINT, NEW_INGRESS)}

    return ChurnResult(
        title="many",
        ingresses=ingresses,
        rate=100,
        cold_start_s=14.9,
        cold_steps_s={},
        measured={"just started": measured(busy), "idle": measured(idle), "churn": measured(busy)},
        churning=Churning(100, 0, 1.0, 10, {"gateway": 0.2}),
        memory_mb={"settled": {"gateway": 100.0}, "after": {"gateway": 110.0}},
        peak_mb={"gateway": gateway_mb, "translator": 1499.0},
        requests=1000,
        failed=failed,
        failures=[],
    )


@pytest.mark.parametrize(
    ("idle", "busy", "gateway_mb", "kept"),
    [(19.9, 49.9, 299.9, [True] * 8), (20.0, 50.0, 300.0, [True, False, False, False, True, True, False, True])],
)
def test_ten_thousand_ingresses_are_held_against_what_is_promised(idle, busy, gateway_mb, kept):
    assert [each.is_kept for each in result(10_000, idle, busy, gateway_mb).promises()] == kept


def test_other_sizes_promise_that_nothing_fails_and_are_told_all_the_same():
    part = ChurnPart([result(1000, 60, 160, 400, failed=1)], ["50,000 Ingresses: not served"])
    assert [each.is_kept for each in part.promises()] == [False]
    assert part.failures == ["50,000 Ingresses: not served"]
    assert "many, churn, new Ingress" in part.markdown()


def test_several_sizes_are_drawn_by_what_one_ingress_costs():
    text = ChurnPart([result(1000, 10, 20, 100), result(2000, 12, 20, 300)]).markdown()
    assert "1,000 Ingresses, for each of them" in text
    assert "line [14.9, 14.9]" in text
    assert "for each of them" not in ChurnPart([result(1000, 10, 20, 100)]).markdown()
