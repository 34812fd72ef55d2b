"""EndpointSlices in stored form: what is malformed is left out, and what repeats is kept once."""

from typing import Any

import pytest

from headgate.translator.sources.endpoints import Address, read_slice


def manifest(*endpoints: Any, **further: Any) -> Any:
    return {"metadata": {"labels": {}}, "addressType": "IPv4", "endpoints": list(endpoints), **further}


@pytest.mark.parametrize(
    ("endpoint", "expected"),
    [
        ({"addresses": ["10.0.0.1"]}, [Address("10.0.0.1", "", True, True, False)]),
        (
            {"addresses": ["10.0.0.2", "10.0.0.1"], "conditions": {"ready": False, "serving": True}, "zone": "z"},
            [Address("10.0.0.1", "z", False, True, False), Address("10.0.0.2", "z", False, True, False)],
        ),
        (
            {"addresses": ["10.0.0.1"], "conditions": {"ready": False, "terminating": True}},
            [Address("10.0.0.1", "", False, False, True)],
        ),
        (
            {"addresses": ["10.0.0.1"], "zone": "", "topology": {"topology.kubernetes.io/zone": "old"}},
            [Address("10.0.0.1", "old", True, True, False)],
        ),
        (
            {"addresses": ["10.0.0.1"], "targetRef": {"kind": "Pod", "name": "web-1"}},
            [Address("10.0.0.1", "", True, True, False, "web-1")],
        ),
        (
            {"addresses": ["10.0.0.1"], "targetRef": {"kind": "Node", "name": "n1"}},
            [Address("10.0.0.1", "", True, True, False)],
        ),
        (
            {"addresses": [None, 7, "", "10.0.0.1"], "conditions": [], "zone": 3, "topology": "x", "targetRef": 1},
            [Address("10.0.0.1", "", True, True, False)],
        ),
        (
            {"addresses": ["10.0.0.1"], "conditions": {"ready": "false", "serving": "no", "terminating": 1}},
            [Address("10.0.0.1", "", True, True, False)],
        ),
        ({"addresses": "10.0.0.1"}, []),
        ({}, []),
        ("10.0.0.1", []),
        (None, []),
    ],
)
def test_an_endpoint_has_the_addresses_that_are_well_said(endpoint: Any, expected: list[Address]) -> None:
    assert list(read_slice(manifest(endpoint)).addresses) == expected


@pytest.mark.parametrize("endpoints", [None, {}, "x"])
def test_a_slice_without_a_list_of_endpoints_has_none(endpoints: Any) -> None:
    assert read_slice({**manifest(), "endpoints": endpoints}).addresses == ()


def test_equal_ports_of_two_slices_are_one_value() -> None:
    one, other, third = (
        read_slice(manifest(ports=[{"name": "".join(("ht", "tp")), "port": port}])).ports for port in (80, 80, 81)
    )
    assert one is other
    assert one != third
