"""What a difference of two tables means for who serves, and who is let in."""

from fakes.gateway.table import host, route
from headgate.common.table import Provenance, VirtualHost
from headgate.translator.planning.consequences import consequences


def of(cluster: str, namespace: str = "shop") -> VirtualHost:
    source = Provenance(cluster=cluster, kind="Ingress", namespace=namespace, name="web")
    return host("a.example", route("/").model_copy(update={"provenance": source}))


def test_a_route_that_stays_in_its_namespace_is_not_told() -> None:
    assert list(consequences([of("east")], [of("east")])) == []


def test_a_route_that_goes_to_another_namespace_is_told() -> None:
    [line] = consequences([of("east")], [of("east", "pay")])
    assert line.endswith(" prefix goes from Ingress shop/web to Ingress pay/web")


def test_clusters_are_named_where_they_differ() -> None:
    [line] = consequences([of("east")], [of("west")])
    assert line.endswith("from Ingress shop/web of cluster east to Ingress shop/web of cluster west")
