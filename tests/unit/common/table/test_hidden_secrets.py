"""Configurations of plugins as people see them."""

from typing import Any

import pytest

from headgate.common.plugins.hiding import hide_secrets

REDIS = {"count": 1, "time_window": 1, "policy": "redis", "redis_host": "redis", "redis_password": "geheim"}


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("authz-keycloak", {"client_id": "a", "client_secret": "geheim"}),
        ("csrf", {"key": "geheim", "name": "token"}),
        ("clickhouse-logger", {"user": "u", "password": "geheim"}),
        ("google-cloud-logging", {"auth_config": {"private_key": "geheim"}}),
        ("oas-validator", {"spec_url_request_headers": {"X-Key": "geheim"}}),
        ("loggly", {"customer_token": "geheim"}),
        ("splunk-hec-logging", {"endpoint": {"uri": "http://splunk", "token": "geheim"}}),
        ("limit-count", REDIS),
        ("limit-req", {"rate": 1, "burst": 0, "sentinel_password": "geheim"}),
        ("http-logger", {"uri": "http://logs", "auth_header": "geheim"}),
        ("loki-logger", {"endpoint_addrs": ["http://loki"], "headers": {"Authorization": "geheim"}}),
        (
            "elasticsearch-logger",
            {"endpoint_addrs": ["http://e"], "field": {"index": "a"}, "auth": {"username": "u", "password": "geheim"}},
        ),
        (
            "ai-proxy",
            {"provider": "openai", "auth": {"header": {"Authorization": "geheim"}, "query": {"key": "geheim"}}},
        ),
        ("ai-proxy-multi", {"instances": [{"name": "a", "auth": {"header": {"X-Key": "geheim"}}}]}),
        ("ai-rate-limiting", {"limit": 1, "time_window": 1, "redis_password": "geheim"}),
        ("workflow", {"rules": [{"case": [["uri", "==", "/a"]], "actions": [["limit-count", REDIS]]}]}),
    ],
)
def test_secrets_are_hidden_wherever_they_stand(name: str, config: dict[str, Any]) -> None:
    shown = hide_secrets(name, config, lambda secret: "***")
    assert "geheim" not in str(shown)
    assert str(shown) == str(config).replace("geheim", "***")
