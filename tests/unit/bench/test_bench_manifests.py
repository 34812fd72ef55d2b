"""Manifests that are written as text must still be the objects that they say."""

from pathlib import Path

import yaml
from bench.setup.apisix import APISIX
from bench.setup.changes import ChangingSite
from bench.setup.manifests import endpoint_slice, service, site_host, site_name, write_sites, write_workload
from bench.setup.traefik import TRAEFIK
from bench.setup.workload import TLS_SERVER_NAME, Extra, Workload, host_names, write_certificate


def documents(folder: Path) -> list[dict]:
    return [each for file in sorted(folder.glob("*.yaml")) for each in yaml.safe_load_all(file.read_text())]


def test_a_site_is_a_service_a_slice_and_an_ingress(tmp_path: Path):
    write_sites(tmp_path, 3, [9001, 9002], documents_per_file=100)
    service, endpoints, ingress = documents(tmp_path)[3:6]
    assert endpoints["metadata"]["labels"]["kubernetes.io/service-name"] == service["metadata"]["name"]
    assert endpoints["ports"][0]["port"] == 9002
    rule = ingress["spec"]["rules"][0]
    assert rule["host"] == "site-00001.bench.example"
    assert rule["http"]["paths"][0]["backend"]["service"]["name"] == service["metadata"]["name"]


def test_a_site_of_apisix_has_an_apisixroute_instead_of_an_ingress(tmp_path: Path):
    write_sites(tmp_path, 9, [9001], documents_per_file=100, dialect=APISIX)
    routes = [each for each in documents(tmp_path) if each["kind"] == "ApisixRoute"]
    assert [len(each["spec"]["http"]) for each in routes] == [1, 2, 1, 1, 1, 1, 1, 1, 1]
    assert ["plugins" in each["spec"]["http"][0] for each in routes] == [True, False, False, False] * 2 + [True]
    for index, route in enumerate(routes):
        for rule in route["spec"]["http"]:
            assert rule["match"]["hosts"] == [site_host(index)]
            assert rule["backends"][0]["serviceName"] == site_name(index)


def test_a_site_of_traefik_has_an_ingressroute_with_four_matchers(tmp_path: Path):
    write_sites(tmp_path, 2, [9001], documents_per_file=100, dialect=TRAEFIK)
    _, other = (each for each in documents(tmp_path) if each["kind"] == "IngressRoute")
    (rule,) = other["spec"]["routes"]
    assert rule["match"].startswith(f"Host(`{site_host(1)}`) && ")
    assert rule["match"].count("&&") == 3
    assert rule["services"] == [{"name": site_name(1), "port": 80}]


def test_sites_are_spread_over_files(tmp_path: Path):
    write_sites(tmp_path, 5, [9001], documents_per_file=4)
    assert len(list(tmp_path.iterdir())) == 4
    assert len(documents(tmp_path)) == 15


def test_a_move_changes_the_endpoint_and_nothing_else(tmp_path: Path):
    site = ChangingSite(tmp_path, [9001, 9002, 9003])
    before = documents(tmp_path)
    site.move_endpoint()
    changed = [new for old, new in zip(before, documents(tmp_path), strict=True) if old != new]
    assert [each["kind"] for each in changed] == ["EndpointSlice"]
    assert changed[0]["ports"][0]["port"] == 9002


def test_neighbours_in_the_file_stay(tmp_path: Path):
    site = ChangingSite(
        tmp_path, [9001, 9002, 9003], name="crowded", neighbours=[service("web"), endpoint_slice("web", 80)]
    )
    site.move_endpoint()
    found = list(yaml.safe_load_all((tmp_path / "crowded-slice.yaml").read_text()))
    assert [each["metadata"]["name"] for each in found] == ["web", "web-1", "crowded-1"]
    assert found[2]["ports"][0]["port"] == 9002


def test_a_flipped_route_leads_to_the_other_service(tmp_path: Path):
    site = ChangingSite(tmp_path, [9001, 9002])
    site.flip_route()
    (rule,) = next(each for each in documents(tmp_path) if each["kind"] == "Ingress")["spec"]["rules"]
    assert rule["host"] == site.host
    assert rule["http"]["paths"][0]["backend"]["service"]["name"] == "changing-twin"
    assert site.answer == "9002"


def test_every_host_of_a_workload_has_tls(tmp_path: Path):
    workload = Workload(host_names(3), (9001, 9002), *write_certificate(tmp_path))
    write_workload(tmp_path / "out", workload)
    found = documents(tmp_path / "out")
    ingresses = [each for each in found if each["kind"] == "Ingress"]
    assert {each["spec"]["rules"][0]["host"] for each in ingresses} == {*workload.hosts, TLS_SERVER_NAME}
    (secret,) = [each for each in found if each["kind"] == "Secret"]
    assert secret["stringData"]["tls.key"] == workload.key.read_text()
    assert all(each["spec"]["tls"][0]["secretName"] == secret["metadata"]["name"] for each in ingresses)


def test_an_extra_service_has_a_route_with_its_plugins(tmp_path: Path):
    extra = Extra("plugged", 9003, plugins='[{"name": "cors"}]')
    workload = Workload(host_names(1), (9001,), *write_certificate(tmp_path), extras=(extra,))
    write_workload(tmp_path / "out", workload)
    ingresses = [each for each in documents(tmp_path / "out") if each["kind"] == "Ingress"]
    (route,) = [each for each in ingresses if each["metadata"]["name"] == extra.name]
    assert route["metadata"]["annotations"] == {"headgate.dev/plugins": extra.plugins}
