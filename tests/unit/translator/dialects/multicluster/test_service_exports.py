"""ServiceExports: the conditions that the Multi-Cluster Services API has for them."""

from typing import Any

from fakes.translator.deltas import service, service_export, service_import
from fakes.translator.gateway_api import Cluster

WELL = {"Valid": "True Valid", "Ready": "True Exported", "Conflict": "False NoConflicts"}


def in_two(here: Any, there: Any) -> Cluster:
    """Return clusters `a` and `b` that export a Service each."""
    cluster = Cluster(here, service_export())
    cluster.apply(there, service_export(), cluster="b")
    return cluster


def test_one_with_a_service_is_valid_and_nothing_else_is_said() -> None:
    assert Cluster(service(), service_export()).conditions(service_export()) == WELL


def test_one_without_a_service_is_not_valid_until_there_is_one() -> None:
    cluster = Cluster(service_export())
    invalid = {"Valid": "False NoService", "Ready": "False Pending", "Conflict": "False NoConflicts"}
    assert cluster.conditions(service_export()) == invalid
    cluster.apply(service())
    assert cluster.conditions(service_export()) == WELL


def test_an_external_name_cannot_be_exported() -> None:
    cluster = Cluster(service(type="ExternalName", externalName="a.example"), service_export())
    assert cluster.conditions(service_export())["Valid"] == "False InvalidServiceType"


def test_services_that_are_alike_do_not_conflict_and_others_do() -> None:
    assert in_two(service(), service()).conditions(service_export()) == WELL
    ports = in_two(service(), service(port=81))
    assert ports.conditions(service_export()) == {**WELL, "Conflict": "True PortConflict"}
    ports.apply(service(), cluster="b")
    assert ports.conditions(service_export()) == WELL
    headless = in_two(service(), service(clusterIP="None"))
    assert headless.conditions(service_export())["Conflict"] == "True TypeConflict"


def test_a_service_that_is_exported_by_its_annotation_conflicts_too() -> None:
    annotated = service(port=81)
    annotated["metadata"]["annotations"] = {"headgate.dev/global": "true"}
    cluster = Cluster(service(), service_export())
    cluster.apply(annotated, cluster="b")
    assert cluster.conditions(service_export())["Conflict"] == "True PortConflict"


def test_where_a_controller_has_made_an_import_its_conditions_are_left_alone() -> None:
    cluster = Cluster(service(), service_export(), service_import())
    assert cluster.status(service_export()) is None
    cluster.delete(service_import())
    assert cluster.conditions(service_export()) == WELL
