"""What a scrape says of health."""

from prometheus_client import CollectorRegistry, generate_latest

from headgate.gateway.health.stats import HealthStats
from headgate.gateway.observability.metrics import ProxyCollector


def scrape(stats: HealthStats) -> set[str]:
    registry = CollectorRegistry()
    registry.register(ProxyCollector(stats))
    return {line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")}


def test_all_counts_are_shown() -> None:
    stats = HealthStats()
    stats.checks["http", "failure"] += 2
    stats.ejections["up"] += 1
    stats.became_unhealthy["up"] += 1
    stats.circuit_rejections["up", "pending"] += 3
    stats.budget_rejections["up"] += 4
    stats.resolutions["success"] += 5
    stats.show_unavailable("up", 2)
    assert scrape(stats) == {
        'headgate_health_checks_total{result="failure",type="http"} 2.0',
        "headgate_health_check_delay_seconds 0.0",
        'headgate_health_unhealthy_total{upstream="up"} 1.0',
        'headgate_health_ejections_total{upstream="up"} 1.0',
        'headgate_health_unavailable_endpoints{upstream="up"} 2.0',
        'headgate_health_circuit_rejections_total{bound="pending",upstream="up"} 3.0',
        'headgate_health_retry_budget_rejections_total{upstream="up"} 4.0',
        'headgate_health_resolutions_total{result="success"} 5.0',
    }


def test_an_upstream_that_left_is_shown_no_more() -> None:
    stats = HealthStats()
    stats.ejections["up"] += 1
    stats.circuit_rejections["up", "requests"] += 1
    stats.show_unavailable("up", 2)
    stats.forget("up")
    assert scrape(stats) == {"headgate_health_check_delay_seconds 0.0"}
