"""`headgate certificates`: its lines and their order."""

from datetime import UTC, datetime, timedelta

from headgate.common.sealing import ClusterValue
from headgate.common.table import Certificate, Provenance
from headgate.operations.tables.certificates import as_document, lines_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def certificate(name: str, ends: timedelta | None) -> Certificate:
    return Certificate(
        key=f"east/shop/{name}",
        server_names=("a.example", "*.b.example"),
        chain_pem="chain",
        private_key=ClusterValue(boxes={}),
        fingerprint=name,
        not_after=(NOW + ends).isoformat() if ends is not None else "",
        provenance=Provenance(cluster="east", kind="Secret", namespace="shop", name=name),
    )


def test_the_certificate_that_ends_first_is_on_top_and_unknown_ends_are_last() -> None:
    found = [certificate("late", timedelta(days=90)), certificate("?", None), certificate("old", -timedelta(days=1))]
    assert [line.secret for line in lines_of(found, NOW)] == ["shop/old", "shop/late", "shop/?"]


def test_a_line_names_hosts_secret_cluster_and_seconds_left_and_nothing_secret() -> None:
    [line] = lines_of([certificate("tls", timedelta(days=2))], NOW)
    assert as_document(line) == {
        "secret": "shop/tls",
        "cluster": "east",
        "hosts": ("a.example", "*.b.example"),
        "not_after": "2026-01-03T00:00:00+00:00",
        "left_s": 172_800,
    }
