"""What the chart's schema takes as values, and what it refuses."""

import json

from deploy.manifests import setting_names
from jsonschema_rs import Draft7Validator

from unit.deploy.test_manifests import CHART


def test_settings_that_no_service_has_are_refused_by_the_schema() -> None:
    validator = Draft7Validator(json.loads((CHART / "values.schema.json").read_text()))
    assert validator.is_valid({"gateway": {"settings": {"access_log_share": 0.1}}, "settings": {"log_level": "debug"}})
    for wrong in (
        {"gateway": {"settings": {"no_such": 1}}},
        {"translator": {"settings": {"http_port": 1}}},
        {"console": {"settings": {"http_port": 1}}},
        {"console": {"replicas": 2}},
        {"settings": {"htp_port": 1}},
        {"nats": {"storage": {"size": "big"}}},
        {"gateway": {"resources": {"requests": {"memory": "lots"}}}},
        {"image": {"of": {"gateway": {"digest": "1.2.3"}}}},
    ):
        assert not validator.is_valid(wrong), wrong


def test_the_settings_in_the_schema_are_those_of_the_services() -> None:
    assert setting_names.main(["--check"]) == 0
